"""Stretches of the release log as JSON, CSV or Arrow, made page by page: no answer has to fit into memory."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from evertally.runtime.releases import TickRelease, as_json
from evertally.runtime.sinks.lines import csv_fields, encode
from evertally.runtime.sinks.parquet import release_schema, release_table, ticks_of_a_part
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.service.workers import Workers

Format = Literal["json", "csv", "arrow"]
MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
_TICKS = 64  # of a page, at most
_END_OF_ARROW = b"\xff\xff\xff\xff\x00\x00\x00\x00"

Stretch = tuple[int, int, int, int]


def stretch(published: int, first: int | None, last: int | None, every: int, limit: int, points: int | None) -> Stretch:
    """What `History.ticks` is asked for: the last `limit` kept ticks of a range, multiples of `every`.

    `points` thins the range evenly to at most so many ticks.

    >>> stretch(1000, None, None, every=1, limit=500, points=10)
    (1, 1000, 100, 10)
    """
    last = published if last is None else min(last, published)
    first = 1 if first is None else max(first, 1)
    if points is not None:
        every, limit = max(every, -(-(last - first + 1) // points)), points
    return first, last, every, limit


class Pages:
    """Reads and encodes in worker threads; a page is a public number of ticks."""

    def __init__(self, spec: StreamSpec, history: History, workers: Workers) -> None:
        self._spec, self._history, self._workers = spec, history, workers
        self._ticks = min(_TICKS, ticks_of_a_part(spec))

    async def begin(self, wanted: Stretch, queries: Sequence[str] | None, form: Format) -> AsyncIterator[bytes]:
        """The answer in pieces. Ticks are looked for before it begins, and it is checked that they are what was
        released: what fails there can still be answered."""
        ticks = await self._workers.read(lambda: self._history.ticks(*wanted))
        await self._workers.read(lambda: self._history.check(ticks, queries))
        return self._pieces(ticks, queries, _FORMS[form](self._spec))

    async def _pieces(self, ticks: Sequence[int], queries: Sequence[str] | None, form: _Form) -> AsyncIterator[bytes]:
        yield form.start
        for place in range(0, len(ticks), self._ticks):
            page = ticks[place : place + self._ticks]
            releases = await self._workers.read(partial(self._history.read, page, queries))
            if releases:
                yield await self._workers.read(partial(form.piece, releases))
        yield form.end


def encoded(content: Any) -> bytes:
    """JSON in ASCII: a label may be a text that UTF-8 cannot hold."""
    return json.dumps(content, separators=(",", ":")).encode("ascii")


class _Form(ABC):
    """How an answer begins, what a page adds, how it ends."""

    start = b""
    end = b""

    def __init__(self, spec: StreamSpec) -> None:
        self.spec = spec

    @abstractmethod
    def piece(self, releases: Sequence[TickRelease]) -> bytes:
        """What a page of releases adds."""


class _Json(_Form):
    start = b'{"releases":['
    end = b"]}"
    _separator = b""

    def piece(self, releases: Sequence[TickRelease]) -> bytes:
        separator, self._separator = self._separator, b","
        return separator + b",".join(encoded(as_json(self.spec, release)) for release in releases)


class _Csv(_Form):
    def __init__(self, spec: StreamSpec) -> None:
        super().__init__(spec)
        self.start = f"{','.join(csv_fields(spec))}\n".encode()

    def piece(self, releases: Sequence[TickRelease]) -> bytes:
        return encode(self.spec, releases, ".csv", header=False, spreadsheet=True)


class _Arrow(_Form):
    end = _END_OF_ARROW

    def __init__(self, spec: StreamSpec) -> None:
        super().__init__(spec)
        self._schema = release_schema(spec)
        self.start = self._schema.serialize().to_pybytes()

    def piece(self, releases: Sequence[TickRelease]) -> bytes:
        table = pa.concat_tables([release_table(self.spec, self._schema, release) for release in releases])
        return b"".join(batch.serialize().to_pybytes() for batch in table.combine_chunks().to_batches())


_FORMS: dict[Format, type[_Form]] = {"json": _Json, "csv": _Csv, "arrow": _Arrow}
