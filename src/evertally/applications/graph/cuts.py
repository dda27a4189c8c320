"""The graph itself: a weight for each pair of vertices, from which any cut follows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Literal

from evertally.applications.encoded import Certified
from evertally.applications.graph import linear_sensitivity
from evertally.applications.graph.cut_answers import GraphRelease, ReleasedGraph
from evertally.applications.graph.cut_errors import tie_probability
from evertally.applications.graph.edges import ends, read_weighted
from evertally.applications.graph.kept import Lands
from evertally.applications.graph.linear import GraphForm
from evertally.applications.graph.linear_sensitivity import Shape
from evertally.applications.graph.on_demand import AskableGraphStatistic
from evertally.applications.graph.options import among
from evertally.applications.graph.pairs import pair_count, pair_index
from evertally.applications.records import Record
from evertally.bounds.tails import Spread
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Contribution

LARGEST_WEIGHT = 2**31


class PairForm(GraphForm):
    """A number for each pair; in tables a pair is written as a list of its two labels."""

    def __init__(self, names: list[str]) -> None:
        labels = pair_labels(names)
        super().__init__(len(labels), labels)


@statistic
class CutGraph(AskableGraphStatistic):
    """A weighted graph over declared vertices, released at every tick: every cut can be asked of it.

    A record is (u, v), an increment of 1, or (u, v, weight): weights are whole numbers that are clipped to
    0..max_weight, each by itself (signed=True: from -max_weight on), and add up (copies="counted"). With
    copies="ignored" an edge is there or not, and records are pairs.

    One record there or not: Gamma = max_weight; another in its place: sqrt(2) max_weight, signed 2 max_weight
    (factorization-counting 6.4); copies="ignored": Gamma^2 = 2 (6.5 [R]). Exact tier. Error: every weight that of a
    counter times Gamma, a cut between k and p vertices sqrt(k p) times that. Time of a tick: O(records + n^2) and one
    step of the noise process; memory: O(n^2) and the noise process (8 n^2/2 bytes a tick for "sqrt", which is not
    taken where it does not fit `memory_limit`). A run of many ticks keeps only what `run(..., at=[...])` names.

    >>> import evertally as et
    >>> people = ["ann", "bob", "cem", "dua"]
    >>> calls = et.graph.CutGraph(
    ...     vertices=people, copies="counted", max_weight=60, guarantee=et.ZCDP(8), horizon=100, key=et.simulation(1)
    ... )
    >>> release = calls.step([("ann", "bob", 50), ("cem", "dua", 999), ("ann", "cem"), ("ann", "nobody", 3)])
    >>> cut = release.cut(["ann", "bob"])
    >>> lower, upper = cut.interval(beta=0.01)
    >>> lower < 1 < upper, round(cut.stddev / release.weight("ann", "bob").stddev, 9)
    (True, 2.0)
    >>> release.cut_bound(2, beta=0.01) > upper - cut.value
    True
    """

    max_weight: int = option("The largest weight of one record; larger ones are clipped to it.", default=1)
    signed: bool = option("Whether weights may be negative, down to -max_weight.", default=False)

    @property
    def _shape(self) -> Shape:
        return "adjacency"

    def certified(self) -> Certified:
        if self._weighted:
            return linear_sensitivity.of_weights(self.max_weight, self.signed, self._relation())
        return super().certified()

    @property
    def _weighted(self) -> bool:
        return self.updates == "insert" and self._ingestion() == "plain" and self.protects == "edge"

    @property
    def _weights(self) -> Literal["none", "may be", "needed"]:
        return "may be" if self._weighted else "none"

    def _lands(self) -> Lands:
        if self._names is None:
            return lambda one, other: (_pair(one, other),)
        index, n = {name: i for i, name in enumerate(self._names)}, len(self._names)
        return lambda one, other: (pair_index(index[one], index[other], n),)

    def _read_record(self) -> Callable[[Any], Record | None]:
        if not self._weighted:
            return super()._read_record()
        max_weight, signed = self.max_weight, self.signed
        return among(self._names, lambda record: read_weighted(record, max_weight, signed=signed))

    def _blueprint(self) -> Blueprint:
        names = self._read_vertices()
        self.max_weight = whole("max_weight", self.max_weight, 1, LARGEST_WEIGHT)
        self._check_linear(names)
        if not self._weighted and (self.max_weight > 1 or self.signed):
            raise ConfigurationError(
                'weights add up: max_weight and signed go with updates="insert", copies="counted" (or "absent"), '
                'protects="edge" and no max_degree'
            )
        if names is None:
            return self._on_demand("CutGraph", self._given("max_weight", "signed"))
        self._check_whole()
        pairs = pair_count(len(names))
        if 8 * pairs > whole("memory_limit", self.memory_limit, 1, 2**62):
            raise ConfigurationError(
                f"{len(names)} vertices have {pairs} pairs, more than memory_limit={self.memory_limit} bytes "
                "hold; declare fewer, or none and ask for single weights"
            )
        return self._linear_graph("CutGraph", PairForm(names), self._given("max_weight", "signed"))

    def _contributing(self, **bounds: Any) -> Contribution:
        return super()._contributing(max_weight=self.max_weight, signed=self.signed, **bounds)

    def _name_of(self, query: Any) -> str | None:
        edge = ends(*query) if type(query) in (tuple, list) and len(query) == 2 else None
        return None if edge is None else _pair(*edge)

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        asked = self._asking() if self._names is None else None
        released = None
        if self._names is not None and isinstance(accuracy, Spread):
            engine: Any = self._engine
            ties = tie_probability(getattr(engine.inner, "noise", None))
            released = ReleasedGraph(self._names, row.copy(), accuracy, ties, self._log_moments())
        return GraphRelease(made.tick, made.value, made.stddev, made.private, made.bounds, made.about, released, asked)

    def _log_moments(self) -> float:
        """Ticks, and windows that end there; without a horizon the share of tick t is 6/(pi t)^2."""
        ticks = math.log(self.horizon) if self.horizon is not None else math.log((math.pi * self.tick) ** 2 / 6)
        return ticks + math.log(self.max_window + 1)


def pair_labels(names: list[str]) -> list[str]:
    """The pairs of vertices as tables name them, in the order of `pair_index`.

    >>> pair_labels(["a", "b", "c"])
    ['["a", "b"]', '["a", "c"]', '["b", "c"]']
    """
    return [_pair(names[a], names[b]) for a in range(len(names)) for b in range(a + 1, len(names))]


def _pair(one: str, other: str) -> str:
    return json.dumps([one, other], ensure_ascii=False)
