"""Batches of events: what a live stream takes in, and how it keeps them until their tick is released.

A batch comes as JSON lines, as a JSON array, as CSV or as an Arrow IPC stream. It is refused for its envelope only; a
record that cannot be read is left out without a trace. In the journal a batch is an Arrow stream of the needed columns,
in which JSON cells stay what they were: whether all of them happen to be texts must not change what one of them means.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from evertally.errors import StateError
from evertally.runtime.input import arrow_body, csv_lines, json_cells, json_lines
from evertally.runtime.input.arrow_columns import entries
from evertally.runtime.input.envelope import (
    NOT_JSON,
    TOO_LARGE,
    TOO_MANY,
    BatchRefused,
    known,
    needed,
    recognised,
    unrecognised,
)
from evertally.runtime.input.sources import ROWS, Batch
from evertally.runtime.input.tokens import cells_of, is_tokens, mapped_bytes, tokens_of
from evertally.runtime.spec import StreamSpec

JSON_LINES = "application/x-ndjson"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"
MEDIA_TYPES = (JSON_LINES, JSON, CSV, ARROW)

ENTRIES_A_ROW = 8  # of lists
BYTES_A_ROW = 32  # of mappings in JSON: a few entries
_MARK = b"evertally"
_OBJECTS, _JSON_TEXT, _TOKENS = b"objects", b"json", b"tokens"
_write_cell = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

Mark = Callable[[str], int | None]  # how far a source was accepted, by name


class Piece(NamedTuple):
    """A batch that a source offers, and how far the source is read once the batch is accepted.

    The marks are kept in the transaction that accepts the batch. So a source that asks for them after a crash goes on
    behind the last accepted event: none is lost, and none is counted twice.
    """

    batch_id: str
    batch: Batch
    marks: Mapping[str, int]

    # A named tuple has no other base class: what `Secret` does, said again.
    def __repr__(self) -> str:
        return "<Piece, not shown>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a Piece holds events and is not pickled")


def parse(body: bytes, media_type: str, spec: StreamSpec) -> Batch:
    """The needed columns of a batch; BatchRefused if its envelope is wrong."""
    return counted(body, media_type, spec)[1]


def counted(body: bytes, media_type: str, spec: StreamSpec) -> tuple[int, Batch]:
    """The rows of a batch, good and bad ones, and its needed columns; BatchRefused if its envelope is wrong.

    A row with long lists counts as several, one for every eight entries: it costs as much. Of JSON the commas say so;
    and an entry of a mapping costs more, so that the bytes of mappings count: of those in cells that are read, a matter
    of each record and the public spec, and of nobody else's records.
    """
    if len(body) > spec.serve.max_batch_bytes:
        raise BatchRefused(TOO_LARGE)
    names = needed(spec)
    kind = media_type.partition(";")[0].strip().lower()
    # Before they are read: what a row costs is the same however short it is.
    sent = 0
    if kind in (JSON_LINES, CSV):
        sent = body.count(b"\n") + (body[-1:] != b"\n")
    if kind in (JSON_LINES, JSON):
        sent = max(sent, body.count(b",") // ENTRIES_A_ROW)
    _check_rows(sent, spec)
    if kind == ARROW:
        rows, columns = arrow_body.read(body, names, spec)
        sent = max(rows, entries(columns.values()) // ENTRIES_A_ROW)
        _check_rows(sent, spec)
    elif kind == JSON_LINES:
        lines = json_lines.read(body, names, known(spec))
        if lines.others and not lines.rows:
            raise unrecognised(known(spec))
        rows, columns = lines.rows, lines.columns
        mapped = sum(mapped_bytes(column) for column in columns.values() if is_tokens(column))
        sent = max(sent, mapped // BYTES_A_ROW)
        _check_rows(sent, spec)
    elif kind == JSON:
        elements, records = _elements(body, spec)
        sent = max(sent, elements)
        rows, columns = json_cells.columns(recognised(records, known(spec)), names)
        sent = max(
            sent, sum(len(cell) for column in columns.values() for cell in column if isinstance(cell, dict)) // 2
        )
        _check_rows(sent, spec)
    elif kind == CSV:
        rows, columns = csv_lines.of_body(body, names)
    else:
        raise BatchRefused(f"the media type of a batch must be one of {', '.join(MEDIA_TYPES)}")
    return sent, columns or {ROWS: pa.nulls(rows)}


def _check_rows(rows: int, spec: StreamSpec) -> None:
    if rows > spec.serve.max_batch_rows:
        raise BatchRefused(TOO_MANY)


def _elements(body: bytes, spec: StreamSpec) -> tuple[int, list[json_cells.Record]]:
    try:
        elements = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        elements = None
    if not isinstance(elements, list) or not all(map(json_cells.depth_fits, elements)):
        raise BatchRefused(NOT_JSON)
    _check_rows(len(elements), spec)
    return len(elements), [element for element in elements if isinstance(element, dict)]


def encode(batch: Batch) -> bytes:
    """A batch as bytes, the same bytes for the same batch."""
    fields, columns = [], []
    for name, column in batch.items():
        mark = None
        if isinstance(column, np.ndarray):
            column, mark = _of_objects(column)
        elif is_tokens(column):
            column, mark = column.storage, {_MARK: _TOKENS}
        fields.append(pa.field(name, column.type, metadata=mark))
        columns.append(column)
    schema = pa.schema(fields)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return bytes(sink.getvalue())


def encoded_earlier(batch: Batch) -> bytes:
    """A batch as versions wrote it that kept all JSON cells as Python objects: it may come again after an update."""
    return encode({name: cells_of(column) if is_tokens(column) else column for name, column in batch.items()})


def decode(payload: bytes) -> Batch:
    """The batch that `encode` wrote."""
    try:
        with pa.ipc.open_stream(pa.BufferReader(payload)) as reader:
            schema, batch = reader.schema, reader.read_next_batch()
        return {field.name: _to_objects(batch.column(i), field.metadata) for i, field in enumerate(schema)}
    except (pa.ArrowException, OSError, ValueError, StopIteration):
        pass
    raise StateError("a batch in the journal cannot be read; the state file is damaged")


def _of_objects(cells: NDArray[Any]) -> tuple[Any, Mapping[bytes, bytes]]:
    """Python objects as Arrow: as they are if all have one type that Arrow can hold, otherwise as JSON."""
    kinds = set(map(type, cells)) - {type(None)}
    typed = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    if len(kinds) <= 1:
        try:
            return pa.array(cells.tolist(), typed[kinds.pop()] if kinds else pa.null()), {_MARK: _OBJECTS}
        except (KeyError, ValueError, OverflowError, pa.ArrowException):  # lists; a lone surrogate; a long integer
            pass
    return pa.array([_write_cell(cell) for cell in cells], pa.large_string()), {_MARK: _JSON_TEXT}


def _to_objects(column: Any, metadata: Mapping[bytes, bytes] | None) -> Any:
    mark = (metadata or {}).get(_MARK)
    if mark is None:
        return column
    if mark == _TOKENS:
        column.validate(full=True)  # positions that lie would lead the loops that read it anywhere
        return tokens_of(column)
    cells = column.to_pylist()
    return np.fromiter(json.loads(f"[{','.join(cells)}]") if mark == _JSON_TEXT else cells, object, len(cells))
