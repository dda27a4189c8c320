"""Statistics of strings, for the conformance checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.hostile import GARBAGE
from evertally.applications.strings import FrequentSubstrings, SubstringCounts
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP

_TICKS = 12
_WRONG = ["abc", 7, None, {"a": 1}, 1.5]
_MANY = [*"ab", *(f"letter {i}" for i in range(2000))]  # 2002^3 words: their noise has the address of a digest


def letters(n: int) -> list[list[Any]]:
    """Letters of one sequence; some ticks are empty, some letters nobody declared."""
    return [[*"abaabbba"[t % 5 : t % 5 + t % 4], *(["?"] if t % 7 == 3 else [])] for t in range(n)]


def pairs(n: int) -> list[list[Any]]:
    """Letters of three users."""
    return [[(f"user {(i + t) % 3}", letter) for i, letter in enumerate(tick)] for t, tick in enumerate(letters(n))]


def occurrences(ticks: list[list[Any]], words: list[str], *, gap: int | None = None) -> list[dict[str, int]]:
    """A plain model: all letters so far are written down, and words are looked for at every end."""
    written: dict[str, list[tuple[int, str]]] = {}
    counts = dict.fromkeys(words, 0)
    seen = []
    for t, records in enumerate(ticks):
        for record in records:
            user, letter = record if isinstance(record, tuple) else ("", record)
            text = written.setdefault(user, [])
            if text and gap is not None and t - text[-1][0] > gap:
                text.append((t, " "))
            text.append((t, letter))
            for word in words:
                counts[word] += "".join(a for _, a in text).endswith(word)
        seen.append(dict(counts))
    return seen


def substrings(
    listed: list[str], feed: Callable[[int], list[Any]], *, runs: int = 60, users: bool = False, **options: Any
) -> Subject:
    """Counts of substrings that show these words."""

    def truth(ticks: list[Any]) -> list[dict[str, int]]:
        return occurrences(ticks, listed, gap=options.get("gap"))

    shown = {k: v for k, v in options.items() if k != "alphabet"}
    return Subject(
        name=f"SubstringCounts({', '.join(f'{k}={v}' for k, v in shown.items())})",
        make=lambda key: SubstringCounts(key=key, **options),
        feed=feed,
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=256,  # words that are new, the letters of a user
        users=users,
        runs=runs,
    )


_ALL = ["a", "b", "aa", "ab", "ba", "bb"]
_ABOVE = 4


def _off(value: dict[str, int], exact: dict[str, int]) -> Any:
    """By how much noise at least must have moved each word, for it to be shown so, or not at all."""
    missing = {word: min(0, _ABOVE - 1 - count) for word, count in exact.items()}
    return np.array([value[word] - exact[word] if word in value else missing[word] for word in _ALL], dtype=float)


def frequent(**options: Any) -> Subject:
    """Words that are found, of a domain so small that all of them are looked at. Larger ones: test_frequent_words."""
    return Subject(
        name=f"FrequentSubstrings({', '.join(options)})",
        make=lambda key: FrequentSubstrings(alphabet="ab", longest=2, above=_ABOVE, horizon=_TICKS, key=key, **options),
        feed=letters,
        truth=lambda ticks: occurrences(ticks, _ALL),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=256,
        error=_off,
        independent_numbers=False,
        labels=lambda mechanism, inputs: set(_ALL),
        runs=60,
    )


STRING_MECHANISMS: tuple[Subject, ...] = (
    substrings(_ALL, letters, alphabet="ab", longest=2, sequence="stream", guarantee=ZCDP(0.5), horizon=_TICKS),
    substrings(
        ["ab", "a"],
        pairs,
        alphabet=_MANY,
        longest=3,
        show=[["a", "b"], ["a"]],
        sequence="user",
        gap=2,
        guarantee=PureDP(1.0),
        horizon=_TICKS,
    ),
    substrings(
        ["aa", "ab"],
        letters,
        users=True,
        alphabet="ab",
        words=["aa", "ab"],
        sequence="stream",
        unit="user",
        max_events_per_user=2,
        neighbours="replace",
        guarantee=ApproxDP(1.0, 1e-6),
        horizon=None,
    ),
    frequent(sequence="stream", guarantee=ZCDP(0.5)),
)
