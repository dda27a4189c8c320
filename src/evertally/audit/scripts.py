"""Running a partition under planted draws: what it does for these values of its noise.

A partition is a program of its rows and of draws at addresses. A `Script` is a source that says what it is told, and
notes what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.counting.process import IntArray
from evertally.noise import Law, Source
from evertally.noise.reals import KnownReals, RealLaw
from evertally.partition import PartitionedRelease, TwoLevelRelease

Partition = PartitionedRelease | TwoLevelRelease
Make = Callable[[Source], Partition]  # makes a partition that draws from the source
Address = tuple[str, int]  # lane and node of a draw
Planted = Mapping[str, Mapping[int, Any]]  # lane -> node -> a number, or one for each coordinate
Rows = Sequence[Sequence[int]] | IntArray

ALWAYS, NEVER = 2**40, -(2**40)  # a mu that closes any interval, and one that closes none


def part(lane: str) -> str:
    """What a lane is for: "tau", "mu", "update"; everything else belongs to H."""
    last = lane.rsplit("/", 1)[-1]
    return last if last in ("tau", "mu", "update") else "histogram"


@dataclass(frozen=True)
class Asked:
    """One request for draws."""

    lane: str
    law: Any  # of integers, or of real variates
    nodes: tuple[int, ...]
    coordinates: int


class Script:
    """A source that gives what was planted, and otherwise a mu that closes nothing, or 0. It notes what was asked."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self.asked: list[Asked] = []

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = tuple(nodes)
        self.asked.append(Asked(lane, law, index, coordinates))
        out = np.full((len(index), coordinates), NEVER if part(lane) == "mu" else 0, dtype=np.int64)
        known = self._planted.get(lane)
        if known:
            for i, node in enumerate(index):
                if node in known:
                    value = known[node]
                    single = isinstance(value, int) or np.ndim(value) == 0  # numpy takes its time with plain numbers
                    out[i] = value if single else value[first : first + coordinates]
        return out

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        self.asked.append(Asked(lane, law, tuple(nodes), coordinates))
        return KnownReals(np.zeros((len(nodes), coordinates)))

    def order(self, message: bytes) -> bytes:
        return message


@dataclass(frozen=True)
class Run:
    """What the program did under a script."""

    partition: Partition
    releases: list[tuple[int, IntArray]]
    asked: list[Asked]

    @classmethod
    def of(cls, make: Make, rows: IntArray, planted: Planted) -> Run:
        script = Script(planted)
        partition = make(script)
        return cls(partition, partition.play(rows, 1), script.asked)

    def closed(self, lane: str) -> int:
        """How many intervals the test with this lane of mu has closed: of two levels, the one that asked its H."""
        level = lane[: -len("mu")]
        if not level:
            return len(self.releases)
        return sum(part(one.lane) == "histogram" and one.lane.startswith(level) for one in self.asked)


def as_rows(rows: Rows) -> IntArray:
    return np.asarray(rows, dtype=np.int64)
