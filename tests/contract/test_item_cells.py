"""Events of many ticks as cells of items: the totals that the door makes of the same events, tick by tick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.item_cells import item_cells
from evertally.encode import item_cells as encoded
from evertally.encode.item_cells import ItemCells
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError

COMMON: dict[str, Any] = {"guarantee": et.ApproxDP(1.0, 1e-6), "horizon": 9, "key": et.simulation(1)}
TICKS = st.sampled_from([1, 2, 7, 2**40])
TEXTS = st.sampled_from(["a", "b", "c", "é", "e\u0301", "", "d" * 1025, "7", "long label"])
LABELS = st.one_of(TEXTS, st.sampled_from([None, 7, 7.0, True, 2**70, b"a", 3.5]))
EVENTS = {
    "labels": LABELS,
    "texts": TEXTS,
    "lists": st.lists(TEXTS, max_size=6),
    "mappings": st.dictionaries(TEXTS, st.sampled_from([-1, 0, 1, 2, 9, 2**50]), max_size=6),
    "all sorts": st.one_of(LABELS, st.lists(LABELS, max_size=6), st.dictionaries(TEXTS, st.integers(0, 5), max_size=5)),
}


def door(**options: Any) -> Any:
    return et.UnknownHistogram(**COMMON, **options)._door


def expected(opened: Any, events: list[Any], ticks: list[int]) -> dict[tuple[int, str], int]:
    found = {}
    for tick in sorted(set(ticks)):
        mine = [event for event, t in zip(events, ticks, strict=True) if t == tick]
        for label, count in opened._items.totals(mine, tick).mapping().items():
            found[tick, label] = count
    return found


def read(cells: ItemCells) -> dict[tuple[int, str], int]:
    pairs = list(zip(cells.ticks.tolist(), cells.labels().list(), strict=True))
    assert len(set(pairs)) == len(pairs)  # each tick and label once
    assert {label for _, label in pairs} == set(cells.names.list())  # what counts nowhere leaves no trace
    assert len(cells.names.list()) == len(set(cells.names.list()))
    return dict(zip(pairs, cells.weights.tolist(), strict=True))


@pytest.mark.parametrize("table", [True, False], ids=["table", "looked for"])
@pytest.mark.parametrize("kind", EVENTS)
def test_cells_are_the_totals(kind: str, table: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long events are cut as in their tick, in every kind of column, by both versions of the order."""
    if not table:
        for room in ("_ROOM", "_SMALL"):  # of all cells that there could be
            monkeypatch.setattr(encoded, room, 0)

    @given(st.data())
    @settings(deadline=None, max_examples=40, derandomize=True)
    def same(data: st.DataObject) -> None:
        options = data.draw(
            st.sampled_from([{}, {"max_per_event": 2, "max_weight": 3}, {"max_per_event": 2, "cutting": 1}])
        )
        opened = door(**options)
        events = data.draw(st.lists(EVENTS[kind], max_size=9))
        ticks = data.draw(st.lists(TICKS, min_size=len(events), max_size=len(events)))
        wanted = expected(opened, events, ticks)
        assert read(item_cells(opened, events, ticks)) == wanted
        if kind in ("texts", "lists"):
            arrow = pa.array(events, pa.string() if kind == "texts" else pa.list_(pa.string()))
            assert read(item_cells(opened, arrow, np.array(ticks, dtype=np.int64))) == wanted
            half = len(events) // 2
            chunks = pa.chunked_array([arrow[:half], arrow[half:]], arrow.type)
            assert read(item_cells(opened, chunks, ticks)) == wanted

    same()


def test_many_events_at_once() -> None:
    """The compiled loops, with events that are cut in several ticks."""
    rng = np.random.default_rng(1)
    events = [[f"item {i}" for i in rng.integers(0, 400, rng.integers(0, 6))] for _ in range(5000)]
    ticks = rng.integers(1, 6, 5000).tolist()
    opened = door(max_per_event=2)
    wanted = expected(opened, events, ticks)
    assert read(item_cells(opened, events, ticks)) == wanted
    assert read(item_cells(opened, pa.array(events), ticks)) == wanted
    pieces = [item_cells(opened, events[i : i + 900], ticks[i : i + 900]) for i in range(0, 5000, 900)]
    assert read(ItemCells.joined(pieces).added_up(2**62)) == wanted  # read in pieces, anywhere


def test_sums_do_not_leave_64_bits() -> None:
    big = [2**62, 2**62, 2**62 - 1, 5, 2**31, 2**31, 1]
    cells = ItemCells.of(np.array([1, 1, 1, 2, 2, 2, 3]), Texts.of(["a"] * 7), np.array(big))
    for most in (2**62, 2**61 // 3, 2**31, 7):
        sums = [min(most, sum(part)) for part in (big[:3], big[3:6], big[6:])]
        assert cells.added_up(most).weights.tolist() == sums


def test_mistakes_are_refused() -> None:
    opened = door()
    with pytest.raises(TypeError, match="differ in length"):
        item_cells(opened, ["a", "b"], [1])
    with pytest.raises(TypeError, match="events must be"):
        item_cells(opened, "abc", [1, 1, 1])
    counts = et.Histogram(categories=["a"], **(COMMON | {"guarantee": et.ZCDP(0.5)}))
    for mechanism in (counts, et.UnknownDistinctUsers(**COMMON)):
        with pytest.raises(ConfigurationError, match="only events that name items"):
            item_cells(mechanism._door, ["a"], [1])
    assert read(item_cells(opened, [], [])) == {}
