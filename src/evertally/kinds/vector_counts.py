"""Running counts of numbered columns: as many as there are, and no label for one before it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from pydantic import model_validator

from evertally import VectorCounter
from evertally.encode.labels import canonical
from evertally.encode.range_door import NumberedLabels
from evertally.kinds.amounts import AMOUNTS_BY_LABEL, check_amounts, proof_of_steps, without_weight
from evertally.kinds.fields import Columns, Flag, Label, Number, Text, Whole
from evertally.kinds.kind import Card, Kind, Result, declared
from evertally.kinds.proofs import APART, BY_AGE, CHANGE_OF_COLUMNS, NOISE_PROCESSES, REPLACED_AND_APART
from evertally.kinds.query_table import APART_IN_TICKS, Apart, GoesWith, Weighed
from evertally.kinds.reads import LABELS, NAMES, Parameters, Reads


class VectorCounterQuery(Weighed, Apart):
    """Counts by the number of a column, from 0 on, or by name; or sums of a second column."""

    goes_with: ClassVar[Mapping[str, GoesWith]] = {}  # no mechanism of it is a partition, which some do not go with

    column: Text
    columns: Columns
    other: Label | None = None
    max_per_event: Whole | None = None
    max_weight: Number | None = None
    signed: Flag = False
    weight: Text | None = None
    resolution: Number | None = None
    memory_limit: Whole | None = None

    @model_validator(mode="after")
    def _amounts_are_declared(self) -> Self:
        check_amounts(self)
        return self


def each_column(parameters: Parameters) -> Sequence[str]:
    """A category for each column.

    >>> list(each_column({"columns": ["a", "b"]})), each_column({"columns": 10**9, "other": "rest"})[-2:]
    (['a', 'b'], ('999999999', 'rest'))
    """
    columns, other = parameters["columns"], parameters.get("other")
    if not isinstance(columns, int):
        return declared({**parameters, "categories": columns})
    return NumberedLabels(columns, None if other is None else str(canonical(other)))


def _reads(parameters: Parameters) -> Reads:
    return NAMES if "weight" in parameters else LABELS


def _result(parameters: Parameters) -> Result:
    return _SUMS if "weight" in parameters else _COUNTS


_COUNTS, _SUMS = Result(categories=each_column), Result(value="real", categories=each_column)

KINDS = (
    Kind(
        statistic=VectorCounter,
        options=VectorCounterQuery,
        reads=LABELS,
        reads_as=_reads,
        records=AMOUNTS_BY_LABEL,
        result=_COUNTS,
        gives_as=_result,
        labelled_by="columns",
        card=Card(
            "bars",
            "Events so far, by {column}",
            weighed="Events by {column}",
            summed="Sum of {weight} by {column}",
            made="Each {noun} adds 1 to its {column}, and nothing else.",
            made_of_sums="Each {noun} adds its {weight} to its {column}, and nothing else.",
        ),
        proofs=NOISE_PROCESSES | BY_AGE | APART,
        arguments=without_weight,
        built_on=proof_of_steps,
        change_proof=CHANGE_OF_COLUMNS,
        user_proof=REPLACED_AND_APART,
        in_ticks=APART_IN_TICKS,
    ),
)
