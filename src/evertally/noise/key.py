"""The secret of a stream: 32 bytes from which every draw of its noise follows.

Whoever holds the key knows all noise, past and future, hence all exact counts: it is as sensitive as the
data. A key lives and dies with one stream; `Key.derive` makes the key of a further one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from evertally.errors import ConfigurationError, StateError
from evertally.noise.keystream import FORMAT_VERSION
from evertally.noise.source import ItemSource, KeyedSource, Recorder, RecordingSource, ZeroSource

KEY_BYTES = 32


def encode_path(*parts: str | bytes) -> bytes:
    """An injective encoding of a tuple: each part behind its length, so no two paths give the same bytes.

    >>> encode_path("ab", "c") != encode_path("a", "bc")
    True
    """
    encoded = b""
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        encoded += len(data).to_bytes(8, "little") + data
    return encoded


class NoiseKey(Protocol):
    """What a mechanism needs of a key. `Key` is the real one; `ZeroNoise` and `Recording` serve tests."""

    @property
    def private(self) -> bool:
        """Whether releases under this key are private."""

    @property
    def fresh(self) -> bool:
        """Whether the key was made for one thing and has made no noise yet: then nothing else can share its noise."""

    @property
    def process(self) -> int:
        """The process in which it was made or loaded: a fork has a copy of it."""

    def source(self, *path: str | bytes) -> ItemSource:
        """The addressed noise of one mechanism; the path names stream, mechanism and parameters."""

    def mac(self, purpose: str, data: bytes) -> bytes:
        """32 bytes that only a holder of the key can compute."""

    def fingerprint(self) -> str:
        """A public name for the key that reveals nothing about it."""


def own_key(key: NoiseKey | None) -> NoiseKey:
    """The key, or a new one where none was given."""
    return Key.generate() if key is None else check_key(key)


def check_key(key: NoiseKey) -> NoiseKey:
    """Refuses what is no key.

    >>> check_key("secret")
    Traceback (most recent call last):
    ...
    evertally.errors.ConfigurationError: key is a Key object, nothing of type str: et.Key.generate() makes one, ...
    """
    if isinstance(key, type) or not all(hasattr(key, part) for part in ("source", "private")):
        # Its type alone: what was given may be a secret.
        raise ConfigurationError(
            f"key is a Key object, nothing of type {type(key).__name__}: et.Key.generate() makes one, key.save(path) "
            "keeps it in a file and et.Key.load(path) reads it; et.simulation(1) is for trials, which are not private"
        )
    return key


class Key:
    """32 secret bytes.

    >>> key = Key.generate()
    >>> key.private
    True
    >>> key.derive("orders").fingerprint() == key.derive("visits").fingerprint()
    False
    """

    __slots__ = ("_fresh", "_private", "_process", "_secret")

    def __init__(self, secret: bytes, *, private: bool = True) -> None:
        if not isinstance(secret, bytes | bytearray):
            raise ConfigurationError(
                f"a key is made of {KEY_BYTES} bytes, nothing of type {type(secret).__name__}; use Key.generate()"
            )
        if len(secret) != KEY_BYTES:
            raise ConfigurationError(f"a key has {KEY_BYTES} bytes, not {len(secret)}; use Key.generate()")
        # The same bytes, said not to be private, are another key: a trial must not show the noise of a stream.
        trial = hashlib.blake2b(secret, digest_size=KEY_BYTES, person=b"evertally:trial").digest
        self._secret = bytearray(secret if private else trial())
        self._private = private
        self._process = os.getpid()
        self._fresh = False

    @classmethod
    def _made(cls, secret: bytes, private: bool) -> Key:
        """A key that was made here, for one thing."""
        key = cls(secret)
        key._private, key._fresh = private, True
        return key

    @classmethod
    def generate(cls) -> Key:
        """A fresh key from the operating system's generator."""
        return cls._made(os.urandom(KEY_BYTES), private=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Key:
        """Reads a key file; refuses one that others on the machine may read."""
        try:
            with open(path, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                secret = file.read(KEY_BYTES + 1)
        except OSError as error:
            raise StateError(f"cannot read the key file {os.fspath(path)}: {error.strerror}") from error
        if mode & 0o077:
            raise StateError(f"{os.fspath(path)} is open to others (mode {mode:04o}); chmod 600 it")
        if len(secret) != KEY_BYTES:
            raise StateError(f"the key file {os.fspath(path)} does not hold exactly {KEY_BYTES} bytes")
        return cls(secret)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the key with mode 0600 and makes it durable; never overwrites a file."""
        if not self._private:
            raise StateError("a simulation key is not private and is never saved; use Key.generate()")
        secret = self._alive()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError as error:
            raise StateError(f"{os.fspath(path)} exists; a key file is never overwritten") from error
        except OSError as error:
            raise StateError(f"cannot write the key file {os.fspath(path)}: {error.strerror}") from error
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        directory = os.open(Path(path).parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    @property
    def private(self) -> bool:
        """False for simulation keys: what is released under them is not private."""
        return self._private

    def derive(self, name: str) -> Key:
        """The key of a further stream: independent of this one for everybody who does not hold it."""
        return Key._made(self._hash("derive", encode_path(name)), self._private)

    @property
    def fresh(self) -> bool:
        """Whether this key was made for one thing, here, and has made no noise yet; False for a loaded key."""
        return self._fresh and self._process == os.getpid()

    @property
    def process(self) -> int:
        return self._process

    def source(self, *path: str | bytes) -> ItemSource:
        self._fresh = False
        return KeyedSource(self._hash("noise", encode_path(str(FORMAT_VERSION), *path)))

    def for_workers(self, stream: str, paths: Sequence[tuple[str | bytes, ...]]) -> tuple[bytes, bytes, list[bytes]]:
        """What a `WorkerKey` is made of: a secret of its own, the key of the content order, one secret for each path of
        noise."""
        noise = [self._hash("noise", encode_path(str(FORMAT_VERSION), *path)) for path in paths]
        return self._hash("worker", encode_path(stream)), self.order_key, noise

    @property
    def order_key(self) -> bytes:
        """What orders events of one tick by their content."""
        return self.mac("content order", b"")[:16]

    def mac(self, purpose: str, data: bytes) -> bytes:
        return self._hash("mac", encode_path(purpose, data))

    def seal(self, purpose: str, data: bytes) -> bytes:
        """Encrypts and authenticates. Deterministic (AES-SIV), so that no nonce can ever be used twice.

        >>> key = Key.generate()
        >>> key.unseal("note", key.seal("note", b"secret"))
        b'secret'
        """
        return self._siv().encrypt(data, [purpose.encode()])

    def unseal(self, purpose: str, sealed: bytes) -> bytes:
        """What was sealed with this key for this purpose; StateError for anything else."""
        try:
            return self._siv().decrypt(sealed, [purpose.encode()])
        except (InvalidTag, ValueError):
            raise StateError("sealed bytes are damaged, or belong to another key or place") from None

    def _siv(self) -> AESSIV:
        return AESSIV(self._hash("seal", b"mac") + self._hash("seal", b"cipher"))

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature: who has `public_key` can check it. Its key is made from this one for nothing else.

        >>> key = Key.generate()
        >>> len(key.sign(b"released")), len(key.public_key)
        (64, 32)
        """
        return self._signer().sign(data)

    @property
    def public_key(self) -> bytes:
        """What signatures are checked with. It says nothing about the key or its noise."""
        return self._signer().public_key().public_bytes_raw()

    def _signer(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self._hash("sign", b"releases"))

    def fingerprint(self) -> str:
        return self._hash("fingerprint", b"").hex()[:16]

    def wipe(self) -> None:
        """Overwrites the secret in memory; the key cannot be used afterwards.

        This is best effort: copies that Python or a cipher context has made are out of reach.
        """
        for i in range(len(self._secret)):
            self._secret[i] = 0
        self._secret = bytearray()

    def _alive(self) -> bytes:
        if not self._secret:
            raise StateError("this key was wiped")
        return bytes(self._secret)

    def _hash(self, use: str, message: bytes) -> bytes:
        # `person` separates the uses of the key from each other: BLAKE2b with distinct personalisations gives
        # independent functions.
        person = b"evertally:" + use.encode()[:6]
        return hashlib.blake2b(message, key=self._alive(), digest_size=32, person=person).digest()

    def __repr__(self) -> str:
        state = "wiped" if not self._secret else self.fingerprint()
        return f"Key({state}{'' if self._private else ', simulation: not private'})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is a secret and is not pickled; use Key.save and Key.load")


def simulation(seed: int) -> Key:
    """A reproducible key for experiments and tests. Its releases are not private, and labelled so.

    >>> simulation(1).fingerprint() == simulation(1).fingerprint()
    True
    >>> simulation(1).private
    False
    """
    secret = hashlib.blake2b(encode_path(str(int(seed))), digest_size=32, person=b"evertally:simul").digest()
    return Key._made(secret, private=False)


class _TestKey:
    private = False
    fresh = True
    process = 0

    def mac(self, purpose: str, data: bytes) -> bytes:
        return hashlib.blake2b(encode_path(purpose, data), digest_size=32).digest()


class ZeroNoise(_TestKey):
    """A stand-in for a key under which all noise is zero: for tests of exactness, never for a release.

    >>> from evertally.noise.laws import DiscreteLaplace
    >>> ZeroNoise().source("any").draws("tree", DiscreteLaplace(10), range(3)).ravel().tolist()
    [0, 0, 0]
    """

    def source(self, *path: str | bytes) -> ItemSource:
        return ZeroSource()

    def fingerprint(self) -> str:
        return "zero-noise"


class Recording(_TestKey):
    """A stand-in for a key that notes every draw: who asked, for which law, at which addresses.

    >>> from evertally.noise.laws import DiscreteLaplace
    >>> recording = Recording(simulation(7))
    >>> _ = recording.source("any").draws("tree", DiscreteLaplace(10), [5])
    >>> [(d.lane, d.nodes, d.coordinates) for d in recording.draws]
    [('tree', (5,), 1)]
    """

    def __init__(self, key: NoiseKey) -> None:
        self._key = key
        self.draws: list[Recorder] = []

    def source(self, *path: str | bytes) -> ItemSource:
        return RecordingSource(self._key.source(*path), self.draws)

    def fingerprint(self) -> str:
        return "recording-" + self._key.fingerprint()
