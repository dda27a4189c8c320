"""Coordinates that nobody listed: exact sums of whatever occurred, noise of a coordinate only when it is asked for.

factorization-counting 5 and 6.0 [R]. The noise of a coordinate at a tick has the address (counter, coordinate, tick):
it does not depend on when the coordinate was first asked for, nor on whether it ever occurred. What is asked for may
follow from public things and earlier releases, never from the exact table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from evertally.applications.encoder import Changes, Encoder
from evertally.applications.records import Records
from evertally.bounds.joint import of_column
from evertally.contract.admission import AdmissionEngine
from evertally.contract.parts import Accuracy, IntArray, Played
from evertally.counting.process import NoiseProcess, path_bound
from evertally.noise import ItemSource, Law
from evertally.noise.source import Addresses, item_addresses
from evertally.secret import Secret


class NamedCoordinates(Secret):
    """A source whose coordinates are labels: the noise of each is that of its name, whatever others are asked for."""

    def __init__(self, source: ItemSource, labels: Sequence[str]) -> None:
        self._source = source
        self._addresses: Addresses = item_addresses(source, labels)

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        items = self._addresses[first : first + coordinates]
        rows = [self._source.item_draws(lane, law, int(node), items) for node in nodes]
        return np.stack(rows) if rows else np.empty((0, coordinates), dtype=np.int64)

    def order(self, message: bytes) -> bytes:
        return self._source.order(message)


class Sums(Secret):
    """An encoder, and the exact sums of what it said, in one more table of its own."""

    def __init__(self, encoder: Encoder, limit: int) -> None:
        self.encoder, self._limit = encoder, limit
        self._sums = encoder.table()
        self.begin, self.undo, self.save, self.load = encoder.begin, encoder.undo, encoder.save, encoder.load

    def admit(self, arrivals: Records) -> None:
        changes: Changes = self.encoder.changes(arrivals)
        for label, amount in changes.items():
            if amount:
                self._sums.add(label, max(-self._limit, min(self._limit, amount)))

    def of(self, labels: Sequence[str]) -> IntArray:
        """Exact, hence secret."""
        return np.array([self._sums.get(label, 0) for label in labels], dtype=np.int64)


class LazyEngine(AdmissionEngine):
    """Releases the coordinates `shown` at every tick, and any other one when it is asked for.

    `make(columns, source)` builds the noise process; `askable` is how many coordinates there are to be asked for, all
    of which `error_bound` covers.
    """

    def __init__(
        self,
        rule: Sums,
        make: Callable[[int, Any], NoiseProcess],
        source: ItemSource,
        shown: Sequence[str],
        askable: int,
    ) -> None:
        self.rule: Any = rule
        self._make, self._source, self._shown, self._askable = make, source, list(shown), askable
        self.width = len(self._shown)
        self.noise = self._noise_of(self._shown)

    def _noise_of(self, labels: Sequence[str]) -> NoiseProcess:
        return self._make(max(1, len(labels)), NamedCoordinates(self._source, labels or [""]))

    def start(self) -> None:
        return None

    def begin(self, tick: int) -> None:
        self.rule.begin(tick)

    def play(self, batch: Sequence[Records], state: None) -> Played:
        exact = []
        for records in batch:
            self.rule.admit(records)
            exact.append(self.rule.of(self._shown))
        rows = np.stack(exact) + self.noise.advance(len(batch))[:, : self.width]
        return Played(rows, None, None)

    def answers(self, labels: Sequence[str], tick: int) -> IntArray:
        """What is released of these coordinates at the last tick: exact sum plus noise, occurred or not."""
        noise = self._noise_of(labels)
        noise.seek(tick - 1)
        return np.asarray(self.rule.of(labels) + noise.advance(1)[0], dtype=np.int64)

    def go_back(self, tick: int, state: None) -> None:
        self.rule.undo(tick)
        noise = self._noise_of(self._shown)
        noise.seek(tick)
        self.noise = noise

    def accuracy(self, tick: int) -> Accuracy:
        return self.noise.spread(tick)

    def window(self, tick: int, window: int) -> Accuracy:
        return self.noise.window_spread(tick, window)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """Of every coordinate that can be asked for: N = T x askable in the union bound (6.0)."""
        return path_bound(self._noise_of([""]), of_column(beta, self._askable), tick)

    def save(self, state: None) -> list[bytes]:
        return [self.rule.save()]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.rule.load(tick, parts[0])
        self.noise.seek(tick)
