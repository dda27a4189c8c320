"""Running counts: of one thing, of several at once, and by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from evertally.contract.doors import Bins, Columns, EachColumn, OneAmount, read_columns
from evertally.contract.forms import LabelledForm, NumberForm
from evertally.contract.options import foreign, option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.counting.processes import PROCESSES
from evertally.encode import AmountDoor
from evertally.encode.cells import Outside
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import AllColumns
from evertally.histogram.ways import NAMES
from evertally.ranking import Ranking
from evertally.statistics.bins import Edges, bins, check_categories_or_edges
from evertally.statistics.column_options import Guessing
from evertally.statistics.forms import Answer, AnswersByLabel
from evertally.statistics.in_steps import InSteps
from evertally.statistics.separated_options import RULE
from evertally.statistics.workload_options import Weighing

_SPARSE: Options = {"largest": None, "max_events_per_tick": None, "beta": 0.05, "split": None, "calibration": None}
_NOT_SPARSE: Options = {"radix": "formula", "signed": False, "workload": None, "band": None, **RULE}
_OF_AMOUNTS: Options = {"resolution": None}
_OF_LABELS: Options = {
    "max_per_event": 1,
    "max_weight": 1,
    "signed": False,
    "protects": "event",
    "other": None,
} | _OF_AMOUNTS


@statistic
class SparseToo(Weighing, Guessing):
    """Counts that can also be kept by a partition, `mechanism="sparse"`: for streams where little happens. Not used
    directly; see `Counter` and `Histogram`.

    Intervals close when a noisy count inside them passes a noisy threshold; only their totals meet the counter H, in
    the partition of Dwork, Naor, Reingold and Rothblum (parameterized-histograms 4.5 [D][R], variant V2 of 7.2).
    `largest` is a public guess at the final count; H comes in blocks that grow (partition/blocks.py), so a count beyond
    it costs accuracy alone. Nothing is tuned in hindsight. The other ways of `MaxSum` are taken by name too.
    """

    signed: bool = option("Whether amounts may be negative.", default=False)

    named_ways: ClassVar[tuple[str, ...]] = ("sparse",)

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its process from, or that a partition was taken from."""
        return Guessing.ways(self) if self._way() is not None else Weighing.ways(self)

    def _way(self) -> str | None:
        """The way to answer that is no linear noise, None for linear noise."""
        if self.mechanism == "sparse":
            return "intervals"
        return self.mechanism if self.mechanism in NAMES and self.mechanism not in PROCESSES else None

    def _only_linear(self) -> None:
        foreign(self._given(*_SPARSE), _SPARSE, 'mechanism="sparse"')

    def _only_sparse(self) -> None:
        if self.signed:
            raise ConfigurationError(
                "queries on column sums need counts that only grow; signed amounts are for Counter, VectorCounter and "
                "Histogram with linear noise"
            )
        foreign(self._given(*_NOT_SPARSE), _NOT_SPARSE, "linear noise")

    def _windows(self) -> Options:
        # Addresses of streams without windows hold no such word.
        return {"max_window": self.max_window} if self.max_window else {}


@statistic
class Counter(SparseToo):
    """The running total of a stream: how many events so far, or how much.

    An event adds an integer from 0 to `max_weight` (from -max_weight if `signed`); fractions of it are cut towards
    zero, for a counter counts: what has fractions is summed by `RunningSum`, by category by `Histogram`, with a
    `resolution`. After every tick the total of all ticks so far is released, with integer noise. The noise follows from
    key, `stream`, `name` and parameters: a second counter on *other* data needs another key or another name, or their
    difference is published exactly.

    Theorem (optimal-counting 2.2 and 6, price-of-continual-release 3.2): all releases together keep `guarantee` under
    `neighbours`, also when the stream is chosen after seeing earlier releases. With a bank the worst standard deviation
    is within 0.3 % of the least that Gaussian noise can have, about (ln(T)/pi + 0.74) max_weight/sqrt(2 rho); an
    (epsilon, delta) guarantee is kept by the exact Gaussian curve. Exactness tier: "exact". Time per tick O(1); memory
    4 to 10 numbers, under a pure guarantee up to six kilobytes.

    `workload` takes the place of the running total: decays, sliding windows, public weights (et.workloads;
    factorization-counting 6.10), each with its own noise and error.

    `mechanism="sparse"` (parameterized-histograms 4.5) is for streams with few events: error O((log^2 n + log T)/eps)
    for n events in T ticks, against O(log^1.5 T/eps) or more for a counter that pays at every tick; `largest` guesses
    the final total. Time O(1) for a tick, memory O(log n).

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    >>> release = counter.step(3)
    >>> counter.mechanism, counter.tick, round(counter.stddev(4096), 2), counter.exactness
    ('bank', 1, 3.41, 'exact')
    >>> counter.run([1, 0, 2]).dtype
    dtype('int64')
    >>> rare = et.Counter(mechanism="sparse", guarantee=et.PureDP(1.0), horizon=10**6, largest=1000, max_window=100,
    ...                   key=et.simulation(1))
    >>> bool(abs(rare.run([0] * 1000)[-1]) <= rare.error_bound(beta=0.01)), rare.mechanism, rare.last(100).value
    (True, 'sparse', 0)
    """

    max_weight: int = option("The largest amount that an event adds (to each of its columns).", default=1)

    instead: ClassVar[Mapping[str, str]] = {
        "resolution": "it counts; sums of amounts are et.RunningSum(upper=..., resolution=...)"
    }

    def _blueprint(self) -> Blueprint:
        way = self._way()
        if way is not None:
            return self._sparse(way)
        self._only_linear()
        contribution = self._contributing(max_weight=self.max_weight, signed=self.signed)
        amounts = AmountDoor(self.max_weight, self.signed)
        return self._counted(
            "Counter",
            1,
            contribution,
            self._given("max_weight", "signed") | self._user_address(),
            lambda source, limit: OneAmount(amounts, limit, self.signed),
            NumberForm(1),
        )

    def _sparse(self, way: str) -> Blueprint:
        self._only_sparse()
        amounts = AmountDoor(self.max_weight, signed=False)
        queries = AllColumns(1)
        return self._partitioned(
            word="SparseCounter",
            mechanism=way,
            shown=_shown(way),
            columns=1,
            queries=queries,
            max_per_event=1,
            max_weight=self.max_weight,
            memory_limit=self.memory_limit,
            address={"columns": 1, "max_per_event": None, "other": None} | self._windows(),
            door=lambda source, limit: OneAmount(amounts, limit),
            form=lambda approach: Answer(approach, queries),
            linear=True,
        )


@statistic
class VectorCounter(InSteps):
    """Several running totals of one stream, released together: one column each.

    An event touches at most `max_per_event` columns and adds an integer from 0 to `max_weight` to each. All columns
    share one budget: the noise depends on how far *one event* moves the row, not on the number of columns
    (factorization-counting 5 and 6.3; streaming-selection 3.4, KnownBase). With `resolution` amounts have fractions and
    are rounded without a bias (additions 12).

    `neighbours`: "add_remove" costs l2^2 = b w^2, "replace" min(2b, d) w^2 (4 b w^2 if signed), "independent" d w^2.
    Users with n events: n^2 times the first, replaced ones 2 n^2 times (4 if signed; users-and-domains 1.2); few ticks
    of a user, or ticks that are apart, cost less (`max_ticks_per_user`, `min_separation`; 1.3 there).
    `protects="item"`: one item of an event instead of the whole event; where events are cut to `max_per_event` items,
    the removal of one lets another in, and two columns move.

    Exactness tier "exact"; time O(d) per tick; memory 32 to 80 bytes a column (bank), under a pure guarantee a few
    kilobytes (pure-blocks).

    >>> import evertally as et
    >>> totals = et.VectorCounter(columns=3, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> totals.step([2, 0, 1]).value.shape, totals.run([[0, 1, 0], [1, 1, 1]]).shape
    ((3,), (2, 3))
    """

    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.", kw_only=False)

    def _blueprint(self) -> Blueprint:
        return self._columns_of("VectorCounter", read_columns(self.columns), "columns", by_label=False)


@statistic
class Histogram(InSteps, SparseToo):
    """How often each category occurred so far.

    The categories are public and fixed; every one is released at every tick, zero or not (a category that appears only
    when it is non-zero would reveal that). Labels outside the list are dropped silently, or counted under `other`.

    With `edges` in place of categories events are numbers, and are counted by bin: above its lower edge and at most its
    upper one (users-and-domains 4). Values beyond the edges count in the first and last bin, or in two bins of their
    own (`outside="cells"`); what is no number counts nowhere. `step` takes the tick's values.

    With `resolution` categories have amounts, such as revenue by country: an event maps labels to numbers from 0 to
    `max_weight`, each rounded to a multiple of the resolution without a bias, by a coin that no other event has a say
    in (additions 12). `step` takes the tick's events then. Error and noise in the unit of amounts.

    Theorem (factorization-counting 6.3 with the truncation rows, streaming-selection 3.4 KnownBase): as VectorCounter,
    whose options apply here. Error of each count: see `stddev` and `error_bound`, which cover all categories at once.

    `mechanism="sparse"`: error that grows with the counts, not with the stream. All categories share one partition,
    whose test looks at the largest count of the open interval (parameterized-histograms 7.1 and variant V2 of 7.2);
    `largest` guesses the largest count. Error 2 alpha_SV + err + gamma in every category at once. Time O(d) for a tick,
    much less in `run` with `SparseRows`; memory O(d log n).

    >>> import evertally as et
    >>> visits = et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(2))
    >>> sorted(visits.step({"a": 2, "b": 0}).value)
    ['a', 'b']
    >>> visits.step_events(["a", "b", "unknown", None]).tick
    2
    >>> visits.run([[1, 0], [0, 1]]).shape
    (2, 2)
    >>> rare = et.Histogram(mechanism="sparse", categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=10**6,
    ...                     largest=1000, key=et.simulation(2))
    >>> rare.step({"a": 2, "b": 0}).value
    {'a': 0, 'b': 0}
    >>> ages = et.Histogram(edges=[0, 18, 65, 120], guarantee=et.ZCDP(0.5), horizon=12, key=et.simulation(1))
    >>> list(ages.step([4, 18, 30, 50.5, 70, None]).value)
    ['0 to 18', '18 to 65', '65 to 120']
    >>> revenue = et.Histogram(categories=["DE", "FR"], max_weight=500, resolution=0.01, guarantee=et.ZCDP(0.5),
    ...                        horizon=12, key=et.simulation(1))
    >>> release = revenue.step([{"DE": 19.99}, {"FR": 45.5}, {"DE": 700}] * 1000)
    >>> bool(abs(release.value["DE"] - 519_990) < release.stddev * 5), round(release.stddev / 500, 2)
    (True, 1.62)
    """

    instead: ClassVar[Mapping[str, str]] = {
        "bins": "bins of numbers are declared by where they begin and end: edges=[0, 10, 20, 60]"
    }

    categories: Sequence[str] | None = option("The categories, all of them.", default=None)
    edges: Edges | None = option(
        "In place of categories: where bins of numbers begin and end, increasing numbers or "
        '{"from": 0.1, "to": 1000, "ratio": 1.02}.',
        default=None,
    )
    outside: Outside | None = option(
        'With edges: whether values beyond them count in the bins at the "ends" (as without it), or in two "cells" of '
        "their own.",
        default=None,
    )

    def _blueprint(self) -> Blueprint:
        check_categories_or_edges(self.categories, self.edges, self.outside)
        way = self._way()
        if way is not None:
            self._only_sparse()
            foreign(self._given("protects", "resolution"), {"protects": "event"} | _OF_AMOUNTS, "linear noise")
        else:
            self._only_linear()
        if self.edges is not None:
            return self._binned(self.edges, way)
        if isinstance(self.categories, int | str):
            raise ConfigurationError("categories is a list of labels")
        names = list(self.categories or ())
        if way is not None:
            return self._sparse(names, way)
        plan = self._columns_of("Histogram", names, "categories", by_label=True)
        self.categories = self.columns
        return plan

    def _binned(self, given: Edges, way: str | None) -> Blueprint:
        foreign(self._given(*_OF_LABELS), _OF_LABELS, "categories: a value lies in one bin, and counts once")
        cells = bins(given, self.outside, self.neighbours)
        self.edges = edges = cells.edges.tolist()
        self.columns = tuple(cells.labels())
        address, settled = {"edges": edges, "outside": self.outside or "ends"}, {"edges": edges}
        if way is None:
            return self._counted(
                "Histogram",
                cells.count,
                self._contributing(),
                address | self._user_address(),
                lambda source, limit: Bins(cells, limit),
                LabelledForm(self.columns),
                settled=settled,
            )
        return self._partitioned(
            word="SparseHistogram",
            mechanism=way,
            shown=_shown(way),
            columns=cells.count,
            queries=AllColumns(cells.count),
            max_per_event=1,
            max_weight=1,
            memory_limit=self.memory_limit,
            address=address | self._windows(),
            door=lambda source, limit: Bins(cells, limit),
            form=lambda approach: AnswersByLabel(cells.labels()),
            linear=True,
            settled=settled,
        )

    def _sparse(self, names: list[Any], way: str) -> Blueprint:
        per_event = self._per_event(names, self.max_per_event)
        door, kept = self._read_events(names, per_event)
        self.categories = self.columns = door.labels
        queries = AllColumns(door.width)
        return self._partitioned(
            word="SparseHistogram",
            mechanism=way,
            shown=_shown(way),
            columns=door.width,
            queries=queries,
            max_per_event=per_event,
            max_weight=self.max_weight,
            memory_limit=self.memory_limit,
            address={"columns": kept} | self._given("max_per_event", "other") | self._windows(),
            door=lambda source, limit: EachColumn(door, limit),
            form=lambda approach: AnswersByLabel(door.labels),
            linear=True,
            settled={"categories": kept},
        )


def _shown(way: str) -> str:
    return "sparse" if way == "intervals" else way
