"""Numbers that are chosen once: what a planner finds by floats and simulation, and what the laws of noise depend on.

A stream that comes back, on another machine or under a later version, must draw the same noise. So a number that
decides a law (how many intervals H is made for, how a budget is split, how often an answer is recomputed) is settled
when the stream is made, kept among its public parameters, and never found again (additions 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Calibration:
    """Numbers by name, as JSON: found the first time they are asked for, or given.

    >>> first = Calibration()
    >>> first.settle("n", lambda: 7)
    7
    >>> Calibration(first.numbers).settle("n", lambda: 8)
    7
    """

    def __init__(self, numbers: Mapping[str, Any] | None = None) -> None:
        self.numbers: dict[str, Any] = dict(numbers or {})

    def settle(self, name: str, find: Callable[[], T]) -> T:
        """The number with this name."""
        if name not in self.numbers:
            self.numbers[name] = find()
        settled: T = self.numbers[name]
        return settled

    def within(self, scope: str) -> Scope:
        """The same numbers under a name of their own."""
        return Scope(self, scope)


class Scope:
    """Part of a calibration."""

    def __init__(self, calibration: Calibration | Scope, scope: str) -> None:
        self._calibration, self._scope = calibration, scope

    def settle(self, name: str, find: Callable[[], T]) -> T:
        """The number with this name in this scope."""
        return self._calibration.settle(f"{self._scope}/{name}", find)

    def within(self, scope: str) -> Scope:
        """A scope inside this one."""
        return Scope(self, scope)
