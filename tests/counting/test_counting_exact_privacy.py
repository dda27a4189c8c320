"""Exact laws of tiny instances: every noise vector is played through the real process, in both worlds.

The columns of one process are used as parallel universes, one for each noise vector; the law of the releases follows
from the known probabilities of the noise. Nothing is sampled.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from counting_reference import Planted, honaker_sums, tree_sums

import evertally as et
from evertally.counting.honaker import HonakerProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.privacy import Change

ONE = Change(1, 1, 1)


def universes(kind: str, T: int, budget: et.PureDP | et.ZCDP, K: int) -> tuple[np.ndarray, np.ndarray, object]:
    """All noise vectors in [-K, K]^nodes, shape (nodes, N); the noise paths they give, shape (T, N); the law."""
    addresses = sorted(tree_sums(T, 2) if kind == "tree" else honaker_sums(T))
    z = np.array(list(itertools.product(range(-K, K + 1), repeat=len(addresses))), dtype=np.int64).T
    source = Planted(dict(zip(addresses, z, strict=True)))
    if kind == "tree":
        process = TreeProcess(budget, ONE, horizon=T, columns=z.shape[1], source=source, radix=2)
    else:
        process = HonakerProcess(budget, ONE, horizon=T, columns=z.shape[1], source=source)
    return z, process.advance(T), process.law


def code(paths: np.ndarray, x: tuple[int, ...], reach: int) -> np.ndarray:
    """Each universe's releases as one number."""
    released = paths + np.cumsum(x)[:, None] + reach
    assert released.min() >= 0
    assert released.max() < 2 * reach
    result = np.zeros(paths.shape[1], dtype=np.int64)
    for row in released:
        result = result * (2 * reach) + row
    return result


def neighbours(T: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    base = tuple(range(2, 2 + T))
    return [(base, tuple(v + (i == t) * sign for i, v in enumerate(base))) for t in range(T) for sign in (-1, 1)]


@pytest.mark.parametrize("T", [2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_laplace_tree_loses_exactly_epsilon(T: int, epsilon: Fraction) -> None:
    """Outputs and noise determine each other, so every log-ratio is a fraction: it is compared exactly.

    The box [-8, 8]^T need not carry all the mass: a log-ratio depends on |Z| and |Z + shift| alone, which takes all
    its values inside.
    """
    z, paths, law = universes("tree", T, et.PureDP(epsilon), K=8)
    assert isinstance(law, DiscreteLaplace)
    cost = np.abs(z).sum(axis=0)
    worst = Fraction(0)
    for x, other in neighbours(T):
        here = dict(zip(code(paths, x, 64).tolist(), cost.tolist(), strict=True))
        there = dict(zip(code(paths, other, 64).tolist(), cost.tolist(), strict=True))
        assert len(here) == z.shape[1], "two noise vectors gave one output"
        common = here.keys() & there.keys()
        assert len(common) > z.shape[1] // 2
        worst = max(worst, max(abs(here[o] - there[o]) for o in common) / law.scale)
    assert worst <= epsilon
    assert worst >= epsilon * (1 - Fraction(1, 2**38)), "an event of the first tick loses all of it"


@pytest.mark.parametrize(("T", "K"), [(2, 20), (3, 14)])
def test_laplace_honaker_law(T: int, K: int) -> None:
    """Rounding merges noise vectors: probabilities are added up, and the mass outside of the box is bounded."""
    epsilon = 2.0
    z, paths, law = universes("honaker", T, et.PureDP(epsilon), K)
    assert isinstance(law, DiscreteLaplace)
    q = math.exp(-1 / float(law.scale))
    probability = np.prod((1 - q) / (1 + q) * q ** np.abs(z), axis=0)
    outside = 1 - probability.sum()
    assert 0 <= outside < 1e-4
    seen = 0.0
    for x, other in neighbours(T):
        codes, inverse = np.unique(np.concatenate([code(paths, x, 128), code(paths, other, 128)]), return_inverse=True)
        p = np.bincount(inverse[: z.shape[1]], probability, codes.size)
        q_ = np.bincount(inverse[z.shape[1] :], probability, codes.size)
        for a, b in ((p, q_), (q_, p)):
            assert np.all(a <= math.exp(epsilon) * (b + outside) * (1 + 1e-9))
        likely = (p > 100 * outside) & (q_ > 100 * outside)
        seen = max(seen, float(np.max(np.abs(np.log(p[likely] / q_[likely])))))
    assert 0.5 * epsilon < seen <= epsilon + 0.03, "the loss should be visible in outputs that carry mass"


def gaussian_weights(law: DiscreteGaussian, z: np.ndarray, K: int) -> np.ndarray:
    k = np.arange(-4 * K, 4 * K + 1)
    total = np.exp(-(k**2) / (2 * float(law.sigma_squared))).sum()
    return np.exp(-(z**2).sum(axis=0) / (2 * float(law.sigma_squared))) / total ** z.shape[0]


@pytest.mark.parametrize(("kind", "T", "K"), [("tree", 2, 60), ("tree", 3, 36), ("honaker", 2, 36)])
@pytest.mark.parametrize("rho", [Fraction(1, 2), Fraction(5, 2)])
def test_gaussian_renyi_divergence(kind: str, T: int, K: int, rho: Fraction) -> None:
    """D_alpha <= alpha rho at a few orders; equal up to discreteness for the tree, whose outputs are its sums.

    Terms outside of the box: each is a Gaussian around alpha times the shift, at most 6; the box is ten deviations
    further out (checked below by the mass that a box of half the size would miss).
    """
    z, paths, law = universes(kind, T, et.ZCDP(rho), K)
    assert isinstance(law, DiscreteGaussian)
    probability = gaussian_weights(law, z, K)
    inside = np.abs(z).max(axis=0) <= K // 2
    for x, other in neighbours(T):
        here, there = code(paths, x, 512), code(paths, other, 512)
        codes, inverse = np.unique(np.concatenate([here, there]), return_inverse=True)
        p = np.bincount(inverse[: z.shape[1]], probability, codes.size)
        q = np.bincount(inverse[z.shape[1] :], probability, codes.size)
        both = (p > 0) & (q > 0)
        for alpha in (1.5, 2.0, 4.0, 6.0):
            terms = np.exp(alpha * np.log(p[both]) + (1 - alpha) * np.log(q[both]))
            divergence = math.log(terms.sum()) / (alpha - 1)
            assert divergence <= alpha * float(rho) * (1 + 1e-9)
            if kind == "tree" and x[0] != other[0] and rho < 1:
                assert divergence >= alpha * float(rho) * (1 - 1e-6), "the first tick pays the whole budget"
    assert 1 - probability[inside].sum() < 1e-12


def test_a_forgotten_level_would_be_noticed() -> None:
    """The check itself: the same counter calibrated for one level less loses more than it claims."""
    z, paths, law = universes("tree", 3, et.PureDP(1), K=6)
    assert isinstance(law, DiscreteLaplace)
    cost = np.abs(z).sum(axis=0)
    x, other = neighbours(3)[0]
    here = dict(zip(code(paths, x, 64).tolist(), cost.tolist(), strict=True))
    there = dict(zip(code(paths, other, 64).tolist(), cost.tolist(), strict=True))
    worst = max(abs(here[o] - there[o]) for o in here.keys() & there.keys())
    assert Fraction(worst) / (law.scale / 2) > 1
