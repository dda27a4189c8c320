"""What is present now: items that come and go, by what their insertions and deletions say."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from evertally import DynamicCount, DynamicHistogram, DynamicRange, LinearQueries
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.static import STATICS, static_proof_elsewhere
from evertally.encode.labels import canonical
from evertally.kinds.kind import Arguments, Card, Items, Kind, Result, declared
from evertally.kinds.proofs import Proof
from evertally.kinds.reads import NAMES, ONE_VALUE, VALUES, Cells, Parameters, Records
from evertally.kinds.update_tables import (
    IN_ORDER,
    DynamicCountQuery,
    DynamicHistogramQuery,
    DynamicRangeQuery,
    LinearQueriesQuery,
    family_of,
    range_family,
    shown_queries,
)

_OF_THE_INPUT = ("action", "insert", "delete", "id", "columns")  # the class never hears of columns and their words


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
    if "action" not in parameters:
        return None  # without names and deletions an item is one event
    return Items(
        made_of,
        "an insertion and its deletion",
        "No item is ever deleted twice, by construction of the source (unique_deletions): privacy rests on it.",
    )


def ordered(parameters: Parameters) -> bool:
    """Whether a record may be about one that came before it: a deletion, or a name that is there already."""
    return "action" in parameters or "id" in parameters


def _arguments(parameters: Parameters) -> Arguments:
    given = {option: value for option, value in parameters.items() if option not in _OF_THE_INPUT}
    return given | ({} if "action" in parameters else {"deletions": False})


def _shown_by(option: str, made: Callable[[Parameters], Any]) -> Any:
    """The names of what a release shows. Asked for at every release, so remembered."""

    @lru_cache(maxsize=256)
    def names(written: str) -> tuple[str, ...]:
        parameters = json.loads(written)
        return tuple(shown_queries(made(parameters), parameters.get(option)))

    def of(parameters: Parameters) -> list[str]:
        kept = {name: parameters[name] for name in ("size", "edges", "family", option) if name in parameters}
        return list(names(json.dumps(kept)))

    return of


def _with_shown(option: str, made: Callable[[Parameters], Any], parameters: Parameters) -> Arguments:
    arguments = _arguments(parameters)
    if option in arguments:
        queries = shown_queries(made(parameters), arguments[option])
        by_name = isinstance(arguments[option], dict)
        arguments[option] = {IN_ORDER: [list(pair) for pair in queries.items()]} if by_name else [*queries.values()]
    return arguments


def _static_proof(mechanism: Any) -> str:
    """Where the static mechanism, or the strategy, behind a statistic is proved."""
    foreign = static_proof_elsewhere(mechanism.static)
    return STATICS[mechanism.static].section if foreign is None else f"not ours: {foreign}"


_dynamic = partial(
    Kind,
    reads=NAMES,
    records=Records({"action": NAMES, "id": NAMES}, records),
    items=items,
    ordered=ordered,
    event="one update: an insertion or a deletion",
    proofs={"linear": Proof("dynamic-data 13.1 and 13.2, factorization-counting 2.4")}
    | {name: Proof(made.section) for name, made in CONSTRUCTIONS.items()},
    change_proof="dynamic-data 6.3, 13.1 and 14",
    arguments=_arguments,
    built_on=_static_proof,
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
    _dynamic(
        statistic=DynamicRange,
        options=DynamicRangeQuery,
        reads=ONE_VALUE,
        result=Result(categories=_shown_by("ranges", range_family)),
        card=Card("bars", "Present now, by ranges of {column}"),
        arguments=partial(_with_shown, "ranges", range_family),
    ),
    _dynamic(
        statistic=LinearQueries,
        options=LinearQueriesQuery,
        reads=VALUES,
        records=Records({"columns": ONE_VALUE, "action": NAMES, "id": NAMES}, records),
        result=Result("real", categories=_shown_by("show", family_of)),
        card=Card("bars", "Present now: queries about {column}", events="Present now: queries about what is there"),
        arguments=partial(_with_shown, "show", family_of),
    ),
)
