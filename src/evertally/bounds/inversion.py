"""Tails from moment generating functions, by inversion on a line: what Chernoff's bound loses is found again.

For a sum of terms with E exp(z X) known, M(z) = sum over the terms, symmetric laws:

    sum over terms P(X > r) = 1/(2 pi) integral of M(c + iu) exp(-(c + iu) r)/(c + iu) du.

The trapezoidal rule adds only what lies 2 pi/h further along, with a positive weight, so it stays a bound. c is where
Chernoff's bound exp(-c r) M(c) is least: no digits cancel. Accuracy only: no privacy depends on any of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_POINTS = 24  # of c that are tried
_REACH = 4.0  # 2 pi/h in units of what Chernoff's bound says
_NEGLIGIBLE = 1e-7  # of M(c): where the integral is cut off
_LONGEST = 4096  # points of the line; a law that needs more has Chernoff's bound
_DEPTHS = (0.3, 1e-2, 1e-4, 1e-8, 1e-13)  # probabilities that lines are made for, where a whole tail is wanted

Floats = NDArray[np.float64]


def radius_of(M: Callable[[complex], complex], peak: float, beta: float) -> float:
    """What |X| exceeds, for some of the terms, with probability at most beta. M has its first pole at 1/peak.

    >>> ten = radius_of(lambda z: (1 - z * z) ** -10, 1.0, 0.05)  # of ten Laplace numbers; Chernoff's bound is 13.1
    >>> round(ten, 2)
    8.86
    """
    line = Line(M, peak, beta)
    low, high = 0.0, line.chernoff
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if line.beyond(np.array([middle]))[0] <= beta else (middle, high)
    return float(high) * (1 + 1e-9)


def above(M: Callable[[complex], complex], peak: float, x: Floats) -> Floats:
    """A bound on the sum over terms of P(X > x), for each x >= 0."""
    return np.asarray(np.min([Line(M, peak, beta).beyond(x) for beta in _DEPTHS], axis=0) / 2)


class Line:
    """A line of inversion: the one where Chernoff's bound for beta is least."""

    def __init__(self, M: Callable[[complex], complex], peak: float, beta: float) -> None:
        places = (np.geomspace(0.03, 0.95, _POINTS) / peak).tolist()
        logs = [math.log(M(complex(c)).real) for c in places]
        bounds = [(math.log(2 / beta) + log) / c for c, log in zip(places, logs, strict=True)]
        found: tuple[float, float, float] = min(zip(bounds, places, logs, strict=True))
        self.chernoff, self._c, self._log = found
        h = 2 * math.pi / (_REACH * self.chernoff)
        line, values = [complex(self._c)], [complex(math.exp(self._log)) / 2]
        while abs(values[-1]) > _NEGLIGIBLE * math.exp(self._log) and len(line) <= _LONGEST:
            line.append(complex(self._c, h * len(line)))
            values.append(M(line[-1]))
        self._z = np.array(line)
        self._weighed = 2 * h / math.pi * np.array(values) / self._z
        self._sharp = len(line) <= _LONGEST

    def beyond(self, r: Floats) -> Floats:
        """A bound on the sum over terms of P(|X| > r)."""
        chernoff = 2 * np.exp(self._log - self._c * r)
        if not self._sharp:
            return np.asarray(chernoff)
        inverted = (self._weighed * np.exp(-self._z * r[:, None])).sum(axis=1).real
        return np.asarray(np.minimum(chernoff, inverted + len(self._z) * _NEGLIGIBLE * chernoff))
