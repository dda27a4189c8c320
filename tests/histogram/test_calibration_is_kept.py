"""What a planner found is kept with the stream: a later planner, or another law, never redraws its noise."""

import json
from fractions import Fraction

import numpy as np
import pytest

import evertally as et
from evertally.counting import tree
from evertally.histogram.ways import recomputation
from evertally.noise import DiscreteLaplace, Recording, simulation
from evertally.partition import ladders, tuning

ROWS = (np.random.default_rng(0).random((60, 4)) < 0.7).astype(int) * 40
KEY = simulation(3)

CASES = {
    "rebased": {"mechanism": "rebased", "largest": 5000},
    "rebased without a guess": {"mechanism": "rebased"},
    "bounded": {"mechanism": "bounded", "largest": 5000},
    "noisy-ladders": {"mechanism": "noisy-ladders", "largest": 5000},
    "doubling": {"mechanism": "doubling"},
    "two-level": {"mechanism": "two-level"},
    "recompute": {"mechanism": "recompute"},
}


def made(**options):
    common = {"columns": 4, "guarantee": et.PureDP(2.0), "horizon": 200, "max_events_per_tick": 50, "key": KEY}
    return et.MaxSum(**(common | options))


@pytest.mark.parametrize("case", CASES)
def test_a_changed_planner_does_not_change_a_restored_stream(case, monkeypatch):
    whole = made(**CASES[case])
    first = whole.run(ROWS[:30])
    blob = whole.snapshot()
    expected = whole.run(ROWS[30:])
    monkeypatch.setattr(ladders, "_fewest", lambda enough: 3)
    monkeypatch.setattr(tuning, "best", lambda *_: (tuning._split(Fraction(1, 2)), 5, 77))
    monkeypatch.setattr(recomputation, "_best_period", lambda T, alpha: recomputation.Period(7, 29, 0.0))
    again = et.restore(blob, key=KEY)
    assert again.tick == len(first)
    assert np.array_equal(again.run(ROWS[30:]), expected)


@pytest.mark.parametrize("case", CASES)
def test_settled_numbers_are_public_parameters(case):
    mechanism = made(**CASES[case])
    numbers = mechanism._options["calibration"]
    assert json.loads(json.dumps(numbers)) == numbers
    assert numbers["charge"]["kind"] == "PureDP"
    if case != "rebased without a guess":
        assert len(numbers) > 1, "something was settled"
    twin = made(**CASES[case], calibration=numbers)
    assert np.array_equal(twin.run(ROWS), mechanism.run(ROWS))


def test_another_calibration_has_noise_of_its_own():
    logs = []
    for r in (10, 20):
        recording = Recording(KEY)
        mechanism = made(mechanism="recompute", key=recording)
        numbers = mechanism._options["calibration"] | {"period": r}
        other = made(mechanism="recompute", calibration=numbers, key=recording)
        other.run(ROWS[:1])
        logs.append(other._source._inner._subkey)
    assert logs[0] != logs[1], "the same address at two scales would reveal data"


@pytest.mark.parametrize("make", [lambda: et.Counter(guarantee=et.PureDP(1.0), horizon=20, mechanism="tree", key=KEY)])
def test_a_law_that_changed_under_a_stream_stops_it(make, monkeypatch):
    counter = make()
    counter.run([1, 2, 3])
    blob = counter.snapshot()
    again = et.restore(blob, key=KEY)
    assert again.run([4, 5]).tolist() == counter.run([4, 5]).tolist()
    original = tree.node_law
    monkeypatch.setattr(tree, "node_law", lambda *a: DiscreteLaplace(original(*a).scale * 2))
    with pytest.raises(et.StateError, match="another law"):
        et.restore(blob, key=KEY).step(1)
