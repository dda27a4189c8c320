"""Bugs in what is said about errors: guesses and undeclared numbers that carry bounds."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from evertally.audit.mutants.planting import all_of, plant, replaced

from evertally.histogram import veils, ways
from evertally.histogram.ways import recomputation
from evertally.partition import Configuration
from evertally.partition.intervals import PartitionAccuracy
from evertally.ranking import Ranking, Way

Bug = AbstractContextManager[None]

_STATEMENTS = "error statements of column queries"
_TRAP = "a number that nobody declared carries no bound, and neither does a guess (column-queries, what is declared)"


@plant("an undeclared rate counted as one event in a tick", _TRAP, _STATEMENTS)
def undeclared_is_one() -> Bug:
    def unseen(most: int | None, ticks: int) -> float:
        return float((most or 1) * ticks)

    return all_of(replaced(veils, unseen=unseen), replaced(recomputation, unseen=unseen))


@plant("an error bound that trusts the guess at the largest answer", _TRAP, _STATEMENTS)
def guess_trusted() -> Bug:
    return replaced(Configuration, sure_error=lambda self, beta, tick=None: self.error(beta, tick))


@plant("a frozen answer that keeps its interval", _TRAP, _STATEMENTS)
def frozen_with_an_interval() -> Bug:
    def accuracy(self: Any, tick: int) -> PartitionAccuracy:
        return PartitionAccuracy(self._formula, tick, self.partition.closes + 1, exhausted=False)

    return replaced(PartitionEngine, accuracy=accuracy)


@plant("a constant chosen because of a guess", _TRAP, "what is chosen on a guess")
def constant_on_a_guess() -> Bug:
    return replaced(ways, _all_names=lambda task: iter(ways.NAMES))


@plant("a way without a bound chosen because it looks best", _TRAP, "what is chosen on a guess")
def unbounded_first() -> Bug:
    class Hopeful(Ranking):
        def __init__(self, rows: Iterable[Way]) -> None:
            super().__init__(rows)
            self._ways.sort(key=lambda way: (way.refused != "", way.score))

    return replaced(ways, Ranking=Hopeful)
