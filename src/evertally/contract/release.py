"""What leaves: a value with its tick and its error bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evertally.contract.parts import check_beta
from evertally.pictures import html_table, numbers_of, plot
from evertally.secret import Secret


@dataclass(frozen=True, repr=False)
class Maker(Secret):
    """Which mechanism a release is of, by the public name of its noise, and whether each of its numbers has noise of
    its own: numbers that are made of the same columns do not. The name follows from the key: it is not shown, and does
    not leave the process."""

    noise: bytes
    apart: bool

    def __copy__(self) -> Maker:  # type: ignore[override]
        return self

    def __deepcopy__(self, memo: object) -> Maker:  # type: ignore[override]
        return self


@dataclass(frozen=True, init=False)
class Release:
    """One released value.

    `value` is a number, or a dictionary of numbers by label; `stddev` is the standard deviation of the noise in each
    number, None where none is defined. `private` is False under simulation and test keys. `about` says what was
    counted, and so what the interval is about: where users are protected, only what their cap kept.

    `row` are the released integers behind the value, where the difference of two releases is a sum over the ticks
    between them (`Mechanism.between`), else None. `since` is 0, or the tick after which a window begins.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> release = counter.step(20)
    >>> lower, upper = release.interval(beta=0.05)
    >>> release.tick, release.private, lower < release.value < upper
    (1, False, True)
    """

    tick: int
    value: Any
    stddev: float | None
    private: bool
    bounds: Callable[[float], tuple[Any, Any]] = field(repr=False, compare=False)
    about: str = "all events, within their bounds"

    # Not fields: two releases are the same by what they say.
    row: ClassVar[Any] = None
    since: ClassVar[int] = 0
    maker: ClassVar[Maker | None] = None

    def __init__(
        self,
        tick: int,
        value: Any,
        stddev: float | None,
        private: bool,
        bounds: Callable[[float], tuple[Any, Any]],
        about: str = about,
    ) -> None:
        # One is made for every tick: half the time of what a frozen data class does by itself.
        own = self.__dict__
        own["tick"], own["value"], own["stddev"], own["private"] = tick, value, stddev, private
        own["bounds"], own["about"] = bounds, about

    def interval(self, beta: float = 0.05) -> tuple[Any, Any]:
        """(lower, upper): each number's true value lies inside with probability at least 1 - beta, for this tick.

        The true value of what `about` says: events that a user's cap left out are in neither.
        """
        check_beta(beta)
        return self.bounds(beta)

    def plot(self, *, beta: float = 0.05, ax: Any = None) -> Any:
        """Bars with whiskers, one for each label; a bar that cannot be told from zero is hollow. Returns matplotlib's
        axes. One number alone is no picture: `et.plot` draws a list of releases."""
        return plot(self, ax=ax, beta=beta)

    def _repr_html_(self) -> str:
        names, rows = ["label", "value", "lower", "upper"], numbers_of(self)
        first = 1 if [label for label, *_ in rows] == [None] else 0
        ticks = f"ticks {self.since + 1:,} to {self.tick:,}" if self.since else f"up to tick {self.tick:,}"
        shown = [row[first:] for row in rows]
        said = [self.about, "each interval holds with 95 %"]
        said += [] if self.stddev is None else [f"standard deviation of the noise {self.stddev:.4g}"]
        return html_table(
            f"Release, {ticks}", names[first:], shown, ["; ".join(said + ["not private"] * (not self.private))]
        )
