"""The one ranked table: every way to keep a promise, best first, and why the others do not fit.

What `mechanism="auto"` takes, what `et.plan` answers and what `evertally plan` shows are rows of it. Rooms make them
(`counting/choose.py` for noise processes, `histogram/ways/` for questions about column sums); how they are ranked and
read is here. All from public numbers, before the stream starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar, overload

from evertally.errors import ConfigurationError
from evertally.pictures import html_table
from evertally.privacy import Guarantee

Number = Callable[[], float]
Chosen = TypeVar("Chosen")

_choices: ContextVar[dict[Hashable, Any] | None] = ContextVar("choices", default=None)


@contextmanager
def choosing_once() -> Iterator[None]:
    """For whoever makes one mechanism under many keys: from equal public numbers it is chosen once. Ranking may take
    longer than all the rest of making one.

    >>> asked = []
    >>> with choosing_once():
    ...     for _ in range(3):
    ...         name = chosen(("tree", 8), lambda: asked.append("once") or "tree")
    >>> name, asked
    ('tree', ['once'])
    """
    if _choices.get() is not None:
        yield
        return
    token = _choices.set({})
    try:
        yield
    finally:
        _choices.reset(token)


def chosen(public: Hashable, choose: Callable[[], Chosen]) -> Chosen:
    """What is chosen from public numbers: all of them, since nothing else is compared."""
    known = _choices.get()
    if known is None:
        return choose()
    if public not in known:
        known[public] = choose()
    found: Chosen = known[public]
    return found


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way: its name (`mechanism=`), what it pays, and how good it is.

    `predicted` is what the largest error of any tick typically is, `bound` what it exceeds with probability at most
    beta, on every stream that keeps what was declared; where that bounds nothing it is infinite, and `open` says why
    and what to declare. `guessed` is the bound while answers stay below `largest`. `memory` is the planned state in
    bytes, None where nobody can know it. `refused` says why the way does not fit; such a row has no other numbers.
    `by_name`: it is never taken unless it is named.

    Where answers are exact sums plus noise, `worst_stddev` and `rms_stddev` are the standard deviations of a number
    over the ticks (without a horizon up to tick 2^16), and `floor` is what no Gaussian noise that pays the same has for
    its worst, before it is rounded to whole numbers; None where nobody knows one.

    >>> Way(name="tree", charge=None, refused="it needs a horizon").bound
    inf
    """

    name: str
    charge: Guarantee | None
    score: float = math.inf  # what ways are ranked by
    tie: float = math.inf  # and where scores are the same
    weigh: Callable[[], tuple[float, float]] | None = field(default=None, repr=False, compare=False)  # both, if asked
    expect: Number | None = field(default=None, repr=False, compare=False)  # where it is not the score
    promise: Number | None = field(default=None, repr=False, compare=False)
    guess: Number | None = field(default=None, repr=False, compare=False)  # where it differs from the promise
    memory: int | None = None
    tier: str = "exact"
    open: str = ""
    refused: str = ""
    nearly: bool = False  # refused, but by a limit or a range alone: horizon and budget fit
    by_name: bool = False
    survey: Callable[[], tuple[float | None, float]] | None = field(default=None, repr=False, compare=False)
    floor: float | None = None

    @cached_property
    def weight(self) -> tuple[float, float]:
        """What it is compared by: its score, and what decides where scores are the same."""
        return (self.score, self.tie) if self.weigh is None else self.weigh()

    @cached_property
    def _surveyed(self) -> tuple[float | None, float | None]:
        return (None, None) if self.survey is None else self.survey()

    @property
    def worst_stddev(self) -> float | None:
        """The largest standard deviation of any tick."""
        return self._surveyed[0]

    @property
    def rms_stddev(self) -> float | None:
        """The root of the mean variance over all ticks."""
        return self._surveyed[1]

    @property
    def above_floor(self) -> float | None:
        """How many times the floor the worst standard deviation is."""
        return None if self.floor is None or self.worst_stddev is None else self.worst_stddev / self.floor

    @cached_property
    def predicted(self) -> float:
        """The typical largest error."""
        return self.weight[0] if self.expect is None else self.expect()

    @cached_property
    def bound(self) -> float:
        """The error bound; it takes longer than the prediction, and few ask for it."""
        return math.inf if self.promise is None else self.promise()

    @cached_property
    def guessed(self) -> float:
        """The bound that trusts `largest`."""
        return self.bound if self.guess is None else self.guess()

    def shown_as(self, show: Callable[[float], float]) -> Self:
        """The same way where errors are shown in another unit."""
        if self.refused:
            return self
        shown: dict[str, Any] = {"guess": None, "survey": None, "floor": None}
        return replace(self, expect=lambda: show(self.predicted), promise=lambda: show(self.bound), **shown)


class Ranking(Sequence[Way]):
    """Ways, best first: those with an error bound, those without, those that must be named, those that do not fit.

    >>> ranked = Ranking([Way(name="a", charge=None, refused="too long"), Way(name="b", charge=None, score=2.0)])
    >>> ranked.best.name, [way.refused for way in ranked]
    ('b', ['', 'too long'])
    """

    def __init__(self, ways: Iterable[Way], notes: Callable[[], Sequence[str]] = tuple) -> None:
        self._notes = notes
        fitting, refused = list[Way](), list[Way]()
        for way in ways:
            (refused if way.refused else fitting).append(way)
        if len(fitting) > 1:  # what was named, with one budget, need not be weighed: that may take longer than all else
            # What looks best on a guess must not be what is taken: ways without a bound come after all others.
            fitting.sort(key=lambda way: (way.by_name, way.open != "", *way.weight))
        self._ways = [*fitting, *refused]

    @overload
    def __getitem__(self, index: int) -> Way: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Way]: ...
    def __getitem__(self, index: int | slice) -> Way | Sequence[Way]:
        return self._ways[index]

    def __len__(self) -> int:
        return len(self._ways)

    @property
    def fitting(self) -> list[Way]:
        """The ways that can be taken."""
        return [way for way in self._ways if not way.refused]

    @property
    def reasons(self) -> list[str]:
        """Why the others cannot, each reason once."""
        return list(dict.fromkeys(way.refused for way in self._ways if way.refused))

    @property
    def best(self) -> Way:
        """What "auto" takes; refused, with all reasons, where nothing fits."""
        if not self.fitting:
            # What a limit or a range stands in the way of first: there is something to do about it.
            near = [way.refused for way in self._ways if way.nearly]
            raise ConfigurationError("; ".join(dict.fromkeys([*near, *self.reasons])))
        return self._ways[0]

    @cached_property
    def notes(self) -> list[str]:
        """What is to be said about all of them."""
        return list(self._notes())

    def _further(self) -> Sequence[tuple[str, ...]]:
        """Lines that are no ways, for comparison."""
        return ()

    def __repr__(self) -> str:
        return table(self, self._further(), self.notes)

    def _repr_html_(self) -> str:
        heads, *lines = _cells(self, self._further())
        return html_table("Ways, best first", heads, lines, _said(self, self.notes))


def table(ways: Sequence[Way], further: Sequence[tuple[str, ...]] = (), notes: Sequence[str] = ()) -> str:
    """Ways as lines of text, further lines of the same columns, and notes."""
    lines = _cells(ways, further)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = [
        "  ".join(
            f"{cell:<{w}}" if i < 2 else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([line.rstrip() for line in text] + _said(ways, notes))


def _cells(ways: Sequence[Way], further: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Heads, ways that fit, further lines."""
    fitting = [way for way in ways if not way.refused]
    guesses = any(way.guessed < way.bound for way in fitting)
    surveys, floors = any(way.survey for way in fitting), any(way.floor for way in fitting)
    heads = ["mechanism", "pays", "predicted", "bound"] + ["if below largest"] * guesses
    lines = [(*heads, *["worst sd", "rms sd"] * surveys, *["floor"] * floors, "memory", "tier")]
    for way in fitting:
        numbers = [way.predicted, way.bound, *[way.guessed] * guesses]
        stddevs = [*[way.worst_stddev, way.rms_stddev] * surveys, *[way.floor] * floors]
        lines.append((way.name, paid(way), *map(shown, numbers), *map(finely, stddevs), _size(way.memory), way.tier))
    return lines + [(*line, *[""] * (len(lines[0]) - len(line))) for line in further]


def _said(ways: Sequence[Way], notes: Sequence[str]) -> list[str]:
    """What stands below: notes, what is open, why the others do not fit."""
    fitting = [way for way in ways if not way.refused]
    said = [f"{way.name}: {way.open}" for way in fitting if way.open]
    said += [f"{way.name} is taken only by name" for way in fitting if way.by_name]
    refused = [
        way.refused if f'"{way.name}"' in way.refused else f"{way.name}: {way.refused}" for way in ways if way.refused
    ]
    return list(dict.fromkeys([*notes, *said, *refused]))


def paid(way: Way) -> str:
    """What a way pays, in few characters."""
    charge: Any = way.charge
    amounts = {name: getattr(charge, name, None) for name in ("epsilon", "rho", "delta")}
    paid = [f"{name} {amount:.4g}" for name, amount in amounts.items() if amount is not None]
    return "nothing" if way.name == "trivial" else ", ".join(paid)


def shown(value: float) -> str:
    """An error in a table."""
    if not math.isfinite(value):
        return "none"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def finely(stddev: float | None) -> str:
    """A standard deviation in a table: mechanisms differ in the third digit."""
    return "" if stddev is None else f"{stddev:,.0f}" if stddev >= 10_000 else f"{stddev:.4g}"


def _size(memory: int | None) -> str:
    if memory is None:
        return "by items"
    for unit in ("B", "kB", "MB"):
        if memory < 10_000:
            return f"{memory} {unit}"
        memory //= 1000
    return f"{memory:,} GB"
