"""Rows that name what they count: what engines over unknown items release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evertally.contract.forms import FoundForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.secret import Secret


@dataclass(frozen=True, repr=False)
class Found(Secret):
    """One release: counts by label, best first, ties by label; and by how much each may be too low beyond its noise.
    Secret until it is handed out: a call that is interrupted releases nothing."""

    counts: dict[str, int]
    lost: dict[str, int]


class FoundItems(FoundForm):
    """Releases as label -> count. A snapshot keeps none of them: the engine finds the last one again."""

    def show(self, row: Found) -> dict[str, int]:
        return dict(row.counts)

    def interval(self, row: Found, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        radius = math.floor(accuracy.radius(beta))  # releases and truth are integers
        return (
            {label: count - radius for label, count in row.counts.items()},
            {label: count + radius + row.lost.get(label, 0) for label, count in row.counts.items()},
        )

    def first(self) -> list[Found]:
        return [Found({}, {})]

    def nothing(self) -> list[Found]:
        return []

    def joined(self, kept: list[tuple[Any, IntArray | None]]) -> list[Any]:
        # Of pieces of one tick some are not wanted: they stand for no tick.
        return [row for rows, lasts in kept for i, row in enumerate(rows) if lasts is None or lasts[i]]

    def save(self, rows: Any) -> bytes:
        return b""

    def load(self, data: bytes, engine: Any, tick: int) -> list[Found]:
        return [engine.worker.released(tick)]
