"""Noise by item: the derivation frozen and computed again, a function of the label alone, and independent draws.

If a vector fails, old streams can no longer be replayed: raise FORMAT_VERSION and keep the old way, or undo.
Fixed keys; each statistical test's false-alarm rate is stated and at most 1e-6.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from noise_reference import FALSE_ALARM, Z_BOUND, chi_square_p, gaussian_pmf, laplace_pmf, law_p

from evertally.noise import DiscreteGaussian, DiscreteLaplace, Key, Recording, ZeroNoise, item_addresses, simulation
from evertally.noise.keystream import Keystream
from evertally.noise.sampler import settle
from evertally.noise.variates import AddressedVariates

SECRET = bytes(range(32))
TENS = "DiscreteLaplace(scale=Fraction(10, 1))"  # the law of the lane "tree" here
LABELS = ["", "a", "b", "ab", "café", "日本", "\udc80", "x" * 300, None]


def blake(message: bytes, key: bytes, person: bytes, size: int = 32) -> bytes:
    return hashlib.blake2b(message, key=key, digest_size=size, person=person).digest()


def length(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little")


def address_again(subkey: bytes, label: str | None) -> bytes:
    message = b"\xff" if label is None else label.encode("utf-8", "surrogatepass")
    return blake(message, subkey, b"evertally:label", 16)[:12]


def words_again(subkey: bytes, lane: str, law: str, node: int, label: str | None, round_: int) -> tuple[int, int]:
    """The document's three lines, with nothing of the package."""
    name = b"".join(length(part.encode()) + part.encode() for part in (lane, law))
    key = blake(name + node.to_bytes(8, "little"), subkey, b"evertally:items")
    block = address_again(subkey, label) + round_.to_bytes(4, "little")
    # CBC with a zero vector is the bare cipher on one block: another mode than the package's, the same bits.
    bits = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(block)
    return int.from_bytes(bits[:8], "little"), int.from_bytes(bits[8:], "little")


def subkey_again() -> bytes:
    path = b"".join(length(part) + part for part in (b"2", b"stream", b"unknown"))
    return blake(path, SECRET, b"evertally:noise")


def source():
    return Key(SECRET).source("stream", "unknown")


# -- the derivation ----------------------------------------------------------------------------------------------------

ADDRESSES = {
    "": (0x8CC011616CE1B4AC, 0xCAF9B339),
    "a": (0x1BC71151BE778789, 0x64C864FA),
    "b": (0xF362F351388BEC35, 0x8969EDD4),
    "ab": (0xAAF271FFDA12920A, 0xC99158F5),
    "caf\xe9": (0x28DC42739587E004, 0xFD0702C3),
    "\u65e5\u672c": (0x64EC0A4C057416E9, 0x0A3CF6A4),
    "\udc80": (0x3C1BECFBE13D403E, 0xA589AC2F),
    "x" * 300: (0xF85686C0D61635D7, 0x0F501BEE),
    None: (0x25402BC827F85240, 0xE5F39421),
}

WORDS = {
    ("a", 0, 0): (0x0A4C062DB2E32159, 0x91F0C10BECA28D1F),
    ("b", 0, 0): (0x79B000D2D20BDF7A, 0xEA69D0B8CD9B2E23),
    ("a", 1, 0): (0x7F1FC3FADC271DEE, 0x53D81A1F9C0C8DCF),
    ("a", 0, 1): (0xC36A85BF214658A8, 0xDCD6082CB0487646),
    ("", 1099511627776, 4294967295): (0x8C0575847DFE58E9, 0x1B383B2FC516C4ED),
    (None, 65536, 0): (0x133ADDA9F6BF3E3E, 0x91690856F71A9CB7),
}

DRAWS = {
    "a": (DiscreteLaplace(1000), [-97, 1646, -42, 317, 1819, -773, 1633, -189, -679]),
    "b": (DiscreteGaussian(100), [12, 8, 1, -1, -11, -4, -12, 3, -4]),
    "c": (DiscreteGaussian(10**6), [-350, 759, 358, 737, -1417, 204, 532, -4192, 917]),
}


@pytest.mark.parametrize("label", ADDRESSES)
def test_addresses(label):
    first, second = item_addresses(source(), [label])[0].tolist()
    assert (first, second) == ADDRESSES[label]
    again = address_again(subkey_again(), label)
    assert (int.from_bytes(again[:8], "little"), int.from_bytes(again[8:], "little")) == ADDRESSES[label]


@pytest.mark.parametrize("address", WORDS)
def test_words(address):
    label, node, round_ = address
    words = Keystream(subkey_again(), "tree", TENS).item_words(node, item_addresses(source(), [label]), round_)
    assert tuple(words[0].tolist()) == WORDS[address]
    assert words_again(subkey_again(), "tree", TENS, node, label, round_) == WORDS[address]


@pytest.mark.parametrize("lane", DRAWS)
def test_draws(lane):
    law, expected = DRAWS[lane]
    assert source().item_draws(lane, law, 5, item_addresses(source(), LABELS)).tolist() == expected

    def slow(label: str | None) -> int:
        words = [words_again(subkey_again(), lane, repr(law), 5, label, round_) for round_ in range(3)]
        return settle(law, words[0], lambda r: words[r])

    assert [slow(label) for label in LABELS] == expected


@pytest.mark.parametrize("kind", ["exponential", "gumbel"])
def test_variates_come_from_the_same_bits(kind):
    """Bounds, and balls of three rounds, are those of variates made from the words of the second implementation."""
    found = source().item_variates("pick", kind, 9, item_addresses(source(), LABELS))
    for i, label in enumerate(LABELS):
        rounds = [words_again(subkey_again(), "pick", kind, 9, label, round_) for round_ in range(3)]
        first = np.array([rounds[0]], dtype=np.uint64)
        planted = AddressedVariates(kind, first, lambda _, r, rounds=rounds: rounds[r])
        assert planted.refine(0, 384).mid().man_exp() == found.refine(i, 384).mid().man_exp()
        assert (planted.lower[0], planted.upper[0]) == (found.lower[i], found.upper[i])


# -- a function of the label alone -------------------------------------------------------------------------------------

labels = st.lists(st.text(max_size=5), min_size=1, max_size=40, unique=True)


@given(labels, st.randoms(use_true_random=False))
def test_neither_order_nor_company_matters(names, random):
    first = source()
    together = first.item_draws("tree", DiscreteGaussian(10**6), 3, item_addresses(first, names))
    shuffled = list(range(len(names)))
    random.shuffle(shuffled)
    some = shuffled[: max(1, len(names) // 2)]
    second = source()
    apart = second.item_draws("tree", DiscreteGaussian(10**6), 3, item_addresses(second, [names[i] for i in some]))
    assert apart.tolist() == together[some].tolist()


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(100), DiscreteGaussian(10**6)])
def test_pieces_and_single_draws_are_the_same_noise(law):
    names = [str(i) for i in range(9001)]
    items = item_addresses(source(), names)
    many = source().item_draws("tree", law, 4, items)
    for i in (0, 31, 4095, 4096, 9000):
        assert source().item_draws("tree", law, 4, items[i : i + 1])[0] == many[i]
    assert (source().item_draws("tree", law, 4, items[::-1])[::-1] == many).all()
    assert source().item_draws("tree", law, 4, items[:0]).shape == (0,)


def test_the_caller_keeps_its_addresses():
    items = item_addresses(source(), ["a", "b"])
    kept = items.copy()
    Keystream(SECRET, "tree", TENS).item_words(0, items, 7)
    source().item_variates("pick", "gumbel", 0, items).refine(1, 512)
    assert (items == kept).all()


# -- independent -------------------------------------------------------------------------------------------------------


def test_addresses_and_words_all_differ():
    """2^17 addresses of 96 bits and 2^18 words of 64: an agreement has probability below 1e-8."""
    items = item_addresses(source(), [*(str(i) for i in range(2**17)), None])
    assert np.unique(items, axis=0).shape == items.shape
    assert (items[:, 1] < 2**32).all()
    words = [
        Keystream(subkey, lane, TENS).item_words(node, items[:4000], round_).ravel()
        for subkey in (SECRET, bytes(32))
        for lane in ("tree", "tre", "")
        for node in (0, 1, 2**16, 2**62)
        for round_ in (0, 1, 2**32 - 1)
    ]
    words.append(Keystream(SECRET, "tree", TENS).words(np.arange(4000), 0, 1).ravel())
    assert np.unique(np.concatenate(words)).size == sum(w.size for w in words)


def test_uses_of_the_key_are_separate():
    """Addresses, item keys, page keys and the order at the door of one message have nothing in common."""
    message = length(b"tree") + b"tree" + bytes(8)
    uses = [
        blake(message, SECRET, person)[:12]
        for person in (b"evertally:label", b"evertally:items", b"evertally:page", b"evertally:order")
    ]
    assert len(set(uses)) == 4
    assert source().order(b"a")[:12] != address_again(subkey_again(), "a")
    assert (item_addresses(source(), ["a"]) != item_addresses(Key(SECRET).source("stream", "other"), ["a"])).all()


@pytest.mark.parametrize(
    ("law", "pmf"),
    [(DiscreteLaplace(3), laplace_pmf(3)), (DiscreteGaussian(9), gaussian_pmf(9))],
    ids=["laplace", "gaussian"],
)
def test_draws_have_the_law(law, pmf):
    source = simulation(600).source("items")
    items = item_addresses(source, [f"item {i}" for i in range(100000)])
    assert law_p(source.item_draws("tree", law, 0, items), pmf) > FALSE_ALARM


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(10**6)])
def test_draws_of_neighbours_are_uncorrelated(law):
    """Next label, next node, other lane, coordinate of the same number: |r| sqrt(n) <= 6, false alarms 8e-9."""
    source = simulation(601).source("items")
    items = item_addresses(source, [str(i) for i in range(100001)])

    def drawn(lane, node):
        return source.item_draws(lane, law, node, items) / law.stddev()

    base = drawn("tree", 7)
    numbered = source.draws("tree", law, range(items.shape[0])).ravel() / law.stddev()
    for left, right in ((base[1:], base[:-1]), (base, drawn("tree", 8)), (base, drawn("tree2", 7)), (base, numbered)):
        assert abs((left * right).mean()) * np.sqrt(left.size) < Z_BOUND


def test_bits_of_addresses_are_fair():
    """96 bits of 100000 addresses: |z| <= 6 for all of them, union bound 2e-7; the rest is zero."""
    items = item_addresses(simulation(602).source("items"), [str(i) for i in range(100000)])
    ones = np.unpackbits(np.ascontiguousarray(items.astype("<u8")).view(np.uint8), axis=1).sum(axis=0, dtype=np.int64)
    fair, empty = ones[:96], ones[96:]
    assert np.abs((fair - 50000) / np.sqrt(25000)).max() < Z_BOUND
    assert not empty.any()


def test_gumbel_selection_by_item_is_uniform_among_equals():
    """Chi-square, false alarms 1e-6."""
    source = simulation(603).source("items")
    items = item_addresses(source, list("abcde"))
    first = [int(np.argmax(source.item_variates("pick", "gumbel", node, items).lower)) for node in range(5000)]
    assert chi_square_p(np.bincount(first, minlength=5).tolist(), [1000.0] * 5) > FALSE_ALARM


# -- discipline --------------------------------------------------------------------------------------------------------


def test_a_lane_has_one_law_by_item_too():
    one = source()
    items = item_addresses(one, ["a"])
    one.item_draws("tree", DiscreteLaplace(10), 0, items)
    for call in (
        lambda: one.item_draws("tree", DiscreteLaplace(11), 0, items),
        lambda: one.draws("tree", DiscreteGaussian(10), [0]),
        lambda: one.item_variates("tree", "gumbel", 0, items),
    ):
        with pytest.raises(AssertionError, match="two laws"):
            call()


def test_addresses_outside_the_format_are_refused():
    stream = Keystream(SECRET, "tree", TENS)
    good = item_addresses(source(), ["a"])
    for round_ in (-1, 2**32):
        with pytest.raises(ValueError, match="round"):
            stream.item_words(0, good, round_)
    with pytest.raises(ValueError, match="96 bits"):
        stream.item_words(0, np.array([[0, 2**32]], dtype=np.uint64))
    for wrong in (good.astype(np.int64), good[0], good[:, :1]):
        with pytest.raises(TypeError, match="item_addresses"):
            stream.item_words(0, wrong)
    for node in (-1, 2**64):
        with pytest.raises(OverflowError):
            stream.item_words(node, good)


def test_forgotten_item_keys_come_back_the_same(monkeypatch):
    items = item_addresses(source(), ["a", "b"])
    before = [Keystream(SECRET, "tree", TENS).item_words(node, items) for node in range(6)]
    monkeypatch.setattr("evertally.noise.keystream._LIVE_PAGES", 2)
    stream = Keystream(SECRET, "tree", TENS)
    for _ in range(2):
        assert all((stream.item_words(node, items) == before[node]).all() for node in range(6))
    assert len(stream._pages) == 2


def test_stand_ins():
    zero = ZeroNoise().source("any")
    items = item_addresses(zero, ["a", "b", None])
    assert np.unique(items, axis=0).shape == (3, 2)
    assert zero.item_draws("tree", DiscreteLaplace(10), 0, items).tolist() == [0, 0, 0]
    assert zero.item_variates("pick", "gumbel", 0, items).upper.tolist() == [0, 0, 0]
    recording = Recording(Key(SECRET))
    noted = recording.source("stream", "unknown")
    items = item_addresses(noted, ["b", None])
    assert (items == item_addresses(source(), ["b", None])).all()
    drawn = noted.item_draws("tree", DiscreteLaplace(10), 6, items)
    assert (drawn == source().item_draws("tree", DiscreteLaplace(10), 6, items)).all()
    variates = noted.item_variates("pick", "gumbel", 7, items)
    assert (variates.lower == source().item_variates("pick", "gumbel", 7, items).lower).all()
    addresses = tuple(tuple(item) for item in items.tolist())
    assert [(e.lane, e.law, e.nodes, e.coordinates, e.items) for e in recording.draws] == [
        ("tree", DiscreteLaplace(10), (6,), 2, addresses),
        ("pick", "gumbel", (7,), 2, addresses),
    ]
