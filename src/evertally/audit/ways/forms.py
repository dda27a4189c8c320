"""Records in every form that the runtime reads them in: objects, JSON lines, CSV, Arrow, codes of dictionaries.

A form is made of records by writing them down and reading them as the product does. Where a cell cannot be written in a
form (a list in CSV, a text beside a number in one column of Arrow), the record stays an object, in a batch between the
others: the order of events is the same in all forms.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from evertally.audit.spec_down.playing import Record
from evertally.encode.labels import is_text
from evertally.runtime.input.json_lines import read as read_json
from evertally.runtime.input.sources import ROWS, Batch, PipedInput

Form = Callable[[list[str], Sequence[Record]], list[Batch]]


def objects(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """All at once, as Python's objects."""
    return [_objects(names, records)]


def _objects(names: list[str], records: Sequence[Record]) -> Batch:
    batch: Batch = {}
    for name in names or [ROWS]:
        column = np.empty(len(records), object)
        column[:] = [record.get(name) for record in records]
        batch[name] = column
    return batch


def one_by_one(names: list[str], records: Sequence[Record]) -> list[Batch]:
    return [_objects(names, [record]) for record in records]


def json_lines(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """Scanned, as long bodies are; in three batches."""
    return [
        lines.columns if names else {ROWS: pa.nulls(lines.rows)}
        for lines in (read_json(_lines(part), names, frozenset(), few=0) for part in _thirds(records))
    ]


def careful_json(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """Line by line, as short bodies are."""
    lines = read_json(_lines(records), names, frozenset(), few=2**62)
    return [lines.columns if names else {ROWS: pa.nulls(lines.rows)}]


def _lines(records: Sequence[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def csv(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """Texts and numbers as texts."""
    return _csv(names, records, quoted=False)


def quoted_csv(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """The same beside a cell that nobody reads, which is quoted in every line: then none can be cut at its commas."""
    return _csv(names, records, quoted=True)


def _csv(names: list[str], records: Sequence[Record], quoted: bool) -> list[Batch]:
    more = [["evertally_more"], ['"mo,re"']] if quoted else [[], []]
    found: list[Batch] = []
    writable = bool(names) and all(_in_csv(name) and name.isascii() and name.isprintable() for name in names)
    for plain, some in _runs(records, lambda record: writable and all(map(_in_csv, record.values()))):
        if plain:
            cells = ([_written(record.get(name)) for name in names] for record in some)
            lines = [[*names, *more[0]], *([*line, *more[1]] for line in cells)]
            text = "".join(",".join(line) + "\n" for line in lines)
            found += PipedInput(io.BytesIO(text.encode()), "csv").batches(names)
        else:
            found.append(_objects(names, some))
    return found


def _in_csv(cell: Any) -> bool:
    if isinstance(cell, str):
        return bool(cell) and not set(cell) & set('",\r\n') and is_text(cell)
    return type(cell) is int or (type(cell) is float and cell.is_integer() and abs(cell) < 1e15)


def _written(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) else str(cell)


def arrow(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """Columns of one type."""
    return [_arrow(names, some) for some in _of_one_type(names, records)]


def dictionaries(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """Texts and numbers by codes; the dictionary has a value in front that does not occur, and one twice."""
    return [{name: _coded(column) for name, column in batch.items()} for batch in arrow(names, records)]


def mixed(names: list[str], records: Sequence[Record]) -> list[Batch]:
    """One third in each of three forms."""
    parts = list(_thirds(records))
    return [*objects(names, parts[0]), *json_lines(names, parts[1]), *arrow(names, parts[2])]


def _coded(column: Any) -> Any:
    kind = getattr(column, "type", None)
    if kind is None or not (pa.types.is_string(kind) or pa.types.is_int64(kind)) or column.null_count == len(column):
        return column
    found = column.dictionary_encode()
    spare = pa.array(["evertally-spare" if pa.types.is_string(kind) else 7**20])
    values = pa.concat_arrays([spare, found.dictionary, found.dictionary[:1]])
    indices = pa.array([None if code is None else code + 1 for code in found.indices.to_pylist()], pa.int32())
    if len(indices) > 2 and indices[2].as_py() == 1:
        indices = pa.concat_arrays([indices[:2], pa.array([len(values) - 1], pa.int32()), indices[3:]])
    return pa.DictionaryArray.from_arrays(indices, values)


def _arrow(names: list[str], records: Sequence[Record]) -> Batch:
    if not names:
        return {ROWS: pa.nulls(len(records))}
    return {name: _column([record.get(name) for record in records]) for name in names}


def _column(cells: list[Any]) -> Any:
    if any(isinstance(cell, dict) for cell in cells):
        pairs = [None if cell is None else list(cell.items()) for cell in cells]
        return pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    return pa.array(cells)


def _of_one_type(names: list[str], records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Runs of records whose columns have one type of Arrow each; nothing goes with everything."""
    run: list[Record] = []
    kinds: dict[str, str] = {}
    for record in records:
        own = {name: kind for name in names if (kind := _kind(record.get(name)))}
        if any(kinds.get(name, kind) != kind for name, kind in own.items()):
            yield run
            run, kinds = [], {}
        run.append(record)
        kinds |= own
    if run:
        yield run


def _kind(cell: Any) -> str:
    if isinstance(cell, list):
        return f"list of {'/'.join(sorted({_kind(one) for one in cell}))}"
    if isinstance(cell, dict):
        return "map"
    return "" if cell is None else type(cell).__name__


def _runs(records: Sequence[Record], which: Callable[[Record], bool]) -> Iterator[tuple[bool, list[Record]]]:
    for plain, some in groupby(records, which):
        yield plain, list(some)


def _thirds(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    third = -(-len(records) // 3)
    for start in range(0, 3 * third, third) if third else ():
        yield records[start : start + third]


FORMS: dict[str, Form] = {
    "one by one": one_by_one,
    "JSON lines": json_lines,
    "JSON, line by line": careful_json,
    "CSV": csv,
    "CSV beside a quoted cell": quoted_csv,
    "Arrow": arrow,
    "codes of a dictionary": dictionaries,
    "three forms": mixed,
}
