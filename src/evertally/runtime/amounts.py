"""How much waits, altogether and of each caller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evertally.secret import Secret


@dataclass(frozen=True, repr=False)
class Amount(Secret):
    """Of events."""

    rows: int = 0
    bytes: int = 0

    def plus(self, rows: int, size: int) -> Amount:
        return Amount(self.rows + rows, self.bytes + size)


class Amounts(Secret):
    """What has come and has not left yet. One thread changes it; others may look at it.

    >>> waiting = Amounts()
    >>> waiting.add("till", 3, 100)
    >>> waiting.add("sensor", 1, 50)
    >>> waiting.take("till", 3, 100)
    >>> waiting.all.bytes, waiting.of("sensor").rows, waiting.of("till").rows
    (50, 1, 0)
    """

    def __init__(self) -> None:
        self.all = Amount()
        self._callers: dict[str, Amount] = {}

    def __iter__(self) -> Iterator[tuple[str, Amount]]:
        """Of each caller that has something."""
        return iter(self._callers.items())

    def of(self, caller: str) -> Amount:
        """What waits of one caller."""
        return self._callers.get(caller, Amount())

    def add(self, caller: str, rows: int, size: int) -> None:
        self.all = self.all.plus(rows, size)
        self._callers[caller] = self.of(caller).plus(rows, size)

    def take(self, caller: str, rows: int, size: int) -> None:
        self.all = self.all.plus(-rows, -size)
        left = self.of(caller).plus(-rows, -size)
        if left.rows or left.bytes:
            self._callers[caller] = left
        else:
            self._callers.pop(caller, None)
