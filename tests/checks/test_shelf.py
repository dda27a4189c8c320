"""The contract of shelves: kept by a disk, whoever writes; broken in the ways in which stores break it, and found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evertally.checks import check_shelf
from evertally.runtime.state.shelf import DiskShelf


@pytest.mark.parametrize("processes", [False, True])
def test_a_disk_keeps_it(tmp_path: Path, processes: bool) -> None:
    shelf = DiskShelf(tmp_path / "root")
    assert check_shelf(shelf, processes=processes) == 100
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_it_touches_nothing_else(tmp_path: Path) -> None:
    shelf = DiskShelf(tmp_path)
    shelf.put_new("genesis", b"mine")
    check_shelf(shelf, names=3)
    assert shelf.read("genesis") == b"mine"
    shelf.put_new("evertally-check/mine", b"mine")
    with pytest.raises(AssertionError, match="something is in"):
        check_shelf(shelf)
    assert shelf.read("evertally-check/mine") == b"mine"


class AsksFirst(DiskShelf):
    """Looks whether a name is taken, and writes a little later."""

    def put_new(self, name: str, data: bytes) -> bytes:
        found = self.read(name)
        if found is not None:
            return found
        time.sleep(0.01)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data


class SwallowsDefeat(DiskShelf):
    """The first writer wins, and the others are told that they did."""

    def put_new(self, name: str, data: bytes) -> bytes:
        super().put_new(name, data)
        return data


class Overwrites(DiskShelf):
    def put_new(self, name: str, data: bytes) -> bytes:
        (self.folder / name).unlink(missing_ok=True)
        return super().put_new(name, data)


class Fails(DiskShelf):
    """Takes it for a fault that somebody else was quicker."""

    def put_new(self, name: str, data: bytes) -> bytes:
        found = super().put_new(name, data)
        if found != data and name.endswith("7"):
            raise OSError("taken")
        return found


class Unsorted(DiskShelf):
    def names(self, folder: str) -> list[str]:
        return super().names(folder)[::-1]


class Empty(DiskShelf):
    """No bytes are as good as none."""

    def read(self, name: str) -> bytes | None:
        return super().read(name) or None


class Keeps(DiskShelf):
    def clear(self, folder: str) -> None:
        pass


@pytest.mark.parametrize("processes", [False, True])
def test_to_ask_and_then_to_write_is_found(tmp_path: Path, processes: bool) -> None:
    with pytest.raises(AssertionError, match="of 8 writers of one name believe that they have won"):
        check_shelf(AsksFirst(tmp_path), names=5, processes=processes)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (SwallowsDefeat, "a name that was taken did not keep what it had"),
        (Overwrites, "a name that was taken did not keep what it had"),
        (Fails, "stopped with OSError|stopped with BrokenBarrierError"),
        (Unsorted, "names of a folder are not all that was put, sorted"),
        (Empty, "what is read is not what was put"),
        (Keeps, "what was taken away can still be read"),
    ],
)
def test_other_ways_to_break_it_are_found(tmp_path: Path, broken: type[DiskShelf], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_shelf(broken(tmp_path), names=10)
