"""What comes back of a run: the library, the index and the times of what went in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evertally as et

DAYS = pd.date_range("2024-03-01", periods=4, freq="D", tz="Europe/Berlin", name="day")
ROWS = np.array([[1, 2], [0, 5], [3, 0], [4, 4]])


def histogram(**options: Any) -> Any:
    return et.Histogram(categories=["a", "b"], guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1), **options)


def counter() -> Any:
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))


def test_arrays_and_lists_give_arrays() -> None:
    for ticks in (ROWS, ROWS.tolist(), [dict(zip("ab", row, strict=True)) for row in ROWS.tolist()]):
        assert type(histogram().run(ticks)) is np.ndarray
    for ticks in (ROWS[:, 0], ROWS[:, 0].tolist(), pa.array(ROWS[:, 0])):
        assert type(counter().run(ticks)) is np.ndarray


@pytest.mark.parametrize(
    "index",
    [DAYS, DAYS.tz_localize(None).to_period(), pd.Index(list("wxyz")), pd.RangeIndex(4)],
    ids=lambda index: type(index).__name__,
)
def test_the_index_of_pandas_comes_back(index: Any) -> None:
    expected = histogram().run(ROWS)
    found = histogram().run(pd.DataFrame(ROWS[:, ::-1], columns=["b", "a"], index=index))
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, columns=["a", "b"], index=index))
    some = histogram().run(pd.DataFrame(ROWS, columns=["a", "b"], index=index), at=[2, 4])
    pd.testing.assert_frame_equal(some, found.iloc[[1, 3]], check_freq=False)
    series = pd.Series(ROWS[:, 0], index=index, name="visits")
    pd.testing.assert_series_equal(counter().run(series), pd.Series(counter().run(ROWS[:, 0]), index, name="visits"))


def test_times_come_back_from_a_column() -> None:
    frame = pd.DataFrame({"when": DAYS, "b": ROWS[:, 1], "a": ROWS[:, 0]})
    found = histogram().run(frame)
    assert found.index.equals(DAYS)
    assert found.index.name == "when"
    for library in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        back = histogram().run(library)
        assert type(back) is type(library)
        assert list(back.columns if isinstance(back, pl.DataFrame) else back.column_names) == ["when", "a", "b"]
        assert np.array_equal(np.asarray(back.select(["a", "b"])), histogram().run(ROWS))
        assert back["when"].to_pylist() == DAYS.to_list() if isinstance(back, pa.Table) else len(back) == 4
        some = histogram().run(library, at=[3])
        assert len(some) == 1
    alone = counter().run(pl.DataFrame({"when": DAYS.tz_localize(None).to_numpy(), "visits": ROWS[:, 0]}))
    assert alone.columns == ["when", "value"]
    assert alone["value"].to_numpy().tolist() == counter().run(ROWS[:, 0]).tolist()


def test_series_of_polars_come_back_as_series() -> None:
    found = counter().run(pl.Series("visits", ROWS[:, 0]))
    assert (type(found), found.name, found.dtype) == (pl.Series, "visits", pl.Int64)
    assert found.to_list() == counter().run(ROWS[:, 0]).tolist()


def test_full_tables_have_the_time_of_each_tick() -> None:
    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=DAYS)
    table = histogram().run(frame, full=True)
    assert table.column_names[:3] == ["tick", "time", "column"]
    assert table["time"].to_pylist() == [day for day in DAYS for _ in "ab"]
    assert table.drop_columns("time").equals(histogram().run(ROWS, full=True))
    some = histogram().run(frame, full=True, at=[2, 3])
    assert some["time"].to_pylist() == [DAYS[1]] * 2 + [DAYS[2]] * 2
    later = histogram()
    later.run(ROWS)
    assert later.run(frame, full=True)["time"].to_pylist() == table["time"].to_pylist()
    assert "time" not in histogram().run(frame.reset_index(drop=True), full=True).column_names
    times = pl.Series("when", [datetime(2024, 1, day) for day in (1, 2, 3, 4)])
    assert (
        histogram().run(pl.DataFrame(ROWS, schema=["a", "b"]).with_columns(times), full=True)["time"][2].as_py()
        == times[1]
    )


def test_ticks_of_events_with_an_index() -> None:
    ticks = [["a", "b"], [], ["b"], ["b", "b"]]
    means = et.RunningMean(lower=0, upper=10, guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    found = means.run(pd.Series([[1, 2], [], [3.5], [4]], index=DAYS))
    assert found.index.equals(DAYS)
    top = et.UnknownTopK(k=2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=9, key=et.simulation(1), allow_copy=True)
    plain = et.UnknownTopK(k=2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=9, key=et.simulation(1), allow_copy=True)
    released = plain.run(ticks)
    assert top.run(pd.Series(ticks, index=DAYS)).to_list() == released


def test_a_frame_of_events_is_no_run() -> None:
    means = et.RunningMean(lower=0, upper=10, guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    with pytest.raises(TypeError, match="list of columns"):
        means.run(pd.DataFrame({"a": [1.0], "b": [2.0]}))
