"""How answers to questions about column sums are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import LabelledForm, RowForm
from evertally.contract.in_place import sides
from evertally.contract.parts import Accuracy, IntArray
from evertally.histogram.ways import ColumnWay
from evertally.partition import Queries


def whole_sides(accuracy: Accuracy, beta: float) -> tuple[int, int]:
    """How far the truth may be below an answer and above it, in whole numbers."""
    below, above = sides(accuracy, beta)
    return int(below), int(above)


class AnswersByLabel(LabelledForm):
    """A released row of counts, one for each label; the truth may be farther off on one side."""

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[str, int], dict[str, int]]:
        below, above = whole_sides(accuracy, beta)
        return self.show(row - below), self.show(row + above)


class Answer(RowForm):
    """One number: the first query of the released column sums, or what the engine released as the answer."""

    def __init__(self, approach: ColumnWay, queries: Queries, labels: Sequence[str] | None = None) -> None:
        super().__init__(approach.width, labels)
        self.queries = queries
        self._answers = approach.answers

    def numbers(self, row: IntArray) -> IntArray:
        """The integer answers behind a released row."""
        return row if self._answers else self.queries.values(row)

    def show(self, row: IntArray) -> Any:
        return int(self.numbers(row)[0])

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([self.show(row) for row in rows], dtype=np.int64)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        (below, above), shown = whole_sides(accuracy, beta), self.show(row)
        return shown - below, shown + above


class Answers(Answer):
    """Several numbers, in a fixed order: places 1 to k."""

    def __init__(self, approach: ColumnWay, queries: Queries) -> None:
        super().__init__(approach, queries, [str(rank) for rank in range(1, queries.count + 1)])

    def show(self, row: IntArray) -> NDArray[np.int64]:
        return self.numbers(row).copy()

    def show_many(self, rows: IntArray) -> NDArray[np.int64]:
        return np.array([self.show(row) for row in rows], dtype=np.int64).reshape(len(rows), self.queries.count)


class RoundedAnswers(Answer):
    """Queries by name, or one without: rounded up, so each is off by one more at most."""

    def __init__(self, approach: ColumnWay, queries: Queries, names: list[str] | None) -> None:
        super().__init__(approach, queries, names)
        self._names = names

    def show(self, row: IntArray) -> Any:
        numbers = self.numbers(row).tolist()
        return dict(zip(self._names, numbers, strict=True)) if self._names else numbers[0]

    def show_many(self, rows: IntArray) -> NDArray[np.int64]:
        answers = np.array([self.numbers(row) for row in rows], dtype=np.int64).reshape(len(rows), self.queries.count)
        return answers if self._names else answers[:, 0]

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        (below, above), shown = whole_sides(accuracy, beta), self.show(row)
        if isinstance(shown, dict):
            return {k: v - below - 1 for k, v in shown.items()}, {k: v + above + 1 for k, v in shown.items()}
        return shown - below - 1, shown + above + 1


class Leader(Answer):
    """The label of one column. The error is a deficit: how far its sum is below the largest."""

    def __init__(self, approach: ColumnWay, queries: Queries, columns: Sequence[str]) -> None:
        super().__init__(approach, queries)
        self._columns = columns

    def show(self, row: IntArray) -> str:
        return self._columns[int(row[0] if self._answers else np.argmax(row))]

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([self.show(row) for row in rows], dtype=object)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[int, int]:
        return 0, whole_sides(accuracy, beta)[1]


class Leaders(RowForm):
    """The labels of k columns, best first; a deficit for each place."""

    def __init__(self, columns: Sequence[str], k: int, width: int) -> None:
        super().__init__(width, [str(rank) for rank in range(1, k + 1)])
        self._columns, self._k = columns, k

    def show(self, row: IntArray) -> list[str]:
        best = np.argsort(-row, kind="stable")[: self._k]
        return [self._columns[j] for j in best.tolist()]

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        return np.array([self.show(row) for row in rows], dtype=object).reshape(len(rows), self._k)

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[list[int], list[int]]:
        return [0] * self._k, [whole_sides(accuracy, beta)[1]] * self._k
