"""Noise of labels over many ticks, and what one event moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from audit.probes.item_probing import (
    separates,
    unknown,
    worst_mu,
)
from audit.probes.probing import Verdict, probe
from evertally.audit.game import Factory
from evertally.audit.label_noise import ABSENT, item_table, separation
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP
from evertally.statistics import StreamingTopK


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
        mechanism._worker().threshold = SimpleNamespace(at=lambda t: ABSENT + 1)
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


@probe("closed form", "one event before a flood of labels")
def _() -> Verdict:
    # 7.5: both worlds see the same noisy numbers here; then one event moves its own label, and no other.
    floods = [[f"{name} {i}" for i in range(1500)] * 3 for name in "abcdef"]  # whom the hash lets in differs
    make = unknown(Fraction(1, 2), 1e-6, 8, max_labels=1000)
    return event_verdict(make, [([["z"], flood, flood], [[], flood, flood]) for flood in floods])


@probe("closed form", "the noise of looks at the number of labels")
def _() -> Verdict:
    # A look is a Gaussian mechanism; its noise, as 2000 looks show it: a fifth less would take 12 standard errors.
    ticks, rho = 2000, Fraction(1, 2)
    followed = unknown(rho, 1e-6, ticks, max_labels=10_000)(simulation(1))._worker().followed
    followed._limit.at = 0
    noise = [(followed.look(tick, 10**6) or 0) - 10**6 for tick in range(1, ticks + 1)]
    return separates([(math.sqrt(ticks) / max(1e-9, 1.25 * float(np.std(noise))), float(rho) / 16)])
