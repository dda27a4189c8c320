"""The noise of a small copy, draw by draw, and what it costs to hide a change behind it.

As `audit.impulses` does, the whole mechanism is played once for every draw, without noise but for an impulse in that
draw. Here it is also asked whether that is all: draws of other kinds (of items that nobody listed, variates of
selections), and releases that are not exact numbers plus noise, have no such matrix (`NotAffine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.audit.game import FloatArray, IntArray
from evertally.audit.gaussian import AnyLaw, height_of, is_gaussian, sigma_squared
from evertally.audit.laplace import hiding
from evertally.noise import DiscreteLaplace, NoiseKey, ZeroNoise
from evertally.noise.reals import KnownReals, RealLaw
from evertally.noise.source import ItemSource, ZeroSource

MOST_DRAWS = 400
_CLOSE = 1e-5  # of an entry: real draws are read through a rounding
_SILENT = 1e-7  # of a change that no noise hides


class NotAffine(Exception):
    """What is released is not exact numbers plus a fixed matrix times draws; the text says why."""


class _Impulse(ZeroSource):
    """Noise that is zero but in one draw, by the order in which draws are first asked for."""

    def __init__(self, at: int, height: int) -> None:
        self._at, self._height = at, height
        self.laws_drawn: list[AnyLaw] = []
        self._places: dict[tuple[str, int, int], int] = {}
        self.others = ""  # what else was drawn

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = [int(node) for node in nodes]
        out = np.zeros((len(index), coordinates), dtype=np.int64)
        for i, node in enumerate(index):
            for j in range(coordinates):
                place = self._places.setdefault((lane, node, first + j), len(self._places))
                if place == len(self.laws_drawn):
                    self.laws_drawn.append(law)
                out[i, j] = self._height * height_of(law) if place == self._at else 0
        return out

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(self.draws(lane, law, nodes, coordinates, first).astype(np.float64))

    def variates(self, lane: str, kind: Any, node: int, coordinates: int) -> Any:
        self.others = "it selects by variates"
        return super().variates(lane, kind, node, coordinates)

    def item_draws(self, lane: str, law: Any, node: int, items: Any) -> IntArray:
        self.others = "its noise is that of labels"
        return super().item_draws(lane, law, node, items)

    def item_reals(self, lane: str, law: Any, nodes: range, items: Any) -> KnownReals:
        self.others = "its noise is that of labels"
        return super().item_reals(lane, law, nodes, items)

    def item_variates(self, lane: str, kind: Any, node: int, items: Any) -> Any:
        self.others = "it selects by variates"
        return super().item_variates(lane, kind, node, items)


class _ImpulseKey(ZeroNoise):
    def __init__(self, at: int, height: int = 1) -> None:
        self.made = _Impulse(at, height)

    def source(self, *path: str | bytes) -> ItemSource:
        return self.made


Play = Callable[[NoiseKey], FloatArray | None]


@dataclass(frozen=True)
class Noise:
    """W (numbers x draws) and the law of each draw.

    >>> import evertally as et
    >>> def play(key):
    ...     tree = et.Counter(guarantee=et.PureDP(1.0), horizon=2, mechanism="tree", radix=2, key=key)
    ...     return tree.run([0, 0]).astype(float)
    >>> noise = Noise.read(play)
    >>> noise.lost(np.array([[1.0, 1.0], [0.0, 1.0]])).round(6).tolist()  # an event in tick 1 is in both blocks
    [1.0, 0.5]
    """

    W: FloatArray
    laws: list[AnyLaw]

    @classmethod
    def read(cls, play: Play, other: Play | None = None) -> Noise:
        """Of what `play` releases; on `other`, another stream, it must be the same."""
        silent, columns = _asked(play, ZeroNoise()), list[FloatArray]()
        while True:
            key = _ImpulseKey(len(columns))
            response = _asked(play, key)
            laws = key.made.laws_drawn
            if key.made.others:
                raise NotAffine(key.made.others)
            if len(laws) > MOST_DRAWS:
                raise NotAffine(f"a small copy of it makes more than {MOST_DRAWS} draws")
            if len(response) != len(silent):
                raise NotAffine("how much is released follows from noise")
            if len(columns) >= len(laws):
                break
            columns.append((response - silent) / height_of(laws[len(columns)]))
        found = cls(np.array(columns).T.reshape(len(silent), len(columns)), laws)
        found._check(play, silent)
        if other is not None:
            found._check(other, _asked(other, ZeroNoise()))
        return found

    def _check(self, play: Play, silent: FloatArray) -> None:
        """An impulse the other way, in draws that are told apart, moves releases by what W says."""
        for at in sorted({0, len(self.laws) // 2, len(self.laws) - 1} & set(range(len(self.laws)))):
            key = _ImpulseKey(at, -1)
            moved = (_asked(play, key) - silent) / -height_of(self.laws[at])
            if key.made.laws_drawn != self.laws or not np.allclose(moved, self.W[:, at], atol=_CLOSE, rtol=_CLOSE):
                raise NotAffine("what noise does to a release follows from the events")

    @property
    def gaussian(self) -> bool:
        """Whether all draws are normal."""
        return bool(self.laws) and is_gaussian(self.laws)

    @property
    def laplace(self) -> bool:
        """Whether none is."""
        return all(
            isinstance(law, DiscreteLaplace) or (isinstance(law, RealLaw) and law.kind != "normal") for law in self.laws
        )

    def lost(self, changes: FloatArray) -> FloatArray:
        """At least how much each change of the numbers shows: mu, or epsilon. Infinite where no noise hides it."""
        if self.gaussian:
            return self._by_normal_laws(changes)
        scales = np.array([float(law.scale) if isinstance(law, DiscreteLaplace) else 1.0 for law in self.laws])
        W = self.W * scales
        kept, hidden = _independent(W, changes)
        found = np.full(len(changes), math.inf)
        if hidden.any():
            found[hidden] = hiding(W[kept], changes[np.ix_(hidden, kept)]).lower
        return found

    def _by_normal_laws(self, changes: FloatArray) -> FloatArray:
        """The distance of two normal laws: the least norm of a shift of the draws that makes the change."""
        W = self.W * np.sqrt([sigma_squared(law) for law in self.laws])
        shifts, *_ = np.linalg.lstsq(W, changes.T, rcond=1e-10)
        left = np.abs(W @ shifts - changes.T).max(axis=0, initial=0.0)
        found = np.linalg.norm(shifts, axis=0)
        found[left > _SILENT * np.maximum(1.0, np.abs(changes).max(axis=1, initial=0.0)) * 1e3] = math.inf
        return np.asarray(found)


def _asked(play: Play, key: NoiseKey) -> FloatArray:
    found = play(key)
    if found is None:
        raise NotAffine("it releases no fixed table of numbers")
    return found


def _independent(W: FloatArray, changes: FloatArray) -> tuple[IntArray, Any]:
    """Rows of W that no others make up, and which changes the dropped ones do not betray: those that follow the same
    combinations."""
    kept: list[int] = []
    for row in range(len(W)):
        tried = W[[*kept, row]]
        if np.linalg.matrix_rank(tried, tol=1e-9 * max(1.0, float(np.abs(W).max(initial=0.0)))) > len(kept):
            kept.append(row)
    index = np.array(kept, dtype=np.int64)
    if not len(index):
        return index, ~np.abs(changes).any(axis=1)
    combined, *_ = np.linalg.lstsq(W[index].T, W.T, rcond=None)  # every row as a combination of those
    told = np.abs(changes - changes[:, index] @ combined).max(axis=1, initial=0.0)
    return index, told <= _SILENT * np.maximum(1.0, np.abs(changes).max(axis=1, initial=0.0)) * 1e3
