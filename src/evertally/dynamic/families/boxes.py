"""The families of ordered cells: ranges of one axis, and boxes over several."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evertally.dynamic.families.family import (
    IntArray,
    check_universe,
    check_workload,
    entries,
    no_query,
    number,
    whole_number,
)
from evertally.encode.plain import plain, real
from evertally.errors import ConfigurationError
from evertally.integers import whole

Bounds = tuple[int, int]  # first and last cell of a range


@dataclass(frozen=True, init=False)
class Ranges:
    """How many items have a value between two bounds.

    With `size` values are the whole numbers 0..size-1, and a query is (low, high), **both included**. With `edges`
    (rising numbers; the first may be -inf, the last inf) cell i holds edges[i] <= value < edges[i+1], and a query is a
    pair of edges (low, high) for **low <= value < high**. "all" (or None) is everything. Other values lie in no cell.

    >>> Ranges(size=8).vector((2, 4)).tolist(), Ranges(size=8).cell("7"), Ranges(size=8).cell(7.5)
    ([0, 0, 1, 1, 1, 0, 0, 0], 7, None)
    >>> ages = Ranges(edges=[0, 18, 65, float("inf")])
    >>> ages.cell(64.9), ages.vector((18, 65)).tolist(), ages.name((18, 65)), ages.shown
    (1, [0, 1, 0], '[18, 65)', {'all': 'all'})
    """

    size: int
    edges: tuple[float, ...] | None

    kind: ClassVar[str] = "ranges"
    unit: ClassVar[int] = 1

    def __init__(self, size: int | None = None, edges: Sequence[float] | None = None) -> None:
        if (size is None) == (edges is None):
            raise ConfigurationError("ranges need either a size (values are 0..size-1) or the edges of their cells")
        read = None if edges is None else _edges(edges)
        cells = whole("the size of ranges", size, 1) if read is None else len(read) - 1
        check_universe(cells)
        object.__setattr__(self, "size", cells)
        object.__setattr__(self, "edges", read)

    @property
    def cells(self) -> int:
        return self.size

    @property
    def queries(self) -> int:
        return self.size * (self.size + 1) // 2

    @property
    def shown(self) -> dict[str, Any]:
        return {"all": "all"}

    def cell(self, value: object) -> int | None:
        x = real(value)
        if self.edges is None:
            return int(x) if 0 <= x < self.size and x == int(x) else None
        if not math.isfinite(x):
            return None
        place = bisect_right(self.edges, x) - 1
        return place if 0 <= place < self.size else None

    def bounds(self, query: Any) -> Bounds:
        """First and last cell of a query."""
        if is_all(query):
            return 0, self.size - 1
        ends = entries(query, 2)
        if ends is not None:
            found = self._inclusive(*ends) if self.edges is None else self._half_open(*ends)
            if found is not None:
                return found
        if self.edges is None:
            raise no_query("ranges", f'(low, high), whole numbers with 0 <= low <= high <= {self.size - 1}, or "all"')
        raise no_query("ranges", '(low, high), two of the declared edges with low < high, or "all"')

    def vector(self, query: Any) -> IntArray:
        first, last = self.bounds(query)
        vector = np.zeros(self.size, dtype=np.int64)
        vector[first : last + 1] = 1
        return vector

    def name(self, query: Any) -> str:
        first, last = self.bounds(query)
        if is_all(query):
            return "all"
        if self.edges is None:
            return str(first) if first == last else f"{first}..{last}"
        return f"[{self.edges[first]:g}, {self.edges[last + 1]:g})"

    def workload(self) -> list[Any]:
        check_workload(self.queries, self.size)
        pairs = itertools.combinations_with_replacement(range(self.size), 2)
        if self.edges is None:
            return list(pairs)
        return [(self.edges[first], self.edges[last + 1]) for first, last in pairs]

    def written(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.axis()}

    def axis(self) -> dict[str, Any]:
        """Size or edges, in writing. JSON has no infinity."""
        if self.edges is None:
            return {"size": self.size}
        return {"edges": [edge if math.isfinite(edge) else str(edge) for edge in self.edges]}

    def _inclusive(self, low: object, high: object) -> Bounds | None:
        first, last = whole_number(low), whole_number(high)
        return (first, last) if first is not None and last is not None and 0 <= first <= last < self.size else None

    def _half_open(self, low: object, high: object) -> Bounds | None:
        assert self.edges is not None
        ends = [_edge(low), _edge(high)]
        if None in ends or ends[0] not in self.edges or ends[1] not in self.edges:
            return None
        first, after = (self.edges.index(end) for end in ends if end is not None)
        return (first, after - 1) if first < after else None


@dataclass(frozen=True, init=False)
class Boxes:
    """How many items lie in a box over several axes. Each entry of `shape` is a size or the edges of an axis.

    The value of an item is a list of its coordinates; a query is a list of ranges, one for each axis, as `Ranges`
    reads them. "all" (or None) is a whole axis, or everything.

    >>> family = Boxes([4, 3])
    >>> family.cells, family.cell([2, 1]), family.cell([2]), family.vector([(1, 2), None]).tolist()
    (12, 7, None, [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    """

    axes: tuple[Ranges, ...]

    kind: ClassVar[str] = "boxes"
    unit: ClassVar[int] = 1

    def __init__(self, shape: Iterable[int | Sequence[float]]) -> None:
        axes = tuple(_axis(entry) for entry in shape)
        if not 1 <= len(axes) <= 16:
            raise ConfigurationError("boxes have 1 to 16 axes; give the size or the edges of each")
        check_universe(math.prod(axis.size for axis in axes))
        object.__setattr__(self, "axes", axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def queries(self) -> int:
        return math.prod(axis.queries for axis in self.axes)

    @property
    def shown(self) -> dict[str, Any]:
        return {"all": "all"}

    def cell(self, value: object) -> int | None:
        coordinates = entries(value, len(self.axes))
        if coordinates is None:
            return None
        place = 0
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            along = axis.cell(coordinate)
            if along is None:
                return None
            place = place * axis.size + along
        return place

    def bounds(self, query: Any) -> tuple[Bounds, ...]:
        """First and last cell of a query along each axis."""
        everywhere: list[object] = ["all"] * len(self.axes)
        ranges = everywhere if is_all(query) else entries(query, len(self.axes))
        if ranges is None:
            raise no_query("boxes", f'a list of {len(self.axes)} ranges (or "all"), one for each axis')
        return tuple(axis.bounds(one) for axis, one in zip(self.axes, ranges, strict=True))

    def vector(self, query: Any) -> IntArray:
        vector = np.zeros(self.shape, dtype=np.int64)
        vector[tuple(slice(first, last + 1) for first, last in self.bounds(query))] = 1
        return vector.reshape(-1)

    def name(self, query: Any) -> str:
        self.bounds(query)  # refuses what is no query
        ranges = ["all"] if is_all(query) else list(query)
        if all(map(is_all, ranges)):
            return "all"
        return " x ".join(axis.name(one) for axis, one in zip(self.axes, ranges, strict=True))

    def workload(self) -> list[Any]:
        check_workload(self.queries, self.cells)
        return list(itertools.product(*(axis.workload() for axis in self.axes)))

    def written(self) -> dict[str, Any]:
        return {"kind": self.kind, "shape": [next(iter(axis.axis().values())) for axis in self.axes]}


def is_all(query: Any) -> bool:
    """Whether everything is asked for."""
    return query is None or (type(query) is str and query == "all")


def _axis(entry: Any) -> Ranges:
    listed = isinstance(entry, list | tuple | np.ndarray)
    return Ranges(edges=entry) if listed else Ranges(size=entry)


def _edges(edges: Sequence[float]) -> tuple[float, ...]:
    if isinstance(edges, str | bytes) or not isinstance(edges, Sequence | np.ndarray):
        raise ConfigurationError("edges are a list of rising numbers")
    read = [_edge(edge) for edge in edges]
    if len(read) < 2 or any(edge is None for edge in read):
        raise ConfigurationError("edges are at least two numbers, each of them one that a float can hold exactly")
    rising = tuple(edge for edge in read if edge is not None)
    if any(low >= high for low, high in itertools.pairwise(rising)):
        raise ConfigurationError("edges must rise: each one is greater than the one before")
    return rising


def _edge(value: object) -> float | None:
    """A number that a float holds exactly, or an infinity, also in writing."""
    own = plain(value)
    if own in ("inf", "-inf") or (isinstance(own, float) and math.isinf(own)):
        return float(own)
    exact = number(own)
    if exact is None or abs(exact) > 2**1000:
        return None
    return float(exact) if float(exact) == exact else None
