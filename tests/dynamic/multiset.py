"""What is present, by the rules of each identity alone: a plain model, item by item, for tests of everything else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

Record = tuple[Literal["insert", "delete"], Any, Any]  # action, cell, name


@dataclass
class Multiset:
    """`tick` takes the records of a tick in their order and returns how many copies of each cell there are."""

    identity: str
    cells: tuple[str, ...]
    lifetimes: int = 1
    longest: int | None = None
    deletions: bool = True
    now: int = 0
    living: dict[Any, tuple[str, int]] = field(default_factory=dict)  # name -> cell, tick of birth
    lived: Counter[Any] = field(default_factory=Counter)
    came: Counter[str] = field(default_factory=Counter)  # copies ever, and those that went
    gone: Counter[str] = field(default_factory=Counter)

    def tick(self, records: list[Record]) -> list[int]:
        self.now += 1
        for name, (_, born) in list(self.living.items()):
            if self.longest is not None and self.now - born >= self.longest:
                self._end(name)
        for action, cell, name in records:
            if action == "delete" and not self.deletions:
                continue
            if self.identity in ("id", "token"):
                self._named(action, cell, name)
            elif cell in self.cells and action == "insert":
                self.came[cell] += 1
            elif cell in self.cells and (self.identity == "raw" or self.came[cell] > self.gone[cell]):
                self.gone[cell] += 1
        return [self.came[cell] - self.gone[cell] for cell in self.cells]

    def _named(self, action: str, cell: Any, name: Any) -> None:
        if action == "delete":
            if name in self.living:
                self._end(name)
        elif cell in self.cells and name not in self.living and self.lived[name] < self.lifetimes:
            self.living[name] = cell, self.now
            self.lived[name] += 1
            self.came[cell] += 1

    def _end(self, name: Any) -> None:
        self.gone[self.living.pop(name)[0]] += 1

    def row_of(self, counts: Counter[str]) -> list[int]:
        """By cell, e.g. of `came`."""
        return [counts[cell] for cell in self.cells]
