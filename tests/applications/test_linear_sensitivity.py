"""Rows of factorization-counting 6.4 and 6.5 for linear statistics: never refuted, attained, smaller ones refuted."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, permutations
from typing import Any

import pytest
from linear_streams import APART, K4, MEET, NODES, SHAPES, made, without_node, without_two

from evertally.applications.graph import CutGraph, EdgeCount
from evertally.applications.paths import Path, difference, square_root
from evertally.applications.records import Records
from evertally.applications.refuter import Stream, removed, search, streams
from evertally.privacy import Change
from long import LONG

LENGTH = 5 if LONG else 4


def signed(records: list[Any]) -> list[Any]:
    return [(*record[:2], sign) for record in records for sign in (1, -1)]


def deletions(records: list[Any]) -> list[Any]:
    return [(*record[:2], -1) for record in records]


PUBLIC = [record[:2] for record in K4]

# options, streams over these, then for edge count, degree vector and adjacency: certified Gamma^2, certified l1, the
# largest S3 value and the largest l1 that all these streams have. Where they differ the row of the table is not tight.
ROWS: list[tuple[dict[str, Any], list[list[Any]], list[tuple[int, int, int, int]]]] = [
    ({"copies": "ignored"}, [MEET, APART], [(2, 2, 2, 2), (4, 4, 4, 4), (2, 2, 2, 2)]),
    ({"copies": "counted"}, [MEET, APART], [(1, 1, 1, 1), (2, 2, 2, 2), (1, 1, 1, 1)]),
    ({"updates": "both"}, [signed(MEET), signed(APART)], [(2, 2, 2, 2), (4, 4, 4, 4), (2, 2, 2, 2)]),
    ({"updates": "both", "copies": "counted"}, [signed(MEET)], [(1, 1, 1, 1), (2, 2, 2, 2), (1, 1, 1, 1)]),
    ({"updates": "delete", "initial": PUBLIC}, [deletions(APART)], [(2, 2, 2, 2), (4, 4, 4, 4), (2, 2, 2, 2)]),
    ({"max_degree": 1}, [K4], [(5, 3, 5, 3), (8, 6, 6, 6), (3, 3, 3, 3)]),
    ({"max_degree": 1, "copies": "counted"}, [K4], [(5, 3, 5, 3), (8, 6, 6, 6), (3, 3, 3, 3)]),
    (
        {"copies": "ignored", "neighbours": "replace"},
        [[*MEET, None], [*APART, None]],
        [(8, 4, 2, 2), (16, 8, 8, 8), (8, 4, 4, 4)],
    ),
    (
        {"copies": "counted", "neighbours": "replace"},
        [[*MEET, None], [*APART, None]],
        [(1, 1, 1, 1), (4, 4, 4, 4), (2, 2, 2, 2)],
    ),
    (
        {"updates": "both", "copies": "counted", "neighbours": "replace"},
        [signed(MEET)],
        [(4, 2, 4, 2), (8, 4, 8, 4), (4, 2, 4, 2)],
    ),
    (
        {"updates": "both", "neighbours": "replace"},
        [signed(MEET), signed(APART)],
        [(8, 4, 8, 4), (12, 8, 12, 8), (4, 4, 4, 4)],
    ),
]


@pytest.mark.parametrize(("options", "families", "columns"), ROWS, ids=lambda part: str(part)[:60])
def test_rows_are_never_refuted(options: Any, families: Any, columns: Any) -> None:
    for kind, (gamma, l1, split, longest) in zip(SHAPES, columns, strict=True):
        statistic = made(kind, **options)
        assert statistic.sensitivity == Change(l1, gamma, l1)
        found = [statistic.refute(records, streams(records, LENGTH)) for records in families]
        assert not any(worst.refuted or worst.split > gamma for worst in found)
        assert max(worst.split for worst in found) == split
        assert max(worst.l1 for worst in found) == longest


@pytest.mark.parametrize("kind", SHAPES)
def test_what_comes_once_is_plain(kind: Any) -> None:
    """copies="absent": every order of five edges, none of them twice, insertions and deletions."""
    orders = list(permutations(K4[:5]))
    for options, sign in (({}, 1), ({"updates": "delete", "initial": PUBLIC}, -1)):
        statistic = made(kind, copies="absent", **options)
        some = [tuple((u, v, sign) for u, v, _ in order) for order in orders]
        worst = statistic.refute(K4, some)
        assert (worst.split, worst.l1) == (statistic.sensitivity.l2_squared, statistic.sensitivity.l1)
        assert not worst.refuted


def test_smaller_rows_are_refuted() -> None:
    """The paper's charge of 1 for every linear statistic, where something is remembered; two of its kind."""
    for kind, plain in zip(SHAPES, (1, 2, 1), strict=True):
        worst = made(kind).refute(APART, streams(APART, 3))
        assert replace(worst, claim=Change(9, plain, 9)).refuted
        assert replace(worst, claim=Change(plain, 9, 9)).refuted
    both = made(EdgeCount, updates="both", neighbours="replace")
    worst = both.refute(signed(MEET), streams(signed(MEET), 3))
    assert replace(worst, claim=Change(9, 4, 9)).refuted, "four of the unconditional row are not enough"


def played(stream: Stream) -> Path:
    encoder = made(EdgeCount).encoder()
    return [encoder.changes(Records(() if record is None else (record,))) for record in stream]


def test_ignored_copies_under_the_square_root() -> None:
    """14.1, item 13: an edge that is there before its copy, or not, at T = 16; 1 is exceeded, 2 never."""
    edge = K4[0]
    some = [(edge, *(edge if t == other else None for t in range(1, 16))) for other in range(1, 16)]
    values = []
    for pair in chain.from_iterable(removed(stream) for stream in some):
        worst = search(made(EdgeCount).encoder, [pair], Change(2, 2, 2))
        assert worst.l2_squared <= 2
        values.append(square_root(difference(*map(played, pair))))
    assert round(max(values), 4) == 1.4233


def test_a_projected_degree_vector_reaches_its_row() -> None:
    """Two edges flip that have an end in common."""
    stream = tuple((u, v, 1) for u, v in ("ac", "bd", "ab", "ae", "be"))
    for copies in ("ignored", "counted"):
        statistic = made(SHAPES[1], max_degree=2, copies=copies)
        worst = search(statistic.encoder, removed(stream), statistic.certified().change)
        assert (worst.split, worst.l1, worst.refuted) == (8, 6, False)


def test_nodes() -> None:
    """A node of K4 becomes absent, in every order of the edges (some of them, unless there is time)."""
    orders = list(permutations(K4))[:: 1 if LONG else 7]
    for kind, (gamma, l1) in zip(SHAPES, [(9, 3), (12, 6), (3, 3)], strict=True):
        statistic = made(kind, vertices=NODES, protects="node", copies="absent")
        assert statistic.sensitivity == Change(l1, gamma, l1)
        worst = search(statistic.encoder, (without_node(s, v) for s in orders for v in NODES), statistic.sensitivity)
        assert (worst.split, worst.l1, worst.refuted) == (gamma, l1, False)


def test_no_projection_is_safe_for_nodes() -> None:
    """A star, then a matching: projected to degree 1, the graphs with and without the middle differ in half of it."""
    star = [("0", f"{i:02}", 1) for i in range(1, 21)]
    matching = [(f"{i:02}", f"{i + 1:02}", 1) for i in range(1, 21, 2)]
    encoder = made(EdgeCount, max_degree=1).encoder
    worst = search(encoder, [without_node((*star, *matching), "0")], Change(1, 1, 1))
    assert worst.l1 > 9


@pytest.mark.parametrize("kind", SHAPES)
def test_users(kind: Any) -> None:
    """Two records of a user: Gamma times 2; a user in place of another: times 4, of a single record there or not."""
    alone = made(kind).sensitivity
    options = {"unit": "user", "max_events_per_user": 2}
    assert made(kind, **options).sensitivity == alone.group(2)
    assert made(kind, neighbours="replace", **options).sensitivity == alone.group(4)
    worst = search(made(kind).encoder, without_two(streams([*MEET, K4[5]], 4)), alone.group(2))
    assert not worst.refuted
    assert worst.split > alone.l2_squared


@pytest.mark.parametrize(("is_signed", "relation", "gamma", "l1"), [
    (False, "add_remove", 9, 3),
    (False, "replace", 18, 6),
    (True, "add_remove", 9, 3),
    (True, "replace", 36, 6),
])  # fmt: skip
def test_weights(is_signed: bool, relation: str, gamma: int, l1: int) -> None:
    statistic = made(CutGraph, copies="counted", max_weight=3, signed=is_signed, neighbours=relation)
    assert statistic.sensitivity == Change(l1, gamma, l1)
    weights = [-3, -1, 2, 3] if is_signed else [1, 3]
    records = [(u, v, w) for u, v in (("a", "b"), ("a", "c")) for w in weights]
    worst = statistic.refute(records, streams(records, 2))
    assert (worst.split, worst.l1, worst.refuted) == (gamma, l1, False)
    assert replace(worst, claim=Change(l1, gamma - 1, l1)).refuted
