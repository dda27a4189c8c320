"""How far answers from sums of released rows may be off: noise, and what has not been released yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evertally.dynamic.parts import Budget, StaticMechanism


@dataclass(frozen=True)
class SummedAccuracy:
    """Of a signed sum of releases. `covers` are the budgets of each part's releases, `size` how many items they hold at
    most (None: nobody knows); each of `unseen` says how many updates may be missing from a part, for a beta.

    Each part fails with its share of beta; noise that does not look at data is symmetric, so there a difference of
    parts is as good as a sum.
    """

    static: StaticMechanism
    covers: Sequence[Sequence[Budget]]
    size: float | None
    unseen: Sequence[Callable[[float], float]] = ()
    query: Any = None
    asked: bool = False  # whether it is about one query; None may be one

    @property
    def stddev(self) -> float | None:
        """Standard deviation of the noise in the answer of one query; None for all of them at once."""
        budgets = [budget for cover in self.covers for budget in cover]
        if not self.asked:
            return None
        return self.static.stddev(budgets, self.query) if budgets else 0.0

    def of(self, query: Any) -> SummedAccuracy:
        return SummedAccuracy(self.static, self.covers, self.size, self.unseen, query, True)

    def radius(self, beta: float) -> float:
        if not self.unseen:
            return self._noise(beta)
        return self._noise(beta / 2) + self.missing(beta / 2)

    def missing(self, beta: float) -> float:
        """How many updates may be missing."""
        return sum(unseen(beta / len(self.unseen)) for unseen in self.unseen)

    def _noise(self, beta: float) -> float:
        covers = [cover for cover in self.covers if cover]
        if self.static.additive:
            together = [budget for cover in covers for budget in cover]
            covers = [together] if together else []
        query = self.query if self.asked else None
        return sum(self.static.error(cover, beta / len(covers), self.size, query) for cover in covers)
