"""Events from files: CSV, JSON lines, Parquet and Arrow, read in batches, one raw column per name.

Errors speak of the envelope only: the file, its format, its header. A record that cannot be read is left out
without a trace (a broken line, a row of the wrong width) or has missing cells. For this to hold *per record*,
a record in a CSV or JSON-lines file is one line: a quote that is never closed must not swallow the records
after it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.input import csv_lines, json_cells, json_lines
from evertally.runtime.input.arrow_columns import clean
from evertally.runtime.input.envelope import unrecognised
from evertally.secret import Secret

Batch = dict[str, Any]  # column name -> Arrow array, or numpy array of Python objects
# The column of a batch of which no column is wanted: events are only counted. No column of a spec has this name.
ROWS = ""

_RECORDS_LOOKED_AT = 1000
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_FORMATS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
FORMATS = tuple(dict.fromkeys(_FORMATS.values()))


@dataclass(frozen=True)
class _Wanted:
    """What is read of a file, and who is told how many lines were no records."""

    path: Path
    columns: list[str]
    known: frozenset[str]
    skipped: Callable[[int], None]


class CannotRead(ConfigurationError):
    """The system does not let a file be read; it may the next time, without the file having changed."""


class InputFile(Secret):
    """One file of events, pinned by the hash of its bytes.

    The hash is what a resumed run compares, so the file must not change between hashing and the end of
    reading; `check` says so if it did.
    """

    broken = 0  # lines that are no records, of those that were read

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.format = _FORMATS.get(self.path.suffix.lower(), "")
        if not self.format:
            raise ConfigurationError(
                f"{self.path}: unknown kind of input; use .csv, .jsonl (.ndjson), .parquet (.pq) or "
                ".arrow (.ipc, .feather)"
            )
        try:
            self.identity = identity(self.path)
            with open(self.path, "rb") as file:
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise CannotRead(f"cannot read the input {self.path}: {error.strerror}") from None

    def batches(self, columns: Sequence[str], known: frozenset[str] = frozenset()) -> Iterator[Batch]:
        """The wanted columns, batch by batch, in file order. `known`: of these a record of JSON lines has one."""
        self.broken = 0
        wanted = _Wanted(self.path, list(columns), known, self._skipped)
        try:
            with self._open() as file:
                yield from _READERS[self.format](file, wanted)
        except OSError as error:
            raise CannotRead(f"cannot read the input {self.path}: {error.strerror or 'not readable'}") from None
        self.check()

    def column_names(self) -> list[str]:
        """The columns that the file has; of JSON lines those of its first thousand records."""
        try:
            with self._open() as file:
                return _column_names(file, self.format)
        except (OSError, pa.ArrowException):
            pass
        raise ConfigurationError(f"{self.path} is not a readable {self.format} file")

    def _skipped(self, lines: int) -> None:
        self.broken += lines

    def check(self) -> None:
        """StateError if the file is no longer the one that was hashed."""
        if identity(self.path) != self.identity:
            raise StateError(f"the input {self.path} changed while it was read; nothing was released. Run it again")

    def _open(self) -> IO[bytes]:
        return open(self.path, "rb")


def identity(path: Path) -> tuple[int, int, int]:
    """What changes when a file is replaced or written to."""
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


class PipedInput(InputFile):
    """Events from a pipe, held in memory. An interrupted run is finished by piping the same bytes again.

    >>> piped = PipedInput(io.BytesIO(b"ward\\nnorth\\n"), "csv")
    >>> [batch["ward"].to_pylist() for batch in piped.batches(["ward"])]
    [[b'north']]
    """

    def __init__(self, pipe: IO[bytes], format: str) -> None:
        if format not in FORMATS:
            raise ConfigurationError(f"standard input's format must be one of {', '.join(FORMATS)}; got {format!r}")
        self.path = Path("standard input")
        self.format = format
        self._content = pipe.read()
        self.sha256 = hashlib.sha256(self._content).hexdigest()

    def check(self) -> None:
        """Bytes in memory do not change."""

    def _open(self) -> IO[bytes]:
        return io.BytesIO(self._content)


def _column_names(file: IO[bytes], format: str) -> list[str]:
    if format == "csv":
        return csv_lines.column_names(file) or []
    if format == "parquet":
        return list(pa.parquet.ParquetFile(file).schema_arrow.names)
    if format == "jsonl":
        records = islice(chain.from_iterable(map(json_cells.records, csv_lines.blocks(file))), _RECORDS_LOOKED_AT)
        return list(dict.fromkeys(name for record in records for name in record))
    stream = file.read(6) != b"ARROW1"
    file.seek(0)
    return list((pa.ipc.open_stream if stream else pa.ipc.open_file)(file).schema.names)


def _require(columns: list[str], present: Sequence[str], path: Path, hint: str | None = None) -> None:
    for name in columns:
        if present.count(name) != 1:
            problem = "has no column" if name not in present else "has more than one column"
            hint = hint or f"Its columns: {', '.join(present)}"
            raise ConfigurationError(f"{path} {problem} {name!r}, which the spec names. {hint}")


def _of(columns: Batch, rows: int) -> Batch:
    return columns or {ROWS: pa.nulls(rows)}


def _csv_batches(file: IO[bytes], wanted: _Wanted) -> Iterator[Batch]:
    header = csv_lines.column_names(file)
    if header is None:
        raise ConfigurationError(f"{wanted.path}: the header line is not UTF-8 text")
    # What stands in the first line is not told: without a header it would be a record.
    _require(wanted.columns, header, wanted.path, "The first line must name the columns")
    for rows, columns in csv_lines.batches(file, header, wanted.columns, wanted.skipped):
        yield _of(columns, rows)


def _json_batches(file: IO[bytes], wanted: _Wanted) -> Iterator[Batch]:
    found = others = False
    for block in csv_lines.blocks(file):
        lines = json_lines.read(block, wanted.columns, wanted.known)
        wanted.skipped(lines.broken)
        others = others or lines.others > 0
        if lines.rows:
            found = True
            yield _of(lines.columns, lines.rows)
    if others and not found:
        raise ConfigurationError(f"{wanted.path}: {unrecognised(wanted.known)}")
    if not found:
        yield _of(json_cells.columns([], wanted.columns)[1], 0)


def _clean_batches(
    record_batches: Callable[..., Iterator[Any]], kind: str, file: IO[bytes], wanted: _Wanted
) -> Iterator[Batch]:
    try:
        for batch in record_batches(file, wanted.path, wanted.columns):
            batch.validate()
            yield _of({name: clean(batch.column(name)) for name in wanted.columns}, batch.num_rows)
    except (pa.ArrowException, KeyError, UnicodeDecodeError):
        # Arrow's own text may quote values of the file.
        raise ConfigurationError(f"{wanted.path} is not a readable {kind} file") from None


def _parquet_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Any]:
    parquet = pa.parquet.ParquetFile(file)
    _require(columns, parquet.schema_arrow.names, path)
    yield from parquet.iter_batches(columns=columns)


def _arrow_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Any]:
    """Of an Arrow file, or of a stream that was written to a file."""
    stream = file.read(6) != b"ARROW1"
    if stream:
        file.seek(-min(len(_END_OF_STREAM), file.seek(0, os.SEEK_END)), os.SEEK_END)
        if file.read() != _END_OF_STREAM:
            raise ConfigurationError(f"{path} is not a complete Arrow file: it was cut short or is still being written")
    file.seek(0)
    open_it = pa.ipc.open_stream if stream else pa.ipc.open_file
    names = open_it(file).schema.names
    _require(columns, names, path)
    file.seek(0)
    reader = open_it(file, options=pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns]))
    yield from reader if stream else map(reader.get_batch, range(reader.num_record_batches))


_READERS: dict[str, Callable[[IO[bytes], _Wanted], Iterator[Batch]]] = {
    "csv": _csv_batches,
    "jsonl": _json_batches,
    "parquet": partial(_clean_batches, _parquet_batches, "Parquet"),
    "arrow": partial(_clean_batches, _arrow_batches, "Arrow"),
}
