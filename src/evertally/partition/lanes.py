"""A part of a source: the same noise under lanes of its own."""

from __future__ import annotations

from collections.abc import Iterable

from evertally.counting.process import IntArray
from evertally.noise import Law, Source
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.secret import Secret


class Lanes(Secret):
    """Engines that must not share randomness get lanes with different prefixes (parameterized-histograms 2.5)."""

    def __init__(self, source: Source, prefix: str) -> None:
        self._source, self._prefix = source, prefix

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return self._source.draws(f"{self._prefix}/{lane}", law, nodes, coordinates, first)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals | KnownReals:
        return self._source.reals(f"{self._prefix}/{lane}", law, nodes, coordinates, first)

    def order(self, message: bytes) -> bytes:
        return self._source.order(message)
