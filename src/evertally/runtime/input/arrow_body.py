"""Arrow IPC streams from outside. Whatever the bytes are: columns that later steps can take, or a refusal.

Sizes are bounded before memory is used: a short body may stand for any number of bytes (compressed buffers say what
they become) and for any number of rows (columns of nulls have no bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from evertally.runtime.input.arrow_columns import GROWTH, Room, TooLarge, clean, with_common_dictionaries
from evertally.runtime.input.envelope import NOT_ARROW, TOO_LARGE_DECODED, TOO_MANY, BatchRefused, check_type
from evertally.runtime.spec import StreamSpec

_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def read(body: bytes, names: Sequence[str], spec: StreamSpec) -> tuple[int, dict[str, Any]]:
    """The number of rows, and the wanted columns as clean arrays."""
    try:
        return _read(body, names, spec)
    except BatchRefused:
        raise
    except TooLarge:
        problem = TOO_LARGE_DECODED
    except Exception:  # Arrow has a dozen kinds of errors, and their texts quote what was read
        problem = NOT_ARROW
    raise BatchRefused(problem)  # out here: an error raised within the handler would carry Arrow's own along


def _read(body: bytes, names: Sequence[str], spec: StreamSpec) -> tuple[int, dict[str, Any]]:
    limit = spec.serve.max_batch_bytes
    _check_messages(body, GROWTH * limit)
    present = pa.ipc.open_stream(pa.BufferReader(body)).schema
    positions = []
    for name in names:
        found = present.get_all_field_indices(name)
        if len(found) != 1:
            raise BatchRefused(f"the batch must have exactly one column {name!r}")
        positions += found
        check_type(spec, name, present.field(found[0]).type)
    options = pa.ipc.IpcReadOptions(included_fields=positions, use_threads=False)
    # Parts without rows are nothing, and there may be very many of them.
    parts = [part for part in pa.ipc.open_stream(pa.BufferReader(body), options=options) if part.num_rows]
    rows = 0
    for part in parts:
        part.validate()
        rows += part.num_rows
        if part.num_rows < 0 or rows > limit:
            raise TooLarge
        if rows > spec.serve.max_batch_rows:
            raise BatchRefused(TOO_MANY)
    room = Room(limit)
    return rows, {
        name: _joined([part.column(name) for part in parts], present.field(name).type, room) for name in names
    }


def _joined(parts: Sequence[Any], kind: Any, room: Room) -> Any:
    if pa.types.is_dictionary(kind):
        parts = with_common_dictionaries(parts)
    cleaned = [clean(part, room) for part in parts or [pa.nulls(0, kind)]]
    return cleaned[0] if len(cleaned) == 1 else pa.concat_arrays(cleaned)


def _check_messages(body: bytes, limit: int) -> None:
    """Refuses a body that is cut short, goes on after its end, or would become more bytes than allowed when it is read:
    decompressed, and with dictionaries that Arrow copies as a whole whenever something is added to one."""
    source = pa.BufferReader(body)
    total = dictionaries = 0
    for message in pa.ipc.MessageReader.open_stream(source):
        if message.type in ("record batch", "dictionary"):
            declared = _decompressed_bytes(message)
            total += declared
        if message.type == "dictionary":
            dictionaries += max(declared, len(message.body))
            total += dictionaries * _Table.root(memoryview(message.metadata)).table(2).has(2)
        if total > limit:
            raise TooLarge
    if source.tell() != len(body) or not body.endswith(_END_OF_STREAM):
        raise BatchRefused(NOT_ARROW)


def _decompressed_bytes(message: Any) -> int:
    """What the compressed buffers of a message say they become; Arrow refuses a buffer that becomes anything else.

    Arrow's Python interface does not show this, so it is read from the message's FlatBuffer (Message.fbs of the Arrow
    format): a record batch has its buffers in field 2 and its compression in field 3.
    """
    header = _Table.root(memoryview(message.metadata)).table(2)
    batch = header.table(1) if message.type == "dictionary" else header
    if not batch.has(3):
        return 0
    body, total = memoryview(message.body), 0
    for offset, length in batch.pairs(2):
        if length >= 8:
            total += max(struct.unpack_from("<q", body, offset)[0], 0)  # -1: this one is not compressed
    return total


class _Table:
    """One table of a FlatBuffer. Arrow has verified the message, and reading beyond its end raises."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - self._number("<i", at)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _number(self, form: str, at: int) -> int:
        return int(struct.unpack_from(form, self._data, at)[0])

    def _field(self, number: int) -> int:
        slot = 4 + 2 * number
        known = slot < self._number("<H", self._fields)
        offset = self._number("<H", self._fields + slot) if known else 0
        return self._at + offset if offset else 0

    def has(self, number: int) -> bool:
        return self._field(number) != 0

    def _target(self, number: int) -> int:
        at = self._field(number)
        return at + self._number("<I", at)

    def table(self, number: int) -> _Table:
        return _Table(self._data, self._target(number))

    def pairs(self, number: int) -> Sequence[tuple[int, int]]:
        at = self._target(number)
        return list(struct.iter_unpack("<qq", self._data[at + 4 : at + 4 + 16 * self._number("<I", at)]))
