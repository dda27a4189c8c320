"""A file that grows: a line of JSON or CSV for every released number. The offset is its length in bytes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evertally.errors import StateError
from evertally.runtime.releases import FIELDS, TickRelease, entries, shown
from evertally.runtime.sinks.seals import Written, changed
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.sidecar import sync_directory

_json = json.JSONEncoder(ensure_ascii=False).encode
# Labels may be anybody's text: a carriage return, which csv.writer lets pass, would end the row.
_special = re.compile('[,"\r\n]').search
# What makes a cell a formula in one spreadsheet or another, full-width signs too, and the mark itself.
_FORMULA = frozenset("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")


class Lines:
    """Writes at an offset and cuts off what is behind: whatever a crash left there is written again."""

    def __init__(self, name: str, path: Path, spec: StreamSpec, spreadsheet: bool = False) -> None:
        self.name, self._path, self._spec, self._spreadsheet = name, path, spec, spreadsheet
        self._fields: tuple[str, ...] | None = None  # of a CSV file that has begun
        self._written: Written | None = None
        self._expected: int | None = None

    def check_new(self) -> None:
        if self._path.exists() and (not self._path.is_file() or self._path.stat().st_size > 0):
            raise StateError(
                f"the output {self._path} holds something already, and this stream has released nothing; move it"
            )

    def publish(self, ticks: Sequence[TickRelease], offset: int) -> int:
        try:
            fields = self._fields_at(offset)
            suffix, header = self._path.suffix.lower(), bool(ticks) and offset == 0
            data = encode(self._spec, ticks, suffix, header, fields, spreadsheet=self._spreadsheet)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            with os.fdopen(descriptor, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size < offset:
                    raise StateError(
                        f"the output {self._path} has {size} bytes where the stream has written at least {offset}. "
                        "Bring it back; releases are written once"
                    )
                written = self._checked(file.fileno(), offset)
                file.seek(offset)
                file.write(data)
                file.flush()
                file.truncate(offset + len(data))
                os.fsync(file.fileno())
                written.add(data)
                written.leave(file.fileno())
                self._written = written
            if offset == 0:
                sync_directory(self._path)
        except OSError as error:
            raise StateError(f"cannot write the output {self._path}: {error.strerror}; run again to continue") from None
        return offset + len(data)

    def _checked(self, descriptor: int, offset: int) -> Written:
        """What is there up to the offset, if it is what was written. Behind it a crash may have left something."""
        known, self._written = self._written, None
        if known is not None and known.offset == offset:
            if known.untouched(descriptor):
                return known
            expected: int | None = known.digest
            if os.fstat(descriptor).st_size > offset:
                raise changed(self._path)
        else:
            expected, self._expected = self._expected, None
        found = Written.read(descriptor, offset)
        if expected is not None and found.digest != expected:
            raise changed(self._path)
        return found

    def last_behind(self, offset: int) -> int:
        if not self._path.is_file() or self._path.stat().st_size <= offset:
            return 0
        try:
            with open(self._path, "rb") as file:
                file.seek(offset)
                return max(_ticks_in(file.read(), self._path.suffix.lower()), default=0)
        except OSError as error:
            raise StateError(f"cannot read the output {self._path}: {error.strerror}") from None

    def expect(self, digest: int) -> None:
        self._expected = digest

    @property
    def digest(self) -> int | None:
        return None if self._written is None else self._written.digest

    def _fields_at(self, offset: int) -> tuple[str, ...]:
        """The columns of a CSV file: a file from before there was a column of labels goes on without it."""
        if offset == 0 or self._path.suffix.lower() != ".csv" or not self._path.exists():
            return csv_fields(self._spec)
        if self._fields is None:
            with open(self._path, "rb") as file:
                old = file.readline() == f"{','.join(FIELDS)}\n".encode()
            self._fields = FIELDS if old else csv_fields(self._spec)
        return self._fields


def _ticks_in(data: bytes, suffix: str) -> Iterator[int]:
    r"""The ticks of rows that `encode` made, as far as they can be read: a crash may have left anything.

    >>> list(_ticks_in(b'tick,time,query\n7,,"a\n99,b"\n8,,c\n1', ".csv"))
    [7, 8]
    >>> list(_ticks_in(b'{"tick": 7, "time": 1}\n{"tick": 8, "ti', ".jsonl"))
    [7]
    """
    if suffix == ".csv":
        with suppress(csv.Error):
            for row in csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline="")):
                if len(row) > 1 and row[0].isdecimal():
                    yield int(row[0])
        return
    for line in data.split(b"\n"):
        with suppress(ValueError, KeyError, TypeError):
            yield int(json.loads(line)["tick"])


def csv_fields(spec: StreamSpec) -> tuple[str, ...]:
    """The columns of CSV. In a stream that releases labels as values they have one of their own, as in Parquet: a
    column holds numbers or texts."""
    if all(query.result.value != "label" for query in spec.queries):
        return FIELDS
    place = FIELDS.index("value") + 1
    return (*FIELDS[:place], "label", *FIELDS[place:])


def encode(
    spec: StreamSpec,
    ticks: Iterable[TickRelease],
    suffix: str,
    header: bool,
    fields: Sequence[str] | None = None,
    *,
    spreadsheet: bool = False,
) -> bytes:
    """The entries of ticks, a row each, as JSON lines (of `FIELDS`) or CSV (of `fields`); the header line only where
    the file begins. `spreadsheet`: labels of CSV are `marked`.

    A tick may have ten thousand rows, and there may be one every second: what rows share is written once.
    """
    fields = csv_fields(spec) if fields is None else fields
    text = [",".join(fields) + "\n"] if header and suffix == ".csv" else []
    for release in ticks:
        for name, query, columns in shown(spec, release):
            if suffix == ".csv" and spreadsheet:
                columns = columns | {part: _all_marked(columns[part]) for part in ("category", "value")}
            if suffix != ".csv":
                text += _json_lines(release, name, columns)
            elif "label" in fields:
                text += _csv_with_labels(release, name, columns, query.result.value == "label")
            else:
                text += _csv(release, name, columns)
    return "".join(text).encode("utf-8", "backslashreplace")


def _json_lines(release: TickRelease, query: str, columns: dict[str, Any]) -> list[str]:
    head = _json({"tick": release.tick, "time": release.time, "query": query})[:-1]
    stddev = _json(columns["stddev"])
    return [
        f'{head}, "category": {_json(category)}, "value": {_value(value)}, "stddev": {stddev}, '
        f'"lower": {_value(lower)}, "upper": {_value(upper)}}}\n'
        for category, value, lower, upper in entries(columns)
    ]


def _value(value: Any) -> str:
    return str(value) if type(value) is int else _json(value)


def _csv(release: TickRelease, query: str, columns: dict[str, Any]) -> list[str]:
    head = ",".join(map(_cell, (release.tick, release.time, query)))
    stddev = _cell(columns["stddev"])
    return [
        f"{head},{_cell(category)},{_cell(value)},{stddev},{lower},{upper}\n"
        for category, value, lower, upper in entries(columns)
    ]


def csv_line(cells: Iterable[Any]) -> str:
    """Cells as a line of CSV."""
    return ",".join(map(_cell, cells)) + "\n"


def marked(cell: Any) -> Any:
    """A label that no spreadsheet takes for a formula: with an apostrophe before it if it begins like one, or with an
    apostrophe. Without its first apostrophe it is the label again. Numbers stay as they are.

    >>> [marked(cell) for cell in ("=1+1", "-5 to 0", "'tis", "north", "", -5, None)]
    ["'=1+1", "'-5 to 0", "''tis", 'north', '', -5, None]
    """
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in _FORMULA else cell


def unmarked(cell: str) -> str:
    """The label of a marked cell.

    >>> [unmarked(marked(cell)) for cell in ("=1+1", "'tis", "north", "")]
    ['=1+1', "'tis", 'north', '']
    """
    return cell.removeprefix("'")


def _all_marked(column: Any) -> Any:
    return [marked(cell) for cell in column] if isinstance(column, list) else marked(column)


def _csv_with_labels(release: TickRelease, query: str, columns: dict[str, Any], labelled: bool) -> list[str]:
    head = ",".join(map(_cell, (release.tick, release.time, query)))
    stddev = _cell(columns["stddev"])
    return [
        f"{head},{_cell(category)},{f',{_cell(value)}' if labelled else f'{_cell(value)},'},{stddev},{lower},{upper}\n"
        for category, value, lower, upper in entries(columns)
    ]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if _special(text) else text
