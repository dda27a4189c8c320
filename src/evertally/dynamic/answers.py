"""Released rows as answers: every answer is linear in the row (dynamic-data 3.1), so all of this is post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import LabelledForm, RowForm
from evertally.contract.parts import check_beta
from evertally.contract.release import Release
from evertally.dynamic.parts import FloatArray, IntArray
from evertally.errors import ConfigurationError

LARGEST_TABLE = 2**24  # numbers: shown queries times the width of a row


@dataclass(frozen=True)
class Answer:
    """The answer of one query, with the standard deviation of its noise (None where none is defined)."""

    value: float
    stddev: float | None
    radius: Callable[[float], float] = field(repr=False, compare=False)

    def interval(self, beta: float = 0.05) -> tuple[float, float]:
        """(lower, upper): the true answer lies inside with probability at least 1 - beta."""
        check_beta(beta)
        radius = self.radius(beta)
        return self.value - radius, self.value + radius


@dataclass(frozen=True)
class PresentRelease(Release):
    """A release of what is present, of which any query of its family can be asked.

    >>> import evertally as et
    >>> here = et.DynamicHistogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(1))
    >>> release = here.step([("insert", "a", 1)])
    >>> release.answer("a").value == release.value["a"], round(release.answer("a").stddev, 1)
    (True, 5.8)
    """

    asked: Callable[[Any], Answer] | None = field(default=None, repr=False, compare=False)

    def answer(self, query: Any) -> Answer:
        """The answer of any query of the family, at this tick; costs nothing. Refuses what is no query of it."""
        assert self.asked is not None
        return self.asked(query)


class AnswersQueries(RowForm):
    """Rows of which any query can be asked. `weights(query)` says how, in units of 1/unit. Not used directly."""

    _weights: Callable[[Any], FloatArray]
    _unit: int
    rounded = False  # whether what is shown is rounded once more

    def answer(self, row: IntArray, query: Any, accuracy: Any) -> Answer:
        """The answer of any query."""
        value = float(self._weights(query) @ row) / self._unit
        own = accuracy.of(query)
        return Answer(value, own.stddev, own.radius)


class CellForm(AnswersQueries, LabelledForm):
    """A number for each cell, as it is; each is off like any other."""

    def __init__(self, labels: Sequence[str], weights: Callable[[Any], FloatArray]) -> None:
        LabelledForm.__init__(self, labels)
        self._weights, self._unit = weights, 1

    def interval(self, row: IntArray, accuracy: Any, beta: float) -> tuple[Any, Any]:
        radius = accuracy.of(self.labels[0]).radius(beta)
        if math.isfinite(radius):
            radius = math.floor(radius)  # releases and truth are integers
        return self.show(row - radius), self.show(row + radius)

    def deviation(self, accuracy: Any) -> float | None:
        found: float | None = accuracy.of(self.labels[0]).stddev
        return found


class QueryForm(AnswersQueries):
    """The answers of chosen queries, by name; of one query alone (`single`) its number.

    `counts`: the true answers are whole numbers, so those that are shown are rounded to the nearest, half up.
    """

    def __init__(
        self,
        width: int,
        unit: int,
        weights: Callable[[Any], FloatArray],
        shown: Mapping[str, Any],
        *,
        counts: bool,
        single: bool = False,
    ) -> None:
        super().__init__(width, None if single else list(shown))
        self.queries = list(shown.values())
        self._names, self._single, self._unit, self._weights = list(shown), single, unit, weights
        if len(self.queries) * width > LARGEST_TABLE:
            raise ConfigurationError(
                f"{len(self.queries):,} answers from rows of {width:,} numbers are too many to be shown at every tick; "
                "show fewer, and ask for the others with release.answer(query)"
            )
        table = np.stack([weights(query) for query in self.queries])
        whole = bool(np.all(table == np.rint(table))) and bool(np.all(np.rint(table) % unit == 0))
        self._table: NDArray[Any] = (np.rint(table).astype(np.int64) // unit) if whole else table / unit
        self._counts = counts
        self.rounded = counts and not whole

    def show(self, row: IntArray) -> Any:
        return self._labelled(self._answers(row))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        answers = np.array([self._answers(row) for row in rows]).reshape(len(rows), len(self.queries))
        if self._counts:
            answers = answers.astype(np.int64)
        return answers[:, 0] if self._single else answers

    def interval(self, row: IntArray, accuracy: Any, beta: float) -> tuple[Any, Any]:
        radii = np.array([self.widened(accuracy.of(query).radius(beta)) for query in self.queries])
        if self._counts and np.all(np.isfinite(radii)):
            radii = radii.astype(np.int64)
        answers = self._answers(row)
        return self._labelled(answers - radii), self._labelled(answers + radii)

    def widened(self, radius: float) -> float:
        """How far what is shown may be off, where an answer may be off by `radius`: truth is a whole number too."""
        if not self._counts or not math.isfinite(radius):
            return radius
        return math.floor(radius + 0.5) if self.rounded else math.floor(radius)

    def deviation(self, accuracy: Any) -> float | None:
        """That of each number shown; None where they differ (`Release.answer` has each)."""
        found = [accuracy.of(query).stddev for query in self.queries]
        if any(one is None for one in found) or not math.isclose(min(found), max(found), rel_tol=1e-12):
            return None
        # Rounding adds the variance of a uniform law on one unit.
        return math.sqrt(found[0] ** 2 + 1 / 12) if self.rounded else found[0]

    def _answers(self, row: IntArray) -> NDArray[Any]:
        # Always the same additions in the same order, alone or in a run: the last bit of a float may decide.
        answers: NDArray[Any] = (self._table * row).sum(axis=1)
        return np.floor(answers + 0.5).astype(np.int64) if self.rounded else answers

    def _labelled(self, numbers: NDArray[Any]) -> Any:
        values = numbers.tolist()
        return values[0] if self._single else dict(zip(self._names, values, strict=True))
