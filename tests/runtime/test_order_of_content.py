"""[stream] order = "content": which events of a user count first does not depend on how they came."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from live_stream import batch, in_pieces

import evertally as et
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.noise import Key, simulation
from evertally.runtime import load_spec, run
from evertally.runtime.certificate import certificate
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.input.tokens import column_of
from evertally.runtime.live import Live
from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.mechanisms import build
from evertally.runtime.plan import plan
from evertally.runtime.spec import StreamSpec
from made_keys import save_bound
from spec_text import HOURLY, Table, spec_text

WARDS = ["north", "south", "east", "west"]
CAPPED: Table = {"name": "ward", "kind": "histogram", "column": "ward", "categories": WARDS}
DISTINCT: Table = {"name": "seen", "kind": "distinct_users", "categories": WARDS, "max_categories": 1, "column": "ward"}
SKETCH: Table = {
    "name": "pages",
    "kind": "count_sketch",
    "column": "page",
    "watch": [f"/{i}" for i in range(9)],
    "width": 256,
    "max_labels_per_user": 2,
}
SUM: Table = {"name": "paid", "kind": "running_sum", "column": "minutes", "upper": 50, "max_total_per_user": 60}
FIRST_COUNT = [CAPPED, DISTINCT, SKETCH, SUM]


def loaded(folder: Path, *queries: Table, order: str | None = "content", **more: Any) -> StreamSpec:
    bare = any(query["kind"] in ("histogram", "counter") for query in queries)
    stream = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient"}
    stream |= ({"max_events_per_user": 2} if bare else {}) | ({} if order is None else {"order": order})
    folder.mkdir(exist_ok=True)
    path = folder / "visits.toml"
    path.write_text(spec_text(*queries, **{"stream": stream, "clock": {**HOURLY, "close": "request"}, **more}))
    return load_spec(path)


def events(seed: int, count: int = 60) -> list[dict[str, Any]]:
    """Many of few users in one hour, with some that have no user, or nothing that can be read."""
    draws = random.Random(seed)
    return [
        {
            "time": "2013-01-01T00:30:00Z",
            "patient": draws.choice(["ann", "bob", "eve", 7, None]),
            "ward": draws.choice([*WARDS, None, 3.5]),
            "page": draws.choice([f"/{i}" for i in range(9)]),
            "minutes": draws.randrange(50),
        }
        for _ in range(count)
    ]


def stepped(spec: StreamSpec, batches: Sequence[Batch]) -> tuple[Any, Any]:
    key = simulation(5)
    machine = Machine(spec, build(spec, key), key)
    return machine.step(TickEvents(spec, batches), 1), machine.state()


@pytest.mark.parametrize("query", FIRST_COUNT, ids=lambda query: str(query["kind"]))
@pytest.mark.parametrize("count", [60, 600])
def test_the_order_of_arrival_changes_no_byte(tmp_path: Path, query: Table, count: int) -> None:
    by_content, by_arrival = (loaded(tmp_path, query, order=order) for order in ("content", "arrival"))
    records, draws = events(1, count), random.Random(2)
    others = [draws.sample(records, len(records)) for _ in range(3)]
    found = [stepped(by_content, [batch(by_content, some)]) for some in (records, *others)]
    assert all(each == found[0] for each in found)
    arrived = [stepped(by_arrival, [batch(by_arrival, some)]) for some in (records, *others)]
    assert any(each[1] != arrived[0][1] for each in arrived), "otherwise this test could not fail"


def as_arrow(some: Sequence[dict[str, Any]], names: Sequence[str]) -> Batch:
    texts = {name: [None if (cell := row[name]) is None else str(cell) for row in some] for name in names}
    texts["ward"] = [None if ward == "3.5" else ward for ward in texts["ward"]]
    found: Batch = {name: pa.array(column) for name, column in texts.items()}
    found["minutes"] = pa.array([row["minutes"] for row in some], pa.int16())
    return found


def as_bytes(some: Sequence[dict[str, Any]], names: Sequence[str]) -> Batch:
    found = as_arrow(some, names)
    return {name: column.cast(pa.float64() if name == "minutes" else pa.binary()) for name, column in found.items()}


def as_tokens(some: Sequence[dict[str, Any]], names: Sequence[str]) -> Batch:
    return {
        name: column_of(Texts.of(["" if row[name] is None else json.dumps(row[name]) for row in some]))
        for name in names
    }


def as_lists(some: Sequence[dict[str, Any]], names: Sequence[str]) -> Batch:
    objects = {name: np.fromiter((row[name] for row in some), object, len(some)) for name in names}
    objects["page"] = np.fromiter(([page] for page in objects["page"]), object, len(some))
    return objects


@pytest.mark.parametrize("other", [as_arrow, as_bytes, as_tokens, as_lists])
@pytest.mark.parametrize("count", [60, 600])
def test_the_form_of_batches_changes_no_byte(
    tmp_path: Path, other: Callable[[Sequence[dict[str, Any]], Sequence[str]], Batch], count: int
) -> None:
    spec = loaded(tmp_path, *FIRST_COUNT[:2], {**SKETCH, "name": "all"}, SUM)
    records, draws = events(3, count), random.Random(4)
    whole = stepped(spec, [batch(spec, records)])
    names = [name for name, _ in spec.uses()]
    assert stepped(spec, [other(records, names)]) == whole
    some = draws.sample(records, len(records))
    pieces = [(other if i % 2 else as_arrow)(piece, names) for i, piece in enumerate(in_pieces(some, 7))]
    assert stepped(spec, pieces) == whole


def test_a_run_does_not_know_where_rows_stood_in_the_file(tmp_path: Path) -> None:
    key, records, released = Key.generate(), events(5), []
    for i, some in enumerate((records, random.Random(6).sample(records, len(records)))):
        spec = loaded(tmp_path / str(i), *FIRST_COUNT)
        save_bound(key, spec.path)
        file = spec.path.parent / "events.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in some))
        run(spec, file, until="2013-01-01T03:00:00Z")
        assert spec.output_file is not None
        released.append(spec.output_file.read_bytes())
    assert released[0] == released[1]


def test_live_streams_that_get_events_in_other_batches_release_the_same(tmp_path: Path) -> None:
    key, records, released = Key.generate(), events(7), []
    tight: dict[str, Any] = {"serve": {"max_memory_bytes": 1}}  # every tick is read from the journal
    for i, (size, more) in enumerate(((60, {}), (7, {}), (7, tight))):
        spec = loaded(tmp_path / str(i), *FIRST_COUNT, **more)
        save_bound(key, spec.path)
        some = random.Random(i).sample(records, len(records))
        with Live(spec) as live:
            live.accept([(str(j), batch(spec, piece)) for j, piece in enumerate(in_pieces(some, size))])
            released.append([tick.payloads for tick in live.release_through(3)])
    assert released[0] == released[1] == released[2]


def test_a_table_that_is_released_at_once_does_not_know_the_order_of_its_rows(tmp_path: Path) -> None:
    spec, records = loaded(tmp_path, *FIRST_COUNT), events(8)
    tables = [
        pa.Table.from_pylist([{**row, "patient": str(row["patient"]), "ward": "north"} for row in some])
        for some in (records, records[::-1])
    ]
    one, two = (et.release(table, spec.path, key=simulation(1), outside="drop").to_arrow() for table in tables)
    assert one.equals(two)


def test_a_row_that_makes_a_statistic_raise_is_left_out_and_the_others_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = loaded(tmp_path, CAPPED)
    records = events(9)
    bad = {**records[0], "patient": "ann", "ward": "broken"}
    original = et.Histogram.step_events

    def raising(self: Any, rows: Any, **options: Any) -> Any:
        if "broken" in list(rows):
            raise RuntimeError("a mistake in a statistic")
        return original(self, rows, **options)

    monkeypatch.setattr(et.Histogram, "step_events", raising)
    assert stepped(spec, [batch(spec, [*records, bad])]) == stepped(spec, [batch(spec, records[::-1])])


def test_a_stream_whose_events_nobody_reads_needs_no_order(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(
        spec_text({"name": "all", "kind": "counter"}, stream={"name": "v", "horizon": 9, "order": "content"})
    )
    spec = load_spec(path)
    key = simulation(1)
    machine = Machine(spec, build(spec, key), key)
    assert machine.step(TickEvents(spec, [{"": pa.nulls(3)}]), 1).tick == 1
    assert machine.step(TickEvents(spec, []), 2).tick == 2


def test_the_machine_of_a_clock_that_is_set_later_keeps_its_order(tmp_path: Path) -> None:
    spec = loaded(tmp_path, CAPPED)
    key, records = Key.generate(), events(10)
    one, two = (Machine.at(spec, StreamState(), key) for _ in range(2))
    assert one.on(spec).step(TickEvents(spec, [batch(spec, records)]), 1) == two.step(
        TickEvents(spec, [batch(spec, records[::-1])]), 1
    )


def test_the_order_is_part_of_the_digest_and_the_usual_one_is_not(tmp_path: Path) -> None:
    silent, usual, content = (loaded(tmp_path, CAPPED, order=order) for order in (None, "arrival", "content"))
    assert silent.digest == usual.digest != content.digest
    assert silent.parts == usual.parts
    assert [name for name, part in content.parts.items() if part != silent.parts[name]] == ["[stream]"]
    assert silent.digest == DIGEST, "a stream that runs must not be stopped by a newer version"


DIGEST = "00ae4c0bca594926d92e5f51ce67e6ea3cb2c535034287a4f1668d3d7814cac0"
ACTIONS = {"action": "what", "insert": "in", "delete": "out"}
ORDERED: list[Table] = [
    {"name": "x", "kind": "joined_events", "column": "what", "after": ["shown"], "then": ["order"]},
    {"name": "x", "kind": "present_items", **ACTIONS, "id": "bed"},
    {"name": "x", "kind": "dynamic_count", **ACTIONS, "id": "bed"},
    {"name": "x", "kind": "dynamic_histogram", "column": "ward", "categories": WARDS, "id": "bed", "deletions": False},
    {
        "name": "x",
        "kind": "substring_counts",
        "column": "what",
        "alphabet": ["a", "b"],
        "longest": 2,
        "sequence": "stream",
    },
    {"name": "x", "kind": "triangles", "columns": ["a", "b"], "vertices": 9, "max_degree": 3},
]


@pytest.mark.parametrize("query", ORDERED, ids=lambda query: str(query["kind"]))
def test_kinds_about_what_came_before_are_refused(tmp_path: Path, query: Table) -> None:
    path = tmp_path / "visits.toml"
    of_users = query["kind"] == "joined_events"
    stream = {"name": "v", "horizon": 9} | ({"unit": "user", "user_column": "patient"} if of_users else {})
    other: Table = {"name": "all", "kind": "distinct_users" if of_users else "counter"}
    path.write_text(spec_text(query, stream=stream))
    assert load_spec(path).queries[0].ordered
    path.write_text(text := spec_text(other, query, stream={**stream, "order": "content"}))
    if query["kind"] in ("present_items", "dynamic_count", "dynamic_histogram"):
        path.write_text(text := spec_text(query, stream={**stream, "order": "content"}))
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row == f'kind = "{query["kind"]}"')
    with pytest.raises(ConfigurationError, match=f'visits.toml:{line}: .*came before.*order = "arrival"'):
        load_spec(path)


def test_kinds_in_which_the_first_count_are_not_about_what_came_before(tmp_path: Path) -> None:
    assert not any(query.ordered for query in loaded(tmp_path, *FIRST_COUNT).queries)
    with pytest.raises(ConfigurationError, match="order"):
        loaded(tmp_path, CAPPED, order="alphabet")


@pytest.mark.parametrize("neighbours", ["replace", "independent"])
def test_events_that_are_replaced_keep_their_place(tmp_path: Path, neighbours: str) -> None:
    path = tmp_path / "visits.toml"
    stream = {"name": "v", "horizon": 9, "neighbours": neighbours}
    path.write_text(spec_text(CAPPED, stream={**stream, "order": "content"}))
    with pytest.raises(ConfigurationError, match=f'order = "content" with neighbours = "{neighbours}" is proved for'):
        load_spec(path)
    path.write_text(spec_text(CAPPED, stream=stream))
    assert load_spec(path).order == "arrival"


def test_plan_and_certificate_say_which_events_come_first(tmp_path: Path) -> None:
    words = "within a tick a user's events count in the order of a keyed hash of their content"
    content, arrival = (loaded(tmp_path / order, CAPPED, order=order) for order in ("content", "arrival"))
    assert words in plan(content).about
    assert words not in plan(arrival).about
    said = certificate(content)
    assert words in said["in_plain_words"]
    assert words in said["error_bounds"]["about"]
    assert any(words[1:] in sentence for sentence in said["assumptions"])
    assert "keyed hash" not in json.dumps(certificate(arrival))
