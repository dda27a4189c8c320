"""A disk as the log of `disk_log.c` leaves it, and what a power cut may make of it. Not a test.

Promised is what POSIX promises: the bytes of a file after a sync of that file, its name after a sync of its folder.
Of everything else any part may survive: sectors of writes in any order, a length without its bytes (they are zeros), a
name without its bytes, bytes without their name. A rename happens or does not. A write that ends within a sector leaves
the rest of the sector alone, as SQLite takes for granted too.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

Files = dict[str, bytes | None]  # by their paths, each folder before what is in it; None for a folder

_ENTRY = struct.Struct("=ciqII")


@dataclass(frozen=True)
class Call:
    """One entry of the log."""

    kind: str  # (o)pen, (w)rite, (t)runcate, (s)ync, (r)ename, (l)ink, (u)nlink, (m)kdir; - for nothing
    descriptor: int
    offset: int  # of a write; the length after a truncate; the flags of an open
    data: bytes  # of a write; the path of the others
    to: str  # of rename and link

    @property
    def path(self) -> str:
        return self.data.decode()


def read_log(path: Path) -> list[Call]:
    content, at, calls = path.read_bytes(), 0, []
    while at < len(content):
        kind, descriptor, offset, first, second = _ENTRY.unpack_from(content, at)
        at += _ENTRY.size
        data, to = content[at : at + first], content[at + first : at + first + second]
        calls.append(Call(kind.decode(), descriptor, offset, data, to.decode()))
        at += first + second
    return calls


@dataclass
class File:
    """The bytes that are promised, and what was written since the last sync: (offset, data), or (length, None)."""

    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def seen(self) -> bytes:
        """What whoever reads it now sees."""
        return _applied(self.durable, self.pending)

    def sync(self) -> None:
        self.durable, self.pending = self.seen(), []


@dataclass
class Folder:
    """The names that are promised, and what happened to names since the last sync, each of it as a whole."""

    durable: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[list[tuple[str, File | Folder | None]]] = field(default_factory=list)

    def seen(self) -> dict[str, File | Folder]:
        return _named(self.durable, self.pending)

    def sync(self) -> None:
        self.durable, self.pending = self.seen(), []


def _applied(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    result = bytearray(content)
    for offset, data in writes:
        if data is None:
            result = result[:offset].ljust(offset, b"\0")
        else:
            result[len(result) : offset] = bytes(max(0, offset - len(result)))
            result[offset : offset + len(data)] = data
    return bytes(result)


def _named(
    names: dict[str, File | Folder], changes: list[list[tuple[str, File | Folder | None]]]
) -> dict[str, File | Folder]:
    result = dict(names)
    for change in changes:
        for name, what in change:
            if what is None:
                result.pop(name, None)
            else:
                result[name] = what
    return result


class Disk:
    """All below one folder, as of some call of the log."""

    def __init__(self, root: Path) -> None:
        self._root = PurePosixPath(root)
        self.top = Folder()
        self._open: dict[int, File | Folder] = {}

    def put(self, files: Files) -> None:
        """What was there, and safe, before the log began."""
        for name, content in files.items():
            folder, own = self._place(str(self._root / name))
            folder.durable[own] = Folder() if content is None else File(content)

    def apply(self, call: Call) -> None:
        match call.kind:
            case "o":
                self._open[call.descriptor] = self._opened(call.path, call.offset)
            case "w" | "t":
                file = self._open[call.descriptor]
                assert isinstance(file, File)
                file.pending.append((call.offset, call.data if call.kind == "w" else None))
            case "s":
                self._open[call.descriptor].sync()
            case "m":
                self._change(call.path, Folder())
            case "u":
                self._change(call.path, None)
            case "l":
                self._change(call.to, self.at(call.path))
            case "r":
                (folder, old), (same, new) = self._place(call.path), self._place(call.to)
                assert folder is same, "a rename from folder to folder"
                folder.pending.append([(old, None), (new, folder.seen()[old])])
            case "-":
                pass
            case unknown:
                raise AssertionError(f"a call {unknown!r}")

    def _opened(self, path: str, flags: int) -> File | Folder:
        found = self.at(path)
        if found is None:
            assert flags & os.O_CREAT, f"{path} was there before the log began"
            found = File()
            self._change(path, found)
        elif flags & os.O_TRUNC and isinstance(found, File):
            found.pending.append((0, None))
        return found

    def at(self, path: str) -> File | Folder | None:
        """What has this path now."""
        here: File | Folder | None = self.top
        for name in PurePosixPath(path).relative_to(self._root).parts:
            assert isinstance(here, Folder)
            here = here.seen().get(name)
        return here

    def _place(self, path: str) -> tuple[Folder, str]:
        folder = self.at(str(PurePosixPath(path).parent))
        assert isinstance(folder, Folder)
        return folder, PurePosixPath(path).name

    def _change(self, path: str, what: File | Folder | None) -> None:
        folder, name = self._place(path)
        folder.pending.append([(name, what)])

    def after(self, loss: Loss) -> Files:
        """The files that there are when the power is back."""
        return dict(_left(self.top, loss, ""))

    def seen(self) -> Files:
        """The files as whoever read them before the power went saw them."""
        return self.after(Loss(lambda: True))


@dataclass(frozen=True)
class Loss:
    """What a power cut leaves of what is not promised. Asked for each change of names, and for each sector of each
    write (or, without sectors, for each write)."""

    names: Callable[[], bool]
    bytes: Callable[[], bool] = lambda: True
    sector: int = 0
    late: bool = False  # of the names of files in each folder the first change is lost, the later ones are not


def losses(seed: int, several: int) -> Iterator[tuple[str, Loss]]:
    """Nothing survives, everything does, names without bytes, bytes without names, later names without the first, and
    several times anything."""
    yes, no = (lambda: True), (lambda: False)
    yield "nothing", Loss(no, no)
    yield "all", Loss(yes)
    yield "names", Loss(yes, no)
    yield "bytes", Loss(no)
    yield "what came later", Loss(yes, late=True)
    for number in range(several):
        chance = random.Random(f"{seed} {number}")
        kept = chance.choice((0.1, 0.5, 0.9, 0.98))

        def survives(chance: random.Random = chance, kept: float = kept) -> bool:
            return chance.random() < kept

        yield f"some {number}", Loss(survives, survives, chance.choice((0, 512, 4096)))


def _left(folder: Folder, loss: Loss, prefix: str) -> Iterator[tuple[str, bytes | None]]:
    files = [change for change in folder.pending if not any(isinstance(what, Folder) for _, what in change)]
    lost = files[: loss.late]
    names = _named(folder.durable, [change for change in folder.pending if change not in lost and loss.names()])
    for name, what in sorted(names.items()):
        if isinstance(what, File):
            yield prefix + name, _applied(what.durable, list(_surviving(what.pending, loss)))
        else:
            yield prefix + name, None
            yield from _left(what, loss, f"{prefix}{name}/")


def _surviving(writes: list[tuple[int, bytes | None]], loss: Loss) -> Iterator[tuple[int, bytes | None]]:
    for offset, data in writes:
        if data is None or not loss.sector:
            if loss.bytes():
                yield offset, data
            continue
        start = offset
        while start < offset + len(data):
            stop = min(offset + len(data), (start // loss.sector + 1) * loss.sector)
            if loss.bytes():
                yield start, data[start - offset : stop - offset]
            start = stop


def restored(content: Files, folder: Path) -> None:
    """Puts these files into a folder."""
    for name, data in content.items():
        path = folder / name
        if data is None:
            path.mkdir(mode=0o700)
        else:
            path.write_bytes(data)
            path.chmod(0o600)
