"""A source of noise whose random bits are known, and can be chosen: to the last bit that anybody reads.

Real variates are functions of infinitely many bits, of which fast ways read a prefix. Here a variate can be given any
value with hundreds of bits, so that a sum of variates comes as close to the border of two integers as one likes; and
the exact value of every variate can be read, by the definition (docs/theory/samplers.md, 8), not by a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from evertally.balls import at_precision
from evertally.noise import Law
from evertally.noise.keystream import Keystream
from evertally.noise.reals import RealKind, RealLaw, Reals
from evertally.noise.source import KeyedSource

Address = tuple[str, int, int]  # lane, node, column

BITS = 640  # of a variate that is read or planted, in balls
_ROUND = 128
_FIRST = 127  # bits of V in the first round; the lowest bit of its first word is the sign
_ROUNDS = 6  # of planted bits: whatever comes after them is zero
_PLANTED = _FIRST + (_ROUNDS - 1) * _ROUND


class PlantedSource(KeyedSource):
    """Noise of a fixed key, but for what is planted.

    >>> source, law = PlantedSource(), RealLaw("normal", "doc")
    >>> source.plant(("path", 3, 0), law.kind, arb("1.25"))
    >>> drawn = source.reals("path", law, range(3, 4)).value[0, 0]
    >>> float(drawn), at_precision(BITS, lambda: float(source.variate("path", law, 3, 0)))
    (1.25, 1.25)
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed.to_bytes(32, "little"))
        self._integers: dict[Address, int] = {}
        self._bits: dict[Address, tuple[int, int]] = {}  # the sign bit, and V in units of 2^-767

    def plant(self, at: Address, kind: RealKind | None, value: Any) -> None:
        """An integer draw (no kind), or a real variate as near to a ball as 767 bits of V allow."""
        if kind is None:
            self._integers[at] = int(value)
            return

        def bits() -> int:
            size = abs(value)
            v = (size / arb(2).sqrt()).erfc() if kind == "normal" else (-size).exp()
            whole = int((v * arb(2) ** _PLANTED).mid().floor().unique_fmpz())
            return min(max(whole, 1), (1 << _PLANTED) - 1)

        self._bits[at] = int(value < 0), at_precision(_PLANTED + 64, bits)

    def draws(
        self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0
    ) -> NDArray[np.int64]:
        index = [int(node) for node in nodes]
        drawn = super().draws(lane, law, index, coordinates, first)
        for i, node in enumerate(index):
            for j in range(coordinates if self._integers else 0):
                if (lane, node, first + j) in self._integers:
                    drawn[i, j] = self._integers[lane, node, first + j]
        return drawn

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals:
        stream = self._stream(lane, law)
        words = stream.words(np.arange(nodes.start, nodes.stop, nodes.step), first, coordinates)
        for i, node in enumerate(nodes if self._bits else ()):
            for j in range(coordinates):
                if (lane, node, first + j) in self._bits:
                    words[i, j] = np.array(self._round(stream, (lane, node, first + j), 0), dtype=np.uint64)
        return Reals(law.kind, words, lambda i, j, round_: self._round(stream, (lane, nodes[i], first + j), round_))

    def variate(self, lane: str, law: RealLaw, node: int, column: int) -> arb:
        """A variate, by its definition, from 767 bits: at the precision of the moment."""
        stream = self._stream(lane, law)
        rounds = [self._round(stream, (lane, node, column), round_) for round_ in range(_ROUNDS)]
        v = rounds[0][0] >> 1
        for number, (one, other) in enumerate(rounds):
            v = v << 64 | other if number == 0 else v << 128 | one << 64 | other
        ball = arb(2 * v + 1, 1) * arb(2) ** (-_PLANTED - 1)
        size = arb(2).sqrt() * ball.erfcinv() if law.kind == "normal" else -ball.log()
        return -size if rounds[0][0] & 1 else size

    def _round(self, stream: Keystream, at: Address, round_: int) -> tuple[int, int]:
        planted = self._bits.get(at)
        if planted is None:
            _, node, column = at
            words = stream.words([node], column, 1, round_)[0, 0]
            return int(words[0]), int(words[1])
        sign, v = planted
        low = (1 << 64) - 1
        if round_ == 0:
            top = v >> (_PLANTED - _FIRST)
            return (top >> 64) << 1 | sign, top & low
        shift = _PLANTED - _FIRST - round_ * _ROUND
        part = (v >> shift if shift >= 0 else 0) & ((1 << _ROUND) - 1)
        return part >> 64, part & low
