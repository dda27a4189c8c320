"""How many edges there are."""

from __future__ import annotations

from typing import Literal

from evertally.applications.encoded import Certified, Encoded
from evertally.applications.encoder import Changes, Encoder, add
from evertally.applications.graph.edges import read_edge
from evertally.applications.records import Record
from evertally.contract.forms import NumberForm
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.privacy import Change, Neighbours


class EdgesOnce(Encoder):
    """A copy of an edge is nothing after the first."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = self.table()

    def encode(self, record: Record, changes: Changes) -> None:
        if record not in self._seen:
            self._seen.put(record, 1)
            add(changes, 0, 1)


@statistic
class EdgeCount(Encoded):
    """How many different edges have arrived.

    >>> import evertally as et
    >>> from evertally.applications.graph import EdgeCount
    >>> from evertally.applications.refuter import streams
    >>> friends = EdgeCount(guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> friends.step([("ann", "bob"), ("bob", "ann"), ("bob", "bob"), None]).tick
    1
    >>> edges = [("a", "b"), ("b", "c")]
    >>> worst = friends.refute(edges, streams(edges, 4))
    >>> worst.refuted, worst.split, worst.l1
    (False, 2, 2)
    """

    copies: Literal["ignored", "counted"] = option("What a copy of an edge is.", default="ignored")

    def certified(self) -> Certified:
        base = Change(2, 2, 1)
        return Certified(
            base if self._relation() is Neighbours.ADD_REMOVE else base.group(2), "FC 6.5, edge count, door"
        )

    def encoder(self) -> Encoder:
        return EdgesOnce()

    def _blueprint(self) -> Blueprint:
        return self._encoded_blueprint("EdgeCount", 1, read_edge, {"copies": self.copies}, NumberForm(1), sort=True)
