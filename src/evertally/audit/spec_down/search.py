"""The worst neighbours of a small copy: some that are written down, then steps from the worst to worse ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.game import FloatArray
from evertally.audit.spec_down.cells import columns_of
from evertally.audit.spec_down.neighbours import Pair, Relation, records_of
from evertally.audit.spec_down.playing import WAYS, Way, numbers, played, prepared
from evertally.audit.spec_down.reading import Noise, NotAffine, Play
from evertally.audit.spec_down.small import Small
from evertally.errors import ReplayRefused, StateError

_STEPS = {"short": 60, "long": 600}
_FIRST = {"short": 160, "long": 2000}  # pairs that are written down
_ALSO = 24  # of which so many are played in other ways too
_CLIMBS = 3
_MANY = 100  # events of a user: longer streams take longer
_LOUD = 2**12  # events in place of one
_NEARLY = 1 - 1e-6  # what is read through a rounding is a little off


@dataclass(frozen=True)
class Worst:
    """What the worst pair shows, and how it was played."""

    lost: float
    pair: Pair | None
    way: Way
    tried: int

    def __str__(self) -> str:
        """In words that hold no cell's content: how many records, at which ticks."""
        if self.pair is None:
            return f"none of {self.tried} pairs moves anything"
        own = [f"{e.copies} at tick {e.tick}" for e in self.pair.entries if e.side == "left"]
        place = [f"{e.copies} at tick {e.tick}" for e in self.pair.entries if e.side == "right"]
        others = sum(e.copies for e in self.pair.entries if e.side == "both")
        said = f"{_some(own)} against {_some(place) if place else 'none'}"
        said += f", {others} of others" if others else ""
        return said + ("" if self.way == "at once" else f", {self.way}")


def _some(parts: list[str]) -> str:
    return ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")


class Search(ABC):
    """Plays neighbours through a small copy and keeps the worst; a subclass says what a pair costs."""

    def __init__(
        self, small: Small, stream: Mapping[str, Any], table: Mapping[str, Any], effort: str = "short", seed: int = 0
    ) -> None:
        self.small, self._table, self._effort = small, table, effort
        self.columns = columns_of(small, table)
        self.relation = Relation(small, self.columns, stream, table)
        self._random = np.random.default_rng(seed)
        self.tried = 0

    @abstractmethod
    def lost(self, pair: Pair, way: Way) -> float:
        """What a pair shows, about: by this the worst are looked for."""

    def at_least(self, pair: Pair, way: Way) -> float:
        """What it shows at least: by this they are judged."""
        return self.lost(pair, way)

    def ticks_of(self, stream: Any) -> list[Any]:
        """A stream as doors get it."""
        return prepared(self.small, records_of(stream, self.columns))

    def sides(self, pair: Pair) -> tuple[Any, Any]:
        """The two streams of a pair."""
        self.tried += 1
        return pair.side("left", self.small.ticks), pair.side("right", self.small.ticks)

    def first_pairs(self) -> list[Pair]:
        """Those that are written down; where they are too many, some of each sort."""
        every = list(dict.fromkeys(self.relation.pairs(self._random)))
        most = max(_ALSO, _FIRST[self._effort] // (1 + self.relation.cap // _MANY))
        kept = every if len(every) <= most else [every[i * len(every) // most] for i in range(most)]
        return list(dict.fromkeys([*kept, *self.relation.crowded(self._random)]))

    @cached_property
    def worst(self) -> Worst:
        """The worst of all that was tried. Ways that remember something are tried for pairs that show much."""
        found = [(self.lost(pair, "at once"), pair) for pair in self.first_pairs()]
        found.sort(key=lambda one: -one[0])
        best = [(lost, pair, WAYS[0]) for lost, pair in found]
        late = [pair for _, pair in found if len({e.tick for e in pair.entries if e.side != "both"}) > 1]
        again = list(dict.fromkeys([*late[: _ALSO // 2], *(pair for _, pair in found[: _ALSO // 2])]))
        best += [(self._lost_or_failed(self.lost, pair, way), pair, way) for way in WAYS[1:] for pair in again]
        best.sort(key=lambda one: -one[0])
        top = [*best[:_CLIMBS], *(self._climbed(*one) for one in best[:_CLIMBS])]
        # The first of equals: what is written down is shorter than what was found on the way.
        judged = ((self._lost_or_failed(self.at_least, pair, way), pair, way) for _, pair, way in top)
        lost, pair, way = max(judged, key=lambda one: one[0])
        return Worst(lost, pair if lost else None, way, self.tried)

    def _lost_or_failed(self, judge: Callable[[Pair, Way], float], pair: Pair, way: Way) -> float:
        """What a pair shows; all, if one of its streams cannot be taken up again: everybody sees that."""
        try:
            return judge(pair, way)
        except (StateError, ReplayRefused):
            return math.inf

    def _climbed(self, lost: float, pair: Pair, way: Way) -> tuple[float, Pair, Way]:
        worst, at = (lost, pair, way), lost
        for _ in range(_STEPS[self._effort] // _CLIMBS):
            tried = self.relation.changed(pair, self._random)
            now = self._lost_or_failed(self.lost, tried, way)
            if now >= at:  # also along plateaus
                at, pair = now, tried
            if now > worst[0] * (1 + 1e-9):
                worst = now, tried, way
        return worst


class LossSearch(Search):
    """What a pair moves in releases, against the noise that is read off: epsilon, or mu.

    >>> from evertally.runtime.mechanisms import build
    >>> from evertally.runtime.table.given import spec_from
    >>> content = {"stream": {"name": "s", "horizon": 3}, "guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}}
    >>> content["query"] = [{"name": "all", "kind": "counter"}]
    >>> spec = spec_from(content)
    >>> search = LossSearch(Small(spec, build(spec, None)["all"], 3), content["stream"], content["query"][0])
    >>> round(search.worst.lost, 4), str(search.worst)
    (1.0, '1 at tick 3 against none')
    """

    @cached_property
    def noise(self) -> dict[Way, Noise]:
        """Of mechanisms that go through, and of those that are restored between ticks. NotAffine where there is no such
        matrix."""
        nothing: Any = tuple(() for _ in range(self.small.ticks))
        busy = next(self.relation.pairs(np.random.default_rng(1))).side("left", self.small.ticks)
        streams = [self.ticks_of(stream) for stream in (nothing, busy)]

        def play(ticks: list[Any], way: Way) -> Play:
            return lambda key: numbers(played(self.small, ticks, key, way))

        def read(way: Way) -> Noise:
            return Noise.read(play(streams[0], way), play(streams[1], way), self.small.ticks)

        at_once = read("at once")
        # What is restored makes the same draws of the same laws, or is read by itself.
        same = at_once.is_that_of(play(streams[0], "restored"))
        return {"at once": at_once, "twice": at_once, "restored": at_once if same else read("restored")}

    @cached_property
    def _cache(self) -> dict[tuple[Any, Way], FloatArray | None]:
        return {}

    def _releases(self, stream: Any, way: Way) -> FloatArray | None:
        if (stream, way) not in self._cache:
            self._cache[stream, way] = numbers(played(self.small, self.ticks_of(stream), None, way))
        return self._cache[stream, way]

    def lost(self, pair: Pair, way: Way) -> float:
        moved = self._moved(pair, way)
        return float(self.noise[way].about(moved[None])[0]) if moved.any() else 0.0

    def at_least(self, pair: Pair, way: Way) -> float:
        moved = self._moved(pair, way)
        read = _NEARLY if "workload" not in self._table else 1 - 4 / _LOUD
        return float(self.noise[way].lost(moved[None])[0]) * read if moved.any() else 0.0

    def _moved(self, pair: Pair, way: Way) -> FloatArray:
        left, right = (self._releases(stream, way) for stream in self.sides(self._loud(pair)))
        if left is None or right is None or not len(left) == len(right) == len(self.noise[way].W):
            raise NotAffine("it releases no fixed table of numbers")
        return (left - right) / (_LOUD if "workload" in self._table else 1)

    def _loud(self, pair: Pair) -> Pair:
        """Weighed sums are rounded once, with their noise: what one event moves of them is read from many of it."""
        if "workload" not in self._table:
            return pair
        if self.relation.owned:
            raise NotAffine("sums that weigh ticks are rounded together with their noise")
        return Pair(tuple(e if e.side == "both" else replace(e, copies=e.copies * _LOUD) for e in pair.entries))
