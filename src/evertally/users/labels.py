"""What labels of events become before users are counted by them: columns of declared ones, or numbers beside a list."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.contract.owned import OwnedDoor, ReadCells
from evertally.contract.parts import IntArray
from evertally.encode.labels import as_list, canonical, coded, label_bytes, own_column, require_column
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import LONGEST_LABEL, Texts


def column_reader(labels: Sequence[str], other: bool) -> ReadCells:
    """Reads a column of labels: the place of each among the declared ones, the last one for all others if there is one
    for them, -1 for no place. An event names one label; a collection of them has no first one, and is none.

    >>> column_reader(["a", "b", "rest"], other=True)(["b", "zebra", None, ["a"], 7]).tolist()
    [[1], [2], [-1], [-1], [2]]
    """
    index, rest = {label: i for i, label in enumerate(labels)}, len(labels) - 1 if other else -1

    def column(value: object) -> int:
        label = canonical(value)
        return -1 if label is None else index.get(label, rest)

    return lambda events: _read(events, column)


def _read(events: Any, number: Callable[[object], int]) -> IntArray:
    """A number for each event, as a column of cells; only different values are looked at one by one."""
    plain = coded(events)
    if plain is None:
        values = as_list(events)
        plain = np.arange(len(values)), values
    codes, values = plain
    numbers = np.array([*map(number, values), -1], dtype=np.int64)  # the last one is where code -1 points
    cells: IntArray = numbers[codes]
    return cells.reshape(-1, 1)


@dataclass(frozen=True, repr=False)
class LabelledTick(OwnedTick):
    """Events with users and labels that nobody listed: `cells` has the place of each label among `labels`, -1 for none.
    Secret."""

    labels: Texts

    def digest(self) -> bytes:
        parts = [super().digest(), self.labels.lengths.astype("<i8").tobytes(), *self.labels.names()]
        return hashlib.sha256(b"".join(parts)).digest()


class LabelledDoor(OwnedDoor):
    """Ticks of labels and users. Labels are texts or whole numbers of at most 1024 bytes; an event names one."""

    def __init__(self) -> None:
        super().__init__(read=lambda events: np.empty((len(events), 0), dtype=np.int64))

    def owned(self, events: Any, users: Any, tick: int) -> LabelledTick:
        if users is not None:
            require_column(events, "events")
            events = own_column(events)
        number: dict[str, int] = {}

        def place(value: object) -> int:
            label = canonical(value)
            if label is None or len(label_bytes(label)) > LONGEST_LABEL:
                return -1
            return number.setdefault(label, len(number))

        found = OwnedDoor(lambda column: _read(column, place)).owned(events, users, tick)
        return LabelledTick(found.tick, found.names, found.codes, found.cells, Texts.of(list(number)))
