"""Events from files: CSV, JSON lines, Parquet and Arrow, read in batches, one raw column per name.

Errors speak of the envelope only: the file, its format, its header. A record that cannot be read is left out
without a trace (a broken line, a row of the wrong width) or has missing cells. For this to hold *per record*,
a record in a CSV or JSON-lines file is one line: a quote that is never closed must not swallow the records
after it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.input import json_cells
from evertally.runtime.input.arrow_columns import clean
from evertally.secret import Secret

Batch = dict[str, Any]  # column name -> Arrow array, or numpy array of Python objects
# The column of a batch of which no column is wanted: events are only counted. No column of a spec has this name.
ROWS = ""

_BLOCK = 8 * 2**20
_LONGEST_LINE = 64 * 2**20
_JSON_ROWS = 65536
# Lines in which every cell is free of quotes, or quoted as a whole and free of commas: unquoting is deleting quotes.
_SIMPLY_QUOTED = re.compile(rb'(?:(?:"[^",\r\n]*"|[^",\r\n]*)[,\r\n])*')
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


class InputFile(Secret):
    """One file of events, pinned by the hash of its bytes.

    The hash is what a resumed run compares, so the file must not change between hashing and the end of
    reading; `check` says so if it did.
    """

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
            raise ConfigurationError(f"cannot read the input {self.path}: {error.strerror}") from None

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The wanted columns, batch by batch, in file order."""
        try:
            with self._open() as file:
                yield from _READERS[self.format](file, self.path, list(columns))
        except OSError as error:
            raise ConfigurationError(f"cannot read the input {self.path}: {error.strerror or 'not readable'}") from None
        self.check()

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


def _require(columns: list[str], present: Sequence[str], path: Path, hint: str | None = None) -> None:
    for name in columns:
        if present.count(name) != 1:
            problem = "has no column" if name not in present else "has more than one column"
            hint = hint or f"Its columns: {', '.join(present)}"
            raise ConfigurationError(f"{path} {problem} {name!r}, which the spec names. {hint}")


def _of(columns: Batch, rows: int) -> Batch:
    return columns or {ROWS: pa.nulls(rows)}


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines, each with its newline. A line too long for memory is left out, like any broken record."""
    rest = b""
    skipping = False
    while chunk := file.read(_BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if skipping:
            first = chunk.find(b"\n") + 1
            if not first:
                continue
            skipping, rest, chunk, cut = False, b"", chunk[first:], cut - first
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
            if len(rest) > _LONGEST_LINE:
                skipping, rest = True, b""
    if rest:
        yield rest + b"\n"


def _csv_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Batch]:
    try:
        header = file.readline(_LONGEST_LINE).decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the header line is not UTF-8 text") from None
    names = next(csv.reader([header]), [])
    # What stands in the first line is not told: without a header it would be a record.
    _require(columns, names, path, "The first line must name the columns")
    positions = {name: names.index(name) for name in columns} or {ROWS: 0}
    for block in _blocks(file):
        if b'"' in block and len(names) > 1 and _SIMPLY_QUOTED.fullmatch(block):
            block = block.replace(b'"', b"")
        batch = (_plain_block if _is_plain(block) else _careful_block)(block, positions, len(names))
        yield batch if columns else _of({}, len(batch[ROWS]))


def _is_plain(block: bytes) -> bool:
    """Whether Arrow's splitter can be trusted with a block: it then does what ours does line by line
    (tested).

    Quotes may reach over line ends, and Arrow stops with an error at a row that is both too short and not
    UTF-8.
    """
    if b'"' in block or not block.strip(b"\r\n"):
        return False
    try:
        return block.isascii() or bool(block.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _plain_block(block: bytes, positions: dict[str, int], width: int) -> Batch:
    numbered = [str(i) for i in range(width)]
    wanted = [str(i) for i in positions.values()]
    table = pa.csv.read_csv(
        pa.BufferReader(block),
        read_options=pa.csv.ReadOptions(column_names=numbered, block_size=len(block) + 1),
        parse_options=pa.csv.ParseOptions(quote_char=False, invalid_row_handler=lambda _row: "skip"),
        convert_options=pa.csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(numbered, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return {name: table.column(str(i)).combine_chunks() for name, i in positions.items()}


def _careful_block(block: bytes, positions: dict[str, int], width: int) -> Batch:
    rows = [cells for line in _csv_lines(block) if len(cells := _cells(line)) == width]
    return {name: _cell_column([row[i] for row in rows]) for name, i in positions.items()}


def _csv_lines(block: bytes) -> list[str]:
    text = block.decode("latin-1")  # cannot fail, and encoding it back gives the same bytes
    return [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]


def _cells(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return []


def _cell_column(cells: list[str]) -> Any:
    raw = "\n".join(cells).encode("latin-1").split(b"\n") if cells else []  # no cell holds a newline
    return pa.array([cell or None for cell in raw], pa.binary())


def _json_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Batch]:
    rows: list[json_cells.Record] = []
    for block in _blocks(file):
        for record in json_cells.records(block):
            rows.append(record)
            if len(rows) == _JSON_ROWS:
                yield _of(json_cells.columns(rows, columns)[1], len(rows))
                rows = []
    yield _of(json_cells.columns(rows, columns)[1], len(rows))


def _clean_batches(
    record_batches: Callable[..., Iterator[Any]], kind: str, file: IO[bytes], path: Path, columns: list[str]
) -> Iterator[Batch]:
    try:
        for batch in record_batches(file, path, columns):
            batch.validate()
            yield _of({name: clean(batch.column(name)) for name in columns}, batch.num_rows)
    except (pa.ArrowException, KeyError, UnicodeDecodeError):
        # Arrow's own text may quote values of the file.
        raise ConfigurationError(f"{path} is not a readable {kind} file") from None


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


_READERS: dict[str, Callable[[IO[bytes], Path, list[str]], Iterator[Batch]]] = {
    "csv": _csv_batches,
    "jsonl": _json_batches,
    "parquet": partial(_clean_batches, _parquet_batches, "Parquet"),
    "arrow": partial(_clean_batches, _arrow_batches, "Arrow"),
}
