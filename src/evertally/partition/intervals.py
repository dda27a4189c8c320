"""A partition behind the common contract: it repeats what it released last until an interval closes."""

from __future__ import annotations

from dataclasses import dataclass

from evertally.contract.in_place import stairs
from evertally.contract.rows import Rows
from evertally.counting.process import IntArray
from evertally.partition.configuration import Configuration
from evertally.partition.engine import PartitionedRelease
from evertally.partition.two_level import TwoLevelPlan, TwoLevelRelease
from evertally.secret import Secret

# The radius of a release where nothing bounds how far the truth may be off: a number that fits wherever counts do.
NO_BOUND = 2.0**61

Partition = PartitionedRelease | TwoLevelRelease
ErrorFormula = Configuration | TwoLevelPlan


class PartitionEngine(Secret):
    """Released rows are whole histograms; the answers are queries of them."""

    def __init__(self, partition: Partition, formula: ErrorFormula) -> None:
        self.partition = partition
        self._formula = formula
        self.width = len(partition.released)
        self.tick = 0

    def advance(self, rows: Rows) -> tuple[IntArray, IntArray]:
        before, first = self.partition.released, self.tick + 1
        closes = [(tick - first, released) for tick, released in self.partition.play(rows, first)]
        self.tick += len(rows)
        return stairs(before, closes, len(rows))

    def accuracy(self, tick: int) -> PartitionAccuracy:
        # The number of closes only grows, and the bound with it: for an earlier tick it is still a bound.
        return PartitionAccuracy(self._formula, tick, self.partition.closes + 1, self.partition.exhausted)

    def error_bound(self, beta: float, tick: int | None) -> float:
        return self._formula.sure_error(beta, tick)

    def guessed_bound(self, beta: float, tick: int | None) -> float:
        """The bound while answers stay below `largest`."""
        return self._formula.error(beta, tick)

    def state(self) -> list[bytes]:
        return self.partition.state()

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self.partition.load(parts)


@dataclass(frozen=True)
class PartitionAccuracy:
    """No standard deviation: staleness is no noise. The number of the interval is known by now, so nothing rests on a
    guess at it; once H is full the answer is frozen, and nothing bounds how far the truth has moved on."""

    formula: ErrorFormula
    tick: int
    interval: int
    exhausted: bool
    stddev: None = None

    def radius(self, beta: float) -> float:
        """A bound that holds for all ticks at once, hence for this one."""
        return max(self.sides(beta))

    def sides(self, beta: float) -> tuple[float, float]:
        """How far the truth may be below the release, and above it. Answers only grow: what was close when it was
        released is not too high later, frozen or not."""
        bound = self.formula.error(beta, self.tick, self.interval)
        return bound, NO_BOUND if self.exhausted else bound
