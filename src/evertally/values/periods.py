"""Tumbling windows: a fresh linear engine, with noise of its own, in every public block of ticks.

users-and-domains 4. An event lies in one block, so every block may spend the whole budget: the maximum, not the sum.
The blocks are public, and so is where one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evertally.contract.parts import Accuracy, IntArray, Played
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess, Settled
from evertally.noise import ItemSource, Law
from evertally.noise.reals import RealLaw
from evertally.secret import Secret


class PeriodSource(Secret):
    """The noise of one block: lanes of its own."""

    def __init__(self, source: ItemSource, number: int) -> None:
        self._source, self._lane = source, f"period-{number}/"

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return self._source.draws(self._lane + lane, law, nodes, coordinates, first)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Any:
        return self._source.reals(self._lane + lane, law, nodes, coordinates, first)

    def order(self, message: bytes) -> bytes:
        return self._source.order(message)


class PeriodEngine(Secret):
    """Rows in, noisy sums of the block so far out. `make(number)` makes the engine of a block of `period` ticks.

    Its state is the exact sums of the block of the last tick.
    """

    def __init__(self, make: Callable[[int], LinearEngine], period: int) -> None:
        self._make, self._period = make, period
        self._number, self._inner = 0, make(0)
        self.width = self._inner.width

    @property
    def noise(self) -> NoiseProcess:
        """The noise of the block of the last tick; all blocks have the same law."""
        return self._inner.noise

    def start(self) -> IntArray:
        return self._inner.start()

    def begin(self, tick: int) -> None:
        # The next block begins in `play`: a call that has not begun leaves everything as it is.
        self._inner.begin(self._place(tick)[1])

    def play(self, batch: Any, state: IntArray) -> Played:
        rows, done = [], 0
        while done < len(batch):
            if self._inner.noise.tick == self._period:
                self._enter(self._number + 1)
            if self._inner.noise.tick == 0:
                state = self._inner.start()
            part = batch[done : done + self._period - self._inner.noise.tick]
            played = self._inner.play(part, state)
            state, done = played.state, done + len(part)
            rows.append(played.rows)
        return played if len(rows) == 1 else Played(np.concatenate(rows), None, state)

    def go_back(self, tick: int, state: IntArray) -> None:
        number, inside = self._place(tick)
        self._enter(number)
        self._inner.go_back(inside, state)

    def accuracy(self, tick: int) -> Accuracy:
        return self._inner.accuracy(self._place(tick)[1])

    def widest(self, tick: int) -> Accuracy | None:
        return self._inner.widest(min(tick, self._period))

    differences = False

    def window(self, tick: int, window: int) -> Accuracy:
        raise AssertionError("sums that begin anew have no differences")

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        raise AssertionError("the statistic says how far its own numbers are off")

    def save(self, state: IntArray) -> list[bytes]:
        return self._inner.save(state)

    def load(self, tick: int, parts: list[bytes]) -> IntArray:
        number, inside = self._place(tick)
        self._enter(number)
        return self._inner.load(inside, parts)

    def _place(self, tick: int) -> tuple[int, int]:
        """The block of a tick, and which of its ticks that is."""
        return ((tick - 1) // self._period, (tick - 1) % self._period + 1) if tick else (0, 0)

    def _enter(self, number: int) -> None:
        made = self._make(number)
        if isinstance(made.noise, Settled):
            made.noise.settle_as(self._inner.noise)
        self._number, self._inner = number, made
