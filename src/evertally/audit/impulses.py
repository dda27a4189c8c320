"""The noise of a whole mechanism, read by impulses: one draw after the other, whatever is between a draw and a release.

`audit.gaussian` reads the noise process of linear mechanisms, all draws at once. Here the mechanism itself is played,
once for each draw, without noise but for an impulse in that draw: one that several releases share shows in all of them,
and so does what a restored mechanism makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from evertally.audit.game import FloatArray, IntArray
from evertally.audit.gaussian import AnyLaw, fitting, height_of, is_gaussian, sigma_squared
from evertally.audit.laplace import hiding
from evertally.noise import DiscreteLaplace, NoiseKey, ZeroNoise
from evertally.noise.reals import KnownReals, RealLaw
from evertally.noise.source import ItemSource, ZeroSource


class _Planted(ZeroSource):
    """An impulse in one draw, by the order in which draws are first asked for."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.laws_drawn: list[AnyLaw] = []
        self._places: dict[tuple[str, int, int], int] = {}

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = [int(node) for node in nodes]
        out = np.zeros((len(index), coordinates), dtype=np.int64)
        for i, node in enumerate(index):
            for j in range(coordinates):
                place = self._places.setdefault((lane, node, first + j), len(self._places))
                if place == len(self.laws_drawn):
                    self.laws_drawn.append(law)
                out[i, j] = height_of(law) if place == self._at else 0
        return out

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(self.draws(lane, law, nodes, coordinates, first).astype(np.float64))


class _PlantedKey(ZeroNoise):
    """The key of such noise."""

    def __init__(self, at: int) -> None:
        self.made = _Planted(at)

    def source(self, *path: str | bytes) -> ItemSource:
        return self.made


@fitting
def read_noise(play: Callable[[NoiseKey], FloatArray]) -> tuple[FloatArray, list[AnyLaw]]:
    """W (numbers x draws) and the law of each draw, of what `play` releases under a key: always the same numbers, on
    the same stream.

    >>> import evertally as et
    >>> def play(key):
    ...     tree = et.Counter(guarantee=et.PureDP(1.0), horizon=2, mechanism="tree", radix=2, key=key)
    ...     return tree.run([0, 0]).astype(float)
    >>> read_noise(play)[0].tolist()  # the first tick, and both
    [[1.0, 0.0], [0.0, 1.0]]
    """
    silent, columns = play(ZeroNoise()), list[FloatArray]()
    while True:
        key = _PlantedKey(len(columns))
        response, laws = play(key) - silent, key.made.laws_drawn
        if len(columns) >= len(laws):
            return np.array(columns).T, laws
        columns.append(response / height_of(laws[len(columns)]))


def losses_of(W: FloatArray, laws: list[AnyLaw], changes: FloatArray, roundings: float = 0.0) -> FloatArray:
    """Epsilon, or mu, of each change of the numbers that W is the noise of."""
    if is_gaussian(laws):
        variances = np.array([sigma_squared(law) for law in laws])
        covariance = (W * variances) @ W.T + roundings / 12 * np.eye(len(W))
        return np.asarray(np.sqrt(np.einsum("nt,tu,nu->n", changes, np.linalg.inv(covariance), changes)))
    scales = np.array([float(law.scale) if isinstance(law, DiscreteLaplace) else 1.0 for law in laws])
    return np.asarray(hiding(W * scales, changes).lower)
