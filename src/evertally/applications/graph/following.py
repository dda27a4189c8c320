"""The encoder of a function of graphs: F(G_t) - F(G_(t-1)), edge by edge (factorization-counting 6.5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.gates import Gate
from evertally.applications.records import Record, Records
from evertally.secret import Secret


class GraphFunction(Secret, ABC):
    """A function of a graph, kept up to date edge by edge: each call adds what it changes to `changes`."""

    @abstractmethod
    def insert(self, edge: Record, changes: Changes) -> None:
        """The graph gets this edge."""

    @abstractmethod
    def delete(self, edge: Record, changes: Changes) -> None:
        """The graph loses this edge, which it has."""

    def insert_all(self, edges: list[Record], changes: Changes) -> None:
        """A whole public graph."""
        for edge in edges:
            self.insert(edge, changes)


class Following(Encoder):
    """Records through a gate into a function. What holds before the first tick is public, and is part of it.

    `gate` and `function` make their tables in this encoder; `edges` is the public graph before the first tick,
    `empty` the function of a graph without edges.
    """

    def __init__(
        self,
        gate: Callable[[Encoder], Gate],
        function: Callable[[Encoder], GraphFunction],
        edges: list[Record],
        empty: Mapping[Any, int],
        deletes: bool,
    ) -> None:
        super().__init__()
        self._begun = self.table()
        self._gate, self._function, self._deletes = gate(self), function(self), deletes
        self.start: Changes = {**empty}
        self._function.insert_all(edges, self.start)

    def changes(self, records: Records) -> Changes:
        changes = super().changes(records)
        if 0 not in self._begun:
            self._begun.put(0, 1)
            for coordinate, amount in self.start.items():
                add(changes, coordinate, amount)
        return changes

    def encode(self, record: Record, changes: Changes) -> None:
        if self._gate.admit(record):
            change = self._function.delete if self._deletes else self._function.insert
            change(record, changes)
