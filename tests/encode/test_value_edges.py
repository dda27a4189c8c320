"""Edges of cells that grow by a ratio, where floats end."""

from __future__ import annotations

import math

import pytest

from evertally.encode.cells import MOST_CELLS, log_edges
from evertally.errors import ConfigurationError


def test_edges_over_all_floats() -> None:
    """10^600 is beyond floats, 10^-300 times it is not."""
    edges = log_edges(1e-300, 1e300, 10)
    assert len(edges) == 601
    assert all(math.isclose(edge, 10.0 ** (k - 300), rel_tol=1e-12) for k, edge in enumerate(edges))


def test_as_many_cells_as_there_may_be() -> None:
    ratio = math.exp(1 / MOST_CELLS)
    assert len(log_edges(1, math.exp(1 - 2 / MOST_CELLS), ratio)) == MOST_CELLS - 1
    with pytest.raises(ConfigurationError, match="cells"):
        log_edges(1, math.exp(1 + 2 / MOST_CELLS), ratio)
