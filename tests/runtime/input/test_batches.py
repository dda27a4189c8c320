"""Batches: three formats with one meaning, a journal that keeps it, and refusals that speak of the envelope alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from visit_stream import SPEC

from evertally.encode import ItemDoor, owners
from evertally.errors import StateError
from evertally.noise import ZeroNoise
from evertally.runtime import load_spec
from evertally.runtime.clock import instant
from evertally.runtime.input import json_cells, tick_events
from evertally.runtime.input.batches import (
    ARROW,
    JSON,
    JSON_LINES,
    MEDIA_TYPES,
    Batch,
    BatchRefused,
    counted,
    decode,
    encode,
    parse,
)
from evertally.runtime.input.envelope import needed
from evertally.runtime.input.tick_events import TickEvents, length, split_by_tick
from evertally.runtime.mechanisms import build
from evertally.runtime.spec import StreamSpec

ALL_DOORS = """
[stream]
name = "doors"
horizon = 4
unit = "user"
max_events_per_user = 3
user_column = "patient"
[guarantee]
epsilon = 400
delta = 1e-6
[clock]
column = "time"
start = 2013-01-01T00:00:00Z
tick = "1h"
close = "request"
[key]
file = "doors.key"
[state]
file = "doors.state"
[output]
file = "doors.jsonl"
[serve]
max_batch_bytes = 1000000
[[query]]
name = "all"
kind = "counter"
[[query]]
name = "minutes"
kind = "counter"
column = "minutes"
max_weight = 30
[[query]]
name = "mean"
kind = "mean"
column = "minutes"
lower = 0
upper = 50
resolution = 1
[[query]]
name = "ward"
kind = "histogram"
column = "ward"
categories = ["north", "7", "é"]
other = "elsewhere"
max_per_event = 2
max_weight = 3
[[query]]
name = "found"
kind = "unknown-histogram"
column = "ward"
max_per_event = 2
max_weight = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("specs")


def spec_of(folder: Path, text: str) -> StreamSpec:
    (folder / "stream.toml").write_text(text)
    return load_spec(folder / "stream.toml")


@pytest.fixture(scope="module")
def doors(folder: Path) -> StreamSpec:
    return spec_of(folder, ALL_DOORS)


@pytest.fixture(scope="module")
def visits(folder: Path) -> StreamSpec:
    """Ticks close by the wall clock: only `ward` is needed."""
    return spec_of(folder, SPEC + "[serve]\nmax_batch_bytes = 1000000\n")


def stream_of(table: pa.Table, rows: int | None = None, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return bytes(sink.getvalue().to_pybytes())


def lines_of(records: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def cells(column: Any) -> list[Any]:
    return list(column.tolist() if isinstance(column, np.ndarray) else column.to_pylist())


def refusal(body: bytes, media_type: str, spec: StreamSpec) -> str:
    with pytest.raises(BatchRefused) as caught:
        parse(body, media_type, spec)
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__context__ is error.__cause__ is None  # another error, with content in it, would travel along
    return str(error)


# -- One meaning -------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["north", "7", "é", "e\u0301", "attic", "", "x" * 1030])
LABELS = {
    "text": WORDS,
    "integers": st.integers(-3, 8) | st.sampled_from([2**40, -(2**40)]),
    "numbers": st.sampled_from([7.0, 7.5, float("nan"), float("inf")]),
    "truths": st.booleans(),
    "lists": st.lists(WORDS | st.none(), max_size=4),
    "tables": st.dictionaries(WORDS, st.integers(-1, 5), max_size=4),
}
ARROW_LABELS = {
    "text": [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    "integers": [pa.int64(), pa.dictionary(pa.int16(), pa.int64())],
    "numbers": [pa.float64(), pa.float32(), pa.float16()],
    "truths": [pa.bool_()],
    "lists": [pa.list_(pa.string()), pa.large_list(pa.large_string())],
    "tables": [pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8())],
}
AMOUNTS = {
    "integers": st.integers(-3, 60),
    "numbers": st.sampled_from([1.5, 49.0, -1.0, float("nan"), float("inf")]),
    "text": st.sampled_from(["3", " 4 ", "1e1", "x", "", "\u0663"]),
    "truths": st.booleans(),
}
ARROW_AMOUNTS = {
    "integers": [pa.int64(), pa.int8(), pa.decimal128(5, 2), pa.dictionary(pa.int8(), pa.int16())],
    "numbers": [pa.float64(), pa.float16()],
    "text": [pa.string(), pa.large_binary(), pa.dictionary(pa.uint8(), pa.string())],
    "truths": [pa.bool_()],
}
USERS = {
    "text": st.sampled_from(["a", "b", "1"]),
    "integers": st.integers(1, 2),
    "numbers": st.sampled_from([1.0, 0.5]),
}
ARROW_USERS = {name: ARROW_LABELS[name] for name in USERS}
TIMES = {
    "text": st.sampled_from(["2013-01-01T00:10:00Z", "2013-01-01T00:20", "2013-01-01T01:10", "2012-05-05", "noon"]),
    "times": st.sampled_from(["2013-01-01T00:10:00", "2013-01-01T00:59:59", "2013-01-01T23:00:00"]),
}
ARROW_TIMES = {
    "text": [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
    "times": [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns")],
}
COLUMNS: dict[str, tuple[Any, Any]] = {
    "time": (TIMES, ARROW_TIMES),
    "patient": (USERS, ARROW_USERS),
    "minutes": (AMOUNTS, ARROW_AMOUNTS),
    "ward": (LABELS, ARROW_LABELS),
}


@st.composite
def some_records(draw: Any) -> tuple[list[dict[str, Any]], Any]:
    """A few records whose columns have one type each, as JSON has them and as an Arrow table of these types."""
    size = draw(st.integers(0, 6))
    columns, arrays = {}, {}
    for name, (kinds, types) in COLUMNS.items():
        kind = draw(st.sampled_from(sorted(kinds)))
        cell = kinds[kind] if name in ("time", "patient") else st.none() | kinds[kind]
        columns[name] = draw(st.lists(cell, min_size=size, max_size=size))
        arrays[name] = arrow_column(columns[name], draw(st.sampled_from(types[kind])))
    return [{name: columns[name][i] for name in columns} for i in range(size)], pa.table(arrays)


def arrow_column(values: list[Any], kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return arrow_column(values, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_timestamp(kind):
        values = [None if value is None else dt.datetime.fromisoformat(value) for value in values]
    if pa.types.is_decimal(kind):
        values = [None if value is None else Decimal(value) for value in values]
    if pa.types.is_map(kind):
        values = [None if value is None else list(value.items()) for value in values]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = [None if value is None else value.encode() for value in values]
    if pa.types.is_floating(kind):
        return pa.array(values, pa.float64()).cast(kind, safe=False)
    if pa.types.is_string_view(kind):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def released(spec: StreamSpec, batches: Sequence[Batch]) -> list[Any]:
    """All ticks of a stream without noise, as live.py gets there: journal, split, join."""
    parts: dict[int, list[Batch]] = {}
    for batch in batches:
        for tick, part in split_by_tick(decode(encode(batch)), spec, 1, spec.horizon):
            parts.setdefault(tick, []).append(decode(encode(part)))
    mechanisms = build(spec, ZeroNoise())
    out = []
    for tick in (1, 2, 3, 4):
        rows = TickEvents(spec, parts.get(tick, []))
        for query in spec.queries:
            release = mechanisms[query.name].step_events(rows.events(query), tick=tick, users=rows.users())
            out.append((tick, query.name, release.value))
        # Few events stay below the threshold of the last query: its door is asked as well.
        items = ItemDoor(2, 3, order=lambda message: hashlib.blake2b(message).digest())
        out.append((tick, "items", items.totals(rows.events(spec.queries[-1]), tick).mapping()))
    return out


def as_batch(form: str, records: list[dict[str, Any]], table: Any, spec: StreamSpec) -> Batch:
    if form == "lines":
        return parse(lines_of(records), JSON_LINES, spec)
    if form == "array":
        return parse(json.dumps(records).encode(), JSON, spec)
    return parse(stream_of(table, rows=2), ARROW, spec)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["lines", "array", "arrow"]), some_records()), min_size=2, max_size=5),
    st.sampled_from([2**31, 40]),
)
def test_the_same_records_give_the_same_releases_in_any_batches_and_formats(
    doors: StreamSpec, parts: Any, reach: int
) -> None:
    together = [record for _, (records, _) in parts for record in records]
    whole = released(doors, [parse(lines_of(together), JSON_LINES, doors)])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tick_events, "_SHORT_LIMIT", reach)  # as if the columns were larger
        assert released(doors, [as_batch(form, records, table, doors) for form, (records, table) in parts]) == whole


def test_the_releases_that_are_compared_tell_events_apart(doors: StreamSpec) -> None:
    one = {"time": "2013-01-01", "patient": "a", "minutes": 5, "ward": ["north", "7"]}
    base = released(doors, [parse(lines_of([one] * 3), JSON_LINES, doors)])
    assert len(base) == 24
    for change in ({"time": "2013-01-01T01:00"}, {"patient": None}, {"minutes": 6}, {"ward": ["north"]}):
        assert released(doors, [parse(lines_of([one, one, {**one, **change}]), JSON_LINES, doors)]) != base


def test_events_that_are_only_counted_need_no_column(folder: Path) -> None:
    text = SPEC[: SPEC.index('[[query]]\nname = "ward"')].replace('column = "time"\n', "")
    spec = spec_of(folder, text)
    batches = [
        parse(b'{"a": 1}\n{\n{}\n', JSON_LINES, spec),
        parse(b'[{}, 1, {"b": 2}]', JSON, spec),
        parse(stream_of(pa.table({"x": [1, 2, 3]})), ARROW, spec),
    ]
    assert [length(batch) for batch in batches] == [2, 2, 3]
    events = TickEvents(spec, [decode(encode(batch)) for batch in batches])
    assert len(events) == 7
    assert events.events(spec.queries[0]).tolist() == [1] * 7


def test_only_needed_columns_are_kept(visits: StreamSpec) -> None:
    record = {"time": "2013-01-01", "ward": "north", "name": "a secret that nobody asked for"}
    for batch in (
        parse(lines_of([record]), JSON_LINES, visits),
        parse(json.dumps([record]).encode(), JSON, visits),
        parse(stream_of(pa.Table.from_pylist([record])), ARROW, visits),
    ):
        assert list(batch) == ["ward"]
        assert b"secret" not in encode(batch)
        assert b"2013" not in encode(batch)


# -- JSON --------------------------------------------------------------------------------------------------------------

LINES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [
            b'{"ward": "north"}',
            b' {"ward": 1}\r',
            b'\xef\xbb\xbf{"ward": 2}',
            b'{"ward": 3}{"ward": 4}',
            b'{"ward": 5},{"ward": 6}',
            b'{"ward": "\\ud800"}',
            b'{"ward": "\xff"}',
            b'{"ward": NaN, "ward": [1, {"x": [2]}]}',
            b'{"ward": {"a": {"b": 1}, "c": -0.0, "d": 1e999}}',
            b'{"ward": 1' + b"0" * 5000 + b"}",
            b'{"ward": ' + b"[" * 63 + b"]" * 63 + b"}",
            b'{"ward": ' + b"[" * 64 + b"]" * 64 + b"}",
            b'{"other": ' + b"[" * 900 + b"]" * 900 + b"}",
            b"[" * 100000,
            b'{"ward": "' + b"[" * 100 + b'"}',
            b'{"ward": tru',
            b"7",
            b"null",
            b"",
        ]
    ),
    st.dictionaries(
        st.sampled_from(["ward", "x"]),
        st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=4),
    ).map(lambda record: json.dumps(record).encode()),
).map(lambda line: line.replace(b"\n", b""))


def record_alone(line: bytes) -> Any:
    """One line by the shortest way through the standard library."""
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and deepest(record) <= 64 else None


def deepest(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(deepest, value.values() if isinstance(value, dict) else value), default=0)


@settings(deadline=None)
@given(st.lists(LINES, max_size=6))
def test_each_line_is_read_as_if_it_were_alone(visits: StreamSpec, lines: list[bytes]) -> None:
    expected = [record for record in map(record_alone, lines) if record is not None]
    assert repr(list(json_cells.records(b"\n".join(lines)))) == repr(expected)
    assert repr([json_cells.record(line) for line in lines]) == repr(list(map(record_alone, lines)))
    ours = [record for record in expected if not record or {"time", "ward"} & record.keys()]
    if expected and not ours:
        assert "no record has any of the columns" in refusal(b"\n".join(lines), JSON_LINES, visits)
        return
    batch = parse(b"\n".join(lines), JSON_LINES, visits)
    assert length(batch) == len(ours)
    again = decode(encode(batch))
    assert repr(cells(again["ward"])) == repr(cells(batch["ward"]))
    assert encode(again) == encode(batch)


@settings(deadline=None)
@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())))
def test_the_journal_keeps_cells_of_any_types(values: list[Any]) -> None:
    batch = {"ward": np.fromiter(values, object, len(values))}
    again = decode(encode(batch))["ward"]
    assert again.dtype == object
    assert [(type(value), repr(value)) for value in again] == [(type(value), repr(value)) for value in values]


def test_a_damaged_journal_is_a_matter_of_the_state(visits: StreamSpec) -> None:
    payload = encode(parse(lines_of([{"ward": ["secret"]}]), JSON_LINES, visits))
    for damaged in (payload[:-30], b"", payload.replace(b'"secret"', b'"secret:')):
        with pytest.raises(StateError, match="cannot be read"):
            decode(damaged)


NOT_JSON = "the body is not one JSON array of objects in UTF-8, nested at most 64 deep"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"7",
        b"[{}",
        b"[{}] []",
        b'[{"ward": "\xff"}]',
        b"[" * 100000,
        b'[{"ward": "secret" oops}]',
        b"[{}," + b"[" * 65 + b"]" * 65 + b"]",
    ],
)
def test_a_json_body_is_one_array(visits: StreamSpec, body: bytes) -> None:
    assert refusal(body, JSON, visits) == NOT_JSON


def test_elements_that_are_no_objects_are_left_out(visits: StreamSpec) -> None:
    body = b'\xef\xbb\xbf [{"ward": "a"}, 1, null, ["b"], {"ward": {"c": {"d": 1}, "e": 2}}, {"ward": [[1], "f"]}, {}]'
    found = parse(body, "Application/JSON; charset=utf-8", visits)["ward"]
    assert found.tolist() == ["a", {"c": None, "e": 2}, [None, "f"], None]


# -- The envelope ------------------------------------------------------------------------------------------------------

NOT_ARROW = "the body is not one complete, valid Arrow IPC stream"
DECODED = "the batch is too large once it is decoded; send smaller batches"
WARD = "column 'ward' has another type than text, numbers, lists of them, or tables from labels to weights"


def test_what_every_batch_is_refused_for(visits: StreamSpec) -> None:
    for media_type in ("text/plain", "", "application/json-seq"):
        assert "media type of a batch must be one of application/x-ndjson, " in refusal(b"[]", media_type, visits)
    for media_type in MEDIA_TYPES:
        assert "larger than max_batch_bytes" in refusal(b" " * 1_000_001, media_type, visits)


def test_the_columns_of_an_arrow_stream(visits: StreamSpec) -> None:
    ward = pa.array(["north"])
    assert (
        refusal(stream_of(pa.table({"wards": ward})), ARROW, visits) == "the batch must have exactly one column 'ward'"
    )
    twice = pa.Table.from_arrays([ward, ward], ["ward", "ward"])
    assert refusal(stream_of(twice), ARROW, visits) == "the batch must have exactly one column 'ward'"
    others = pa.Table.from_arrays([ward, ward, ward], ["x", "ward", "x"])
    assert cells(parse(stream_of(others), ARROW, visits)["ward"]) == [b"north"]


def test_a_body_without_a_row_is_taken_whatever_its_dictionaries_hold(doors: StreamSpec) -> None:
    """Arrow makes no empty array of some types that it reads."""
    amounts = pa.DictionaryArray.from_arrays(pa.array([], pa.uint16()), pa.array([Decimal(1)], pa.decimal32(9, 2)))
    text = pa.array([], pa.string())
    table = pa.table({"time": text, "patient": text, "minutes": amounts, "ward": text})
    assert cells(parse(stream_of(table), ARROW, doors)["minutes"]) == []


def test_the_users_of_an_arrow_stream_are_read_in_one_piece(doors: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, users take most of the time of a service."""
    monkeypatch.setattr(owners, "_one_by_one", None)
    names = [f"patient {i % 200}" for i in range(300)]
    others = {name: pa.nulls(300) for name in needed(doors) if name != "patient"}
    batches = [
        parse(stream_of(pa.table({"patient": pa.array(names, kind)} | others)), ARROW, doors)
        for kind in (pa.string(), pa.large_string())
    ]
    for tick in (batches[:1], batches[1:], batches):
        codes, found = owners.owners(TickEvents(doors, tick).users())
        assert found.list() == names[:200]
        assert codes.tolist() == [i % 200 for i in range(300)] * len(tick)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[["a"]]]),
        pa.array([{"a": ["b"]}]),
        pa.array([dt.datetime(2013, 1, 1)]),
        pa.array([dt.time(1)]),
        pa.array([dt.timedelta(1)]),
        pa.array([Decimal(1)]),
        pa.DictionaryArray.from_arrays([0], pa.array([["a"]])),
        pa.array([["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([["a"]], pa.list_view(pa.string())),
        pa.RunEndEncodedArray.from_arrays([1], ["a"]),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["a"])]),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16))),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])),
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_no_label_has(visits: StreamSpec, column: Any) -> None:
    assert refusal(stream_of(pa.table({"ward": column})), ARROW, visits) == WARD
    assert parse(stream_of(pa.table({"ward": ["north"], "other": column})), ARROW, visits)


@pytest.mark.parametrize(
    ("name", "column", "text"),
    [
        ("time", pa.array([1]), "column 'time' has another type than time stamps, dates or text"),
        ("time", pa.array([dt.timedelta(1)]), "column 'time' has another type"),
        ("minutes", pa.array([["1"]]), "column 'minutes' has another type than numbers or text"),
        ("minutes", pa.array([dt.date(2013, 1, 1)]), "column 'minutes' has another type than numbers or text"),
        (
            "patient",
            pa.array([["a"]]),
            "column 'patient' has another type than text or numbers: an event has exactly one",
        ),
        ("patient", pa.DictionaryArray.from_arrays([0], pa.array([["a"]])), "column 'patient' has another type"),
    ],
    ids=str,
)
def test_types_that_the_use_of_a_column_cannot_take(doors: StreamSpec, name: str, column: Any, text: str) -> None:
    good = {"time": ["2013-01-01"], "patient": ["a"], "minutes": [1], "ward": ["x"]}
    assert text in refusal(stream_of(pa.table({**good, name: column})), ARROW, doors)


def test_an_integer_clock_takes_integers(folder: Path) -> None:
    clock = SPEC.replace("start = 2013-01-01T00:00:00Z", "start = 0").replace(
        'tick = "1h"', 'tick = 10\nclose = "request"'
    )
    spec = spec_of(folder, clock)
    table = pa.table({"time": pa.array([dt.date(2013, 1, 1)]), "ward": ["x"]})
    assert "integers, which this clock needs" in refusal(stream_of(table), ARROW, spec)
    for times in (pa.array([5, 15], pa.uint64()), pa.array([5.5, 15.5]), pa.array(["5", "15"])):
        batch = parse(stream_of(pa.table({"time": times, "ward": ["a", "b"]})), ARROW, spec)
        assert [(tick, cells(part["ward"])) for tick, part in split_by_tick(batch, spec, 1, None)] == [
            (1, [b"a"]),
            (2, [b"b"]),
        ]


@pytest.mark.parametrize(
    ("declared", "taken", "refused"),
    [
        (
            "text",
            [pa.string(), pa.dictionary(pa.int8(), pa.large_string()), pa.null()],
            [pa.int64(), pa.list_(pa.string())],
        ),
        ("integer", [pa.int8(), pa.dictionary(pa.int8(), pa.int64())], [pa.string(), pa.float64(), pa.bool_()]),
        ("list of text", [pa.list_(pa.string()), pa.large_list(pa.null())], [pa.string(), pa.list_(pa.int64())]),
        (
            "counts",
            [pa.map_(pa.string(), pa.int8()), pa.struct({"a": pa.int64()})],
            [pa.map_(pa.string(), pa.string())],
        ),
    ],
)
def test_a_declared_schema_is_part_of_the_envelope(
    visits: StreamSpec, declared: str, taken: list[Any], refused: list[Any]
) -> None:
    spec = dataclasses.replace(visits, events={"time": "time", "ward": declared})
    for kind in taken:
        parse(stream_of(pa.table({"ward": pa.array([], kind)})), ARROW, spec)
    for kind in refused:
        text = refusal(stream_of(pa.table({"ward": pa.array([], kind)})), ARROW, spec)
        assert text == f"column 'ward' has another type than {declared!r}, which [events] declares"
    # A JSON cell of another type is a matter of its record.
    assert length(parse(lines_of([{"ward": 1}, {"ward": ["a"]}]), JSON_LINES, spec)) == 2


# -- Arrow from an enemy -----------------------------------------------------------------------------------------------

SECRET = b"secret\xff\xfe"


def invalid_text() -> Any:
    """A text column with a cell that is no UTF-8, which Arrow lets pass until it is asked."""
    return pa.array([b"north", SECRET, None]).view(pa.string())


@pytest.mark.parametrize(
    "column",
    [
        invalid_text(),
        invalid_text().cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), invalid_text()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), invalid_text()),
    ],
    ids=lambda column: str(column.type),
)
def test_text_that_is_none_concerns_its_record_alone(doors: StreamSpec, visits: StreamSpec, column: Any) -> None:
    batch = parse(stream_of(pa.table({"ward": column})), ARROW, visits)
    assert cells(batch["ward"]) == [b"north", SECRET, None]
    others = {"time": column, "patient": column, "minutes": column, "ward": column}
    parse(stream_of(pa.table(others)), ARROW, doors)
    usable = {**others, "time": ["2013-01-01"] * 3, "patient": ["a", "b", "c"]}
    values = released(doors, [parse(stream_of(pa.table(usable)), ARROW, doors)])
    assert (4, "ward", {"north": 1, "7": 0, "é": 0, "elsewhere": 1}) in values


def test_text_that_is_none_in_lists_and_tables(visits: StreamSpec) -> None:
    for column in (
        pa.ListArray.from_arrays([0, 2, 3], invalid_text()),
        pa.MapArray.from_arrays([0, 1, 2], invalid_text()[:2], pa.array([1, 2])),
    ):
        assert length(parse(stream_of(pa.table({"ward": column})), ARROW, visits)) == 2


def test_values_out_of_range_concern_their_record_alone(doors: StreamSpec) -> None:
    """Arrow's full validation would refuse these columns for one value."""
    day = pa.array([0, 1], pa.int64()).view(pa.date64())
    table = {"time": day, "patient": ["a", "b"], "minutes": [1, 2], "ward": ["x", "y"]}
    assert length(parse(stream_of(pa.table(table)), ARROW, doors)) == 2
    wide = pa.array([Decimal("1.5"), Decimal("99999999.5")], pa.decimal128(10, 1))
    narrow = pa.Array.from_buffers(pa.decimal128(3, 1), 2, wide.buffers())
    batch = parse(stream_of(pa.table({**table, "minutes": narrow})), ARROW, doors)
    assert cells(batch["minutes"]) == [1.5, 99999999.5]


def numbers(kind: Any, *values: int) -> bytes:
    return np.array(values, kind).tobytes()


TWO = numbers(np.int32, 0, 11, 24)
TEXTS = pa.array(["a" * 11, "b" * 13])
CODES = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, 1], pa.int32()), ["a", "b"])
LYING = [
    (TEXTS, TWO, numbers(np.int32, 0, 11, 2**30)),
    (TEXTS, TWO, numbers(np.int32, 0, 30, 24)),
    (TEXTS, TWO, numbers(np.int32, -5, 11, 24)),
    (TEXTS.cast(pa.large_string()), numbers(np.int64, 0, 11, 24), numbers(np.int64, 0, 11, 2**60)),
    (pa.array([[1] * 11, [2] * 13]), TWO, numbers(np.int32, 0, 11, 2**20)),
    (pa.array([["x"] * 11, ["y"] * 13]), TWO, numbers(np.int32, 0, 25, 24)),
    (pa.array([[("k", 1)] * 11, [("k", 2)] * 13], pa.map_(pa.string(), pa.int64())), TWO, numbers(np.int32, 0, 11, 99)),
    (TEXTS.cast(pa.string_view()), numbers(np.int32, 13) + b"bbbb", numbers(np.int32, 2**30) + b"bbbb"),
    (TEXTS.cast(pa.string_view()), numbers(np.int32, 13) + b"bbbb", numbers(np.int32, 13) + b"cccc"),
    (CODES, numbers(np.int32, 0, 1, 1, 0, 1), numbers(np.int32, 0, 1, 900000, 0, 1)),
    (CODES, numbers(np.int32, 0, 1, 1, 0, 1), numbers(np.int32, 0, 1, -1, 0, 1)),
]


@pytest.mark.parametrize(("column", "truth", "lie"), LYING)
def test_offsets_and_indices_that_lie(visits: StreamSpec, column: Any, truth: bytes, lie: bytes) -> None:
    body = stream_of(pa.table({"ward": column}))
    assert body.count(truth) == 1
    assert refusal(body.replace(truth, lie), ARROW, visits) in (NOT_ARROW, DECODED)


def test_the_stream_is_complete(visits: StreamSpec) -> None:
    body = stream_of(pa.table({"ward": ["north", "south"]}), rows=1)
    assert length(parse(body, ARROW, visits)) == 2
    assert all(refusal(body[:end], ARROW, visits) == NOT_ARROW for end in range(0, len(body), 7))
    for other in (b"", body + b"\0" * 8, body + body, body[:-8], body[8:], b"ARROW1\0\0" + body):
        assert refusal(other, ARROW, visits) == NOT_ARROW
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema({"ward": pa.string()})):
        pass
    assert refusal(bytes(sink.getvalue()), ARROW, visits) == NOT_ARROW
    assert length(parse(stream_of(pa.table({"ward": pa.array([], pa.string())})), ARROW, visits)) == 0


def test_short_bodies_that_become_long(visits: StreamSpec) -> None:
    limit = visits.serve.max_batch_bytes
    long = pa.array(["x" * 2 * 10**7])
    views = pa.py_buffer(np.tile(np.array([500000, 0, 0, 0], np.int32), 20000))
    columns = {
        "nulls": pa.nulls(limit + 1),
        "dictionary": pa.DictionaryArray.from_arrays(np.zeros(50000, np.int8), ["x" * 100000]),
        "views": pa.Array.from_buffers(pa.binary_view(), 20000, [None, views, pa.py_buffer(bytes(500000))]),
    }
    bodies = {name: stream_of(pa.table({"ward": column})) for name, column in columns.items()}
    nulls = stream_of(pa.table({"ward": pa.array([[None] * 123457], pa.large_list(pa.null()))}))
    bodies["lists of nulls"] = nulls.replace(numbers(np.int64, 123457), numbers(np.int64, 2**40))
    fixed = stream_of(pa.table({"ward": pa.array([[None] * 123457], pa.list_(pa.null(), 123457))}))
    bodies["fixed lists of nulls"] = fixed.replace(numbers(np.int32, 123457), numbers(np.int32, 2**30))
    bodies["compressed"] = stream_of(pa.table({"ward": long}), compression="zstd")
    bodies["compressed elsewhere"] = stream_of(pa.table({"ward": ["a"], "other": long}), compression="lz4")
    coded = pa.table({"ward": ["a"], "other": long.dictionary_encode()})
    bodies["compressed dictionary"] = stream_of(coded, compression="lz4")
    for name, body in bodies.items():
        assert len(body) <= limit, name
        assert refusal(body, ARROW, visits) == DECODED, name
    fits = stream_of(pa.table({"ward": pa.array(["x" * 10**7])}), compression="zstd")
    assert length(parse(fits, ARROW, visits)) == 1


def test_bodies_that_become_long_part_by_part(visits: StreamSpec) -> None:
    """Each part of these is small, and so is the body; what all parts become together is bounded."""
    limit = visits.serve.max_batch_bytes
    texts = pa.array(["x" * (limit // 50), "y"])
    views = pa.py_buffer(np.tile(np.array([limit // 50, 0, 0, 0], np.int32), 30))
    shown = pa.Array.from_buffers(pa.binary_view(), 30, [None, views, pa.py_buffer(bytes(limit // 50))])
    growing = pa.array(["x" * (limit // 2), *map(str, range(40))])
    lists = pa.FixedSizeListArray.from_arrays(pa.nulls(limit // 10), limit // 10)
    parts = {
        "dictionary": [pa.DictionaryArray.from_arrays(np.zeros(9, np.int8), texts)] * 100,
        "views": [shown] * 40,
        "dictionary that grows": [
            pa.DictionaryArray.from_arrays(np.array([i + 1], np.int8), growing[: i + 2]) for i in range(40)
        ],
        "lists of nulls": [lists] * 11,
    }
    for name, columns in parts.items():
        schema = pa.schema({"ward": columns[0].type})
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            for column in columns:
                writer.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))
        body = bytes(sink.getvalue())
        assert len(body) <= limit, name
        assert refusal(body, ARROW, visits) == DECODED, name


def test_many_parts_share_a_dictionary(visits: StreamSpec) -> None:
    """It is read once: a large one, and many short parts, would be a short body that takes minutes."""
    codes = np.array([1, 0, 1, 1, 0, 0, 1], np.int8)
    table = pa.table({"ward": pa.DictionaryArray.from_arrays(codes, pa.array(["north", "south"]))})
    whole, parts = (parse(stream_of(table, rows=rows), ARROW, visits)["ward"] for rows in (None, 1))
    assert parts.equals(whole)
    assert parts[0].as_py() == b"south"
    lying = stream_of(table, rows=1)
    assert refusal(lying.replace(numbers(np.int8, 1) + bytes(7), numbers(np.int8, 2) + bytes(7)), ARROW, visits)


def test_a_length_of_a_compressed_buffer_that_lies(visits: StreamSpec) -> None:
    body = stream_of(pa.table({"ward": pa.array(["x" * 1000])}), compression="zstd")
    declared = (1000).to_bytes(8, "little")
    assert body.count(declared) >= 1
    for claim in (2**62, 2**31, 10**8):
        assert refusal(body.replace(declared, claim.to_bytes(8, "little")), ARROW, visits) == DECODED
    for claim in (999, 1001, -1, -5):
        lying = body.replace(declared, claim.to_bytes(8, "little", signed=True))
        assert refusal(lying, ARROW, visits) == NOT_ARROW


def test_dictionaries_that_grow_or_change_on_the_way(visits: StreamSpec) -> None:
    growing = [pa.DictionaryArray.from_arrays([0], ["a"]), pa.DictionaryArray.from_arrays([1, 0], ["a", "b"])]
    changing = [pa.DictionaryArray.from_arrays([0], ["a"]), pa.DictionaryArray.from_arrays([0, 1], ["b", "a"])]
    schema = pa.schema({"ward": growing[0].type})
    for grows, parts in ((True, growing), (False, changing)):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=grows)
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            for part in parts:
                writer.write_batch(pa.RecordBatch.from_arrays([part], schema=schema))
        assert cells(parse(bytes(sink.getvalue()), ARROW, visits)["ward"]) == [b"a", b"b", b"a"]


def test_metadata_and_names_from_outside_have_no_meaning(visits: StreamSpec) -> None:
    own = encode(parse(lines_of([{"ward": ["a"]}]), JSON_LINES, visits))  # carries the journal's own marks
    assert cells(parse(own, ARROW, visits)["ward"]) == [b'["a"]']
    field = pa.field("ward", pa.binary(), metadata={"ARROW:extension:name": "nobody.knows", "evertally": "json"})
    table = pa.Table.from_arrays([pa.array([b"a"])], schema=pa.schema([field], metadata={"x": "y" * 1000}))
    found = parse(stream_of(table), ARROW, visits)
    assert cells(found["ward"]) == [b"a"]
    assert cells(decode(encode(found))["ward"]) == [b"a"]


# -- Noise on the line -------------------------------------------------------------------------------------------------

REFUSALS = {
    NOT_ARROW,
    DECODED,
    WARD,
    *(f"the batch must have exactly one column '{name}'" for name in COLUMNS),
    "column 'time' has another type than time stamps, dates or text, which this clock needs",
    "column 'minutes' has another type than numbers or text, from which amounts are read",
    "column 'patient' has another type than text or numbers: an event has exactly one user",
}
GOOD = {
    "time": [
        pa.array(["2013-01-01T00:00:00Z", None, "x"]),
        pa.array([dt.datetime(2013, 1, 1, hour) for hour in range(3)]),
        pa.array([dt.date(2013, 1, 1)] * 3, pa.date64()),
        pa.array([dt.datetime(2013, 1, 1, hour) for hour in range(3)]).dictionary_encode(),
    ],
    "patient": [pa.array(["a", "b", None]), pa.array([1, 2, None]), pa.array(list("aba")).dictionary_encode()],
    "minutes": [
        pa.array([1, None, 3]),
        pa.array(["3", "x", None]),
        pa.array([Decimal("1.50")] * 3, pa.decimal128(5, 2)),
        pa.array([1.5, None, 2.5], pa.float16()),
    ],
    "ward": [
        pa.array(["north", None, "é"]),
        pa.array([["a", "b"], None, ["é"]]),
        pa.array([[("a", 1)], None, [("b", 2), ("b", 3)]], pa.map_(pa.string(), pa.int64())),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([{"a": 1, "b": None}] * 3),
        pa.array(["north", "a text beyond twelve bytes", None]).cast(pa.string_view()),
        pa.array([["a", "b"]] * 3, pa.list_(pa.string(), 2)),
        pa.array([b"ab"] * 3, pa.binary(2)),
        pa.nulls(3),
    ],
}
ENDS = (b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\0" * 8, (2**40).to_bytes(8, "little"), (7).to_bytes(8, "little"))


def changed(body: bytes, rng: random.Random) -> bytes:
    noisy = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 6))):
        at, way = rng.randrange(len(noisy)), rng.randrange(5)
        if way == 0:
            noisy[at] = rng.randrange(256)
        elif way == 1:
            noisy[at] ^= 1 << rng.randrange(8)
        elif way == 2:
            size = rng.choice((4, 8))
            start = at // size * size
            noisy[start : start + size] = rng.choice(ENDS)[:size]
        elif way == 3:
            del noisy[at : at + rng.choice((1, 4, 8, 64))]
        else:
            other = rng.randrange(len(noisy))
            noisy[at : at + 8] = noisy[other : other + 8]
        noisy = noisy or bytearray(b"\0")
    return bytes(noisy)


def test_changed_bytes_are_refused_or_harmless(doors: StreamSpec) -> None:
    rng = random.Random(7)
    taken = 0
    for _ in range(120):
        table = pa.table({name: rng.choice(columns) for name, columns in GOOD.items()})
        body = stream_of(table, rng.choice((2, None)), compression=rng.choice((None, None, "lz4", "zstd")))
        assert length(parse(body, ARROW, doors)) == 3
        for _ in range(40):
            try:
                batch = parse(changed(body, rng), ARROW, doors)
            except BatchRefused as error:
                assert str(error) in REFUSALS  # noqa: PT017
                continue
            taken += 1
            parts = [part for _, part in split_by_tick(decode(encode(batch)), doors, 1, 4)]
            events = TickEvents(doors, parts)
            if taken % 8 == 0:
                released(doors, parts and [batch])
            for query in doors.queries:
                assert len(events.events(query)) == len(events)
    assert taken > 300


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(visits: StreamSpec, body: bytes) -> None:
    parse(body, JSON_LINES, visits)
    for media_type in (JSON, ARROW):
        try:
            parse(body, media_type, visits)
        except BatchRefused as error:
            assert str(error) in {NOT_JSON, NOT_ARROW}  # noqa: PT017


# -- Ticks -------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["2012-12-31", "2013-01-01T00:30", "2013-01-01T01:00", "2013-01-01T05:59", "x", None, 5])),
    st.integers(1, 4),
    st.integers(1, 8) | st.none(),
)
def test_an_event_enters_the_tick_of_its_own_time(
    doors: StreamSpec, times: list[Any], first: int, last: int | None
) -> None:
    records = [{"time": time, "ward": i} for i, time in enumerate(times)]
    expected: dict[int, list[int]] = {}
    for i, time in enumerate(times):
        moment = instant(time) if isinstance(time, str) else None
        if moment is not None:
            tick = (moment - doors.clock.start) // doors.clock.length + 1
            if last is None or tick <= last:
                expected.setdefault(max(first, tick), []).append(i)
    parts = split_by_tick(parse(lines_of(records), JSON_LINES, doors), doors, first, last)
    assert [(tick, part["ward"].tolist()) for tick, part in parts] == sorted(expected.items())
    assert all("time" not in part for _, part in parts)


def test_entries_of_mappings_count_as_rows(visits: StreamSpec) -> None:
    """Each of them is looked at by itself: one event with a million of them must not be one row of a quota."""
    entries = ", ".join(f'"{i}": 1' for i in range(6_000))
    mapping = f'{{"ward": {{{entries}}}}}\n'.encode()
    text = b'{"ward": "' + b"x" * len(mapping) + b'"}\n'
    assert counted(mapping + b'{"ward": null}\n', JSON_LINES, visits)[0] == (len(mapping) - len('{"ward": }\n')) // 32
    assert counted(text, JSON_LINES, visits)[0] == 1
    assert counted(b"[" + mapping + b"]", JSON, visits)[0] == 3_000
    few = dataclasses.replace(visits, serve=dataclasses.replace(visits.serve, max_batch_rows=2_000))
    for body, kind in ((mapping, JSON_LINES), (b"[" + mapping + b"]", JSON)):
        with pytest.raises(BatchRefused, match="max_batch_rows"):
            counted(body, kind, few)
