"""Letters: a public alphabet, and records as letters of it, each read by itself.

A record is a letter, or (user, letter) where each user has a sequence of its own. What is not in the alphabet becomes
a declared letter, or null: it keeps its place, matches nothing and ends the word (factorization-counting 6.6).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from evertally.applications.records import Record
from evertally.encode.labels import canonical, is_text
from evertally.errors import ConfigurationError

NULL = -1  # the number of the letter that matches nothing
LARGEST_ALPHABET = 2**24
Word = tuple[int, ...]  # numbers of letters
Sequences = Literal["stream", "user"]


class Alphabet:
    """The letters by number, in the order of their declaration, and words of them in writing.

    >>> alphabet = Alphabet("abc")
    >>> alphabet.number("b"), alphabet.number("z"), alphabet.number(None), alphabet.word("cab"), alphabet.text((2, 0))
    (1, -1, -1, (2, 0, 1), 'ca')
    >>> Alphabet(["good", "morning"]).word("good morning"), Alphabet("abc", other="c").number("z")
    ((0, 1), 2)
    """

    def __init__(self, letters: Iterable[Any], other: Any = None) -> None:
        if not isinstance(letters, str | list | tuple):
            raise ConfigurationError('alphabet is a list of letters, or a text of them, e.g. "abcd"')
        names = [canonical(letter) for letter in letters]
        known = [name for name in names if name is not None and name and is_text(name)]
        if not known or len(known) != len(names) or len(set(known)) != len(known) or len(known) > LARGEST_ALPHABET:
            raise ConfigurationError(
                "alphabet has one or more different letters, each of them a label that is not empty"
            )
        self.letters = known
        self._numbers = {letter: number for number, letter in enumerate(known)}
        name = None if other is None else canonical(other)
        if other is not None and name not in self._numbers:
            raise ConfigurationError(
                "other is a letter of the alphabet, which undeclared letters become; None makes them null"
            )
        self.other = name
        self._other = NULL if name is None else self._numbers[name]
        # How words are written, so that no two words are written alike.
        if all(len(letter) == 1 for letter in known):
            self._between: str | None = ""
        else:
            self._between = " " if not any(" " in letter for letter in known) else None

    def __len__(self) -> int:
        return len(self.letters)

    def number(self, letter: Any) -> int:
        """The number of a letter; of whatever else, that of `other`, or NULL."""
        if type(letter) is not str or letter not in self._numbers:
            name = canonical(letter)
            return self._other if name is None else self._numbers.get(name, self._other)
        return self._numbers[letter]

    def word(self, word: Any) -> Word:
        """A word that a caller wrote, as a text or as a list of letters; refused if a letter is not declared."""
        letters: list[Any] | None = list(word) if isinstance(word, list | tuple) else None
        if isinstance(word, str):
            word = str.__str__(word)
            letters = self._split(word)
            if letters is not None and not all(letter in self._numbers for letter in letters):
                letters = self._split(unicodedata.normalize("NFC", word))
        if letters is None:
            raise ConfigurationError(
                "a word is a list of letters"
                + ("" if self._between is None else ", or a text" + (" with blanks between" if self._between else ""))
            )
        names = [canonical(letter) for letter in letters]
        if not names or not all(name in self._numbers for name in names):
            raise ConfigurationError("a word has one or more letters, each of them a letter of the alphabet")
        return tuple(self._numbers[name] for name in names if name is not None)

    def text(self, word: Sequence[int]) -> str:
        """A word in writing; no other word is written so."""
        letters = self.letters_of(word)
        return json.dumps(letters) if self._between is None else self._between.join(letters)

    def letters_of(self, word: Sequence[int]) -> list[str]:
        return [self.letters[number] for number in word]

    def _split(self, text: str) -> list[str] | None:
        if self._between is None:
            return None
        return text.split(" ") if self._between else list(text)


def reader(alphabet: Alphabet, sequence: Sequences) -> Callable[[Any], Record | None]:
    """How a record is read: as (owner of the sequence, number of the letter), the owner "" where there is one sequence.

    A pair without a usable user is dropped, and so is whatever is no pair; a letter never is.

    >>> read = reader(Alphabet("ab"), "user")
    >>> read(("ann", "b")), read(("ann", "?")), read((None, "b")), read("ab")
    (('ann', 1), ('ann', -1), None, None)
    """
    number = alphabet.number
    if sequence == "stream":
        return lambda record: ("", number(record))

    def read(record: Any) -> Record | None:
        kind: Any = tuple if issubclass(type(record), tuple) else list
        if not issubclass(type(record), kind):
            return None
        pair = list(kind.__iter__(record))  # by the built-in type's own code: a subclass may say anything
        user = canonical(pair[0]) if len(pair) == 2 else None
        return None if user is None else (user, number(pair[1]))

    return read
