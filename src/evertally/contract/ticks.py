"""Which ticks there are: from 1 to the horizon, and without one to a tick that nobody reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.integers import whole

# Without a horizon noise comes in 32 epochs, each twice as long as all before it.
LAST_TICK = 2**32 - 1
LONGEST_HORIZON = 2**40


def last_tick(horizon: int | None) -> int:
    """The last tick of a stream.

    >>> last_tick(365), last_tick(None) == LAST_TICK
    (365, True)
    """
    return LAST_TICK if horizon is None else horizon


def checked_tick(tick: Any, horizon: int | None) -> int:
    """A tick of the stream, of which something is asked."""
    return whole("tick", tick, 1, last_tick(horizon))


def called_tick(tick: Any) -> int | None:
    """The tick that a call is for; a mistake in it is a mistake in the call."""
    if tick is not None and (isinstance(tick, bool) or not isinstance(tick, int | np.integer)):
        raise TypeError(f"tick is a whole number, not {type(tick).__name__}")
    return None if tick is None else int(tick)


def wanted_ticks(at: Any, first: int, count: int) -> NDArray[np.int64] | None:
    """The ticks of a run that are kept, counted from 0."""
    if at is None:
        return None
    ticks = np.asarray(at) if len(at) else np.zeros(0, dtype=np.int64)
    if ticks.dtype.kind not in "iu":
        raise TypeError("at is a list of ticks, which are whole numbers")
    ticks = ticks.astype(np.int64)
    inside = (ticks >= first) & (ticks < first + count)
    if ticks.ndim != 1 or not inside.all() or (np.diff(ticks) <= 0).any():
        raise TypeError(f"at is an increasing list of ticks from {first} to {first + count - 1}")
    return ticks - first


def ends_to_look_at(window: int, last: int) -> list[int]:
    """At which ticks windows are looked at to find the worst: all of the first 2^11, where noise of every process goes
    through all that it does (blocks of every size begin and end there), and some of what is left, evenly.

    >>> ends_to_look_at(7, 9), len(ends_to_look_at(1, 10**6)) < 2500, ends_to_look_at(1, 10**6)[-1]
    ([7, 8, 9], True, 1000000)
    """
    first = range(window, min(last, window + 2**11) + 1)
    spread = {first[-1] + (last - first[-1]) * i // 256 for i in range(1, 257)}
    return [*first, *sorted(spread - {first[-1]})]
