"""The noise of some of a mechanism's coordinates, by itself."""

from __future__ import annotations

from collections.abc import Iterable

from evertally.errors import ConfigurationError
from evertally.noise.laws import Law
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.noise.source import IntArray, Source
from evertally.secret import Secret


class SliceSource(Secret):
    """A source seen from coordinate `first` on: its coordinate j is coordinate first + j of the whole.

    An address names its coordinate, so who works on this source draws what the whole would draw there, and nothing
    else. Every noise process works on it unchanged.

    >>> from evertally.noise import DiscreteGaussian, simulation
    >>> whole, law = simulation(1).source("doc"), DiscreteGaussian(100)
    >>> part = SliceSource(whole, 5).draws("tree", law, [1, 2], coordinates=3)
    >>> bool((part == whole.draws("tree", law, [1, 2], coordinates=8)[:, 5:]).all())
    True
    """

    def __init__(self, source: Source, first: int) -> None:
        if first < 0:
            raise ConfigurationError("a slice begins at coordinate 0 or later")
        self._source, self._first = source, first

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return self._source.draws(lane, law, nodes, coordinates, self._first + first)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals | KnownReals:
        return self._source.reals(lane, law, nodes, coordinates, self._first + first)

    def order(self, message: bytes) -> bytes:
        return self._source.order(message)
