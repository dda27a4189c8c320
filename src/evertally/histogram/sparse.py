"""Counts and histograms whose error grows with the count: partitions for streams where little happens.

`Counter(mechanism="sparse")` and `Histogram(mechanism="sparse")` are these classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.counting import Counter
from evertally.counting.amount_input import AmountInput
from evertally.counting.mechanism import Accuracy, Options
from evertally.counting.process import IntArray
from evertally.encode import AmountDoor
from evertally.errors import ConfigurationError
from evertally.histogram.column_query import ColumnQuery, sides
from evertally.histogram.histogram import Histogram
from evertally.histogram.tasks import AllColumns
from evertally.privacy import Guarantee

_OF_COLUMNS = {"columns", "max_per_event", "other"}


class SparseCounter(AmountInput, ColumnQuery):
    """The running total of a stream with few events: the partition of Dwork, Naor, Reingold and Rothblum.

    Intervals close when a noisy count inside them passes a noisy threshold; only their totals meet the counter H
    (parameterized-histograms 4.5 [D][R], variant V2 of 7.2). Error O((log^2 n + log T)/eps) for n events in T ticks,
    against O(log^1.5 T/eps) or more for a counter that pays at every tick. `largest` is a public guess at the final
    total; H comes in blocks that grow (partition/blocks.py), so a total beyond it costs accuracy alone. Nothing is
    tuned in hindsight. Exactness tier "exact",
    adaptive streams included. Time O(1) for a tick, memory O(log n).

    >>> import numpy as np
    >>> import evertally as et
    >>> rare = et.Counter(mechanism="sparse", guarantee=et.PureDP(1.0), horizon=10**6, largest=1000,
    ...                   key=et.simulation(1))
    >>> type(rare).__name__, rare.mechanism
    ('SparseCounter', 'intervals')
    >>> values = rare.run(np.zeros(1000, dtype=int))
    >>> bool(abs(values[-1]) <= rare.error_bound(beta=0.01))
    True
    """

    def __init__(
        self,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        max_weight: int = 1,
        mechanism: str = "intervals",
        **options: Any,
    ) -> None:
        foreign = sorted(_OF_COLUMNS & set(options))
        if foreign:
            raise TypeError(f"a counter has no columns, and no option {foreign[0]!r}")
        self._amounts = AmountDoor(max_weight, signed=False)
        super().__init__(
            1,
            queries=AllColumns(1),
            options={},
            guarantee=guarantee,
            horizon=horizon,
            max_weight=max_weight,
            linear=True,
            mechanism=mechanism,
            **options,
        )

    @classmethod
    def _decoded(cls, options: Options) -> Options:
        return {name: value for name, value in options.items() if name not in _OF_COLUMNS}


class SparseHistogram(ColumnQuery):
    """How often each category occurred so far, with an error that grows with the counts, not with the stream.

    All categories share one partition, whose test looks at the largest count of the open interval
    (parameterized-histograms 7.1 and variant V2 of 7.2). `largest` is a public guess at the largest count. Error
    2 alpha_SV + err + gamma in every category at once. Exactness tier "exact", adaptive streams included. Time O(d) for
    a tick, much less in `run` with `SparseRows`; memory O(d log n).

    >>> import evertally as et
    >>> visits = et.Histogram(mechanism="sparse", categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=10**6,
    ...                       largest=1000, key=et.simulation(2))
    >>> visits.step({"a": 2, "b": 0}).value
    {'a': 0, 'b': 0}
    """

    def __init__(
        self,
        *,
        categories: Sequence[str],
        guarantee: Guarantee,
        horizon: int | None,
        other: str | None = None,
        max_per_event: int = 1,
        mechanism: str = "intervals",
        **options: Any,
    ) -> None:
        if isinstance(categories, int | str):
            raise ConfigurationError("categories is a list of labels")
        names = list(categories)
        super().__init__(
            names,
            queries=AllColumns(len(names) + (other is not None)),
            options={},
            guarantee=guarantee,
            horizon=horizon,
            other=other,
            max_per_event=max_per_event,
            linear=True,
            mechanism=mechanism,
            **options,
        )
        self.categories = self.columns
        self._options["categories"] = self._options.pop("columns")

    def _show(self, values: IntArray) -> dict[str, int]:
        return dict(zip(self.columns, self._numbers(values).tolist(), strict=True))

    def _show_run(self, values: IntArray) -> NDArray[np.int64]:
        return values

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        below, above = sides(accuracy, beta)
        return self._show(values - below), self._show(values + above)

    def _labels(self) -> list[str]:
        return list(self.columns)


Counter.other_engines["sparse"] = SparseCounter
Histogram.other_engines["sparse"] = SparseHistogram
