"""The interval tree with every release written down: which input it had, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from unittest import mock

import numpy as np

from evertally.dynamic.interval_index import level, window_end
from evertally.dynamic.interval_tree import IntervalTree
from evertally.dynamic.ledgers import Allocation, allocation
from evertally.dynamic.node import Node, SizeRelease, Workshop
from evertally.dynamic.parts import Budget, IntArray, Place, Updates
from evertally.dynamic.prefix import amount
from evertally.noise import ZeroNoise
from evertally.privacy import PureDP

Update = tuple[int, int, int]  # sign, cell, item (-1: by value)
Stream = Sequence[Sequence[Update]]  # one list for each segment
Schedule = Callable[[int, int], bool]  # whether a node opens a new round at a segment

ONE = PureDP(1)


@dataclass
class Exact:
    """The counts themselves, with what they cost written down beside them."""

    cells: int
    log: dict[tuple[str, int], tuple[Fraction, tuple[int, ...]]] = field(default_factory=dict)
    unit = 1
    pure = concentrated = additive = True

    @property
    def width(self) -> int:
        return self.cells

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        self.note(data, budget, place)
        return data

    def note(self, data: IntArray, budget: Budget, place: Place) -> None:
        assert (place.lane, place.node) not in self.log, "an address is used once"
        self.log[place.lane, place.node] = amount(budget), tuple(data.tolist())

    def error(self, budgets: Sequence[Budget], beta: float, size: float | None, query: object = None) -> float:
        return 0.0

    def stddev(self, budgets: Sequence[Budget], query: object) -> float:
        return 0.0


def tick(updates: Sequence[Update]) -> Updates:
    signs, cells, items = np.array(updates, dtype=np.int64).reshape(-1, 3).T
    return Updates(cells, signs, items)


def tree(static: Exact, shares: Allocation, *, named: bool, most: int | None = None) -> IntervalTree:
    return IntervalTree(Workshop(static, shares, ONE, ZeroNoise().source(), beta=0.05), named=named, most=most)


def shares_of(name: str = "AT", *, form: str = "value", rounds: int = 64, levels: int | None = None) -> Allocation:
    return allocation(name, form=form, rounds=rounds, levels=levels)  # type: ignore[arg-type]


@dataclass
class Run:
    """What a stream released: the rows, and each release's cost and input by its address."""

    rows: list[list[int]]
    releases: dict[tuple[str, int], tuple[Fraction, tuple[int, ...]]]


def play(
    stream: Stream,
    *,
    named: bool,
    cells: int,
    shares: Allocation,
    restarts: Schedule | None = None,
    halts: Schedule = lambda number, segment: False,
) -> Run:
    """Without noise. `restarts`, `halts` in place of the tests of the nodes (None: the tests themselves)."""
    static = Exact(cells)

    def sized(self: SizeRelease, data: IntArray, budget: Budget, place: Place, size_hint: object = None) -> IntArray:
        static.note(data, budget, place)
        return data

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(SizeRelease, "fit", sized))
        if restarts is not None:
            patches.enter_context(
                mock.patch.object(Node, "restarts", lambda node: restarts(node.number, node.opened + node.steps))
            )
            patches.enter_context(mock.patch.object(Node, "halts", lambda node: halts(node.number, node.opened)))
        worker = tree(static, shares, named=named)
        rows, lasts = worker.advance([tick(updates) for updates in stream])
    return Run(np.repeat(rows, lasts, axis=0).tolist(), static.log)


def loss(one: Run, other: Run) -> Fraction:
    """The sum of cost times distance over all releases: for independent Laplace releases, what is really lost."""
    assert one.releases.keys() == other.releases.keys(), "the pattern of releases is public"
    total = Fraction(0)
    for place, (cost, data) in one.releases.items():
        same, others = other.releases[place]
        assert same == cost
        total += cost * sum(abs(a - b) for a, b in zip(data, others, strict=True))
    return total


def largest_distance(one: Run, other: Run) -> int:
    """Over all releases, how far apart their inputs are."""
    return max(
        sum(abs(a - b) for a, b in zip(data, other.releases[place][1], strict=True))
        for place, (_, data) in one.releases.items()
    )


def node_of(lane: str, segment: int) -> int:
    """Which node a release belongs to, from its address."""
    at = int(lane.split("/")[2])
    size = 1 << (at - 1)
    number = segment // size * size
    assert level(number) == at
    assert number <= segment <= window_end(number)
    return number


def differing_nodes(one: Run, other: Run) -> set[int]:
    """The nodes with an input that differs."""
    return {node_of(*place) for place, (_, data) in one.releases.items() if data != other.releases[place][1]}


def is_ancestor_or_self(number: int, segment: int) -> bool:
    """Whether node `number` is v_segment or above it."""
    size = 1 << (level(number) - 1)
    return number - size < segment < number + size
