"""Error statements against exact laws: the noise of small ticks is convolved, not sampled."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from counting_reference import base_digits, honaker_prefix

import evertally as et
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import NoiseProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteLaplace, Law, ZeroNoise
from evertally.privacy import Change

BETAS = (0.97, 0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.05, 1e-2, 1e-3, 1e-5, 1e-7)
# transforms leave errors of about 1e-16 in each of at most 1e6 entries
SLACK = 1e-9

Law_ = tuple[np.ndarray, np.ndarray]


def one_draw(law: Law) -> np.ndarray:
    """Probabilities of -K..K; the rest is below e^-35."""
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale)
        k = np.arange(-math.ceil(36 * scale), math.ceil(36 * scale) + 1)
        p = np.exp(-np.abs(k) / scale)
    else:
        square = float(law.sigma_squared)  # type: ignore[attr-defined]
        K = math.ceil(9 * math.sqrt(square)) + 2
        k = np.arange(-K, K + 1)
        p = np.exp(-(k**2) / (2 * square))
    return p / p.sum()


def weighted_sum(law: Law, weights: list[Fraction]) -> Law_:
    """The law of floor(sum w_i Z_i + 1/2): integers and their probabilities."""
    D = math.lcm(*(w.denominator for w in weights))
    p = one_draw(law)
    K = p.size // 2
    spans = [int(w * D) for w in weights]
    half = K * sum(spans)
    size = 1 << (2 * half + 1).bit_length()
    spectrum = np.ones(size // 2 + 1, dtype=complex)
    for span in spans:
        spread = np.zeros(size)
        spread[(np.arange(-K, K + 1) * span) % size] = p
        spectrum *= np.fft.rfft(spread)
    total = np.fft.irfft(spectrum, size)
    position = np.arange(-half, half + 1)
    return (2 * position + D) // (2 * D), total[position % size]


def honaker_weights(t: int) -> list[Fraction]:
    nodes = [(h, i) for h in range(t.bit_length()) for i in range(1, (t >> h) + 1)]
    weights = [honaker_prefix(t, lambda a, b, n=n: int((a, b) == n)) for n in nodes]
    return [w for w in weights if w]


def check_tails(process: NoiseProcess, t: int, law: Law_) -> None:
    noise, probability = law
    for beta in BETAS:
        radius = process.spread(t).radius(beta)
        outside = float(probability[np.abs(noise) > radius].sum())
        assert outside <= beta + SLACK, (t, beta)
        # integer intervals may cut the radius down to an integer
        assert float(probability[np.abs(noise) > math.floor(radius)].sum()) <= beta + SLACK


Make = Callable[[Any, int], NoiseProcess]


def honaker(budget: Any, T: int) -> HonakerProcess:
    return HonakerProcess(budget, Change(1, 1, 1), horizon=T, columns=1, source=ZeroNoise().source())


def tree(budget: Any, T: int) -> TreeProcess:
    return TreeProcess(budget, Change(1, 1, 1), horizon=T, columns=1, source=ZeroNoise().source(), radix=3)


LAPLACE = [et.PureDP(20), et.PureDP(1.5), et.PureDP(0.3), et.PureDP(Fraction(1, 300))]
GAUSSIAN = [et.ZCDP(60), et.ZCDP(1.5), et.ZCDP(0.1), et.ZCDP(0.001)]


@pytest.mark.parametrize("budget", LAPLACE + GAUSSIAN, ids=repr)
def test_tails_of_the_refined_tree(budget: Any) -> None:
    """Powers of two are the hard case for Laplace noise: little variance, but several draws. Taken for a single one,
    whose tail is lighter near the middle, the radius of beta = 0.7 is exceeded with probability 0.713."""
    p = honaker(budget, 7)
    for t in range(1, 8):
        if t > 3 and isinstance(budget, et.PureDP) and budget.epsilon < 0.1:
            continue  # the same picture at a hundred times the cost
        check_tails(p, t, weighted_sum(p.law, honaker_weights(t)))


@pytest.mark.parametrize("budget", LAPLACE[:3] + GAUSSIAN, ids=repr)
def test_tails_of_the_tree(budget: Any) -> None:
    p = tree(budget, 26)
    for t in (1, 2, 4, 5, 8, 13, 26):
        check_tails(p, t, weighted_sum(p.law, [Fraction(1)] * sum(base_digits(t, 3))))


@pytest.mark.parametrize("budget", [*LAPLACE[1:3], *GAUSSIAN[1:3]], ids=repr)
def test_deviation_of_the_exact_law(budget: Any) -> None:
    """Exact for the tree; with the usual 1/12 for rounding, up to a few percent, for the refined tree."""
    for p, weights, tolerance in (
        (tree(budget, 26), {t: [Fraction(1)] * sum(base_digits(t, 3)) for t in (1, 4, 8, 26)}, 1e-9),
        (honaker(budget, 7), {t: honaker_weights(t) for t in (1, 2, 3, 6, 7)}, 0.03),
    ):
        for t, w in weights.items():
            noise, probability = weighted_sum(p.law, w)
            deviation = math.sqrt(float((noise.astype(float) ** 2 * probability).sum()))
            assert p.spread(t).stddev == pytest.approx(deviation, rel=tolerance)
    assert honaker(budget, 7).spread(1).stddev == pytest.approx(honaker(budget, 7).law.stddev()), "nothing is rounded"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3, 9])
@pytest.mark.parametrize("mechanism", ["tree", "honaker"])
@pytest.mark.parametrize("T", [1, 2, 3])
def test_the_bound_for_all_ticks_holds_exactly(epsilon: float, mechanism: str, T: int) -> None:
    """The exact probability that some tick is beyond the bound, from the joint law of up to three ticks."""
    c = et.Counter(guarantee=et.PureDP(epsilon), horizon=T, mechanism=mechanism, radix=2, key=ZeroNoise())
    p = one_draw(c.noise.law)
    K = p.size // 2
    z = np.arange(-K, K + 1)
    if mechanism == "tree":
        second, weight = np.broadcast_to(z, (1, z.size)), p[None, :]  # a block of its own
    else:
        # (2 y + z_1 + z_2)/3, rounded half up: one row for each z_1, one column for each 2 y + z_2.
        both = np.convolve(np.insert(p, range(1, p.size), 0.0), p)
        keep = both > 1e-14
        second = (2 * (z[:, None] + (np.arange(both.size) - 3 * K)[keep]) + 3) // 6
        weight = np.broadcast_to(both[keep], second.shape)
    below = np.cumsum(p)
    for beta in (0.9, 0.5, 0.1, 1e-3, 1e-6):
        r = math.floor(c.error_bound(beta))
        passed = p * (np.abs(z) <= r)
        if T == 1:
            inside = float(passed.sum())
        else:
            rest = weight * (np.abs(second) <= r)
            if T == 3:
                # the third tick is the second and one more draw
                rest = rest * (_at(below, r - second + K) - _at(below, -r - second + K - 1))
            inside = float((passed * rest.sum(axis=1)).sum())
        assert 1 - inside <= beta + 1e-7


def _at(below: np.ndarray, place: np.ndarray) -> np.ndarray:
    return np.where(place < 0, 0.0, below[np.clip(place, 0, below.size - 1)])


def test_a_bound_for_one_tick_is_not_above_the_bound_for_all() -> None:
    for guarantee in (et.PureDP(1), et.ZCDP(0.5)):
        for mechanism in ("tree", "honaker", "sqrt"):
            if mechanism == "sqrt" and isinstance(guarantee, et.PureDP):
                continue
            for T in (1, 3, 10, 64):
                c = et.Counter(guarantee=guarantee, horizon=T, mechanism=mechanism, key=ZeroNoise())
                for beta in (0.5, 0.05, 1e-6):
                    assert max(c.error_bound(beta, t=t) for t in range(1, T + 1)) <= c.error_bound(beta) * (1 + 1e-12)
