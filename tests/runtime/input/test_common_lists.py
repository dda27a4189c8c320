"""Lists of labels in JSON lines, and ticks in which some batches have lists and others plain labels, count what their
events count one by one."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.encode import CategoryDoor, ItemDoor
from evertally.encode.labels import as_list
from evertally.encode.spelled import Spelled
from evertally.encode.texts import Texts
from evertally.runtime.input.common_lists import as_lists
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.input.tokens import cells_of, column_of, lists_of, token
from evertally.runtime.spec import QuerySpec

LABEL = st.sampled_from(["a", "b", "", "fig", "caf\u00e9", "cafe\u0301", "\ud83d", 'qu"ote', "back\\slash", "x" * 1025])
ODD = st.one_of(LABEL, st.sampled_from([7, 7.0, -0.0, True, None, 2.5, 10**30, {"a": 2}, ["a"]]))
LISTS = st.lists(st.one_of(LABEL, LABEL, ODD), max_size=4)
PLAIN = st.sampled_from(["a", "fig", "caf\u00e9"])


def order(message: bytes) -> bytes:
    return blake2b(message, key=b"lists", digest_size=16).digest()


def tokens(cells: list[Any]) -> Any:
    return column_of(Texts.of_bytes([token(cell) for cell in cells]))


def token_cell(cell: Any) -> Any:
    """A cell as it comes out of a small body."""
    return cells_of(tokens([cell]))[0]


@st.composite
def batches(draw: Any) -> list[tuple[Any, list[Any]]]:
    """Columns as the service keeps them, each with its events."""
    made = []
    for form in draw(
        st.lists(
            st.sampled_from(["lists", "texts", "tokens", "cells", "Arrow lists", "Arrow bytes", "Arrow"]), max_size=4
        )
    ):
        whole = st.one_of(st.none(), st.lists(PLAIN, max_size=4))
        cells = {
            "lists": st.lists(whole, max_size=5),
            "texts": st.lists(st.one_of(st.none(), PLAIN), max_size=5),
            "tokens": st.lists(st.one_of(LISTS, ODD), max_size=5),
            "cells": st.lists(st.one_of(LISTS, ODD), max_size=5),
        }.get(form, st.lists(whole, max_size=5))
        events: list[Any] = draw(cells)
        if form in ("lists", "texts", "tokens"):
            made.append((tokens(events), events))
        elif form == "cells":
            made.append((np.fromiter((token_cell(event) for event in events), object, len(events)), events))
        elif form == "Arrow":
            texts = [event[0] if event else None for event in events]
            made.append((pa.array(texts, pa.large_binary()), texts))
        else:
            kind = pa.list_(pa.binary() if form == "Arrow bytes" else pa.string())
            made.append((pa.array(events, kind), events))
    return made


@settings(max_examples=80, deadline=None)
@given(batches())
def test_a_tick_counts_what_its_events_count(given_: list[tuple[Any, list[Any]]]) -> None:
    spec: Any = SimpleNamespace(user_column=None)
    query = QuerySpec("by", "histogram", Fraction(1), "item", {}, line=1)
    events = TickEvents(spec, [{"item": column} for column, _ in given_]).events(query)
    one_by_one = [cell for _, cells in given_ for cell in cells]
    # Of the cells of JSON only what is not nested deeper than one level is read.
    flat = [[None if isinstance(c, list | dict) else c for c in e] if isinstance(e, list) else e for e in one_by_one]
    for door in (CategoryDoor(["a", "fig", "caf\u00e9", 7], "rest", 2, 2, order=order), ItemDoor(2, 2, order=order)):
        expected: Counter[Any] = Counter()
        for event in flat:
            expected.update(door.row(event, 3))  # type: ignore[attr-defined]
        found = door.totals(events, 3)  # type: ignore[attr-defined]
        if isinstance(found, np.ndarray):
            assert found.tolist() == [expected[i] for i in range(len(found))]
        else:
            assert found.mapping() == dict(expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(LISTS, st.none()), min_size=1, max_size=6), st.sampled_from([(",", ":"), (" , ", ": ")]))
def test_lists_are_those_that_are_written(cells: list[Any], separators: tuple[str, str]) -> None:
    written = ["" if cell is None else json.dumps(cell, separators=separators, ensure_ascii=False) for cell in cells]
    column = column_of(Texts.of(written))
    found = lists_of(column)
    simple = any(cell is not None for cell in cells) and all(
        isinstance(part, str) and not set(part) & {'"', "\\"} for cell in cells if cell for part in cell
    )
    assert (found is not None) == simple
    if found is not None and not any("\ud83d" in cell for cell in cells if cell):
        assert found.to_pylist() == cells == cells_of(column).tolist()


def test_records_get_their_cells_as_they_are() -> None:
    spec: Any = SimpleNamespace(user_column=None)
    tick = TickEvents(spec, [{"item": tokens(["a"])}, {"item": pa.array([["b"]])}])
    assert as_list(tick._column("item", "labels", door=False)) == ["a", ["b"]]
    assert as_list(tick._column("item", "labels", door=True)) == [[b"a"], [b"b"]]


@pytest.mark.parametrize(
    "part",
    [
        pa.array([7]),
        np.array([{"a": 1}], object),
        np.array(["\ud83d"], object),
        Spelled(np.array([0]), Texts.of(["\ud83d"])),
        pa.array([{"a": 1}]),
    ],
)
def test_what_is_no_text_stays_as_it_is(part: Any) -> None:
    parts = [pa.array([["a"]]), part]
    assert as_lists(parts) is parts
