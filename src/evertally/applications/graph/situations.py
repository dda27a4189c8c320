"""Which row of factorization-counting 6.5 a graph statistic stands on, by its public options; the rest is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evertally.applications.graph.options import MOST_VERTICES
from evertally.applications.graph.prices import Case
from evertally.applications.records import Record
from evertally.errors import ConfigurationError
from evertally.integers import whole

DegreeUse = Literal["bounds", "clips", "ignores"]
# "bounds": the statistic of a graph of higher degree would change by more, so the graph is projected;
# "clips": the statistic itself looks at no more than D edges of a vertex; "ignores": it needs no D.


@dataclass(frozen=True)
class Declared:
    """The options that decide."""

    uses: DegreeUse
    updates: str
    copies: str
    protects: str
    max_degree: int | None
    degree_bound: str
    vertices: int | None
    edges: Sequence[Record]  # of the public graph before the first tick


@dataclass(frozen=True)
class Situation:
    """The row, and the degree bound that it speaks of."""

    case: Case
    degree: int | None
    deletes: bool = False
    counted: bool = False

    @property
    def bound(self) -> int:
        assert self.degree is not None
        return self.degree


def situation(given: Declared) -> Situation:
    """The row of these options, or a refusal."""
    _check_words(given)
    if given.updates == "both":
        raise ConfigurationError(
            "with insertions and deletions one edge can move this statistic again and again, as often as the stream is "
            'long (factorization-counting 6.5): use updates="insert" or "delete", or count edges, degrees or cuts'
        )
    if given.updates == "delete":
        return _deletions(given)
    if given.edges:
        raise ConfigurationError('initial is the public graph that records delete from: it goes with updates="delete"')
    if given.protects == "node":
        return _node(given)
    if given.copies == "counted":
        return _multigraph(given)
    if given.uses == "ignores" and given.max_degree is None:
        return Situation("plain" if given.copies == "absent" else "cut", None)
    if given.uses == "ignores" and given.degree_bound == "declared":
        raise ConfigurationError(
            'no bound on degrees is needed here: leave max_degree out; with degree_bound="projected" it is about the '
            "projected graph"
        )
    degree, certain = _degree(given)
    if given.degree_bound == "projected" and not certain:
        return Situation("projected", degree)
    if given.uses == "clips" and given.degree_bound == "declared" and given.copies != "absent":
        raise ConfigurationError('a declared max_degree saves nothing here unless copies="absent"')
    return Situation("plain" if certain and given.copies == "absent" else "cut", degree)


def _deletions(given: Declared) -> Situation:
    if not given.edges:
        raise ConfigurationError('updates="delete" needs initial, the public graph that edges are deleted from')
    if given.copies == "counted" or given.protects == "node":
        raise ConfigurationError(
            'updates="delete" is proved for single edges, each of which is there once: leave out copies="counted" and '
            'protects="node"'
        )
    if given.max_degree is not None or given.degree_bound == "declared":
        raise ConfigurationError("the degree bound of a graph that only loses edges is that of initial: leave it out")
    degrees = Counter(end for edge in given.edges for end in edge[:2])
    return Situation("plain" if given.copies == "absent" else "cut", max(degrees.values()), deletes=True)


def _node(given: Declared) -> Situation:
    if given.copies != "absent":
        raise ConfigurationError(
            'protects="node" is proved for streams in which no edge comes twice: declare copies="absent" if that holds '
            "by construction of the source (factorization-counting 6.5)"
        )
    degree, certain = _degree(given)
    if not certain:
        raise ConfigurationError(
            'protects="node" needs a degree bound that holds by itself: all vertices declared and no max_degree, or '
            'degree_bound="declared". An enforced bound is not safe: a node shifts the ranks at all its neighbours'
        )
    return Situation("node", degree)


def _multigraph(given: Declared) -> Situation:
    if given.uses == "bounds":
        degree, certain = _degree(given)
        return Situation("plain" if certain else "projected", degree, counted=True)
    if given.uses == "ignores":
        if given.max_degree is not None:
            raise ConfigurationError('copies="counted" needs no max_degree here: leave it out')
        return Situation("cut", None, counted=True)
    if given.degree_bound != "clipped":
        raise ConfigurationError('copies="counted" goes with degree_bound="clipped" here')
    return Situation("cut", _degree(given)[0], counted=True)


def _degree(given: Declared) -> tuple[int, bool]:
    """D, and whether it holds by construction of the data: declared, or as many as there are other vertices."""
    others = None if given.vertices is None or given.copies == "counted" else given.vertices - 1
    if given.max_degree is None and others is None:
        raise ConfigurationError(
            "max_degree is needed here: how many edges of a vertex count at most. (Or vertices, if no copies count: "
            "then it is the number of the others)"
        )
    most = MOST_VERTICES if others is None else others
    degree = whole("max_degree", others if given.max_degree is None else given.max_degree, 1, most)
    return degree, given.degree_bound == "declared" or degree == others


def _check_words(given: Declared) -> None:
    for name, word, allowed in (
        ("updates", given.updates, ("insert", "delete", "both")),
        ("copies", given.copies, ("ignored", "counted", "absent")),
        ("protects", given.protects, ("edge", "node")),
        (
            "degree_bound",
            given.degree_bound,
            ("projected", "declared") if given.uses != "clips" else ("clipped", "projected", "declared"),
        ),
    ):
        if word not in allowed:
            raise ConfigurationError(f"{name} is one of {', '.join(map(repr, allowed))}; got {word!r}")
