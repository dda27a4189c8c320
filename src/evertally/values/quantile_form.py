"""How quantiles are shown, and the door that puts values into cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.contract.doors import Bins
from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.encode.cells import Cells
from evertally.values.quantile_answers import Prefixes
from evertally.values.quantile_domains import Domain

_NONE = Spread("gaussian", 0.0, 0.0, 0.0, 1.0)


def shown_share(share: float) -> str:
    """A share in writing.

    >>> shown_share(0.5), shown_share(0.999)
    ('0.5', '0.999')
    """
    return repr(float(share))


class CellDoor(Bins):
    """A tick's values become the row that their cells add.

    The row of one value is that of its cell, whatever the others are, and rows add up.
    """

    def __init__(self, cells: Cells, domain: Domain, limit: int) -> None:
        super().__init__(cells, limit, domain.columns)
        self._domain = domain

    def row(self, x: Any, tick: int) -> IntArray:
        return self._domain.encode(super().row(x, tick))


class QuantileForm(RowForm):
    """Quantiles of the values behind a row of prefix-encoded counts, by their share."""

    apart = False

    def __init__(self, domain: Domain, cells: Cells, shares: Sequence[float]) -> None:
        super().__init__(domain.columns, [shown_share(share) for share in shares])
        self.domain, self.cells, self.shares = domain, cells, list(shares)

    def prefixes(self, row: IntArray, accuracy: Accuracy = _NONE) -> Prefixes:
        return Prefixes(self.domain, self.cells, row, accuracy)

    def show(self, row: IntArray) -> dict[float, float]:
        found = self.prefixes(row)
        return {q: float(self.cells.upper[found.quantile(q)]) for q in self.shares}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        """An array with a column for each share."""
        shown = [list(self.show(row).values()) for row in rows]
        return np.array(shown, dtype=np.float64).reshape(-1, len(self.shares))

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[float, float], dict[float, float]]:
        found = self.prefixes(row, accuracy)
        ends = {q: found.quantile_cells(q, beta) for q in self.shares}
        lower = {q: float(self.cells.lower[first]) for q, (first, _) in ends.items()}
        return lower, {q: float(self.cells.upper[last]) for q, (_, last) in ends.items()}

    def deviation(self, accuracy: Accuracy) -> None:
        return None
