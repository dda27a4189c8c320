"""Where mechanisms get their noise: integers at addresses, and real variates to compare. No source receives data.

Addresses are numbers (node, coordinate), or names of items. A label is data; what noise gets of it is a keyed digest,
made by `item_addresses`, so that the noise of an item is a function of its name and never of when it arrived.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.errors import StateError
from evertally.noise.keystream import Keystream
from evertally.noise.laws import Law
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.noise.sampler import draw
from evertally.noise.variates import AddressedVariates, VariateKind, Variates, ZeroVariates
from evertally.secret import Secret

IntArray = NDArray[np.int64]
Addresses = NDArray[np.uint64]  # of items, see `item_addresses`

# Draws are made in pieces of this many: their random bits stay in the processor's cache, and the buffers stay below the
# 128 KiB from which the C library fetches fresh pages from the kernel for each of them (three times slower).
_PIECE = 1 << 12
_SHORT = 6  # bytes: among a thousand lanes two hashes agree with probability 2^-29


class Source(Protocol):
    """The noise of one mechanism."""

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        """Independent draws for each node and each coordinate from `first` on: shape (nodes, coordinates).

        The same address gives the same draw for ever; a lane is used with one law only, since the same bits
        at two scales reveal data.
        """

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals | KnownReals:
        """Independent real variates for each node and each coordinate from `first` on, enclosed."""

    def order(self, message: bytes) -> bytes:
        """A keyed hash: an order that nobody without the key can predict, for truncation at the door."""


class VariateSource(Source, Protocol):
    """The noise of a mechanism that selects: integer draws, and real variates."""

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        """Independent variates for the coordinates of one node; one selection uses one node.

        The same address gives the same variates for ever. A lane has one kind of variates, or one law of draws.
        """


class ItemSource(VariateSource, Protocol):
    """The noise of a mechanism whose items are named, not numbered."""

    def item_draws(self, lane: str, law: Law, node: int, items: Addresses) -> IntArray:
        """Independent draws for the items (see `item_addresses`) at one node: shape (items,).

        The same lane, node and label give the same draw for ever, whatever other items there are.
        """

    def item_reals(self, lane: str, law: RealLaw, nodes: range, items: Addresses) -> Reals | KnownReals:
        """Real variates of shape (nodes, items)."""

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: Addresses) -> Variates:
        """Independent variates for the items at one node; one selection uses one node."""

    def item_hash(self) -> Any:
        """A keyed BLAKE2b object, to be copied for each label; see `item_addresses`."""

    def fingerprint(self) -> bytes:
        """16 bytes that name this noise and tell nothing about it: the same for the same key and path, and no other."""

    def laws(self) -> bytes:
        """Which lane has been drawn with which law, as bytes to keep beside a state."""

    def expect(self, laws: bytes) -> None:
        """Refuses, now and later, to draw a lane with another law than `laws` says: one lane, one law, for ever."""


def item_addresses(source: ItemSource, labels: Sequence[str | None]) -> Addresses:
    """Keyed digests of labels, 64 and 32 bits in two words: where the noise of these items lies. Shape (labels, 2).

    None stands for no item at all (the threshold of an unknown domain) and has an address of its own. Among n labels
    two share an address, hence their noise, with probability below n^2/2^97 (docs/theory/samplers.md, section 5).

    >>> from evertally.noise import simulation
    >>> source = simulation(1).source("doc")
    >>> alone, other = item_addresses(source, ["pear"]), item_addresses(source, ["fig", "pear", None])
    >>> bool((alone[0] == other[1]).all()), other.shape
    (True, (3, 2))
    """
    keyed = source.item_hash()
    digests = bytearray()
    for label in labels:
        one = keyed.copy()
        # No label's bytes contain 0xff, not even those of a lone surrogate.
        one.update(b"\xff" if label is None else label.encode("utf-8", "surrogatepass"))
        digests += one.digest()
    addresses = np.frombuffer(digests, dtype="<u8").reshape(-1, 2).astype(np.uint64)
    addresses[:, 1] &= np.uint64(0xFFFFFFFF)
    return addresses


class KeyedSource(Secret):
    """Noise from a subkey: a pure function of (subkey, lane, node, coordinate).

    >>> from evertally.noise.laws import DiscreteGaussian
    >>> source = KeyedSource(bytes(32))
    >>> law = DiscreteGaussian(100)
    >>> bool((source.draws("tree", law, [3]) == source.draws("tree", law, range(1, 4))[2:]).all())
    True
    """

    def __init__(self, subkey: bytes) -> None:
        self._subkey = subkey
        self._lanes: dict[str, tuple[Keystream, Law | RealLaw | VariateKind]] = {}
        self._known_laws: dict[bytes, bytes] = {}  # short hashes of lanes and of their laws

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        nodes = _countable(nodes)
        if not len(nodes) * coordinates:
            return np.empty((len(nodes), coordinates), dtype=np.int64)  # nothing was drawn: the lane has no law yet
        stream = self._stream(lane, law)
        rows = max(1, _PIECE // coordinates)
        if len(nodes) <= rows and coordinates <= _PIECE:
            return self._piece(stream, law, nodes, first, coordinates)
        out = np.empty((len(nodes), coordinates), dtype=np.int64)
        if coordinates > _PIECE:
            for i in range(len(nodes)):
                for start in range(0, coordinates, _PIECE):
                    stop = min(coordinates, start + _PIECE)
                    out[i, start:stop] = self._piece(stream, law, nodes[i : i + 1], first + start, stop - start)[0]
            return out
        for start in range(0, len(nodes), rows):
            out[start : start + rows] = self._piece(stream, law, nodes[start : start + rows], first, coordinates)
        return out

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals:
        stream = self._stream(lane, law)

        def more(i: int, j: int, round_: int) -> tuple[int, int]:
            return _two_words(stream, nodes[i], first + j, round_)

        index = np.arange(nodes.start, nodes.stop, nodes.step)
        return Reals(law.kind, stream.words(index, first, coordinates), more)

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        stream = self._stream(lane, kind)

        def more(i: int, round_: int) -> tuple[int, int]:
            return _two_words(stream, node, i, round_)

        return AddressedVariates(kind, stream.words([node], 0, coordinates)[0], more)

    def item_draws(self, lane: str, law: Law, node: int, items: Addresses) -> IntArray:
        out = np.empty(len(items), dtype=np.int64)
        if not out.size:
            return out
        stream = self._stream(lane, law)
        for start in range(0, len(items), _PIECE):
            piece = items[start : start + _PIECE]
            out[start : start + _PIECE] = draw(law, stream.item_words(node, piece), _more_by_item(stream, node, piece))
        return out

    def item_reals(self, lane: str, law: RealLaw, nodes: range, items: Addresses) -> Reals:
        stream = self._stream(lane, law)

        def more(i: int, j: int, round_: int) -> tuple[int, int]:
            return _more_by_item(stream, nodes[i], items)(j, round_)

        return Reals(law.kind, np.stack([stream.item_words(node, items) for node in nodes]), more)

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: Addresses) -> Variates:
        stream = self._stream(lane, kind)
        return AddressedVariates(kind, stream.item_words(node, items), _more_by_item(stream, node, items))

    def item_hash(self) -> Any:
        return hashlib.blake2b(key=self._subkey, digest_size=16, person=b"evertally:label")

    def order(self, message: bytes) -> bytes:
        return hashlib.blake2b(message, key=self._subkey, digest_size=16, person=b"evertally:order").digest()

    def fingerprint(self) -> bytes:
        return hashlib.blake2b(key=self._subkey, digest_size=16, person=b"evertally:path").digest()

    def laws(self) -> bytes:
        return b"".join(lane + law for lane, law in sorted(self._known_laws.items()))

    def expect(self, laws: bytes) -> None:
        step = 2 * _SHORT
        for start in range(0, len(laws), step):
            self._check_law(laws[start : start + _SHORT], laws[start + _SHORT : start + step])

    def _check_law(self, lane: bytes, law: bytes) -> None:
        if self._known_laws.setdefault(lane, law) != law:
            raise StateError(
                "this stream was begun with noise of another law than this version would draw now; the same random "
                "bits at two scales reveal data. Continue it with the version that began it, or start a new stream"
            )

    def _stream(self, lane: str, law: Law | RealLaw | VariateKind) -> Keystream:
        known = self._lanes.get(lane)
        if known is None:
            text = law if isinstance(law, str) else law.text()
            self._check_law(_short_hash(lane), _short_hash(text))
            known = (Keystream(self._subkey, lane, text), law)
            self._lanes[lane] = known
        if known[1] is not law and known[1] != law:  # to compare fractions takes longer than to draw
            raise AssertionError(f"lane {lane!r} is drawn with two laws; the same bits at two scales reveal data")
        return known[0]

    @staticmethod
    def _piece(stream: Keystream, law: Law, nodes: range | IntArray, first: int, count: int) -> IntArray:
        def more(i: int, round_: int) -> tuple[int, int]:
            return _two_words(stream, int(nodes[i // count]), first + i % count, round_)

        # numpy reads a range number by number; its ends and step are ten times quicker.
        index = np.arange(nodes.start, nodes.stop, nodes.step) if isinstance(nodes, range) else nodes
        words = stream.words(index, first, count).reshape(-1, 2)
        return draw(law, words, more).reshape(len(nodes), count)


def _short_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_SHORT]


def _two_words(stream: Keystream, node: int, coordinate: int, round_: int) -> tuple[int, int]:
    words = stream.words([node], coordinate, 1, round_)[0, 0]
    return int(words[0]), int(words[1])


def _more_by_item(stream: Keystream, node: int, items: Addresses) -> Callable[[int, int], tuple[int, int]]:
    def more(i: int, round_: int) -> tuple[int, int]:
        words = stream.item_words(node, items[i : i + 1], round_)[0]
        return int(words[0]), int(words[1])

    return more


def _countable(nodes: Iterable[int]) -> range | IntArray:
    # A range stays one until its piece is drawn: a million nodes need no array of their own.
    return nodes if isinstance(nodes, range | np.ndarray) else np.fromiter(nodes, dtype=np.int64)


class ZeroSource:
    """No noise at all; see ZeroNoise."""

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return np.zeros((len(_countable(nodes)), coordinates), dtype=np.int64)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(np.zeros((len(nodes), coordinates)))

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        return ZeroVariates(coordinates)

    def item_draws(self, lane: str, law: Law, node: int, items: Addresses) -> IntArray:
        return np.zeros(len(items), dtype=np.int64)

    def item_reals(self, lane: str, law: RealLaw, nodes: range, items: Addresses) -> KnownReals:
        return KnownReals(np.zeros((len(nodes), len(items))))

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: Addresses) -> Variates:
        return ZeroVariates(len(items))

    def item_hash(self) -> Any:
        return hashlib.blake2b(digest_size=16, person=b"evertally:label")

    def fingerprint(self) -> bytes:
        return bytes(16)

    def laws(self) -> bytes:
        return b""

    def expect(self, laws: bytes) -> None:
        """Nothing is drawn, so nothing can be drawn twice."""

    def order(self, message: bytes) -> bytes:
        return hashlib.blake2b(message, digest_size=16).digest()


@dataclass(frozen=True)
class Recorder:
    """One call to a recording source. For variates the kind stands in the place of the law.

    A call by item has the addresses of its items, and their number as `coordinates`.
    """

    lane: str
    law: Law | RealLaw | VariateKind
    nodes: tuple[int, ...]
    coordinates: int
    first: int = 0
    items: tuple[tuple[int, ...], ...] | None = None


class RecordingSource:
    """Passes draws and variates on and notes them; see Recording."""

    def __init__(self, inner: ItemSource, log: list[Recorder]) -> None:
        self._inner = inner
        self._log = log
        # What draws nothing is handed on as it is.
        self.item_hash, self.order, self.fingerprint = inner.item_hash, inner.order, inner.fingerprint
        self.laws, self.expect = inner.laws, inner.expect

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = [int(node) for node in nodes]
        self._log.append(Recorder(lane, law, tuple(index), coordinates, first))
        return self._inner.draws(lane, law, index, coordinates, first)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals | KnownReals:
        self._log.append(Recorder(lane, law, tuple(nodes), coordinates, first))
        return self._inner.reals(lane, law, nodes, coordinates, first)

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        self._log.append(Recorder(lane, kind, (int(node),), coordinates))
        return self._inner.variates(lane, kind, node, coordinates)

    def item_draws(self, lane: str, law: Law, node: int, items: Addresses) -> IntArray:
        self._note(lane, law, node, items)
        return self._inner.item_draws(lane, law, node, items)

    def item_reals(self, lane: str, law: RealLaw, nodes: range, items: Addresses) -> Reals | KnownReals:
        for node in nodes:
            self._note(lane, law, node, items)
        return self._inner.item_reals(lane, law, nodes, items)

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: Addresses) -> Variates:
        self._note(lane, kind, node, items)
        return self._inner.item_variates(lane, kind, node, items)

    def _note(self, lane: str, law: Law | RealLaw | VariateKind, node: int, items: Addresses) -> None:
        addresses = tuple(tuple(address) for address in items.tolist())
        self._log.append(Recorder(lane, law, (int(node),), len(addresses), items=addresses))
