"""Questions about column sums: largest, smallest, quantiles, top k, and what a user certifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.counting.column_input import Columns, column_count
from evertally.counting.mechanism import Accuracy, Options, whole
from evertally.counting.process import IntArray
from evertally.encode.labels import is_text
from evertally.errors import ConfigurationError
from evertally.histogram import expressions
from evertally.histogram.column_query import ColumnQuery, sides
from evertally.histogram.expressions import Expression, exact_number
from evertally.histogram.refuter import certified
from evertally.histogram.tasks import AllColumns, Expressions, Largest
from evertally.privacy import Guarantee


class MaxSum(ColumnQuery):
    """The largest column sum so far.

    Theorem (parameterized-histograms 2.2 for partitions, price-of-continual-release 3.2-3.5 for counters and
    recomputation): all releases together keep `guarantee` under `neighbours`, adaptive streams included. `"auto"`
    compares all ways from public numbers: counters pay for the horizon, partitions ("rebased", ...) for the answer.
    Error: `error_bound`. Exactness tier "exact". Time O(d) for a tick, much less in `run` with `SparseRows`; memory
    O(d log) of the horizon or of the number of intervals.

    >>> import numpy as np
    >>> import evertally as et
    >>> top = et.MaxSum(columns=50, guarantee=et.PureDP(1.0), horizon=1000, largest=10**5, max_events_per_tick=1000,
    ...                 max_per_event=1, key=et.simulation(1))
    >>> rows = np.zeros((1000, 50), dtype=int)
    >>> rows[:, 7] = 90
    >>> answers = top.run(rows)
    >>> bool(abs(answers[-1] - 90_000) < top.error_bound(beta=0.01))
    True
    """

    def __init__(self, columns: Columns, *, guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        super().__init__(columns, queries=Largest(1), options={}, guarantee=guarantee, horizon=horizon, **options)


class MinSum(ColumnQuery):
    """The smallest column sum so far: as `MaxSum`, with the order statistic of rank 1 (parameterized-histograms 7.1).

    The `largest` that matters is that of the smallest column, which is 0 as long as one column is idle.

    >>> import evertally as et
    >>> least = et.MinSum(columns=3, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> least.step([5, 2, 9]).tick
    1
    """

    def __init__(self, columns: Columns, *, guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        queries = Expressions([expressions.Minimum()])
        super().__init__(columns, queries=queries, options={}, guarantee=guarantee, horizon=horizon, **options)


class Quantile(ColumnQuery):
    """The q-quantile of the column sums: the smallest sum that at least a part q of the columns does not exceed.

    q is in (0, 1] and read exactly (0.07 is 7/100): rank ceil(q d) in rising order, so 1 is the maximum and 1/2 the
    lower median. Theorem and cost as `MaxSum`; all order statistics have sensitivity 1 (parameterized-histograms 7.1).

    >>> import evertally as et
    >>> median = et.Quantile(0.5, columns=5, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> median.run([[1, 2, 3, 4, 5]] * 4).shape
    (4,)
    """

    def __init__(
        self,
        q: Fraction | float | str,
        columns: Columns,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        **options: Any,
    ) -> None:
        self.q = exact_number(q, "q")
        queries = Expressions([expressions.Quantile(self.q)])
        super().__init__(
            columns, queries=queries, options={"q": str(self.q)}, guarantee=guarantee, horizon=horizon, **options
        )


class TopK(ColumnQuery):
    """The k largest column sums, in falling order; values, not labels (for those see `TopKSelect`).

    k order statistics share one partition (parameterized-histograms 4.3 and 7.1): one noise tests them all.

    >>> import evertally as et
    >>> top = et.TopK(2, columns=5, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> top.step([1, 2, 3, 4, 5]).value.shape, top.run([[1, 2, 3, 4, 5]] * 3).shape
    ((2,), (3, 2))
    """

    def __init__(self, k: int, columns: Columns, *, guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        self.k = _top(k, columns, options)
        super().__init__(
            columns, queries=Largest(self.k), options={"k": self.k}, guarantee=guarantee, horizon=horizon, **options
        )

    def _show(self, values: IntArray) -> NDArray[np.int64]:
        return self._numbers(values).copy()

    def _show_run(self, values: IntArray) -> NDArray[np.int64]:
        return np.array([self._show(row) for row in values], dtype=np.int64).reshape(len(values), self.k)

    def _labels(self) -> list[str]:
        return [str(rank) for rank in range(1, self.k + 1)]


class SumSelect(ColumnQuery):
    """The column with the largest sum, by label.

    Post-processing of counters or of the partition of `MaxSum` (argmax of the released histogram, ties by order), or a
    private selection every r ticks: permute-and-flip under a pure budget, the exactly sampled exponential mechanism
    under zCDP (price-of-continual-release 3.4 and 3.7; parameterized-histograms 7.1). The error is a deficit: how far
    the chosen column's sum is below the largest. `Release.interval` gives its range.

    >>> import evertally as et
    >>> leader = et.SumSelect(columns=["a", "b", "c"], guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> leader.step({"a": 5, "b": 900, "c": 3}).value in ("a", "b", "c")
    True
    """

    def __init__(self, columns: Columns, *, guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        super().__init__(
            columns, queries=Largest(1), options={}, guarantee=guarantee, horizon=horizon, selects=True, **options
        )

    def _place(self, values: IntArray) -> int:
        return int(values[0] if self._answers else np.argmax(values))

    def _show(self, values: IntArray) -> str:
        return self.columns[self._place(values)]

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return np.array([self._show(row) for row in values], dtype=object)

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[int, int]:
        return 0, sides(accuracy, beta)[1]


class TopKSelect(ColumnQuery):
    """The k columns with the largest sums, by label, best first.

    From counters or from the partition of all columns: the partition of the k largest *values* would not do, order
    statistics can stand still while an item climbs (parameterized-histograms 7.1). The error is a deficit for each
    place: how far the chosen column is from the column that belongs there.

    >>> import evertally as et
    >>> top = et.TopKSelect(2, columns=["a", "b", "c"], guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> len(top.step({"a": 5, "b": 900, "c": 3}).value)
    2
    """

    def __init__(self, k: int, columns: Columns, *, guarantee: Guarantee, horizon: int | None, **options: Any) -> None:
        self.k = _top(k, columns, options)
        queries = AllColumns(column_count(columns, options.get("other")))
        super().__init__(
            columns,
            queries=queries,
            options={"k": self.k},
            guarantee=guarantee,
            horizon=horizon,
            linear=True,
            selects=True,
            **options,
        )

    def _show(self, values: IntArray) -> list[str]:
        best = np.argsort(-values, kind="stable")[: self.k]
        return [self.columns[j] for j in best.tolist()]

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return np.array([self._show(row) for row in values], dtype=object).reshape(len(values), self.k)

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[list[int], list[int]]:
        return [0] * self.k, [sides(accuracy, beta)[1]] * self.k

    def _labels(self) -> list[str]:
        return [str(rank) for rank in range(1, self.k + 1)]


class MonotoneQuery(ColumnQuery):
    """Any certified query of the column sums, or several that share one partition.

    `query` is an expression built from columns (`et.expressions`), a Python function that can be traced to one, or a
    mapping from names to such. It must be monotone, 0 at 0, and *proved* to move by at most 1 when every column moves
    by at most 1: the steps of its construction prove it (parameterized-histograms 1.5). What nothing certifies is
    refused, with a counterexample where one is found; no test can replace the proof. Theorem and cost as `MaxSum`;
    several queries pay once (4.3 there). Answers are whole numbers: the query rounded up.

    >>> import evertally as et
    >>> mean = et.MonotoneQuery(lambda h: (h[0] + h[1]) / 2, columns=2, guarantee=et.PureDP(1.0), horizon=100,
    ...                         key=et.simulation(1))
    >>> mean.step([3, 4]).tick
    1
    >>> both = et.MonotoneQuery({"top": et.expressions.maximum, "mean": et.expressions.mean}, columns=3,
    ...                         guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> sorted(both.step([1, 2, 3]).value)
    ['mean', 'top']
    """

    def __init__(
        self,
        query: Any,
        columns: Columns,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        **options: Any,
    ) -> None:
        d = column_count(columns, options.get("other"))
        named = list(query.items()) if isinstance(query, Mapping) else None
        self._names = None if named is None else [name for name, _ in named]
        given: list[Expression | Callable[[Any], Any]] = [query] if named is None else [one for _, one in named]
        if not given:
            raise ConfigurationError("give at least one query")
        if not all(type(name) is str and is_text(name) for name in self._names or ()):
            raise ConfigurationError("several queries have names, which are texts")
        proved = [certified(one, d) for one in given]
        kept = [expression.to_json() for expression in proved]
        super().__init__(
            columns,
            queries=Expressions(proved),
            options={"query": [self._names, kept]},
            guarantee=guarantee,
            horizon=horizon,
            linear=all(expression.certificate.linear for expression in proved),
            **options,
        )

    @classmethod
    def _decoded(cls, options: Options) -> Options:
        names, kept = options["query"]
        proved = [expressions.from_json(one) for one in kept]
        return options | {"query": dict(zip(names, proved, strict=True)) if names else proved[0]}

    def _show(self, values: IntArray) -> Any:
        numbers = self._numbers(values).tolist()
        return dict(zip(self._names, numbers, strict=True)) if self._names else numbers[0]

    def _show_run(self, values: IntArray) -> NDArray[np.int64]:
        count = self._queries.count
        answers = np.array([self._numbers(row) for row in values], dtype=np.int64).reshape(len(values), count)
        return answers if self._names else answers[:, 0]

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        # An answer that was rounded up is off by one more at most.
        (below, above), shown = sides(accuracy, beta), self._show(values)
        if isinstance(shown, dict):
            return {k: v - below - 1 for k, v in shown.items()}, {k: v + above + 1 for k, v in shown.items()}
        return shown - below - 1, shown + above + 1

    def _labels(self) -> list[str] | None:
        return self._names


def _top(k: int, columns: Columns, options: Options) -> int:
    return whole("k", k, 1, column_count(columns, options.get("other")))
