"""Sparse rows stand for a table, whatever is done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.rows import SparseRows, dense, total

LENGTH, WIDTH = 12, 4
ENTRIES = st.lists(
    st.tuples(st.integers(0, LENGTH - 1), st.integers(0, WIDTH - 1), st.integers(-9, 9)), min_size=0, max_size=30
)


def table_of(entries: list[tuple[int, int, int]]) -> list[list[int]]:
    """In Python's whole numbers, which do not wrap around."""
    table = [[0] * WIDTH for _ in range(LENGTH)]
    for t, j, w in entries:
        table[t][j] += w
    return table


def sparse(entries: list[tuple[int, int, int]]) -> SparseRows:
    ticks, columns, weights = zip(*entries, strict=True) if entries else ([], [], [])
    return SparseRows(list(ticks), list(columns), list(weights), length=LENGTH, width=WIDTH)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ENTRIES, st.integers(-3, LENGTH + 3), st.integers(-3, LENGTH + 3), st.integers(-9, 0), st.integers(0, 9))
def test_like_the_table(entries: list[tuple[int, int, int]], a: int, b: int, low: int, high: int) -> None:
    rows, table = sparse(entries), np.array(table_of(entries))
    assert rows.shape == table.shape == (len(rows), WIDTH)
    assert np.array_equal(rows.dense(), table)
    assert np.array_equal(rows.total(), table.sum(axis=0))
    assert np.array_equal(rows.clip(low, high).dense(), table.clip(low, high))
    for part in (slice(a, b), slice(a, None), slice(None, b), slice(None)):
        piece = rows[part]
        assert len(piece) == len(table[part])
        assert np.array_equal(piece.dense(), table[part])
        assert np.array_equal(total(piece), total(table[part]))
        assert np.array_equal(dense(piece[1:]), dense(table[part][1:])), "slices of slices"


HUGE = st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**40, -1, 1])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), HUGE), min_size=1, max_size=8))
def test_huge_weights_are_added_up_exactly(entries: list[tuple[int, int, int]]) -> None:
    """Whatever is in a record is bounded, not wrapped around: cells are merged first, as whole numbers of any size."""
    ticks, columns, weights = (np.array(part, dtype=np.int64) for part in zip(*entries, strict=True))
    rows = SparseRows(ticks, columns, weights, length=LENGTH, width=WIDTH)
    expected = [[max(-5, min(5, cell)) for cell in row] for row in table_of(entries)]
    assert rows.clip(-5, 5).dense().tolist() == expected


def test_entries_of_one_cell_are_merged_before_they_are_bounded() -> None:
    rows = SparseRows([0, 0, 0], [1, 1, 1], [3, 3, -5], length=1, width=2)
    assert rows.clip(0, 2).dense().tolist() == [[0, 1]]
    ones = SparseRows([0, 0], [1, 1], length=1, width=2)
    assert ones.clip(0, 1).dense().tolist() == [[0, 1]]
    assert ones.clip(0, 2) is ones, "nothing to bound, nothing to copy"


@pytest.mark.parametrize(
    ("ticks", "columns", "weights"),
    [
        ([0, 1], [0], None),
        ([0], [0], [1, 2]),
        ([-1], [0], None),
        ([LENGTH], [0], None),
        ([0], [WIDTH], None),
        ([0], [-1], None),
        ([0.5], [0], None),
        ([0], [0], [1.5]),
        (["a"], [0], None),
    ],
)
def test_mistakes_in_the_call_raise(ticks: Any, columns: Any, weights: Any) -> None:
    with pytest.raises(TypeError):
        SparseRows(ticks, columns, weights, length=LENGTH, width=WIDTH)


def test_steps_are_refused() -> None:
    with pytest.raises(TypeError, match="step 1"):
        sparse([])[::2]


def test_run_takes_sparse_rows() -> None:
    """The same releases as the table gives, also in several calls."""
    entries = [(t % LENGTH, (t * t) % WIDTH, t % 5) for t in range(40)]
    rows = sparse(entries)

    def counter() -> et.VectorCounter:
        return et.VectorCounter(guarantee=et.PureDP(1.0), horizon=LENGTH, columns=WIDTH, key=et.simulation(4))

    whole = counter().run(np.array(table_of(entries)))
    assert np.array_equal(counter().run(rows), whole)
    parts = counter()
    assert np.array_equal(np.concatenate([parts.run(rows[:5]), parts.run(rows[5:])]), whole)
    with pytest.raises(TypeError, match="shape"):
        counter().run(SparseRows([], [], length=3, width=WIDTH + 1))
