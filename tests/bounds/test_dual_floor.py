"""The certified floor of running counts at any horizon, recomputed by other means."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import evertally as et
from evertally.counting.choose import Choice, model_of
from evertally.counting.processes import Setting
from evertally.counting.survey import widest
from evertally.privacy import ZCDP, ApproxDP, Change, PureDP
from evertally.theory import dual_floor
from evertally.theory.count_floors import count_floor, count_rms_floor, mu_above, open_ratio
from evertally.theory.dual_floor import dual_lower
from evertally.theory.frontier import gamma_bounds, optimal_factor


@pytest.mark.parametrize("T", sorted(gamma_bounds()))
def test_near_the_least_factor_and_never_above(T: int) -> None:
    low, high = gamma_bounds()[T].worst
    assert 0.997 * low < dual_lower(T) < high
    assert dual_lower(T) < low  # the table is better where it has an entry


@pytest.mark.parametrize("T", [1, 2, 3, 5, 37, 200])
def test_the_nuclear_norm_by_singular_values(T: int) -> None:
    lengths = np.array(dual_floor._segments(T))
    middle = np.cumsum(lengths) - (lengths - 1) / 2
    q = np.repeat(np.sqrt((np.log(T - middle + 1) + 1) / (np.log(middle) + 1)), lengths)
    W = np.sqrt(1 / q)[:, None] * np.tri(T) * np.sqrt(q)[None, :]
    norm = float(np.linalg.svd(W, compute_uv=False).sum()) / math.sqrt(float(q.sum() * (1 / q).sum()))
    assert 0.9997 * norm < dual_lower(T) < norm


def test_weak_duality_bounds_every_factorization() -> None:
    # Any L R = A: the longest row of L times the longest column of R.
    rng = np.random.default_rng(1)
    T = 24
    A = np.tri(T)
    for _ in range(200):
        R = np.eye(T) * rng.uniform(0.2, 2, T) + np.tril(rng.normal(size=(T, T)), -1) * rng.uniform(0, 0.3)
        L = A @ np.linalg.inv(R)
        assert np.linalg.norm(L, axis=1).max() * np.linalg.norm(R, axis=0).max() >= dual_lower(T)


def test_traces_in_fractions() -> None:
    lengths, q = np.array([1, 1, 2, 4, 4, 2, 1]), np.array([2.0, 1.5, 1.25, 1.0, 0.75, 0.5, 0.375])
    s = np.array([2.0**-12, 0.125, 3.0, 1e6])
    per_tick = np.repeat(q, lengths).tolist()
    for node, found in zip(s.tolist(), dual_floor._traces(lengths, q, s).tolist(), strict=True):
        x, D, E, dD, dE = Fraction(node), Fraction(1), Fraction(0), Fraction(0), Fraction(0)
        for t, own in enumerate(per_tick):
            ratio = Fraction(per_tick[t - 1]) / Fraction(own) if t else Fraction(1)
            dE = D + x * dD + ratio * dE
            E = x * D + ratio * E
            D, dD = D + E, dD + dE
        assert abs(found / float(dD / D) - 1) <= 16 * 15 * 2.0**-53
        root = np.sqrt(np.array([per_tick[t - 1] / per_tick[t] for t in range(1, 15)]))
        B = np.eye(15) - np.diag(root, -1)
        assert found == pytest.approx(float(np.trace(np.linalg.inv(B @ B.T + node * np.eye(15)))), rel=1e-12)


def test_poissons_error() -> None:
    h = dual_floor._STEP
    assert 2 * sum(1 / math.cosh(2 * math.pi**2 * m / h) for m in range(1, 9)) < dual_floor._POISSON
    for x in (0.3, 1.0, 7.7):
        u = np.arange(-90, 90, h)
        whole = float(np.sum(np.exp(u / 2) / (x + np.exp(u)))) * h / math.pi
        assert abs(whole * math.sqrt(x) - 1) < dual_floor._POISSON


@pytest.mark.parametrize("T", [2, 40, 1000, 5000])
def test_no_process_is_below_the_floor(T: int) -> None:
    for name in ("sqrt", "tree", "honaker", "bank"):
        process = model_of(Choice(name, ZCDP(0.01)), Setting(Change(3, 9, 3), T, 1, 2**30))
        top, floor = widest(process, T), count_floor(T, ZCDP(0.01), 3)
        assert top is not None
        assert floor is not None
        assert floor <= top.stddev
        if name == "bank":
            assert top.stddev < 1.006 * floor
    assert (count_rms_floor(T, ZCDP(0.01), 3) or 0) <= floor


def test_mu_of_a_promise() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (10.0, 1e-12), (300.0, 1e-6)):
        mu = mu_above(ApproxDP(epsilon, delta))

        def spent(mu: float, epsilon: float = epsilon) -> float:
            import flint

            with flint.ctx.workprec(300):
                m, e, root = flint.arb(mu), flint.arb(epsilon), flint.arb(2).sqrt()
                return float(((e / m - m / 2) / root).erfc() / 2 - e.exp() * ((e / m + m / 2) / root).erfc() / 2)

        assert spent(mu) >= delta  # not below the mu that the promise allows
        assert spent(mu * (1 - 1e-6)) < delta
    assert mu_above(ZCDP(2)) == pytest.approx(2.0)
    assert count_floor(100, PureDP(1)) is None
    assert count_rms_floor(100, PureDP(1)) is None
    with pytest.raises(et.ConfigurationError, match="zCDP"):
        mu_above(PureDP(1))


def test_the_price_at_all_ticks() -> None:
    assert open_ratio(255) is None
    assert [open_ratio(T) for T in (256, 5000, 2**30)] == [1.5297, 1.5685, 1.5795]
    assert optimal_factor(1)[0] == 1.0
