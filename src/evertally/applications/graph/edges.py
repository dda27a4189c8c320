"""Edges as records: two ends, brought to one spelling and one order. Each reader is a function of the record alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from evertally.applications.records import Record
from evertally.encode.labels import canonical, is_text, label_bytes
from evertally.encode.plain import whole
from evertally.encode.updates import LONGEST_NAME, sign_of


def read_edge(record: Any) -> Record | None:
    """(smaller end, larger end) of an undirected edge; None for a loop, or for what is no pair of labels.

    >>> read_edge(("b", "a")), read_edge(("a", "a")), read_edge("ab"), read_edge(None)
    (('a', 'b'), None, None, None)
    """
    entries = entries_of(record)
    return ends(*entries) if len(entries) == 2 else None


def read_weighted(record: Any, max_weight: int, *, signed: bool) -> Record | None:
    """(smaller end, larger end, amount) of a pair or of (one end, other end, weight). The weight is clipped to
    0..max_weight, or from -max_weight on; never against what the edge weighs now (6.4), which is secret.

    >>> read_weighted(("b", "a"), 5, signed=False), read_weighted(("a", "b", 7.9), 5, signed=False)
    (('a', 'b', 1), ('a', 'b', 5))
    >>> read_weighted(("a", "b", -7), 5, signed=True), read_weighted(("a", "b", -7), 5, signed=False)
    (('a', 'b', -5), None)
    """
    entries = entries_of(record)
    if len(entries) not in (2, 3):
        return None
    edge = ends(*entries[:2])
    amount = 1 if len(entries) == 2 else whole(entries[2], max_weight)
    return None if edge is None or amount == 0 or (amount < 0 and not signed) else (*edge, amount)


def read_update(record: Any) -> Record | None:
    """(smaller end, larger end, 1 or -1) of (action, one end, other end). There is no action that toggles: two worlds
    would stay apart for ever (6.5).

    >>> read_update(("insert", "b", "a")), read_update((-1, "a", "b")), read_update(("toggle", "a", "b"))
    (('a', 'b', 1), ('a', 'b', -1), None)
    """
    entries = entries_of(record)
    if len(entries) != 3:
        return None
    edge, sign = ends(*entries[1:]), sign_of(entries[0])
    return None if edge is None or sign is None else (*edge, sign)


def ends(one: Any, other: Any) -> tuple[str, str] | None:
    """Two different labels in their order."""
    a, b = vertex(one), vertex(other)
    if a is None or b is None or a == b:
        return None
    return (a, b) if a < b else (b, a)


def vertex(value: Any) -> str | None:
    """The one spelling of a vertex. What cannot be written in UTF-8 is none: two such labels may be one in a snapshot.

    >>> vertex(7), vertex("\\ud83d"), vertex("x" * 2000)
    ('7', None, None)
    """
    name = canonical(value)
    return name if name is not None and is_text(name) and len(label_bytes(name)) <= LONGEST_NAME else None


def entries_of(record: Any) -> list[Any]:
    """The entries of a tuple, a list or an array; none of anything else."""
    # By their own code: what a subclass iterates over may be something else, or endless.
    kind = type(record)
    for own in (tuple, list):
        if issubclass(kind, own):
            return list(own.__iter__(record))
    return list(np.ndarray.tolist(record)) if issubclass(kind, np.ndarray) and record.ndim == 1 else []
