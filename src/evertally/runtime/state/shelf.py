"""Named bytes that several machines share, where the first writer of a name wins.

What keeps two drivers apart must be one operation of the store itself: to ask whether a name is taken and then to write
lets both win. On a disk, and on NFS, `link` is such an operation; other stores need an adapter of their own that passes
`check_shelf` (docs/theory/distributed.md 3).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.state.sidecar import sync_directory


class Shelf(Protocol):
    """Where a distributed stream keeps its files. Names are relative, with / between their parts. What is put is
    durable, name included, when the call returns."""

    def read(self, name: str) -> bytes | None:
        """The bytes under a name; None if there are none."""

    def put_new(self, name: str, data: bytes) -> bytes:
        """Puts bytes under a name that is not taken, in one step; gives what is there afterwards, whoever put it."""

    def clear(self, folder: str) -> None:
        """Takes everything away that is directly in a folder, what dead writers left included."""

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder, sorted."""


class DiskShelf:
    """A folder of a disk, or of NFS. Only for its owner.

    >>> import tempfile
    >>> shelf = DiskShelf(tempfile.mkdtemp() + "/root")
    >>> shelf.put_new("closes/0", b"first"), shelf.put_new("closes/0", b"second"), shelf.read("closes/1")
    (b'first', b'first', None)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"cannot read {self.folder / name}: {error.strerror}") from None

    def put_new(self, name: str, data: bytes) -> bytes:
        path = self.folder / name
        # A name that nobody else makes: attempts of one task may run at the same time, on several machines.
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            self._make(path.parent)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                with suppress(FileExistsError):
                    os.link(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
            sync_directory(path)
            # Read back, not concluded: a lost answer of NFS looks like a defeat.
            return path.read_bytes()
        except OSError as error:
            raise StateError(f"cannot write {path}: {error.strerror}; the stream stops") from None

    def clear(self, folder: str) -> None:
        with suppress(OSError):  # what cannot be taken away now is taken away by the next batch
            for name in os.listdir(self.folder / folder):
                (self.folder / folder / name).unlink(missing_ok=True)
            (self.folder / folder).rmdir()

    def names(self, folder: str) -> list[str]:
        try:
            found = os.listdir(self.folder / folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StateError(f"cannot look into {self.folder / folder}: {error.strerror}") from None
        return sorted(name for name in found if not name.startswith("."))

    def _make(self, folder: Path) -> None:
        if folder.exists():
            return
        self._make(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            sync_directory(folder)


OpenShelf = Callable[[str], Shelf]
_ADAPTERS: dict[str, OpenShelf] = {}


def register_shelf(scheme: str, adapter: OpenShelf) -> None:
    """Says who opens places such as "s3://bucket/root": a function of that text. Workers call it, too, so it must be
    registered where they import it. Try it with `evertally.checks.check_shelf` first."""
    _ADAPTERS[scheme] = adapter


def open_shelf(place: str) -> Shelf:
    """The shelf of a folder, or of an address whose scheme has an adapter.

    >>> open_shelf("s3://bucket/root")
    Traceback (most recent call last):
    ...
    evertally.errors.ConfigurationError: nobody has said how names of "s3" are put where there are none: ...
    """
    scheme, separator, rest = place.partition("://")
    if not separator:
        return DiskShelf(place)
    if scheme == "file":
        return DiskShelf(rest)
    if scheme not in _ADAPTERS:
        raise ConfigurationError(
            f'nobody has said how names of "{scheme}" are put where there are none: register_shelf("{scheme}", ...), '
            "or take a folder that all machines see. Two drivers could both win otherwise"
        )
    return _ADAPTERS[scheme](place)
