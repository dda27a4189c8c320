from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests of a file. Its ticks close on request; three of them are out."""
    with served(tmp_path_factory.mktemp("service")) as running:
        assert running.close_until(3).json() == {"released": 3}
        yield running
