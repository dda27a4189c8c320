"""Slices of columns against the mechanism as a whole: the same rows, number by number.

Cells come in batches, some for ticks that are over, some for later ones and some for ticks that will never be; weights
are beyond what a tick may have, and add up to nothing. What a tick has is added up here in Python's integers.
Between batches every slice is put away and taken up, cut otherwise, with and without what its noise remembers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.contract.ticks import last_tick
from evertally.counting.process import Remembering
from evertally.counting.slices import LinearSlice
from evertally.errors import StateError

_TICKS = 6
_CELLS = 40  # of a batch
_MOST_COLUMNS = 40  # that are cut: wider ones by their first
Cells = list[tuple[int, int, int]]  # tick, column, weight


def wrong_slices(mechanism: Any, key: Any) -> str:
    """What slices of a linear mechanism release that it does not; nothing, if all is well. `mechanism` has seen no
    tick, and is used up."""
    plan = mechanism.plan()
    ticks = min(_TICKS, last_tick(plan.horizon))
    width = min(plan.columns, _MOST_COLUMNS)
    batches = list(_batches(plan, ticks, width))
    rows = _whole(mechanism, plan, [totals for _, _, each in batches for totals in each])
    cuts = _cuts(width)
    states: list[bytes] = []
    opened = 0
    for number, (through, cells, _) in enumerate(batches):
        edges = cuts[number % len(cuts)]
        expected, before = rows[opened:through], states
        states = []
        for first, stop in pairwise(edges):
            own = [cell for cell in cells if first <= cell[1] < stop]
            part = _taken_up(plan, key, first, stop, before, lazy=number % 2 == 1)
            found = np.concatenate([piece for _, piece in part.advance(*_columns(own), through)])
            if (found != expected[:, first:stop]).any():
                return f"columns {first} to {stop - 1} of ticks {opened + 1} to {through} are not those of the whole"
            kept = part.to_bytes(remember=number % 3 != 2)
            mixed = _taken_up(plan, key, first, stop, before, lazy=number % 2 == 1)
            list(mixed.advance(*_columns(own[::-1]), through))
            if mixed.to_bytes(remember=number % 3 != 2) != kept:
                return "the state of a slice follows from the order in which cells came"
            if ((part.sums + part.noise()) != expected[-1, first:stop]).any():
                return f"sums and noise of columns {first} to {stop - 1} are not what tick {through} released"
            if wrong := _some_ticks(plan, key, first, stop, before, own, opened, through, expected):
                return wrong
            states.append(kept)
        opened = through
        if wrong := _refused(plan, key, width, edges, states, before):
            return wrong
    return ""


def wrong_memory(process: Any) -> str:
    """What the noise remembers must lead to the same noise, and nothing else must be taken for it."""
    horizon = last_tick(process.horizon)
    if not isinstance(process, Remembering) or horizon < 3:
        return ""
    return _other_memory(process)


def _other_memory(process: Any) -> str:
    process.seek(2)
    memory, after = process.memory(), process.advance(1)
    process.recall(2, memory)
    if (process.advance(1) != after).any():
        return "noise that was put away and taken up goes on with other noise"
    # Whatever the error is called: it fails closed, under the digest of a snapshot.
    for damaged in (memory + bytes(8), memory[:-8]):
        taken = damaged != memory
        with suppress(Exception):
            process.recall(2, damaged)
            if taken:
                return "a memory of the noise with more or fewer bytes than it has is taken up"
    return ""


def _cuts(width: int) -> list[list[int]]:
    """Edges of slices: all in one, halves, one column for itself."""
    found = [[0, width], sorted({0, width // 2, width}), sorted({0, 1, (2 * width + 2) // 3, width})]
    return found if width > 1 else found[:1]


def _taken_up(plan: Any, key: Any, first: int, stop: int, states: Sequence[bytes], lazy: bool = False) -> LinearSlice:
    if not states:
        return LinearSlice(plan, key, first, stop)
    return LinearSlice.from_bytes(plan, key, first, stop, states, lazy=lazy)


def _columns(cells: Cells) -> tuple[Any, Any, Any]:
    ticks, columns, weights = (np.array([cell[i] for cell in cells], np.int64) for i in range(3))
    return ticks, columns, weights


def _batches(plan: Any, ticks: int, width: int) -> Iterator[tuple[int, Cells, list[list[int]]]]:
    """The last tick of each batch, its cells, and what its ticks have in all."""
    random = np.random.default_rng(ticks * 1000 + width)
    waiting: dict[tuple[int, int], int] = {}
    last, opened = last_tick(plan.horizon), 0
    for through in sorted({1, min(2, ticks), (ticks + 2) // 2, ticks}):
        cells: Cells = []
        for place in range(_CELLS):
            # Ticks that are over, those of the batch, later ones, and (of few streams) ones that will never be.
            tick = int(random.integers(max(-1, opened - 1), min(through + 2, last + 1) + 1))
            weight = int(random.integers(-9, 10)) if place % 5 else (plan.limit // 3 + place) * (-1) ** place
            cells.append((tick, int(random.integers(0, width)), weight))
        cells += [(through, 0, 7), (through, 0, -7), (through, width - 1, 0)]
        for tick, column, weight in cells:
            entered = max(tick, opened + 1)
            if entered <= last:
                waiting[entered, column] = waiting.get((entered, column), 0) + weight
        totals = [
            [max(plan.low, min(plan.limit, waiting.get((tick, column), 0))) for column in range(width)]
            for tick in range(opened + 1, through + 1)
        ]
        yield through, cells, totals
        opened = through


def _whole(mechanism: Any, plan: Any, totals: list[list[int]]) -> Any:
    """The rows that the mechanism itself makes of these totals, behind its door and its rule."""
    engine = getattr(mechanism._engine, "inner", mechanism._engine)
    state, rows = engine.start(), []
    for tick, row in enumerate(totals):
        engine.begin(tick)
        all_columns = np.zeros((1, plan.columns), np.int64)
        all_columns[0, : len(row)] = row
        played = engine.play(all_columns, state)
        state = played.state
        rows.append(np.array(played.rows[0]))
    return np.stack(rows)


def _some_ticks(
    plan: Any, key: Any, first: int, stop: int, states: Sequence[bytes], cells: Cells, opened: int, through: int,
    expected: Any,
) -> str:  # fmt: skip
    """Only some ticks of a batch, as they are asked for."""
    wanted = list(range(opened + 1, through + 1))[::2]
    part = _taken_up(plan, key, first, stop, states, lazy=True)
    for tick, row in part.advance(*_columns(cells), through, wanted):
        if (row[0] != expected[tick - opened - 1, first:stop]).any():
            return f"tick {tick} asked for by itself is not that of the whole"
    return "" if part.tick == through else "a slice that is asked for some ticks does not come to the last"


def _refused(
    plan: Any, key: Any, width: int, edges: Sequence[int], states: list[bytes], before: Sequence[bytes]
) -> str:
    """States with a hole, states twice, of two batches, cut short, and a call that nobody finished."""
    asked: list[tuple[str, list[bytes]]] = [("no state", []), ("a state that is cut short", [states[0][:-1]])]
    asked += [("a state with more bytes", [states[0] + b"\0" * 8, *states[1:]]), ("twice the same", states * 2)]
    if len(edges) > 2:
        asked += [("a hole", states[:-1]), ("a hole", states[1:])]
        if len(before) == len(states):
            asked.append(("two batches", [before[0], *states[1:]]))
    for what, given in asked:
        try:
            LinearSlice.from_bytes(plan, key, 0, width, given)
        except StateError:
            continue
        except Exception as error:
            return f"{what} in the place of the states of slices ends with {type(error).__name__}"
        return f"{what} in the place of the states of slices is taken up"
    return ""
