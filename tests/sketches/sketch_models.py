"""Plain models of sketches, and tables with given hashes; not a test."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from evertally.encode.texts import Texts
from evertally.sketches.charges import Touched
from evertally.sketches.labels import LabelDoor, LabelReader


class AllTables:
    """All tables of `rows` rows of two buckets for the labels "0", "1", "2", side by side: every hash, every sign."""

    def __init__(self, rows: int, signs: bool) -> None:
        one_row = list(product(product((0, 1), repeat=3), product((1, -1), repeat=3) if signs else [(1, 1, 1)]))
        tables = list(product(one_row, repeat=rows))
        self.tables, self.rows = len(tables), rows
        self.width = 2 * rows * len(tables)
        self.touched = Touched(0, rows) if signs else Touched(rows, 0)  # of one of the tables
        hashes = np.array([[[row[0] for row in table] for table in tables]]).reshape(-1, 3).T
        self._columns = hashes + 2 * np.arange(rows * len(tables))
        self._signs = np.array([[[row[1] for row in table] for table in tables]]).reshape(-1, 3).T

    def of(self, labels: Texts) -> tuple[Any, Any]:
        numbers = [int(label) for label in labels.list()]
        return self._columns[numbers], self._signs[numbers]

    def rows_of(self, event: Any, max_per_event: int = 1, max_weight: int = 1, clip: bool = True) -> Any:
        """What the door makes of an event, in each of the tables: (tables, columns)."""
        reader = LabelReader(max_per_event, max_weight, order=lambda message: message)
        door = LabelDoor(reader, self, 2**40)
        if clip:
            row = door.events([event], 1)
        else:  # labels added up without a bound on a bucket
            row = sum(LabelDoor(reader, self, 2**40).events([label], 1) for label in event)
        return row.reshape(self.tables, -1)


def plain_siphash(key: tuple[int, int], message: bytes, rounds: tuple[int, int]) -> int:
    """SipHash of one message, as its paper writes it."""
    mask = 2**64 - 1
    v = [
        start ^ key[i % 2]
        for i, start in enumerate((0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573))
    ]

    def turned(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & mask

    def mix(times: int) -> None:
        for _ in range(times):
            v[0] = (v[0] + v[1]) & mask
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & mask
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & mask
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & mask
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        mix(rounds[0])
        v[0] ^= word
    v[2] ^= 0xFF
    mix(rounds[1])
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def table_of(made: Any, counts: dict[str, int]) -> Any:
    """The exact table of these counts, label by label."""
    columns = made._estimates.columns
    table = [0] * columns.width
    for label, count in counts.items():
        cells, signs = columns.of(Texts.of([label]))
        for cell, sign in zip(cells[0].tolist(), signs[0].tolist(), strict=True):
            table[cell] += sign * count
    return np.array(table).reshape(made.rows, made.width)
