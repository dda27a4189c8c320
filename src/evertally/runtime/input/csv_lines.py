"""CSV, one record to a line: of a file in blocks, or of the body of a request at once.

A quote that is never closed ends with its line: a broken record must not swallow those after it. A line that is no
record (another number of cells, an open quote) is left out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from evertally.runtime.input.envelope import BatchRefused

Columns = dict[str, Any]
Skipped = Callable[[int], None]  # is told how many lines were left out

_BLOCK = 8 * 2**20
_LONGEST_LINE = 64 * 2**20
# Of a request: what a header costs grows with its columns, and nobody has written so many by hand.
_LONGEST_HEADER = 2**16
_MOST_COLUMNS = 4096
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Lines in which every cell is free of quotes, or quoted as a whole and free of commas: unquoting is deleting quotes.
_SIMPLY_QUOTED = re.compile(rb'(?:(?:"[^",\r\n]*"|[^",\r\n]*)[,\r\n])*')


def of_body(body: bytes, names: Sequence[str]) -> tuple[int, Columns]:
    """The number of rows of a request's body, and its wanted columns."""
    file = io.BytesIO(body)
    header = column_names(file, _LONGEST_HEADER)
    if header is None or len(header) > _MOST_COLUMNS or not any(header):
        raise BatchRefused(
            f"the body must begin with a line of column names in UTF-8, at most {_MOST_COLUMNS} of them in "
            f"{_LONGEST_HEADER} bytes"
        )
    for name in names:
        if header.count(name) != 1:
            # What stands in the first line is not told: without a header it would be a record.
            raise BatchRefused(f"the first line must name the column {name!r}, exactly once")
    parts = list(batches(file, header, names))
    rows = sum(rows for rows, _ in parts)
    return rows, {
        name: pa.chunked_array([columns[name] for _, columns in parts], pa.binary()).combine_chunks() for name in names
    }


def column_names(file: IO[bytes], longest: int = _LONGEST_LINE) -> list[str] | None:
    """The cells of the first line; None if it is not text, or too long."""
    line = file.readline(longest + 1)
    try:
        return None if len(line) > longest else next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")]), [])
    except (UnicodeDecodeError, csv.Error):
        return None


def batches(
    file: IO[bytes], header: Sequence[str], wanted: Sequence[str], skipped: Skipped = lambda _count: None
) -> Iterator[tuple[int, Columns]]:
    """The rows after the header, block by block: how many, and the wanted columns as bytes."""
    positions = [header.index(name) for name in wanted] or [0]  # one of them, to count rows
    for block in blocks(file):
        if b'"' in block and len(header) > 1 and _SIMPLY_QUOTED.fullmatch(block):
            block = block.replace(b'"', b"")
        columns = (_plain_block if _is_plain(block) else _careful_block)(block, positions, len(header), skipped)
        yield len(columns[0]), dict(zip(wanted, columns, strict=False))


def blocks(file: IO[bytes]) -> Iterator[bytes]:
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


def _plain_block(block: bytes, positions: Sequence[int], width: int, skipped: Skipped) -> list[Any]:
    block = _rows_of_width(block, width, skipped)
    if not block:
        return [pa.array([], pa.binary()) for _ in positions]
    if block.startswith(_BYTE_ORDER_MARK):  # Arrow drops it there, and nowhere else: it is part of a cell
        block = b"\n" + block
    numbered = [str(i) for i in range(width)]
    wanted = [str(i) for i in positions]
    table = pa.csv.read_csv(
        pa.BufferReader(block),
        read_options=pa.csv.ReadOptions(column_names=numbered, block_size=len(block) + 1),
        parse_options=pa.csv.ParseOptions(quote_char=False),
        convert_options=pa.csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(numbered, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    return [table.column(name).combine_chunks() for name in wanted]


def _rows_of_width(block: bytes, width: int, skipped: Skipped) -> bytes:
    """The lines with the right number of cells. Arrow asks about every other line one by one, which takes minutes for a
    body of nothing else."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    cells = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(cells == ord("\n"))
    commas = np.searchsorted(np.flatnonzero(cells == ord(",")), ends)
    lengths = np.diff(ends, prepend=-1)
    right = (np.diff(commas, prepend=0) == width - 1) & (lengths > 1)
    skipped(int(np.count_nonzero(~right & (lengths > 1))))
    return block if right.all() else cells[np.repeat(right, lengths)].tobytes()


def _careful_block(block: bytes, positions: Sequence[int], width: int, skipped: Skipped) -> list[Any]:
    lines = _lines(block)
    rows = [cells for line in lines if len(cells := _cells(line)) == width]
    skipped(len(lines) - len(rows))
    return [_cell_column([row[i] for row in rows]) for i in positions]


def _lines(block: bytes) -> list[str]:
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
