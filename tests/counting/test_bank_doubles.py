"""Double words between floats and balls: the same integers, and hardly anything for balls (optimal-counting 11.2)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb
from planted_ties import planted_tie

import evertally as et
from evertally.balls import at_precision
from evertally.counting import bank_doubles, bank_path
from evertally.counting.bank_path import BankPath, large
from evertally.counting.bank_schedule import build_bank
from evertally.noise import double_words, simulation
from evertally.noise.reals import RealLaw

LAW = RealLaw("normal", "a test")
LARGE = 2.0**46  # of a scale: floats decide nothing


def path(T: int, columns: int, sigma: float = 3.0) -> BankPath:
    return BankPath(build_bank(T), sigma, LAW, columns, simulation(4).source("paths"), "bank")


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Double words come first, whatever the scale."""
    monkeypatch.setattr(bank_path, "large", lambda sigma, horizon: True)


@pytest.fixture
def no_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any, ticks: list[int]) -> list[int]:
        raise AssertionError("balls were asked")

    monkeypatch.setattr(bank_path.BallPath, "rounded", refused)


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("columns", [1, 40])
def test_states_are_within_their_bounds(columns: int) -> None:
    """Against balls; a thousandth of the bound would not do."""
    T = 400
    made = path(T, columns)
    made.rows(0, T)
    made.by_balls(0, [T])
    block, balls = made._blocks[0], made._balls[0]._e
    Q = len(balls)
    off = [at_precision(300, partial(distance, balls[k], block.e[k, 0], block.e[Q + k, 0])) for k in range(Q)]
    assert (np.array(off) <= block.err).all()
    assert (np.array(off) > block.err / 1000).any()
    assert (np.abs(block.e[:Q]).max(axis=1) <= block.big).all()
    assert block.err.max() < 2.0**-85


def distance(ball: arb, high: float, low: float) -> float:
    return float(abs(ball - arb(float(high)) - arb(float(low))).upper())


@pytest.mark.parametrize("sigma", [3.0, 2.0**30, LARGE])
def test_every_tier_makes_the_same_noise(sigma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    T, columns = 90, 2
    made = []
    for double in (True, False):
        monkeypatch.setattr(bank_path, "large", lambda sigma, horizon, double=double: double)
        made.append(path(T, columns, sigma).rows(0, T))
    by_balls = np.array([path(T, columns, sigma).by_balls(c, list(range(1, T + 1))) for c in range(columns)]).T
    assert np.array_equal(made[0], by_balls)
    assert np.array_equal(made[1], by_balls)
    assert sigma < LARGE or np.abs(by_balls).max() > 2.0**46


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("columns", [1, 3])
def test_interpreted_and_compiled_make_the_same_numbers(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, interpreted = path(40, columns), path(40, columns)
    expected = compiled.rows(0, 40)
    monkeypatch.setattr(double_words, "compiled", lambda name: getattr(double_words, name))
    assert np.array_equal(interpreted.rows(0, 40), expected)
    for one, other in zip(compiled._blocks[0].parts, interpreted._blocks[0].parts, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.usefixtures("no_balls")
@pytest.mark.parametrize("depth", [40, 60, 80])
@pytest.mark.parametrize("side", [1, -1])
def test_planted_ties_need_no_balls(depth: int, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    got, true = planted_tie(depth, side)
    assert got == true
    monkeypatch.setattr(bank_path, "large", lambda sigma, horizon: True)
    got, true = planted_tie(depth, side)
    assert got == true


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("side", [1, -1])
def test_deeper_ties_are_left_to_balls(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    original = bank_path.BallPath.rounded
    monkeypatch.setattr(bank_path.BallPath, "rounded", lambda self, ticks: asked.extend(ticks) or original(self, ticks))
    got, true = planted_tie(130, side)
    assert got == true
    assert asked == [7]


@pytest.mark.usefixtures("no_balls")
def test_large_amounts_need_no_balls() -> None:
    counter = et.Counter(
        guarantee=et.ZCDP(0.5), horizon=2**10, mechanism="bank", max_weight=10**11, key=et.simulation(1)
    )
    values = np.array(counter.run([10**9] * 1024))
    off = values - 10**9 * np.arange(1, 1025)
    assert 10**10 < np.abs(off).max() < 6 * counter.stddev(1024)


def test_when_double_words_come_first() -> None:
    assert large(4e9, 2**16)
    assert large(2e11, 64)
    assert not large(100.0, 2**20)
    assert not large(100.0, 2**30)
    assert not large(1e6, 2**12)


@pytest.mark.usefixtures("no_balls")
def test_a_path_goes_on_from_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tick of a column is gone through once, in pieces; an earlier tick begins again."""
    whole = path(300, 1).rows(0, 300)[:, 0]
    monkeypatch.setattr(bank_doubles, "_PIECE", 64)
    made = path(300, 1)
    for ticks in ([5, 70], [71], [200, 300], [10], [300]):
        assert made.settled(0, ticks) == whole[np.array(ticks) - 1].tolist()
        assert made._doubles[0]._stands[0] == ticks[-1]


def test_an_interrupted_path_stands_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = path(60, 1).rows(0, 60)[:, 0]
    made = path(60, 1)
    assert made.settled(0, [20]) == [whole[19]]
    compiled = double_words.compiled

    def interrupted(*arguments: Any) -> int:
        compiled("filtered")(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(double_words, "compiled", lambda name: interrupted if name == "filtered" else compiled(name))
        with pytest.raises(KeyboardInterrupt):
            made.settled(0, [60])
    assert made.settled(0, [40, 60]) == whole[[39, 59]].tolist()


def test_memories_of_either_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = path(40, 3).rows(0, 40)
    kept = {}
    for double in (False, True):
        monkeypatch.setattr(bank_path, "large", lambda sigma, horizon, double=double: double)
        made = path(40, 3)
        made.rows(0, 25)
        kept[double] = made.memory(40)
    for double in (False, True):
        monkeypatch.setattr(bank_path, "large", lambda sigma, horizon, double=double: double)
        for memory in kept.values():
            again = path(40, 3)
            again.recall(40, memory)
            assert np.array_equal(again.rows(30, 40), whole[30:])


def test_without_trust_balls_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(double_words, "trusted", lambda: False)
    for sigma in (3.0, LARGE):
        made = path(12, 1, sigma)
        expected = [made.by_balls(0, [tick])[0] for tick in range(1, 13)]
        assert made.rows(0, 12)[:, 0].tolist() == expected
        assert made.settled(0, [7]) == expected[6:7]
        assert not made._doubles
