"""Streams of letters to try: all short ones, runs that one letter cuts or joins (factorization-counting 6.6), random
ones; for sequences by user, two users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from evertally.applications.strings.options import StringStatistic
from evertally.audit.application_streams import Sent, Stream, World

NOWHERE = "evertally-undeclared"  # a letter of no alphabet
_LETTERS = 2  # of streams that are all tried
_GOLDEN = (
    "aaaabaa",
    "aaabaaa",
    "aaaaa",
    "aabaa",
    "abababa",
    "ababbab",
    "abcabcabc",
    "aabbaabb",
    "abacaba",
    "aaaaaaa",
    "abbcab",
)
_USERS = ("ann", "bob")


def letters_of(model: StringStatistic) -> list[Any]:
    """Letters of the alphabet, those of the listed words first."""
    listed = [letter for word in model.words or [] for letter in word]
    return list(dict.fromkeys([*listed, *model.alphabet]))[:3]


def world_of_letters(model: StringStatistic, length: int, seed: int = 0) -> World:
    """What may be sent to a statistic of strings. Where each user has a sequence, and no user is protected, a record is
    (user, letter)."""
    dice = np.random.default_rng(seed)
    letters = letters_of(model)
    few = letters[:_LETTERS]
    paired = model.sequence == "user" and model.unit == "event"
    gap = getattr(model, "gap", None) is not None
    some = [tuple(letters[i] for i in dice.integers(len(letters), size=8)) for _ in range(20)]
    tried = [*product([*few, NOWHERE], repeat=length), *product(few, repeat=length + 1), *some]

    def of(text: Sequence[Any]) -> Iterator[Stream]:
        streams: list[Stream] = [tuple(Sent(letter) for letter in text)]
        if paired:
            streams = [
                tuple(Sent(("ann", letter)) for letter in text),
                tuple(Sent((_USERS[dice.integers(2)], letter)) for letter in text),
            ]
        yield from streams
        if gap:  # ticks without a letter
            yield tuple(None if dice.random() < 0.25 else one for one in streams[-1])

    known, others = ([stream for text in texts for stream in of(text)] for texts in (_golden(letters), tried))
    if paired:
        known += _two_runs(letters)
    nulled = getattr(model, "removal", "") == "null"
    moved = paired and getattr(model, "replaces", "letter") == "record"

    def instead(stream: Stream, sent: Sent) -> Iterator[Any]:
        for letter in [NOWHERE] if nulled else [*letters, NOWHERE]:
            if not paired:
                yield letter
            else:
                yield from ((user, letter) for user in (_USERS if moved else [sent.record[0]]))

    return World(known, others, instead)


def _golden(letters: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for text in _GOLDEN:
        places = ["abc".index(letter) for letter in text]
        if max(places) < len(letters):
            yield tuple(letters[place] for place in places)


def _two_runs(letters: Sequence[Any]) -> Iterator[Stream]:
    """A run of one letter at each of two users: a letter that goes from the one to the other changes both."""
    x, y = letters[0], letters[-1]
    for one, other in product(range(2, 5), repeat=2):
        for middle in (x, y):
            records = [
                *((("ann", x),) * one),
                ("ann", middle),
                *((("ann", x),) * one),
                *((("bob", x),) * other),
                *((("bob", x),) * other),
            ]
            yield tuple(map(Sent, records))
