"""JSON lines to columns: a scanner for the lines that it fully understands, the careful reader for all others.

Which of the two reads a line is a matter of that line alone, and of speed alone: both give the same cells (the tests
compare them), and a line stays in its place, because users' events are counted in the order in which they come. The
scanner's cells stay as they are written (tokens.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.encode.name_index import taken
from evertally.runtime.input import json_cells
from evertally.runtime.input.json_cells import Record
from evertally.runtime.input.tokens import column_of, joined, token
from evertally.secret import Secret

# In bytes. So little is read by the careful reader alone: the scanner has to be loaded, which takes a second, and
# compiled the first time. A rule about the body alone: sent again, it is read the same way.
FEW = 2**14
_PART = 2**22  # bytes that are scanned at once: where cells lie takes more memory than they do


@dataclass(frozen=True, repr=False)
class Lines(Secret):
    """What was read of some lines: records that have a column of ours, or none at all, and how many of the others."""

    rows: int
    columns: dict[str, Any]
    others: int  # records of other columns alone
    broken: int  # lines that are no records, and not blank


def read(lines: bytes, names: Sequence[str], known: frozenset[str], few: int = FEW) -> Lines:
    """The wanted columns of JSON lines. `known`: a record has one of these, or no column, or is left out; if there are
    none of these, every record counts."""
    if len(lines) < few:
        return _read_carefully(lines, names, known)
    if not lines.endswith(b"\n"):
        lines += b"\n"
    scanned = _Scanner(names, known)
    parts = [scanned.part(part) for part in _parts(lines)]
    return Lines(
        sum(part.rows for part in parts),
        {name: joined([part.columns[name] for part in parts]) for name in names},
        sum(part.others for part in parts),
        sum(part.broken for part in parts),
    )


def _parts(lines: bytes) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time."""
    start = 0
    while start < len(lines):
        stop = lines.index(b"\n", min(start + _PART, len(lines)) - 1) + 1
        yield lines[start:stop]
        start = stop


def _read_carefully(lines: bytes, names: Sequence[str], known: frozenset[str]) -> Lines:
    records = list(json_cells.records(lines))
    ours = [record for record in records if _is_ours(record, known)]
    rows, columns = json_cells.columns(ours, names)
    written = sum(map(bool, map(bytes.strip, lines.split(b"\n"))))
    return Lines(rows, columns, len(records) - rows, written - len(records))


def _is_ours(record: Record, known: frozenset[str]) -> bool:
    return not record or not known or not known.isdisjoint(record)


class _Scanner(Secret):
    """Reads parts of one body or file."""

    def __init__(self, names: Sequence[str], known: frozenset[str]) -> None:
        from evertally.runtime.input.json_scan import scan

        self._scan, self._names, self._known = scan, names, known
        keys = [_key(name) for name in (*names, *sorted(known.difference(names)))]
        self._keys = np.frombuffer(b"".join(keys), np.uint8)
        self._offsets = np.cumsum([0, *map(len, keys)])

    def part(self, part: bytes) -> Lines:
        """Of whole lines, each with its newline."""
        most, width = part.count(b"\n"), len(self._names)
        data = np.frombuffer(part + bytes(8), np.uint8)
        first, last = np.empty((width, most), np.int64), np.empty((width, most), np.int64)
        doubtful = np.empty(most, np.int64)
        spans = first, last, doubtful
        ours = not self._known
        rows, others, strange = self._scan(data, len(part), self._keys, self._offsets, ours, not _is_utf8(part), *spans)
        first, last, doubtful = first[:, :rows], last[:, :rows], doubtful[:rows]
        left = np.flatnonzero(doubtful >= 0)
        if left.size:
            kept, more, records, others_too = self._carefully(part, left, first, last, doubtful)
            data = np.frombuffer(part + more, np.uint8)
            if not kept.all():
                first, last, rows = first[:, kept], last[:, kept], int(kept.sum())
            others, strange = others + others_too, strange - records
        columns = {}
        for i, name in enumerate(self._names):
            columns[name] = column_of(taken(data, np.ascontiguousarray(first[i]), last[i] - first[i]))
        return Lines(rows, columns, others, strange)

    def _carefully(self, part: bytes, left: Any, first: Any, last: Any, starts: Any) -> tuple[Any, bytes, int, int]:
        """Reads the lines that the scanner left, and puts the spans of their cells, written anew, where the lines are.
        Which rows there are, the cells to be put behind the part, how many records there were, and how many of others.
        """
        written, rows, records = [], [], 0
        for row, start in zip(left.tolist(), starts[left].tolist(), strict=True):
            record = json_cells.record(part[start : part.index(b"\n", start)])
            records += record is not None
            if record is not None and _is_ours(record, self._known):
                rows.append(row)
                written += [token(record.get(name)) for name in self._names]
        kept = np.ones(len(starts), np.bool_)
        kept[left] = False
        kept[rows] = True
        lengths = np.fromiter(map(len, written), np.int64, len(written)).reshape(len(rows), len(self._names))
        ends = len(part) + np.cumsum(lengths).reshape(lengths.shape)
        first[:, rows], last[:, rows] = (ends - lengths).T, ends.T
        return kept, b"".join(written), records, records - len(rows)


def _key(name: str) -> bytes:
    """A name as the scanner meets it. One that is only ever written with escapes is never met: it has no newline."""
    escaped = any(character < " " or character in '"\\' for character in name)
    return b"\n" if escaped else name.encode("utf-8", "surrogatepass")


def _is_utf8(part: bytes) -> bool:
    if part.isascii():
        return True
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True
