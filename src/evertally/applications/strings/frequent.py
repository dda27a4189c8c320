"""The words that occur often: those whose noisy count passes a public threshold."""

from __future__ import annotations

import math
from typing import Any

from evertally.applications.strings.release import StringRelease
from evertally.applications.strings.substrings import SubstringCounts
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.errors import ConfigurationError
from evertally.integers import whole


@statistic
class FrequentSubstrings(SubstringCounts):
    """Words whose noisy count is at least `above`, largest first: what `SubstringCounts.frequent` finds, at every tick.

    All letters are looked at, then all words that are one letter longer than a word that was large enough: a word that
    occurs often has a beginning that does. That follows from noisy counts alone, so it costs nothing beyond
    `SubstringCounts`, whose options apply, and whose theorem (factorization-counting 6.6 and 6.0 [R]) this rests on.
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
    ['b', 'ab', 'a', 'ba', 'aba', 'bab']
    >>> lower, upper = release.interval(beta=0.05)
    >>> lower["ab"] <= 50 <= upper["ab"]
    True
    """

    above: int = option("The noisy count from which on a word is shown. Public: never chosen by looking at the data.")
    most: int = option("How many words are looked at in a tick at most.", default=1000)

    def _blueprint(self) -> Blueprint:
        self.above = whole("above", self.above, 1, 2**61)
        self.most = whole("most", self.most, 1, 2**20)
        plan = super()._blueprint()
        if len(self._domain.alphabet) > self.most:
            raise ConfigurationError("most is the number of words that are looked at: at least all letters")
        return plan

    def run(self, x: Any, *, full: bool = False, at: Any = None) -> Any:
        """What is found at each tick, as a list. Only a step finds words: ticks are taken one by one."""
        if full or at is not None:
            raise ConfigurationError("words are found tick by tick: run without full and at, or step")
        return [self.step(records).value for records in x]

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        assert isinstance(made, StringRelease)
        found = self._explore(self.above, self.most) if self.tick else {}
        words = self._domain.size

        def bounds(beta: float) -> tuple[dict[str, int], dict[str, int]]:
            # Those that are shown were picked for their noise: the bound is for all that could have been.
            radius = math.floor(accuracy.radius(beta / words))
            return {w: n - radius for w, n in found.items()}, {w: n + radius for w, n in found.items()}

        return StringRelease(made.tick, found, made.stddev, made.private, bounds, made.about, made.asked, made.explored)
