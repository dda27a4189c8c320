"""Many numbers of one stream whose events have exclusive types: totals, parts, roll-ups, tables by several columns."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from evertally.applications.metrics import Metrics, best_multipliers, moved
from evertally.applications.stack_options import read_weights
from evertally.applications.stacking import LARGEST_MULTIPLIER
from evertally.applications.typed import Metric, MetricsForm, TypeDoor, TypeOf, first_type
from evertally.contract.labelled import Labels
from evertally.contract.mechanism import by_tick
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.contract.ticks import checked_tick
from evertally.counting.processes import Gram, proved_of
from evertally.encode.door import declared_labels
from evertally.encode.frames import Table
from evertally.encode.labels import canonical
from evertally.encode.named import columns_of, combined, parts_by_name
from evertally.encode.plain import UNREADABLE
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Neighbours, PureDP
from evertally.statistics.linear_options import Linear

_ORDERED = ("metrics", "columns", "multipliers")  # options whose order means something
_LONGEST_TABLE = 2**16  # types, and types times metrics in units of 64


@statistic
class ByType(Linear):
    """Metrics over exclusive types. Not used directly; see `Dashboard` and `GroupBy`."""

    multipliers: str | Mapping[str, int] = option(
        'The whole number that each metric is multiplied by in the counter; "auto" balances metrics by `weights`.',
        default="auto",
    )
    weights: Mapping[str, Any] | None = option(
        "How much the variance of a metric matters to multipliers that are found; 1 where none is given.", default=None
    )
    way: Literal["auto", "metrics", "types"] = option(
        'What is counted: each of the "metrics", or "types", which metrics are sums of; "auto": what has less error.',
        default="auto",
    )

    @by_tick
    def stddevs(self, tick: int) -> dict[str, float | None]:
        """The standard deviation of each metric at a tick."""
        accuracy = self._engine.accuracy(checked_tick(tick, self.horizon))
        return {metric.name: metric.accuracy(accuracy).stddev for metric in self._shown}

    @by_tick
    def error_bounds(self, beta: float = 0.05, tick: int | None = None) -> dict[str, float]:
        """With probability at least 1 - beta no metric of any tick is further off than its number here."""
        bound = self._bound(beta, tick)
        return {metric.name: metric.bound(bound) for metric in self._shown}

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None) -> float:
        """The largest of `error_bounds`."""
        return max(self.error_bounds(beta, tick).values())

    @abstractmethod
    def _typed(self) -> tuple[Metrics, TypeOf, Options]:
        """Metrics over types, how an event gets its type, and the options that say so, as they are kept."""

    @abstractmethod
    def _labels(self) -> Labels:
        """What the types are called."""

    @classmethod
    def _encoded(cls, name: str, value: Any) -> Any:
        # As a list: the order of metrics is that of columns, and mappings may be written in another.
        if name in _ORDERED and isinstance(value, Mapping):
            return [[key, super(ByType, cls)._encoded("", part)] for key, part in value.items()]
        return super()._encoded(name, value)

    @classmethod
    def _decoded(cls, name: str, value: Any) -> Any:
        return dict(value) if name in _ORDERED and isinstance(value, list) else super()._decoded(name, value)

    def _counted(self, word: str) -> Blueprint:
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('an event has one type and moves many metrics: use "add_remove" or "replace"')
        contribution = self._contributing()
        metrics, type_of, kept = self._typed()
        labels = self._labels()
        weights = read_weights(self.weights, metrics.names)
        numbers = self._numbers(metrics, weights)
        matrix = metrics.rows(numbers)
        plain = np.eye(metrics.contains.shape[1], dtype=np.int64)
        if self.way not in ("auto", "metrics", "types"):
            raise ConfigurationError('way is "auto", "metrics" or "types"')
        if self.way == "auto":
            # What each way makes of sum_i w_i var_i, up to one factor (pure: l1 in place of sqrt of l2_squared).
            apart = self._cost(moved(matrix, relation, contribution)) * sum(
                weight / number**2 for weight, number in zip(weights, numbers, strict=True)
            )
            summed = self._cost(moved(plain, relation, contribution)) * float(weights @ metrics.contains.sum(axis=1))
            self.way = "types" if summed < apart and self.multipliers == "auto" else "metrics"
        by_types = self.way == "types"
        if by_types:
            matrix, numbers = plain, [1] * len(numbers)
        self._shown = [
            Metric(name, tuple(np.flatnonzero(row).tolist()) if by_types else (i,), number)
            for i, (name, row, number) in enumerate(zip(metrics.names, metrics.contains, numbers, strict=True))
        ]
        settled: Options = {"multipliers": dict(zip(metrics.names, numbers, strict=True)), "weights": None}
        rows = self._linear(
            word,
            matrix.shape[1],
            moved(matrix, relation, contribution),
            contribution,
            {name: self._encoded(name, value) for name, value in kept.items()}
            | {"multipliers": numbers}
            | self._given("way", "unit", "max_events_per_user"),
            lambda source, limit: TypeDoor(type_of, labels, matrix, limit),
            MetricsForm(self._shown, matrix.shape[1]),
            settled=kept | settled | {"way": self.way},
        )
        self.multipliers = settled["multipliers"]
        users_replaced = relation is Neighbours.REPLACE and contribution.max_events_per_user is not None
        if users_replaced and proved_of(rows.mechanism) is Gram.UNKNOWN:
            raise ConfigurationError(
                f'mechanism "{rows.mechanism}": that a replaced user costs no more than twice a removed one needs a '
                "factor whose Gram matrix is nowhere negative (users-and-domains 1.2); take one of ours"
            )
        return rows

    def _cost(self, change: Any) -> float:
        return float(change.l1) ** 2 if isinstance(self.guarantee, PureDP) else float(change.l2_squared)

    def _numbers(self, metrics: Metrics, weights: Any) -> list[int]:
        given = self.multipliers
        if isinstance(given, str):
            if given != "auto":
                raise ConfigurationError('multipliers are "auto", or a whole number for each metric by its name')
            return best_multipliers(metrics.contains, weights, pure=isinstance(self.guarantee, PureDP))
        if not isinstance(given, Mapping) or set(given) != set(metrics.names):
            raise ConfigurationError("multipliers are given for every metric, or for none")
        if self.weights is not None:
            raise ConfigurationError('weights go with multipliers="auto"; multipliers that are given need none')
        return [whole("a multiplier", given[name], 1, LARGEST_MULTIPLIER) for name in metrics.names]


@statistic
class Dashboard(ByType):
    """Many counts of events that each have exactly one type: a total, its parts, groups of types, roll-ups.

    An event gets the first declared type among its labels (`other` for labels that nobody declared, if there is one),
    and moves the metrics that contain it. What is charged for is the largest sum over *one type* of the squares of its
    metrics' multipliers: a total and ten types cost 2, where eleven counters by themselves cost 11, so that errors are
    2.3 times smaller. Multipliers make sum_i w_i variance_i as small as whole numbers allow; where counting types and
    adding them up has less error, that is done (`way`).

    Theorem: users-and-domains 1.6 and 7 [R]; "add_remove" and "replace" (exact for one event); users with
    `max_events_per_user` w: w^2 times that of one event, twice that where a user is replaced. Tier "exact". Error: that
    of a counter times sqrt(charge)/c_i, by metric in `stddevs` and `error_bounds`. Time and memory as VectorCounter
    with a column for each metric.

    >>> import evertally as et
    >>> shop = et.Dashboard(types=["click", "order", "refund"], metrics={"all": "all", "money": ["order", "refund"]},
    ...                     guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> release = shop.step_events(["click", "click", ["order", "click"], "refund", None])
    >>> sorted(release.value), shop.way, shop.multipliers, round(shop.stddevs(100)["money"], 1)
    (['all', 'money'], 'metrics', {'all': 1, 'money': 1}, 3.2)
    """

    types: Sequence[str] = option("The types, all of them; an event with several labels has the first one.")
    metrics: Mapping[str, Any] = option('Lists of types by name; "all" stands for all of them.')
    other: str | None = option("A type for labels that were not declared; None: they are dropped.", default=None)

    def _blueprint(self) -> Blueprint:
        return self._counted("Dashboard")

    def _typed(self) -> tuple[Metrics, TypeOf, Options]:
        labels = declared_labels(self.types, self.other)
        if len(labels) > _LONGEST_TABLE:
            raise ConfigurationError(f"a dashboard has up to {_LONGEST_TABLE} types")
        declared = list(labels if self.other is None else labels[:-1])
        metrics = Metrics.of(labels, _canonical(self.metrics))
        self.types, self.other = declared, None if self.other is None else labels[-1]
        wanted = [[labels[t] for t in np.flatnonzero(row)] for row in metrics.contains]
        self.metrics = dict(zip(metrics.names, wanted, strict=True))
        other = None if self.other is None else len(labels) - 1
        self.each_type = list(labels)
        index = {label: number for number, label in enumerate(labels)}
        return metrics, first_type(index, other), self._given("types", "other", "metrics")

    def _labels(self) -> Labels:
        return Labels.of(self.each_type, None if self.other is None else len(self.each_type) - 1)


def _canonical(metrics: Any) -> Any:
    """The labels of metrics in their one spelling."""
    if not isinstance(metrics, Mapping):
        return metrics
    return {
        name: wanted if isinstance(wanted, str) or not isinstance(wanted, Sequence) else [canonical(x) for x in wanted]
        for name, wanted in metrics.items()
    }


@statistic
class GroupBy(ByType):
    """Counts by several columns at once, and tables of fewer of them: by sex and ward, by ward alone, in all.

    An event has a value in each of the `columns`; one whose value somewhere was not declared is dropped. Each of the
    `tables` is a list of columns whose combinations are counted; [] is the total. Counted is either the whole product,
    which tables are sums of, or each table by itself under one budget: what has less error, from public numbers.

    Theorem, tier, units: as `Dashboard` (users-and-domains 7, group-by): an event moves one cell of each table, so the
    charge of tables is their number. Value: numbers by cell, "ward=north" or "sex=f, ward=north", "all" for [].

    >>> import evertally as et
    >>> visits = et.GroupBy(columns={"sex": ["f", "m"], "ward": ["north", "south"]}, tables=[["ward"], []],
    ...                     guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> list(visits.step_events([("f", "north"), ("m", "south"), ("x", "north"), None]).value)
    ['ward=north', 'ward=south', 'all']
    """

    columns: Mapping[str, Sequence[Any]] = option("The declared values of each column, by its name.")
    tables: Sequence[Sequence[str]] = option("Lists of columns whose combinations are counted; [] is the total.")

    def _blueprint(self) -> Blueprint:
        return self._counted("GroupBy")

    def _typed(self) -> tuple[Metrics, TypeOf, Options]:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise ConfigurationError('columns are lists of values by name: {"sex": ["f", "m"]}')
        values = {name: list(declared_labels(listed)) for name, listed in dict(self.columns.items()).items()}
        tables = _read_tables(self.tables, list(values))
        cells = _combinations(values)
        places: dict[tuple[str | None, ...], int] = {cell: number for number, cell in enumerate(cells)}
        names = _named(values, tables)
        if len(names) * len(cells) > 64 * _LONGEST_TABLE * 64:
            raise ConfigurationError("these tables have too many cells; ask for fewer, or use several statistics")
        contains = np.zeros((len(names), len(cells)), dtype=bool)
        for row, numbers in zip(contains, names.values(), strict=True):
            row[numbers] = True
        self.columns, self.tables, self.each_type = values, tables, list(cells)
        names_of_columns = tuple(values)

        def type_of(event: Any) -> int | None:
            try:
                parts = parts_by_name(event, names_of_columns)
                return None if parts is None else places.get(tuple(map(canonical, parts)))
            except UNREADABLE:
                return None

        return Metrics(tuple(names), contains), type_of, self._given("columns", "tables")

    def _labels(self) -> Labels:
        return Labels.of(self.each_type, levels=list(self.columns))

    def _of_table(self, found: Table) -> Any:
        return combined(found, columns_of(found, list(self.columns)))


def cells_of(columns: Mapping[str, Sequence[Any]], tables: Sequence[Sequence[str]]) -> list[str]:
    """What the numbers of a `GroupBy` are called, in their order.

    >>> cells_of({"sex": ["f", "m"], "ward": ["north"]}, [["ward"], ["sex"]])
    ['ward=north', 'sex=f', 'sex=m']
    """
    values = {name: list(declared_labels(listed)) for name, listed in columns.items()}
    return list(_named(values, _read_tables(tables, list(values))))


def _combinations(values: Mapping[str, list[str]]) -> list[tuple[str, ...]]:
    cells = list(itertools.islice(itertools.product(*values.values()), _LONGEST_TABLE + 1))
    if len(cells) > _LONGEST_TABLE:
        raise ConfigurationError(f"these columns have more than {_LONGEST_TABLE} combinations")
    return cells


def _named(values: Mapping[str, list[str]], tables: list[list[str]]) -> dict[str, list[int]]:
    """The combinations that each number counts, by its name."""
    names: dict[str, list[int]] = {}
    for table in tables:
        for number, cell in enumerate(_combinations(values)):
            shown = ", ".join(f"{name}={part}" for name, part in zip(values, cell, strict=True) if name in table)
            names.setdefault(shown or "all", []).append(number)
    return names


def _read_tables(tables: Any, columns: list[str]) -> list[list[str]]:
    if isinstance(tables, str) or not isinstance(tables, Sequence) or not len(tables):
        raise ConfigurationError('tables are lists of columns: [["sex", "ward"], ["ward"], []]')
    read: list[list[str]] = []
    for table in tables:
        if isinstance(table, str) or not isinstance(table, Sequence) or not set(table) <= set(columns):
            raise ConfigurationError(f"a table is a list of columns, of {', '.join(columns)}")
        read.append([name for name in columns if name in table])
    if len({tuple(table) for table in read}) != len(read):
        raise ConfigurationError("a table is asked for once")
    return read
