"""The least error of any factorization, certified, and the published state of the art, as tables of numbers.

gamma_2(T) is the least worst factor of all factorizations of the prefix-sum matrix, gamma_F(T) the least root mean
square over the ticks, in standard deviations per 1/sqrt(2 rho). What the columns are: data/README.md.

Numbers between two entries of a table are never interpolated. They are bounded: from below by a dual point
(dual_floor.py), and by monotonicity, since the first T rows and columns of a factorization for a longer horizon are one
for T.

Where no table helps there are formulas: lower bounds on every factorization, and Mathias' upper bound
(factorization-counting 7.1).
"""

from __future__ import annotations

import csv
import math
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from evertally.bounds.square_root import EULER_GAMMA, whole_horizon
from evertally.theory.dual_floor import dual_lower

# The tables are rounded to nearest and come from a quadrature; this much covers both (data/README.md).
_ROUNDING, _QUADRATURE = 1e-6, 5e-6
_COARSE_FROM = 2**20
_SUM_UNTIL = 1 << 12  # beyond, an expansion is exact to the last digit
_FLOAT = 2.0**-40  # far above the error of the float formulas


class Bracket(NamedTuple):
    """One line of gamma_bounds.csv, widened so that it is certified."""

    worst: tuple[float, float]
    rms: tuple[float, float]


class Entry(NamedTuple):
    """A mechanism of the literature at one horizon: standard deviations, in the unit of its table."""

    mechanism: str
    horizon: int
    worst: float
    rms: float


def optimal_factor(T: int) -> tuple[float, float]:
    """Certified (lower, upper) bounds on gamma_2(T), the least worst factor.

    For T = 4^k up to 2^20 and for 2^24 they agree to four digits and more. For any other T the lower bound is a dual
    point for that T (dual_floor.py; within 0.3 %), or that of the next smaller entry if it is better: gamma_2 does not
    fall with T. The upper one is that of the next larger entry (or Mathias').

    >>> [round(bound, 4) for bound in optimal_factor(4096)]
    [3.3942, 3.3942]
    >>> [round(bound, 2) for bound in optimal_factor(5000)], optimal_factor(4097)[0] == optimal_factor(4096)[0]
    ([3.45, 3.69], True)
    """
    table = gamma_bounds()
    if whole_horizon(T) in table:
        return table[T].worst
    low = max((bracket.worst[0] for t, bracket in table.items() if t < T), default=1.0)
    high = min((bracket.worst[1] for t, bracket in table.items() if t > T), default=math.inf)
    return max(low, dual_lower(T)), min(high, mathias_upper(T) * (1 + _FLOAT))


def optimal_rms_factor(T: int) -> tuple[float, float]:
    """Certified (lower, upper) bounds on gamma_F(T), the least root-mean-square factor.

    For a T outside the table: cut 1..T into m = floor(T/t) runs of t ticks. The rows and columns of each run form the
    prefix-sum matrix of t, and the best run has at most the average error, so gamma_F(T) >= gamma_F(t) sqrt(m t/T).
    And gamma_F <= gamma_2.

    >>> [round(bound, 4) for bound in optimal_rms_factor(4096)]
    [3.3898, 3.3898]
    >>> optimal_rms_factor(8192)[0] == optimal_rms_factor(4096)[0]
    True
    """
    table = gamma_bounds()
    if whole_horizon(T) in table:
        return table[T].rms
    runs = (bracket.rms[0] * math.sqrt(T // t * t / T) for t, bracket in table.items() if t < T)
    return max(runs, default=0.0), optimal_factor(T)[1]


@cache
def gamma_bounds() -> dict[int, Bracket]:
    """The brackets by horizon, widened outwards.

    >>> sorted(gamma_bounds())[:3]
    [4, 16, 64]
    """
    rows = _read("gamma_bounds.csv")
    return {int(row["T"]): Bracket(_wider(row, "gamma2"), _wider(row, "gammaF")) for row in rows}


def _wider(row: dict[str, str], gamma: str) -> tuple[float, float]:
    relative = _QUADRATURE if int(row["T"]) >= _COARSE_FROM else 0.0
    low, high = float(row[f"{gamma}_lower"]), float(row[f"{gamma}_upper"])
    return low * (1 - relative) - _ROUNDING, high * (1 + relative) + _ROUNDING


@cache
def gaussian_frontier() -> tuple[Entry, ...]:
    """Known Gaussian mechanisms, in standard deviations per 1/sqrt(2 rho).

    >>> [entry.worst for entry in gaussian_frontier() if entry.mechanism == "sqrt Toeplitz" and entry.horizon == 4096]
    [3.71388]
    """
    return tuple(
        Entry(row["mechanism"], int(row["T"]), float(row["max_factor"]), float(row["mean_factor"]))
        for row in _read("counting_frontier.csv")
    )


@cache
def pure_frontier() -> tuple[Entry, ...]:
    """Known Laplace mechanisms, in standard deviations per 1/epsilon. The best of them is not known to be optimal.

    >>> round(min(entry.worst for entry in pure_frontier() if entry.horizon == 4096), 2)
    15.66
    """
    return tuple(
        Entry(row["mechanism"], int(row["T"]), *(math.sqrt(float(row[f"{of}_variance"])) for of in ("max", "mean")))
        for row in _read("pure_dp_frontier.csv")
    )


@cache
def unbounded_frontier() -> dict[tuple[str, int], float]:
    """(mechanism, tick) -> variance at the tick over gamma_2(tick)^2, for mechanisms without a horizon.

    >>> unbounded_frontier()["competitive optimum, lower", 4096]
    1.5685
    """
    return {(row["mechanism"], int(row["t"])): float(row["variance_ratio"]) for row in _read("unbounded_frontier.csv")}


def _read(name: str) -> list[dict[str, str]]:
    text = (files("evertally.theory") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def mathias_lower(T: int) -> float:
    """Mathias' lower bound on the worst factor of any factorization, (1/2 + 1/(2T)) ghat(T).

    >>> round(mathias_lower(4096), 6)
    3.129653
    """
    return (0.5 + 0.5 / whole_horizon(T)) * _ghat(T)


def mathias_upper(T: int) -> float:
    """Mathias' upper bound on the least worst factor, ghat(T)/2 + 1/2.

    >>> round(mathias_upper(4096), 6)
    3.628889
    """
    return _ghat(T) / 2 + 0.5


def matousek_nikolov_talwar(T: int) -> float:
    """Another lower bound, (2 + ln((2T + 1)/3))/pi.

    >>> round(matousek_nikolov_talwar(65536), 4)
    4.0377
    """
    return (2 + math.log((2 * whole_horizon(T) + 1) / 3)) / math.pi


def lb(T: int) -> float:
    """The better of the two lower bounds: no Gaussian noise on a factorization has a smaller worst error.

    For the T of its table, `optimal_factor` knows the least factor to six digits.

    >>> from evertally.bounds.square_root import S
    >>> round(S(65536) / lb(65536), 3)
    1.138
    """
    return max(mathias_lower(T), matousek_nikolov_talwar(T))


@lru_cache(maxsize=256)
def _ghat(T: int) -> float:
    """(1/T) sum_j csc((2j - 1) pi/(2T)); beyond 2^12 its expansion, off by less than 1e-15."""
    if T <= _SUM_UNTIL:
        j = np.arange(1, T + 1, dtype=np.float64)
        return math.fsum(1 / np.sin((2 * j - 1) * (math.pi / (2 * T)))) / T
    return (2 / math.pi) * (math.log(T) + EULER_GAMMA + math.log(8 / math.pi)) + math.pi / (72 * T * T)
