"""The derivation, frozen: constants, and a second computation of them from hashlib and AES alone.

If one of these fails, old streams can no longer be replayed: raise FORMAT_VERSION and keep the old way, or undo.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from evertally.noise import DiscreteGaussian, DiscreteLaplace, Key, simulation
from evertally.noise.keystream import FORMAT_VERSION, Keystream
from evertally.noise.sampler import settle

SECRET = bytes(range(32))
TENS = "DiscreteLaplace(scale=Fraction(10, 1))"  # the law of the lane "tree" here


def test_version():
    assert FORMAT_VERSION == 2


def length(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little")


def blake(message: bytes, key: bytes, person: bytes) -> bytes:
    return hashlib.blake2b(message, key=key, digest_size=32, person=person).digest()


def words_again(subkey: bytes, lane: str, law: str, node: int, coordinate: int, round_: int) -> tuple[int, int]:
    """The document's two lines, with nothing of the package."""
    name = b"".join(length(part.encode()) + part.encode() for part in (lane, law))
    page = (node // 65536).to_bytes(8, "little") + (coordinate // 65536).to_bytes(8, "little")
    page_key = blake(name + page, subkey, b"evertally:page")
    block = node.to_bytes(8, "little") + coordinate.to_bytes(4, "little") + round_.to_bytes(4, "little")
    # CBC with a zero vector is the bare cipher on one block: another mode than the package's, the same bits.
    bits = Cipher(algorithms.AES(page_key), modes.CBC(bytes(16))).encryptor().update(block)
    return int.from_bytes(bits[:8], "little"), int.from_bytes(bits[8:], "little")


WORDS = {
    (0, 0, 0): (0x000F37E3C907AEF9, 0x2D8C141DE036857D),
    (1, 0, 0): (0x1267925FBE65DD45, 0x07DB32E22858FC46),
    (0, 1, 0): (0x61AB8317A010C0C5, 0x3B95234D216D1E54),
    (0, 0, 1): (0xA84D417E5F022B90, 0xC180C68113C7BF26),
    (65535, 65535, 0): (0x9D8EDFC48780377F, 0x0F83BB287B9B973B),
    (65536, 65536, 0): (0x172A28723EFD57D7, 0xE71C83FA869B8E5B),
    (2**40 + 7, 2**20 + 3, 2): (0xD309BF8B7FDAC196, 0x5EE5DD86CAC51612),
    (2**62, 2**32 - 1, 2**32 - 1): (0xA0539B76A0DE3925, 0xAA05409D26004787),
}


@pytest.mark.parametrize("address", WORDS)
def test_words(address):
    node, coordinate, round_ = address
    words = Keystream(SECRET, "tree", TENS).words([node], coordinate, 1, round_)
    assert tuple(int(w) for w in words[0, 0]) == WORDS[address]
    assert words_again(SECRET, "tree", TENS, *address) == WORDS[address]


def test_uses_of_the_key():
    key = Key(SECRET)
    assert key.fingerprint() == "8ae5c6d31cc01a71"
    assert key.derive("orders").fingerprint() == "f5fb31dda753115b"
    assert key.mac("snapshot", b"data").hex().startswith("9ce1ee8e066edaaea7554d6a6135617f")
    assert simulation(1).fingerprint() == "72fb4386b1949846"
    assert key.source("stream", "counter").order(b"event").hex() == "a330f9d96b0491c380ffc0b11d8113e0"


def test_uses_of_the_key_again():
    key = Key(SECRET)
    assert blake(b"", SECRET, b"evertally:finger").hex()[:16] == key.fingerprint()
    derived = blake(length(b"orders") + b"orders", SECRET, b"evertally:derive")
    assert Key(derived).fingerprint() == key.derive("orders").fingerprint()
    message = length(b"snapshot") + b"snapshot" + length(b"data") + b"data"
    assert blake(message, SECRET, b"evertally:mac") == key.mac("snapshot", b"data")
    seed = hashlib.blake2b(length(b"1") + b"1", digest_size=32, person=b"evertally:simul").digest()
    assert Key(seed).fingerprint() == simulation(1).fingerprint()


# law: (draws at nodes 0..7, coordinate 0; draws at node 3, coordinates 0..7), each law in the lane of its name
DRAWS = {
    "a": (DiscreteLaplace(Fraction(1, 2)), [0, -1, 0, 0, -1, -1, 0, 0], [0, 0, 0, 0, 1, 1, -1, 0]),
    "b": (DiscreteLaplace(Fraction(7, 3)), [2, -5, -2, -1, -2, 1, -1, 0], [-1, -1, -1, -7, -6, 2, 0, -1]),
    "c": (
        DiscreteLaplace(1000),
        [4641, 278, 103, -244, -2321, 307, -2032, 424],
        [-244, -342, -1488, 79, -2047, -1358, 2235, 2974],
    ),
    "d": (
        DiscreteLaplace(2**40),
        [
            -626487680062,
            5284415080128,
            -112645438689,
            -211949964900,
            127097655604,
            -509473054307,
            -475216111304,
            -529551798956,
        ],
        [
            -211949964900,
            -710684841364,
            1444577588637,
            102716626304,
            88050695293,
            204680165284,
            -1257343217877,
            529866238691,
        ],
    ),
    "e": (DiscreteGaussian(Fraction(3, 10)), [-1, 1, 0, 1, 0, 0, 0, 0], [1, 0, -1, -1, 0, 0, 0, 1]),
    "f": (DiscreteGaussian(100), [-2, 18, 16, 4, -2, 5, -7, 10], [4, 2, -7, 0, -4, 25, 2, -12]),
    "g": (
        DiscreteGaussian(10**6),
        [643, -1841, -3056, 297, -1537, -1811, 335, 818],
        [297, 1423, 902, -1200, 363, -762, -293, -443],
    ),
    "h": (
        DiscreteGaussian(2**80),
        [
            1375421546698,
            1991229545002,
            750012057354,
            266798178630,
            -135255156362,
            -1034342513510,
            -1753658289040,
            -633567900680,
        ],
        [
            266798178630,
            1069044763075,
            1288896332338,
            1579537942174,
            690987359246,
            -834941113557,
            -115793400669,
            -8970813876,
        ],
    ),
}


@pytest.mark.parametrize("lane", DRAWS)
def test_draws(lane):
    law, along_nodes, along_coordinates = DRAWS[lane]
    source = Key(SECRET).source("stream", "counter")
    assert source.draws(lane, law, range(8)).ravel().tolist() == along_nodes
    assert source.draws(lane, law, [3], 8).ravel().tolist() == along_coordinates


@pytest.mark.parametrize("lane", DRAWS)
def test_draws_again(lane):
    """From the key to the integer with hashlib, AES and the slow path only."""
    law, along_nodes, _ = DRAWS[lane]
    path = length(b"2") + b"2" + length(b"stream") + b"stream" + length(b"counter") + b"counter"
    subkey = blake(path, SECRET, b"evertally:noise")

    def slow(node: int) -> int:
        words = [words_again(subkey, lane, repr(law), node, 0, round_) for round_ in range(3)]
        return settle(law, words[0], lambda r: words[r])

    assert [slow(node) for node in range(8)] == along_nodes


def test_pages_meet_without_a_seam():
    """Grids that straddle page borders agree with single addresses, and both with the written derivation."""
    stream = Keystream(SECRET, "tree", TENS)
    nodes = np.array([65534, 65535, 65536, 65537, 3 * 65536 - 1, 3 * 65536, 7])
    first, count = 65533, 6
    grid = stream.words(nodes, first, count)
    for i, node in enumerate(nodes.tolist()):
        for j in range(count):
            alone = stream.words([node], first + j, 1)[0, 0]
            assert (grid[i, j] == alone).all()
            assert words_again(SECRET, "tree", TENS, node, first + j, 0) == tuple(int(w) for w in alone)


def test_order_and_repetition_of_nodes_do_not_matter():
    stream = Keystream(SECRET, "tree", TENS)
    nodes = [5, 70000, 5, 200000, 6, 70000]
    grid = stream.words(nodes, 3, 4)
    for node, rows in zip(nodes, grid, strict=True):
        assert (rows == stream.words([node], 3, 4)[0]).all()


def test_forgotten_pages_come_back_the_same(monkeypatch):
    monkeypatch.setattr("evertally.noise.keystream._LIVE_PAGES", 2)
    stream = Keystream(SECRET, "tree", TENS)
    nodes = np.arange(6) * 65536
    assert (stream.words(nodes, 0, 2) == Keystream(SECRET, "tree", TENS).words(nodes, 0, 2)).all()
    assert len(stream._pages) == 2
    assert (stream.words(nodes[::-1], 0, 2)[::-1] == stream.words(nodes, 0, 2)).all()


def test_empty_requests():
    stream = Keystream(SECRET, "tree", TENS)
    assert stream.words([], 0, 3).shape == (0, 3, 2)
    assert stream.words([1], 0, 0).shape == (1, 0, 2)


@pytest.mark.parametrize(
    ("node", "first", "count", "round_"),
    [(-1, 0, 1, 0), (-70000, 0, 1, 0), (0, -1, 1, 0), (0, 2**32, 1, 0), (0, 2**32 - 1, 2, 0), (0, 0, 1, 2**32)],
)
def test_addresses_outside_the_format_are_refused(node, first, count, round_):
    """An address that wrapped around would repeat another one's bits; a negative node once came back in clear."""
    with pytest.raises((ValueError, OverflowError)):
        Keystream(SECRET, "tree", TENS).words([node], first, count, round_)
