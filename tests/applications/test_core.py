"""The core of applications: tables that are taken back, norms of difference paths, coordinates on demand."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.applications.lazy import ChosenCoordinates
from evertally.applications.paths import difference, intervals, l1, split, square_root, square_root_gram
from evertally.applications.records import RecordDoor, Records
from evertally.applications.tables import Table, pack, unpack
from evertally.counting.tree import TreeProcess
from evertally.errors import StateError
from evertally.noise import DiscreteGaussian, simulation
from evertally.privacy import ZCDP, Change

keys = st.one_of(st.integers(0, 3), st.sampled_from(["a", "b"]), st.tuples(st.integers(0, 1), st.text(max_size=1)))
entries = st.one_of(st.none(), st.integers(1, 9), st.tuples(st.integers(), st.text(max_size=2)))


@given(before=st.dictionaries(keys, entries), call=st.lists(st.tuples(keys, entries)), cut=st.integers(0, 20))
def test_a_table_goes_back_to_where_a_call_began(before: Any, call: Any, cut: int) -> None:
    table = Table()
    for key, entry in before.items():
        table.put(key, entry)
    kept = table.written()
    table.begin()
    for key, entry in call[:cut]:
        table.put(key, entry)
    table.undo()
    assert table.written() == kept
    table.undo()  # an undo that was interrupted is done again
    assert table.written() == kept


@given(st.dictionaries(keys, entries))
def test_tables_come_back_from_bytes(content: Any) -> None:
    table, again, other = Table(), Table(), Table()
    for key, entry in content.items():
        table.put(key, entry)
    for key, entry in reversed(list(content.items())):
        other.put(key, entry)
    data = pack(3, [table])
    assert data == pack(3, [other])  # whatever the order in which entries came
    unpack(data, 3, [again])
    assert again.written() == table.written()
    assert all(again.get(key) == entry for key, entry in content.items())
    with pytest.raises(StateError):
        unpack(data, 4, [again])
    with pytest.raises(StateError):
        unpack(data, 3, [again, other])
    with pytest.raises(StateError):
        unpack(data[:-1], 3, [again])


def test_numbers_of_a_table() -> None:
    table = Table()
    assert table.add("x", 2) == 2
    assert table.add("x", -2) == 0
    assert "x" not in table
    assert len(table) == 0
    assert repr(table) == "<Table, not shown>"


small = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(-2, 2)), min_size=1, max_size=6)


@given(small)
def test_the_worst_intervals_by_all_partitions(path: Any) -> None:
    T = len(path)
    best = 0
    for size in range(T + 1):
        for cuts in combinations(range(1, T), size) if size < T else ():
            ends = [0, *cuts, T]
            best = max(
                best,
                sum(sum(sum(step.get(c, 0) for step in path[a:b]) ** 2 for c in "ab") for a, b in pairwise(ends)),
            )
    assert intervals(path) >= best  # a partition of all ticks is one choice of disjoint intervals
    assert intervals(path) <= split(path)
    assert square_root(path) <= split(path) + 1e-9
    assert split(path) <= l1(path) ** 2


def test_the_gram_matrix_of_the_square_root() -> None:
    gram = square_root_gram(16)
    assert gram[0, 0] == pytest.approx(
        sum((np.prod([(2 * i - 1) / (2 * i) for i in range(1, k + 1)])) ** 2 for k in range(16))
    )
    assert (gram > 0).all()
    assert (gram <= gram[0, 0] + 1e-12).all()


def test_l2_over_time_is_no_sensitivity() -> None:
    """The invalid rule of 2.4: D = 1 at every tick has squared l2 norm T, and moves a factor by far more."""
    path = [{"a": 1}] * 9
    assert sum(1 for _ in path) == 9
    assert square_root(path) > 2 * 9
    assert intervals(path) == split(path) == 81


def test_differences_have_no_zeros() -> None:
    assert difference([{"a": 1, "b": 2}, {}], [{"a": 1, "b": 1}, {"c": 4}]) == [{"b": 1}, {"c": -4}]


def test_the_noise_of_a_name_does_not_depend_on_company() -> None:
    source = simulation(4).source("lazy")

    def noise(labels: list[str]) -> Any:
        process = TreeProcess(
            ZCDP(0.5), Change(1, 1, 1), horizon=20, columns=len(labels), source=ChosenCoordinates(source, labels, None)
        )
        return process.advance(20)

    alone, together = noise(["abc"]), noise(["x", "abc", "y"])
    assert (alone[:, 0] == together[:, 1]).all()
    assert (together[:, 0] != together[:, 2]).any()
    assert source.draws("t", DiscreteGaussian(100), [1]).shape == (1, 1)


def test_a_door_reads_each_record_alone() -> None:
    door = RecordDoor(lambda record: (record,) if isinstance(record, int) else None, 3)
    assert door.events([3, "x", None, 1], 1).read == ((3,), (1,))
    assert RecordDoor(lambda record: (record,), 3, sort=True).events([3, 1], 1).read == ((1,), (3,))
    assert Records(((1,), (2,))).digest() != Records(((2,), (1,))).digest()
    with pytest.raises(TypeError):
        door.events("not a column", 1)
    with pytest.raises(TypeError):
        door.many([[1], 2], 1)
