"""Neighbouring streams of insertions and deletions, all of them up to a length, and what the door makes of them.

What is one step of the neighbouring relation is written down here once more, from dynamic-data 1.3 and the declared
options alone: what the mechanism charges for a step is not asked. An item is its insertion and everything that names
it: repeated deletions, deletions that come too early, insertions of the same name once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np

from evertally.audit.game import IntArray
from evertally.audit.whitebox import again
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource, NoiseKey, ZeroNoise
from evertally.privacy import Neighbours
from evertally.statistics.dynamic_options import Dynamic

_ME, _OTHER = "me", "somebody else"
_NOBODY = "0" * 32  # no token: it names a lifetime that never was


@dataclass(frozen=True)
class Record:
    """An insertion (sign 1) or a deletion (-1) at a tick, of a cell, by the name of an item; `owner` sent it."""

    tick: int
    sign: int
    cell: int
    name: str = ""
    owner: str = _OTHER


Stream = tuple[Record, ...]  # in their order of arrival


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams."""

    left: Stream
    right: Stream

    def __str__(self) -> str:
        return f"{shown(self.left)} against {shown(self.right)}"


def shown(stream: Stream) -> str:
    """A stream in a few words: what comes (+) and goes (-), and at which tick; the cells by letters."""
    words = [
        f"{'+' if record.sign > 0 else '-'}{'ab'[record.cell]}{':other' if record.name == _OTHER else ''}@{record.tick}"
        for record in stream
    ]
    return " ".join(words) or "nothing"


@dataclass(frozen=True)
class Facts:
    """The declared facts that say what neighbours are."""

    identity: str
    protects: str
    replaced: bool
    deletions: bool
    lifetimes: int
    unique: bool  # declared: no item is deleted twice
    group: int  # events of one user
    cells: int

    @classmethod
    def of(cls, model: Dynamic) -> Facts:
        return cls(
            model.identity,
            model.protects,
            Neighbours.parse(model.neighbours) is Neighbours.REPLACE,
            model.deletions,
            model.lifetimes,
            model.unique_deletions,
            model.max_events_per_user or 1,
            min(2, model._family.cells),
        )

    @property
    def named(self) -> bool:
        return self.identity in ("id", "token")


def neighbours(facts: Facts, ticks: int, most: int) -> Iterator[Pair]:
    """All pairs with at most `most` records of an item (or, where items have no names, in all) within so many ticks.

    >>> names = Facts("id", "item", False, True, lifetimes=1, unique=False, group=1, cells=1)
    >>> [str(pair) for pair in neighbours(names, ticks=1, most=2)][:4]
    ['+a@1 against nothing', '-a@1 against nothing', '+a@1 +a@1 against nothing', '+a@1 -a@1 against nothing']
    """
    if facts.named and facts.protects == "item":
        yield from _items(facts, ticks, most)
    elif facts.protects == "item":
        yield from _unnamed_items(facts, ticks, most + 1)
    else:
        yield from _events(facts, ticks, most if facts.named else most + 1)


def _scripts(facts: Facts, ticks: int, most: int, name: str = "") -> Iterator[Stream]:
    """Every sequence of at most so many records; more than two of them in one cell."""
    for length in range(1, most + 1):
        cells = range(facts.cells if length <= 2 else 1)
        deleted = [] if not facts.deletions else [0] if facts.named else cells
        actions = [(1, cell) for cell in cells] + [(-1, cell) for cell in deleted]
        for when in combinations_with_replacement(range(1, ticks + 1), length):
            for what in product(actions, repeat=length):
                yield tuple(Record(t, sign, cell, name) for t, (sign, cell) in zip(when, what, strict=True))


def _bystanders(facts: Facts, ticks: int) -> list[Stream]:
    """What others do: nothing, or an item that comes late (so that another one can be gone before) and stays, or one
    that goes."""
    stays = (Record(max(1, ticks - 1), 1, 0, _OTHER),)
    return [(), stays, (*stays, Record(ticks, -1, 0, _OTHER))] if facts.deletions else [(), stays]


def _merged(one: Stream, other: Stream) -> Stream:
    return tuple(sorted((*one, *other), key=lambda record: record.tick))


def _items(facts: Facts, ticks: int, most: int) -> Iterator[Pair]:
    """With and without a name, or with another name's records in its place."""
    scripts = [s for s in _scripts(facts, ticks, most, _ME) if s[0].sign > 0 or len(s) < most]
    if facts.identity == "token":  # each insertion is an item of its own
        scripts = [s for s in scripts if sum(record.sign > 0 for record in s) == 1]
    for others in _bystanders(facts, ticks):
        for script in scripts:
            yield Pair(_merged(script, others), others)
    if facts.replaced:
        short = [s for s in scripts if len(s) <= 2 and s[0].sign > 0]
        for one, other in combinations(short, 2):
            yield Pair(one, tuple(replace(record, name="another") for record in other))


def _unnamed_items(facts: Facts, ticks: int, most: int) -> Iterator[Pair]:
    """With and without an insertion and, maybe, its deletion (or several, unless that is declared to be impossible). By
    value that one has the same value and comes later."""
    for stream in _scripts(facts, ticks, most):
        for i, inserted in enumerate(stream):
            if inserted.sign < 0:
                continue
            deleted = [
                j
                for j, record in enumerate(stream)
                if record.sign < 0 and (facts.identity == "raw" or (j > i and record.cell == inserted.cell))
            ]
            for count in range(2 if facts.unique else len(deleted) + 1):
                for own in combinations(deleted, count):
                    yield from _pairs(facts, stream, [i, *own])


def _pairs(facts: Facts, stream: Stream, taken: list[int]) -> Iterator[Pair]:
    """Without an item, or with another one in its place."""
    rest = tuple(record for k, record in enumerate(stream) if k not in taken)
    yield Pair(stream, rest)
    if facts.replaced and len(rest) == len(stream) - 2:
        i, j = taken
        first, second = stream[i], stream[j]
        for cell in range(facts.cells):
            other = (replace(first, tick=second.tick, cell=cell), replace(second, tick=first.tick, cell=cell))
            yield Pair(stream, _merged(rest, other))


def _events(facts: Facts, ticks: int, most: int) -> Iterator[Pair]:
    """With and without one record (or those of one user), or with another one at its tick."""
    others = _bystanders(facts, ticks) if facts.named else [()]
    for script in _scripts(facts, ticks, most, _ME if facts.named else ""):
        for context in others:
            for taken in combinations(range(len(script)), min(facts.group, len(script))):
                # What is taken is all that one user sent; everything else comes from as many others.
                sent = tuple(replace(r, owner=_ME if k in taken else f"user {k}") for k, r in enumerate(script))
                rest = tuple(record for record in sent if record.owner != _ME)
                yield Pair(_merged(sent, context), _merged(rest, context))
                if facts.replaced and facts.group == 1:
                    for sign, cell in product((1, -1), range(facts.cells)):
                        changed = tuple(replace(r, sign=sign, cell=cell) if r.owner == _ME else r for r in sent)
                        yield Pair(_merged(sent, context), _merged(changed, context))


# -- through the door ------------------------------------------------------------------------------------------------


def values_of(model: Dynamic) -> tuple[Any, ...]:
    """A value in each of the cells that the streams use."""
    family: Any = model._family
    found: dict[int, Any] = {}
    # Nothing is a value where items are only counted; what is not declared is one where there is a cell for it.
    for value in (None, *_candidates(family), _NOBODY):
        cell = family.cell(value)
        if cell is not None:
            found.setdefault(cell, value)
        if len(found) == min(2, family.cells):
            return tuple(found.values())
    raise ConfigurationError("the auditor knows no values of this family of queries")


def _candidates(family: Any) -> Iterator[Any]:
    if hasattr(family, "axes"):
        yield from product(*(list(_candidates(axis)) for axis in family.axes))
    elif hasattr(family, "attributes"):
        yield from product(*(values for _, values in family.attributes))
    elif getattr(family, "edges", None) is not None:
        edges = [float(edge) for edge in family.edges]
        yield from [*edges, *((a + b) / 2 for a, b in pairwise(edges))]
    elif hasattr(family, "size"):
        yield from range(family.size)
    else:
        for name in ("categories", "universe", "points"):
            yield from getattr(family, name, ())


Engines = Callable[[ItemSource], Any]


class Replica:
    """Door, presence and engine of a mechanism, without choosing and calibrating anew: what many streams need of it."""

    def __init__(self, model: Dynamic, engine: Engines, key: NoiseKey) -> None:
        self._door, self._form = model._door, model._form
        self._engine: Any = engine(key.source("audit"))
        self._state, self._tick = self._engine.start(), 0

    def step(self, events: list[Any], owners: list[str]) -> tuple[IntArray, Any]:
        """The row behind the release of the next tick, and what is shown of it."""
        batch = self._door.batch(self._door.events(events, self._tick + 1))
        self._engine.begin(self._tick)
        played = self._engine.play(batch, self._state)
        self._state, self._tick = played.state, self._tick + 1
        row = np.asarray(played.rows[-1])
        return row, self._form.show(row)

    @property
    def tokens(self) -> list[str]:
        minted: list[str] = self._engine.rule.tokens()
        return minted


class WithUsers:
    """A mechanism that protects users, whole: the cap on their events is before the door."""

    def __init__(self, model: Dynamic, engine: Engines, key: NoiseKey) -> None:
        self._mechanism: Any = again(model)(key)  # type: ignore[arg-type]

    def step(self, events: list[Any], owners: list[str]) -> tuple[IntArray, Any]:
        release = self._mechanism.step_events(events, users=owners)
        return self._mechanism._kept.played.recent[-1], release.value

    @property
    def tokens(self) -> list[str]:
        minted: list[str] = self._mechanism.tokens
        return minted


class Players:
    """Plays streams through the door of copies of a mechanism."""

    def __init__(self, model: Dynamic, ticks: int) -> None:
        self.model, self.ticks = model, ticks
        self.engine: Engines = model._blueprint().engine  # the static mechanism of this plan is now the model's
        self._facts, self._values = Facts.of(model), values_of(model)
        self._copy = WithUsers if model.unit == "user" else Replica

    def of(self, ticks: int) -> Players:
        """The same for another number of ticks."""
        other = copy(self)
        other.ticks = ticks
        return other

    def play(self, stream: Stream, key: NoiseKey | None = None) -> Iterator[tuple[IntArray, Any]]:
        """The row behind the release of each tick, and what is shown of it."""
        played: Any = self._copy(self.model, self.engine, ZeroNoise() if key is None else key)
        tokens: dict[str, str] = {}
        for tick in range(1, self.ticks + 1):
            now = [record for record in stream if record.tick == tick]
            yield played.step([self.event(record, tokens) for record in now], [record.owner for record in now])
            if self._facts.identity == "token":
                inserted = [record.name for record in now if record.sign > 0]
                tokens |= dict(zip(inserted, played.tokens, strict=True))

    def event(self, record: Record, tokens: Mapping[str, str]) -> tuple[str, Any, Any]:
        """A record as the door takes it."""
        value = self._values[record.cell]
        if record.sign > 0:
            return "insert", value, record.name or None
        name = tokens.get(record.name, _NOBODY) if self._facts.identity == "token" else record.name or None
        return "delete", value, name
