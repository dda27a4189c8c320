"""Running a partition under planted draws: what it does for these values of its noise, or for all of them.

A partition is a program of its rows and of draws at addresses. A `Script` is a source that says what it is told, and
notes what was asked. `whole_law` tells it every combination of values, as far as they matter, and adds up how likely
what is seen then is: nothing is assumed about the program, but it must make few draws of few values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.audit.exact import ExactLoss, _box
from evertally.errors import ConfigurationError
from evertally.noise import Law, Source
from evertally.partition import PartitionedRelease, TwoLevelRelease

IntArray = NDArray[np.int64]
Partition = PartitionedRelease | TwoLevelRelease
Make = Callable[[Source], Partition]  # makes a partition that draws from the source
Address = tuple[str, int]  # lane and node of a draw
Planted = Mapping[str, Mapping[int, Any]]  # lane -> node -> a number, or one for each coordinate
Rows = Sequence[Sequence[int]] | IntArray

ALWAYS, NEVER = 2**40, -(2**40)  # a mu that closes any interval, and one that closes none
_MOST_RUNS = 300_000


def part(lane: str) -> str:
    """What a lane is for: "tau", "mu", "update"; everything else belongs to H."""
    last = lane.rsplit("/", 1)[-1]
    return last if last in ("tau", "mu", "update") else "histogram"


@dataclass(frozen=True)
class Asked:
    """One request for draws."""

    lane: str
    law: Law
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
                    out[i] = value if np.ndim(value) == 0 else value[first : first + coordinates]
        return out

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


# -- every combination of draws --------------------------------------------------------------------------------------


class _Unknown(Exception):
    """A draw that was not decided yet."""

    def __init__(self, place: tuple[str, int, int], law: Law) -> None:
        super().__init__(place)
        self.place, self.law = place, law


class _Branching:
    """Gives the draws that are known and stops at the first that is not."""

    def __init__(self, known: Mapping[tuple[str, int, int], int], fixed: Mapping[str, int]) -> None:
        self._known, self._fixed = known, fixed

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = list(nodes)
        if part(lane) in self._fixed:
            return np.full((len(index), coordinates), self._fixed[part(lane)], dtype=np.int64)
        places = [(lane, int(node), j) for node in index for j in range(first, first + coordinates)]
        for place in places:
            if place not in self._known:
                raise _Unknown(place, law)
        return np.array([self._known[place] for place in places], dtype=np.int64).reshape(-1, coordinates)

    def order(self, message: bytes) -> bytes:
        return message


@lru_cache(maxsize=64)
def _values(law: Any, tail: float) -> tuple[list[int], list[float]]:
    values, masses = _box(law, tail)
    return values.tolist(), masses.tolist()


def everything(run: Run) -> tuple[Any, ...]:
    """What an observer sees: the ticks of the releases, and what was released."""
    return tuple((tick, *released.tolist()) for tick, released in run.releases)


def whole_law(
    make: Make,
    left: Rows,
    right: Rows,
    *,
    tail: float = 1e-4,
    fixed: Mapping[str, int] | None = None,
    see: Callable[[Run], tuple[Any, ...]] = everything,
) -> ExactLoss:
    """The law of what is seen on two streams, from runs on all combinations of draws.

    `tail` is the mass left out of each draw; `fixed` gives parts ("tau", "mu", ...) a value in place of a law.

    >>> from evertally.partition import Terms, bounded
    >>> from evertally.privacy import Change, PureDP
    >>> class Maximum:
    ...     count = 1
    ...     def values(self, v):
    ...         return np.array([v.max()])
    >>> plan = bounded(Terms(PureDP(12.0), Change(1, 1, 1), 1, 1, Maximum(), largest=1))
    >>> loss = whole_law(plan.engine, [[1]], [[0]], fixed={"tau": 0, "mu": ALWAYS}, tail=1e-9)
    >>> round(loss.epsilon, 2)  # the close is certain, and H has half of the budget
    6.0
    """
    (first, depth), (second, other) = (
        _enumerate(make, as_rows(rows), tail, fixed or {}, see) for rows in (left, right)
    )
    return ExactLoss(max(depth, other) * tail, first, second)


def _enumerate(
    make: Make, rows: IntArray, tail: float, fixed: Mapping[str, int], see: Callable[[Run], tuple[Any, ...]]
) -> tuple[dict[tuple[Any, ...], float], int]:
    """The law, and the largest number of draws that a run made."""
    found: dict[tuple[Any, ...], float] = {}
    depth = 0
    waiting: list[tuple[dict[tuple[str, int, int], int], float]] = [({}, 1.0)]
    runs = 0
    while waiting:
        runs += 1
        if runs > _MOST_RUNS:
            raise ConfigurationError("too many combinations of draws; use fewer ticks or a larger tail")
        known, weight = waiting.pop()
        try:
            partition = make(_Branching(known, fixed))
            outcome = see(Run(partition, partition.play(rows, 1), []))
        except _Unknown as unknown:
            values = zip(*_values(unknown.law, tail), strict=True)  # type: ignore[arg-type]
            waiting += [({**known, unknown.place: value}, weight * mass) for value, mass in values]
            continue
        found[outcome] = found.get(outcome, 0.0) + weight
        depth = max(depth, len(known))
    return found, depth
