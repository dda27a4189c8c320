"""Which records become edges: copies, degree bounds, deletions (factorization-counting 6.5).

A gate looks at a record and at what came before, and says whether the graph changes. That costs privacy: what one
record does to later ones at the gate is part of the certified sensitivity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from evertally.applications.encoder import Encoder
from evertally.applications.records import Record
from evertally.secret import Secret


class Gate(Secret, ABC):
    """Says of each record whether it becomes an edge, or takes one away."""

    @abstractmethod
    def admit(self, edge: Record) -> bool:
        """Takes a record into account; whether it counts."""


class EveryRecord(Gate):
    """Every copy counts: no state."""

    def admit(self, edge: Record) -> bool:
        return True


class FirstCopies(Gate):
    """A copy of an edge is nothing after the first."""

    def __init__(self, encoder: Encoder) -> None:
        self._seen = encoder.table()

    def admit(self, edge: Record) -> bool:
        if edge[:2] in self._seen:
            return False
        self._seen.put(edge[:2], 1)
        return True


class Ranked(Gate):
    """The projection: of the different edges at a vertex, in the order of their first arrival, the first D are kept; an
    edge that both ends keep is kept for ever.

    Ranks count arrivals, kept or not: ranks of kept edges would let one edge decide about the next, and so on
    without an end.
    """

    def __init__(self, encoder: Encoder, degree: int) -> None:
        self._first, self._degree = FirstCopies(encoder), degree
        self._ranks = encoder.table()

    def admit(self, edge: Record) -> bool:
        return self._first.admit(edge) and self._low(edge)

    def _low(self, edge: Record) -> bool:
        one, other = self._ranks.add(edge[0], 1), self._ranks.add(edge[1], 1)
        return max(one, other) <= self._degree


class RankedArrivals(Ranked):
    """The projection of a graph in which every copy counts: ranks of all records."""

    def admit(self, edge: Record) -> bool:
        return self._low(edge)


class Present(Gate):
    """Deletions: an edge that is gone, or never was, is not deleted again."""

    def __init__(self, encoder: Encoder, edges: list[Record]) -> None:
        self._here = encoder.table()
        for edge in edges:
            self._here.put(edge[:2], 1)

    def admit(self, edge: Record) -> bool:
        if edge[:2] not in self._here:
            return False
        self._here.put(edge[:2], None)
        return True
