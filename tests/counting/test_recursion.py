"""The recursion behind path and banded noise: exact rounding with a shared half, any r_0, sums of 0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evertally.counting.recursion import RecursiveProcess, inverse_series
from evertally.errors import HorizonExceeded
from evertally.noise import DiscreteGaussian, DiscreteLaplace, simulation


class Shared(RecursiveProcess):
    """With h of the test's choice."""

    def _halves(self):
        return np.array([3, -4, -5])


def exactly(r: tuple[int, ...], z: list[int], half: int) -> list[int]:
    e: list[Fraction] = []
    for t, value in enumerate(z):
        past = sum((r[k] * e[t - k] for k in range(1, min(len(r), t + 1))), Fraction(0))
        e.append((value - past) / r[0])
    return [(x + Fraction(half, 2) + Fraction(1, 2)).__floor__() for x in e]


# r_0 that is no power of two, a sum of 0 as running sums have it, independent noise; many exact ties among them
@pytest.mark.parametrize("r", [(6, -2, -1), (4, -1, -1, -2), (2, -2), (2,), (4, -2)])
@pytest.mark.parametrize("law", [DiscreteGaussian(30), DiscreteLaplace(5)], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("kind", [RecursiveProcess, Shared])
def test_noise_is_rounded_correctly(r, law, kind) -> None:
    T, source = 40, simulation(3).source("recursion")
    process = kind(r, law, inverse_series(r, T), horizon=T, columns=3, source=source, lane="path")
    noise = process.advance(T)
    z = source.draws("path", law, range(1, T + 1), 3)
    halves = [3, -4, -5] if kind is Shared else [0, 0, 0]
    for column, half in enumerate(halves):
        assert noise[:, column].tolist() == exactly(r, z[:, column].tolist(), half)
    again = kind(r, law, inverse_series(r, T), horizon=T, columns=3, source=source, lane="path")
    again.seek(17)
    assert np.array_equal(again.advance(5), noise[17:22])
    with pytest.raises(HorizonExceeded):
        process.advance(1)


def test_long_sums_stay_certain() -> None:
    """Coefficients that add up to 0: errors add up over the horizon, and hardly ever leave a rounding open."""
    r, T = (65536, -32768, -8192, -24576), 3000
    source = simulation(4).source("recursion")
    process = RecursiveProcess(
        r, DiscreteGaussian(2**40), inverse_series(r, T), horizon=T, columns=1, source=source, lane="path"
    )
    process.advance(T)
    assert process._radius[0] < 1e-6


@pytest.mark.parametrize("r", [(0, 0), (-2, 1), (4, 1), (4, -3, -2)])
def test_other_coefficients_are_refused(r) -> None:
    with pytest.raises(ArithmeticError):
        RecursiveProcess(
            r, DiscreteGaussian(1), np.ones(1), horizon=3, columns=1, source=simulation(1).source("x"), lane="path"
        )


def test_a_sum_of_zero_needs_a_horizon() -> None:
    with pytest.raises(ArithmeticError, match="horizon"):
        RecursiveProcess(
            (2, -2),
            DiscreteGaussian(1),
            np.ones(1),
            horizon=None,
            columns=1,
            source=simulation(1).source("x"),
            lane="p",
        )


def test_a_process_that_recalls_knows_how_uncertain_it_is() -> None:
    """Not the numbers alone: with the radius of a beginning it would take for certain what is not."""
    r, T, source = (65536, -32768, -8192, -24576), 300, simulation(4).source("recursion")

    def make() -> RecursiveProcess:
        return RecursiveProcess(
            r, DiscreteGaussian(2**40), inverse_series(r, T), horizon=T, columns=2, source=source, lane="path"
        )

    process, again = make(), make()
    process.advance(200)
    again.recall(200, process.memory())
    assert again.memory() == process.memory()
    assert process._radius.min() > make()._radius.max()


def test_sums_that_cancel_are_as_uncertain_as_their_terms() -> None:
    process = RecursiveProcess(
        (4, -2, -2),
        DiscreteGaussian(30),
        inverse_series((4, -2, -2), 9),
        horizon=9,
        columns=1,
        source=simulation(1).source("recursion"),
        lane="path",
    )
    process._recent = np.array([[1e6], [-1e6]])
    centre, radius = process._enclose(np.array([0]))
    assert centre[0] == 0.0
    assert radius[0] >= 2.0**-53 * 1e6
