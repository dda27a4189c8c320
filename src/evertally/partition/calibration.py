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

    def rule(self, name: str, find: Callable[[], str], *, before: str, beside: str) -> str:
        """A way to make something, by name: found together with the numbers that are settled as `beside`. Whoever has
        those numbers and no such name was begun when there was one way only, `before`, and keeps it; so that way is
        never written down, and a stream that takes it has the parameters and the addresses that it always had.

        >>> old = Calibration({"n": 7})
        >>> old.rule("H", lambda: "new", before="old", beside="n"), old.numbers
        ('old', {'n': 7})
        >>> Calibration().rule("H", lambda: "new", before="old", beside="n")
        'new'
        """
        full = self._scope + name
        if full not in self.numbers:
            found = before if self._scope + beside in self.numbers else find()
            if found == before:
                return before
            self.numbers[full] = found
        rule: str = self.numbers[full]
        return rule

    def within(self, scope: str) -> Calibration:
        """The same numbers under names of their own."""
        part = Calibration()
        part.numbers, part._scope = self.numbers, f"{self._scope}{scope}/"
        return part
