"""What a [[query]] about items that come and go may say: its columns, their words, how a deletion finds its item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PlainValidator, model_validator

from evertally.dynamic.families import Boxes, HalfSpaces, Marginals, Ranges, read_family
from evertally.errors import ConfigurationError
from evertally.kinds.fields import Flag, Label, Labels, OptionError, Probability, Text, Whole, says
from evertally.kinds.query_table import Query, check_words
from evertally.kinds.reads import Parameters

IN_ORDER = "in order"  # a table as pairs: digests and snapshots sort tables by name
_EDGES = "must be a list of rising numbers such as [0, 18, 65, inf]"
_FAMILY = 'must be a table such as {kind = "boxes", shape = [8, 8]}'


def _no_column(given: object) -> None:
    raise ValueError("is not needed: a count reads no value. Leave it out, or ask for a dynamic_histogram")


def _edges(given: list[Any]) -> list[Any]:
    """Edges as JSON can hold them: infinities in writing."""
    return list(_refusing(lambda: Ranges(edges=given)).axis()["edges"])


def _family(given: dict[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = _refusing(lambda: read_family(given)).written()
    return written


def _refusing(make: Any) -> Any:
    try:
        return make()
    except ConfigurationError as error:
        raise ValueError(f"is refused: {error}") from None


Table = Annotated[dict[str, Any], says("must be a table of options")]
Edges = Annotated[list[int | float | str], Field(min_length=2), AfterValidator(_edges), says(_EDGES)]
WrittenFamily = Annotated[dict[str, Any], AfterValidator(_family), says(_FAMILY)]
Shown = Annotated[list[Any], Field(min_length=1), says('must be a list of ranges such as [[0, 17], [65, 99], "all"]')]
Asked = Annotated[
    list[Any] | dict[str, Any], Field(min_length=1), says("must be a list of queries, or a table of them by name")
]


class DynamicQuery(Query):
    """The columns of an update, and how a deletion finds what it deletes."""

    action: Text | None = None
    insert: Label | None = None
    delete: Label | None = None
    deletions: Flag = True
    id: Text | None = None
    identity: Literal["id", "value", "raw"] = "id"
    protects: Literal["event", "item"] = "item"
    lifetimes: Whole | None = None
    unique_deletions: Flag | None = None
    max_lifetime: Whole | None = None
    static: Text | None = None
    static_options: Table | None = None
    process: Text | None = None
    every: Whole | None = None
    max_items: Whole | None = None
    partition: Literal["identity", "finite", "infinite"] | None = None
    beta: Probability | None = None
    construction: Table | None = None

    @model_validator(mode="after")
    def _names_or_none(self) -> Self:
        if self.identity == "id" and self.id is None:
            raise OptionError(
                None,
                "needs 'id', the column that names the item; or identity = \"value\" (a deletion takes one of its "
                'value away) or "raw" (every deletion counts)',
            )
        if self.identity != "id" and self.id is not None:
            raise OptionError("id", f'id names items; with identity = "{self.identity}" they have no names')
        return self

    @model_validator(mode="after")
    def _actions_and_their_words(self) -> Self:
        if self.action is None and self.deletions and self.max_lifetime is None:
            raise OptionError(
                None,
                "needs 'action', the column that says whether an event inserts or deletes; or deletions = false, if "
                "nothing ever goes",
            )
        if self.action is not None and not self.deletions:
            raise OptionError("deletions", "deletions = false goes without action: every event inserts")
        check_words(self.action, self.insert, self.delete)
        return self


class DynamicCountQuery(DynamicQuery):
    column: Annotated[Text | None, PlainValidator(_no_column)] = None


class DynamicHistogramQuery(DynamicQuery):
    column: Text
    categories: Labels
    other: Label | None = None


class DynamicRangeQuery(DynamicQuery):
    column: Text
    size: Whole | None = None
    edges: Edges | None = None
    ranges: Shown | None = None

    @model_validator(mode="after")
    def _ranges_of_its_cells(self) -> Self:
        if (self.size is None) == (self.edges is None):
            raise OptionError(None, "needs either 'size' (values are 0 to size - 1) or the 'edges' of its cells")
        _check_queries(range_family, self.given(), "ranges")
        return self


class LinearQueriesQuery(DynamicQuery):
    columns: Annotated[list[Text], Field(min_length=1), says("must be a list of columns")] | None = None
    family: WrittenFamily
    show: Asked | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_in_order(cls, given: Any) -> Any:
        show = given.get("show") if isinstance(given, dict) else None
        return {**given, "show": {IN_ORDER: [list(pair) for pair in show.items()]}} if isinstance(show, dict) else given

    @model_validator(mode="after")
    def _values_and_queries(self) -> Self:
        named = [option for option in ("column", "columns") if getattr(self, option) is not None]
        if self.family["kind"] == "count" and named:
            raise OptionError(named[0], "a count reads no value: leave the column out")
        if self.family["kind"] != "count" and len(named) != 1:
            raise OptionError(None, "needs either 'column' (the value) or 'columns' (the coordinates of the value)")
        _check_queries(family_of, self.given(), "show")
        if self.columns is not None:
            wanted = _coordinates(family_of(self.given()))
            if len(self.columns) != wanted or len(set(self.columns)) != wanted:
                raise OptionError("columns", f"the values of this family have {wanted} coordinates: a column for each")
        return self


def range_family(parameters: Parameters) -> Any:
    """The family of a dynamic_range."""
    return Ranges(size=parameters.get("size"), edges=parameters.get("edges"))


def family_of(parameters: Parameters) -> Any:
    """The family of linear_queries."""
    return read_family(parameters["family"])


def _coordinates(family: Any) -> int:
    if isinstance(family, HalfSpaces):
        return family.dimension
    return len(family.shape) if isinstance(family, Boxes | Marginals) else 1


def shown_queries(family: Any, asked: Any) -> dict[str, Any]:
    """The queries that a release shows, by name. TOML has no null: "all" is everything, or a whole axis.

    >>> shown_queries(Ranges(size=100), [[0, 17], "all"])
    {'0..17': [0, 17], 'all': None}
    """
    if asked is None:
        return dict(family.shown)
    queries = _everything(asked) if isinstance(family, Ranges | Boxes) else asked
    if isinstance(queries, Mapping):
        return {str(name): query for name, query in queries[IN_ORDER]}
    return {family.name(query): query for query in queries}


def _everything(asked: Any) -> Any:
    if isinstance(asked, Mapping):
        return {IN_ORDER: [[name, _everything(query)] for name, query in asked[IN_ORDER]]}
    return [_everything(part) for part in asked] if isinstance(asked, list) else None if asked == "all" else asked


def _check_queries(made: Any, parameters: Parameters, option: str) -> None:
    """Refuses at its line what is no query of the family."""
    try:
        family = made(parameters)
        for query in shown_queries(family, parameters.get(option)).values():
            family.vector(query)
    except ConfigurationError as error:
        raise OptionError(option, f"{option} is refused: {error}") from None
