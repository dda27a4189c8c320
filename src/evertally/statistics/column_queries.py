"""Questions about column sums: largest, smallest, quantiles, top k, and what a user certifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from evertally.contract.doors import Columns, EachColumn, read_columns
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Form, Options
from evertally.encode.labels import is_text
from evertally.errors import ConfigurationError
from evertally.histogram import expressions
from evertally.histogram.expressions import Expression, exact_number
from evertally.histogram.refuter import certified
from evertally.histogram.tasks import AllColumns, Expressions, Largest
from evertally.histogram.ways import ColumnWay
from evertally.integers import whole
from evertally.partition import Queries
from evertally.statistics.by_column import ByColumn
from evertally.statistics.column_options import Guessing
from evertally.statistics.forms import Answer, Answers, Leader, Leaders, RoundedAnswers


@statistic
class ColumnQuery(ByColumn, Guessing):
    """Not used directly; see `MaxSum`, `MinSum`, `SumQuantile`, `TopK`, `SumSelect`, `TopKSelect`, `MonotoneQuery`.

    An event touches at most `max_per_event` columns (None: all) and adds an integer from 0 to `max_weight` to each.
    """

    max_per_event: int | None = option("How many columns an event touches at most; None: all of them.", default=None)
    memory_limit: int = option("The bytes that noise may take at most.", default=2**30)

    word: ClassVar[str]  # in the address of the noise: it stays when a class is renamed

    def _question(
        self,
        names: Sequence[Any],
        queries: Callable[[int], Queries],
        form: Callable[[ColumnWay, Queries, tuple[str, ...]], Form],
        further: Options | None = None,
        *,
        linear: bool = False,
        selects: bool = False,
    ) -> Blueprint:
        """The blueprint of a question; `further` are its own options, as addresses and snapshots keep them."""
        d = len(names) + (self.other is not None)
        per_event = self._per_event(names, self.max_per_event)
        door, kept = self._read_events(names, per_event)
        # `columns` is a field of each question, after what it asks for: a field here would come before it.
        vars(self)["columns"] = door.labels
        asked = self._queries = queries(d)
        return self._partitioned(
            word=self.word,
            mechanism=self.mechanism,
            columns=d,
            queries=asked,
            max_per_event=per_event,
            max_weight=self.max_weight,
            memory_limit=self.memory_limit,
            address=(further or {}) | {"columns": kept} | self._given("max_per_event", "other"),
            door=lambda source, limit: EachColumn(door, limit),
            form=lambda approach: form(approach, asked, door.labels),
            linear=linear,
            selects=selects,
            settled=(further or {}) | {"columns": kept},
        )


def one_number(approach: ColumnWay, queries: Queries, labels: tuple[str, ...]) -> Form:
    """Shown as it is."""
    return Answer(approach, queries)


@statistic
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

    word = "MaxSum"
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        return self._question(read_columns(self.columns), lambda d: Largest(1), one_number)


@statistic
class MinSum(ColumnQuery):
    """The smallest column sum so far: as `MaxSum`, with the order statistic of rank 1 (parameterized-histograms 7.1).

    The `largest` that matters is that of the smallest column, which is 0 as long as one column is idle.

    >>> import evertally as et
    >>> least = et.MinSum(columns=3, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> least.step([5, 2, 9]).tick
    1
    """

    word = "MinSum"
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        names = read_columns(self.columns)
        return self._question(names, lambda d: Expressions([expressions.Minimum()]), one_number)


@statistic
class SumQuantile(ColumnQuery):
    """The q-quantile of the column sums: the smallest sum that at least a part q of the columns does not exceed.

    How often the middle category occurred, say; quantiles of a column of numbers are `ValueQuantile`.

    q is in (0, 1] and read exactly (0.07 is 7/100): rank ceil(q d) in rising order, so 1 is the maximum and 1/2 the
    lower median. Theorem and cost as `MaxSum`; all order statistics have sensitivity 1 (parameterized-histograms 7.1).

    >>> import evertally as et
    >>> median = et.SumQuantile(0.5, columns=5, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> median.run([[1, 2, 3, 4, 5]] * 4).shape
    (4,)
    """

    word = "Quantile"
    earlier_names = ("Quantile",)
    q: Fraction | float | str = option("Which part of the columns is not above it, in (0, 1].", kw_only=False)
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        self.q = q = exact_number(self.q, "q")
        names = read_columns(self.columns)
        return self._question(names, lambda d: Expressions([expressions.Quantile(q)]), one_number, {"q": str(q)})


@statistic
class TopK(ColumnQuery):
    """The k largest column sums, in falling order; values, not labels (for those see `TopKSelect`).

    k order statistics share one partition (parameterized-histograms 4.3 and 7.1): one noise tests them all.

    >>> import evertally as et
    >>> top = et.TopK(2, columns=5, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> top.step([1, 2, 3, 4, 5]).value.shape, top.run([[1, 2, 3, 4, 5]] * 3).shape
    ((2,), (3, 2))
    """

    word = "TopK"
    k: int = option("How many.", kw_only=False)
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        return self._question(
            read_columns(self.columns),
            self._largest,
            lambda approach, queries, labels: Answers(approach, queries),
            {"k": self.k},
        )

    def _largest(self, d: int) -> Queries:
        return Largest(whole("k", self.k, 1, d))


@statistic
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

    word = "SumSelect"
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        return self._question(read_columns(self.columns), lambda d: Largest(1), Leader, selects=True)


@statistic
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

    word = "TopKSelect"
    k: int = option("How many.", kw_only=False)
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        return self._question(
            read_columns(self.columns),
            self._all,
            lambda approach, queries, labels: Leaders(labels, self.k, approach.width),
            {"k": self.k},
            linear=True,
            selects=True,
        )

    def _all(self, d: int) -> Queries:
        whole("k", self.k, 1, d)
        return AllColumns(d)


@statistic
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

    word = "MonotoneQuery"
    query: Any = option("A certified expression, a function that traces to one, or a mapping of such.", kw_only=False)
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        by_name = list(self.query.items()) if isinstance(self.query, Mapping) else None
        called = None if by_name is None else [name for name, _ in by_name]
        given: list[Expression | Callable[[Any], Any]] = [self.query] if by_name is None else [q for _, q in by_name]
        if not given:
            raise ConfigurationError("give at least one query")
        if not all(type(name) is str and is_text(name) for name in called or ()):
            raise ConfigurationError("several queries have names, which are texts")
        names = read_columns(self.columns)
        proved = [certified(one, len(names) + (self.other is not None)) for one in given]
        return self._question(
            names,
            lambda d: Expressions(proved),
            lambda approach, queries, labels: RoundedAnswers(approach, queries, called),
            {"query": [called, [expression.to_json() for expression in proved]]},
            linear=all(expression.certificate.linear for expression in proved),
        )

    @classmethod
    def _decoded(cls, name: str, value: Any) -> Any:
        if name != "query":
            return super()._decoded(name, value)
        names, kept = value
        proved = [expressions.from_json(one) for one in kept]
        return dict(zip(names, proved, strict=True)) if names else proved[0]
