"""Histograms of numbers: bins between declared edges in place of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evertally.encode.cells import Cells, Outside, read_edges
from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours

Edges = Sequence[float] | Mapping[str, float]


def bins(edges: Edges, outside: Outside | None, neighbours: str | Neighbours) -> Cells:
    """The bins of a histogram of numbers. A value lies in one of them (users-and-domains 4): what one event moves is
    what it moves in a histogram of categories, one of which it has."""
    if Neighbours.parse(neighbours) is Neighbours.INDEPENDENT:
        raise ConfigurationError('a value lies in one bin: use "add_remove" or "replace"')
    return Cells(read_edges(edges), outside or "ends")


def check_categories_or_edges(categories: object, edges: object, outside: object) -> None:
    """Exactly one of them."""
    if (categories is None) == (edges is None):
        raise ConfigurationError(
            "a histogram has either categories, a list of labels, or edges, increasing numbers between which values "
            "are counted, e.g. edges=[0, 10, 20, 60]"
        )
    if outside is not None and edges is None:
        raise ConfigurationError("outside says what becomes of values beyond the edges: it goes with edges")
