"""The nearest numbers where the noise of each is its own: many labels at one tick, and few sums.

The same point as projection.py finds. Given a force f for each sum, every number settles by itself: y_i + v_i (E'f)_i,
or 0 where that is below. The forces at which the sums agree make a convex function least, of as many variables as there
are sums: Newton's steps with a line search, a matrix of sums by numbers, and nothing that is quadratic in numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.agreement.projection import Fitted, FloatArray

_STEPS = 200


def project_apart(y: FloatArray, variances: FloatArray, equal: FloatArray, above: NDArray[np.bool_]) -> Fitted:
    """The point next to y with `equal` x = 0, and x >= 0 where `above`, for noise of these variances.

    >>> y, v = np.array([10.0, 4.0, -3.0]), np.ones(3)
    >>> fit = project_apart(y, v, np.array([[1.0, -1.0, -1.0]]), np.ones(3, dtype=bool))
    >>> fit.values.tolist()
    [7.0, 7.0, 0.0]
    """
    scale = float(np.max(variances)) or 1.0
    # Numbers without noise hardly move; a little keeps every step defined.
    v = np.maximum(variances / scale, 1e-12)
    spread = equal * v
    own = np.linalg.pinv(spread @ equal.T, rcond=1e-10, hermitian=True)
    linear = v - np.einsum("ki,kl,li->i", spread, own, spread, optimize=True)
    forces = -own @ (equal @ y)

    def settled(forces: FloatArray) -> tuple[FloatArray, NDArray[np.bool_], float]:
        x = y + forces @ spread
        free = (x > 0) | ~above
        x = np.where(free, x, 0.0)
        return x, free, float(np.sum(x * x / v)) / 2

    x, free, height = settled(forces)
    small = 1e-9 * (1.0 + float(np.max(np.abs(y))))
    for _ in range(_STEPS):
        slope = equal @ x
        if np.max(np.abs(slope), initial=0.0) <= small:
            return Fitted(x, np.maximum(linear, 0.0) * scale)
        step = -np.linalg.lstsq((spread * free) @ equal.T, slope, rcond=1e-12)[0]
        length, gain = 1.0, float(slope @ step)
        if gain > -1e-300:
            step, gain = -slope, -float(slope @ slope)
        x, free, lower = settled(forces + step)
        while lower > height + 1e-4 * length * gain and length > 1e-12:
            length /= 2
            x, free, lower = settled(forces + length * step)
        forces, height = forces + length * step, lower
    raise ArithmeticError("the nearest numbers were not found; leave out sums that follow from others")
