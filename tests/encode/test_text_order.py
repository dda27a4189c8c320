"""The order of labels by their bytes: that of Python's own texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.encode.text_order import byte_order
from evertally.encode.texts import Texts

PARTS = st.sampled_from(["", "a", "b", "\x00", "é", "\uffff", "\U0001f600", "\ud800", "seven..", "eight...", "x" * 20])
LABELS = st.one_of(st.text(max_size=4), st.lists(PARTS, max_size=6).map("".join))


@given(st.lists(LABELS, max_size=30))
def test_it_is_the_order_of_texts(labels: list[str]) -> None:
    found = byte_order(Texts.of(labels)).tolist()
    assert found == sorted(range(len(labels)), key=labels.__getitem__)  # equal ones stay as they are


@pytest.mark.parametrize("length", [7, 8, 9, 1016, 1023])
def test_long_ones_that_differ_at_the_end(length: int) -> None:
    rng = np.random.default_rng(1)
    labels = ["p" * length + chr(97 + i) for i in rng.permutation(20).tolist()] + ["p" * length, "p" * (length // 2)]
    texts = Texts.of(["before", *labels])
    inner = Texts(texts.data, texts.offsets[1:])  # within other memory
    assert [labels[i] for i in byte_order(inner).tolist()] == sorted(labels)
