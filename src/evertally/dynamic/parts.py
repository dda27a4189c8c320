"""What the constructions over dynamic data agree on: updates of a tick, static mechanisms, constructions.

A data set is a vector of counts over a declared, finite universe of cells. A static mechanism releases an integer row
for such a vector, and every answer is linear in that row (`Answering.weights`); so rows of disjoint data add, and a
construction that combines many releases of one static mechanism releases one row, their signed sum: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.noise import ItemSource, Law, Variates, VariateSource
from evertally.noise.variates import VariateKind
from evertally.privacy import ZCDP, Contribution, Guarantee, PureDP
from evertally.secret import Secret

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Budget = PureDP | ZCDP

# How a deletion finds what it deletes (dynamic-data 6.3, 13.1).
Identity = Literal["id", "token", "value", "raw"]


@dataclass(frozen=True, repr=False)
class Updates(Secret):
    """The updates of one tick in their order of arrival: bounded, and (except raw ones) known to be valid.

    `signs` are +1 (insertion) and -1 (deletion); `items` are the numbers of lifetimes, never used twice, or -1 where
    updates are told apart by value alone. `arrived` counts all that came, with what the door dropped, in the event
    unit (dynamic-data 10.1.7). The partitions of this room do not read it: they count what the door lets through, and
    pay for the two places that one record can move there (14.2).
    """

    cells: IntArray
    signs: IntArray
    items: IntArray
    arrived: int | None = None

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True, repr=False)
class Place(Secret):
    """Where one release of a static mechanism draws its noise: lane and node, never used for other data or another law.

    `part` tells several draws of one release apart; it is part of the lane, so each part has its own law.
    """

    source: VariateSource
    lane: str
    node: int

    def draws(self, law: Law, count: int, part: str = "") -> IntArray:
        """`count` independent integers."""
        drawn: IntArray = self.source.draws(self._lane(part), law, [self.node], count)[0]
        return drawn

    def variates(self, kind: VariateKind, count: int, part: str, step: int, steps: int) -> Variates:
        """Real variates for selection number `step` of at most `steps` in this release."""
        assert 0 <= step < steps
        return self.source.variates(self._lane(part), kind, self.node * steps + step, count)

    def _lane(self, part: str) -> str:
        return f"{self.lane}/{part}" if part else self.lane


class Releasing(Protocol):
    """What a tree of releases needs of a static mechanism."""

    @property
    def cells(self) -> int:
        """Of the universe."""

    @property
    def width(self) -> int:
        """Of the released row."""

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        """The released row."""


class StaticMechanism(Protocol):
    """One release of one data set, under add/remove of one item (dynamic-data 3.1).

    It is private for *every* vector of counts, also the empty one; it never raises on data; the shape of the row
    depends on public inputs only. `size_hint` is a public (already noisy) number. The caller gives each release a place
    of its own.
    """

    cells: int  # of the universe
    width: int  # of the released row
    unit: int  # an answer is (weights . row) / unit
    pure: bool  # takes a PureDP budget
    concentrated: bool  # takes a zCDP budget
    additive: bool  # row = A data + noise that does not look at data: signed data are fine, and k runs cost sqrt(k)

    def fit(self, data: IntArray, budget: Budget, place: Place, size_hint: int | None = None) -> IntArray:
        """The released row."""

    def weights(self, query: Any) -> FloatArray:
        """How the answer of a query follows from a row; refuses what is no query of this mechanism."""

    def error(self, budgets: Sequence[Budget], beta: float, size: float | None, query: Any = None) -> float:
        """What the sum of independent releases, one for each budget, on disjoint data of `size` items together
        (None: nobody knows) is off by at most, up to probability beta: for one query, or for all of them at once."""

    def stddev(self, budgets: Sequence[Budget], query: Any) -> float | None:
        """Standard deviation of the noise in the answer of one query; None where the noise is not additive."""


@dataclass(frozen=True)
class Setting:
    """The public parameters of a construction."""

    static: StaticMechanism
    guarantee: Guarantee
    horizon: int | None
    identity: Identity
    protects: Literal["event", "item"]
    # Lifetimes (names, tokens), else updates or items by unit, that one step of the neighbouring relation changes.
    steps: int
    deletions: bool = True
    max_lifetime: int | None = None
    every: int | None = None  # K: a release anew every so many ticks
    max_items: int | None = None  # declared: how many items are present at most (accuracy only)
    partition: Literal["identity", "finite", "infinite"] = "identity"
    beta: float = 0.05  # what partitions and restarts aim at (accuracy only)
    options: tuple[tuple[str, Any], ...] = ()  # of the construction itself, e.g. allocation


class Worker(Protocol):
    """A construction at work, for `contract.in_place.InPlace`; see there. Rows have the static mechanism's width."""

    width: int

    def advance(self, batch: Sequence[Updates]) -> tuple[IntArray, IntArray | None]: ...

    def accuracy(self, tick: int) -> Any:
        """An `AnswerAccuracy`: how far an answer at a tick may be off."""

    def error_bound(self, beta: float, tick: int | None) -> float:
        """Of all ticks together up to probability beta; with `tick`, of that tick alone."""

    def state(self) -> list[bytes]: ...

    def load(self, tick: int, parts: list[bytes]) -> None: ...


class AnswerAccuracy(Protocol):
    """How far answers at one tick may be off, from public numbers only. `radius` and `stddev` as `contract.Accuracy`
    (for all queries at once); `of(query)` for one."""

    @property
    def stddev(self) -> float | None: ...

    def radius(self, beta: float) -> float: ...

    def of(self, query: Any) -> AnswerAccuracy: ...


@dataclass(frozen=True)
class Plan:
    """A construction that fits: what it charges, and how to build it."""

    charge: Guarantee
    worker: Callable[[ItemSource], Worker]
    returns: bool = True  # whether its state is small enough to be kept before each call (`InPlace`)
    open: str = ""  # why nothing bounds the error, and what to declare (`Blueprint`)


@dataclass(frozen=True)
class Construction:
    """One row of the map of dynamic-data 0. `plan` refuses (ConfigurationError, with the reason) what does not fit."""

    name: str
    section: str
    plan: Callable[[Setting, Contribution], Plan]
    automatic: bool = False  # whether "auto" may take it
