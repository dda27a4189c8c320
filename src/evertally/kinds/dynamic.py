"""What is present now: items that come and go, by what their insertions and deletions say."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import PlainValidator, model_validator

from evertally import DynamicCount, DynamicHistogram
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.encode.labels import canonical
from evertally.kinds.fields import Flag, Label, Labels, OptionError, Text, Whole
from evertally.kinds.kind import Arguments, Card, Items, Kind, Result, declared
from evertally.kinds.proofs import Proof
from evertally.kinds.query_table import Query
from evertally.kinds.reads import NAMES, Cells, Parameters, Records

_OF_THE_INPUT = ("action", "insert", "delete", "id", "columns")  # the class never hears of columns and their words


def _no_column(given: object) -> None:
    raise ValueError("is not needed: a count reads no value. Leave it out, or ask for a dynamic_histogram")


class DynamicQuery(Query):
    """The columns of an update, and how a deletion finds what it deletes."""

    action: Text | None = None
    insert: Label | None = None
    delete: Label | None = None
    id: Text | None = None
    identity: Literal["id", "value", "raw"] = "id"
    protects: Literal["event", "item"] = "item"
    lifetimes: Whole | None = None
    unique_deletions: Flag | None = None
    max_lifetime: Whole | None = None
    process: Text | None = None

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
        if self.action is None and not self._only_comes():
            raise OptionError(None, "needs 'action', the column that says whether an event inserts or deletes")
        words = [option for option in ("insert", "delete") if getattr(self, option) is not None]
        if words and self.action is None:
            raise OptionError(words[0], f"{words[0]} is a word of the column that 'action' names, and there is none")
        if len(words) == 1:
            raise OptionError(words[0], "insert and delete go together: the word for each of them")
        if words and canonical(self.insert) == canonical(self.delete):
            raise OptionError("delete", "delete must be another word than insert")
        return self

    def _only_comes(self) -> bool:
        """Whether items may be inserted only: those that expire go by themselves."""
        return self.max_lifetime is not None


class DynamicCountQuery(DynamicQuery):
    column: Annotated[Text | None, PlainValidator(_no_column)] = None


class DynamicHistogramQuery(DynamicQuery):
    column: Text
    categories: Labels
    other: Label | None = None


def records(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    """The records (action, value, id) of a tick.

    >>> words = {"insert": "in", "delete": "out"}
    >>> records(2, {"action": ["in", "up"], "column": ["north", "south"], "id": [7, 8]}, words)
    [('insert', 'north', 7), (None, 'south', 8)]
    """
    nothing: list[Any] = [None] * count
    actions = cells.get("action", ["insert"] * count)
    if "insert" in parameters:
        known = {canonical(parameters[word]): word for word in ("insert", "delete")}
        # Each cell by itself: as keys of a dictionary True and 1 are one, as words they are not.
        actions = [known.get(canonical(cell)) for cell in actions]
    values = zip(*cells["columns"], strict=True) if "columns" in cells else cells.get("column", nothing)
    return list(zip(actions, values, cells.get("id", nothing), strict=True))


def items(parameters: Parameters) -> Items | None:
    """The items of a query, unless it protects single updates."""
    if parameters.get("protects", "item") == "event":
        return None
    identity, column = parameters.get("identity", "id"), parameters.get("id")
    made_of = (identity, *(parameters.get(option) for option in ("action", "insert", "delete", "id")))
    if identity == "id":
        words = f"a name in the column {column!r}"
        return Items(made_of, words, f"An item is one name in the column {column!r}: what bears it belongs to it.")
    return Items(
        made_of,
        "an insertion and its deletion",
        "No item is ever deleted twice, by construction of the source (unique_deletions): privacy rests on it.",
    )


def _arguments(parameters: Parameters) -> Arguments:
    return {option: value for option, value in parameters.items() if option not in _OF_THE_INPUT}


_dynamic = partial(
    Kind,
    reads=NAMES,
    records=Records({"action": NAMES, "id": NAMES}, records),
    items=items,
    proofs={"linear": Proof("dynamic-data 13.1 and 13.2, factorization-counting 2.4")}
    | {name: Proof(f"dynamic-data {one.section}") for name, one in CONSTRUCTIONS.items()},
    change_proof="dynamic-data 6.3, 13.1 and 14",
    arguments=_arguments,
)

KINDS = (
    _dynamic(
        statistic=DynamicCount,
        options=DynamicCountQuery,
        result=Result(),
        card=Card("figure", "Present now"),
    ),
    _dynamic(
        statistic=DynamicHistogram,
        options=DynamicHistogramQuery,
        result=Result(categories=declared),
        card=Card("bars", "Present now, by {column}"),
    ),
)
