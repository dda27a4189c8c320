"""Labels as strings of symbols: texts byte by byte, addresses octet by octet, whole numbers digit by digit.

A spelling reads many labels at once, and names prefixes. What cannot be read is no label, and leaves no trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from evertally.contract.parts import IntArray
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError

BoolArray = NDArray[np.bool_]


class Spelling(ABC):
    """`symbols` symbols out of `fanout`. Not used directly."""

    stop = False  # whether symbol 0 ends a label

    def __init__(self, symbols: int, fanout: int) -> None:
        self.symbols, self.fanout = symbols, fanout

    @abstractmethod
    def read(self, labels: Texts) -> tuple[IntArray, BoolArray]:
        """(labels, symbols) symbols, and which labels could be read."""

    @abstractmethod
    def name(self, prefix: list[int]) -> str:
        """A prefix as it is shown; whole labels as they are written, others with what follows left open."""


class Text(Spelling):
    """The bytes of a text in UTF-8, and 0 where it ends. Longer ones are known by their first bytes.

    >>> symbols, read = Text(4, 256).read(Texts.of(["fig", "pear tree", ""]))
    >>> symbols.tolist(), read.tolist()
    ([[102, 105, 103, 0], [112, 101, 97, 114], [0, 0, 0, 0]], [True, True, True])
    >>> Text(4, 256).name([102, 105, 103, 0]), Text(4, 256).name([112, 101]), Text(4, 256).name([42, 0])
    ('fig', 'pe*', '\\\\*')
    """

    stop = True

    def __init__(self, symbols: int, fanout: int) -> None:
        if fanout != 256:
            raise ConfigurationError("texts are read byte by byte: fanout=256")
        super().__init__(symbols, fanout)

    def read(self, labels: Texts) -> tuple[IntArray, BoolArray]:
        place = np.arange(self.symbols)
        data = labels.data if len(labels.data) else np.zeros(1, dtype=np.uint8)
        cells = data[np.minimum(labels.offsets[:-1, None] + place, len(data) - 1)].astype(np.int64)
        symbols = np.where(place < labels.lengths[:, None], cells, 0)
        # A byte 0 inside a text ends it: what stands behind it would be below a prefix that has ended.
        ended = np.logical_or.accumulate(symbols == 0, axis=1)
        return np.where(ended, 0, symbols), np.ones(len(labels), dtype=bool)

    def name(self, prefix: list[int]) -> str:
        ended = 0 in prefix
        text = bytes(prefix[: prefix.index(0)] if ended else prefix).decode("utf-8", "backslashreplace")
        text = text.replace("\\", "\\\\").replace("*", "\\*")
        return text if ended else f"{text}*"


class Ipv4(Spelling):
    """Four octets, written "10.0.0.1".

    >>> symbols, read = Ipv4(4, 256).read(Texts.of(["10.0.0.1", "10.0.0", "10.0.0.256", "a.b.c.d", "1.2.3.4.5"]))
    >>> symbols[0].tolist(), read.tolist(), Ipv4(4, 256).name([10, 0])
    ([10, 0, 0, 1], [True, False, False, False, False], '10.0.*')
    """

    def __init__(self, symbols: int, fanout: int) -> None:
        if symbols != 4 or fanout != 256:
            raise ConfigurationError("addresses have four octets: symbols=4, fanout=256")
        super().__init__(symbols, fanout)

    def read(self, labels: Texts) -> tuple[IntArray, BoolArray]:
        n = len(labels)
        octets, digits = np.zeros((n, 4), dtype=np.int64), np.zeros((n, 4), dtype=np.int64)
        which, good = np.zeros(n, dtype=np.int64), labels.lengths <= 15
        for letter, there in _letters(labels, 15):
            dot, digit = there & (letter == ord(".")), there & (letter >= ord("0")) & (letter <= ord("9"))
            good &= ~there | dot | digit
            at = np.flatnonzero(digit)
            octets[at, which[at]] = 10 * octets[at, which[at]] + letter[at] - ord("0")
            digits[at, which[at]] += 1
            which += dot
            good &= which <= 3
            which = np.minimum(which, 3)
        good &= (which == 3) & ((digits >= 1) & (digits <= 3) & (octets <= 255)).all(axis=1)
        return np.where(good[:, None], octets, 0), good

    def name(self, prefix: list[int]) -> str:
        return ".".join(map(str, prefix)) + ("" if len(prefix) == 4 else ".*")


class Number(Spelling):
    """Whole numbers from 0 to fanout^symbols - 1, the highest digits first.

    >>> symbols, read = Number(3, 10).read(Texts.of(["7", "123", "1234", "-1", "x"]))
    >>> symbols[:2].tolist(), read.tolist(), Number(3, 10).name([1, 2])
    ([[0, 0, 7], [1, 2, 3]], [True, True, False, False, False], '120..129')
    """

    def __init__(self, symbols: int, fanout: int) -> None:
        if fanout**symbols > 2**62:
            raise ConfigurationError("numbers go up to 2^62: fanout^symbols must not be above it")
        super().__init__(symbols, fanout)

    def read(self, labels: Texts) -> tuple[IntArray, BoolArray]:
        values, good = np.zeros(len(labels), dtype=np.int64), (labels.lengths >= 1) & (labels.lengths <= 18)
        for letter, there in _letters(labels, 18):
            digit = (letter >= ord("0")) & (letter <= ord("9"))
            good &= ~there | digit
            values = np.where(there & digit, 10 * values + letter - ord("0"), values)
        good &= values < self.fanout**self.symbols
        values = np.where(good, values, 0)
        powers = [self.fanout**k for k in range(self.symbols - 1, -1, -1)]
        return np.stack([values // power % self.fanout for power in powers], axis=1), good

    def name(self, prefix: list[int]) -> str:
        value = 0
        for symbol in prefix:
            value = value * self.fanout + symbol
        below = self.fanout ** (self.symbols - len(prefix))
        return str(value) if below == 1 else f"{value * below}..{(value + 1) * below - 1}"


def _letters(labels: Texts, most: int) -> list[tuple[IntArray, BoolArray]]:
    """The first letters of all labels, place by place, and which labels have one there."""
    data = labels.data if len(labels.data) else np.zeros(1, dtype=np.uint8)
    starts, lengths = labels.offsets[:-1], labels.lengths
    return [(data[np.minimum(starts + j, len(data) - 1)].astype(np.int64), j < lengths) for j in range(most)]


SPELLINGS: dict[str, type[Spelling]] = {"text": Text, "ipv4": Ipv4, "number": Number}
