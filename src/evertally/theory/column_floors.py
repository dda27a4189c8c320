"""Error floors for queries on column sums: what no private mechanism can stay below.

Two kinds, never mixed. *Certified* floors have explicit constants and hold for every finite horizon: no mechanism with
the guarantee has an error below the floor at all ticks with probability 2/3 (price-of-continual-release 4.2). *Shapes*
are asymptotic statements evaluated with an unknown constant C: orders of magnitude (price-of-continual-release 4.1).

The papers' neighbours replace one row of {0,1}^d by any other. Under add/remove, which is the weaker promise, a row is
replaced in two steps, so a certified floor is that of twice the epsilon; all-zero against non-zero is one step.
Rows with at most `max_per_event` ones restrict the packings to such rows; the rows that all streams share may be sums
of several events.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from flint import arb

from evertally.balls import at_precision
from evertally.errors import ConfigurationError
from evertally.privacy._exact import Number, ball

Task = Literal["max_sum", "sum_select"]
Steps = Literal["replace", "add_remove"]

_BITS = 192
_GRID = 1 << 16


@dataclass(frozen=True)
class Floor:
    """An error that cannot be beaten, and whether that is certified or an order of magnitude.

    >>> Floor(17.0, certified=True, note="an example").value
    17.0
    """

    value: float
    certified: bool
    note: str


_PROVED = "every mechanism exceeds or meets it at some tick, or fails with probability above 1/3"


def max_sum_pure(
    T: int, d: int, epsilon: Number, *, neighbours: Steps = "replace", max_per_event: int | None = None
) -> Floor:
    """Certified floor of MaxSum under pure DP (price-of-continual-release 4.2, marginals packing).

    Time: at most min(d, T/2) logarithms, far fewer as a rule.

    >>> max_sum_pure(65536, 1024, 1).value, max_sum_pure(65536, 1024, 1, neighbours="add_remove").value
    (75.5, 53.0)
    """
    _check(T, d)
    step = _per_row(epsilon, neighbours)
    # One column, zeros against ones: needs no reduction, and is one step under either relation.
    best = min(T, _least(2, 1, Fraction(epsilon)) - 1)
    for width in range(1, min(d, T // 2, max_per_event or d) + 1):
        if T // (2 * width) <= best:
            break
        best = max(best, min(T // (2 * width), _least(2, width, step) - 1))
    return Floor(best / 2, True, _PROVED)


def sum_select_pure(
    T: int, d: int, epsilon: Number, *, neighbours: Steps = "replace", max_per_event: int | None = None
) -> Floor:
    """Certified floor of SumSelect under pure DP (price-of-continual-release 4.2, k-Select packing).

    >>> sum_select_pure(65536, 1024, 1).value, sum_select_pure(1000, 1, 1).value
    (201.0, 0.0)
    """
    _check(T, d)
    if d == 1:
        return Floor(0.0, True, "there is one column to select")
    step = _per_row(epsilon, neighbours)
    best = min(T, _least(d, 1, step) - 1)
    for k in range(1, min(d // 2, T // 4, max_per_event or d) + 1):
        if T // (4 * k) <= best:
            break
        best = max(best, min(T // (4 * k), _least(d // k, k, step) - 1))
    return Floor(float(best), True, _PROVED)


def two_point(epsilon: Number, delta: Number = 0) -> int:
    """c*: two streams that differ in fewer than c* steps cannot be told apart with probability 2/3.

    The least c with exp(c eps)/3 + delta (exp(c eps) - 1)/(exp(eps) - 1) >= 2/3, never too large.

    >>> two_point(1), two_point(0.1, 1e-6), two_point(0.01, 1e-6), two_point(0.001, 1e-9)
    (1, 7, 70, 694)
    """

    def least() -> int:
        share = ball(Fraction(delta)) / ball(Fraction(epsilon)).expm1()
        return _ceil(((2 + 3 * share) / (1 + 3 * share)).log() / ball(Fraction(epsilon)))

    return at_precision(_BITS, least)


def max_sum_two_point(T: int, epsilon: Number, delta: Number) -> Floor:
    """Certified floor of MaxSum under (epsilon, delta)-DP: weak, but with explicit constants.

    >>> max_sum_two_point(1000, 0.01, 1e-6).value
    34.5
    """
    _check(T, 1)
    return Floor(min(T, two_point(epsilon, delta) - 1) / 2, True, _PROVED)


def sum_select_two_point(T: int, d: int, epsilon: Number, delta: Number, *, neighbours: Steps = "replace") -> Floor:
    """Certified floor of SumSelect under (epsilon, delta)-DP.

    >>> sum_select_two_point(1000, 5, 0.01, 1e-6).value
    69.0
    """
    _check(T, d)
    if d == 1:
        return Floor(0.0, True, "there is one column to select")
    rows = -(-two_point(epsilon, delta) // (1 if neighbours == "replace" else 2))
    return Floor(float(min(T, rows - 1)), True, _PROVED)


def histogram_independent(T: int, d: int, epsilon: Number, *, beta: Number = Fraction(1, 3)) -> Floor:
    """Certified floor of a histogram that is private for *independent* neighbours (parameterized-histograms 9.1).

    The largest b with (1 - beta) floor(T/b)^d exp(-2 b epsilon) > 1, halved: on some stream the error is at least this
    with probability beta. Event-level mechanisms may beat it, as their promise is weaker.

    >>> histogram_independent(10**6, 100, 1).value
    196.0
    """
    _check(T, d)

    def too_large(b: int) -> bool:
        chance, spent = 1 - Fraction(beta), 2 * b * Fraction(epsilon)
        return not at_precision(_BITS, lambda: ball(chance).log() + d * arb(T // b).log() - ball(spent)) > 0

    largest = bisect_left(range(1, T + 1), True, key=too_large)
    return Floor(largest / 2, True, f"independent neighbours, failure probability {float(beta):.3g}")


def histogram_independent_shape(T: int, d: int, epsilon: float) -> Floor:
    """Theorem 5: d ln T/(16 epsilon) for d <= sqrt T and T large enough (parameterized-histograms 9.1).

    >>> round(histogram_independent_shape(10**6, 100, 1.0).value, 1)
    86.3
    """
    _check(T, d)
    reach = "T large enough" if d * d <= T else "outside the theorem: d > sqrt T"
    return Floor(d * math.log(T) / (16 * epsilon), False, f"independent neighbours, {reach}")


def shape(task: Task, T: int, d: int, epsilon: float, delta: float = 0.0, *, C: float = 1.0, c0: float = 0.01) -> Floor:
    """Order of magnitude of the floor, price-of-continual-release 4.1 with the guards of 4.2.

    C is the constant that the theorems do not give. The approximate-DP statements need delta = o(epsilon/T), read here
    as delta <= c0 epsilon/T; above it they say nothing and the value is 0.

    >>> round(shape("max_sum", 10**6, 10**6, 1.0).value), round(shape("max_sum", 10**6, 10**6, 1.0, 1e-9).value, 1)
    (1000, 17.4)
    >>> shape("max_sum", 10**6, 10**6, 1.0, 1e-3).value
    0.0
    """
    _check(T, d)
    note = f"order of magnitude, not certified, constant C = {C:g}"
    if epsilon > 1:
        note += "; outside the theorem: epsilon > 1"
    if delta > c0 * epsilon / T:
        return Floor(0.0, False, note + f"; does not apply: delta above {c0:g} epsilon/T")
    if task == "sum_select" and d == 1:
        return Floor(0.0, False, "there is one column to select")
    if epsilon <= 2 / T:
        return Floor(T / 9 if task == "max_sum" else C * T, False, note + "; epsilon at most 2/T")
    order = _max_sum_terms(T, d, epsilon, delta) if task == "max_sum" else best_blocks(T, d, epsilon, delta)[1]
    return Floor(C * min(order, float(T)), False, note)


def zcdp_shape(task: Task, T: int, d: int, rho: float, *, eta: float = 0.01, C: float = 1.0) -> Floor:
    """The shape for rho-zCDP, through the (epsilon, delta) that it implies at delta = eta epsilon/T.

    There is no lower bound for zCDP in the paper; this route gives an order of magnitude only.

    >>> round(zcdp_shape("max_sum", 10**6, 10**6, 0.01).value, 1)
    19.2
    """
    epsilon = 1.0
    for _ in range(100):  # a fixed point: the right side moves with the logarithm of epsilon only
        delta = min(eta * epsilon / T, 0.5)
        epsilon = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    return shape(task, T, d, epsilon, delta, C=C, c0=math.inf)  # delta is small enough by construction


def price(task: Task, T: int, d: int, epsilon: float, delta: float = 0.0, *, C: float = 1.0) -> float:
    """What continual release costs: the shape of the floor over the error of one release at the end.

    One release of MaxSum is off by about 1/epsilon, one selection by ln(d)/epsilon (price-of-continual-release 4.3).

    >>> round(price("max_sum", 10**6, 10**6, 1.0)), round(price("sum_select", 10**6, 10**6, 1.0))
    (1000, 204)
    """
    batch = 1 / epsilon if task == "max_sum" else _log(d) / epsilon
    return shape(task, T, d, epsilon, delta, C=C).value / batch


def best_blocks(T: int, d: int, epsilon: float, delta: float = 0.0) -> tuple[int, float]:
    """The number k of blocks with the largest alpha_k, and alpha_k (price-of-continual-release 4.1).

    alpha_k is not unimodal for d below 9874, so k is scanned; above 2^16 on a grid that is fine enough for a shape.

    >>> k, alpha = best_blocks(65536, 1024, 1.0)
    >>> k, round(alpha)
    (179, 366)
    """
    top = max(1, min(d // 2, T // 4))
    k = np.arange(1.0, top + 1) if top <= _GRID else np.unique(np.geomspace(1, top, _GRID).round())
    if delta == 0:
        selected = k * np.log(2 + d / k) / epsilon
    else:
        selected = np.sqrt(k) * np.log(2 + d / k) / (epsilon * np.log(2 + k))
    alpha = np.minimum(selected, T / k)
    best = int(alpha.argmax())
    return int(k[best]), float(alpha[best])


def _max_sum_terms(T: int, d: int, epsilon: float, delta: float) -> float:
    if delta == 0:
        return min(math.sqrt(T / epsilon), d / epsilon)
    return min(math.cbrt(T / (epsilon * _log(epsilon * T)) ** 2), math.sqrt(d) / (epsilon * _log(d)))


def _log(x: float) -> float:
    return max(1.0, math.log(x)) if x > 0 else 1.0


def _least(base: int, length: int, epsilon: Fraction) -> int:
    """The least c with exp(c epsilon) >= 2 (base^length - 1): at this distance that many words can be told apart."""

    def least() -> int:
        others = length * arb(base).log() + (-(arb(base) ** -length)).log1p()  # without the power, which is huge
        return _ceil((arb(2).log() + others) / ball(Fraction(epsilon)))

    return at_precision(_BITS, least)


def _ceil(x: Any) -> int:
    """ceil of the lower end of a ball: a floor must not be a step too high."""
    return int(x.lower().ceil().unique_fmpz())


def _per_row(epsilon: Number, neighbours: Steps) -> Fraction:
    """The epsilon of replacing one row."""
    return Fraction(epsilon) * (1 if neighbours == "replace" else 2)


def _check(T: int, d: int) -> None:
    if T < 1 or d < 1:
        raise ConfigurationError(f"a floor needs at least one tick and one column; got {T} and {d}")
