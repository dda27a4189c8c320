"""Decaying banks by other means: matrices in rational numbers, and the least error by the dual."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from planted_ties import unrolled

from evertally.counting.bank_schedule import Bank

Rational = list[list[Fraction]]


def innovations(bank: Bank, inputs: list[Fraction]) -> list[Fraction]:
    """L^-1 of a vector: the recursion of optimal-counting 2.1 solved for nu."""
    a, K, r = unrolled(bank)
    xi, found = [Fraction(0)] * bank.states, []
    for t, released in enumerate(inputs):
        nu = released - sum((x * y for x, y in zip(a[t], xi, strict=True)), Fraction(0))
        found.append(nu / r[t])
        xi = [x * y + z * nu for x, y, z in zip(a[t], xi, K[t], strict=True)]
    return found


def columns_of(bank: Bank, weights: list[Fraction]) -> Rational:
    """Columns of L^-1 W' for weights by age."""
    T = bank.horizon
    return [innovations(bank, [Fraction(0)] * j + weights[: T - j]) for j in range(T)]


def exact_decayed_columns(bank: Bank, lam: float) -> Rational:
    """Columns of R = L^-1 W, W_tj = lam^(t-j)."""
    return columns_of(bank, [Fraction(lam) ** k for k in range(bank.horizon)])


def losses_of_weights(bank: Bank, weights: list[Fraction]) -> Fraction:
    """The largest squared column of L^-1 W'."""
    return max(sum((x * x for x in column), Fraction(0)) for column in columns_of(bank, weights))


def exact_decayed_filter(bank: Bank) -> Rational:
    """L by impulses, in rows."""
    a, K, r = unrolled(bank)
    T = bank.horizon
    columns = []
    for j in range(T):
        e, column = [Fraction(0)] * bank.states, []
        for t in range(T):
            nu = r[t] if t == j else Fraction(0)
            faded = [x * y for x, y in zip(a[t], e, strict=True)]
            column.append(sum(faded, nu))
            e = [x + y * nu for x, y in zip(faded, K[t], strict=True)]
        columns.append(column)
    return [[columns[j][t] for j in range(T)] for t in range(T)]


def product(L: Rational, columns: Rational) -> Rational:
    """L R in rows, R given by its columns."""
    return [[sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in columns] for row in L]


def least(T: int, lam: float, steps: int) -> float:
    """A lower bound of gamma_2: the nuclear norm of D_p^1/2 W D_q^1/2, for weights that are better at every step."""
    W = np.tril(lam ** np.maximum(np.subtract.outer(np.arange(T), np.arange(T)), 0))
    p = q = np.full(T, 1 / T)
    best = 0.0
    for _ in range(steps):
        U, sizes, V = np.linalg.svd(np.sqrt(p)[:, None] * W * np.sqrt(q))
        best = max(best, float(sizes.sum()))
        p, q = p * (((U * sizes) * U).sum(axis=1) / p) ** 1.75, q * (((V.T * sizes) * V.T).sum(axis=1) / q) ** 1.75
        p, q = p / p.sum(), q / q.sum()
    return best
