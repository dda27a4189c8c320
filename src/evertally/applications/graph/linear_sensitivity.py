"""How far one record, or one node, can move linear statistics of a graph: the rows of factorization-counting 6.4, 6.5.

Each row is (Gamma^2, l1) of the edge count, the degree vector and the adjacency (cut) vector. Rows with a memory
(copies, absent edges, ranks) rest on S3, the others on S1 (2.4).
"""

from __future__ import annotations

from typing import Literal

from evertally.applications.encoded import Certified
from evertally.privacy import Change, Neighbours

Shape = Literal["edge count", "degree vector", "adjacency"]
Ingestion = Literal["plain", "unconditional", "door", "presence", "projection"]
Row = dict[Shape, tuple[int, int]]


def _row(count: tuple[int, int], degrees: tuple[int, int], pairs: tuple[int, int]) -> Row:
    return {"edge count": count, "degree vector": degrees, "adjacency": pairs}


# plain: each record is one edge more (less), whatever came before. unconditional: one more or one less, as it says.
# door: copies are nothing. presence: insertions of what is there and deletions of what is not are nothing.
ADD_REMOVE: dict[Ingestion, Row] = {
    "plain": _row((1, 1), (2, 2), (1, 1)),
    "unconditional": _row((1, 1), (2, 2), (1, 1)),
    "door": _row((2, 2), (4, 4), (2, 2)),
    "presence": _row((2, 2), (4, 4), (2, 2)),
    "projection": _row((5, 3), (8, 6), (3, 3)),
}
# Elsewhere Gamma times 2. Plain: an edge in place of another changes no count, but a record that is dropped is in the
# domain too, so 1 is charged.
REPLACE: dict[Ingestion, Row] = {
    "plain": _row((1, 1), (4, 4), (2, 2)),
    "unconditional": _row((4, 2), (8, 4), (4, 2)),
    "presence": _row((8, 4), (12, 8), (4, 4)),
}


def of_record(shape: Shape, ingestion: Ingestion, relation: Neighbours) -> Certified:
    """One record there or not, or another in its place.

    >>> of_record("degree vector", "door", Neighbours.REPLACE).change
    Change(l1=8, l2_squared=16, linf=8)
    """
    removal = _change(ADD_REMOVE[ingestion][shape])
    section = f"factorization-counting 6.5, {shape}, {ingestion}"
    if relation is Neighbours.ADD_REMOVE:
        return Certified(removal, section)
    own = REPLACE.get(ingestion)
    return Certified(removal.group(2) if own is None else _change(own[shape]), f"{section}, REPLACE", removal)


def of_weights(max_weight: int, signed: bool, relation: Neighbours) -> Certified:
    """One weighted increment of the adjacency vector: Gamma of 6.4 times the largest weight.

    >>> of_weights(3, True, Neighbours.REPLACE).change
    Change(l1=6, l2_squared=36, linf=6)
    """
    removal = Change(1, 1, 1).group(max_weight)
    if relation is Neighbours.ADD_REMOVE:
        return Certified(removal, "factorization-counting 6.4, cut vector")
    one = Change(2, 4, 2) if signed else Change(2, 2, 2)
    section = f"factorization-counting 6.4, cut vector, REPLACE{', signed' if signed else ''}"
    return Certified(one.group(max_weight), section, removal)


def of_node(shape: Shape, max_degree: int) -> Certified:
    """One node with all its edges becomes absent; nothing comes twice.

    >>> of_node("degree vector", 3).change
    Change(l1=6, l2_squared=12, linf=6)
    """
    d = max_degree
    rows = _row((d * d, d), (d * d + d, 2 * d), (d, d))
    return Certified(_change(rows[shape]), f"factorization-counting 6.5, {shape}, node level")


def _change(row: tuple[int, int]) -> Change:
    gamma_squared, l1 = row
    return Change(l1, gamma_squared, l1)
