"""The k leading columns of a stream, with their counts, where one event may touch every column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.counting.choose import Setting, build, choose
from evertally.counting.column_input import ColumnInput, Columns, column_count
from evertally.counting.mechanism import LONGEST_HORIZON, Accuracy, check_guarantee, whole
from evertally.counting.process import IntArray
from evertally.counting.tree import Radix, choose_radix, levels
from evertally.counting.veil import Veil, VeiledMechanism
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource, NoiseKey
from evertally.privacy import ZCDP, Change, Contribution, Guarantee, Neighbours, PureDP, change
from evertally.privacy._exact import ball, enclose, round_up
from evertally.selection.histograms import KnownGauss, KnownGumbel
from evertally.selection.meta import MISSED, KnownBlocks, MetaAlgo, block_share, paid_by
from evertally.selection.reach import Reach
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget, sparse_gumbel_budget
from evertally.selection.top_k_veils import BlockNoise, CountersVeil, MetaVeil, SwitchingVeil, TopKAccuracy

MECHANISMS = ("sparse-gumbel", "meta", "meta-gauss", "tree")

_MEMORY = 2**30


class StreamingTopK(ColumnInput, VeiledMechanism):
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
    * `"meta-gauss"`, `"tree"` (5 and 3.4 there): every column is counted, in blocks or by KnownBase; for events of few
      columns (`max_per_event`). Pure guarantees need `"tree"`.

    `Release.value` maps labels to counts, best first. `interval` and `error_bound` speak about the counts of the named
    columns; that these are the right columns has a theorem under assumptions on the stream only (6.3 there).
    `max_events_per_tick`, a public fact, carries the error bound of `"meta"`; without it that is infinite
    (`unbounded_because`). Exactness tier "exact".

    >>> import evertally as et
    >>> from evertally.selection.streaming import StreamingTopK
    >>> guarantee = et.ApproxDP(epsilon=2.0, delta=1e-6)
    >>> top = StreamingTopK(2, switches=3, columns=["a", "b", "c"], guarantee=guarantee, horizon=100,
    ...                     key=et.simulation(1))
    >>> release = top.step({"a": 5000, "b": 900, "c": 9000})
    >>> list(release.value)
    ['c', 'a']
    >>> top.accounting, top.switches_left, top.run([[0, 9, 0]] * 3)[-1].keys() == release.value.keys()
    ('adaptive', 3, True)
    """

    named_ways = MECHANISMS

    def __init__(
        self,
        k: int,
        switches: int | None = None,
        *,
        columns: Columns,
        guarantee: Guarantee,
        horizon: int,
        mechanism: str = "sparse-gumbel",
        eta: int | None = None,
        accounting: str | None = None,
        reuse: bool = False,
        radix: Radix = "formula",
        max_per_event: int | None = None,
        max_weight: int = 1,
        max_events_per_tick: int | None = None,
        other: str | None = None,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        key: NoiseKey | None = None,
        stream: str = "stream",
        name: str | None = None,
        allow_copy: bool = False,
    ) -> None:
        check_guarantee(guarantee)
        if mechanism not in MECHANISMS:
            raise ConfigurationError(f"unknown mechanism {mechanism!r}; choose one of {', '.join(MECHANISMS)}")
        relation = Neighbours.parse(neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('streaming selection is proved for "add_remove" and "replace" neighbours only')
        d = column_count(columns, other)
        per_event = d if max_per_event is None else max_per_event
        kept = self._open_door(columns, other, per_event, max_weight)
        contribution = Contribution(
            max_per_event=per_event, max_weight=max_weight, unit=unit, max_events_per_user=max_events_per_user
        )
        self.sensitivity = change(relation, contribution, d)
        self.k = whole("k", k, 1, d)
        task = _Task(
            guarantee,
            relation,
            self.sensitivity,
            Reach(max_weight, relation, max_events_per_user or 1),
            min(per_event, d),
            self.columns,
            self.k,
            whole("horizon", horizon, 2, LONGEST_HORIZON),
            radix,
            None
            if max_events_per_tick is None
            else whole("max_events_per_tick", max_events_per_tick, 1, 2**40) * max_weight,
        )
        self.switches = None if switches is None else whole("switches", switches, 0, 2**20)
        self.eta, self.accounting, self.reuse = eta, accounting, bool(reuse)
        if mechanism == "sparse-gumbel":
            budget = _budget(task, self.switches, accounting)
            self.accounting = budget.accounting
            self.eta = _margin(task, budget) if eta is None else whole("eta", eta, 0, 2**60)
            way = _switching(task, budget, self.eta, self.reuse)
        elif eta is not None or accounting is not None or reuse:
            raise ConfigurationError('eta, accounting and reuse belong to mechanism="sparse-gumbel"')
        elif mechanism == "tree":
            way = _counters(task)
        else:
            way = _meta(task, every=mechanism == "meta-gauss")
        super().__init__(
            columns=d,
            width=4 * self.k,
            contribution=contribution,
            options={
                "k": self.k,
                "switches": self.switches,
                "columns": kept,
                "eta": self.eta,
                "accounting": self.accounting,
                "reuse": self.reuse,
                "radix": radix,
                "max_per_event": max_per_event,
                "max_weight": max_weight,
                "max_events_per_tick": max_events_per_tick,
                "other": other,
                "unit": unit,
                "max_events_per_user": max_events_per_user,
            },
            guarantee=guarantee,
            charge=way.charge,
            horizon=task.horizon,
            mechanism=mechanism,
            key=key,
            neighbours=relation,
            stream=stream,
            name=name,
            allow_copy=allow_copy,
        )
        self._set_veil(way.build)

    @property
    def unbounded_because(self) -> str | None:
        """Why `error_bound` is infinite and what to declare, or None if it is not."""
        return MISSED if isinstance(self._veil, MetaVeil) and self._veil.loses_unseen else None

    @property
    def switches_left(self) -> int | None:
        """How often the named columns may still change; None where there is no limit. At 0 they stand."""
        return self._veil.engine.switches_left if isinstance(self._veil, SwitchingVeil) else None

    # -- how a release is shown: post-processing ---------------------------------------------------------------------

    def _ranked(self, values: IntArray) -> list[tuple[str, int, int, int]]:
        """(label, count, blocks that missed it, their smallest counts), best first, ties by name."""
        columns, *rest = values.reshape(4, self.k).tolist()
        picked = zip((self.columns[j] for j in columns), *rest, strict=True)
        return sorted(picked, key=lambda pick: (-pick[1], pick[0]))

    def _show(self, values: IntArray) -> dict[str, int]:
        return {label: count for label, count, *_ in self._ranked(values)}

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        shown = np.empty(len(values), dtype=object)
        shown[:] = [self._show(row) for row in values]
        return shown

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        assert isinstance(accuracy, TopKAccuracy)
        radius, loss = math.floor(accuracy.radius(beta)), accuracy.loss(beta)
        ranked = self._ranked(values)
        lower = {label: count - radius for label, count, *_ in ranked}
        return lower, {label: count + radius + floor + math.floor(n * loss) for label, count, n, floor in ranked}

    def _table(self, ticks: IntArray, values: IntArray) -> Any:
        import pyarrow as pa

        lines = []
        for t, row in zip(ticks.tolist(), values, strict=True):
            lower, upper = self._interval(row, self._accuracy(t), 0.05)
            lines += [(t, label, n, lower[label], upper[label]) for label, n in self._show(row).items()]
        names = ("tick", "column", "value", "lower", "upper")
        kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.int64())
        made = [pa.array([line[i] for line in lines], type=kind) for i, kind in enumerate(kinds)]
        return pa.table(dict(zip(names, made, strict=True)))


# -- the ways ----------------------------------------------------------------------------------------------------------


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
    build: Callable[[ItemSource], Veil]


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
    def made(source: ItemSource) -> Veil:
        engine = SparseGumbel(
            budget,
            columns=len(task.labels),
            horizon=task.horizon,
            eta=eta,
            source=source,
            radix=task.radix,
            reuse=reuse,
        )
        return SwitchingVeil(engine, counters=(budget.switches + 1) * task.k, horizon=task.horizon)

    return _Way(budget.charge, made)


def _counters(task: _Task) -> _Way:
    setting = Setting(task.change, task.horizon, len(task.labels), _MEMORY, task.radix)
    choice = choose(task.guarantee, setting, "tree")

    def made(source: ItemSource) -> Veil:
        return CountersVeil(build(choice, setting, source), task.labels, task.k)

    return _Way(choice.charge, made)


def _meta(task: _Task, every: bool) -> _Way:
    """A one-shot mechanism in every block, each with 1/L of the budget (streaming-selection 5.1)."""
    if isinstance(task.guarantee, PureDP):
        raise ConfigurationError(
            "MetaAlgo counts with Gaussian noise, which is never pure; use a zCDP or (epsilon, delta) guarantee, "
            'or mechanism="tree"'
        )
    radix = choose_radix(task.horizon, task.radix, pure=False)
    depth = levels(task.horizon, radix)
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

    def made(source: ItemSource) -> Veil:
        blocks = KnownBlocks(task.labels, depth, source)
        engine = MetaAlgo(one_shot, blocks, radix=radix, depth=depth, source=source)
        return MetaVeil(engine, task.labels, task.k, noise, task.horizon, task.growth)

    return _Way(charge, made)
