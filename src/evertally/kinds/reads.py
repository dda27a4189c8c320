"""Which columns of an event a kind reads, and what becomes of them.

Envelopes, files, folders, brokers, journals and doors ask here, and nowhere else: a column that a query reads is
needed, checked, kept and handed over because `columns_read` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Parameters = Mapping[str, Any]  # the options of a [[query]] that belong to its kind
# The cells of each column of a tick, by the option that names it; an option that names several has a list of them.
Cells = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Reads:
    """What a kind makes of a column, and the types of [events] that it can be made of.

    Which types of Arrow fit follows from the use: runtime/input/envelope.py.
    """

    use: Literal["amounts", "labels", "items", "names", "values"]
    declared: tuple[str, ...]


AMOUNTS = Reads("amounts", ("number", "integer"))
LABELS = Reads("labels", ("text", "integer", "list of text", "counts"))
ITEMS = Reads("items", LABELS.declared)  # labels that nobody declared
NAMES = Reads("names", ("text", "integer"))  # exactly one text or number in each cell
# Cells as they stand: what they mean as labels is less than what they are (2.5 is none, and true is a text).
VALUES = Reads("values", LABELS.declared)
ONE_VALUE = Reads("values", NAMES.declared)


@dataclass(frozen=True)
class Records:
    """Events of several columns, which their door gets as one record each.

    `columns`: beside `column`, by the option that names each of them. `made`: the records of a tick, from their number,
    the cells of each column, and the options of the query; it never raises on cells. `step_events` of the
    mechanism takes them in their order. `only_with`: an option without which an event is its one column.

    >>> paired = Records({"id": NAMES}, lambda count, cells, options: list(zip(cells["column"], cells["id"])))
    >>> paired.made(2, {"column": ["north", "south"], "id": [7, 8]}, {})
    [('north', 7), ('south', 8)]
    """

    columns: Mapping[str, Reads]
    made: Callable[[int, Cells, Parameters], list[Any]]
    only_with: str | None = None


class Column(NamedTuple):
    """A column that a query reads: the option that names it, its name, and what is made of it."""

    option: str
    name: str
    reads: Reads


def columns_read(
    column: str | None, parameters: Parameters, reads: Reads, records: Records | None
) -> tuple[Column, ...]:
    """The columns that a query reads, in the order of its kind. An option may name one column, several, or none.

    >>> records = Records({"id": NAMES, "columns": LABELS}, lambda count, cells, options: [])
    >>> [(column.option, column.name) for column in columns_read(None, {"columns": ["a", "b"]}, LABELS, records)]
    [('columns', 'a'), ('columns', 'b')]
    """
    further = {} if records is None else records.columns
    named: list[tuple[str, Any, Reads]] = [("column", column, reads)]
    named += [(option, parameters.get(option), use) for option, use in further.items()]
    return tuple(
        Column(option, name, use)
        for option, names, use in named
        if names is not None
        for name in ([names] if isinstance(names, str) else names)
    )
