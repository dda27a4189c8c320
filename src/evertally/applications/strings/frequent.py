"""The words that occur often: those whose noisy count passes a public threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evertally.applications.strings.exploration import explore
from evertally.applications.strings.options import MOST_SHOWN
from evertally.applications.strings.release import StringRelease
from evertally.applications.strings.substrings import SubstringCounts
from evertally.applications.strings.words import Words
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Committed
from evertally.contract.options import option, statistic
from evertally.contract.origin import origin
from evertally.contract.parts import Accuracy, Blueprint, IntArray
from evertally.contract.release import Release
from evertally.contract.ticks import last_tick
from evertally.encode.frames import loaded
from evertally.errors import ConfigurationError
from evertally.integers import whole


@statistic
class FrequentSubstrings(SubstringCounts):
    """Words whose noisy count is at least `above`, largest first: what `SubstringCounts.frequent` finds, at every tick.

    All words are looked at where they are at most `most`; otherwise all letters, then all words that are one letter
    longer than a word that was large enough: a word that occurs often has a beginning that does. That follows from
    noisy counts alone, so it costs nothing beyond `SubstringCounts`, whose options apply (but there are no windows),
    and whose theorem (factorization-counting 6.6 and 6.0 [R]) this rests on.
    Never "the words that occur": words that never did are found too, if their noise is large enough; well above
    `error_bound()` there are hardly any. Intervals cover all words that could have been found, not only those that
    were. Exact tier. Time and memory: those of `SubstringCounts`, and a question for each word that is looked at.

    >>> import evertally as et
    >>> moves = et.strings.FrequentSubstrings(
    ...     alphabet="abc", longest=3, sequence="stream", above=30, guarantee=et.ZCDP(2), horizon=100,
    ...     key=et.simulation(1)
    ... )
    >>> release = moves.step(["a", "b"] * 50)
    >>> list(release.value)
    ['ab', 'a', 'aba', 'b', 'bab', 'ba']
    >>> lower, upper = release.interval(beta=0.05)
    >>> lower["ab"] <= 50 <= upper["ab"]
    True
    """

    above: int = option("The noisy count from which on a word is shown. Public: never chosen by looking at the data.")
    most: int = option("How many words are looked at in a tick at most.", default=1000)

    def _blueprint(self) -> Blueprint:
        self.above = whole("above", self.above, 1, 2**61)
        self.most = whole("most", self.most, 1, 2**20)
        if self.max_window:
            raise ConfigurationError(
                "which words are found is said of the whole stream, not of a window; SubstringCounts with show=[...] "
                "has windows"
            )
        plan = super()._blueprint()
        words = self._domain
        # The first look is at all words, or at all letters where longer words can follow from them.
        grows = words.listed is None and words.lengths[0] == 1
        first = min(words.size, len(words.alphabet)) if grows else words.size
        if first > self.most:
            raise ConfigurationError(
                f"most={self.most} is the number of words that are looked at in a tick, and {first} of them are looked "
                "at first; raise it"
            )
        return plan

    @property
    def differences(self) -> bool:
        """Which words are found is said of the whole stream."""
        return False

    def _shown(self, words: Words) -> list[int]:
        """Whose noise is kept from tick to tick. None of it is shown as such: of a long list one word will do."""
        letters = words.listed is None and words.lengths[0] == 1 and len(words.alphabet) <= MOST_SHOWN
        if self.show is None and words.size > MOST_SHOWN and not letters:
            return [next(words.all())]
        return super()._shown(words)

    @exclusive
    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """What is found at each tick, as a list; bit-identical to repeated `step`. There is no table of it, and all
        ticks are kept."""
        self._check_owners()
        if full or at is not None:
            raise ConfigurationError("words are found tick by tick: run without full and at, or step")
        x = loaded(x)
        came_from = origin(x, None)
        many = self._door.many(self._own_ticks(x), self.tick + 1)
        if self.tick + len(many) > last_tick(self.horizon):
            raise self._over(len(many))
        found: list[dict[str, int]] = []
        if len(many):
            played, totals = self._moved(len(many), lambda: self._play_each(many, found))
            self._kept = replace(self._kept, tick=self.tick + len(many), played=played, totals=totals)
        return found if came_from is None else came_from.back(found, None, None)

    def _play_each(self, many: list[Any], found: list[dict[str, int]]) -> tuple[Committed, Any]:
        """A run tick by tick: what is asked at a tick follows from that tick's noisy counts."""
        state: Any = self._kept.played.state
        for tick, records in enumerate(many, self.tick + 1):
            totals = self._door.events(records, tick)
            played = self._engine.play(self._door.batch(totals), state)
            state = played.state
            found.append(self._found(played.rows[-1], tick))
        return Committed(played.rows[-1:].copy(), state), totals

    def _found(self, row: IntArray, tick: int) -> dict[str, int]:
        """The words that are large enough at a tick, whose shown counts are `row`."""
        engine = self._lazy()

        def ask(numbers: Sequence[int]) -> list[int]:
            # What is shown has its noise already, the same that a question would make again.
            if all(number in engine.columns for number in numbers):
                return [int(row[engine.columns[number]]) for number in numbers]
            answers: list[int] = engine.answers(numbers, tick).tolist()
            return answers

        return explore(self._domain, ask, self.above, self.most)

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        assert isinstance(made, StringRelease)
        found, words = self._found(row, self.tick), self._domain.size

        def bounds(beta: float) -> tuple[dict[str, int], dict[str, int]]:
            # Those that are shown were picked for their noise: the bound is for all that could have been.
            radius = math.floor(accuracy.radius(beta / words))
            return {w: n - radius for w, n in found.items()}, {w: n + radius for w, n in found.items()}

        return StringRelease(made.tick, found, made.stddev, made.private, bounds, made.about, made.asked, made.explored)
