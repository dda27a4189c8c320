"""The coefficients of a bank for a decay: public numbers that horizon and factor decide (optimal-counting 7).

As in bank_schedule.py, with the walks of section 1 pulled towards zero by the decay itself: W_tj = lam^(t-j) has a
bidiagonal inverse too, so a_t = lam/(1 + q_t m_t), m_t = s p_t + lam^2 m_(t+1)/(1 + q_(t+1) m_(t+1)). Design alone:
privacy rests on the certificate of the numbers that come out, and on `spill`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from evertally.counting import bank_decay_kernels as decaying
from evertally.counting import bank_kernels as kernels
from evertally.counting.bank_schedule import Bank, inverse_fractions, poles, reweighed, segments

_ITERATIONS = 60


def states_for_decay(horizon: int, lam: float) -> int:
    """Q: four numbers of state where 256 ticks or fewer matter, six up to 2^14, eight beyond."""
    matter = min(horizon, 4 / (1 - lam))
    return min(horizon, 4 if matter <= 2**8 else 6 if matter <= 2**14 else 8)


@lru_cache(maxsize=24)
def build_decay_bank(horizon: int, lam: float) -> Bank:
    """The bank of a decay, at most 0.3 % above the least error there is.

    >>> bank = build_decay_bank(64, 0.9)
    >>> bank.states, bank.horizon, bool((bank.a <= 0.9).all())
    (4, 64, True)
    """
    Q = states_for_decay(horizon, lam)
    lengths = segments(horizon)
    ones = np.ones(len(lengths))
    p = q = reweighed(ones, ones, lengths)
    # The spectrum of B B^T for even weights: between these, but for constants. Poles stay where they are: weights that
    # have drifted would spread them too far.
    high = (1 + lam) ** 2 * float(horizon) ** 2
    low = min(1.9 + (1 - lam) ** 2 * float(horizon) ** 2, high / 4)
    s, w = poles(low, high, Q)
    at_infinity, at_zero, t, rho = inverse_fractions(s, w)
    diagonal, tails = decaying.compiled("decayed_diagonal"), decaying.compiled("tails")
    for _ in range(_ITERATIONS):
        rows, columns = np.zeros(len(lengths)), np.zeros(len(lengths))
        for k in range(Q):
            diagonal(p, q, lengths, lam, s[k], w[k], rows, False)
        for k in range(Q - 1):
            diagonal(p, q, lengths, lam, t[k], rho[k], columns, True)
        sensitivity = (columns + at_infinity + at_zero * q * tails(p, lengths, lam)) / q
        p, q = reweighed(p, rows / p, lengths), reweighed(q, sensitivity, lengths)
    found = [diagonal(p, q, lengths, lam, pole, 1.0, np.zeros(len(lengths)), False) for pole in s]
    a = np.array([lam / (1 + column * p * q) for column in found]).T.copy()
    # Fresh noise has variance q/(1 + q m) = (q/lam) a.
    K, r = kernels.compiled("gains")(a, q / lam, w, lengths)
    return Bank(a, K, r, lengths)


def spill(weights: Sequence[int], unit: int, lam: float, horizon: int) -> Fraction:
    """sum_k |h_k|, h = (1 - lam z) w(z): how much more one input does with the weights w in place of powers of lam.

    Additions 11, "On a bank": weights/unit = W H with H the Toeplitz matrix of h, so column j of L^-1 W H is
    sum_k h_k R e_(j+k), at most sum_k |h_k| times as long as the longest column of R. Exact: lam is a dyadic number.

    >>> spill((4, 2, 1), 4, 0.5, 9)  # ends where the powers would go on
    Fraction(9, 8)
    >>> spill((4, 2, 1), 4, 0.5, 3)
    Fraction(1, 1)
    """
    top, bottom = lam.as_integer_ratio()
    reached = [*weights, 0][:horizon]
    total = abs(reached[0]) * bottom
    before = reached[0]
    for weight in reached[1:]:
        total += abs(weight * bottom - before * top)
        before = weight
    return Fraction(total, unit * bottom)
