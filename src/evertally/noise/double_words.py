"""Numbers of two floats: loops in double-word arithmetic, compiled by numba; each gives the same bits interpreted.

A double word is an unevaluated sum h + l with h = RN(h + l). The algorithms are those of Joldes, Muller and Popescu
(2017): AccurateDWPlusDW, DWTimesFP1 and DWTimesDW1, with relative errors of at most 3u^2/(1 - 4u), 3/2 u^2 + 4 u^3 and
7 u^2, u = 2^-53; below, any of them counts as 8 u^2 = 2^-103 (docs/theory/samplers.md, section 9). Nothing here may be
fused or reordered: that would make the small half of a number another number. All loops that use them stand in this
file, because machine code on disk is made anew when the file of the loop changes, and not when that of what it calls
does.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from evertally.noise.jit import jit

REDO = np.iinfo(np.int64).min  # marks a tick that is left open
CELLS = 32
OCTAVES = 24  # V below 2^-24 is left to balls
DEGREE = 17
PAIRS = 8  # coefficients that are double words; those after them matter too little
UNIT = 2.0**-103  # more than the relative error of any operation here
TINY = 2.0**-800  # more than what an underflow can cost
REFRESH = 16
_SPLIT = 134217729.0  # 2^27 + 1


def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b = s + t exactly."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def two_product(a: float, b: float) -> tuple[float, float]:
    """a b = p + t exactly, without a fused operation (Dekker)."""
    c = _SPLIT * a
    a1 = c - (c - a)
    a2 = a - a1
    c = _SPLIT * b
    b1 = c - (c - b)
    b2 = b - b1
    p = a * b
    return p, a2 * b2 - (((p - a1 * b1) - a2 * b1) - a1 * b2)


def plus(xh: float, xl: float, yh: float, yl: float) -> tuple[float, float]:
    """AccurateDWPlusDW."""
    sh, sl = two_sum(xh, yh)
    th, tl = two_sum(xl, yl)
    c = sl + th
    vh = sh + c
    vl = c - (vh - sh)
    w = tl + vl
    zh = vh + w
    return zh, w - (zh - vh)


def times_float(xh: float, xl: float, y: float) -> tuple[float, float]:
    """DWTimesFP1."""
    ch, c1 = two_product(xh, y)
    c2 = xl * y
    th = ch + c2
    t1 = c2 - (th - ch)
    t2 = t1 + c1
    zh = th + t2
    return zh, t2 - (zh - th)


def times(xh: float, xl: float, yh: float, yl: float) -> tuple[float, float]:
    """DWTimesDW1."""
    ch, c1 = two_product(xh, yh)
    c3 = c1 + (xh * yl + xl * yh)
    zh = ch + c3
    return zh, c3 - (zh - ch)


def fill(words: Any, coefficients: Any, low_parts: Any, high: Any, low: Any) -> int:
    """Writes real variates (reals.py) as double words, from all 127 bits of V in the first round. V below 2^-24 has no
    cell and is written as NaN. Returns how many those are."""
    left = 0
    for i in range(high.shape[0]):
        for j in range(high.shape[1]):
            word = words[i, j, 0]
            top = np.float64(np.int64(word >> np.uint64(11)))  # 53 bits, exactly
            octave = 53 - math.frexp(top)[1]
            if top == 0.0 or octave >= OCTAVES:
                high[i, j] = np.nan
                left += 1
                continue
            o = np.uint64(octave)
            second = words[i, j, 1]
            y = ((word >> np.uint64(1)) << (o + np.uint64(1))) | (second >> (np.uint64(63) - o))
            row = octave * CELLS + np.int64((y >> np.uint64(58)) & np.uint64(31))
            # 58 bits of y and those of the second word behind them: 53 and 53 of these, exactly.
            first = np.int64((y >> np.uint64(5)) & np.uint64(2**53 - 1))
            rest = np.int64(((y & np.uint64(31)) << np.uint64(48)) | ((second << (o + np.uint64(1))) >> np.uint64(16)))
            xh, xl = two_sum(np.float64(first) * 2.0**-53 - 0.5, np.float64(rest) * 2.0**-106)
            tail = coefficients[row, DEGREE]
            for k in range(DEGREE - 1, PAIRS - 1, -1):
                tail = tail * xh + coefficients[row, k]
            zh, zl = times_float(xh, xl, tail)
            zh, zl = plus(zh, zl, coefficients[row, PAIRS - 1], low_parts[row, PAIRS - 1])
            for k in range(PAIRS - 2, -1, -1):
                zh, zl = times(zh, zl, xh, xl)
                zh, zl = plus(zh, zl, coefficients[row, k], low_parts[row, k])
            sign = -1.0 if word & np.uint64(1) else 1.0
            high[i, j] = sign * zh
            low[i, j] = sign * zl
    return left


def filtered(
    high: Any,
    low: Any,
    radius: float,
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
    """Ticks of one block of columns through the filters of a bank: rounded noise, or REDO where it is left open.

    z = high + low (ticks, n), known to `radius`; a, K (segments, Q), r and `ends` (segments), `held` the segment of
    tick + 1; e (2Q, n) the states after `tick`, first their high parts, then the low ones; err and big (Q) bounds of
    |e - truth| and of |e| over the block. Returns how many are left open.
    """
    Q = err.shape[0]
    n = high.shape[1]
    nh, nl = np.empty(n), np.empty(n)
    xh, xl = np.empty(n), np.empty(n)
    left = 0
    for t in range(high.shape[0]):
        while ends[held] <= tick + t:
            held += 1
        rt = r[held]
        refresh = (tick + t) % REFRESH == 0
        size = 0.0
        for i in range(n):
            size = max(size, abs(high[t, i]))
            nh[i], nl[i] = times_float(high[t, i], low[t, i], rt)
            xh[i] = nh[i]
            xl[i] = nl[i]
        largest = rt * size * (1 + 2.0**-50)
        off = rt * radius + 2 * UNIT * largest + TINY
        total = largest
        bound = off
        for k in range(Q):
            ak = a[held, k]
            Kk = K[held, k]
            if refresh:  # sound: big bounds what was computed, and err is never lowered
                top = 0.0
                for i in range(n):
                    top = max(top, abs(e[k, i]))
                big[k] = top * (1 + 2.0**-50)
            total += ak * big[k]
            bound += ak * err[k]
            new = (ak * big[k] + Kk * largest) * (1 + 2.0**-40) + 4 * TINY
            err[k] = (ak * err[k] + Kk * off + 4 * UNIT * new) * (1 + 2.0**-40) + 4 * TINY
            big[k] = new
            for i in range(n):
                ph, pl = times_float(e[k, i], e[Q + k, i], ak)
                xh[i], xl[i] = plus(xh[i], xl[i], ph, pl)
                qh, ql = times_float(nh[i], nl[i], Kk)
                e[k, i], e[Q + k, i] = plus(ph, pl, qh, ql)
        bound = sigma * (bound + (Q + 3) * (UNIT * total + 2 * TINY)) * (1 + 2.0**-40) + TINY
        for i in range(n):
            yh, yl = times_float(xh[i], xl[i], sigma)
            whole = 0.0 if abs(yh) < 0.5 else math.floor(yh + 0.5)
            part = yh - whole  # exact
            d = (bound + 2 * UNIT * abs(yh)) * (1 + 2.0**-40)
            # How far it is beyond the half that is near: y - (whole + 1/2), or y - (whole - 1/2).
            over = (part - 0.5) + yl if part > 0 else (part + 0.5) + yl
            if abs(yh) < 2.0**50 and d < 0.125 and abs(over) > d:
                answer = np.int64(whole)
                if part > 0 and over > 0:
                    answer += 1
                elif part <= 0 and over < 0:
                    answer -= 1
                out[t, i] = answer
            else:
                out[t, i] = REDO
                left += 1
    return left


_PARTS = (two_sum, two_product), (plus, times_float, times)


@lru_cache(maxsize=4)
def compiled(name: str) -> Any:
    """`fill` or `filtered` as machine code."""
    linked: dict[str, Any] = dict(globals())
    for parts in (*_PARTS, (globals()[name],)):
        for part in parts:
            assert isinstance(part, FunctionType)
            function = FunctionType(part.__code__, linked, part.__name__)
            linked = {**linked, part.__name__: jit(function, error_model="numpy")}
    return linked[name]


@lru_cache(maxsize=1)
def trusted() -> bool:
    """Whether machine code does here what is written above, bit for bit: a compiler that fuses or reorders would make
    other low parts, and then nobody must use them."""
    numbers = np.sqrt(np.arange(1.0, 2000.0))  # correctly rounded, and of many digits
    words = (numbers[:40] * 2.0**60).astype(np.uint64).reshape(4, 5, 2)
    words[..., 1] = words[..., 1] * np.uint64(2**20 + 7)
    rows = OCTAVES * CELLS
    coefficients = np.tile(numbers[1 : DEGREE + 2] * 2.0 ** -np.arange(0.0, 5 * DEGREE + 1, 5.0), (rows, 1))
    low_parts = np.tile(numbers[60 : 60 + PAIRS] * 2.0**-58, (rows, 1))
    a, K, r = 1 / numbers[1:7].reshape(2, 3), 0.25 / numbers[9:15].reshape(2, 3), numbers[2:4]
    made = []
    for of in (compiled, lambda name: globals()[name]):
        high, low = np.empty((4, 5)), np.empty((4, 5))
        e, err, big, out = np.zeros((6, 5)), np.zeros(3), np.zeros(3), np.empty((4, 5), dtype=np.int64)
        of("fill")(words, coefficients, low_parts, high, low)
        of("filtered")(high, low, 2.0**-98, a, K, r, np.array([2, 4]), 0, 99.5, 0, e, err, big, out)
        made.append((high, low, e, out))
    return all(np.array_equal(one, other) for one, other in zip(*made, strict=True))
