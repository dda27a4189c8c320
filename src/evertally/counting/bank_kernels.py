"""Loops over ticks for banks: plain functions, compiled by numba; each works the same interpreted.

Additions, multiplications, quotients and square roots in a fixed order: no fused operations, no reordering.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from evertally.noise.jit import jit

UNIT = 2.0**-53
REDO = np.iinfo(np.int64).min  # marks a tick that floats leave open
MOST = 2.0**50  # a float that is not below it (or is none) decides nothing, as with double words
REFRESH = 16


def power(d: float, s: float, be: float, m: int) -> float:
    """m times d -> s + be d/(be + d): a Moebius map with fixed points x1 > 0 > x2."""
    if m == 0:
        return d
    x1 = 0.5 * (s + math.sqrt(s * s + 4 * s * be))
    x2 = -s * be / x1
    k = be / (be + x1)
    e = 2 * m
    u = (d - x1) / (d - x2)
    while e:
        if e & 1:
            u = u * k
        k = k * k
        e >>= 1
    return max((x1 - u * x2) / (1 - u), 1e-300)


def diagonal(p: Any, q: Any, lengths: Any, s: float, w: float, out: Any, transposed: bool) -> Any:
    """out += w diag (B^T B + s)^-1 (transposed: B B^T) at the middle tick of each segment; gives the d of the first
    sweep there."""
    n = p.shape[0]
    mid = np.empty(n)
    for sweep in range(2):
        d = s
        up = transposed == (sweep == 0)
        for x in range(n):
            i, j = (x, x - 1) if up else (n - 1 - x, n - x)
            be = 1.0 / (p[i] * q[i])
            if x > 0:
                link = 1.0 / (q[max(i, j)] * p[min(i, j)])
                d = s + link * d / (1.0 / (p[j] * q[j]) + d) if sweep == 0 else s + be * d / (link + d)
            elif sweep == 1:
                d = s + be
            before = lengths[i] - 1 - lengths[i] // 2 if up else lengths[i] // 2
            d = power(d, s, be, before)
            if sweep == 0:
                mid[i] = d
            else:
                out[i] += w / ((mid[i] - s) + d)
            d = power(d, s, be, lengths[i] - 1 - before)
    return mid


def gains(a: Any, q: Any, w: Any, lengths: Any) -> Any:
    """Kalman gains K and innovation deviations r of the bank, averaged over each segment."""
    n, Q = a.shape
    P = np.zeros((Q, Q))
    g = np.empty(Q)
    K = np.zeros((n, Q))
    r = np.zeros(n)
    for i in range(n):
        for _ in range(lengths[i]):
            S = 0.0
            for k in range(Q):
                new = w[k] * q[i] * a[i, k]
                g[k] = new
                for j in range(Q):
                    P[k, j] = P[k, j] * a[i, k] * a[i, j]
                    g[k] += P[k, j]
                P[k, k] += new
                S += g[k]
            r[i] += math.sqrt(S) / lengths[i]
            for k in range(Q):
                K[i, k] += g[k] / S
            for k in range(Q):
                for j in range(Q):
                    P[k, j] -= g[k] * g[j] / S
        S = 0.0
        for k in range(Q):
            S += K[i, k]
        for k in range(Q):
            K[i, k] *= (1 - 2.0**-48) / S  # so that the exact sum is at most 1: then R >= 0
    return K, r


def sensitivities(a: Any, K: Any, r: Any, lengths: Any, lam: float, safety: float) -> Any:
    """Upper bounds of max ||R e_j||^2 over each segment, and the last matrix (optimal-counting 2.4, supersolution).

    `safety` 1.0: rounding errors are paid for, in gamma = (2Q + 16) u; 0.0: the plain recursion, for comparison.
    """
    n, Q = a.shape
    gamma = safety * (2 * Q + 16) * UNIT
    M = np.zeros((Q + 1, Q + 1))
    s = np.empty(Q + 1)
    b = np.empty(Q + 1)
    top = np.zeros(n)
    for i in range(n - 1, -1, -1):
        for _ in range(lengths[i]):
            sig = 1.0 / (r[i] * r[i])
            mag = sig
            for x in range(Q + 1):
                s[x] = 0.0
                b[x] = 0.0
                for y in range(Q):
                    s[x] += M[x, y] * K[i, y]
                    b[x] += abs(M[x, y] * K[i, y])
            for x in range(Q):
                sig += K[i, x] * s[x]
                mag += K[i, x] * b[x]
            last = abs(M[Q, Q]) + 2 * b[Q] + mag
            for x in range(Q):
                e = abs(M[x, Q]) + b[Q] + b[x] + mag
                last += a[i, x] * e
                for y in range(Q):
                    e += a[i, y] * (abs(M[x, y]) + b[x] + b[y] + mag)
                for y in range(x + 1):
                    M[x, y] = a[i, x] * a[i, y] * ((M[x, y] - (s[x] + s[y])) + sig)
                M[x, x] += gamma * a[i, x] * e
                M[x, Q] = a[i, x] * (lam * (M[x, Q] - s[Q]) + (s[x] - sig))
            for x in range(Q):
                M[Q, x] = M[x, Q]
                for y in range(x):
                    M[y, x] = M[x, y]
            M[Q, Q] = (lam * (lam * M[Q, Q] + 2 * s[Q]) + sig) + gamma * last
            top[i] = max(top[i], M[Q, Q])
    return top, M


def neighbours(a: Any, K: Any, r: Any, lengths: Any, variance: Any, covariance: Any) -> None:
    """The variance of each tick, and its covariance with the next one (unit z)."""
    n, Q = a.shape
    C = np.zeros((Q, Q))
    t = 0
    for i in range(n):
        for step in range(lengths[i]):
            following = i if step + 1 < lengths[i] else min(i + 1, n - 1)
            variance[t] = r[i] * r[i]
            covariance[t] = 0.0
            for x in range(Q):
                with_x = K[i, x] * r[i] * r[i]
                for y in range(Q):
                    C[x, y] *= a[i, x] * a[i, y]
                    variance[t] += C[x, y]
                    with_x += C[x, y]
                covariance[t] += a[following, x] * with_x
            for x in range(Q):
                for y in range(Q):
                    C[x, y] += K[i, x] * K[i, y] * r[i] * r[i]
            t += 1


def filtered(
    z: Any,
    radius: Any,
    size: Any,
    a: Any,
    K: Any,
    r: Any,
    ends: Any,
    held: int,
    sigma: float,
    tick: int,
    e: Any,
    err: Any,
    big: Any,
    out: Any,
) -> int:
    """Ticks of one block of columns (optimal-counting 3.2): rounded noise, or REDO where floats leave it open.

    z (ticks, n) with its radius and size for each tick; a, K (segments, Q), r and `ends` (segments), `held` the segment
    of tick + 1; e (Q, n) the states after `tick`, err and big (Q) bounds of |e - truth| and of |e| over the block.
    Returns how many are left open.
    """
    Q, n = e.shape
    acc = np.empty(n)
    nu = np.empty(n)
    left = 0
    for t in range(z.shape[0]):
        while ends[held] <= tick + t:
            held += 1
        rt = r[held]
        refresh = (tick + t) % REFRESH == 0
        largest = rt * size[t] * (1 + 4 * UNIT)
        off = rt * radius[t] + 2 * UNIT * largest
        total = largest
        bound = off
        for i in range(n):
            nu[i] = rt * z[t, i]
            acc[i] = nu[i]
        for k in range(Q):
            ak = a[held, k]
            Kk = K[held, k]
            if refresh:  # sound: big bounds what was computed, and err is never lowered
                top = 0.0
                for i in range(n):
                    top = max(top, abs(e[k, i]))
                big[k] = top
            total += ak * big[k]
            bound += ak * err[k]
            new = (ak * big[k] + Kk * largest) * (1 + 2.0**-40)
            err[k] = (ak * err[k] + Kk * off + 4 * UNIT * new) * (1 + 2.0**-40) + 2.0**-1000
            big[k] = new
            for i in range(n):
                p = ak * e[k, i]
                acc[i] += p
                e[k, i] = p + Kk * nu[i]
        bound = sigma * (bound + (Q + 3) * UNIT * total) * (1 + 2.0**-40) + 2.0**-52
        for i in range(n):
            y = sigma * acc[i]
            d = bound + abs(y) * 2.0**-51
            low = np.floor(y + 0.5 - d)
            if abs(y) < MOST and low == np.floor(y + 0.5 + d):
                out[t, i] = np.int64(low)
            else:
                out[t, i] = REDO
                left += 1
    return left


def filtered_alone(
    z: Any,
    radius: Any,
    size: Any,
    a: Any,
    K: Any,
    r: Any,
    ends: Any,
    held: int,
    sigma: float,
    tick: int,
    e: Any,
    err: Any,
    big: Any,
    out: Any,
) -> int:
    """`filtered` for one column: bounds from its own numbers, so none of |e| is needed."""
    Q = e.shape[0]
    left = 0
    for t in range(z.shape[0]):
        while ends[held] <= tick + t:
            held += 1
        rt = r[held]
        nu = rt * z[t, 0]
        largest = abs(nu)
        off = (rt * radius[t] + 2 * UNIT * largest) * (1 + 2.0**-40)
        x = nu
        total = largest
        bound = off
        for k in range(Q):
            p = a[held, k] * e[k, 0]
            q = K[held, k] * nu
            x += p
            total += abs(p)
            faded = a[held, k] * err[k]
            bound += faded
            err[k] = (faded + K[held, k] * off + 4 * UNIT * (abs(p) + abs(q))) * (1 + 2.0**-40) + 2.0**-1000
            e[k, 0] = p + q
        y = sigma * x
        d = sigma * (bound + (Q + 3) * UNIT * total) * (1 + 2.0**-40) + 2.0**-52 + abs(y) * 2.0**-51
        low = np.floor(y + 0.5 - d)
        if abs(y) < MOST and low == np.floor(y + 0.5 + d):
            out[t, 0] = np.int64(low)
        else:
            out[t, 0] = REDO
            left += 1
    return left


@lru_cache(maxsize=16)
def compiled(name: str) -> Any:
    """One of the functions here as machine code; `diagonal` with its own `power`."""
    function = globals()[name]
    assert isinstance(function, FunctionType)
    if name != "diagonal":
        return jit(function, error_model="numpy")
    linked = FunctionType(function.__code__, {**globals(), "power": jit(power, error_model="numpy")}, name)
    return jit(linked, error_model="numpy")
