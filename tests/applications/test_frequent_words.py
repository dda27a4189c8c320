"""Words that occur often: found by noisy counts alone, all of a run or nothing, with intervals for whatever could be
found. Small domains also go through the conformance checks."""

from __future__ import annotations

import string
from typing import Any

import pytest

from evertally.applications.strings import FrequentSubstrings, SubstringCounts
from evertally.applications.strings.words import Words
from evertally.contract import restore
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused
from evertally.noise import Key, Recording, ZeroNoise, simulation
from evertally.privacy import ZCDP, PureDP

TEXT = list("thecatthathadahat")
# 26 + 26^2 + 26^3 words: letters are shown, all else is asked for
LARGE: dict[str, Any] = {"alphabet": string.ascii_lowercase, "longest": 3, "sequence": "stream", "horizon": 12}
SMALL: dict[str, Any] = {"alphabet": "ahtx", "longest": 2, "sequence": "stream", "horizon": 12}


def made(domain: dict[str, Any] = LARGE, key: Any = None, **options: Any) -> FrequentSubstrings:
    options = {"above": 12, "guarantee": ZCDP(0.5), **domain, **options}
    return FrequentSubstrings(key=simulation(1) if key is None else key, **options)


def true_counts(ticks: int, longest: int = 3) -> dict[str, int]:
    text = "".join(TEXT) * ticks
    words = (text[i : i + n] for n in range(1, longest + 1) for i in range(len(text) - n + 1))
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


@pytest.mark.parametrize("domain", [LARGE, SMALL], ids=["large", "small"])
def test_it_shows_what_frequent_finds(domain: dict[str, Any]) -> None:
    """Shown counts are taken from the release, others are asked for: the same numbers either way."""
    plain = SubstringCounts(key=simulation(1), guarantee=ZCDP(0.5), **domain)
    finding = made(domain)
    for _ in range(6):
        plain.step(TEXT)
        release = finding.step(TEXT)
        assert release.value == plain.frequent(12, 1000) == finding.frequent(12, 1000) == release.frequent(12, 1000)
        assert all(release.count(word).value == count for word, count in release.value.items())
    assert any(len(word) == domain["longest"] for word in release.value)
    assert release.stddev == plain.stddev(6)


@pytest.mark.parametrize("guarantee", [ZCDP(0.5), PureDP(1.0)], ids=["zcdp", "pure"])
def test_without_noise_it_is_the_truth(guarantee: Any) -> None:
    finding = made(key=ZeroNoise(), guarantee=guarantee)
    for tick in range(1, 7):
        found = finding.step(TEXT).value
        assert found == {word: count for word, count in true_counts(tick).items() if count >= 12}
        assert list(found) == sorted(found, key=lambda word: (-found[word], word))
    assert {"t", "ha", "hat"} <= set(found)


def test_what_is_asked_follows_from_what_was_found() -> None:
    """The noise that is drawn is that of letters and of children of found words, occurred or not."""
    words = Words(made()._domain.alphabet, [1, 2, 3])
    key = Recording(simulation(3))
    finding = made(key=key, mechanism="tree")
    for tick in range(1, 6):
        before = len(key.draws)
        found = finding.step(TEXT if tick < 4 else []).value
        drawn = {
            number for entry in key.draws[before:] for number in range(entry.first, entry.first + entry.coordinates)
        }
        parents = [word for word in found if len(word) < 3]
        children = {words.asked(word + letter) for word in parents for letter in string.ascii_lowercase}
        assert drawn == set(range(26)) | children


def test_a_run_is_its_steps_in_one_piece_and_in_parts() -> None:
    ticks = [TEXT[: 3 * t] for t in range(12)]
    steps = made()
    expected = [steps.step(records).value for records in ticks]
    assert made().run(ticks) == expected
    parts = made()
    assert [*parts.run(ticks[:5]), *parts.run([]), parts.step(ticks[5]).value, *parts.run(ticks[6:])] == expected
    assert parts.snapshot() == steps.snapshot()
    with pytest.raises(HorizonExceeded):
        parts.run([TEXT])


def test_a_run_with_a_mistake_uses_no_tick() -> None:
    finding = made()
    finding.step(TEXT)
    before = finding.snapshot()
    for wrong in ([TEXT, "abc"], [TEXT, None], 7):
        with pytest.raises(TypeError):
            finding.run(wrong)
    for options in ({"full": True}, {"at": [2]}):
        with pytest.raises(ConfigurationError, match="without full and at"):
            finding.run([TEXT], **options)
    with pytest.raises(HorizonExceeded):
        finding.run([TEXT] * 12)
    assert finding.snapshot() == before


def test_an_interrupted_run_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of its third tick: sums and letters of all three go back."""
    twin, victim = made(), made()
    for one in (twin, victim):
        one.step(TEXT)
    found, calls = FrequentSubstrings._found, []

    def stopped(self: FrequentSubstrings, row: Any, tick: int) -> dict[str, int]:
        calls.append(tick)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return found(self, row, tick)

    with monkeypatch.context() as patched:
        patched.setattr(FrequentSubstrings, "_found", stopped)
        with pytest.raises(KeyboardInterrupt):
            victim.run([TEXT] * 4)
    assert calls == [2, 3, 4]
    assert victim.tick == 1
    assert victim.run([TEXT] * 4) == twin.run([TEXT] * 4)
    assert victim.snapshot() == twin.snapshot()


def test_restored_and_replayed() -> None:
    key = simulation(2)
    finding = made(key=key)
    finding.run([TEXT] * 3)
    again = restore(finding.snapshot(), key=key)
    assert isinstance(again, FrequentSubstrings)
    assert (again.above, again.most) == (12, 1000)
    last = finding.step(TEXT, tick=3)
    assert again.step(TEXT, tick=3).value == last.value
    assert again.step(TEXT, tick=3).interval() == last.interval()
    with pytest.raises(ReplayRefused):
        again.step(TEXT[:-1], tick=3)
    assert again.run([TEXT] * 2) == finding.run([TEXT] * 2)


def test_intervals_cover_all_words_that_could_be_found() -> None:
    """600 words that never occur, shown because their noise is large: an interval for one word would miss nearly all of
    them. At most 20 % of streams may have a word outside; of 100, more than 44 have with probability below 1e-6."""
    letters = [f"letter{i}" for i in range(600)]
    outside = narrow = shown = 0
    for seed in range(100):
        options: dict[str, Any] = {"alphabet": letters, "longest": 1, "above": 4, "horizon": 1}
        finding = made(options | {"sequence": "stream"}, key=simulation(seed), guarantee=ZCDP(0.125))
        release = finding.step([])
        lower, upper = release.interval(beta=0.2)
        shown += len(release.value)
        outside += any(not lower[word] <= 0 <= upper[word] for word in release.value)
        one = release.count(letters[0]).interval(beta=0.2)
        radius = (one[1] - one[0]) / 2
        narrow += any(count > radius for count in release.value.values())
    assert shown > 500
    assert outside <= 44
    assert narrow > 90, "an interval for one word is too narrow for those that were picked"


def test_the_interval_of_a_huge_domain_is_finite() -> None:
    finding = made({**LARGE, "longest": 64, "alphabet": "abcdefghijklmnopqrst"[:20]}, above=10**6)
    release = finding.step(TEXT)
    assert release.value == {}
    assert release.interval() == ({}, {})
    lower, upper = made({**LARGE, "longest": 60}, above=12).step(TEXT * 8).interval(beta=1e-9)
    assert lower
    assert all(lower[word] < upper[word] < lower[word] + 10**5 for word in lower)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"above": 0}, "above"),
        ({"most": 0}, "most"),
        ({"most": 25}, "most=25 .* 26 of them are looked at first"),
        ({"only_longest": True}, "17576 of them"),
        ({"words": ["a", "ab", "cd"], "longest": None, "most": 2}, "most=2 .* 3 of them"),
        ({"max_window": 3}, "not of a window"),
        ({"neighbours": "independent"}, "neighbours"),
    ],
)
def test_what_is_refused_is_refused_at_construction(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        made(**options)


def test_a_list_of_words_and_words_of_one_length() -> None:
    finding = made(key=ZeroNoise(), words=["hat", "cat", "zzz"], longest=None, above=2, most=3)
    assert finding.step(TEXT).value == {"hat": 2}
    only = made(key=ZeroNoise(), only_longest=True, above=2, most=26**3)
    assert only.step(TEXT).value == {word: n for word, n in true_counts(1).items() if n >= 2 and len(word) == 3}


def test_users_have_no_run() -> None:
    by_user = made(LARGE | {"sequence": "user"}, unit="user", max_events_per_user=4, key=Key.generate())
    with pytest.raises(TypeError, match="users"):
        by_user.run([TEXT])
    assert by_user.step_events(["a", "b"], users=["x", "y"]).tick == 1
