"""Games with two neighbouring streams of records: which of them is played is what the adversary guesses.

The score is the most powerful one, from the noise matrix of the program: linear for Gaussian noise, the log-likelihood
ratio of the draws for Laplace noise. Games see whether draws have the law that the closed form trusts in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.adversaries import Scripted
from evertally.audit.dynamic import Losses
from evertally.audit.game import FloatArray, Views
from evertally.audit.gaussian import impulse_response, is_gaussian, laplace_scales
from evertally.audit.laplace import hiding, is_real_laplace
from evertally.audit.whitebox import nearly_normal
from evertally.noise import NoiseKey


@dataclass(frozen=True)
class Neighbours:
    """Two streams behind the door, and the exact sums of the columns in which they differ, tick by tick."""

    model: Any
    left: list[Any]
    right: list[Any]
    columns: list[int]
    left_sums: FloatArray
    right_sums: FloatArray

    def mechanism(self, key: NoiseKey) -> OneOfTwo:
        return OneOfTwo(self.model, self._engine, self.left, self.right, self.columns, key)

    @cached_property
    def _engine(self) -> Any:
        return self.model._blueprint().engine

    @property
    def gaussian(self) -> bool:
        """Whether scores are nearly normal, so that their mean tells all."""
        return is_gaussian(self._losses.laws) and nearly_normal(self.model)

    @cached_property
    def _losses(self) -> Losses:
        ticks = len(self.left)
        W, laws = impulse_response(self.model, ticks)
        return Losses(W, laws, float(self.model.noise.spread(ticks).roundings))

    def score(self, paths: FloatArray) -> FloatArray | None:
        """How much each path (trials, ticks, columns) looks like the left stream; None: there is no formula, or a
        combination of releases carries no noise."""
        losses, moved = self._losses, self.left_sums - self.right_sums
        if not losses.known:
            return None
        try:
            if is_gaussian(losses.laws):
                return np.asarray(np.einsum("ntc,tc->n", paths, np.linalg.solve(losses.covariance, moved)))
            if is_real_laplace(losses.laws):
                return _shifted(losses.W, paths - self.right_sums, moved)
            inverse = np.linalg.inv(losses.W)
        except np.linalg.LinAlgError:
            return None
        z = np.rint(np.einsum("it,ntc->nic", inverse, paths - self.right_sums))
        ratio = np.abs(z) - np.abs(z - np.rint(inverse @ moved))
        return np.asarray(np.einsum("nic,i->n", ratio, 1 / laplace_scales(losses.laws)))


def _shifted(W: FloatArray, paths: FloatArray, moved: FloatArray) -> FloatArray:
    """About the log-likelihood ratio: the least draws that explain a path, against those shifted to hide the change."""
    draws = np.einsum("mt,ntc->nmc", np.linalg.pinv(W), paths, optimize=True)
    return np.asarray((np.abs(draws) - np.abs(draws - hiding(W, moved.T).shifts.T)).sum(axis=(1, 2)))


class WorstNeighbours(Scripted):
    """Tells which of two streams was played by the most powerful score."""

    def __init__(self, neighbours: Neighbours) -> None:
        super().__init__("the worst neighbours", np.array([[1]]), np.array([[0]]))
        self._neighbours = neighbours

    def score(self, views: Views) -> FloatArray | None:
        return self._neighbours.score(views.releases)


class OneOfTwo:
    """A mechanism for games: the first row says which of two streams is played, later ones nothing."""

    columns = 1

    def __init__(
        self, model: Any, engine: Any, left: list[Any], right: list[Any], columns: list[int], key: NoiseKey
    ) -> None:
        self._sides, self._columns = (right, left), columns
        self._engine = engine(key.source("audit"))
        self._state, self._side, self._tick = self._engine.start(), 0, 0
        self.guarantee, self.charge = model.guarantee, model.charge
        self.mechanism, self.horizon = model.mechanism, len(left)
        self.audited_as = type(model).__name__

    def step(self, row: int) -> FloatArray:
        if not self._tick:
            self._side = int(row != 0)
        self._engine.begin(self._tick)
        played = self._engine.play([self._sides[self._side][self._tick]], self._state)
        self._state, self._tick = played.state, self._tick + 1
        return np.asarray(played.rows[-1][self._columns], dtype=np.float64)
