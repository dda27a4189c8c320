"""A folder of Parquet files, each with the releases of a fixed number of ticks. The offset is the last tick in it.

Which ticks a part holds follows from public numbers, so a crash changes no part. The part that is still open is written
anew with every publication, beside its old version, and put in its place as a whole: a reader of the folder sees every
published tick once and no half-written file. Its earlier ticks come from the file itself.

Columns: tick, time, query, category, value, label, stddev, lower, upper. Values are whole numbers; in a stream with a
mean or linear queries they are floating-point numbers (exact up to 2^53). `label` is there in a stream that releases
labels as values.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evertally.errors import StateError
from evertally.runtime.clock import instant
from evertally.runtime.plan import about_intervals
from evertally.runtime.releases import TickRelease, shown
from evertally.runtime.sinks.finished import Finished
from evertally.runtime.sinks.seals import Touched, changed, digest, look
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.sidecar import replace_file, sync_directory

_ROWS = 2**18  # of a part, about: what can be written anew at every tick of a second (some 35 ms)
_TICKS = 2**14  # of a part, at most
_LARGEST = 2**63 - 1
ABOUT = b"evertally.about"  # in the metadata: what the intervals are about
_LAST = b"evertally.last_tick"  # in the file's metadata: a tick that shows no label has no row


class Parts:
    """Part k holds the ticks from k N + 1 to (k + 1) N, under the name of the first of them."""

    def __init__(self, name: str, folder: Path, spec: StreamSpec) -> None:
        self.name, self._folder, self._spec = name, folder, spec
        self._schema = release_schema(spec, windows=True)
        self._length = ticks_of_a_part(spec)
        self._open: tuple[int, pa.Table] | None = None  # the last tick that is in the folder, and the part it is in
        self._left: Touched | None = None  # how the part was left
        self._expected: int | None = None
        self.digest: int | None = None  # of the part
        self._finished: Finished | None = None  # the parts before it

    def check_new(self) -> None:
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise StateError(
                f"the output {self._folder} holds something already, and this stream has released nothing; move it"
            )

    def publish(self, ticks: Sequence[TickRelease], offset: int) -> int:
        try:
            if offset == 0:
                self._folder.mkdir(exist_ok=True)
                sync_directory(self._folder)
            if self._finished is None:
                self._finished = Finished(path for path in self._parts() if path < self._path(self._first_of(offset)))
            self._finished.check()
            part = self._kept(offset)
            for first, releases in groupby(ticks, lambda release: self._first_of(release.tick)):
                if offset and self._first_of(offset) != first:
                    part = self._schema.empty_table()
                    self._finished.add(self._path(self._first_of(offset)), self._left, self.digest)
                new = list(releases)
                tables = [release_table(self._spec, self._schema, release) for release in new]
                part, offset = pa.concat_tables([part, *tables]).combine_chunks(), new[-1].tick
                self._write(self._path(first), part, offset)
                self._open = offset, part
        except OSError as error:
            self._open = self._left = self._finished = None
            raise StateError(
                f"cannot write the output {self._folder}: {error.strerror}; run again to continue"
            ) from None
        return offset

    def _first_of(self, tick: int) -> int:
        return (tick - 1) // self._length * self._length + 1

    def _path(self, first: int) -> Path:
        return self._folder / f"part-{first:012d}.parquet"

    def _parts(self) -> list[Path]:
        return sorted(self._folder.glob("part-*.parquet"))

    def _kept(self, offset: int) -> pa.Table:
        """The part that `offset` is in, up to there: behind it a crash may have left ticks that come again."""
        if offset == 0:
            return self._schema.empty_table()
        path = self._path(self._first_of(offset))
        if self._open is None or self._open[0] != offset or self._touched(path):
            last, table = self._read(path) if path.exists() else (0, self._schema.empty_table())
            if last < offset:
                raise StateError(
                    f"{path} does not hold tick {offset}, which the stream has written. Bring the file back; releases "
                    "are written once"
                )
            expected, self._expected = self._expected, None
            if expected is not None and last == offset and self.digest != expected:
                raise changed(path)
            self._open = offset, table.filter(pc.less_equal(table["tick"], offset)).combine_chunks()
        return self._open[1]

    def last_behind(self, offset: int) -> int:
        parts = sorted(self._folder.glob("part-*.parquet"))
        try:
            last = int(pq.read_schema(parts[-1]).metadata[_LAST]) if parts else 0
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
            return 0  # not a part of ours: whoever reads it says so
        return last if last > offset else 0

    def expect(self, digest: int) -> None:
        self._expected = digest

    def _touched(self, path: Path) -> bool:
        """Whether somebody else has touched the open part: then it is read again, and must be what was written."""
        if self._left is None or self._left == look(path):
            return not path.exists()
        self._expected = self.digest
        return True

    def _read(self, path: Path) -> tuple[int, pa.Table]:
        data = path.read_bytes()
        self.digest, self._left = digest(data), look(path)
        try:
            table = pq.read_table(pa.BufferReader(data))
            if table.schema.field("value").type == pa.float64():
                self._schema = _with_fractions(self._schema)  # rates that a spec does not ask for any more
            return int(table.schema.metadata[_LAST]), table.cast(self._schema)
        except (OSError, ValueError, TypeError, KeyError, pa.ArrowException):
            raise StateError(f"{path} is damaged or was not written by this stream; bring the right one back") from None

    def _write(self, path: Path, table: pa.Table, last: int) -> None:
        temporary = path.with_name(f".{path.name}.new")  # readers of a folder pass over names that begin with a dot
        buffer = pa.BufferOutputStream()
        marked = table.replace_schema_metadata((self._schema.metadata or {}) | {_LAST: str(last)})
        pq.write_table(marked, buffer, compression="zstd")
        data = buffer.getvalue()
        replace_file(path, temporary, data, 0o644)
        self.digest, self._left = digest(data), look(path)


def ticks_of_a_part(spec: StreamSpec) -> int:
    """How many ticks a part has: a function of public numbers, which must not change while a stream runs."""
    return max(1, min(_TICKS, _ROWS // spec.rows))


def release_schema(spec: StreamSpec, windows: bool = False) -> pa.Schema:
    """The columns of releases as a table, which follow from the spec; `windows`: with the rates that it asks for."""
    values = {query.result.value for query in spec.queries}
    rates = windows and any(query.words.per is not None for query in spec.queries)
    number = pa.float64() if "real" in values or rates else pa.int64()
    labels = [("label", pa.string())] if "label" in values else []
    return pa.schema(
        [
            ("tick", pa.int64()),
            ("time", pa.int64() if spec.clock.integer else pa.timestamp("us", tz="UTC")),
            ("query", pa.string()),
            ("category", pa.string()),
            ("value", number),
            *labels,
            ("stddev", pa.float64()),
            ("lower", number),
            ("upper", number),
        ],
        metadata={ABOUT: about_intervals(spec)},
    )


def _with_fractions(schema: pa.Schema) -> pa.Schema:
    for name in ("value", "lower", "upper"):
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.float64()))
    return schema


def release_table(spec: StreamSpec, schema: pa.Schema, release: TickRelease) -> pa.Table:
    """The rows of a tick, in the order of `releases.entries`."""
    time = instant(release.time) if isinstance(release.time, str) else release.time
    tables = [schema.empty_table()]
    for name, query, columns in shown(spec, release):
        names = ("category", "value", "lower", "upper")
        category, value, lower, upper = (_listed(columns[part]) for part in names)
        count, labelled = len(value), query.result.value == "label"
        fields: dict[str, list[Any]] = {
            "tick": [release.tick] * count,
            "time": [time] * count,
            "query": [name] * count,
            "category": _texts(category),
            "value": [None] * count if labelled else value,
            "label": _texts(value if labelled else [None] * count),
            "stddev": [columns["stddev"]] * count,
            "lower": lower,
            "upper": upper,
        }
        tables.append(pa.table([_array(fields[field.name], field.type) for field in schema], schema=schema))
    return pa.concat_tables(tables)


def _listed(column: Any) -> list[Any]:
    return column if isinstance(column, list) else [column]


def _texts(labels: list[str | None]) -> list[str | None]:
    """Arrow holds UTF-8 only; what else a label may contain is shown escaped, as in files of lines."""
    return [label and label.encode("utf-8", "backslashreplace").decode() for label in labels]


def _array(cells: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.float64():
        # whole numbers too, rounded if they must be
        return pa.array(np.array(cells, dtype=np.float64), from_pandas=True)
    try:
        return pa.array(cells, kind)
    except OverflowError:  # a bound far beyond any count
        return pa.array([max(-_LARGEST, min(_LARGEST, number)) for number in cells], kind)
