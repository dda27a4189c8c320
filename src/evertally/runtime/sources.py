"""Events from files: CSV, JSON lines and Parquet, read in batches, one raw column per name.

Errors speak of the envelope only: the file, its format, its header. A record that cannot be read is left out
without a trace (a broken line, a row of the wrong width) or has missing cells. For this to hold *per record*,
a record in a CSV or JSON-lines file is one line: a quote that is never closed must not swallow the records
after it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from evertally.errors import ConfigurationError, StateError

Batch = dict[str, Any]  # column name -> Arrow array, or numpy array of Python objects

_BLOCK = 8 * 2**20
_LONGEST_LINE = 64 * 2**20
_JSON_ROWS = 65536
# Lines in which every cell is free of quotes, or quoted as a whole and free of commas: unquoting is deleting quotes.
_SIMPLY_QUOTED = re.compile(rb'(?:(?:"[^",\r\n]*"|[^",\r\n]*)[,\r\n])*')
_decode = json.JSONDecoder().decode
_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


class InputFile:
    """One file of events, pinned by the hash of its bytes.

    The hash is what a resumed run compares, so the file must not change between hashing and the end of
    reading; `check` says so if it did.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.format = _FORMATS.get(self.path.suffix.lower(), "")
        if not self.format:
            raise ConfigurationError(
                f"{self.path}: unknown kind of input; use .csv, .jsonl (.ndjson) or .parquet (.pq)"
            )
        try:
            self._identity = self._stat()
            with open(self.path, "rb") as file:
                self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ConfigurationError(f"cannot read the input {self.path}: {error.strerror}") from None

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The wanted columns, batch by batch, in file order."""
        reader = {"csv": _csv_batches, "jsonl": _json_batches, "parquet": _parquet_batches}[self.format]
        try:
            with open(self.path, "rb") as file:
                yield from reader(file, self.path, list(columns))
        except OSError as error:
            raise ConfigurationError(f"cannot read the input {self.path}: {error.strerror or 'not readable'}") from None
        self.check()

    def check(self) -> None:
        """StateError if the file is no longer the one that was hashed."""
        if self._stat() != self._identity:
            raise StateError(
                f"the input {self.path} changed while it was read; nothing of it was released. Run it again"
            )

    def _stat(self) -> tuple[int, int, int]:
        status = os.stat(self.path)
        return status.st_ino, status.st_size, status.st_mtime_ns


def _require(columns: list[str], present: Sequence[str], path: Path) -> None:
    for name in columns:
        if present.count(name) != 1:
            problem = "has no column" if name not in present else "has more than one column"
            raise ConfigurationError(
                f"{path} {problem} {name!r}, which the spec names. Its columns: {', '.join(present)}"
            )


# -- Lines ---------------------------------------------------------------------------------------------------


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


# -- CSV -----------------------------------------------------------------------------------------------------


def _csv_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Batch]:
    try:
        header = file.readline(_LONGEST_LINE).decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: the header line is not UTF-8 text") from None
    names = next(csv.reader([header]), [])
    _require(columns, names, path)
    positions = {name: names.index(name) for name in columns}
    for block in _blocks(file):
        if b'"' in block and len(names) > 1 and _SIMPLY_QUOTED.fullmatch(block):
            block = block.replace(b'"', b"")
        yield (_plain_block if _is_plain(block) else _careful_block)(block, positions, len(names))


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


# -- JSON lines ----------------------------------------------------------------------------------------------


def _json_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Batch]:
    rows: list[dict[str, object]] = []
    for block in _blocks(file):
        for line in block.split(b"\n"):
            record = _json_record(line)
            if record is not None:
                rows.append(record)
            if len(rows) == _JSON_ROWS:
                yield _json_columns(rows, columns)
                rows = []
    yield _json_columns(rows, columns)


def _json_record(line: bytes) -> dict[str, object] | None:
    try:
        record = _decode(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _json_columns(rows: list[dict[str, object]], columns: list[str]) -> Batch:
    return {name: np.fromiter((row.get(name) for row in rows), object, len(rows)) for name in columns}


# -- Parquet -------------------------------------------------------------------------------------------------


def _parquet_batches(file: IO[bytes], path: Path, columns: list[str]) -> Iterator[Batch]:
    try:
        parquet = pa.parquet.ParquetFile(file)
        _require(columns, parquet.schema_arrow.names, path)
        for batch in parquet.iter_batches(columns=columns):
            yield {name: batch.column(name) for name in columns}
    except pa.ArrowException:
        # Arrow's own text may quote values of the file.
        raise ConfigurationError(f"{path} is not a readable Parquet file") from None
