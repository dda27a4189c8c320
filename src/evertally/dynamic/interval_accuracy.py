"""How far answers of the interval tree may be off, from public numbers: the explicit form of dynamic-data 6.8."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evertally.counting.process import spread_of
from evertally.dynamic.interval_index import level, query_chain, window_end
from evertally.dynamic.ledgers import Allocation
from evertally.dynamic.node import Node, size_law
from evertally.dynamic.parts import Budget, StaticMechanism
from evertally.secret import Secret


@dataclass(frozen=True)
class Terms:
    """What errors follow from. Not the source of noise: releases keep this."""

    static: StaticMechanism
    allocation: Allocation
    budget: Budget  # of the whole tree


@dataclass(frozen=True, repr=False)
class Asked(Secret):
    """What an error bound needs of a node that an answer comes from. It was released, and is not shown."""

    level: int
    round: int
    steps: int  # of this round, so far
    height: int  # of its trees over deletions
    halted: bool = False
    size: int | None = None  # the released one

    @classmethod
    def of(cls, node: Node) -> Asked:
        return cls(node.level, node.round, node.steps, len(node.margins), node.halted, node.size)

    def budgets(self, terms: Terms) -> tuple[Budget, list[Budget]]:
        """Of the release of its content, and of the releases of its deletions that are added up."""
        if self.level == 1:
            return terms.budget.share(terms.allocation.leaf), []
        shares = terms.allocation.shares(self.level, self.round)
        content = terms.budget.share(shares.content)
        return content, [
            terms.budget.share(shares.deleted / self.height)
        ] * self.steps.bit_count() if self.steps else []

    def left(self, terms: Terms, beta: float) -> float:
        """How many items a halted node ignores at most: what its last size says. It may have halted in any round, and
        did so because its size seemed small, so every round has its part of beta."""
        assert self.size is not None
        law = size_law(terms.budget.share(terms.allocation.shares(self.level, self.round).size))
        return max(0.0, self.size + spread_of(law, 1.0, 1.0).radius(6 * beta / (math.pi * self.round) ** 2))


def without_restarts(q: int) -> tuple[Asked, ...]:
    """What an answer after segment q comes from if no node ever opens a second round.

    >>> [(asked.level, asked.steps, asked.height) for asked in without_restarts(6)]
    [(2, 0, 1), (3, 2, 2)]
    """
    return tuple(Asked(level(i), 1, q - i, (window_end(i) - i).bit_length()) for i in query_chain(q))


@dataclass(frozen=True)
class Unknown:
    """Nothing bounds the error."""

    stddev: None = None

    def radius(self, beta: float) -> float:
        return math.inf

    def of(self, query: Any) -> Unknown:
        return self


@dataclass(frozen=True, repr=False)
class TreeAccuracy(Secret):
    """The error of the answers that come from these nodes. `unseen(beta)`: what the open segment may hold; `largest`:
    how many items are present at most, as somebody declared it (for mechanisms whose error grows with the data)."""

    terms: Terms
    asked: tuple[Asked, ...]
    unseen: Callable[[float], float] | None
    largest: int | None
    query: Any = None
    one: bool = False  # whether it is about one query; None may be one

    def of(self, query: Any) -> TreeAccuracy:
        """For one query."""
        return TreeAccuracy(self.terms, self.asked, self.unseen, self.largest, query, True)

    @property
    def stddev(self) -> float | None:
        """Of the noise in the answer of one query; None where an answer is off by more than noise."""
        if not self.one or self.unseen is not None or any(asked.halted for asked in self.asked):
            return None
        contents, deleted = self._budgets()
        return self.terms.static.stddev([*contents, *deleted], self.query) if contents else 0.0

    def radius(self, beta: float) -> float:
        """What the error exceeds with probability at most beta: noise, what halted nodes ignore, what is unseen."""
        halted = [asked for asked in self.asked if asked.halted]
        part = beta / (1 + bool(halted) + (self.unseen is not None))
        ignored = sum(asked.left(self.terms, part / len(halted)) for asked in halted)
        return self._noise(part) + ignored + (self.unseen(part) if self.unseen is not None else 0.0)

    def _noise(self, beta: float) -> float:
        contents, deleted = self._budgets()
        static, query = self.terms.static, self.query if self.one else None
        if not contents:
            return 0.0
        if static.additive:  # symmetric noise: a difference has the law of a sum
            return static.error([*contents, *deleted], beta, None, query)
        if self.largest is None:
            return math.inf
        # Each node held at most `largest` items when its round began, and lost no more than those.
        size = float(self.largest * len(contents))
        lost = static.error(deleted, beta / 2, size, query) if deleted else 0.0
        return static.error(contents, beta / 2, size, query) + lost

    def _budgets(self) -> tuple[list[Budget], list[Budget]]:
        pairs = [asked.budgets(self.terms) for asked in self.asked if not asked.halted]
        return [content for content, _ in pairs], [budget for _, deleted in pairs for budget in deleted]
