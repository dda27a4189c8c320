"""Planted bugs of the interval tree: what dynamic-data 6.3, 10.1 and 11.2 warn of, each with the probe that finds it.

A probe returns what it found, in words; nothing, where nothing is wrong. Bugs are patched in from outside, for the time
of a `with` block: product code has no switch for any of them.

>>> oldest = next(mutant for mutant in MUTANTS if mutant.name == "oldest copy first")
>>> oldest.probe()
''
>>> with oldest.patch():
...     oldest.probe()
'nodes beside the path to the root get another input'
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from interval_costs import Prices, cost, cost_of, differences, lifetimes
from interval_runs import Schedule, Update, is_ancestor_or_self, loss, play, tick
from small_static import SmallHistogram

from evertally.dynamic import holders, interval_plan, ledgers
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.holders import Content, Counts, Holders, dense
from evertally.dynamic.interval_tree import IntervalTree
from evertally.dynamic.ledgers import Allocation, Shares
from evertally.dynamic.node import Node, Workshop
from evertally.dynamic.parts import Place, Setting
from evertally.dynamic.prefix import FiniteTree, amount
from evertally.dynamic.tolls import Toll
from evertally.noise import simulation
from evertally.privacy import Contribution, PureDP

Patch = Callable[[], AbstractContextManager[None]]
Probe = Callable[[], str]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: where the trap lists warn of it, how to plant it, and the probe that must find it."""

    name: str
    trap: str
    patch: Patch
    probe: Probe


MUTANTS: list[Mutant] = []


def plant(probe: Probe) -> Callable[[Patch], Patch]:
    """Registers the patch of a bug; its docstring is the name, and in brackets what the trap lists say."""

    def register(patch: Patch) -> Patch:
        name, _, trap = " ".join((patch.__doc__ or "").split()).partition(" (")
        MUTANTS.append(Mutant(name, trap.removesuffix(")"), patch, probe))
        return patch

    return register


@contextmanager
def replaced(target: Any, **attributes: Any) -> Iterator[None]:
    """Attributes of a module or class, replaced. Allocations are kept, so they are forgotten before and after."""
    ledgers.allocation.cache_clear()
    with ExitStack() as stack:
        for name, value in attributes.items():
            stack.enter_context(mock.patch.object(target, name, value))
        try:
            yield
        finally:
            for kept in (ledgers.allocation, _ALLOCATION):
                kept.cache_clear()


_ALLOCATION = ledgers.allocation


# -- probes ------------------------------------------------------------------------------------------------------------


def never(number: int, segment: int) -> bool:
    return False


def sliding(segments: int, window: int) -> list[list[Update]]:
    """One copy more and, once there are `window` of them, one less in every segment."""
    return [[(1, 0, -1), *([(-1, 0, -1)] if j >= window else [])] for j in range(segments)]


def up_and_down(n: int) -> list[list[Update]]:
    """n insertions, one more, n deletions."""
    return [[(1, 0, -1)]] * (n + 1) + [[(-1, 0, -1)]] * n


def only_ancestors_differ() -> str:
    """The structural form of Lemma R, which holds at any length."""
    window = sliding(137, 8)
    pyramid = up_and_down(16)
    for stream, segment in ((window, 1), (pyramid, 17)):
        other = [*stream[: segment - 1], stream[segment - 1][1:], *stream[segment:]]
        found = differences(stream, other, named=False)
        if not all(is_ancestor_or_self(number, segment) for number in found):
            return "nodes beside the path to the root get another input"
    return ""


def a_long_window_stays_within_the_budget() -> str:
    """Cost under A0, in the first round: oldest-first needs about two thousand segments to be seen here."""
    stream = sliding(2057, 8)
    found = differences(stream, [[], *stream[1:]], named=False)
    spent = cost_of(found, Prices.like(ledgers.allocation("A0", form="value", rounds=64)), restarts=False)
    return f"{spent:.2f} of the budget after 2057 segments" if spent > 1 else ""


def spent_by(shares: Allocation, stream: list[list[Update]], other: list[list[Update]], restarts: Schedule) -> str:
    runs = [play(of, named=True, cells=1, shares=shares, restarts=restarts) for of in (stream, other)]
    if runs[0].releases.keys() != runs[1].releases.keys():
        return "which releases there are depends on the data"
    spent = loss(*runs)
    return f"{float(spent):.3f} of the budget" if spent > 1 else ""


def a_life_without_end() -> str:
    """An insertion in segment 1 that is never deleted: all levels hold it."""
    shares = ledgers.allocation("A0", form="value", rounds=64)
    return spent_by(shares, lifetimes(64, 1, []), [[]] * 64, never)


def the_same_deletion_twice() -> str:
    """6.10: inserted in segment 1, deleted in 3 and again in 9, without the first deletion."""
    shares = ledgers.allocation("A2", form="token-event", rounds=64)
    return spent_by(shares, lifetimes(16, 1, [3, 9]), lifetimes(16, 1, [9]), never)


def inner_trees_keep_to_their_share() -> str:
    """One deletion at the first step of a node: all its releases of deletions together."""
    shares = ledgers.allocation("AT", form="value", rounds=64)
    runs = [play(lifetimes(31, 16, d), named=True, cells=1, shares=shares, restarts=never) for d in ([17], [])]
    for role, most in (("counted", shares.shares(5, 1).counted), ("deleted", shares.shares(5, 1).deleted)):
        spent = sum(
            budget * abs(data[0] - runs[1].releases[place][1][0])
            for place, (budget, data) in runs[0].releases.items()
            if place[0].startswith(f"interval/{role}/5/")
        )
        if spent > most:
            return f"the tree '{role}' spends {float(spent / most):.2f} of its share"
    return ""


def the_pattern_is_public() -> str:
    """Addresses and budgets of releases, for a busy stream and an empty one."""
    busy: list[list[Update]] = [[(1, 0, j)] for j in range(4)] + [[(-1, 0, 0), (-1, 0, 1)], [], []]
    patterns = []
    for stream in (busy, [[] for _ in busy]):
        run = play(
            stream, named=True, cells=1, shares=ledgers.allocation("AT", form="value", rounds=64), restarts=never
        )
        patterns.append({place: budget for place, (budget, _) in run.releases.items()})
    return "" if patterns[0] == patterns[1] else "which releases there are depends on the data"


def planned(**options: Any) -> IntervalTree:
    """As a statistic would build it, with a small histogram."""
    facts: dict[str, Any] = {"identity": "token", "protects": "event", "steps": 1, **options}
    setting = Setting(SmallHistogram(2), PureDP(1), None, **facts)
    worker: Any = CONSTRUCTIONS["interval-tree"].plan(setting, Contribution()).worker(simulation(1).source("tree"))
    return worker  # type: ignore[no-any-return]


def charged(worker: IntervalTree, one: list[list[Update]], other: list[list[Update]], named: bool) -> str:
    shop = worker._shop
    spent = float(amount(shop.budget)) * cost(one, other, Prices.like(shop.allocation), named=named)
    return f"{spent:.3f} of the promise" if spent > 1 else ""


def a_name_used_twice() -> str:
    """6.3: without the first insertion of a name from outside, its second one counts, in another cell."""
    one: list[list[Update]] = [[] for _ in range(8)]
    other: list[list[Update]] = [[] for _ in range(8)]
    one[0], other[2] = [(1, 0, 0)], [(1, 1, 1)]
    return charged(planned(identity="id", steps=2), one, other, named=True)


def a_lifetime_by_value() -> str:
    """6.10: inserted in segments 1 and 5, deleted in 5 and 7, without the first of each."""
    up, down = (1, 0, -1), (-1, 0, -1)
    one = [[up], [], [], [], [up, down], [], [down], []]
    other = [[], [], [], [], [up], [], [down], []]
    worker = planned(identity="value", protects="item", options=(("unique_deletions", True),))
    return charged(worker, one, other, named=False)


def a_restore_goes_on() -> str:
    """The releases after a restore, against those of a tree that was never interrupted."""
    stream = [tick([(1, j % 2, j)] + ([(-1, 0, j - 3)] if j > 3 else [])) for j in range(24)]
    whole, first, second = planned(), planned(), planned()
    rows, lasts = whole.advance(stream)
    first.advance(stream[:11])
    second.load(11, first.state())
    later, stands = second.advance(stream[11:])
    same = np.array_equal(np.repeat(rows, lasts, axis=0)[11:], np.repeat(later, stands, axis=0))
    return "" if same else "the same ticks have other releases after a restore: their noise was drawn anew"


def exact_without_noise() -> str:
    """Random updates by name against a plain count; nodes halt, and what they hold comes back at a power of two."""
    rng = random.Random(2)
    stream: list[list[Update]] = []
    alive: list[int] = []
    present = []
    for j in range(64):
        updates: list[Update] = [(1, 0, 3 * j + k) for k in range(rng.randrange(3))]
        alive += [item for _, _, item in updates]
        for _ in range(rng.randrange(3)):
            if alive:
                updates.append((-1, 0, alive.pop(rng.randrange(len(alive)))))
        stream.append(updates)
        present.append(len(alive))
    shares = ledgers.allocation("AT", form="value", rounds=64)

    def often(number: int, segment: int) -> bool:
        return (number + segment) % 3 == 0

    plain = play(stream, named=True, cells=1, shares=shares, restarts=often)
    if [row[0] for row in plain.rows] != present:
        return "answers without noise are wrong"
    halting = play(stream, named=True, cells=1, shares=shares, restarts=often, halts=lambda number, segment: True)
    if [halting.rows[2**k - 1][0] for k in range(7)] != [present[2**k - 1] for k in range(7)]:
        return "what was deleted while a node was halted comes back"
    return ""


# -- bugs --------------------------------------------------------------------------------------------------------------


@plant(only_ancestors_differ)
def oldest_first() -> Any:
    """oldest copy first (6.3: one insertion re-matches arbitrarily many later deletions)"""
    return replaced(Holders, _newest=_oldest)


@plant(a_long_window_stays_within_the_budget)
def oldest_first_in_the_ledger() -> Any:
    """oldest copy first, counted in budget (11.2: about two thousand segments, short streams pass silently)"""
    return replaced(Holders, _newest=_oldest)


def _oldest(self: Any, cell: int) -> tuple[Content, int] | None:
    for content in (*self._contents, self._new):
        if cell in content.copies:
            return content, cell
    return None


@plant(only_ancestors_differ)
def no_retirement() -> Any:
    """nodes that are never retired (6.3: literal Algorithm 3 keeps listening to deletions for ever)"""
    return replaced(holders, left_ancestor=lambda segment: segment - 1)


@plant(a_life_without_end)
def factor_with_leaves() -> Any:
    """leaves that spend all on their content, with the factor pi^2/6 of A0 (6.6: 1.39 of the budget)"""

    def allocation(name: str, **options: Any) -> Allocation:
        made = _ALLOCATION(name, **options)

        def scaled(level: int, round_: int) -> Shares:
            one = made.shares(level, round_).size / ledgers._SERIES
            return Shares(one, one, one, one)

        return replace(made, leaf=Fraction(1), _shares=scaled)

    allocation.cache_clear = lambda: None  # type: ignore[attr-defined]
    return replaced(ledgers, allocation=allocation)


@plant(inner_trees_keep_to_their_share)
def one_level_too_few() -> Any:
    """trees over deletions that divide by log T (5.1: there are log T + 1 levels)"""
    init = FiniteTree.__init__

    def fewer(self: Any, static: Any, budget: Any, length: int, place: Any) -> None:
        init(self, static, budget, length, place)
        self.share = budget.share(Fraction(1, max(1, self.levels - 1)))

    return replaced(FiniteTree, __init__=fewer)


@plant(the_pattern_is_public)
def an_index_for_each_update() -> Any:
    """an inner index for each deletion (10.1.2: how many updates a segment has is private)"""

    def step(self: Any, segment: int, deleted: Counts, content: Any) -> None:
        for cell, copies in deleted.items():
            for _ in range(copies):
                self._counted.feed(np.array([1]))
                self._deleted.feed(dense({cell: 1}, self._shop.static.cells))

    return replaced(Node, step=step)


@plant(the_pattern_is_public)
def empty_nodes_left_out() -> Any:
    """nothing released of what is empty (10.1.6: that tells that it is empty)"""
    original = Node.open

    def opened(self: Any, segment: int, content: Counts) -> None:
        if content:
            original(self, segment, content)
        else:
            self.halted = True

    return replaced(Node, open=opened)


@plant(the_same_deletion_twice)
def one_feed_for_a_deletion() -> Any:
    """A2 at a quarter in the event unit (6.10: a second deletion of the same name moves the first: two feeds)"""

    def allocation(name: str, *, form: Any, **options: Any) -> Allocation:
        return _ALLOCATION(name, form="token-item" if form == "token-event" else form, **options)

    allocation.cache_clear = lambda: None  # type: ignore[attr-defined]
    return replaced(ledgers, allocation=allocation)


@plant(a_name_used_twice)
def names_from_outside_like_tokens() -> Any:
    """names from outside at the price of tokens (6.3: two lifetimes change, 1.40 of the budget)"""
    return replaced(interval_plan, interval_toll=lambda setting: Toll(1, 1))


@plant(a_lifetime_by_value)
def items_by_value_like_events() -> Any:
    """items by value at the price of one update (6.10: 1.3125 of the budget)"""
    return replaced(interval_plan, interval_toll=lambda setting: Toll(1, 1).of(setting.steps))


@plant(a_restore_goes_on)
def noise_anew_after_a_restore() -> Any:
    """noise drawn anew after a restore (10.1.12: sampling again spends again)"""
    restores = [0]
    load = IntervalTree.load

    def loading(self: Any, at: int, parts: list[bytes]) -> None:
        restores[0] += 1
        load(self, at, parts)

    def place(self: Any, role: str, segment: int) -> Place:
        return Place(self.source, f"interval/{role}", segment + (restores[0] << 32))

    @contextmanager
    def both() -> Iterator[None]:
        with replaced(IntervalTree, load=loading), replaced(Workshop, place=place):
            yield

    return both()


@plant(exact_without_noise)
def retired_nodes_answer() -> Any:
    """a retired node answers on (6.2: after its window a node is never asked again)"""
    close = IntervalTree._close

    def closing(self: Any) -> None:
        before = list(self._nodes)
        close(self)
        gone = [node for node in before if node not in self._nodes]
        self._row = self._row + sum((node.row() for node in gone), np.zeros_like(self._row))

    return replaced(IntervalTree, _close=closing)


@plant(exact_without_noise)
def halted_nodes_ignore_deletions() -> Any:
    """the holder of a halted node no longer applies deletions (6.4: deleted items come back in a later node)"""
    close, apply = IntervalTree._close, Holders.apply
    frozen: dict[int, set[int]] = {}

    def closing(self: Any) -> None:
        close(self)
        frozen[id(self._holders)] = {node.number for node in self._nodes if node.halted}

    def applying(self: Any, cell: int, sign: int, item: int = -1) -> None:
        content = self._where.get(item)
        for number, held in zip(self.numbers, self._contents, strict=True):
            if sign < 0 and held is content and number in frozen.get(id(self), ()):
                return
        apply(self, cell, sign, item)

    @contextmanager
    def both() -> Iterator[None]:
        with replaced(IntervalTree, _close=closing), replaced(Holders, apply=applying):
            yield

    return both()
