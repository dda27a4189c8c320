"""What all statistics of graphs share: vertices, what a record does, copies, what is protected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from evertally.applications.encoded import Encoded
from evertally.applications.graph.edges import read_edge, vertex
from evertally.applications.records import Record
from evertally.contract.options import option, statistic
from evertally.contract.parts import Options
from evertally.encode.frames import Table, column
from evertally.encode.labels import as_list, require_column
from evertally.encode.named import columns_of, records
from evertally.errors import ConfigurationError
from evertally.integers import whole

Updates = Literal["insert", "delete", "both"]
Copies = Literal["ignored", "counted", "absent"]
DegreeBound = Literal["projected", "declared", "clipped"]  # the last one for stars and histograms alone
MOST_VERTICES = 2**20

_CHOICES = {
    "updates": ("insert", "delete", "both"),
    "copies": ("ignored", "counted", "absent"),
    "protects": ("edge", "node"),
    "degree_bound": ("projected", "declared"),
}


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
    initial: Sequence[Any] | None = option(
        'The edges of the public graph that updates="delete" begins with, as pairs of vertices.', default=None
    )
    copies: Copies = option(
        'What an edge is that comes again: "ignored", or "counted" as one more; "absent" is a declared fact that '
        "privacy rests on: by construction of the source no edge comes twice.",
        default="ignored",
    )
    protects: Literal["edge", "node"] = option(
        'What is protected: one "edge" record, or a "node" with all its edges, where that is proved.', default="edge"
    )
    max_degree: int | None = option("How many edges a vertex has at most; None: no bound is used.", default=None)
    degree_bound: DegreeBound = option(
        'Where max_degree comes from: edges beyond it are dropped here ("projected"), or it is a declared fact that '
        'privacy rests on ("declared"): by construction of the source no vertex has more.',
        default="projected",
    )

    @property
    def _weights(self) -> Literal["none", "may be", "needed"]:
        """Whether an edge has a weight."""
        return "none"

    def _of_table(self, found: Table) -> Any:
        """Two columns are the ends of an edge, whichever is first: edges have no direction."""
        before = ["action"] if self.updates == "both" else []
        after = (
            ["weight"] if self._weights == "needed" or (self._weights == "may be" and "weight" in found.names) else []
        )
        ends = [name for name in found.names if name not in (*before, *after)]
        if len(ends) != 2 or not all(isinstance(name, str) for name in ends):
            raise TypeError(
                "a table of edges has two columns for the two ends of an edge"
                + "".join(f", and one that is called {name!r}" for name in (*before, *after))
                + ", and no others; choose or rename columns first"
            )
        return records(found, columns_of(found, [*before, *ends, *after]))

    @property
    def protected_unit(self) -> str:
        return "node" if self.protects == "node" else self.unit

    def _check_choices(self) -> None:
        """Refuses words that no option has, and graphs to begin with where nothing is deleted."""
        for name, words in _CHOICES.items():
            given = getattr(self, name)
            if not isinstance(given, str) or given not in words:
                raise ConfigurationError(f"{name} is one of {', '.join(map(repr, words))}")
        if self.max_degree is not None:
            self.max_degree = whole("max_degree", self.max_degree, 1, MOST_VERTICES)
        if (self.initial is None) == (self.updates == "delete"):
            raise ConfigurationError(
                'initial goes with updates="delete" and with nothing else: the public edges that are deleted from'
            )

    def _read_vertices(self) -> list[str] | None:
        """The declared vertices in one spelling; settles the option."""
        if self.vertices is None:
            return None
        if isinstance(self.vertices, int):
            number = whole("vertices", self.vertices, 2, MOST_VERTICES)
            given: list[Any] = list(range(number))
        else:
            given = listed(self.vertices, "vertices is a list of labels, or a number")
        known = [name for name in map(vertex, given) if name is not None]
        if len(known) != len(given) or len(set(known)) != len(given) or not 2 <= len(given) <= MOST_VERTICES:
            raise ConfigurationError(
                f"vertices are 2 to {MOST_VERTICES} different labels, or a number n >= 2 for 0..n-1"
            )
        self.vertices = known
        return known

    def _read_initial(self, names: list[str] | None) -> list[tuple[str, str]]:
        """The public edges in one spelling; settles the option."""
        if self.initial is None:
            return []
        given = listed(self.initial, "initial is a list of pairs of vertices")
        edges = [(edge[0], edge[1]) for edge in map(self._reader(names), given) if edge is not None]
        if len(edges) != len(given) or len(set(edges)) != len(given) or not given:
            raise ConfigurationError("initial is a list of different edges, each a pair of different (known) vertices")
        self.initial = edges
        return edges

    def _reader(self, names: list[str] | None) -> Callable[[Any], Record | None]:
        """Records of (smaller end, larger end) among the declared vertices."""
        return among(names, read_edge)

    def _graph_address(self, names: list[str] | None) -> Options:
        return {"vertices": names} | self._given(
            "updates", "initial", "copies", "protects", "max_degree", "degree_bound"
        )


def among(names: list[str] | None, read: Callable[[Any], Record | None]) -> Callable[[Any], Record | None]:
    """A reader that drops records whose ends (their first two entries) are not declared. None: nobody declared any."""
    if names is None:
        return read
    known = frozenset(names)

    def known_ends(record: Any) -> Record | None:
        found = read(record)
        return found if found is not None and found[0] in known and found[1] in known else None

    return known_ends


def listed(given: Any, otherwise: str) -> list[Any]:
    given = column(given)
    try:
        require_column(given, "")
    except TypeError:
        raise ConfigurationError(otherwise) from None
    return as_list(given)
