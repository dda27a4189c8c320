"""A file that grows: a line of JSON or CSV for every released number. The offset is its length in bytes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evertally.errors import StateError
from evertally.runtime.releases import FIELDS, TickRelease, entries, shown
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.sidecar import sync_directory

_json = json.JSONEncoder(ensure_ascii=False).encode
# Labels may be anybody's text: a carriage return, which csv.writer lets pass, would end the row.
_special = re.compile('[,"\r\n]').search


class Lines:
    """Writes at an offset and cuts off what is behind: whatever a crash left there is written again."""

    def __init__(self, name: str, path: Path, spec: StreamSpec) -> None:
        self.name, self._path, self._spec = name, path, spec

    def check_new(self) -> None:
        if self._path.exists() and (not self._path.is_file() or self._path.stat().st_size > 0):
            raise StateError(
                f"the output {self._path} holds something already, and this stream has released nothing; move it"
            )

    def publish(self, ticks: Sequence[TickRelease], offset: int) -> int:
        data = encode(self._spec, ticks, self._path.suffix.lower(), header=bool(ticks) and offset == 0)
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            with os.fdopen(descriptor, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size < offset:
                    raise StateError(
                        f"the output {self._path} has {size} bytes where the stream has written at least {offset}. "
                        "Bring it back; releases are written once"
                    )
                file.seek(offset)
                file.write(data)
                file.flush()
                file.truncate(offset + len(data))
                os.fsync(file.fileno())
            if offset == 0:
                sync_directory(self._path)
        except OSError as error:
            raise StateError(f"cannot write the output {self._path}: {error.strerror}; run again to continue") from None
        return offset + len(data)


def encode(spec: StreamSpec, ticks: Iterable[TickRelease], suffix: str, header: bool) -> bytes:
    """The entries of ticks, a row of `FIELDS` each, as JSON lines or CSV; the header line only where the file begins.

    A tick may have ten thousand rows, and there may be one every second: what rows share is written once.
    """
    lines, text = (_csv, [",".join(FIELDS) + "\n"] if header else []) if suffix == ".csv" else (_json_lines, [])
    for release in ticks:
        for name, _, columns in shown(spec, release):
            text += lines(release, name, columns)
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


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if _special(text) else text
