"""A released graph: the cuts of it, their errors, and solvers. All of it is post-processing (6.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertally.applications.graph.cut_errors import CutError
from evertally.applications.graph.cut_solvers import Side, large_cut, minimum_cut, sparse_cut
from evertally.applications.graph.edges import vertex
from evertally.applications.graph.pairs import pair_index, pairs_between, square
from evertally.bounds.tails import Spread
from evertally.contract.parts import IntArray, check_beta
from evertally.contract.release import Release
from evertally.dynamic.answers import Answer
from evertally.errors import ConfigurationError
from evertally.integers import whole


@dataclass(frozen=True)
class FoundCut:
    """A cut that a solver found by looking at a released graph.

    `value` is its weight in the release, negative weights included. It was chosen because of the noise, too, so its
    error is that of all cuts of its size at once: `bound(beta)`.
    """

    side: list[str]
    value: int
    how: str
    bound: Callable[[float], float] = field(repr=False, compare=False)


@dataclass(frozen=True)
class ReleasedGraph:
    """Released weights of all pairs of vertices. `column` is the law of the noise in each of them, `ties` how likely it
    lies half-way between integers; `log_moments` the logarithm of how many releases a bound holds for together."""

    names: Sequence[str]
    row: IntArray
    column: Spread
    ties: float | None
    log_moments: float

    @property
    def size(self) -> int:
        return len(self.names)

    def numbers(self, some: Iterable[Any]) -> IntArray:
        """Which vertices these are."""
        index = {name: i for i, name in enumerate(self.names)}
        names = [] if isinstance(some, str) or not isinstance(some, Iterable) else [vertex(one) for one in some]
        found = [index[name] for name in names if name in index]
        if not found or len(found) != len(names) or len(set(found)) != len(found):
            raise ConfigurationError("a side of a cut is one or more different vertices, each of the declared ones")
        return np.array(found, dtype=np.int64)

    def weight(self, one: Any, other: Any) -> Answer:
        a, b = self.numbers([one, other]).tolist()
        return self._sum(np.array([pair_index(a, b, self.size)]))

    def cut(self, some: Iterable[Any], others: Iterable[Any] | None) -> Answer:
        one = self.numbers(some)
        rest = np.setdiff1d(np.arange(self.size), one) if others is None else self.numbers(others)
        if not len(rest) or np.intersect1d(one, rest).size:
            raise ConfigurationError("the sides of a cut are not empty and have no vertex in common")
        return self._sum(pairs_between(one, rest, self.size))

    def _sum(self, pairs: IntArray) -> Answer:
        # Pairs have independent noise of one law: the variance is exactly k p s_t^2.
        error = CutError(self.column, self.ties, len(pairs))
        return Answer(int(self.row[pairs].sum()), error.stddev, error.radius)

    def cut_bound(self, k: int, p: int | None, beta: float) -> float:
        check_beta(beta)
        k = whole("k", k, 1, self.size - 1)
        others = self.size - k if p is None else whole("p", p, 1, self.size - k)
        error = CutError(self.column, self.ties, k * others)
        return error.beyond(math.log(2 / beta) + self.log_moments + log_cuts(self.size, k, p))

    def matrix(self, nonnegative: bool) -> IntArray:
        return square(np.maximum(self.row, 0) if nonnegative else self.row, self.size)

    def found(self, side: Side, how: str) -> FoundCut:
        pairs = pairs_between(np.flatnonzero(side), np.flatnonzero(~side), self.size)
        names = [name for name, inside in zip(self.names, side, strict=True) if inside]
        k = min(len(names), self.size - len(names))
        return FoundCut(names, int(self.row[pairs].sum()), how, lambda beta: self.cut_bound(k, None, beta))


def log_cuts(n: int, k: int, p: int | None) -> float:
    """The logarithm of how many cuts share a bound (6.4): those with k and p vertices, times all such sizes. None: cuts
    between k vertices and all the others.

    >>> round(log_cuts(100, 1, 1), 3), round(log_cuts(100, 1, None), 3)
    (18.411, 9.21)
    """

    def log_binomial(m: int, j: int) -> float:
        return math.lgamma(m + 1) - math.lgamma(j + 1) - math.lgamma(m - j + 1)

    if p is None:
        return log_binomial(n, k) + math.log(n)
    return log_binomial(n, k) + log_binomial(n - k, p) + 2 * math.log(n)


@dataclass(frozen=True)
class GraphRelease(Release):
    """A released graph, of which any cut can be asked.

    `value` has the weights of all pairs in the order of their numbers (6.4). Weights may be negative: each is off by
    its noise, and cuts are unbiased because nothing was clamped.
    """

    released: ReleasedGraph | None = field(default=None, repr=False, compare=False)
    asked: Callable[[Any], Answer] | None = field(default=None, repr=False, compare=False)

    def weight(self, one: Any, other: Any) -> Answer:
        """The weight of a pair. Where vertices are not declared: of any two labels, until the next step."""
        if self.asked is not None:
            return self.asked((one, other))
        return self._whole().weight(one, other)

    def cut(self, some: Iterable[Any], others: Iterable[Any] | None = None) -> Answer:
        """The weight between two sets of vertices without a common one; None: between a set and all others.

        The variance of its error is k p s_t^2, for k and p vertices and the standard deviation s_t of a weight.
        """
        return self._whole().cut(some, others)

    def cut_bound(self, k: int, p: int | None = None, beta: float = 0.05) -> float:
        """With probability at least 1 - beta no cut between k and p vertices is further off, whichever vertices, sizes
        and ticks (6.4 [D]; Chernoff's bound for every cut, with what was rounded). None: k vertices and all others."""
        return self._whole().cut_bound(k, p, beta)

    def edges(self, nonnegative: bool = False) -> list[tuple[str, str, int]]:
        """All pairs with their weights. `nonnegative` clamps them, which adds about 0.4 s_t to every pair that has no
        edge, and 0.4 s_t k p to a cut."""
        graph = self._whole()
        weights = np.maximum(graph.row, 0) if nonnegative else graph.row
        first, second = np.triu_indices(graph.size, 1)
        names = graph.names
        pairs = zip(first.tolist(), second.tolist(), weights.tolist(), strict=True)
        return [(names[a], names[b], weight) for a, b, weight in pairs]

    def graph(self, nonnegative: bool = False) -> Any:
        """The same as a networkx graph with edge attributes `weight`; `graph["clamped"]` says whether weights were."""
        try:
            import networkx
        except ImportError:
            raise ConfigurationError(
                "graph() needs networkx: install evertally[graph], or use edges() for a table"
            ) from None
        made = networkx.Graph(clamped=nonnegative, tick=self.tick)
        made.add_nodes_from(self._whole().names)
        made.add_weighted_edges_from(self.edges(nonnegative))
        return made

    def min_cut(self) -> FoundCut:
        """The smallest cut of a clamped copy, exactly: solvers need weights that are not negative."""
        graph = self._whole()
        return graph.found(minimum_cut(graph.matrix(True)), "smallest cut of a clamped copy, exact")

    def max_cut(self) -> FoundCut:
        """A large cut, by local search: a heuristic."""
        graph = self._whole()
        return graph.found(large_cut(graph.matrix(False)), "local search, a heuristic")

    def sparsest_cut(self) -> FoundCut:
        """A cut of small weight for each pair it separates, by a spectral sweep over a clamped copy: a heuristic."""
        graph = self._whole()
        return graph.found(sparse_cut(graph.matrix(True)), "spectral sweep over a clamped copy, a heuristic")

    def _whole(self) -> ReleasedGraph:
        if self.released is None:
            raise ConfigurationError(
                "cuts need declared vertices and a noise process of ours; single weights can be asked for by weight()"
            )
        return self.released
