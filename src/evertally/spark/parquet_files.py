"""Parquet files that tasks read by themselves, without Java: those that surely hold for pyarrow what they do for Java.

Java hands rows to Python one by one; that was half of what a job cost (docs/benchmarks.md). pyarrow reads the same
columns for a tenth. But two readers of one format agree only where nothing is left to be interpreted: old calendars,
units of time, annotations that one of them ignores, columns that a file does not have. So a footer is looked at, and
whatever is not in the short list below is read by Spark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evertally.errors import StateError

# As spark.sql.execution.arrow.maxRecordsPerBatch has it: what Spark shows tells no more than then.
BATCH_ROWS = 1_000_000
_NONE = {"Type": "None"}
# Of each type of Spark: how Parquet must have it, physically and by annotation. Not there: short integers and decimals
# (whose values may not fit), milliseconds, INT96, maps and structs.
_LEAVES: dict[str, tuple[str, tuple[dict[str, Any], ...]]] = {
    "bigint": ("INT64", (_NONE, {"Type": "Int", "bitWidth": 64, "isSigned": True})),
    "int": ("INT32", (_NONE, {"Type": "Int", "bitWidth": 32, "isSigned": True})),
    "boolean": ("BOOLEAN", (_NONE,)),
    "double": ("DOUBLE", (_NONE,)),
    "float": ("FLOAT", (_NONE,)),
    "string": ("BYTE_ARRAY", ({"Type": "String"},)),
    "binary": ("BYTE_ARRAY", (_NONE,)),
    "date": ("INT32", ({"Type": "Date"},)),
    "timestamp": ("INT64", ({"Type": "Timestamp", "isAdjustedToUTC": True, "timeUnit": "microseconds"},)),
    "timestamp_ntz": ("INT64", ({"Type": "Timestamp", "isAdjustedToUTC": False, "timeUnit": "microseconds"},)),
}
_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
}
_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}  # as Arrow's own schema in a file may ask for
_OF_ANNOTATION = ("Type", "bitWidth", "isSigned", "isAdjustedToUTC", "timeUnit")
# DELTA_BYTE_ARRAY of old writers is wrong, and Java's reader knows how; LZ4 has two forms; Spark has no Brotli.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"}


@dataclass(frozen=True)
class Piece:
    """What one task reads: row groups of files, whose sizes the driver has seen."""

    parts: tuple[tuple[str, int, tuple[int, ...]], ...]  # path, size, row groups


@dataclass(frozen=True)
class Scan:
    """Files in pieces, and which of their columns are read: public facts, for every task."""

    pieces: tuple[Piece, ...]
    columns: Mapping[str, str]  # types of Spark, by names in the files
    names: tuple[str, ...]  # what the spec calls these columns
    zone: str  # of the session: what Spark's time stamps have

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The columns of a piece, in the types and in batches as large as Spark would give them: how many there are
        shows, and must not tell where row groups end."""
        waiting: list[pa.RecordBatch] = []
        for batch in self._read(number):
            waiting.append(batch)
            if sum(len(one) for one in waiting) >= BATCH_ROWS:
                *whole, last = _rebatched(waiting)
                yield from whole
                waiting = [last]
        yield from _rebatched(waiting)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        kinds = {name: arrow_type(kind, self.zone) for name, kind in self.columns.items()}
        for path, size, groups in self.pieces[number].parts:
            try:
                yield from self._read_file(path, size, groups, kinds)
            except (OSError, pa.ArrowException):
                unreadable = True
            else:
                unreadable = False
            if unreadable:  # outside of the exception, which may quote what it has read
                raise StateError("a file of the input cannot be read, or is damaged")

    def _read_file(
        self, path: str, size: int, groups: tuple[int, ...], kinds: Mapping[str, pa.DataType | None]
    ) -> Iterator[pa.RecordBatch]:
        # What was found out about the file that the driver saw must not be used on another one. Whether it is the same
        # altogether, the driver asks after the job, as of every input (`again` in engine.py).
        with open(path, "rb") as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
            if os.fstat(source.fileno()).st_size != size or _places(file, self.columns) is None:
                raise StateError("a file of the input is not the one that the driver has seen: it was replaced")
            for batch in file.iter_batches(BATCH_ROWS, list(groups), columns=list(kinds), use_threads=False):
                columns = [batch.column(name).cast(kind) for name, kind in kinds.items()]
                yield pa.RecordBatch.from_arrays(columns, names=list(self.names))


def _rebatched(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows in as few batches as there can be."""
    if len(batches) < 2:
        return batches
    found: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches(BATCH_ROWS)
    return found


def arrow_type(kind: str, zone: str) -> pa.DataType | None:
    """What Spark gives to Python for a type that may be read here; None for all others.

    >>> arrow_type("array<string>", "UTC"), arrow_type("timestamp", "UTC"), arrow_type("decimal(9,2)", "UTC")
    (ListType(list<item: string>), TimestampType(timestamp[us, tz=UTC]), None)
    """
    of, nested = _element(kind)
    leaf = pa.timestamp("us", zone) if of == "timestamp" else _ARROW.get(of)
    return pa.list_(leaf) if nested and leaf is not None else leaf


def row_groups(path: str, wanted: Mapping[str, str]) -> list[int] | None:
    """The bytes that the wanted columns (types of Spark, by names) take in each row group of a file; None where another
    reader than Spark's might read something else."""
    if os.path.lexists(Path(path).with_name(f".{Path(path).name}.crc")):
        return None  # Hadoop compares its sums with it; who reads past Hadoop would not notice what they notice
    with pq.ParquetFile(path, memory_map=False) as file:
        places = _places(file, wanted)
        if places is None:
            return None
        sizes = []
        for number in range(file.metadata.num_row_groups):
            columns = [file.metadata.row_group(number).column(place) for place in places]
            if any(not set(of.encodings) <= _ENCODINGS or of.compression not in _CODECS for of in columns):
                return None
            if any(of.file_path for of in columns):  # a summary of other files
                return None
            sizes.append(sum(of.total_compressed_size for of in columns))
        return sizes


def cut(sizes: Mapping[tuple[str, int], list[int]], pieces: int) -> list[Piece]:
    """About so many pieces of files (path and size) and their row groups, of about the same number of bytes.

    >>> [piece.parts for piece in cut({("a", 9): [5, 1], ("b", 9): [6]}, 2)]
    [(('a', 9, (0, 1)),), (('b', 9, (0,)),)]
    """
    share = max(1.0, sum(map(sum, sizes.values())) / pieces)
    found: list[dict[tuple[str, int], list[int]]] = [{}]
    before = 0
    for file, groups in sizes.items():
        for number, size in enumerate(groups):
            if found[-1] and before + size / 2 > share * len(found):  # where its middle lies
                found.append({})
            found[-1].setdefault(file, []).append(number)
            before += size
    return [Piece(tuple((*file, tuple(groups)) for file, groups in parts.items())) for parts in found]


def _element(kind: str) -> tuple[str, bool]:
    nested = kind.startswith("array<") and kind.endswith(">")
    return (kind[6:-1], True) if nested else (kind, False)


def _places(file: Any, wanted: Mapping[str, str]) -> list[int] | None:
    """Where the wanted columns are among those of a file; None if one of them is not surely what Spark takes it for."""
    known = file.metadata.metadata or {}
    if any(name.startswith(b"org.apache.spark.legacy") for name in known) or _is_old(known):
        return None
    tops = [field.name.lower() for field in file.schema_arrow]
    columns = {file.schema.column(place).path: place for place in range(len(file.schema))}
    found = []
    for name, kind in wanted.items():
        # Spark looks names up without case, and takes a dot for a field.
        if tops.count(name.lower()) != 1 or "." in name:
            return None
        of, nested = _element(kind)
        ways = [f"{name}.list.element", f"{name}.list.item"] if nested else [name]
        place = next((columns[path] for path in ways if path in columns), None)
        if place is None or not _is(file.schema.column(place), of, nested):
            return None
        if not _alike(file.schema_arrow.field(name).type, kind):
            return None
        found.append(place)
    return found


def _is(column: Any, kind: str, nested: bool) -> bool:
    if kind not in _LEAVES or column.max_repetition_level != int(nested):
        return False
    said = json.loads(column.logical_type.to_json())
    annotation = {name: said[name] for name in _OF_ANNOTATION if name in said}
    physical, annotations = _LEAVES[kind]
    return column.physical_type == physical and annotation in annotations


def _alike(kind: pa.DataType, wanted: str) -> bool:
    """Whether Arrow takes a column for what Spark takes it for, but for the size of its offsets and its time zone."""
    of, nested = _element(wanted)
    if nested:
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return False
        kind = kind.value_type
    if of == "timestamp":
        return pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None
    return bool(_LARGE.get(kind, kind) == _ARROW.get(of))


def _is_old(known: Mapping[bytes, bytes]) -> bool:
    """Whether a Spark wrote it that had another calendar."""
    version = known.get(b"org.apache.spark.version", b"3").split(b".")[0]
    return not version.isdigit() or int(version) < 3
