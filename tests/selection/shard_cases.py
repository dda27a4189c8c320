"""Mechanisms over unknown items that can be cut by label, and how shards of them are played."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import evertally as et
from evertally.encode.texts import Texts
from evertally.noise import NoiseKey
from evertally.selection.found import Found
from evertally.selection.item_plan import ItemPlan
from evertally.selection.item_shards import ItemShard, merged, shard_of

Cell = tuple[int, str, int]
HORIZON = 24
CASES: dict[str, dict[str, Any]] = {
    "sum": {},
    "per_tick": {"threshold": "per_tick"},
    "paper": {"threshold": "paper"},
    "sticky": {"sticky": True},
    "sticky per_tick": {"sticky": True, "threshold": "per_tick", "radix": 2},
    "top 3": {"k": 3},
    "sticky top 2": {"k": 2, "sticky": True},
    "users": {"unit": "user", "max_events_per_user": 2, "neighbours": "replace"},
}


def whole(case: str, key: NoiseKey, **more: Any) -> Any:
    """The mechanism that shards are held against. Little noise: thresholds that small streams reach."""
    options: dict[str, Any] = (
        {"guarantee": et.ApproxZCDP(20.0, 1e-3), "horizon": HORIZON, "key": key} | CASES[case] | more
    )
    return (et.UnknownTopK if "k" in options else et.UnknownHistogram)(**options)


def texts(cells: Sequence[Cell]) -> Texts:
    return Texts.of([label for _, label, _ in cells])


def advanced(shard: ItemShard, cells: Sequence[Cell], through: int) -> list[Found]:
    """Plays those of the cells that are the shard's."""
    mine = shard_of(texts(cells), shard._key, shard.count) == shard.number
    own = [cell for cell, here in zip(cells, mine.tolist(), strict=True) if here]
    before, releases = shard.tick, []
    for tick, found in shard.advance([t for t, _, _ in own], texts(own), [w for _, _, w in own], through):
        releases.append(found)
        assert tick == before + len(releases) == shard.tick
    return releases


def played(
    plan: ItemPlan, key: NoiseKey, count: int, batches: Sequence[tuple[Sequence[Cell], int]]
) -> tuple[list[dict[str, int]], list[bytes]]:
    """Releases of all ticks and the states at the end; every shard goes through bytes after every batch."""
    parts, states = [], []
    for number in range(count):
        shard, mine = ItemShard(plan, key, number, count), []
        for cells, through in batches:
            mine += advanced(shard, cells, through)
            shard = ItemShard.from_bytes(plan, key, number, count, shard.to_bytes())
        parts.append(mine)
        states.append(shard.to_bytes())
    return [merged(plan, found).counts for found in zip(*parts, strict=True)], states


def written(releases: Any) -> str:
    """Releases as text, order of labels included."""
    return json.dumps([list(one.items()) for one in releases])


def stream(seed: int, ticks: int = HORIZON, labels: int = 40) -> list[Cell]:
    """Few large labels, many small ones, some of which come late."""
    rng = np.random.default_rng(seed)
    cells = []
    for tick in range(1, ticks + 1):
        for i in rng.permutation(labels)[: labels // 2].tolist():
            if tick > i % 7:
                cells.append((tick, f"näme {i}" if i % 3 else f"{i}", int(rng.integers(1, 2 + 60 // (1 + i)))))
    return cells


def stepped(mechanism: Any, cells: Sequence[Cell], ticks: int = HORIZON) -> list[dict[str, int]]:
    """What the mechanism itself releases of these cells."""
    releases = []
    for tick in range(1, ticks + 1):
        events = [label for t, label, w in cells if t == tick for _ in range(w)]
        users = {"users": [f"{tick} {i}" for i in range(len(events))]} if mechanism.unit == "user" else {}
        releases.append(mechanism.step_events(events, **users).value)
    return releases
