"""The linear engine: exact running sums plus a noise process that never saw them.

Everything that counts is this engine behind an encoder: `Counter`, `VectorCounter`, `Histogram`, `RunningMean`. A
subclass says how a tick's input becomes an integer row, how far one event can move it, and how a row of numbers is
shown.

Privacy: factorization-counting 1.4 and 11, price-of-continual-release 3.2, adaptive streams included. Inputs are
bounded by 1-Lipschitz functions of each tick's total (clip), which cannot raise a sensitivity.
"""

from __future__ import annotations

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.choose import Setting, build, choose, rank
from evertally.counting.epochs import LAST_TICK
from evertally.counting.guarded import Kept, exclusive
from evertally.counting.mechanism import (
    LONGEST_HORIZON,
    Mechanism,
    Options,
    check_guarantee,
    check_horizon_option,
    check_neighbours,
    from_bytes,
    to_bytes,
    whole,
)
from evertally.counting.process import Budget, IntArray, NoiseProcess, go_to, path_bound, remembered
from evertally.counting.release import Release
from evertally.counting.rows import Rows, dense
from evertally.counting.tree import Radix
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey
from evertally.privacy import Change, Contribution, Guarantee, Neighbours
from evertally.ranking import Ranking


class LinearMechanism(Mechanism):
    """The engine. Not used directly; see its subclasses."""

    charge: Budget

    def __init__(
        self,
        *,
        columns: int,
        change: Change,
        contribution: Contribution,
        options: Options,
        guarantee: Guarantee,
        horizon: int | None,
        mechanism: str = "auto",
        key: NoiseKey | None = None,
        neighbours: str | Neighbours = "add_remove",
        stream: str = "stream",
        name: str | None = None,
        allow_copy: bool = False,
        radix: Radix = "formula",
        memory_limit: int = 2**30,
        max_window: int = 0,
    ) -> None:
        check_guarantee(guarantee)
        horizon = check_horizon_option(horizon)
        relation = check_neighbours(neighbours, guarantee)
        self.max_window = whole("max_window", max_window, 0, LONGEST_HORIZON)
        memory_limit = whole("memory_limit", memory_limit, 1, 2**62)
        self.sensitivity = change
        self._setting = Setting(change, horizon, columns, memory_limit, radix)
        self._choice = choose(guarantee, self._setting, mechanism)
        super().__init__(
            columns=columns,
            width=columns,
            contribution=contribution,
            options=options | {"radix": radix, "memory_limit": memory_limit, "max_window": self.max_window},
            guarantee=guarantee,
            charge=self._choice.charge,
            horizon=horizon,
            mechanism=self._choice.mechanism,
            key=key,
            neighbours=relation,
            stream=stream,
            name=name,
            allow_copy=allow_copy,
            max_window=self.max_window,
        )
        self._noise = self._new_noise()

    @exclusive
    def last(self, window: int) -> Release:
        """The sum over the last `window` ticks: the difference of two releases, so it costs no privacy.

        `stddev` is that of the difference for trees and square roots; for Honaker's process and epochs an upper limit,
        as if the noises of the two releases were independent.
        """
        if not self.max_window or not self.tick:
            raise ConfigurationError("windows need releases to look back on: declare max_window, and take a step first")
        window = whole("window", window, 1, min(self.max_window, self.tick))
        before = self._history[(self.tick - window) % len(self._history)]
        return self._told(self._release(self._last_row - before, self._noise.window_spread(self.tick, window)))

    def stddev(self, t: int) -> float | None:
        """Standard deviation of the noise in each number released at tick t; public, known before any data."""
        return self._deviation(self._noise.spread(whole("t", t, 1, self.horizon or LAST_TICK)))

    def error_bound(self, beta: float = 0.05, t: int | None = None) -> float:
        """With probability at least 1 - beta no number of any tick is further off than this, by the law of the path.

        With `t`, the bound for that tick, all ticks together still failing with probability at most beta. Without a
        horizon `t` is needed (`path_bound`; docs/theory/additions.md, 8).
        """
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        if self.horizon is None and t is None:
            raise ConfigurationError("without a horizon the error grows for ever: ask for error_bound(beta, t=...)")
        return path_bound(self._noise, beta, None if t is None else whole("t", t, 1, self.horizon or LAST_TICK))

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its process from, with bounds that hold with probability 95 %."""
        return rank(self.guarantee, self._setting)

    # -- the engine ------------------------------------------------------------------------------------------------

    def _first_state(self) -> IntArray:
        return np.zeros(self._columns, dtype=np.int64)

    @property
    def _sums(self) -> IntArray:
        """The exact running sums: the state of this engine."""
        sums: IntArray = self._kept.played.state
        return sums

    def _new_noise(self) -> NoiseProcess:
        return build(self._choice, self._setting, self._source)

    def _advance(self, rows: Rows, state: IntArray) -> tuple[IntArray, None, IntArray]:
        values = np.cumsum(dense(rows), axis=0)
        values += state
        sums = values[-1].copy()
        values += self._noise.advance(len(values))
        return values, None, sums

    def _go_back(self, kept: Kept) -> None:
        # A process that was interrupted may be anywhere; the noise of a tick does not depend on how one got there.
        noise = self._new_noise()
        noise.seek(kept.tick)
        self._noise = noise

    def _accuracy(self, tick: int) -> Spread:
        return self._noise.spread(tick)

    def _state(self) -> list[bytes]:
        return [to_bytes(self._sums), *remembered(self._noise)]

    def _load(self, tick: int, parts: list[bytes]) -> IntArray:
        go_to(self._noise, tick, parts[1:])
        return from_bytes(parts[0])
