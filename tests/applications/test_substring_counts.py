"""Counts of substrings: the encoder against plain counting, options, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from substring_pairs import played, substrings, words_of_length

import evertally as et
from conformance.string_mechanisms import occurrences
from evertally.applications.strings.letters import Alphabet, reader
from evertally.counting.tree import TreeProcess
from evertally.errors import ConfigurationError, ReplayRefused
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP

WORDS = [word for j in (1, 2, 3) for word in words_of_length(j)]


def exact(**options: Any) -> et.strings.SubstringCounts:
    common = {"alphabet": "ab", "guarantee": ZCDP(0.5), "horizon": 40, "key": ZeroNoise(), "longest": 3}
    return et.strings.SubstringCounts(**(common | options))


def random_ticks(seed: int, users: int = 0) -> list[list[Any]]:
    generator = np.random.default_rng(seed)
    ticks = []
    for _ in range(30):
        letters = generator.choice([*"aabb", "?"], generator.integers(0, 5)).tolist()
        ticks.append([(int(generator.integers(users)), a) for a in letters] if users else letters)
    return ticks


@pytest.mark.parametrize("gap", [None, 0, 2])
@pytest.mark.parametrize("users", [0, 3])
def test_plain_counting(users: int, gap: int | None) -> None:
    for seed in range(3):
        ticks = random_ticks(seed, users)
        statistic = exact(sequence="user" if users else "stream", gap=gap)
        statistic.run(ticks[:7])
        last = [statistic.step(tick) for tick in ticks[7:]][-1]
        assert last.value == occurrences(ticks, WORDS, gap=gap)[-1]


def test_users_are_said_once_and_have_a_cap() -> None:
    """Users of the cap are the users of the sequences; an undeclared letter uses a place up, too."""
    statistic = exact(sequence="user", unit="user", max_events_per_user=3)
    users = ["x", 7, "x", "7", "x", "x", None, 7.0]
    value = statistic.step_events([*"aabab", "a", "a", "?"], users=users).value
    # x: a, b, b (the fourth letter is over the cap); 7: a, a, null. A letter without an owner is nobody's.
    assert {word: n for word, n in value.items() if n} == {"a": 3, "b": 2, "ab": 1, "bb": 1, "aa": 1, "abb": 1}
    with pytest.raises(TypeError, match="differ in length"):
        statistic.step_events(["a"], users=["x", "x"])
    with pytest.raises(TypeError, match="users go with"):
        statistic.step_events(["a"])
    with pytest.raises(TypeError, match="users go with"):
        exact(sequence="user").step_events([("x", "a")], users=["x"])
    with pytest.raises(TypeError, match="protects users"):
        statistic.step(["a"])


def test_each_word_once() -> None:
    ticks = [[("x", "a"), ("x", "a"), ("y", "a")], [("x", "a"), ("y", "b"), ("x", "b")]]
    value = [exact(sequence="user", once_per_user=True).run(ticks, at=[2])][0][0]
    assert dict(zip(WORDS, value.tolist(), strict=True)) == dict.fromkeys(WORDS, 0) | {
        "a": 2, "b": 2, "aa": 1, "ab": 2, "aaa": 1, "aab": 1,
    }  # fmt: skip
    first = exact(sequence="user", once_per_user=True, unit="user", max_events_per_user=9, max_words=2)
    shown = first.step_events([*"abab", *"bb"], users=["x"] * 4 + ["y"] * 2).value
    assert {word: n for word, n in shown.items() if n} == {"a": 1, "b": 2, "bb": 1}, "of x: a, b; of y: b, bb"


def test_fixed_length_lists_and_other() -> None:
    letters = list("abab?ab")
    assert exact(sequence="stream", longest=2, only_longest=True).step(letters).value == {
        "aa": 0, "ab": 3, "ba": 1, "bb": 0,
    }  # fmt: skip
    listed = exact(sequence="stream", longest=None, words=["ab", "bab"])
    assert listed.step(letters).value == {"ab": 3, "bab": 1}
    assert listed.longest == 3
    with pytest.raises(ConfigurationError, match="not on the declared list"):
        listed.count("ba")
    other = exact(sequence="stream", alphabet="abz", other="z", show=["bza", "z"])
    assert other.step(letters).value == {"bza": 1, "z": 1}


def test_letters_in_writing() -> None:
    assert [Alphabet(["x y", "z"]).text((0, 1)), Alphabet(["xy", "z"]).text((0, 1))] == ['["x y", "z"]', "xy z"]
    combining = Alphabet(["e", "\u0301", "\u00e9"])
    assert combining.word("e\u0301") == (0, 1)
    assert Alphabet(["\u00e9"]).word("e\u0301") == (0,)
    with pytest.raises(ConfigurationError, match="list of letters"):
        Alphabet(["x y", "z"]).word("x y")

    class Liar(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: Any) -> Any:
            raise MemoryError

    assert reader(Alphabet("ab"), "user")(Liar(["ann", "a", "b"])) is None
    assert reader(Alphabet("ab"), "user")(Liar(["ann", "b"])) == ("ann", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"alphabet": ""},
        {"alphabet": ["a", "a"]},
        {"alphabet": {"a"}},
        {"alphabet": ["a", None]},
        {"other": "z"},
        {"longest": 0},
        {"longest": 65},
        {"longest": None},
        {"sequence": "record"},
        {"words": []},
        {"words": ["ab", ["a", "b"]]},
        {"words": ["abz"]},
        {"words": ["abab"]},
        {"words": ["ab"], "only_longest": True},
        {"show": ["abab"]},
        {"show": ["a"] * 2},
        {"alphabet": [str(i) for i in range(5000)]},
        {"neighbours": "independent"},
        {"neighbours": "replace", "removal": "null"},
        {"removal": "null", "other": "b"},
        {"neighbours": "replace", "replaces": "record"},
        {"sequence": "user", "replaces": "record"},
        {"once_per_user": True},
        {"sequence": "user", "once_per_user": True, "max_words": 3},
        {"sequence": "user", "once_per_user": True, "gap": 1},
        {"sequence": "user", "once_per_user": True, "removal": "null"},
        {"sequence": "user", "once_per_user": True, "neighbours": "replace"},
        {"sequence": "user", "unit": "user"},
        {"sequence": "user", "unit": "user", "max_events_per_user": 3, "max_words": 2},
        {"max_events_per_user": 3},
        {"sequence": "user", "unit": "user", "max_events_per_user": 2, "longest": 3, "only_longest": True},
        {"gap": -1},
    ],
    ids=str,
)
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        exact(**({"sequence": "stream"} | options))


def test_the_sequence_is_not_guessed() -> None:
    with pytest.raises(TypeError, match="sequence"):
        et.strings.SubstringCounts(alphabet="ab", longest=2, guarantee=ZCDP(0.5), horizon=9, key=simulation(1))


def test_many_letters_in_a_tick_are_those_of_many_ticks() -> None:
    """Sums do not depend on how letters are divided into ticks."""
    records = [("", int(letter)) for letter in np.random.default_rng(4).integers(-1, 2, 60)]
    sums = []
    for size in (1, 7, 60):
        total: dict[Any, int] = {}
        for changes in played(substrings(3).encoder(), [records[i : i + size] for i in range(0, 60, size)]):
            for word, amount in changes.items():
                total[word] = total.get(word, 0) + amount
        sums.append(total)
    assert sums[0] == sums[1] == sums[2]


def test_names_of_half_characters_stay_apart() -> None:
    """Two halves of a surrogate pair are no character: nobody takes over another one's letters, also when restored."""
    halves, whole = "\ud83d\ude00", "\U0001f600"
    statistic = exact(sequence="user")
    statistic.step([(halves, "a"), (whole, "b")])
    again = et.restore(statistic.snapshot(), key=ZeroNoise())
    for one in (statistic, again):
        value = one.step([(halves, "b"), (whole, "b")]).value
        assert (value["ab"], value["bb"]) == (1, 1)
    with pytest.raises(ReplayRefused):
        again.step([(whole, "b"), (halves, "b")], tick=2)


def test_what_is_protected_does_not_mix() -> None:
    """Beside a counter of records only what hides whole records."""
    for relation, options, fits in (
        ("add_remove", {}, True),
        ("add_remove", {"removal": "null"}, False),
        ("replace", {"replaces": "letter"}, False),
        ("replace", {}, True),
        ("replace", {"sequence": "stream"}, True),
    ):
        stream = et.Stream("letters", guarantee=ZCDP(0.5), horizon=9, key=simulation(1), neighbours=relation)
        stream.add(et.Counter, share=0.5)
        made: dict[str, Any] = {"alphabet": "ab", "longest": 2, "sequence": "user"} | options
        if fits:
            stream.add(et.strings.SubstringCounts, share=0.5, **made)
        else:
            with pytest.raises(ConfigurationError, match="hides something else"):
                stream.add(et.strings.SubstringCounts, share=0.5, **made)


def test_processes_of_others_are_refused(no_more_processes: None) -> None:
    """Words are charged by S3, which needs a Gram matrix that is nowhere negative."""

    def build(charge: Any, setting: Any, source: Any) -> Any:
        return TreeProcess(charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source)

    et.register_process("theirs", build, bounded=True, pure=True, memory=lambda setting: 0, proof="their paper")
    for kind, options in (
        (et.strings.SubstringCounts, {"longest": 2}),
        (et.strings.EpisodeCounts, {"longest": 2}),
        (et.strings.FrequentSubstrings, {"longest": 2, "above": 9}),
    ):
        with pytest.raises(ConfigurationError, match="S3"):
            kind(alphabet="ab", sequence="stream", mechanism="theirs", guarantee=ZCDP(0.5), horizon=9, **options)
