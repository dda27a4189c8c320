"""Probes of streaming selection: the pairs of streaming-selection 11.4, and the traps of 4, 6, 7 and 10 there.

Budgets, laws, thresholds and engines are the product's. Noise is narrow and delta large, and each delta is just what a
threshold needs: then one step of a threshold more or less is a matter of a factor, and exact laws see it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from evertally.audit import attacks
from evertally.audit.estimators import lower_limit
from evertally.audit.exact import ExactLoss
from evertally.audit.game import Factory
from evertally.audit.probes.probing import KEY, ROUNDING, Verdict, concentrated_verdict, first_leak, probe
from evertally.audit.selection import (
    ABSENT,
    FAR,
    Outcome,
    Place,
    Run,
    ScriptKey,
    bad_mass,
    item_loss,
    item_table,
    one_shot_law,
    outcome_law,
    separation,
    shown,
)
from evertally.audit.switching import Engine, counter_table, sparse_vector_loss
from evertally.counting import restore
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Neighbours, delta_of_rho
from evertally.selection.histograms import (
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.items import Items
from evertally.selection.reach import Reach
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget, sparse_gumbel_budget
from evertally.selection.streaming import StreamingTopK
from evertally.selection.unknown import UnknownHistogram, UnknownTopK

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
Histogram = Mapping[str, int]
Case = tuple[float, float, str]  # what was found, what is claimed, and where


# -- what the probes share -------------------------------------------------------------------------------------------


def unknown(rho: Any, delta: Any, horizon: int = 2, **options: Any) -> Factory:
    """A factory of histograms over an unknown domain, on a binary tree unless told otherwise."""
    settings: dict[str, Any] = {"radix": 2} | options
    return lambda key: UnknownHistogram(
        guarantee=ApproxZCDP(rho, delta, force=True), horizon=horizon, key=key, **settings
    )


def needed(variance: float, steps: int, times: float = 1) -> Fraction:
    """The smallest delta that keeps a threshold `steps` away: Chernoff's bound, so many times (10.4)."""
    return Fraction(times * math.exp(-steps * steps / (2 * variance)) * (1 + 1e-9))


def exceeds(cases: Iterable[Case], what: str = "probability") -> Verdict:
    """The verdict on the largest part of what was claimed."""
    found, claimed, where = max(cases, key=lambda case: case[0] / case[1])
    return found > claimed * (1 + ROUNDING), f"{where}: {what} {found:.6g}, claimed {claimed:.6g}"


def dominated(loss: ExactLoss, charge: ApproxZCDP, where: str) -> Case:
    """The largest part of what (rho, delta_bad) allows at any epsilon (2.3)."""
    bad = float(charge.exact_delta)
    highest = math.log(0.01 * bad / loss.tail)  # beyond, what was left out of the law could feign a loss
    cases = []
    for epsilon in np.linspace(0.02 * highest, highest, 12).tolist():
        allowed = float(delta_of_rho(charge.exact_rho, epsilon)) + bad
        cases.append((loss.delta(epsilon), allowed, f"{where}, beyond e^{epsilon:.1f}"))
    return max(cases, key=lambda case: case[0] / case[1])


def pair_loss(
    make: Callable[[Histogram], Run], left: Histogram, right: Histogram, tail: float = 1e-12, **options: Any
) -> ExactLoss:
    """The exact loss of one release between two histograms."""
    (first, lost), (second, missing) = (one_shot_law(make(h), tail=tail, **options) for h in (left, right))
    return ExactLoss(max(lost, missing, 1e-15), first, second)


def released_by(mechanism: Any) -> Callable[[Histogram], Run]:
    """What a one-shot mechanism releases of a histogram, whose labels arrive in the order of the mapping."""
    return lambda histogram: lambda source: tuple(mechanism.release(Items.of(histogram, source), source, 0))


# -- the delta event: a label that exists because of one event -------------------------------------------------------


@dataclass(frozen=True)
class _Fresh:
    """An event with labels that nobody else brings: when, how heavy, how many labels, and the settings."""

    name: str
    stream: list[int]
    delta: Fraction
    options: dict[str, Any] = field(default_factory=dict)
    weight: int = 1
    labels: int = 1
    rho: Fraction = Fraction(5, 2)  # two levels: blocks of variance 2/5, for one event of one label

    def case(self) -> Case:
        make = unknown(self.rho, self.delta, len(self.stream), **self.options)
        one = item_loss(make, self.stream, [0] * len(self.stream), weight=self.weight, tail=1e-7)
        return 1 - (1 - shown(one.left)) ** self.labels, float(self.delta), f"{self.name}, shown at any tick"


_TWO = needed(0.4, 2, times=2)
_THREE = _TWO + needed(0.8, 2)  # digit sums 1, 1, 2
_USER = {"unit": "user", "max_events_per_user": 2}

FRESH = (
    _Fresh("two ticks", [1, 0], _TWO),
    _Fresh("the last of two ticks", [0, 1], _TWO),
    _Fresh("two ticks, delta for one", [1, 0], needed(0.4, 2)),
    _Fresh("two ticks, a large delta", [1, 0], Fraction(12, 100)),
    _Fresh("three ticks", [1, 0, 0], _THREE),
    _Fresh("a threshold for each tick", [0, 1, 0], needed(0.4, 2, times=3), {"threshold": "per_tick"}),
    _Fresh("the threshold of the paper", [1, 0, 0], needed(0.8, 3, times=3), {"threshold": "paper"}),
    _Fresh("labels that stay", [1, 0, 0], _THREE, {"sticky": True}),
    _Fresh("an event of two labels", [1, 0], _TWO, {"max_per_event": 2}, labels=2, rho=Fraction(5)),
    _Fresh("an event of weight 3", [1, 0], needed(3.6, 5, times=2), {"max_weight": 3}, weight=3),
    _Fresh("an event of many labels of weight 0", [1, 0], _TWO, weight=0, labels=1000),
    _Fresh("a user with two events", [2, 0], needed(1.6, 4, times=4), _USER),
    _Fresh("a user with two events, apart", [1, 1], needed(1.6, 4, times=4), _USER),
)


@probe("exact law", "a label of a single event")
def _() -> Verdict:
    # 11.4 (4): released at any tick with probability at most delta, all labels of the event together.
    return exceeds(fresh.case() for fresh in FRESH)


@probe("exact law", "a label that comes back")
def _() -> Verdict:
    # 11.4 (4) and (5): what is released after it came back must not tell whether it had been there before.
    charge = ApproxZCDP(Fraction(1, 2), 1e-3)
    make = unknown(charge.exact_rho, charge.exact_delta, 3)
    pairs = (([1, 0, 14], [0, 0, 14]), ([1, 14, 0], [0, 14, 0]))
    return exceeds(dominated(item_loss(make, *pair, tail=1e-6), charge, f"{pair[0]} or {pair[1]}") for pair in pairs)


@probe("game", "labels of single events")
def _() -> Verdict:
    # The same for 50 ticks, counted: labels have independent noise, so each is a game of its own.
    games, delta, cases = 6000, 0.05, []
    for options in ({}, {"threshold": "per_tick"}, {"sticky": True}, {"radix": 4}):
        mechanism = unknown(Fraction(1, 2), delta, 50, **options)(simulation(7))
        seen: set[str] = set()
        for events in ([], [f"label {i}" for i in range(games)], *([] for _ in range(48))):
            seen |= mechanism.step_events(events).value.keys()
        cases.append((lower_limit(len(seen), games, 1e-6), delta, f"{options}, shown in 50 ticks, at least"))
    return exceeds(cases)


@probe("exact law", "a label inside one block")
def _() -> Verdict:
    # 11.4 (9): in MetaAlgo a label is in L blocks, each of which may show it. Here L = 2, and a block has half of rho.
    kinds: list[tuple[str, Any, tuple[int, ...], dict[str, int], ApproxZCDP]] = [
        # Draws of variance 1/5: their difference passes 2 with most of the probability that Chernoff's bound says.
        ("noisy threshold", UnknownHistogram, (), {"kbar": 2}, ApproxZCDP(5, needed(0.4, 2), force=True)),
        (
            "noisy threshold, twice delta",
            UnknownHistogram,
            (),
            {"kbar": 2},
            ApproxZCDP(5, needed(0.4, 2, times=2), force=True),
        ),
        (
            "Gumbel threshold",
            UnknownTopK,
            (1,),
            {"kbar": 1},
            ApproxZCDP(8, 2 / (1 + math.exp(4)) * (1 + 1e-9), force=True),
        ),
    ]
    cases = []
    for name, kind, arguments, options, promise in kinds:
        make = partial(kind, *arguments, guarantee=promise, horizon=2, radix=2, mechanism="meta", **options)

        def run(source: Any, make: Any = make) -> Outcome:
            return tuple(make(key=ScriptKey(source)).step(["fresh"]).value)

        one = one_shot_law(run, tail=1e-9)[0].get(("fresh",), 0.0)
        # The second block has it as well, and noise of its own.
        cases.append((1 - (1 - one) ** 2, promise.delta, f"{name}, shown by one of two blocks"))
    return exceeds(cases)


@probe("exact law", "the best label of an unknown domain")
def _() -> Verdict:
    charge = ApproxZCDP(Fraction(5, 2), Fraction(1, 10), force=True)

    def make(histogram: Histogram) -> Run:
        events = [label for label, count in histogram.items() for _ in range(count)]

        def run(source: Any) -> Outcome:
            top = UnknownTopK(1, guarantee=charge, horizon=2, radix=2, key=ScriptKey(source))
            return tuple(top.step(events).value.items())

        return run

    pairs: list[tuple[Histogram, Histogram]] = [({"a": 7, "b": 7}, {"a": 7, "b": 8}), ({"a": 9}, {"a": 9, "b": 1})]
    return exceeds(dominated(pair_loss(make, *pair, tail=1e-10), charge, f"{pair}") for pair in pairs)


# -- noise over many ticks -------------------------------------------------------------------------------------------


def separates(cases: Iterable[tuple[float, float]]) -> Verdict:
    """The verdict on the most powerful test; cases are (mu, rho)."""
    return exceeds(((mu, math.sqrt(2 * rho), "the most powerful test") for mu, rho in cases), "separates by mu")


def worst_mu(make: Factory, ticks: int, changed: Iterable[int]) -> float:
    """The separation for an event in the worst of the `changed` ticks."""
    responses, laws = item_table(make, [1] + [0] * (ticks - 1))
    return max(separation(responses, laws, (np.arange(1, ticks + 1) >= t).astype(np.float64)) for t in changed)


@probe("closed form", "noise of a label, every tick of 16")
def _() -> Verdict:
    return separates([(worst_mu(unknown(Fraction(1, 2), 1e-6, 16), 16, range(1, 17)), 0.5)])


@probe("closed form", "noise of a label, 243 ticks on a tree of three")
def _() -> Verdict:
    # 11.4 (2): at a power of the radix a float logarithm loses a level.
    return separates([(worst_mu(unknown(Fraction(1, 2), 1e-6, 243, radix=3), 243, [1]), 0.5)])


@probe("closed form", "noise of the blocks of MetaAlgo, every tick of 9")
def _() -> Verdict:
    options: dict[str, Any] = {"horizon": 9, "radix": 3, "mechanism": "meta-gauss", "max_per_event": 1}
    columns = [f"column {t}" for t in range(9)]

    def make(key: Any) -> StreamingTopK:
        return StreamingTopK(9, columns=columns, guarantee=ZCDP(Fraction(1, 2)), key=key, **options)

    return separates([(worst_mu(make, 9, range(1, 10)), 0.5)])


@probe("closed form", "a user whose place another takes in other blocks")
def _() -> Verdict:
    # additions 4: ticks 1 and 4 have no block of a tree of three in common. Every column counts, so all are named.
    ticks, columns = 8, [f"column {t}" for t in range(8)]
    options: dict[str, Any] = {"unit": "user", "max_events_per_user": 2, "neighbours": "replace"}

    def make(key: Any) -> StreamingTopK:
        settings: dict[str, Any] = {"columns": columns, "horizon": ticks, "radix": 3, "key": key} | options
        return StreamingTopK(8, mechanism="meta", guarantee=ZCDP(Fraction(1, 2)), **settings)

    responses, laws = item_table(make, [1] + [0] * (ticks - 1))
    moves = [[2, 2, 2, 0, 0, 0, 0, 0], [2, 2, 2, 2, 2, 2, 2, 2], [1, 1, 1, 0, -1, -1, 0, 0]]
    found = [separation(responses, laws, np.array(move, dtype=np.float64)) for move in moves]
    return separates((mu * math.sqrt(len(columns)), 0.5) for mu in found)


# -- what one event moves --------------------------------------------------------------------------------------------


def moved(make: Factory, left: Sequence[Any], right: Sequence[Any]) -> dict[str, int]:
    """How far the counts of all labels are apart after two streams of batches: without noise, and without threshold."""
    ends = []
    for stream in (left, right):
        mechanism = make(ZeroNoise())
        mechanism._threshold = SimpleNamespace(at=lambda t: ABSENT + 1)
        for events in stream:
            value = mechanism.step_events(events).value
        ends.append(value)
    labels = ends[0].keys() | ends[1].keys()
    return {label: ends[0].get(label, 0) - ends[1].get(label, 0) for label in labels}


def event_verdict(make: Factory, pairs: Iterable[tuple[Sequence[Any], Sequence[Any]]]) -> Verdict:
    """The noise is made for a change of l2^2 `allowed`; what two streams that differ in one event really change."""
    allowed = make(ZeroNoise()).sensitivity.l2_squared
    found = max(sum(n * n for n in moved(make, *pair).values()) for pair in pairs)
    return separates([(math.sqrt(2 * 0.5 * found / allowed), 0.5)])


@probe("closed form", "one event of an unknown domain, in any form")
def _() -> Verdict:
    events: list[Any] = [["a", "a", "a"], ["a", "b", "b"], {"a": 50, "b": 2}, ["x", "y", "z", "x"], {"a": 9, "b": 9}]
    events += [["caf\u00e9", "cafe\u0301"], [7, 7.0, "7"], ("a", b"a"), {"a": 3, b"a": 3}]
    mixed: list[Any] = [["b"], {"a": 1}, "c"]
    verdicts = []
    for options in ({}, {"max_per_event": 2}, {"max_per_event": 2, "max_weight": 2}):
        make = unknown(Fraction(1, 2), 1e-6, 4, **options)
        pairs = [([[event, *rest]], [rest]) for event in events for rest in ([], [["b"]], mixed)]
        verdicts.append(event_verdict(make, pairs))
    return max(verdicts)


@probe("closed form", "one event of an unknown domain, out of many long ones")
def _() -> Verdict:
    batch: list[Any] = [["a", "b", "c"], ["c", "b"], ["a", "b"], ["c", "a"], ["b", "a"], ["c", "b", "a"]] * 3
    mixed: list[Any] = [*batch, {"a": 1, "b": 1}]
    without = [events[:i] + events[i + 1 :] for events in (batch, mixed) for i in range(6)]
    pairs: list[tuple[Any, Any]] = [([batch], [left]) for left in without[:6]] + [([mixed], [m]) for m in without[6:]]
    pairs += [([batch[:2], batch], [left[:1], batch]) for left in without[:1]]
    return event_verdict(unknown(Fraction(1, 2), 1e-6, 4), pairs)


@probe("closed form", "one event before a long stream")
def _() -> Verdict:
    # 7.1: a table that forgets by its counts turns one event into many.
    rest: list[Any] = [["a"], ["b"]] * 12
    return event_verdict(unknown(Fraction(1, 2), 1e-6, 32), [([["z"], *rest], [[], *rest])])


# -- what is below the threshold -------------------------------------------------------------------------------------


def observed(mechanism: Any, batches: Sequence[Any]) -> str:
    """Everything that can be asked of a mechanism without its key, after these batches: texts, attributes, errors."""
    seen: list[Any] = []
    for events in batches:
        release = mechanism.step_events(events)
        seen += [attacks.form(release), repr(release), json.dumps(release.value)]
    seen += [repr(mechanism), bool(mechanism), len(mechanism) if hasattr(mechanism, "__len__") else None]
    for name in sorted(dir(mechanism)):
        value = getattr(mechanism, name)
        if not name.startswith("_") and not callable(value) and name != "key":
            seen.append((name, repr(value)))
    seen += [mechanism.stddev(2), mechanism.error_bound(0.1), mechanism.error_bound(0.1, 2)]
    wrong: list[Callable[[], Any]] = [
        lambda: mechanism.step(["something else"], tick=mechanism.tick),
        lambda: mechanism.step(["a"], tick=1),
        lambda: mechanism.step({"a": 1}),
        lambda: mechanism.run([[]] * 99),
        lambda: mechanism.stddev(99),
    ]
    for call in wrong:
        try:
            seen.append(repr(call()))
        except Exception as error:  # whatever it says, a reader may see it
            seen.append(repr(error))
    return re.sub(r" at 0x[0-9a-f]+", "", "\n".join(map(str, seen)))


_BLOCKS: dict[str, Any] = {"mechanism": "meta"}


def _kinds(**options: Any) -> list[Factory]:
    """Unknown domains, by tree and by blocks; noise so large that single labels are never shown."""
    promise = {"guarantee": ApproxZCDP(Fraction(1, 50), 1e-9), "horizon": 8}
    common: dict[str, Any] = promise | options
    return [
        lambda key: UnknownHistogram(key=key, **common),
        lambda key: UnknownHistogram(key=key, sticky=True, **common),
        lambda key: UnknownTopK(2, key=key, **common),
        lambda key: UnknownHistogram(key=key, **_BLOCKS, **common),
        lambda key: UnknownTopK(2, key=key, **_BLOCKS, **common),
    ]


@probe("attack", "what is below the threshold")
def _() -> Verdict:
    # 11.4 (10): streams that release the same look the same, whatever else they contain.
    common: list[Any] = [["pear"]] * 1800 + [["fig"]] * 1000
    left, right = [common, [["a secret", "another", "fig"]], []], [common, [["fig"]], []]
    for make in _kinds(max_per_event=3):
        texts = [observed(make(simulation(3)), batches).splitlines() for batches in (left, right)]
        for one, other in zip(*texts, strict=True):
            if one != other:
                return True, f"one event changes what is seen, from {other[:120]!r} to {one[:120]!r}"
    findings = [
        attack(make) for make in _kinds() for attack in (attacks.unknown_item_attack, attacks.bad_record_attack)
    ]
    return first_leak(*findings)


@probe("attack", "the order of what is released")
def _() -> Verdict:
    # 10.3: an event that came first must not come first.
    rest = [["fig"] * 1800, ["pear"] * 1000 + ["lime"] * 2800]
    pairs: list[tuple[list[Any], list[Any]]] = [([["pear"], *rest], [[], *rest]), ([["lime"], *rest], [[], *rest])]
    pairs += [([[], rest[1], rest[0]], [["pear"], rest[1], rest[0]])]
    return first_leak(*(attacks.metadata_attack(make, *pair) for make in _kinds() for pair in pairs))


# -- noise by name, from a real key ----------------------------------------------------------------------------------


@probe("attack", "labels have noise of their own")
def _() -> Verdict:
    # Ranks of all labels at two blocks; and whole paths, of which no two are alike.
    labels, times = [f"label {i}" for i in range(600)], 400
    mechanism = unknown(Fraction(1, 50), 1e-3, 8)(simulation(11))
    releases = [mechanism.step(labels * n).value for n in (times, *[0] * 7)]
    noise = np.array([[value[label] - times for label in labels] for value in releases], dtype=np.float64)
    alike = len(labels) - len(np.unique(noise, axis=1).T)
    if alike:
        return True, f"{alike} of {len(labels)} labels have the noise of another one at every tick"
    ranked = np.argsort(np.argsort(noise[[0, 1, 3]], axis=1), axis=1)  # ticks 1, 2 and 4: blocks of their own
    largest = float(np.abs(np.corrcoef(ranked) - np.eye(3)).max())
    # Times sqrt(n - 1) nearly normal; six deviations leave 2e-9.
    return largest * math.sqrt(len(labels) - 1) > 6, f"the noise of two blocks has rank correlation {largest:.2f}"


@probe("attack", "restored selections")
def _() -> Verdict:
    # A copy that is restored at any tick goes on with the releases of the original.
    words: list[Any] = [["a"] * 40, ["b"] * 5, ["a"] * 3 + ["b"] * 30, ["c"] * 60, [], ["b"] * 9, ["d"] * 50, ["a"]]
    rows: Any = np.array([(9, 0, 1), (0, 60, 0), (0, 0, 1), (200, 1, 0), (0, 0, 900), (0, 9000, 0), (1, 1, 1)])
    two: dict[str, Any] = {"columns": ["a", "b", "c"], "guarantee": ApproxDP(40, 1e-3), "horizon": 8, "radix": 2}
    promise = ApproxZCDP(Fraction(2), 0.05, force=True)
    subjects: dict[str, tuple[Callable[[Any], Any], Sequence[Any]]] = {
        "unknown": (lambda key: UnknownHistogram(guarantee=promise, horizon=8, radix=2, key=key), words),
        "sticky": (lambda key: UnknownHistogram(guarantee=promise, horizon=8, radix=2, sticky=True, key=key), words),
        "top": (lambda key: UnknownTopK(2, guarantee=promise, horizon=8, radix=2, key=key), words),
        "blocks": (lambda key: UnknownTopK(2, guarantee=promise, horizon=8, radix=2, key=key, **_BLOCKS), words),
        "sparseGumb": (lambda key: StreamingTopK(1, 2, eta=2, key=key, **two), rows),
        "MetaAlgo": (lambda key: StreamingTopK(1, mechanism="meta", key=key, **two), rows),
    }
    for name, (make, inputs) in subjects.items():
        original, snapshots, released = make(KEY), [], []
        for x in inputs:
            snapshots.append(original.snapshot())
            released.append(original.step(x).value)
        for tick, snapshot in enumerate(snapshots):
            copy = restore(snapshot, key=KEY)
            if [copy.step(x).value for x in inputs[tick:]] != released[tick:]:
                return True, f"{name}: a copy restored after tick {tick} releases later ticks in another version"
        if not any(released):
            return True, f"{name}: nothing was released"
    return False, "restored copies release what the original does"


# -- one release -----------------------------------------------------------------------------------------------------


@probe("exact law", "labels that tie at a noisy threshold")
def _() -> Verdict:
    # 4.3: one label exists in one world only, although several tie; Delta0 delta, not kbar delta.
    narrow = UnknownGauss(3, Fraction(1, 5), 1, needed(0.4, 2))
    tied = {"b": 1, "c": 1, "d": 1}
    pairs: list[tuple[Histogram, Histogram]] = [(tied, {"a": 1, **tied}), (tied, {**tied, "e": 1})]
    pairs += [({"b": 2, "c": 1, "d": 1, "e": 1}, {"b": 1, "c": 1, "d": 1, "e": 1})]
    cases = []
    for pair in pairs:
        cases.append(dominated(pair_loss(released_by(narrow), *pair, tail=1e-9), narrow.charge, f"{pair}"))
    many = {f"{i:02d}": 1 for i in range(22)}
    ten = {f"{i:02d}": 1 for i in range(10)}
    pairs = [(many, {**many, "05": 2}), (many, {**many, "99": 1}), (ten, {**ten, "99": 1}), (ten, {"": 1, **ten})]
    mechanisms: list[Any] = [LimitedDomainLaplace(kbar, Fraction(4), 1, Fraction(1, 20)) for kbar in (4, 10)]
    for mechanism in (*mechanisms, UnknownGauss(10, Fraction(1), 1, Fraction(1, 20))):
        release = released_by(mechanism)
        for one, other in (*pairs, *((right, left) for left, right in pairs)):
            where = f"{len(one)} labels, kbar = {mechanism.kbar}, one that only one world can show"
            cases.append((bad_mass(release(one), release(other)), mechanism.charge.delta, where))
    return exceeds(cases)


@probe("exact law", "a label just above the cut")
def _() -> Verdict:
    # 1.3: under replacement the label and the cut move both, for users by all their events.
    wide = Fraction(1, 5)
    cases = []
    settings: list[tuple[Reach, Histogram, Histogram]] = [
        (Reach(), {"a": 1}, {}),
        (Reach(max_weight=3), {"a": 3}, {}),
        (Reach(neighbours=REPLACE), {"z": 2}, {"z": 1, "a": 1}),
        (Reach(events=2), {"z": 3}, {"z": 1}),
        (Reach(2, REPLACE), {"z": 4}, {"z": 2, "a": 2}),
    ]
    for reach, left, right in settings:
        variance, scale = wide * reach.move**2, Fraction(1, 2) * reach.move
        delta = needed(float(2 * variance), 2 * reach.move)
        mechanisms: list[Any] = [
            UnknownGauss(1, variance, 1, delta, reach),
            UnknownGumbel(1, 1, scale, None, Fraction(1, 5), reach),
        ]
        for mechanism in mechanisms:
            loss = pair_loss(released_by(mechanism), left, right)
            cases.append(dominated(loss, mechanism.charge, f"{type(mechanism).__name__}, {left} or {right}"))
        laplace = LimitedDomainLaplace(1, scale, 1, Fraction(1, 20), reach)
        loss, claim = pair_loss(released_by(laplace), left, right, 1e-5), laplace.charge
        cases.append((loss.delta(claim.epsilon), claim.delta, f"Laplace, {left} or {right}"))
    return exceeds(cases)


@probe("exact law", "labels that tie at a Gumbel threshold")
def _() -> Verdict:
    # 4.5: kbar labels exist in one world only, however few an event touches.
    cases = []
    for k, kbar in ((1, 2), (2, 2), (1, 3)):
        mechanism = UnknownGumbel(k, kbar, Fraction(1, 2), None, Fraction(1, 10))
        tied = {f"label {i}": 1 for i in range(kbar)}
        loss = pair_loss(released_by(mechanism), tied, {**tied, "one more": 1})
        cases.append(dominated(loss, mechanism.charge, f"k = {k}, kbar = {kbar}"))
    return exceeds(cases)


@probe("exact law", "the labels that are selected")
def _() -> Verdict:
    # 11.4 (6): all counts but one rise; under replacement one rises and another one falls.
    pairs: list[tuple[Reach, int, Histogram, Histogram]] = [
        (Reach(), 1, {"a": 0, "b": 1}, {"a": 0, "b": 0}),
        (Reach(), 2, {"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 0, "c": 0}),
        (Reach(max_weight=2), 1, {"a": 0, "b": 2}, {"a": 0, "b": 0}),
        (Reach(neighbours=REPLACE), 1, {"a": 1, "b": 0}, {"a": 0, "b": 1}),
    ]
    verdicts = []
    for reach, k, left, right in pairs:
        mechanism = KnownGumbel.within(ZCDP(Fraction(1, 50)), k, counts=False, reach=reach)
        verdicts.append(concentrated_verdict(pair_loss(released_by(mechanism), left, right), mechanism.charge.rho))
    return max(verdicts)


@probe("exact law", "selected labels with their counts")
def _() -> Verdict:
    # One of two labels; the only label there is; the only two.
    pairs: list[tuple[int, Histogram, Histogram]] = [
        (1, {"a": 1, "b": 1}, {"a": 0, "b": 0}),
        (1, {"a": 1}, {"a": 0}),
        (2, {"a": 1, "b": 0}, {"a": 0, "b": 0}),
    ]
    verdicts = []
    for k, left, right in pairs:
        mechanism = KnownGumbel.within(ZCDP(2), k)
        verdicts.append(concentrated_verdict(pair_loss(released_by(mechanism), left, right, 1e-9), 2))
    return max(verdicts)


# -- sparseGumb ------------------------------------------------------------------------------------------------------


def switching(epsilon: float, switches: int, columns: int, horizon: int, eta: int) -> tuple[SparseGumbelBudget, Engine]:
    """The budget of an adaptive promise, and the engine."""
    budget = sparse_gumbel_budget(ApproxDP(epsilon, 1e-6), 1, switches, 1, ADD)
    options: dict[str, Any] = {"columns": columns, "horizon": horizon, "eta": eta, "radix": 2}
    return budget, lambda source: SparseGumbel(budget, source=source, **options)


def waits(runs: int, over: int, eta: int) -> tuple[Any, Any, dict[int, int]]:
    """Two streams and what is named: ten columns wait at the bar for four ticks, one higher on the right, and then
    another column, which is the same on both, exceeds it by `over`; and all of that again."""
    low, named, h = [np.zeros(12, dtype=np.int64)], {1: 0}, np.zeros(12, dtype=np.int64)
    for run in range(1, runs + 1):
        waiting = np.array([1000 * run, *[1000 * run + eta] * 10, h[-1]])
        ending = waiting.copy()
        ending[0], ending[-1] = waiting[0] + 500, waiting[0] + 500 + eta + over  # so far up that nobody else is near
        low += [waiting - h, 0 * h, 0 * h, 0 * h, ending - waiting]
        h = ending
        named[len(low)] = 0
    high = [row.copy() for row in low]
    high[0][1:11] += 1
    return np.array(low), np.array(high), named


@probe("exact law", "sparse vectors: a wait and a switch")
def _() -> Verdict:
    # 1.4 and 6.2: 3/(4 tau1) for each of s of them, and no more of them than s.
    cases, eta = [], 50
    for s in (1, 3):
        budget, make = switching(8, s, 12, 32, eta)
        tau = math.sqrt(budget.tau_squared)
        low, high, named = waits(s + 1, round(2 * math.sqrt(s) * tau), eta)
        cases.append((sparse_vector_loss(make, low, high, named), 3 * math.sqrt(s) / (4 * tau), f"{s} switches"))
    return exceeds(cases, "the ticks of the switches lose epsilon")


@probe("exact law", "sparse vector, replaced events, the same counts")
def _() -> Verdict:
    # additions 3: the bar is made of counts that are in the transcript, also at the tick of the switch. On the left the
    # named column has one event more, on the right ten others have; noise of the blocks with tick 1 makes up for it.
    eta, ticks = 50, 6
    budget = sparse_gumbel_budget(ApproxDP(8, 1e-6), 1, 1, 1, REPLACE)
    tau = math.sqrt(budget.tau_squared)
    low, high, named = waits(1, round(2 * tau), eta)
    low[0][0] += 1
    blocks = {("count-0", node, 0): 1 for node in (1, 2, 4)}

    def make(source: Any) -> SparseGumbel:
        return SparseGumbel(budget, columns=12, horizon=ticks, eta=eta, source=source, radix=2)

    lost = sparse_vector_loss(make, low, high, named, counted=({}, blocks))
    back = sparse_vector_loss(make, high, low, named, counted=(blocks, {}))
    return exceeds([(max(lost, back), 1 / tau, "one switch")], "the ticks of the switches lose epsilon")


@probe("exact law", "sparse vector of three ticks, all draws")
def _() -> Verdict:
    budget, make = switching(200, 1, 2, 3, 1)

    def fixed(place: Place) -> int | None:
        lane, _, coordinate = place
        return None if lane == "threshold" or (lane == "question" and coordinate == 1) else 0

    def run(rows: Any) -> Run:
        def played(source: Any) -> Outcome:
            engine, seen = make(source), []
            for row in rows:
                engine.advance(np.array([row]))
                seen.append(engine.selections)
            return tuple(seen)

        return played

    variates: dict[str | None, float] = {"0": FAR, "1": -FAR}
    pairs = [([(0, 0), (0, 0), (0, 1)], [(0, 0)] * 3), ([(0, 0), (0, 1), (0, 0)], [(0, 0)] * 3)]
    cases = []
    for pair in pairs:
        laws = [outcome_law(run(rows), tail=1e-6, fixed=fixed, variates=variates) for rows in pair]
        loss = ExactLoss(max(lost for _, lost in laws), laws[0][0], laws[1][0])
        cases.append((loss.epsilon, 3 / (4 * math.sqrt(budget.tau_squared)), f"{pair[0]} or none"))
    return exceeds(cases, "the ticks of the switches lose epsilon")


@probe("exact law", "what sparseGumb names first")
def _() -> Verdict:
    budget, make = switching(8, 3, 2, 8, 5)

    def run(histogram: Histogram) -> Run:
        return lambda source: tuple(make(source).advance(np.array([list(histogram.values())]))[0].ravel().tolist())

    loss = pair_loss(run, {"a": 0, "b": 1}, {"a": 0, "b": 0}, fixed=lambda place: 0)
    return concentrated_verdict(loss, float(1 / (2 * (budget.switches + 1) * budget.tau_squared)))


@probe("closed form", "counts of sparseGumb, before and after a switch")
def _() -> Verdict:
    # One event in all columns: every counter that ever ran has it.
    cases = []
    for named in ({1: 0, 3: 1}, {1: 0, 5: 1}, {1: 0, 2: 0}):
        budget, make = switching(8, 1, 3, 8, 50)
        responses, laws = counter_table(make, np.zeros((8, 3), dtype=np.int64), named)
        cases.append((separation(responses, laws, np.ones(8)), float(1 / (2 * budget.tau_squared))))
    return separates(cases)


@probe("conformance", "noise ledger of sparseGumb")
def _() -> Verdict:
    # 6.1: every draw once; s sparse vectors with a threshold each, s + 1 selections; scales from tau.
    s, T, d = 2, 8, 3
    budget, make = switching(8, s, d, T, 0)
    tau = math.sqrt(budget.tau_squared)
    recording = Recording(ZeroNoise())
    engine = make(recording.source())
    for row in ((1, 0, 0), (0, 0, 9), (0, 0, 0), (0, 90, 0), (900, 0, 0), (0, 0, 9000), (0, 0, 0), (1, 1, 1)):
        engine.advance(np.array([row]))
    drawn = [(draw.lane, node) for draw in recording.draws for node in draw.nodes]
    lanes = [lane for lane, _ in drawn]
    # The blocks of a new counter are those that tile the past: they are read again, not drawn again.
    once = [place for place in drawn if not place[0].startswith("count")]
    number = {lane: len({node for other, node in drawn if other == lane}) for lane in set(lanes)}
    if len(set(once)) != len(once):
        return True, "a draw of a selection, a threshold or a question is used twice"
    if (number["select"], number["threshold"]) != (s + 1, s):
        return True, f"{number['select']} selections and {number['threshold']} thresholds, paid for {s + 1} and {s}"
    if len({lane for lane in lanes if lane.startswith("count")}) != s + 1:
        return True, "counters of two selections share their noise"
    needs = {"threshold": 2 * math.sqrt(s) * tau, "question": 4 * math.sqrt(s) * tau, "count": 4 * (s + 1) * tau**2}
    for draw in recording.draws:
        if draw.lane == "select":
            continue
        need = needs[draw.lane.split("-")[0]]
        law = draw.law
        has = float(law.scale) if isinstance(law, DiscreteLaplace) else 0.0
        has = float(law.sigma_squared) if isinstance(law, DiscreteGaussian) else has
        if not need * (1 - 1e-12) <= has <= need * (1 + 1e-9):
            return True, f"{draw.lane} is drawn from {law}, its share buys {need:.6g}"
    return False, "every draw once, and each with the scale that its share buys"
