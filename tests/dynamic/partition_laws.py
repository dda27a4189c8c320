"""Exact laws of partitions with discrete Laplace noise, by sums over rho: reference programs for tests.

A tick's test is `count + nu >= threshold + rho`, with rho once for a segment and nu fresh; that the product decides so
is tested with written noise in test_partitioners.py.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np


def at_least(k, b):
    """P(Z >= k) of the discrete Laplace law."""
    k = np.asarray(k, dtype=float)
    q = np.exp(-1 / b)
    upper = np.exp(-np.maximum(k, 0) / b) / (1 + q)
    return np.where(k > 0, upper, 1 - np.exp(-np.maximum(1 - k, 0) / b) / (1 + q))


def rho_grid(b, spread=60):
    z = np.arange(-int(spread * b), int(spread * b) + 1)
    weights = np.exp(-np.abs(z) / b)
    return z, weights / weights.sum()


def halting(values, threshold, b_rho, b_nu):
    """P(halt at tick k) for k = 1..n, and P(no halt), for the test values of one instance."""
    rho, weight = rho_grid(b_rho)
    alive, out = weight, []
    for value in values:
        hit = at_least(threshold + rho - value, b_nu)
        out.append(float((alive * hit).sum()))
        alive = alive * (1 - hit)
    return np.array([*out, float(alive.sum())])


def boundaries(arrived, threshold, b_rho, b_nu):
    """P(exactly these ticks are boundaries), for every set of ticks: a tuple of truth values for each."""

    @cache
    def segment(counts, closes):
        law = halting(np.cumsum(counts), threshold, b_rho, b_nu)
        return law[len(counts) - 1] if closes else law[-1]

    out = {}
    for pattern in product([False, True], repeat=len(arrived)):
        probability, start = 1.0, 0
        for tick, closed in enumerate(pattern):
            if closed:
                probability *= segment(tuple(arrived[start : tick + 1]), True)
                start = tick + 1
        if start < len(arrived):
            probability *= segment(tuple(arrived[start:]), False)
        out[pattern] = probability
    return out


def loss(one, other):
    """The largest |log ratio| of two laws."""
    one, other = np.asarray(one), np.asarray(other)
    return float(np.abs(np.log(one) - np.log(other)).max())
