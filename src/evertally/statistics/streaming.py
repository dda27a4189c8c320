"""The k leading columns of a stream, with their counts, where one event may touch every column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.selection import L
from evertally.contract.doors import Columns, EachColumn, read_columns
from evertally.contract.forms import FoundForm, RowForm
from evertally.contract.in_place import InPlace
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Engine
from evertally.contract.rows import from_bytes
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.choose import build, choose
from evertally.counting.process import IntArray
from evertally.counting.processes import Setting
from evertally.counting.tree import ABOUT_RADIX, Radix, choose_radix
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import ZCDP, Change, Guarantee, Neighbours, PureDP, change
from evertally.privacy._exact import ball, enclose, round_up
from evertally.selection.histograms import KnownGauss, KnownGumbel
from evertally.selection.meta import MISSED, KnownBlocks, MetaAlgo, block_share, paid_by
from evertally.selection.reach import Reach
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget, sparse_gumbel_budget
from evertally.selection.top_k_engines import BlockNoise, Blocks, EveryColumn, Switching, TopKAccuracy
from evertally.statistics.by_column import ABOUT_BUSIEST, ByColumn

_COUNTERS = ("tree", "bank", "pure-blocks")
MECHANISMS = ("sparse-gumbel", "meta", "meta-gauss", *_COUNTERS)

_MEMORY = 2**30


@statistic
class StreamingTopK(ByColumn):
    """The k columns with the largest sums so far, by label, and a noisy count of each.

    An event may touch every column: what is paid grows with k, not with the number of columns (streaming-selection 1.2,
    unrestricted). Ways, by `mechanism`:

    * `"sparse-gumbel"` (6 there): names k columns, counts them, and names again when another column has overtaken them
      by about `eta`, at most `switches` times; then the named columns stand and counting goes on. One switch at least
      is needed (the first selection sees one tick only); expected changes of the leaders plus one or two is a good
      number, and noise grows with its root. `eta=None` takes 4 tau1 ln(dT), rounded up (6.4 there). Theorem:
      `guarantee` must be ApproxDP against adaptive streams (1.4 there, `accounting="adaptive"`); under a guarantee with
      `adversary="oblivious"` also zCDP, with `accounting="paper"` (default), `"standard"` or `"monotone"` (6.2 there).
      `reuse`: a column that is named again keeps its counter. Time O(d) a tick, memory O(d + k L).
    * `"meta"` (5 there): the k leaders of every block of a tree, added up. (k/tau^2)-zCDP, adaptive streams included.
      Most accurate where noise is large; counts are too low, because blocks in which a column did not lead are lost,
      and `interval` says by how much at most. Time O(d) a tick, memory O(d L).
    * `"meta-gauss"`, `"tree"`, `"bank"`, `"pure-blocks"` (5 and 3.4 there, optimal-counting 2.2 and 6): every column is
      counted, in blocks of the stream or by a counter; for events of few columns (`max_per_event`). `"bank"` has about
      a third of the noise of `"tree"`, and under pure guarantees, which need a counter, `"pure-blocks"` has half of it.

    `Release.value` maps labels to counts, best first. `interval` and `error_bound` speak about the counts of the named
    columns; that these are the right columns has a theorem under assumptions on the stream only (6.3 there).
    `max_events_per_tick`, a public fact, carries the error bound of `"meta"`; without it that is infinite
    (`unbounded_because`). Exactness tier "exact".

    >>> import evertally as et
    >>> from evertally.statistics import StreamingTopK
    >>> guarantee = et.ApproxDP(epsilon=2.0, delta=1e-6)
    >>> top = StreamingTopK(2, switches=3, columns=["a", "b", "c"], guarantee=guarantee, horizon=100,
    ...                     key=et.simulation(1))
    >>> release = top.step({"a": 5000, "b": 900, "c": 9000})
    >>> list(release.value)
    ['c', 'a']
    >>> top.accounting, top.switches_left, top.run([[0, 9, 0]] * 3)[-1].keys() == release.value.keys()
    ('adaptive', 3, True)
    """

    named_ways: ClassVar[tuple[str, ...]] = MECHANISMS

    k: int = option("How many.", kw_only=False)
    switches: int | None = option(
        'How often the named columns may change after the first tick; "sparse-gumbel" needs it.',
        default=None,
        kw_only=False,
    )
    columns: Columns | tuple[str, ...] = option("The columns: how many, or their names.")
    eta: int | None = option(
        'By how much another column must have overtaken the named ones, for "sparse-gumbel"; None: 4 tau1 ln(dT).',
        default=None,
    )
    accounting: str | None = option(
        'How "sparse-gumbel" adds up its budget: "adaptive", "paper", "standard" or "monotone".', default=None
    )
    reuse: bool = option("Whether a column that is named again keeps its counter.", default=False)
    radix: Radix = option(ABOUT_RADIX, default="formula")
    max_per_event: int | None = option("How many columns an event touches at most; None: all of them.", default=None)
    max_events_per_tick: int | None = option(ABOUT_BUSIEST, default=None)

    def _blueprint(self) -> Blueprint:
        mechanism = MECHANISMS[0] if self.mechanism == "auto" else self.mechanism
        if mechanism not in MECHANISMS:
            raise ConfigurationError(f"unknown mechanism {mechanism!r}; choose one of {', '.join(MECHANISMS)}")
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('streaming selection is proved for "add_remove" and "replace" neighbours only')
        names = read_columns(self.columns)
        d = len(names) + (self.other is not None)
        per_event = self._per_event(names, self.max_per_event)
        door, kept = self._read_events(names, per_event)
        self.columns = labels = door.labels
        contribution = self._contributing(max_per_event=per_event, max_weight=self.max_weight)
        sensitivity, busiest = change(relation, contribution, d), self.max_events_per_tick
        task = _Task(
            self.guarantee,
            relation,
            sensitivity,
            Reach(self.max_weight, relation, self.max_events_per_user or 1),
            min(per_event, d),
            labels,
            whole("k", self.k, 1, d),
            whole("horizon", self.horizon, 2, LONGEST_HORIZON),
            self.radix,
            None if busiest is None else whole("max_events_per_tick", busiest, 1, 2**40) * self.max_weight,
        )
        switches = self.switches = None if self.switches is None else whole("switches", self.switches, 0, 2**20)
        self.reuse = bool(self.reuse)
        if mechanism == "sparse-gumbel":
            budget = _budget(task, switches, self.accounting)
            self.accounting = budget.accounting
            self.eta = _margin(task, budget) if self.eta is None else whole("eta", self.eta, 0, 2**60)
            way = _switching(task, budget, self.eta, self.reuse)
        elif self.eta is not None or self.accounting is not None or self.reuse:
            raise ConfigurationError('eta, accounting and reuse belong to mechanism="sparse-gumbel"')
        elif mechanism in _COUNTERS:
            way = _counters(task, mechanism)
        else:
            way = _meta(task, every=mechanism == "meta-gauss")
        settled = {"k": task.k, "columns": kept} | self._given("switches", "eta", "accounting", "reuse")
        rest = ("radix", "max_per_event", "max_weight", "max_events_per_tick", "other")
        return Blueprint(
            word="StreamingTopK",
            address=settled | self._given(*rest) | self._user_address(),
            mechanism=mechanism,
            charge=way.charge,
            contribution=contribution,
            sensitivity=sensitivity,
            door=lambda source, limit: EachColumn(door, limit),
            engine=way.build,
            form=Ranked(labels, task.k),
            settled=settled,
            open=way.open,
        )

    @property
    def switches_left(self) -> int | None:
        """How often the named columns may still change; None where there is no limit. At 0 they stand."""
        worker = getattr(self._engine, "worker", None)
        return worker.engine.switches_left if isinstance(worker, Switching) else None


class Ranked(FoundForm):
    """Four parts of k integers (selection/top_k_engines.py) as label -> count, best first, ties by name."""

    def __init__(self, labels: Sequence[str], k: int) -> None:
        self._labels, self._k = labels, k

    def _ranked(self, row: IntArray) -> list[tuple[str, int, int, int]]:
        """(label, count, blocks that missed it, their smallest counts)."""
        columns, *rest = row.reshape(4, self._k).tolist()
        picked = zip((self._labels[j] for j in columns), *rest, strict=True)
        return sorted(picked, key=lambda pick: (-pick[1], pick[0]))

    def show(self, row: IntArray) -> dict[str, int]:
        return {label: count for label, count, *_ in self._ranked(row)}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        shown = np.empty(len(rows), dtype=object)
        shown[:] = [self.show(row) for row in rows]
        return shown

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        assert isinstance(accuracy, TopKAccuracy)
        radius, loss = math.floor(accuracy.radius(beta)), accuracy.loss(beta)
        ranked = self._ranked(row)
        lower = {label: count - radius for label, count, *_ in ranked}
        return lower, {label: count + radius + floor + math.floor(n * loss) for label, count, n, floor in ranked}

    def first(self) -> IntArray:
        return np.zeros((1, 4 * self._k), dtype=np.int64)

    def nothing(self) -> IntArray:
        return self.first()[:0]

    joined, save = RowForm.joined, RowForm.save

    def load(self, data: bytes, engine: Any, tick: int) -> IntArray:
        return from_bytes(data).reshape(-1, 4 * self._k)


@dataclass(frozen=True)
class _Task:
    """What is asked, in public numbers."""

    guarantee: Guarantee
    neighbours: Neighbours
    change: Change
    reach: Reach
    max_per_event: int
    labels: Sequence[str]
    k: int
    horizon: int
    radix: Radix
    growth: int | None


@dataclass(frozen=True)
class _Way:
    charge: Guarantee
    build: Callable[[ItemSource], Engine]
    open: str = ""  # why nothing bounds its error


def _budget(task: _Task, switches: int | None, accounting: str | None) -> SparseGumbelBudget:
    if switches is None:
        raise ConfigurationError(
            "switches says how often the named columns may change after the first tick: give the number of changes "
            'that you expect, plus 1 or 2; mechanism="meta" needs none'
        )
    return sparse_gumbel_budget(task.guarantee, task.k, switches, task.change.linf, task.neighbours, accounting)


def _margin(task: _Task, budget: SparseGumbelBudget) -> int:
    """eta = 4 tau1 ln(dT): the size of the largest of d T questions' noises (streaming-selection 6.4)."""
    if not budget.switches:
        return 0
    draws = Fraction(len(task.labels) * task.horizon)
    # Balls, not floats: what is released depends on this number, and two machines must agree on it.
    return math.ceil(round_up(enclose(lambda: ball(budget.query.scale) * ball(draws).log())))


def _switching(task: _Task, budget: SparseGumbelBudget, eta: int, reuse: bool) -> _Way:
    def made(source: ItemSource) -> Switching:
        d, T = len(task.labels), task.horizon
        engine = SparseGumbel(budget, columns=d, horizon=T, eta=eta, source=source, radix=task.radix, reuse=reuse)
        return Switching(engine, task.k, counters=(budget.switches + 1) * task.k, horizon=task.horizon)

    return _Way(budget.charge, partial(InPlace, made))


def _counters(task: _Task, mechanism: str) -> _Way:
    """The leaders of a private vector of counts: post-processing, whatever noise it has."""
    setting = Setting(task.change, task.horizon, len(task.labels), _MEMORY, task.radix)
    choice = choose(task.guarantee, setting, mechanism)

    def made(source: ItemSource) -> Engine:
        return EveryColumn(lambda: build(choice, setting, source), task.labels, task.k)

    return _Way(choice.charge, made)


def _meta(task: _Task, every: bool) -> _Way:
    """A one-shot mechanism in every block, each with 1/L of the budget (streaming-selection 5.1)."""
    if isinstance(task.guarantee, PureDP):
        raise ConfigurationError(
            "MetaAlgo counts with Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee, "
            'or mechanism="pure-blocks"'
        )
    radix = choose_radix(task.horizon, task.radix, pure=False)
    depth = L(task.horizon, radix)
    charge = ZCDP(task.guarantee.to_zcdp().exact_rho, adversary=task.guarantee.adversary)
    share = block_share(charge, depth)
    one_shot: KnownGauss | KnownGumbel
    if every:
        one_shot, gumbel = KnownGauss.within(share, task.max_per_event, task.reach), None
    else:
        one_shot = KnownGumbel.within(share, task.k, reach=task.reach)
        gumbel = float(one_shot.scale)
    paid_by(charge, one_shot, depth)
    law = one_shot.law
    assert law is not None
    noise = BlockNoise(law, gumbel)

    def made(source: ItemSource) -> Blocks:
        blocks = KnownBlocks(task.labels, depth, source)
        engine = MetaAlgo(one_shot, blocks, radix=radix, depth=depth, source=source)
        return Blocks(engine, task.labels, task.k, noise, task.horizon, task.growth)

    # Before any data nothing is known about what blocks lose, unless somebody declared how much a tick may hold.
    return _Way(charge, partial(InPlace, made), MISSED if gumbel is not None and task.growth is None else "")
