"""Exact laws by enumeration: what is released, for every combination of draws, asked of the program.

Each runs the product's own code on planted noise, so that a bug shows as what it does to probabilities. Only the laws
of draws are taken for granted.

* `outcome_law`: all outcomes of a program that makes few draws of few values; `whole_law` is that for a partition.
* `one_shot_law`: the same for a mechanism of few labels. Gumbel variates are real numbers, but only their order
  decides: where two labels change places is looked for by trying, and the probability of an order follows (k
  exponential mechanisms in a row; docs/theory/samplers.md, section 7).
* `item_loss`: a label of an unknown domain under continual release, over a few ticks. Every combination of draws is a
  label of its own, and one run of the program plays them all.
* `bad_mass`: which labels only one of two histograms can show, among any number of them, and how likely it does.

sparseGumb is audited by `audit.laws.switching`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.audit.exact import ExactLoss, _box, _law
from evertally.audit.game import Factory, IntArray
from evertally.audit.label_noise import ABSENT, Draw, Label, PlantedVariates, _LabelDraws, _Named, _played
from evertally.audit.partition import _first_true
from evertally.audit.scripts import ALWAYS, NEVER, Make, Rows, as_rows, part
from evertally.audit.scripts import Run as Played
from evertally.errors import ConfigurationError
from evertally.noise import Law, Variates
from evertally.noise.variates import VariateKind

Outcome = tuple[Any, ...]


_MOST_RUNS = 300_000


FAR = 2.0**30  # a variate that beats every count


def item_loss(
    make: Factory, left: Sequence[int], right: Sequence[int], *, weight: int = 1, tail: float = 1e-9
) -> ExactLoss:
    """The laws of all releases about one label that occurs `left[t]` or `right[t]` times in tick t, each time with this
    weight; if users are protected, it is one user who names it. An outcome has a number for each tick, ABSENT where the
    label is not shown.

    >>> from evertally.privacy import ApproxZCDP
    >>> from evertally.statistics import UnknownHistogram
    >>> def make(key):
    ...     return UnknownHistogram(guarantee=ApproxZCDP(2, 0.1, force=True), horizon=2, radix=2, key=key)
    >>> loss = item_loss(make, [1, 0], [0, 0])
    >>> round(loss.right[ABSENT, ABSENT], 6), round(shown(loss.left), 4)  # at most delta
    (1.0, 0.0207)
    """
    asked: dict[Draw, Law] = {}
    for stream in (left, right):
        source = _LabelDraws(["label"], {})
        _played(make, source, stream, weight)
        asked |= source.asked
    each = tail / len(asked)
    boxes = [_box(law, each) for law in asked.values()]
    size = math.prod(len(values) for values, _ in boxes)
    if size > _MOST_RUNS:
        raise ConfigurationError(f"{size} combinations of draws are too many; use fewer ticks or a larger tail")
    grid = np.array(np.meshgrid(*(values for values, _ in boxes), indexing="ij"), dtype=np.int64).reshape(-1, size)
    weights = np.array([1.0])
    for _, masses in boxes:
        weights = np.outer(weights, masses).ravel()
    labels = [f"label {i}" for i in range(size)]
    planted = dict(zip(asked, grid, strict=True))
    laws = [_law(_played(make, _LabelDraws(labels, planted), stream, weight), weights) for stream in (left, right)]
    return ExactLoss(tail, *laws)


def shown(law: Mapping[Outcome, float]) -> float:
    """The probability that a label is released at any tick."""
    return math.fsum(mass for outcome, mass in law.items() if any(value != ABSENT for value in outcome))


Place = tuple[str, int, Any]  # lane, node, and a label or a coordinate


class _Undecided(Exception):
    """Draws that were not decided yet."""

    def __init__(self, places: list[Place], law: Law) -> None:
        super().__init__(places)
        self.places, self.law = places, law


class _Branching(_Named):
    """Gives the draws that are known and stops at the first that are not; gives the variates of its script."""

    def __init__(
        self, known: Mapping[Place, int], variates: Mapping[Label, float], fixed: Callable[[Place], int | None]
    ) -> None:
        super().__init__()
        self._known, self._variates, self._fixed = known, variates, fixed
        self.ordered: list[Label] = []  # whose variates were asked for

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        places = [(lane, int(node), j) for node in nodes for j in range(first, first + coordinates)]
        return self._decided(places, law).reshape(-1, coordinates)

    def item_draws(self, lane: str, law: Law, node: int, items: NDArray[np.uint64]) -> IntArray:
        return self._decided([(lane, node, label) for label in self._labels(items)], law)

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        return self._planted([str(j) for j in range(coordinates)])

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: NDArray[np.uint64]) -> Variates:
        return self._planted(self._labels(items))

    def _planted(self, labels: list[Label]) -> Variates:
        self.ordered = labels
        return PlantedVariates([self._variates.get(label, -FAR - i) for i, label in enumerate(labels)])

    def _decided(self, places: list[Place], law: Law) -> IntArray:
        values = [self._fixed(place) if place not in self._known else self._known[place] for place in places]
        missing = [place for place, value in zip(places, values, strict=True) if value is None]
        if missing:
            raise _Undecided(list(dict.fromkeys(missing)), law)
        return np.array(values, dtype=np.int64)


Run = Callable[[Any], Outcome]  # plays a mechanism with a source, and says what is seen of it


def free(place: Place) -> int | None:
    """Fixes no draw."""
    return None


def outcome_law(
    run: Run,
    *,
    tail: float = 1e-9,
    fixed: Callable[[Place], int | None] = free,
    variates: Mapping[Label, float] | None = None,
) -> tuple[dict[Outcome, float], float]:
    """The law of an outcome over all draws that `fixed` leaves free, under given variates; and the mass left out, at
    most: `tail` for each draw of the longest run."""
    law: dict[Outcome, float] = {}
    waiting: list[tuple[dict[Place, int], float]] = [({}, 1.0)]
    depth = runs = 0
    while waiting:
        known, weight = waiting.pop()
        runs += 1
        if runs + len(waiting) > _MOST_RUNS:
            raise ConfigurationError("too many combinations of draws; use fewer labels or a larger tail")
        try:
            outcome = run(_Branching(known, variates or {}, fixed))
        except _Undecided as undecided:
            values, masses = _values(undecided.law, tail)  # type: ignore[arg-type]
            for chosen in product(range(len(values)), repeat=len(undecided.places)):
                more = {place: values[i] for place, i in zip(undecided.places, chosen, strict=True)}
                waiting.append((known | more, weight * math.prod(masses[i] for i in chosen)))
            continue
        law[outcome] = law.get(outcome, 0.0) + weight
        depth = max(depth, len(known))
    return law, depth * tail


@lru_cache(maxsize=64)
def _values(law: Any, tail: float) -> tuple[list[int], list[float]]:
    values, masses = _box(law, tail)
    return values.tolist(), masses.tolist()


def everything(run: Played) -> tuple[Any, ...]:
    """What an observer sees: the ticks of the releases, and what was released."""
    return tuple((tick, *released.tolist()) for tick, released in run.releases)


def whole_law(
    make: Make,
    left: Rows,
    right: Rows,
    *,
    tail: float = 1e-4,
    fixed: Mapping[str, int] | None = None,
    see: Callable[[Played], tuple[Any, ...]] = everything,
) -> ExactLoss:
    """The law of what is seen on two streams, from runs on all combinations of draws.

    `tail` is the mass left out of each draw; `fixed` gives parts ("tau", "mu", ...) a value in place of a law.

    >>> from evertally.histogram.tasks import Largest
    >>> from evertally.partition import Terms, bounded
    >>> from evertally.privacy import Change, PureDP
    >>> plan = bounded(Terms(PureDP(12.0), Change(1, 1, 1), 1, 1, Largest(1), largest=1))
    >>> loss = whole_law(plan.engine, [[1]], [[0]], fixed={"tau": 0, "mu": ALWAYS}, tail=1e-9)
    >>> round(loss.epsilon, 2)  # the close is certain, and H has half of the budget
    6.0
    """
    known = fixed or {}

    def law_of(rows: Rows) -> tuple[dict[Outcome, float], float]:
        def run(source: Any) -> Outcome:
            partition = make(source)
            return see(Played(partition, partition.play(as_rows(rows), 1), []))

        return outcome_law(run, tail=tail, fixed=lambda place: known.get(part(place[0])))

    (first, lost), (second, missing) = law_of(left), law_of(right)
    return ExactLoss(max(lost, missing), first, second)


def one_shot_law(
    run: Run, *, tail: float = 1e-9, fixed: Callable[[Place], int | None] = free
) -> tuple[dict[Outcome, float], float]:
    """The law of what a one-shot mechanism releases, and the mass left out, at most. `run(source)` plays it; it may ask
    for the variates of one selection. (That nothing but their order is released is tried where there is one label.)

    >>> from evertally.selection.histograms import KnownGumbel
    >>> from evertally.selection.items import Items
    >>> def run(source):
    ...     return tuple(KnownGumbel(1, 1).release(Items.of({"a": 1, "b": 0}, source), source, 0))
    >>> law, _ = one_shot_law(run)
    >>> round(law[("a", None),], 6)  # e/(1 + e)
    0.731059
    """

    def zero(place: Place) -> int:
        return 0

    def seen(variates: Mapping[Label, float]) -> tuple[Outcome, list[Label]]:
        source = _Branching({}, variates, zero)
        return run(source), source.ordered

    _, labels = seen({})
    if not labels:
        return outcome_law(run, tail=tail, fixed=fixed)
    if len(labels) == 1:
        return _over_one_variate(lambda v: outcome_law(run, tail=tail, fixed=fixed, variates={labels[0]: v}))
    heights = _heights(lambda variates: seen(variates)[0], labels)
    total: dict[Outcome, float] = {}
    missing = 0.0
    for order in permutations(labels):
        # Far apart, so that this is the order of counts and variates together.
        planted = {label: -heights[label] - rank * 2.0**20 for rank, label in enumerate(order)}
        law, lost = outcome_law(run, tail=tail, fixed=fixed, variates=planted)
        chance = _chance_of_order([heights[label] for label in order])
        for outcome, mass in law.items():
            total[outcome] = total.get(outcome, 0.0) + chance * mass
        missing = max(missing, lost)
    return total, missing


def _over_one_variate(
    law_at: Callable[[float], tuple[dict[Outcome, float], float]],
) -> tuple[dict[Outcome, float], float]:
    """There is no order of one label: its variate should change nothing. Where it does, the places are looked for."""
    total: dict[Outcome, float] = {}
    grid = np.arange(-4.0, 37.0).tolist()  # Gumbel variates are outside with probability 1e-15
    waiting = list(pairwise((v, law_at(v)) for v in grid))
    missing = waiting[0][0][1][1] + 1e-15
    while waiting:
        (low, at_low), (high, at_high) = waiting.pop()
        if at_low != at_high and high - low > 2.0**-40:
            between = (low + high) / 2, law_at((low + high) / 2)
            waiting += [((low, at_low), between), (between, (high, at_high))]
            continue
        chance = math.exp(-math.exp(-high)) - math.exp(-math.exp(-low))
        for outcome, mass in at_low[0].items():
            total[outcome] = total.get(outcome, 0.0) + chance * mass
    return total, missing


def _heights(outcome: Callable[[Mapping[Label, float]], Outcome], labels: Sequence[Label]) -> dict[Label, float]:
    """How far each label is ahead of one of them (the threshold, if there is one) in units of the selection's scale:
    minus the variate from which on it comes first, the other's being 0 and those of the others far behind."""
    base = None if None in labels else labels[0]
    at = 1 / 3  # of the other's: never in a tie with the numbers that are tried
    heights = {base: 0.0}
    for label in labels:
        if label == base:
            continue
        first = outcome({base: at, label: FAR})
        low, high = -(2.0**20), 2.0**20
        if outcome({base: at, label: low}) == first:
            raise ConfigurationError("a label that comes first whatever its variate: the order does not decide")
        while high - low > 2.0**-40:
            middle = (low + high) / 2
            low, high = (low, middle) if outcome({base: at, label: middle}) == first else (middle, high)
        heights[label] = at - high
    return heights


def _chance_of_order(heights: Sequence[float]) -> float:
    """P(x_1 > x_2 > ...) for x_j = height_j + a Gumbel variate."""
    log = 0.0
    for i, height in enumerate(heights):
        log += height - float(np.logaddexp.reduce(heights[i:]))
    return math.exp(log)


class _Marked(_Named):
    """A draw that shows no label and no noise on the threshold, but where another one was planted."""

    def __init__(self, planted: Mapping[Label, int]) -> None:
        super().__init__()
        self._planted = planted
        self.asked: dict[Label, Law] = {}

    def item_draws(self, lane: str, law: Law, node: int, items: NDArray[np.uint64]) -> IntArray:
        labels = self._labels(items)
        self.asked |= dict.fromkeys(labels, law)
        return np.array([self._planted.get(label, 0 if label is None else NEVER) for label in labels], dtype=np.int64)


def bad_mass(left: Run, right: Run, *, tail: float = 1e-12) -> float:
    """The probability that the left release shows a label which the right one cannot show, whatever the draws.

    For mechanisms that show the labels whose draws pass a noisy threshold, however many: each label has a level, which
    moves with the noise of the threshold, and given that noise labels are independent. Never more than it is.
    """
    alone = _showable(left) - _showable(right)

    def shows(label: str, draw: int, z: int = 0) -> bool:
        return label in dict(left(_Marked({None: z, label: draw})))

    levels = {label: _first_true(lambda draw, label=label: shows(label, draw)) - 1 for label in alone}  # type: ignore[misc]
    for i, (label, level) in enumerate(sorted(levels.items())):
        z = (-1) ** i * (3 + i % 4)
        if shows(label, level + z, z) or not shows(label, level + 1 + z, z):
            raise ConfigurationError("a label that does not move along with the noise of the threshold")
    source = _Marked({})
    left(source)
    values, masses = _box(source.asked[None], tail)
    below = np.concatenate([[0.0], np.cumsum(masses) + tail, [1.0]])  # P(draw <= value), at least
    stay = np.ones(len(values))
    for level in levels.values():
        stay *= below[np.clip(values + level - values[0] + 1, 0, len(values) + 1)]
    return float(masses @ (1 - np.minimum(stay, 1.0)))


def _showable(run: Run) -> set[str]:
    """Labels that some draws show: all of them, if all pass."""
    source = _Marked({})
    run(source)
    return set(dict(run(_Marked({label: ALWAYS for label in source.asked if label is not None} | {None: 0}))))
