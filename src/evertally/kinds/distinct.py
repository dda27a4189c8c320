"""Different users: altogether, by declared category, and of items that nobody listed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from evertally.kinds.fields import Flag, Label, Labels, OptionError, Quantile, Text, Whole
from evertally.kinds.found_items import discovery, limited
from evertally.kinds.kind import Arguments, Card, Kind, Result, declared
from evertally.kinds.known_before import by_users
from evertally.kinds.proofs import NOISE_PROCESSES, Proof
from evertally.kinds.query_table import Query
from evertally.kinds.reads import NAMES, Parameters
from evertally.users.distinct import DistinctUsers
from evertally.users.distinct_unknown import UnknownDistinctUsers

_ONCE, _BY_CATEGORY = "users-and-domains 2.1, 2.2 and 2.6", "users-and-domains 2.2"


class DistinctQuery(Query):
    categories: Labels | None = None
    other: Label | None = None
    max_categories: Whole | None = None
    max_users: Whole | None = None
    bits: Whole | None = None
    sample: Quantile | None = None
    nonnegative: Flag | None = None

    @model_validator(mode="after")
    def _categories_need_a_column(self) -> Self:
        if (self.column is None) != (self.categories is None):
            missing = "column" if self.column is None else "categories"
            raise OptionError(missing, "column and categories go together: without both, all users are counted")
        return self


class UnknownDistinctQuery(Query):
    column: Text
    max_categories: Whole | None = None
    threshold: Literal["sum", "per_tick", "paper"] | None = None
    sticky: Flag | None = None
    max_labels: Whole | None = None


def _arguments(parameters: Parameters) -> Arguments:
    return {("by" if name == "categories" else name): value for name, value in parameters.items()}


def _categories(parameters: Parameters) -> list[str] | None:
    return declared(parameters) if "categories" in parameters else None


KINDS = (
    Kind(
        level=True,
        statistic=DistinctUsers,
        also=("distinct",),
        options=DistinctQuery,
        reads=NAMES,
        result=Result(categories=_categories),
        card=Card(
            "figure",
            "Different users so far, by {column}",
            events="Different users so far",
            by_label="bars",
            made="Each user counts once in a {column}, with the first {noun} there.",
            made_of_events="Each user counts once, with the first {noun}.",
        ),
        proofs=NOISE_PROCESSES,
        change_proof=_ONCE,
        arguments=_arguments,
        known_before=by_users,
    ),
    Kind(
        statistic=UnknownDistinctUsers,
        also=("unknown-distinct",),
        options=UnknownDistinctQuery,
        reads=NAMES,
        result=Result(labels="found", running=True),
        card=Card("ranking", "Different users of all that was found in {column} often enough to be shown"),
        proofs={"tree": Proof(f"streaming-selection 7.2, {_BY_CATEGORY}")},
        built_on=limited,
        change_proof=_BY_CATEGORY,
        needs_delta=True,
        discovery=discovery,
    ),
)
