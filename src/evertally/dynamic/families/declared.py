"""Families that are written down: arbitrary queries over a small universe, and half-spaces over declared points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from evertally.dynamic.families.family import (
    IntArray,
    check_universe,
    check_workload,
    entries,
    looked_up,
    no_query,
    number,
    on_grid,
    table_of,
)
from evertally.encode.door import declared_labels
from evertally.encode.labels import canonical
from evertally.encode.plain import real
from evertally.errors import ConfigurationError
from evertally.integers import whole

GRID_BITS = 16  # f(x) is a multiple of 2^-16, unless it needs fewer bits

Values = Sequence[Any] | Callable[[Any], Any]
Declared = Mapping[str, Values] | Sequence[tuple[str, Values]]


@dataclass(frozen=True, init=False)
class Queries:
    """Arbitrary linear queries: of each, by name, its value in [0, 1] for every member of the universe.

    A query is a list of values in the order of the universe, or a function of a member. Values are rounded to
    multiples of 2^-16 (of less where all of them are such), member by member, once.

    >>> family = Queries({"warm": [1, 0.5, 0], "short": lambda colour: len(colour) < 5}, ["red", "green", "blue"])
    >>> family.unit, family.vector("warm").tolist(), family.vector("short").tolist(), family.cell("green")
    (2, [2, 1, 0], [2, 0, 2], 1)
    """

    universe: tuple[str, ...]
    table: tuple[tuple[str, tuple[int, ...]], ...]  # names, and values in units of 1/unit
    unit: int

    kind: ClassVar[str] = "queries"

    def __init__(self, queries: Declared, universe: Iterable[object], *, grid_bits: int = GRID_BITS) -> None:
        members = list(universe)
        labels = declared_labels(members)
        check_universe(len(labels))
        bits = whole("grid_bits", grid_bits, 0, 20)
        listed = table_of(queries)
        if not listed:
            raise ConfigurationError("queries are a table: the name of each query, and its values or a function")
        check_workload(len(listed), len(labels))
        rows = [_values(name, values, members, bits) for name, values in listed.items()]
        shared = math.gcd(2**bits, *(value for row in rows for value in row))
        object.__setattr__(self, "universe", labels)
        names = declared_labels(listed)
        reduced = (tuple(value // shared for value in row) for row in rows)
        object.__setattr__(self, "table", tuple(zip(names, reduced, strict=True)))
        object.__setattr__(self, "unit", 2**bits // shared)
        object.__setattr__(self, "_index", {label: i for i, label in enumerate(labels)})
        object.__setattr__(self, "_rows", dict(self.table))

    @property
    def cells(self) -> int:
        return len(self.universe)

    @property
    def queries(self) -> int:
        return len(self.table)

    @property
    def shown(self) -> dict[str, Any]:
        return {name: name for name, _ in self.table}

    def cell(self, value: object) -> int | None:
        return looked_up(self.__dict__["_index"], value)

    def vector(self, query: Any) -> IntArray:
        return np.array(self.__dict__["_rows"][self.name(query)], dtype=np.int64)

    def name(self, query: Any) -> str:
        label = canonical(query)
        if label is None or label not in self.__dict__["_rows"]:
            raise no_query("declared queries", "the name of one of them")
        return label

    def workload(self) -> list[Any]:
        return [name for name, _ in self.table]

    def written(self) -> dict[str, Any]:
        rows = [[name, [value / self.unit for value in row]] for name, row in self.table]  # exact: the unit is 2^bits
        return {"kind": self.kind, "queries": rows, "universe": list(self.universe)}


@dataclass(frozen=True, init=False)
class HalfSpaces:
    """How many items lie on one side of a hyperplane; the universe is a declared set of points.

    The value of an item is the list of its coordinates, one of the declared points. A query is (normal, offset): all
    points p with normal . p <= offset, decided in fractions, so coordinates are the numbers that they are written as.
    `declared` queries are shown, and are what mechanisms that need a list of queries work for.

    >>> family = HalfSpaces([(0, 0), (1, 0), (0, 1), (2, 2)], declared=[((1, 1), 1)])
    >>> family.cell([0, 1]), family.vector(((1, 1), 1)).tolist(), family.vector(((-1, 0), -0.5)).tolist()
    (2, [1, 1, 1, 0], [0, 1, 0, 1])
    >>> family.shown
    {'1 x1 + 1 x2 <= 1': ((1, 1), 1)}
    """

    points: tuple[tuple[Fraction, ...], ...]
    declared: tuple[tuple[tuple[Fraction, ...], Fraction], ...]

    kind: ClassVar[str] = "half_spaces"
    unit: ClassVar[int] = 1

    def __init__(self, points: Iterable[Sequence[Any]], declared: Iterable[tuple[Sequence[Any], Any]] = ()) -> None:
        given = list(points)
        check_universe(len(given))
        dimension = len(given[0]) if isinstance(given[0], Sequence | np.ndarray) else 1
        read = [_coordinates(point, dimension) for point in given]
        if any(point is None for point in read) or dimension < 1 or len(set(read)) != len(read):
            raise ConfigurationError("points are lists of equally many numbers, and no point comes twice")
        object.__setattr__(self, "points", tuple(read))
        object.__setattr__(self, "_index", {point: i for i, point in enumerate(read)})
        object.__setattr__(self, "declared", tuple(self.plane(query) for query in declared))

    @property
    def dimension(self) -> int:
        """Coordinates of a point."""
        return len(self.points[0])

    @property
    def cells(self) -> int:
        return len(self.points)

    @property
    def queries(self) -> int:
        """Half-spaces cut n points of R^d in at most 2 sum_{i <= d} binom(n-1, i) ways (Cover's count)."""
        n = self.cells
        return 2 * sum(math.comb(n - 1, i) for i in range(self.dimension + 1))

    @property
    def shown(self) -> dict[str, Any]:
        return {self.name(query): query for query in map(_plain_plane, self.declared)}

    def cell(self, value: object) -> int | None:
        point = _coordinates(value, self.dimension)
        index: dict[tuple[Fraction, ...], int] = self.__dict__["_index"]
        return None if point is None else index.get(point)

    def plane(self, query: Any) -> tuple[tuple[Fraction, ...], Fraction]:
        """A query in fractions."""
        parts = entries(query, 2)
        if parts is not None:
            normal, offset = _coordinates(parts[0], self.dimension), _coordinate(parts[1])
            if normal is not None and offset is not None:
                return normal, offset
        raise no_query("half-spaces", f"(normal, offset): a list of {self.dimension} numbers, and a number")

    def vector(self, query: Any) -> IntArray:
        normal, offset = self.plane(query)
        inside = [sum(a * x for a, x in zip(normal, p, strict=True)) <= offset for p in self.points]
        return np.array(inside, dtype=np.int64)

    def name(self, query: Any) -> str:
        normal, offset = self.plane(query)
        return f"{' + '.join(f'{a} x{i + 1}' for i, a in enumerate(normal))} <= {offset}"

    def workload(self) -> list[Any]:
        if not self.declared:
            raise ConfigurationError(
                "this mechanism works for a list of queries: give the half-spaces that matter as `declared`"
            )
        check_workload(len(self.declared), self.cells)
        return [_plain_plane(plane) for plane in self.declared]

    def written(self) -> dict[str, Any]:
        planes = [[list(map(_number_in_writing, normal)), _number_in_writing(c)] for normal, c in self.declared]
        points = [list(map(_number_in_writing, point)) for point in self.points]
        return {"kind": self.kind, "points": points, **({"declared": planes} if planes else {})}


def _values(name: Any, values: Any, members: list[Any], bits: int) -> tuple[int, ...]:
    listed = [values(member) for member in members] if callable(values) else entries(values, len(members))
    row = None if listed is None else on_grid(listed, bits)
    if row is None:
        raise ConfigurationError(
            f"the query {name!r} needs one number from 0 to 1 for each of the {len(members)} members of the universe"
        )
    return row


def _coordinates(value: object, dimension: int) -> tuple[Fraction, ...] | None:
    listed = entries(value, dimension)
    if listed is None:
        single = _coordinate(value) if dimension == 1 else None
        return None if single is None else (single,)
    read = [_coordinate(entry) for entry in listed]
    return None if None in read else tuple(x for x in read if x is not None)


def _coordinate(value: object) -> Fraction | None:
    exact = number(value)
    if exact is None:
        exact = _fraction_in_writing(value)
    if exact is None and issubclass(type(value), str | bytes):
        # A CSV file has nothing but texts, and 0.1 must be the same point whichever file it came in.
        near = real(value)
        exact = Fraction(near) if math.isfinite(near) else None
    return exact


def _fraction_in_writing(value: object) -> Fraction | None:
    """ "1/3" of a stream spec, where numbers are decimal."""
    if type(value) is not str or len(value) > 80 or not value.isascii():
        return None
    top, _, bottom = value.partition("/")
    if not top.lstrip("-").isdigit() or not bottom.isdigit() or int(bottom) == 0:
        return None
    return Fraction(int(top), int(bottom))


def _number_in_writing(value: Fraction) -> int | float | str:
    if value.denominator == 1:
        return int(value)
    near = float(value)
    return near if Fraction(near) == value else f"{value.numerator}/{value.denominator}"


def _plain_plane(plane: tuple[tuple[Fraction, ...], Fraction]) -> tuple[tuple[Any, ...], Any]:
    def short(x: Fraction) -> Any:
        return int(x) if x.denominator == 1 else x

    normal, offset = plane
    return tuple(map(short, normal)), short(offset)
