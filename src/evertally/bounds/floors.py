"""What no factorization can go below, and what has been published: factorization-counting 7.1 and 0.

All numbers are factors: worst standard deviations per 1/sqrt(2 rho). The functions named `paper_*` reproduce formulas
that are wrong or loose, so that they can be shown beside the right ones; they never calibrate anything.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from evertally.bounds.square_root import EULER_GAMMA, whole_horizon
from evertally.errors import ConfigurationError

_SUM_UNTIL = 1 << 12


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

    For the T of its table, `frontier.optimal_factor` knows the least factor to six digits.

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


def paper_psi(T: int) -> float:
    """Psi(T) of the ICML 2023 paper, claimed to bound S_T. It does not, for any T >= 11 (E3): never calibrate with it.

    >>> from evertally.bounds.square_root import S
    >>> S(10) < paper_psi(10), S(11) > paper_psi(11)
    (True, True)
    """
    return 1 - (1 - EULER_GAMMA) / math.pi + math.log(whole_horizon(T)) / math.pi + 2 / T


def paper_C(epsilon: float, delta: float) -> float:  # noqa: N802
    """C of the ICML 2023 paper. It contains the sqrt(2) of a tail bound, so it is no standard deviation (E5).

    >>> round(paper_C(0.8, 1e-10), 6)
    12.053139
    """
    if not (0 < epsilon < 1 and 0 < delta < 1):
        raise ConfigurationError("the paper's constant is for epsilon and delta between 0 and 1")
    return 2 / epsilon * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))
