"""The formulas again, in 60-digit arithmetic and found by plain search: what the library is compared with."""

from collections.abc import Callable
from fractions import Fraction

from mpmath import erfc, exp, log, mp, mpf, sqrt

mp.prec = 256  # one precision for all tests: the setting is global, and files share a process


def number(value: Fraction | float) -> mpf:
    """The exact rational, as closely as 60 digits allow."""
    exact = Fraction(value)
    return mpf(exact.numerator) / mpf(exact.denominator)


def minimum(f: Callable[[mpf], mpf]) -> mpf:
    """The minimum over ln(a - 1) of a quasi-convex function, by golden-section search from a wide bracket."""
    golden = (sqrt(mpf(5)) - 1) / 2
    low, high = mpf(-800), mpf(800)
    left, right = high - golden * (high - low), low + golden * (high - low)
    f_left, f_right = f(left), f(right)
    while high - low > mpf(10) ** -20:
        if f_left < f_right:
            high, right, f_right = right, left, f_left
            left = high - golden * (high - low)
            f_left = f(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + golden * (high - low)
            f_right = f(right)
    return min(f_left, f_right)


def best_epsilon(rho: Fraction | float, delta: Fraction | float) -> mpf:
    r, ln_delta = number(rho), log(number(delta))

    def epsilon(log_b: mpf) -> mpf:
        b = exp(log_b)
        a = 1 + b
        return a * r + log(b / a) - (ln_delta + log(a)) / b

    return minimum(epsilon)


def best_log_delta(rho: Fraction | float, epsilon: Fraction | float) -> mpf:
    r, e = number(rho), number(epsilon)

    def log_delta(log_b: mpf) -> mpf:
        b = exp(log_b)
        a = 1 + b
        return b * (a * r - e) - log(b) + a * log(b / a)

    return minimum(log_delta)


def best_rho(epsilon: Fraction | float, delta: Fraction | float) -> mpf:
    e, ln_delta = number(epsilon), log(number(delta))

    def minus_rho(log_b: mpf) -> mpf:
        b = exp(log_b)
        a = 1 + b
        return -(e + (log(a) + ln_delta) / b - log(b / a)) / a

    return -minimum(minus_rho)


def gaussian_delta(mu: Fraction | float, epsilon: mpf) -> mpf:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), with digits to spare for the difference."""
    with mp.workprec(1024):
        m, root = number(mu), sqrt(mpf(2))
        return (erfc((epsilon / m - m / 2) / root) - exp(epsilon) * erfc((epsilon / m + m / 2) / root)) / 2
