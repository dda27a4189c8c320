"""The nursery that all tests of a worker share, and a quick place for files."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crash_stream import body, events, plain
from nursery import Nursery, shared
from one_service import Service


@pytest.fixture(scope="session")
def nursery() -> Nursery:
    return shared()


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: what a killed process wrote stays, and fsync costs nothing."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def stopped(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream that was killed at tick 7: snapshots of tick 4, events since, and a batch that waits."""
    folder = tmp_path_factory.mktemp("stopped") / "stream"
    service = Service(nursery, folder, plain(snapshot_every=4))
    service.start()
    for tick in range(1, 8):
        service.sent(tick, tick)
        service.close(tick)
    service.sent(8, 8)
    service.kill()
    with closing(sqlite3.connect(folder / "visits.state")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def service(nursery: Nursery, stopped: Path, tmp_path: Path) -> Service:
    """The same stream, to be damaged."""
    folder = tmp_path / "stream"
    shutil.copytree(stopped, folder)
    service = Service(nursery, folder, plain(snapshot_every=4))
    for number in range(1, 9):  # what it was sent before
        service.world.sent[f"canary-0:{number}"] = body(events(0, number, number), number)
    return service
