"""One level of blocks in floats: two passes over each block, k + 2 numbers of state a column, and a bound that holds.

optimal-counting 6, low state. First pass: draws into the k right-hand sides; then a product with the inverse; second
pass: z of each tick drawn again from its address, about five multiplications a tick.

Bound [D, here with carried sums]. Every value that is computed on the way is a sum of products whose sizes, with |z| at
most `size`, add up to at most size * nested_j (block_table.py). A term meets: z/d 1 rounding; the product with C 1; its
carried sum 1, one more for what carrying leaves (n^2 u^2), 2 to close it and add z2; the stored inverse 1; the product
with it k; C^T h nonzeros + 1, d^2 and the quotient 3, the addition to z/d 1; the carried prefix sum 2. Together at most
k + nonzeros + 14; k + nonzeros + 24 is taken. Radii of z go through the same sums.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from flint import arb

from evertally.counting import block_kernels as kernels
from evertally.counting.block_table import BlockTable
from evertally.counting.process import FloatArray
from evertally.noise import Source
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.secret import Secret

_UNIT = 2.0**-53
_AT_ONCE = 1 << 14  # numbers drawn at once

Rows = tuple[FloatArray, FloatArray]  # centres (ticks, columns), and a radius for each tick


class BlockLevel(Secret):
    """Prefix noise of a level at its own ticks 0, 1, 2, ..., with the levels above it added."""

    def __init__(
        self, table: BlockTable, scale: float, columns: int, source: Source, lane: str, above: BlockLevel | None
    ) -> None:
        self.table, self.scale, self.above = table, scale, above
        self._columns, self._source, self._lane = columns, source, lane
        self._law = RealLaw("laplace", f"block {scale.hex()} {table.digest}")
        self._d, self._value = table.d / 2.0**24, table.value / 2.0**24
        self._bare = np.array(table.bare, dtype=np.int64)
        self._terms = table.k + int(np.diff(table.starts).max()) + 24
        self._rows: dict[int, WeightedRow] = {}  # public; there are as many as the table has rows
        self._at: tuple[int, int] | None = None  # block, and how many of its rows the states below have walked
        self._last: tuple[int, Rows] | None = None  # a tick that was asked for alone: the level below asks again

    def share(self, row: int) -> tuple[float, float]:
        """What a row contributes: the sum of its squared weights, and the largest weight, with the scale."""
        return self.scale**2 * float(self.table.energies[row]), self.scale * float(self.table.peaks[row])

    def row(self, row: int) -> WeightedRow:
        """A row, as spreads want to know it."""
        found = self._rows.get(row)
        if found is None:
            found = self._rows[row] = WeightedRow(self.table, self.scale, row)
        return found

    def squares(self, row: int, other: int) -> FloatArray:
        """The squared weights, with the scale, of the difference of two rows of one block."""
        weights = self.weights(row) - self.weights(other)
        return np.asarray(weights * weights)

    def weights(self, row: int) -> FloatArray:
        """The weights of a row, with the scale."""
        return np.asarray(self.scale * self.table.weights[row])

    def rows(self, tick: int, count: int) -> Rows:
        """Of the ticks tick .. tick + count - 1, all of one block, or the first of the next."""
        if self._last is not None and (self._last[0], 1) == (tick, count):
            return self._last[1]
        n = self.table.n
        block, first = divmod(tick, n) if self.above is not None else (0, tick)
        centre, radius = np.zeros((count, self._columns)), np.zeros(count)
        inside = min(count, n - first) if self.above is not None else count
        skipped = int(first == 0)  # row 0 is no noise at all
        if inside > skipped:
            centre[skipped:inside], radius[skipped:inside] = self._walked(block, first + skipped, inside - skipped)
        if self.above is not None:
            for part, b in ((slice(0, inside), block), (slice(inside, count), block + 1)):
                if part.start < part.stop:
                    upper, more = self.above.rows(b, 1)
                    centre[part] += upper
                    # one addition for each level, relative to what was added
                    radius[part] += more + np.abs(centre[part]).max(axis=1, initial=0.0) * 2 * _UNIT
        if count == 1:
            self._last = tick, (centre, radius)
        return centre, radius

    def _walked(self, block: int, first: int, count: int) -> Rows:
        """Rows first .. first + count - 1 of a block, counted from 1."""
        if self._at is None or self._at[0] != block or self._at[1] >= first:
            self._begin(block)
        assert self._at is not None
        while self._at[1] < first - 1:
            self._walk(min(first - 1 - self._at[1], max(1, _AT_ONCE // self._columns)))
        path = self._walk(count)
        bound = (self._terms * _UNIT * self._size + self._radius) * self.table.nested[first - 1 : first - 1 + count]
        # The inverse is off by 2^-119 besides; the product with the scale rounds once.
        radius = self.scale * (bound * (1 + 2.0**-20) + 2.0**-60)
        centre = path * self.scale
        return centre, radius + np.abs(centre).max(axis=1) * 2 * _UNIT

    def _begin(self, block: int) -> None:
        """The first pass over a block."""
        table, k = self.table, self.table.k
        self._at = None
        high, low = np.zeros((k, self._columns)), np.zeros((k, self._columns))
        run, step = kernels.compiled("collected"), max(1, _AT_ONCE // self._columns)
        size = radius = 0.0
        for first in range(0, table.n, step):
            z = self._drawn(block, first, min(table.n, first + step))
            run(z.value, first, self._d, table.starts, table.row, self._value, high, low)
            size, radius = max(size, float(z.size.max())), max(radius, float(z.radius.max()))
        for first in range(0, k, step):
            z = self._drawn(block, table.n + first, table.n + min(k, first + step))
            part = slice(first, first + len(z.value))
            high[part] = (high[part] + low[part]) + z.value
            size, radius = max(size, float(z.size.max())), max(radius, float(z.radius.max()))
        # Not by a library: the bound of every entry is for plain sums of products, in whatever order.
        self._h = np.einsum("ij,jc->ic", table.inverse, high)
        self._high, self._low = np.zeros(self._columns), np.zeros(self._columns)
        self._size, self._radius = size, radius
        self._at = block, 0

    def _walk(self, count: int) -> FloatArray:
        """The second pass, some ticks further."""
        assert self._at is not None
        (block, first), self._at = self._at, None  # nothing is known until it is done
        z = self._drawn(block, first, first + count)
        out, table = np.empty((count, self._columns)), self.table
        columns = table.starts, table.row, self._value, self._bare
        kernels.compiled("walked")(z.value, first, self._d, *columns, self._h, self._high, self._low, out)
        self._at = block, first + count
        return out

    def _drawn(self, block: int, first: int, stop: int) -> Reals | KnownReals:
        start = 1 + block * self.table.rows
        return self._source.reals(self._lane, self._law, range(start + first, start + stop), self._columns)

    def block_ball(self, block: int, column: int, bits: int) -> list[arb]:
        """The path of a block and column by balls, without its scale."""
        start = 1 + block * self.table.rows
        z = self._source.reals(self._lane, self._law, range(start, start + self.table.rows), 1, column)
        return self.table.path_ball(partial(_refined, z, bits), bits)


class WeightedRow:
    """The squared weights of a row, with the scale; they are made when somebody asks for them, and their sum and the
    largest of them are known before: there is one for every tick that is released. Public, unlike the level."""

    __slots__ = "_row", "_scale", "_table", "largest", "total"

    def __init__(self, table: BlockTable, scale: float, row: int) -> None:
        self._table, self._scale, self._row = table, scale, row
        totals, largest = _row_sums(table, scale)
        self.total, self.largest = totals[row], largest[row]

    @property
    def squares(self) -> FloatArray:
        weights = self._scale * self._table.weights[self._row]
        return np.asarray(weights * weights)


@lru_cache(maxsize=64)
def _row_sums(table: BlockTable, scale: float) -> tuple[list[float], list[float]]:
    """Of the squared weights of each row: their sum, and the largest."""
    squares = np.multiply(scale, table.weights, order="C")  # row by row: a sum in another order is rounded otherwise
    squares *= squares
    return squares.sum(axis=1).tolist(), squares.max(axis=1, initial=0.0).tolist()


def _refined(z: Reals | KnownReals, bits: int, row: int) -> arb:
    return z.refine(row, 0, bits)
