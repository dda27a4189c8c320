"""What one letter, one record or one user can change in counts of substrings (factorization-counting 6.6, its table).

For each length j: how many occurrences change (l1), and Gamma^2 (l2_squared). Lengths are different coordinates, so
they add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evertally.applications.strings.letters import Word

Row = tuple[int, int]  # l1, Gamma^2
Kind = Literal["joined", "gap", "null", "letter"]


def period(word: Sequence[int]) -> int:
    """The smallest p with w[i] = w[i + p] wherever both are.

    >>> period("abab"), period("aaa"), period("abc")
    (2, 1, 3)
    """
    return next(p for p in range(1, len(word) + 1) if all(word[i] == word[i + p] for i in range(len(word) - p)))


def overlaps(word: Sequence[int]) -> int:
    """c(w): how many occurrences of a word may share one letter.

    >>> overlaps("aaa"), overlaps("abab"), overlaps("abc")
    (3, 2, 1)
    """
    return -(-len(word) // period(word))


def of_length(kind: Kind, j: int) -> Row:
    """The table, one length.

    >>> [of_length(kind, 3) for kind in ("joined", "gap", "null", "letter")]
    [(5, 7), (5, 9), (3, 9), (6, 12)]
    """
    return {
        "joined": (2 * j - 1, j * j - j + 1),
        "gap": (2 * j - 1, j * j),
        "null": (j, j * j),
        "letter": (2 * j, j * j + j),
    }[kind]


def of_list(kind: Kind, j: int, listed: Sequence[Word]) -> Row:
    """A public list of words of one length: at most c(w) occurrences of w share a letter, and j of all words.

    Null: they go. Otherwise as many may come: twice this, or the table.
    """
    most = [overlaps(word) for word in listed]
    gone_l1 = min(sum(most), j)
    gone = min(sum(c * c for c in most), j * max(most), j * j)
    if kind == "null":
        return gone_l1, gone
    l1, squared = of_length(kind, j)
    return min(2 * gone_l1, l1), min(2 * gone, squared)


@dataclass(frozen=True)
class Counted:
    """Which words are counted: all of these lengths, or those listed, by length."""

    lengths: Sequence[int]
    listed: Mapping[int, Sequence[Word]] | None = None

    def of_letter(self, kind: Kind) -> Row:
        """By one letter."""
        rows = [of_length(kind, j) if self.listed is None else of_list(kind, j, self.listed[j]) for j in self.lengths]
        return sum(l1 for l1, _ in rows), sum(squared for _, squared in rows)

    def of_user(self, w: int, *, once: bool, most: int | None) -> Row:
        """By a user with a sequence of its own, of which the first w letters count: there or not.

        `once`: each word once for a user, of which the first `most` different ones count.
        """
        ends = {j: max(0, w - j + 1) for j in self.lengths}  # letters at which a word of length j may end
        if not once:
            return sum(ends.values()), sum(n * n for n in ends.values())
        words = sum(n if self.listed is None else min(n, len(self.listed[j])) for j, n in ends.items())
        words = words if most is None else min(words, most)
        return words, words

    def of_letter_once(self) -> Row:
        """Each word once for a user, one letter there or not, joined: 2 ell^2, which also covers some of the words.

        Of length j at most 2j - 1 words have their first occurrence through the letter, or through where it was; each
        of them moves, a change of -1 and one of +1.
        """
        longest = max(self.lengths)
        return 2 * longest**2, 2 * longest**2
