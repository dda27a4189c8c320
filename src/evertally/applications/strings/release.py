"""Releases of which any word can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evertally.contract.release import Release
from evertally.dynamic.answers import Answer

MOST_ASKED = 10_000


@dataclass(frozen=True)
class StringRelease(Release):
    """A release of counts of words, of which other words can be asked until the next tick.

    >>> import evertally as et
    >>> counts = et.strings.SubstringCounts(
    ...     alphabet="ab", longest=2, sequence="stream", guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1)
    ... )
    >>> release = counts.step(["a", "b", "a"])
    >>> release.count("ab").value == release.value["ab"], round(release.count("ab").stddev, 1)
    (True, 3.1)
    """

    asked: Callable[[Any], Answer] | None = field(default=None, repr=False, compare=False)
    explored: Callable[[float, int], dict[str, int]] | None = field(default=None, repr=False, compare=False)

    def count(self, word: Any) -> Answer:
        """How often a word occurred, with noise; the same answer however often it is asked. A word is a text, or a list
        of letters. Costs nothing: its noise is that of its name, occurred or not. Only before the next tick."""
        assert self.asked is not None
        return self.asked(word)

    def frequent(self, threshold: float, most: int = MOST_ASKED) -> dict[str, int]:
        """Words whose noisy count is at least `threshold`, largest first; see the statistic's `frequent`."""
        assert self.explored is not None
        return self.explored(threshold, most)
