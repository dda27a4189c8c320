"""Several noise processes as one, each with its own columns and its own law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.process import IntArray, NoiseProcess, go_to, remembered
from evertally.counting.survey import widest
from evertally.errors import StateError
from evertally.secret import Secret


class SideBySide(Secret):
    """The columns of all parts, in their order. Spreads are those of the widest part; `parts` know their own.

    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.noise import ZeroNoise
    >>> from evertally.privacy import Change, PureDP
    >>> def part(eps):
    ...     return AccumulatingProcess(PureDP(eps), Change(1, 1, 1), horizon=4, columns=2, source=ZeroNoise().source())
    >>> both = SideBySide([part(1), part(2)])
    >>> both.advance(3).shape, both.worst() == both.parts[0].worst()
    ((3, 4), True)
    """

    def __init__(self, parts: Sequence[NoiseProcess]) -> None:
        self.parts = list(parts)
        self.columns = sum(part.columns for part in parts)
        self.horizon, self.tick = parts[0].horizon, 0

    def advance(self, count: int = 1) -> IntArray:
        noise = np.concatenate([part.advance(count) for part in self.parts], axis=1)
        self.tick += count
        return noise

    def seek(self, tick: int) -> None:
        for part in self.parts:
            part.seek(tick)
        self.tick = tick

    def memory(self) -> bytes:
        kept = [b"".join(remembered(part)) for part in self.parts]
        return b"".join([*(len(one).to_bytes(8, "little") for one in kept), *kept])

    def recall(self, tick: int, memory: bytes) -> None:
        start = 8 * len(self.parts)
        sizes = [int.from_bytes(memory[8 * i : 8 * i + 8], "little") for i in range(len(self.parts))]
        if start + sum(sizes) != len(memory):
            raise StateError("these bytes are not the noise of these processes; restore from an intact snapshot")
        for part, size in zip(self.parts, sizes, strict=True):
            go_to(part, tick, [memory[start : start + size]] if size else [])
            start += size
        self.tick = tick

    def spread(self, tick: int) -> Spread:
        return max((part.spread(tick) for part in self.parts), key=_deviation)

    def worst(self) -> Spread:
        return max((part.worst() for part in self.parts), key=_deviation)

    def widest(self, tick: int) -> Spread | None:
        found = [widest(part, tick) for part in self.parts]
        known = [spread for spread in found if spread is not None]
        return max(known, key=_deviation) if len(known) == len(found) else None

    @property
    def exact_windows(self) -> bool:
        # Of several laws the widest at one tick need not be the widest at another: then nothing follows about sums.
        return len(self.parts) == 1 and bool(getattr(self.parts[0], "exact_windows", False))

    def window_spread(self, tick: int, window: int) -> Spread:
        return max((part.window_spread(tick, window) for part in self.parts), key=_deviation)


def _deviation(spread: Spread) -> float:
    return spread.stddev
