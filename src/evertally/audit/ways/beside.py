"""Whether one record decides how others of its body are read: hostile ones beside ordinary ones, through every reader.

A body is played as its records are as objects, tick by tick, hostile records of one kind in each. What is released, and
what reached the engine, must be the same bytes; where the events of a tick add up, as each record by itself, too. Users
must be the same ones, whether or not a cap has had enough of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any

from evertally.audit.spec_down.cells import EACH, Columns, blanked
from evertally.audit.spec_down.playing import Record
from evertally.audit.spec_down.small import Small
from evertally.audit.ways.bodies import READERS, Body, Reader
from evertally.runtime.input.envelope import BatchRefused, needed
from evertally.runtime.input.sources import Batch

_LEAST = 9  # ordinary records of a body
_MOST = 30  # values of a column beside each other
_COMMON = 3  # declared labels that come in several spellings
# Tick by tick what batches, or records as objects, release, with digests of what reached the engine.
Released = Callable[[Sequence[list[Batch]]], list[bytes]]
Objects = Callable[[Sequence[Record]], list[Batch]]
Alone = Callable[[Sequence[Sequence[Record]]], list[bytes] | None]
Users = Callable[[list[Batch]], list[str | None]]  # the user of each event


def beside(small: Small, columns: Columns, released: Released, objects: Objects, alone: Alone, users: Users) -> str:
    """What one record does to others; nothing, if all is well."""
    names = needed(small.spec)
    ordinary = _Ordinary(small, columns)
    for reader, form in READERS.items():
        left = _bodies(form, small, names, ordinary)
        while bodies := list(islice(left, small.ticks)):
            read, meant = [], [body.meant for body in bodies]
            for tick, body in enumerate(bodies, start=1):
                try:
                    read.append(body.batches(small.spec, tick))
                except BatchRefused:
                    if not body.told:
                        break  # a column of this stream has another type: nobody can send it so
                    return f"{reader}: {body.told} decides whether others are taken"
            if len(read) < len(bodies):
                break
            known = released([objects(records) for records in meant])
            if alone(meant) not in (None, known):
                return "records beside a strange one release something else than one by one"
            found = released(read)
            if found != known:
                told = _first(found, known, bodies) or "nothing strange"
                return f"{reader}: beside {told}, records are read otherwise than as objects"
            for body, batches in zip(bodies, read, strict=True):
                if users(batches) != users(objects(body.meant)):
                    return f"{reader}: beside {body.told or 'nothing strange'}, records are those of other users"
    return ""


def _first(found: Sequence[bytes], known: Sequence[bytes], bodies: Sequence[Body]) -> str:
    """What the first body has that was not read as it should be."""
    each = len(known) // len(bodies)
    return next(bodies[i // each].told for i, (one, other) in enumerate(zip(found, known, strict=True)) if one != other)


def _bodies(form: Reader, small: Small, names: Sequence[str], ordinary: _Ordinary) -> Iterator[Body]:
    for column in (*names, ""):
        yield from form.bodies(small.spec, names, ordinary.records, column, ordinary.plain(form))


class _Ordinary:
    """Records that can be read, each as it is: what a column may hold, in spellings that are other labels, or the same
    ones. Users are new in every body, so that no cap has had enough of them."""

    def __init__(self, small: Small, columns: Columns) -> None:
        self._user, self._users = small.spec.user_column, count()
        self._clock = (
            {} if small.spec.clock.column not in needed(small.spec) else {small.spec.clock.column: _time(small)}
        )
        amounts = {name for name, use in small.spec.uses() if use == "amounts"}
        self._pools = {
            name: _spelled(pool, name in amounts) for name, pool in zip(columns.names, columns.values, strict=True)
        }

    def plain(self, form: Reader) -> Record:
        """A record in which nothing is odd, and that can be written as it is."""
        written = {
            name: next((cell for cell in pool if cell is EACH or form.writes(cell)), None)
            for name, pool in self._pools.items()
        }
        return self._record(written, next(self._users))

    def records(self) -> list[Record]:
        """Every value of every column, each time beside other values of the others, and in another place."""
        size = max(_LEAST, *map(len, self._pools.values())) if self._pools else _LEAST
        begin = next(self._users)
        return [
            self._record(
                {name: pool[(i + (j + 1) * begin) % len(pool)] for j, (name, pool) in enumerate(self._pools.items())}, i
            )
            for i in range(size)
        ]

    def _record(self, cells: Record, number: int) -> Record:
        each = next(self._users)
        made = {name: f"item {each}" if cell is EACH else cell for name, cell in cells.items()}
        if self._user is not None and number % 3:
            names = (f"Zo\u00e9 {each}", f" zoe {each} ", f"zoe\u0301 {each}", str(each), *blanked(f"zoe {each}"))
            made[self._user] = names[number % len(names)]
        return made | self._clock


def _time(small: Small) -> Any:
    return small.spec.clock.end_of(0)


def _spelled(pool: Sequence[Any], amounts: bool) -> list[Any]:
    """Values of a column; among them, never far from each other, some that count, and their neighbours in spelling."""
    kinds = (str, int, float) if amounts else (str, int)
    cells = [cell for cell in pool if type(cell) in kinds or cell is EACH]
    found: list[Any] = []
    for number, cell in enumerate(cells):
        found += [cell, None] if number == 0 else [cell]
        if number < _COMMON and type(cell) in (str, int):
            found += [*blanked(cell), str(cell).upper(), f"{cell}\u00e9", f"{cell}e\u0301", f"\ufeff{cell}"]
    if amounts:
        found[2:2] = [" 1", "1 ", "1\u00e9", "\u0661", "1e0", "+1", "1_0"]
    return list(dict.fromkeys(found))[:_MOST]
