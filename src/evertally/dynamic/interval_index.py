"""The online interval tree over segment numbers 1, 2, ...: closed forms of its shape (dynamic-data 6.2).

In-order numbering of an infinite tree that grows to the right and upward. Level, ancestors and window of a node are
functions of its number alone: nothing about the data decides where, when or for how long a node is asked (10.1.8).
"""

from __future__ import annotations


def low_bit(i: int) -> int:
    """The lowest set bit."""
    return i & -i


def level(i: int) -> int:
    """1 for leaves (odd numbers), one more for every step up: counted from the bottom, because the tree grows upward.

    >>> [level(i) for i in range(1, 9)]
    [1, 2, 1, 3, 1, 2, 1, 4]
    """
    return low_bit(i).bit_length()


def left_ancestor(i: int) -> int:
    """The closest ancestor to the left; 0 if there is none (powers of two)."""
    return i - low_bit(i)


def window_end(i: int) -> int:
    """The last segment at which node i is asked: its window is [i, i + lowbit(i) - 1].

    >>> [(i, window_end(i)) for i in (1, 2, 4, 6, 12)]
    [(1, 1), (2, 3), (4, 7), (6, 7), (12, 15)]
    """
    return i + low_bit(i) - 1


def query_chain(q: int) -> list[int]:
    """Node q and its ancestors to the left: what is present after segment q is the disjoint union of what they hold.

    >>> query_chain(7), query_chain(0)
    ([7, 6, 4], [])
    """
    chain = []
    while q:
        chain.append(q)
        q = left_ancestor(q)
    return chain


def update_chain(a: int, last: int) -> list[int]:
    """Node a and its ancestors to the right, up to `last`: the nodes that may hold what was inserted in segment a.

    >>> update_chain(5, 20)
    [5, 6, 8, 16]
    """
    chain = []
    while a <= last:
        chain.append(a)
        a += low_bit(a)
    return chain
