"""The delta event: a label that exists because of one event."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from audit.probes.item_probing import (
    Case,
    Histogram,
    dominated,
    exceeds,
    needed,
    pair_loss,
    unknown,
)
from audit.probes.probing import Verdict, probe
from evertally.audit.estimators import lower_limit
from evertally.audit.label_noise import ScriptKey
from evertally.audit.laws.enumerated import Outcome, Run, item_loss, one_shot_law, shown
from evertally.noise import simulation
from evertally.privacy import ApproxZCDP
from evertally.statistics import UnknownHistogram, UnknownTopK


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
