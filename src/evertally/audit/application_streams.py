"""Neighbouring streams of edges and letters, and how they go through the door and the encoder of a statistic.

What is one step of the neighbouring relation is written down here once more, from factorization-counting 6.0 and the
declared options alone: neither the certified sensitivity nor the search that comes with it is asked. Records are raw,
as a caller hands them over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.audit.game import FloatArray
from evertally.audit.whitebox import again
from evertally.noise import ZeroNoise
from evertally.privacy import Neighbours

ME, ANOTHER = "me", "another"
Changes = dict[Hashable, int]


@dataclass(frozen=True)
class Sent:
    """A raw record, and who sent it (where users are protected)."""

    record: Any
    owner: str = "somebody"

    def __str__(self) -> str:
        text = "".join(map(str, self.record)) if isinstance(self.record, tuple) else str(self.record)
        return f"{self.owner}:{text}" if self.owner in (ME, ANOTHER) else text


Stream = tuple[Sent | None, ...]  # in their order of arrival; None: nothing in this place
Groups = tuple[int, ...]  # how many places share each tick


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams, place by place."""

    left: Stream
    right: Stream

    def __str__(self) -> str:
        return f"{shown(self.left)} against {shown(self.right)}"


def shown(stream: Stream) -> str:
    return " ".join("." if one is None else str(one) for one in stream)


@dataclass(frozen=True)
class World:
    """What may be sent to a statistic.

    `streams` are tried, those first that are known to be bad; `instead` says which records may stand in the place of
    one of a stream; `legal` says whether what is declared of the data holds; `ends` are the vertices of a record.
    """

    streams: Sequence[Stream]
    instead: Callable[[Stream, Sent], Iterable[Any]]
    legal: Callable[[Stream], bool] = lambda stream: True
    ends: Callable[[Any], Sequence[Hashable]] = lambda record: ()


def neighbours(model: Encoded, world: World, most: int) -> list[Pair]:
    """Pairs of the model's relation that begin with the world's streams; at most so many."""
    replaced = Neighbours.parse(model.neighbours) is Neighbours.REPLACE
    if model.protected_unit == "node":
        steps: Callable[[Stream], Iterator[Pair]] = lambda stream: _without_nodes(stream, world)  # noqa: E731
    elif model.unit == "user":
        cap = model.max_events_per_user or 1
        steps = lambda stream: _users(stream, cap, replaced)  # noqa: E731
    elif replaced or _nulled(model):
        steps = lambda stream: _instead(stream, world)  # noqa: E731
    else:
        steps = _without
    # A fair share for every stream: one with many neighbours does not use up what there is.
    each = max(8, 4 * most // max(1, len(world.streams)))
    dice = random.Random(most)
    found: dict[Pair, None] = {}
    for stream in world.streams:
        legal = [pair for pair in steps(stream) if world.legal(pair.left) and world.legal(pair.right)]
        for pair in legal if len(legal) <= each else dice.sample(legal, each):
            found.setdefault(pair)
        if len(found) >= most:
            break
    return list(islice(found, most))


def _nulled(model: Any) -> bool:
    """Whether a letter that is not there leaves a null in its place."""
    return getattr(model, "removal", "") == "null"


def _without(stream: Stream) -> Iterator[Pair]:
    for i, one in enumerate(stream):
        if one is not None:
            yield Pair(stream, (*stream[:i], None, *stream[i + 1 :]))


def _instead(stream: Stream, world: World) -> Iterator[Pair]:
    for i, one in enumerate(stream):
        if one is not None:
            for record in world.instead(stream, one):
                if record != one.record:
                    yield Pair(stream, (*stream[:i], Sent(record, one.owner), *stream[i + 1 :]))


def _without_nodes(stream: Stream, world: World) -> Iterator[Pair]:
    for node in dict.fromkeys(end for one in stream if one is not None for end in world.ends(one.record)):
        yield Pair(stream, tuple(None if one is None or node in world.ends(one.record) else one for one in stream))


def _users(stream: Stream, cap: int, replaced: bool) -> Iterator[Pair]:
    """All records of a user, one more than count, there or not; or those of another one in other places."""
    places = [i for i, one in enumerate(stream) if one is not None]

    def of(owners: dict[int, str], there: Sequence[str]) -> Stream:
        made = []
        for i, one in enumerate(stream):
            owner = owners.get(i, f"user {i}")
            made.append(None if one is None or owner not in there else Sent(one.record, owner))
        return tuple(made)

    bystanders = [f"user {i}" for i in places]
    for number in range(1, min(cap + 1, len(places)) + 1):
        for mine in combinations(places, number):
            owners = dict.fromkeys(mine, ME)
            rest = [i for i in places if i not in mine]
            if not replaced:
                yield Pair(of(owners, [ME, *bystanders]), of(owners, bystanders))
                continue
            for theirs in islice(combinations(rest, min(cap, len(rest))), 6):
                both = owners | dict.fromkeys(theirs, ANOTHER)
                yield Pair(of(both, [ME, *bystanders]), of(both, [ANOTHER, *bystanders]))


# -- through door and encoder ------------------------------------------------------------------------------------------


class Players:
    """Plays streams, without noise: door and encoder alone, or where users are protected the whole mechanism, which has
    the cap before its door."""

    def __init__(self, model: Encoded) -> None:
        self._model = model
        self._played: dict[tuple[Stream, Groups], list[Changes]] = {}

    def difference(self, pair: Pair, groups: Groups | None = None) -> list[Changes]:
        """What both streams changed, tick by tick: left minus right."""
        groups = groups or (1,) * len(pair.left)
        found = []
        for one, other in zip(self._path(pair.left, groups), self._path(pair.right, groups), strict=True):
            moved = {c: one.get(c, 0) - other.get(c, 0) for c in {**one, **other}}
            found.append({c: amount for c, amount in moved.items() if amount})
        return found

    def _path(self, stream: Stream, groups: Groups) -> list[Changes]:
        if (stream, groups) not in self._played:
            play = self._whole if self._model.unit == "user" else self._encoded
            self._played[stream, groups] = play(ticks_of(stream, groups))
        return self._played[stream, groups]

    def _encoded(self, ticks: list[list[Sent]]) -> list[Changes]:
        encoder, door = self._model.encoder(), self._model._door
        return [
            dict(encoder.changes(door.events([sent.record for sent in now], tick)))
            for tick, now in enumerate(ticks, start=1)
        ]

    def _whole(self, ticks: list[list[Sent]]) -> list[Changes]:
        made: Any = again(self._model)(ZeroNoise())  # type: ignore[arg-type]
        rows = [made._kept.played.recent[-1]]
        for now in ticks:
            made.step_events([sent.record for sent in now], users=[sent.owner for sent in now])
            rows.append(made._kept.played.recent[-1])
        return [dict(enumerate(row.tolist())) for row in np.diff(np.array(rows), axis=0)]


def ticks_of(stream: Stream, groups: Groups) -> list[list[Sent]]:
    """The records of each tick, where so many places share one; a 0 is a tick without any."""
    ends = np.cumsum((0, *groups)).tolist()
    return [[one for one in stream[a:b] if one is not None] for a, b in zip(ends, ends[1:], strict=False)]


def dense(path: Sequence[Changes]) -> FloatArray:
    """Ticks x coordinates that change."""
    columns = {c: i for i, c in enumerate(dict.fromkeys(c for changes in path for c in changes))}
    rows = np.zeros((len(path), max(1, len(columns))))
    for row, changes in zip(rows, path, strict=True):
        for c, amount in changes.items():
            row[columns[c]] = amount
    return rows
