"""An event's tick is a function of its own time stamp, whatever the file format, read fast or with care."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.errors import ConfigurationError
from evertally.runtime.clock import INSTANT_LIMIT, Clock, duration, instant, microseconds, written
from evertally.runtime.input.times import instants, text_instant, whole_instant

HOURS = Clock.declared("time", "2013-01-01", "1h")
NUMBERS = Clock.declared("time", 1000, 10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-01-01", "2013-01-01T00:00:00Z"),
        ("2013-01-01T10:00", "2013-01-01T10:00:00Z"),
        (" 2013-01-01 10:00:05 ", "2013-01-01T10:00:05Z"),
        ("2013-01-01T10:00:05.25Z", "2013-01-01T10:00:05.250000Z"),
        ("2013-01-01T10:00:05.123456999", "2013-01-01T10:00:05.123456Z"),
        ("2013-01-01T00:30:00+01:00", "2012-12-31T23:30:00Z"),
        ("2013-01-01T00:30:00-0130", "2013-01-01T02:00:00Z"),
        ("2013-01-01T00:30:00+05", "2012-12-31T19:30:00Z"),
        ("2012-02-29", "2012-02-29T00:00:00Z"),
        ("2013-02-29", None),
        ("2013-13-01", None),
        ("2013-01-01T24:00", None),
        ("2013-01-01T10:00:60", None),
        ("2013-01-01T10:00+25:00", None),
        ("2013-01-01Z", None),
        ("13-01-01", None),
        ("٢013-01-01", None),
        ("1357034400", None),
        ("", None),
        ("2013-01-01T10:00:00Z\x00", None),
    ],
)
def test_written_times(text: str, expected: str | None) -> None:
    moment = instant(text)
    assert (None if moment is None else written(moment)) == expected
    values, valid = instants(
        pa.array([text, text.encode()[:40]], pa.string() if text.isascii() else pa.binary()), HOURS
    )
    assert valid.tolist() == [expected is not None] * 2
    assert expected is None or values.tolist() == [moment] * 2


digits = st.text("0123456789", max_size=3)
times_by_hand = st.builds(
    "".join,
    st.lists(st.sampled_from(["2013-01-0", "-", ":", "T", " ", "Z", "+", ".", "02-29", "1", "9", "05"]), max_size=9),
)
real_times = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda t: t.isoformat())
zoned_times = st.builds(str.__add__, real_times, st.sampled_from(["Z", "+00:00", "-23:59", "+14", "+0530"]))
cells = st.one_of(
    real_times, zoned_times, times_by_hand, st.text(max_size=5), st.integers().map(str), st.floats().map(str)
)


@given(st.lists(st.one_of(st.none(), cells), max_size=12))
def test_a_column_is_read_cell_by_cell(texts: list[str | None]) -> None:
    raw = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    column = pa.array(raw, pa.binary())
    for clock, careful in ((HOURS, text_instant), (NUMBERS, whole_instant)):
        expected = [careful(cell) for cell in raw]
        for form in (column, column.dictionary_encode(), np.array(texts, object)):
            values, valid = instants(form, clock)
            assert valid.tolist() == [moment is not None for moment in expected]
            assert values[valid].tolist() == [moment for moment in expected if moment is not None]


@given(st.integers(0, 10**18))
def test_instants_are_written_as_others_write_them_also_beyond_the_year_9999(moment: int) -> None:
    text = written(moment)
    assert np.datetime64(text.removeprefix("+0").removeprefix("+").removesuffix("Z"), "us").astype(np.int64) == moment
    assert (len(text.partition("-")[0]) == 4) is (moment <= microseconds(dt.datetime.max))


@given(st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31)))
def test_machine_times_equal_written_ones(moment: dt.datetime) -> None:
    expected = microseconds(moment)
    assert instant(moment.isoformat()) == expected
    second = expected // 10**6 * 10**6
    for kind, value in (
        (pa.timestamp("us"), expected),
        (pa.timestamp("us", "Europe/Paris"), expected),
        (pa.timestamp("ms"), expected // 1000 * 1000),
        (pa.timestamp("s"), second),
        (pa.date32(), expected // 86_400_000_000 * 86_400_000_000),
    ):
        scale = {"timestamp[ms]": 1000, "timestamp[s]": 10**6}.get(str(kind), 1)
        is_date = kind == pa.date32()
        column = pa.array([moment.date()]) if is_date else pa.array([value // scale], pa.int64()).cast(kind)
        values, valid = instants(column, HOURS)
        assert values.tolist() == [value]
        assert valid.all()


def test_machine_columns_at_their_limits() -> None:
    values, valid = instants(pa.array([2**62, None, -(2**62)], pa.int64()).cast(pa.timestamp("s")), HOURS)
    assert valid.tolist() == [True, False, True]
    ticks = HOURS.ticks_of(values)
    assert ticks[0] > 10**8
    assert ticks[2] < -(10**8)
    values, _ = instants(pa.array([-1], pa.int64()).cast(pa.timestamp("ns")), HOURS)
    assert values.tolist() == [-1]  # rounded down, also before 1970
    values, valid = instants(pa.array([2**64 - 1, 7], pa.uint64()), NUMBERS)
    assert values.tolist() == [INSTANT_LIMIT, 7]
    values, valid = instants(pa.array([7.9, float("nan"), float("inf"), None, -0.5]), NUMBERS)
    assert values[valid].tolist() == [7, -1]
    values, valid = instants(pa.array([None, None]), NUMBERS)
    assert not valid.any()
    values, valid = instants(np.array([5, 5.5, True, None, "12", [1], 10**30, "x"], object), NUMBERS)
    assert valid.tolist() == [True, True, False, False, True, False, True, False]


@pytest.mark.parametrize(
    ("column", "clock"),
    [
        (pa.array([1]), HOURS),
        (pa.array([True]), HOURS),
        (pa.array([1], pa.timestamp("s")), NUMBERS),
        (pa.array([[1]]), NUMBERS),
    ],
)
def test_a_column_of_the_wrong_type_is_an_error_of_the_envelope(column: Any, clock: Clock) -> None:
    with pytest.raises(ConfigurationError, match="type"):
        instants(column, clock)


@given(st.integers(-(2**62), 2**62), st.integers(-(2**61), 2**61), st.integers(1, 2**61))
def test_ticks_are_half_open_intervals(moment: int, start: int, length: int) -> None:
    clock = Clock.declared("time", start, length)
    tick = int(clock.ticks_of(np.array([moment]))[0])
    assert start + (tick - 1) * length <= moment < start + tick * length


def test_boundaries() -> None:
    assert HOURS.tick_before("2013-01-01T03:00:00Z") == 3
    assert HOURS.tick_before("2013-01-01T04:00:00+01:00") == 3
    assert HOURS.end_of(3) == "2013-01-01T03:00:00Z"
    assert NUMBERS.tick_before("1030") == NUMBERS.tick_before(1030) == 3
    assert NUMBERS.end_of(3) == 1030
    weekly = Clock.declared("time", dt.date(2013, 1, 1), "7d", dt.datetime(2013, 1, 15))
    assert weekly.ticks == 2
    for clock, wrong in (
        (HOURS, "2013-01-01T03:30"),
        (HOURS, "later"),
        (NUMBERS, "1035"),
        (NUMBERS, "x"),
        (weekly, "2013-01-22"),
    ):
        with pytest.raises(ConfigurationError, match="until"):
            clock.tick_before(wrong)


def test_a_clock_that_starts_at_the_first_serve() -> None:
    floating = Clock.declared(None, "first serve", "7d")
    assert (floating.floating, floating.start, floating.integer, floating.column) == (True, 0, False, None)
    moment = instant("2013-05-17T13:59:01Z")
    assert moment is not None
    with pytest.raises(ConfigurationError, match="open tick"):
        floating.open_tick(moment)
    fixed = floating.anchored(moment)
    assert not fixed.floating
    assert fixed.start <= moment < fixed.start + fixed.length
    assert fixed.start % fixed.length == 0
    assert fixed.open_tick(moment) == 1
    assert fixed.open_tick(moment + fixed.length) == 2
    with pytest.raises(ConfigurationError, match="already"):
        fixed.anchored(moment)
    with pytest.raises(ConfigurationError, match="open tick"):
        NUMBERS.open_tick(moment)
    with pytest.raises(ConfigurationError, match="horizon"):
        Clock.declared("time", "first serve", "1h", "2013-01-01")
    with pytest.raises(ConfigurationError, match='"15m"'):
        Clock.declared("time", "first serve", 10)


@given(st.datetimes(dt.datetime(2012, 1, 1), dt.datetime(2014, 1, 1)))
def test_the_open_tick_is_the_one_that_an_event_of_now_would_enter(moment: dt.datetime) -> None:
    now = microseconds(moment)
    assert HOURS.open_tick(now) == HOURS.ticks_of(np.array([now]))[0]


def test_ticks_that_close_on_request_need_time_stamps() -> None:
    assert Clock.declared("time", "2013-01-01", "1h", close="request").close == "request"
    with pytest.raises(ConfigurationError, match="needs a column"):
        Clock.declared(None, "2013-01-01", "1h", close="request")


@pytest.mark.parametrize(
    ("tick", "words"), [("1s", "second"), ("90s", "90 seconds"), ("60m", "hour"), ("48h", "2 days"), ("7d", "week")]
)
def test_lengths_in_words(tick: str, words: str) -> None:
    assert duration(Clock.declared("time", "2013-01-01", tick).length) == words


def test_lengths_of_time_as_python_and_pandas_have_them() -> None:
    for week in (dt.timedelta(days=7), pd.Timedelta("7D"), "7d", 168):
        assert HOURS.ticks_in("window", week) == 168
    for odd in (dt.timedelta(minutes=90), pd.Timedelta("1h1ns"), dt.timedelta(0), -dt.timedelta(hours=1)):
        with pytest.raises(ConfigurationError, match="whole ticks, and a tick is 1 hour"):
            HOURS.ticks_in("window", odd)
    with pytest.raises(ConfigurationError, match="number of ticks"):
        NUMBERS.ticks_in("window", dt.timedelta(days=7))


def test_a_change_of_clocks_is_explained() -> None:
    winter, summer = pd.Timestamp("2025-01-01", tz="Europe/Berlin"), pd.Timestamp("2025-04-01", tz="Europe/Berlin")
    with pytest.raises(ConfigurationError, match=r"A day is 24 hours here.*clocks are changed for summer"):
        Clock.declared("time", winter, "1d", summer)
    assert Clock.declared("time", winter.tz_localize(None), "1d", summer.tz_localize(None)).ticks == 90
    with pytest.raises(ConfigurationError) as refused:
        Clock.declared("time", "2025-01-01", "1h", "2025-01-01T00:30")
    assert "summer" not in str(refused.value)
