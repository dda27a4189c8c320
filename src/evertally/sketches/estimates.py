"""Tables of sketches as public values: estimates of labels, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from evertally.applications.stacked_form import nearest
from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray, check_beta
from evertally.contract.release import Release
from evertally.encode.labels import canonical, label_bytes
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.errors import ConfigurationError
from evertally.sketches.medians import (
    collision_radius,
    median_deviation,
    median_of_rows,
    second_moment,
    share_of_rows,
    usual_bucket,
)
from evertally.sketches.table import SketchColumns


@dataclass(frozen=True)
class Estimate:
    """How often a label occurred, from a released table.

    `stddev` is that of the noise alone (None for a median of Laplace noise). Labels that share
    buckets with this one put it off too: by how much is estimated from the released table. `collisions` is the standard
    deviation of that in one row (a few large labels make it large, and hardly touch the median of the others);
    `interval` has room for noise and collisions, by what the buckets of the released table hold.
    """

    value: int
    stddev: float | None
    collisions: float
    bounds: Callable[[float], tuple[int, int]] = field(repr=False, compare=False)

    def interval(self, beta: float = 0.05) -> tuple[int, int]:
        """(lower, upper): the true count lies inside with probability at least 1 - beta, if the estimate of the
        collisions is right and nobody chose labels by their hashes."""
        check_beta(beta)
        return self.bounds(beta)


class Estimates:
    """What a table says about any label."""

    def __init__(self, columns: SketchColumns) -> None:
        self.columns = columns

    def of(self, row: IntArray, labels: Texts) -> IntArray:
        found: IntArray = self.at(row[None, :], *self.columns.of(labels))[0]
        return found

    def at(self, tables: IntArray, columns: IntArray, signs: IntArray) -> IntArray:
        """(tables, labels) estimates, of tables in a row each and the columns of some labels."""
        cells = tables[:, columns] * signs
        if not self.columns.signs and self.columns.width_of_row > 1:
            # What all other labels have in a bucket on average: that of the rest of the row.
            width = self.columns.width_of_row
            sums = tables.reshape(len(tables), self.columns.rows, width).sum(axis=2)[:, None, :]
            cells = nearest(cells * width - sums, width - 1)
        shape = cells.shape[:2]
        found: IntArray = median_of_rows(cells.reshape(-1, self.columns.rows)).reshape(shape)
        return found

    def deviation(self, accuracy: Accuracy) -> float | None:
        noise = median_deviation(accuracy, self.columns.rows)
        return None if noise is None else self._widened * noise

    def moment(self, row: IntArray, accuracy: Accuracy) -> float:
        table = row.reshape(self.columns.rows, self.columns.width_of_row)
        return second_moment(table, self.columns.signs, (accuracy.stddev or 0.0) ** 2)

    def others(self, moment: float, value: int, accuracy: Accuracy) -> float:
        """The part of ||f||^2 that belongs to other labels than one with this estimate: its own part is taken off
        cautiously, two standard deviations of a bucket's noise below."""
        return max(0.0, moment - max(0.0, abs(value) - 2 * (accuracy.stddev or 0.0)) ** 2)

    def usual(self, row: IntArray, beta: float) -> float | None:
        """What most buckets of a released table hold (see `usual_bucket`), so many that medians are off with
        probability beta."""
        share = share_of_rows(self.columns.rows, beta)
        return usual_bucket(row.reshape(self.columns.rows, self.columns.width_of_row), self.columns.signs, share)

    def radius(self, usual: float | None, others: float, accuracy: Accuracy, beta: float) -> int:
        """How far off an estimate may be: in most rows noise and collisions together are not larger. By what released
        buckets hold; where they are few, by Chebyshev's bound on collisions, whose squares are `others`."""
        share, width = share_of_rows(self.columns.rows, beta), self.columns.width_of_row
        if usual is not None:
            return math.floor(max(usual, self._widened**2 * accuracy.radius(share)))
        noise = self._widened**2 * accuracy.radius(share / 2)
        return math.floor(noise + collision_radius(others, width, share / 2))

    @property
    def _widened(self) -> float:
        width = self.columns.width_of_row
        return 1.0 if self.columns.signs or width == 1 else math.sqrt(width / (width - 1))


class TableForm(RowForm):
    """The whole table of a sketch: rows of buckets."""

    differences = False

    def __init__(self, columns: SketchColumns) -> None:
        super().__init__(columns.width)
        self._shape = columns.rows, columns.width_of_row

    def show(self, row: IntArray) -> Any:
        return row.reshape(self._shape).copy()

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return rows.reshape(-1, *self._shape)

    def table(self, ticks: Sequence[int], rows: IntArray, accuracy: Callable[[int], Accuracy]) -> Any:
        raise ConfigurationError(
            "a table of a sketch is no column of numbers: declare watch=[...], or run without full"
        )


class WatchForm(RowForm):
    """Estimates of declared labels."""

    differences = False

    labels: list[str]

    def __init__(self, columns: SketchColumns, watched: Sequence[str]) -> None:
        super().__init__(columns.width, watched)
        self._estimates, self._texts = Estimates(columns), Texts.of(list(watched))
        self._at: tuple[IntArray, IntArray] | None = None

    def show(self, row: IntArray) -> dict[str, int]:
        return dict(zip(self.labels, self.show_many(row[None, :])[0].tolist(), strict=True))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        if self._at is None:  # hashes have their key when there is noise
            self._at = self._estimates.columns.of(self._texts)
        return self._estimates.at(rows, *self._at)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        found, shown = estimated(self._estimates, row, accuracy)(self._texts), self.labels
        ends = [one.interval(beta) for one in found]
        return tuple(dict(zip(shown, (end[side] for end in ends), strict=True)) for side in (0, 1))  # type: ignore[return-value]

    def deviation(self, accuracy: Accuracy) -> float | None:
        return self._estimates.deviation(accuracy)


@dataclass(frozen=True)
class SketchRelease(Release):
    """A release of a sketch: `value` (the labels that are watched, or the table), and estimates of any other label."""

    estimator: Callable[[Texts], list[Estimate]] = field(default=lambda texts: [], repr=False, compare=False)
    table: Any = field(default=None, repr=False, compare=False)  # rows of buckets, released numbers

    def estimate(self, label: Any) -> Estimate:
        """How often a label occurred; any label, as often as one likes: the table is released already."""
        return self.estimator(named([label]))[0]

    def estimates(self, labels: Iterable[Any]) -> dict[Any, Estimate]:
        """The same for many labels."""
        if isinstance(labels, str | bytes):
            raise ConfigurationError("labels come in a list; estimate(label) is for one of them")
        asked = list(labels)
        return dict(zip(asked, self.estimator(named(asked)), strict=True))


def named(labels: Sequence[Any]) -> Texts:
    """Labels of a question, in their one spelling."""
    spelt = [canonical(label) for label in labels]
    if any(one is None or len(label_bytes(one)) > LONGEST_LABEL for one in spelt):
        raise ConfigurationError(f"a label is a text, a whole number or bytes, of at most {LONGEST_LABEL} bytes")
    return Texts.of([one for one in spelt if one is not None])


def estimated(estimates: Estimates, row: IntArray, accuracy: Accuracy) -> Callable[[Texts], list[Estimate]]:
    """Answers to questions about one release."""

    @lru_cache(maxsize=8)
    def usual(beta: float) -> float | None:
        return estimates.usual(row, beta)  # looks at the whole table, the same for all labels

    def answers(labels: Texts) -> list[Estimate]:
        moment, deviation = estimates.moment(row, accuracy), estimates.deviation(accuracy)

        def one(value: int) -> Estimate:
            others = estimates.others(moment, value, accuracy)

            def bounds(beta: float) -> tuple[int, int]:
                radius = estimates.radius(usual(beta), others, accuracy, beta)
                return value - radius, value + radius

            return Estimate(value, deviation, math.sqrt(others / estimates.columns.width_of_row), bounds)

        return [one(int(value)) for value in estimates.of(row, labels).tolist()]

    return answers
