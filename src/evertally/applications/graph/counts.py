"""How many edges there are."""

from __future__ import annotations

from evertally.applications.graph.kept import Lands
from evertally.applications.graph.linear import GraphForm, LinearGraphStatistic
from evertally.applications.graph.linear_sensitivity import Shape
from evertally.contract.forms import NumberForm
from evertally.contract.options import statistic
from evertally.contract.parts import Blueprint


class CountForm(GraphForm, NumberForm):
    """One number."""


@statistic
class EdgeCount(LinearGraphStatistic):
    """How many edges there are.

    An edge record is there or not (or another is in its place): Gamma^2 = 2, with copies="counted" or "absent" 1, of a
    projected graph 5; a node with at most D edges: D^2 (factorization-counting 6.5 [R]). Exact tier. Error: Gamma times
    that of a counter. Time of a tick: O(records) and one step of the noise process; memory: the edges seen (none with
    copies="counted" or "absent") and the noise process.

    >>> import evertally as et
    >>> friends = et.graph.EdgeCount(guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> friends.step([("ann", "bob"), ("bob", "ann"), ("bob", "bob"), None]).tick
    1
    >>> friends.sensitivity.l2_squared, round(friends.stddev(tick=100), 1)
    (2, 3.2)
    """

    @property
    def _shape(self) -> Shape:
        return "edge count"

    def _lands(self) -> Lands:
        return lambda one, other: (0,)

    def _blueprint(self) -> Blueprint:
        self._check_linear(self._read_vertices())
        return self._linear_graph("EdgeCount", CountForm(1))
