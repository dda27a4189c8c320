"""Bugs in what is said about errors: guesses and undeclared numbers that carry bounds."""

from __future__ import annotations

from typing import Any

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.histogram import approaches, in_place
from evertally.partition import Configuration, PartitionEngine
from evertally.partition.intervals import PartitionAccuracy

_STATEMENTS = "error statements of column queries"
_TRAP = "a number that nobody declared carries no bound, and neither does a guess (column-queries, what is declared)"


@plant("an undeclared rate counted as one event in a tick", _TRAP, _STATEMENTS)
def undeclared_is_one() -> Bug:
    def unseen(most: int | None, ticks: int) -> float:
        return float((most or 1) * ticks)

    return all_of(replaced(in_place, unseen=unseen), replaced(approaches, unseen=unseen))


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
    return replaced(approaches, _all_names=lambda task: iter(approaches.NAMES))


@plant("a way without a bound chosen because it looks best", _TRAP, "what is chosen on a guess")
def unbounded_first() -> Bug:
    original = approaches.survey

    def survey(*arguments: Any) -> Any:
        found, reasons = original(*arguments)
        return sorted(found, key=lambda approach: approach.predicted), reasons

    return replaced(approaches, survey=survey)
