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
    >>> first.within("outer").settle("n", lambda: 9), first.numbers
    (9, {'n': 7, 'outer/n': 9})
    """

    def __init__(self, numbers: Mapping[str, Any] | None = None) -> None:
        self.numbers: dict[str, Any] = dict(numbers or {})
        self._scope = ""

    def settle(self, name: str, find: Callable[[], T]) -> T:
        full = self._scope + name
        if full not in self.numbers:
            self.numbers[full] = find()
        settled: T = self.numbers[full]
        return settled

    def within(self, scope: str) -> Calibration:
        """The same numbers under names of their own."""
        part = Calibration()
        part.numbers, part._scope = self.numbers, f"{self._scope}{scope}/"
        return part
