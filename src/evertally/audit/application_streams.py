"""Neighbouring streams of edges and letters, and how they go through the door and the encoder of a statistic.

What is one step of the neighbouring relation is written down here once more, from factorization-counting 6.0 and the
declared options alone: neither the certified sensitivity nor the search that comes with it is asked. Records are raw,
as a caller hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise
from typing import Any

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.applications.stacked import Stacked
from evertally.audit.game import FloatArray, IntArray
from evertally.audit.whitebox import again
from evertally.contract import restore
from evertally.encode import UserCap
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

    All neighbours of the `known` streams are tried, and some of the `others`; `instead` says which records may stand in
    the place of one of a stream; `legal` says whether what is declared of the data holds; `ends` are the vertices of a
    record.
    """

    known: Sequence[Stream]
    others: Sequence[Stream]
    instead: Callable[[Stream, Sent], Iterable[Any]]
    legal: Callable[[Stream], bool] = lambda stream: True
    ends: Callable[[Any], Sequence[Hashable]] = lambda record: ()


def neighbours(model: Encoded, world: World, most: int) -> list[Pair]:
    """Pairs of the model's relation: so many that begin with other streams, and up to four times as many with known
    ones."""
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

    def legal(stream: Stream) -> list[Pair]:
        return [pair for pair in steps(stream) if world.legal(pair.left) and world.legal(pair.right)]

    dice = np.random.default_rng(most)
    found: dict[Pair, None] = {}
    # A fair share for each stream: one with many neighbours does not use up what there is. Short ones have few.
    known = sorted(world.known, key=len)
    others = [world.others[i] for i in dice.permutation(len(world.others))]
    for streams, share in ((known, 4 * most), (others, most)):
        upto = len(found) + share
        for place, stream in enumerate(streams):
            each = max(4, 2 * (upto - len(found)) // (len(streams) - place))
            if len(found) >= upto:
                break
            pairs = legal(stream)
            chosen = range(len(pairs)) if len(pairs) <= each else sorted(dice.choice(len(pairs), each, replace=False))
            found |= dict.fromkeys(pairs[i] for i in chosen)
    return list(found)


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
    """Plays streams without noise: the cap on users where there is one, the door, the encoder."""

    def __init__(self, model: Encoded) -> None:
        self._model = model
        self._played: dict[tuple[Stream, Groups], list[Changes]] = {}

    def difference(self, pair: Pair, groups: Groups | None = None) -> list[Changes]:
        """What both streams changed, tick by tick: left minus right."""
        groups = groups or (1,) * len(pair.left)
        found = []
        for one, other in zip(self.path(pair.left, groups), self.path(pair.right, groups), strict=True):
            moved = {c: one.get(c, 0) - other.get(c, 0) for c in {**one, **other}}
            found.append({c: amount for c, amount in moved.items() if amount})
        return found

    def path(self, stream: Stream, groups: Groups) -> list[Changes]:
        """What a stream changes, tick by tick."""
        if (stream, groups) not in self._played:
            self._played[stream, groups] = list(self._changes(ticks_of(stream, groups)))
        return self._played[stream, groups]

    def _changes(self, ticks: list[list[Sent]]) -> Iterator[Changes]:
        encoder = self._model.encoder()
        for arrived in self.arrivals(ticks):
            yield dict(encoder.changes(arrived))

    def arrivals(self, ticks: list[list[Sent]]) -> Iterator[Any]:
        """What is left of each tick's records behind the door."""
        model: Any = self._model
        door = model._door
        cap = None if model.unit == "event" else UserCap(model.max_events_per_user)
        for tick, now in enumerate(ticks, start=1):
            records, owners = [sent.record for sent in now], [sent.owner for sent in now]
            if cap is not None:
                kept: Any = cap.keep(owners, tick) if owners else []
                pairs = [pair for pair, counts in zip(zip(owners, records, strict=True), kept, strict=True) if counts]
                records = pairs if owned(model) else [record for _, record in pairs]
            yield door.events(records, tick)

    def whole(self, stream: Stream, groups: Groups) -> list[IntArray]:
        """The rows that the mechanism itself releases without noise, restored from a snapshot before every tick."""
        key, rows = ZeroNoise(), []
        made: Any = again(self._model)(key)
        for now in ticks_of(stream, groups):
            made = restore(made.snapshot(), key=key)
            users = {} if self._model.unit == "event" else {"users": [sent.owner for sent in now]}
            made.step_events([sent.record for sent in now], **users)
            rows.append(made._kept.played.recent[-1])
        return rows


def owned(model: Any) -> bool:
    """Whether the door takes (user, record) where users are protected."""
    return isinstance(model, Stacked) or getattr(model, "sequence", "") == "user"


def ticks_of(stream: Stream, groups: Groups) -> list[list[Sent]]:
    """The records of each tick, where so many places share one; a 0 is a tick without any."""
    ends = np.cumsum((0, *groups)).tolist()
    return [[one for one in stream[a:b] if one is not None] for a, b in pairwise(ends)]


def dense(path: Sequence[Changes]) -> FloatArray:
    """Ticks x coordinates that change."""
    columns = {c: i for i, c in enumerate(dict.fromkeys(c for changes in path for c in changes))}
    rows = np.zeros((len(path), max(1, len(columns))))
    for row, changes in zip(rows, path, strict=True):
        for c, amount in changes.items():
            row[columns[c]] = amount
    return rows
