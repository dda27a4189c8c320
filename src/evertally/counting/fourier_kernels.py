"""The transforms themselves, compiled by numba. Forward leaves the spectrum in bit-reversed order, backward takes it
from there; no permutation is needed in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.noise.jit import jit

FloatArray = NDArray[np.float64]

_BLOCK = 1 << 14  # blocks of this many entries stay in the processor's cache for all their passes


# Two passes at once, in registers: the same operations on the same numbers as one after the other, so the same bits and
# the same bound. Slices have no overlap that a compiler would have to fear, and are worked on several at a time.


@jit
def _forward_last(re, im, start, stop):  # type: ignore[no-untyped-def]
    """The pass 1, whose twiddle is 1."""
    for i in range(start, stop, 2):
        xr, xi = re[i] - re[i + 1], im[i] - im[i + 1]
        re[i] += re[i + 1]
        im[i] += im[i + 1]
        re[i + 1], im[i + 1] = xr, xi


@jit
def _forward_two(re, im, start, stop, h, wr, wi):  # type: ignore[no-untyped-def]
    """The passes h and h/2."""
    q = h // 2
    ur, ui, vr, vi = wr[h : h + q], wi[h : h + q], wr[h + q : 2 * h], wi[h + q : 2 * h]
    tr, ti = wr[q:h], wi[q:h]
    for a in range(start, stop, 2 * h):
        b, c, d, e = a + q, a + 2 * q, a + 3 * q, a + 4 * q
        r0, r1, r2, r3 = re[a:b], re[b:c], re[c:d], re[d:e]
        i0, i1, i2, i3 = im[a:b], im[b:c], im[c:d], im[d:e]
        for k in range(q):
            xr, xi = r0[k] - r2[k], i0[k] - i2[k]
            yr, yi = r1[k] - r3[k], i1[k] - i3[k]
            ar, ai = r0[k] + r2[k], i0[k] + i2[k]
            br, bi = r1[k] + r3[k], i1[k] + i3[k]
            cr, ci = xr * ur[k] - xi * ui[k], xr * ui[k] + xi * ur[k]
            dr, di = yr * vr[k] - yi * vi[k], yr * vi[k] + yi * vr[k]
            xr, xi = ar - br, ai - bi
            yr, yi = cr - dr, ci - di
            r0[k], i0[k] = ar + br, ai + bi
            r1[k], i1[k] = xr * tr[k] - xi * ti[k], xr * ti[k] + xi * tr[k]
            r2[k], i2[k] = cr + dr, ci + di
            r3[k], i3[k] = yr * tr[k] - yi * ti[k], yr * ti[k] + yi * tr[k]


@jit
def _backward_pass(re, im, start, stop, h, wr, wi):  # type: ignore[no-untyped-def]
    tr, ti = wr[h : 2 * h], wi[h : 2 * h]
    for a in range(start, stop, 2 * h):
        b, c = a + h, a + 2 * h
        r0, r1, i0, i1 = re[a:b], re[b:c], im[a:b], im[b:c]
        for k in range(h):
            xr, xi = r1[k] * tr[k] + i1[k] * ti[k], i1[k] * tr[k] - r1[k] * ti[k]
            r1[k], i1[k] = r0[k] - xr, i0[k] - xi
            r0[k] += xr
            i0[k] += xi


@jit
def _backward_two(re, im, start, stop, q, wr, wi):  # type: ignore[no-untyped-def]
    """The passes q and 2 q."""
    h = 2 * q
    ur, ui, vr, vi = wr[h : h + q], wi[h : h + q], wr[h + q : 2 * h], wi[h + q : 2 * h]
    tr, ti = wr[q:h], wi[q:h]
    for a in range(start, stop, 2 * h):
        b, c, d, e = a + q, a + 2 * q, a + 3 * q, a + 4 * q
        r0, r1, r2, r3 = re[a:b], re[b:c], re[c:d], re[d:e]
        i0, i1, i2, i3 = im[a:b], im[b:c], im[c:d], im[d:e]
        for k in range(q):
            xr, xi = r1[k] * tr[k] + i1[k] * ti[k], i1[k] * tr[k] - r1[k] * ti[k]
            yr, yi = r3[k] * tr[k] + i3[k] * ti[k], i3[k] * tr[k] - r3[k] * ti[k]
            ar, ai = r0[k] + xr, i0[k] + xi
            br, bi = r0[k] - xr, i0[k] - xi
            cr, ci = r2[k] + yr, i2[k] + yi
            dr, di = r2[k] - yr, i2[k] - yi
            xr, xi = cr * ur[k] + ci * ui[k], ci * ur[k] - cr * ui[k]
            yr, yi = dr * vr[k] + di * vi[k], di * vr[k] - dr * vi[k]
            r0[k], i0[k] = ar + xr, ai + xi
            r2[k], i2[k] = ar - xr, ai - xi
            r1[k], i1[k] = br + yr, bi + yi
            r3[k], i3[k] = br - yr, bi - yi


@jit
def forward(re: FloatArray, im: FloatArray, wr: FloatArray, wi: FloatArray) -> None:
    """Decimation in frequency: natural order in, bit-reversed order out."""
    n = re.size
    h = n // 2
    while 2 * h > _BLOCK:
        _forward_two(re, im, 0, n, h, wr, wi)
        h //= 4
    block = 2 * h
    if h >= 1:
        for start in range(0, n, block):
            g = h
            while g >= 2:
                _forward_two(re, im, start, start + block, g, wr, wi)
                g //= 4
            if g == 1:
                _forward_last(re, im, start, start + block)


@jit
def backward(re: FloatArray, im: FloatArray, wr: FloatArray, wi: FloatArray) -> None:
    """Decimation in time with conjugate twiddles, and the division by N, which is exact."""
    n = re.size
    block = min(n, _BLOCK)
    for start in range(0, n, block):
        g = 1
        while 4 * g <= block:
            _backward_two(re, im, start, start + block, g, wr, wi)
            g *= 4
        if 2 * g <= block:
            _backward_pass(re, im, start, start + block, g, wr, wi)
    h = block
    while 4 * h <= n:
        _backward_two(re, im, 0, n, h, wr, wi)
        h *= 4
    if 2 * h <= n:
        _backward_pass(re, im, 0, n, h, wr, wi)
    scale = 1.0 / n
    for i in range(n):
        re[i] *= scale
        im[i] *= scale


@jit
def multiply(re: FloatArray, im: FloatArray, other_re: FloatArray, other_im: FloatArray) -> None:
    for i in range(re.size):
        a, b = re[i], im[i]
        re[i] = a * other_re[i] - b * other_im[i]
        im[i] = a * other_im[i] + b * other_re[i]
