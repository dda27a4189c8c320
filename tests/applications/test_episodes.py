"""Episodes: the detector against the definition, certified sensitivity against a search, and the statistic around."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from episode_truths import (
    all_words,
    detected,
    minimal_ends,
    sequences_of_a_user,
    users_replaced,
    users_there_or_not,
    with_null,
)

import evertally as et
from evertally.applications.encoder import Encoder
from evertally.applications.paths import difference, split, square_root
from evertally.applications.refuter import Worst, neighbours, search, streams
from evertally.applications.strings import episode_bounds as bounds
from evertally.applications.strings.detector import EpisodeDetector
from evertally.applications.strings.letters import Word
from evertally.noise import ZeroNoise
from evertally.privacy import Change

AB = [("", 0), ("", 1)]
GUARANTEE = et.ZCDP(0.5)


def counts(**options: Any) -> et.strings.EpisodeCounts:
    common: dict[str, Any] = {"alphabet": "ab", "sequence": "stream", "guarantee": GUARANTEE, "horizon": 9}
    return et.strings.EpisodeCounts(**{"key": ZeroNoise()} | common | options)


# -- the detector ------------------------------------------------------------------------------------------------------


def test_the_detector_finds_what_the_definition_says() -> None:
    rng = random.Random(1)
    for _ in range(250):
        letters, longest = rng.randint(1, 4), rng.randint(1, 4)
        words = all_words(letters, longest)
        text = [rng.randrange(letters) for _ in range(rng.randint(1, 11))]
        found = detected(words, text)
        for number in rng.sample(sorted(words), min(12, len(words))):
            ends = [t for t, changes in enumerate(found) if changes.get(number)]
            assert ends == minimal_ends(words[number], text), (words[number], text)
        assert all(amount == 1 for changes in found for amount in changes.values())


def test_a_list_of_words_is_a_part_of_all_words() -> None:
    rng = random.Random(2)
    everything = all_words(3, 4)
    for _ in range(20):
        some = {number: everything[number] for number in rng.sample(sorted(everything), 7)}
        text = [rng.randrange(3) for _ in range(15)]
        expected = [{n: v for n, v in changes.items() if n in some} for changes in detected(everything, text)]
        assert detected(some, text) == expected


def test_the_example_of_the_specification() -> None:
    """e = xyz: without the letter at place 4 the count changes at the last tick only."""
    word, text = (0, 1, 2), [0, 1, 0, 1, 2, 1, 2]
    moved = difference(detected({0: word}, with_null(text, 3)), detected({0: word}, text))
    assert moved == [{}, {}, {}, {}, {}, {}, {0: 1}]


def changed(words: dict[int, Word], text: list[int], place: int, letter: int) -> dict[int, tuple[int, int]]:
    """(P, N) of each word that changes."""
    found: dict[int, tuple[int, int]] = {}
    for changes in difference(detected(words, text), detected(words, with_null(text, place, letter))):
        for number, amount in changes.items():
            up, down = found.get(number, (0, 0))  # type: ignore[call-overload]
            found[number] = (up + max(0, amount), down + max(0, -amount))  # type: ignore[index]
    return found


def test_how_often_one_letter_changes_an_episode() -> None:
    """The bounds on P, N and P + N of A.3, over more than 1e5 cases of (string, place, letter, episode)."""
    rng = random.Random(3)
    cases = 0
    for letters, longest, runs in ((2, 5, 450), (3, 4, 450), (4, 3, 250)):
        words = all_words(letters, longest)
        for _ in range(runs):
            text = [rng.randrange(letters) for _ in range(rng.randint(longest, 14))]
            place = rng.randrange(len(text))
            c, other = text[place], rng.choice([-1, *range(letters)])
            cases += len(words)
            for number, (up, down) in changed(words, text, place, other).items():
                word = words[number]
                i = len(word)
                assert c in word or other in word
                if c in word and other in word:
                    assert max(up, down) <= (2 * i + 1) // 3
                    assert up + down <= i
                else:
                    up, down = (up, down) if c in word else (down, up)
                    assert up <= (i + 1) // 2
                    assert down <= i // 2
    assert cases > 1e5


# -- certified sensitivity ---------------------------------------------------------------------------------------------


def test_the_table_of_the_specification() -> None:
    table = {(2, 2): (10, 7), (2, 3): (50, 42), (3, 3): (148, 106), (10, 2): (74, 39), (10, 3): (2514, 1394)}
    for (letters, longest), (replaced, removed) in (table | {(26, 3): (18962, 9858)}).items():
        assert bounds.replaced_letter(letters, longest).l2_squared == replaced
        assert bounds.removed_letter(letters, longest).l2_squared == removed
    for letters, longest in ((2, 3), (3, 3), (4, 2), (1, 3)):
        everything = list(all_words(letters, longest).values())
        assert bounds.removed_listed(everything) == bounds.removed_letter(letters, longest)
        assert bounds.replaced_listed(everything) == bounds.replaced_letter(letters, longest)


def test_the_worst_pair_of_letters_is_the_worst() -> None:
    """The shortcut of the search against all pairs."""
    rng = random.Random(4)
    for _ in range(60):
        words = list({tuple(rng.randrange(5) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(1, 6))})

        def total(c: int, other: int, words: list[Word] = words) -> int:
            held = [(c in word) + (other in word) for word in words]
            weights = [(0, bounds.one_letter(len(word)), bounds.both_letters(len(word))) for word in words]
            return sum(weight[n] for n, weight in zip(held, weights, strict=True))

        pairs = [total(c, other) for c in range(6) for other in range(6) if c != other]
        assert bounds.replaced_listed(words).l2_squared == max(pairs)


def worst_of(words: dict[int, Word], relation: str, claim: Change, length: int = 8) -> Worst:
    return search(lambda: EpisodeDetector(words), neighbours(streams(AB, length), AB, relation), claim)


@pytest.mark.parametrize(
    ("longest", "relation"), [(2, "replace"), (3, "replace"), (2, "add_remove"), (3, "add_remove")]
)
def test_all_short_streams_of_two_letters(longest: int, relation: str) -> None:
    """What the square-root factor reaches is what the specification lists; no factor reaches what is charged."""
    words = all_words(2, longest)
    whole = bounds.replaced_letter if relation == "replace" else bounds.removed_letter
    worst = worst_of(words, relation, whole(2, longest))
    assert not worst.refuted
    known = {(2, "replace"): 5.7523, (3, "replace"): 13.2600, (2, "add_remove"): 3.8034, (3, "add_remove"): 9.5980}
    played: dict[Any, Any] = {}

    def play(stream: Any) -> Any:
        if stream not in played:
            played[stream] = detected(words, [-1 if record is None else record[1] for record in stream])
        return played[stream]

    pairs = neighbours(streams(AB, 8), AB, relation)
    reached = max(square_root(path) for path in (difference(play(a), play(b)) for a, b in pairs) if split(path) > 3)
    assert reached == pytest.approx(known[longest, relation], abs=5e-5)


def test_what_is_charged_is_reached_and_less_is_refuted() -> None:
    """ "ab" and "abb": the charge is attained. One change for an episode, and squares as if they met in no factor (the
    Frobenius norm), are too little."""
    for word, relation, reached in (((0, 1), "add_remove", 2), ((0, 1), "replace", 2), ((0, 1, 1), "replace", 5)):
        claim = (bounds.replaced_listed if relation == "replace" else bounds.removed_listed)([word])
        worst = worst_of({0: word}, relation, claim)
        assert not worst.refuted
        assert worst.l2_squared == claim.l2_squared == reached
        assert replace(worst, claim=Change(1, 1, 1)).refuted
    assert replace(worst, claim=Change(3, 3, 1)).refuted


# -- users -------------------------------------------------------------------------------------------------------------


def encoder_of(statistic: et.strings.EpisodeCounts) -> Any:
    def made() -> Encoder:
        return statistic.encoder()

    return made


LISTS = (["ab"], ["a", "ab", "ba"], ["aa", "ab", "aba"])


@pytest.mark.parametrize("words", LISTS, ids=str)
@pytest.mark.parametrize("once", [False, True])
def test_a_user_is_there_or_not_or_another_one_is(words: list[str], once: bool) -> None:
    some = sequences_of_a_user(2, 4, 3)
    users = {"words": words, "sequence": "user", "unit": "user", "max_events_per_user": 3, "once_per_user": once}
    there = counts(**users)
    worst = search(encoder_of(there), users_there_or_not(some), there.sensitivity)
    assert not worst.refuted
    if words == ["ab"]:
        # "ab" ends at two of three letters at most by the formula; 1 is what three letters can do.
        assert (there.sensitivity.l2_squared, worst.l2_squared) == ((1, 1) if once else (4, 1))
    replaced = counts(**users, neighbours="replace")
    assert replaced.sensitivity == Change(*(2 * n for n in vars(there.sensitivity).values()))
    assert not search(encoder_of(replaced), users_replaced(some[::3]), replaced.sensitivity).refuted


def test_rows_of_users_are_reached() -> None:
    some = sequences_of_a_user(2, 3, 3)
    one = counts(words=["a"], sequence="user", unit="user", max_events_per_user=3)
    worst = search(encoder_of(one), users_there_or_not(some), one.sensitivity)
    assert (worst.l1, worst.l2_squared) == (3, 9) == (one.sensitivity.l1, one.sensitivity.l2_squared)
    once = counts(words=["a", "b", "ab", "ba"], sequence="user", unit="user", max_events_per_user=3, once_per_user=True)
    assert once.sensitivity == Change(4, 4, 1)
    worst = search(encoder_of(once), users_there_or_not(some), once.sensitivity)
    assert (worst.refuted, worst.l1, worst.split) == (False, 4, 4)


def test_users_among_others() -> None:
    records = [(user, letter) for user in ("ann", "bob") for letter in (0, 1)]
    for neighbours_, once in (("add_remove", False), ("replace", True)):
        users = {"sequence": "user", "unit": "user", "max_events_per_user": 2, "once_per_user": once}
        made = counts(words=["ab", "b"], neighbours=neighbours_, **users)
        worst = made.refute(records, streams(records, 4))
        assert not worst.refuted
        assert worst.l2_squared == (4 if neighbours_ == "add_remove" else 3)


def test_users_in_one_sequence_cost_a_group() -> None:
    alone = counts(longest=2).sensitivity
    assert counts(longest=2, unit="user", max_events_per_user=3).sensitivity == alone.group(3)
    two = counts(longest=2, unit="user", max_events_per_user=3, neighbours="replace")
    assert two.sensitivity == alone.group(6)


def test_a_record_that_goes_to_another_user_costs_more_than_another_letter() -> None:
    """factorization-counting 6.7, corrected: 5 where the letter alone costs 2."""
    records = [(user, letter) for user in ("ann", "bob") for letter in (0, 1)]
    letter = counts(words=["ab"], sequence="user", neighbours="replace", replaces="letter")
    record = counts(words=["ab"], sequence="user", neighbours="replace")  # all of it, unless said otherwise
    assert (letter.sensitivity.l2_squared, record.sensitivity.l2_squared, record.sensitivity.l1) == (2, 8, 4)
    worst = record.refute(records, streams(records, 4))
    assert (worst.refuted, worst.l2_squared, worst.l1) == (False, 5, 3)
    assert replace(worst, claim=letter.sensitivity).refuted
    kept = letter.refute(records, streams(records, 4))
    assert (kept.refuted, kept.l2_squared, kept.l1) == (False, 2, 2)


def test_another_letter_and_another_record_share_no_promise() -> None:
    stream = et.Stream("s", guarantee=GUARANTEE, horizon=9, key=et.simulation(1), neighbours="replace")
    stream.add(et.Histogram, share=0.3, categories=["a"])
    options = {"alphabet": "ab", "words": ["ab"], "sequence": "user"}
    with pytest.raises(et.ConfigurationError, match="no promise would cover both"):
        stream.add(et.strings.EpisodeCounts, share=0.3, replaces="letter", **options)
    stream.add(et.strings.EpisodeCounts, share=0.3, name="records", **options)


# -- the statistic -----------------------------------------------------------------------------------------------------

TICKS = [["a", "b", "z"], [], ["b", "a", None, "b"], ["a"]]


def truth(word: str, letters: str) -> int:
    return len(minimal_ends(["ab".index(c) for c in word], ["ab".index(c) for c in letters]))


def test_without_noise_counts_are_minimal_occurrences() -> None:
    statistic = counts(longest=3)
    text = ""
    for tick in TICKS:
        release = statistic.step(tick)
        text += "".join(letter for letter in tick if letter in ("a", "b"))
        assert release.value == {word: truth(word, text) for word in release.value}
    assert len(release.value) == 14
    assert release.count("aba").value == truth("aba", text)
    assert release.frequent(3) == {word: n for word, n in release.value.items() if n >= 3}


def test_undeclared_letters_are_nothing_or_another_letter() -> None:
    assert counts(longest=2).step(["a", "z", "b"]).value == counts(longest=2).step(["a", "b"]).value
    assert counts(longest=2, other="b").step(["a", "z"]).value == counts(longest=2).step(["a", "b"]).value


def test_each_user_has_a_sequence() -> None:
    each = counts(words=["ab"], sequence="user")
    assert each.step([("ann", "a"), ("bob", "b"), ("ann", "b"), ("ann", "a"), ("ann", "b"), "ab"]).value == {"ab": 2}
    protected = counts(words=["ab"], sequence="user", unit="user", max_events_per_user=3, once_per_user=True)
    release = protected.step_events([*"abab", "b", "a"], users=["ann"] * 4 + ["bob"] * 2)
    assert release.value == {"ab": 1}
    assert protected.step_events(["b", "b"], users=["bob", "ann"]).value == {"ab": 2}


def test_many_episodes_are_there_for_the_asking() -> None:
    many = counts(alphabet="abcdefghijklmnopqrstuvwxyz", longest=3)
    release = many.step(list("the quick brown fox"))
    assert len(release.value) == 26
    assert release.count("hqk").value == 1
    assert many.sensitivity.l2_squared == 9858
    noisy = counts(alphabet="abcdefghijklmnopqrstuvwxyz", longest=3, key=et.simulation(1))
    assert noisy.step(list("the")).count("zzz") == noisy.count("zzz")


def test_snapshots_go_on() -> None:
    key = et.simulation(5)
    one = counts(longest=2, key=key)
    one.step(TICKS[0])
    other = et.restore(one.snapshot(), key=key)
    for tick in TICKS[1:]:
        assert one.step(tick).value == other.step(tick).value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alphabet": "abcdefghijklmnopqrstuvwxyz", "longest": 4}, "words="),
        ({"longest": 2, "sequence": "user"}, "words="),
        ({"words": ["ab"], "once_per_user": True, "sequence": "user"}, "unit="),
        ({"words": ["ab"], "once_per_user": True, "unit": "user", "max_events_per_user": 2}, "sequence="),
        ({"words": ["ab"], "replaces": "record", "sequence": "user"}, "replaces="),
        ({"words": ["ab"], "replaces": "user"}, "replaces"),
        ({"words": ["abc"], "alphabet": "ab"}, "letter"),
        ({"words": ["ab"], "sequence": "user", "unit": "user", "max_events_per_user": 1}, "no word can occur"),
        ({"longest": 2, "neighbours": "independent"}, "neighbours"),
        ({}, "longest"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words):
        counts(**options)
