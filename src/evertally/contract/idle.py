"""Many ticks without events in one go: what a stream that was down for long has to release first of all.

Such a tick is a row of zeros, and a run of rows is bit for bit what single steps release. So the engine plays them
together; each of them still has a release of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.contract.doors import RowDoor
from evertally.contract.mechanism import Mechanism
from evertally.contract.release import Release


def plays_idle(mechanism: Any) -> bool:
    """Whether a tick without events is a row of zeros, and nothing else: no table of users moves with it, and a release
    is made of its own row alone."""
    kind = type(mechanism)
    plain = isinstance(mechanism, Mechanism) and isinstance(mechanism._door, RowDoor) and not mechanism.takes_users
    return plain and kind._release is Mechanism._release and kind.step_events is Mechanism.step_events


def idle(mechanism: Any, count: int) -> list[Release]:
    """The releases of the next `count` ticks, all without events: the same as of so many `step_events([])`.

    >>> import evertally as et
    >>> counters = [et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(1)) for _ in range(2)]
    >>> idle(counters[0], 3) == [counters[1].step_events([]) for _ in range(3)]
    True
    """
    assert plays_idle(mechanism)
    playing: Mechanism = mechanism
    zeros = np.zeros((count, mechanism._door.columns), dtype=np.int64)
    return playing._idle(zeros)  # the last call: nothing can come between the commit and the return
