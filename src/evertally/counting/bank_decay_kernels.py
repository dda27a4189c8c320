"""Loops over ticks for the coefficients of a decaying bank: plain functions, compiled by numba.

Those of bank_kernels.py with a decay in them. They are others, not the same with one parameter more, because what is
built without a decay must stay the same to the last bit.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from evertally.noise.jit import jit


def moved(d: float, s: float, over: float, under: float, m: int) -> float:
    """m times d -> s + over d/(under + d): a Moebius map with fixed points x1 > 0 > x2."""
    if m == 0:
        return d
    b = s + over - under
    root = math.sqrt(b * b + 4 * s * under)
    # The positive one without cancellation, whichever sign b has.
    x1 = 0.5 * (b + root) if b > 0 else 2 * s * under / (root - b)
    x2 = -s * under / x1
    k = over * under / ((under + x1) * (under + x1))
    u = (d - x1) / (d - x2)
    e = m
    while e:
        if e & 1:
            u = u * k
        k = k * k
        e >>= 1
    return max((x1 - u * x2) / (1 - u), 1e-300)


def decayed_diagonal(p: Any, q: Any, lengths: Any, lam: float, s: float, w: float, out: Any, transposed: bool) -> Any:
    """out += w diag (B^T B + s)^-1 (transposed: B B^T) at the middle tick of each segment, B = D_q^-1/2 W^-1 D_p^-1/2;
    gives the d of the first sweep there."""
    n = p.shape[0]
    squared = lam * lam
    mid = np.empty(n)
    for sweep in range(2):
        d = s
        up = transposed == (sweep == 0)
        for x in range(n):
            i, j = (x, x - 1) if up else (n - 1 - x, n - x)
            be = 1.0 / (p[i] * q[i])
            if x > 0:
                link = squared / (q[max(i, j)] * p[min(i, j)])
                d = s + link * d / (1.0 / (p[j] * q[j]) + d) if sweep == 0 else s + be * d / (link + d)
            elif sweep == 1:
                d = s + be
            over, under = (squared * be, be) if sweep == 0 else (be, squared * be)
            before = lengths[i] - 1 - lengths[i] // 2 if up else lengths[i] // 2
            d = moved(d, s, over, under, before)
            if sweep == 0:
                mid[i] = d
            else:
                out[i] += w / ((mid[i] - s) + d)
            d = moved(d, s, over, under, lengths[i] - 1 - before)
    return mid


def tails(p: Any, lengths: Any, lam: float) -> Any:
    """sum_(i >= t) p_i lam^(2(i-t)) at the middle tick t of each segment."""
    n = p.shape[0]
    squared = lam * lam
    out = np.empty(n)
    after = 0.0
    for i in range(n - 1, -1, -1):
        for half in range(2):
            e = 1 + lengths[i] // 2 if half == 0 else lengths[i] - 1 - lengths[i] // 2
            faded = 1.0
            base = squared
            while e:
                if e & 1:
                    faded = faded * base
                base = base * base
                e >>= 1
            after = p[i] * (1 - faded) / (1 - squared) + faded * after
            if half == 0:
                out[i] = after
    return out


@lru_cache(maxsize=4)
def compiled(name: str) -> Any:
    """One of the functions here as machine code; `decayed_diagonal` with its own `moved`."""
    function = globals()[name]
    assert isinstance(function, FunctionType)
    if name != "decayed_diagonal":
        return jit(function, error_model="numpy")
    linked = FunctionType(function.__code__, {**globals(), "moved": jit(moved, error_model="numpy")}, name)
    return jit(linked, error_model="numpy")
