"""What a server may say: slopes and differences of the average loss, its minimiser, and how far off they can be.

factorization-counting 6.9, accuracy. Everything here is made from sums of private messages and from public numbers, so
floats are good enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.counting.fourier import convolve
from evertally.counting.sqrt_factor import GRID_BITS, sqrt_factor
from evertally.errors import ConfigurationError
from evertally.local.protocol import Protocol
from evertally.privacy._exact import exact

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """The three terms of the bound, in the unit of the domain; each says what would make it smaller.

    >>> Bound(noise=0.5, discretisation=0.25, sampling=0.125).total
    0.875
    """

    noise: float  # more clients, or a larger budget
    discretisation: float  # more cells
    sampling: float  # more clients; 0 where the people asked are all that matter and points are their own values

    @property
    def total(self) -> float:
        return self.noise + self.discretisation + self.sampling


@dataclass(frozen=True, eq=False)
class Result:
    """Estimates at the ends of the cells, `grid[0] = low` to `grid[w] = high`.

    `slopes[t]` estimates the slope of the average loss just below `grid[t]` (for values: twice the share of values
    below it, less 1), with standard deviation `stddev[t]`.

    Theorem: factorization-counting 6.9. With probability at least 1 - beta over noise and over who was asked (clients
    independent, from one population), all of these hold together:

    - every `risk(theta)` is within `bound.total` of the average loss at theta less that at `low`;
    - the average loss at `minimiser` is at most `bound.total` above its minimum;
    - every point of minimal average loss lies in `interval`.

    The second: let t be the first grid point with a slope of at least 0, and e = noise + sampling. The true slope is at
    most e up to grid[t - 1], at least -e from grid[t] on, and never above 1; so going from `minimiser` to the true one
    gains at most e over the domain and one cell. The isotonic estimates are within e as well, since they are
    averages of neighbours between two bounds that never fall.

    Error of a slope: (2/sqrt n) sigma_1 Delta_swap sqrt(S_t). Time and memory O(w), once O(w log w).

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ZCDP(8), clients=400, low=0, high=10, cells=5)
    >>> server = et.local.Server(protocol)
    >>> _ = server.add_many(et.local.Client(protocol, et.simulation(i)).message(3) for i in range(400))
    >>> result = server.result(beta=0.05)
    >>> result.minimiser, result.interval, result.slope(8) > 0, result.risk(4) < 0
    (4.0, (2.0, 4.0), True, True)
    """

    grid: FloatArray
    slopes: FloatArray
    stddev: FloatArray
    messages: int
    private: bool
    bound: Bound
    _ends: tuple[Fraction, Fraction]

    @classmethod
    def of(
        cls, protocol: Protocol, sums: NDArray[Any], n: int, beta: float, *, private: bool, isotonic: bool = False
    ) -> Result:
        """From sums of messages: x = (2/n) L y - 1, and -1 at the lower end."""
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        w, inverse = protocol.cells, sqrt_factor(protocol.cells).inverse
        below, _ = convolve(inverse, sums.astype(np.float64) / (2.0**GRID_BITS * n), 0, w)
        slopes = np.concatenate([[-1.0], 2 * below - 1])
        rows = np.sqrt(np.concatenate([[0.0], np.cumsum(inverse**2)]))  # sqrt(S_t) of the factor used
        unit = 2 / (2.0**GRID_BITS * math.sqrt(n))
        # Discrete Gaussians are sub-Gaussian with their sigma; the w estimates share beta/2.
        sigma = math.sqrt(protocol.law.sigma_squared)
        width = float(protocol.high - protocol.low)
        bound = Bound(
            noise=width * unit * sigma * float(rows[w]) * math.sqrt(2 * math.log(4 * w / beta)),
            discretisation=width / w,
            sampling=width * 2 * math.sqrt(math.log(4 / beta) / (2 * n)),
        )
        return cls(
            grid=np.linspace(float(protocol.low), float(protocol.high), w + 1),
            slopes=never_falling(slopes) if isotonic else slopes,
            stddev=unit * protocol.law.stddev() * rows,
            messages=n,
            private=private,
            bound=bound,
            _ends=(protocol.low, protocol.high),
        )

    @property
    def minimiser(self) -> float:
        """The first grid point where the slope is no longer negative; the upper end if there is none."""
        return float(self.grid[_first(self.slopes >= 0)])

    @property
    def interval(self) -> tuple[float, float]:
        """Between the last slope that is surely negative and the first one that is surely positive."""
        off = (self.bound.noise + self.bound.sampling) / float(self._ends[1] - self._ends[0])
        last = np.flatnonzero(self.slopes < -off)
        return float(self.grid[last[-1] if last.size else 0]), float(self.grid[_first(self.slopes > off)])

    def slope(self, theta: Fraction | int | float) -> float:
        """g(theta): the estimate at the nearest grid point, of two the smaller."""
        return float(self.slopes[self._nearest(theta)[0]])

    def risk(self, theta: Fraction | int | float) -> float:
        """f(theta), the integral of g from `low`: the average loss at theta less that at `low`."""
        nearest, place = self._nearest(theta)
        # Estimate k counts from half a cell below its grid point to half a cell above it; the first begins at `low`.
        whole = float(self.slopes[:nearest].sum()) - 0.5 * float(self.slopes[0]) if nearest else 0.0
        rest = float(place - nearest) + (0.5 if nearest else 0.0)
        return (whole + rest * float(self.slopes[nearest])) * float(self._ends[1] - self._ends[0]) / self._cells

    @property
    def _cells(self) -> int:
        return self.grid.size - 1

    def _nearest(self, theta: Fraction | int | float) -> tuple[int, Fraction]:
        low, high = self._ends
        parameter = exact(theta, "theta")
        if not low <= parameter <= high:
            raise ConfigurationError(f"theta lies in the domain, {float(low)} to {float(high)}; got {theta!r}")
        place = (parameter - low) * self._cells / (high - low)
        return math.ceil(place - Fraction(1, 2)), place


def _first(where: NDArray[np.bool_]) -> int:
    found = np.flatnonzero(where)
    return int(found[0]) if found.size else where.size - 1


def never_falling(values: FloatArray) -> FloatArray:
    """The closest sequence (least squares) that never falls: neighbours in the wrong order are averaged.

    >>> never_falling(np.array([0.0, 3.0, 1.0, 4.0])).tolist()
    [0.0, 2.0, 2.0, 4.0]
    """
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        total, size = value, 1
        while blocks and blocks[-1][0] * size > total * blocks[-1][1]:
            before = blocks.pop()
            total, size = total + before[0], size + before[1]
        blocks.append((total, size))
    return np.concatenate([np.full(size, total / size) for total, size in blocks])
