"""Events that follow earlier ones of the same user."""

from __future__ import annotations

from evertally.encode.labels import canonical
from evertally.kinds.fields import Flag, Labels, Text, Ticks, Whole
from evertally.kinds.kind import Card, Kind, Result
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.query_table import Query
from evertally.kinds.reads import NAMES, Parameters
from evertally.users.joins import JoinedEvents


class JoinedQuery(Query):
    column: Text
    after: Labels
    then: Labels
    max_pairs: Whole | None = None
    within: Ticks | None = None
    once: Flag | None = None


def _columns(parameters: Parameters) -> list[str]:
    return [str(canonical(label)) for label in parameters["then"]]


KINDS = (
    Kind(
        statistic=JoinedEvents,
        options=JoinedQuery,
        reads=NAMES,
        result=Result(categories=_columns),
        card=Card("bars", "Events so far that followed, by {column}"),
        proofs=NOISE_PROCESSES,
        change_proof="users-and-domains 7",
        in_ticks=("within",),
        ordered=lambda parameters: True,
    ),
)
