"""Parts of a stack: what each of them reads and counts, and the whole numbers that their counts are multiplied by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.lazy import LazyEngine
from evertally.applications.records import Record, RecordDoor, Records
from evertally.contract.doors import RowDoor
from evertally.contract.forms import LabelledForm, NumberForm, RowForm
from evertally.contract.mechanism import Mechanism
from evertally.contract.parts import IntArray
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import Change
from evertally.statistics.linear_options import Linear, is_linear

_OF_THE_STACK = (  # not of one part
    *("guarantee", "horizon", "key", "stream", "name", "neighbours", "unit", "max_events_per_user"),
    *("mechanism", "allow_copy", "radix", "memory_limit", "max_window"),
)
_FINEST = 64  # the smallest multiplier is at most this
LARGEST_MULTIPLIER = 2**20
_KINDS: dict[str, type[Linear]] = {}  # by name, for snapshots


@dataclass(frozen=True)
class Part:
    """A statistic before it has a guarantee: its class and its own options. Made by `et.part`."""

    kind: type[Linear]
    options: Mapping[str, Any] = field(default_factory=dict)


def part(kind: type[Linear], /, **options: Any) -> Part:
    """A part of a `Stacked`: a statistic by its class and its own options.

    >>> import evertally as et
    >>> et.part(et.graph.EdgeCount).kind.__name__
    'EdgeCount'
    >>> et.part(et.graph.EdgeCount, guarantee=et.PureDP(1.0))
    Traceback (most recent call last):
    ...
    evertally.errors.ConfigurationError: guarantee: set for the whole stack, not for one part
    """
    if not isinstance(kind, type) or not issubclass(kind, Linear):
        raise ConfigurationError("a part is a statistic that counts changes, or a Counter, VectorCounter, Histogram")
    reserved = sorted({*_OF_THE_STACK} & {*options})
    if reserved:
        raise ConfigurationError(f"{', '.join(reserved)}: set for the whole stack, not for one part")
    _KINDS[kind.__name__] = kind
    return Part(kind, dict(options))


def part_by_name(name: str, options: Mapping[str, Any]) -> Part:
    """The way back from a snapshot."""
    from evertally import statistics
    from evertally.applications import graph, strings

    kind = _KINDS.get(name)
    for room in (graph, strings, statistics):
        kind = kind or getattr(room, name, None)
    if kind is None:
        raise ConfigurationError(f"there is no statistic named {name} to be a part; import what defines it first")
    return part(kind, **options)


@dataclass(frozen=True)
class Counted:
    """A part, made without noise: how it reads a record, counts and shows, and how far a unit moves it."""

    made: Linear
    read: Callable[[Any], Record | None]
    sort: bool  # the order of a tick's records says nothing
    encoder: Callable[[], Encoder]
    columns: Mapping[Any, int]  # where each coordinate of the encoder is shown; others are not
    form: RowForm
    event: Change  # by one record
    unit: Change  # by the protected unit

    @classmethod
    def of(cls, given: Part, common: Mapping[str, Any]) -> Counted:
        """Everything that a statistic checks at its construction it checks here."""
        made: Any = given.kind(**given.options, **common, key=ZeroNoise())
        door, engine, form, unit = made._door, made._engine, made._form, made.sensitivity
        own_errors = type(made).error_bound is Mechanism.error_bound  # those of the numbers it counts
        if isinstance(made, Encoded) and isinstance(door, RecordDoor) and isinstance(form, RowForm) and own_errors:
            columns = engine.columns if isinstance(engine, LazyEngine) else {i: i for i in range(engine.width)}
            if not columns:
                raise ConfigurationError("a part shows something: say what, watch=[...], or declare the vertices")
            return cls(made, door.read, door.sort, made.encoder, columns, form, made.certified().change, unit)
        if is_linear(made) and isinstance(door, RowDoor) and type(form) in (NumberForm, LabelledForm, RowForm):
            columns = {i: i for i in range(engine.width)}
            return cls(made, lambda record: _row(door, record), True, _Summed, columns, form, unit, unit)
        raise ConfigurationError(
            f"{given.kind.__name__} cannot be a part with these options: parts show numbers that they count, with "
            "linear noise"
        )

    @property
    def by_split(self) -> Change | None:
        """`unit` by S3 alone, where that makes a difference."""
        return self.made._setting.split

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def named(self) -> list[str]:
        """What the columns are, where they are some of many coordinates that could have been shown."""
        return [str(name) for name in self.columns] if isinstance(self.made._engine, LazyEngine) else []

    @property
    def base(self) -> IntArray:
        """What a public graph has before the first tick."""
        return np.asarray(getattr(self.form, "base", np.zeros(self.width, dtype=np.int64)), dtype=np.int64)

    @property
    def hides(self) -> tuple[str, str]:
        """What one step of the neighbouring relation is about: one promise covers one relation."""
        return self.made.protected_unit, self.made.contribution.protects

    @property
    def takes_users(self) -> bool:
        """Whether records are (user, letter), also where users are a column of their own."""
        made: Any = self.made
        return getattr(made, "sequence", "") == "user"


def _row(door: RowDoor, record: Any) -> Record | None:
    """What one event adds to each column; None for nothing."""
    row = tuple(int(amount) for amount in door.events([record], 1))
    return row if any(row) else None


class _Summed(Encoder):
    """Rows are their own changes."""

    def encode(self, record: Record, changes: Changes) -> None:
        for column, amount in enumerate(record):
            if amount:
                add(changes, column, amount)


class StackedEncoder(Encoder):
    """All parts on the same records, one after the other in one row, each multiplied by its number.

    A record is a tuple: what each part has read of it, None where it cannot use it.
    """

    def __init__(self, parts: list[Counted], multipliers: list[int]) -> None:
        super().__init__()
        self._parts = [(one.encoder(), one.sort, one.columns, by) for one, by in zip(parts, multipliers, strict=True)]
        self._tables = [table for encoder, *_ in self._parts for table in encoder._tables]

    def encode(self, record: Record, changes: Changes) -> None:
        changes |= self.changes(Records((record,)))

    def changes(self, records: Records) -> Changes:
        found: Changes = {}
        first = 0
        for i, (encoder, sort, columns, by) in enumerate(self._parts):
            own = [record[i] for record in records.read if record[i] is not None]
            for coordinate, amount in encoder.changes(Records(tuple(sorted(own) if sort else own))).items():
                if coordinate in columns:
                    found[first + columns[coordinate]] = by * amount
            first += len(columns)
        return found


def joint(changes: list[Change], multipliers: list[int]) -> Change:
    """How far one unit moves the stacked row: l1 adds up, and so do squares (factorization-counting 12, trap 11).

    >>> joint([Change(2, 2, 1), Change(5, 9, 2)], [3, 1])
    Change(l1=11, l2_squared=27, linf=3)
    """
    pairs = list(zip(changes, multipliers, strict=True))
    return Change(
        sum(by * one.l1 for one, by in pairs),
        sum(by * by * one.l2_squared for one, by in pairs),
        max(by * one.linf for one, by in pairs),
    )


def balanced(squares: list[Fraction]) -> list[int]:
    """Whole numbers in the ratios of these square roots, to about one in a hundred where small numbers do; exact
    arithmetic, for multipliers are in the address of the noise.

    >>> balanced([Fraction(1, 2), Fraction(1, 8)]), balanced([Fraction(1), Fraction(1, 3)])
    ([2, 1], [7, 4])
    """
    least = min(squares)
    best: tuple[Fraction, list[int]] | None = None
    for finest in range(1, _FINEST + 1):
        numbers = [min(LARGEST_MULTIPLIER, _rounded_root(finest * finest * one / least)) for one in squares]
        # How far the squared ratios are from what they should be.
        off = max(
            abs(Fraction(n * n, finest * finest) * least / one - 1) for n, one in zip(numbers, squares, strict=True)
        )
        if best is None or off < best[0]:
            best = off, numbers
        if off <= Fraction(1, 40):
            break
    assert best is not None
    common = math.gcd(*best[1])
    return [number // common for number in best[1]]


def _rounded_root(square: Fraction) -> int:
    """The whole number next to the square root, 1 at least."""
    doubled = math.isqrt(math.floor(4 * square))  # floor(2 sqrt)
    return max(1, (doubled + 1) // 2)
