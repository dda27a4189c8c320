"""Hashes of labels: the published values, all lengths, buckets and signs that look drawn."""

from __future__ import annotations

import numpy as np
import pytest
from sketch_models import plain_siphash

from evertally.encode.texts import Texts
from evertally.sketches.hashing import Rows, hashed_texts, hashed_words

KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, 0x726FDB47DD0E0E31), (1, 0x74F839C593DC67FD), (8, 0x93F5F5799A932462), (15, 0xA129CA6149BE45E5)],
)
def test_the_plain_form_has_the_published_values(length: int, expected: int) -> None:
    assert plain_siphash(KEY, bytes(range(length)), (2, 4)) == expected


def test_many_labels_at_once_are_hashed_as_each_alone() -> None:
    names = [bytes(range(n)) for n in range(40)] + [b"x" * 1024, b"", b"pear"]
    texts = Texts.of_bytes(names)
    expected = [plain_siphash(KEY, name, (1, 3)) for name in names]
    assert hashed_texts(KEY, texts).tolist() == expected
    some = np.array([41, 3, 17])
    assert hashed_texts(KEY, texts.take(some)).tolist() == [expected[i] for i in some]
    assert hashed_texts(KEY, Texts.of([])).tolist() == []


def test_words_are_hashed_as_their_bytes() -> None:
    one, other = np.array([5, 2**63], dtype=np.uint64), np.array([7, 1], dtype=np.uint64)
    expected = [
        plain_siphash(KEY, int(a).to_bytes(8, "little") + int(b).to_bytes(8, "little"), (1, 3))
        for a, b in zip(one, other, strict=True)
    ]
    assert hashed_words(KEY, [one, other]).tolist() == expected


def test_buckets_and_signs_are_spread_evenly_and_rows_are_apart() -> None:
    hashes = hashed_texts(KEY, Texts.of([f"label {i}" for i in range(20_000)]))
    width = 37  # no power of two
    buckets, signs = Rows(b"seed", "test", 3, width, signs=True).of(hashes)
    assert buckets.min() == 0
    assert buckets.max() == width - 1
    expected = len(hashes) / width
    for row in range(3):
        squares = float(((np.bincount(buckets[:, row], minlength=width) - expected) ** 2 / expected).sum())
        assert squares < 100  # chi squared with 36 degrees: above it with probability 6e-8
        assert abs(int(signs[:, row].sum())) < 6 * 142
    same = float((buckets[:, 0] == buckets[:, 1]).mean())
    assert abs(same - 1 / width) < 6 * (1 / width / len(hashes)) ** 0.5
    assert abs(int((signs[:, 0] * signs[:, 1]).sum())) < 6 * 142
