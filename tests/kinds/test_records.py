"""A kind whose events have several columns: every way in hands the same records to its door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from visit_stream import NoNoise, save

import evertally as et
from evertally import kinds
from evertally.errors import ConfigurationError
from evertally.kinds import NAMES, Card, Kind, Query, Records, Result
from evertally.kinds.fields import Text
from evertally.kinds.reads import Cells, Parameters
from evertally.runtime import load_spec, run
from evertally.runtime.input import batches
from evertally.runtime.input.envelope import BatchRefused, needed
from evertally.runtime.input.tick_events import TickEvents, split_by_tick
from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.spec import QuerySpec, StreamSpec
from spec_text import HOURLY, spec_text


class Comings(et.Counter):
    """Arrivals less departures, for a test: `step_events` takes records."""

    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Any:
        counted = [1 if what == "in" else -1 for what, _, who in events if what in ("in", "out") and who is not None]
        return super().step(max(0, sum(counted)), tick=tick)


class ComingsQuery(Query):
    what: Text
    who: Text
    places: list[Text] | None = None


def _made(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    places: Any = list(zip(*cells["places"], strict=True)) if "places" in cells else [None] * count
    return list(zip(cells["what"], places, cells["who"], strict=True))


KIND = Kind(
    statistic=Comings,
    options=ComingsQuery,
    reads=NAMES,
    result=Result(),
    card=Card("figure", "Came and did not go"),
    proofs={},
    change_proof="nowhere",
    records=Records({"what": NAMES, "who": NAMES, "places": NAMES}, _made),
    arguments=lambda options: {"mechanism": "tree"},
)
CELLS = [("in", "ann", "north", 1), ("out", None, "south", 2), ("in", "bob", "north", 2), ("up", "eve", None, 7)]
ROWS = [
    {"time": f"2013-01-01T00:0{i}:00Z", "what": what, "who": who, "ward": ward, "floor": floor}
    for i, (what, who, ward, floor) in enumerate(CELLS)
]
EXPECTED = [(what, (ward, floor), who) for what, who, ward, floor in CELLS]
QUERY = {"name": "there", "kind": "comings", "what": "what", "who": "who", "places": ["ward", "floor"]}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    kinds.register_kind(KIND)
    yield
    kinds.forget_kind(KIND)


@pytest.fixture
def spec(tmp_path: Path) -> StreamSpec:
    path = tmp_path / "visits.toml"
    path.write_text(spec_text(QUERY, clock={**HOURLY, "close": "request"}))
    return load_spec(path)


def test_one_answer_says_which_columns_are_read(spec: StreamSpec) -> None:
    there = spec.queries[0]
    assert [(column.option, column.name) for column in there.columns] == [
        ("what", "what"),
        ("who", "who"),
        ("places", "ward"),
        ("places", "floor"),
    ]
    assert spec.columns() == needed(spec) == ["time", "what", "who", "ward", "floor"]
    counter = QuerySpec("all", "counter", Fraction(1), None, {}, line=1)
    assert counter.columns == ()


def _arrow(rows: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


BODIES = {
    batches.JSON_LINES: "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    batches.JSON: json.dumps(ROWS).encode(),
    batches.ARROW: _arrow(ROWS),
}


@pytest.mark.parametrize("media_type", BODIES)
def test_every_body_becomes_the_same_records(spec: StreamSpec, media_type: str) -> None:
    batch = batches.decode(batches.encode(batches.parse(BODIES[media_type], media_type, spec)))
    ((tick, part),) = split_by_tick(batch, spec, 1, None)
    assert (tick, set(part)) == (1, {"what", "who", "ward", "floor"})
    assert TickEvents(spec, [part]).events(spec.queries[0]) == EXPECTED


def test_batches_of_several_forms_are_one_tick(spec: StreamSpec) -> None:
    parts = [batches.parse(body, media_type, spec) for media_type, body in BODIES.items()]
    events = TickEvents(spec, parts)
    assert events.events(spec.queries[0]) == EXPECTED * 3
    assert TickEvents(spec, []).events(spec.queries[0]) == []


def test_columns_of_codes_are_read_cell_by_cell(spec: StreamSpec) -> None:
    long = pa.array(["in", "out", *map(str, range(500))]).dictionary_encode()
    batch = {"what": long[:2], "who": long[2:4], "ward": np.array([None, "x"], object), "floor": pa.nulls(2)}
    expected = [("in", (None, None), "0"), ("out", ("x", None), "1")]
    assert TickEvents(spec, [batch]).events(spec.queries[0]) == expected


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_every_file_is_read(spec: StreamSpec, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    step = Comings.step_events
    monkeypatch.setattr(Comings, "step_events", lambda self, x, tick: seen.append(x) or step(self, x, tick=tick))
    later = [{**row, "time": "2013-01-01T02:30:00Z"} for row in ROWS]
    run(spec, save(later + ROWS, spec.path.parent / f"events{suffix}"), until="2013-01-01T03:00:00Z")
    expected = EXPECTED
    if suffix == ".csv":
        expected = [(what, (ward, str(floor)), who) for what, (ward, floor), who in EXPECTED]
    assert seen == [expected, [], expected]


def test_an_absent_column_is_a_matter_of_the_envelope(spec: StreamSpec) -> None:
    without = [{name: cell for name, cell in row.items() if name != "who"} for row in ROWS]
    with pytest.raises(BatchRefused, match="exactly one column 'who'"):
        batches.parse(_arrow(without), batches.ARROW, spec)
    nested = [{**row, "who": ["ann"]} for row in ROWS]
    with pytest.raises(BatchRefused, match="'who' has another type than text or numbers"):
        batches.parse(_arrow(nested), batches.ARROW, spec)
    with pytest.raises(ConfigurationError, match="no column 'who'"):
        run(spec, save(without, spec.path.parent / "events.parquet"), until="2013-01-01T03:00:00Z")
    lines = "".join(json.dumps(row) + "\n" for row in without).encode()
    records = TickEvents(spec, [batches.parse(lines, batches.JSON_LINES, spec)]).events(spec.queries[0])
    assert [who for _, _, who in records] == [None] * 4, "a JSON record has the columns that it has"


def test_declared_columns_are_checked(spec: StreamSpec) -> None:
    declared = {"time": "time", "what": "text", "ward": "text", "floor": "integer"}
    spec.path.write_text(spec_text(QUERY, events=declared))
    with pytest.raises(ConfigurationError, match="needs the column 'who', which the comings 'there' reads"):
        load_spec(spec.path)
    spec.path.write_text(spec_text(QUERY, events={**declared, "who": "counts"}))
    with pytest.raises(ConfigurationError, match='who is "counts", but the comings'):
        load_spec(spec.path)


def test_the_machine_hands_records_over(spec: StreamSpec) -> None:
    machine = Machine.at(spec, StreamState(), NoNoise())
    batch = batches.parse(BODIES[batches.JSON], batches.JSON, spec)
    machine.step(TickEvents(spec, [batch, batch]), 1)
    assert machine.releases["there"].value == 4
