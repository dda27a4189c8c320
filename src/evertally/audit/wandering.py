"""Streams that nobody thought of, and which of them are worth many games.

Both sides of a stream are played a few times with common random numbers. Where noise does not depend on data, what both
show then differs by the change alone, always in the same way. What differs in form, or in another way in every game, is
worth a look: a failure, a label, a branch that data decide. This only chooses streams; honest ones may differ so, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.audit.adversaries import worst_pair
from evertally.audit.game import Adversary, Factory, FloatArray, IntArray, Move
from evertally.audit.outcomes import Pair, Seen

_SIZES = (1, 2, 5, 12, 40, 150)  # of the numbers in a stream
_SMALL = 24  # numbers that are all tried, given streams enough


class Wandering(Adversary):
    """A stream and a challenge by number: small and large numbers, many and few, a change of anything at any tick."""

    adaptive = False

    def __init__(self, model: Any, number: int) -> None:
        self._model, self.number = model, number
        self.name = f"wandering stream {number}"

    def begin(self, trials: int, ticks: int, columns: int) -> None:
        super().begin(trials, ticks, columns)
        chance = _Chance(self.number)
        largest, filled = chance.one_of(_SIZES), chance.one_of((0, 3, 10))
        cells = [chance.below(largest + 1) if chance.below(10) < filled else 0 for _ in range(ticks * columns)]
        self._rows = np.array(cells, dtype=np.int64).reshape(ticks, columns)
        self._at = 1 + chance.below(ticks)
        turn = chance.below(columns)
        left, right = (np.roll(side, turn) for side in worst_pair(self._model))
        # A pair on top of what is there anyway, or of one small number after the other.
        turns = np.full(columns, self.number // 2 % _SMALL, dtype=np.int64)
        base = turns if self.number % 2 else self._rows[self._at - 1]
        self._pair: tuple[IntArray, IntArray] = base + left, base + right

    def move(self, tick: int, releases: FloatArray) -> Move:
        rows = np.tile(self._rows[tick - 1], (self.trials, 1))
        if tick != self._at:
            return Move(rows)
        left, right = (np.tile(row, (self.trials, 1)) for row in self._pair)
        return Move(rows, np.ones(self.trials, dtype=bool), left, right)


class _Chance:
    """A fixed little generator: the streams are public, nothing secret hangs on it."""

    def __init__(self, seed: int) -> None:
        self._state = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64

    def below(self, count: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % count

    def one_of(self, values: Sequence[int]) -> int:
        return values[self.below(len(values))]


def telling_streams(factory: Factory, model: Any, ticks: int, count: int, tried: int, seed: int) -> list[Wandering]:
    """Of many streams those whose sides differ most, with common random numbers."""
    found = []
    for number in range(tried):
        adversary = Wandering(model, number)
        found.append((*_difference(*Pair(factory, adversary, ticks).watch(4, seed)), -number))
    odd = sorted(found, reverse=True)
    large = sorted(found, key=lambda stream: stream[1], reverse=True)
    # In turn the oddest and the one with the largest difference.
    chosen = dict.fromkeys(-stream[2] for pair in zip(odd, large, strict=True) for stream in pair)
    return [Wandering(model, number) for number in list(chosen)[:count]]


def _difference(left: Seen, right: Seen) -> tuple[float, float]:
    """In how many places the sides differ in form or in a way that changes from game to game; and by how much."""
    odd = float(sum((left.forms(t) != right.forms(t)).sum() for t in range(len(left.ticks))))
    size = 0.0
    for place in sorted(set(left.places) | set(right.places)):
        a, b = left.released(place), right.released(place)
        odd += float((np.isnan(a) != np.isnan(b)).sum() + (np.signbit(a) & (a == 0) & ~np.signbit(b)).sum())
        moved = np.nan_to_num(a - b, posinf=0.0, neginf=0.0)
        odd += float(np.ptp(moved) > 1e-6) + float((np.mod(np.abs(moved) + 1e-9, 1.0) > 1e-6).any())
        size += float(np.abs(moved).mean())
    return odd, size
