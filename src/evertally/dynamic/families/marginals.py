"""Marginal tables: how many items have these values of a few attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evertally.dynamic.families.family import (
    IntArray,
    check_universe,
    check_workload,
    entries,
    looked_up,
    no_query,
    table_of,
)
from evertally.encode.door import declared_labels
from evertally.encode.plain import plain
from evertally.errors import ConfigurationError
from evertally.integers import own_integer, whole

Domain = int | Iterable[object]
Declared = Mapping[str, Domain] | Sequence[tuple[str, Domain]]
Pattern = tuple[tuple[int, int], ...]  # (attribute, value) pairs by number, attributes rising


@dataclass(frozen=True, init=False)
class Marginals:
    """How many items have given values of up to `order` attributes.

    `attributes` names each attribute and its values (a number n stands for 0..n-1). The value of an item names all of
    its attributes, or lists their values in order; a query names at most `order` attributes and one value of each.

    >>> family = Marginals({"ward": ["north", "south"], "age": 3}, order=1)
    >>> family.cells, family.cell({"ward": "south", "age": 2}), family.cell(["north", 1]), family.cell({"age": 1})
    (6, 5, 1, None)
    >>> family.vector({"ward": "south"}).tolist(), family.name({"ward": "south"})
    ([0, 0, 0, 1, 1, 1], 'ward=south')
    """

    attributes: tuple[tuple[str, tuple[str, ...]], ...]
    order: int

    kind: ClassVar[str] = "marginals"
    unit: ClassVar[int] = 1

    def __init__(self, attributes: Declared, order: int) -> None:
        table = table_of(attributes)
        if not table:
            raise ConfigurationError("attributes are a table: the name of each one, and its values or their number")
        names = declared_labels(table)
        values = tuple(_domain(name, domain) for name, domain in zip(names, table.values(), strict=True))
        check_universe(math.prod(map(len, values)))
        object.__setattr__(self, "attributes", tuple(zip(names, values, strict=True)))
        object.__setattr__(self, "order", whole("the order of marginals", order, 0, len(names)))
        numbers = tuple({label: i for i, label in enumerate(domain)} for domain in values)
        object.__setattr__(self, "_numbers", numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(len(domain) for _, domain in self.attributes)

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def queries(self) -> int:
        """The coefficients of prod (1 + n_i z) up to z^order: one query for each choice of attributes and values."""
        counts = [1] + [0] * self.order
        for n in self.shape:
            counts = [c + (n * counts[k - 1] if k else 0) for k, c in enumerate(counts)]
        return sum(counts)

    @property
    def shown(self) -> dict[str, Any]:
        """The total, and if the order is at least 1 the table of each attribute."""
        one = [{name: label} for name, domain in self.attributes for label in domain] if self.order else []
        return {self.name(query): query for query in [{}, *one]}

    def cell(self, value: object) -> int | None:
        listed = self._listed(value)
        if listed is None:
            return None
        place = 0
        for label, known in zip(listed, self._known(), strict=True):
            along = looked_up(known, label)
            if along is None:
                return None
            place = place * len(known) + along
        return place

    def pattern(self, query: Any) -> Pattern:
        """A query as numbers of attributes and of their values."""
        if not isinstance(query, Mapping) or len(query) > self.order:
            raise no_query("marginals", f"a table of at most {self.order} attributes, each with one of its values")
        names = [name for name, _ in self.attributes]
        found = []
        for name, value in query.items():
            if name not in names:
                raise no_query("marginals", f"a table of declared attributes: {', '.join(names)}")
            place = names.index(name)
            number = looked_up(self._known()[place], value)
            if number is None:
                raise no_query("marginals", f"a table of attributes and values; {name!r} has no such value")
            found.append((place, number))
        return tuple(sorted(found))

    def vector(self, query: Any) -> IntArray:
        vector = np.zeros(self.shape, dtype=np.int64)
        where: list[Any] = [slice(None)] * len(self.attributes)
        for place, number in self.pattern(query):
            where[place] = number
        vector[tuple(where)] = 1
        return vector.reshape(-1)

    def name(self, query: Any) -> str:
        named = [f"{self.attributes[a][0]}={self.attributes[a][1][v]}" for a, v in self.pattern(query)]
        return ", ".join(named) or "all"

    def tables(self) -> list[tuple[int, ...]]:
        """The attributes of each table of highest order; all other tables are sums of these."""
        return list(itertools.combinations(range(len(self.attributes)), self.order))

    def workload(self) -> list[Any]:
        check_workload(self.queries, self.cells)
        chosen = (itertools.combinations(self.attributes, k) for k in range(self.order + 1))
        return [
            {name: label for (name, _), label in zip(some, labels, strict=True)}
            for some in itertools.chain.from_iterable(chosen)
            for labels in itertools.product(*(domain for _, domain in some))
        ]

    def written(self) -> dict[str, Any]:
        attributes = [[name, list(domain)] for name, domain in self.attributes]
        return {"kind": self.kind, "attributes": attributes, "order": self.order}

    def _listed(self, value: Any) -> list[object] | None:
        if issubclass(type(value), dict):
            items: list[tuple[Any, Any]] = list(dict.items(value))
            given = {plain(name): label for name, label in items}
            return [given.get(name) for name, _ in self.attributes]
        return entries(value, len(self.attributes))

    def _known(self) -> tuple[dict[str, int], ...]:
        numbers: tuple[dict[str, int], ...] = self.__dict__["_numbers"]
        return numbers


def _domain(name: str, domain: Any) -> tuple[str, ...]:
    size = own_integer(domain)
    if size is None and not isinstance(domain, Iterable):
        raise ConfigurationError(f"the attribute {name!r} needs a list of its values, or their number")
    if size is not None and not 1 <= size <= 2**22:
        raise ConfigurationError(f"the attribute {name!r} has between 1 and 2^22 values")
    return declared_labels(domain if size is None else range(size))
