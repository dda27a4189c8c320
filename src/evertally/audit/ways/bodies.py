"""Bodies of requests in which one record is hostile, in every form that the runtime reads, beside ordinary ones.

A record that cannot be read is left out, or counts for what it says: that is its own affair. How the others of its body
are read must not depend on it, or one person decides what all the others have said. So each body comes with what its
records are, as objects; `ways_in` plays both. The ordinary ones have what readers get wrong when they go another way:
blanks, capitals, accents in both normal forms, texts of numbers, nothing at all.

What is hostile is sent several times in a body: beside cells in which nothing is odd, and with blanks at one of them.

A body goes the way of a batch that a service is sent: read, kept as the journal keeps it, and read again.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evertally.audit.spec_down.cells import blanked
from evertally.audit.spec_down.playing import Record
from evertally.runtime.input.batches import ARROW, CSV, JSON, JSON_LINES, decode
from evertally.runtime.input.encoded import received
from evertally.runtime.input.envelope import known
from evertally.runtime.input.json_lines import FEW
from evertally.runtime.input.sources import Batch
from evertally.runtime.spec import StreamSpec

_MORE = "evertally_more"  # a column that no query reads: without it a line of one cell that is empty is no line
_BROKEN = b"no\xffrth"  # a byte that is no UTF-8
_LONG = "n" * 3000  # no label
_DEEP = 70  # levels; a record may have 64
_DIGITS = 5000  # more than Python reads
_LARGE = 1e15
_WITHIN = 'no"rth'
_END = b"more"


@dataclass(frozen=True)
class Line:
    """What a hostile sender writes in the place of one record, and the records that it is: none, mostly."""

    told: str
    written: Any
    meant: tuple[Record, ...] = ()


Written = Callable[[Sequence[str], Sequence[Record], Sequence[Any], Sequence[Record]], bytes]


@dataclass(frozen=True)
class Body:
    """A body with ordinary records around hostile ones of a kind, and all its records as objects."""

    told: str
    content: bytes
    media_type: str
    meant: list[Record]

    def batches(self, spec: StreamSpec, tick: int) -> list[Batch]:
        """What of it enters a tick, as the journal gives it back. BatchRefused if its envelope is wrong."""
        kept = received(self.content, self.media_type, spec, tick, "")
        return [decode(payload) for entered, payload, _ in kept.parts if entered == tick]


@dataclass(frozen=True)
class Reader:
    """A form of bodies: how ordinary records and hostile ones between them are written, and what may be hostile. Cells
    that it cannot write are missing."""

    media_type: str
    written: Written
    hostile: Callable[[Sequence[str], str, Record, bool], Iterable[Line]]
    writes: Callable[[Any], bool]

    def bodies(
        self, spec: StreamSpec, names: Sequence[str], made: Callable[[], list[Record]], column: str, plain: Record
    ) -> Iterator[Body]:
        """One body for everything hostile that a record may be, in this column of a plain record or as a whole; the
        first body has nothing of the kind."""
        ours, likewise = bool(known(spec)), [plain, *_odd(plain, spec)]
        kinds = zip(*(self.hostile(names, column, one, ours) for one in likewise), strict=True)
        for lines in [(), *kinds]:
            told = lines[0].told if lines else ""
            around = [{name: cell for name, cell in one.items() if self.writes(cell)} for one in made()]
            middle = len(around) // 2
            content = self.written(names, around[:middle], [line.written for line in lines], around[middle:])
            entered = [one for line in lines for one in line.meant if _enters(one, plain, spec, names)]
            yield Body(told, content, self.media_type, [*around[:middle], *entered, *around[middle:]])


def _odd(plain: Record, spec: StreamSpec) -> Iterator[Record]:
    """The record with blanks at one of its cells: another label, or another user."""
    for name, cell in plain.items():
        if name != spec.clock.column:
            yield from ({**plain, name: odd} for odd in blanked(cell))


def _enters(record: Record, plain: Record, spec: StreamSpec, names: Sequence[str]) -> bool:
    """Whether a hostile record is one of this tick: where its own time decides, it still has it."""
    clock = spec.clock.column
    return clock not in names or clock is None or _text(record.get(clock)) == _text(plain[clock])


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _csv(names: Sequence[str], before: Sequence[Record], hostile: Sequence[bytes], after: Sequence[Record]) -> bytes:
    rows = [[_text(one.get(name)) for name in names] + [_END] for one in (*before, *after)]
    lines = [b",".join(cells) for cells in rows]
    head = _quoted([*names, _MORE])
    return b"\n".join([head, *lines[: len(before)], *hostile, *lines[len(before) :], b""])


def _quoted(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue().encode()


def _text(cell: Any) -> bytes:
    return b"" if cell is None else cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "surrogatepass")


def _in_csv(cell: Any) -> bool:
    """Without quotes: all lines but one have none. An empty text would be a missing cell."""
    return _in_texts(cell) and cell != "" and not set(str(cell)) & set(',"\r\n')


def _in_texts(cell: Any) -> bool:
    """A number in writing has an exponent of two digits at most."""
    return type(cell) in (str, int) or (type(cell) is float and abs(cell) < _LARGE)


def _hostile_csv(names: Sequence[str], column: str, plain: Record, _: bool) -> Iterator[Line]:
    plainly = [_text(plain.get(name)) for name in names]

    def line(told: str, cell: bytes, meant: Any) -> Line:
        cells = [cell if name == column else value for name, value in zip(names, plainly, strict=True)]
        return Line(told, b",".join([*cells, _END]), ({**plain, column: meant},))

    if column in names:
        cell = _text(plain.get(column))
        yield line("a quoted cell", b'"' + cell + b'"', cell)
        yield line("a quoted cell with a comma", b'"no,rth"', "no,rth")
        yield line("a quoted cell with quotes", b'"no""rth"', _WITHIN)
        yield line("a quote in a cell", b'no"rth', _WITHIN)
        yield line("a quoted cell with blanks", b'" north "', " north ")
        yield line("a quoted cell with nothing in it", b'""', None)
        yield line("a cell with nothing in it", b"", None)
        yield line("a byte that is no UTF-8", _BROKEN, _BROKEN)
        yield line("a mark of the order of bytes", b"\xef\xbb\xbf" + cell, b"\xef\xbb\xbf" + cell)
        yield line("a zero byte", b"no\0rth", "no\0rth")
        yield line("a long cell", _LONG.encode(), _LONG)
        return
    ordinary = b",".join([*plainly, _END])
    for told, cell in (("a quoted cell", b'"mo,re"'), ("a byte that is no UTF-8", _BROKEN)):
        yield Line(f"{told} that nobody reads", b",".join([*plainly, cell]), (plain,))
    yield Line("a quote that is never closed", b'"' + ordinary)
    yield Line("a quote and more behind it", b'"north"x' + b"," * len(names))
    yield Line("a cell more", ordinary + b",")
    yield Line("a cell less", b",".join(plainly))
    yield Line("a blank line", b"")
    if names:
        yield Line("a line that a carriage return cuts", b"north\r" + ordinary, (plain,))
        yield Line("a cell less, and no UTF-8", b",".join(plainly) + b"\xff")


# -- JSON --------------------------------------------------------------------------------------------------------------


def _json(cell: Any) -> bytes:
    return json.dumps(cell, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _lines(names: Sequence[str], before: Sequence[Record], hostile: Sequence[bytes], after: Sequence[Record]) -> bytes:
    return b"\n".join([*map(_json, before), *hostile, *map(_json, after), b""])


def _many_lines(names: Sequence[str], before: Sequence[Record], hostile: Sequence[bytes], after: Any) -> bytes:
    """So long that it is scanned, by a line of blanks."""
    return b" " * FEW + b"\n" + _lines(names, before, hostile, after)


def _array(names: Sequence[str], before: Sequence[Record], hostile: Sequence[bytes], after: Sequence[Record]) -> bytes:
    return b"[" + b",\n".join([*map(_json, before), *hostile, *map(_json, after)]) + b"]"


def _in_json(cell: Any) -> bool:
    return type(cell) in (str, int, float)


def _hostile_json(names: Sequence[str], column: str, plain: Record, ours: bool) -> Iterator[Line]:
    """What an object may hold, and what is none."""

    def line(told: str, cell: bytes, meant: Any, key: bytes = b"") -> Line:
        cells = {_json(name): cell if name == column else _json(plain.get(name)) for name in names}
        written = ((key if key and name == _json(column) else name) + b": " + value for name, value in cells.items())
        return Line(told, b"{" + b", ".join(written) + b"}", ({**plain, column: meant},))

    if column in names:
        yield line("a text in escapes", _escaped("north"), "north")
        yield line("half a surrogate pair", b'"\\ud83d"', "\ud83d")
        yield line("a number that is none", b"NaN", float("nan"))
        yield line("a number without end", b"1e999", float("inf"))
        yield line("a long number", b"9" * 600, int("9" * 600))
        yield line("a truth value", b"true", True)
        yield line("a list within a list", b'[["north"], "south"]', [None, "south"])
        yield line("an object within an object", b'{"north": {"south": 1}}', {"north": None})
        yield line("a long text", _json(_LONG), _LONG)
        yield line("a zero in a text", b'"no\\u0000rth"', "no\0rth")
        yield line("a column that comes twice", b'"south", ' + _json(column) + b': "north"', "north")
        yield line("a column in escapes", b"null", None, _escaped(column))
        return
    ordinary = _json({name: plain.get(name) for name in names})
    for told, cell in (("a text in escapes", _escaped("more")), ("a number that is none", b"NaN")):
        more = (b", " if names else b"") + _json(_MORE) + b": " + cell
        yield Line(f"{told} that nobody reads", ordinary[:-1] + more + b"}", (plain,))
    yield Line("a record with nothing in it", b"{}", ({},))
    yield Line("a record of other columns", b'{"evertally-other": 7}', () if ours else ({},))
    for other in (b"7", b"null", b'"north"', b'["north"]', b"true"):
        yield Line(f"{other.decode()} in the place of a record", other)


def _escaped(text: str) -> bytes:
    return b'"' + "".join(f"\\u{ord(character):04x}" for character in text).encode() + b'"'


def _hostile_lines(names: Sequence[str], column: str, plain: Record, ours: bool) -> Iterator[Line]:
    """The same, and what is no JSON."""
    yield from _hostile_json(names, column, plain, ours)
    if column in names:
        return
    ordinary = _json({name: plain.get(name) for name in names})
    yield Line("blanks around a record", b" \t" + ordinary + b" \r", (plain,))
    yield Line("a mark of the order of bytes", b"\xef\xbb\xbf" + ordinary, (plain,))
    yield Line("a blank line", b"")
    yield Line("half a record", ordinary[: len(ordinary) // 2])
    yield Line("two records in a line", ordinary + ordinary)
    yield Line("no JSON", b"{north}")
    yield Line("a byte that is no UTF-8", b'{"a": "' + _BROKEN + b'"}')
    yield Line("a zero byte", b'{"a": "\0"}')
    yield Line("a deep record", b'{"a": ' + b"[" * _DEEP + b"]" * _DEEP + b"}")
    yield Line("a number of too many digits", b'{"a": ' + b"7" * _DIGITS + b"}")


# -- Arrow -------------------------------------------------------------------------------------------------------------


def _arrow(kind: str) -> Written:
    """Columns of texts, whatever bytes are in them."""

    def written(
        names: Sequence[str], before: Sequence[Record], hostile: Sequence[Record], after: Sequence[Record]
    ) -> bytes:
        records = [*before, *hostile, *after]
        columns = {name: _texts([one.get(name) for one in records], kind) for name in names}
        columns[_MORE] = pa.nulls(len(records), pa.int8())
        table = pa.record_batch(list(columns.values()), names=list(columns))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table)
        return bytes(sink.getvalue())

    return written


def _texts(cells: Sequence[Any], kind: str) -> Any:
    found = pa.array([None if cell is None else _text(cell) for cell in cells], pa.large_binary())
    if kind == "bytes":
        return found
    if kind == "texts":
        return found.cast(pa.binary()).view(pa.string())
    coded = found.dictionary_encode()
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.view(pa.large_string()))


def _hostile_arrow(names: Sequence[str], column: str, plain: Record, _: bool) -> Iterator[Line]:
    def line(told: str, cell: Any) -> Line:
        return Line(told, {**plain, column: cell}, ({**plain, column: cell},))

    if column in names:
        yield line("a byte that is no UTF-8", _BROKEN)
        yield line("half a surrogate pair", b"\xed\xa0\xbd")
        yield line("a zero byte", "no\0rth")
        yield line("a long cell", _LONG)
        yield line("a missing cell", None)
        yield line("a mark of the order of bytes", "\ufeffnorth")
    else:
        yield Line("blanks", plain, (plain,))
        yield Line("a row of nulls", {}, ({},))


READERS: dict[str, Reader] = {
    "CSV": Reader(CSV, _csv, _hostile_csv, _in_csv),
    "JSON lines": Reader(JSON_LINES, _many_lines, _hostile_lines, _in_json),
    "JSON, line by line": Reader(JSON_LINES, _lines, _hostile_lines, _in_json),
    "a JSON array": Reader(JSON, _array, _hostile_json, _in_json),
    "texts of Arrow": Reader(ARROW, _arrow("texts"), _hostile_arrow, _in_texts),
    "bytes of Arrow": Reader(ARROW, _arrow("bytes"), _hostile_arrow, _in_texts),
    "codes of Arrow": Reader(ARROW, _arrow("codes"), _hostile_arrow, _in_texts),
}
