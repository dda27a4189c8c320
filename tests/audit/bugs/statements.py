"""Bugs in what is said about errors: guesses and undeclared numbers that carry bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.histogram import in_place, ways
from evertally.histogram.ways import recomputation
from evertally.partition import Configuration, PartitionEngine
from evertally.partition.intervals import PartitionAccuracy
from evertally.ranking import Ranking, Way

_STATEMENTS = "error statements of column queries"
_TRAP = "a number that nobody declared carries no bound, and neither does a guess (column-queries, what is declared)"


@plant(_STATEMENTS, trap=_TRAP)
def undeclared_is_one() -> Bug:
    """an undeclared rate counted as one event in a tick"""

    def unseen(most: int | None, ticks: int) -> float:
        return float((most or 1) * ticks)

    return all_of(replaced(in_place, unseen=unseen), replaced(recomputation, unseen=unseen))


@plant(_STATEMENTS, trap=_TRAP)
def guess_trusted() -> Bug:
    """an error bound that trusts the guess at the largest answer"""
    return replaced(Configuration, sure_error=lambda self, beta, tick=None: self.error(beta, tick))


@plant(_STATEMENTS, trap=_TRAP)
def frozen_with_an_interval() -> Bug:
    """a frozen answer that keeps its interval"""

    def accuracy(self: Any, tick: int) -> PartitionAccuracy:
        return PartitionAccuracy(self._formula, tick, self.partition.closes + 1, exhausted=False)

    return replaced(PartitionEngine, accuracy=accuracy)


@plant("what is chosen on a guess", trap=_TRAP)
def constant_on_a_guess() -> Bug:
    """a constant chosen because of a guess"""
    return replaced(ways, _all_names=lambda task: iter(ways.NAMES))


@plant("what is chosen on a guess", trap=_TRAP)
def unbounded_first() -> Bug:
    """a way without a bound chosen because it looks best"""

    class Hopeful(Ranking):
        def __init__(self, rows: Iterable[Way]) -> None:
            super().__init__(rows)
            self._ways.sort(key=lambda way: (way.refused != "", way.weight[0]))

    return replaced(ways, Ranking=Hopeful)
