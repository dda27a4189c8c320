"""Other ways than a partition to answer from column sums: d counters, recomputation, and no data at all.

price-of-continual-release 3: M1-M3 (counters, then any query of them), M4 and M5 (the answer anew every r ticks), M6 (a
private selection every r ticks), M0 (a public function of the tick).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evertally.contract.in_place import stairs
from evertally.contract.parts import Accuracy
from evertally.contract.rows import Rows, from_bytes, to_bytes, total
from evertally.counting.process import IntArray, spread_of
from evertally.noise import Law, Source
from evertally.partition import Queries
from evertally.partition.intervals import NO_BOUND
from evertally.secret import Secret


@dataclass(frozen=True)
class Bound:
    """An error bound as a function of beta, with no standard deviation: the answer is no single noise."""

    of: Callable[[float], float]
    later: float = 0.0  # what may have come since, unseen
    stddev: None = None

    def radius(self, beta: float) -> float:
        return max(self.sides(beta))

    def sides(self, beta: float) -> tuple[float, float]:
        """How far the truth may be below the answer, and above it."""
        bound = self.of(beta)
        return bound, min(bound + self.later, NO_BOUND)


class Recomputation(Secret):
    """The answer anew at ticks 1, r + 1, 2r + 1, ...: m = ceil(T/r) times, whatever the horizon's remainder (trap P1).

    `answer(sums, k)` is the k-th release. Between releases the last one is repeated. `noise(beta)` bounds the error of
    all releases, `most` how much the answer grows in a tick; if nobody declared that, a repeated answer has no bound.
    """

    def __init__(
        self,
        columns: int,
        width: int,
        horizon: int,
        period: int,
        answer: Callable[[IntArray, int], IntArray],
        noise: Callable[[float], float],
        most: int | None,
    ) -> None:
        self.tick, self.width, self.period = 0, width, period
        self.releases = -(-horizon // period)
        self._answer, self._noise, self._most = answer, noise, most
        self._sums = np.zeros(columns, dtype=np.int64)
        self._last = np.zeros(width, dtype=np.int64)

    def advance(self, rows: Rows) -> tuple[IntArray, IntArray]:
        before, changes, start = self._last, [], 0
        for offset in range(-self.tick % self.period, len(rows), self.period):
            self._sums = self._sums + total(rows[start : offset + 1])
            start = offset + 1
            number = (self.tick + offset) // self.period + 1
            assert number <= self.releases, "the noise was made for fewer releases"
            self._last = self._answer(self._sums, number)
            changes.append((offset, self._last))
        self._sums = self._sums + total(rows[start:])
        self.tick += len(rows)
        return stairs(before, changes, len(rows))

    def _unseen(self, tick: int | None) -> float:
        age = self.period - 1 if tick is None else (tick - 1) % self.period
        return unseen(self._most, age)

    def accuracy(self, tick: int) -> Accuracy:
        return Bound(self._noise, self._unseen(tick))

    def error_bound(self, beta: float, tick: int | None) -> float:
        return self._noise(beta) + self._unseen(tick)

    def state(self) -> list[bytes]:
        return [to_bytes(self._sums), to_bytes(self._last)]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self._sums, self._last = map(from_bytes, parts)


def noisy_answers(queries: Queries, law: Law, source: Source) -> Callable[[IntArray, int], IntArray]:
    """M4 and M5: the queries of the exact sums, each with a draw of its own."""

    def answer(sums: IntArray, number: int) -> IntArray:
        noisy: IntArray = queries.values(sums) + source.draws("recompute", law, [number], queries.count)[0]
        return noisy

    return answer


def unseen(most: int | None, ticks: int) -> float:
    """How much an answer may grow in so many ticks: nobody knows, if nobody declared it."""
    return 0.0 if ticks == 0 else math.inf if most is None else float(most * ticks)


def noise_radius(law: Law, draws: int, beta: float) -> float:
    """What none of `draws` draws exceeds, up to probability beta."""
    return math.ceil(spread_of(law, 1.0, 1.0).radius(beta / draws))


class Constant(Secret):
    """M0: half of what the answer could be by now, or a fixed column. It never looks at a row.

    The truth lies between 0 and what `most` allows, if somebody declared how much an answer grows in a tick. `horizon`:
    of the stream.
    """

    def __init__(self, width: int, value: Callable[[int], int], most: int | None, horizon: int | None) -> None:
        self.tick, self.width = 0, width
        self._value, self._most, self._horizon = value, most, horizon

    def advance(self, rows: Rows) -> tuple[IntArray, None]:
        ticks = range(self.tick + 1, self.tick + len(rows) + 1)
        self.tick += len(rows)
        answers = np.fromiter((self._value(t) for t in ticks), dtype=np.int64, count=len(ticks))
        return np.repeat(answers[:, None], self.width, axis=1), None

    def accuracy(self, tick: int) -> Accuracy:
        value = self._value(tick)
        return Bound(lambda beta: float(value), max(0.0, unseen(self._most, tick) - 2 * value))

    def error_bound(self, beta: float, tick: int | None) -> float:
        # The value is half of what is possible, or less: the truth is farthest above it, at the last tick.
        last = tick if tick is not None else self._horizon
        assert last is not None
        return max(float(self._value(last)), unseen(self._most, last) - self._value(last))

    def state(self) -> list[bytes]:
        return []

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
