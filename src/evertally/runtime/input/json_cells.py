"""JSON records and their cells: read one by one, with a meaning that depends on the record alone.

A record is nested at most 64 deep: the decoder's own limit depends on the depth of the program's stack, and the same
bytes must always be the same events. A cell is a label, a list of labels or a table of weights; what is nested deeper
names nothing, and is left out here, so that every kept cell is small.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = dict[str, Any]

_DEEPEST = 64
_decoder = json.JSONDecoder()
_NESTED = (dict, list)


def records(lines: bytes) -> Iterator[Record]:
    """The records of JSON lines, one per line; a line that is none is left out."""
    try:
        texts: Iterable[str] = lines.decode().split("\n")
    except UnicodeDecodeError:
        texts = (_text(line) for line in lines.split(b"\n"))
    read = _decoder.raw_decode
    for text in texts:
        if "{" not in text:  # quickly: a body of blank lines has millions of them
            continue
        try:
            record, end = read(text)
        except (ValueError, RecursionError):
            record, end = None, len(text) if text[0] == "{" else -1
        if end != len(text):  # blanks around it, or no JSON
            record = _carefully(text)
        if type(record) is dict and (text.count("{") + text.count("[") <= _DEEPEST or depth_fits(record)):
            yield record


def record(text: bytes) -> Record | None:
    """One record by itself, which may reach over several lines."""
    found = _carefully(_text(text))
    return found if type(found) is dict and depth_fits(found) else None


def depth_fits(value: object, room: int = _DEEPEST) -> bool:
    """Whether a decoded value is nested at most 64 deep."""
    if not isinstance(value, _NESTED):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return room > 0 and all(depth_fits(one, room - 1) for one in inner if isinstance(one, _NESTED))


def columns(rows: Iterable[Record], names: Sequence[str]) -> tuple[int, dict[str, NDArray[Any]]]:
    """The number of records, and one array of cells per name; missing cells are None."""
    cells: dict[str, list[Any]] = {name: [] for name in names}
    appends = [(name, column.append) for name, column in cells.items()]
    count = 0
    for row in rows:
        count += 1
        get = row.get
        for name, append in appends:
            append(get(name))
    return count, {name: np.fromiter(_flattened(column), object, count) for name, column in cells.items()}


def _flattened(cells: list[Any]) -> Iterable[Any]:
    return cells if set(map(type, cells)).isdisjoint(_NESTED) else map(flat, cells)


def flat(cell: Any) -> Any:
    """A cell without what is nested deeper than one level."""
    if not isinstance(cell, _NESTED):
        return cell
    if isinstance(cell, dict):
        return {label: None if isinstance(weight, _NESTED) else weight for label, weight in cell.items()}
    return [None if isinstance(label, _NESTED) else label for label in cell]


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return ""


def _carefully(text: str) -> object:
    try:
        return _decoder.decode(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
