"""The secret order, version 2: official vectors, own vectors, the compiled loops against the definition, its law."""

from __future__ import annotations

import random
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pytest

from evertally.encode import CategoryDoor, ItemDoor, cut_kernels, cutting
from evertally.encode.cutting import SecretOrder
from evertally.encode.siphash import siphash
from evertally.encode.texts import Texts

# Of the authors' reference implementation: key 00 01 .. 0f, messages 00 01 .. of 0, 1, 2, ... bytes.
OFFICIAL_64 = [
    "310e0edd47db6f72",
    "fd67dc93c539f874",
    "5a4fa9d909806c0d",
    "2d7efbd796666785",
    "b7877127e09427cf",
    "8da699cd64557618",
    "cee3fe586e46c9cb",
    "37d1018bf50002ab",
    "6224939a79f5f593",
    "b0e4a90bdf82009e",
    "f3b9dd94c5bb5d7a",
    "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75",
    "903d84c02756ea14",
    "eef27a8e90ca23f7",
    "e545be4961ca29a1",
]
OFFICIAL_128 = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
    "f88164c12d9c8faf7d0f6e7c7bcd5579",
    "1368875980776f8854527a07690e9627",
    "14eeca338b208613485ea0308fd7a15e",
    "a1f1ebbed8dbc153c0b84aa61ff08239",
]
KEY = bytes(range(16))


def derive(purpose: bytes) -> bytes:
    return blake2b(purpose, key=b"only for tests", digest_size=16).digest()


@pytest.mark.parametrize(("vectors", "size"), [(OFFICIAL_64, 8), (OFFICIAL_128, 16)])
def test_official_vectors(vectors: list[str], size: int) -> None:
    assert [siphash(KEY, bytes(range(n)), size).hex() for n in range(len(vectors))] == vectors


def test_compiled_digests_are_those_of_the_definition() -> None:
    names = [bytes(range(n)) for n in range(70)] + [b"", b"\xff" * 255, b"\x80" * 256, b"a" * 1024]
    texts = Texts.of_bytes(names)
    low, high = np.zeros(len(names), np.uint64), np.zeros(len(names), np.uint64)
    data, offsets = texts.data[:], texts.offsets[:]
    data.flags.writeable = offsets.flags.writeable = False
    which = np.arange(len(names))
    cut_kernels.compiled("digest_labels")(data, offsets, which, *cutting._words(KEY), low, high)
    found = [np.array(pair, "<u8").tobytes() for pair in zip(low, high, strict=True)]
    assert found == [siphash(KEY, name, 16) for name in names]
    assert [one.hex() for one in found[: len(OFFICIAL_128)]] == OFFICIAL_128


def test_own_vectors() -> None:
    """Which items stay, of events that are written down here: it must never change under version 2."""
    names = [f"label {i}".encode() for i in range(8)] + [b"", "é".encode()]
    kept = [
        sorted(SecretOrder(derive, by_label).first(names, weights, tick, 3))
        for by_label, weights, tick in [
            (False, [1] * 10, 1),
            (False, [1] * 10, 2),
            (False, [2] + [1] * 9, 1),
            (False, [-1] + [1] * 9, 1),
            (True, [1] * 10, 1),
            (True, [1] * 10, 10**12),
        ]
    ]
    assert kept == [[3, 7, 9], [0, 1, 6], [2, 6, 9], [1, 2, 3], [0, 1, 8], [3, 7, 9]]


@pytest.mark.parametrize("by_label", [False, True])
def test_compiled_order_is_that_of_the_definition(by_label: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_FEW", 0)
    monkeypatch.setattr(cutting, "_AT_ONCE", 50)
    pick, order = random.Random(7), SecretOrder(derive, by_label)
    names = [b"", *(f"{i}".encode() * pick.choice((1, 5, 100)) for i in range(100))]
    for tick, most in ((1, 1), (2, 3), (10**12, 8)):
        lengths = [most + pick.choice((1, 2, 5, 30, 60)) for _ in range(25)]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        code = np.array([c for length in lengths for c in pick.sample(range(len(names)), length)])
        weight = np.array([pick.choice((1, 2, -1, 2**40, -(2**40))) for _ in code])
        kept = order.kept(starts, code, weight, Texts.of_bytes(names), tick, most)
        for start, stop in pairwise(starts.tolist()):
            own, weights = [names[c] for c in code[start:stop]], weight[start:stop].tolist()
            assert sorted(order.first(own, weights, tick, most)) == np.flatnonzero(kept[start:stop]).tolist()


def test_equal_ranks_are_told_apart_by_the_label() -> None:
    """No two ranks will ever be equal; if they were, nobody would stay twice, and arrival would decide nothing."""
    choose = cut_kernels.compiled("choose")
    rank, low = np.array([5, 5, 5, 1], np.uint64), np.array([3, 1, 2, 9], np.uint64)
    item = np.arange(4)
    choose(item, rank, low, np.zeros(4, np.uint64), 0, 4, 2)
    assert sorted(item[:2].tolist()) == [1, 3]


@pytest.mark.parametrize("count", [1, 300])
def test_who_stays_is_a_function_of_tick_content_and_label(count: int) -> None:
    door = ItemDoor(2, 3, order=derive)
    event = {f"label {i}": 1 for i in range(6)}
    turned = dict(reversed(event.items()))
    alone = door.row(event, 5)
    assert door.row(turned, 5) == alone
    # The same in every company, at every place.
    others = [{f"other {i}": 2 for i in range(j, j + 5)} for j in range(count)]
    both = door.totals([*others, turned, *others], 5).mapping()
    without = door.totals(others + others, 5).mapping()
    assert {label: n - without.get(label, 0) for label, n in both.items() if n != without.get(label, 0)} == alone
    assert len({tuple(sorted(door.row(event, tick))) for tick in range(40)}) > 8
    assert len({tuple(sorted(door.row({**event, "label 0": w, "more": w}, 5))) for w in (1, 2, 3)}) > 1


def test_where_items_are_protected_the_content_plays_no_part() -> None:
    labels = [f"label {i}" for i in range(12)]
    door = CategoryDoor(labels, None, 3, 2, order=derive, rank_by_label=True)
    ranked = SecretOrder(derive, True).first([label.encode() for label in labels], [1] * 12, 4, 12)
    pick = random.Random(1)
    for _ in range(50):
        some = pick.sample(range(12), pick.randrange(4, 12))
        kept = door.row({labels[i]: pick.choice((1, 2)) for i in some}, 4)
        assert sorted(kept) == sorted(sorted(some, key=ranked.index)[:3])


def test_every_item_stays_as_often_as_any_other() -> None:
    """Chi-squared over 12,000 events of 6 labels, 2 of which stay: 5 degrees of freedom, below 30 but for 2e-5."""
    door = ItemDoor(2, 1, order=derive)
    events = [[*(f"common {i}" for i in range(5)), f"own {j}"] for j in range(12_000)]
    kept = door.totals(events, 1).mapping()
    counts = [kept[f"common {i}"] for i in range(5)]
    counts.append(sum(n for label, n in kept.items() if label.startswith("own")))
    assert sum(counts) == 24_000
    assert sum((n - 4000) ** 2 / 4000 for n in counts) < 30


def test_a_long_event_is_cut_in_time_that_grows_with_its_length() -> None:
    door = ItemDoor(50_000, 1, order=derive)
    assert len(door.totals([[f"{i}" for i in range(100_000)]], 1).labels) == 50_000


def test_weights_that_are_no_small_integers_are_the_bits_of_a_float() -> None:
    """Of both signs alike: no integer of 64 bits holds an infinity."""
    for weight in (0.5, 2.0**52, 2.0**60, 1e300, np.inf):
        for signed in (weight, -weight):
            assert cutting.weight_words([signed]).tolist() == np.array([signed]).view(np.int64).tolist()
    for whole in (0, 1, 2**52 - 1):
        assert cutting.weight_words([float(whole), -float(whole)]).tolist() == [whole, -whole]
