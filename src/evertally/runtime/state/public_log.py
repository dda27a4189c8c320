"""The release log as everybody can check it: a hash of what readers see of each tick, a chain over these, a signature.

Only released bytes go in, as they stand in every output: whoever has the log as JSON lines, CSV, Parquet or from
/v1/releases comes to the same hashes. (The chain of the store is another: it has the input in it, and is a secret.)

    digest of a tick = SHA-256 of its number, its time, and of each query that shows something, in the order of names:
                       name, number of entries, labels, values, lower and upper bounds, stddev (of a tick that shows
                       nothing: of its number)
    chain of a tick  = SHA-256 of the chain before, the number of the tick, its digest
    head             = tick, chain, and digests of single ticks if wanted; signed with Ed25519

Numbers are compared as 64-bit floating-point numbers between -2^63 and 2^63, because that is what some formats hold.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evertally.runtime.releases import TickRelease, unpacked
from evertally.runtime.spec import StreamSpec

FORMAT = 1
_BOUND = 2.0**63
_FEW = 32  # numbers that are packed faster one by one
_DIGEST, _CHAIN, _HEAD = b"evertally release 1\n", b"evertally log 1\n", b"evertally head 1\n"

Columns = Mapping[str, Any]  # category, value, lower, upper: lists of one length, or single ones; stddev: one number


class Signer(Protocol):
    """A key that signs: `Key`."""

    def sign(self, data: bytes) -> bytes: ...

    @property
    def public_key(self) -> bytes: ...


def digest_of(spec: StreamSpec, release: TickRelease) -> bytes:
    """The digest of a tick as the stream has it."""
    return tick_digest(release.tick, release.time, {query.name: columns for query, columns in unpacked(spec, release)})


def tick_digest(tick: int, time: object, queries: Mapping[str, Columns]) -> bytes:
    """The digest of a tick from what is shown of it.

    >>> shown = {"category": None, "value": 5, "lower": 1, "upper": 9, "stddev": 2.0}
    >>> read = {"category": [""], "value": [5.0], "lower": [1.0], "upper": [9.0], "stddev": 2}
    >>> silent = {"value": []}  # no file has a row of it
    >>> tick_digest(1, "2026-01-01", {"all": shown}) == tick_digest(1, "2026-01-01", {"all": read, "found": silent})
    True
    """
    hashed = hashlib.sha256(_DIGEST + _framed(str(tick)))
    shown = [(name, columns) for name, columns in sorted(queries.items()) if _listed(columns["value"])]
    if shown:  # a tick that shows nothing is in no file, and nor is its time
        hashed.update(_framed(str(time)))
    for name, columns in shown:
        value = _listed(columns["value"])
        hashed.update(_framed(name) + len(value).to_bytes(8, "big"))
        hashed.update(_labels(tuple(_listed(columns["category"]))))
        numbers = [*_listed(columns["lower"]), *_listed(columns["upper"]), columns["stddev"]]
        if isinstance(value[0], str):
            hashed.update(_labels(tuple(value)) + _numbers(numbers))
        else:
            hashed.update(_numbers([*value, *numbers]))
    return hashed.digest()


def chained(before: str, tick: int, digest: bytes) -> str:
    """The chain one tick on."""
    return hashlib.sha256(_CHAIN + bytes.fromhex(before) + tick.to_bytes(8, "big") + digest).hexdigest()


def signed_head(
    signer: Signer, spec: StreamSpec, since: int, tick: int, chain: str, digests: Iterable[tuple[int, bytes]] = ()
) -> dict[str, Any]:
    """What vouches for a log up to a tick. `since`: the tick after which the chain begins."""
    said = {
        "format": FORMAT,
        "stream": spec.name,
        "spec_digest": spec.digest,
        "public_key": signer.public_key.hex(),
        "since": since,
        "tick": tick,
        "chain": chain,
        "digests": [{"tick": number, "digest": digest.hex()} for number, digest in digests],
    }
    return said | {"signature": signer.sign(_signed(said)).hex()}


def is_signed(head: Mapping[str, Any], public_key: str) -> bool:
    """Whether a head was signed with the key that belongs to a public one."""
    try:
        said = {name: value for name, value in head.items() if name != "signature"}
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        signer.verify(bytes.fromhex(head["signature"]), _signed(said))
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def _signed(said: Mapping[str, Any]) -> bytes:
    return _HEAD + json.dumps(said, sort_keys=True, separators=(",", ":")).encode("ascii")


def _listed(column: Any) -> Sequence[Any]:
    return column if isinstance(column, list | tuple) else [column]


def _framed(text: str) -> bytes:
    data = text.encode("utf-8", "backslashreplace")
    return len(data).to_bytes(8, "big") + data


@functools.lru_cache(maxsize=64)  # declared labels are the same at every tick
def _labels(labels: tuple[str | None, ...]) -> bytes:
    """As files hold them: no label is an empty one, and what UTF-8 cannot hold is escaped."""
    return b"".join(_framed(label or "") for label in labels)


def _numbers(cells: Sequence[Any]) -> bytes:
    """
    >>> few = [None, -0.0, 7, 2.5, 1e300, -(2**63) - 1]
    >>> _numbers(few) * 20 == _numbers(few * 20), _numbers([10**400] * 99) == _numbers([2**63]) * 99
    (True, True)
    """
    if len(cells) > _FEW:
        with contextlib.suppress(OverflowError):  # a bound far beyond any count
            numbers = np.clip(np.array(cells, dtype=np.float64), -_BOUND, _BOUND) + 0.0
            numbers[np.isnan(numbers)] = np.nan
            return numbers.astype(">f8").tobytes()
    return struct.pack(f">{len(cells)}d", *map(_number, cells))


def _number(cell: Any) -> float:
    if cell is None or cell != cell:
        return math.nan
    return float(max(-_BOUND, min(_BOUND, cell))) + 0.0  # no negative zero
