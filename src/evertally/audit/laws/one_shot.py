"""One-shot releases: the laws that they draw, on the inputs that they really get, against the charge.

A mechanism of blocks (`StreamingTopK` and unknown items by "meta") looks at the histogram of every block once. Two
neighbouring streams are sent through its own door; every call is noted with its histogram and its draws. What telling
the two apart costs adds up over calls, by the theorems of one release (streaming-selection 2.2, 4.1 - 4.5):

    counts with Gaussian noise   (move of a count)^2/(2 sigma^2)
    counts with Laplace noise    |move|/scale
    k selections                 k (how far scores move apart)^2/(8 scale^2)

Laws of counts are those that were drawn. The scale of a selection is no law of a draw: by how much a variate must be
larger to make up for a count is looked for in the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from evertally.audit.laws.own_arithmetic import Unit, epsilon_of, rho_of, rho_of_selections
from evertally.audit.laws.tap import APART, Drawn, Tap
from evertally.audit.report import Report
from evertally.audit.whitebox import again, smaller
from evertally.noise import DiscreteLaplace
from evertally.selection.block_engine import BlockEngine
from evertally.selection.items import Items
from evertally.selection.top_k_engines import Blocks

_LONGEST = 400  # ticks that are played; longer horizons on a copy
_FEW_LABELS = 6  # of an event that may bring any number
_OTHERS = 3  # events of others that bring each label
_HIGH = 2**30  # counts that pass every threshold
_FAR = 2.0**30  # a variate that decides against every count
_BETWEEN = 2**20  # counts by which two labels differ, where a scale is looked for


@dataclass
class Call:
    """One release: its histogram, and what was drawn for it."""

    histogram: dict[str, int]
    drawn: list[Drawn]


@dataclass
class Calls:
    """All calls of a run, by node; `twice` where a node served two."""

    by_node: dict[int, Call] = field(default_factory=dict)
    twice: bool = False


def one_shot_of(model: Any) -> Any:
    """The one-shot mechanism of a mechanism of blocks; None where there is none."""
    worker = getattr(model._engine, "worker", None)
    return worker.engine._one_shot if isinstance(worker, BlockEngine | Blocks) else None


@contextmanager
def _noting(kind: Any, calls: Calls) -> Iterator[None]:
    original = kind.release

    def watched(self: Any, items: Items, source: Any, node: int) -> Any:
        histogram = dict(zip(items.labels, items.counts.tolist(), strict=True))
        before = len(source.drawn)
        released = original(self, items, source, node)
        calls.twice |= node in calls.by_node
        calls.by_node[node] = Call(histogram, source.drawn[before:])
        return released

    kind.release = watched
    try:
        yield
    finally:
        kind.release = original


Tick = tuple[list[Any], list[str]]  # events and their users


def calls_of(model: Any, stream: Mapping[int, Tick], ticks: int) -> Calls:
    """Sends a stream through the door, and notes every call."""
    calls, tap = Calls(), Tap()
    with _noting(type(one_shot_of(model)), calls):
        played = again(model)(tap.key)
        for tick in range(1, ticks + 1):
            events, users = stream.get(tick, ([], []))
            played.step_events(events, users=users) if played._users is not None else played.step_events(events)
    return calls


@dataclass(frozen=True)
class Selection:
    """What is seen of the selection of a mechanism: how many labels it takes, the scale of its variates, and the laws
    that the counts of chosen labels are drawn with."""

    count: int
    scale: float
    laws: tuple[Any, ...]


def selection_of(one_shot: Any) -> Selection | None:
    """Looked for in the program: two labels, one of which is ahead by a known count; None where all are released.

    >>> from fractions import Fraction
    >>> from evertally.selection.histograms import KnownGumbel
    >>> selection_of(KnownGumbel(2, scale=Fraction(7, 2), count_variance=49))
    Selection(count=2, scale=3.5, laws=(DiscreteGaussian(sigma_squared=Fraction(49, 1)),))
    """
    k = int(getattr(one_shot, "k", 1))
    # No more labels than are looked at: beyond them the smallest count is the cut.
    labels = [f"label {i:05}" for i in range(max(2, min(k + 4, int(getattr(one_shot, "kbar", k + 4)))))]
    counts = dict.fromkeys(labels, _HIGH) | {labels[0]: _HIGH + _BETWEEN}

    def first(variate: float) -> tuple[Any, int, list[Drawn]]:
        def plant(drawn: Drawn) -> float:
            if not isinstance(drawn.law, str):
                return 0.0
            return {labels[0]: variate, labels[1]: 1 / 3, None: -2 * _FAR}.get(drawn.place, -_FAR)  # type: ignore[arg-type]

        tap = Tap(plant)
        released = one_shot.release(Items.of(counts, tap), tap, 1)
        return released[0][0], len(released), tap.drawn

    _, count, drawn = first(0.0)
    if not any(isinstance(one.law, str) for one in drawn):
        return None
    laws = tuple(dict.fromkeys(one.law for one in drawn if not isinstance(one.law, str)))
    low, high = -(2.0**29), 2.0**29
    for _ in range(75):
        middle = (low + high) / 2
        low, high = (low, middle) if first(middle)[0] == labels[0] else (middle, high)
    return Selection(count, float(f"{_BETWEEN / (1 / 3 - APART - high):.12g}"), laws)


@dataclass(frozen=True)
class Cost:
    """What two streams lose in all calls together."""

    rho: float
    epsilon: float
    calls: int  # whose histograms differ


def cost_of(one: Calls, other: Calls, selection: Selection | None) -> Cost:
    """By the laws that were drawn for labels which both histograms have."""
    rho = epsilon = 0.0
    differing = 0
    for node in one.by_node.keys() | other.by_node.keys():
        calls = [side.by_node.get(node, Call({}, [])) for side in (one, other)]
        labels = calls[0].histogram.keys() | calls[1].histogram.keys()
        moves = [calls[0].histogram.get(label, 0) - calls[1].histogram.get(label, 0) for label in labels]
        if not any(moves):
            continue
        differing += 1
        laws = [drawn.law for call in calls for drawn in call.drawn if not isinstance(drawn.law, str)]
        if selection is not None:
            spread = max(*moves, 0) - min(*moves, 0)
            rho += rho_of_selections(selection.count, spread, selection.scale)
            laws += selection.laws
            moves = [max(map(abs, moves))] * selection.count  # whichever labels come out
        rho += max((sum(rho_of(law, move) for move in moves) for law in set(laws)), default=0.0)
        epsilon += max((sum(epsilon_of(law, move) for move in moves) for law in set(laws)), default=0.0)
    return Cost(rho, epsilon, differing)


def _event(labels: Sequence[str], weight: int) -> Any:
    return dict.fromkeys(labels, weight)


def unit_streams(model: Any) -> list[tuple[str, dict[int, Tick], dict[int, Tick]]]:
    """Neighbouring streams: all that one unit may bring, at once or tick by tick, to labels that others have too."""
    unit = Unit.of(model)
    known = getattr(model, "columns", None)
    wanted = min(unit.labels, _FEW_LABELS) if known is None else min(unit.labels, len(known))
    names = [f"label {i}" for i in range(2 * wanted)] if known is None else list(known)
    halves = names[:wanted], names[-wanted:] if known is None or 2 * wanted <= len(names) else names[wanted:]
    if unit.replaced and known is not None and 2 * wanted > len(names):
        middle = len(names) // 2
        halves = names[:middle], names[middle:]
    others = [_event([name], unit.weight) for name in names for _ in range(_OTHERS)]
    strangers = [f"somebody {i}" for i in range(len(others))]

    def stream(labels: Sequence[str], apart: bool) -> dict[int, Tick]:
        base: dict[int, Tick] = {1: (list(others), list(strangers))}
        for i in range(unit.events if labels else 0):
            tick = 1 + i if apart else 1
            events, users = base.get(tick, ([], []))
            base[tick] = [*events, _event(labels, unit.weight)], [*users, "one"]
        return base

    other = halves[1] if unit.replaced else []
    found = [("at once", stream(halves[0], False), stream(other, False))]
    if unit.events > 1:
        found.append(("tick by tick", stream(halves[0], True), stream(other, True)))
    return found


def one_shot_report(model: Any) -> Report:
    """What neighbouring streams lose in the calls of a mechanism of blocks, against its charge.

    >>> import evertally as et
    >>> from evertally.statistics import StreamingTopK
    >>> top = StreamingTopK(2, columns=["a", "b", "c"], mechanism="meta", guarantee=et.ZCDP(0.5), horizon=30,
    ...                     key=et.simulation(1))
    >>> report = one_shot_report(top)
    >>> report.verdict, round(report.fraction, 3)
    ('holds (tight)', 1.0)
    """
    played: Any = model if model.horizon <= _LONGEST else smaller(model, _LONGEST)
    selection = selection_of(one_shot_of(played))
    found = []
    for words, left, right in unit_streams(played):
        calls = [calls_of(played, stream, played.horizon) for stream in (left, right)]
        cost = cost_of(calls[0], calls[1], selection)
        if calls[0].twice or calls[1].twice:
            return Report.attack(model, "one-shot law", True, "a node of noise served two histograms", "exact law")
        found.append((cost.rho, f"one-shot law, a unit {words}, in {cost.calls} calls of {played.horizon} ticks"))
    rho, adversary = max(found)
    return replace(Report.computed(model, adversary, "exact law", "rho", float(model.charge.rho), rho), aspect="loss")


def release_report(one_shot: Any, charge: Any, unit: Unit, model: Any = None) -> Report:
    """One release by itself (`et.oneshot`): its laws against what it is to cost, with the largest move there is."""
    labels = [f"label {i:05}" for i in range(2 * min(unit.labels, _FEW_LABELS) + int(getattr(one_shot, "k", 1)))]
    wide = min(unit.labels, _FEW_LABELS)
    base = dict.fromkeys(labels, _HIGH)
    left, right = dict(base), dict(base)
    for label in labels[:wide]:
        left[label] += unit.alone
    for label in labels[wide : 2 * wide] if unit.replaced else []:
        right[label] += unit.alone
    calls = []
    for histogram in (left, right):
        tap = Tap()
        one_shot.release(Items.of(histogram, tap), tap, 1)
        calls.append(Calls({1: Call(histogram, tap.drawn)}))
    cost = cost_of(calls[0], calls[1], selection_of(one_shot))
    laplace = any(isinstance(drawn.law, DiscreteLaplace) for drawn in calls[0].by_node[1].drawn)
    claim = ("epsilon", charge.epsilon, cost.epsilon) if laplace else ("rho", charge.rho, cost.rho)
    named = model or _Named(one_shot, charge)
    return replace(Report.computed(named, "one-shot law", "exact law", *claim), aspect="noise")


class _Named:
    """A release as reports name mechanisms."""

    def __init__(self, one_shot: Any, charge: Any) -> None:
        self.audited_as, self.mechanism = type(one_shot).__name__, "one release"
        self.guarantee = self.charge = charge
        self.horizon = 1
