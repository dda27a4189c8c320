"""What a check needs to know about a mechanism: how to make it, what to feed it, what the truth would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.noise import NoiseKey


def numbers(value: Any) -> NDArray[np.float64]:
    """A public value as a flat array; of a dictionary, its entries one after the other."""
    if isinstance(value, dict):
        return np.concatenate([np.empty(0), *map(numbers, value.values())])
    return np.atleast_1d(np.array(value, dtype=np.float64))


def labels(value: Any) -> list[str] | None:
    """The labels of a public value that consists of labels, None where it consists of numbers."""
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, list | np.ndarray) else []
    return found if found and all(isinstance(label, str) for label in found) else None


def same(a: Any, b: Any) -> bool:
    """Whether two public values are equal, number by number, or label by label."""
    if labels(a) is not None or labels(b) is not None:
        return labels(a) == labels(b)
    if isinstance(a, dict) and isinstance(b, dict) and list(a) != list(b):
        return False
    return np.array_equal(numbers(a), numbers(b))


def alike(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two runs released the same values, tick by tick."""
    return len(some) == len(others) and all(map(same, some, others))


def difference(value: Any, exact: Any) -> NDArray[np.float64]:
    """The error of released numbers, one by one."""
    return numbers(value) - numbers(exact)


def public_bound(mechanism: Any, beta: float, t: int | None) -> float:
    """What the mechanism says about its error."""
    return float(mechanism.error_bound(beta=beta, tick=t))


def events_of(mechanism: Any, x: Any) -> list[Any]:
    """Events that add up to the input of a tick: the events themselves, single ones, or labels of columns."""
    if isinstance(x, int | np.integer):
        return [1] * int(x)
    if not len(x) or not isinstance(x[0], int | np.integer):
        return list(x)
    if hasattr(mechanism, "each_type"):
        return [event for event, count in zip(mechanism.each_type, x, strict=True) for _ in range(int(count))]
    columns = mechanism.columns if not isinstance(mechanism.columns, int) else range(mechanism.columns)
    return [label for label, count in zip(columns, x, strict=True) for _ in range(int(count))]


@dataclass(frozen=True)
class Subject:
    """A mechanism under test.

    `make(key)` builds it fresh; `feed(n)` gives n legal inputs for `step`, one a tick, always the same; `truth(inputs)`
    gives the exact answers, one a tick, in the form of `Release.value`; `garbage` are event batches for `step_events`
    that a hostile source might send; `wrong_calls` are arguments of `step` that are mistakes of the caller.

    A mechanism that releases labels gives its own `error(value, exact)`, in numbers; `exact` is then whatever `truth`
    gives. `noise` says what the addresses of draws may depend on: on public numbers alone ("fixed"), on what was
    released before too ("transcript": partitions, "switches": a new selection now and then, "blocks": a selection in
    every block), on the labels of items ("items", "items in blocks"), or that there is none ("none").

    A mechanism that finds its labels says which ones it may show (`labels`, from the inputs so far).

    >>> import evertally as et
    >>> from itertools import accumulate
    >>> def make(key):
    ...     return et.Counter(guarantee=et.PureDP(1.0), horizon=20, key=key)
    >>> subject = Subject("my counter", make, feed=lambda n: [1] * n, truth=lambda inputs: list(accumulate(inputs)))
    >>> subject.length(subject.make(et.simulation(0)))
    20
    """

    name: str
    make: Callable[[NoiseKey], Any]
    feed: Callable[[int], list[Any]]
    truth: Callable[[list[Any]], Sequence[Any]]
    garbage: list[Any] = field(default_factory=list)
    wrong_calls: list[Any] = field(default_factory=list)
    ticks: int = 20  # how many ticks the checks play; the horizon if that is smaller
    # how far a noiseless release may be from the truth (staleness, grid), or how that follows from the mechanism
    tolerance: float | Callable[[Any], float] = 0.0
    independent_numbers: bool = True  # the numbers of one release carry independent noise of the stated stddev
    error: Callable[[Any, Any], NDArray[np.float64]] = difference
    noise: Literal["fixed", "transcript", "switches", "blocks", "items", "items in blocks", "none"] = "fixed"
    labels: Callable[[Any, list[Any]], set[str]] | None = None  # None: all are declared, and shown at every tick
    bound: Callable[[Any, float, int | None], float] = public_bound  # on the numbers that `error` gives
    growth: int = 64  # bytes by which one tick may make a snapshot longer
    users: bool = False  # events have users, which are protected
    # of a tick: the labels of its release, where there are more and more of them, by public numbers alone
    shape: Callable[[int], list[Any]] | None = None
    owned: bool = False  # inputs are the users of a tick, or a pair of events and users
    runs: int = 1000  # simulations behind the check of the error formula

    def length(self, mechanism: Any) -> int:
        return self.ticks if mechanism.horizon is None else min(self.ticks, mechanism.horizon)

    def step(self, mechanism: Any, x: Any, *, tick: int | None = None) -> Any:
        """One tick. Where users are protected totals are refused: their events come, each of a user of its own."""
        if self.owned:
            events, users = x if isinstance(x, tuple) else (None, x)
            return mechanism.step_events(events, users=users, tick=tick)
        if not self.users:
            return mechanism.step(x, tick=tick)
        number = mechanism.tick + 1 if tick is None else tick
        events = events_of(mechanism, x)
        return mechanism.step_events(events, users=[f"{number}/{i}" for i in range(len(events))], tick=tick)

    def run(self, mechanism: Any, inputs: list[Any]) -> Any:
        """Many ticks; where users are protected there is no `run`."""
        return [self.step(mechanism, x).value for x in inputs] if self.users else mechanism.run(inputs)

    def slack(self, mechanism: Any) -> float:
        """How far its next noiseless release may be from the truth."""
        return self.tolerance(mechanism) if callable(self.tolerance) else self.tolerance
