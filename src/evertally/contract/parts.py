"""What a mechanism is put together from: a door, an engine and a form.

    call -> DOOR -> batch -> ENGINE -> released rows -> FORM -> Release
            bounds           secret in, public out        post-processing

The contract around them (`Mechanism`) does step, run, replay, horizon and snapshot, the same for all. A statistic says
which parts it wants, in a `Blueprint`, from public parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.privacy import Change, Contribution, Guarantee
from evertally.secret import Secret

IntArray = NDArray[np.int64]
Options = dict[str, Any]


class Accuracy(Protocol):
    """How far a released number may be off, from public numbers only."""

    @property
    def stddev(self) -> float | None:
        """Standard deviation of the noise, None where none is defined."""

    def radius(self, beta: float) -> float:
        """A number that the error exceeds with probability at most `beta`."""


class Door(Protocol):
    """Input to bounded totals. What is no input raises TypeError; what a record holds never does."""

    def total(self, x: Any, tick: int) -> Any:
        """What `step` was given for a tick, in range."""

    def events(self, events: Any, tick: int) -> Any:
        """The bounded sum of a tick's events."""

    def many(self, x: Any, first: int) -> Any:
        """What `run` was given, from tick `first` on: something with a length, not yet bounded."""

    def pieces(self, many: Any) -> Iterator[Any]:
        """The same as batches for the engine, in range."""

    def batch(self, totals: Any) -> Any:
        """One tick as a batch."""

    def last(self, batch: Any) -> Any:
        """The totals of the last tick of a batch."""

    def digest(self, totals: Any) -> bytes:
        """A hash of one tick's totals that says whether two inputs are the same."""


@dataclass(repr=False, slots=True)
class Played(Secret):
    """What an engine gives: released rows, for how many ticks each of them stands (None: one each), and its state
    after them, a value that is never changed. Secret, for the state is."""

    rows: Any
    lasts: IntArray | None
    state: Any
    alone: bool = False  # one row, in an array that nobody else has


def plays_numbers(engine: Any) -> bool:
    """Whether an engine of one column plays a tick with Python's own integers, too, to the same effect: arrays of one
    number take most of the time of a tick. Then it has `play_number(total, before)`, which gives the released number
    and the exact sum, and the class that says what `play` does says what this does: one that is derived from it, and
    plays otherwise, has not said so."""
    whose = next((kind for kind in type(engine).__mro__ if "play" in vars(kind)), object)
    return "play_number" in vars(whose) and engine.width == 1


FEW_TICKS = 2**12  # so many can be asked one by one


@runtime_checkable
class Widening(Protocol):
    """An engine that knows when it is farthest off."""

    def widest(self, tick: int) -> Accuracy | None:
        """The accuracy with the largest standard deviation of the ticks 1 .. tick; None where nobody can say."""


class Engine(Protocol):
    """Totals to released rows: the only place where a secret becomes public.

    `state` is a value: `play` gives a new one. What an engine keeps besides (a position in its noise, an index) it must
    be able to find again from a tick and a state (`go_back`), or refuse.
    """

    width: int  # numbers in a released row

    def start(self) -> Any:
        """The state before the first tick."""

    def begin(self, tick: int) -> None:
        """A call begins, `tick` ticks are committed: where to go back to if it is interrupted."""

    def play(self, batch: Any, state: Any) -> Played:
        """The next ticks."""

    def go_back(self, tick: int, state: Any) -> None:
        """To what is committed, from wherever an interrupted call has left this engine; or raises."""

    def accuracy(self, tick: int) -> Accuracy:
        """How far what is released at a tick may be off."""

    def window(self, tick: int, window: int) -> Accuracy:
        """The same for the difference of two releases. An engine, or a form, whose differences mean nothing says
        `differences = False`; one whose `window` is the law itself, and no bound on it, `exact_windows = True`."""

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """A bound on the error of all ticks together (with `tick`: at that tick), failing with probability beta."""

    def save(self, state: Any) -> list[bytes]:
        """Secret bytes; what follows from key and address is left out."""

    def load(self, tick: int, parts: list[bytes]) -> Any:
        """The way back: the state after `tick`."""


class Form(Protocol):
    """Released rows as public values: post-processing."""

    def show(self, row: Any) -> Any:
        """One row."""

    def show_many(self, rows: Any) -> Any:
        """Many rows, as `run` gives them."""

    def interval(self, row: Any, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        """Where the truth lies, up to probability beta."""

    def deviation(self, accuracy: Accuracy) -> float | None:
        """The standard deviation to show."""

    def table(self, ticks: Sequence[int], rows: Any, accuracy: Callable[[int], Accuracy]) -> Any:
        """Rows as an Arrow table: tick, (column,) value, lower, upper."""

    def first(self) -> Any:
        """The row before the first tick, as the only one."""

    def nothing(self) -> Any:
        """No rows."""

    def joined(self, kept: list[tuple[Any, IntArray | None]]) -> Any:
        """Pieces of a run, each with for how many ticks its rows stand, as one: a row for each tick."""

    def save(self, rows: Any) -> bytes:
        """The last rows, for a snapshot; nothing where the engine finds them again."""

    def load(self, data: bytes, engine: Any, tick: int) -> Any:
        """The way back."""


@dataclass(frozen=True)
class Blueprint:
    """A mechanism before there is a key: settled from public numbers alone.

    `word` and `address` are in the address of all noise, and so is `named`, the name of the engine there: none of them
    may follow a class or an option that is renamed, or living streams would draw their past anew. `mechanism` is the
    name of the engine that the constructor takes; `settled` are options that were found here and are kept in snapshots.
    """

    word: str
    address: Options
    mechanism: str
    charge: Guarantee
    contribution: Contribution
    door: Callable[[ItemSource, int], Door]
    engine: Callable[[ItemSource], Engine]
    form: Form
    sensitivity: Change
    named: str = ""
    settled: Options | None = None
    open: str = ""  # why nothing bounds the error, and what to declare
    owned: bool = False  # the door takes users as well, and what is behind it bounds what each of them may do


def check_beta(beta: Any) -> None:
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 < float(beta) < 1:
        raise ConfigurationError("beta is a probability: a number between 0 and 1")
