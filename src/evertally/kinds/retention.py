"""Users period by period, users who come back, and items that come and go more than once."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import PlainValidator, model_validator

from evertally import PeriodUsers, PresentItems, Retention
from evertally.kinds.dynamic import items, ordered, records
from evertally.kinds.fields import Flag, Label, Text, Ticks, Whole
from evertally.kinds.kind import Arguments, Card, Kind, Result
from evertally.kinds.proofs import NOISE_PROCESSES, Proof
from evertally.kinds.query_table import Query, check_words
from evertally.kinds.reads import NAMES, Parameters, Records


def _no_column(given: object) -> None:
    raise ValueError("is not needed: users are counted, and [stream] user_column says who they are. Leave it out")


def _no_value(given: object) -> None:
    raise ValueError("is not needed: items are counted, and 'id' names them. Leave it out")


class PeriodQuery(Query):
    """Periods are public blocks of ticks; the first begins with the first tick."""

    column: Annotated[Text | None, PlainValidator(_no_column)] = None
    period: Ticks


class RetentionQuery(PeriodQuery):
    ages: Whole


class PeriodUsersQuery(PeriodQuery):
    so_far: Flag = False
    max_active_periods: Whole | None = None


class PresentItemsQuery(Query):
    """The columns of an update, and how often an item may come and go."""

    column: Annotated[Text | None, PlainValidator(_no_value)] = None
    action: Text
    insert: Label | None = None
    delete: Label | None = None
    id: Text
    max_flips: Whole | None = None
    semantics: Literal["set", "copies"] = "set"
    protects: Literal["event", "item"] = "item"

    @model_validator(mode="after")
    def _words(self) -> Self:
        check_words(self.action, self.insert, self.delete)
        return self


def _by_cell(parameters: Parameters) -> Arguments:
    return {**parameters, "by_cell": True}


_OF_THE_INPUT = ("action", "insert", "delete", "id")


def _of_items(parameters: Parameters) -> Arguments:
    return {option: value for option, value in parameters.items() if option not in _OF_THE_INPUT}


_PERIODS = "users-and-domains 1.4, 1.5 and 2.4"
_users: dict[str, Any] = {
    "reads": NAMES,
    "proofs": {"centred": Proof(_PERIODS), "independent": Proof(_PERIODS)},
    "change_proof": "users-and-domains 1.1 and 2.4",
    "in_ticks": ("period",),
}

KINDS = (
    Kind(
        statistic=Retention,
        options=RetentionQuery,
        result=Result(labels="growing"),
        card=Card(
            "triangle",
            "Users of each cohort who are active again, by age in periods of {period}",
            period="period",
        ),
        arguments=_by_cell,
        **_users,
    ),
    Kind(
        statistic=PeriodUsers,
        options=PeriodUsersQuery,
        result=Result(),
        card=Card("figure", "Users active in the last period of {period} that is over", period="period"),
        **_users,
    ),
    Kind(
        statistic=PresentItems,
        also=("present",),
        options=PresentItemsQuery,
        reads=NAMES,
        records=Records({"action": NAMES, "id": NAMES}, records),
        items=items,
        ordered=ordered,
        event="one record: an insertion or a deletion",
        result=Result(),
        card=Card("figure", "Present now"),
        proofs={"path": Proof("users-and-domains 1.4, 1.5 and 2.5"), **NOISE_PROCESSES},
        change_proof="users-and-domains 2.5",
        arguments=_of_items,
    ),
)
