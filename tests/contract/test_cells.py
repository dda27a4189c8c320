"""Events of many ticks as cells: the rows that doors make of the same events, tick by tick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.cells import cells
from evertally.counting.slices import LinearSlice
from evertally.errors import ConfigurationError

LABELS = st.sampled_from(["0", 0, 1, "2", 5.0, "x", None, True, 2**70, -1])
EVENTS = st.one_of(
    LABELS, st.lists(LABELS, max_size=4), st.dictionaries(st.integers(0, 6), st.integers(0, 9), max_size=3)
)
COMMON: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 9, "mechanism": "tree", "key": et.simulation(1)}


def made(numbered: bool, **options: Any) -> Any:
    names: Any = 6 if numbered else list("012345")
    return et.VectorCounter(columns=names, **COMMON, **options)


def expected(door: Any, events: Any, ticks: list[int]) -> list[tuple[int, int, int]]:
    found = []
    for tick in sorted(set(ticks)):
        row = door.event_row([event for event, t in zip(events, ticks, strict=True) if t == tick], tick)
        found += [(tick, j, int(row[j])) for j in np.flatnonzero(row).tolist()]
    return found


@pytest.mark.parametrize("numbered", [False, True], ids=["names", "numbers"])
@given(data=st.data())
@settings(deadline=None, max_examples=20, derandomize=True)
def test_cells_are_the_rows(numbered: bool, data: st.DataObject) -> None:
    options = {"other": data.draw(st.sampled_from([None, "rest"])), "max_per_event": 2, "max_weight": 3}
    door = made(numbered, **options)._door
    for each in (LABELS, EVENTS, st.integers(-1, 7)):
        events = data.draw(st.lists(each, max_size=9))
        ticks = data.draw(st.lists(st.sampled_from([1, 2, 7, 2**40]), min_size=len(events), max_size=len(events)))
        found = [part.tolist() for part in cells(door, events, ticks)]
        assert list(zip(*found, strict=True)) == expected(door, events, ticks)
        if each is not EVENTS and all(type(event) is int and abs(event) < 99 for event in events):
            for column in (np.array(events, dtype=np.int64), pa.array([*events, None], pa.int64())):
                more = [*ticks, 3][: len(column)]
                again = cells(door, column, np.array(more, dtype=np.int64))
                assert [part.tolist() for part in again] == found


def test_events_through_cells_and_slices_are_the_whole() -> None:
    rng = np.random.default_rng(1)
    whole, plan = made(True), made(True).plan()
    events, ticks = rng.integers(-1, 8, 200), rng.integers(1, 6, 200)
    released = np.array([whole.step_events(events[ticks == tick]).value for tick in range(1, 6)])
    found = []
    for first, stop in ((0, 2), (2, 6)):
        part = LinearSlice(plan, et.simulation(1), first, stop)
        pieces = []
        for piece in np.array_split(np.arange(200), 7):  # read in pieces, anywhere
            t, j, w = cells(whole._door, events[piece], ticks[piece])
            mine = (j >= first) & (j < stop)
            pieces.append(np.stack([t, j, w])[:, mine])
        found.append(np.concatenate([rows for _, rows in part.advance(*np.concatenate(pieces, axis=1), 5)]))
    assert np.array_equal(np.concatenate(found, axis=1), released)


def test_mistakes_are_refused() -> None:
    door = made(True)._door
    with pytest.raises(TypeError, match="differ in length"):
        cells(door, [1, 2], [1])
    with pytest.raises(TypeError, match="events must be"):
        cells(door, "abc", [1, 1, 1])
    binned = et.Histogram(edges=[0, 1, 2], **COMMON)
    money = et.Histogram(categories=["a"], max_weight=5, resolution=0.01, **COMMON)
    heavy = made(True, max_weight=2**33)
    for mechanism in (binned, money, heavy):
        with pytest.raises(ConfigurationError, match="only counts by column"):
            cells(mechanism._door, [1], [1])
