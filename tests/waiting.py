"""Waiting for what must happen, on a machine of any speed; not a test."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds. Only so that what never happens ends the test: how fast a machine is decides about no test.
PATIENCE = 3600.0


def until(condition: Callable[[], bool], pause: float = 0.005) -> None:
    """Returns when the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(pause)
