"""Frequent words, found by their noisy counts alone: post-processing, whatever it asks (factorization-counting 6.0)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from evertally.applications.strings.words import Words
from evertally.errors import ConfigurationError
from evertally.integers import whole


def explore(words: Words, ask: Callable[[Sequence[int]], list[int]], threshold: Any, most: Any) -> dict[str, int]:
    """Words whose answer is at least `threshold`, largest first, ties by word; `ask` gives released counts.

    All words, where they are at most `most`. Otherwise all letters, then all words that are one letter longer than a
    word that was large enough, those of the largest first, until `most` have been asked.
    """
    most = whole("most", most, 1)
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or math.isnan(threshold):
        raise ConfigurationError("threshold is a number")
    base = len(words.alphabet)
    if words.size > most and (words.listed is not None or words.lengths[0] != 1 or base > most):
        raise ConfigurationError(
            f"there are {words.size} words to ask for, more than most={most}, and no fewer to begin with; raise it"
        )
    level = list(words.all() if words.size <= most else range(base))
    left = most - len(level) if words.size > most else 0
    found: list[tuple[int, int]] = []
    while level:
        answers = zip(level, ask(level), strict=True)
        large = sorted((-value, number) for number, value in answers if value >= threshold)
        found += large
        level = []
        for _, number in large:
            word = words.word(number)
            if len(word) < words.lengths[-1] and left >= base:
                first = words.number((*word, 0))
                level += range(first, first + base)
                left -= base
    return {text: -value for value, text in sorted((value, words.text(number)) for value, number in found)}
