"""Minimal occurrences by their definition: every interval is looked at. Slow, and nothing of the detector in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from evertally.applications.records import Records
from evertally.applications.refuter import Pair, Stream
from evertally.applications.strings.detector import EpisodeDetector
from evertally.applications.strings.letters import NULL, Word


def all_words(letters: int, longest: int) -> dict[int, Word]:
    """All words up to a length, by number."""
    return dict(enumerate(word for i in range(1, longest + 1) for word in product(range(letters), repeat=i)))


def inside(word: Sequence[int], letters: Sequence[int]) -> bool:
    """Whether the letters hold the word as a subsequence.

    >>> inside([0, 2], [0, 1, 2]), inside([2, 0], [0, 1, 2])
    (True, False)
    """
    rest = iter(letters)
    return all(letter in rest for letter in word)


def minimal_ends(word: Sequence[int], letters: Sequence[int]) -> list[int]:
    """Where minimal occurrences end: intervals that hold the word and lose it if they lose an end.

    >>> minimal_ends([0, 1], [0, 0, 1, 1, 0, 1])
    [2, 5]
    """
    return [
        stop
        for stop in range(len(letters))
        if any(
            inside(word, letters[start : stop + 1])
            and not inside(word, letters[start:stop])
            and not inside(word, letters[start + 1 : stop + 1])
            for start in range(stop + 1)
        )
    ]


def detected(words: dict[int, Word], letters: Sequence[int]) -> list[dict[int, int]]:
    """What the detector says, letter by letter."""
    detector = EpisodeDetector(words)
    return [dict(detector.changes(Records((("", letter),)))) for letter in letters]  # type: ignore[arg-type]


def with_null(letters: Sequence[int], place: int, letter: int = NULL) -> list[int]:
    return [*letters[:place], letter, *letters[place + 1 :]]


def sequences_of_a_user(letters: int, length: int, most: int) -> list[Stream]:
    """All ways in which a user has at most so many letters in so many ticks."""
    records = [None, *(("ann", letter) for letter in range(letters))]
    return [stream for stream in product(records, repeat=length) if sum(r is not None for r in stream) <= most]


def users_there_or_not(some: Sequence[Stream]) -> Iterator[Pair]:
    for stream in some:
        yield stream, (None,) * len(stream)


def users_replaced(some: Sequence[Stream]) -> Iterator[Pair]:
    """Another user in place of one: their own letters, in ticks of their own."""
    other = [tuple(None if record is None else ("bob", record[1]) for record in stream) for stream in some]
    for one in some:
        for two in other:
            yield one, two
