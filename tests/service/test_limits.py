"""How often and how much."""

from __future__ import annotations

import io
import logging

from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.service.limits import RateLimit
from evertally.service.logs import BoundedLines


@settings(max_examples=200, deadline=None)
@given(
    rate=st.sampled_from([0.1, 1.0, 7.0, 200.0]),
    waits=st.lists(st.sampled_from([0.0, 0.01, 0.3, 1.0, 5.0]), min_size=1, max_size=200),
)
def test_no_stretch_of_time_has_more_than_its_rate_and_a_burst(rate: float, waits: list[float]) -> None:
    now = 0.0
    limit = RateLimit(rate, clock=lambda: now)
    allowed: list[float] = []
    for wait in waits:
        now += wait
        if limit.allows("a"):
            allowed.append(now)
    burst = max(1.0, 2 * rate)
    for start in range(len(allowed)):
        for stop in range(start, len(allowed)):
            assert stop - start + 1 <= burst + rate * (allowed[stop] - allowed[start]) + 1e-6


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_callers_do_not_take_from_each_other(callers: list[str]) -> None:
    limit = RateLimit(5.0, clock=lambda: 0.0)
    answers = {caller: [] for caller in "abc"}
    for caller in callers:
        answers[caller].append(limit.allows(caller))
    for caller in "abc":
        assert answers[caller] == [number < 10 for number in range(len(answers[caller]))]


def test_the_table_of_callers_is_bounded() -> None:
    limit = RateLimit(1.0, clock=lambda: 0.0)
    for number in range(20_000):
        assert limit.allows(str(number))
    assert len(limit._buckets) == 10_000


def test_lines_of_one_place_are_summed_up() -> None:
    now, stream = 0.0, io.StringIO()
    lines = BoundedLines(stream, clock=lambda: now)

    def say(place: int, count: int) -> None:
        for _ in range(count):
            lines.handle(logging.LogRecord("evertally", logging.ERROR, "x/here.py", place, "a line", (), None))

    say(1, 1000)
    say(2, 3)
    assert stream.getvalue().count("a line\n") == 20 + 3
    now = 61.0
    say(2, 1)
    assert stream.getvalue().endswith("a line\n980 more lines of here.py:1 within a minute\na line\n")
    say(1, 21)
    lines.close()
    assert stream.getvalue().endswith("a line\n1 more lines of here.py:1 within a minute\n")
