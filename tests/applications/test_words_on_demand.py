"""Words on demand: the noise of a word is that of its name, and a question moves nothing."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.applications.lazy import LazyEngine, Sums
from evertally.applications.records import Records
from evertally.applications.strings.letters import Alphabet
from evertally.applications.strings.sequences import WordEnds
from evertally.applications.strings.words import Words
from evertally.checks.interruptions import interrupted, lines_of
from evertally.counting.choose import Choice
from evertally.counting.processes import PROCESSES, Setting
from evertally.errors import ConfigurationError, NoiseReused, StateError
from evertally.noise import Key, simulation
from evertally.privacy import ZCDP, Change, PureDP

MANY = [f"w{i}" for i in range(3000)]  # 3000^3 words: beyond 2^32


def counts(seed: int = 1, **options: Any) -> et.strings.SubstringCounts:
    common = {"alphabet": "ab", "longest": 3, "sequence": "stream", "guarantee": ZCDP(0.5), "horizon": 64}
    return et.strings.SubstringCounts(**({"key": simulation(seed)} | common | options))


def engine(mechanism: str, shown: list[int], limit: int, memory_limit: int = 2**20) -> LazyEngine:
    """Always the same noise; laws must not follow from how many words are shown."""
    horizon = 200 if PROCESSES[mechanism].bounded else None
    setting = Setting(Change(9, 11, 9), horizon, len(shown), memory_limit * len(shown))
    words = Words(Alphabet("ab"), [1, 2, 3])
    charge = PureDP(1) if mechanism in ("tree", "epoch-tree", "pure-blocks") else ZCDP(0.5)
    source = simulation(3).source("lazy")
    return LazyEngine(
        Sums(WordEnds(words), 2**40), Choice(mechanism, charge), setting, source, shown, limit=limit, askable=14
    )


@pytest.mark.parametrize("limit", [14, 2**40], ids=["numbers", "digests"])
@pytest.mark.parametrize("mechanism", ["bank", "bank-open", "pure-blocks", "sqrt", "tree", "honaker", "epoch-tree"])
def test_asked_is_shown(mechanism: str, limit: int) -> None:
    """Whatever is shown or asked besides, a word has one value at a tick; one that never occurred, too."""
    one, other = engine(mechanism, [3, 0, 13], limit), engine(mechanism, [5], limit)
    letters = [Records((("", (t * t + t // 3) % 2),)) for t in range(30)]
    states = [one.start(), other.start()]
    for t, record in enumerate(letters, start=1):
        rows = []
        for i, each in enumerate((one, other)):
            each.begin(t - 1)
            result = each.play([record], states[i])
            states[i], row = result.state, result.rows[0].tolist()
            rows.append(row)
        if t in (1, 2, 17, 30):
            assert other.answers([3, 0, 13], t).tolist() == rows[0]
            assert other.answers([13, 3, 0], t).tolist() == [rows[0][2], *rows[0][:2]]
            assert one.answers([13, 5, 7], t).tolist()[1] == rows[1][0] == one.answers([5], t)[0]


def test_laws_do_not_follow_from_what_is_shown() -> None:
    statistic = counts(mechanism="bank-open", horizon=None, memory_limit=2**14)
    release = None
    for _ in range(5):
        statistic.run([["a", "b"]] * 40)
        release = statistic.step(["a"])
        assert all(release.count(word).value == value for word, value in release.value.items())
    assert release is not None


def test_a_question_moves_nothing() -> None:
    plain, asked = counts(show=["w0"], alphabet=MANY), counts(show=["w0"], alphabet=MANY)
    for tick in range(4):
        letters = ["w0", "w1", "w0"][: tick + 1]
        release = asked.step(letters)
        assert release.value == plain.step(letters).value
        first = release.count("w0 w1")
        before = asked.snapshot()
        release.count("w7 w7 w7")
        assert release.count(["w0", "w1"]).value == first.value, "the same for ever"
        assert asked.snapshot() == before == plain.snapshot()
    again = et.restore(asked.snapshot(), key=simulation(1))
    assert again.count("w0 w1").value == first.value == release.count("w0 w1").value
    assert again.step(["w2"]).value == plain.step(["w2"]).value
    lower, upper = first.interval()
    assert lower < first.value < upper
    assert first.stddev == release.stddev


def test_a_question_that_is_interrupted_leaves_no_trace() -> None:
    statistic, twin = counts(show=["a"]), counts(show=["a"])
    statistic.step(["a", "b"])
    twin.step(["a", "b"])
    answer, lines = lines_of(lambda: statistic.count("ab"))
    for line in lines[:: max(1, len(lines) // 40)]:
        interrupted(lambda: statistic.count("ab"), line)
        assert statistic.count("ab").value == answer.value
    assert statistic.step(["b"]).value == twin.step(["b"]).value


def test_only_the_last_tick_can_be_asked() -> None:
    statistic = counts(max_window=3)
    with pytest.raises(ConfigurationError, match="first tick"):
        statistic.count("a")
    old = statistic.step(["a"])
    new = statistic.step(["b"])
    with pytest.raises(StateError, match="until the next one"):
        old.count("a")
    assert new.count("a").value == new.value["a"]
    assert not hasattr(statistic.last(1), "count"), "a difference of releases has no other words"
    for word, why in ((["a"] * 4, "lengths 1 to 3"), ("az", "alphabet"), ("", "alphabet"), (7, "list of letters")):
        with pytest.raises(ConfigurationError, match=why):
            new.count(word)
    del statistic
    gc.collect()
    with pytest.raises(StateError):
        new.count("a")  # a release does not keep secrets alive


def test_whoever_handed_the_stream_on_is_not_asked() -> None:
    key = Key.generate()
    statistic = counts(key=key)
    statistic.step(["a"])
    again = et.restore(statistic.snapshot(), key=key)
    with pytest.raises(NoiseReused):
        statistic.count("a")
    assert again.count("a").stddev is not None


@pytest.mark.parametrize("alphabet", ["ab", MANY], ids=["numbers", "digests"])
def test_words_that_never_occurred_are_noisy_like_any_other(alphabet: Any) -> None:
    """400 words, 5 seeds: the mean square is within 6 deviations of the law; false alarms below 1e-8."""
    squares, words = [], [[alphabet[i % 2], alphabet[i % len(alphabet)]] for i in range(200)]
    for seed in range(5 if alphabet is MANY else 300):
        statistic = counts(seed, alphabet=alphabet, show=[alphabet[0]], mechanism="tree")
        statistic.step([alphabet[0]])
        some = words if alphabet is MANY else [[alphabet[1]], [alphabet[1], alphabet[0]]]
        numbers = [statistic._domain.asked(word) for word in dict.fromkeys(map(tuple, some))]
        squares += (statistic._lazy().answers(numbers, 1).astype(float) ** 2).tolist()
    deviation = statistic.stddev(1)
    assert deviation is not None
    assert abs(np.mean(squares) / deviation**2 - 1) < 6 * np.sqrt(2 / len(squares))


def test_frequent_words() -> None:
    alphabet = [chr(i) for i in range(ord("a"), ord("z") + 1)]
    statistic = counts(alphabet=alphabet, longest=4, show=["a"], horizon=100)
    statistic.run([[*"thecat"]] * 100)
    threshold = 60
    found = statistic.frequent(threshold, most=5000)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert all(statistic.count(word).value == value >= threshold for word, value in found.items())
    assert {"t", "th", "the", "thec", "catt"} <= set(found)
    few = statistic.frequent(threshold, most=26 + 2 * 26)
    assert all(found[word] == value for word, value in few.items())
    assert max(map(len, few)) == 2, "two letters were extended"
    bound = statistic.error_bound(beta=1e-9)
    assert statistic.frequent(100 + bound) == {}
    with pytest.raises(ConfigurationError, match="begin with"):
        statistic.frequent(threshold, most=20)
    listed = counts(longest=None, words=["ab", "ba"])
    listed.run([["a", "b"]] * 60)
    assert set(listed.frequent(40)) == {"ab", "ba"}


def test_exploration_follows_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two data sets with the same answers are asked the same words."""
    asked: list[list[int]] = []
    for letters in ("ab", "xy"):
        statistic = counts(alphabet=[*"abxyz"], longest=5, show=["a"])
        statistic.step(list(letters))
        seen: list[int] = []
        asked.append(seen)

        def made_up(numbers: Any, tick: int, seen: list[int] = seen) -> Any:
            seen += list(numbers)
            return np.array([(number * 7919) % 11 for number in numbers])

        monkeypatch.setattr(statistic._lazy(), "answers", made_up)
        statistic.frequent(6, most=500)
    assert asked[0] == asked[1]
    assert 5 < len(asked[0]) <= 500


def test_the_bound_covers_every_word_that_can_be_asked() -> None:
    bounds = [counts(longest=3, alphabet=alphabet, show=["a"]).error_bound() for alphabet in ("a", "ab", "abcdefgh")]
    assert bounds == sorted(set(bounds))
    planned = et.plan(
        et.strings.SubstringCounts,
        alphabet="abcdefgh",
        longest=3,
        show=["a"],
        sequence="stream",
        guarantee=ZCDP(0.5),
        horizon=64,
    )
    assert planned.best.bound == pytest.approx(bounds[-1])
    huge = counts(longest=20, alphabet=MANY, show=["w1"]).error_bound()
    assert np.isfinite(huge)
