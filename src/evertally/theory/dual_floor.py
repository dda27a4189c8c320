"""gamma_2(T) from below, for any T, within 0.3 %: one feasible point of the dual, evaluated from below.

*Weak duality.* Let p, q > 0 on the ticks and W = D_p^(1/2) A D_q^(1/2), A the prefix-sum matrix. For every A = L R the
nuclear norm of W is at most |D_p^(1/2) L|_F |R D_q^(1/2)|_F <= (sum p sum q)^(1/2) times the longest row of L times the
longest column of R. So gamma_2(T) >= |W|_* (sum p sum q)^(-1/2), whatever p and q are.

*This point.* q falls slowly from the first tick to the last, q_t ~ ((ln(T - t + 1) + 1)/(ln t + 1))^(1/2), held
constant on segments, and p = 1/q. Then W^-1 = B is lower bidiagonal, 1 on the diagonal and -(q_(t-1)/q_t)^(1/2) below
it, and |W|_* = tr (B B^T)^(-1/2).

*The root from below.* The trapezoidal sum of x^(-1/2) = (1/pi) int e^(u/2)/(x + e^u) du with step h is x^(-1/2) (1 + e)
with |e| <= 2 sum_(m>0) sech(2 pi^2 m/h) (Poisson), below 8e-6 for h = 3/2; terms are positive, so leaving some out
only lowers it.

*Traces.* D_t = det of the first t rows and columns of B B^T + s: with E_t = D_t - D_(t-1),

    E_t = s D_(t-1) + (q_(t-1)/q_t) E_(t-1),   D_t = D_(t-1) + E_t,   tr (B B^T + s)^-1 = D_T'/D_T,

the derivative by s. All of it is a product of T matrices without negative entries, in powers of two at a time: every
entry is a sum of products of positive floats, each of which meets at most 8 roundings a tick. The result is lowered by
32 T 2^-53 and a little more.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LONGEST_DUAL = 2**30  # beyond, roundings are no longer small; gamma_2 does not fall, so its value here is still a floor
_FINE = 4  # a segment is at most this part of the distance to the nearer end
_STEP = 1.5
_POISSON = 8e-6  # 2 sum sech(2 pi^2 m/h)
_BEYOND = 16.0  # how far nodes go beyond the spectrum, in ln x
_SCALED = 8  # segments between two scalings: one tick multiplies by less than 2^30, a power of many by less than 2
_FLOAT = 2.0**-30  # exponentials, quotients and sums besides those of the product


@lru_cache(maxsize=64)
def dual_lower(T: int) -> float:
    """A certified lower bound on gamma_2(T). Time: O(log T) small matrices, below 0.2 s.

    >>> [round(dual_lower(T), 3) for T in (4, 1024, 2**20)]  # gamma_2: 1.326, 2.961, 5.142
    [1.323, 2.958, 5.138]
    """
    T = min(T, LONGEST_DUAL)
    lengths = np.array(_segments(T))
    middle = np.cumsum(lengths) - (lengths - 1) / 2
    q = np.sqrt((np.log(T - middle + 1) + 1) / (np.log(middle) + 1))
    s = np.exp(np.arange(-2 * math.log(T) - _BEYOND, math.log(8) + _BEYOND, _STEP))
    traces = _traces(lengths, q, s)
    norm = float(np.sum(np.sqrt(s) * traces)) * _STEP / math.pi
    weights = float(np.sum(lengths * q)) * float(np.sum(lengths / q))
    return norm / math.sqrt(weights) / (1 + _POISSON) * (1 - _FLOAT - 32 * T * 2.0**-53)


def _segments(T: int) -> list[int]:
    """Lengths that are powers of two, small near both ends.

    >>> _segments(40)[::8], sum(_segments(40))
    ([1, 2, 2, 1], 40)
    """
    lengths, done = [], 0
    while done < T:
        n = 1 << (max(1, min(done, T - done) // _FINE).bit_length() - 1)
        while n > 1 and n * _FINE > T - done - n:
            n //= 2
        lengths.append(n)
        done += n
    return lengths


def _traces(lengths: NDArray[np.int64], q: Floats, s: Floats) -> Floats:
    """tr (B B^T + s)^-1 for each s."""
    one, nothing = np.ones_like(s), np.zeros_like(s)
    # The matrix of 2^j ticks within a segment, and its derivative; shapes (2, 2, nodes).
    power, slope = np.array([[1 + s, one], [s, one]]), np.array([[one, nothing], [one, nothing]])
    powers = [(power, slope)]
    while len(powers) < int(lengths.max()).bit_length():
        power, slope = _times(power, power), _times(slope, power) + _times(power, slope)
        scale = np.exp2(-np.floor(np.log2(power[0, 0])))  # a power of two: exact
        power, slope = power * scale, slope * scale
        powers.append((power, slope))
    D, E, dD, dE = one, nothing, nothing, nothing
    for i, n in enumerate(lengths.tolist()):
        ratio = float(q[i - 1] / q[i]) if i else 1.0
        dE = D + s * dD + ratio * dE
        E = s * D + ratio * E
        D, dD = D + E, dD + dE
        for j in range((n - 1).bit_length()):  # n is a power of two: n - 1 ticks are all the smaller ones
            ((a, b), (c, d)), ((da, db), (dc, dd)) = powers[j]
            dD, dE = a * dD + b * dE + da * D + db * E, c * dD + d * dE + dc * D + dd * E
            D, E = a * D + b * E, c * D + d * E
        if i % _SCALED == 0:
            scale = np.exp2(-np.floor(np.log2(D)))
            D, E, dD, dE = D * scale, E * scale, dD * scale, dE * scale
    return np.asarray(dD / D)


def _times(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("ijn,jkn->ikn", a, b))
