"""The cells of a retention table: which there are, when each is over, its noise, and how the table is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.forms import BETA_OF_TABLES, RowForm
from evertally.contract.parts import Accuracy
from evertally.counting.process import IntArray, check_horizon
from evertally.noise import Source
from evertally.secret import Secret
from evertally.users.white import White

_NOTHING = Spread("gaussian", 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Cells:
    """The cells (cohort, age) of `periods` periods of `period` ticks, ages below `ages`; cohorts count from 1, ages
    from 0. A cell is over at the end of period cohort + age, and cells that never are do not exist.

    >>> Cells(period=7, periods=3, ages=2).of
    [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
    """

    period: int
    periods: int
    ages: int

    @property
    def of(self) -> list[tuple[int, int]]:
        """All of them, row by row."""
        return [(c, a) for c in range(1, self.periods + 1) for a in range(min(self.ages, self.periods + 1 - c))]

    def __len__(self) -> int:
        short = min(self.ages, self.periods)
        return self.periods * short - short * (short - 1) // 2

    def start(self, cohort: int) -> int:
        """The place of the first cell of a row."""
        full = max(0, min(cohort - 1, self.periods + 1 - self.ages))
        rest = cohort - 1 - full  # rows that are cut off by the end, each shorter by one than the one before
        longest = self.periods - full
        return full * min(self.ages, self.periods) + rest * longest - rest * (rest - 1) // 2

    def over(self, tick: int) -> int:
        """How many periods are over after a tick."""
        return min(self.periods, tick // self.period)

    def ending(self, period: int) -> IntArray:
        """The places of the cells that are over at the end of a period."""
        first = max(1, period + 1 - self.ages)
        return np.array([self.start(c) + period - c for c in range(first, period + 1)], dtype=np.int64)


def cell_name(cohort: int, age: int) -> str:
    """A cell in words, as files and pages show it."""
    return f"cohort {cohort}, age {age}"


class TableNoise(Secret):
    """The noise of each cell, from the tick on at which it is over; 0 before. The first column is for the number of
    periods that are over, which is public and has none.

    users-and-domains 2.4 [R]: one shared draw for each *row*. Its first use is at the end of its own period, when it is
    settled who is in the row; one draw for all rows would not be private.
    """

    def __init__(self, white: White, cells: Cells, *, horizon: int, source: Source) -> None:
        self.white, self.cells = white, cells
        self.horizon: int | None = horizon
        self.columns, self.tick = 1 + len(cells), 0
        self._source = source
        self._noise = np.zeros(self.columns, dtype=np.int64)

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        out = np.empty((count, self.columns), dtype=np.int64)
        for i in range(count):
            tick = self.tick + i + 1
            if tick % self.cells.period == 0 and tick // self.cells.period <= self.cells.periods:
                self._end(tick // self.cells.period)
            out[i] = self._noise
        self.tick += count
        return out

    def seek(self, tick: int) -> None:
        self._noise = np.zeros(self.columns, dtype=np.int64)
        for period in range(1, self.cells.over(tick) + 1):
            self._end(period)
        self.tick = tick

    def _end(self, period: int) -> None:
        places, white = self.cells.ending(period), self.white  # the oldest cohort first
        own = self._source.draws("cells", white.own, [period], len(places))[0, ::-1]  # by age
        rows = range(period + 1 - len(places), period + 1)
        shared = own if white.shared is None else self._source.draws("rows", white.shared, rows)[:, 0]
        self._noise[1 + places] = white.noise(own, shared)

    def spread(self, tick: int) -> Spread:
        return self.white.spread if self.cells.over(tick) else _NOTHING

    def worst(self) -> Spread:
        return self.white.spread

    def widest(self, tick: int) -> Spread:
        return self.spread(tick)

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        return self.worst().radius(beta)  # a cell has one noise, however often it is shown

    def window_spread(self, tick: int, window: int) -> Spread:
        return self.spread(tick) + self.spread(tick - window)


class TableForm(RowForm):
    """A row of cells as a table: of each cohort the numbers of its ages, as far as they are over; or cell by cell.

    >>> form = TableForm(Cells(period=1, periods=3, ages=2))
    >>> form.show(np.array([2, 50, 20, 60, 0, 0]))
    {1: [50, 20], 2: [60]}
    """

    def __init__(self, cells: Cells, *, by_cell: bool = False) -> None:
        super().__init__(1 + len(cells))
        self._cells, self._by_cell = cells, by_cell

    def show(self, row: IntArray) -> dict[Any, Any]:
        return self._flat(row) if self._by_cell else self._table(row)

    def _table(self, row: IntArray) -> dict[int, list[int]]:
        cells, over = self._cells, int(row[0])
        numbers = row[1:].tolist()
        return {c: numbers[cells.start(c) : cells.start(c) + min(cells.ages, over + 1 - c)] for c in range(1, over + 1)}

    def _flat(self, row: IntArray) -> dict[str, int]:
        return {
            cell_name(cohort, age): number
            for cohort, numbers in self._table(row).items()
            for age, number in enumerate(numbers)
        }

    def show_many(self, rows: IntArray) -> Any:
        return [self.show(row) for row in rows]

    def joined(self, kept: list[tuple[Any, IntArray | None]]) -> Any:
        if all(isinstance(part, np.ndarray) for part, _ in kept):
            return super().joined(kept)
        whole: list[Any] = []
        for shown, lasts in kept:
            whole += (
                shown if lasts is None else [table for table, n in zip(shown, lasts, strict=True) for _ in range(n)]
            )
        return whole

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        lower, upper = self._around(row, accuracy, beta)
        return self.show(lower), self.show(upper)

    def _around(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[IntArray, IntArray]:
        moved = np.full(len(row), int(accuracy.radius(beta)), dtype=np.int64)
        moved[0] = 0
        return row - moved, row + moved

    def table(self, ticks: Sequence[int], rows: Any, accuracy: Callable[[int], Accuracy]) -> Any:
        import pyarrow as pa

        lines: dict[str, list[Any]] = {"tick": [], "column": [], "value": [], "lower": [], "upper": []}
        for tick, row in zip(ticks, rows, strict=True):
            shown = self._flat(row)
            lines["tick"] += [tick] * len(shown)
            lines["column"] += list(shown)
            parts = (row, *self._around(row, accuracy(tick), BETA_OF_TABLES))
            for name, part in zip(("value", "lower", "upper"), parts, strict=True):
                lines[name] += self._flat(part).values()
        return pa.table(
            {name: pa.array(cells, pa.string() if name == "column" else pa.int64()) for name, cells in lines.items()}
        )
