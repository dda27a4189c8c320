"""Engines that are no linear noise: secret rows in, released rows out, behind the same contract.

A veil is the only place where a secret row becomes public. `VeiledMechanism` is the contract around one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from evertally.counting.epochs import LAST_TICK
from evertally.counting.guarded import Kept
from evertally.counting.mechanism import Accuracy, Mechanism, whole
from evertally.counting.process import IntArray
from evertally.counting.rows import Rows
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource


class Veil(Protocol):
    """Rows of totals in, rows of released numbers out."""

    @property
    def tick(self) -> int:
        """Ticks released so far."""

    def advance(self, rows: Rows) -> tuple[IntArray, IntArray | None]:
        """Released rows of the next ticks, and for how many ticks each of them stands (None: one each)."""

    def accuracy(self, tick: int) -> Accuracy:
        """How far the answer that is released at a tick may be off."""

    def error_bound(self, beta: float, tick: int | None) -> float:
        """A bound on the error of all ticks together (with `tick`: at that tick), failing with probability beta."""

    def state(self) -> list[bytes]:
        """Secret bytes; what follows from key and address is left out."""

    def load(self, tick: int, parts: list[bytes]) -> None:
        """The way back."""


def stairs(before: IntArray, changes: list[tuple[int, IntArray]], count: int) -> tuple[IntArray, IntArray]:
    """Releases that stand until the next one: rows, and for how many of `count` ticks each stands.

    >>> values, lasts = stairs(np.array([0]), [(2, np.array([5]))], count=4)
    >>> values.tolist(), lasts.tolist()
    ([[0], [5]], [2, 2])
    """
    starts = np.array([0, *(offset for offset, _ in changes), count], dtype=np.int64)
    return np.stack([before, *(row for _, row in changes)]), np.diff(starts)


class VeiledMechanism(Mechanism):
    """The contract around a veil. A subclass calls `_set_veil` last in its constructor."""

    _veil: Veil
    _build: Callable[[ItemSource], Veil]
    _mark: tuple[int, list[bytes]]

    def _set_veil(self, build: Callable[[ItemSource], Veil]) -> None:
        self._build = build
        self._veil = build(self._source)

    def stddev(self, t: int) -> float | None:
        """Standard deviation of the noise at tick t; None where none is defined (partitions, selection)."""
        return self._deviation(self._veil.accuracy(whole("t", t, 1, self.horizon or LAST_TICK)))

    def error_bound(self, beta: float = 0.05, t: int | None = None) -> float:
        """With probability at least 1 - beta no answer of any tick is further off than this.

        With `t`, the bound for that tick, all ticks together still failing with probability at most beta; without a
        horizon `t` is needed.
        """
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        if t is None and self.horizon is None:
            raise ConfigurationError("without a horizon the error grows for ever: ask for error_bound(beta, t=...)")
        return self._veil.error_bound(beta, None if t is None else whole("t", t, 1, self.horizon or LAST_TICK))

    def _moved(self, count: int, play: Callable[[], Any]) -> Any:
        # A veil changes in place; this is where it goes back to if the call is interrupted.
        self._mark = self._kept.tick, self._veil.state()
        return super()._moved(count, play)

    def _go_back(self, kept: Kept) -> None:
        tick, parts = self._mark
        assert tick == kept.tick, "a veil goes back to the beginning of the call that was interrupted"
        veil = self._build(self._source)
        veil.load(tick, parts)
        self._veil = veil

    def _advance(self, rows: Rows, state: None) -> tuple[IntArray, IntArray | None, None]:
        return *self._veil.advance(rows), None

    def _accuracy(self, tick: int) -> Accuracy:
        return self._veil.accuracy(tick)

    def _state(self) -> list[bytes]:
        return self._veil.state()

    def _load(self, tick: int, parts: list[bytes]) -> None:
        self._veil.load(tick, parts)
