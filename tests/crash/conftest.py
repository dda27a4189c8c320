"""The nursery that all tests of a worker share, and a quick place for files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from nursery import Nursery, shared


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
