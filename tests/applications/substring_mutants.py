"""Planted bugs of substring counts, each with the probe that finds it.

A probe returns what it found, in words; nothing, where nothing is wrong. Bugs are patched in from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from unittest import mock

from substring_pairs import LETTERS, pairs_of, substrings

from evertally import restore
from evertally.applications import lazy
from evertally.applications.lazy import LazyEngine
from evertally.applications.refuter import removed, search, streams
from evertally.applications.strings import SubstringCounts, options
from evertally.applications.strings.rows import Counted
from evertally.applications.strings.sequences import WordEnds
from evertally.counting import bank
from evertally.counting.bank_schedule import build_bank
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.privacy import ZCDP

Probe = Callable[[], str]


@dataclass(frozen=True)
class Mutant:
    """A planted bug, the warning that it ignores, and the probe that must find it."""

    name: str
    trap: str
    patch: Callable[[], AbstractContextManager[Any]]
    probe: Probe


def _counts(seed: int = 1, **more: Any) -> SubstringCounts:
    given = {"alphabet": "ab", "longest": 3, "sequence": "stream", "guarantee": ZCDP(0.5), "horizon": 16}
    return SubstringCounts(**({"key": simulation(seed)} | given | more))


def _refuted(statistic: SubstringCounts, pairs: Any) -> str:
    worst = search(statistic.encoder, pairs, statistic.certified().change)
    return "two neighbours differ by more than is charged for" if worst.refuted else ""


# -- probes ------------------------------------------------------------------------------------------------------------


def letters_replaced() -> str:
    return _refuted(substrings(2, neighbours="replace"), pairs_of("letter", streams(LETTERS, 5)))


def letters_removed() -> str:
    return _refuted(substrings(2), pairs_of("joined", streams(LETTERS, 6)))


def letters_removed_with_gaps() -> str:
    some = [s for s in product((*LETTERS, None), repeat=5) if s[0] == LETTERS[0]]
    return _refuted(substrings(2, gap=1), pairs_of("joined", some))


def users_removed() -> str:
    """The letters of another user lie between; w = 3."""
    statistic = substrings(2, sequence="user", unit="user", max_events_per_user=3)
    pairs = []
    for letters in product((0, 1), repeat=3):
        around = [("other", 1 - letter) for letter in letters]
        mine = [("me", letter) for letter in letters]
        both = [record for pair in zip(around, mine, strict=True) for record in pair]
        pairs.append((tuple(both), tuple(record if record[0] == "other" else None for record in both)))
    return _refuted(statistic, pairs)


def words_of_users_removed() -> str:
    given: dict[str, Any] = {"sequence": "user", "unit": "user", "max_events_per_user": 5, "once_per_user": True}
    pairs = []
    for letters in product((0, 1), repeat=5):
        mine = tuple(("me", letter) for letter in letters)
        pairs.append((mine, (None,) * 5))
    return _refuted(substrings(2, max_words=2, **given), pairs) or _refuted(substrings(2, **given), pairs)


def first_words_by_letter() -> str:
    statistic = substrings(2, sequence="user", once_per_user=True, alphabet="abc")
    some = [tuple(("me", letter) for letter in letters) for letters in product((0, 1, 2), repeat=5)]
    return _refuted(statistic, [pair for stream in some for pair in removed(stream)])


def asked_twice() -> str:
    statistic = _counts(show=["a"])
    statistic.step(["a", "b"])
    answers = {statistic.count("ab").value for _ in range(8)}
    return "" if len(answers) == 1 else "one word has several values at one tick"


def asked_where_nothing_occurred() -> str:
    values = set()
    for seed in range(8):
        statistic = _counts(seed, show=["a"])
        statistic.step(["a"])
        try:
            values.add(statistic.count("bb").value)
        except ConfigurationError:
            return "whether a word can be asked for depends on the data"
    return "a word that never occurred has no noise" if values == {0} else ""


def asked_is_shown() -> str:
    statistic = _counts(mechanism="bank-open", horizon=None)
    statistic.run([["a"]] * 9)
    release = statistic.step(["a"])
    try:
        same = all(release.count(word).value == value for word, value in release.value.items())
    except AssertionError:
        return "one lane is drawn with two laws"
    return "" if same else "an asked word has other noise than the same word shown"


def asked_after_an_upgrade() -> str:
    """The stream goes on with the coefficients that it began with, and so does what is asked."""
    statistic = _counts(mechanism="bank")
    statistic.step(["a", "b"])
    with mock.patch.object(bank, "build_bank", lambda horizon: build_bank(horizon, 2)):
        again = restore(statistic.snapshot(), key=simulation(1))
        release = again.step(["a"])
        try:
            same = all(release.count(word).value == value for word, value in release.value.items())
        except AssertionError:
            return "one lane is drawn with two laws"
    return "" if same else "an asked word has noise by other coefficients"


def asking_moves_nothing() -> str:
    asked, plain = _counts(show=["a"]), _counts(show=["a"])
    for _ in range(6):
        release = asked.step(["a"])
        if release.value != plain.step(["a"]).value:
            return "a question changes later releases"
        release.count("aa")
    return ""


def explored_by_answers() -> str:
    """The same answers, other data: the same questions."""
    asked: list[list[int]] = []
    for letters in ("ab", "ba"):
        statistic = _counts(longest=8, show=["a"])
        statistic.step(list(letters) * 3)
        seen: list[int] = []
        asked.append(seen)

        def made_up(self: Any, numbers: Any, tick: int, seen: list[int] = seen) -> Any:
            seen += list(numbers)
            return lazy.np.array([(number * 7919) % 11 for number in numbers])

        with mock.patch.object(LazyEngine, "answers", made_up):
            statistic.frequent(5, most=200)
    return "" if asked[0] == asked[1] else "what is asked depends on the data"


# -- bugs --------------------------------------------------------------------------------------------------------------

_of_letter, _encode, _answers, _noise_of = Counted.of_letter, WordEnds.encode, LazyEngine.answers, LazyEngine._noise_of


def _paper(self: Counted, kind: Any) -> tuple[int, int]:
    return _of_letter(self, kind)[0], max(self.lengths) ** 2


def _over_time(self: Counted, kind: Any) -> tuple[int, int]:
    l1 = _of_letter(self, kind)[0]
    return l1, l1


def _always_joined(self: Counted, kind: Any) -> tuple[int, int]:
    return _of_letter(self, "joined" if kind == "gap" else kind)


def _seen_so_far(self: WordEnds, record: Any, changes: Any) -> None:
    """Letters are numbered as they come."""
    owner, letter = record
    if (letter,) not in self._seen:
        self._seen.put((letter,), len(self._seen) + 1)
    _encode(self, (owner, self._seen.get((letter,)) - 1), changes)


def _one_sequence(self: WordEnds, record: Any, changes: Any) -> None:
    _encode(self, ("", record[1]), changes)


def _without_cap(self: WordEnds, owner: str, word: int) -> bool:
    if (owner, word) in self._seen:
        return False
    self._seen.put((owner, word), 1)
    return True


def _never_twice(self: WordEnds, owner: str, word: int) -> bool:
    return True


_questions = iter(range(10**6))


def _anew(self: LazyEngine, numbers: Any, tick: int) -> Any:
    with mock.patch.object(
        LazyEngine, "_noise_of", lambda self, some: _noise_of(self, [n + next(_questions) for n in some])
    ):
        return _answers(self, numbers, tick)


def _occurred_only(self: LazyEngine, numbers: Any, tick: int) -> Any:
    return lazy.np.where(self.rule.of(numbers) == 0, 0, _answers(self, numbers, tick))


def _known_only(self: LazyEngine, numbers: Any, tick: int) -> Any:
    if not self.rule.of(numbers).all():
        raise ConfigurationError("no such word")
    return _answers(self, numbers, tick)


def _laws_by_columns(setting: Setting, columns: int) -> Setting:
    return replace(setting, columns=columns, change=setting.change.group(columns))


def _own_process(self: LazyEngine, numbers: Any, tick: int) -> Any:
    return self.rule.of(numbers) + self.noise.advance(1)[0][0]


def _by_exact_counts(self: Any, threshold: float, most: int) -> Any:
    large = [number for number in range(2**6) if self._lazy().rule.of([number])[0] >= 2]
    return dict(zip(large, self._values(large).tolist(), strict=True))


def _once_is_less(self: Counted) -> tuple[int, int]:
    return max(self.lengths) ** 2, max(self.lengths) ** 2


def _patch(target: Any, name: str, bug: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(target, name, bug)


MUTANTS = [
    Mutant("the paper's ell", "E7", _patch(Counted, "of_letter", _paper), letters_replaced),
    Mutant("l2 over time", "2.4, invalid", _patch(Counted, "of_letter", _over_time), letters_replaced),
    Mutant("joined, whatever the gaps", "6.6, gap row", _patch(Counted, "of_letter", _always_joined),
           letters_removed_with_gaps),
    Mutant("letters seen so far", "6.6, vocabularies", _patch(WordEnds, "encode", _seen_so_far), letters_removed),
    Mutant("sequences mixed up", "6.6, whose string", _patch(WordEnds, "encode", _one_sequence), users_removed),
    Mutant("the cap on words forgotten", "6.6, m words", _patch(WordEnds, "_first", _without_cap),
           words_of_users_removed),
    Mutant("words counted again", "6.6, once per user", _patch(WordEnds, "_first", _never_twice),
           words_of_users_removed),
    Mutant("once costs less", "6.6, 2 ell^2", _patch(Counted, "of_letter_once", _once_is_less), first_words_by_letter),
    Mutant("noise anew at every question", "6.0, count(w)", _patch(LazyEngine, "answers", _anew), asked_twice),
    Mutant("noise where something occurred", "5, lazy coordinates", _patch(LazyEngine, "answers", _occurred_only),
           asked_where_nothing_occurred),
    Mutant("only known words can be asked", "6.0, domain", _patch(LazyEngine, "answers", _known_only),
           asked_where_nothing_occurred),
    Mutant("laws by how many are asked", "one lane, one law",
           _patch(lazy, "resized", _laws_by_columns), asked_is_shown),
    Mutant("coefficients by the version of the day", "optimal-counting 8, coefficients rebuilt",
           _patch(LazyEngine, "_noise_of", LazyEngine._fresh), asked_after_an_upgrade),
    Mutant("questions use the engine's noise", "6.0, address", _patch(LazyEngine, "answers", _own_process),
           lambda: asking_moves_nothing() or asked_is_shown()),
    Mutant("exact counts are explored", "6.6, threshold", _patch(options.StringStatistic, "_explore", _by_exact_counts),
           explored_by_answers),
]  # fmt: skip
