"""How far one record moves the functions of a graph: the table of factorization-counting 6.5.

Gamma^2 and l1 for every way an edge can come and go. `plain`: no copies and the degree bound hold by construction of
the data. `cut`: a copy, or a clipped degree, may cut the difference of two neighbours back to nothing (the "door"
column). `projected`: the graph of the first D edges at each vertex. `node`: a vertex with all its edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb, isqrt
from typing import Literal

from evertally.privacy import Change

Case = Literal["plain", "cut", "projected", "node"]


@dataclass(frozen=True)
class Price:
    """Gamma^2 (of all factors of ours), l1, and Gamma^2 by S3 alone where that is more."""

    gamma_squared: int
    l1: int
    split: int | None = None

    def change(self) -> Change:
        return Change(self.l1, self.gamma_squared, self.l1)

    def times(self, factor: int) -> Price:
        """Gamma times a factor (triangle inequality)."""
        squared = factor * factor
        split = None if self.split is None else squared * self.split
        return Price(squared * self.gamma_squared, factor * self.l1, split)


def one_signed(h: Fraction | int, case: Case) -> Price:
    """Copies of something, at most h of them through one edge: they only appear, until the edge is cut out.

    >>> one_signed(2, "cut"), one_signed(2, "projected")
    (Price(gamma_squared=8, l1=4, split=None), Price(gamma_squared=20, l1=6, split=None))
    """
    squares, lengths = {"plain": (1, 1), "cut": (2, 2), "projected": (5, 3)}[case]
    return Price(ceil(squares * Fraction(h) ** 2), ceil(lengths * Fraction(h)))


def stars_through_edge(degree: int, k: int) -> int:
    """Two ends, each the centre of C(D-1, k-1) stars with the edge."""
    return 2 * comb(degree - 1, k - 1)


def stars_at_node(degree: int, k: int) -> Price:
    h = degree * comb(degree - 1, k - 1) + comb(degree, k)
    return Price(h * h, h)


def triangles_at_node(degree: int) -> Price:
    h = comb(degree, 2)
    return Price(h * h, h)


def copies_through_edge(degree: int, nodes: int, edges: int, automorphisms: int, *, counted: bool = False) -> Fraction:
    """h of 6.5: which pattern edge it is, which way round, then D - 1 choices for each other node, or for each other
    edge where every copy of an edge counts."""
    free = edges - 1 if counted else nodes - 2
    return Fraction(2 * edges * (degree - 1) ** free, automorphisms)


def high_degree(case: Case, degree: int | None) -> Price:
    """Each end rises above the threshold earlier, once: +1, then -1."""
    if case == "node":
        assert degree is not None
        return Price((degree + 1) ** 2 + degree**2, 2 * degree + 1)
    return Price(32, 8) if case == "projected" else Price(8, 4)


def forest(case: Case, degree: int | None, W: int) -> Price:
    """The cost difference goes 0, w, -(b-w)^+, 0: P and N are at most W."""
    if case == "node":
        assert degree is not None
        return Price(2 * (degree * W) ** 2, 2 * degree * W)
    return Price(18 * W * W, 6 * W) if case == "projected" else Price(2 * W * W, 2 * W)


def histogram(case: Case, D: int) -> Price:
    """In each bin an end causes a part of (+1, -2, +1), which S4 bounds by 6, S3 by 8.

    >>> histogram("cut", 3), histogram("projected", 1)
    (Price(gamma_squared=64, l1=24, split=80), Price(gamma_squared=47, l1=12, split=47))
    """
    within, within_split = 6 * D - 4, 8 * D - 8 if D > 1 else 2
    if case == "plain":
        return Price(4 * within, 8 * D - 4, 4 * within_split)
    if case == "cut":
        return Price(4 * (6 * D - 2), 8 * D, 4 * (8 * D - 4))
    if case == "projected":
        # Both ends of the edge are cut, and the far ends of the two flipped edges are not.
        gamma = square_of_sum(4 * (6 * D - 2), 4 * within)
        return Price(gamma, 16 * D - 4, square_of_sum(4 * (8 * D - 4), 4 * within_split))
    # The node's own path, and D neighbours each of which is one end of one edge: l1 2D + 1 and D (4D - 2).
    gamma = square_of_sum(2 * D + 1, D * D * within)
    return Price(gamma, 4 * D * D + 1, square_of_sum(2 * D + 1, D * D * within_split))


def square_of_sum(a: int, b: int) -> int:
    """(sqrt(a) + sqrt(b))^2, rounded up.

    >>> square_of_sum(4, 9), square_of_sum(2, 3)
    (25, 10)
    """
    root = isqrt(4 * a * b)
    return a + b + root + (root * root < 4 * a * b)
