"""Noise that piles up: H0 of parameterized-histograms 3.1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evertally.counting.accumulate import AccumulatingProcess
from evertally.errors import HorizonExceeded
from evertally.noise import DiscreteGaussian, DiscreteLaplace, NoiseKey, Recording, ZeroNoise, simulation
from evertally.privacy import ZCDP, Change, PureDP

CHANGE = Change(6, 18, 3)


PURE = PureDP(2)


def pile(charge: PureDP | ZCDP = PURE, horizon: int | None = None, key: NoiseKey | None = None) -> AccumulatingProcess:
    source = (key or simulation(1)).source("pile")
    return AccumulatingProcess(charge, CHANGE, horizon=horizon, columns=5, source=source)


def test_laws() -> None:
    """One insert has the whole budget: D1/eps and D2^2/(2 rho), however many inserts there are."""
    for horizon in (None, 1, 1000):
        assert pile(PureDP(2), horizon).law == DiscreteLaplace(3)
        assert pile(ZCDP(Fraction(1, 2)), horizon).law == DiscreteGaussian(18)


@pytest.mark.parametrize("charge", [PureDP(2), ZCDP(0.5)], ids=repr)
def test_the_path_is_the_sum_of_its_draws(charge: PureDP | ZCDP) -> None:
    z = simulation(1).source("pile").draws("pile", pile(charge).law, range(1, 41), 5)
    path = np.cumsum(z, axis=0)
    assert np.array_equal(pile(charge).advance(40), path)
    parts = pile(charge)
    assert np.array_equal(np.concatenate([parts.advance(n) for n in (1, 7, 2, 30)]), path)
    for tick in range(41):
        mover = pile(charge)
        mover.seek(tick)
        assert mover.tick == tick
        if tick < 40:
            assert np.array_equal(mover.advance(40 - tick), path[tick:])
    mover.seek(3)
    assert np.array_equal(mover.advance(2), path[3:5])


def test_each_draw_is_made_once_and_kept() -> None:
    """8.7: noise on top of the earlier noise; fresh noise on the running sum would pay at every insert."""
    recording = Recording(simulation(1))
    process = pile(key=recording)
    process.advance(3)
    process.advance(4)
    assert [(call.lane, call.nodes, call.coordinates) for call in recording.draws] == [
        ("pile", (1, 2, 3), 5),
        ("pile", (4, 5, 6, 7), 5),
    ]
    assert not pile(key=ZeroNoise()).advance(9).any()


def test_spread() -> None:
    process = pile(ZCDP(0.5), horizon=100)
    one = process.spread(1)
    for tick in (1, 4, 100):
        assert process.spread(tick).variance == pytest.approx(tick * one.variance)
        assert process.spread(tick).proxy == pytest.approx(tick * 18)
    assert process.worst() == process.spread(100)
    assert process.window_spread(90, 25).variance == pytest.approx(25 * one.variance)
    with pytest.raises(ValueError, match="widest"):
        pile().worst()
    # 2000 columns of 25 draws: the sample variance is within 6 deviations of its own, false alarm below 1e-8
    wide = AccumulatingProcess(ZCDP(0.5), CHANGE, horizon=None, columns=2000, source=simulation(2).source("wide"))
    sample = wide.advance(25)[-1].var() / wide.spread(25).variance
    assert abs(sample - 1) < 6 * (2 / 2000) ** 0.5


def test_fails_closed_at_its_horizon() -> None:
    process = pile(horizon=3)
    process.advance(3)
    with pytest.raises(HorizonExceeded):
        process.advance(1)


@pytest.mark.parametrize("charge", [PureDP(1), ZCDP(0.1)], ids=str)
@pytest.mark.parametrize("beta", [0.5, 0.1, 1e-3])
def test_of_one_tick_the_joint_radius_is_that_of_its_law(charge: PureDP | ZCDP, beta: float) -> None:
    """The least r with P(|Z| > r) <= beta: a walk of one step is one draw, and half of beta is for each side."""
    process = AccumulatingProcess(charge, Change(1, 1, 1), horizon=1, columns=1, source=ZeroNoise().source())
    radius = round(process.joint_radius(beta))
    assert process.joint_radius(beta) == radius
    assert process.law.tail(radius + 1) <= beta < process.law.tail(radius)
