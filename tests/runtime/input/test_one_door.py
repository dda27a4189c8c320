"""A cell has one meaning, whichever way it comes in: the table of docs/command-line.md, through every door."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from visit_stream import WriteSpec

from evertally.encode import AmountDoor, CategoryDoor, ItemDoor, UserCap, ValueDoor
from evertally.runtime.input.batches import ARROW, JSON, JSON_LINES, Batch, decode, encode, parse
from evertally.runtime.input.binning import BinnedEvents
from evertally.runtime.input.envelope import BatchRefused, check_type
from evertally.runtime.input.folder import Folder
from evertally.runtime.input.sources import InputFile
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.spec import StreamSpec, load_spec
from spec_text import queries_text

NAN, INF = float("nan"), float("inf")
# cell, what a counter of weights up to 10 counts, what a mean over [0, 10] sees, its labels with their weights
CELLS: list[tuple[Any, int, float | None, dict[str, int]]] = [
    (None, 0, None, {}),
    (NAN, 0, None, {}),
    (7, 7, 7, {"7": 1}),
    (7.0, 7, 7, {"7": 1}),
    (-3, 0, 0, {"-3": 1}),
    (2.5, 2, 2.5, {}),
    (10**30, 10, 10, {str(10**30): 1}),
    (2**63, 10, 10, {str(2**63): 1}),
    (INF, 0, 10, {}),
    (-INF, 0, 0, {}),
    (True, 1, 1, {"true": 1}),
    (False, 0, 0, {"false": 1}),
    ("7", 7, 7, {"7": 1}),
    ("7.0", 7, 7, {"7.0": 1}),
    (" 2.5 ", 2, 2.5, {" 2.5 ": 1}),
    ("-1e3", 0, 0, {"-1e3": 1}),
    ("1e99", 10, 10, {"1e99": 1}),
    ("1e400", 0, None, {"1e400": 1}),
    ("1_0", 0, None, {"1_0": 1}),
    ("\u0667", 0, None, {"\u0667": 1}),
    ("nan", 0, None, {"nan": 1}),
    ("inf", 0, None, {"inf": 1}),
    ("true", 0, None, {"true": 1}),
    ("cafe\u0301", 0, None, {"caf\u00e9": 1}),
    ("", 0, None, {"": 1}),
    (b"7", 7, 7, {"7": 1}),
    (b"\xff", 0, None, {"\udcff": 1}),
    (Decimal("2.50"), 2, 2.5, {}),
    (Decimal("7.00"), 7, 7, {"7": 1}),
    (Decimal("0." + "9" * 25), 1, 1, {}),
    (dt.datetime(2013, 1, 1), 0, None, {}),
    (["7", "a", "a", None, 2.5], 0, None, {"7": 1, "a": 2}),
    (["7", ["a"]], 0, None, {"7": 1}),
    ({"7": 2, "a": "3", "b": None, "c": -1}, 0, None, {"7": 2, "a": 3}),
    ({"7": True, "a": 2.9, "b": {"c": 1}}, 0, None, {"7": 1, "a": 2}),
]
QUERIES = queries_text(
    {"name": "sum", "kind": "counter", "share": 0.1, "column": "x", "max_weight": 10},
    {"name": "mean", "kind": "mean", "share": 0.1, "column": "x", "lower": 0, "upper": 10, "resolution": 0.5},
)
LABELS = queries_text(
    {"name": "items", "kind": "unknown-histogram", "share": 0.1, "column": "x", "max_per_event": 5, "max_weight": 10},
)
LABELLED = """
categories = ["7", "a", "true"]
other = "rest"
max_per_event = 5
max_weight = 10
"""


def secret_order(message: bytes) -> bytes:
    return hashlib.blake2b(message, key=b"secret").digest()


SUM, MEAN = AmountDoor(10), ValueDoor(0, 10, 0.5)
DECLARED = CategoryDoor(["7", "a", "true"], "rest", 5, 10, order=secret_order)
ITEMS = ItemDoor(5, 10, order=secret_order)


def expected(cell_meaning: tuple[Any, int, float | None, dict[str, int]]) -> dict[str, Any]:
    _, total, value, labels = cell_meaning
    row = [0, 0, 0, 0]
    for label, weight in labels.items():
        row[{"7": 0, "a": 1, "true": 2}.get(label, 3)] += weight
    return {
        "sum": total,
        "mean": [0, 0] if value is None else [round((value - 5) / 0.5), 10],
        "ward": row,
        "items": labels,
    }


DOORS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda column: SUM.totals(column, 1),
    "mean": lambda column: MEAN.totals(column, 1).tolist(),
    "ward": lambda column: DECLARED.totals(column, 1).tolist(),
    "items": lambda column: ITEMS.totals(column, 1).mapping(),
}


# -- The ways in -----------------------------------------------------------------------------------------------------
# Each takes cells, and gives batches; None if it has no way to say them.


def in_csv(cells: list[Any], folder: Path, spec: StreamSpec) -> Path | None:
    if not all(cell is None or (isinstance(cell, str) and cell) for cell in cells):
        return None
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [["time", "x"], *(["2013-01-01T00:00:00Z", cell] for cell in cells)]
    )
    (folder / "cells.csv").write_text(text.getvalue())
    return folder / "cells.csv"


def json_of(cells: list[Any], form: Callable[[list[Any]], str]) -> str | None:
    try:
        return form([{"time": "2013-01-01T00:00:00Z", "x": cell} for cell in cells])
    except TypeError:  # bytes, decimals, dates
        return None


def as_lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def in_json_lines(cells: list[Any], folder: Path, spec: StreamSpec) -> Path | None:
    text = json_of(cells, as_lines)
    if text is None:
        return None
    (folder / "cells.jsonl").write_text(text)
    return folder / "cells.jsonl"


def table(cells: list[Any], spec: StreamSpec) -> Any:
    weights = [pa.map_(pa.string(), pa.float64())] if any(isinstance(cell, dict) for cell in cells) else []
    for kind in (*weights, None):
        try:
            column = pa.array(cells, kind)
            check_type(spec, "x", column.type)  # or no cell of it could mean anything
        except (pa.ArrowException, OverflowError, BatchRefused):
            continue
        return pa.table({"time": pa.array(["2013-01-01T00:00:00Z"] * len(cells)), "x": column})
    return None


def in_parquet(cells: list[Any], folder: Path, spec: StreamSpec) -> Path | None:
    made = table(cells, spec)
    if made is None:
        return None
    pa.parquet.write_table(made, folder / "cells.parquet")
    return folder / "cells.parquet"


def in_arrow(cells: list[Any], folder: Path, spec: StreamSpec) -> Path | None:
    made = table(cells, spec)
    if made is None:
        return None
    with pa.ipc.new_file(folder / "cells.arrow", made.schema) as writer:
        writer.write_table(made)
    return folder / "cells.arrow"


FILES = (in_csv, in_json_lines, in_parquet, in_arrow)


def posted(cells: list[Any], spec: StreamSpec) -> Iterator[tuple[str, Batch]]:
    for media, form in ((JSON_LINES, as_lines), (JSON, json.dumps)):
        text = json_of(cells, form)
        if text is not None:
            yield media, parse(text.encode(), media, spec)
    made = table(cells, spec)
    if made is not None:
        for column in (made, made.set_column(1, "x", _coded(made.column("x")))):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, column.schema) as writer:
                writer.write_table(column)
            yield ARROW, parse(bytes(sink.getvalue()), ARROW, spec)


def _coded(column: Any) -> Any:
    try:
        return column if pa.types.is_nested(column.type) else column.dictionary_encode()
    except pa.ArrowException:
        return column


def ways(cells: list[Any], folder: Path, spec: StreamSpec) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What the door of a query gets, by each way."""
    for way in FILES:
        path = way(cells, folder, spec)
        if path is not None:
            binned = BinnedEvents(spec, InputFile(path), 1, 1)
            yield f"run of {path.name}", lambda query, binned=binned: binned.events(query, 1)
            (folder / path.stem).mkdir(exist_ok=True)
            path.rename(folder / path.stem / path.name)
            batches = [piece.batch for piece in Folder(folder / path.stem, spec, {}.get).new()]
            yield f"folder with {path.name}", TickEvents(spec, batches).events
            (folder / path.stem / path.name).unlink()
    for media, batch in posted(cells, spec):
        yield f"{media} over HTTP", TickEvents(spec, [batch]).events
        yield f"{media} from the journal", TickEvents(spec, [decode(encode(batch))]).events


@pytest.fixture
def specs(write_spec: WriteSpec) -> list[StreamSpec]:
    close = ('tick = "1h"', 'tick = "1h"\nclose = "request"')
    delta = ("rho = 0.5", "epsilon = 1\ndelta = 1e-6")
    room = ("share = 0.75", "share = 0.1")
    labelled = ('categories = ["north", "south"]\nother = "elsewhere"\n', LABELLED)
    numbers = write_spec(close, room, append=QUERIES, folder="numbers")
    numbers.write_text(
        numbers.read_text()
        .replace('column = "ward"\ncategories = ["north", "south"]\nother = "elsewhere"\n', "")
        .replace('kind = "histogram"', 'kind = "counter"')
    )
    labels = write_spec(
        close, delta, room, labelled, ('column = "ward"', 'column = "x"'), append=LABELS, folder="labels"
    )
    return [load_spec(numbers), load_spec(labels)]


def seen(spec: StreamSpec, events: Callable[[Any], Any]) -> dict[str, Any]:
    return {query.name: DOORS[query.name](events(query)) for query in spec.queries if query.column is not None}


@pytest.mark.parametrize("meaning", CELLS, ids=[repr(cell)[:30] for cell, *_ in CELLS])
def test_a_cell_by_every_way(meaning: Any, specs: list[StreamSpec], tmp_path: Path) -> None:
    wanted = expected(meaning)
    by_hand = {name: door([meaning[0]]) for name, door in DOORS.items()}
    assert by_hand == wanted, "a list in Python"
    for spec in specs:
        for way, events in ways([meaning[0]], tmp_path, spec):
            found = seen(spec, events)
            assert found == {name: wanted[name] for name in found}, way


TOGETHER: list[list[Any]] = [
    [cell for cell, *_ in CELLS if kind is None or cell is None or type(cell) is kind]
    for kind in (None, str, int, float, bool, bytes, Decimal, list, dict)
]


@pytest.mark.parametrize(
    "cells", TOGETHER, ids=["all", "str", "int", "float", "bool", "bytes", "decimal", "list", "dict"]
)
def test_cells_in_one_column_do_not_touch_each_other(cells: list[Any], specs: list[StreamSpec], tmp_path: Path) -> None:
    each = [expected(meaning) for meaning in CELLS if any(meaning[0] is cell for cell in cells)]
    wanted: dict[str, Any] = {"sum": sum(one["sum"] for one in each), "items": {}}
    for name in ("mean", "ward"):
        wanted[name] = np.sum([one[name] for one in each], axis=0).tolist()
    for one in each:
        for label, weight in one["items"].items():
            wanted["items"][label] = wanted["items"].get(label, 0) + weight
    assert {name: door(cells) for name, door in DOORS.items()} == wanted
    assert {name: door(tuple(cells)) for name, door in DOORS.items()} == wanted
    objects = np.fromiter(cells, object, len(cells))
    assert {name: door(objects) for name, door in DOORS.items()} == wanted
    for spec in specs:
        for way, events in ways(cells, tmp_path, spec):
            found = seen(spec, events)
            assert found == {name: wanted[name] for name in found}, way


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (np.array([7, 2**40]), [7, 2**40]),
        (np.array([7, 2**64 - 1], np.uint64), [7, 2**64 - 1]),
        (np.array([2.5, NAN, INF], np.float32), [2.5, NAN, INF]),
        (np.array([2.5, 7], np.longdouble), [2.5, 7]),
        (np.array(["1e4000", "2"], np.longdouble), [10**4000, 2]),
        (np.array([True, False]), [True, False]),
        (np.array(["7", "a", " 2.5 "]), ["7", "a", " 2.5 "]),
        (np.array([b"7", b"a"]), ["7", "a"]),
        (np.ma.masked_array([7, 8], [False, True]), [7, None]),
        (np.array(["2013-01-01"], "datetime64[ns]"), [None]),
        (np.array(["2013-01-01"], "datetime64[us]"), [None]),
        (list(np.array(["2013-01-01"], "datetime64[ns]")), [None]),
        ([np.int8(7), np.str_("7"), np.float16(2.5), np.bool_(True)], [7, "7", 2.5, True]),
        ([Fraction(5, 2), Fraction(7)], [2.5, 7]),
        (pa.chunked_array([["7", None], ["a"]]), ["7", None, "a"]),
        (pa.array(["7", "a", None]).dictionary_encode(), ["7", "a", None]),
        (pa.array(["7", "a", None], pa.string_view()), ["7", "a", None]),
        (pa.array([b"7", b"a"], pa.binary(1)), ["7", "a"]),
        (pa.array([2.5, None], pa.float16()), [2.5, None]),
        (pa.array([dt.datetime(2013, 1, 1)]), [None]),
        (pa.array([], pa.string()), []),
        (pa.chunked_array([], pa.int64()), []),
    ],
    ids=str,
)
def test_columns_of_numpy_and_arrow_are_lists_of_their_cells(column: Any, cells: list[Any]) -> None:
    for name, door in DOORS.items():
        if name in ("ward", "items") and len(cells) and cells[0] == 10**4000:
            continue  # longer than a label
        assert door(column) == door(cells), name


def test_users_are_labels() -> None:
    users = [
        7,
        7.0,
        "7",
        Decimal(7),
        b"7",
        None,
        NAN,
        2.5,
        ["7"],
        {"7": 1},
        True,
        "true",
        "",
        "cafe\u0301",
        "caf\u00e9",
    ]
    same = [0, 0, 0, 0, 0, None, None, None, None, None, 1, 1, 2, 3, 3]
    kept = UserCap(2).keep(users, 1).tolist()
    assert kept == [user is not None and same[:i].count(user) < 2 for i, user in enumerate(same)]
