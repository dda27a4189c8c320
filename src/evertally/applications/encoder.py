"""Encoders: the change of a statistic from tick to tick, kept exactly and incrementally (factorization-counting 6).

An encoder sees the records of a tick and says by how much each coordinate of its statistic changes; prefix sums of
that are the statistic. Whatever it remembers (edges seen, degrees, the last letters) lies in tables that can be taken
back. How far one record can move the sequence of changes is the certified sensitivity of the statistic around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from evertally.applications.records import Record, Records
from evertally.applications.tables import Table, pack, unpack
from evertally.contract.admission import AdmissionEngine
from evertally.contract.parts import IntArray, Played
from evertally.secret import Secret

Changes = dict[Hashable, int]
AnyTable = TypeVar("AnyTable", bound=Table)


class Encoder(Secret, ABC):
    """Records of a tick to changes by coordinate. A subclass makes its tables with `table` and writes `encode`."""

    def __init__(self) -> None:
        self._tables: list[Table] = []

    def table(self) -> Table:
        """A new secret table; always made in the same order."""
        return self.keep(Table())

    def keep(self, table: AnyTable) -> AnyTable:
        """The same for a table of another make."""
        self._tables.append(table)
        return table

    @abstractmethod
    def encode(self, record: Record, changes: Changes) -> None:
        """Takes one record in, and adds what it changes to `changes` (coordinate -> amount)."""

    def changes(self, records: Records) -> Changes:
        """What the records of a tick change together."""
        changes: Changes = {}
        for record in records.read:
            self.encode(record, changes)
        return changes

    def begin(self, tick: int) -> None:
        for table in self._tables:
            table.begin()

    def undo(self, tick: int) -> None:
        for table in self._tables:
            table.undo()

    def save(self) -> bytes:
        return pack(0, self._tables)

    def load(self, tick: int, data: bytes) -> None:
        unpack(data, 0, self._tables)


def add(changes: Changes, coordinate: Hashable, amount: int) -> None:
    """`changes[coordinate] += amount`."""
    changes[coordinate] = changes.get(coordinate, 0) + amount


class Rule(Secret):
    """An encoder as what comes before a linear engine: a row for each tick.

    Totals of a tick are clipped to `limit`: 1-Lipschitz, hence free, and it keeps the sums far from the end of int64.
    """

    def __init__(self, encoder: Encoder, width: int, limit: int) -> None:
        self.encoder, self._width, self._limit = encoder, width, limit
        self.begin, self.undo, self.save, self.load = encoder.begin, encoder.undo, encoder.save, encoder.load

    def admit(self, arrivals: Records) -> IntArray:
        row = np.zeros(self._width, dtype=np.int64)
        changes: Mapping[Any, int] = self.encoder.changes(arrivals)
        for column, amount in changes.items():
            row[column] = max(-self._limit, min(self._limit, amount))
        return row


class EncodedEngine(AdmissionEngine):
    """An encoder before an engine that takes rows: exact sums plus noise, or somebody else's."""

    rule: Rule

    def play(self, batch: Sequence[Records], state: Any) -> Played:
        return self.inner.play(np.stack([self.rule.admit(records) for records in batch]), state)
