"""Audits that play no games: exact laws, closed forms and the door, all read off the program that is audited."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from itertools import combinations, product
from typing import Any, TypeGuard

import numpy as np

from evertally.applications.dashboard import ByType, Dashboard, GroupBy
from evertally.audit.adversaries import worst_pair
from evertally.audit.amounts import of_amounts
from evertally.audit.exact import combinations_of, exact_columns
from evertally.audit.game import Factory, IntArray
from evertally.audit.gaussian import claimed_mu, closed_form, impulse_response, node_form
from evertally.audit.laplace import ShiftForm, form_at, shift_form, telling_ticks, thinned
from evertally.audit.report import Report
from evertally.contract import restore
from evertally.contract.doors import by_column
from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.noise.reals import RealLaw
from evertally.privacy import ZCDP, Neighbours, PureDP
from evertally.ranking import choosing_once
from evertally.statistics import Counter, Histogram, RunningMean, StreamingTopK, VectorCounter
from evertally.statistics.column_options import Guessing
from evertally.statistics.linear_options import Linear, is_linear
from evertally.values.histograms import ValueHistogram
from evertally.values.quantiles import ValueQuantile
from evertally.values.sums import RunningSum
from evertally.values.variance import RunningVariance

Paths = tuple[IntArray, ...]

_TICKS_OF_A_USER, _LARGEST_EVENTS = 3, 4  # that are tried for all that a user may do
_TWO_LEVELS = 2**12  # ticks: the shortest horizon that is counted in two levels of blocks
_MANY_TICKS = 40  # of a user who is always there
RENYI_ORDERS = (1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)


def _tail(model: Linear) -> float:
    """Mass outside of the box of an exact law: Gaussian tails are cheap, and divergences of high order need them."""
    return 1e-7 if isinstance(model.charge, PureDP) else 1e-20


def smaller(model: Linear, horizon: int | None, **changed: Any) -> Linear:
    """The same configuration with another horizon: class, guarantee, process, relation, weights."""
    options = model._options | {"guarantee": model.guarantee, "horizon": horizon} | changed
    if "band" in options:
        options["band"] = None  # that of a longer horizon may be too long
    made = type(model)(**options, key=simulation(0))
    if type(made.charge) is not type(model.charge):  # an (epsilon, delta) promise may be paid in either way
        made = type(model)(**(options | {"guarantee": model.charge}), key=simulation(0))
    return made


def again(model: Linear) -> Factory:
    """A factory of mechanisms with the same configuration."""
    return lambda key: type(model)(**(model._options | {"guarantee": model.guarantee}), key=key)


def tiny(model: Linear, most: int) -> tuple[Linear, int] | None:
    """The longest instance of three ticks or less with at most so many combinations of draws, or None."""
    _, laws = impulse_response(model, 1)
    if any(isinstance(law, RealLaw) or law.stddev() > 1e5 for law in laws):
        return None  # real variates cannot be enumerated; the draws of the square-root factor have too many values
    # Binary trees: the default radix for three ticks makes one level, and several are to be seen.
    changed = {"radix": 2} if model.mechanism == "tree" else {}
    for ticks in (3, 2, 1):
        try:
            small = model if model.horizon is None else smaller(model, ticks, **changed)
        except ConfigurationError:  # a noise scale out of range: large budgets need long horizons
            continue
        if combinations_of(small, ticks, _tail(model)) <= most:
            return small, ticks
    return None


def exact_report(model: Linear, ticks: int) -> Report:
    """The true loss of a tiny instance, for the change of its worst tick: epsilon for Laplace noise, for Gaussian noise
    the largest Renyi divergence over its order, which rho-zCDP bounds by rho."""
    left, right = worst_pair(model)
    found: list[tuple[float, str]] = []
    for tick in range(1, ticks + 1):
        streams = np.zeros((2, ticks, left.size), dtype=np.int64)
        streams[:, tick - 1] = left, right
        loss = exact_columns(model, streams[0].tolist(), streams[1].tolist(), _tail(model))
        if isinstance(model.charge, PureDP):
            found.append((loss.epsilon, f"change of tick {tick}"))
        else:
            curve = [(loss.renyi(order) / order, f"change of tick {tick}, order {order:g}") for order in RENYI_ORDERS]
            found.append(max(curve))
    audited, adversary = max(found)
    assert isinstance(model.charge, PureDP | ZCDP), "linear noise is paid for in one of these"
    claim = ("epsilon", model.charge.epsilon) if isinstance(model.charge, PureDP) else ("rho", model.charge.rho)
    return Report.computed(model, adversary, "exact law", *claim, audited, "noise")


_SILENT = "a combination of releases that carries no noise"


def closed_form_report(model: Linear, ticks: int, restart: int = 0) -> Report:
    """What the largest change loses, from the program's own noise matrix: the separation of the most powerful test for
    Gaussian noise, for real Laplace noise the cost of hiding it. With `restart`, of a process restored after a tick."""
    if isinstance(model.charge, PureDP):
        form = shift_form(model, ticks)
        if form is None:
            raise ConfigurationError("the closed form is for Gaussian noise, and for real Laplace noise")
        return _hiding_report(model, form)
    left, right = worst_pair(model)
    try:
        found = closed_form(model, ticks, restart)
        adversary = f"change of tick {found.worst_tick}"
        audited = float(found.mu.max()) * math.sqrt(int(((left - right) ** 2).sum()))
    except np.linalg.LinAlgError:
        adversary, audited = _SILENT, math.inf
    adversary += f", restored after {restart}" if restart else ""
    return Report.computed(model, adversary, "closed form", "mu", claimed_mu(model.charge), audited, "noise")


def _hiding_report(model: Linear, form: ShiftForm, tried: list[int] | None = None, told: str = "") -> Report:
    left, right = worst_pair(model)
    try:
        audited, tick = form.worst(tried)
        adversary = f"change of tick {tick}{told}"
        audited *= int(np.abs(left - right).sum())  # columns have draws of their own: their losses add up
    except np.linalg.LinAlgError:
        adversary, audited = _SILENT, math.inf
    assert isinstance(model.charge, PureDP)
    return Report.computed(model, adversary, "closed form", "epsilon", model.charge.epsilon, audited, "noise")


def levels_report(model: Linear, most: int) -> Report:
    """The same for a long horizon in levels, at the ticks that show all of an event in the first block of each; of a
    shorter horizon where those are more than so many."""
    ticks = telling_ticks(model.noise)
    if len(ticks) > most:
        model = smaller(model, _TWO_LEVELS)
        ticks = telling_ticks(model.noise)
    form = form_at(model, ticks)
    assert form is not None, "levels are of real Laplace noise"
    first = next(tick for tick, later in zip(ticks, [*ticks[1:], 0], strict=True) if later != tick + 1)
    tried = sorted({1, first - 1, first, *thinned(first)[::4]})
    return _hiding_report(model, form, tried, f", {len(ticks)} telling ticks")


def worst_tick(model: Linear, ticks: int) -> tuple[int, int]:
    """The tick whose change shows most, and how many ticks it takes to see all of that."""
    if not isinstance(model.charge, PureDP):
        try:
            return closed_form(model, ticks).worst_tick, ticks
        except np.linalg.LinAlgError:
            return 1, ticks
    form = node_form(model, ticks)
    if form is None:
        shifts = shift_form(model, ticks)
        return (1, ticks) if shifts is None else (shifts.worst()[1], ticks)
    loss = (np.abs(form.moved) / form.scales[:, None]).sum(axis=0)
    # Among equally bad ticks the one in the fewest blocks: the event "all blocks look changed" is likeliest there.
    touched = (form.moved != 0).sum(axis=0)
    worst = min(range(ticks), key=lambda j: (-round(float(loss[j]), 9), touched[j], j))
    rows = form.inverse[np.flatnonzero(form.moved[:, worst])]
    return worst + 1, int(np.flatnonzero(np.abs(rows).sum(axis=0) > 1e-9).max()) + 1


def least_deviation(model: Linear) -> float:
    """The smallest standard deviation of a draw, in the unit in which it is drawn."""
    _, laws = impulse_response(model, min(4, model.horizon or 4))
    return min((law.stddev() for law in laws), default=0.0)


def nearly_normal(model: Linear) -> bool:
    """Whether draws and releases are so wide that their variance is that of normal laws up to a factor 1 - 1e-4: what
    the separation of a linear score needs (see `measure_mu`)."""
    return least_deviation(model) >= 0.9 and model.noise.spread(1).stddev >= 0.9


def nearly_continuous(model: Linear) -> bool:
    """Whether draws are so fine that events tell them from normal laws by less than a factor 1 + 1e-4 of mu."""
    return least_deviation(model) >= 20


def of_values(model: Any) -> TypeGuard[RunningMean | RunningSum | RunningVariance]:
    """Whether its events are values between two bounds, and `step` takes them."""
    return isinstance(model, RunningMean | RunningSum | RunningVariance)


def has_telling_events(model: Any) -> bool:
    """Whether there is a list of events that show what its door lets through."""
    counts = isinstance(model, Counter | VectorCounter | Histogram | ByType | Guessing | StreamingTopK)
    values = of_values(model) or (takes_values(model) and getattr(model, "edges", ()) is not None)
    return (counts or values) and not model._plan.owned


def door_report(model: Any, make: Factory | None = None) -> Report | None:
    """How far the neighbouring relation moves the rows behind the door, tried with events at the mechanism's own door,
    against the change that its noise is made for. (The audits of noise take that change for granted.)"""
    if not has_telling_events(model):
        return None
    with choosing_once():  # two mechanisms for each of the events
        found = list(_changes(model, make or again(model)))

    def judged(order: float) -> Report:
        moved, words = max(((_length(model, change, order), words) for change, words in found), key=lambda one: one[0])
        name = "linf" if order == math.inf else f"l{order}"
        return Report.computed(model, words, "door", f"{name} change", _declared(model, order), moved, "change")

    if isinstance(model, Linear):
        return judged(1 if isinstance(model.charge, PureDP) else 2)
    # Parts of one mechanism are made for each of these: that which is exceeded counts, or that which shows least.
    return max(map(judged, (1, 2, math.inf)), key=lambda report: (not report.passed, -report.fraction))


def _declared(model: Any, order: float) -> float:
    change = model.sensitivity
    return {1: float(change.l1), 2: math.sqrt(change.l2_squared), math.inf: float(change.linf)}[order]


def _length(model: Any, change: Paths, order: float) -> float:
    """Of what moves in all ticks together. Where users have a number of events for all their life, ticks add up
    (factorization-counting 2.4), and two users in different ticks by squares (users-and-domains 1.2); where only their
    ticks are kept apart, the charge is that of one tick."""
    lengths = [np.linalg.norm(path.astype(np.float64), order, axis=1) for path in change]
    whole = [length.max() if model.contribution.separated else length.sum() for length in lengths]
    return float(np.linalg.norm(whole, order))


def _changes(model: Any, make: Factory) -> Iterator[tuple[Paths, str]]:
    """What neighbours differ by, for a list of telling events, and words for each: rows (ticks, columns), of two users
    in different ticks one after the other."""
    events, bounds = _events(model), model.contribution
    cap = bounds.max_events_per_user_tick if bounds.separated else bounds.max_events_per_user
    if cap is not None:
        yield from _user_changes(model, make, events, cap)
        return
    rows = [_rows(make, [[event]], False) for event in events]
    words = "events at the door"
    if model.neighbours is Neighbours.INDEPENDENT:
        columns = range(rows[0].shape[1])
        yield (np.array([[max(abs(int(a[0, c] - b[0, c])) for a in rows for b in rows) for c in columns]]),), words
    elif model._options.get("protects") == "item":
        for i, j in combinations(range(len(events)), 2):
            if _one_item_apart(events[i], events[j], model.neighbours is Neighbours.REPLACE):
                yield (rows[i] - rows[j],), words
    elif model.neighbours is Neighbours.REPLACE:
        yield from (((a - b,), words) for a, b in combinations(rows, 2))
    else:
        yield from (((row,), words) for row in rows)


def _user_changes(model: Any, make: Factory, events: list[Any], cap: int) -> Iterator[tuple[Paths, str]]:
    """More events of a user than are allowed: in one tick, and in several ticks, restored in between."""
    ticks = min(_TICKS_OF_A_USER, model.horizon or _TICKS_OF_A_USER)
    at_once = [_rows(make, [[event] * (cap + 2)], True) for event in events]
    tried = [(at_once, "events of a user at the door")]
    if ticks > 1:
        largest = sorted(range(len(events)), key=lambda i: -int(np.abs(at_once[i]).sum()))[:_LARGEST_EVENTS]
        apart = [_rows(make, [[events[i]] * cap] * ticks, True, restored=True) for i in largest]
        # First, so that it is named where both change as much.
        tried.insert(0, (apart, f"events of a user in {ticks} ticks, restored in between"))
    for rows, words in tried:
        if model.neighbours is not Neighbours.REPLACE:
            yield from (((row,), words) for row in rows)
            continue
        yield from (((a - b,), words) for a, b in combinations(rows, 2))
        if not model.contribution.separated and ticks > 1:
            yield from (((a, b), f"{words}, and of another, later") for a, b in combinations(rows, 2))
            yield from (((a, a), f"{words}, and of another, later") for a in rows)


def kept_ticks_report(model: Linear) -> Report:
    """In how many ticks a user counts who is there in each, restored in between, against those that are charged for.
    Where blocks are protected: in how many of one block; and how many change, in all blocks, if one is left out."""
    ticks = min(model.horizon or _MANY_TICKS, _MANY_TICKS)
    event = max(_events(model), key=lambda one: int(np.abs(_rows(again(model), [[one]], True)).sum()))
    rule, period = model._setting.rule, model.contribution.period
    assert rule is not None

    def moved(there: Collection[int]) -> IntArray:
        stream = [[event] if tick in there else [] for tick in range(ticks)]
        return _rows(again(model), stream, True, restored=True)

    if period is None:
        words, kept = f"a user who is there in each of {ticks} ticks", _ticks_in(moved(range(ticks)))
    else:
        kept, words = max(_kept_in_blocks(moved, ticks, period), key=lambda one: one[0])
    return Report.computed(model, words, "door", "ticks of a user", float(rule.most(ticks)), float(kept), "change")


def _ticks_in(rows: IntArray) -> int:
    return int(np.count_nonzero(rows.any(axis=1)))


def _kept_in_blocks(moved: Callable[[Collection[int]], IntArray], ticks: int, period: int) -> Iterator[tuple[int, str]]:
    """In how many ticks one block of a user shows who is there in each tick, or comes late to the first block, or to
    all: what is kept in it, and what is kept elsewhere because of it."""
    blocks = [range(start, min(start + period, ticks)) for start in range(0, ticks, period)]
    for late in sorted({0, 1, period - 1}):
        for whose, again_after in (("the first block", ticks), ("every block", period)) if late else (("", ticks),):
            there = {tick for tick in range(ticks) if tick % again_after >= late}
            said = f" after the first {late} of {whose}" if late else ""
            words = f"a user who is there in each of {ticks} ticks{said}"
            rows = moved(there)
            for number, block in enumerate(blocks, start=1):
                yield _ticks_in(rows[block.start : block.stop]), f"{words}: block {number}"
            yield _ticks_in(rows - moved(there - set(blocks[0]))), f"{words}, with and without block 1"


def takes_values(model: Any) -> bool:
    """Whether its ticks are values, not totals."""
    return isinstance(model, RunningMean) or _of_cells(model)


def _of_cells(model: Any) -> bool:
    """Whether values are counted by the cells that they lie in."""
    return isinstance(model, ValueQuantile | ValueHistogram) or (isinstance(model, Histogram) and bool(model.edges))


def largest_value(model: Any) -> float:
    """The value with the largest row: in the first cell, which moves all prefixes, or at the upper end."""
    if isinstance(model, RunningMean):
        return float(model.upper)
    return 0.0 if model.edges is None else float(model.edges[0])


def _events(model: Linear) -> list[Any]:
    if isinstance(model, Dashboard):
        return [None, *model.types, model.types, "evertally-undeclared", *map(list, combinations(model.types[:6], 2))]
    if isinstance(model, GroupBy):
        return [None, *product(*model.columns.values())]
    if _of_cells(model):
        edges: Any = model.edges  # type: ignore[attr-defined]
        return [None, float("nan"), *edges, 1e300, -1e300]
    if of_values(model):
        return [None, model.lower, model.upper, (model.lower + model.upper) / 2, 1e300, -1e300]
    w = float(model._options["max_weight"]) if of_amounts(model) else int(model._options["max_weight"])
    weights = [w, -w] if model.contribution.signed else [w]
    if not by_column(model):
        return [None, 0, 1, 0.5, 10**30, -(10**30), *weights]
    declared: Any = model.labels  # type: ignore[attr-defined]
    labels = [*declared[: 5 if len(weights) == 1 else 4], "evertally-undeclared"]
    longest = min(len(labels), model.contribution.max_per_event + 1)
    events: list[dict[str, float]] = [{}]
    for _ in range(longest):
        longer = [{**e, label: v} for e in events for label in labels if label not in e for v in weights]
        events += [e for e in longer if list(e) == sorted(e, key=labels.index) and e not in events]
    return events


def _one_item_apart(a: dict[str, float], b: dict[str, float], replaced: bool) -> bool:
    """One item more or less; or, for replacement, one item in place of another, or with another weight."""
    only = [{label: v for label, v in x.items() if y.get(label) != v} for x, y in ((a, b), (b, a))]
    return sorted(map(len, only)) == [0, 1] or (replaced and list(map(len, only)) == [1, 1])


def _rows(make: Factory, ticks: list[list[Any]], owned: bool, restored: bool = False) -> IntArray:
    """What the events of some ticks add, tick by tick, all of one user where there are users. Of sums it is read off
    the releases: under one key the noise of two streams cancels. Elsewhere it is what the engine is handed."""
    sums = []
    nothing: list[list[Any]] = [[] for _ in ticks]
    for stream in (ticks, nothing):
        key, seen = simulation(0), []
        copy = make(key)
        for events in stream:
            copy.step_events(events, users=["one"] * len(events)) if owned else copy.step_events(events)
            seen.append(copy._kept.played.recent[-1] if is_linear(copy) else np.atleast_1d(copy._kept.totals))
            copy = restore(copy.snapshot(), key=key) if restored else copy
        sums.append(np.array(seen))
    moved = np.asarray(sums[0] - sums[1])
    return np.diff(moved, axis=0, prepend=0) if is_linear(copy) else moved
