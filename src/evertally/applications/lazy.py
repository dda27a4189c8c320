"""Coordinates that nobody listed: exact sums of whatever occurred, noise of a coordinate only when it is asked for.

factorization-counting 5 and 6.0 [R]. The noise of a coordinate at a tick has the address (counter, coordinate, tick):
it does not depend on when the coordinate was first asked for, nor on whether it ever occurred. What is asked for may
follow from public things and earlier releases, never from the exact table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.applications.encoder import Changes, Encoder
from evertally.applications.records import Records
from evertally.bounds.joint import of_column
from evertally.contract.admission import AdmissionEngine
from evertally.contract.parts import Accuracy, IntArray, Played
from evertally.counting.choose import Choice, build
from evertally.counting.process import NoiseProcess, Settled, go_to, path_bound, remembered
from evertally.counting.processes import PROCESSES, Setting
from evertally.counting.survey import widest
from evertally.noise import ItemSource, Law
from evertally.noise.reals import RealLaw, SideBySide
from evertally.noise.source import Addresses, item_addresses
from evertally.secret import Secret

NUMBERED = 2**32  # coordinates have this many addresses; beyond, and for labels, it is a keyed digest
Name = int | str  # of a coordinate

_AT_ONCE = 2**22  # numbers that are drawn together for coordinates far apart


class ChosenCoordinates(Secret):
    """A source of which some coordinates are looked at: the noise of each is its own, whatever others are asked for.

    `names` are injective: numbers that are all below `limit`, which is public, or labels (`limit` None).
    """

    def __init__(self, source: ItemSource, names: Sequence[Name], limit: int | None) -> None:
        self._source = source
        self._numbers: list[Any] | None = list(names) if limit is not None and limit <= NUMBERED else None
        if self._numbers is None:
            self._addresses: Addresses = item_addresses(source, [str(name) for name in names])
            self._drawn: tuple[Any, IntArray] | None = None

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        nodes = nodes if isinstance(nodes, range) else np.fromiter(nodes, dtype=np.int64)
        if self._numbers is None:
            return self._by_digest(lane, law, nodes, coordinates, first)
        runs = _runs(self._numbers[first : first + coordinates])
        return np.concatenate([self._source.draws(lane, law, nodes, count, number) for number, count in runs], axis=1)

    def _by_digest(self, lane: str, law: Law, nodes: range | IntArray, coordinates: int, first: int) -> IntArray:
        # A node has a cipher of its own here, so all coordinates are drawn while it is at hand: processes that go
        # through their coordinates two by two would make it again for each two.
        asked = (lane, law.text(), tuple(nodes) if len(nodes) < 64 else (int(nodes[0]), int(nodes[-1]), len(nodes)))
        if self._drawn is None or self._drawn[0] != asked or not isinstance(nodes, range):
            whole = len(nodes) * len(self._addresses) <= _AT_ONCE
            items = self._addresses if whole else self._addresses[first : first + coordinates]
            rows = [self._source.item_draws(lane, law, int(node), items) for node in nodes]
            drawn = np.stack(rows) if rows else np.empty((0, len(items)), dtype=np.int64)
            if not whole:
                return drawn
            self._drawn = (asked, drawn)
        return self._drawn[1][:, first : first + coordinates].copy()

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Any:
        if self._numbers is None:
            return self._source.item_reals(lane, law, nodes, self._addresses[first : first + coordinates])
        runs = _runs(self._numbers[first : first + coordinates])
        parts = [self._source.reals(lane, law, nodes, count, number) for number, count in runs]
        return parts[0] if len(parts) == 1 else SideBySide(parts)

    def order(self, message: bytes) -> bytes:
        return self._source.order(message)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First number and length of each run of neighbours: all words of a small domain are one."""
    ends = [0, *(i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1), len(numbers)]
    return [(numbers[start], stop - start) for start, stop in pairwise(ends)]


class Sums(Secret):
    """An encoder, and the exact sums of what it said, in one more table of its own."""

    def __init__(self, encoder: Encoder, limit: int) -> None:
        self.encoder, self._limit = encoder, limit
        self._sums = encoder.table()
        self.begin, self.undo, self.save, self.load = encoder.begin, encoder.undo, encoder.save, encoder.load

    def admit(self, arrivals: Records) -> Changes:
        """What a tick changes, clipped to what 64 bits hold: 1-Lipschitz, hence free."""
        changes: Changes = self.encoder.changes(arrivals)
        for coordinate, amount in changes.items():
            clipped = changes[coordinate] = max(-self._limit, min(self._limit, amount))
            self._sums.add(coordinate, clipped)
        return changes

    def of(self, coordinates: Sequence[Name]) -> IntArray:
        """Exact, hence secret."""
        return np.array([self._sums.get(coordinate, 0) for coordinate in coordinates], dtype=np.int64)


def resized(setting: Setting, columns: int) -> Setting:
    """The same noise for another number of columns, each with the memory that it had."""
    each = setting.memory_limit // setting.columns
    return replace(setting, columns=columns, memory_limit=columns * each)


class LazyEngine(AdmissionEngine):
    """Releases the coordinates `shown` at every tick, and any other one when it is asked for.

    `limit`: all numbers of coordinates are below; None: they are labels. `askable`: how many coordinates there are to
    be asked for, all of which `error_bound` covers. Its state is the exact sums of what is shown.
    """

    def __init__(
        self,
        rule: Sums,
        choice: Choice,
        setting: Setting,
        source: ItemSource,
        shown: Sequence[Name],
        *,
        limit: int | None,
        askable: int,
    ) -> None:
        self.rule: Any = rule
        self._choice, self._setting, self._source = choice, setting, source
        self._shown, self._limit, self._askable = list(shown), limit, askable
        self.columns = {number: column for column, number in enumerate(self._shown)}
        self.width = len(self._shown)
        self.noise = self._fresh(self._shown)

    def _fresh(self, names: Sequence[Name]) -> NoiseProcess:
        names = names or [0]  # a process has a column; where nothing is shown it is not looked at
        source: Any = ChosenCoordinates(self._source, names, self._limit)
        return build(self._choice, resized(self._setting, len(names)), source)

    def _noise_of(self, names: Sequence[Name]) -> NoiseProcess:
        """The noise of some coordinates, with the numbers that were settled when the stream began."""
        noise = self._fresh(names)
        if isinstance(noise, Settled):
            noise.settle_as(self.noise)
        return noise

    def start(self) -> IntArray:
        return np.zeros(self.width, dtype=np.int64)

    def begin(self, tick: int) -> None:
        self.rule.begin(tick)
        if self.noise.tick != tick:  # as in LinearEngine
            self.noise.seek(tick)

    def play(self, batch: Sequence[Records], state: IntArray) -> Played:
        rows = np.zeros((len(batch), self.width), dtype=np.int64)
        for row, records in zip(rows, batch, strict=True):
            for coordinate, amount in self.rule.admit(records).items():
                column = self.columns.get(coordinate)
                if column is not None:
                    row[column] = amount
        values = np.cumsum(rows, axis=0) + state
        sums = values[-1].copy()
        values += self.noise.advance(len(batch))[:, : self.width]
        return Played(values, None, sums)

    def answers(self, names: Sequence[Name], tick: int) -> IntArray:
        """What is released of these coordinates at the last tick: exact sum plus noise, occurred or not.

        Moves nothing: the noise is made from the first tick on, by a process of its own. Time O(log t) a coordinate for
        trees, O(t) for a bank, O(t log t) for the square root; within a quarter of the memory limit at a time.
        """
        found = [np.empty(0, dtype=np.int64)]
        one = PROCESSES[self._choice.mechanism].memory(resized(self._setting, 1))
        together = max(2, self._setting.memory_limit // 4 // one)
        for start in range(0, len(names), together):
            some = names[start : start + together]
            noise = self._noise_of(some)
            noise.seek(tick - 1)
            found.append(self.rule.of(some) + noise.advance(1)[0])
        return np.concatenate(found)

    def go_back(self, tick: int, state: IntArray) -> None:
        self.rule.undo(tick)
        noise = self._noise_of(self._shown)
        noise.seek(tick)
        self.noise = noise

    def accuracy(self, tick: int) -> Accuracy:
        return self.noise.spread(tick)

    def widest(self, tick: int) -> Accuracy | None:
        return widest(self.noise, tick)

    def window(self, tick: int, window: int) -> Accuracy:
        return self.noise.window_spread(tick, window)

    @property
    def differences(self) -> bool:
        return True

    def combined(self, weights: Mapping[int, float]) -> Accuracy | None:
        known = getattr(self.noise, "combined_spread", None)
        return None if known is None else known(weights)

    @property
    def exact_windows(self) -> bool:
        return bool(getattr(self.noise, "exact_windows", False))

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """Of every coordinate that can be asked for: N = T x askable in the union bound (6.0)."""
        return path_bound(self._noise_of([0]), of_column(beta, self._askable), tick)

    def save(self, state: IntArray) -> list[bytes]:
        return [self.rule.save(), *remembered(self.noise)]

    def load(self, tick: int, parts: list[bytes]) -> IntArray:
        self.rule.load(tick, parts[0])
        go_to(self.noise, tick, parts[1:])
        sums: IntArray = self.rule.of(self._shown)
        return sums
