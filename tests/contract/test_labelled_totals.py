"""Totals with labels go where their labels say, in whatever order and library they come; or the call is refused."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from conformance.mechanisms import MECHANISMS
from conformance.one_of_each import one_of_each
from evertally.checks.subject import Subject, alike
from evertally.contract.labelled import Labels


@cache
def made(name: str) -> Any:
    return next(subject for subject in MECHANISMS if subject.name == name).make(et.simulation(3))


def has_labels(subject: Subject) -> bool:
    x = subject.feed(1)[0]
    rows = not subject.users and not subject.owned and isinstance(x, list | np.ndarray) and not isinstance(x, str)
    return rows and len(x) > 1 and isinstance(x[0], int | np.integer) and labels_of(subject) is not None


def labels_of(subject: Subject) -> Labels | None:
    return getattr(made(subject.name)._door, "named", None)


LABELLED = one_of_each(has_labels)


def spelled(labels: Labels) -> list[Any]:
    return list(labels.names)


def pandas_frame(columns: list[Any], rows: Any, labels: Labels) -> Any:
    names = pd.MultiIndex.from_tuples(columns, names=labels.levels) if labels.levels else columns
    return pd.DataFrame(rows, columns=names)


def structured(columns: list[Any], rows: Any, labels: Labels) -> Any:
    return np.array([tuple(row) for row in rows.tolist()], dtype=[(str(name), np.int64) for name in columns])


def polars_frame(columns: list[Any], rows: Any, labels: Labels) -> Any:
    return pl.DataFrame({name: rows[:, i] for i, name in enumerate(columns)})


def arrow_table(columns: list[Any], rows: Any, labels: Labels) -> Any:
    return pa.table([pa.array(rows[:, i]) for i in range(rows.shape[1])], names=columns)


def list_of_mappings(columns: list[Any], rows: Any, labels: Labels) -> Any:
    return [dict(zip(columns, row, strict=True)) for row in rows.tolist()]


def list_of_series(columns: list[Any], rows: Any, labels: Labels) -> Any:
    frame = pandas_frame(columns, rows, labels)
    return [frame.iloc[i] for i in range(len(frame))]


SHAPES = (pandas_frame, structured, polars_frame, arrow_table, list_of_mappings, list_of_series)


def test_every_kind_of_door_is_among_the_subjects() -> None:
    names = {type(made(subject.name)).__name__ for subject in LABELLED}
    assert {"Histogram", "VectorCounter", "MaxSum", "TopK", "Dashboard", "GroupBy"} <= names


@pytest.mark.parametrize("subject", LABELLED, ids=lambda subject: subject.name)
@given(data=st.data())
@settings(max_examples=12)
def test_shuffled_columns_are_the_same_totals(subject: Subject, data: st.DataObject) -> None:
    door, labels = made(subject.name)._door, labels_of(subject)
    assert labels is not None
    shape = data.draw(
        st.sampled_from(SHAPES if not labels.levels else (pandas_frame, list_of_mappings, list_of_series))
    )
    order = data.draw(st.permutations(range(len(labels.names))))
    rows = np.array(
        data.draw(st.lists(st.lists(st.integers(0, 99), min_size=len(order), max_size=len(order)), min_size=1))
    )
    turned = shape([labels.names[i] for i in order], rows[:, order], labels)
    assert np.array_equal(door.many(turned, 1), door.many(rows, 1))
    one = turned[:1] if shape is not list_of_mappings and shape is not list_of_series else turned[0]
    assert np.array_equal(door.total(one, 1), door.total(rows[0], 1))


@pytest.mark.parametrize("subject", LABELLED, ids=lambda subject: subject.name)
def test_releases_of_a_frame_are_those_of_its_array(subject: Subject) -> None:
    labels = labels_of(subject)
    assert labels is not None
    rows = np.array(subject.feed(5))
    expected = subject.make(et.simulation(5)).run(rows)
    index = pd.date_range("2024-03-01", periods=5, name="day")
    frame = pandas_frame(spelled(labels), rows, labels).set_index(index)
    frame = frame[list(reversed(frame.columns))]
    found = subject.make(et.simulation(5)).run(frame)
    assert isinstance(found, pd.DataFrame | pd.Series)
    assert found.index.equals(index)
    values = list(found) if isinstance(found, pd.Series) else list(found.to_numpy())
    assert alike(values, list(expected))
    if isinstance(expected, np.ndarray):
        assert found.to_numpy().dtype == expected.dtype
    if not labels.levels:
        cells = {str(name): rows[:, i] for i, name in reversed(list(enumerate(labels.names)))}
        back = subject.make(et.simulation(5)).run(pl.DataFrame({"day": index.to_numpy()} | cells))
        assert back["day"].to_list() == index.to_pydatetime().tolist()
        assert len(back) == 5


@pytest.fixture
def histogram() -> Any:
    return plain()


def plain(**options: Any) -> Any:
    return et.Histogram(
        categories=["a", "b", "c"],
        guarantee=et.ZCDP(0.5),
        horizon=50,
        key=et.noise.ZeroNoise(),
        allow_copy=True,
        **options,
    )


UNLABELLED = pd.Series([1, 2, 3])
Row = namedtuple("Row", ["c", "a", "b"])
Other = namedtuple("Other", ["x", "a", "b"])


@pytest.mark.parametrize(
    "totals",
    [
        UNLABELLED,
        pd.Series([1, 2], index=[4, 7]),
        pd.Series([1, 2, 3], index=pd.date_range("2024-01-01", periods=3)),
        pd.Series([1, None, 3], index=["a", "b", "c"], dtype="Int64"),
        pd.Series([1.0, 2.0], index=["a", "b"]),
        pd.DataFrame({"a": [1], "x": [2]}),
        pd.DataFrame({"a": [1, 2]}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2, 3]]),
        pd.Series([1], index=pd.MultiIndex.from_tuples([("a", "b")], names=["x", "y"])),
        pd.Series([1], index=pd.MultiIndex.from_tuples([("a", "b")])),
        pd.Series([1, 2], index=pd.interval_range(0, 2)),
        pd.cut(pd.Series([0.5, 1.5]), [0, 1, 2]).value_counts(),
        pd.Series([1], index=pd.PeriodIndex(["2024-01"], freq="M")),
        pl.DataFrame({"column_0": [1], "column_1": [2], "column_2": [3]}),
        pl.LazyFrame({"a": [1]}),
        pa.table({"a": [1], "x": [2]}),
        pa.table([pa.array([1]), pa.array([1])], names=["a", "a"]),
        np.array([(1, 2)], dtype=[("a", int), ("x", int)]),
        np.array([(1, 2)], dtype=[("a", int), ("x", int)])[0],
        Other(1, 2, 3),
    ],
)
def test_what_could_only_be_read_by_position_is_refused(histogram: Any, totals: Any) -> None:
    with pytest.raises(TypeError) as refusal:
        histogram.step(totals)
    assert histogram.tick == 0
    assert "'x'" not in str(refusal.value)


@pytest.mark.parametrize(
    "ticks",
    [
        pd.DataFrame({"a": [1], "x": [2]}),
        pd.DataFrame([[1, 2, 3]]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [1, 2]}, index=pd.to_datetime(["2024-01-02", "2024-01-01"])),
        pd.DataFrame({"a": [1, 2]}, index=pd.to_datetime(["2024-01-01", "2024-01-01"])),
        pd.DataFrame({"a": [1, 2]}, index=[1, 0]),
        pd.DataFrame({"a": [1, None]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"a": [1]}, index=pd.to_datetime(["2024-01-01"])).assign(day=pd.to_datetime(["2024-01-01"])),
        UNLABELLED,
        pl.DataFrame({"a": [1, 2], "day": [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-01")]}),
        pl.DataFrame({"a": [1], "x": [2]}),
        pl.Series([1, 2, 3]),
        pa.table({"a": [1], "x": [2]}),
        pa.table({"a": [1, 2], "day": pa.array([2, 1], pa.timestamp("s"))}),
        [pd.Series([1, 2, 3])],
        [Other(1, 2, 3)],
    ],
)
def test_runs_that_could_only_be_read_by_position_are_refused(histogram: Any, ticks: Any) -> None:
    with pytest.raises(TypeError):
        histogram.run(ticks)
    assert histogram.tick == 0


def test_labels_of_a_series_are_content_as_those_of_a_mapping_are(histogram: Any) -> None:
    seen = pd.Series(["b", "zebra", "b", "a", None]).value_counts(dropna=False)
    assert histogram.step(seen).value == {"a": 1, "b": 2, "c": 0} == plain().step(seen.to_dict()).value
    assert plain(other="rest").step(seen).value == {"a": 1, "b": 2, "c": 0, "rest": 1}


def test_undeclared_columns_go_to_other_and_add_up_exactly() -> None:
    frame = pd.DataFrame({"x": [1, 2**62], "c": [3, 3], "y": [2, 2**62], "rest": [1, 0]})
    rows = plain(other="rest")._door.many(frame, 1)
    assert rows.tolist() == [[0, 0, 3, 4], [0, 0, 3, 2**62]]
    assert plain(other="rest").step(frame[:1]).value == {"a": 0, "b": 0, "c": 3, "rest": 4}


def test_named_tuples_and_records_of_structured_arrays_are_read_by_name(histogram: Any) -> None:
    assert histogram.step(Row(3, 1, 2)).value == {"a": 1, "b": 2, "c": 3}
    rows = np.array([(3, 1, 2)], dtype=[("c", int), ("a", int), ("b", int)])
    assert histogram.step(rows[0]).value == {"a": 2, "b": 4, "c": 6}
    frame = pd.DataFrame([[3, 1, 2]], columns=["c", "a", "b"])
    assert histogram.run(list(frame.itertuples(index=False))).tolist() == [[3, 6, 9]]


def test_numbers_for_names_must_all_be_there() -> None:
    counter = et.VectorCounter(3, guarantee=et.ZCDP(0.5), horizon=9, key=et.noise.ZeroNoise())
    for frame in (pd.DataFrame([[1, 2]]), pd.DataFrame([[1, 2, 3]], columns=list("abc"))):
        with pytest.raises(TypeError, match="0 to 2"):
            counter.run(frame)
    with pytest.raises(TypeError, match="index"):
        counter.step(pd.Series([1, 2]))
    assert counter.run(pd.DataFrame([[1, 2, 3]], columns=[2, 0, 1])).to_numpy().tolist() == [[2, 3, 1]]
    assert counter.step(pd.Series([1, 2, 3], index=[2, 0, 1])).value.tolist() == [4, 6, 2]


def test_numbers_that_are_names_may_be_missing() -> None:
    hours = et.Histogram(categories=range(24), guarantee=et.ZCDP(0.5), horizon=9, key=et.noise.ZeroNoise())
    assert hours.run(pd.DataFrame({7: [1], 3: [2]})).iloc[0, [3, 7]].tolist() == [2, 1]
    assert hours.step(pd.Series([7, 7, 3]).value_counts()).value["7"] == 3
    with pytest.raises(TypeError, match="index"):
        hours.step(pd.Series([5, 6]))


def test_what_is_no_name_does_not_go_to_other() -> None:
    for frame in (pd.DataFrame({None: [1]}), pd.DataFrame([[1]], columns=pd.interval_range(0, 1))):
        with pytest.raises(TypeError, match="column for each label"):
            plain(other="rest").run(frame)


def test_levels_of_labels_are_read_by_their_names() -> None:
    def visits() -> Any:
        return et.GroupBy(
            columns={"sex": ["f", "m"], "ward": ["n", "s"]},
            tables=[["sex", "ward"]],
            guarantee=et.ZCDP(0.5),
            horizon=9,
            key=et.noise.ZeroNoise(),
            allow_copy=True,
        )

    events = pd.DataFrame({"ward": ["n", "s", "n"], "sex": ["f", "m", "f"]})
    expected = visits().step_events(list(zip(events["sex"], events["ward"], strict=True))).value
    assert visits().step(events.groupby(["ward", "sex"]).size()).value == expected
    assert visits().step(events.groupby(["sex", "ward"]).size()).value == expected
    with pytest.raises(TypeError, match="sex, ward"):
        visits().step(events.groupby(["ward", "sex"]).size().rename_axis([None, None]))
    with pytest.raises(TypeError, match="2 parts"):
        visits().step(events["sex"].value_counts())
    with pytest.raises(TypeError, match="sex, ward"):
        visits().step(events.groupby(["sex", "ward"]).size().rename_axis(["sex", "hall"]))
    ticks = events.assign(day=[1, 1, 2]).groupby(["day", "ward", "sex"]).size().unstack(["ward", "sex"], fill_value=0)
    found = visits().run(ticks)
    assert found.iloc[-1].to_dict() == expected
    assert found.index.tolist() == [1, 2]
