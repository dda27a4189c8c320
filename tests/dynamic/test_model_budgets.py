"""What one lifetime costs in streams of thousands of ticks, summed over the exact inputs of all releases: never more
than the promise, and not much less. (All paths of restarts, in shorter streams: test_interval_privacy.py.)"""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from small_static import SmallHistogram

from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.node import SizeRelease
from evertally.dynamic.parts import Setting, Updates
from evertally.noise import simulation
from evertally.privacy import ZCDP, Contribution, PureDP
from long import LONG

LENGTH = 2047 if LONG else 1023
PURE, RHO = PureDP(1), ZCDP(1)
TWO_THIRDS, HALF, QUARTER = Fraction(2, 3), Fraction(1, 2), Fraction(1, 4)
# The last one is the least that the dearest lifetime should be found to cost.
CASES: list[tuple[str, Any, dict[str, Any], Fraction]] = [
    ("tree", PURE, {}, HALF),
    ("tree", RHO, {}, HALF),
    ("doubling", RHO, {"horizon": None}, TWO_THIRDS),
    ("subtract", PURE, {}, TWO_THIRDS),
    ("anew", RHO, {"every": 64}, Fraction(1)),
    ("anew", PURE, {"every": 10, "max_lifetime": 300, "horizon": None}, Fraction(1)),
    ("interval-tree", PURE, {"horizon": None}, HALF),
    ("interval-tree", RHO, {}, QUARTER),
    ("interval-tree", PURE, {"horizon": None, "options": (("allocation", "A2"),)}, QUARTER),
]
Release = tuple[Fraction, tuple[int, ...]]


def amount(budget: Any) -> Fraction:
    exact: Fraction = budget.exact_epsilon if isinstance(budget, PureDP) else budget.exact_rho
    return exact


class Watched:
    """Every release of a run, by where its noise came from: its budget and its exact input."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int, int], Release] = {}

    def note(self, data: Any, budget: Any, place: Any) -> None:
        address = place.lane, place.node, len(data)
        assert address not in self.found, "noise was used twice"
        self.found[address] = amount(budget), tuple(data.tolist())


def stream(rng: random.Random) -> list[list[tuple[int, int]]]:
    """Lifetimes (first tick, last tick), some for ever; by the tick of their insertion."""
    begun: list[list[tuple[int, int]]] = [[] for _ in range(LENGTH)]
    for _ in range(3 * LENGTH // 4):
        a = rng.randrange(LENGTH)
        begun[a].append((a, a + rng.choice([0, 1, 5, 64, 300, 1000])))
    return begun


def releases(
    case: str, given_: dict[str, Any], promise: Any, lives: list[tuple[int, int, int]], patch: pytest.MonkeyPatch
) -> dict[tuple[str, int, int], Release]:
    """Of items (number, first tick, last tick), all in one cell."""
    watched = Watched()

    def of(plain: Any) -> Any:
        def fit(self: Any, data: Any, budget: Any, place: Any, size_hint: Any = None) -> Any:
            watched.note(data, budget, place)
            return plain(self, data, budget, place, size_hint)

        return fit

    options = {"horizon": LENGTH, "identity": "token", "protects": "item", "steps": 1} | given_
    setting = Setting(static=SmallHistogram(2), guarantee=promise, **options)
    longest = options.get("max_lifetime")
    signs: list[list[tuple[int, int]]] = [[] for _ in range(LENGTH)]
    for item, a, b in lives:
        end = b if longest is None else min(b, a + longest)
        signs[a].append((item, 1))
        if end < LENGTH:
            signs[end].append((item, -1))
    ticks = [
        Updates(
            np.zeros(len(tick), dtype=np.int64),
            np.array([sign for _, sign in tick], dtype=np.int64),
            np.array([item for item, _ in tick], dtype=np.int64),
        )
        for tick in signs
    ]
    with patch.context() as patched:
        for kind in (SmallHistogram, SizeRelease):
            patched.setattr(kind, "fit", of(kind.fit))
        worker = CONSTRUCTIONS[case].plan(setting, Contribution()).worker(simulation(3).source("tree"))
        worker.advance(ticks)
    return watched.found


@pytest.mark.parametrize(("case", "promise", "given_", "least"), CASES)
def test_no_lifetime_costs_more_than_promised(
    case: str, promise: Any, given_: dict[str, Any], least: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = [(i, a, b) for i, (a, b) in enumerate(life for tick in stream(random.Random(5)) for life in tick)]
    half = LENGTH // 2 + 7
    probes = [(0, half)] if case == "interval-tree" else [(0, LENGTH), (7, half), (LENGTH - 2, LENGTH - 1)]
    ours = releases(case, given_, promise, lives, monkeypatch)
    power = 1 if isinstance(promise, PureDP) else 2
    costs = []
    for a, b in probes:
        theirs = releases(case, given_, promise, [*lives, (len(lives), a, b)], monkeypatch)
        same = {address for address in ours if address in theirs}
        # A count that noise turned into another restart is another path; what is compared is one and the same.
        if len(same) < len(ours) or len(theirs) > len(ours):
            continue
        total = Fraction(0)
        for address in same:
            budget, data = ours[address]
            again, other = theirs[address]
            assert budget == again
            total += budget * sum(abs(x - y) for x, y in zip(data, other, strict=True)) ** power
        costs.append(total)
    assert costs
    assert least <= max(costs) <= 1
    assert Counter(address[0] for address in ours).total() >= LENGTH // 64
