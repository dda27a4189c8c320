"""The ends of words in sequences of letters, kept exactly (factorization-counting 6.6, encoding)."""

from __future__ import annotations

from evertally.applications.encoder import Changes, Encoder
from evertally.applications.records import Record, Records
from evertally.applications.strings.letters import NULL
from evertally.applications.strings.words import Words

_CLOCK = "tick"


class WordEnds(Encoder):
    """At every letter, the words that end there: one hash increment for each length.

    It remembers the last letters of each sequence. `gap`: letters more than this many ticks apart make no word. `once`:
    each word counts once in a sequence, and of those the first `most` different ones, shorter words first.
    """

    def __init__(self, words: Words, *, gap: int | None = None, once: bool = False, most: int | None = None) -> None:
        super().__init__()
        base = len(words.alphabet)
        longest = words.lengths[-1]
        self._keep, self._gap, self._once, self._most = longest - 1, gap, once, most
        counted = set(words.lengths)
        # of each length: |U|^(j-1), where the numbers of its words begin, whether it is counted
        self._steps = [(base ** (j - 1), words.before(j), j in counted) for j in range(1, longest + 1)]
        self._listed = None if words.listed is None else frozenset(words.listed)
        self._recent = self.table()  # owner -> the last letters, latest first
        self._when = self.table()  # owner -> the tick of the last letter, where gaps matter; the number of ticks
        self._seen = self.table()  # (owner, word) -> 1, and owner -> how many, where words count once

    def changes(self, records: Records) -> Changes:
        if self._gap is not None:
            self._when.add((_CLOCK,), 1)
        return super().changes(records)

    def encode(self, record: Record, changes: Changes) -> None:
        owner, letter = record
        if letter == NULL:
            self._recent.put(owner, None)
            return
        recent = self._recent.get(owner, ())
        if self._gap is not None:
            now = self._when.get((_CLOCK,))
            if recent and now - self._when.get(owner) > self._gap:
                recent = ()
            self._when.put(owner, now)
        latest = (letter, *recent)
        value = 0
        for number, (weight, first, counted) in zip(latest, self._steps, strict=False):
            value += number * weight
            if counted:
                word = first + value
                if (self._listed is None or word in self._listed) and (not self._once or self._first(owner, word)):
                    changes[word] = changes.get(word, 0) + 1
        self._recent.put(owner, latest[: self._keep] or None)

    def _first(self, owner: str, word: int) -> bool:
        """Whether a word is new in its sequence, and there is room for it."""
        if (owner, word) in self._seen:
            return False
        if self._most is not None and self._seen.get(owner, 0) >= self._most:
            return False
        self._seen.put((owner, word), 1)
        if self._most is not None:
            self._seen.add(owner, 1)
        return True
