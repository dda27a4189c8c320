"""The families of plain counts: how many there are, and how many of each category."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evertally.dynamic.families.family import IntArray, check_universe, check_workload, looked_up, no_query
from evertally.encode.door import declared_labels
from evertally.encode.labels import canonical


@dataclass(frozen=True)
class Count:
    """How many items are present. Every value lies in the one cell; the one query is "count".

    >>> family = Count()
    >>> family.cell("whatever"), family.vector("count").tolist(), family.shown
    (0, [1], {'count': 'count'})
    """

    kind: ClassVar[str] = "count"
    cells: ClassVar[int] = 1
    unit: ClassVar[int] = 1
    queries: ClassVar[int] = 1

    @property
    def shown(self) -> dict[str, Any]:
        return {"count": "count"}

    def cell(self, value: object) -> int | None:
        return 0

    def vector(self, query: Any) -> IntArray:
        if query is not None and query != "count":
            raise no_query("a count", 'named "count": there is only one')
        return np.ones(1, dtype=np.int64)

    def name(self, query: Any) -> str:
        return "count"

    def workload(self) -> list[Any]:
        return ["count"]

    def written(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True, init=False)
class Points:
    """How many items of each declared category are present; a query is a category.

    Labels are read as everywhere (7, 7.0 and "7" are one); undeclared ones lie in `other`, or nowhere without it.

    >>> family = Points(["red", "green"], other="rest")
    >>> [family.cell(value) for value in ("green", "mauve", None)], family.vector("green").tolist()
    ([1, 2, None], [0, 1, 0])
    """

    categories: tuple[str, ...]
    other: str | None

    kind: ClassVar[str] = "points"
    unit: ClassVar[int] = 1

    def __init__(self, categories: Iterable[object], other: object | None = None) -> None:
        labels = declared_labels(categories, other)
        check_universe(len(labels))
        object.__setattr__(self, "categories", labels[:-1] if other is not None else labels)
        object.__setattr__(self, "other", labels[-1] if other is not None else None)
        object.__setattr__(self, "_index", {label: i for i, label in enumerate(labels)})

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the cells."""
        return self.categories if self.other is None else (*self.categories, self.other)

    @property
    def cells(self) -> int:
        return len(self._cells())

    @property
    def queries(self) -> int:
        return self.cells

    @property
    def shown(self) -> dict[str, Any]:
        return {label: label for label in self.labels}

    def cell(self, value: object) -> int | None:
        label = canonical(value)
        if label is None:
            return None
        found = self._cells().get(label)
        return len(self.categories) if found is None and self.other is not None else found

    def vector(self, query: Any) -> IntArray:
        vector = np.zeros(self.cells, dtype=np.int64)
        vector[self.place(query)] = 1
        return vector

    def place(self, query: Any) -> int:
        """The cell that a query names."""
        place = looked_up(self._cells(), query)
        if place is None:
            raise no_query("points", "one of the declared categories")
        return place

    def name(self, query: Any) -> str:
        return self.labels[self.place(query)]

    def workload(self) -> list[Any]:
        check_workload(self.cells, self.cells)
        return list(self.labels)

    def written(self) -> dict[str, Any]:
        kept: dict[str, Any] = {"kind": self.kind, "categories": list(self.categories)}
        return kept if self.other is None else {**kept, "other": self.other}

    def _cells(self) -> dict[str, int]:
        index: dict[str, int] = self.__dict__["_index"]
        return index
