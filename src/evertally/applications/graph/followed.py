"""Statistics that are functions of the graph so far, followed by their differences (factorization-counting 6.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from evertally.applications.encoded import Certified
from evertally.applications.encoder import Encoder
from evertally.applications.graph.following import Following, GraphFunction
from evertally.applications.graph.gates import EveryRecord, FirstCopies, Gate, Present, Ranked, RankedArrivals
from evertally.applications.graph.options import GraphStatistic, listed
from evertally.applications.graph.prices import Price
from evertally.applications.graph.situations import Declared, DegreeUse, Situation, situation
from evertally.applications.records import Record
from evertally.contract.forms import LabelledForm, NumberForm
from evertally.contract.options import statistic
from evertally.contract.parts import Blueprint, IntArray, Options
from evertally.contract.ticks import last_tick
from evertally.counting.processes import Gram, proved_of
from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours


@statistic
class Followed(GraphStatistic):
    """Functions of a graph that gains edges, or loses them. Not used directly; see `et.graph`.

    Several edges of a tick come in the order of their sorted labels, whatever order they were handed over in. Without
    `max_degree` a vertex has at most as many edges as there are other vertices, if they are declared.
    """

    _word: ClassVar[str]
    _uses: ClassVar[DegreeUse]
    _one_sign: ClassVar[bool] = False  # one edge more is never less
    _every_copy: ClassVar[bool] = False  # the function itself knows what a copy is

    @abstractmethod
    def _price(self, at: Situation) -> Price:
        """What one record, there or not, can change; at node level one node."""

    @abstractmethod
    def _function(self, encoder: Encoder) -> GraphFunction:
        """The function of the graph, with its tables in the encoder."""

    def _own_address(self) -> Options:
        """The options of this statistic alone."""
        return {}

    def _empty(self) -> dict[int, int]:
        """The function of the graph without edges."""
        return {}

    def _labels(self) -> list[str] | None:
        """Names of the coordinates, None if there is only one."""
        return None

    def certified(self) -> Certified:
        at = self._at
        one = price = self._price(at)
        if self._relation() is Neighbours.REPLACE:
            # One sign against one sign, if nothing cuts either (6.5, REPLACE); otherwise twice Gamma.
            mild = self._one_sign and at.case == "plain" and not (at.deletes or at.counted)
            price = Price(2 * one.gamma_squared, 2 * one.l1) if mild else one.times(2)
        how = f"{self._word}, {at.case}" + (", deletions" if at.deletes else ", every copy" if at.counted else "")
        return Certified(price.change(), f"factorization-counting 6.5, {how}", one.change(), price.split, one.split)

    def encoder(self) -> Following:
        return Following(self._gate(), self._function, self._edges, self._empty(), self._at.deletes)

    def _gate(self) -> Callable[[Encoder], Gate]:
        at = self._at
        if at.deletes:
            return partial(Present, edges=self._edges)
        if at.case == "projected":
            return partial(RankedArrivals if at.counted else Ranked, degree=at.bound)
        return (lambda encoder: EveryRecord()) if at.counted or self._every_copy else FirstCopies

    def _blueprint(self) -> Blueprint:
        names = self._read_vertices()
        read = self._reader(names)
        edges = self._edges = self._public_edges(read)
        if names is None and edges:
            names = sorted({end for edge in edges for end in edge[:2]})
        self._names = names
        if self.protects == "node" and (self.unit != "event" or self._relation() is not Neighbours.ADD_REMOVE):
            raise ConfigurationError('protects="node" goes with unit="event" and neighbours="add_remove" alone')
        number = None if names is None else len(names)
        given = self._given("updates", "copies", "protects", "max_degree", "degree_bound")
        self._at = situation(Declared(uses=self._uses, vertices=number, edges=edges, **given))
        self._check_process()
        start = self.encoder().start
        limit = 2**61 // last_tick(self.horizon)
        if max([self.certified().change.l1, *map(abs, start.values())]) > limit:
            raise ConfigurationError(
                f"changes of a tick are kept below 2^61/horizon = {limit} to fit 64 bits, and one record may change "
                "more, or more is there before the first tick; choose a shorter horizon or smaller bounds"
            )
        labels = self._labels()
        row = [start.get(column, 0) for column in range(1 if labels is None else len(labels))]
        return self._encoded_blueprint(
            self._word,
            len(row),
            read,
            self._graph_address(names) | self._own_address(),
            CountFrom(row) if labels is None else LabelledFrom(labels, row),
            sort=True,
            settled=self._own_address() | self._given("vertices", "initial"),
        )

    def _check_process(self) -> None:
        """6.0: what only appears needs S2, which every factor has; the other rows rest on S3 and S4."""
        at = self._at
        ours = self.mechanism == "auto" or proved_of(self.mechanism) >= Gram.NONNEGATIVE
        appears = self._one_sign and at.case in ("plain", "node") and not at.deletes
        if not ours and not (appears and self._relation() is Neighbours.ADD_REMOVE):
            raise ConfigurationError(
                "what this statistic is charged rests on noise processes whose Gram matrix is nowhere negative (S3), "
                "which is not proved of this one; it can count triangles, stars and patterns with "
                'neighbours="add_remove", copies="absent" and a degree bound that is declared'
            )

    def _public_edges(self, read: Callable[[Any], Record | None]) -> list[Record]:
        """The public graph as records, in order; settles the option."""
        if self.initial is None:
            return []
        if self.updates == "insert":
            raise ConfigurationError('initial is the public graph that edges leave: it goes with updates="delete"')
        records = listed(self.initial, "initial is a list of records")
        edges = [edge for edge in map(read, records) if edge is not None]
        if len(edges) != len(records) or len({edge[:2] for edge in edges}) != len(edges):
            raise ConfigurationError("initial is a public graph: every record in it must be an edge, each edge once")
        self.initial = sorted(edges)
        return sorted(edges)


class CountFrom(NumberForm):
    """A number that is not 0 before the first tick, but something public."""

    def __init__(self, row: list[int]) -> None:
        super().__init__(1)
        self._row = row

    def first(self) -> IntArray:
        return np.array([self._row], dtype=np.int64)


class LabelledFrom(LabelledForm):
    """The same for a mapping from labels to numbers."""

    def __init__(self, labels: Sequence[str], row: list[int]) -> None:
        super().__init__(labels)
        self._row = row

    def first(self) -> IntArray:
        return np.array([self._row], dtype=np.int64)
