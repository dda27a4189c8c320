"""The noise of a small copy, draw by draw, and what it costs to hide a change behind it.

As `audit.impulses` does, the whole mechanism is played without noise but for an impulse in a draw. Here it is also
asked whether that is all: draws of other kinds (of items that nobody listed, variates of selections), and releases that
are not exact numbers plus noise, have no such matrix (`NotAffine`). Where columns have draws of their own, all columns
of a node are read at once; that they have is not believed but tried, with other heights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.game import FloatArray, IntArray
from evertally.audit.gaussian import AnyLaw, fitting, height_of, is_gaussian, sigma_squared
from evertally.audit.laplace import hiding
from evertally.noise import DiscreteLaplace, NoiseKey, ZeroNoise
from evertally.noise.reals import KnownReals, RealLaw
from evertally.noise.source import ItemSource, ZeroSource

MOST_DRAWS = 400
_FEW_DRAWS = 40  # read one by one
_LARGEST = 2**26  # entries of a matrix
_CLOSE = 1e-5  # of an entry: real draws are read through a rounding
_SILENT = 1e-4  # of a change that no noise hides

Place = tuple[str, int, int]  # lane, node, column
Heights = Mapping[Place, int]  # of impulses; no other draw has one
Call = tuple[str, tuple[int, ...], int, int]  # lane, nodes, columns, the first of them


class NotAffine(Exception):
    """What is released is not exact numbers plus a fixed matrix times draws; the text says why."""


class _Impulses(ZeroSource):
    """Noise that is zero but in some draws."""

    def __init__(self, heights: Heights) -> None:
        self._heights = heights
        self.calls: dict[Call, AnyLaw] = {}  # in the order in which they are made
        self.others = ""  # what else was drawn

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = tuple(int(node) for node in nodes)
        self.calls.setdefault((lane, index, coordinates, first), law)
        out = np.zeros((len(index), coordinates), dtype=np.int64)
        row = {node: i for i, node in enumerate(index)} if self._heights else {}
        for (of, node, column), height in self._heights.items():
            if of == lane and node in row and first <= column < first + coordinates:
                out[row[node], column - first] = height * height_of(law)
        return out

    @property
    def drawn(self) -> dict[Place, AnyLaw]:
        """The law of each draw, in the order in which they are first asked for."""
        found: dict[Place, AnyLaw] = {}
        for (lane, nodes, coordinates, first), law in self.calls.items():
            for node in nodes:
                for column in range(first, first + coordinates):
                    found.setdefault((lane, node, column), law)
        return found

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
    def __init__(self, heights: Heights) -> None:
        self.made = _Impulses(heights)

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
    places: list[Place]
    drawn: int  # draws in all: some reach no release

    @classmethod
    @fitting
    def read(cls, play: Play, other: Play | None = None, ticks: int = 1) -> Noise:
        """Of what `play` releases in so many ticks; on `other`, another stream, it must be the same."""
        reader = _Reader(play)
        seen = reader.seen() if len(reader.places) > MOST_DRAWS else reader.places
        if len(seen) * len(reader.silent) > _LARGEST:
            raise NotAffine("the matrix of its noise is too large to be read, in the smallest copy that can be built")
        W = None if len(seen) <= _FEW_DRAWS else reader.by_column(ticks, seen)
        if W is None and len(seen) > MOST_DRAWS:
            raise NotAffine(f"a small copy of it makes more than {MOST_DRAWS} draws")
        W = reader.one_by_one(seen) if W is None else W
        found = cls(W, [reader.laws[place] for place in seen], seen, len(reader.places))
        for checked in (reader, *([] if other is None else [_Reader(other)])):
            if checked.laws != reader.laws:
                raise NotAffine("which noise is drawn follows from the events")
            found._check(checked, seen)
        if not found.gaussian and not found.laplace:
            raise NotAffine("it adds up draws of several laws")
        return found

    @fitting
    def is_that_of(self, play: Play) -> bool:
        """Whether another way to play has this noise: the same laws, and what some draws do to releases."""
        reader = _Reader(play)
        try:
            if [reader.laws.get(place) for place in self.places] != self.laws:
                return False
            self._check(reader, self.places)
        except NotAffine:
            return False
        return len(reader.laws) == self.drawn

    def _check(self, reader: _Reader, places: list[Place]) -> None:
        """An impulse the other way, in draws that are told apart, moves releases by what W says."""
        for at in sorted({0, len(places) // 2, len(places) - 1} & set(range(len(places)))):
            moved = -reader.response({places[at]: -1})
            if not np.allclose(moved / height_of(self.laws[at]), self.W[:, at], atol=_CLOSE, rtol=_CLOSE):
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

    @cached_property
    def _scaled(self) -> FloatArray:
        """W times the width of each draw."""
        if self.gaussian:
            return np.asarray(self.W * np.sqrt([sigma_squared(law) for law in self.laws]))
        scales = [float(law.scale) if isinstance(law, DiscreteLaplace) else 1.0 for law in self.laws]
        return np.asarray(self.W * np.array(scales))

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self._scaled, rcond=1e-9), dtype=np.float64)

    @cached_property
    def _kept(self) -> IntArray:
        """Rows of W that no earlier ones make up."""
        kept: list[int] = []
        rank, tolerance = 0, 1e-9 * max(1.0, float(np.abs(self._scaled).max(initial=0.0)))
        if np.linalg.matrix_rank(self._scaled, tol=tolerance) == len(self.W):
            return np.arange(len(self.W))
        for row in range(len(self.W)):
            if np.linalg.matrix_rank(self._scaled[[*kept, row]], tol=tolerance) > rank:
                kept.append(row)
                rank += 1
        return np.array(kept, dtype=np.int64)

    def about(self, changes: FloatArray) -> FloatArray:
        """At most how much each change of the numbers shows, quickly; of normal laws exactly that."""
        shifts, hidden = self._shifts(changes)
        return np.asarray(np.where(hidden, np.linalg.norm(shifts, 2 if self.gaussian else 1, axis=1), math.inf))

    def lost(self, changes: FloatArray) -> FloatArray:
        """At least how much each change of the numbers shows: mu, or epsilon. Infinite where no noise hides it."""
        found, (_, hidden) = self.about(changes), self._shifts(changes)
        if not self.gaussian and hidden.any() and len(self._kept):
            found[hidden] = hiding(self._scaled[self._kept], changes[np.ix_(hidden, self._kept)]).lower
        return found

    def _shifts(self, changes: FloatArray) -> tuple[FloatArray, Any]:
        """The shortest shifts of the draws that make the changes, and whether they do."""
        shifts = changes @ self._inverse.T
        told = np.abs(shifts @ self._scaled.T - changes).max(axis=1, initial=0.0)
        return shifts, told <= _SILENT * np.abs(changes).max(axis=1, initial=0.0)


class _Reader:
    """Plays a stream under noise that is told."""

    def __init__(self, play: Play) -> None:
        self._play = play
        key = _ImpulseKey({})
        self.silent = self._asked(key)
        if key.made.others:
            raise NotAffine(key.made.others)
        self._calls, self.laws = key.made.calls, key.made.drawn
        self.places = list(self.laws)

    def _asked(self, key: NoiseKey) -> FloatArray:
        found = self._play(key)
        if found is None:
            raise NotAffine("it releases no fixed table of numbers")
        return found

    def response(self, heights: Heights) -> FloatArray:
        """What impulses of so many times their height move."""
        key = _ImpulseKey(heights)
        found = self._asked(key)
        same = key.made.calls == self._calls or key.made.drawn == self.laws
        if len(found) != len(self.silent) or not same:
            raise NotAffine("what is drawn, or how much is released, follows from noise")
        return found - self.silent

    def seen(self) -> list[Place]:
        """The draws of nodes that reach a release: some processes draw ahead. Halves are asked first, under heights in
        which nothing cancels."""
        random = np.random.default_rng(len(self.places))
        heights = {place: int(h) for place, h in zip(self.places, random.integers(1, 9, len(self.places)), strict=True)}
        nodes = list(dict.fromkeys(place[:2] for place in self.places))
        kept: set[tuple[str, int]] = set()
        ranges = [(0, len(nodes))]
        while ranges:
            start, stop = ranges.pop()
            some = set(nodes[start:stop])
            if not self.response({place: height for place, height in heights.items() if place[:2] in some}).any():
                continue
            if stop - start == 1:
                kept |= some
            else:
                ranges += [(start, (start + stop) // 2), ((start + stop) // 2, stop)]
        return [place for place in self.places if place[:2] in kept]

    def one_by_one(self, places: list[Place]) -> FloatArray:
        """W, a play for each draw."""
        found = [self.response({place: 1}) / height_of(self.laws[place]) for place in places]
        return np.array(found).T.reshape(len(self.silent), len(found))

    def by_column(self, ticks: int, places: list[Place]) -> FloatArray | None:
        """W, a few plays for each node, if column j of a draw reaches column j of the rows and no other."""
        width, odd = divmod(len(self.silent), ticks)
        nodes = dict.fromkeys((lane, node) for lane, node, _ in places)
        # Slices draw some columns only: as many draws as this, and not the same columns.
        told = {(*node, column) for node in nodes for column in range(width)}
        if odd or width == 1 or told != set(places):
            return None
        W, number = np.zeros((len(self.silent), len(places))), {place: i for i, place in enumerate(places)}
        random = np.random.default_rng(len(places))
        for lane, node in nodes:
            for trial in range(3):
                heights = np.ones(width, np.int64) if not trial else random.integers(1, 4, width)
                moved = self.response({(lane, node, column): int(h) for column, h in enumerate(heights)})
                moved = moved.reshape(ticks, width) / heights
                for column in range(width):
                    place = lane, node, column
                    entries = moved[:, column] / height_of(self.laws[place])
                    if not trial:
                        W[column::width, number[place]] = entries
                    elif not np.allclose(W[column::width, number[place]], entries, atol=_CLOSE, rtol=_CLOSE):
                        return None
        return W
