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
    (True, 5.6)
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

    def answer(self, row: IntArray, query: Any, accuracy: Any) -> Answer:
        """The answer of any query."""
        value = float(self._weights(query) @ row) / self._unit
        own = accuracy.of(query)
        return Answer(value, own.stddev, own.radius)


class CellForm(AnswersQueries, LabelledForm):
    """A number for each cell, as it is."""

    def __init__(self, labels: Sequence[str], weights: Callable[[Any], FloatArray]) -> None:
        LabelledForm.__init__(self, labels)
        self._weights, self._unit = weights, 1


class QueryForm(AnswersQueries):
    """The answers of chosen queries, by name; of one query alone (`single`) its number."""

    def __init__(
        self,
        width: int,
        unit: int,
        weights: Callable[[Any], FloatArray],
        shown: Mapping[str, Any],
        *,
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
        # Integer answers stay integers, exactly.
        whole = bool(np.all(table == np.rint(table))) and bool(np.all(np.rint(table) % unit == 0))
        self._table: Any = (np.rint(table).astype(np.int64) // unit) if whole else table / unit
        self._whole = whole

    def show(self, row: IntArray) -> Any:
        return self._labelled(self._table @ row)

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        answers: NDArray[Any] = rows @ self._table.T
        return answers[:, 0] if self._single else answers

    def interval(self, row: IntArray, accuracy: Any, beta: float) -> tuple[Any, Any]:
        radii = np.array([accuracy.of(query).radius(beta) for query in self.queries])
        answers = self._table @ row
        if self._whole and np.all(np.isfinite(radii)):
            radii = np.floor(radii).astype(np.int64)  # answers and truth are integers
        return self._labelled(answers - radii), self._labelled(answers + radii)

    def deviation(self, accuracy: Any) -> float | None:
        """That of each number shown; None where they differ (`Release.answer` has each)."""
        found = [accuracy.of(query).stddev for query in self.queries]
        if any(one is None for one in found):
            return None
        return found[0] if math.isclose(min(found), max(found), rel_tol=1e-12) else None

    def _labelled(self, numbers: NDArray[Any]) -> Any:
        values = numbers.tolist()
        return values[0] if self._single else dict(zip(self._names, values, strict=True))
