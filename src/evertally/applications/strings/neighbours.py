"""Neighbours of made-up streams of letters, for each relation that the table of factorization-counting 6.6 has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from evertally.applications.records import Record
from evertally.applications.refuter import Pair, Stream, replaced
from evertally.applications.strings.letters import NULL


def nulled(stream: Stream) -> Iterator[Pair]:
    """A stream, and it with a null in place of one of its letters."""
    for i, record in enumerate(stream):
        if record is not None and record[1] != NULL:
            yield stream, (*stream[:i], (record[0], NULL), *stream[i + 1 :])


def letter_replaced(stream: Stream, records: Sequence[Record]) -> Iterator[Pair]:
    """A stream, and it with another letter in place of one of its own, in the same sequence."""
    for one, other in replaced(stream, records):
        if all(a is None or b is None or a[0] == b[0] for a, b in zip(one, other, strict=True)):
            yield one, other


def first_of_users(stream: Stream, most: int) -> Stream:
    """What a cap keeps: the first letters of each user."""
    seen: dict[str, int] = {}
    kept: list[Record | None] = []
    for record in stream:
        if record is not None:
            seen[record[0]] = seen.get(record[0], 0) + 1
        kept.append(record if record is not None and seen[record[0]] <= most else None)
    return tuple(kept)


def user_removed(stream: Stream) -> Iterator[Pair]:
    """A stream, and it without one of its users."""
    for user in sorted({record[0] for record in stream if record is not None}):
        yield stream, tuple(None if record is None or record[0] == user else record for record in stream)


def user_replaced(stream: Stream, records: Sequence[Record]) -> Iterator[Pair]:
    """A stream, and it with another user in place of one of its own, in the same places."""
    letters = sorted({record[1] for record in records})
    for user in sorted({record[0] for record in stream if record is not None}):
        places = [i for i, record in enumerate(stream) if record is not None and record[0] == user]
        for word in product(letters, repeat=len(places)):
            changed = list(stream)
            for i, letter in zip(places, word, strict=True):
                changed[i] = ("not " + user, letter)
            yield stream, tuple(changed)
