"""Edges as records: two ends, brought to one spelling and one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evertally.applications.records import Record
from evertally.encode.labels import canonical


def read_edge(record: Any) -> Record | None:
    """(smaller end, larger end) of an undirected edge; None for a loop, or for what is no pair of labels.

    >>> read_edge(("b", "a")), read_edge(("a", "a")), read_edge("ab"), read_edge(None)
    (('a', 'b'), None, None, None)
    """
    if isinstance(record, str) or not isinstance(record, Sequence) or len(record) != 2:
        return None
    one, other = canonical(record[0]), canonical(record[1])
    if one is None or other is None or one == other:
        return None
    return min(one, other), max(one, other)
