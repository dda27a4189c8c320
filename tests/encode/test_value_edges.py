"""Edges of cells that grow by a ratio, where floats end."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evertally.encode.cells import MOST_CELLS, Cells, log_edges, read_edges
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


def test_what_declares_edges_and_says_more_is_refused() -> None:
    """A word that nobody reads would be taken for a choice that counts."""
    right = {"from": 1, "to": 8, "ratio": 2}
    assert read_edges(right) == [1, 2, 4, 8]
    for wrong in (
        {**right, "unit": "ms"},
        {**right, "base": 2},
        {"from": 1, "to": 8, "rate": 2},
        {"to": 8, "ratio": 2},
    ):
        with pytest.raises(ConfigurationError, match="from"):
            read_edges(wrong)


def test_as_many_edges_as_there_may_be() -> None:
    assert len(read_edges(range(MOST_CELLS))) == MOST_CELLS
    with pytest.raises(ConfigurationError, match="fewer"):
        read_edges(range(MOST_CELLS + 1))


@pytest.mark.parametrize("wrong", [None, "x", math.inf, math.nan])
def test_each_end_and_the_ratio_is_a_number(wrong: Any) -> None:
    for place in range(3):
        given: list[Any] = [1, 8, 2]
        given[place] = wrong
        with pytest.raises(ConfigurationError, match="log_edges takes"):
            log_edges(*given)


@pytest.mark.parametrize("outside", ["ends", "cells"])
def test_where_a_number_lies_among_the_cells(outside: Any) -> None:
    """All values of the cells up to a are at most x, and all values that are at most x are in the cells up to b."""
    cells = Cells([0, 10, 20], outside)
    values = [-5.0, 0.0, 3.0, 10.0, 13.0, 20.0, 31.0]
    for x in values:
        a, b = cells.at(x)
        assert -1 <= a <= b < cells.count
        places = [int(cells.numbers([value])[0]) for value in values]
        if outside == "cells":
            assert all(value <= x for value, place in zip(values, places, strict=True) if place <= a)
        assert all(place <= b for value, place in zip(values, places, strict=True) if value <= x)
