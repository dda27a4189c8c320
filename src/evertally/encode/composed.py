"""Unicode's composed form, in time that grows with the length of a text and nothing else.

Marks on one letter have an order. `unicodedata` brings them into it by moving each past its neighbours: a text that is
nothing but marks in a wrong order takes the square of its length, days for a few megabytes, and nothing else in the
process runs meanwhile. Here marks of long texts are sorted before. That changes no result: texts that differ in the
order of marks that do not interact are the same text to Unicode.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_SHORT = 256  # characters; their square is nothing


def composed(text: str) -> str:
    """The text in NFC.

    >>> composed("cafe\\u0301") == "caf\\u00e9"
    True
    """
    if len(text) > _SHORT and not text.isascii():
        text = _in_order(text.translate({ord(letter): unicodedata.normalize("NFD", letter) for letter in set(text)}))
    return unicodedata.normalize("NFC", text)


def _in_order(decomposed: str) -> str:
    """Each letter's marks by their classes; those of one class stay as they are."""
    codes = np.frombuffer(decomposed.encode("utf-32-le", "surrogatepass"), "<u4")
    classes = _classes()[codes]
    letters = np.cumsum(classes == 0, dtype=np.int32)  # class 0: no mark
    return codes[np.lexsort((classes, letters))].tobytes().decode("utf-32-le", "surrogatepass")


@lru_cache(maxsize=1)
def _classes() -> NDArray[np.uint8]:
    return np.array([unicodedata.combining(chr(code)) for code in range(sys.maxunicode + 1)], np.uint8)
