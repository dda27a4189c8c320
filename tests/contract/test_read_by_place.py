"""Numbers are read by their place where they have nothing else: plain sequences and arrays. All else by name."""

from __future__ import annotations

import sqlite3
from array import array
from collections import UserList, deque
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertally as et

STRUCTURES = [{"b": 1, "a": 2}, {"b": 1, "a": 2}]
FIELDS = pa.struct([("b", pa.int64()), ("a", pa.int64())])
NAMED = {"guarantee": et.ZCDP(0.5), "horizon": 9}


def histogram(**options: Any) -> Any:
    return et.Histogram(categories=["a", "b"], key=et.noise.ZeroNoise(), allow_copy=True, **NAMED, **options)


class SparkRow(tuple[int, ...]):
    __fields__ = ("b", "a")


class DatabaseRow(list[int]):
    _index = {"b": 0, "a": 1}  # noqa: RUF012


class Dimensions:
    """An array with names for its dimensions and places."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = np.array(numbers)
        self.dims, self.coords = ("ward",), {"ward": ["b", "a"]}

    def to_numpy(self) -> Any:
        return self.numbers

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numbers


class OnlyArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1, 2])


class ForeignSeries:
    """A Series with an index, of a library that speaks Arrow, which has no indices."""

    index = ("b", "a")

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return pa.chunked_array([[1, 2]]).__arrow_c_stream__(requested)


class SeriesLike:
    """A Series as libraries have it that are like pandas."""

    def __init__(self, cells: Any, index: Any = ("b", "a")) -> None:
        self.cells, self.index, self.iloc = np.array(cells), list(index), None

    def to_numpy(self) -> Any:
        return self.cells

    def __len__(self) -> int:
        return len(self.cells)


def sqlite_row() -> Any:
    base = sqlite3.connect(":memory:")
    base.row_factory = sqlite3.Row
    return base.execute("select 1 as b, 2 as a").fetchone()


@pytest.mark.parametrize(
    "row",
    [
        SparkRow((1, 2)),
        DatabaseRow([1, 2]),
        Dimensions([1, 2]),
        OnlyArray(),
        ForeignSeries(),
        SeriesLike([1, 2]),
        sqlite_row(),
        UserList([1, 2]),
        np.ma.array([1, 2], mask=[True, False]),
        np.ma.array([1, 2]),
        [1, np.ma.masked],
    ],
    ids=lambda row: type(row).__name__,
)
def test_what_may_have_names_is_not_read_by_its_place(row: Any) -> None:
    statistic = histogram()
    for call in (lambda: statistic.step(row), lambda: statistic.run([row]), lambda: statistic.run((row, row))):
        with pytest.raises(TypeError, match=r"names|labels|masked"):
            call()
    assert statistic.tick == 0


@pytest.mark.parametrize(
    "row",
    [
        [1, 2],
        (1, 2),
        deque([1, 2]),
        array("q", [1, 2]),
        range(1, 3),
        np.array([1, 2]),
        pl.Series([1, 2]),
        pa.array([1, 2]),
    ],
    ids=lambda row: type(row).__name__,
)
def test_plain_sequences_and_arrays_are(row: Any) -> None:
    assert histogram().step(row).value == {"a": 1, "b": 2}
    assert histogram().run([row, row]).tolist() == [[1, 2], [2, 4]]


@pytest.mark.parametrize(
    "ticks",
    [
        Dimensions([[1, 2]]),
        pd.Series([(1, 2)]),
        pd.Series([sqlite_row()]),
        pd.Series([pd.Series({"b": 1, "a": 2})]),
        pd.Series(STRUCTURES, dtype=pd.ArrowDtype(FIELDS)),
        pd.MultiIndex.from_tuples([(1, 2)], names=["b", "a"]),
        pl.Series([[STRUCTURES[0]]], dtype=pl.Array(pl.Struct({"b": pl.Int64, "a": pl.Int64}), 1)),
        np.array([((1, 2),), ((1, 2),)], dtype=[("a", int, (2,))]),
        np.array([((1,),)], dtype=[("a", int, (1,))]),
        np.ma.array([(1, 2)], mask=[(True, False)], dtype=[("b", int), ("a", int)]),
    ],
    ids=range(10),
)
def test_ticks_that_are_not_read_by_their_place(ticks: Any) -> None:
    statistic = histogram()
    with pytest.raises(TypeError):
        statistic.run(ticks)
    assert statistic.tick == 0


@pytest.mark.parametrize(
    "ticks",
    [pl.Series(STRUCTURES), pa.array(STRUCTURES, FIELDS), pa.chunked_array([STRUCTURES[:1], STRUCTURES[1:]], FIELDS)],
    ids=lambda ticks: type(ticks).__name__,
)
def test_structures_are_read_by_their_fields(ticks: Any) -> None:
    for make in (
        histogram,
        lambda: et.VectorCounter(columns=["a", "b"], key=et.noise.ZeroNoise(), **NAMED),
        lambda: et.GroupBy(columns={"x": ["a", "b"]}, tables=[["x"]], key=et.noise.ZeroNoise(), **NAMED),
    ):
        assert np.asarray(make().run(ticks)).tolist() == [[2, 1], [4, 2]]
    assert histogram().step(ticks[:1]).value == {"a": 2, "b": 1}
    assert histogram().run([ticks[:1], [0, 5]]).tolist() == [[2, 1], [2, 6]]
    with pytest.raises(TypeError, match="0 to 1"):
        et.VectorCounter(columns=2, key=et.noise.ZeroNoise(), **NAMED).run(ticks)


def test_missing_structures_are_missing_totals() -> None:
    for ticks in (pl.Series([STRUCTURES[0], None]), pa.array([STRUCTURES[0], None], FIELDS)):
        with pytest.raises(TypeError, match="missing"):
            histogram().run(ticks)


def test_what_lies_under_a_mask_is_no_cell() -> None:
    visits = np.ma.array(
        [("f", "n"), ("m", "s")], mask=[(True, False), (False, False)], dtype=[("sex", "U1"), ("ward", "U1")]
    )
    tables = et.GroupBy(
        columns={"sex": ["f", "m"], "ward": ["n", "s"]}, tables=[["sex"]], key=et.noise.ZeroNoise(), **NAMED
    )
    assert tables.step_events(visits).value == {"sex=f": 0, "sex=m": 1}


@pytest.mark.parametrize("seen", [[0, 1, 2], [0, 1], [0, 0, 0], [0, 1, 2, 3], [7], []])
def test_no_record_decides_whether_counts_by_number_are_refused(seen: list[int]) -> None:
    counts = pd.Series(seen, dtype=int).value_counts()
    expected = [seen.count(i) for i in range(3)]
    assert et.VectorCounter(columns=3, key=et.noise.ZeroNoise(), **NAMED).step(counts).value.tolist() == expected
    hours = et.Histogram(categories=range(3), key=et.noise.ZeroNoise(), allow_copy=True, **NAMED)
    assert list(hours.step(counts).value.values()) == expected
    for made_by_pandas in (counts.reset_index(drop=True), pd.Series(np.bincount(seen, minlength=1))):
        with pytest.raises(TypeError, match="counts from 0"):
            hours.step(made_by_pandas)
    named = pd.Series(seen, dtype=int, name="hour").value_counts().reindex(range(3), fill_value=0)
    assert isinstance(named.index, pd.RangeIndex)
    assert list(hours.step(named).value.values()) == [2 * number for number in expected]


def test_a_label_twice_in_an_index_adds_up_declared_or_not() -> None:
    for second in ("a", "zebra"):
        halves = pd.concat([pd.Series(["a", "zebra"]).value_counts(), pd.Series([second]).value_counts()])
        assert histogram().step(halves).value == {"a": 1 + (second == "a"), "b": 0}


def test_events_with_amounts_come_in_any_column() -> None:
    def amounts() -> Any:
        return histogram(max_weight=5, resolution=0.5)

    for events in (
        pd.Series([{"a": 1.5}, "b"]),
        np.array([{"a": 1.5}, "b"]),
        pl.Series([{"a": 1.5}, "b"], dtype=pl.Object),
    ):
        assert amounts().step(events).value == amounts().step_events(events).value == {"a": 1.5, "b": 1.0}
        assert amounts().run([events, events]).tolist() == [[1.5, 1.0], [3.0, 2.0]]
    totals = pd.Series([1.5, 2.0], index=["a", "b"])
    for numbers in (
        totals,
        totals.astype("Float64"),
        totals.astype(int),
        totals.astype(int).astype("Int64"),
        pl.Series([1.5, 2.0]),
    ):
        with pytest.raises(TypeError, match="events of the tick"):
            amounts().step(numbers)
        with pytest.raises(TypeError, match="events of the tick"):
            amounts().run([numbers])


def test_rows_of_two_series_of_any_library_belong_together() -> None:
    visits = histogram(unit="user", max_events_per_user=2)
    events, users = SeriesLike(["a", "b"], [0, 1]), ["ann", "bob"]
    for other in (SeriesLike(users, [1, 0]), pd.Series(users, index=[1, 0]), Dimensions(users)):
        with pytest.raises(TypeError, match="different indices"):
            visits.step_events(events, users=other)
    assert visits.step_events(events, users=SeriesLike(users, [0, 1])).value == {"a": 1, "b": 1}
    assert visits.step_events(events, users=users).value == {"a": 2, "b": 2}
