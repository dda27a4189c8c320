"""Planted bugs of prefixes, partitions and releases anew, each with the probe that finds it (dynamic-data 10.1, 11).

Like those of the interval tree (mutants.py): a probe returns what it found, in words; nothing, where nothing is wrong.

>>> short = next(mutant for mutant in PREFIX_MUTANTS if mutant.name == "a tree with one level too few")
>>> short.probe()
''
>>> with short.patch():
...     short.probe()
'a step costs 1.5 of what is promised'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from mutants import Mutant, Patch, Probe
from partition_laws import boundaries, loss
from small_static import Asked, Recorded

from evertally.dynamic import insertions, partitioners, subtract
from evertally.dynamic.anew import Anew, Schedule
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.partitioners import SparsePartition, SparseVector
from evertally.dynamic.parts import Place, Setting, Updates
from evertally.dynamic.prefix import DoublingBlocks, FiniteTree, amount
from evertally.dynamic.tolls import Toll
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.privacy import ZCDP, Contribution, PureDP

PREFIX_MUTANTS: list[Mutant] = []
LENGTH = 7

Ticks = list[list[tuple[int, int]]]


def plant(probe: Probe) -> Callable[[Patch], Patch]:
    """Registers the patch of a bug; its docstring is the name, and in brackets what the trap lists say."""

    def register(patch: Patch) -> Patch:
        name, _, trap = " ".join((patch.__doc__ or "").split()).partition(" (")
        PREFIX_MUTANTS.append(Mutant(name, trap.removesuffix(")"), patch, probe))
        return patch

    return register


@contextmanager
def replaced(target: Any, **attributes: Any) -> Iterator[None]:
    with mock.patch.multiple(target, **attributes):
        yield


# -- probes ------------------------------------------------------------------------------------------------------------


def asked(name: str, ticks: Ticks, **given: Any) -> list[Asked]:
    """Every release of a construction: where, for how much, of what."""
    static = Recorded(2)
    public: dict[str, Any] = {"guarantee": PureDP(1), "horizon": LENGTH, "identity": "token", "protects": "item"}
    setting = Setting(static, **(public | {"steps": 1} | given))
    made = CONSTRUCTIONS[name].plan(setting, Contribution()).worker(ZeroNoise().source("probe"))
    for pairs in ticks:
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        made.advance([Updates(table[:, 0], table[:, 1], np.full(len(table), -1))])
    return static.asked


def cost(name: str, one: Ticks, other: Ticks, **given: Any) -> Fraction:
    """What telling two streams apart costs: budget times distance, or times its square for rho."""
    total = Fraction(0)
    for a, b in zip(asked(name, one, **given), asked(name, other, **given), strict=True):
        distance = sum(abs(x - y) for x, y in zip(a.data, b.data, strict=True))
        total += amount(a.budget) * (distance if isinstance(a.budget, PureDP) else distance**2)
    return total


def lifetime(start: int, end: int | None) -> Ticks:
    return [[(0, 1)] if t == start else [(0, -1)] if t == end else [] for t in range(LENGTH)]


def _too_much(costs: Iterator[Fraction]) -> str:
    most = max(costs)
    return f"a step costs {float(most):.3g} of what is promised" if most > 1 else ""


def one_insertion() -> str:
    """Of the tree and of the blocks: an insertion at every tick."""
    nothing: Ticks = [[]] * LENGTH
    given = {"deletions": False, "protects": "event"}
    return _too_much(
        cost(name, lifetime(t, None), nothing, **given) for name in ("tree", "doubling") for t in range(LENGTH)
    )


def one_lifetime() -> str:
    """Of the two structures and of releases anew, pure and in rho."""
    nothing: Ticks = [[]] * LENGTH
    ends = [(a, b) for a in range(LENGTH) for b in (*range(a + 1, LENGTH), None)]
    short = [(a, b) for a, b in ends if (b or LENGTH) - a <= 3]
    anew = {"every": 2, "max_lifetime": 3, "horizon": None}
    return _too_much(
        spent
        for guarantee in (PureDP(1), ZCDP(1))
        for spent in (
            *(cost("subtract", lifetime(*life), nothing, guarantee=guarantee) for life in ends),
            *(cost("anew", lifetime(*life), nothing, guarantee=guarantee, **anew) for life in short),
        )
    )


def pattern() -> str:
    """Which releases are made, where and for how much, must not follow from data; and no address comes twice."""
    full: Ticks = [[(0, 1), (1, 1)]] * LENGTH
    for name in ("tree", "doubling", "subtract", "anew"):
        patterns = [[(a.lane, a.node, a.budget) for a in asked(name, ticks)] for ticks in ([[]] * LENGTH, full)]
        if patterns[0] != patterns[1]:
            return "which releases are made follows from data"
        if len({place[:2] for place in patterns[0]}) < len(patterns[0]):
            return "one address for two releases: their noise is the same"
    return ""


def law_of_boundaries() -> str:
    """The exact law of all boundaries of six ticks, one update more or less."""
    for scales in ("paper", "cumulative"):
        test = SparseVector(Fraction(1), scales)  # type: ignore[arg-type]
        base = [9, 0, 0, 0, 0, 0]
        laws = [
            list(boundaries(counts, 1, float(test.rho.scale), float(test.nu.scale)).values())
            for counts in (base, [10, *base[1:]])
        ]
        if loss(*laws) > 1 + 1e-9:
            return f"the partition loses {loss(*laws):.3g} epsilon"
    return ""


def noise_of_tests() -> str:
    """nu at every tick, rho for every segment, each fresh."""
    key = Recording(simulation(1))
    partition = SparsePartition(SparseVector(Fraction(8)), key.source("probe"), beta=0.05, lane="p")
    closed = sum(partition.boundary(t % 3) for t in range(60))
    nodes = {
        role: [node for drawn in key.draws if drawn.lane == f"p/{role}" for node in drawn.nodes]
        for role in ("mu", "tau")
    }
    if nodes["mu"] != list(range(1, 61)):
        return "a tick was tested without noise of its own"
    return "" if nodes["tau"] == list(range(1, closed + 2)) else "a segment has no threshold of its own"


# -- bugs --------------------------------------------------------------------------------------------------------------


@plant(one_insertion)
@contextmanager
def one_level_too_few() -> Iterator[None]:
    """a tree with one level too few (10.1.4: log T in place of log T + 1)"""
    made = FiniteTree.__init__

    def shallow(self: Any, static: Any, budget: Any, *rest: Any) -> None:
        made(self, static, budget, *rest)
        self.share = budget.share(Fraction(1, max(1, self.levels - 1)))

    with replaced(FiniteTree, __init__=shallow):
        yield


@plant(one_insertion)
@contextmanager
def blocks_pay_once() -> Iterator[None]:
    """blocks that give everything to the outer releases and to the inner ones (5.2)"""
    made = DoublingBlocks.__init__

    def whole(self: Any, static: Any, budget: Any, place: Any) -> None:
        made(self, static, budget, place)
        self.half = budget

    with replaced(DoublingBlocks, __init__=whole):
        yield


@plant(one_lifetime)
@contextmanager
def item_paid_once() -> Iterator[None]:
    """an item that is paid for in one of two structures (6.1: 2 epsilon)"""
    with replaced(subtract, two_toll=lambda setting: Toll(1, 1)):
        yield


@plant(one_lifetime)
@contextmanager
def rho_paid_once() -> Iterator[None]:
    """an item whose rho is paid for in one of two structures (6.1: 2 rho)"""
    with replaced(subtract, two_toll=lambda setting: Toll(2, 1)):
        yield


@plant(one_lifetime)
@contextmanager
def a_release_not_paid() -> Iterator[None]:
    """lifetimes that are in a release more than is paid for (13.3: rounded up, not down)"""
    with replaced(Schedule, within=lambda self, ticks: max(1, ticks // self.period)):
        yield


@plant(pattern)
@contextmanager
def empty_nodes_skipped() -> Iterator[None]:
    """nodes of nothing that are not released (10.1.6)"""
    feed = FiniteTree.feed

    def lazy(self: Any, data: Any, size_hint: Any = None) -> None:
        if data.any():
            feed(self, data, size_hint)
        else:
            self.index += 1

    with replaced(FiniteTree, feed=lazy):
        yield


@plant(pattern)
@contextmanager
def released_when_changed() -> Iterator[None]:
    """a release anew only if something has changed (13.3: that would need a test)"""
    release = Anew._release

    def lazy(self: Any, number: int) -> Any:
        return release(self, number) if self._present.any() else self._row

    with replaced(Anew, _release=lazy):
        yield


@plant(pattern)
@contextmanager
def shared_lanes() -> Iterator[None]:
    """insertions and deletions with the same noise (14.4: the difference would have none)"""

    def tree(static: Any, spent: Any, horizon: int, source: Any, lane: str) -> FiniteTree:
        return FiniteTree(static, spent.releases, horizon, lambda level, index: Place(source, f"tree-{level}", index))

    with mock.patch.dict(insertions.STRUCTURES, {"tree": tree}):
        yield


@plant(law_of_boundaries)
@contextmanager
def half_the_scales() -> Iterator[None]:
    """a partition with half of its noise (10.1.7)"""
    halved = {"paper": (1, 1, 7, 6), "cumulative": (Fraction(1, 2), Fraction(1, 2), 3, 2)}
    with replaced(partitioners, _SCALES=halved):
        yield


@plant(noise_of_tests)
@contextmanager
def empty_ticks_untested() -> Iterator[None]:
    """no noise at ticks at which nothing arrives (10.1.7)"""
    boundary = SparsePartition.boundary

    def lazy(self: Any, arrived: int) -> bool:
        if arrived:
            return boundary(self, arrived)
        self.tick += 1
        return False

    with replaced(SparsePartition, boundary=lazy):
        yield


@plant(noise_of_tests)
@contextmanager
def one_threshold() -> Iterator[None]:
    """one noisy threshold for all segments (10.1.7)"""

    def draw(self: Any) -> int:
        return int(self._source.draws(f"{self._lane}/tau", self._rho_law, [1])[0, 0])

    with replaced(SparsePartition, _draw_rho=draw):
        yield
