"""Which words there are to be asked for, and the number of each (factorization-counting 6.0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evertally.applications.strings.letters import Alphabet, Word
from evertally.errors import ConfigurationError

LONGEST_WORD = 64
_WIDEST = 512  # bits of the largest number of a word: it is written in snapshots


class Words:
    """All words of the given lengths over an alphabet, or a list of them; each has a number, the same in both.

    The number of w is sum_{j<|w|} |U|^j plus its value in base |U|, from 0 for the first letter.

    >>> words = Words(Alphabet("ab"), [1, 2])
    >>> words.size, [words.number((1,)), words.number((1, 0))], [words.text(n) for n in words.all()]
    (6, [1, 4], ['a', 'b', 'aa', 'ab', 'ba', 'bb'])
    """

    def __init__(self, alphabet: Alphabet, lengths: Sequence[int], listed: Sequence[Word] | None = None) -> None:
        self.alphabet, self.lengths = alphabet, sorted(lengths)
        base, longest = len(alphabet), self.lengths[-1]
        self._before = [0, 0]  # before[j]: how many words are shorter than j
        for j in range(1, longest + 1):
            self._before.append(self._before[-1] + base**j)
        if self._before[-1].bit_length() > _WIDEST:
            raise ConfigurationError(f"there are more than 2^{_WIDEST} words; choose a smaller alphabet, shorter words")
        self.listed = None if listed is None else {self.number(word): word for word in listed}
        self.size = sum(base**j for j in self.lengths) if self.listed is None else len(self.listed)
        self.limit = self._before[-1]  # every number is below

    def before(self, length: int) -> int:
        """How many words are shorter: where the numbers of this length begin."""
        return self._before[length]

    def number(self, word: Sequence[int]) -> int:
        value = 0
        for letter in word:
            value = value * len(self.alphabet) + letter
        return self._before[len(word)] + value

    def word(self, number: int) -> Word:
        """The way back."""
        length = next(j for j in range(1, len(self._before)) if number < self._before[j + 1])
        value, letters = number - self._before[length], []
        for _ in range(length):
            value, letter = divmod(value, len(self.alphabet))
            letters.append(letter)
        return tuple(reversed(letters))

    def text(self, number: int) -> str:
        return self.alphabet.text(self.word(number))

    def asked(self, word: object) -> int:
        """The number of a word that a caller wrote; refused by the domain alone."""
        letters = self.alphabet.word(word)
        if len(letters) not in self.lengths:
            raise ConfigurationError(
                f"words that are counted have lengths {_lengths(self.lengths)}; ask for one of those"
            )
        number = self.number(letters)
        if self.listed is not None and number not in self.listed:
            raise ConfigurationError("this word is not on the declared list; only those can be asked for")
        return number

    def all(self) -> Iterator[int]:
        """Shorter words first; those of a list in its order."""
        if self.listed is not None:
            yield from self.listed
            return
        for length in self.lengths:
            yield from range(self._before[length], self._before[length + 1])


def _lengths(lengths: Sequence[int]) -> str:
    if len(lengths) > 1 and list(lengths) == list(range(lengths[0], lengths[-1] + 1)):
        return f"{lengths[0]} to {lengths[-1]}"
    return ", ".join(map(str, lengths))
