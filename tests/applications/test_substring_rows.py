"""The table of factorization-counting 6.6: never refuted, attained where it says so, and the paper's constants are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from substring_pairs import LETTERS, NEIGHBOURS, pairs_of, played, substrings

from evertally.applications.paths import difference, intervals, l1, split, square_root
from evertally.applications.records import Record
from evertally.applications.refuter import Stream, removed, replaced, search, streams
from evertally.privacy import Change

# per length j: l1, Gamma^2, as the table has them
PER_LENGTH = {
    "joined": lambda j: (2 * j - 1, j * j - j + 1),
    "null": lambda j: (j, j * j),
    "letter": lambda j: (2 * j, j * j + j),
}


def owned(user: str, letters: Sequence[int | None]) -> Stream:
    return tuple(None if letter is None else (user, letter) for letter in letters)


@pytest.mark.parametrize(
    ("relation", "values"),
    [("joined", (1, 4, 11, 24, 45)), ("null", (1, 5, 14, 30, 55)), ("letter", (2, 8, 20, 40, 70))],
)
def test_all_lengths(relation: str, values: tuple[int, ...]) -> None:
    options = NEIGHBOURS[relation][0]
    for longest, value in enumerate(values, start=1):
        assert substrings(longest, **options).sensitivity.l2_squared == value
        only = substrings(longest, only_longest=True, **options).sensitivity
        assert (only.l1, only.l2_squared) == PER_LENGTH[relation](longest)
    ell = len(values)
    sums = {"joined": ell**2, "null": ell * (ell + 1) // 2, "letter": ell * (ell + 1)}
    assert substrings(ell, **options).sensitivity.l1 == sums[relation]


def test_gaps_records_and_users() -> None:
    gaps = [substrings(ell, gap=3).sensitivity for ell in range(1, 6)]
    assert [(one.l1, one.l2_squared) for one in gaps] == [(1, 1), (4, 5), (9, 14), (16, 30), (25, 55)]
    assert substrings(3, gap=3, removal="null").sensitivity == Change(6, 14, 6)
    record: dict[str, Any] = {"neighbours": "replace", "replaces": "record", "sequence": "user"}
    assert [substrings(ell, **record).sensitivity.l2_squared for ell in range(1, 6)] == [4, 16, 44, 96, 180]
    assert [substrings(ell, gap=0, **record).sensitivity.l2_squared for ell in range(1, 6)] == [4, 20, 56, 120, 220]
    assert substrings(4, **record).sensitivity.l1 == substrings(4, gap=0, **record).sensitivity.l1 == 32
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 5, "sequence": "user"}
    assert [substrings(ell, **user).sensitivity.l2_squared for ell in range(1, 6)] == [25, 41, 50, 54, 55]
    assert [substrings(ell, **user).sensitivity.l1 for ell in range(1, 7)] == [5, 9, 12, 14, 15, 15]
    once = user | {"once_per_user": True}
    assert [substrings(ell, **once).sensitivity.l2_squared for ell in range(1, 6)] == [5, 9, 12, 14, 15]
    assert substrings(5, max_words=7, **once).sensitivity == Change(7, 7, 7)
    assert substrings(3, neighbours="replace", **user).sensitivity == Change(24, 100, 24)
    # One sequence of all: a user's letters go one by one.
    shared = user | {"sequence": "stream"}
    assert substrings(3, **shared).sensitivity == Change(45, 25 * 11, 45)
    assert substrings(3, neighbours="replace", **shared).sensitivity == Change(90, 100 * 11, 90)
    assert substrings(3, once_per_user=True, sequence="user").sensitivity == Change(18, 18, 18)


@pytest.mark.parametrize("relation", NEIGHBOURS)
def test_the_table_holds_and_is_attained(relation: str) -> None:
    """All streams of 7 letters; the paper has Gamma = ell."""
    for longest in (1, 2, 3):
        statistic = substrings(longest, **NEIGHBOURS[relation][0])
        claim = statistic.certified().change
        worst = search(statistic.encoder, pairs_of(relation, streams(LETTERS, 7)), claim)
        assert not worst.refuted
        assert (worst.l1, worst.split) == (claim.l1, claim.l2_squared), "attained"
        assert worst.l2_squared == claim.l2_squared, "also by a factor, when letters share a tick"
        paper = replace(worst, claim=Change(claim.l1, longest**2, 1))
        # Where they agree there is nothing to refute.
        assert paper.refuted == (claim.l2_squared > longest**2)


@pytest.mark.parametrize(
    ("relation", "longest", "value"),
    [
        ("letter", 1, 2.0000),
        ("letter", 2, 6.9665),
        ("letter", 3, 15.1316),
        ("null", 2, 4.0727),
        ("null", 3, 9.6117),
        ("joined", 2, 3.8386),
        ("joined", 3, 9.2412),
    ],
)
def test_exhausted_numbers_of_the_square_root(relation: str, longest: int, value: float) -> None:
    """factorization-counting 14.1, item 10: one letter a tick, T = 8. All but the joined ones exceed the paper's."""
    statistic = substrings(longest, **NEIGHBOURS[relation][0])
    known = {one: played(statistic.encoder(), [[record] for record in one]) for one in streams(LETTERS, 8)}

    def path(stream: Stream) -> Any:
        if stream not in known:
            known[stream] = played(statistic.encoder(), [[] if record is None else [record] for record in stream])
        return known[stream]

    found = 0.0
    for one, other in pairs_of(relation, streams(LETTERS, 8)):
        found_path = difference(path(one), path(other))
        if split(found_path) > found:
            found = max(found, square_root(found_path))
    assert found == pytest.approx(value, abs=5e-5)
    assert found <= statistic.sensitivity.l2_squared


def test_goldens() -> None:
    """`aaaabaa` without its b; `aaaaa` in one tick, its middle replaced."""
    letters = {"a": ("", 0), "b": ("", 1)}
    text: Stream = tuple(letters[a] for a in "aaaabaa")
    for longest, value in ((1, 1), (2, 3), (3, 7)):
        statistic = substrings(longest, only_longest=True)
        ((one, other),) = [pair for pair in removed(text) if pair[1][4] is None]
        paths = [played(statistic.encoder(), [[] if r is None else [r] for r in stream]) for stream in (one, other)]
        assert split(difference(*paths)) == value
    encoder = substrings(3).encoder
    one, other = [[letters[a]] for a in "aaaabaa"], [[letters[a]] if a == "a" else [] for a in "aaaabaa"]
    path = difference(played(encoder(), one), played(encoder(), other))
    assert l1(path) == 9
    assert square_root(path) == pytest.approx(7.2690, abs=5e-5)
    together = [played(encoder(), [[letters[a] for a in word]]) for word in ("aaaaa", "aabaa")]
    assert intervals(difference(*together)) == 20 == substrings(3, neighbours="replace").sensitivity.l2_squared


def test_gap_rule_moves_more_than_joined() -> None:
    """Ticks without letters: a letter less can cut a word in two."""
    statistic = substrings(2, gap=1)
    some = [s for s in product((*LETTERS, None), repeat=6) if s[0] == LETTERS[0]]
    worst = search(statistic.encoder, pairs_of("joined", some), statistic.certified().change)
    assert not worst.refuted
    assert worst.l2_squared == 5, "attained"
    assert replace(worst, claim=substrings(2).certified().change).refuted, "the joined row is not enough"


@pytest.mark.parametrize("j", [2, 4, 6])
def test_gap_rule_and_a_record_at_another_user(j: int) -> None:
    """A run of a's is cut in two at one user, another one is broken by a b at the other: (2j-1)^2 + j."""
    record: dict[str, Any] = {"neighbours": "replace", "replaces": "record", "sequence": "user", "gap": 1}
    half: list[Record] = [("two", 0)] * (j - 1)
    before, after = ([[("one", 0)]] * (j - 1) for _ in range(2))
    one = [*before, [*half, ("one", 0), *half], *after]
    other = [*before, [*half, ("two", 1), *half], *after]
    only = substrings(j, only_longest=True, **record)
    found = intervals(difference(played(only.encoder(), one), played(only.encoder(), other)))
    assert found == (2 * j - 1) ** 2 + j <= only.sensitivity.l2_squared
    if j == 6:
        every = substrings(j, **record)
        found = intervals(difference(played(every.encoder(), one), played(every.encoder(), other)))
        assert 4 * (j * (j * j + 2) // 3) == 304 < found == 307 <= every.sensitivity.l2_squared


@pytest.mark.parametrize("gap", [None, 2])
def test_a_record_at_another_user(gap: int | None) -> None:
    statistic = substrings(2, neighbours="replace", replaces="record", sequence="user", gap=gap)
    records = [(user, letter) for user in ("one", "two") for letter in (0, 1)]
    pairs = [pair for stream in streams(records, 4) for pair in replaced(stream, records)]
    # aba and bb at two users become aa and bab.
    around: list[Stream] = [
        (("one", 0), ("two", 1), middle, ("one", 0), ("two", 1)) for middle in (("one", 1), ("two", 0))
    ]
    pairs.append((around[0], around[1]))
    claim = statistic.certified().change
    worst = search(statistic.encoder, pairs, claim)
    assert not worst.refuted
    letter = substrings(2, neighbours="replace").certified().change
    assert gap is not None or replace(worst, claim=letter).refuted, "the row of a letter in its place is not enough"


def test_users() -> None:
    """A user is there or not, among another one's letters; every row is attained."""
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 4, "sequence": "user"}
    around: Stream = owned("other", (0, 1, 0, 0, None, 1, 0))
    pairs = []
    for letters in product((0, 1), repeat=4):
        mine = owned("me", (*letters[:2], None, *letters[2:], None, None))
        merged = [record for both in zip(around, mine, strict=True) for record in both]
        without = [record for record in around for record in (record, None)]
        pairs.append((tuple(merged), tuple(without)))
    for more in ({}, {"once_per_user": True}, {"once_per_user": True, "max_words": 3}):
        for longest in (1, 2, 3):
            statistic = substrings(longest, **user, **more)
            claim = statistic.certified().change
            worst = search(statistic.encoder, pairs, claim)
            assert not worst.refuted
            if not more:
                assert (worst.l1, worst.split) == (claim.l1, claim.l2_squared)
            elif longest == 1:
                assert worst.split == 2, "there are two letters"


def test_each_word_once_by_letter() -> None:
    """2 ell^2, attained up to ell = 2."""
    for longest in (1, 2, 3):
        statistic = substrings(longest, once_per_user=True, sequence="user", alphabet="abc")
        claim = statistic.certified().change
        some = [owned("me", letters) for letters in product((0, 1, 2), repeat=6) if letters[0] == 0]
        worst = search(statistic.encoder, [pair for stream in some for pair in removed(stream)], claim)
        assert not worst.refuted
        assert longest == 3 or worst.split == claim.l2_squared
        # A cap does not make the change smaller: what counts once may count elsewhere.
        assert replace(worst, claim=Change(99, longest**2, 1)).refuted


def test_watchlists() -> None:
    some = list(streams(LETTERS, 6))
    generator = np.random.default_rng(1)
    all_words = [word for j in (1, 2, 3) for word in map("".join, product("ab", repeat=j))]
    for relation, (options, _) in NEIGHBOURS.items():
        for size in (1, 2, 4):
            words = [str(word) for word in generator.choice(all_words, size, replace=False)]
            statistic = substrings(words=words, **options)
            pairs = list(pairs_of(relation, some))
            worst = search(statistic.encoder, pairs, statistic.certified().change)
            assert not worst.refuted, words
            table = substrings(3, **options).sensitivity
            assert statistic.sensitivity.l2_squared <= table.l2_squared
    for relation, value in (("null", 9), ("joined", 7), ("letter", 12)):
        assert substrings(words=["aaa"], **NEIGHBOURS[relation][0]).sensitivity.l2_squared == value
    # Words that do not overlap themselves: 2|Q|, whatever their length.
    long = ["abbbbbbb", "aabbbbbb", "ab"]
    assert substrings(words=long).sensitivity.l2_squared == 6
    assert substrings(words=long, removal="null").sensitivity.l2_squared == 3
    worst = search(substrings(words=["ab"]).encoder, pairs_of("joined", some), Change(1, 1, 1))
    assert worst.refuted
    assert worst.split == 2
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 5, "sequence": "user"}
    assert substrings(words=["ab", "aab"], **user).sensitivity == Change(7, 16 + 9, 7)
    assert substrings(words=["ab", "aab"], once_per_user=True, **user).sensitivity == Change(2, 2, 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"removal": "null"},
        {"gap": 1},
        {"neighbours": "replace"},
        {"neighbours": "replace", "replaces": "record"},
        {"once_per_user": True},
        {"unit": "user", "max_events_per_user": 2},
        {"unit": "user", "max_events_per_user": 3, "neighbours": "replace"},
        {"unit": "user", "max_events_per_user": 3, "once_per_user": True, "max_words": 2},
    ],
    ids=str,
)
def test_statistics_look_for_their_own_neighbours(options: dict[str, Any]) -> None:
    """Two users, four ticks, every relation."""
    records = [(user, letter) for user in ("one", "two") for letter in (0, 1)]
    statistic = substrings(2, sequence="user", **options)
    worst = statistic.refute(records, streams(records, 4))
    assert worst.pairs > 200
    assert not worst.refuted
    assert worst.l1 >= 2
    # Neither is the search blind.
    low = replace(statistic.certified().change, l2_squared=worst.split - 1, l1=worst.l1 - 1)
    assert replace(worst, claim=low).refuted


def test_one_sequence_of_several_users() -> None:
    """The letters of a user go one by one, and the rest closes up each time: w^2 times the row."""
    statistic = substrings(2, sequence="stream", unit="user", max_events_per_user=2)
    claim = statistic.certified().change
    pairs = []
    for stream in streams(LETTERS, 6):
        for mine in ((1, 2), (1, 3), (2, 4)):
            pairs.append((stream, tuple(None if i in mine else record for i, record in enumerate(stream))))
    worst = search(statistic.encoder, pairs, claim)
    assert not worst.refuted
    assert replace(worst, claim=substrings(2).certified().change).refuted
