"""What tests of applications share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evertally.counting.processes import PROCESSES


@pytest.fixture
def no_more_processes() -> Iterator[None]:
    """What a test registers is forgotten after it: others go through the list of all processes."""
    before = dict(PROCESSES)
    yield
    PROCESSES.clear()
    PROCESSES.update(before)
