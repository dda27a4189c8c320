"""The key of a stream and who holds it: one process at a time, and never a key that was used for something else.

Three things keep a second process out. The lock file beside the key: it is there before there is a key (and goes again
if there will be none), and earlier versions know it. A lock on the key file itself, whatever becomes of the lock file:
by its inode, so also for whoever comes to it by another name. And, should both be replaced, generation and tick in
every transaction of the store.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.state.sidecar import sidecar_path, sync_directory

Hold = Callable[[], None]  # locks the key file; again, if it is held already, does nothing


@contextmanager
def fence(key_file: Path) -> Iterator[Hold]:
    """Holds the stream for this process: two live copies of one stream would release one tick twice.

    What it gives locks a key file that was not there before.
    """
    lock = Path(f"{key_file}.lock")
    new_folder = not lock.parent.exists()
    with ExitStack() as held:
        try:
            lock.parent.mkdir(mode=0o700, exist_ok=True)  # a key has a folder of its own, away from the state
        except OSError as error:
            raise StateError(f"cannot lock the stream: {lock}: {error.strerror}") from None
        _held(lock, os.O_RDWR | os.O_CREAT, held)
        held.callback(_leave_no_trace, lock, key_file, new_folder)
        locked: list[int] = []

        def hold() -> None:
            if not locked:
                # Some network file systems lock only what is open for writing; a key may be read-only all the same.
                locked.append(_held(key_file, os.O_RDWR if os.access(key_file, os.W_OK) else os.O_RDONLY, held))

        if key_file.exists():
            hold()
        yield hold


def _held(path: Path, flags: int, held: ExitStack) -> int:
    """A descriptor of the file as it is under its name now, locked."""
    while True:
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise StateError(f"cannot lock the stream: {path}: {error.strerror}") from None
        held.callback(os.close, descriptor)
        _lock(descriptor, path)
        if path.exists() and os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor


def _leave_no_trace(lock: Path, key_file: Path, new_folder: bool) -> None:
    """A stream that was refused before it had a key leaves nothing behind. Called while the lock is held: who has
    opened the file meanwhile finds another one under its name, or none."""
    if not key_file.exists():
        with suppress(OSError):
            lock.unlink()
            if new_folder:
                lock.parent.rmdir()


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise StateError(f"another process is running this stream (it holds {path}); wait for it") from None
        raise StateError(
            f"cannot lock {path}: {error.strerror}. A stream is run by one process at a time: put key and state on a "
            "file system that can lock files"
        ) from None


def obtain_key(key_file: Path, state_file: Path, nothing_was_released: bool = False) -> tuple[Key, bool]:
    """The stream's key, and whether it is new. A key is only ever made for a stream that has never run.

    A key that is there without sidecar and state may have released anything: a new stream under it would put the same
    noise on other data. `nothing_was_released` is somebody's word that it has not.
    """
    left = next((path for path in (sidecar_path(key_file), state_file) if path.exists()), None)
    if key_file.exists():
        key = Key.load(key_file)
        if not key.private:
            raise StateError(f"the key {key_file} is a simulation key; what it releases is not private")
        if left is None and not nothing_was_released:
            raise StateError(
                f"the key {key_file} is there, but neither {sidecar_path(key_file)} nor the state file {state_file}: "
                "nothing says how far this stream has come. If it has released anything, starting over would put the "
                "same noise on other data and reveal the difference: bring both files back, or start a new stream with "
                "new key, state and output files. If nothing was ever released under this key, here or elsewhere, say "
                "so with --nothing-was-released"
            )
        _forget_copy(key_file)
        return key, False
    if left is None:
        return Key.generate(), True
    made = _new(key_file)
    if left == sidecar_path(key_file) and not state_file.exists() and made.exists():
        return Key.load(made), True  # `keep_key` was interrupted
    raise StateError(
        f"the key file {key_file} is missing but {left} is there: this stream has run before. "
        "Bring the key back; without it the stream cannot go on. A new stream needs new files"
    )


def keep_key(key: Key, key_file: Path, bind: Callable[[], object] = lambda: None) -> None:
    """Saves a new key so that a crash leaves a whole key file or none. `bind` writes the sidecar: a key is never
    there without it, for then nobody could tell it from one that has lost it."""
    temporary = _new(key_file)
    try:
        if not _is(key, temporary):  # an interrupted call has left it, and perhaps a sidecar that needs it
            temporary.unlink(missing_ok=True)
            key.save(temporary)
        bind()
        os.link(temporary, key_file)  # unlike a rename, never overwrites
        sync_directory(key_file)  # after a power cut one of the two names must be there
        temporary.unlink()
        sync_directory(key_file)
        with suppress(PermissionError):  # a folder that `fence` did not make may be closed to this user
            sync_directory(key_file.parent)
    except OSError as error:
        raise StateError(f"cannot write the key file {key_file}: {error.strerror}") from None


def _is(key: Key, file: Path) -> bool:
    try:
        return file.exists() and Key.load(file).fingerprint() == key.fingerprint()
    except StateError:
        return False


def _new(key_file: Path) -> Path:
    return Path(f"{key_file}.new")


def _forget_copy(key_file: Path) -> None:
    """A crash in `keep_key` leaves the key under two names; whoever destroys one must not be left with the other."""
    temporary = _new(key_file)
    if temporary.exists() and temporary.samefile(key_file):
        try:
            temporary.unlink()
        except OSError as error:
            raise StateError(f"cannot remove {temporary}, a second name of the key: {error.strerror}") from None
