"""The table of an unknown domain against a plain dictionary, interpreted and compiled, with and without collisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.encode import ItemTotals, name_kernels
from evertally.encode.texts import Texts
from evertally.noise import item_addresses, simulation
from evertally.selection.item_index import ItemIndex, grown
from evertally.selection.item_table import ItemTable

SOURCE = simulation(1).source("table")

labels = st.one_of(st.text(max_size=6), st.sampled_from(["", "a", "aa", "a\x00", "\x00", "\ud800", "é", "b" * 1024]))
ticks = st.lists(st.dictionaries(labels, st.integers(1, 2**40), max_size=20), max_size=8)


def play(stream: list[dict[str, int]]) -> tuple[ItemTable, dict[str, int]]:
    table, expected = ItemTable(SOURCE), dict[str, int]()
    for tick in stream:
        table.add(ItemTotals.of(tick))
        for label, count in tick.items():
            expected[label] = expected.get(label, 0) + count
    return table, expected


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
def test_counts_are_those_of_a_dictionary(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_kernels, "_COMPILE_FROM", 0 if compiled else 10**9)
    monkeypatch.setattr(name_kernels, "_compiled", set())

    @settings(deadline=None)
    @given(ticks)
    def counts(stream: list[dict[str, int]]) -> None:
        table, expected = play(stream)
        assert dict(zip(table.labels.list(), table.counts.tolist(), strict=True)) == expected
        assert len(table) == len(expected)
        assert np.array_equal(table.addresses, item_addresses(SOURCE, table.labels.list()))

    counts()


@settings(deadline=None, max_examples=50)
@given(ticks)
def test_labels_with_equal_hashes_are_told_apart(stream: list[dict[str, int]]) -> None:
    """With multipliers of zero every label has the same hash, and the table is one long list."""
    index, numbers = ItemIndex(lambda message: bytes(16)), dict[str, int]()
    assert not index._multipliers.any()
    for tick in stream:
        new = [label for label in tick if label not in numbers]
        expected = [numbers.get(label, -1) for label in tick]
        assert index.find(Texts.of(list(tick))).tolist() == expected
        index.enter(Texts.of(new))
        numbers |= {label: len(numbers) + i for i, label in enumerate(new)}
    assert index.labels.list() == list(numbers)


def test_a_hundred_thousand_labels() -> None:
    names = [f"item {i}" for i in range(100_000)]
    table = ItemTable(SOURCE)
    for start in range(0, len(names), 7000):
        table.add(ItemTotals.of(dict.fromkeys(names[start : start + 10_000], 1)))
    assert table.labels.list() == names
    counts = table.counts
    assert counts.sum() == sum(len(names[start : start + 10_000]) for start in range(0, len(names), 7000))
    assert set(counts.tolist()) == {1, 2}
    assert table._index.find(Texts.of(["item 5", "no item", "item 99999"])).tolist() == [5, -1, 99999]
    slots = table._index._slots
    assert 3 * len(table) <= 2 * len(slots) <= 8 * len(table), "neither crowded nor wasteful"


def test_hashes_are_the_formula_and_depend_on_the_key() -> None:
    index = ItemIndex(SOURCE.order)
    words = ["", "a", "pear", "b" * 1024]
    multipliers = [int(m) for m in index._multipliers]
    expected = [sum(m * (b + 1) for m, b in zip(multipliers, word.encode(), strict=False)) % 2**64 for word in words]
    assert [int(h) % 2**64 for h in index._hashes(Texts.of(words))] == expected
    assert len(set(multipliers)) == 1024
    assert not np.array_equal(ItemIndex(simulation(2).source("table").order)._multipliers, index._multipliers)


@settings(deadline=None, max_examples=30)
@given(ticks)
def test_a_table_comes_back_from_its_bytes(stream: list[dict[str, int]]) -> None:
    table, _ = play(stream)
    again = ItemTable(SOURCE)
    again.load(table.to_bytes())
    assert again.to_bytes() == table.to_bytes()
    assert again.labels.list() == table.labels.list()
    assert np.array_equal(again.addresses, table.addresses)


@pytest.mark.parametrize("axis", [0, 1])
def test_growing(axis: int) -> None:
    array: Any = np.arange(6).reshape(2, 3)
    assert grown(array, 2, axis) is array
    larger = grown(array, 40, axis)
    assert larger.shape[axis] == 45
    assert larger.shape[1 - axis] == array.shape[1 - axis]
    assert np.array_equal(larger[:2, :3], array)
    assert larger.sum() == array.sum()
