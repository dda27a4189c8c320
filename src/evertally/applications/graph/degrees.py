"""How many edges each vertex has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evertally.applications.graph.edges import vertex
from evertally.applications.graph.kept import Lands
from evertally.applications.graph.linear import GraphForm
from evertally.applications.graph.linear_sensitivity import Shape
from evertally.applications.graph.on_demand import AskableGraphStatistic
from evertally.contract.forms import LabelledForm
from evertally.contract.options import statistic
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.dynamic.answers import Answer
from evertally.errors import ConfigurationError


class DegreeForm(GraphForm, LabelledForm):
    """A number for each vertex."""


@dataclass(frozen=True)
class DegreeRelease(Release):
    """A release of degrees. `value` has those that are shown; `degree` any one."""

    asked: Callable[[Any], Answer] | None = field(default=None, repr=False, compare=False)

    def degree(self, one: Any) -> Answer:
        """The degree of a vertex, with its error; costs nothing. Where vertices are not declared: of any label, whether
        or not it ever occurred, until the next step. What is asked may follow from releases, never from the data."""
        assert self.asked is not None
        return self.asked(one)


@statistic
class DegreeVector(AskableGraphStatistic):
    """How many edges each vertex has.

    An edge record is there or not: Gamma^2 = 4, with copies="counted" or "absent" 2, of a projected graph 8; a node
    with at most D edges: D^2 + D (factorization-counting 6.5 [R]). Exact tier. Error: Gamma times that of a counter, in
    each number. Time of a tick: O(records + vertices) and one step of the noise process; memory: the edges seen (none
    with copies="counted" or "absent") and the noise process. Without declared vertices a degree takes O(log T) draws
    when it is asked for ("sqrt": O(T)), and memory grows with the labels that occur.

    >>> import evertally as et
    >>> people = ["ann", "bob", "cem"]
    >>> degrees = et.graph.DegreeVector(vertices=people, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> release = degrees.step([("ann", "bob"), ("ann", "cem"), ("ann", "nobody")])
    >>> list(release.value), release.degree("ann").value == release.value["ann"]
    (['ann', 'bob', 'cem'], True)
    >>> unlisted = et.graph.DegreeVector(guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> release = unlisted.step([("ann", "bob"), ("ann", "cem")])
    >>> release.value, release.degree("ann") == release.degree("ann"), release.degree("nobody").stddev > 0
    ({}, True, True)
    """

    @property
    def _shape(self) -> Shape:
        return "degree vector"

    def _lands(self) -> Lands:
        if self._names is None:
            return lambda one, other: (one, other)
        index = {name: i for i, name in enumerate(self._names)}
        return lambda one, other: (index[one], index[other])

    def _blueprint(self) -> Blueprint:
        names = self._read_vertices()
        self._check_linear(names)
        if names is None:
            return self._on_demand("DegreeVector")
        self._check_whole()
        return self._linear_graph("DegreeVector", DegreeForm(names))

    def _name_of(self, query: Any) -> str | None:
        return vertex(query)

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)

        def of_row(query: Any) -> Answer:
            name = vertex(query)
            if name not in made.value:
                raise ConfigurationError("there is no such vertex among the declared ones")
            return Answer(made.value[name], accuracy.stddev, accuracy.radius)

        asked = self._asking() if self._names is None else of_row
        return DegreeRelease(made.tick, made.value, made.stddev, made.private, made.bounds, made.about, asked)
