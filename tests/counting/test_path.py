"""The path process: what runs cost, by all paths; the law that is drawn; correct rounding; and who may use it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import evertally as et
from evertally.counting.path import PathProcess, Runs, path_deviation
from evertally.counting.path_factor import PathFactor, best_factor, path_factor
from evertally.counting.processes import OURS, PROCESSES
from evertally.errors import HorizonExceeded
from evertally.noise import DiscreteGaussian, Recording, ZeroNoise, simulation

# dynamic-data 13.2: the factor of each longest lifetime. Ours is within a hundredth, with a finer lambda better.
TABLE = {7: 1.90, 24: 2.45, 28: 2.52, 168: 3.33, 672: 3.96, 1440: 4.30}


@pytest.mark.parametrize("longest", TABLE)
def test_the_factors_of_the_specification(longest: int) -> None:
    assert 0.99 * TABLE[longest] < path_deviation(longest) < TABLE[longest] + 0.006


def runs_of(path: tuple[int, ...]) -> list[int]:
    text = "".join(map(str, path))
    return [len(run) for run in text.split("0") if run]


@pytest.mark.parametrize("n", [2**14, 2**13, 2**11, 128, 1])
def test_no_path_costs_more_than_its_runs(n: int) -> None:
    factor, T = path_factor(n), 10
    r = [*factor.r[:T], *[0] * (T - len(factor.r))]
    R = np.array([[r[t - s] if s <= t else 0 for s in range(T)] for t in range(T)], dtype=object)
    costs = [factor.cost(length) for length in range(T + 1)]
    assert costs == sorted(costs)
    assert costs[0] == 0
    for path in product((0, 1), repeat=T):
        spent = sum(int(x) ** 2 for x in R @ np.array(path, dtype=object))
        assert spent <= sum(costs[length] for length in runs_of(path))
    # One run costs what the formula says where its second edge has been seen: no slack is hidden there.
    lone = sum(int(x) ** 2 for x in R @ np.array([0, 1, 1, *[0] * (T - 3)], dtype=object))
    assert lone >= 0.99 * costs[2]


def test_the_small_case_of_the_specification() -> None:
    """users-and-domains 2.4: T = 6, W = 2, q = 4, lambda = 1/2: r = (16, -4), c(1) = 272, c(2) = 416."""
    small = PathFactor((16, -4), (272, -64), 10)
    assert [small.cost(length) for length in range(7)] == [0, 272, 416, 560, 704, 848, 992]


def test_wrong_signs_are_refused() -> None:
    for r, own in (((16, 4), (272, 64)), ((16, -16), (512, -256)), ((0, 0), (0, 0))):
        with pytest.raises(ArithmeticError):
            PathFactor(r, own, 10)


@pytest.mark.parametrize("longest", [1, 7, 168])
def test_what_is_paid_for_is_what_runs_cost(longest: int) -> None:
    recording = Recording(ZeroNoise())
    charge, runs = et.ZCDP(Fraction(1, 3)), Runs(6, longest)
    process = PathProcess(charge, runs, horizon=None, columns=2, source=recording.source("test"))
    process.advance(5)
    (law,) = {entry.law for entry in recording.draws}
    assert isinstance(law, DiscreteGaussian)
    loss = Fraction(6 * best_factor(longest).cost(longest)) / (2 * law.sigma_squared)
    assert charge.exact_rho * (1 - Fraction(1, 2**38)) <= loss <= charge.exact_rho


def exact_path(r: tuple[int, ...], z: list[int]) -> list[int]:
    e: list[Fraction] = []
    for t, value in enumerate(z):
        past = sum((r[k] * e[t - k] for k in range(1, min(len(r), t + 1))), Fraction(0))
        e.append((value - past) / r[0])
    return [(x + Fraction(1, 2)).__floor__() for x in e]


@pytest.mark.parametrize("longest", [1, 3, 24])
def test_noise_is_the_correctly_rounded_path(longest: int) -> None:
    source = simulation(3).source("path")
    process = PathProcess(et.ZCDP(0.5), Runs(1, longest), horizon=None, columns=2, source=source)
    noise = process.advance(60)
    z = source.draws("path", process.law, range(1, 61), 2)
    for column in range(2):
        assert noise[:, column].tolist() == exact_path(process.factor.r, z[:, column].tolist())


class Planted:
    """Draws that a test chooses."""

    def __init__(self, values: list[int]) -> None:
        self._values = values

    def draws(self, lane, law, nodes, coordinates=1, first=0):
        return np.array([[self._values[node - 1]] * coordinates for node in nodes], dtype=np.int64)


@pytest.mark.parametrize("longest", [1, 7])
def test_ties_go_up(longest: int) -> None:
    # e_1 = 1/2, -1/2 and 3/2 exactly
    for half, expected in ((1, 1), (-1, 0), (3, 2)):
        source = Planted([half * 2**15, 0, 12345])
        process = PathProcess(et.ZCDP(0.5), Runs(1, longest), horizon=None, columns=1, source=source)  # type: ignore[arg-type]
        noise = process.advance(3)[:, 0].tolist()
        assert noise[0] == expected
        assert noise == exact_path(process.factor.r, [half * 2**15, 0, 12345])


def test_wherever_one_comes_from_the_noise_is_the_same() -> None:
    def made() -> PathProcess:
        return PathProcess(et.ZCDP(0.1), Runs(2, 28), horizon=90, columns=3, source=simulation(5).source("path"))

    whole = made().advance(90)
    one = made()
    parts = np.concatenate([one.advance(1), one.advance(40), one.advance(49)])
    sought, recalled = made(), made()
    sought.seek(41)
    before = made()
    before.advance(41)
    recalled.recall(41, before.memory())
    assert np.array_equal(whole, parts)
    assert np.array_equal(sought.advance(49), whole[41:])
    assert np.array_equal(recalled.advance(49), whole[41:])
    with pytest.raises(HorizonExceeded):
        one.advance(1)


def test_the_error_is_the_formula() -> None:
    longest, ticks, runs = 7, 12, 4000
    process = PathProcess(
        et.ZCDP(0.02), Runs(1, longest), horizon=ticks, columns=runs, source=simulation(8).source("p")
    )
    noise = process.advance(ticks)
    for tick in (1, 2, 5, ticks):
        ratio = float(np.mean(noise[tick - 1].astype(float) ** 2)) / process.spread(tick).stddev ** 2
        assert abs(ratio - 1) < 6 * (2 / runs) ** 0.5  # six deviations of a mean of squares of normal numbers


def test_nothing_but_presence_can_take_it() -> None:
    """It hides runs only. No list of processes has it, and no counter takes it by name."""
    assert "path" not in PROCESSES
    assert "path" not in OURS
    for make in (et.Counter, lambda **o: et.Histogram(categories=["a"], **o)):
        with pytest.raises(et.ConfigurationError):
            make(guarantee=et.ZCDP(0.5), horizon=10, mechanism="path")
    with pytest.raises(et.ConfigurationError, match="max_lifetime"):
        et.DynamicCount(guarantee=et.ZCDP(0.5), horizon=10, process="path")
    with pytest.raises(et.ConfigurationError, match="never pure"):
        et.DynamicCount(guarantee=et.PureDP(0.5), horizon=10, max_lifetime=3, process="path")
    with pytest.raises(AssertionError):
        PathProcess(et.ZCDP(1), et.privacy.Change(1, 1, 1), horizon=None, columns=1, source=ZeroNoise().source())  # type: ignore[arg-type]
