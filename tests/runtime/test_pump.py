"""The thread that owns a stream: all that is submitted counts once, ticks come in time, stopping loses nothing."""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from live_stream import ON_REQUEST, ON_THE_WALL, Hands, batch, values
from visit_stream import NoNoise, WriteSpec, visits

from evertally.errors import ConfigurationError, StateError
from evertally.runtime import follow as follow_module
from evertally.runtime import load_spec, opening
from evertally.runtime.input.batches import BatchRefused, Piece
from evertally.runtime.input.folder import Folder
from evertally.runtime.live import Live, Receipt, StreamEnded
from evertally.runtime.pump import Pump, Stopped
from evertally.runtime.releases import TickRelease
from evertally.runtime.room import Busy
from waiting import PATIENCE, until

SOON = "\n[serve]\npublish_after = 0.2\n"


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))


def test_many_submit_at_once_and_each_batch_counts_once(write_spec: WriteSpec, no_noise: None) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    pump = Pump(Live(spec))
    seen: list[TickRelease] = []
    pump.subscribe(seen.append)
    pump.start()
    records = visits(0, 1) + visits(1, 2)

    def send(name: str) -> None:
        for i in range(20):
            for _ in range(2):  # every batch twice, as after a lost answer
                pump.submit(f"{name}{i}", batch(spec, records), 100).result(PATIENCE)

    senders = [threading.Thread(target=send, args=(name,)) for name in "abcd"]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert pump.figures.batches == 160
    assert pump.figures.duplicates == 80
    assert pump.close_until("2013-01-01T03:00").result(PATIENCE) == 3
    assert [values(spec, one)["all"] for one in seen][-1] == 80 * len(records)
    assert [one.tick for one in seen] == [1, 2, 3]
    assert pump.published == 3
    with pytest.raises(BatchRefused):
        pump.submit("a1", batch(spec, []), 1).result(PATIENCE)
    with pytest.raises(ConfigurationError, match="tick boundary"):
        pump.close_until("2013-01-01T03:30").result(PATIENCE)
    with pytest.raises(ConfigurationError, match="after the last tick"):
        pump.close_until("2014-01-01T03:00").result(PATIENCE)
    assert pump.close_until("2013-01-03T00:00").result(PATIENCE) == 48
    assert pump.ended
    with pytest.raises(StreamEnded):
        pump.submit("more", batch(spec, []), 1).result(PATIENCE)
    pump.stop()
    assert pump.failure is None
    with pytest.raises(Stopped):
        pump.submit("late", batch(spec, []), 1)
    with Live(spec) as live:
        assert live.ended


def test_an_answer_that_nobody_waits_for_stops_nothing(write_spec: WriteSpec, no_noise: None) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    pump = Pump(Live(spec))
    # Nothing is taken before the pump starts, so all of these can be cancelled in time.
    pump._thread.is_alive = lambda: True  # type: ignore[method-assign]
    receipts = [pump.submit(name, batch(spec, visits(1, 2)), 1) for name in ("a", "b", "a")]
    closing = pump.close_until("2013-01-01T02:00")
    refused = pump.submit("b", batch(spec, []), 1)
    del pump._thread.is_alive
    for future in (receipts[0], closing, refused):
        assert future.cancel()
    pump.start()
    assert receipts[1].result(PATIENCE) == Receipt(1, False)
    assert receipts[2].result(PATIENCE) == Receipt(1, True)
    until(lambda: pump.published == 2)
    pump.stop()
    assert pump.failure is None


def test_ticks_close_on_the_wall_and_are_published_a_fixed_time_later(write_spec: WriteSpec, no_noise: None) -> None:
    spec, clock = load_spec(write_spec(ON_THE_WALL, append=SOON)), Hands(1000.0)
    live = Live(spec, wall=clock)
    pump = Pump(live)
    seen: list[TickRelease] = []
    pump.subscribe(seen.append)
    pump.start()
    sent = 0

    def turns() -> None:
        """Two batches one after the other: between them the pump has looked at everything else."""
        nonlocal sent
        for _ in range(2):
            sent += 1
            pump.submit(str(sent), batch(spec, visits(0, 9)), 100).result(PATIENCE)

    turns()
    assert live.released == 0
    # (moment, released, published): the last ticks were noticed late, and wait for the next multiple of 0.2 seconds.
    for moment, released, published in (
        (1001.1, 1, 0),
        (1001.15, 1, 0),
        (1001.25, 1, 1),
        (1002.05, 2, 1),
        (1002.25, 2, 2),
        (1003.3, 3, 2),
        (1003.35, 3, 2),
        (1003.45, 3, 3),
    ):
        clock.seconds = moment
        until(lambda released=released: live.released == released)
        until(lambda published=published: pump.published >= published)
        turns()
        assert (live.released, pump.published) == (released, published), moment
    pump.stop()
    assert pump.failure is None
    assert [one.tick for one in seen] == [1, 2, 3]
    assert values(spec, seen[0])["all"] == 2 * len(visits(0, 9))


def test_time_that_passed_while_it_was_down_is_idle(write_spec: WriteSpec, no_noise: None) -> None:
    spec, clock = load_spec(write_spec(ON_THE_WALL)), Hands(1000.0)
    live = Live(spec, wall=clock)
    live.accept([("1", batch(spec, visits(0, 9)))])
    live.abandon()
    clock.seconds = 1020.5
    seen: list[TickRelease] = []
    pump = Pump(Live(spec, wall=clock))
    pump.subscribe(seen.append)
    pump.start()
    until(lambda: pump._live.released == 20)
    clock.seconds = 1022.5
    until(lambda: pump.published >= 20)
    pump.stop()
    assert pump.failure is None
    assert [one.tick for one in seen][:20] == list(range(1, 21))
    assert {values(spec, one)["all"] for one in seen} == {len(visits(0, 9))}


def test_a_clock_that_leaps_stops_the_stream_and_one_that_goes_back_waits(write_spec: WriteSpec) -> None:
    spec, clock = load_spec(write_spec(ON_THE_WALL)), Hands(1000.0)
    pump = Pump(Live(spec, wall=clock))
    pump.start()
    clock.seconds = 1003.0
    until(lambda: pump.published == 2)
    clock.seconds = 990.0
    until(lambda: pump.figures.clock_behind_seconds > 9)
    assert pump.submit("1", batch(spec, []), 1).result(PATIENCE).tick == 4
    clock.seconds = 5000.0
    until(lambda: pump.failure is not None)
    assert "leapt forward by" in str(pump.failure)
    with pytest.raises(Stopped, match="leapt"):
        pump.submit("2", batch(spec, []), 1)
    pump.stop()
    with Live(spec, wall=clock) as live:
        assert live.released == 3


def test_back_pressure(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST, append="\n[serve]\nmax_waiting_bytes = 60000\nmax_batch_bytes = 50000\n"))
    pump = Pump(Live(spec))
    pump.start()
    sent = 0
    while pump._live.waiting_bytes <= 59_000:
        pump.submit(str(sent), batch(spec, visits(5, 9)), 1000).result(PATIENCE)
        sent += 1
    assert 1 < sent < 100
    with pytest.raises(Busy, match="try again later"):
        pump.submit(str(sent), batch(spec, visits(5, 9)), 1000)
    assert pump.figures.refused_busy == 1
    pump.close_until("2013-01-01T10:00").result(PATIENCE)
    pump.submit(str(sent), batch(spec, visits(5, 9)), 1000).result(PATIENCE)
    pump.stop()


def test_whoever_is_answered_is_no_longer_in_the_queue(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    pump = Pump(Live(spec))
    left: list[int] = []
    pump.start()
    for number in range(20):
        receipt = pump.submit(str(number), batch(spec, visits(5, 9)), 1000)
        receipt.add_done_callback(lambda _: left.append(pump._inbox.waiting.all.bytes))  # in the thread that answers
        receipt.result(PATIENCE)
    pump.stop()
    assert set(left) == {0}


def test_a_store_that_cannot_be_written_refuses_batches_and_goes_on(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    live = Live(spec)
    pump = Pump(live)
    pump.start()
    connection = live._store._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    big = batch(spec, [{"time": "2013-01-01", "ward": os.urandom(50_000).hex()}])
    with pytest.raises(StateError, match="disk is full"):
        pump.submit("1", big, 1).result(PATIENCE)
    connection.execute("PRAGMA max_page_count = 100000")
    assert not pump.submit("1", big, 1).result(PATIENCE).duplicate
    assert pump.failure is None
    pump.stop()


def test_a_tick_that_cannot_be_committed_stops_the_stream_and_the_next_start_releases_it(
    write_spec: WriteSpec, no_noise: None
) -> None:
    path = write_spec(ON_REQUEST)
    spec = load_spec(path)
    live = Live(spec)
    pump = Pump(live)
    pump.start()
    pump.submit("1", batch(spec, visits(1, 2)), 1).result(PATIENCE)
    real = live._store._sidecar.write

    def refuse(*_: Any) -> None:
        raise StateError("cannot write the sidecar")

    live._store._sidecar.write = refuse  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        pump.close_until("2013-01-01T02:00").result(PATIENCE)
    until(lambda: pump.failure is not None)
    assert pump.failure == "cannot write the sidecar"
    assert pump.published == 0
    assert not _lines(path)
    pump.stop()
    live._store._sidecar.write = real  # type: ignore[method-assign]
    with Live(spec) as again:
        assert again.released == 2
        assert len(_lines(path)) == 2 * 4


def test_an_unexpected_error_is_reported_without_its_text(
    write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    live = Live(spec)
    pump = Pump(live)

    def broken(*_: Any) -> None:
        raise RuntimeError("ward north, patient p1")

    monkeypatch.setattr(live._machine, "step", broken)
    pump.start()
    waiting = pump.close_until("2013-01-01T01:00")
    with pytest.raises(Stopped):
        waiting.result(PATIENCE)
    until(lambda: pump.failure is not None)
    assert "RuntimeError at test_pump.py" in str(pump.failure)
    assert "patient" not in str(pump.failure)
    pump.stop()


def test_sources_are_polled(write_spec: WriteSpec, no_noise: None) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    left = [
        Piece("file:1", batch(spec, visits(0, 3)), {"file": 1}),
        Piece("file:2", batch(spec, visits(0, 4)), {"file": 2}),
    ]
    live = Live(spec)
    pump = Pump(live, feeds=[lambda: iter([left.pop(0)] if left else [])])
    pump.start()
    until(lambda: live.mark("file") == 2)
    seen: list[TickRelease] = []
    pump.subscribe(seen.append)
    pump.close_until("2013-01-02T00:00").result(PATIENCE)
    pump.stop()
    assert values(spec, seen[-1])["all"] == len(visits(0, 3)) + len(visits(0, 4))


def test_what_a_folder_cannot_read_is_known_until_it_was_read_to_its_end(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec, clock = load_spec(write_spec(ON_THE_WALL)), Hands(1000.5)
    with Live(spec, wall=clock) as live:
        pump = Pump(live, feeds=[Folder(tmp_path, spec, live.mark).new])

        def known() -> list[str]:
            pump._next_poll = 0.0
            pump._poll()
            return [problem.split(":")[0].rsplit("/")[-1] for problem in pump.problems]

        for path in (tmp_path / "visits.toml", tmp_path / "visits.state"):
            assert path.name in known()
        first = known()
        clock.seconds = 1002.5  # the tick is over: the folder is left before its end
        assert known() == first
        (tmp_path / "a-note.txt").write_text("not events")
        assert known() == first
        live.release_through(2)
        assert known() == ["a-note.txt", *first]
        assert pump.figures.problem == "; ".join(pump.problems)
        (tmp_path / "a-note.txt").unlink()
        assert known() == first


def test_each_problem_is_told_once(write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [[], ["a"], ["a"], ["a", "b"], ["b"], [], ["b"]]
    pump = SimpleNamespace(working=True, ended=False, problems=[], subscribe=lambda seen: None)

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pump.problems = looks.pop(0) if looks else []
            return not looks

    monkeypatch.setattr(follow_module, "running", lambda spec, **options: nullcontext((None, pump)))
    told: list[str] = []
    follow_module.follow(load_spec(write_spec(ON_THE_WALL)), Stop(), trouble=told.append)
    assert told == ["a", "b"]


def _lines(path: Path) -> list[bytes]:
    file = path.parent / "visits.jsonl"
    return file.read_bytes().splitlines() if file.exists() else []
