"""The heavy prefixes of a released table: from the root into every child that is large enough.

Reads released numbers alone, and so does how long it takes: at most `most` prefixes of a length go on, and each has
`fanout` children. It never stops because an exact count is 0 (trap 15 of users-and-domains).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertally.contract.forms import FoundForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.contract.release import Release
from evertally.contract.rows import from_bytes, to_bytes
from evertally.sketches.levels import PrefixColumns
from evertally.sketches.medians import (
    collision_radius,
    median_deviation,
    median_of_rows,
    second_moment,
    share_of_rows,
    usual_bucket,
)


@dataclass(frozen=True)
class Heavy:
    """A prefix whose released estimate reaches the threshold."""

    prefix: tuple[int, ...]
    estimate: int
    whole: bool  # a whole label, or all that is counted of it


def descend(row: IntArray, columns: PrefixColumns, threshold: int, most: int) -> list[Heavy]:
    """All of them, short prefixes first, of each length the largest first."""
    spelling, found = columns.spelling, []
    known, codes = np.zeros((1, 0), dtype=np.int64), np.zeros(1, dtype=np.uint64)
    for level in columns.levels:
        if not len(known):
            break
        parents = np.repeat(np.arange(len(known)), spelling.fanout)
        symbols = np.tile(np.arange(spelling.fanout, dtype=np.int64), len(known))
        children = columns.below(codes[parents], symbols, level)
        cells, signs = columns.cells(children, level)
        estimates = median_of_rows(row[cells] * signs)
        large = np.flatnonzero(estimates >= threshold)
        # By size, then by name: parents are in the order of their sizes, so their order says nothing.
        names = np.concatenate([known[parents[large]], symbols[large, None]], axis=1)
        order = np.lexsort([*names.T[::-1], -estimates[large]])[:most]
        large, names = large[order], names[order]
        ended = symbols[large] == 0 if spelling.stop else np.zeros(len(large), dtype=bool)
        last = level.length == spelling.symbols
        for name, estimate, end in zip(names.tolist(), estimates[large].tolist(), ended.tolist(), strict=True):
            found.append(Heavy(tuple(name), estimate, last or end))
        known, codes = names[~ended], children[large][~ended]
    return found


class HeavyForm(FoundForm):
    """A released row as the labels that were found in it, the largest first; or all prefixes."""

    differences = False

    def __init__(self, columns: PrefixColumns, threshold: int, most: int, everything: bool) -> None:
        self.columns, self.threshold, self.most, self.everything = columns, threshold, most, everything
        self.width = columns.width

    def found(self, row: IntArray) -> list[Heavy]:
        return descend(row, self.columns, self.threshold, self.most)

    def named(self, found: list[Heavy], everything: bool) -> dict[str, int]:
        named = [(self._name(one), one.estimate) for one in found if everything or one.whole]
        return dict(named if everything else sorted(named, key=lambda pair: (-pair[1], pair[0])))

    def _name(self, one: Heavy) -> str:
        return self.columns.spelling.name(list(one.prefix))

    def show(self, row: IntArray) -> dict[str, int]:
        return self.named(self.found(row), self.everything)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        found = self.found(row)
        of_length = {n: self.radius(row, n, accuracy, beta) for n in {len(one.prefix) for one in found}}
        radius = {self._name(one): of_length[len(one.prefix)] for one in found}
        shown = self.named(found, self.everything)
        return {k: n - radius[k] for k, n in shown.items()}, {k: n + radius[k] for k, n in shown.items()}

    def radius(self, row: IntArray, length: int, accuracy: Accuracy, beta: float) -> int:
        """What is shown was picked for its noise, so the bound on noise is for all columns at once; that on collisions
        is estimated from the released table."""
        level = self.columns.levels[length - 1]
        if level.rows == 0:
            return math.floor(accuracy.radius(beta / self.width))
        table = row[level.first : level.first + level.columns].reshape(level.rows, level.width)
        share = share_of_rows(level.rows, beta / 2)
        collisions = usual_bucket(table, True, share)
        if collisions is None:
            moment = second_moment(table, True, (accuracy.stddev or 0.0) ** 2)
            collisions = collision_radius(moment, level.width, share)
        return math.floor(accuracy.radius(beta / (2 * self.width)) + collisions)

    def deviation(self, accuracy: Accuracy) -> float | None:
        """Of the longest prefixes, which are shown. A column of its own has more noise than a median of rows."""
        return median_deviation(accuracy, max(1, self.columns.levels[-1].rows))

    def first(self) -> IntArray:
        return np.zeros((1, self.width), dtype=np.int64)

    def nothing(self) -> list[Any]:
        return []

    def joined(self, kept: list[tuple[Any, IntArray | None]]) -> Any:
        pieces = [values for values, _ in kept]
        if any(isinstance(values, np.ndarray) for values in pieces):
            return np.concatenate(pieces)
        return [one for values in pieces for one in values]

    def save(self, rows: IntArray) -> bytes:
        return to_bytes(rows)

    def load(self, data: bytes, engine: Any, tick: int) -> IntArray:
        return from_bytes(data).reshape(-1, self.width)


@dataclass(frozen=True)
class PrefixRelease(Release):
    """A release of heavy prefixes: `value` has the labels, `prefixes` all prefixes on the way to them."""

    looked: Callable[[], dict[str, int]] = field(default=dict, repr=False, compare=False)

    @property
    def prefixes(self) -> dict[str, int]:
        """Every prefix that reached the threshold, short ones first, with its own estimate."""
        return self.looked()
