"""Sums over some ticks: differences of two releases, which cost no privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.contract.combined import combined, covariances
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism, by_tick
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, IntArray
from evertally.contract.release import Maker, Release
from evertally.contract.ticks import LONGEST_HORIZON, checked_tick
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
        self._differs = self.differences
        known = getattr(self._source, "fingerprint", None)  # not of every source that auditors plant
        self._maker = Maker(b"" if known is None else known(), bool(getattr(self._form, "apart", False)))

    @property
    def differences(self) -> bool:
        return getattr(self._form, "differences", True) and getattr(self._engine, "differences", True)

    @by_tick
    def stddev(self, tick: int, since: int = 0) -> float | None:
        """Standard deviation of the noise in each number released at a tick; with `since`, in the difference to what
        was released then: the sum over the ticks since + 1 .. tick. Public, known before any data; None where none is
        defined (partitions, ratios).

        >>> import evertally as et
        >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
        >>> counter.stddev(300, since=293) < counter.stddev(300)
        True
        """
        if not since:
            return super().stddev(tick)
        return self._form.deviation(self._between(since, checked_tick(tick, self.horizon)))

    def between(self, earlier: Release | None, later: Release) -> Release:
        """What happened after the tick of one release and up to that of another: their difference, which costs no
        privacy and needs nothing but the two. `earlier` None: the beginning.

        Value, standard deviation and interval are those of the window; its `since` says after which tick it begins.

        >>> import evertally as et
        >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
        >>> days = [counter.step(100) for _ in range(30)]
        >>> week = counter.between(days[-8], days[-1])
        >>> week.since, week.tick, week.stddev == counter.stddev(30, since=23)
        (23, 30, True)
        """
        if not (isinstance(later, Release) and (earlier is None or isinstance(earlier, Release))):
            raise TypeError("between takes two releases, the earlier one first (or None for the beginning)")
        since = 0 if earlier is None else earlier.tick
        if since >= later.tick:
            raise ConfigurationError("between takes the earlier release first, and the two are of different ticks")
        rows = [later.row] if earlier is None else [later.row, earlier.row]
        if any(row is None or len(row) != self._engine.width for row in rows):
            raise ConfigurationError(
                "between takes releases of this mechanism that have a row: not windows, not values"
            )
        if any(release is not None and release.maker != self._maker for release in (earlier, later)):
            raise ConfigurationError("between takes releases of this mechanism, and one of these is of another")
        return self.window_of(later.row, None if earlier is None else earlier.row, tick=later.tick, since=since)

    def window_of(self, now: Any, before: Any, *, tick: int, since: int) -> Release:
        """`between`, from the released rows of two ticks as a release log keeps them; `before` None: the beginning,
        which is not 0 where something public was there before the first tick."""
        accuracy = self._between(since, checked_tick(tick, self.horizon))
        earlier = self._form.first()[0] if before is None else before
        row = np.asarray(now, dtype=np.int64) - np.asarray(earlier, dtype=np.int64)
        return self._window(row, accuracy, tick, since)

    def change_of(self, now: Any, middle: Any, before: Any, *, ticks: tuple[int, int, int]) -> Release:
        """By how much a window differs from the one before it: (now - middle) - (middle - before), from released rows
        at three ticks, the last one first."""
        t, m, s = ticks
        rows = [np.asarray(row, dtype=np.int64) for row in (now, middle, before)]
        accuracy = self.combined({t: 1, m: -2, s: 1})
        return self._window(rows[0] - 2 * rows[1] + rows[2], accuracy, t, s)

    def combined(self, weights: Mapping[int, float]) -> Accuracy:
        """How far a weighted sum of the releases at some ticks may be off, one number of each. Exact where windows are:
        all covariances follow from the variances of differences, 2 cov(s, t) = V(s) + V(t) - V(t - s)."""
        if not self.differences:
            raise self._no_windows()
        return combined(self._engine, {tick: float(weight) for tick, weight in weights.items() if weight and tick})

    def covariance(self, ticks: Sequence[int]) -> NDArray[np.float64]:
        """The covariance matrix of the noise of one released number at some increasing ticks, in the units of `stddev`.
        Different numbers of a release (columns) are independent. Public, known before any data.

        >>> import evertally as et
        >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
        >>> both = counter.covariance([293, 300])
        >>> bool(abs(both[0, 0] + both[1, 1] - 2 * both[0, 1] - counter.stddev(300, since=293) ** 2) < 1e-9)
        True
        """
        if not self.differences:
            raise self._no_windows()
        wanted = [checked_tick(tick, self.horizon) for tick in ticks]
        if any(later <= earlier for earlier, later in pairwise(wanted)):
            raise ConfigurationError("covariances are of increasing ticks, each of them once")
        found = covariances(self._engine, wanted)
        unit = self._form.deviation(Spread("gaussian", 1.0, 1.0, 1.0, math.inf))
        assert self._maker is not None
        if not self._maker.apart:
            raise ConfigurationError(f"the numbers of this {type(self).__name__} share columns, and so noise")
        if unit is None:
            raise ConfigurationError(f"a {type(self).__name__} has no standard deviation, and so no covariance")
        return found * unit**2

    def _between(self, since: int, tick: int) -> Accuracy:
        if not self.differences:
            raise self._no_windows()
        since = whole("since", since, 0, tick - 1)
        return self._engine.window(tick, tick - since) if since else self._engine.accuracy(tick)

    def _window(self, row: IntArray, accuracy: Accuracy, tick: int, since: int) -> Release:
        form = self._form
        made = Release(
            tick,
            form.show(row),
            form.deviation(accuracy),
            self._private,
            lambda beta: form.interval(row, accuracy, beta),
            self._said,
        )
        made.__dict__["since"] = since
        made.__dict__["maker"] = self._maker
        return made

    def _no_windows(self) -> ConfigurationError:
        return ConfigurationError(
            f"differences of releases of this {type(self).__name__} are no sums over the ticks between: it weighs "
            "ticks, begins anew, or estimates"
        )

    @exclusive
    def last(self, window: int) -> Release:
        """The sum over the last `window` ticks: the difference of two releases, so it costs no privacy.

        `stddev` is that of the difference, whichever process makes the noise (one that somebody registered may state an
        upper limit). Where releases have no standard deviation (`"sparse"`), neither has their difference, and the
        interval adds up both errors.
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
