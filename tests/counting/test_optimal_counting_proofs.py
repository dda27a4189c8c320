"""The lemmas of docs/theory/optimal-counting.md against small cases, by formulas that the code does not use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_schedule import build_bank
from evertally.counting.block_table import block_table
from evertally.theory.frontier import optimal_factor

Array = Any


def nuclear(p: Array, q: Array) -> float:
    return float(np.linalg.svd(np.sqrt(p)[:, None] * np.tri(len(p)) * np.sqrt(q), compute_uv=False).sum())


def balanced(T: int, steps: int = 150) -> tuple[Array, Array]:
    """Weights for which a recipe of the form of Lemma 3 has even rows and columns, by repeated reweighing."""
    p = q = np.full(T, 1 / T)
    for _ in range(steps):
        U, s, Vt = np.linalg.svd(np.sqrt(p)[:, None] * np.tri(T) * np.sqrt(q))
        rows, columns = (U * s * U).sum(axis=1) / p, (Vt.T * s * Vt.T).sum(axis=1) / q
        p, q = p * rows, q * columns
        p, q = p / p.sum(), q / q.sum()
    return p, q


def test_no_factorization_is_below_the_dual() -> None:
    """Lemma 1, for factors of all shapes and weights of all kinds."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        T = int(rng.integers(1, 9))
        R = rng.normal(size=(T + int(rng.integers(0, 4)), T)) * np.exp(rng.normal())
        L = np.tri(T) @ np.linalg.pinv(R)
        longest = math.sqrt((L**2).sum(axis=1).max() * (R**2).sum(axis=0).max())
        p, q = rng.dirichlet(np.full(T, rng.choice([0.1, 1, 10]))), rng.dirichlet(np.ones(T))
        assert longest >= nuclear(p, q) * (1 - 1e-9)


@pytest.mark.parametrize("T", [16, 32])  # larger ones wake the threads of BLAS
def test_the_bank_is_between_the_floor_and_a_little_more(T: int) -> None:
    """Lemmas 1 to 3: the dual is within 1e-4 of the recipe that Lemma 3 makes of the same weights, and the bank's
    certified factor lies above the floor."""
    p, q = balanced(T)
    U, s, Vt = np.linalg.svd(np.sqrt(p)[:, None] * np.tri(T) * np.sqrt(q))
    rows, columns = (U * s * U).sum(axis=1) / p, (Vt.T * s * Vt.T).sum(axis=1) / q
    floor, reached = nuclear(p, q), math.sqrt(rows.max() * columns.max())
    assert floor <= reached <= floor * 1.0002
    low, high = optimal_factor(T)
    assert floor <= high
    assert low <= reached
    bank = build_bank(T)
    assert floor <= math.sqrt(certified(bank) * moments_of(bank).widest(T)) <= floor * 1.003


def gaussian_curve(mu: float, epsilon: float) -> float:
    def Phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return Phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * Phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(("mu", "epsilon"), [(1.0, 0.5), (0.3, 0.2), (2.0, 1.0)])
def test_an_adversary_who_reacts_gains_nothing_over_one_normal_number(mu: float, epsilon: float) -> None:
    """2.2: two ticks, the second shift chosen by the first release; delta by quadrature is that of N(0,1), N(mu,1)
    if all of mu^2 is used, and less otherwise."""
    y = np.linspace(-11, 13, 4001)
    step, pdf = y[1] - y[0], lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    rng = np.random.default_rng(2)
    for first in (0.2 * mu, 0.6 * mu, 0.9 * mu):
        rest = math.sqrt(mu * mu - first * first)
        whole = np.where(y > rng.normal(), rest, -rest)
        for second, is_whole in ((whole, True), (whole * 0.9, False), (rest * np.sin(3 * y), False)):
            size = np.maximum(np.abs(second), 1e-9)
            then = epsilon - first * y + first * first / 2
            upper = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in size / 2 - then / size])
            lower = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in size / 2 + then / size])
            delta = float((pdf(y - first) * upper - math.exp(epsilon) * pdf(y) * lower).sum() * step)
            if is_whole:
                assert delta == pytest.approx(gaussian_curve(mu, epsilon), rel=1e-6)
            else:
                assert delta < gaussian_curve(mu, epsilon)


def columns_of(a: list[list[Fraction]], K: list[list[Fraction]]) -> list[list[Fraction]]:
    """R of a bank with r = 1, by the recursion of 2.1."""
    T = len(a)
    R = [[Fraction(0)] * T for _ in range(T)]
    for j in range(T):
        xi = [Fraction(0)] * len(a[0])
        for t in range(j, T):
            R[t][j] = 1 - sum((x * y for x, y in zip(a[t], xi, strict=True)), Fraction(0))
            xi = [x * y + k * R[t][j] for x, y, k in zip(a[t], xi, K[t], strict=True)]
    return R


def test_rows_do_not_fall_where_coefficients_are_held_for_ever() -> None:
    """2.3, three-entry S4."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        Q = int(rng.integers(1, 5))
        a = [Fraction(int(x), 16) for x in rng.integers(0, 17, Q)]
        parts = rng.integers(0, 9, Q)
        K = [Fraction(int(x), int(parts.sum()) + 1) for x in parts]
        R = columns_of([a] * 8, [K] * 8)
        assert all(R[i][t - 1] <= R[i][t] for i in range(8) for t in range(1, i + 1))


def test_the_lemma_alone_does_not_give_three_entries() -> None:
    """2.3: the example that refutes it."""
    one, nought = Fraction(1), Fraction(0)
    a = [[one, nought], [one, Fraction(9, 10)], [one, nought]]
    R = columns_of(a, [[nought, one], [one, nought], [one, nought]])
    G = [[sum((R[i][s] * R[i][t] for i in range(3)), nought) for t in range(3)] for s in range(3)]
    assert all(entry >= 0 for row in R for entry in row)
    assert (G[0][2], 2 * (G[0][1] + G[1][2])) == (Fraction(9, 10), Fraction(1, 5))


def table(n: int) -> tuple[Array, Array]:
    made = block_table(n)
    R = np.vstack([np.diag(made.d), made.dense]) / 2.0**24
    return np.tri(n) @ np.linalg.pinv(R), R


def test_levels_and_epochs_are_one_matrix() -> None:
    """Section 6: L R = A, and no column is longer than its levels allow."""
    n = 16
    inner, R1 = table(n)
    m = len(R1)
    R = np.vstack([np.kron(np.eye(n), R1), R1 @ np.kron(np.eye(n), np.ones(n))])
    L = np.zeros((n * n, (n + 1) * m))
    for t in range(1, n * n + 1):
        block, j = divmod(t, n)
        if j:
            L[t - 1, block * m : (block + 1) * m] = inner[j - 1]
        if block:
            L[t - 1, n * m :] = inner[block - 1]
    assert np.abs(L @ R - np.tri(n * n)).max() < 1e-12
    assert np.abs(R).sum(axis=0).max() <= 2

    other, R2 = table(32)
    R = np.block([[R1, np.zeros((m, 32))], [np.zeros((len(R2), n)), R2]])
    held = np.tile(inner[-1], (32, 1))
    L = np.block([[inner, np.zeros((n, len(R2)))], [held, other]])
    assert np.abs(L @ R - np.tri(48)).max() < 1e-12
    assert np.abs(R).sum(axis=0).max() <= 1


def test_rounded_weights_cost_what_the_lemma_says() -> None:
    """Section 7: any invertible triangular L, coarse weights."""
    rng = np.random.default_rng(4)
    T, lam = 12, 0.875
    exact = lam ** np.arange(T)
    weights = np.round(exact * 8) / 8
    ages = np.subtract.outer(np.arange(T), np.arange(T))
    W, rounded = (np.where(ages >= 0, w[np.maximum(ages, 0)], 0.0) for w in (exact, weights))
    grown = float(np.abs(weights - lam * np.concatenate([[0], weights[:-1]])).sum())
    worst = 0.0
    for _ in range(100):
        L = np.tril(rng.normal(size=(T, T)), -1) + np.diag(np.exp(rng.normal(size=T)))
        longest, with_rounded = (np.linalg.norm(np.linalg.solve(L, w), axis=0).max() for w in (W, rounded))
        worst = max(worst, with_rounded / longest / grown)
    assert 0.6 < worst <= 1
