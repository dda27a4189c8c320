"""Active users as they are shown: a number for each window, each with its own error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.contract.release import Release
from evertally.counting.linear import LinearEngine
from evertally.counting.side_by_side import SideBySide
from evertally.errors import ConfigurationError


@dataclass(frozen=True)
class Each:
    """The noise of each window, for as many columns; alone it is the widest of them."""

    parts: tuple[tuple[Spread, int], ...]

    @property
    def stddev(self) -> float:
        return max(spread.stddev for spread, _ in self.parts)

    def radius(self, beta: float) -> float:
        return max(spread.radius(beta) for spread, _ in self.parts)

    def radii(self, beta: float) -> IntArray:
        """Of every column; releases and truth are integers."""
        return np.concatenate([np.full(n, math.floor(spread.radius(beta))) for spread, n in self.parts])


class WindowsEngine(LinearEngine):
    """The linear engine, with the accuracy of each window."""

    def accuracy(self, tick: int) -> Accuracy:
        if not isinstance(self.noise, SideBySide):
            return super().accuracy(tick)
        return Each(tuple((part.spread(tick), part.columns) for part in self.noise.parts))


class WindowsForm(RowForm):
    """A mapping from windows, or from categories and windows, to numbers.

    >>> WindowsForm([1, 7]).show(np.array([3, 5]))
    {1: 3, 7: 5}
    """

    def __init__(self, keys: Sequence[Hashable]) -> None:
        super().__init__(len(keys), [str(key) for key in keys])
        self.keys = list(keys)

    def show(self, row: IntArray) -> dict[Any, int]:
        return dict(zip(self.keys, row.tolist(), strict=True))

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        if not isinstance(accuracy, Each):
            return super().interval(row, accuracy, beta)
        radii = accuracy.radii(beta)
        return self.show(row - radii), self.show(row + radii)


@dataclass(frozen=True, init=False)
class ActiveRelease(Release):
    """The release of a tick; `ratio` divides two of its numbers."""

    def ratio(self, part: Any, whole: Any, beta: float = 0.05) -> tuple[float, float, float]:
        """One released number divided by another, such as daily by monthly active users, and where the true ratio lies
        with probability at least 1 - beta: (estimate, lower, upper). Post-processing; estimates lie between 0 and 1,
        and are 1 where the second number is not above 0.

        >>> Release(1, {1: 30, 28: 60}, 2.0, False, lambda beta: ({1: 26, 28: 56}, {1: 34, 28: 64})).value
        {1: 30, 28: 60}
        """
        if part not in self.value or whole not in self.value:
            raise ConfigurationError("a ratio is of two numbers of this release: name them as the release does")
        lower, upper = self.interval(beta / 2)
        return (
            _share(self.value[part], self.value[whole]),
            _share(lower[part], upper[whole]),
            _share(upper[part], lower[whole]),
        )


def _share(part: int, whole: int) -> float:
    """Between 0 and 1: whoever was active in the shorter window was active in the longer one."""
    return min(1.0, max(0, part) / whole) if whole > 0 else 1.0
