"""What the noise of a process is, from its definition and nothing else: exact integers and balls of many bits.

A process is rounded correctly if its noise is floor(e + 1/2) for the real e of its factorization (the documents that
each class names). Its fast ways carry floats and bounds. Here e is written down once more, slowly, from
the public numbers of the process: coefficients of a bank, integers of a factor, a table of blocks, levels of a tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, fmpq

from evertally.audit.planted_bits import BITS, PlantedSource
from evertally.balls import at_precision
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.bank import FilteredNoise
from evertally.counting.bank_decay import DecayBankProcess
from evertally.counting.honaker import HonakerProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.recursion import RecursiveProcess
from evertally.counting.sqrt import FactorProcess
from evertally.counting.toeplitz_factor import ToeplitzFactor
from evertally.counting.tree import TreeProcess

Exact = Any  # a fraction, or a ball
_GRID = 2**24  # tables of blocks are integers over it


class Path(ABC):
    """The real noise e of one column of a process, tick by tick, and what is released of it."""

    beyond = 0  # an integer that is added after rounding

    def __init__(self, process: Any, source: PlantedSource, column: int, ticks: int) -> None:
        self.process, self.source, self.column, self.ticks = process, source, column, ticks
        self.values: Sequence[Exact] = at_precision(BITS, self._values)

    @abstractmethod
    def _values(self) -> Sequence[Exact]:
        """e at each tick, from its definition."""

    def noise(self, tick: int, rest: int = 0) -> int:
        """floor(e + rest/unit + 1/2)."""
        value = self.values[tick - 1]
        unit = getattr(getattr(self.process, "_factor", None), "unit", 1)
        if isinstance(value, Fraction):
            return (value + Fraction(rest, unit) + Fraction(1, 2)).__floor__()
        whole = at_precision(BITS, lambda: (value + arb(rest) / unit + arb(1) / 2).floor().unique_fmpz())
        assert whole is not None, "bits of the definition do not decide"
        return int(whole)

    def inside(self, tick: int, centre: float, radius: float, rest: int = 0) -> bool:
        """Whether e, as it is rounded, lies within `radius` of `centre`."""
        unit = getattr(getattr(self.process, "_factor", None), "unit", 1)

        def compare() -> bool:
            value = self.values[tick - 1]
            ball = arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else value
            return not abs(ball - self.beyond + arb(rest) / unit - arb(centre)) > arb(radius)

        return at_precision(BITS, compare)

    def _drawn(self, lane: str, nodes: Sequence[int]) -> list[int]:
        law = self.process.law
        return [int(z) for z in self.source.draws(lane, law, nodes, 1, self.column)[:, 0]]


class TreePath(Path):
    """Sums of the draws of the blocks that tile 1..t, each addressed by its last tick (streaming-selection 3.1)."""

    def _values(self) -> list[Exact]:
        r, lane = self.process.radix, self.process._lane
        z = self._drawn(lane, range(1, self.ticks + 1))
        found: list[Exact] = [Fraction(0)]
        for t in range(1, self.ticks + 1):
            size = 1
            while t % (size * r) == 0:
                size *= r
            found.append(found[t - size] + z[t - 1])
        return found[1:]


class PilePath(Path):
    """Every draw stays (parameterized-histograms 3.1)."""

    def _values(self) -> list[Exact]:
        z = self._drawn(self.process._lane, range(1, self.ticks + 1))
        return [Fraction(sum(z[:t])) for t in range(1, self.ticks + 1)]


class RefinedPath(Path):
    """Estimates by inverse variance, bottom up (factorization-counting 8.3)."""

    def _values(self) -> list[Exact]:
        lane, T = self.process._lane, self.ticks
        estimates: list[list[Fraction]] = []
        for h in range(T.bit_length()):
            z = self._drawn(f"{lane}-{h}", range(1, (T >> h) + 1))
            below = estimates[-1] if estimates else []
            whole = 2 ** (h + 1) - 1
            estimates.append(
                [
                    Fraction(value)
                    if h == 0
                    else (2**h * value + (2**h - 1) * (below[2 * i] + below[2 * i + 1])) / whole
                    for i, value in enumerate(z)
                ]
            )
        return [
            sum((estimates[h][(t >> h) - 1] for h in range(t.bit_length()) if t >> h & 1), Fraction(0))
            for t in range(1, T + 1)
        ]


class QuotientPath(Path):
    """The coefficients of a(z) Z(z)/(D r(z)) for integers a, D and r: a factor of running totals, a = 1/(1 - z), or of
    sums that weigh inputs by age (factorization-counting 2, 6.10, 11), or a recursion, a = 1 (users-and-domains 1.4).
    """

    def _values(self) -> list[Exact]:
        process, T = self.process, self.ticks
        z = self._drawn(process._lane, range(1, T + 1))
        if isinstance(process, RecursiveProcess):
            r, top, unit = list(process.coefficients), z, 1
        else:
            factor = process._factor
            r, unit = [int(x) for x in factor.r[:T]], factor.unit
            if isinstance(factor, ToeplitzFactor):
                a = factor.weights[:T]
                top = [sum(a[k] * z[t - k] for k in range(min(t + 1, len(a)))) for t in range(T)]
            else:
                top = [sum(z[: t + 1]) for t in range(T)]
        while len(r) > 1 and r[-1] == 0:
            r.pop()
        # e_t = scaled_t / r_0^(t+1), in integers: no fraction is ever reduced.
        scaled: list[int] = []
        powers = [1]
        for t in range(T):
            powers.append(powers[-1] * r[0])
            known = sum(r[k] * powers[k - 1] * scaled[t - k] for k in range(1, min(t + 1, len(r))))
            scaled.append(powers[t] * top[t] - known)
        shared = self._shared()
        return [Fraction(scaled[t], powers[t + 1] * unit) + shared for t in range(T)]

    def _shared(self) -> Fraction:
        laws = getattr(self.process, "laws", None)
        if laws is None or laws.shared is None:
            return Fraction(0)
        drawn = int(self.source.draws(self.process._shared_lane, laws.shared, [0], 1, self.column)[0, 0])
        self.beyond = drawn >> 1
        return Fraction(drawn, 2)


class BankedPath(Path):
    """One-pole filters of real normal numbers (optimal-counting 1)."""

    def _values(self) -> list[Exact]:
        process = self.process
        law, lane = process._path._law, process._lane
        z = [self.source.variate(lane, law, t, self.column) for t in range(1, self.ticks + 1)]
        walk = BankWalk(process)
        return [arb(process.sigma) * walk.step(one) for one in z]

    def noise(self, tick: int, rest: int = 0) -> int:
        whole = super().noise(tick)
        if not isinstance(self.process, DecayBankProcess):
            return whole
        parts, unit = self.process._parts, self.process._unit
        return (Fraction(whole * parts + rest, unit) + Fraction(1, 2)).__floor__()


class BankWalk:
    """x_t = sum_k a_k e_k + r_t z_t, e_k <- a_k e_k + K_k r_t z_t."""

    def __init__(self, process: FilteredNoise) -> None:
        self._bank = process.bank
        self._segment, self._inside = 0, 0
        self.e = [arb(0)] * process.bank.a.shape[1]

    def coefficients(self) -> tuple[list[arb], list[arb], arb]:
        """a, K and r of the next tick."""
        while self._inside == self._bank.lengths[self._segment]:
            self._segment, self._inside = self._segment + 1, 0
        i = self._segment
        a, K = ([arb(float(v)) for v in numbers[i]] for numbers in (self._bank.a, self._bank.K))
        return a, K, arb(float(self._bank.r[i]))

    def step(self, z: arb) -> arb:
        """Goes one tick further, and gives x there."""
        a, K, r = self.coefficients()
        faded, nu = [p * q for p, q in zip(a, self.e, strict=True)], r * z
        self.e = [p + q * nu for p, q in zip(faded, K, strict=True)]
        self._inside += 1
        return sum(faded, nu)

    def solved(self, x: arb) -> arb:
        """The z that makes x the next one."""
        a, _, r = self.coefficients()
        return (x - sum((p * q for p, q in zip(a, self.e, strict=True)), arb(0))) / r


class BlockPath(Path):
    """Least squares of every block, A (R^T R)^-1 R^T z, and rows of all levels added up (optimal-counting 6)."""

    def _values(self) -> list[Exact]:
        blocks: dict[tuple[int, int], list[arb]] = {}
        found: list[Exact] = []
        levels = self.process._levels
        for tick in range(1, self.ticks + 1):
            total, left = arb(0), tick
            for i, level in enumerate(levels):
                n = level.table.n
                block, j = divmod(left, n) if i + 1 < len(levels) else (0, left)
                if j:
                    if (i, block) not in blocks:
                        blocks[i, block] = self._block(level, block)
                    total += blocks[i, block][j - 1] * arb(level.scale)
                left = block
            found.append(total)
        return found

    def _block(self, level: Any, block: int) -> list[arb]:
        R = block_matrix(level.table)
        start = 1 + block * R.nrows()
        z = [[self.source.variate(level._lane, level._law, start + i, self.column)] for i in range(R.nrows())]
        x = (R.transpose() * R).solve(R.transpose() * arb_mat(z))
        path, total = [], arb(0)
        for t in range(R.ncols()):
            total += x[t, 0]
            path.append(total)
        return path


def block_matrix(table: Any) -> arb_mat:
    """R = [diag d; C], a column for each tick."""
    n, k = len(table.d), max(table.row.tolist()) + 1
    rows = [[arb(0)] * n for _ in range(n + k)]
    for t, d in enumerate(table.d.tolist()):
        rows[t][t] = arb(d) / _GRID
    for i, t, value in zip(table.row.tolist(), table.col.tolist(), table.value.tolist(), strict=True):
        rows[n + i][t] = arb(value) / _GRID
    return arb_mat(rows)


_PATHS: list[tuple[type, Callable[..., Path]]] = [
    (TreeProcess, TreePath),
    (AccumulatingProcess, PilePath),
    (HonakerProcess, RefinedPath),
    (FactorProcess, QuotientPath),
    (RecursiveProcess, QuotientPath),
    (FilteredNoise, BankedPath),
    (PureBlocksProcess, BlockPath),
]


def path_of(process: Any, source: PlantedSource, column: int, ticks: int) -> Path | None:
    """The path of a column by its definition; None for a process that nobody has written one down for."""
    for kind, path in _PATHS:
        if isinstance(process, kind):
            return path(process, source, column, ticks)
    return None
