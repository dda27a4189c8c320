"""What a family of linear queries is: a declared finite universe of cells, and for every query its value in each cell.

The value f(x) of a query in a cell lies in [0, 1] and is written in whole units of 1/unit, rounded cell by cell and
never in the sum (dynamic-data 14.9): so one item moves an answer by at most `unit` such units, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import canonical
from evertally.encode.plain import finite, plain
from evertally.errors import ConfigurationError

IntArray = NDArray[np.int64]

LARGEST_UNIVERSE = 2**22  # cells: a vector of them is 32 MB
LARGEST_WORKLOAD = 2**22  # queries times cells, where all queries are written down


class Family(Protocol):
    """A class of linear queries over `cells` cells."""

    kind: ClassVar[str]  # its name in writing

    def __hash__(self) -> int: ...

    @property
    def cells(self) -> int:
        """How many cells the universe has."""

    @property
    def unit(self) -> int:
        """What a query that holds entirely of an item is in integers: values are multiples of 1/unit."""

    @property
    def queries(self) -> int:
        """At most so many different queries there are."""

    @property
    def shown(self) -> dict[str, Any]:
        """What a release shows unless somebody asks for more: names and their queries."""

    def cell(self, value: object) -> int | None:
        """The cell of an item's value; None for what is none. Never raises: a fixed function of the value alone."""

    def vector(self, query: Any) -> IntArray:
        """The query in every cell, in units of 1/unit; refuses what is no query of the family."""

    def name(self, query: Any) -> str:
        """A short text for a query."""

    def workload(self) -> list[Any]:
        """All queries, one by one; refused where they are too many to be written down."""

    def written(self) -> dict[str, Any]:
        """The family for snapshots and stream specs; `read_family` reads it."""


def check_universe(cells: int) -> None:
    """Refuses a universe whose vectors nobody wants to keep."""
    if not 1 <= cells <= LARGEST_UNIVERSE:
        raise ConfigurationError(
            f"the universe has {cells:,} cells; between 1 and 2^22 are possible, because data are kept as one number "
            "for each cell. Take coarser cells, or fewer attributes"
        )


def check_workload(queries: int, cells: int) -> None:
    """Refuses to write down a table of all queries that is too large."""
    if queries * cells > LARGEST_WORKLOAD:
        raise ConfigurationError(
            f"{queries:,} queries over {cells:,} cells are too many to be written down one by one (the table may have "
            "2^22 entries); take coarser cells, declare the queries that matter, or a mechanism that needs no table"
        )


def number(value: object) -> Fraction | None:
    """A finite number of whoever declares or asks, exactly; None if it is none."""
    own = plain(value)
    if own is None or isinstance(own, bool | str | bytes):
        return None
    if isinstance(own, float | Decimal) and not finite(own):
        return None
    if isinstance(own, Decimal) and not -(10**400) < own < 10**400:
        return None  # small as it stands, enormous as a fraction
    return Fraction(own)


def whole_number(value: object) -> int | None:
    """A number that is whole, as an integer."""
    exact = number(value)
    return int(exact) if exact is not None and exact.denominator == 1 else None


def entries(value: Any, count: int) -> list[object] | None:
    """The `count` entries of a list, tuple or vector; None for anything else. No method of a subclass is asked."""
    kind = type(value)
    if issubclass(kind, np.ndarray):
        flat: list[object] = np.ndarray.tolist(value) if value.ndim == 1 else []
        return flat if len(flat) == count else None
    for own in (list, tuple):
        if issubclass(kind, own):
            found: list[object] = list(islice(own.__iter__(value), count + 1))
            return found if len(found) == count else None
    return None


def looked_up(index: Mapping[str, int], value: object) -> int | None:
    """The number of a label."""
    label = canonical(value)
    return None if label is None else index.get(label)


def table_of(value: Any) -> dict[Any, Any] | None:
    """A table, or a list of pairs: in writing, because whoever keeps a table may sort it, and cells have an order."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, list | tuple):
        return None
    pairs = [entries(pair, 2) for pair in value]
    if any(pair is None or type(pair[0]) is not str for pair in pairs):
        return None
    table = {pair[0]: pair[1] for pair in pairs if pair is not None}
    return table if len(table) == len(pairs) else None


def on_grid(values: Iterable[object], bits: int) -> tuple[int, ...] | None:
    """Numbers in [0, 1] as the nearest multiples of 2^-bits; None if one is no such number."""
    rounded = []
    for value in values:
        own = plain(value)
        exact = Fraction(own) if isinstance(own, bool) else number(own)
        if exact is None or not 0 <= exact <= 1:
            return None
        rounded.append(math.floor(exact * 2**bits + Fraction(1, 2)))
    return tuple(rounded)


def no_query(family: str, expected: str) -> ConfigurationError:
    """What to say to a query that the family does not have. (A query is public: whoever asks may read it again.)"""
    return ConfigurationError(f"a query of {family} is {expected}")
