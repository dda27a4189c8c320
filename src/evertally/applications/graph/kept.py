"""Which records count: encoders of linear statistics. A record is (smaller end, larger end, amount)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence

from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.records import Record

Lands = Callable[[str, str], Sequence[Hashable]]  # the coordinates that an edge is counted in


class EdgeEncoder(Encoder):
    """What a record counts, in each coordinate where its edge lands. Not used directly."""

    def __init__(self, lands: Lands) -> None:
        super().__init__()
        self._lands = lands

    @abstractmethod
    def amount(self, record: Record) -> int:
        """What this record counts, after those before it."""

    def encode(self, record: Record, changes: Changes) -> None:
        amount = self.amount(record)
        if amount:
            for coordinate in self._lands(record[0], record[1]):
                add(changes, coordinate, amount)


class EveryRecord(EdgeEncoder):
    """No memory: each record counts what it says."""

    def amount(self, record: Record) -> int:
        amount: int = record[2]
        return amount


class Presence(EdgeEncoder):
    """An edge is there or not; what would not change that is nothing. `initial`: the public edges of the beginning."""

    def __init__(self, lands: Lands, initial: Collection[tuple[str, str]] = ()) -> None:
        super().__init__(lands)
        self._initial = frozenset(initial)
        self._changed = self.table()  # edges that are there now and were not in the beginning, or the other way round

    def amount(self, record: Record) -> int:
        edge = record[:2]
        changed = edge in self._changed
        there = (edge in self._initial) != changed
        if there == (record[2] > 0):
            return 0
        self._changed.put(edge, None if changed else 1)
        return 1 if record[2] > 0 else -1


class Projection(EdgeEncoder):
    """Edges beyond a degree are dropped: kept is what has a rank of at most `max_degree` at both ends (6.5).

    Ranks count whatever arrived, kept or not; ranks of kept edges alone would cascade. `once`: copies are nothing.
    """

    def __init__(self, lands: Lands, max_degree: int, *, once: bool) -> None:
        super().__init__(lands)
        self._max_degree, self._once = max_degree, once
        self._seen, self._ranks = self.table(), self.table()

    def amount(self, record: Record) -> int:
        edge = record[:2]
        if self._once:
            if edge in self._seen:
                return 0
            self._seen.put(edge, 1)
        ranks = [self._ranks.add(end, 1) for end in edge]
        return int(max(ranks) <= self._max_degree)
