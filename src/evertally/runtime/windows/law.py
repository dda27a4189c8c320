"""What two releases of a query say about the ticks between them: post-processing of released integers.

A law is a mechanism that has seen nothing (`mechanisms.twins`): it knows how its noise is spread, and no data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.forms import RowForm, flat
from evertally.contract.parts import IntArray
from evertally.contract.units import RowInUnits
from evertally.runtime.releases import LONGEST_ROW, row_of
from evertally.runtime.spec import QuerySpec

_FEW = 8  # numbers, to see how they are shown
_UNIT = Spread("gaussian", 1.0, 1.0, 1.0, 1.0)

Cells = list[Any]  # one for each label: numbers, None where nothing is known


@dataclass(frozen=True)
class Numbers:
    """The numbers of one window, or of a change: one for each wanted label."""

    value: Cells
    lower: Cells
    upper: Cells
    stddev: float | None

    def scaled(self, times: int, over: int) -> Numbers:
        """As a rate: per `times` ticks, of a window of `over`."""

        def rated(cells: Cells) -> Cells:
            return [None if cell is None else cell * times / over for cell in cells]

        stddev = None if self.stddev is None else self.stddev * times / over
        return Numbers(rated(self.value), rated(self.lower), rated(self.upper), stddev)


class Law:
    """One query: whether it has windows, and how exact they are.

    `differences`: whether two kept releases say what happened between them. `additive`: whether the numbers are sums,
    so that rates and changes of them mean something; otherwise they are ratios or percentiles of a window.
    """

    def __init__(self, query: QuerySpec, mechanism: Any, keeps_rows: bool, beta: float) -> None:
        self.query, self.mechanism, self.beta = query, mechanism, beta
        # Different users of a week are not the difference of two totals, which counts those who were new.
        differs = mechanism.differences and not query.record.level
        self.width: int = mechanism._engine.width if differs else 0
        form = mechanism._form
        itself = differs and shows_rows(form, self.width)
        self.differences = itself or bool(differs and keeps_rows and self.width <= LONGEST_ROW)
        self.additive = self.differences and (query.result.value == "integer" or form.deviation(_UNIT) is not None)
        # Numbers as they are, all with one radius: then a window is a subtraction of arrays.
        self.plain = self.differences and itself and type(form).interval is RowForm.interval
        self._form = form

    def row(self, payload: bytes, wanted: Sequence[int] | None) -> IntArray | None:
        """The released row in a payload: of a plain law the wanted numbers of it, otherwise all."""
        row = row_of(payload)
        if row is None or len(row) != self.width:
            return None
        return row[list(wanted)] if self.plain and wanted is not None else row

    def first(self, wanted: Sequence[int] | None) -> IntArray:
        """The row before the first tick: not 0 where something public was there already."""
        return self._first[list(wanted)] if self.plain and wanted is not None else self._first

    @cached_property
    def _first(self) -> IntArray:
        assert self.differences
        return np.asarray(self._form.first()[0], dtype=np.int64)

    def radius(self, tick: int, since: int, beta: float) -> float:
        """How far each number of a window may be off with probability beta, in released units."""
        return float(self.mechanism._between(since, tick).radius(beta))

    def stddev(self, tick: int, since: int) -> float | None:
        """Of each number of a window."""
        found: float | None = self.mechanism.stddev(tick, since=since)
        return found

    def window(self, now: IntArray, before: IntArray | None, ticks: tuple[int, int], wanted: Any) -> Numbers:
        """The window between two rows (None: all that was ever counted)."""
        tick, since = ticks
        if self.plain:
            found = now if before is None else now - before
            radius = math.floor(self.radius(tick, since, self.beta))
            return Numbers(
                found.tolist(), (found - radius).tolist(), (found + radius).tolist(), self.stddev(tick, since)
            )
        numbers = self._shown(self.difference(now, before, ticks), wanted)
        if self.additive:
            return numbers
        # What an empty window cannot exclude either is not known.
        nothing = self._shown(self.difference(np.zeros_like(now), None, ticks), wanted)
        unknown = [
            a == c and b == d
            for a, b, c, d in zip(numbers.lower, numbers.upper, nothing.lower, nothing.upper, strict=True)
        ]
        value = [None if empty else number for number, empty in zip(numbers.value, unknown, strict=True)]
        return Numbers(value, numbers.lower, numbers.upper, None)

    def difference(self, now: IntArray, before: IntArray | None, ticks: tuple[int, int]) -> Any:
        """The window between two rows as a release; None: all that was ever counted, also before the first tick."""
        tick, since = ticks
        earlier = np.zeros_like(now) if before is None else before
        return self.mechanism.window_of(now, earlier, tick=tick, since=since)

    def change(
        self, rows: tuple[IntArray, IntArray, IntArray], ticks: tuple[int, int, int], wanted: Any
    ) -> tuple[Numbers, list[bool]]:
        """By how much a window differs from the one before it, and whether that exceeds its own error."""
        if self.plain:
            now, middle, before = rows
            t, m, s = ticks
            found, law = now - 2 * middle + before, self.mechanism.combined({t: 1, m: -2, s: 1})
            radius = math.floor(law.radius(self.beta))
            numbers = Numbers(found.tolist(), (found - radius).tolist(), (found + radius).tolist(), law.stddev)
        else:
            numbers = self._shown(self.mechanism.change_of(*rows, ticks=ticks), wanted)
        return numbers, [low > 0 or high < 0 for low, high in zip(numbers.lower, numbers.upper, strict=True)]

    def _shown(self, release: Any, wanted: Sequence[int] | None) -> Numbers:
        value, (lower, upper) = flat(release.value), map(flat, release.interval(beta=self.beta))
        value, lower, upper = (part if wanted is None else part[list(wanted)] for part in (value, lower, upper))
        return Numbers(value.tolist(), lower.tolist(), upper.tolist(), release.stddev)


def between(now: Numbers, before: Numbers) -> Numbers:
    """A difference of numbers that have no common law: both errors are added up; None where one is missing."""

    def less(cells: Cells, taken: Cells) -> Cells:
        return [None if a is None or b is None else a - b for a, b in zip(cells, taken, strict=True)]

    return Numbers(less(now.value, before.value), less(now.lower, before.upper), less(now.upper, before.lower), None)


def apart(now: Numbers, before: Numbers) -> tuple[Numbers, list[bool | None]]:
    """A change of numbers that have no common law: clear where the two intervals do not touch."""
    value: Cells = []
    clear: list[bool | None] = []
    for place, (new, old) in enumerate(zip(now.value, before.value, strict=True)):
        known = isinstance(new, int | float) and isinstance(old, int | float)
        value.append(new - old if known else None)
        above, below = now.lower[place], now.upper[place]
        clear.append(above > before.upper[place] or below < before.lower[place] if known else None)
    nothing: Cells = [None] * len(value)
    return Numbers(value, nothing, nothing, None), clear


def shows_rows(form: Any, width: int) -> bool:
    """Whether the value is the row: then the log has always had it. Asked with numbers below 0 too, which some forms
    do not show."""
    # Where each number is shown by itself a few are enough: a row of a hundred million columns is long.
    alone = type(form).show in (RowForm.show, RowInUnits.show)
    asked = np.arange(min(width, _FEW) if alone else width, dtype=np.int64) * 7 - 3
    shown = flat(form.show(asked))
    return shown.shape == asked.shape and np.issubdtype(shown.dtype, np.integer) and bool((shown == asked).all())
