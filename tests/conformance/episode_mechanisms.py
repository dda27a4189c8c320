"""Episode counts and stacks, for the conformance checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import evertally as et
from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, PureDP

PURE, CONCENTRATED = PureDP(1.0), ZCDP(0.5)
_WRONG = ["abc", 7, None, {"a": 1}, 1.5]
_LETTERS = "abca?bcab"
_TICKS = 10


def letters(n: int) -> list[list[Any]]:
    """Some letters a tick, one of them undeclared."""
    return [[_LETTERS[(t * t + 2 * i) % 9] for i in range(t % 4)] for t in range(n)]


def by_user(n: int) -> list[list[Any]]:
    return [
        [(f"u{(t + i) % 3}", letter) for i, letter in enumerate(tick)] + [("u1",), None]
        for t, tick in enumerate(letters(n))
    ]


def _inside(word: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in word)


def occurrences(word: str, text: str) -> int:
    """Minimal occurrences, by their definition."""
    return sum(
        _inside(word, text[a:b]) and not _inside(word, text[a : b - 1]) and not _inside(word, text[a + 1 : b])
        for b in range(1, len(text) + 1)
        for a in range(b)
    )


def _texts(ticks: list[Any]) -> Iterator[dict[str, str]]:
    """What each user has said so far, tick by tick; the user "" where there are none."""
    said: dict[str, str] = {}
    for tick in ticks:
        for record in tick:
            user, letter = record if isinstance(record, tuple) and len(record) == 2 else ("", record)
            if isinstance(letter, str) and letter in "abc":
                said[user] = said.get(user, "") + letter
        yield dict(said)


def episode_counts(ticks: list[Any], words: list[str]) -> list[dict[str, int]]:
    return [{word: sum(occurrences(word, text) for text in said.values()) for word in words} for said in _texts(ticks)]


_ALL = [*"abc", *(a + b for a in "abc" for b in "abc")]
_SOME = ["ab", "aca", "bc"]


def episodes(name: str, counted: list[str], guarantee: Any, horizon: int | None = _TICKS, **options: Any) -> Subject:
    own = options.get("sequence") == "user"
    users = options.get("unit") == "user"

    def make(key: Any) -> Any:
        given = {"alphabet": "abc", "sequence": "stream"} | options
        return et.strings.EpisodeCounts(guarantee=guarantee, horizon=horizon, key=key, **given)

    return Subject(
        name=f"EpisodeCounts({name})",
        make=make,
        feed=by_user if own else letters,
        truth=lambda ticks: episode_counts(ticks, counted),
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=512,  # prefixes that occurred
        users=users,
        runs=40,
    )


def _stack(key: Any, **options: Any) -> Any:
    return et.Stacked(
        {
            "letters": et.part(et.Histogram, categories=["a", "b", "c"]),
            "orders": et.part(et.strings.EpisodeCounts, alphabet="abc", words=_SOME, sequence="stream"),
        },
        horizon=_TICKS,
        key=key,
        **options,
    )


def _stacked_truth(ticks: list[Any]) -> list[dict[str, Any]]:
    singles, orders = episode_counts(ticks, list("abc")), episode_counts(ticks, _SOME)
    return [{"letters": one, "orders": other} for one, other in zip(singles, orders, strict=True)]


def stacked(name: str, **options: Any) -> Subject:
    return Subject(
        name=f"Stacked({name})",
        make=lambda key: _stack(key, **options),
        feed=letters,
        truth=_stacked_truth,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=512,
        runs=40,
        users=options.get("unit") == "user",
    )


def _board(guarantee: Any, **options: Any) -> Subject:
    types, metrics = ["a", "b", "c"], {"all": "all", "some": ["a", "b"]}

    def truth(ticks: list[Any]) -> list[dict[str, Any]]:
        sums = np.cumsum(np.array(ticks), axis=0)
        return [{"all": int(row.sum()), "some": int(row[:2].sum())} for row in sums]

    return Subject(
        name=f"Dashboard({guarantee!r}, {options})",
        make=lambda key: et.Dashboard(
            types=types, metrics=metrics, guarantee=guarantee, horizon=_TICKS, key=key, **options
        ),
        feed=lambda n: [[(t * t + j) % 4 for j in range(3)] for t in range(n)],
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=["abc", 7, [1] * 4, [0.5] * 3, None],
        ticks=_TICKS,
    )


def _grouped(guarantee: Any) -> Subject:
    columns = {"sex": ["f", "m"], "ward": ["n", "s"]}

    def truth(ticks: list[Any]) -> list[dict[str, Any]]:
        sums = np.cumsum(np.array(ticks), axis=0)
        return [{"sex=f": int(row[:2].sum()), "sex=m": int(row[2:].sum()), "all": int(row.sum())} for row in sums]

    return Subject(
        name=f"GroupBy({guarantee!r})",
        make=lambda key: et.GroupBy(
            columns=columns, tables=[["sex"], []], guarantee=guarantee, horizon=_TICKS, key=key
        ),
        feed=lambda n: [[(t * t + j) % 4 for j in range(4)] for t in range(n)],
        truth=truth,
        garbage=GARBAGE,
        wrong_calls=["abc", 7, [1] * 5, [0.5] * 4, None],
        ticks=_TICKS,
    )


EPISODE_MECHANISMS: tuple[Subject, ...] = (
    _board(CONCENTRATED),
    _board(PURE, way="types"),
    _grouped(CONCENTRATED),
    episodes("all, zCDP", _ALL, CONCENTRATED, longest=2),
    episodes("listed by user, pure", _SOME, PURE, None, words=_SOME, sequence="user", neighbours="replace"),
    stacked("zCDP", guarantee=CONCENTRATED),
    stacked("equal multipliers, pure", guarantee=PURE, multipliers={"letters": 2, "orders": 2}, mechanism="tree"),
)
