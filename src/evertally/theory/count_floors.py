"""What no Gaussian noise on running counts stays below: the least worst standard deviation, and the least price of not
knowing how long a stream will be."""

from __future__ import annotations

import math

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.theory.frontier import optimal_factor, optimal_rms_factor, unbounded_frontier

_FLOAT = 2.0**-30  # far above the error of the float formulas


def count_floor(T: int, charge: Guarantee, moved: int = 1) -> float | None:
    """The least worst standard deviation of Gaussian noise that hides, in the running counts of T ticks, a change of
    `moved` in one tick: `gamma_2(T) moved/mu`, mu^2 = 2 rho. None under a pure budget: what is certified there
    is far below what is known.

    For every mechanism that adds L z to the counts, z Gaussian: with R = L^-1 A the change is hidden if and only if no
    column of R is longer than mu/moved, and the longest row of L times the longest column of R is at least gamma_2
    (optimal-counting 1). It is about noise before it is rounded to whole numbers. An (epsilon, delta) budget is that of
    the exact Gaussian curve, mu as large as it allows.

    It says nothing about integer noise where moved/mu is below 1: a discrete Gaussian of so small a scale has less
    variance than the real one, and at last none. Plans then show no floor.

    gamma_2 is known to four digits at the horizons of a table, and elsewhere certified from below within 0.3 %: never
    interpolated, a true floor (`frontier.optimal_factor`).

    >>> round(count_floor(2**16, ZCDP(0.5)), 4), round(count_floor(10**6, ZCDP(0.5)), 2)
    (4.266, 5.12)
    >>> count_floor(2**16, PureDP(1.0)) is None
    True
    """
    mu = None if isinstance(charge, PureDP) else mu_above(charge)
    return None if mu is None else optimal_factor(T)[0] * moved / mu


def count_rms_floor(T: int, charge: Guarantee, moved: int = 1) -> float | None:
    """The same for the root mean square over the ticks: gamma_F in place of gamma_2.

    >>> round(count_rms_floor(2**16, ZCDP(0.5)), 4)
    4.2633
    """
    mu = None if isinstance(charge, PureDP) else mu_above(charge)
    return None if mu is None else optimal_rms_factor(T)[0] * moved / mu


def open_ratio(T: int) -> float | None:
    """What the variance of Gaussian noise that is not told T exceeds at some tick t <= T, in units of the least of a
    recipe that is told T = t, gamma_2(t)^2. Computed, a guide and no certificate; None for less than 2^8 ticks.

    Who must do well up to T must do well up to any shorter time: the next smaller entry of the table is taken.

    >>> open_ratio(10**6), open_ratio(100)
    (1.5795, None)
    """
    known = {t: ratio for (name, t), ratio in unbounded_frontier().items() if name == "competitive optimum, lower"}
    return max((ratio for t, ratio in known.items() if t <= T), default=None)


def mu_above(charge: ZCDP | ApproxDP | Guarantee) -> float:
    """How far apart, in standard deviations, Gaussian noise may leave two worlds: not below the truth.

    (epsilon, delta) allows the mu with delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

    >>> round(mu_above(ZCDP(0.5)), 6), round(mu_above(ApproxDP(1.0, 1e-6)), 6)
    (1.0, 0.236704)
    """
    if isinstance(charge, ApproxDP):
        return _exact_mu(float(charge.exact_epsilon), float(charge.exact_delta)) * (1 + _FLOAT)
    if not isinstance(charge, ZCDP):
        raise ConfigurationError(f"Gaussian noise pays with zCDP or (epsilon, delta), not with {charge}")
    return math.sqrt(2 * float(charge.exact_rho)) * (1 + _FLOAT)


def _exact_mu(epsilon: float, delta: float) -> float:
    low, high = 0.0, 1.0
    while _delta(high, epsilon) < delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(middle, epsilon) < delta else (low, middle)
    return high


def _delta(mu: float, epsilon: float) -> float:
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # e^epsilon Phi(-far) = phi(near) Phi(-far)/phi(far): no factor leaves the range of floats.
    return math.erfc(near / math.sqrt(2)) / 2 - _density(near) * _mills(far)


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mills(x: float) -> float:
    """Phi(-x)/phi(x); far out from above, which makes mu larger and the floor lower."""
    if x < 25:
        return math.erfc(x / math.sqrt(2)) / 2 / _density(x)
    return (1 - 1 / x**2 + 3 / x**4) / x
