"""Prefixes level by level: numbers of their own where a level has few, a sketch where it has many
(users-and-domains 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evertally.contract.parts import IntArray
from evertally.encode.texts import Texts
from evertally.secret import Secret
from evertally.sketches.charges import Touched
from evertally.sketches.hashing import Rows, Words, derived, hashed_words
from evertally.sketches.spelling import Spelling


@dataclass(frozen=True)
class Level:
    """Where the prefixes of one length are counted: `rows` is 0 where each has a column of its own."""

    length: int
    first: int  # column
    rows: int
    width: int  # of a row

    @property
    def columns(self) -> int:
        return max(1, self.rows) * self.width


class PrefixColumns(Secret):
    """Which columns the prefixes of a label are counted in: one of each exact level, `rows` of each sketched one."""

    def __init__(self, spelling: Spelling, rows: int, width: int) -> None:
        self.spelling = spelling
        self.levels: list[Level] = []
        for length in range(1, spelling.symbols + 1):
            first = self.levels[-1].first + self.levels[-1].columns if self.levels else 0
            few = spelling.fanout**length <= width
            self.levels.append(Level(length, first, 0 if few else rows, spelling.fanout**length if few else width))
        exact = sum(level.rows == 0 for level in self.levels)
        self.touched = Touched(exact, sum(level.rows for level in self.levels))
        self.width = sum(level.columns for level in self.levels)
        self.seed: bytes | None = None

    def key(self, seed: bytes) -> None:
        """Fixes the hashes, for life."""
        self.seed = seed
        self._key = derived(seed, "prefixes")
        self._rows = [Rows(seed, f"level {one.length}", one.rows, one.width, signs=True) for one in self.levels]

    def below(self, codes: Words, symbols: IntArray, level: Level) -> Words:
        """The code of a prefix at `level`, from that of what is before its last symbol. At exact levels a code is the
        place of the prefix, at others a hash."""
        if level.rows == 0:
            return codes * np.uint64(self.spelling.fanout) + symbols.astype(np.uint64)
        return hashed_words(self._key, [codes, symbols.astype(np.uint64)])

    def cells(self, codes: Words, level: Level) -> tuple[IntArray, IntArray]:
        """Columns and signs of prefixes with these codes, a line for each."""
        if level.rows == 0:
            return level.first + codes.astype(np.int64)[:, None], np.ones((len(codes), 1), dtype=np.int64)
        buckets, signs = self._rows[level.length - 1].of(codes)
        return level.first + buckets + np.arange(level.rows) * level.width, signs

    def of(self, labels: Texts) -> tuple[IntArray, IntArray]:
        symbols, there = self.spelling.read(labels)
        codes, found = np.zeros(len(labels), dtype=np.uint64), []
        for level in self.levels:
            now = symbols[:, level.length - 1]
            codes = self.below(codes, now, level)
            columns, signs = self.cells(codes, level)
            found.append((np.where(there[:, None], columns, -1), signs))
            if self.spelling.stop:
                # A label that has ended is counted there, and is not a longer prefix as well.
                there = there & (now != 0)
        return np.concatenate([one[0] for one in found], axis=1), np.concatenate([one[1] for one in found], axis=1)
