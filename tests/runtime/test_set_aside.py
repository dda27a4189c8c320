"""Defects that a record reaches: the batch, file, message or event fails alone, and everything else goes on.

There is no such record that we know of, so the defects are planted here, from outside.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from live_stream import ON_REQUEST, Hands, batch, values
from typer.testing import CliRunner
from visit_stream import NoNoise, WriteSpec, spec_writer

import any_arrow
from evertally import Histogram
from evertally.cli.app import app
from evertally.encode.labels import as_list
from evertally.errors import ConfigurationError, described
from evertally.runtime import Asked, load_spec, opening, run
from evertally.runtime.inbox import Inbox
from evertally.runtime.input import encoded
from evertally.runtime.input.encoded import BatchFailed
from evertally.runtime.input.feeds import opened_feeds
from evertally.runtime.input.sources import ROWS
from evertally.runtime.live import Live, Receipt
from evertally.runtime.pump import Pump
from evertally.runtime.releases import TickRelease
from evertally.runtime.room import Busy
from evertally.runtime.spec import StreamSpec
from long import LONG
from waiting import PATIENCE, until

POISON = "poison"
NOON = "2013-01-01T00:30:00Z"


def found(cells: Any) -> bool:
    return any(cell in (POISON, POISON.encode()) for cell in as_list(cells))


def broken(error: type[Exception] = RuntimeError) -> Exception:
    return error("ward north, patient p1")


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A batch that holds the word cannot be encoded. How often that was tried, while there is a list."""
    tried: list[int] = [0]
    real = encoded.encode

    def encode(given: Any) -> bytes:
        if tried and ROWS not in given and found(given["ward"]):
            tried[0] += 1
            raise broken()
        return real(given)

    monkeypatch.setattr(encoded, "encode", encode)
    return tried


@pytest.fixture(autouse=True)
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))


def visits(spec: StreamSpec, *wards: str) -> Any:
    return batch(spec, [{"time": NOON, "ward": ward} for ward in wards])


# -- Batches -----------------------------------------------------------------------------------------------------------


def test_one_batch_is_refused_and_those_beside_it_count(write_spec: WriteSpec, fails: list[int]) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    with Live(spec) as live:
        answers = live.accept(
            [("a", visits(spec, "north")), ("b", visits(spec, POISON)), ("c", visits(spec, "north"))], {"place": 7}
        )
        assert [type(answer) for answer in answers] == [Receipt, BatchFailed, Receipt]
        failed = answers[1]
        assert isinstance(failed, BatchFailed)
        assert "evertally/runtime/input/encoded.py:" in failed.place
        assert "patient" not in failed.place + str(failed)
        assert failed.__context__ is None
        assert live.mark("place") is None
        assert values(spec, live.release_through(1)[-1])["all"] == 2


def test_a_batch_that_was_cut_for_an_earlier_tick_is_cut_again(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    with Live(spec) as live:
        ready = live.encoded(visits(spec, "north", "south"), "till")
        live.release_through(3)
        assert live.accept([("a", ready)]) == [Receipt(4, False)]
        assert live.waiting.of("till").rows == 2
        assert values(spec, live.release_through(4)[-1])["all"] == 2
        assert live.waiting_bytes == 0


def test_the_last_own_frame_is_named() -> None:
    with pytest.raises(AttributeError) as own:
        encoded.encode({"ward": 7})
    assert described(own.value).startswith("AttributeError at batches.py:")
    with pytest.raises(TypeError) as of_others:
        load_spec(7)  # type: ignore[arg-type]
    assert described(of_others.value).startswith("TypeError at ")
    assert ", from evertally/runtime/spec/" in described(of_others.value)


# -- Files -------------------------------------------------------------------------------------------------------------


@contextmanager
def fed(spec: StreamSpec) -> Iterator[tuple[Live, Pump]]:
    live = Live(spec, wall=Hands(1_357_000_000.0))
    with opened_feeds(live.spec, live.mark) as feeds:
        pump = Pump(live, feeds)
        pump.start()
        yield live, pump
        pump.stop()
    assert pump.failure is None


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["quarantine", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_file_that_fails_is_set_aside_until_the_operator_decides(
    write_spec: WriteSpec, tmp_path: Path, fails: list[int]
) -> None:
    path = write_spec(ON_REQUEST, append='\n[[source]]\nfolder = "incoming"\n')
    spec = load_spec(path)
    (tmp_path / "incoming").mkdir()
    for name, ward in (("a.csv", "north"), ("b.csv", POISON), ("c.csv", "south"), ("d.csv", POISON)):
        (tmp_path / "incoming" / name).write_text(f"time,ward\n{NOON},{ward}\n")
    with fed(spec) as (live, pump):
        until(lambda: len(pump.problems) == 2)
        assert live.mark("file:c.csv:records") == -1  # the one behind it was read to its end
        assert pump.figures.quarantined == 2
        assert pump.figures.failed == 2
        assert "b.csv was set aside" in str(pump.figures.problem)
    assert fails == [2]
    with fed(spec) as (live, pump):  # a restart does not try it again
        until(lambda: len(pump.problems) == 2)
        assert fails == [2]
        ids = {line.split()[3]: line.split()[0] for line in said("list", path).splitlines()}
        assert list(ids) == ["file:b.csv", "file:d.csv"] or list(ids) == ["file:d.csv", "file:b.csv"]
        assert "RuntimeError at test_set_aside.py" in said("list", path)
        assert "patient" not in said("list", path)
        assert "file:b.csv will be tried again" in said("retry", path, ids["file:b.csv"])
        until(lambda: fails == [3])
        until(lambda: pump.figures.quarantined == 2)
        fails.clear()  # the defect is mended
        said("retry", path, ids["file:b.csv"])
        said("drop", path, ids["file:d.csv"])
        until(lambda: pump.figures.quarantined == 0 and live.mark("file:b.csv:records") == -1)
        until(lambda: not pump.problems)
        seen: list[TickRelease] = []
        pump.subscribe(seen.append)
        pump.close_until("2013-01-01T01:00").result(PATIENCE)
        assert values(spec, seen[-1])["all"] == 3
    assert [line.split()[1:4:2] for line in said("list", path).splitlines()] == [["drop", "file:d.csv"]]
    kept = "".join(file.read_text() for file in (tmp_path / "visits.state.quarantine").iterdir())
    assert POISON not in kept
    assert CliRunner().invoke(app, ["quarantine", "drop", str(path), "nothing"]).exit_code == 2


def test_a_file_that_changed_stops_nothing(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(ON_REQUEST, append='\n[[source]]\nfolder = "incoming"\n'))
    (tmp_path / "incoming").mkdir()
    first = tmp_path / "incoming" / "a.csv"
    first.write_text(f"time,ward\n{NOON},north\n")
    with fed(spec) as (live, pump):
        until(lambda: live.mark("file:a.csv:records") == -1)
        first.write_text(f"time,ward\n{NOON},north\n{NOON},south\n")
        (tmp_path / "incoming" / "b.csv").write_text(f"time,ward\n{NOON},north\n")
        until(lambda: live.mark("file:b.csv:records") == -1)
        until(lambda: ["a.csv has changed" in problem for problem in pump.problems] == [True])


def test_a_source_that_fails_as_a_whole_stops_nothing(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    live = Live(spec)

    def feed() -> Any:
        raise broken()
        yield

    pump = Pump(live, feeds=[feed])
    pump.start()
    until(lambda: bool(pump.problems))
    assert "RuntimeError at test_set_aside.py" in pump.problems[0]
    assert not pump.submit("a", visits(spec, "north"), 1).result(PATIENCE).duplicate
    pump.stop()
    assert pump.failure is None


# -- Ticks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram that gets the word raises; other statistics count every event."""
    real = Histogram.step_events

    def step_events(self: Any, events: Any, **options: Any) -> Any:
        if found(events):
            raise broken()
        return real(self, events, **options)

    monkeypatch.setattr(Histogram, "step_events", step_events)


def test_an_event_that_makes_a_statistic_raise_is_left_out_of_it_alone(write_spec: WriteSpec, raises: None) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    live = Live(spec)
    live.accept([("a", visits(spec, "north", POISON, "south", "north")), ("b", visits(spec, POISON))])
    live.accept([("c", visits(spec, "south"))])
    first = values(spec, live.release_through(1)[-1])
    assert first == {"all": 6, "ward": [2, 2, 0]}
    assert "'ward' could not take every event of tick 1" in str(live.trouble)
    assert "patient" not in str(live.trouble)
    live.accept([("d", visits(spec, "south", POISON))])
    live.abandon()
    # Whoever goes through the journal again leaves out the same: otherwise this would be refused.
    with Live(spec) as again:
        assert again.released == 1
        assert values(spec, again.release_through(2)[-1]) == {"all": 8, "ward": [2, 3, 0]}


def test_a_run_of_a_file_leaves_out_the_same(write_spec: WriteSpec, tmp_path: Path, raises: None) -> None:
    spec = load_spec(write_spec())
    rows = [f"{NOON},{ward}" for ward in ("north", POISON, "south", "south")]
    (tmp_path / "day.csv").write_text("\n".join(["time,ward", *rows]) + "\n")
    run(spec, tmp_path / "day.csv", until="2013-01-01T02:00", asked=Asked())
    lines = [json.loads(line) for line in (tmp_path / "visits.jsonl").read_text().splitlines()]
    last = {(line["query"], line.get("category")): line["value"] for line in lines if line["tick"] == 2}
    assert last == {("all", None): 4, ("ward", "north"): 1, ("ward", "south"): 2, ("ward", "elsewhere"): 0}


# -- Turns -------------------------------------------------------------------------------------------------------------


def test_callers_take_turns_and_requests_keep_their_place() -> None:
    inbox: Inbox[str, tuple[str]] = Inbox()
    for number in range(5):
        inbox.put("greedy", f"g{number}", 1, 100)
    inbox.put("small", "s0", 1, 1)
    inbox.put("other", "o0", 1, 1)
    inbox.put("small", "s1", 1, 1)
    assert (len(inbox), inbox.batches_of("greedy"), inbox.waiting.all.bytes) == (8, 5, 503)
    inbox.put_request(("close",))
    inbox.put("late", "l0", 1, 1)
    assert inbox.take(4, 1000) == ["g0", "s0", "o0", "g1"]
    assert inbox.take(9, 150) == ["s1", "g2"]  # the next one would be beyond the bytes
    assert inbox.take(9, 50) == ["g3"]  # one batch is always taken
    assert inbox.take(9, 50) == ["g4"]
    assert inbox.take(9, 50) == ("close",)
    assert inbox.take(9, 50) == ["l0"]
    assert inbox.take(9, 50) == []
    for caller, size in (("greedy", 500), ("small", 2), ("other", 1), ("late", 1)):
        inbox.done(caller, inbox.waiting.of(caller).rows, size)
    assert (inbox.waiting.all.rows, inbox.waiting.all.bytes) == (0, 0)
    threading.Thread(target=inbox.wake).start()
    assert inbox.take(9, 50, timeout=PATIENCE) == []


def test_one_caller_in_the_queue_leaves_room_for_others(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    pump = Pump(Live(spec))
    pump._thread.is_alive = lambda: True  # type: ignore[method-assign]
    ready = pump._live.encoded(visits(spec, "north"))
    for number in range(512):
        pump.submit(str(number), ready, 1, "greedy")
    with pytest.raises(Busy, match="of your events"):
        pump.submit("more", ready, 1, "greedy")
    small = pump.submit("one", ready, 1, "small")
    del pump._thread.is_alive
    pump.start()
    assert small.result(PATIENCE) == Receipt(1, False)
    pump.stop()
    assert pump.figures.clients["small"].rows == 1
    assert pump.figures.clients["greedy"].batches == 512


# -- Runs of files -----------------------------------------------------------------------------------------------------


def test_a_run_takes_or_refuses_a_file_of_any_columns(tmp_path: Path) -> None:
    rng = random.Random(8)
    ran = 0
    for number in range(300 if LONG else 40):
        home = tmp_path / str(number)
        home.mkdir()
        spec = load_spec(spec_writer(home)())
        columns = {"time": pa.array([NOON] * 5), "ward": pa.array(["north"] * 5)}
        name = rng.choice(("ward", "ward", "ward", "time"))
        columns[name] = any_arrow.column(rng, 5, 2) if number else pa.FixedSizeListArray.from_arrays(pa.nulls(10), 2)
        (home / "day.arrow").write_bytes(any_arrow.body(columns))
        try:
            run(spec, home / "day.arrow", until="2013-01-01T01:00", asked=Asked("count", "leave", "drop"))
            ran += 1
        except ConfigurationError as refused:
            assert f"column {name!r}" in str(refused) or "not a readable" in str(refused)  # noqa: PT017
            assert not spec.state_file.exists()
    assert ran > 8
