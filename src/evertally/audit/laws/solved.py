"""What a change loses under noise with one draw a tick, at the full horizon: a shift of the draws that hides it, found
by a guess and tried in the program.

Such noise is W z with W lower triangular, as large as the horizon squared: too large to be read draw by draw. But only
one shift u has W u = c, the change of all sums from one tick on, and for normal draws mu^2 = sum u_t^2/variance_t.
Where u comes from does not matter: it is planted as the noise of all ticks at once, and the program must release c.

Guesses: where the response to an impulse moves along with it (square roots), the power series of its inverse; for banks
the recursion of their coefficients. A guess that the program does not confirm proves nothing, and nothing is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.audit.gaussian import AnyLaw, fitting, height_of, is_gaussian, sigma_squared
from evertally.counting.choose import build
from evertally.counting.process import FloatArray, IntArray, NoiseProcess
from evertally.noise.reals import KnownReals, RealLaw
from evertally.statistics.linear_options import Linear

_CLOSE = 1e-4  # how far the program's answer may be from the change, in units of it
_BLOCK = 256  # ticks of a bank that are solved at once


@dataclass(frozen=True)
class Solved:
    """What a unit change of a tick loses: mu of all releases, with and without what rounding may hide of it."""

    tick: int
    mu: float
    unrounded: float


class _Planted:
    """The draws of one column, by node, all in one array; it notes lanes and laws."""

    def __init__(self, shifts: FloatArray) -> None:
        self._shifts = shifts
        self.laws: dict[str, AnyLaw] = {}
        self.other = False  # whether something was asked for that is not one draw a tick

    def draws(self, lane: str, law: AnyLaw, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return np.rint(self._values(lane, law, nodes, coordinates)).astype(np.int64)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(self._values(lane, law, nodes, coordinates))

    def _values(self, lane: str, law: AnyLaw, nodes: Iterable[int], coordinates: int) -> FloatArray:
        index = np.fromiter(nodes, dtype=np.int64)
        self.other |= self.laws.setdefault(lane, law) != law or len(self.laws) > 1 or coordinates != 1
        known = (index >= 1) & (index <= len(self._shifts))
        values = np.where(known, self._shifts[np.clip(index - 1, 0, len(self._shifts) - 1)], 0.0)
        return np.repeat((values * height_of(law))[:, None], coordinates, axis=1)

    def order(self, message: bytes) -> bytes:
        return message


@fitting
def response(model: Linear, shifts: FloatArray, ticks: int) -> tuple[FloatArray, AnyLaw] | None:
    """What the program releases in its first ticks if draws are shifted so, in one column; None where there is not one
    draw a tick."""
    source = _Planted(shifts)
    released = _one_column(model, source).advance(ticks)[:, 0]
    if source.other or len(source.laws) != 1:
        return None
    (law,) = source.laws.values()
    return released / height_of(law), law


def _one_column(model: Linear, source: Any) -> NoiseProcess:
    return build(model._choice, replace(model._setting, columns=1, slice_width=None), source)


def solved(model: Linear, ticks: int, tried: Iterable[int]) -> list[Solved] | None:
    """What a change of each of these ticks loses in the first `ticks` releases; None where the noise is not of this
    kind, or where the program does not confirm what was guessed.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, mechanism="bank", key=et.simulation(0))
    >>> (found,) = solved(counter, 4096, [1])
    >>> bool(0.99 < found.unrounded <= 1.0)
    True
    """
    impulse = np.zeros(ticks)
    impulse[0] = 1.0
    read = response(model, impulse, ticks)
    if read is None or not is_gaussian([read[1]]) or not read[0][0]:
        return None
    first, law = read
    solve = _bank_solver(model, ticks) or _series_solver(first)
    deviation = math.sqrt(sigma_squared(law))
    # A release is rounded: as if its noise had a variance more. W W' + k grows W W' by no more than 1 + k |W^-1|^2, and
    # |W^-1| is no larger than the sum of a column where columns are alike.
    reach = float(np.abs(solve(impulse)).sum()) / deviation
    rounded = math.sqrt(1 + float(model.noise.spread(ticks).roundings) / 12 * reach**2)
    found = []
    for tick in tried:
        change = (np.arange(1, ticks + 1) >= tick).astype(np.float64)
        shift = solve(change)
        confirmed = response(model, shift, ticks)
        if confirmed is None or not np.allclose(confirmed[0], change, rtol=0, atol=_CLOSE):
            return None
        mu = float(np.linalg.norm(shift)) / deviation
        found.append(Solved(tick, mu / rounded, mu))
    return found


_Solve = Callable[[FloatArray], FloatArray]


def _series_solver(first: FloatArray) -> _Solve:
    """u with first * u = c, as power series: by Newton's steps for 1/first, each with twice as many terms."""
    inverse = np.array([1 / first[0]])
    while inverse.size < first.size:
        n = min(2 * inverse.size, first.size)
        product = _multiplied(first[:n], inverse, n)
        product *= -1
        product[0] += 2
        inverse = _multiplied(inverse, product, n)

    def solve(change: FloatArray) -> FloatArray:
        shift = _multiplied(inverse, change, first.size)
        # One step more takes the error of the transforms away.
        return shift + _multiplied(inverse, change - _multiplied(first, shift, first.size), first.size)

    return solve


def _multiplied(a: FloatArray, b: FloatArray, n: int) -> FloatArray:
    size = 1 << (a.size + b.size - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:n])


def _bank_solver(model: Linear, ticks: int) -> _Solve | None:
    """The same by the recursion of a bank, x = a e + nu, e <- a e + K nu, nu = r z: solved for z, so many ticks at once
    as have the same coefficients."""
    process: Any = model.noise
    bank, sigma = getattr(process, "bank", None), getattr(process, "sigma", None)
    if bank is None or sigma is None:
        return None
    pieces, start = [], 0
    for a, K, r, length in zip(bank.a, bank.K, bank.r, bank.lengths.tolist(), strict=True):
        while length and start < ticks:
            n = min(length, _BLOCK, ticks - start)
            pieces.append((start, n, a, K, float(r)))
            start, length = start + n, length - n
        if start >= ticks:
            break
    if start < ticks:
        return None

    def solve(change: FloatArray) -> FloatArray:
        shift, state, wanted = np.zeros(ticks), np.zeros(bank.a.shape[1]), change / sigma
        known: tuple[Any, FloatArray, FloatArray] | None = None
        for start, n, a, K, r in pieces:
            part = wanted[start : start + n]
            constant = part[0] if (part == part[0]).all() else None
            if n == 1 or constant is None:
                for i, c in enumerate(part.tolist()):
                    nu = c - float(a @ state)
                    state = a * state + K * nu
                    shift[start + i] = nu / r
                continue
            if known is None or known[0] is not K or len(known[1]) < n + 1:
                known = K, *_powers_of(np.diag(a) - np.outer(K, a), K, _BLOCK)
            _, powers, sums = known
            states = powers[: n + 1] @ state + constant * sums[: n + 1]
            shift[start : start + n] = (constant - states[:n] @ a) / r
            state = states[n]
        return shift

    return solve


def _powers_of(matrix: FloatArray, vector: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """M^i for i = 0..n, and (I + M + .. + M^(i-1)) v."""
    powers, sums = np.empty((n + 1, *matrix.shape)), np.zeros((n + 1, len(vector)))
    powers[0] = np.eye(len(vector))
    for i in range(n):
        powers[i + 1] = matrix @ powers[i]
        sums[i + 1] = sums[i] + powers[i] @ vector
    return powers, sums
