"""Engines that change in place, behind the contract: partitions, recomputations, blocks, tables of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from evertally.contract.guarded import no_way_back
from evertally.contract.parts import Accuracy, IntArray, Played, Widening
from evertally.noise import ItemSource
from evertally.secret import Secret


class Worker(Protocol):
    """What `InPlace` drives: batches in, released rows out, its state inside."""

    width: int

    def advance(self, batch: Any) -> tuple[Any, IntArray | None]:
        """Released rows of the next ticks, and for how many ticks each of them stands (None: one each)."""

    def accuracy(self, tick: int) -> Accuracy:
        """How far what is released at a tick may be off."""

    def error_bound(self, beta: float, tick: int | None) -> float:
        """A bound on the error of all ticks together (with `tick`: at that tick), failing with probability beta."""

    def state(self) -> list[bytes]:
        """Secret bytes; what follows from key and address is left out."""

    def load(self, tick: int, parts: list[bytes]) -> None:
        """The way back."""


class InPlace(Secret):
    """A worker as an engine. The state is inside the worker, so a call that is interrupted goes back to bytes that were
    taken before it; where those would cost as much as the call (`returns=False`), the mechanism refuses instead."""

    def __init__(self, make: Callable[[ItemSource], Worker], source: ItemSource, *, returns: bool = True) -> None:
        self._make, self._source, self._returns = make, source, returns
        self.worker = make(source)
        self.width = self.worker.width
        self._mark: tuple[int, list[bytes]] = (0, [])

    def start(self) -> None:
        return None

    def begin(self, tick: int) -> None:
        if self._returns:
            self._mark = tick, self.worker.state()

    def play(self, batch: Any, state: None) -> Played:
        rows, lasts = self.worker.advance(batch)
        return Played(rows, lasts, None)

    def go_back(self, tick: int, state: None) -> None:
        if not self._returns:
            no_way_back()
        at, parts = self._mark
        assert at == tick, "an engine goes back to the beginning of the call that was interrupted"
        worker = self._make(self._source)
        worker.load(at, parts)
        self.worker = worker

    def accuracy(self, tick: int) -> Accuracy:
        return self.worker.accuracy(tick)

    def widest(self, tick: int) -> Accuracy | None:
        return self.worker.widest(tick) if isinstance(self.worker, Widening) else None

    def window(self, tick: int, window: int) -> Accuracy:
        now = self.accuracy(tick)
        return now if window == tick else Difference(now, self.accuracy(tick - window))

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        sure = self.worker.error_bound(beta, tick)
        guessed = getattr(self.worker, "guessed_bound", None)
        return min(sure, guessed(beta, tick)) if trust_largest and guessed is not None else sure

    def save(self, state: None) -> list[bytes]:
        return self.worker.state()

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.worker.load(tick, parts)


class Difference:
    """How far the difference of two releases may be off: each by its own error."""

    stddev = None

    def __init__(self, now: Any, before: Any) -> None:
        self._now, self._before = now, before

    def radius(self, beta: float) -> float:
        """A bound on the error of both together."""
        return max(self.sides(beta))

    def sides(self, beta: float) -> tuple[float, float]:
        """How far the truth may be below the difference, and above it."""
        (below, above), (below_then, above_then) = sides(self._now, beta / 2), sides(self._before, beta / 2)
        return below + above_then, above + below_then


def sides(accuracy: Any, beta: float) -> tuple[float, float]:
    """How far the truth may be below an answer, and above it; the same both ways if nothing else is known."""
    if hasattr(accuracy, "sides"):
        below, above = accuracy.sides(beta)
        return below, above
    radius = accuracy.radius(beta)
    return radius, radius


def stairs(before: IntArray, changes: list[tuple[int, IntArray]], count: int) -> tuple[IntArray, IntArray]:
    """Releases that stand until the next one: rows, and for how many of `count` ticks each stands.

    >>> values, lasts = stairs(np.array([0]), [(2, np.array([5]))], count=4)
    >>> values.tolist(), lasts.tolist()
    ([[0], [5]], [2, 2])
    """
    starts = np.array([0, *(offset for offset, _ in changes), count], dtype=np.int64)
    return np.stack([before, *(row for _, row in changes)]), np.diff(starts)
