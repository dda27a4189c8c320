"""What other machines get of a stream's key: enough to draw its noise and to seal its state, and no more.

Whoever holds it knows the noise, so it is as secret as the key. But it signs nothing and makes no mark: a worker that
was taken over cannot say that something was released (docs/theory/distributed.md 3, item 7).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from evertally.errors import StateError
from evertally.noise.key import Key, encode_path
from evertally.noise.source import ItemSource, KeyedSource

_FORMAT = "evertally-worker-key-1"


class WorkerKey:
    """The noise of the mechanisms of one stream, and its seals.

    >>> import evertally as et
    >>> key = et.Key.generate()
    >>> counter = et.Counter(guarantee=et.ZCDP(0.1), horizon=9, key=key)
    >>> worker = WorkerKey.of(key, "visits", [counter._path])
    >>> twin = et.Counter(guarantee=et.ZCDP(0.1), horizon=9, key=worker, name="counter", allow_copy=True)
    >>> twin.step(5).value == counter.step(5).value, hasattr(worker, "sign")
    (True, False)
    """

    __slots__ = ("_own", "_process", "_sources", "order_key")

    private = True
    fresh = False

    def __init__(self, own: bytes, order_key: bytes, sources: Mapping[str, bytes]) -> None:
        self._own, self.order_key, self._sources = own, order_key, dict(sources)
        self._process = os.getpid()

    @classmethod
    def of(cls, key: Key, stream: str, paths: list[tuple[str | bytes, ...]]) -> WorkerKey:
        """Of a key, for mechanisms whose noise is addressed by these paths."""
        own, order_key, sources = key.for_workers(stream, paths)
        return cls(own, order_key, {_name(path): secret for path, secret in zip(paths, sources, strict=True)})

    @property
    def process(self) -> int:
        return self._process

    def source(self, *path: str | bytes) -> ItemSource:
        secret = self._sources.get(_name(path))
        if secret is None:
            raise StateError(
                "this worker key has no noise for such a mechanism: it was made for another spec, or by another "
                "version. Give the workers the file that the driver has written"
            )
        return KeyedSource(secret)

    def mac(self, purpose: str, data: bytes) -> bytes:
        return self._hash("mac", encode_path(purpose, data))

    def seal(self, purpose: str, data: bytes) -> bytes:
        """Encrypts and authenticates, deterministically: attempts of one task write the same bytes."""
        return self._siv().encrypt(data, [purpose.encode()])

    def unseal(self, purpose: str, sealed: bytes) -> bytes:
        """What was sealed with this key for this purpose; StateError for anything else."""
        try:
            return self._siv().decrypt(sealed, [purpose.encode()])
        except (InvalidTag, ValueError):
            raise StateError("sealed bytes are damaged, or belong to another key, batch or place") from None

    def fingerprint(self) -> str:
        return self._hash("name", b"").hex()[:16]

    def to_bytes(self) -> bytes:
        """All of it, for a file that nobody else reads. Secret."""
        content = {
            "format": _FORMAT,
            "own": self._own.hex(),
            "order": self.order_key.hex(),
            "sources": {name: secret.hex() for name, secret in sorted(self._sources.items())},
        }
        return json.dumps(content, sort_keys=True).encode()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WorkerKey:
        """Reads a worker's key file; refuses one that others on the machine may read."""
        try:
            with open(path, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                data = file.read()
        except OSError as error:
            raise StateError(f"cannot read the worker key {os.fspath(path)}: {error.strerror}") from None
        if mode & 0o077:
            raise StateError(f"{os.fspath(path)} is open to others (mode {mode:04o}); chmod 600 it")
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            content = json.loads(data)
            if content["format"] == _FORMAT:
                sources = {name: bytes.fromhex(secret) for name, secret in content["sources"].items()}
                return cls(bytes.fromhex(content["own"]), bytes.fromhex(content["order"]), sources)
        # Outside the handler: errors of JSON carry the whole document, and this one must not carry them.
        raise StateError(f"{os.fspath(path)} is no worker key, or is damaged; copy it anew")

    def _siv(self) -> AESSIV:
        return AESSIV(self._hash("seal", b"mac") + self._hash("seal", b"cipher"))

    def _hash(self, use: str, message: bytes) -> bytes:
        return hashlib.blake2b(message, key=self._own, digest_size=32, person=b"ev:work:" + use.encode()).digest()

    def __repr__(self) -> str:
        return f"WorkerKey({self.fingerprint()})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is a secret and is not pickled: workers read it from a file of theirs")


def _name(path: tuple[str | bytes, ...]) -> str:
    return hashlib.sha256(encode_path(*path)).hexdigest()
