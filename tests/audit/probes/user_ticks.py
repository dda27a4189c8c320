"""Probes of users in several ticks: two streams through the program, and the most powerful test between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from audit.probes.probing import KEY, ROUNDING, Factory, Verdict, counter, histogram, probe
from evertally.audit.gaussian import form_of, impulse_response
from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP

Stream = list[list[tuple[str, Any]]]  # for each tick, users and their events

RHO = 0.5


def squared(make: Factory, one: Stream, other: Stream, between: Callable[[Any], Any] = lambda made: made) -> float:
    """mu^2 of the most powerful test between two streams. Under one key their noise cancels: what is left is how far
    they are apart after the door. `between` is what happens to the mechanism before each tick."""
    released = []
    for stream in (one, other):
        mechanism: Any = make(KEY)
        rows = []
        for tick in stream:
            mechanism = between(mechanism)
            mechanism.step_events([event for _, event in tick], users=[user for user, _ in tick])
            rows.append(np.asarray(mechanism._kept.played.recent[-1], dtype=np.float64).ravel())
        released.append(np.array(rows))
    sums = released[0] - released[1]
    directions = form_of(*impulse_response(make(KEY), len(one)), 0.0).directions
    return float(np.einsum("tc,ts,sc->", sums, directions, np.diff(sums, axis=0, prepend=0)))


def apart(make: Factory, one: Stream, other: Stream, between: Callable[[Any], Any] = lambda made: made) -> Verdict:
    mu, claimed = math.sqrt(squared(make, one, other, between)), math.sqrt(2 * RHO)
    return mu > claimed * (1 + ROUNDING), f"the most powerful test separates by mu {mu:.6g}, claimed {claimed:.6g}"


def of(user: str, ticks: Any, horizon: int, event: Any = 1) -> Stream:
    return [[(user, event)] if t in ticks else [] for t in range(1, horizon + 1)]


@probe("closed form", "one user for another, in other categories")
def _() -> Verdict:
    users: dict[str, Any] = {"unit": "user", "max_events_per_user": 2, "neighbours": "replace"}
    make = histogram(ZCDP(RHO), 4, mechanism="tree", radix=2, **users)
    return apart(make, *([[("ann", label)] * 3, [], [], []] for label in ("a", "b")))


@probe("closed form", "a user whose ticks are apart")
def _() -> Verdict:
    make = counter(ZCDP(RHO), 16, "sqrt", unit="user", max_ticks_per_user=3, min_separation=4)
    return apart(make, of("ann", range(1, 17), 16), of("ann", (), 16))


@probe("closed form", "a user at the edge of two blocks")
def _() -> Verdict:
    make = counter(ZCDP(RHO), 16, "sqrt", unit="user", min_separation=8, calendar=True)
    return apart(make, of("ann", (8, 9), 16), of("ann", (), 16))


@probe("closed form", "a user of a stream that begins inside a block")
def _() -> Verdict:
    make = counter(ZCDP(RHO), 4, "sqrt", unit="user", min_separation=2, calendar=True, first_block=1)
    return apart(make, of("ann", (1, 2, 4), 4), of("ann", (), 4))


@probe("closed form", "two users by turns")
def _() -> Verdict:
    make = histogram(ZCDP(RHO), 24, mechanism="sqrt", unit="user", min_separation=2)
    bob = of("bob", range(2, 25, 2), 24, "b")
    both = [mine or his for mine, his in zip(of("ann", range(1, 25, 2), 24, "a"), bob, strict=True)]
    return apart(make, both, bob)


@probe("closed form", "one block of a busy user")
def _() -> Verdict:
    """A rule with memory where blocks are protected: if it is taken, what follows moves as well."""
    try:
        make = counter(ZCDP(RHO), 24, "sqrt", unit="user-period", period=6, min_separation=4)
        make(KEY)
    except ConfigurationError as refusal:
        return False, f"refused: {refusal}"
    return apart(make, of("ann", range(1, 25), 24), of("ann", range(7, 25), 24))
