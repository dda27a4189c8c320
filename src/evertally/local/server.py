"""The server's half: sums of messages, and what follows from them. All that it holds is private already."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.frames import column
from evertally.encode.labels import as_list, is_arrow
from evertally.errors import ConfigurationError, MessageRefused, StateError
from evertally.local.messages import unpack
from evertally.local.protocol import MOST_CLIENTS, Protocol
from evertally.local.result import Result

_MAGIC = b"evertally-local-1\n"
_CHECK = 16
_SUM_BYTES = 16


@dataclass(frozen=True)
class _Sums:
    """All state of a server, replaced as one."""

    entries: NDArray[Any]  # int64, or Python's integers where 64 bits could be too few
    messages: int = 0
    simulated: int = 0

    def plus(self, entries: NDArray[Any], messages: int, simulated: int) -> _Sums:
        if self.messages + messages > MOST_CLIENTS:
            raise StateError(f"a server adds at most {MOST_CLIENTS} messages; sums of more may not fit")
        return _Sums(self.entries + entries, self.messages + messages, self.simulated + simulated)


@dataclass(frozen=True)
class Added:
    """How many messages were added, and how many were not, by reason.

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ZCDP(1), clients=100, low=0, high=1)
    >>> et.local.Server(protocol).add_many([b"hello"])
    Added(messages=0, refused={'these bytes do not begin like a message of this version': 1})
    """

    messages: int
    refused: dict[str, int]


class Server:
    """Adds up the messages of one protocol. No key, no secret: whoever holds the messages may run it, any time.

    Theorem: factorization-counting 6.9; the sum of messages is private because each of them is. Order does not
    matter: sums are exact, and servers that took different messages are put together by `merge`. Time O(w) a message,
    O(w log w) a result; memory O(w). Error: see `Result`.

    The server cannot know who sent what. That one person's message comes once is for whoever delivers them to see to.

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ZCDP(2), clients=1000, low=0, high=1)
    >>> server = et.local.Server(protocol)
    >>> people = [et.local.Client(protocol, et.simulation(i)) for i in range(1000)]
    >>> server.add_many(person.message(i / 1000) for i, person in enumerate(people))
    Added(messages=1000, refused={})
    >>> result = server.result(beta=0.05)
    >>> bool(abs(result.minimiser - 0.5) < 0.1), result.private
    (True, False)
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        # With 4 bytes an entry, 2^31 messages fit into 64 bits; the 8 bytes of very small budgets may not.
        self._type: Any = np.int64 if protocol.entry_type.itemsize == 4 else object
        self._sums = _Sums(np.zeros(protocol.cells, dtype=self._type))

    @property
    def messages(self) -> int:
        """How many messages have been added."""
        return self._sums.messages

    def add(self, message: bytes) -> None:
        """Adds one message. What is none of this protocol raises MessageRefused, and changes nothing."""
        entries, private = unpack(self.protocol, message)
        self._sums = self._sums.plus(entries.astype(self._type), 1, not private)

    def add_many(self, messages: Iterable[bytes]) -> Added:
        """Adds all messages of this protocol; the others are left out, and counted by what is wrong with them."""
        entries, refused = np.zeros_like(self._sums.entries), Counter[str]()
        count = simulated = 0
        given = column(messages)
        for message in as_list(given) if is_arrow(given) else given:
            try:
                found, private = unpack(self.protocol, message)
            except MessageRefused as error:
                refused[str(error)] += 1
                continue
            entries += found
            count += 1
            simulated += not private
        self._sums = self._sums.plus(entries, count, simulated)
        return Added(count, dict(refused))

    def merge(self, other: Server) -> None:
        """Adds what another server of the same protocol has added up from other messages; that one is unchanged."""
        if other is self:
            raise ConfigurationError("a server merged with itself would count every message twice")
        if other.protocol.digest != self.protocol.digest:
            raise ConfigurationError("the other server has another protocol: some public parameter differs")
        theirs = other._sums
        self._sums = self._sums.plus(theirs.entries, theirs.messages, theirs.simulated)

    def result(self, beta: float = 0.05, *, isotonic: bool = False) -> Result:
        """What the messages so far say; its bounds fail with probability at most `beta`. Costs no privacy.

        `isotonic`: first the estimates are replaced by the closest ones that never fall, as the truth never does;
        `stddev` stays that of the estimates before.
        """
        if not self._sums.messages:
            raise StateError("no message has been added yet; there is nothing to say")
        sums = self._sums
        return Result.of(
            self.protocol, sums.entries, sums.messages, beta, private=not sums.simulated, isotonic=isotonic
        )

    def snapshot(self) -> bytes:
        """The sums as bytes. Not secret."""
        sums = self._sums
        header = {"protocol": self.protocol.to_json(), "messages": sums.messages, "simulated": sums.simulated}
        text = json.dumps(header, sort_keys=True).encode()
        body = b"".join(int(entry).to_bytes(_SUM_BYTES, "little", signed=True) for entry in sums.entries)
        blob = _MAGIC + len(text).to_bytes(8, "little") + text + body
        return blob + _check(blob)

    @classmethod
    def restore(cls, blob: bytes) -> Server:
        """The server of a snapshot."""
        if not isinstance(blob, bytes) or not blob.startswith(_MAGIC):
            raise StateError("these bytes are not a snapshot of a local server of this version")
        content, check = blob[:-_CHECK], blob[-_CHECK:]
        if _check(content) != check:
            raise StateError("the snapshot is damaged; restore from an intact copy")
        start = len(_MAGIC) + 8
        stop = start + int.from_bytes(content[len(_MAGIC) : start], "little")
        header = json.loads(content[start:stop])
        server = cls(Protocol.from_json(header["protocol"]))
        entries = [
            int.from_bytes(content[at : at + _SUM_BYTES], "little", signed=True)
            for at in range(stop, len(content), _SUM_BYTES)
        ]
        server._sums = _Sums(np.array(entries, dtype=server._type), header["messages"], header["simulated"])
        return server


def _check(blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=_CHECK, person=b"evertally:local").digest()
