"""Substring statistics to refute, and neighbours of made-up streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from evertally.applications.encoder import Encoder
from evertally.applications.paths import Path
from evertally.applications.records import Record, Records
from evertally.applications.refuter import Pair, Stream, removed, replaced
from evertally.applications.strings import SubstringCounts
from evertally.applications.strings.neighbours import nulled
from evertally.noise import simulation
from evertally.privacy import ZCDP

LETTERS: tuple[Record, ...] = (("", 0), ("", 1))


def substrings(longest: int | None = None, **options: Any) -> SubstringCounts:
    options = {"sequence": "stream", "alphabet": "ab", "guarantee": ZCDP(0.5), "horizon": 8} | options
    return SubstringCounts(longest=longest, key=simulation(1), **options)


NEIGHBOURS: dict[str, tuple[dict[str, str], Callable[[Stream], Iterable[Pair]]]] = {
    "joined": ({}, removed),
    "null": ({"removal": "null"}, nulled),
    "letter": ({"neighbours": "replace"}, lambda stream: replaced(stream, LETTERS)),
}


def pairs_of(relation: str, streams: Iterable[Stream]) -> Iterator[Pair]:
    find = NEIGHBOURS[relation][1]
    for stream in streams:
        yield from find(stream)


def words_of_length(length: int, letters: str = "ab") -> list[str]:
    return ["".join(word) for word in product(letters, repeat=length)]


def played(encoder: Encoder, ticks: Iterable[Iterable[Record]]) -> Path:
    """The changes of ticks that hold any number of records."""
    return [encoder.changes(Records(tuple(records))) for records in ticks]
