"""What the paper printed, what the specification expects, and the noise that each of them means.

factorization-counting 3.1, 4, 7.1, 8.4 and 14.4. `paper_*` are formulas as printed; some are wrong
(factorization-counting 0). Nothing here calibrates noise.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from evertally.bounds.square_root import EULER_GAMMA, S
from evertally.privacy import ApproxDP

T = 2**16
DELTA = 1e-10
DENSITIES = (*(2.0**-i for i in range(4, 11)), 0.0)

# Noise multipliers, by (epsilon, where they come from).
SPEC_MULTIPLIERS = {
    (0.8, "exact"): 7.271154,
    (0.8, "C/sqrt(2)"): 8.522856,
    (0.8, "C"): 12.053139,
    (0.8, "product"): 7.61836,
    (0.5, "exact"): 11.436240,
    (0.5, "C/sqrt(2)"): 13.636570,
    (0.5, "C"): 19.285022,
    (0.5, "product"): 11.99520,
    (0.1, "exact"): 54.206296,
    (0.1, "C/sqrt(2)"): 68.182848,
    (0.1, "C"): 96.425109,
    (0.1, "product"): 57.05350,
}

# Standard deviations at ticks of T = 2^16, in noise multipliers; and those of the tree over those of the square root.
SPEC_STD = {
    "sqrt": {1: 2.1439, 16: 2.9891, 256: 3.6073, 4096: 4.1317, 32768: 4.4848, 65536: 4.5964},
    "tree": {1: 4.123, 65535: 16.492},
}
SPEC_RATIOS = {15: 2.77, 255: 3.23, 4095: 3.46, 65535: 3.588, 65536: 0.897}

SPEC_BAND = {"rms": 2.630, "worst": 3.588}

# Whole runs of T = 2^16 ticks, in noise multipliers.
SPEC_RUNS = {
    "sqrt": {"worst": 4.596, "rms": 4.4344, "largest": 18.254, "2/3": 18.84, "95 %": 21.08},
    "tree": {"worst": 16.492, "rms": 11.662, "largest": 52.39},
    "honaker": {"worst": 12.233, "rms": 8.650, "largest": 39.30},
}

SPEC_LAST_STD = {
    (0.8, "exact"): 33.421,
    (0.8, "C/sqrt(2)"): 39.175,
    (0.8, "C"): 55.402,
    (0.5, "exact"): 52.566,
    (0.5, "C/sqrt(2)"): 62.680,
    (0.5, "C"): 88.643,
}

# eq. (2) with Psi, with S_T, with S_T and the exact multiplier, and with the normal quantile instead of its bound.
SPEC_BOUNDS = {0.8: (190.16, 198.85, 169.64, 152.44), 0.5: (304.25, 318.15, 266.82, 239.76)}

# Table 2 of the paper by -log2 of the density, and mean_t(p t/std_t) at 2^-4 in the specification.
PAPER_SNR = {
    "sqrt": {4: 14.50, 5: 7.37, 6: 3.46, 7: 1.86, 8: 0.96, 9: 0.47, 10: 0.22},
    "tree": {4: 4.72, 5: 2.40, 6: 1.12, 7: 0.61, 8: 0.31, 9: 0.15, 10: 0.072},
}
SPEC_SNR = {
    ("sqrt", "C"): 23.5,
    ("tree", "C"): 9.03,
    ("sqrt", "C/sqrt(2)"): 33.3,
    ("tree", "C/sqrt(2)"): 12.8,
}
PAPER_CROSSING: dict[str, float] = {"sqrt": 250, "tree": 80}
PAPER_TOP_SNR = {"sqrt": 1.47, "tree": 0.52}

# Figure 2: T -> S_T, Mathias' upper and lower bound (factorization-counting 7.1).
SPEC_NORMS = {
    2**6: (2.388848, 2.305080, 1.833285),
    2**16: (4.596444, 4.511431, 4.011492),
    2**44: (10.774242, 10.689228, 10.189228),
}


def paper_c(epsilon: float, delta: float) -> float:
    """C of the paper: sqrt(2) times the noise multiplier that Dwork and Roth's theorem asks for, at epsilon < 1.

    >>> round(paper_c(0.8, 1e-10), 6)
    12.053139
    """
    return 2 / epsilon * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))


def paper_psi(T: int) -> float:
    """Psi(T) of Theorem 1.1, printed as a bound on S_T; below it from T = 11 on.

    >>> round(paper_psi(65536), 6), paper_psi(10) > S(10), paper_psi(11) > S(11)
    (4.395624, True, False)
    """
    return 1 - (1 - EULER_GAMMA) / math.pi + math.log(T) / math.pi + 2 / T


def exact_multiplier(epsilon: float, delta: float) -> float:
    """The least multiplier of *continuous* Gaussian noise (factorization-counting 3.1). [U] for noise that is released.

    >>> round(exact_multiplier(0.5, 1e-10), 5)
    11.43624
    """

    def spent(sigma: float) -> float:
        near, far = epsilon * sigma - 1 / (2 * sigma), epsilon * sigma + 1 / (2 * sigma)
        return (math.erfc(near / math.sqrt(2)) - math.exp(epsilon) * math.erfc(far / math.sqrt(2))) / 2

    low, high = 0.0, 1.0
    while spent(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > delta else (low, middle)
    return high


def multipliers(epsilon: float, delta: float = DELTA) -> dict[str, float]:
    """The standard deviation that hides one event of weight 1, by where it comes from. The product goes through zCDP.

    >>> {name: round(value, 3) for name, value in multipliers(0.8).items()}
    {'product': 7.618, 'exact': 7.271, 'C/sqrt(2)': 8.523, 'C': 12.053}
    """
    c = paper_c(epsilon, delta)
    return {
        "product": 1 / math.sqrt(2 * ApproxDP(epsilon, delta).to_zcdp().exact_rho),
        "exact": exact_multiplier(epsilon, delta),
        "C/sqrt(2)": c / math.sqrt(2),
        "C": c,
    }


def bounds(epsilon: float, T: int) -> dict[str, float]:
    """Bounds on the largest error of T ticks at confidence 2/3, in the order of `SPEC_BOUNDS`.

    >>> [round(bound, 2) for bound in bounds(0.8, 2**16).values()]
    [190.16, 198.85, 169.64, 152.44]
    """
    c, exact = paper_c(epsilon, DELTA), exact_multiplier(epsilon, DELTA)
    return {
        "eq. (2) with Psi": c * paper_psi(T) * math.sqrt(math.log(6 * T)),
        "eq. (2) with S_T": c * S(T) * math.sqrt(math.log(6 * T)),
        "exact noise": exact * S(T) * math.sqrt(2 * math.log(6 * T)),
        "exact noise, normal quantile": exact * S(T) * NormalDist().inv_cdf(1 - 1 / (6 * T)),
    }
