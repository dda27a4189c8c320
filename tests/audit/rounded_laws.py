"""The joint law of rounded releases of a bank over a few ticks, by integration: of the mechanism as it is, not of the
real numbers behind it.

Noise is floor(W z + 1/2), W lower triangular and read off the program, z normal. The probability of integers k_1 .. k_T
is an integral over z_1 .. z_(T-1), each over the interval that its tick leaves to it, of the normal probability of the
last: Gauss-Legendre nodes on every interval, logarithms throughout, since divergences of high order live in far tails.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

NODES = 20


def log_between(low: Any, high: Any) -> Any:
    """ln P(low < z < high), also far out."""
    flip = low + high > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    top = log_ndtr(high)
    return top + np.log1p(-np.exp(np.minimum(log_ndtr(low) - top, -1e-300)))


class RoundedLaw:
    """ln P(k) of integer paths."""

    def __init__(self, W: np.ndarray[Any, Any], nodes: int = NODES) -> None:
        self.W, self.ticks = W, len(W)
        self._nodes, weights = np.polynomial.legendre.leggauss(nodes)
        self._weights = np.log(weights)

    def log_mass(self, paths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Of integer paths (n, ticks)."""
        return np.concatenate([self._log_mass(part) for part in np.array_split(paths, 1 + len(paths) // 256)])

    def _log_mass(self, paths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        total = np.zeros((len(paths), 1))
        drawn: list[np.ndarray[Any, Any]] = []
        for t in range(self.ticks):
            carried = sum((w * z for w, z in zip(self.W[t], drawn, strict=False)), np.zeros_like(total))
            low, high = ((paths[:, t, None] + side - carried) / self.W[t, t] for side in (-0.5, 0.5))
            if t == self.ticks - 1:
                return np.asarray(logsumexp(total + log_between(low, high), axis=1))
            z = (low[:, :, None] + high[:, :, None]) / 2 + self._nodes * (high - low)[:, :, None] / 2
            density = -(z**2) / 2 - 0.5 * np.log(2 * np.pi) + self._weights + np.log((high - low) / 2)[:, :, None]
            total = (total[:, :, None] + density).reshape(len(paths), -1)
            drawn = [np.repeat(one, len(self._nodes), axis=1) for one in drawn] + [z.reshape(len(paths), -1)]
        raise AssertionError("a law has at least one tick")

    def around(self, centre: np.ndarray[Any, Any], reach: float = 6.0) -> np.ndarray[Any, Any]:
        """The integer paths within `reach` deviations of a real one."""
        deviations = np.sqrt((self.W**2).sum(axis=1))
        sides = [
            range(int(np.floor(c - reach * d - 0.5)), int(np.ceil(c + reach * d + 0.5)) + 1)
            for c, d in zip(centre, deviations, strict=True)
        ]
        paths = np.array(list(product(*sides)))
        inverse = np.linalg.inv(self.W)
        # a cell reaches half a unit around its integer in every tick
        slack = np.linalg.norm(np.abs(inverse).sum(axis=1)) / 2
        return np.asarray(paths[np.linalg.norm((paths - centre) @ inverse.T, axis=1) <= reach + slack])

    def renyi(self, change: np.ndarray[Any, Any], order: float, reach: float = 6.0) -> float:
        """Divergence of noise + change from noise. Terms far from order * change, where the moment is, are left out:
        what is found is below the truth by a factor of e^(-reach^2/2)."""
        paths = self.around(order * change, reach)
        terms = order * self.log_mass(paths - change) + (1 - order) * self.log_mass(paths)
        return float(logsumexp(terms) / (order - 1))

    def delta(self, change: np.ndarray[Any, Any], epsilon: float, reach: float = 6.0) -> float:
        """Hockey-stick divergence of noise + change from noise."""
        paths = self.around(change, reach)
        left, right = self.log_mass(paths - change), self.log_mass(paths)
        return float(np.exp(left[left > epsilon + right]).sum() - np.exp(epsilon + right[left > epsilon + right]).sum())
