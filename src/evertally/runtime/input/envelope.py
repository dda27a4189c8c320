"""The envelope of a batch: its size, its columns and their types. Nothing else may decide whether a batch is taken.

A batch is refused with one of the few texts of this file. They name what the spec names, and never what a record holds:
the answer to a batch is a release too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from evertally.errors import ConfigurationError
from evertally.runtime.input.arrow_columns import is_text, is_view
from evertally.runtime.input.json_cells import Record
from evertally.runtime.spec import StreamSpec

_types = pa.types
Test = Callable[[Any], bool]


class BatchRefused(ConfigurationError):
    """A batch is not taken, because of its envelope. Nothing of it was counted."""


TOO_LARGE = "the batch is larger than max_batch_bytes; send smaller batches"
TOO_MANY = "the batch has more rows than max_batch_rows; send smaller batches"
TOO_LARGE_DECODED = "the batch is too large once it is decoded; send smaller batches"
NOT_JSON = "the body is not one JSON array of objects in UTF-8, nested at most 64 deep"
NOT_ARROW = "the body is not one complete, valid Arrow IPC stream"


def needed(spec: StreamSpec) -> list[str]:
    """The columns that a batch must have. Where the wall clock decides about ticks, time stamps are not looked at."""
    return spec.wanted(spec.clock.column if spec.clock.close == "request" else None, spec.user_column)


def known(spec: StreamSpec) -> frozenset[str]:
    """The columns of which an event has at least one. None: the stream reads no column, and every event counts."""
    return frozenset((*spec.columns(), *(spec.events or ()))) if needed(spec) else frozenset()


def recognised(records: Iterable[Record], names: frozenset[str]) -> Iterator[Record]:
    """The records that have a known column, or no column at all; BatchRefused at the end if there are others only.

    A record with other columns alone is left out for itself, so that a refusal changes no release: otherwise a single
    record would decide whether all those beside it count.

    >>> list(recognised([{"ward": 1}, {"wrad": 1}, {}], frozenset(["ward"])))
    [{'ward': 1}, {}]
    """
    found = others = False
    for record in records:
        if record and names and names.isdisjoint(record):
            others = True
        else:
            found = True
            yield record
    if others and not found:
        raise unrecognised(names)


def unrecognised(names: frozenset[str]) -> BatchRefused:
    """What is said of records of other columns alone."""
    columns = ", ".join(map(repr, sorted(names)))
    return BatchRefused(f"no record has any of the columns that the spec names ({columns}); none was taken")


def check_type(spec: StreamSpec, name: str, kind: Any) -> None:
    """Refuses an Arrow type that a use of the column, or the declared schema, cannot take."""
    check_use(spec, name, kind)
    value = kind.value_type if _types.is_dictionary(kind) else kind
    declared = (spec.events or {}).get(name)
    if declared is not None and not (_types.is_null(value) or _DECLARED[declared](value)):
        raise BatchRefused(f"column {name!r} has another type than {declared!r}, which [events] declares")


def check_use(spec: StreamSpec, name: str, kind: Any) -> None:
    """Refuses an Arrow type that a use of the column cannot take."""
    coded = _types.is_dictionary(kind)
    value = kind.value_type if coded else kind
    for use in _uses(spec, name):
        if not _USES[use](value) or (coded and _types.is_nested(value)):
            raise BatchRefused(f"column {name!r} has another type than {_WANTED[use]}")


def _uses(spec: StreamSpec, name: str) -> list[str]:
    uses = ["user"] if spec.user_column == name else []
    if spec.clock.column == name and spec.clock.close == "request":
        uses.append("integer time" if spec.clock.integer else "time")
    return uses + [column.reads.use for query in spec.queries for column in query.columns if column.name == name]


def _is_number(kind: Any) -> bool:
    return bool(_types.is_integer(kind) or _types.is_floating(kind))


def _is_plain(kind: Any) -> bool:
    return bool(_types.is_null(kind) or _types.is_boolean(kind)) or _is_number(kind) or is_text(kind)


def _is_item(kind: Any) -> bool:
    return _is_plain(kind) and not is_view(kind)


def _is_list(kind: Any, of: Test) -> bool:
    tests = (_types.is_list, _types.is_large_list, _types.is_fixed_size_list)
    return any(test(kind) for test in tests) and of(kind.value_type)


def _is_weights(kind: Any, weight: Test) -> bool:
    """A table from labels to weights: a map, or a struct whose field names are the labels."""
    if _types.is_map(kind):
        return _is_item(kind.key_type) and weight(kind.item_type)
    return bool(_types.is_struct(kind)) and all(weight(kind.field(i).type) for i in range(kind.num_fields))


def _is_label(kind: Any) -> bool:
    # One level of nesting: a list within a list names nothing, whatever it holds.
    return _is_plain(kind) or _is_list(kind, _is_item) or _is_weights(kind, _is_item)


_USES: dict[str, Test] = {
    "time": lambda kind: _types.is_null(kind) or is_text(kind) or _types.is_date(kind) or _types.is_timestamp(kind),
    "integer time": lambda kind: _types.is_null(kind) or is_text(kind) or _is_number(kind),
    "amounts": lambda kind: _is_plain(kind) or _types.is_decimal(kind),
    "user": _is_plain,
    "labels": _is_label,
    "items": _is_label,
    "names": _is_plain,
    "values": _is_label,
}
_WANTED = {
    "time": "time stamps, dates or text, which this clock needs",
    "integer time": "integers, which this clock needs",
    "amounts": "numbers or text, from which amounts are read",
    "user": "text or numbers: an event has exactly one user",
    "names": "text or numbers: an event has exactly one of them",
    **dict.fromkeys(("labels", "items", "values"), "text, numbers, lists of them, or tables from labels to weights"),
}
_DECLARED: dict[str, Test] = {
    "time": _USES["time"],
    "integer": _types.is_integer,
    "number": lambda kind: _is_number(kind) or _types.is_decimal(kind),
    "text": is_text,
    "list of text": lambda kind: _is_list(kind, lambda item: _types.is_null(item) or is_text(item)),
    "counts": lambda kind: _is_weights(kind, lambda weight: _types.is_null(weight) or _types.is_integer(weight)),
}
