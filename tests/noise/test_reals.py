"""Real variates: enclosures hold, tails are there, the same bits give the same number (optimal-counting 3.1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb

from evertally.balls import at_precision
from evertally.noise import reals, simulation
from evertally.noise.reals import DOUBLE_RADIUS, KnownReals, RealLaw, Reals, SideBySide, ball_of

LAW = RealLaw("normal", "a test")
KINDS = ["normal", "laplace"]


def no_more(i: int, j: int, round_: int) -> tuple[int, int]:
    return 0, 0


def planted(rng: Any, octaves: range) -> np.ndarray:
    """Words whose V begins in each octave, at the ends of cells and between them."""
    words = []
    for octave in octaves:
        for cell in range(32):
            for rest in (0, 2**58 - 1, int(rng.integers(0, 2**58))):
                y = 1 << 63 | cell << 58 | rest  # 64 bits from the leading one on
                bits = y << (63 - octave) if octave <= 63 else 0  # V has 127 bits
                first, second = bits >> 64 & (2**63 - 1), bits & (2**64 - 1)
                words.append((first << 1 | int(rng.integers(0, 2)), second))
    return np.array(words, dtype=np.uint64).reshape(1, -1, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_values_lie_within_their_radius(kind: Any) -> None:
    words = planted(np.random.default_rng(3), range(0, 53, 4))
    drawn = Reals(kind, words, no_more)
    for j in range(0, words.shape[1], 5):
        ball = drawn.refine(0, j, 127)
        # All V that begin with these 127 bits are within the radius.
        assert at_precision(200, lambda j=j, ball=ball: abs(ball - arb(float(drawn.value[0, j]))).upper()) <= float(
            drawn.radius[0]
        )
    assert float(drawn.radius[0]) < 80 * 2.0**-53


@pytest.mark.parametrize("kind", KINDS)
def test_radii_are_those_of_their_cells(kind: Any) -> None:
    """Cell by cell: the certified radius holds, and a thousandth of it would not."""
    coefficients, radius = reals._table(kind)
    assert coefficients.shape == (53 * 32, 9)
    worst = 0.0
    for octave in (0, 1, 7, 30, 52):
        words = planted(np.random.default_rng(octave), range(octave, octave + 1))
        drawn = Reals(kind, words, no_more)
        for j in range(words.shape[1]):
            row = octave * 32 + j // 3
            ball = drawn.refine(0, j, 127)
            off = at_precision(
                200, lambda j=j, ball=ball, drawn=drawn: float(abs(ball - arb(float(drawn.value[0, j]))).upper())
            )
            assert off <= radius[row]
            worst = max(worst, off / radius[row])
    assert worst > 0.05


def test_a_tail_is_not_cut() -> None:
    for word, second in ((0, 1), (1, 2**63), (2**10, 5), (0, 0)):
        words = np.array([[[word, second]]], dtype=np.uint64)
        drawn = Reals("normal", words, lambda i, j, r: (2**63 + r, 77))
        ball = drawn.refine(0, 0, 1024)
        assert abs(float(ball.mid()) - float(drawn.value[0, 0])) <= float(drawn.radius[0])
        assert abs(float(drawn.value[0, 0])) > 8
        assert math.copysign(1, float(drawn.value[0, 0])) == (-1 if word & 1 else 1)
        assert drawn.size[0] >= abs(drawn.value[0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_all_ones(kind: Any) -> None:
    """V just below 1: the variate is next to 0, and a rounding error may put it on the other side."""
    for word in (2**64 - 1, 2**64 - 2):
        words = np.array([[[word, 2**64 - 1]]], dtype=np.uint64)
        drawn = Reals(kind, words, no_more)
        ball, value, radius = drawn.refine(0, 0, 127), float(drawn.value[0, 0]), float(drawn.radius[0])
        assert at_precision(200, lambda b=ball, v=value, r=radius: abs(b - arb(v)) <= arb(r))
        assert abs(value) <= drawn.size[0] < 1e-15


def test_more_bits_come_from_the_same_address() -> None:
    source = simulation(5).source("reals")
    drawn = source.reals("lane", LAW, range(3, 6), 4, first=2)
    again = simulation(5).source("reals").reals("lane", LAW, range(4, 5), 1, first=3)
    assert float(drawn.value[1, 1]) == float(again.value[0, 0])
    for bits in (128, 256, 512):
        one, other = drawn.refine(1, 1, bits), again.refine(0, 0, bits)
        assert one.overlaps(other)
        assert at_precision(600, lambda one=one, bits=bits: one.rad() < arb(2) ** (8 - bits))
    assert drawn.refine(1, 1, 128).contains(drawn.refine(1, 1, 512)) or drawn.refine(1, 1, 128).overlaps(
        drawn.refine(1, 1, 512)
    )


def test_one_lane_one_filter() -> None:
    source = simulation(5).source("reals")
    source.reals("lane", LAW, range(1, 2))
    with pytest.raises(AssertionError, match="two laws"):
        source.reals("lane", RealLaw("normal", "another filter"), range(1, 2))
    other = simulation(5).source("reals").reals("lane", RealLaw("normal", "another filter"), range(1, 2))
    assert float(other.value[0, 0]) != float(simulation(5).source("reals").reals("lane", LAW, range(1, 2)).value[0, 0])


@pytest.mark.parametrize(("kind", "fourth"), [("normal", 3.0), ("laplace", 24.0)])
def test_moments(kind: Any, fourth: float) -> None:
    law = RealLaw(kind, "moments")
    z = simulation(9).source("moments").reals("lane", law, range(1, 41), 5000).value.ravel()
    n = z.size
    variance = law.stddev() ** 2
    assert abs(z.mean()) < 5 * math.sqrt(variance / n)
    assert abs((z**2).mean() - variance) < 5 * math.sqrt((fourth - variance**2) / n)
    below = float((z < 1).mean())
    expected = 0.5 * math.erfc(-1 / math.sqrt(2)) if kind == "normal" else 1 - math.exp(-1) / 2
    assert abs(below - expected) < 5 * math.sqrt(0.25 / n)


def test_compiled_and_interpreted_agree() -> None:
    from evertally.noise import compiled, kernels

    words = simulation(2).source("agree").reals("lane", LAW, range(1, 3), 50)._words
    made = []
    for fill in (compiled.fill_reals, kernels.fill_reals):
        value, radius, size = np.empty((2, 50)), np.empty(2), np.empty(2)
        assert fill(words, *reals._table("normal"), value, radius, size) == 0
        made.append((value, radius, size))
    for one, other in zip(*made, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-14)  # fused operations may differ in the last bit


def test_sign_and_size_by_hand() -> None:
    ball = ball_of("laplace", 2**63 | 1, 0, lambda r: (0, 0), 127)  # V = 1/2, sign 1
    assert at_precision(128, lambda: abs(ball + arb(2).log()) < arb(2) ** -100)


def test_chosen_coordinates_side_by_side_are_the_same_variates() -> None:
    source = simulation(3).source("side by side")
    law, nodes = RealLaw("normal", "test"), range(1, 6)
    whole = source.reals("path", law, nodes, 12)
    some = SideBySide([source.reals("path", law, nodes, 2, 3), source.reals("path", law, nodes, 1, 9)])
    chosen = [3, 4, 9]
    assert (some.value == whole.value[:, chosen]).all()
    assert (some.doubles().low == whole.doubles().low[:, chosen]).all()
    assert all(some.refine(2, j, 256).overlaps(whole.refine(2, c, 256)) for j, c in enumerate(chosen))


def test_side_by_side_every_radius_and_size_covers_all_parts() -> None:
    near, far = KnownReals(np.array([[1.0], [2.0]])), KnownReals(np.array([[-9.0], [0.0]]))
    near.radius, far.radius = np.array([0.5, 0.0]), np.array([0.0, 0.25])
    for parts in ([near, far], [far, near]):
        some = SideBySide(parts)
        assert some.radius.tolist() == [0.5, 0.25]
        assert some.size.tolist() == [9.0, 2.0]


def test_a_finite_ball_that_is_too_wide_is_read_further() -> None:
    """V = 2^-382 (1 + ...): after three rounds it is known to a factor of two, which is finite and far from sharp."""
    rounds = {0: (0, 0), 1: (0, 0), 2: (0, 2), 3: (2**63, 12345)}
    words = np.array([[rounds[0]]], dtype=np.uint64)
    drawn = Reals("normal", words, lambda i, j, r: rounds.get(r, (0, 0)))
    wide = drawn.refine(0, 0, 256)
    assert wide.is_finite()
    assert wide.rad() > DOUBLE_RADIUS
    made = drawn.doubles()
    true = drawn.refine(0, 0, 1024)
    off = at_precision(1024, lambda: abs(true - arb(float(made.high[0, 0])) - arb(float(made.low[0, 0]))).upper())
    assert off <= DOUBLE_RADIUS
