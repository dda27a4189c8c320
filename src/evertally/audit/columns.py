"""Audits of queries on column sums, from the program itself: one for each engine behind such a query.

* partitions: the probability of a transcript on two streams (`audit.partition`), with rows that are searched for such
  that the answer moves one way while the interval waits and the other way when it closes (parameterized-histograms 9.3,
  A1); and the noise of H, read off the program for all its inserts.
* counters: they are those of `VectorCounter` (`counters_behind`), and audited as that.
* recomputation: what a change does to each of the m releases, and the law of the draw or of the selection behind it.
* constants: the same releases on two streams.

A partition is audited on a copy with few intervals: thresholds and their number decide nothing about privacy (2.2).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from evertally.audit.adversaries import worst_pair
from evertally.audit.game import Factory, FloatArray, IntArray
from evertally.audit.gaussian import ImpulseSource, claimed_mu, fitting, form_of, laplace_scales
from evertally.audit.label_noise import PlantedVariates
from evertally.audit.laplace import ShiftForm, is_real_laplace
from evertally.audit.partition import close_loss, histogram_loss, levels_after, transcript_loss
from evertally.audit.report import Report
from evertally.audit.scripts import Address, Make, Script
from evertally.contract.in_place import InPlace
from evertally.counting.choose import build
from evertally.counting.linear import JointSums
from evertally.errors import ConfigurationError
from evertally.histogram.in_place import Constant, Recomputation
from evertally.histogram.ways import ColumnWay, choose
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, NoiseKey, Variates, simulation
from evertally.noise.reals import RealLaw
from evertally.noise.source import ZeroSource
from evertally.noise.variates import VariateKind
from evertally.partition import Configuration, PartitionEngine, TwoLevelPlan
from evertally.partition.histograms import make_histogram
from evertally.privacy import ZCDP, ApproxDP, Neighbours, PureDP
from evertally.statistics import VectorCounter
from evertally.statistics.column_options import Guessing

Audit = tuple[str, Callable[[], Report]]

_MOST_CLOSES = 8  # intervals of the copy
_MOST_INSERTS = 128  # of an H, whose noise is a matrix
_UNLIMITED_INSERTS = 63  # of an H without a limit: six epochs
_MOST_PARTS = 4  # of a row, in the search for a pair: 3^4 rows before the change and 4^4 after it
_TAIL = 1e-20
_MOST_UNLIKELY = 200.0
_ORDERS = (1.01, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
_FAR = 2.0**30  # a variate that beats every count
_CLOSES = "times of closes alone"


def approach_of(model: Guessing) -> ColumnWay:
    """The way that the mechanism has chosen, once more."""
    return choose(replace(model._task, settled=model._options["calibration"]), model._plan.named)


def worker_of(model: Guessing) -> Any:
    """The engine behind a question that changes in place; None for counters."""
    return getattr(model._engine, "worker", None)


def column_audits(model: Guessing, wait: int) -> list[Audit]:
    """The audits that play no games; `wait` is how many ticks an interval waits in the transcripts that are judged."""
    approach, worker = approach_of(model), worker_of(model)
    if isinstance(worker, PartitionEngine):
        return _partition_audits(model, approach, wait)
    if isinstance(worker, Recomputation):
        judged = _selection_report if model._task.selects else _answers_report
        return [("exact law", lambda: judged(model, approach))]
    if isinstance(worker, Constant):
        return [("constant", lambda: _constant_report(model, approach))]
    assert isinstance(model._engine, JointSums)
    return [("same counters", lambda: _same_counters_report(model, approach))]


class Replica:
    """The engine of a mechanism and its answers, without the door: what many games need of it."""

    def __init__(self, model: Guessing, approach: ColumnWay, key: NoiseKey) -> None:
        self._form, self._engine = model._form, approach.build(key.source("audit"))
        self._state = self._engine.start()
        self.guarantee, self.charge, self.horizon = model.guarantee, model.charge, model.horizon
        self.mechanism, self.columns = model.mechanism, model._task.columns
        self.audited_as = type(model).__name__
        self.sensitivity, self.neighbours = model.sensitivity, model.neighbours

    def step(self, row: Any) -> Any:
        played = self._engine.play(np.asarray(row, dtype=np.int64).reshape(1, -1), self._state)
        self._state = played.state
        return self._form.show(played.rows[-1])


def replicas(model: Guessing) -> Factory:
    """A factory of replicas: nothing is chosen or calibrated anew for each of them."""
    approach = approach_of(model)
    return lambda key: Replica(model, approach, key)


def close_pair_of(model: Guessing, wait: int = 2) -> tuple[IntArray, IntArray]:
    """Two streams that are bad for the mechanism: for a partition those of `close_pair`, otherwise a change at once."""
    worker = worker_of(model)
    if isinstance(worker, PartitionEngine):
        plan = worker._formula
        outer = plan.outer if isinstance(plan, TwoLevelPlan) else plan
        assert isinstance(outer, Configuration)
        return close_pair(model, outer, wait).streams(wait)
    left, right = worst_pair(model)
    return left[None], right[None]


@dataclass(frozen=True)
class Pair:
    """Two streams: `before`, then `one` or `other`, a wait, and `after`; closing only then is likelier with `one`."""

    before: IntArray
    one: IntArray
    other: IntArray
    after: IntArray

    def streams(self, wait: int, rest: int = 0) -> tuple[IntArray, IntArray]:
        """Both streams, with so many empty ticks before `after` and behind it."""
        one, other = (
            np.concatenate([self.before[None], row[None], self._empty(wait), self.after[None], self._empty(rest)])
            for row in (self.one, self.other)
        )
        return one, other

    def _empty(self, ticks: int) -> IntArray:
        return np.zeros((ticks, self.before.size), dtype=np.int64)


def changes(model: Guessing) -> list[tuple[IntArray, IntArray]]:
    """The largest change of a row; and where that is all columns at once and one way, all but the last: then the last
    one can make up for it before the interval closes (additions 7)."""
    left, right = worst_pair(model)
    if model.neighbours is not Neighbours.ADD_REMOVE or left.size == 1 or not left.all():
        return [(left, right)]
    fewer = left.copy()
    fewer[-1] = 0
    return [(left, right), (fewer, right)]


def close_pair(model: Guessing, made: Configuration, wait: int, pair: tuple[IntArray, IntArray] | None = None) -> Pair:
    """The worst of some thousand pairs for the first interval, with the answer at the threshold.

    If the answer of `other` is higher by dw while the interval waits, and that of `one` by dc when it closes, then tau
    has to make up for dw and mu for dw + dc: together dw/b_tau + (dw + dc)/b_mu (the core lemma, 2.2).
    """
    rule, noise = made.make_rule(), made.noise
    rule.start(np.zeros(model._task.columns, dtype=np.int64))

    known: dict[bytes, int] = {}  # thousands of pairs, made of few rows

    def height(row: IntArray) -> int:
        key = row.tobytes()
        found = known.get(key)
        if found is None:
            found = known[key] = -rule.slack(row)
        return found

    ones = np.ones(model._task.columns, dtype=np.int64)
    threshold = int(np.max(rule.rise(1, np.arange(2, wait + 4))))  # some rise with the tick
    level = _first(lambda n: height(n * ones) >= threshold) * ones
    tau, mu, w = float(noise.tau.scale), float(noise.mu.scale), model.sensitivity.linf
    pair = worst_pair(model) if pair is None else pair
    most = w / tau + (2 * w if model.neighbours is Neighbours.REPLACE else w) / mu
    ends = list(_patterns(pair, (0, 1, 2 * w + 1, 8 * w)))
    best: tuple[tuple[float, int], Pair] | None = None
    for offsets in _patterns(pair, (0, w, 8 * w)):
        before = level + offsets
        for one, other in (pair, pair[::-1]):
            waiting = height(before + one)
            dw = height(before + other) - waiting
            if dw < 0 or (best and dw / tau + (dw + w) / mu < best[0][0]):
                continue
            for after in ends:
                dc = height(before + one + after) - height(before + other + after)
                worth = dw / tau + (dw + dc) / mu, -waiting
                if best is None or worth > best[0]:
                    best = worth, Pair(before, one, other, after)
                if best[0][0] >= most:
                    return best[1]
    assert best is not None
    return best[1]


def _patterns(pair: tuple[IntArray, IntArray], values: tuple[int, ...]) -> Iterator[IntArray]:
    """Rows that are constant on groups of columns: those that only one of the pair touches, and each half of the rest;
    the first column of a group may differ from the others."""
    left, right = pair
    rest = np.flatnonzero(left == right)
    groups = [np.flatnonzero(left > right), np.flatnonzero(left < right), rest[::2], rest[1::2]]
    parts = [part for group in groups for part in (group[:1], group[1:]) if part.size]
    parts = [*parts[: _MOST_PARTS - 1], np.concatenate(parts[_MOST_PARTS - 1 :])] if len(parts) > _MOST_PARTS else parts
    for chosen in product(values, repeat=len(parts)):
        row = np.zeros(left.size, dtype=np.int64)
        for part, value in zip(parts, chosen, strict=True):
            row[part] = value
        yield row


def _first(test: Callable[[int], bool]) -> int:
    """The smallest positive number from which on the test holds."""
    high = 1
    while not test(high):
        high *= 2
        if high > 2**60:
            raise ConfigurationError("an answer that never reaches its threshold")
    candidates = range(high // 2 + 1, high + 1)
    return candidates[bisect_left(candidates, True, key=test)]


def _partition_audits(model: Guessing, approach: ColumnWay, wait: int) -> list[Audit]:
    worker = worker_of(model)
    assert isinstance(worker, PartitionEngine)
    plan = worker._formula
    if isinstance(plan, TwoLevelPlan):
        levels = {"outer level": plan.outer, "inner level": plan.inner(1)}
        audits: list[Audit] = [("transcript", lambda: _two_level_report(model, approach, plan, wait))]
    else:
        assert isinstance(plan, Configuration)
        levels, audits = {"": plan}, []
    audits += [(n or "transcript", partial(_transcript_report, model, c, wait, n)) for n, c in levels.items()]
    if isinstance(plan, Configuration) and isinstance(model.charge, PureDP):
        # with Gaussian noise H cannot be led to a given release
        audits.append(("after a release", lambda: _after_report(model, drawn_singly(_few(plan, _MOST_CLOSES)))))
    return audits + [("noise of H", partial(_histogram_report, model, c, n)) for n, c in levels.items()]


def _few(plan: Configuration, most: int) -> Configuration:
    """The configuration with few intervals, if its noise can be made for so few."""
    if plan.intervals is None or plan.intervals <= most:
        return plan
    few = replace(plan, intervals=most)
    try:
        few.engine(Script({}))
    except ConfigurationError:  # a scale out of range: large budgets need many intervals
        return plan
    return few


@fitting
def drawn_singly(plan: Configuration) -> Configuration:
    """The configuration with an H each of whose releases has one draw of its own, at the same price. What real numbers
    hide together has no probability tick by tick; the noise of H itself is audited apart."""
    source, terms = ImpulseSource(), plan.terms
    charge = plan.noise.histogram
    make_histogram(plan.histogram, charge, terms.change, plan.intervals, terms.columns, source, width=1).advance(1)
    if not any(isinstance(law, RealLaw) for law in source.laws.values()):
        return plan
    return replace(plan, histogram="epoch-tree" if plan.intervals is None else "binary-tree")


def _transcript_report(model: Guessing, made: Configuration, wait: int, level: str) -> Report:
    """One interval that waits and closes against the odds, then enough closes to see its row in all of H. One of two
    levels is judged against its half."""
    few = drawn_singly(_few(made, _MOST_CLOSES))
    found = [_close_transcript(model, few, wait, close_pair(model, few, wait, pair)) for pair in changes(model)]
    adversary, lost = max(found, key=lambda one: one[1])
    if not level:
        return Report.computed(model, adversary, "transcript", "epsilon", _epsilon(model), lost, "noise")
    claim = "epsilon of a level", _epsilon(model) / 2
    return Report.computed(model, f"{level}, {adversary}", "transcript", *claim, lost, "noise")


def _close_transcript(model: Guessing, made: Configuration, wait: int, pair: Pair) -> tuple[str, float]:
    one, other = pair.streams(wait)
    if isinstance(model.charge, ApproxDP):
        # Gaussian noise has no worst outcome: the closes here, H in a report of its own.
        return _CLOSES, close_loss(made.engine, one, other, tail=_TAIL).epsilon
    climbs = (True,) if made.noise.update is None else (True, False)
    losses = [transcript_loss(made.engine, one, other, [len(one)], climb=climb, tail=_TAIL) for climb in climbs]
    found = max(losses, key=lambda loss: loss.epsilon)
    # What comes after the release of the row does not depend on it (`_after_report`), but shows more of H.
    closes = min(made.intervals or _MOST_CLOSES, _MOST_CLOSES)
    x, y = pair.streams(1, closes - 1)
    shown = histogram_loss(made.engine, x, y, range(len(x) - closes + 1, len(x) + 1))
    return f"a wait of {wait} ticks", found.closes + found.updates + max(found.histograms, shown)


def _two_level_report(model: Guessing, approach: ColumnWay, plan: TwoLevelPlan, wait: int) -> Report:
    """The inner level closes, and at the next tick the outer one, against the odds."""
    one, other = close_pair(model, plan.outer, wait).streams(wait, 1)
    closes: list[int | Address] = [("segment-1/mu", len(one) - 1), ("outer/mu", len(one))]
    # At the outer threshold the inner one is far away: what is left out has to be rarer than such a close.
    ticks = np.arange(1, len(one) + 1)
    rises = [int(np.max(level.make_rule().rise(1, ticks))) for level in (plan.inner(1), plan.outer)]
    unlikely = max(0, rises[0] - rises[1]) / float(plan.inner(1).noise.mu.scale)
    tail = _TAIL * math.exp(-min(unlikely, _MOST_UNLIKELY))
    loss = transcript_loss(_partition(approach), one, other, closes, tail=tail)
    apart = isinstance(model.charge, ApproxDP)
    adversary, lost = (_CLOSES, loss.closes) if apart else (f"a wait of {wait} ticks", loss.epsilon)
    return Report.computed(model, f"both levels, {adversary}", "transcript", "epsilon", _epsilon(model), lost, "noise")


def _after_report(model: Guessing, made: Configuration) -> Report:
    """Once a row is released nothing may depend on it any more (parameterized-histograms 2.2, E4)."""
    one, other = close_pair(model, made, 1).streams(1, 3)
    laws = levels_after(made.engine, one, other, [4, 5])
    same = f"{len(laws[0])} tests after the release are the same on both streams"
    told = same if laws[0] == laws[1] else "a test after the release depends on the released row"
    return Report.attack(model, "after a release", laws[0] != laws[1], told)


@fitting
def _histogram_report(model: Guessing, full: Configuration, level: str) -> Report:
    """What the noise of H hides of the insert that it shows best, against H's share of the budget."""
    made = _few(full, _MOST_INSERTS)
    change, charge, group = made.terms.change, made.noise.histogram, model._task.group
    n = min(made.intervals or _UNLIMITED_INSERTS, _MOST_INSERTS)
    width, numbers = 8 * n + 64, (made.intervals, made.terms.columns)
    while True:
        source = ImpulseSource()
        process = make_histogram(made.histogram, charge, change, *numbers, source, width=width)
        noise = process.advance(n)
        if len(source.columns) <= width:
            break
        width = len(source.columns)  # a block that is begun is drawn whole
    W, laws = source.read(noise)
    adversary = f"{level + ', ' if level else ''}{n} inserts into H"
    if isinstance(charge, ZCDP):
        mu = math.sqrt(change.l2_squared) * float(form_of(W, laws, process.spread(n).roundings).mu.max())
        return Report.computed(model, adversary, "closed form", "mu of H", claimed_mu(charge), mu, "noise")
    # The draws that a unit insert moves: the one solution where releases determine draws, as in trees and piles.
    if is_real_laplace(laws):
        lost = change.l1 * ShiftForm(W, np.arange(1, n + 1), process.spread(n).roundings).worst()[0]
    else:
        moved = np.abs(np.linalg.solve(W, np.tril(np.ones((n, n)))))
        lost = change.l1 * float((moved / laplace_scales(laws)[:, None]).sum(axis=0).max())
    claim = "epsilon of H", group * charge.epsilon
    return Report.computed(model, adversary, "closed form", *claim, group * lost, "noise")


def _partition(approach: ColumnWay) -> Make:
    def make(source: Any) -> Any:
        engine = approach.build(source)
        assert isinstance(engine, InPlace)
        assert isinstance(engine.worker, PartitionEngine)
        return engine.worker.partition

    return make


def _answers_report(model: Guessing, approach: ColumnWay) -> Report:
    """The change of the first tick in all releases, each with a draw of its own."""
    ticks = model.horizon or 1
    laws = _fresh_draws(approach, ticks, model._task.columns)
    if laws is None:
        twice = "noise that comes twice, or not at all"
        return Report.computed(model, twice, "exact law", *_claim(model), math.inf, "noise")
    pair, best = worst_pair(model), 0.0
    rest = np.zeros((ticks - 1, model._task.columns), dtype=np.int64)
    for offsets in _patterns(pair, (0, model.sensitivity.linf, 8 * model.sensitivity.linf)):
        sides = [_played(approach, np.concatenate([(offsets + row)[None], rest]), Script({})) for row in pair]
        moved = np.abs(sides[0] - sides[1]).astype(np.float64)
        best = max(best, math.fsum(_loss(law, moved[t]) for t, law in laws))
    return Report.computed(model, "change of tick 1", "exact law", *_claim(model), best, "noise")


def _fresh_draws(approach: ColumnWay, ticks: int, columns: int) -> list[tuple[int, Law]] | None:
    """The ticks of the releases and the law of each one's draws, if every release is its answer plus a draw that no
    other release has."""
    rows = np.zeros((ticks, columns), dtype=np.int64)
    script = Script({})
    quiet = _played(approach, rows, script)
    found = []
    for asked in script.asked:
        for node in asked.nodes:
            planted = {asked.lane: {node: 1000 * (1 + np.arange(asked.coordinates))}}
            moved = _played(approach, rows, Script(planted)) - quiet
            # a release stands until the next one
            starts = np.flatnonzero((np.diff(moved, axis=0, prepend=0) != 0).any(axis=1))
            if not starts.size or not np.array_equal(moved[starts[0]], planted[asked.lane][node]):
                return None
            ends = starts[1] if starts.size > 1 else ticks
            if moved[ends:].any():
                return None
            found.append((int(starts[0]), asked.law))
    changes = {t for t, _ in found}
    return found if len(changes) == len(found) else None


def _played(approach: ColumnWay, rows: IntArray, source: Any) -> IntArray:
    engine = approach.build(source)
    played = engine.play(rows, engine.start())
    released: IntArray = played.rows if played.lasts is None else np.repeat(played.rows, played.lasts, axis=0)
    return released


def _loss(law: Law, moved: FloatArray) -> float:
    """What the shift of some draws loses: epsilon, or rho."""
    if isinstance(law, DiscreteLaplace):
        return float(moved.sum()) / float(law.scale)
    assert isinstance(law, DiscreteGaussian)
    return float((moved**2).sum()) / (2 * float(law.sigma_squared))


class _Variates(ZeroSource):
    """Planted variates for the first two columns, all others far behind; it notes what was asked."""

    def __init__(self, first: float) -> None:
        self._first = first
        self.asked: list[tuple[str, int]] = []
        self.kinds: set[VariateKind] = set()

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        self.asked.append((lane, node))
        self.kinds.add(kind)
        return PlantedVariates([self._first, 1 / 3, *(-_FAR - i for i in range(coordinates - 2))])


def _selection_report(model: Guessing, approach: ColumnWay) -> Report:
    """The first two columns race, the others are far behind: how likely the first wins all m selections.

    Its lead in units of the noise is looked for in the program. It wins with probability 1/(1 + e^-lead) under Gumbel
    variates, and with e^lead/2 (or 1 - e^-lead/2 from 0 on) under exponential ones.
    """
    ticks, d, w = model.horizon or 1, model._task.columns, model.sensitivity.linf
    if d < 2:
        raise ConfigurationError("a selection among one column reveals nothing")
    source = _Variates(0.0)
    _played(approach, np.zeros((ticks, d), dtype=np.int64), source)
    if len(set(source.asked)) < len(source.asked):
        return Report.computed(model, "variates that come twice", "exact law", *_claim(model), math.inf, "noise")
    releases, (kind,) = len(source.asked), source.kinds
    # One column in place of another moves the lead by 2 w; one more event by w. Events of many columns move it less.
    one, other = np.zeros((2, d), dtype=np.int64)
    one[0] = w
    other[1] = w if model.neighbours is Neighbours.REPLACE else 0
    many = 1000
    scale = many / _lead(approach, many * np.eye(1, d, dtype=np.int64)[0], ticks)
    best = 0.0
    for gap in {0, w, 2 * w, math.ceil(4 * scale), math.ceil(30 * scale)}:
        before = np.zeros(d, dtype=np.int64)
        before[1] = gap
        sides = [_wins(kind, _lead(approach, before + row, ticks)) for row in (one, other)]
        for p, q in (sides, sides[::-1]):
            best = max(best, releases * _coin_loss(p, q, isinstance(model.charge, ZCDP)))
    return Report.computed(model, f"{releases} selections", "exact law", *_claim(model), best, "noise")


def _lead(approach: ColumnWay, row: IntArray, ticks: int) -> float:
    """How far the first column is ahead of the second, in units of the noise, in the last selection."""
    rows = np.zeros((ticks, row.size), dtype=np.int64)
    rows[0] = row

    def wins(first: float) -> bool:
        return int(_played(approach, rows, _Variates(first))[-1, 0]) == 0

    low, high = -(2.0**20), 2.0**20
    while high - low > 2.0**-40:
        middle = (low + high) / 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return 1 / 3 - high


def _wins(kind: VariateKind, lead: float) -> tuple[float, float]:
    """The probabilities that the first wins, and that it does not."""
    if kind == "gumbel":
        return 1 / (1 + math.exp(-lead)), 1 / (1 + math.exp(lead))
    behind = math.exp(-abs(lead)) / 2
    return (1 - behind, behind) if lead > 0 else (behind, 1 - behind)


def _coin_loss(p: tuple[float, float], q: tuple[float, float], concentrated: bool) -> float:
    if not concentrated:
        return max(math.log(a / b) for a, b in zip(p, q, strict=True))
    return max(
        math.log(math.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1) / order
        for order in _ORDERS
    )


def _constant_report(model: Guessing, approach: ColumnWay) -> Report:
    ticks = min(model.horizon or 64, 64)
    streams = [np.zeros((ticks, model._task.columns), dtype=np.int64) for _ in range(5)]
    streams[1][:, 1:] = 1000
    streams[2][:, 0] = 1000
    streams[3][0, 0], streams[4][-1, -1] = 1, 10**9
    released = [_played(approach, rows, simulation(number).source()) for number, rows in enumerate(streams)]
    same = all(np.array_equal(released[0], other) for other in released[1:])
    told = f"the same releases on {len(streams)} streams" if same else "the releases of two streams differ"
    return Report.attack(model, "constant", not same, told, aspect="loss")


def counters_behind(model: Guessing) -> VectorCounter:
    """The counters of which the answers are taken."""
    options = {name: model._options[name] for name in ("unit", "max_events_per_user", "charging", "memory_limit")}
    return VectorCounter(
        model._task.columns,
        guarantee=model.charge,
        horizon=model.horizon,
        mechanism=model.mechanism,
        max_per_event=model.contribution.max_per_event,
        max_weight=model.contribution.max_weight,
        neighbours=model.neighbours,
        key=simulation(0),
        **options,
    )


def _same_counters_report(model: Guessing, approach: ColumnWay) -> Report:
    """That the counters which are audited in its place have the noise of the mechanism, draw by draw."""
    twin, ticks = counters_behind(model), min(model.horizon or 63, 64)
    scripts = [Script({}), Script({})]
    rows = np.ones((ticks, model._task.columns), dtype=np.int64)
    released = [
        _played(approach, rows, scripts[0]),
        np.cumsum(rows, axis=0) + build(twin._choice, twin._setting, scripts[1]).advance(ticks),
    ]
    asked = [[(a.lane, a.law, a.nodes, a.coordinates) for a in script.asked] for script in scripts]
    same = np.array_equal(released[0], released[1]) and asked[0] == asked[1]
    told = f"the same {len(asked[0])} requests for noise" if same else "its noise is not that of the counters"
    return Report.attack(model, "same counters", not same, told)


def _epsilon(model: Guessing) -> float:
    assert isinstance(model.charge, PureDP | ApproxDP)
    return model.charge.epsilon


def _claim(model: Guessing) -> tuple[str, float]:
    return ("rho", model.charge.rho) if isinstance(model.charge, ZCDP) else ("epsilon", _epsilon(model))
