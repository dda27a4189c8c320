"""Functions of the degrees alone: stars, vertices of high degree, the degree histogram."""

from __future__ import annotations

from abc import abstractmethod
from math import comb

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.following import GraphFunction
from evertally.applications.records import Record


class DegreeFunction(GraphFunction):
    """A sum over vertices of something that depends on the degree."""

    def __init__(self, encoder: Encoder) -> None:
        self._degrees = encoder.table()

    def insert(self, edge: Record, changes: Changes) -> None:
        for end in edge[:2]:
            degree = self._degrees.add(end, 1)
            self.between(degree, 1, changes)

    def delete(self, edge: Record, changes: Changes) -> None:
        for end in edge[:2]:
            degree = self._degrees.add(end, -1)
            self.between(degree + 1, -1, changes)

    @abstractmethod
    def between(self, degree: int, sign: int, changes: Changes) -> None:
        """A vertex gets `degree` edges, one more than it had (sign 1), or loses the last of them (sign -1)."""


class StarCount(DegreeFunction):
    """C(min(degree, D), k), summed: the new edge makes a star with every k - 1 others."""

    def __init__(self, encoder: Encoder, k: int, largest: int) -> None:
        super().__init__(encoder)
        self._k, self._largest = k, largest

    def between(self, degree: int, sign: int, changes: Changes) -> None:
        if degree <= self._largest:
            add(changes, 0, sign * comb(degree - 1, self._k - 1))


class CountAbove(DegreeFunction):
    """Vertices with at least so many edges."""

    def __init__(self, encoder: Encoder, threshold: int) -> None:
        super().__init__(encoder)
        self._threshold = threshold

    def between(self, degree: int, sign: int, changes: Changes) -> None:
        if degree == self._threshold:
            add(changes, 0, sign)


class DegreeBins(DegreeFunction):
    """How many vertices have each degree, from `lowest` on; the last bin holds `largest` and all above."""

    def __init__(self, encoder: Encoder, lowest: int, largest: int) -> None:
        super().__init__(encoder)
        self._lowest, self._largest = lowest, largest

    def between(self, degree: int, sign: int, changes: Changes) -> None:
        if degree <= self._largest:
            add(changes, degree - self._lowest, sign)
            if degree > self._lowest:
                add(changes, degree - 1 - self._lowest, -sign)
