"""Users whose ticks are apart, in statistics, streams and specs: against plain sets, with restarts, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally.noise import ZeroNoise
from evertally.privacy import Change
from evertally.runtime.certificate import certificate
from evertally.runtime.plan import plan
from evertally.runtime.spec import load_spec

ZCDP = et.ZCDP(0.5)


def make(kind: Any = et.Counter, key: Any = None, **options: Any) -> Any:
    given = {"guarantee": ZCDP, "horizon": 40, "unit": "user", "key": key or ZeroNoise()}
    return kind(**given | options)


def kept(stream: list[list[Any]], k: int | None, b: int, calendar: bool, first: int, events: int) -> list[int]:
    """What a plain program counts: the running number of kept events."""
    ticks: dict[str, list[int]] = {}
    total, found = 0, []
    for t, users in enumerate(stream, start=1):
        now: dict[str, int] = {}
        for user in users:
            if user is None or isinstance(user, list):
                continue
            name = str(user)
            mine = [tick for tick in ticks.get(name, []) if tick != t]
            block = -(-(t - first) // b)
            free = all(-(-(tick - first) // b) != block for tick in mine) if calendar else not mine or t - mine[-1] >= b
            if free and (k is None or len(mine) < k) and now.get(name, 0) < events:
                now[name] = now.get(name, 0) + 1
                ticks[name] = [*mine, t]
                total += 1
        found.append(total)
    return found


RULES = [
    {"max_ticks_per_user": 3},
    {"min_separation": 4},
    {"max_ticks_per_user": 2, "min_separation": 3, "max_events_per_user_tick": 2},
    {"min_separation": 5, "calendar": True},
    {"min_separation": 5, "calendar": True, "first_block": 2, "max_ticks_per_user": 4},
]


@pytest.mark.parametrize("options", RULES, ids=str)
def test_the_door_against_plain_sets_with_restarts(options):
    names = ["ann", "bob", "ann", 7, None, "ann", ["x", "y"], "7", "cid"]
    stream = [[names[(3 * t + i * i) % len(names)] for i in range(t % 6)] for t in range(30)]
    counter = make(key=et.simulation(5), **options)
    quiet = make(**options)
    b = options.get("min_separation", 1)
    wanted = kept(
        stream,
        options.get("max_ticks_per_user"),
        b,
        options.get("calendar", False),
        options.get("first_block", b),
        options.get("max_events_per_user_tick", 1),
    )
    noisy = []
    for t, users in enumerate(stream, start=1):
        assert quiet.step_events([1] * len(users), users=users).value == wanted[t - 1]
        noisy.append(counter.step_events([1] * len(users), users=users).value)
        assert counter.step_events([1] * len(users), users=users, tick=t).value == noisy[-1]  # asked again
    again = make(key=et.simulation(5), **options)
    for t, users in enumerate(stream):
        if t % 7 == 3:
            again = et.restore(again.snapshot(), key=et.simulation(5), allow_copy=True)
        assert again.step_events([1] * len(users), users=users).value == noisy[t]


def test_two_users_do_not_meet():
    """Deleting everything of one user leaves what is kept of another as it was (11.2, 6)."""
    stream = [["ann", "bob"], ["bob"], ["ann"], ["bob", "ann"], ["ann"], ["bob"]]
    options = {"categories": ["a", "b"], "min_separation": 2, "max_ticks_per_user": 2}
    both, alone = make(et.Histogram, **options), make(et.Histogram, **options)
    for users in stream:
        labels = ["a" if user == "ann" else "b" for user in users]
        one = both.step_events(labels, users=users).value
        bobs = [user for user in users if user == "bob"]
        other = alone.step_events(["b"] * len(bobs), users=bobs).value
        assert one["b"] == other["b"]


def test_what_is_charged_and_chosen():
    weekly = make(horizon=365, max_ticks_per_user=52, min_separation=7)
    assert (weekly.mechanism, weekly._options["band"]) == ("banded", 28)
    assert weekly.worst_stddev() == pytest.approx(57.75, rel=1e-3)
    assert weekly.sensitivity == Change(1, 1, 1)  # of one tick
    for name, least in [("sqrt", 72.6), ("tree", 100), ("bank", 137)]:
        assert make(horizon=365, max_ticks_per_user=52, min_separation=7, mechanism=name).worst_stddev() > least
    # k ticks under a pure budget, whatever their separation
    pure, plain = (
        make(guarantee=et.PureDP(1.0), mechanism="tree", radix=2, **rule)
        for rule in ({"max_ticks_per_user": 3, "min_separation": 9}, {"max_events_per_user": 3})
    )
    assert pure.worst_stddev() == plain.worst_stddev()
    # replaced users: twice in squares; signed four times
    one, two, four = (
        make(max_ticks_per_user=3, min_separation=4, mechanism="sqrt", **more).worst_stddev()
        for more in ({}, {"neighbours": "replace"}, {"neighbours": "replace", "signed": True})
    )
    assert two / one == pytest.approx(2**0.5, rel=1e-2)
    assert four / one == pytest.approx(2, rel=1e-2)
    # two events a tick
    assert make(max_ticks_per_user=3, min_separation=4, max_events_per_user_tick=2, mechanism="sqrt").worst_stddev() > (
        1.9 * one
    )
    mean = make(et.RunningMean, lower=0, upper=10, max_ticks_per_user=3, min_separation=4, key=et.simulation(1))
    assert mean.step_events([4.0, 6.0, 8.0], users=["a", "b", "a"]).tick == 1
    assert "in at most 3 ticks" in mean.step_events([], users=[]).about


def test_a_band_is_kept():
    weekly = make(horizon=60, max_ticks_per_user=5, min_separation=7, key=et.simulation(1))
    named = make(horizon=60, max_ticks_per_user=5, min_separation=7, mechanism="banded", band=7, key=et.simulation(1))
    assert (
        weekly.noise.band
        != 7
        == named.noise.band
        == et.restore(named.snapshot(), key=et.simulation(1), allow_copy=True).noise.band
    )
    assert named.noise_fingerprint != weekly.noise_fingerprint


def test_one_period():
    by_weeks = {"unit": "user-period", "period": 28, "min_separation": 7, "calendar": True}
    counter = make(horizon=365, mechanism="sqrt", **by_weeks)
    assert counter.worst_stddev() == pytest.approx(10.2, rel=6e-3)
    open_end = make(horizon=None, **by_weeks)
    assert open_end.mechanism == "bank-open"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"unit": "event", "min_separation": 3}, "go with unit='user'"),
        ({"unit": "user-period", "period": 12, "min_separation": 3}, "blocks of the calendar alone"),
        ({"unit": "user-period", "period": 12, "min_separation": 5, "calendar": True}, "divides the period"),
        ({"unit": "user-period", "period": 12}, "bound a user in every block"),
        ({"max_events_per_user": 2, "min_separation": 3}, "give one of them"),
        ({"calendar": True, "max_ticks_per_user": 3}, "calendar needs min_separation"),
        ({"calendar": True, "max_events_per_user": 3}, "go with min_separation"),
        ({"min_separation": 3, "first_block": 2}, "goes with calendar=True"),
        ({"min_separation": 3, "calendar": True, "first_block": 4}, "at most min_separation"),
        ({"min_separation": 3, "horizon": None}, "without a horizon a user needs max_ticks_per_user"),
        ({"min_separation": 3, "workload": et.workloads.Window(4)}, "for running totals"),
        ({"min_separation": 3, "mechanism": "sparse", "guarantee": et.PureDP(1.0)}, "belongs to linear noise"),
        ({"max_events_per_user": 3, "mechanism": "banded"}, "max_ticks_per_user or min_separation"),
        ({"min_separation": 3, "mechanism": "sqrt", "band": 4}, "band belongs to"),
        ({"min_separation": 0}, "min_separation"),
        ({}, "needs max_events_per_user"),
    ],
    ids=lambda each: str(each)[:50],
)
def test_what_is_not_proved_is_refused(options, says):
    with pytest.raises(et.ConfigurationError, match=says):
        make(**options)


def test_protected_items_and_columns_of_their_own_are_refused():
    for more in ({"protects": "item"}, {"neighbours": "independent", "max_per_event": 2}):
        with pytest.raises(et.ConfigurationError):
            make(et.Histogram, categories=["a", "b"], min_separation=3, **more)


def test_in_a_stream_beside_a_capped_statistic():
    stream = et.Stream(
        "visits", guarantee=et.ZCDP(1.0), horizon=40, unit="user", max_events_per_user=2, key=et.simulation(1)
    )
    apart = stream.add(et.Counter, share="1/2", name="apart", min_separation=7)
    capped = stream.add(et.Counter, share="1/2", name="capped")
    assert apart.contribution.max_events_per_user is None
    assert capped.contribution.max_events_per_user == 2


SPEC = """
[stream]
name = "visits"
horizon = 365
unit = "user"
user_column = "patient"
[guarantee]
rho = 0.5
[clock]
start = 2026-01-01T00:00:00Z
tick = "1d"
column = "time"
[key]
file = "secret/visits.key"
[state]
file = "visits.state"
[output]
file = "visits.jsonl"
[[query]]
name = "visits"
kind = "counter"
max_ticks_per_user = 52
min_separation = "7d"
[[query]]
name = "stays"
kind = "mean"
column = "hours"
lower = 0
upper = 10
min_separation = 30
calendar = true
"""


def test_in_a_spec(tmp_path: Path):
    path = tmp_path / "visits.toml"
    path.write_text(SPEC)
    spec = load_spec(path)
    planned = plan(spec)
    first = planned.queries[0]
    assert first.mechanism == "banded"
    assert "factor 57.75" in first.users[0]
    assert "(by group privacy: bank 2,704" in first.users[0]
    assert "biases later ticks" in first.users[1]
    assert "no more than at its beginning" in planned.queries[1].users[1]
    shown = certificate(spec)
    text = str(shown)
    assert "in at most 52 ticks, each at least 7 ticks after the one before" in text
    assert "of every block of 30 ticks in one" in text
    assert "users-and-domains 1.3" in text
    path.write_text(SPEC.replace('"7d"', '"36h"'))
    with pytest.raises(et.ConfigurationError, match="min_separation"):
        load_spec(path)


def test_a_plan_shows_group_privacy_beside_the_rule():
    text = repr(et.plan(et.Counter, guarantee=ZCDP, horizon=365, unit="user", max_ticks_per_user=12, min_separation=30))
    assert "banded reaches" in text
    assert "factor 16.2" in text
    assert "by group privacy: bank 144" in text
    capped = repr(et.plan(et.Counter, guarantee=ZCDP, horizon=365, unit="user", max_events_per_user=12))
    assert "old users fall silent" in capped
