"""The derivation, frozen: constants, and a second computation of them from hashlib and AES alone.

If one of these fails, old streams can no longer be replayed: raise FORMAT_VERSION and keep the old way, or undo.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from evertally.noise import FORMAT_VERSION, DiscreteGaussian, DiscreteLaplace, Key, Keystream, simulation
from evertally.noise.sampler import settle

SECRET = bytes(range(32))


def test_version():
    assert FORMAT_VERSION == 1


def length(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little")


def blake(message: bytes, key: bytes, person: bytes) -> bytes:
    return hashlib.blake2b(message, key=key, digest_size=32, person=person).digest()


def words_again(subkey: bytes, lane: str, node: int, coordinate: int, round_: int) -> tuple[int, int]:
    """The document's two lines, with nothing of the package."""
    name = lane.encode()
    page = (node // 65536).to_bytes(8, "little") + (coordinate // 65536).to_bytes(8, "little")
    page_key = blake(length(name) + name + page, subkey, b"evertally:page")
    block = node.to_bytes(8, "little") + coordinate.to_bytes(4, "little") + round_.to_bytes(4, "little")
    # CBC with a zero vector is the bare cipher on one block: another mode than the package's, the same bits.
    bits = Cipher(algorithms.AES(page_key), modes.CBC(bytes(16))).encryptor().update(block)
    return int.from_bytes(bits[:8], "little"), int.from_bytes(bits[8:], "little")


WORDS = {
    (0, 0, 0): (0xE60025B122CCECC5, 0x90997A86B360881F),
    (1, 0, 0): (0x37C24FB44194F402, 0xBA936B203EB5D70C),
    (0, 1, 0): (0xEF9F3569AE6179D6, 0x14B8981A72026734),
    (0, 0, 1): (0xFA59A5E5F47BD03D, 0x00673B2F549755FE),
    (65535, 65535, 0): (0x66D5E92BB9F4585E, 0xD7E3376BEAAA9B7B),
    (65536, 65536, 0): (0x393CE2E05AB08092, 0x71C125B8EF5826E5),
    (2**40 + 7, 2**20 + 3, 2): (0xEC8400D197BEC293, 0x2F3B2D33EE78E973),
    (2**62, 2**32 - 1, 2**32 - 1): (0xF373FF7E1BF5D945, 0xF6279222D98A4013),
}


@pytest.mark.parametrize("address", WORDS)
def test_words(address):
    node, coordinate, round_ = address
    words = Keystream(SECRET, "tree").words([node], coordinate, 1, round_)
    assert tuple(int(w) for w in words[0, 0]) == WORDS[address]
    assert words_again(SECRET, "tree", *address) == WORDS[address]


def test_uses_of_the_key():
    key = Key(SECRET)
    assert key.fingerprint() == "8ae5c6d31cc01a71"
    assert key.derive("orders").fingerprint() == "f5fb31dda753115b"
    assert key.mac("snapshot", b"data").hex().startswith("9ce1ee8e066edaaea7554d6a6135617f")
    assert simulation(1).fingerprint() == "72fb4386b1949846"
    assert key.source("stream", "counter").order(b"event").hex() == "689315fad70f73b122e8038a00e8a172"


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
    "a": (DiscreteLaplace(Fraction(1, 2)), [0, -1, 0, 0, 0, 0, -1, -1], [0, 0, 0, -1, 0, 0, -1, 1]),
    "b": (DiscreteLaplace(Fraction(7, 3)), [2, -3, 1, -5, 1, 9, 2, 3], [-5, 2, 0, 1, 4, 2, 0, 2]),
    "c": (
        DiscreteLaplace(1000),
        [2177, -1049, 587, 527, -490, 1264, -525, -86],
        [527, 1812, 1198, 347, 1099, -238, 1223, -646],
    ),
    "d": (
        DiscreteLaplace(2**40),
        [
            -1408276894482,
            1064940820114,
            -2658183977662,
            220564633928,
            -1268920448237,
            -2726809595420,
            -5320179941633,
            -925063442832,
        ],
        [
            220564633928,
            -544242260833,
            1000498544220,
            -2090279133220,
            1662012285815,
            -581897304737,
            -897672617571,
            492991395154,
        ],
    ),
    "e": (DiscreteGaussian(Fraction(3, 10)), [1, 0, 0, 0, 0, 0, 0, 0], [0, -1, 0, 0, -1, 1, 0, -1]),
    "f": (DiscreteGaussian(100), [1, 9, 2, -5, 3, -1, 13, 0], [-5, 12, -7, 14, -7, -9, 7, 8]),
    "g": (
        DiscreteGaussian(10**6),
        [-1361, -957, -833, -444, 578, 948, -327, 110],
        [-444, 141, -1040, 488, 1767, -220, 71, -219],
    ),
    "h": (
        DiscreteGaussian(2**80),
        [
            -732666045240,
            170787911496,
            1059251066495,
            -1373633032716,
            -1331429669133,
            1043139009346,
            850112579880,
            307180672005,
        ],
        [
            -1373633032716,
            54989773861,
            1233139087426,
            -17942238499,
            -887847239439,
            -941371363801,
            -1718375492710,
            598848875811,
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
    path = length(b"1") + b"1" + length(b"stream") + b"stream" + length(b"counter") + b"counter"
    subkey = blake(path, SECRET, b"evertally:noise")

    def slow(node: int) -> int:
        return settle(law, words_again(subkey, lane, node, 0, 0), lambda r: words_again(subkey, lane, node, 0, r))

    assert [slow(node) for node in range(8)] == along_nodes


def test_pages_meet_without_a_seam():
    """Grids that straddle page borders agree with single addresses, and both with the written derivation."""
    stream = Keystream(SECRET, "tree")
    nodes = np.array([65534, 65535, 65536, 65537, 3 * 65536 - 1, 3 * 65536, 7])
    first, count = 65533, 6
    grid = stream.words(nodes, first, count)
    for i, node in enumerate(nodes.tolist()):
        for j in range(count):
            alone = stream.words([node], first + j, 1)[0, 0]
            assert (grid[i, j] == alone).all()
            assert words_again(SECRET, "tree", node, first + j, 0) == tuple(int(w) for w in alone)


def test_order_and_repetition_of_nodes_do_not_matter():
    stream = Keystream(SECRET, "tree")
    nodes = [5, 70000, 5, 200000, 6, 70000]
    grid = stream.words(nodes, 3, 4)
    for node, rows in zip(nodes, grid, strict=True):
        assert (rows == stream.words([node], 3, 4)[0]).all()


def test_forgotten_pages_come_back_the_same(monkeypatch):
    monkeypatch.setattr("evertally.noise.keystream._LIVE_PAGES", 2)
    stream = Keystream(SECRET, "tree")
    nodes = np.arange(6) * 65536
    assert (stream.words(nodes, 0, 2) == Keystream(SECRET, "tree").words(nodes, 0, 2)).all()
    assert len(stream._pages) == 2
    assert (stream.words(nodes[::-1], 0, 2)[::-1] == stream.words(nodes, 0, 2)).all()


def test_empty_requests():
    stream = Keystream(SECRET, "tree")
    assert stream.words([], 0, 3).shape == (0, 3, 2)
    assert stream.words([1], 0, 0).shape == (1, 0, 2)


@pytest.mark.parametrize(
    ("node", "first", "count", "round_"),
    [(-1, 0, 1, 0), (-70000, 0, 1, 0), (0, -1, 1, 0), (0, 2**32, 1, 0), (0, 2**32 - 1, 2, 0), (0, 0, 1, 2**32)],
)
def test_addresses_outside_the_format_are_refused(node, first, count, round_):
    """An address that wrapped around would repeat another one's bits; a negative node once came back in clear."""
    with pytest.raises((ValueError, OverflowError)):
        Keystream(SECRET, "tree").words([node], first, count, round_)
