"""What all statistics of graphs share: vertices, what a record does, copies, what is protected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from evertally.applications.encoded import Encoded
from evertally.applications.graph.edges import read_edge
from evertally.applications.records import Record
from evertally.contract.options import option, statistic
from evertally.contract.parts import Options
from evertally.encode.labels import canonical, is_text
from evertally.errors import ConfigurationError

Updates = Literal["insert", "delete", "both"]
Copies = Literal["ignored", "counted", "absent"]


@statistic
class GraphStatistic(Encoded):
    """Statistics of an undirected graph, from a stream of its edges. Not used directly; see `et.graph`.

    A record is an edge, a pair of vertices. Loops, vertices that are not declared, and whatever is no pair are dropped
    without a word, each by itself. Where `updates="both"` a record is (action, one end, other end).
    """

    vertices: Sequence[Any] | int | None = option(
        "The vertices, all of them: labels, or a number n for 0..n-1. None: nobody lists them, and how many there are "
        "stays secret.",
        default=None,
    )
    updates: Updates = option(
        'What records do: "insert" edges, "delete" them from a public graph, or "both".', default="insert"
    )
    copies: Copies = option(
        'What an edge is that comes again: "ignored", or "counted" as one more; "absent" is a declared fact that '
        "privacy rests on: by construction of the source no edge comes twice.",
        default="ignored",
    )
    protects: Literal["edge", "node"] = option(
        'What is protected: one "edge" record, or a "node" with all its edges, where that is proved.', default="edge"
    )

    @property
    def protected_unit(self) -> str:
        return "node" if self.protects == "node" else self.unit

    def _read_vertices(self) -> list[str] | None:
        """The declared vertices in one spelling; settles the option."""
        if self.vertices is None:
            return None
        if isinstance(self.vertices, str):
            raise ConfigurationError("vertices is a list of labels, or a number")
        given = range(self.vertices) if isinstance(self.vertices, int) else list(self.vertices)
        names = [canonical(vertex) for vertex in given]
        known = [name for name in names if name is not None and is_text(name)]
        if len(known) != len(names) or len(set(known)) != len(names) or len(names) < 2:
            raise ConfigurationError("vertices are two or more different labels, or a number n >= 2 for 0..n-1")
        self.vertices = known
        return known

    def _reader(self, names: list[str] | None) -> Callable[[Any], Record | None]:
        """Records of (smaller end, larger end) among the declared vertices."""
        known = None if names is None else frozenset(names)

        def read(record: Any) -> Record | None:
            edge = read_edge(record)
            return edge if edge is None or known is None or (edge[0] in known and edge[1] in known) else None

        return read

    def _graph_address(self, names: list[str] | None) -> Options:
        return {"vertices": names} | self._given("updates", "copies", "protects")
