"""The order of labels by their bytes, which is that of their characters: eight bytes of all labels at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evertally.encode.texts import Texts

IntArray = NDArray[np.int64]

_WORD = 8


def byte_order(texts: Texts) -> IntArray:
    """The numbers of the labels, smallest label first; equal ones stay as they are.

    Most labels differ in their first word. Only those that tie there are looked at any further, each among its own.

    >>> byte_order(Texts.of(["pear", "fig", "a long label\\x00", "pea", "a long label"])).tolist()
    [4, 2, 1, 3, 0]
    """
    order = np.arange(len(texts))
    starts, lengths = texts.offsets[:-1], texts.lengths
    data = np.concatenate([texts.data[: texts.offsets[-1]], np.zeros(_WORD, np.uint8)])
    # Every place of memory as the beginning of a word, of which the first byte weighs most.
    words = np.ndarray((len(data) - _WORD + 1,), ">u8", data, strides=(1,))
    left, group, at = order.copy(), np.zeros(len(order), np.int64), 0
    while left.size:
        labels = order[left]
        rest = np.clip(lengths[labels] - at, 0, _WORD)  # a label that has ended comes before one with a 0 in its place
        kept = np.array([0, *(2**64 - (1 << 8 * (_WORD - n)) for n in range(1, _WORD + 1))], np.uint64)[rest]
        word = words[starts[labels] + np.minimum(at, lengths[labels])].astype(np.uint64) & kept
        by = np.lexsort((rest, word, group) if at else (rest, word))
        order[left] = labels[by]
        rest, word, group = rest[by], word[by], group[by]
        same = (np.diff(rest) == 0) & (np.diff(word) == 0) & (np.diff(group) == 0) & (rest[1:] == _WORD)
        tied = np.append(False, same) | np.append(same, False)
        group = np.cumsum(~np.append(False, same))[tied]
        left, at = left[tied], at + _WORD
    return order
