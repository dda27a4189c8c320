"""Audits of graphs, strings and stacks of statistics: neighbouring streams through the real door and encoder.

On a small copy of the configuration (`audit.application_copies`) neighbours are searched whose encoded streams differ
most: one record there or not, another in its place, all records of a node or of a user, with copies, records that
share ticks, ticks without any. What they differ by is held against the noise matrix that is read off the program, all
coordinates together: Gaussian noise by the most powerful test, Laplace noise by the sum over its draws, which is the
exact loss. What a statistic is certified for is never asked. factorization-counting 2.4, 6, 14.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.applications.graph.options import GraphStatistic
from evertally.applications.lazy import LazyEngine
from evertally.applications.stacked import Stacked
from evertally.applications.strings.options import StringStatistic
from evertally.audit.application_copies import small_copy
from evertally.audit.application_games import Neighbours
from evertally.audit.application_streams import (
    Changes,
    Groups,
    Pair,
    Players,
    Sent,
    World,
    dense,
    neighbours,
    ticks_of,
)
from evertally.audit.dynamic import Losses
from evertally.audit.edge_streams import world_of_edges
from evertally.audit.game import FloatArray, IntArray
from evertally.audit.gaussian import claim_of, impulse_response
from evertally.audit.letter_streams import world_of_letters
from evertally.audit.promises import loud
from evertally.audit.report import Report
from evertally.audit.whitebox import smaller

_TICKS = 63  # of the noise matrix: 6 epochs where there is no horizon
_CLOSER = 24  # pairs that are placed in ticks in many ways, for each norm


def is_encoded(model: Any) -> TypeGuard[Encoded]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, Encoded)


def world_of(model: Any, length: int) -> World:
    """What may be sent to it."""
    if isinstance(model, GraphStatistic):
        return world_of_edges(model, length)
    if isinstance(model, StringStatistic):
        return world_of_letters(model, length)
    assert isinstance(model, Stacked)
    worlds = [world_of(part.made, length) for part in model._counted if isinstance(part.made, Encoded)]
    if not worlds:
        return _world_of_labels(model)
    first = worlds[0]
    return World(
        first.known, first.others, first.instead, lambda stream: all(w.legal(stream) for w in worlds), first.ends
    )


def _world_of_labels(model: Stacked) -> World:
    """Single events of counters that stand side by side."""
    labels = [label for part in model._counted for label in getattr(part.made, "labels", None) or [1]][:3]
    streams = [tuple(Sent(label) for label in (one, other)) for one in labels for other in labels]
    return World(streams, [], lambda stream, sent: [*labels, None])


# -- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A pair, which places share ticks, at which ticks they are, and what that loses."""

    lost: float
    pair: Pair
    groups: Groups


class Search:
    """Looks for the pair of neighbours that loses most, on a small copy. Streams of `length` records are tried, and
    `most` pairs of them, besides those that are known to be bad.

    >>> import evertally as et
    >>> model = et.graph.EdgeCount(guarantee=et.PureDP(1.0), horizon=None, mechanism="epoch-tree", key=et.simulation(0))
    >>> report = Search(model, length=3, most=100).report()  # an edge, and a copy of it that the edge makes nothing
    >>> round(report.fraction, 6), report.adversary
    (1.0, '01 02 01 02 against . 02 01 02')
    """

    def __init__(self, model: Encoded, length: int, most: int) -> None:
        self.model, self._length = small_copy(model, _TICKS), length
        self._most = most // 4 if model.unit == "user" else most  # the cap on users takes its time
        self._players = Players(self.model)

    @cached_property
    def worst(self) -> Found:
        """The worst placed pair; LinAlgError where a combination of releases carries no noise.

        Where nothing that is tried changes anything it is a stream and itself, which loses nothing.
        """
        ticks = min(self.model.horizon or _TICKS, _TICKS)
        losses = Losses(*impulse_response(self.model, ticks), float(self.model.noise.spread(ticks).roundings))
        placed = [
            (pair, groups) for pair in self._promising() for groups in _placings(self._players.difference(pair), ticks)
        ]
        paths = [dense(self._players.difference(pair, groups)) for pair, groups in placed]
        moved = np.zeros((len(paths), ticks, max(path.shape[1] for path in paths)))
        for one, path in zip(moved, paths, strict=True):
            sums = np.cumsum(path, axis=0)
            one[:, : path.shape[1]] = np.concatenate([sums, np.repeat(sums[-1:], ticks - len(sums), axis=0)])
        if not losses.known:
            return Found(math.nan, *placed[0])
        lost = losses.of(moved)
        best = int(np.argmax(lost))
        return Found(float(lost[best]), *placed[best])

    def _promising(self) -> list[Pair]:
        """Pairs whose difference is large in either norm; among equals the first."""
        found: dict[bytes, tuple[tuple[float, float], Pair]] = {}
        for pair in neighbours(self.model, world_of(self.model, self._length), self._most):
            rows = dense(self._players.difference(pair))
            if not rows.any():  # what only records of one tick do, where gaps end words
                rows = dense(self._players.difference(pair, (len(pair.left),)))
            if rows.any():
                found.setdefault(rows.tobytes(), ((float(np.abs(rows).sum()), _grouped(rows)[0]), pair))
        if not found:
            return [Pair((None,), (None,))]
        by_norm = [sorted(found.values(), key=lambda one: -one[0][k])[:_CLOSER] for k in (0, 1)]
        return list(dict.fromkeys(pair for some in by_norm for _, pair in some))

    def report(self) -> Report:
        """What the worst pair loses."""
        claim = claim_of(self.model.charge)
        try:
            worst = self.worst
        except np.linalg.LinAlgError:
            silent = "a combination of releases that carries no noise"
            return Report.computed(self.model, silent, "closed form", *claim, math.inf)
        if math.isnan(worst.lost):
            return Report.not_here(self.model, "neighbours", "of refined Laplace estimates there is no formula")
        return Report.computed(self.model, str(worst.pair), "closed form", *claim, worst.lost)

    def whole(self) -> Report:
        """Whether the mechanism itself, restored before every tick, moves by what its parts moved by."""
        pair, groups = self._shortened()
        # Records that share a tick are not restored between: one by one they are as well.
        same = all(self._moves_as_told(pair, shape) for shape in {groups, (1,) * len(pair.left)} if self._fits(shape))
        words = "without noise it releases what door and encoder say" if same else f"{pair} moves it by something else"
        return Report.attack(self.model, "restarts", not same, words)

    def _moves_as_told(self, pair: Pair, groups: Groups) -> bool:
        expected = np.cumsum([self._in_columns(moved) for moved in self._players.difference(pair, groups)], axis=0)
        one, other = (self._players.whole(stream, groups) for stream in (pair.left, pair.right))
        return np.array_equal(np.array(one) - np.array(other), expected)

    def _fits(self, groups: Groups) -> bool:
        return self.model.horizon is None or len(groups) <= self.model.horizon

    def _in_columns(self, moved: Changes) -> IntArray:
        engine: Any = self.model._engine
        columns: Any = engine.columns if isinstance(engine, LazyEngine) else {i: i for i in range(engine.width)}
        row = np.zeros(engine.width, dtype=np.int64)
        for coordinate, amount in moved.items():
            if coordinate in columns:
                row[columns[coordinate]] += amount
        return row

    def _shortened(self) -> tuple[Pair, Groups]:
        """The worst pair without ticks in which nothing arrives."""
        try:
            found = self.worst
        except np.linalg.LinAlgError:
            pair = self._promising()[0]
            return pair, (1,) * len(pair.left)
        return found.pair, tuple(size for size in found.groups if size)

    def game(self) -> Neighbours:
        """The game with the worst pair, at a promise so weak that few games show it."""
        model: Any = self.model
        pair, groups = self._shortened()
        rows = [
            np.array([self._in_columns(changes) for changes in self._players.path(stream, groups)])
            for stream in (pair.left, pair.right)
        ]
        columns = np.flatnonzero((rows[0] - rows[1]).any(axis=0)).tolist() or [0]
        arrivals = [list(self._players.arrivals(ticks_of(stream, groups))) for stream in (pair.left, pair.right)]
        public: Any = getattr(model._engine, "base", np.zeros(rows[0].shape[1]))  # a graph to begin with
        left, right = (np.cumsum(side[:, columns], axis=0) + public[columns].astype(np.float64) for side in rows)
        weak = smaller(model, model.horizon, guarantee=loud(model.guarantee))
        return Neighbours(weak, arrivals[0], arrivals[1], columns, left, right)


def _grouped(rows: FloatArray) -> tuple[float, Groups]:
    """The largest sum of squared lengths over ways to put neighbouring places into one tick, and that way."""
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows, axis=0)])
    best, back = np.zeros(len(sums)), np.zeros(len(sums), dtype=int)
    for stop in range(1, len(sums)):
        steps = best[:stop] + ((sums[stop] - sums[:stop]) ** 2).sum(axis=1)
        # Among equals the longest: fewer ticks.
        back[stop] = int(np.argmax(steps))
        best[stop] = steps[back[stop]]
    groups: list[int] = []
    stop = len(rows)
    while stop:
        groups.append(stop - int(back[stop]))
        stop = int(back[stop])
    return float(best[-1]), tuple(groups[::-1])


def _uncancelled(rows: FloatArray) -> Groups:
    """Places share a tick as long as nothing cancels: the same l1 in as few ticks as there are."""
    groups: list[int] = []
    kept = np.zeros(rows.shape[1])
    for row in rows:
        if groups and not ((kept * row) < 0).any():
            groups[-1] += 1
        else:
            groups, kept = [*groups, 1], np.zeros(rows.shape[1])
        kept = kept + row
    return tuple(groups)


def _placings(path: Sequence[Any], ticks: int) -> Iterator[Groups]:
    """Ways to put the places of a stream into ticks: groups next to each other, each in an epoch of its own, and far
    apart."""
    rows = dense(path)
    for groups in {_grouped(rows)[1], _uncancelled(rows), (1,) * len(rows), (len(rows),)}:
        count = len(groups)
        if count > ticks:
            continue
        firsts = {
            tuple(range(count)),
            tuple(2**k - 1 for k in range(count)),
            tuple(k * ticks // count for k in range(count)),
        }
        for at in firsts:
            if at[-1] < ticks:
                placed = [0] * (at[-1] + 1)
                for tick, size in zip(at, groups, strict=True):
                    placed[tick] = size
                yield tuple(placed)
