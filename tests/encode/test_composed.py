"""The composed form of long texts: what `unicodedata` says, without the square of the length."""

from __future__ import annotations

import unicodedata
from random import Random

import pytest

from evertally.encode.composed import composed
from evertally.encode.labels import canonical

# Letters, marks of several classes, marks that decompose into marks (also one whose own class is 0), Hangul, a lone
# surrogate.
_LETTERS = (
    "ae\u00e9\u1e69\u0301\u0316\u0323\u0344\u0f73\u0f71\u0f74\u05b0\u3099\u304b\u1100\u1161\u11a8\uac00"
    "\ud800\U0001d15e\u0345"
)


@pytest.mark.parametrize("length", [3, 300, 1000])
def test_it_is_what_unicodedata_says(length: int) -> None:
    random = Random(length)
    for _ in range(200 if length < 1000 else 40):
        letters = random.sample(_LETTERS, random.randint(1, len(_LETTERS)))
        text = "".join(random.choices(letters, k=length))
        assert composed(text) == unicodedata.normalize("NFC", text)
    assert composed(chr(0x1E9B) * length) == unicodedata.normalize("NFC", chr(0x1E9B) * length)


def test_marks_in_the_wrong_order_do_not_take_the_square_of_their_number() -> None:
    marks = 500_000  # their square takes an hour
    expected = "a" + "\u0316" * marks + "\u0301" * marks
    found = canonical("a" + "\u0301\u0316" * marks)
    assert found == "\u00e1" + expected[1:-1]
    assert canonical(("a" + "\u0301\u0316" * marks).encode()) == found
