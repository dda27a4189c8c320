"""Audits of statistics that bound a user by themselves and are exact sums plus noise: distinct users.

On a short copy of the configuration streams of a few users are played through the real door and rule, each with and
without what is protected; what the two differ by is held against the noise that is read off the program. What the
statistic is charged is never asked. Rules are put away and taken up again between ticks as well: whoever forgets a user
counts that user twice. users-and-domains 2.1, 2.2, 2.6 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from evertally.applications.encoder import EncodedEngine
from evertally.audit.application_games import Neighbours
from evertally.audit.dynamic import Losses
from evertally.audit.game import IntArray
from evertally.audit.gaussian import claim_of, impulse_response
from evertally.audit.promises import loud
from evertally.audit.report import Report
from evertally.audit.whitebox import smaller
from evertally.noise import ZeroNoise
from evertally.privacy import Neighbours as Relation
from evertally.statistics.linear_options import Linear
from evertally.users.bitmap import Bitmap
from evertally.users.joins import JoinedEvents

_TICKS = 63  # of the noise matrix: 6 epochs where there is no horizon
_PLACES = 4  # in a stream, unless it has fewer ticks
_MANY = 10_000  # names that are tried before nobody is said to count

Event = tuple[str, Any]  # a user and a label
Stream = tuple[tuple[Event, ...], ...]  # events by place


@dataclass(frozen=True)
class Pair:
    """Two neighbours, and at which tick each place is."""

    left: Stream
    right: Stream
    ticks: tuple[int, ...]

    def __str__(self) -> str:
        return f"{_words(self.left, self.ticks)} against {_words(self.right, self.ticks)}"


def _words(stream: Stream, ticks: tuple[int, ...]) -> str:
    told = [
        f"{user}{'' if label is None else f' in {label}'}@{tick}"
        for events, tick in zip(stream, ticks, strict=True)
        for user, label in events
    ]
    return " ".join(told) or "nothing"


def is_owned(model: Any) -> bool:
    """Whether these audits are for the mechanism."""
    return isinstance(model, Linear) and model._plan.owned and isinstance(model._engine, EncodedEngine)


class OwnedSearch:
    """Looks for the neighbours that lose most, among `most` pairs.

    >>> import evertally as et
    >>> model = et.DistinctUsers(guarantee=et.PureDP(1.0), horizon=None, mechanism="epoch-tree", key=et.simulation(0))
    >>> OwnedSearch(model, most=50).report().fraction
    1.0
    """

    def __init__(self, model: Any, most: int, seed: int = 0) -> None:
        horizon: Any = None if model.horizon is None else min(model.horizon, _TICKS)
        few: dict[str, Any] = {"max_users": 2} if getattr(model, "max_users", None) is not None else {}
        if getattr(model, "by", None) is not None:
            few = {"max_categories": min(model.max_categories, _PLACES)}
        self.model: Any = smaller(model, horizon, max_window=0, **few)
        self._most, self._random = most, np.random.default_rng(seed)
        self._ticks = min(self.model.horizon or _TICKS, _TICKS)
        self._places = min(_PLACES, self._ticks)
        self._played: dict[tuple[Stream, bool], IntArray] = {}

    @classmethod
    def _of(cls, model: Any) -> OwnedSearch:
        made = cls.__new__(cls)
        made.model, made._played = model, {}
        return made

    # -- playing -------------------------------------------------------------------------------------------------------

    @cached_property
    def _rules(self) -> tuple[Any, Any, bytes]:
        """Two rules that take turns, and what a new one saves: to make one takes long."""
        engine: Any = self.model._blueprint().engine
        rule, other = (engine(self.model._source).rule for _ in range(2))
        return rule, other, rule.save()

    def rows(self, stream: Stream, restarts: bool) -> IntArray:
        """What the rule counts, place by place; with `restarts`, by a rule that is restored before each of them."""
        if (stream, restarts) not in self._played:
            self._played[stream, restarts] = self._rows(stream, restarts)
        return self._played[stream, restarts]

    def _rows(self, stream: Stream, restarts: bool) -> IntArray:
        rule, other, empty = self._rules
        rule.load(0, empty)
        rows = []
        for place, arrivals in enumerate(self._arrivals(stream)):
            if restarts:
                other.load(place, rule.save())
                rule, other = other, rule
            rule.begin(place)
            rows.append(rule.admit(arrivals))
        return np.array(rows)

    def _arrivals(self, stream: Stream) -> list[Any]:
        door = self.model._door
        return [
            door.owned([label for _, label in events], [user for user, _ in events], place)
            for place, events in enumerate(stream, start=1)
        ]

    # -- streams -------------------------------------------------------------------------------------------------------

    @cached_property
    def _users(self) -> list[str]:
        """Three users who count; the first two share a bit where there are bits."""
        rule, labels = self._rules[0], self._labels
        counting: list[str] = []
        for name in (f"u{number}" for number in range(_MANY)):
            if self.rows((tuple((name, label) for label in labels),), False).any():  # a pair needs both
                counting.append(name)
            if isinstance(rule, Bitmap) and len(counting) > 1:
                places = [int(rule.places(self._arrivals((((user, None),),))[0].names)[0]) for user in counting]
                mates = [user for user, place in zip(counting, places, strict=True) if place == places[-1]]
                if len(mates) < 2:
                    continue
                return [*mates[:2], next(user for user in counting if user not in mates)]
            if len(counting) == 3:
                break
        return counting or ["u0"]

    @cached_property
    def _labels(self) -> list[Any]:
        if isinstance(self.model, JoinedEvents):
            return [self.model.after[0], *list(self.model.then)[:2]]
        if getattr(self.model, "by", None) is None:
            return [None]
        return [*list(self.model.by)[:3], "never declared", "nor this"]

    def _events(self, users: list[str]) -> list[tuple[Event, ...]]:
        """What may happen at one place: nothing, or one event of one of these users."""
        return [(), *(((user, label),) for user, label in product(users, self._labels))]

    def pairs(self) -> Iterator[Pair]:
        """Neighbours at the places of a short stream: all of them, or as many as are asked for."""
        first, *others = self._users
        mine, theirs = self._events([first]), self._events(others)
        sizes = len(theirs) ** self._places, len(mine) ** self._places
        every = product(product(theirs, repeat=self._places), product(mine, repeat=self._places))
        some = every if math.prod(sizes) <= self._most else self._some(theirs, mine)
        nobody = ((),) * self._places
        at_once = nobody, (tuple(event for events in mine for event in events), *nobody[1:])  # all labels in one tick
        for around, own in chain([at_once], some):
            for left, right in self._neighbours(own, mine):
                yield Pair(_joined(left, around), _joined(right, around), ())

    def _some(self, theirs: list[Any], mine: list[Any]) -> Iterator[tuple[Any, Any]]:
        # What fills most categories of one user, and nobody else: the worst that a user alone can do.
        nobody, all_labels = ((),) * self._places, tuple(mine[1:] * self._places)
        yield nobody, all_labels[: self._places]
        yield nobody, all_labels[::-1][: self._places]
        if isinstance(self.model, JoinedEvents):  # all pairs in one tick
            before, after = (((self._users[0], label),) for label in self._labels[:2])
            yield nobody, (before + after * min(self.model.max_pairs, _MANY), *nobody[1:])
        for _ in range(self._most):
            drawn = [
                [events[i] for i in self._random.integers(len(events), size=self._places)] for events in (theirs, mine)
            ]
            yield tuple(drawn[0]), tuple(drawn[1])

    def _neighbours(self, own: Any, mine: list[Any]) -> Iterator[tuple[Any, Any]]:
        """What one user does, and what the neighbouring stream has in its place."""
        nothing: Any = ((),) * self._places
        if self.model.unit == "user":
            if Relation.parse(self.model.neighbours) is Relation.ADD_REMOVE:
                yield own, nothing
                return
            for number in range(3):  # another user, at other places
                other = [mine[i] for i in self._random.integers(len(mine), size=self._places)]
                if not number:
                    other = [()] * (self._places - 1) + [mine[-1]]
                yield own, tuple(tuple(("another", label) for _, label in events) for events in other)
            return
        for at in range(self._places):  # one event, which is also all of a block
            if own[at]:
                yield own, (*own[:at], (), *own[at + 1 :])

    # -- losses --------------------------------------------------------------------------------------------------------

    @cached_property
    def worst(self) -> tuple[float, Pair, bool]:
        """What is lost, by which neighbours, and whether the rule was restored between their places."""
        roundings = float(self.model.noise.spread(self._ticks).roundings)
        losses = Losses(*impulse_response(self.model, self._ticks), roundings)
        found: dict[bytes, tuple[IntArray, Pair, bool]] = {}
        for pair in self.pairs():
            for restarts in (False, True):
                moved = self.rows(pair.left, restarts) - self.rows(pair.right, restarts)
                found.setdefault(moved.tobytes(), (moved, pair, restarts))
        placed = [(one, at) for one in found.values() for at in self._placings()]
        paths = np.zeros((len(placed), self._ticks, self.model._engine.width))
        for path, ((moved, _, _), at) in zip(paths, placed, strict=True):
            np.add.at(path, list(at), moved)
        if not losses.known:
            return math.nan, Pair((), (), ()), False
        lost = losses.of(np.cumsum(paths, axis=1))
        best = int(np.argmax(lost))
        (_, pair, restarts), at = placed[best]
        return float(lost[best]), Pair(pair.left, pair.right, tuple(tick + 1 for tick in at)), restarts

    def _placings(self) -> set[tuple[int, ...]]:
        """Ticks of the places: next to each other, each in an epoch of its own, far apart, late after early."""
        T = self._ticks
        ways = {
            tuple(range(self._places)),
            tuple(2**k - 1 for k in range(self._places)),
            tuple(2 ** (k + 2) - 1 for k in range(self._places)),
            tuple(k * T // self._places for k in range(self._places)),
            (0, 1, 4 * T // 5, T - 1),
            (0, 4 * T // 5, T - 2, T - 1),
        }
        return {at for at in ways if len(at) == self._places and at[-1] < T and list(at) == sorted(set(at))}

    def report(self) -> Report:
        """What the worst pair loses."""
        claim = claim_of(self.model.charge)
        try:
            lost, pair, restarts = self.worst
        except np.linalg.LinAlgError:
            silent = "a combination of releases that carries no noise"
            return Report.computed(self.model, silent, "closed form", *claim, math.inf)
        if math.isnan(lost):
            return Report.not_here(self.model, "neighbours", "of refined Laplace estimates there is no formula")
        words = f"{pair}, restored in between" if restarts else str(pair)
        return Report.computed(self.model, words, "closed form", *claim, lost)

    def whole(self) -> Report:
        """Whether the mechanism itself, without noise, counts what its rule counts."""
        stream = self.worst[1].left
        made = type(self.model)(**(self.model._options | {"guarantee": self.model.guarantee}), key=ZeroNoise())
        played = []
        for events in stream:
            made.step_events([label for _, label in events], users=[user for user, _ in events])
            played.append(made._kept.played.recent[-1].tolist())
        told = np.cumsum(OwnedSearch._of(made).rows(stream, True), axis=0).tolist()  # bits and samples follow the key
        return Report.attack(self.model, "whole", played != told, "without noise it releases what door and rule say")

    def game(self) -> Neighbours:
        """The game with the worst pair, at a promise so weak that few games show it."""
        _, pair, restarts = self.worst
        rows = [self.rows(stream, restarts) for stream in (pair.left, pair.right)]
        columns = np.flatnonzero((rows[0] - rows[1]).any(axis=0)).tolist() or [0]
        left, right = (np.cumsum(side[:, columns], axis=0).astype(np.float64) for side in rows)
        weak = smaller(self.model, self.model.horizon, guarantee=loud(self.model.guarantee))
        if keyed_rule(weak):
            return CountedNeighbours(weak, list(rows[0]), list(rows[1]), columns, left, right)
        return Neighbours(weak, self._arrivals(pair.left), self._arrivals(pair.right), columns, left, right)


class CountedNeighbours(Neighbours):
    """Two streams behind the rule: under another key other users would share a bit, or be in a sample."""

    @property
    def _engine(self) -> Any:
        whole = self.model._blueprint().engine

        def engine(source: Any) -> EncodedEngine:
            return EncodedEngine(_Counted(), whole(source).inner)

        return engine


class _Counted:
    """A rule that is handed what it counts."""

    def begin(self, tick: int) -> None:
        pass

    undo = begin

    def admit(self, arrivals: Any) -> Any:
        return arrivals

    def save(self) -> bytes:
        return b""

    def load(self, tick: int, data: bytes) -> None:
        pass


def keyed_rule(model: Any) -> bool:
    """Whether what counts of a user follows from the key."""
    return getattr(model, "bits", None) is not None or getattr(model, "sample", None) is not None


def inputs_of(model: Any) -> list[tuple[list[Any], list[Any]]]:
    """Some ticks of labels and users, the first two of them different."""
    labels = [None] if getattr(model, "by", None) is None else [*list(model.by)[:2], "never declared"]
    return [
        ([labels[i % len(labels)] for i in range(n)], [f"user {tick + i}" for i in range(n)])
        for tick, n in enumerate((3, 0, 90, 1))
    ]


def _joined(own: Any, around: Any) -> Stream:
    """At each place the protected user comes first: whoever is first decides who has room."""
    return tuple((*mine, *theirs) for mine, theirs in zip(own, around, strict=True))
