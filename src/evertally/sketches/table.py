"""The table of a sketch: which cells a label is counted in."""

from __future__ import annotations

import numpy as np

from evertally.contract.parts import IntArray
from evertally.encode.texts import Texts
from evertally.secret import Secret
from evertally.sketches.charges import Touched
from evertally.sketches.hashing import Rows, derived, hashed_texts


class SketchColumns(Secret):
    """One cell in every row, by hash; row after row in one line of columns. Keyed once, for life (trap 13): a label
    whose buckets changed would meet old counts of others and leave its own behind."""

    def __init__(self, rows: int, width: int, signs: bool) -> None:
        self.rows, self.width_of_row, self.signs = rows, width, signs
        self.width = rows * width
        self.touched = Touched(0, rows) if signs else Touched(rows, 0)
        self.seed: bytes | None = None

    def key(self, seed: bytes) -> None:
        """Fixes the hashes."""
        self.seed = seed
        self._key = derived(seed, "labels")
        self._rows = Rows(seed, "sketch", self.rows, self.width_of_row, self.signs)

    def of(self, labels: Texts) -> tuple[IntArray, IntArray]:
        buckets, signs = self._rows.of(hashed_texts(self._key, labels))
        return buckets + np.arange(self.rows) * self.width_of_row, signs
