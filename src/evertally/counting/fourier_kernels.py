"""The transforms themselves, compiled by numba. Forward leaves the spectrum in bit-reversed order, backward takes it
from there; no permutation is needed in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.noise.jit import jit

FloatArray = NDArray[np.float64]

_BLOCK = 1 << 14  # blocks of this many entries stay in the processor's cache for all their passes


@jit
def _forward_pass(re, im, start, stop, h, wr, wi):  # type: ignore[no-untyped-def]
    for base in range(start, stop, 2 * h):
        for k in range(h):
            i = base + k
            j = i + h
            xr, xi = re[i] - re[j], im[i] - im[j]
            re[i] += re[j]
            im[i] += im[j]
            re[j] = xr * wr[h + k] - xi * wi[h + k]
            im[j] = xr * wi[h + k] + xi * wr[h + k]


@jit
def _backward_pass(re, im, start, stop, h, wr, wi):  # type: ignore[no-untyped-def]
    for base in range(start, stop, 2 * h):
        for k in range(h):
            i = base + k
            j = i + h
            xr = re[j] * wr[h + k] + im[j] * wi[h + k]
            xi = im[j] * wr[h + k] - re[j] * wi[h + k]
            re[j] = re[i] - xr
            im[j] = im[i] - xi
            re[i] += xr
            im[i] += xi


@jit
def forward(re: FloatArray, im: FloatArray, wr: FloatArray, wi: FloatArray) -> None:
    """Decimation in frequency: natural order in, bit-reversed order out."""
    n = re.size
    h = n // 2
    while 2 * h > _BLOCK:
        _forward_pass(re, im, 0, n, h, wr, wi)
        h //= 2
    block = 2 * h
    if h >= 1:
        for start in range(0, n, block):
            g = h
            while g >= 1:
                _forward_pass(re, im, start, start + block, g, wr, wi)
                g //= 2


@jit
def backward(re: FloatArray, im: FloatArray, wr: FloatArray, wi: FloatArray) -> None:
    """Decimation in time with conjugate twiddles, and the division by N, which is exact."""
    n = re.size
    block = min(n, _BLOCK)
    for start in range(0, n, block):
        g = 1
        while 2 * g <= block:
            _backward_pass(re, im, start, start + block, g, wr, wi)
            g *= 2
    h = block
    while h < n:
        _backward_pass(re, im, 0, n, h, wr, wi)
        h *= 2
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
