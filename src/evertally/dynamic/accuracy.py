"""How far answers from sums of released rows may be off: noise, and what has not been released yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evertally.dynamic.parts import Budget, StaticMechanism


def check_laws(static: StaticMechanism, smallest: Budget, size: int | None) -> None:
    """Refuses a budget whose noise is out of range before the first tick: its error cannot be said."""
    static.error([smallest], 0.05, 1.0 if size is None else float(size))


@dataclass(frozen=True)
class SummedAccuracy:
    """Of a signed sum of releases. `covers` are the budgets of each part's releases, `size` how many items they hold at
    most (None: nobody knows); each of `unseen` says how many updates may be missing from a part, for a beta.

    Each part fails with its share of beta; noise that does not look at data is symmetric, so there a difference of
    parts is as good as a sum.

    >>> from evertally.dynamic.families import Points
    >>> from evertally.dynamic.static import make_static
    >>> from evertally.privacy import PureDP
    >>> static = make_static("histogram", Points(["a", "b"]), pure=True, options={})
    >>> both = SummedAccuracy(static, [[PureDP(1)], [PureDP(1)]], size=None, unseen=[lambda beta: 30.0])
    >>> round(both.of("a").stddev, 2), both.of("a").radius(0.05) > 30
    (1.92, True)
    """

    static: StaticMechanism
    covers: Sequence[Sequence[Budget]]
    size: float | None
    unseen: Sequence[Callable[[float], float]] = ()
    query: Any = None
    asked: bool = False  # whether it is about one query; None may be one
    fixed: bool = True  # whether the covers follow from the tick alone, and not from where a partition closed

    @property
    def stddev(self) -> float | None:
        """Standard deviation of the noise in the answer of one query; None for all of them at once, and where a
        partition decides which noise that is."""
        budgets = [budget for cover in self.covers for budget in cover]
        if not self.asked or not self.fixed:
            return None
        return self.static.stddev(budgets, self.query) if budgets else 0.0

    def of(self, query: Any) -> SummedAccuracy:
        return replace(self, query=query, asked=True)

    def radius(self, beta: float) -> float:
        if not self.unseen:
            return self._noise(beta)
        return self._noise(beta / 2) + sum(unseen(beta / 2 / len(self.unseen)) for unseen in self.unseen)

    def _noise(self, beta: float) -> float:
        covers = [cover for cover in self.covers if cover]
        if self.static.additive:
            together = [budget for cover in covers for budget in cover]
            covers = [together] if together else []
        query = self.query if self.asked else None
        return sum(self.static.error(cover, beta / len(covers), self.size, query) for cover in covers)
