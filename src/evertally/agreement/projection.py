"""The nearest numbers that keep what is known of the truth: sums that agree, nothing below 0, totals that never fall.

Numbers y = x + e, e of known covariance C, and the truth x in a convex set K. The fit is the point of K next to y in
the norm of C^-1, so for every noise whatsoever, not only in the mean,

    |fit - x| <= |y - x|    in that norm (a projection onto a convex set moves no two points apart, and x stays).

Sums alone make K a subspace {E x = 0}. Then the fit is linear, the best linear unbiased estimate (Gauss, Markov), of
covariance C - C E' (E C E')^+ E C: no number of it has more variance than it had. Of the rest no such law is claimed.

C is never inverted: it is singular where numbers are differences of the same releases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertally.errors import ConfigurationError

FloatArray = NDArray[np.float64]

_PIVOTS = 100
_TINY = 1e-10


class Fitted(NamedTuple):
    """The fit, and the variances of its linear part, that keeps the sums alone."""

    values: FloatArray
    variances: FloatArray


def project(y: FloatArray, covariance: FloatArray, equal: FloatArray, above: FloatArray) -> Fitted:
    """The point next to y with `equal` x = 0 and `above` x >= 0, row by row.

    >>> y, C = np.array([10.0, 4.0, 3.0]), np.diag([1.0, 1.0, 1.0])
    >>> project(y, C, np.array([[1.0, -1.0, -1.0]]), np.empty((0, 3))).values.tolist()  # a total and its two parts
    [9.0, 5.0, 4.0]
    """
    scale = float(np.max(np.diag(covariance), initial=0.0)) or 1.0
    C = covariance / scale
    x, C = _onto_sums(y, C, equal)
    variances = np.maximum(np.diag(C), 0.0) * scale
    if len(above):
        forces = _complementary(above @ C @ above.T, above @ x)
        x = x + C @ (above.T @ forces)
    return Fitted(x, variances)


def _onto_sums(y: FloatArray, C: FloatArray, equal: FloatArray) -> tuple[FloatArray, FloatArray]:
    if not len(equal):
        return y, C
    CE = C @ equal.T
    gain = CE @ np.linalg.pinv(equal @ CE, rcond=_TINY, hermitian=True)
    off = equal @ y
    x = y - gain @ off
    if np.max(np.abs(equal @ x)) > 1e-6 * (1.0 + np.max(np.abs(y))):
        raise ConfigurationError(
            "these sums cannot hold: their numbers have no noise, or the same noise, and contradict each other"
        )
    left = C - gain @ CE.T
    return x, (left + left.T) / 2


def _complementary(Q: FloatArray, q: FloatArray) -> FloatArray:
    """mu >= 0 with Q mu + q >= 0 and one of both 0 in every place, for Q without negative eigenvalues."""
    small = _TINY * (1.0 + float(np.max(np.abs(q), initial=0.0)))
    found = _by_blocks(Q, q, small)
    return _one_by_one(Q, q, small) if found is None else found


def _by_blocks(Q: FloatArray, q: FloatArray, small: float) -> FloatArray | None:
    """Everything that is on the wrong side changes sides at once (Portugal, Judice and Vicente 1994): a few solves.
    None where that goes round in circles, or Q is singular on the way."""
    free = q < -small
    fewest, patience = len(q) + 1, 3
    for _ in range(_PIVOTS):
        mu = np.zeros(len(q))
        try:
            mu[free] = _solved(Q[np.ix_(free, free)], -q[free])
        except np.linalg.LinAlgError:
            return None
        wrong = np.where(free, mu < -small, Q @ mu + q < -small)
        count = int(np.count_nonzero(wrong))
        if not count:
            return np.maximum(mu, 0.0)
        patience = 3 if count < fewest else patience - 1
        fewest = min(fewest, count)
        if patience < 0:
            return None
        free = free ^ wrong
    return None


def _solved(Q: FloatArray, right: FloatArray) -> FloatArray:
    """Raises LinAlgError unless Q is positive definite."""
    root = np.linalg.cholesky(Q)
    if np.min(np.diag(root), initial=1.0) < 1e-7:  # singular, but for roundings
        raise np.linalg.LinAlgError
    return np.linalg.solve(root.T, np.linalg.solve(root, right))


def _one_by_one(Q: FloatArray, q: FloatArray, small: float) -> FloatArray:
    """The active set of Lawson and Hanson (1974): slower, always ends. A row that follows from the others is at its
    bound when they are, so it never enters."""
    free = np.zeros(len(q), dtype=bool)
    mu = np.zeros(len(q))
    for _ in range(30 * len(q) + 30):
        pull = np.where(free, 0.0, -(Q @ mu + q))
        enters = int(np.argmax(pull))
        if pull[enters] <= small:
            return mu
        free[enters] = True
        while True:
            wanted = np.zeros(len(q))
            try:
                wanted[free] = _solved(Q[np.ix_(free, free)], -q[free])
            except np.linalg.LinAlgError:
                wanted[free] = np.linalg.lstsq(Q[np.ix_(free, free)], -q[free], rcond=_TINY)[0]
            falls = free & (wanted <= 0)
            if not falls.any():
                break
            ratio = np.min(mu[falls] / np.maximum(mu[falls] - wanted[falls], 1e-300))
            mu = mu + ratio * (wanted - mu)
            free &= mu > small * 1e-3
            mu[~free] = 0.0
        mu = wanted
    raise ArithmeticError("the nearest numbers were not found; leave out constraints that follow from others")
