"""Cells of a line: which of the declared stretches a value lies in, as a bounded integer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import require_column
from evertally.encode.numbers import floats
from evertally.encode.plain import finite, plain
from evertally.errors import ConfigurationError
from evertally.secret import Secret

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Outside = Literal["ends", "cells"]

MOST_CELLS = 2**16
_LOG_WORDS = ("from", "to", "ratio")


def log_edges(first: float, last: float, ratio: float) -> list[float]:
    """Edges from `first` to `last`, each `ratio` times the one before it (the last step may be shorter): cells that are
    equally wide in proportion, for times and amounts.

    >>> log_edges(1, 10, 2)
    [1.0, 2.0, 4.0, 8.0, 10.0]
    >>> len(log_edges(0.1, 3.6e6, 1.02))  # a tenth of a millisecond to an hour, to 2 %
    880
    """
    low, high, step = (_number(value) for value in (first, last, ratio))
    if low is None or high is None or step is None or not 0 < low < high or step <= 1:
        raise ConfigurationError("log_edges takes 0 < first < last and a ratio above 1, all of them finite")
    steps = (math.log(high) - math.log(low)) / math.log(step)
    if not steps < MOST_CELLS:
        raise ConfigurationError(f"a ratio of {step!r} makes more than {MOST_CELLS} cells: choose a larger one")
    # An edge next to the last one, from rounding, would make a cell of no width.
    inner = [_power(low, step, k) for k in range(1, math.ceil(steps - 1e-9))]
    return [low, *(edge for edge in inner if low < edge < high), high]


def _power(low: float, step: float, k: int) -> float:
    """low * step^k, also where step^k alone is beyond floats."""
    half = k // 2 if k * math.log(step) > 700 else k
    return low * step**half * step ** (k - half)


def read_edges(edges: Any) -> list[float]:
    """Edges as they are declared: a list of increasing numbers, or {"from": .., "to": .., "ratio": ..}."""
    if isinstance(edges, Mapping):
        given = dict(edges)
        if sorted(given) != sorted(_LOG_WORDS):
            raise ConfigurationError('edges are a list of numbers, or {"from": .., "to": .., "ratio": ..}')
        return log_edges(*(given[word] for word in _LOG_WORDS))
    if isinstance(edges, str | bytes) or not isinstance(edges, Sequence | np.ndarray):
        raise ConfigurationError("edges are a list of increasing numbers, such as et.log_edges(0.1, 1000, 1.1)")
    if len(edges) > MOST_CELLS:
        raise ConfigurationError(f"{len(edges)} edges are more than {MOST_CELLS}: use fewer, or bits=...")
    found = [_number(edge) for edge in list(edges)]
    known = [edge for edge in found if edge is not None]
    if len(known) < len(found) or len(known) < 2 or any(a >= b for a, b in pairwise(known)):
        raise ConfigurationError("edges are two or more finite numbers, each above the one before it")
    return known


def _number(value: Any) -> float | None:
    number = plain(value)
    if number is None or isinstance(number, bool | str | bytes) or not finite(number):
        return None
    try:
        found = float(number)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def shown(edge: float) -> str:
    """An edge in writing, exactly.

    >>> shown(10.0), shown(0.1)
    ('10', '0.1')
    """
    return str(int(edge)) if edge.is_integer() and abs(edge) < 2**53 else repr(edge)


class Cells(Secret):
    """Stretches between edges e_0 < e_1 < ...: cell i holds the values above e_i and at most e_(i+1).

    So the values up to the end of a cell are those that are *at most* an edge. What lies outside goes into the first or
    last cell (`outside="ends"`), or into a cell of its own below or above (`"cells"`). It is the number of the cell
    that is clipped: whatever rounding did, a value is in one cell or, if it is no number, in none (users-and-domains 9,
    trap 14).

    >>> cells = Cells([0, 10, 20])
    >>> cells.counts([-5, 0, 10, 10.5, 99, float("inf"), None, float("nan"), "x"]).tolist()
    [3, 3]
    >>> Cells([0, 10, 20], outside="cells").counts([-5, 0, 10, 10.5, 99]).tolist()
    [2, 1, 1, 1]
    """

    def __init__(self, edges: Sequence[float], outside: Outside = "ends") -> None:
        if outside not in ("ends", "cells"):
            raise ConfigurationError('outside is "ends" (the first and last cell) or "cells" (two more of their own)')
        self.edges: FloatArray = np.array(edges, dtype=np.float64)
        apart = outside == "cells"
        self._first = 0 if apart else 1
        self.count = self.edges.size + 1 if apart else self.edges.size - 1
        # Where nothing lies beyond, as far as anybody can say: releases are finite numbers.
        ends = [self.edges[:1], self.edges, self.edges[-1:]] if apart else [self.edges]
        bounds = np.concatenate(ends)
        self.lower, self.upper = bounds[:-1], bounds[1:]

    def numbers(self, events: Any) -> IntArray:
        """The cell of each value; what is no number is left out."""
        require_column(events, "events")
        values = floats(events)
        values = values[~np.isnan(values)]
        found = np.searchsorted(self.edges, values, side="left").astype(np.int64) - self._first
        return np.clip(found, 0, self.count - 1)

    def counts(self, events: Any) -> IntArray:
        """How many values of a tick each cell has."""
        return np.bincount(self.numbers(events), minlength=self.count).astype(np.int64)

    def labels(self) -> list[str]:
        """Names of the cells.

        >>> Cells([0, 10, 20], outside="cells").labels()
        ['<= 0', '0 to 10', '10 to 20', '> 20']
        """
        names = [shown(edge) for edge in self.edges.tolist()]
        inner = [f"{a} to {b}" for a, b in pairwise(names)]
        return inner if self._first else [f"<= {names[0]}", *inner, f"> {names[-1]}"]

    def at(self, x: float) -> tuple[int, int]:
        """Cells (a, b) with: all values of the cells up to a are at most x, and all that are at most x are in the cells
        up to b. Equal where x is an edge; -1: no cell."""
        inner = int(np.searchsorted(self.edges, x, side="right")) - 1 - self._first
        below = min(max(inner, -1), self.count - 1)
        if x >= self.edges[-1] and self._first:
            return self.count - 1, self.count - 1
        on = bool(np.any(self.edges == x))
        if self._first and x < self.edges[0]:
            return -1, 0
        return below, below if on and not (self._first and x == self.edges[0]) else min(below + 1, self.count - 1)
