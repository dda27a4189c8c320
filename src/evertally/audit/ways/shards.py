"""Shards of labels against the mechanism as a whole, and both against a dictionary.

Labels are many, long, and share hashes; cells come for ticks that are over, for later ones and for ticks that will
never be, and weigh more than a tick may have. Between batches every shard is put away and taken up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from evertally.audit.ways.sharing import families
from evertally.contract.doors import Items
from evertally.contract.item_cells import item_cells
from evertally.encode import ItemTotals
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.errors import StateError
from evertally.selection.item_index import ItemIndex
from evertally.selection.item_shards import ItemShard, merged, shard_of

_TICKS = 6
_COUNT = 3  # shards
_LABELS = 600  # more than loops are interpreted for
Counts = dict[bytes, int]
Cells = list[tuple[int, bytes, int]]  # tick, label, weight


def wrong_shards(mechanism: Any, key: Any) -> str:
    """What shards of a mechanism over unknown labels release that it does not. It has seen no tick, and is used up."""
    plan, worker = mechanism.item_plan(), mechanism._worker()
    ticks = min(_TICKS, plan.horizon)
    pairs = families(worker.table._index._multipliers.tolist())
    if not all(_apart(ItemIndex(worker.table._source.order), *pair) for pair in pairs):
        return "two labels that share a hash are taken for one, or one of them for two"
    labels = _labels(pairs)
    known = defaultdict[bytes, int](int)
    shards = [ItemShard(plan, key, number, _COUNT) for number in range(_COUNT)]
    opened = 0
    for through, cells, totals in _batches(plan, ticks, labels):
        given = _cut(cells, key)
        parts: list[list[Any]] = []
        for number in range(_COUNT):
            state = shards[number].to_bytes()
            mixed = ItemShard.from_bytes(plan, key, number, _COUNT, state)
            list(mixed.advance(*_columns(given[number][::-1]), through))
            shards[number] = ItemShard.from_bytes(plan, key, number, _COUNT, state)
            parts.append([found for _, found in shards[number].advance(*_columns(given[number]), through)])
            if mixed.to_bytes() != shards[number].to_bytes():
                return "the state of a shard follows from the order in which cells came"
            if wrong := _refused(plan, key, number, shards[number].to_bytes()):
                return wrong
        for place, tick in enumerate(range(opened + 1, through + 1)):
            for label, weight in totals[place].items():
                known[label] += weight
            whole = worker.advance([_of(totals[place])])[0][0]
            together = merged(plan, [part[place] for part in parts])
            if list(together.counts.items()) != list(whole.counts.items()):
                return f"what {_COUNT} shards show at tick {tick} is not what the whole shows"
            if _counts([worker]) != known:
                return f"after tick {tick} the counts of labels are not those of a dictionary"
        if _counts([shard._engine for shard in shards]) != known:
            return f"after tick {through} the counts of labels in shards are not those of a dictionary"
        opened = through
    return ""


def _apart(index: ItemIndex, one: bytes, other: bytes) -> bool:
    """Whether a table of nobody else knows two labels that share a hash as two, and no third."""
    index.enter(Texts.of_bytes([one]))
    before = index.find(Texts.of_bytes([one, other])).tolist()
    index.enter(Texts.of_bytes([other]))
    after = index.find(Texts.of_bytes([other, one])).tolist()
    return [before, after] == [[0, -1], [1, 0]]


def _labels(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    plain = [b"label %d" % (i * i) for i in range(_LABELS)]
    lengths = (1, 7, 8, 9, 16, 17, 255, 256, LONGEST_LABEL - 1, LONGEST_LABEL)
    sharing = [name for pair in pairs for name in pair]
    return list(dict.fromkeys([*plain, *(b"z" * length for length in lengths), *sharing]))


def _batches(plan: Any, ticks: int, labels: list[bytes]) -> Iterator[tuple[int, Cells, list[Counts]]]:
    random, waiting, opened = np.random.default_rng(3), defaultdict[tuple[int, bytes], int](int), 0
    for through in sorted({1, 2, (ticks + 2) // 2, ticks}):
        cells: Cells = []
        for place in range(2 * len(labels)):
            tick = int(random.integers(max(-1, opened - 1), min(through + 2, plan.horizon + 1) + 1))
            weight = (0, 1, 5, 2000, 10**6)[place % 5] if place % 50 else plan.limit - 3 + place % 7
            cells.append((tick, labels[int(random.integers(0, len(labels)))], weight))
        cells += [(through, label, 900) for label in labels[-10:]]
        for tick, label, weight in cells:
            entered = max(tick, opened + 1)
            if entered <= plan.horizon and weight:
                waiting[entered, label] += weight
        yield through, cells, [_clipped(plan, waiting, tick) for tick in range(opened + 1, through + 1)]
        opened = through


def _clipped(plan: Any, waiting: dict[tuple[int, bytes], int], tick: int) -> Counts:
    return {label: min(plan.limit, weight) for (at, label), weight in waiting.items() if at == tick}


def _cut(cells: Cells, key: Any) -> list[Cells]:
    numbers = shard_of(Texts.of_bytes([label for _, label, _ in cells]), key, _COUNT).tolist()
    return [[cell for cell, mine in zip(cells, numbers, strict=True) if mine == number] for number in range(_COUNT)]


def _columns(cells: Cells) -> tuple[Any, Texts, Any]:
    ticks, weights = (np.array([cell[i] for cell in cells], np.int64) for i in (0, 2))
    return ticks, Texts.of_bytes([label for _, label, _ in cells]), weights


def _of(totals: Counts) -> ItemTotals:
    return ItemTotals(Texts.of_bytes(list(totals)), np.array(list(totals.values()), np.int64))


def _counts(engines: list[Any]) -> Counts:
    """Exact counts by label; of a label that is there twice the sum, which no dictionary has by chance."""
    found = defaultdict[bytes, int](int)
    for engine in engines:
        for label, count in zip(engine.table.labels.names(), engine.table.counts.tolist(), strict=True):
            found[label] += count
    return dict(found)


def _refused(plan: Any, key: Any, number: int, state: bytes) -> str:
    middle = len(state) // 2
    other = state[:middle] + bytes([state[middle] ^ 1]) + state[middle + 1 :]
    for damaged in (b"", state[:40], state[:-1], state + b"\0", other):
        try:
            ItemShard.from_bytes(plan, key, number, _COUNT, damaged)
        except StateError:
            continue
        except Exception as error:
            return f"a damaged state of a shard ends with {type(error).__name__}"
        return "a damaged state of a shard is taken up"
    return ""


# -- events of many ticks at once --------------------------------------------------------------------------------------


def wrong_cells(mechanism: Any) -> str:
    """Items of many ticks at once, against each tick by itself, event by event."""
    door = mechanism._door
    if type(door) is not Items:
        return ""
    names = [f"item {i}" for i in range(200)]
    plain: list[Any] = [names[i * i % 200] for i in range(900)]
    lists: list[Any] = [names[i % 190 : i % 190 + 1 + i % 5] if i % 3 else names[i % 200] for i in range(400)]
    weighed: list[Any] = [{names[i % 200]: i, names[i % 7]: 2} for i in range(300)]
    for events in (plain, lists, weighed, [*lists, 0.5, None, True, 1]):
        for step in (1, 5000):  # ticks close together, and so far apart that a table of them all would not do
            ticks = np.array([1 + step * (i * i % 5) for i in range(len(events))])
            at_once = _added(item_cells(door, events, ticks))
            alone = defaultdict[tuple[int, str], int](int)
            for event, tick in zip(events, ticks.tolist(), strict=True):
                for label, weight in door._items.row(event, tick).items():
                    alone[tick, label] += weight
            if at_once != alone:
                return f"{len(events)} events of several ticks count otherwise than each by itself"
    return ""


def _added(cells: Any) -> dict[tuple[int, str], int]:
    found = defaultdict[tuple[int, str], int](int)
    for tick, label, weight in zip(cells.ticks.tolist(), cells.labels().list(), cells.weights.tolist(), strict=True):
        found[tick, label] += weight
    return dict(found)
