"""The keyed hashes of orders, buckets and cuts, against their definition.

Which events of a user come first (encode/content_order.py), which bucket and shard they are in, which items of a long
event stay (encode/cutting.py): all of it is SipHash-2-4, computed for many messages at once by compiled loops. Here it
is written once more, in Python's integers, and compared: text by text, row by row, event by event, at lengths on both
sides of words and of the blocks that loops take at once. Loops are played as Python runs them first, where a step
outside of an array is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evertally.encode import content_kernels, cut_kernels
from evertally.encode.content_order import content_keys, sorted_places, user_buckets
from evertally.encode.cutting import SecretOrder, weight_words
from evertally.encode.name_index import fixed
from evertally.encode.siphash import siphash
from evertally.encode.texts import Texts

_WORD = 2**64
_KEY = bytes(range(16))
# Of key 00 01 .. 0f: the example of the paper (message 00 .. 0e), and the empty message with 128 bits.
_PUBLISHED = (
    (bytes(range(15)), 8, "e545be4961ca29a1"),
    (b"", 16, "a3817f04ba25a8e66df67214c7550293"),
)
_MANY = 700  # more than the 512 rows that loops take at once


def wrong_hashes() -> str:
    """What is hashed otherwise than the definition says; nothing, if all is well."""
    with np.errstate(all="ignore"):
        for look in (_siphash, _texts, _rows, _words, _cuts, _content, _orders):
            found = look()
            if found:
                return found
    return ""


def defined(key: bytes, message: bytes, size: int) -> bytes:
    """SipHash-2-4 with 8 or 16 bytes, from its definition.

    >>> all(defined(_KEY, message, size).hex() == known for message, size, known in _PUBLISHED)
    True
    """
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:16], "little")
    long = size == 16
    words = b"somepseudorandomlygeneratedbytes"
    state = [int.from_bytes(words[8 * i : 8 * i + 8], "big") ^ (k0, k1)[i % 2] for i in range(4)]
    state[1] ^= 0xEE if long else 0
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        state[3] ^= word
        state = _mixed(state, 2)
        state[0] ^= word
    state[2] ^= 0xEE if long else 0xFF
    state = _mixed(state, 4)
    found = _folded(state)
    if long:
        state[1] ^= 0xDD
        found += _folded(_mixed(state, 4))
    return found


def _mixed(state: Sequence[int], rounds: int) -> list[int]:
    a, b, c, d = state
    for _ in range(rounds):
        for turn_b, turn_d in ((13, 16), (17, 21)):
            a, c = (a + b) % _WORD, (c + d) % _WORD
            b, d = _turned(b, turn_b) ^ a, _turned(d, turn_d) ^ c
            a, c = c, _turned(a, 32)  # the two halves of a round are one, with a and c in each other's place
    return [a, b, c, d]


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) % _WORD


def _folded(state: Sequence[int]) -> bytes:
    a, b, c, d = state
    return (a ^ b ^ c ^ d).to_bytes(8, "little")


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "little")


# -- hashes of texts and rows ------------------------------------------------------------------------------------------


def _siphash() -> str:
    for message, size, known in _PUBLISHED:
        if defined(_KEY, message, size).hex() != known:
            return "the definition of SipHash as it is written here is wrong: nothing was compared"
    messages = [bytes(i % 256 for i in range(length)) for length in (*range(34), 255, 256, 257)]
    for size in (8, 16):
        if any(siphash(_KEY, message, size) != defined(_KEY, message, size) for message in messages):
            return f"SipHash with {size} bytes is not what its definition says"
    return ""


def _texts() -> str:
    """Texts of every length around words, compiled and as Python runs it; the last ones end with their memory."""
    lengths = [*range(1, 26), 0, 63, 64, 65, 255, 256, 257]
    names = [bytes(97 + (i * j) % 26 for j in range(length)) for i, length in enumerate(lengths * 22, start=3)]
    known = np.array([np.frombuffer(defined(_KEY, name, 16), "<u8") for name in names]).T
    halves = content_kernels._halves(_KEY)
    for count in (40, 1, len(names)):
        texts = Texts.of_bytes(names[:count])
        if count <= 40:
            found = np.empty((2, count), np.uint64)
            content_kernels.digest_texts(*fixed(texts), *halves, *found)
            if (found != known[:, :count]).any():
                return f"the hashes of {count} texts are not those of their definition (interpreted)"
        if (content_kernels.digests_of_texts(texts, _KEY) != known[:, :count]).any():
            return f"the hashes of {count} texts are not those of their definition"
    return ""


def _rows() -> str:
    words = np.arange(3 * _MANY, dtype=np.uint64).reshape(3, _MANY) * np.uint64(0x9E3779B97F4A7C15)
    known = np.array([np.frombuffer(defined(_KEY, row.tobytes(), 16), "<u8") for row in words.T.copy()]).T
    found = np.empty((2, _MANY), np.uint64)
    content_kernels.digest_rows(words, *content_kernels._halves(_KEY), *found)
    if (found != known).any():
        return f"the hashes of {_MANY} rows are not those of their definition (interpreted)"
    for count in (5, 512, _MANY):
        if (content_kernels.digests_of_rows(words[:, :count], _KEY) != known[:, :count]).any():
            return f"the hashes of {count} rows are not those of their definition"
    return ""


# -- which items of a long event stay ----------------------------------------------------------------------------------


def _cuts() -> str:
    """Events with more items than may count: which of them stay, by the definition of the secret order."""
    labels = [b"label %d" % i for i in range(60)] + [b"x" * length for length in (8, 16, 17, 1000)]
    numbers = np.random.default_rng(1)
    events = [numbers.permutation(len(labels))[:size] for size in (4, 5, 9, 32, 33, 40, 64, *([7, 12] * 30))]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(event) for event in events])])
    code, texts = np.concatenate(events).astype(np.int64), Texts.of_bytes(labels)
    weight = 1 + code % 3
    if wrong := _alone(events[4:7], labels, texts):
        return wrong
    for by_label in (False, True):
        for most, tick in ((1, 1), (3, 20)):
            stays = np.concatenate([_stays(event, labels, by_label, most, tick) for event in events])
            few = int(starts[4])
            one_by_one = _order(by_label).kept(starts[:5], code[:few], weight[:few], texts, tick, most)
            if one_by_one.tolist() != stays[:few].tolist():
                return "of a few long events other items stay than the definition of the secret order says"
            if _interpreted(starts, code, weight, texts, by_label, most, tick) != stays.tolist():
                return "of many long events other items stay than the definition says (interpreted)"
            if _order(by_label).kept(starts, code, weight, texts, tick, most).tolist() != stays.tolist():
                return "of many long events other items stay than the definition of the secret order says"
    return ""


def _alone(events: Sequence[Any], labels: Sequence[bytes], texts: Texts) -> str:
    """Long events by themselves, as Python runs the loops: a step outside of the event is one outside of the array."""
    for event in events:
        code, bounds = event.astype(np.int64), np.array([0, len(event)])
        for most in (1, len(event) // 2, len(event) - 1):
            stays = _stays(event, labels, False, most, 1).tolist()
            if _interpreted(bounds, code, 1 + code % 3, texts, False, most, 1) != stays:
                return "of one long event other items stay than the definition of the secret order says (interpreted)"
    return ""


def _words() -> str:
    """Weights as the order reads them: whole ones as integers, others as the bits of a float, different ones apart."""
    weights = [1.0, 2.0, -1.0, 0.5, -0.5, 2.5, 1e-9, 2.0**40, 1e300, -1e300, 2e300, -2e300]
    words = [weight_words([weight, 0.5])[0] for weight in weights]
    if any(type(word) is not np.int64 for word in words) or len(set(words)) < len(words):
        return "different weights of an item are one to the secret order, or no words at all"
    small = [int(weight) if weight.is_integer() else int(np.float64(weight).view(np.int64)) for weight in weights[:8]]
    if weight_words([1, -7]).tolist() != [1, -7] or [int(word) for word in words[:8]] != small:
        return "weights of items are read otherwise than the definition of the secret order says"
    return ""


def _derived(purpose: bytes) -> bytes:
    return defined(_KEY, purpose, 16)


def _order(by_label: bool) -> SecretOrder:
    return SecretOrder(_derived, by_label)


def _stays(event: Any, labels: Sequence[bytes], by_label: bool, most: int, tick: int) -> Any:
    of_labels, of_events = _derived(b"cut 2 labels %d" % tick), _derived(b"cut 2 events %d" % tick)
    digests = [defined(of_labels, labels[i], 16) for i in event]
    if by_label:
        own = defined(of_events, b"", 16)
    else:
        parts = [
            defined(of_events, digest + int(1 + i % 3).to_bytes(8, "little"), 16)
            for digest, i in zip(digests, event.tolist(), strict=True)
        ]
        sums = (sum(_number(part[at : at + 8]) for part in parts) % _WORD for at in (0, 8))
        own = b"".join(word.to_bytes(8, "little") for word in sums)
    ranks = [_number(defined(own, digest, 8)) for digest in digests]
    kept = np.zeros(len(event), np.bool_)
    kept[np.argsort(np.array(ranks, np.uint64))[:most]] = True
    return kept


def _interpreted(starts: Any, code: Any, weight: Any, texts: Texts, by_label: bool, most: int, tick: int) -> list[bool]:
    d0, d1 = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    of_labels, of_events = _derived(b"cut 2 labels %d" % tick), _derived(b"cut 2 events %d" % tick)
    words = content_kernels._halves
    cut_kernels.digest_labels(*fixed(texts), np.arange(len(texts)), *words(of_labels), d0, d1)
    key = words(defined(of_events, b"", 16) if by_label else of_events)
    kept = np.zeros(len(code), np.bool_)
    cut_kernels.keep_first(starts, code, weight, d0, d1, *key, by_label, most, kept)
    return list(kept.tolist())


# -- the order of events by content ------------------------------------------------------------------------------------


def _own(purpose: bytes) -> bytes:
    return defined(_KEY, b"evertally order: " + purpose, 16)


def _content() -> str:
    """Users and amounts in every form of column: one hash for what means one thing."""
    names = [f"user {i % 41}" if i % 3 else str(i % 23) for i in range(_MANY)]
    amounts = [float(i % 5) for i in range(_MANY)]
    strange: list[Any] = [int(name) if name.isdigit() and i % 2 else name for i, name in enumerate(names)]
    strange[:6] = [name.encode() for name in names[:6]]
    strange[6:8] = [float(name) if name.isdigit() else name for name in names[6:8]]
    texts = pa.array(names)
    forms: list[Any] = [names, np.array(names, object), np.array(names), texts, texts.dictionary_encode(), strange]
    forms += [texts.cast(pa.large_binary()), pa.chunked_array([texts[:300], texts[300:]])]
    known = _row_hashes(names, amounts)
    buckets = [_number(defined(_own(b"buckets"), name.encode(), 16)[:8]) % 7 for name in names]
    for form in forms:
        for count in (40, _MANY):
            keys = content_keys([(form[:count], "users"), (np.array(amounts[:count]), "amounts")], _KEY)
            if (keys != known[:count]).any():
                return f"the order by content of {count} events is not that of its definition"
            if user_buckets(form[:count], _KEY, 7).tolist() != buckets[:count]:
                return f"the buckets of {count} users are not those of their definition"
    lists = [[name, "other"] if i % 2 else name for i, name in enumerate(names)]
    nested = pa.array([cell if isinstance(cell, list) else [cell] for cell in lists])
    one, other = (content_keys([(form, "items")], _KEY) for form in (lists, nested))
    if (one != other).any() or len(np.unique(one, axis=0)) != len({repr(cell) for cell in lists}):
        return "lists of labels have other hashes in one form than in another, or one hash for several"
    return ""


def _row_hashes(names: Sequence[str], amounts: Sequence[float]) -> Any:
    labels, rows = _own(b"labels"), _own(b"rows")
    found = []
    for name, amount in zip(names, amounts, strict=True):
        words = defined(labels, name.encode(), 16) + np.float64(amount).tobytes() + (1).to_bytes(8, "little")
        found.append(np.frombuffer(defined(rows, words, 16), "<u8"))
    return np.array(found)


def _orders() -> str:
    numbers = np.random.default_rng(2)
    keys = numbers.integers(0, 2**64, (_MANY, 2), dtype=np.uint64)
    keys[::7, 0] = keys[0, 0]
    keys[::14] = keys[0]
    ranked = [tuple(pair) for pair in keys.tolist()]
    if [ranked[i] for i in sorted_places(keys).tolist()] != sorted(ranked):
        return "rows are not in the order of their hashes"
    return ""
