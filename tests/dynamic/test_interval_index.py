"""The closed forms of dynamic-data 6.2 against a tree that is really built."""

from __future__ import annotations

import pytest

from evertally.dynamic.interval_index import left_ancestor, level, query_chain, update_chain, window_end


def ancestors(levels: int) -> dict[int, list[int]]:
    """Of every node of a full binary search tree over 1..2^levels - 1, from the node itself to the root."""
    paths = {}
    for number in range(1, 2**levels):
        low, high, path = 0, 2**levels, []
        while True:
            middle = (low + high) // 2
            path.append(middle)
            if middle == number:
                break
            low, high = (middle, high) if number > middle else (low, middle)
        paths[number] = path[::-1]
    return paths


@pytest.mark.parametrize("levels", range(1, 11))
def test_the_closed_forms_are_those_of_the_tree(levels: int) -> None:
    last = 2**levels - 1
    for number, path in ancestors(levels).items():
        left = [other for other in path if other < number]
        right = [other for other in path if other > number]
        assert level(number) == levels - len(path) + 1
        assert left_ancestor(number) == (left[0] if left else 0)
        assert query_chain(number) == [number, *left]
        assert update_chain(number, last) == [number, *right]


def test_a_node_is_asked_in_its_window_and_never_again() -> None:
    asked: dict[int, list[int]] = {}
    for q in range(1, 2000):
        for number in query_chain(q):
            asked.setdefault(number, []).append(q)
    for number in range(1, 1000):
        assert asked[number] == list(range(number, window_end(number) + 1))


def test_the_table_of_the_specification() -> None:
    table = {i: (level(i), left_ancestor(i), i, window_end(i)) for i in (1, 2, 3, 4, 5, 6, 7, 8, 12)}
    assert table == {
        1: (1, 0, 1, 1),
        2: (2, 0, 2, 3),
        3: (1, 2, 3, 3),
        4: (3, 0, 4, 7),
        5: (1, 4, 5, 5),
        6: (2, 4, 6, 7),
        7: (1, 6, 7, 7),
        8: (4, 0, 8, 15),
        12: (3, 8, 12, 15),
    }
    assert [query_chain(q) for q in (5, 7, 15)] == [[5, 4], [7, 6, 4], [15, 14, 12, 8]]
    assert [update_chain(a, 16) for a in (1, 5)] == [[1, 2, 4, 8, 16], [5, 6, 8, 16]]


def test_chains_cover_every_segment_once() -> None:
    for q in range(1, 1025):
        covered = [s for number in query_chain(q) for s in range(left_ancestor(number) + 1, number + 1)]
        assert sorted(covered) == list(range(1, q + 1))
