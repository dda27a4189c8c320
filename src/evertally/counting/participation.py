"""How far a user who takes part in separated ticks moves what noise is added to, in integers.

users-and-domains 1.3 [R, reviewed twice]. Each of these belongs to one factor: the square root, bands of it, and trees.
Of everything else the group is proved, and nothing more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.privacy import Participation

IntArray = NDArray[np.int64]

_LOW = 20  # bits of the lower half of a number whose products would not fit 64 bits
_MOST_WORK = 2**26  # products of a sum that is made for every block of a calendar


def toeplitz_reach(r: IntArray, horizon: int, rule: Participation) -> int:
    """The largest ||R D||^2 for a Toeplitz factor with r_0 >= r_1 >= ... >= 0, T of them.

    The rows that a user moves are as early and as near to each other as the rule lets them be: G[s+1,t+1] <= G[s,t]
    and G[s,u] <= G[s,t] for s < t < u. With a separation that is attained; of the calendar it is a bound, because no
    user can be at the end of one block for the next and at its beginning for the one before.

    >>> from evertally.counting.sqrt_factor import coefficients
    >>> from evertally.privacy import Change
    >>> toeplitz_reach(coefficients(16), 16, Participation(Change(1, 1, 1), ticks=3, separation=4))
    41774028696
    """
    assert r.size == horizon
    if r[-1] < 0 or bool((np.diff(r) > 0).any()):
        raise ArithmeticError("separated users are proved for coefficients that do not rise, and are not negative")
    k = rule.most(horizon)
    apart = _calendar(r, rule, k) if rule.calendar else _squares(_comb(r, rule.separation, k))
    group = k * k * _squares(r)
    return rule.times * rule.per_tick.l2_squared * min(apart, group)


def tree_reach(radix: int, levels: int, horizon: int, rule: Participation) -> int:
    """The same for the blocks of a tree: in one of length n a user is at most ceil(n/b) times, under the calendar up to
    1 + ceil((n - 1)/b) times, and in all blocks of a level together k times.

    >>> from evertally.privacy import Change
    >>> tree_reach(2, 4, 10, Participation(Change(1, 1, 1), ticks=2, separation=5))
    10
    """
    k, b = rule.most(horizon), rule.separation
    lengths = [radix**v for v in range(levels)]
    inside = [1 + -(-(n - 1) // b) if rule.calendar else -(-n // b) for n in lengths]
    blocks: int = sum(k * min(k, met) for met in inside)
    return rule.times * rule.per_tick.l2_squared * blocks


def _comb(r: IntArray, b: int, k: int) -> IntArray:
    """sum_{j<k} r shifted by j b ticks."""
    T = r.size
    rows = -(-T // b)
    padded = np.zeros(rows * b, dtype=np.int64)
    padded[:T] = r
    comb: IntArray = np.cumsum(padded.reshape(rows, b), axis=0).ravel()[:T]
    if k * b < T:
        comb[k * b :] -= comb[: T - k * b].copy()
    return comb


def _calendar(r: IntArray, rule: Participation, k: int) -> int:
    """sum_i G[s_i, s_i] + 2 sum_{i<j} G[s_i, s_i + (j-i-1) b + 1] for the first ticks s_i of the first k blocks."""
    T, b, starts = r.size, rule.separation, rule.starts(k)
    own = _prefix(r, r)
    total = sum(own[T - s] for s in starts)
    # For one i: row s_i times the sum of all later ones, which begin one tick later and are b ticks apart.
    without_end = _prefix(r[1:], _comb(r, b, T)[:-1])
    for i, s in enumerate(starts[:-1]):
        left, later = T - s, k - 1 - i
        if left <= 0:
            continue
        if later * b >= left or k * T > _MOST_WORK:  # none of them ends early; or it is too much to tell
            total += 2 * without_end[left - 1]
        else:
            total += 2 * _dot(r[1 : left + 1], _comb(r, b, later)[:left])
    return total


def _squares(v: IntArray) -> int:
    return _dot(v, v)


def _dot(a: IntArray, b: IntArray) -> int:
    """sum a_i b_i of numbers from 0 to 2^40, however many: by halves, no partial sum of which leaves 64 bits."""
    (a1, a0), (b1, b0) = _halves(a), _halves(b)
    return (_sum(a1, b1) << 2 * _LOW) + ((_sum(a1, b0) + _sum(a0, b1)) << _LOW) + _sum(a0, b0)


def _prefix(a: IntArray, b: IntArray) -> list[int]:
    """The partial sums of a_i b_i, exactly, for a_i up to 2^17."""
    b1, b0 = _halves(b)
    high, low = np.cumsum(a * b1), np.cumsum(a * b0)
    return [(int(h) << _LOW) + int(x) for h, x in zip(high, low, strict=True)]


def _halves(v: IntArray) -> tuple[IntArray, IntArray]:
    return v >> _LOW, v & ((1 << _LOW) - 1)


def _sum(a: IntArray, b: IntArray) -> int:
    return int(np.sum(a * b, dtype=np.int64))
