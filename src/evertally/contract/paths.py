"""One live mechanism for one path of noise, in this process.

The noise of a mechanism follows from its key, its names and its parameters (design: replay needs nothing stored). So a
second mechanism with the same ones has the same noise, and if it sees other data the two publish the exact difference:
two counters under one key, a notebook cell run again on corrected data, a snapshot that is restored twice. Here the
paths that are in use are remembered, by a keyed fingerprint, and the second mechanism is refused.

What cannot be seen from here: another process, another machine, this process after a restart. There the rule is the
user's to keep, and the runtime keeps it with a store, a lock and a sidecar.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import NoReturn

from evertally.errors import ConfigurationError, NoiseReused
from evertally.noise import NoiseKey


@dataclass
class _Path:
    owner: weakref.ref[object] | None = None
    tick: int = 0  # the last tick that anybody has released from this path


_paths: dict[bytes, _Path] = {}
_released_once: dict[bytes, bytes] = {}  # what one-shot mechanisms have seen, as keyed digests
# Reentrant: a signal handler that restores a stream may come while this very thread holds it.
_lock = threading.RLock()


_here = os.getpid()


def _in_child() -> None:
    """A forked process has none of the threads that could release the lock."""
    global _lock, _here
    _lock, _here = threading.RLock(), os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Hold:
    """What one mechanism may do with its path. As made, it is a copy: the user has said that it sees the same data.

    >>> class Anything:
    ...     pass
    >>> one, two = Anything(), Anything()
    >>> Hold(b"path of a doctest", one, os.getpid()).begin()
    >>> Hold(b"path of a doctest", two, os.getpid()).begin()
    Traceback (most recent call last):
    ...
    evertally.errors.NoiseReused: ...
    """

    def __init__(self, fingerprint: bytes, mechanism: object, process: int) -> None:
        self._me = weakref.ref(mechanism)
        self._process = process  # where the key was made or loaded
        self._copy = True
        with _lock:
            self._path = _paths.setdefault(fingerprint, _Path())

    def begin(self) -> None:
        """Takes a path that nobody has used."""
        check_process(self._process)
        with _lock:
            if self._path.tick or _alive(self._path):
                raise NoiseReused(
                    "a mechanism with this key, these names and these parameters "
                    + ("has already released ticks" if self._path.tick else "exists")
                    + " in this process; a second one has the same noise, and on other data the two would publish the "
                    "exact difference. Go on with the first one, take a new key or another name, or say "
                    "allow_copy=True if it will see exactly the same data"
                )
            self._own()

    def resume(self, tick: int) -> None:
        """Takes the path over, from a snapshot of this tick: whoever had it so far releases nothing more."""
        check_process(self._process)
        with _lock:
            if tick < self._path.tick:
                raise NoiseReused(
                    f"this snapshot is of tick {tick}, and tick {self._path.tick} has been released in this process; "
                    "on other data the ticks between would be released twice, and publish the exact difference. "
                    "Restore the newest snapshot, or say allow_copy=True if it will see exactly the same data"
                )
            self._own()

    def _own(self) -> None:
        self._path.owner, self._copy = self._me, False

    def check(self) -> None:
        """Refuses a mechanism whose path another one has taken over, or that lives in a copy of its process."""
        if self._copy:
            return
        if os.getpid() != self._process:
            check_process(self._process)
        if self._path.owner is not self._me:
            self._refuse()

    def release(self, tick: int) -> None:
        """A tick is about to be handed out; refused if another mechanism has taken the path over meanwhile."""
        with _lock:
            path, me = self._path, None if self._copy else self._me
            if me is not None and path.owner is not me:
                self._refuse()
            if tick > path.tick:
                path.tick = tick
            # A signal handler may have taken it over just before the tick was noted; after that it cannot. The system
            # was asked for the process when the call began, which takes as long as all of this.
            if me is not None and (path.owner is not me or _here != self._process):
                self.check()

    def _refuse(self) -> NoReturn:
        raise NoiseReused(
            "this stream goes on in a mechanism that was restored from its snapshot; use that one. Two that go on "
            "from one snapshot would publish the exact difference of their data (allow_copy=True: they see the "
            "same)"
        )


def check_process(process: int) -> None:
    """Refuses a key that a fork has brought into this process: its other copy makes the same noise."""
    if os.getpid() != process:
        raise NoiseReused(
            "this key, or a mechanism with it, was copied into another process by a fork: both copies have the same "
            "noise, and on other data they would publish the exact difference. Use it in the process that made it, or "
            'give each process a key of its own: key.derive("shard 1"), key.derive("shard 2")'
        )


def once(fingerprint: bytes, digest: bytes, process: int, what: str = "histogram") -> None:
    """For what releases once and is gone: the same path sees the same data (by a keyed digest), or is refused."""
    check_process(process)
    with _lock:
        if _released_once.setdefault(fingerprint, digest) != digest:
            raise NoiseReused(
                f"this key and name have already released another {what} in this process; the same noise on both "
                f"would publish their exact difference. Give every {what} a name of its own, or a new key"
            )


def named(name: str | None, key: NoiseKey, default: str) -> str:
    """The name of what a key is used for. Only a key that was made for this one thing does without."""
    if name is None and key.private and not key.fresh:
        raise ConfigurationError(
            "this key was loaded, or has made noise for something else: say what it is used for here, name=... "
            "The noise follows from key, names and parameters; whatever runs under the same ones, also in another "
            "process or later, must see exactly the same data, or the difference is published"
        )
    return default if name is None else name


def _alive(path: _Path) -> bool:
    return path.owner is not None and path.owner() is not None
