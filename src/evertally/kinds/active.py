"""Users that are active: in the last day, week or month, altogether and by category."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from evertally.encode.labels import canonical
from evertally.kinds.fields import Label, Labels, OptionError, Ticks, Whole, says
from evertally.kinds.kind import Arguments, Card, Kind, Lasting, Result, named
from evertally.kinds.proofs import NOISE_PROCESSES, Proof
from evertally.kinds.query_table import Query
from evertally.kinds.reads import NAMES, Parameters
from evertally.users.active import ActiveUsers

Windows = Annotated[
    list[Ticks], Field(min_length=1), says('must be a list of lengths such as [1, 7, 28] or ["1d", "7d"]')
]


class ActiveQuery(Query):
    windows: Windows
    max_active: Whole | None = None
    categories: Labels | None = None
    other: Label | None = None
    max_categories: Whole | None = None

    @model_validator(mode="after")
    def _categories_are_of_a_column(self) -> Self:
        if (self.column is None) != (self.categories is None):
            have, need = ("categories", "column") if self.column is None else ("column", "categories")
            raise OptionError(have, f"{have} needs {need}: users are counted by the declared values of a column")
        for option in ("other", "max_categories"):
            if getattr(self, option) is not None and self.categories is None:
                raise OptionError(option, f"{option} needs categories")
        return self


def _arguments(parameters: Parameters) -> Arguments:
    given = dict(parameters)
    return given | ({"by": given.pop("categories")} if "categories" in given else {})


def _categories(parameters: Parameters) -> list[str]:
    windows = parameters["windows"]
    if "categories" not in parameters:
        return [str(window) for window in windows]
    return [f"{canonical(label)}, {window}" for window in windows for label in named(parameters)]


def _names(parameters: Parameters, lasting: Lasting) -> list[str]:
    """The categories in words: "last day", or "north, last 7 days"."""
    lasts = [f"last {lasting(window).removeprefix('1 ')}" for window in parameters["windows"]]
    if "categories" not in parameters:
        return lasts
    return [f"{canonical(label)}, {last}" for last in lasts for label in named(parameters)]


_PATHS = "users-and-domains 1.4, 1.5 and 2.3"

KINDS = (
    Kind(
        statistic=ActiveUsers,
        also=("active",),
        options=ActiveQuery,
        reads=NAMES,
        result=Result(categories=_categories),
        card=Card(
            "figure",
            "Different users by {column}, seen at least once in the last {windows}",
            events="Different users, seen at least once in the last {windows}",
            by_label="bars",
            names=_names,
            lengths="windows",
            made="Whoever was seen at least once in the time that just ended counts once in a {column}.",
            made_of_events="Whoever was seen at least once in the time that just ended counts once.",
        ),
        proofs={"path": Proof(_PATHS), "fresh": Proof(_PATHS)} | NOISE_PROCESSES,
        change_proof="users-and-domains 2.3",
        arguments=_arguments,
        in_ticks=("windows",),
    ),
)
