"""Numbers of two floats: what is proved of their operations, and variates made of them (samplers.md 9)."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from flint import arb

from evertally.balls import at_precision, certain
from evertally.noise import double_words, reals
from evertally.noise.double_words import plus, times, times_float, two_product, two_sum
from evertally.noise.quantile import normal_quantile
from evertally.noise.reals import DOUBLE_RADIUS, KnownReals, Reals

U = Fraction(1, 2**53)


def a_float(rng: np.random.Generator) -> float:
    """Of any size and sign, often with few bits or next to a power of two, where halves round."""
    shape = rng.integers(0, 4)
    m = (1 + rng.random(), 1 + 2.0**-52 * rng.integers(0, 5), 2 - 2.0**-52 * rng.integers(1, 5), rng.integers(1, 9))[
        shape
    ]
    return float(m) * 2.0 ** int(rng.integers(-60, 60)) * (-1) ** int(rng.integers(0, 2))


def a_word(rng: np.random.Generator) -> tuple[float, float]:
    """Two floats; often the lower one is as large as it may be, or far below, or nothing."""
    high = a_float(rng)
    share = (0.5, 0.5 - 2.0**-50, rng.random() / 2, 2.0**-30, 0.0)[rng.integers(0, 5)]
    low = float(np.spacing(abs(high)) * share) * (-1) ** int(rng.integers(0, 2))
    return two_sum(high, low)


def test_operations_are_as_precise_as_proved() -> None:
    rng = np.random.default_rng(1)
    worst = [Fraction(0)] * 3
    for _ in range(3000):
        (a, b), (c, d), y = a_word(rng), a_word(rng), a_float(rng)
        if rng.random() < 0.3:  # close to cancelling
            c, d = two_sum(-a * (1 + 2.0**-50 * int(rng.integers(0, 3))), d)
        x, w = Fraction(a) + Fraction(b), Fraction(c) + Fraction(d)
        assert sum(map(Fraction, two_sum(a, y))) == Fraction(a) + Fraction(y)
        assert sum(map(Fraction, two_product(a, y))) == Fraction(a) * Fraction(y)
        made = (plus(a, b, c, d), x + w), (times_float(a, b, y), x * Fraction(y)), (times(a, b, c, d), x * w)
        for i, ((high, low), true) in enumerate(made):
            assert high == high + low
            off = abs(Fraction(high) + Fraction(low) - true)
            assert (off == 0) if true == 0 else True
            worst[i] = max(worst[i], off / abs(true) if true else Fraction(0))
    assert worst[0] <= 3 * U**2 / (1 - 4 * U)
    assert worst[1] <= Fraction(3, 2) * U**2 + 4 * U**3
    assert worst[2] <= 7 * U**2
    assert max(worst) < Fraction(double_words.UNIT)
    assert min(worst) > U**2 / 2


def planted(rng: np.random.Generator, octaves: Any) -> np.ndarray:
    """Words whose V begins in these octaves, at the ends of cells and inside."""
    words = []
    for octave in octaves:
        for cell in (0, 1, 15, 30, 31):
            n = 121 - octave  # bits behind those of the cell
            for rest in (
                0,
                2**n - 1,
                2 ** (n - 1),
                2 ** (n - 1) - 1,
                int.from_bytes(rng.bytes(16), "big") >> (128 - n),
            ):
                bits = (32 | cell) << n | rest  # V has 127 bits
                words.append(((bits >> 64) << 1 | int(rng.integers(0, 2)), bits & (2**64 - 1)))
    return np.array(words, dtype=np.uint64).reshape(1, -1, 2)


def off(high: float, low: float, ball: arb) -> float:
    return at_precision(300, lambda: float(abs(ball - arb(high) - arb(low)).upper()))


@pytest.mark.parametrize("octaves", [range(24), (24, 40, 60)])
def test_variates_lie_within_their_radius(octaves: Any) -> None:
    words = planted(np.random.default_rng(2), octaves)
    drawn = Reals("normal", words, lambda i, j, r: (2**63 + 5, 77))
    made = drawn.doubles()
    bits = 127 if octaves[0] < 24 else 511  # all V that begin with the bits of the first round; or this one
    offs = [off(made.high[0, j], made.low[0, j], drawn.refine(0, j, bits)) for j in range(words.shape[1])]
    assert max(offs) <= DOUBLE_RADIUS
    assert (np.abs(made.high - drawn.value) <= drawn.radius[0] + 1e-15).all()
    assert np.array_equal(made.high, made.high + made.low)
    if octaves[0] == 0:
        radius = [certain(partial(reals.double_cell, normal_quantile, 32 * o + 31), 256)[2] for o in (0, 23)]
        assert max(offs[-5:]) <= radius[1] <= DOUBLE_RADIUS
        assert max(offs[20:25]) <= radius[0]
        assert max(offs) > DOUBLE_RADIUS / 1000


def test_next_to_zero() -> None:
    words = np.array([[[2**64 - 1, 2**64 - 1], [2**64 - 2, 0]]], dtype=np.uint64)
    drawn = Reals("normal", words, lambda i, j, r: (0, 0))
    made = drawn.doubles()
    assert all(off(made.high[0, j], made.low[0, j], drawn.refine(0, j, 127)) <= DOUBLE_RADIUS for j in (0, 1))


def test_a_cell_without_low_parts_is_not_sharp_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PAIRS", 4), ("DEGREE", 13)):
        with monkeypatch.context() as patch:
            patch.setattr(double_words, name, value)
            assert certain(partial(reals.double_cell, normal_quantile, 40), 256)[2] > DOUBLE_RADIUS


def test_known_numbers() -> None:
    known = KnownReals(np.array([[0.1, 2.0]]))
    made = known.doubles()
    assert made.high.tolist() == [[0.1, 2.0]]
    assert not made.low.any()


def test_machine_code_that_fuses_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert double_words.trusted()

    def fused(a: float, b: float) -> tuple[float, float]:
        p = a * b
        return p, float(Fraction(a) * Fraction(b) - Fraction(p)) * (1 + 2.0**-40)

    def changed(name: str) -> Any:
        linked = dict(vars(double_words)) | {"two_product": fused}
        for part in ("times_float", "times", name):
            linked[part] = type(fused)(getattr(double_words, part).__code__, linked)
        return linked[name]

    monkeypatch.setattr(double_words, "compiled", changed)
    assert not double_words.trusted.__wrapped__()
