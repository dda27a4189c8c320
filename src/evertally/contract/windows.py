"""Sums over the last ticks: differences of two releases, which cost no privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import IntArray
from evertally.contract.release import Release
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.errors import ConfigurationError
from evertally.integers import whole


@statistic
class Windowed(Mechanism):
    """Statistics that look back on their own releases. Not used directly; see the statistics."""

    max_window: int = option("The longest window, in ticks, that `last` will be asked for; 0: none.", default=0)

    def __post_init__(self) -> None:
        self.max_window = whole("max_window", self.max_window, 0, LONGEST_HORIZON)
        super().__post_init__()
        needed, limit = 8 * (self.max_window + 1) * self._engine.width, getattr(self, "memory_limit", 2**30)
        if self.max_window and needed > limit:
            raise ConfigurationError(
                f"max_window={self.max_window} keeps {needed} bytes of releases, above memory_limit={limit}"
            )
        # Released rows of the last ticks, tick t in place t mod (max_window + 1); those of the last call are committed.
        self._looks_back = self.max_window > 0
        self._history = np.zeros((self.max_window + 1, self._engine.width), dtype=np.int64)

    @exclusive
    def last(self, window: int) -> Release:
        """The sum over the last `window` ticks: the difference of two releases, so it costs no privacy.

        `stddev` is that of the difference for trees and square roots; for Honaker's process and epochs an upper limit,
        as if the noises of the two releases were independent. Where releases have no standard deviation (`"sparse"`),
        neither has their difference, and the interval adds up both errors.
        """
        if not self.max_window or not self.tick:
            raise ConfigurationError("windows need releases to look back on: declare max_window, and take a step first")
        window = whole("window", window, 1, min(self.max_window, self.tick))
        now, before = self._kept.played.recent[-1], self._history[(self.tick - window) % len(self._history)]
        return self._release(now - before, self._engine.window(self.tick, window))

    def _looked_back_on(self, before: Any, rows: IntArray, lasts: IntArray | None) -> IntArray:
        ticks = len(self._history)
        if lasts is not None:  # a row that stands for many ticks is the row of each of them
            ends = np.cumsum(lasts)
            wanted = np.arange(max(0, int(ends[-1]) - ticks), int(ends[-1]))
            rows = rows[np.searchsorted(ends, wanted, side="right")]
        return rows[-ticks:].copy() if before is None else np.concatenate([before, rows])[-ticks:].copy()

    def _rows_to_keep(self) -> Any:
        if not self.max_window:
            return super()._rows_to_keep()
        ticks = np.arange(max(0, self.tick + 1 - len(self._history)), self.tick + 1)
        rows: IntArray = self._history[ticks % len(self._history)]
        return rows

    def _note_releases(self) -> None:
        # Writes the same rows into the same places, however often: an interruption does no harm.
        for age, row in enumerate(self._kept.played.recent[::-1]):
            self._history[(self.tick - age) % len(self._history)] = row
