"""Running counts by category, over categories that are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evertally.counting import VectorCounter
from evertally.counting.process import IntArray
from evertally.errors import ConfigurationError
from evertally.privacy import Guarantee


class Histogram(VectorCounter):
    """How often each category occurred so far.

    The categories are public and fixed; every one is released at every tick, zero or not (a category that appears only
    when it is non-zero would reveal that). Labels outside the list are dropped silently, or counted under `other`.

    Theorem (factorization-counting 6.3 with the truncation rows, streaming-selection 3.4 KnownBase): as VectorCounter,
    whose options apply here. Error of each count: see `stddev` and `error_bound`, which cover all categories at once.

    >>> import evertally as et
    >>> visits = et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(2))
    >>> sorted(visits.step({"a": 2, "b": 0}).value)
    ['a', 'b']
    >>> visits.step_events(["a", "b", "unknown", None]).tick
    2
    >>> visits.run([[1, 0], [0, 1]]).shape
    (2, 2)
    """

    named_ways = ("sparse",)

    def __init__(self, *, categories: Sequence[str], guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        if isinstance(categories, int | str):
            raise ConfigurationError("categories is a list of labels")
        super().__init__(list(categories), guarantee=guarantee, horizon=horizon, **options)
        self.categories = self.columns
        self._options["categories"] = self._options.pop("columns")

    def _show(self, values: IntArray) -> dict[str, int]:
        return {label: int(value) for label, value in zip(self.columns, values, strict=True)}
