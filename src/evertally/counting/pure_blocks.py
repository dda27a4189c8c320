"""Counting under pure privacy by blocks: about a quarter of the variance of a tree of the best radix.

optimal-counting 6 [R, reviewed twice; the enclosure D]. A block of n ticks has n + k independent real Laplace numbers z
of scale D1/eps and a table R whose columns have l1 norm at most 1 (block_table.py); its noise is L z, L = A (R^T R)^-1
R^T. An event at tick j of a block moves z by column j of R at most, which hides it: eps-DP, adaptive streams included.
Levels: T = n_1 n_2 ..., level i + 1 counts the blocks of level i; an event is in one block of each level, and eps is
divided between them as V_i^(1/3), in fractions. At tick t = n_1 b + j: row j of level 1 (none for j = 0) plus row b of
the level above, and one rounding of the sum, correct to the last integer: floats with a bound, then balls.

Error: variance V (D1/eps)^2, V at most 95 / 451 / 760 at T = 2^10 / 2^16 / 2^20 (trees: 486 / 1910 / 3738). Time about
50 ns a tick and coordinate for many coordinates, 1 us for one; memory 32 (k + 2) bytes a coordinate and level, k <= 56.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import decided
from evertally.bounds.tails import Spread
from evertally.counting.block_level import BlockLevel, WeightedRow
from evertally.counting.block_table import ROOTS, block_table, sizes_for
from evertally.counting.block_tails import RowSpread, Squares, path_radius
from evertally.counting.process import FloatArray, IntArray, check_horizon, round_half_up
from evertally.errors import ConfigurationError
from evertally.noise import Source
from evertally.privacy import Change, PureDP
from evertally.secret import Secret

_AT_ONCE = 1 << 14  # numbers made at once
_LAST_RESORT = 2**15  # bits
_GUARD = 64
_KEPT_PATHS = 32  # of blocks, by balls


class PureBlocksProcess(Secret):
    """Noise of blocks.

    >>> from evertally.noise import simulation
    >>> source = simulation(0).source("demo")
    >>> process = PureBlocksProcess(PureDP(1), Change(1, 1, 1), horizon=2**16, columns=1, source=source)
    >>> round(process.worst().stddev ** 2)
    450
    """

    def __init__(
        self, charge: PureDP, change: Change, *, horizon: int, columns: int, source: Source, lane: str = "blocks"
    ) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self.tick = 0
        sizes = self._sizes = sizes_for(horizon)
        self._unit = float_above(change.l1 / charge.exact_epsilon)
        self.shares = shares_of(charge.exact_epsilon, sizes)
        self._levels: list[BlockLevel] = []
        for i in reversed(range(len(sizes))):
            above = self._levels[0] if self._levels else None
            scale = float_above(change.l1 / self.shares[i])
            level = BlockLevel(block_table(sizes[i]), scale, columns, source, f"{lane}-{i}", above)
            self._levels.insert(0, level)
        # |z| is below 40 but for 1e-17, and sum_i |L_ti| <= sqrt(rows V/2).
        reach = sum(
            level.scale * 40 * math.sqrt(level.table.rows * level.table.energies.max()) for level in self._levels
        )
        if not reach < 2.0**50:
            raise ConfigurationError(
                "the noise would leave the range of exact numbers; choose another budget or horizon"
            )
        self._rows, self._start = np.empty((0, columns), dtype=np.int64), 0  # the noise of ticks _start+1, ...: secret
        # Some ticks, and the rows of the levels above that they share; of a single level, all ticks and none.
        self._above: tuple[int, float, list[WeightedRow]] = (0, math.inf if len(sizes) == 1 else 0, [])
        self._balls: OrderedDict[tuple[int, int, int, int], list[arb]] = OrderedDict()

    def advance(self, count: int = 1) -> IntArray:
        start, stop = self.tick, self.tick + count
        check_horizon(self, stop)
        first = self._start
        if first <= start and stop <= first + len(self._rows):
            self.tick = stop
            return self._rows[start - first : stop - first]  # not to be written to
        out = np.empty((count, self.columns), dtype=np.int64)
        done = start
        while done < stop:
            if not self._start <= done < self._start + len(self._rows):
                self._make(done, stop)
            last = min(stop, self._start + len(self._rows))
            out[done - start : last - start] = self._rows[done - self._start : last - self._start]
            done = last
        self.tick = stop
        return out

    def seek(self, tick: int) -> None:
        self.tick = tick

    def _make(self, done: int, wanted: int) -> None:
        """The noise of ticks after `done`, within one block."""
        assert self.horizon is not None
        n = self._levels[0].table.n
        room = max(1, _AT_ONCE // self.columns)
        few = self.columns <= 64  # then the rest of a block is made ahead
        stop = min(self.horizon, (done // n + 1) * n, done + room if few else min(wanted, done + room))
        centre, radius = self._levels[0].rows(done + 1, stop - done)
        rounded, open_ = round_half_up(centre, radius[:, None])
        for t, column in np.argwhere(open_).tolist():
            rounded[t, column] = self.settled(done + 1 + t, column)
        rounded.flags.writeable = False
        self._rows, self._start = rounded, done

    def settled(self, tick: int, column: int) -> int:
        """The noise of a tick by balls, from as many bits of every z as it takes: never fresh ones."""
        bits = 128
        while bits <= _LAST_RESORT:
            whole = decided(lambda: self._by_balls(tick, column, bits), bits + _GUARD)  # noqa: B023
            if whole is not None:
                return whole
            bits *= 2
        raise ArithmeticError("2^15 bits of every address leave a tick open: the source of noise is broken")

    def _by_balls(self, tick: int, column: int, bits: int) -> int | None:
        total = arb(0)
        for i, (block, j) in enumerate(self._places(tick)):
            if j:
                where = i, block, column, bits
                path = self._balls.get(where)
                if path is None:
                    path = self._balls[where] = self._levels[i].block_ball(block, column, bits)
                    if len(self._balls) > _KEPT_PATHS:
                        self._balls.popitem(last=False)
                total += path[j - 1] * arb(self._levels[i].scale)
        whole = (total + arb(1) / 2).floor().unique_fmpz()
        return None if whole is None else int(whole)

    def _places(self, tick: int) -> list[tuple[int, int]]:
        """Block and row at each level; the top level has one block, and its last row is read too."""
        places = []
        for level in self._levels[:-1]:
            tick, j = divmod(tick, level.table.n)
            places.append((tick, j))
        return [*places, (0, tick)]

    def spread(self, tick: int) -> Spread:
        first, last, above = self._above
        if not first <= tick < last:  # what is above a block is the same for all of its ticks
            (_, row), *others = self._places(tick)
            above = [level.row(j) for level, (_, j) in zip(self._levels[1:], others, strict=True)]
            first = tick - row
            self._above = first, first + self._levels[0].table.n, above
        return RowSpread([self._levels[0].row(tick - first), *above])

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        """Exact: rows of one block are subtracted, those of two blocks are independent."""
        if window >= tick:
            return self.spread(tick)
        terms: list[Squares] = []
        for level, now, then in zip(self._levels, self._places(tick), self._places(tick - window), strict=True):
            if now[0] == then[0]:
                terms.append(level.squares(now[1], then[1]))
            else:
                terms += [level.row(now[1]), level.row(then[1])]
        return RowSpread(terms, roundings=2)

    def covariances(self, ticks: Sequence[int]) -> FloatArray:
        """Of the noise of one coordinate at increasing ticks, before rounding. Rows of one block share its draws."""
        found, block = np.zeros((len(ticks), len(ticks))), np.array(ticks, dtype=np.int64)
        for i, level in enumerate(self._levels):
            top = i == len(self._levels) - 1  # it has one block
            block, row = (np.zeros_like(block), block) if top else np.divmod(block, level.table.n)
            used, which = np.unique(row, return_inverse=True)
            weights = level.scale * level.table.weights[used]
            found += 2 * (block[:, None] == block) * (weights @ weights.T)[np.ix_(which, which)]
        return found

    def combined_spread(self, weights: Mapping[int, float]) -> Spread:
        """Of a weighted sum of the noise at several ticks. Exact, as windows are."""
        terms: dict[tuple[int, int], NDArray[np.float64]] = {}
        for tick, weight in weights.items():
            for i, (block, row) in enumerate(self._places(tick)):
                part = weight * self._levels[i].weights(row)
                terms[i, block] = terms[i, block] + part if (i, block) in terms else part
        parts = [abs(weight) for weight in weights.values()]
        return RowSpread([term * term for term in terms.values()], sum(parts), sum(part * part for part in parts))

    def widest(self, tick: int) -> Spread:
        return self.spread(self._heaviest(0, tick)[1])

    def _heaviest(self, i: int, last: int) -> tuple[float, int]:
        """The largest energy of the rows 0 .. last of level i, with all levels above, and which row has it."""
        n, energies = self._levels[i].table.n, self._levels[i].scale ** 2 * self._levels[i].table.energies
        if i == len(self._levels) - 1:
            row = int(np.argmax(energies[: last + 1]))
            return float(energies[row]), row
        block, j = divmod(last, n)
        found = []
        for (above, b), rows in (
            ((self._energy(i + 1, block), block), j + 1),
            (self._heaviest_before(i + 1, block), n),
        ):
            row = int(np.argmax(energies[:rows]))
            found.append((above + float(energies[row]), n * b + row))
        return max(found)

    def _heaviest_before(self, i: int, block: int) -> tuple[float, int]:
        return self._heaviest(i, block - 1) if block else (-math.inf, 0)

    def _energy(self, i: int, row: int) -> float:
        """Of a row of level i with all levels above."""
        levels, energy = self._levels[i:], 0.0
        for level in levels[:-1]:
            row, j = divmod(row, level.table.n)
            energy += level.share(j)[0]
        return energy + levels[-1].share(row)[0]

    def mean_variance(self, tick: int) -> float:
        return 2 * self._total(0, tick) / tick + 1 / 12

    def _total(self, i: int, last: int) -> float:
        """The sum of the energies of the rows 0 .. last of level i, with all levels above."""
        if last < 0:
            return 0.0
        n, energies = self._levels[i].table.n, self._levels[i].scale ** 2 * self._levels[i].table.energies
        if i == len(self._levels) - 1:
            return float(energies[: last + 1].sum())
        block, j = divmod(last, n)
        whole = block * float(energies[:n].sum()) + n * self._total(i + 1, block - 1)
        return whole + float(energies[: j + 1].sum()) + (j + 1) * self._energy(i + 1, block)

    def worst(self) -> Spread:
        assert self.horizon is not None
        return self.worst_between(1, self.horizon)

    def worst_between(self, first: int, last: int) -> Spread:
        """As wide as every tick first .. last."""
        tops = []
        for level, (block, j), (stop, end) in zip(self._levels, self._places(first), self._places(last), strict=True):
            rows = slice(j, end + 1) if block == stop else slice(0, level.table.n)
            # The widest row need not have the largest weight: a bound takes both.
            energy, peak = level.table.energies[rows].max(), level.table.peaks[rows].max()
            tops.append((level.scale**2 * float(energy), level.scale * float(peak)))
        return self._spread(tops)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        # An integer error above r is a real one of at least r + 1/2.
        return float(math.ceil(self._unit * path_radius(self._sizes, beta) - 0.5))

    @staticmethod
    def _spread(terms: list[tuple[float, float]]) -> Spread:
        proxy = sum(energy for energy, _ in terms)
        return Spread("laplace", 2 * proxy, proxy, max(peak for _, peak in terms), math.inf, 1)


def shares_of(epsilon: Fraction, sizes: tuple[int, ...]) -> list[Fraction]:
    """eps_i ~ V_i^(1/3), in fractions that add up to epsilon.

    >>> shares_of(Fraction(1), (256, 1024)), sum(shares_of(Fraction(2, 3), (64, 64, 128)))
    ([Fraction(1917, 4199), Fraction(2282, 4199)], Fraction(2, 3))
    """
    total = sum(ROOTS[n] for n in sizes)
    return [epsilon * Fraction(ROOTS[n], total) for n in sizes]


def float_above(value: Fraction) -> float:
    """A float that is not below a fraction: scales are rounded up, never down."""
    if not Fraction(1, 2**400) < value < 2**400:
        raise ConfigurationError("the noise would leave the range of exact numbers; choose another budget")
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
