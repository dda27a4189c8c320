"""Probes by exact law: tiny instances, the true loss of which is enumerated."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np

from audit.probes.probing import (
    KEY,
    Verdict,
    coarse_grid,
    concentrated_verdict,
    counter,
    histogram,
    probe,
    pure_verdict,
    shift,
)
from evertally.audit.exact import JointLoss, exact_columns, exact_loss
from evertally.audit.game import Factory, IntArray
from evertally.errors import BudgetExceeded
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.statistics import Counter
from evertally.stream import Stream


@probe("exact law", "binary tree, each tick of three")
def _() -> Verdict:
    mechanism = counter(PureDP(3), 3, radix=2)(KEY)
    streams = np.eye(3, dtype=int).tolist()
    losses = [exact_loss(mechanism, stream, [0, 0, 0], tail=1e-7) for stream in streams]
    return pure_verdict(max(losses, key=lambda loss: loss.epsilon), 3)


@probe("exact law", "binary tree that keeps no noise, three ticks")
def _() -> Verdict:
    mechanism = counter(PureDP(3), 3, radix=2, memory_limit=8)(KEY)
    return pure_verdict(exact_loss(mechanism, [1, 0, 0], [0, 0, 0], tail=1e-7), 3)


@probe("exact law", "epochs without a horizon, three ticks")
def _() -> Verdict:
    mechanism = counter(PureDP(3), None, "epoch-tree")(KEY)
    return pure_verdict(exact_loss(mechanism, [0, 1, 0], [0, 0, 0], tail=1e-7), 3)


@probe("exact law", "square-root counter on a coarse grid, three ticks")
def _() -> Verdict:
    with coarse_grid(1):
        mechanism = counter(ZCDP(1), 3, "sqrt")(KEY)
        return concentrated_verdict(exact_loss(mechanism, [1, 0, 0], [0, 0, 0], tail=1e-5), 1)


@probe("exact law", "square-root counter on a coarse grid, one tick, little budget")
def _() -> Verdict:
    with coarse_grid(2):
        mechanism = counter(ZCDP(0.01), 1, "sqrt")(KEY)
        return concentrated_verdict(exact_loss(mechanism, [1], [0]), 0.01)


@probe("exact law", "one tick of an (epsilon, delta) stream")
def _() -> Verdict:
    promise = ApproxDP(1, 1e-6)
    # What a stream shares out is rho: alone, one query would be paid in epsilon.
    stream = Stream("s", guarantee=promise.to_zcdp(), horizon=1, key=KEY)
    loss = exact_loss(stream.add(Counter, share=1, mechanism="tree"), [1], [0], tail=1e-13)
    found = loss.delta(promise.epsilon)
    return found > promise.delta, f"delta at epsilon 1 is {found:.6g}, claimed {promise.delta:.6g}"


@probe("exact law", "what a zCDP counter says of (epsilon, delta)")
def _() -> Verdict:
    promise = ZCDP(0.5).to_approx(1e-6)
    loss = exact_loss(counter(ZCDP(0.5), 1)(KEY), [1], [0], tail=1e-13)
    found = loss.delta(promise.epsilon)
    return found > promise.delta, f"delta at epsilon {promise.epsilon:.4g} is {found:.3g}, claimed {promise.delta:.3g}"


@probe("exact law", "a noise scale that is no short fraction")
def _() -> Verdict:
    # The loss of one tick is 1/scale, to 16 digits: a scale rounded down in the 40th bit shows.
    loss = exact_loss(counter(PureDP(3), 1)(KEY), [1], [0], tail=1e-40)
    return loss.epsilon > 3 * (1 + 1e-14), f"the exact law loses epsilon 3{loss.epsilon - 3:+.2e}, claimed 3"


@probe("exact law", "one event of any weight")
def _() -> Verdict:
    make = counter(PureDP(1), 1, max_weight=3)
    moved = max(int(abs(shift(make, [event], [])[0])) for event in (3, 250, -7, 10**20))
    return pure_verdict(exact_loss(make(KEY), [moved], [0]), 1)


@probe("exact law", "one user with many events")
def _() -> Verdict:
    make = counter(PureDP(1), 1, unit="user", max_events_per_user=2)
    moved = int(shift(make, [1] * 5, [], (["ann"] * 5, []))[0])
    return pure_verdict(exact_loss(make(KEY), [moved], [0]), 1)


@probe("exact law", "one of two users, by category")
def _() -> Verdict:
    make = histogram(PureDP(1), unit="user", max_events_per_user=2)
    moved = shift(make, ["a", "a", "b", "b"], ["b", "b"], (["ann", "ann", "bob", "bob"], ["bob", "bob"]))
    return _row_verdict(make, moved, 1)


@probe("exact law", "one event with repeated labels")
def _() -> Verdict:
    verdicts = []
    for most in (1, 2):
        make = histogram(PureDP(1), max_per_event=most)
        verdicts += [_row_verdict(make, shift(make, [e], []), 1) for e in (["a", "a", "a"], {"a": 5}, ["a", "b", "b"])]
    return max(verdicts)


@probe("exact law", "two mechanisms of one stream")
def _() -> Verdict:
    stream = Stream("s", guarantee=PureDP(1), horizon=1, key=KEY)
    added = [stream.add(Counter, share=Fraction(2, 3), name="first")]
    with suppress(BudgetExceeded):
        added.append(stream.add(Counter, share=Fraction(2, 3), name="second"))
    # Their noise is independent: the losses of one event that both see add up.
    return pure_verdict(JointLoss(tuple(exact_loss(mechanism, [1], [0]) for mechanism in added)), 1)


def _row_verdict(make: Factory, moved: IntArray, epsilon: float) -> Verdict:
    left, right = np.maximum(moved, 0), np.maximum(-moved, 0)
    return pure_verdict(exact_columns(make(KEY), [left.tolist()], [right.tolist()]), epsilon)
