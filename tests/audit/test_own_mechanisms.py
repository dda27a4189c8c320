"""Mechanisms of users: each planted bug is found, or the report says that it had no power; honest ones pass."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from audit.own_mechanisms import BROKEN, HONEST, UNSEEN, Gaussian, Half, Once, OncePerMillion, Totals
from evertally.audit import FirstTick, audit_mechanism, suite
from evertally.audit.hunt import Hunt
from evertally.audit.outcomes import Answer
from evertally.audit.suite import plan
from evertally.audit.wandering import telling_streams
from evertally.errors import ConfigurationError
from evertally.noise import simulation

FEW = replace(suite.SIZES["short"], objects=500)  # a quarter of what a short audit plays
MANY = {"TenPercentTooSmall", "TooMuchEpsilonOverTicks", "SigmaTooSmall", "Half", "TellsSometimes", "Once", "Gaussian"}


@cache
def verdicts(mechanism):
    with pytest.MonkeyPatch.context() as patch:
        if mechanism.__name__ not in MANY:
            patch.setitem(suite.SIZES, "short", FEW)
        reports = [report for report in audit_mechanism(mechanism) if report.aspect == "loss"]
    return {report.verdict for report in reports}, reports


@pytest.mark.parametrize("mechanism", BROKEN, ids=lambda mechanism: mechanism.__name__)
def test_a_bug_is_found(mechanism):
    found, reports = verdicts(mechanism)
    assert "broken" in found
    assert reports[-1].verdict == "broken"  # under one error for all adversaries
    assert reports[-1].audited > reports[-1].claimed


@pytest.mark.parametrize("mechanism", UNSEEN, ids=lambda mechanism: mechanism.__name__)
def test_what_games_cannot_see_is_not_said_to_hold(mechanism):
    assert verdicts(mechanism)[0] == {"no power here"}


@pytest.mark.parametrize("mechanism", HONEST, ids=lambda mechanism: mechanism.__name__)
def test_an_honest_mechanism_is_not_broken(mechanism):
    found, reports = verdicts(mechanism)
    assert "broken" not in found
    assert all(report.audited <= report.power for report in reports)


@pytest.mark.parametrize("tight", [Once, Gaussian])
def test_one_that_loses_all_it_may_is_said_to_hold(tight):
    found, reports = verdicts(tight)
    assert "broken" not in found
    assert "holds (tight)" in found
    assert max(report.fraction for report in reports) >= 0.85


def test_the_report_says_below_what_probability_it_is_blind():
    _, reports = verdicts(Once)
    (games,) = map(int, re.findall(r"fewer than one of (\d+) games", reports[-1].stopped))
    assert 20 < games < 10_000
    # One in a hundred is well within: Half is found. One in a million is not, and nobody says otherwise.
    hunt = Hunt(OncePerMillion, [FirstTick()], 2000, 4)
    assert hunt.together().verdict == "no power here"


def test_a_hunt_is_the_same_with_the_same_seed():
    one, again, other = (Hunt(Half, [FirstTick(tick=2)], 3000, 4, seed=seed).together() for seed in (1, 1, 2))
    assert (one.audited, one.trials) == (again.audited, again.trials)
    assert one.scores[0].tolist() == again.scores[0].tolist() != other.scores[0].tolist()


def test_a_refuted_promise_ends_the_hunt():
    class Silent(Totals):
        def noise(self, scale=None):
            return 0

    report = Hunt(Silent, [FirstTick()], 100_000, 4).together()
    assert report.verdict == "broken"
    assert report.trials < 20_000


# -- what is seen ----------------------------------------------------------------------------------------------------


def test_answers_are_taken_apart():
    for one, other in [
        (1, 1.0),
        (1, True),
        (1, np.int64(1)),
        ([1], (1,)),
        ([1], [1, 1]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (None, 0),
        (np.zeros(3), np.zeros((3, 1))),
        ("a", ["a"]),
    ]:
        assert Answer(one).form != Answer(other).form, (one, other)
    assert Answer("a").numbers != Answer("b").numbers
    assert math.copysign(1, Answer(-0.0).numbers[0]) == -1
    assert Answer(10**400).numbers == [math.inf]
    assert Answer(3 + 4j).numbers == [3.0, 4.0]
    assert Answer.of_failure(ValueError("x")).form != Answer.of_failure(KeyError("x")).form
    assert Answer.of_failure(ValueError("x")).numbers != Answer.of_failure(ValueError("y")).numbers


def test_a_mechanism_that_never_answers_is_refused():
    class Broken(Totals):
        def step(self, x):
            return x["ward"]

    with pytest.raises(ConfigurationError, match="fails in every tick of every game, with TypeError"):
        plan(Broken)[0].run()


def test_streams_with_the_same_noise_show_where_to_look():
    class Seven(Totals):
        def answer(self, x):
            return "seven" if x == 7 else super().answer(x)

    (stream,) = telling_streams(Seven, Seven(simulation(0)), 4, 1, 200, seed=1)
    report = Hunt(Seven, [stream], 2000, 4).together()
    assert report.verdict == "broken"
