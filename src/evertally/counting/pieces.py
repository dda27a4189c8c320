"""Noise without a horizon: pieces of a known length, one behind the other, each with a process of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.process import IntArray, NoiseProcess
from evertally.counting.survey import mean_variance, widest
from evertally.secret import Secret


class Pieces(Secret, ABC):
    """What the closed pieces hold plus the piece in force: the last noise of a closed piece stays. Not used directly;
    see `EpochProcess` and `BlockProcess`."""

    horizon: int | None = None
    _held: IntArray
    _inner: NoiseProcess

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._models: dict[int, NoiseProcess] = {}  # one-column processes, to ask for spreads
        self._closed: dict[int, Spread] = {}  # of the last noise of a piece
        self.seek(0)

    @abstractmethod
    def piece_of(self, tick: int) -> int:
        """The piece that a tick lies in; ticks count from 1, pieces from 0."""

    @abstractmethod
    def length(self, piece: int) -> int:
        """How many ticks a piece has."""

    @abstractmethod
    def before(self, piece: int) -> int:
        """How many ticks come before a piece."""

    @abstractmethod
    def worst(self) -> Spread:
        """The widest spread of all ticks, where there is one."""

    @abstractmethod
    def _process(self, piece: int, columns: int) -> NoiseProcess:
        """The process of a piece."""

    def advance(self, count: int = 1) -> IntArray:
        out = np.empty((count, self.columns), dtype=np.int64)
        done = 0
        while done < count:
            left = self.before(self._piece + 1) - self.tick
            part = min(left, count - done)
            noise = self._inner.advance(part)
            out[done : done + part] = noise + self._held
            self.tick += part
            done += part
            if part == left:
                self._piece += 1
                self._held = self._held + noise[-1]
                self._inner = self._process(self._piece, self.columns)
        return out

    def seek(self, tick: int) -> None:
        self.tick, self._piece = tick, self.piece_of(tick + 1)
        self._held = self._held_before(self._piece)
        self._inner = self._process(self._piece, self.columns)
        self._inner.seek(tick - self.before(self._piece))

    def _held_before(self, piece: int) -> IntArray:
        held = np.zeros(self.columns, dtype=np.int64)
        for k in range(piece):
            held += self._last_of(k)
        return held

    def _last_of(self, piece: int) -> IntArray:
        """The last noise of a piece."""
        closed = self._process(piece, self.columns)
        closed.seek(self.length(piece) - 1)
        last: IntArray = closed.advance(1)[0]
        return last

    def spread(self, tick: int) -> Spread:
        k = self.piece_of(tick)
        return self._with_held(self._model(k).spread(tick - self.before(k)), k)

    def worst_in(self, piece: int) -> Spread:
        """The widest spread over the ticks of a piece; it grows with the piece."""
        return self._with_held(self._model(piece).worst(), piece)

    def widest(self, tick: int) -> Spread | None:
        last = self.piece_of(tick)
        found = []
        for k in range(max(0, last - 1), last + 1):  # it grows with the piece
            own = widest(self._model(k), min(self.length(k), tick - self.before(k)))
            if own is None:
                return None
            found.append(self._with_held(own, k))
        return max(found, key=lambda spread: spread.stddev)

    def mean_variance(self, tick: int) -> float:
        total = 0.0
        for k in range(self.piece_of(tick) + 1):
            own, ticks = self._model(k), min(self.length(k), tick - self.before(k))
            first = own.spread(1)
            held = self._with_held(first, k).stddev ** 2 - first.stddev**2
            total += ticks * (held + mean_variance(own, ticks))
        return total / tick

    @property
    def exact_windows(self) -> bool:
        return bool(getattr(self._model(0), "exact_windows", False))

    def window_spread(self, tick: int, window: int) -> Spread:
        """Within a piece what is held falls out; of two pieces, the earlier one is left by its last noise. As exact as
        windows inside of a piece are."""
        then = tick - window
        if then <= 0:
            return self.spread(tick)
        now_in, then_in = self.piece_of(tick), self.piece_of(then)
        start = self.before(then_in)
        if now_in == then_in:
            return self._model(now_in).window_spread(tick - start, window)
        spread = self._model(now_in).spread(tick - self.before(now_in))
        for closed in range(then_in + 1, now_in):
            spread = spread + self._left_by(closed)
        left = self.before(then_in + 1) - then
        return spread + self._model(then_in).window_spread(self.length(then_in), left) if left else spread

    def _with_held(self, spread: Spread, piece: int) -> Spread:
        """The spread of a piece plus that of what the closed ones hold."""
        for closed in range(piece):
            spread = spread + self._left_by(closed)
        return spread

    def _left_by(self, closed: int) -> Spread:
        """The spread of what a closed piece leaves; every later tick asks for it."""
        if closed not in self._closed:
            self._closed[closed] = self._model(closed).spread(self.length(closed))
        return self._closed[closed]

    def _model(self, piece: int) -> NoiseProcess:
        if piece not in self._models:
            self._models[piece] = self._process(piece, 1)
        return self._models[piece]
