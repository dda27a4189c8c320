"""What a check needs to know about a mechanism: how to make it, what to feed it, what the truth would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evertally.noise import NoiseKey


@dataclass(frozen=True)
class Subject:
    """A mechanism under test.

    `make(key)` builds it fresh; `feed(n)` gives n legal inputs for `step`, one a tick, always the same; `truth(inputs)`
    gives the exact answers, one a tick, in the form of `Release.value`; `garbage` are event batches for `step_events`
    that a hostile source might send; `wrong_calls` are arguments of `step` that are mistakes of the caller.

    >>> import evertally as et
    >>> from itertools import accumulate
    >>> subject = Subject(
    ...     name="my counter",
    ...     make=lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=20, key=key),
    ...     feed=lambda n: [t % 3 for t in range(n)],
    ...     truth=lambda inputs: list(accumulate(inputs)),
    ...     wrong_calls=["seven", 1.5],
    ... )
    >>> subject.make(et.simulation(0)).horizon
    20
    """

    name: str
    make: Callable[[NoiseKey], Any]
    feed: Callable[[int], list[Any]]
    truth: Callable[[list[Any]], Sequence[Any]]
    garbage: list[Any] = field(default_factory=list)
    wrong_calls: list[Any] = field(default_factory=list)
    ticks: int = 20  # how many ticks the checks play; the horizon if that is smaller
    tolerance: float = 0.0  # how far a noiseless release may be from the truth (staleness, grid)
    independent_numbers: bool = True  # the numbers of one release carry independent noise of the stated stddev

    def length(self, mechanism: Any) -> int:
        """How many ticks to play."""
        return self.ticks if mechanism.horizon is None else min(self.ticks, mechanism.horizon)
