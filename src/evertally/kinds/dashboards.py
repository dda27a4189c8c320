"""Many counts of events that have exclusive types, and tables by several columns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from evertally.applications.dashboard import Dashboard, GroupBy, cells_of
from evertally.kinds.fields import Label, Labels, Name, Positive, Text, Whole, says
from evertally.kinds.kind import Card, Kind, Result
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.query_table import Query
from evertally.kinds.reads import LABELS, NAMES, Cells, Parameters, Records

_METRICS = 'must be a table of lists of types, or "all", such as {total = "all", money = ["order", "refund"]}'
Metrics = Annotated[
    dict[Name, Literal["all"] | Annotated[list[Label], Field(min_length=1)]], Field(min_length=1), says(_METRICS)
]
_VALUES = 'must be a table of lists of values by column, such as {sex = ["f", "m"]}'
Values = Annotated[dict[Text, Labels], Field(min_length=1), says(_VALUES)]
Tables = Annotated[
    list[list[Text]], Field(min_length=1), says('must be lists of columns, such as [["sex", "ward"], ["ward"], []]')
]
_WEIGHTS = says("must be a table of numbers by metric, such as {total = 4}")
_MULTIPLIERS = says("must be a table of whole numbers by metric, such as {total = 2}")


class TypedQuery(Query):
    weights: Annotated[dict[Text, Positive | Whole], _WEIGHTS] | None = None
    multipliers: Annotated[dict[Text, Whole], _MULTIPLIERS] | None = None
    way: Literal["auto", "metrics", "types"] | None = None


class DashboardQuery(TypedQuery):
    column: Text
    types: Labels
    metrics: Metrics
    other: Label | None = None


class GroupByQuery(TypedQuery):
    columns: Values
    tables: Tables


def _cells(parameters: Parameters) -> list[str]:
    """What the class calls its numbers: they follow from the table."""
    return cells_of(parameters["columns"], parameters["tables"])


def _records(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    return list(zip(*cells["columns"], strict=True)) if cells else []


_PROOF = "users-and-domains 1.6 and 7, factorization-counting 2.4"

KINDS = (
    Kind(
        statistic=Dashboard,
        options=DashboardQuery,
        reads=LABELS,
        result=Result(categories=lambda parameters: list(parameters["metrics"])),
        card=Card(
            "bars",
            "Events so far, by groups of {column}",
            made="Each {noun} adds 1 to the groups that its {column} is in, and nothing else.",
        ),
        proofs=NOISE_PROCESSES,
        change_proof=_PROOF,
        user_proof="users-and-domains 1.2",
    ),
    Kind(
        statistic=GroupBy,
        options=GroupByQuery,
        reads=LABELS,
        records=Records({"columns": NAMES}, _records),
        result=Result(categories=_cells),
        card=Card("bars", "Events so far, by several columns"),
        proofs=NOISE_PROCESSES,
        change_proof=_PROOF,
        user_proof="users-and-domains 1.2",
    ),
)
