"""Tables for counting under pure privacy: R = [diag d; C], one noisy value a tick and a few weighted interval rows.

optimal-counting 6. The tables come with the package: integers over 2^24, found by a search. Whatever they are, privacy
needs two facts, both checked exactly when a table is loaded: every column of R has l1 norm at most 1, and R has full
column rank. Then L = A (R^T R)^-1 R^T has L R = A, and nothing else about them matters but accuracy.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
from flint import arb, arb_mat, fmpz_mat
from numpy.typing import NDArray

from evertally.balls import certain
from evertally.counting.process import FloatArray
from evertally.errors import StateError

GRID = 2**24
# 1000 times the cube root of V = 2 max ||L_t||^2: how levels divide a budget. Accuracy only; integers, so that the same
# horizon always leads to the same fractions.
ROOTS = {16: 2489, 32: 2797, 64: 3132, 128: 3470, 256: 3834, 512: 4209, 1024: 4564}
_PRECISION = 256
_SHARP = 2.0**-120

Integers = NDArray[np.int64]
Draw = Callable[[int], arb]


@dataclass(frozen=True, eq=False)
class BlockTable:
    """d (n ticks) and the nonzero entries of C (k rows), column by column; all over 2^24.

    >>> table = block_table(64)
    >>> table.n, table.k, round(2 * float(table.energies.max()), 2)
    (64, 4, 30.72)
    """

    d: Integers
    row: Integers
    col: Integers
    value: Integers

    def __post_init__(self) -> None:
        """The certificate (optimal-counting 6), in integers. A column without a value of its own has d = 0; if such
        columns of C are independent then all columns of R are."""
        ordered = np.diff(self.col) > 0
        if not (ordered | ((np.diff(self.col) == 0) & (np.diff(self.row) > 0))).all():
            raise StateError("the entries of this table are not in the order of columns and rows, each once")
        sums = self.d + np.bincount(self.col, np.abs(self.value), self.n).astype(np.int64)  # below 2^53: exact
        bare = self.dense[:, self.d == 0]
        if (self.d < 0).any() or sums.max() > GRID or fmpz_mat(bare.tolist() or [[]]).rank() < bare.shape[1]:
            raise StateError("this is not a table whose sensitivity is at most 1")

    @property
    def n(self) -> int:
        return len(self.d)

    @cached_property
    def k(self) -> int:
        return int(self.row.max()) + 1

    @property
    def rows(self) -> int:
        """Addresses of a block: n ticks, then k interval rows."""
        return self.n + self.k

    @cached_property
    def dense(self) -> Integers:
        C = np.zeros((self.k, self.n), dtype=np.int64)
        C[self.row, self.col] = self.value
        return C

    @cached_property
    def starts(self) -> Integers:
        """Where the entries of each column of C begin."""
        return np.searchsorted(self.col, np.arange(self.n + 1)).astype(np.int64)

    @cached_property
    def digest(self) -> str:
        parts = (self.d, self.row, self.col, self.value)
        return hashlib.sha256(b"".join(part.astype("<i8").tobytes() for part in parts)).hexdigest()

    @cached_property
    def bare(self) -> list[int]:
        """Ticks without a value of their own."""
        return np.flatnonzero(self.d == 0).tolist()

    @cached_property
    def inverse(self) -> FloatArray:
        """H: residuals h of the interval rows, then x of the bare ticks, from z2 - C_N (z1/d). Each entry is within
        2^-53 of its size, and 2^-119, of the true one."""

        def rounded() -> list[list[float]] | None:
            H = self.inverse_ball()
            entries = [[H[i, j] for j in range(self.k)] for i in range(self.k + len(self.bare))]
            sharp = all(float(entry.rad()) < _SHARP for row in entries for entry in row)
            return [[float(entry.mid()) for entry in row] for row in entries] if sharp else None

        return np.array(certain(rounded, _PRECISION))

    def inverse_ball(self) -> arb_mat:
        """[[1 + C_N d^-2 C_N^T, C_Z], [C_Z^T, 0]]^-1, at the precision of the moment."""
        k, z = self.k, len(self.bare)
        M = [[arb(int(i == j and i < k)) for j in range(k + z)] for i in range(k + z)]
        for tick in range(self.n):
            entries = self.entries(tick)
            for i, c in entries:
                if self.d[tick]:
                    for j, other in entries:
                        M[i][j] += arb(c * other) / int(self.d[tick]) ** 2
                else:
                    at = k + self.bare.index(tick)
                    M[i][at] = M[at][i] = arb(c) / GRID
        return arb_mat(M).inv()

    def entries(self, tick: int) -> list[tuple[int, int]]:
        """Rows and values of C at a tick, counted from 0."""
        return self._entries[tick]

    @cached_property
    def _entries(self) -> list[list[tuple[int, int]]]:
        both = list(zip(self.row.tolist(), self.value.tolist(), strict=True))
        return [both[first:last] for first, last in pairwise(self.starts.tolist())]

    @cached_property
    def _inverses(self) -> dict[int, arb_mat]:
        return {}  # by the number of bits they were made for; any true ball will do

    def path_ball(self, draw: Draw, bits: int) -> list[arb]:
        """Prefix sums of x, by balls at the precision of the moment; `draw(i)` is the variate of row i, from `bits`."""
        if bits not in self._inverses:
            self._inverses[bits] = self.inverse_ball()
        k = self.k
        weights = self.d.tolist()
        own = [draw(t) * GRID / d if d else arb(0) for t, d in enumerate(weights)]
        right = [draw(self.n + i) for i in range(k)]
        for tick, d in enumerate(weights):
            if d:
                for i, c in self.entries(tick):
                    right[i] -= own[tick] * c / GRID
        zeros = [[arb(0)]] * len(self.bare)
        h = self._inverses[bits] * arb_mat([[x] for x in right] + zeros)
        path, total = [], arb(0)
        for tick, d in enumerate(weights):
            if d:
                corrected = sum((h[i, 0] * c for i, c in self.entries(tick)), arb(0))
                total += own[tick] + corrected * GRID / d**2
            else:
                total += h[k + self.bare.index(tick), 0]
            path.append(total)
        return path

    @cached_property
    def nested(self) -> FloatArray:
        """What bounds the path and all its intermediate sums for |z| <= 1: prefix sums of 1/d + |C^T|/d^2 |H| (1 + |C|
        1/d), rounded up generously."""
        d, C, k = self.d / GRID, np.abs(self.dense) / GRID, self.k
        own = np.divide(1.0, d, out=np.zeros(self.n), where=d > 0)
        h = np.abs(self.inverse) @ (1 + C @ own)
        x = own + (C.T @ h[:k]) * own**2
        x[self.bare] = h[k:]
        return np.cumsum(x) * (1 + 2.0**-20)

    @cached_property
    def weights(self) -> FloatArray:
        """L with a row of zeros before it, and a column for each address (0 where d = 0). Accuracy only."""
        d, C, k = self.d / GRID, self.dense / GRID, self.k
        own = np.diag(np.divide(1.0, d, out=np.zeros(self.n), where=d > 0))  # of z_t, in x_t: as in `path_ball`
        h = _product(self.inverse, np.hstack([-C * own.diagonal(), np.eye(k)]))
        x = np.hstack([own, np.zeros((self.n, k))]) + _product(C.T, h[:k]) * (own.diagonal() ** 2)[:, None]
        x[self.bare] = h[k:]
        return np.vstack([np.zeros(self.rows), np.cumsum(x, axis=0)])

    @cached_property
    def energies(self) -> FloatArray:
        """Squared norms of the rows of `weights`."""
        return np.asarray((self.weights**2).sum(axis=1))

    @cached_property
    def peaks(self) -> FloatArray:
        """The largest weight of each row."""
        return np.asarray(np.abs(self.weights).max(axis=1))


def _product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A B, added up in the order of the columns of A. A library for it adds up as suits the processor, and error bars
    would differ in their last digits from machine to machine."""
    found = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[1]):
        found += A[:, i : i + 1] * B[i]
    return found


@lru_cache(maxsize=7)
def block_table(n: int) -> BlockTable:
    """The table for n ticks that comes with the package."""
    data = files("evertally.counting").joinpath("tables", "pure_blocks.npz").read_bytes()
    with np.load(io.BytesIO(data), allow_pickle=False) as kept:
        return BlockTable(*(kept[f"{name}_{n}"].astype(np.int64) for name in ("d", "row", "col", "value")))


@lru_cache(maxsize=64)
def sizes_for(horizon: int) -> tuple[int, ...]:
    """The tables whose product is the least that reaches the horizon, with the least error among those.

    >>> sizes_for(1000), sizes_for(2**16), sizes_for(2**20), sizes_for(5)
    ((1024,), (256, 256), (1024, 1024), (16,))
    """
    bits = max(4, (horizon - 1).bit_length())
    return min(_products(bits), key=lambda sizes: (sum(ROOTS[n] for n in sizes), sizes))


def _products(bits: int, least: int = 4) -> list[tuple[int, ...]]:
    """All ways to write 2^bits as a product of sizes that do not fall."""
    ways: list[tuple[int, ...]] = [(2**bits,)] if least <= bits <= 10 else []
    for first in range(least, min(10, bits - least) + 1):
        ways += [(2**first, *rest) for rest in _products(bits - first, first)]
    return ways
