"""Planted bugs of episode counts, each with the probe that finds it.

A probe says what it found; nothing, where nothing is wrong. Bugs are patched in from outside, for the time of a `with`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from episode_truths import detected, minimal_ends, sequences_of_a_user, users_there_or_not

import evertally as et
from evertally.applications.refuter import search, streams
from evertally.applications.strings import episode_bounds, episodes
from evertally.applications.strings.detector import EpisodeDetector
from evertally.noise import ZeroNoise
from evertally.privacy import Change


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Callable[[], Any]
    probe: Callable[[], str]


MUTANTS: list[Mutant] = []


def plant(probe: Callable[[], str]) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a bug by its docstring."""

    def register(patch: Callable[[], Any]) -> Callable[[], Any]:
        MUTANTS.append(Mutant(" ".join((patch.__doc__ or "").split()), patch, probe))
        return patch

    return register


def _made(**options: Any) -> et.strings.EpisodeCounts:
    common: dict[str, Any] = {"alphabet": "ab", "guarantee": et.ZCDP(0.5), "horizon": 9, "key": ZeroNoise()}
    return et.strings.EpisodeCounts(**common | {"words": ["ab"], "sequence": "user"} | options)


def definition() -> str:
    """The detector against every interval, on strings with repeated letters."""
    words = {0: (0, 0), 1: (0, 1), 2: (0, 1, 0)}
    for text in ([0], [0, 0], [0, 1, 1], [0, 1, 0, 1, 0], [0, 0, 1, 0]):
        found = detected(words, text)
        for number, word in words.items():
            if [t for t, changes in enumerate(found) if changes.get(number)] != minimal_ends(word, text):
                return "an occurrence that is none, or is not minimal"
    return ""


def one_letter() -> str:
    statistic = _made(sequence="stream")
    records = [("", 0), ("", 1)]
    return "one letter moves more than is charged" if statistic.refute(records, streams(records, 5)).refuted else ""


def one_record() -> str:
    statistic = _made(neighbours="replace", replaces="record")
    records = [(user, letter) for user in ("ann", "bob") for letter in (0, 1)]
    return "one record moves more than is charged" if statistic.refute(records, streams(records, 4)).refuted else ""


def one_user() -> str:
    found = ""
    for options in ({"once_per_user": True, "words": ["a"]}, {"words": ["ab"]}):
        statistic = _made(unit="user", max_events_per_user=2, **options)
        pairs = list(users_there_or_not(sequences_of_a_user(2, 3, 2)))
        # Between the letters of the user come those of another one.
        others = (("bob", 1), ("bob", 0))
        pairs += [
            ((one[0], *others, one[1]), (None, *others, None))
            for one, _ in users_there_or_not(sequences_of_a_user(2, 2, 2))
        ]
        if search(statistic.encoder, pairs, statistic.sensitivity).refuted:
            found = "one user moves more than is charged"
    return found


@plant(definition)
def shorter_first() -> Any:
    """Shorter prefixes first: a letter that is repeated in an episode is used twice."""
    plain = EpisodeDetector.__init__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        plain(self, *arguments, **options)
        self._ending = {letter: nodes[::-1] for letter, nodes in self._ending.items()}

    return mock.patch.object(EpisodeDetector, "__init__", init)


def every_end(self: EpisodeDetector, record: Any, changes: Any) -> None:
    owner, letter = record
    here = self._starts.add((owner, -1), 1)
    for node, parent, word in self._ending.get(letter, []):
        start = here if parent == -1 else self._starts.get((owner, parent))
        if start is not None:
            self._starts.put((owner, node), start)
            if word is not None:
                changes[word] = changes.get(word, 0) + 1


@plant(one_letter)
def not_minimal() -> Any:
    """Every letter that completes an occurrence counts, minimal or not."""
    return mock.patch.object(EpisodeDetector, "encode", every_end)


@plant(one_user)
def always_again() -> Any:
    """Once for each user is forgotten."""
    plain = EpisodeDetector.__init__
    return mock.patch.object(EpisodeDetector, "__init__", lambda self, words, once=False: plain(self, words))


@plant(one_user)
def one_memory() -> Any:
    """All users share one sequence."""
    plain = EpisodeDetector.encode
    return mock.patch.object(
        EpisodeDetector, "encode", lambda self, record, changes: plain(self, ("", record[1]), changes)
    )


@plant(one_record)
@contextmanager
def same_gamma() -> Iterator[None]:
    """A record that goes to another user is charged as another letter (6.7 before its correction)."""

    def moved(self: Any) -> Change:
        return episode_bounds.replaced_listed(list(self._domain.listed.values()))

    with mock.patch.object(episodes.EpisodeCounts, "_moved_by_unit", moved):
        yield


@plant(one_letter)
def paper() -> Any:
    """An episode changes at one time at most, as the paper's proof has it."""
    return mock.patch.object(episode_bounds, "removed_listed", return_value=Change(1, 1, 1))
