"""Messages as bytes: what a client sends, and what a server takes for one.

    4 bytes   "EVL1"
    1 byte    1 if the noise is a simulation's (not private), else 0
    16 bytes  the digest of the protocol
    w entries y, little-endian, 4 or 8 bytes each as the protocol says
    12 bytes  BLAKE2b of all that

The message is y = R u + Z itself, integers, and not the estimate L y: y is what the theorem speaks about, it has no
rounding, sums of it are exact in any order, and the server applies L once to the sum instead of every client to its
own. All messages of a protocol have one length, so the length tells nothing. The checksum finds damage, not lies:
whoever wants to send a false message can.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from evertally.errors import MessageRefused

if TYPE_CHECKING:
    from evertally.local.factor import IntArray
    from evertally.local.protocol import Protocol

_MAGIC = b"EVL1"
_HEAD = len(_MAGIC) + 1 + 16
_CHECK = 12
OVERHEAD = _HEAD + _CHECK


def pack(protocol: Protocol, entries: IntArray, *, private: bool) -> bytes:
    """The message. Entries that are too large are cut: a function of what is private already."""
    limit = protocol.largest_entry
    body = np.clip(entries, -limit, limit).astype(protocol.entry_type).tobytes()
    message = _MAGIC + bytes([not private]) + protocol.digest + body
    return message + _check(message)


def unpack(protocol: Protocol, message: object) -> tuple[IntArray, bool]:
    """y, and whether its noise is private. Anything else than a message of this protocol is refused, in one word for
    each reason."""
    if not isinstance(message, bytes | bytearray | memoryview):
        raise MessageRefused("a message is bytes; this is something else")
    blob = bytes(message)
    if not blob.startswith(_MAGIC):
        raise MessageRefused("these bytes do not begin like a message of this version")
    if len(blob) < OVERHEAD or blob[5:_HEAD] != protocol.digest:
        raise MessageRefused("this message belongs to another protocol: some public parameter differs")
    if len(blob) != protocol.message_bytes:
        raise MessageRefused(
            f"a message of this protocol has {protocol.message_bytes} bytes; this one is cut or longer"
        )
    if _check(blob[:-_CHECK]) != blob[-_CHECK:] or blob[4] > 1:
        raise MessageRefused("this message was damaged on its way")
    entries = np.frombuffer(blob, dtype=protocol.entry_type, count=protocol.cells, offset=_HEAD).astype(np.int64)
    if max(int(entries.max()), -int(entries.min())) > protocol.largest_entry:
        raise MessageRefused("an entry of this message is larger than any that a client of this protocol sends")
    return entries, not blob[4]


def _check(message: bytes) -> bytes:
    return hashlib.blake2b(message, digest_size=_CHECK, person=b"evertally:msg").digest()
