"""Linear statistics of graphs: which row of the table holds, which encoder belongs to it, which options are refused."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from evertally.applications.encoded import Certified
from evertally.applications.encoder import EncodedEngine, Encoder
from evertally.applications.graph import linear_sensitivity
from evertally.applications.graph.edges import read_update
from evertally.applications.graph.kept import EveryRecord, Lands, Presence, Projection
from evertally.applications.graph.linear_sensitivity import Ingestion, Shape
from evertally.applications.graph.options import GraphStatistic, among
from evertally.applications.records import Record
from evertally.contract.forms import RowForm
from evertally.contract.options import statistic
from evertally.contract.parts import Blueprint, IntArray, Options, Played
from evertally.counting.processes import PROCESSES, Gram, proved_of
from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours
from evertally.statistics.own_engines import ENGINES


@statistic
class LinearGraphStatistic(GraphStatistic):
    """Statistics that each edge adds to. Not used directly; see `EdgeCount`, `DegreeVector`, `CutGraph`."""

    @property
    @abstractmethod
    def _shape(self) -> Shape:
        """Which column of the table of sensitivities this is."""

    @abstractmethod
    def _lands(self) -> Lands:
        """In which coordinates an edge is counted."""

    def certified(self) -> Certified:
        if self.protects == "node":
            return linear_sensitivity.of_node(self._shape, self._largest_degree())
        return linear_sensitivity.of_record(self._shape, self._ingestion(), self._relation())

    def encoder(self) -> Encoder:
        ingestion, lands = self._ingestion(), self._lands()
        if ingestion == "projection":
            assert self.max_degree is not None
            return Projection(lands, self.max_degree, once=self.copies == "ignored")
        if ingestion in ("door", "presence"):
            return Presence(lands, self._initial_edges)
        return EveryRecord(lands)

    def _ingestion(self) -> Ingestion:
        """What happens to a record, by public options alone."""
        if self.max_degree is not None and self.protects == "edge":
            return "projection"
        if self.updates == "both":
            return "presence" if self.copies == "ignored" else "unconditional"
        return "door" if self.copies == "ignored" else "plain"

    def _check_linear(self, names: list[str] | None) -> None:
        """Refuses what no row of the table is about."""
        self._check_choices()
        self._names = names
        self._initial_edges = self._read_initial(names)
        if self.updates == "both" and self.copies == "absent":
            raise ConfigurationError(
                'copies="absent" does not go with updates="both": a neighbour without one deletion has an edge that '
                'comes twice. Use copies="ignored", or "counted" to add every record up'
            )
        if self.updates == "delete" and self.copies == "counted":
            raise ConfigurationError(
                'from a graph that only loses edges none is lost twice: use copies="ignored", or "absent" if no '
                "deletion comes twice by construction of the source"
            )
        theirs = self.mechanism in (*ENGINES, *PROCESSES) and proved_of(self.mechanism) is Gram.UNKNOWN
        if theirs and self._ingestion() in ("door", "presence", "projection"):
            raise ConfigurationError(
                "what is remembered here is charged for noise processes whose Gram matrix is nowhere negative (S3), "
                'which is proved of ours alone; with your own use copies="counted" or "absent", and no projection'
            )
        if self.protects == "node":
            self._check_node()
        elif self.max_degree is not None and (self.degree_bound == "declared" or self.updates != "insert"):
            raise ConfigurationError(
                "where single edges are protected these statistics need no max_degree; with "
                'degree_bound="projected" and updates="insert" they are those of the projected graph'
            )

    def _check_node(self) -> None:
        if self.updates != "insert" or self.copies != "absent":
            raise ConfigurationError('protects="node" is proved for updates="insert" and copies="absent" only')
        if self._relation() is not Neighbours.ADD_REMOVE or self.unit != "event":
            raise ConfigurationError(
                'protects="node" hides whether a node has edges: neighbours="add_remove", unit="event"'
            )
        if self.max_degree is not None and self.degree_bound != "declared":
            raise ConfigurationError(
                'no way to enforce max_degree is safe with protects="node": a node that goes shifts the ranks at all '
                'its neighbours. Declare it (degree_bound="declared") if the source bounds degrees by construction, '
                "or leave it out and declare the vertices"
            )
        self._largest_degree()

    def _largest_degree(self) -> int:
        # Of n vertices none has more than n - 1 edges where no edge comes twice.
        known = [bound for bound in (self.max_degree, len(self._names) - 1 if self._names else None) if bound]
        if not known:
            raise ConfigurationError('protects="node" needs declared vertices, or a declared max_degree')
        return min(known)

    def _read_record(self) -> Callable[[Any], Record | None]:
        """Records of (smaller end, larger end, amount)."""
        if self.updates == "both":
            return among(self._names, read_update)
        edge, amount = self._reader(self._names), -1 if self.updates == "delete" else 1
        initial = frozenset(self._initial_edges)

        def read(record: Any) -> Record | None:
            found = edge(record)
            if found is None or (amount < 0 and found not in initial):
                return None
            return (*found, amount)

        return read

    def _linear_graph(self, word: str, form: GraphForm, more: Options | None = None) -> Blueprint:
        """The blueprint; rows begin with what the public graph has."""
        base, lands = np.zeros(form.width, dtype=np.int64), self._lands()
        for edge in self._initial_edges:
            columns: Any = lands(*edge)
            for column in columns:
                base[column] += 1
        form.base = base
        plain = self._encoded_blueprint(
            word,
            form.width,
            self._read_record(),
            self._graph_address(self._names) | (more or {}),
            form,
            # Which of an insertion and a deletion came first matters where presence is kept.
            sort=self._ingestion() != "presence",
            settled={"vertices": self._names, "initial": self._initial_edges or None},
        )
        if not self._initial_edges:
            return plain
        return replace(plain, engine=lambda source: FromPublicGraph.around(plain.engine(source), base))


class GraphForm(RowForm):
    """Rows that begin with what a public graph has. Not used directly."""

    base: IntArray

    def first(self) -> IntArray:
        return self.base[None, :].copy()


class FromPublicGraph(EncodedEngine):
    """An encoder before an engine, whose sums begin with a public row."""

    base: IntArray

    @classmethod
    def around(cls, engine: Any, base: IntArray) -> FromPublicGraph:
        made = cls(engine.rule, engine.inner)
        made.base = base
        return made

    def play(self, batch: Any, state: Any) -> Played:
        played = super().play(batch, state)
        return Played(played.rows + self.base, played.lasts, played.state)
