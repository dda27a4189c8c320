"""A live stream: batches are counted once, ticks are released once, and a restart changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_stream import ON_REQUEST, ON_THE_WALL, Hands, batch, in_pieces, values
from visit_stream import (
    COLUMN_QUERIES,
    UNKNOWN_QUERIES,
    WITH_UNKNOWN_QUERIES,
    NoNoise,
    WriteSpec,
    save,
    visits,
)

from evertally.contract.snapshot import guarantee_to_json
from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.runtime import load_spec, opening, run
from evertally.runtime.input.batches import BatchRefused
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.live import Live, Receipt, StreamEnded
from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.state import database
from evertally.runtime.state.fence import keep_key
from evertally.runtime.state.history import History
from evertally.runtime.state.sidecar import sidecar_path
from made_keys import save_bound

EVERYTHING: Any = {"append": COLUMN_QUERIES + UNKNOWN_QUERIES}


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))


def lines(path: Path) -> bytes:
    return (path.parent / "visits.jsonl").read_bytes()


def twins(write_spec: WriteSpec, *changes: tuple[str, str], **options: Any) -> tuple[Path, Path]:
    key = Key.generate()
    paths = tuple(write_spec(*changes, folder=folder, **options) for folder in ("one", "two"))
    for path in paths:
        save_bound(key, path)
    return paths[0], paths[1]


def publish_all(live: Live, tick: int) -> None:
    live.publish(live.release_through(tick))


def test_a_tick_is_a_function_of_snapshots_events_and_key(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(*WITH_UNKNOWN_QUERIES, ON_REQUEST, **EVERYTHING))
    key = Key.generate()
    machine = Machine.at(spec, StreamState(), key)
    records = visits(0, 48)
    for tick, some in enumerate(in_pieces(records, 9), 1):
        rows = TickEvents(spec, [batch(spec, some)])
        others = [Machine.at(spec, machine.state(), key) for _ in range(2)]
        released = machine.step(rows, tick)
        for other in others:
            assert other.step(rows, tick) == released
            assert other.state() == machine.state()
    assert machine.tick > 5


def test_live_and_a_run_of_the_file_release_the_same_bytes(write_spec: WriteSpec, tmp_path: Path) -> None:
    by_file, live_path = twins(write_spec, *WITH_UNKNOWN_QUERIES, ON_REQUEST, **EVERYTHING)
    records = visits(0, 48)
    run(load_spec(by_file), save(records, tmp_path / "v.jsonl"))
    spec = load_spec(live_path)
    with Live(spec) as live:
        for i, some in enumerate(in_pieces(records, 10)):
            live.accept([(str(i), batch(spec, some))])
        for tick in range(1, 49):
            publish_all(live, tick)
        assert live.ended
        with pytest.raises(StreamEnded):
            live.accept([("more", batch(spec, records[:1]))])
    assert lines(live_path) == lines(by_file)


@pytest.mark.parametrize("snapshot_every", [1, 3, 64])
def test_a_restart_at_any_moment_changes_nothing(write_spec: WriteSpec, snapshot_every: int) -> None:
    often = ('file = "visits.state"', f'file = "visits.state"\nsnapshot_every = {snapshot_every}')
    calm, broken = twins(write_spec, *WITH_UNKNOWN_QUERIES, ON_REQUEST, often, **EVERYTHING)
    pieces = list(in_pieces(visits(0, 20), 7))

    def fed(path: Path, again: Callable[[Live], Live]) -> None:
        spec = load_spec(path)
        live = Live(spec)
        for i, some in enumerate(pieces):
            assert live.accept([(str(i), batch(spec, some))])[0] == Receipt(live.open_tick, False)
            live = again(live)
            publish_all(live, live.released + 2)
            live = again(live)
            assert live.accept([(str(i), batch(spec, some))])[0].duplicate
        live.__exit__(None)

    def killed(live: Live) -> Live:
        live.abandon()  # no snapshot, no last commit
        return Live(load_spec(broken))

    fed(calm, lambda live: live)
    fed(broken, killed)
    assert lines(calm) == lines(broken)
    with Live(load_spec(broken)) as live:
        # After a clean end nothing but what waits for a later tick is in the journal.
        assert all(tick > live.released for tick, _ in live._store.journal(0))


def test_a_batch_id_is_for_one_content(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    records = visits(0, 5)
    with Live(spec) as live:
        first = batch(spec, records)
        answers = live.accept([("a", first), ("a", first), ("a", batch(spec, records[:1])), ("b", first)])
        assert answers[:2] == [Receipt(1, False), Receipt(1, True)]
        assert isinstance(answers[2], BatchRefused)
        assert answers[3] == Receipt(1, False)
        publish_all(live, 3)
        assert live.accept([("a", first)]) == [Receipt(1, True)]
        assert isinstance(live.accept([("a", batch(spec, []))])[0], BatchRefused)


def test_late_and_early_events_on_request(write_spec: WriteSpec, no_noise: None) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    at = [f"2013-01-01T{hour:02d}:30:00Z" for hour in range(24)]
    with Live(spec) as live:
        live.accept([("1", batch(spec, [{"time": at[0]}, {"time": at[2]}, {"time": "2012-01-01"}, {"time": "noon"}]))])
        assert values(spec, live.release_through(1)[0])["all"] == 2
        live.accept([("2", batch(spec, [{"time": at[0]}, {"time": "2099-01-01"}]))])
        assert [values(spec, one)["all"] for one in live.release_through(4)] == [3, 4, 4]
        assert live.waiting_bytes == 0


def test_on_the_wall_an_event_enters_the_tick_of_its_receipt(write_spec: WriteSpec, no_noise: None) -> None:
    spec, clock = load_spec(write_spec(ON_THE_WALL)), Hands(1000.4)
    live = Live(spec, wall=clock)
    assert live.spec.clock.end_of(0) == "1970-01-01T00:16:40Z"
    assert live.accept([("1", batch(spec, visits(0, 9)[:2]))]) == [Receipt(1, False)]
    clock.seconds = 1003.9
    assert live.accept([("2", batch(spec, visits(0, 9)[2:5]))]) == [Receipt(4, False)]
    clock.seconds = 1001.0  # the clock goes back; the stream does not
    assert live.accept([("3", batch(spec, visits(0, 9)[5:6]))]) == [Receipt(4, False)]
    live.abandon()
    with Live(spec, wall=clock) as live:  # the start of the clock is remembered, and that tick 4 was stamped
        assert live.spec.clock.end_of(0) == "1970-01-01T00:16:40Z"
        assert live.accept([("4", batch(spec, visits(0, 9)[6:7]))]) == [Receipt(4, False)]
        assert [values(spec, one)["all"] for one in live.release_through(4)] == [2, 2, 2, 7]


def test_a_backup_goes_on_only_with_the_same_input(write_spec: WriteSpec, tmp_path: Path) -> None:
    path, _ = twins(write_spec, ON_REQUEST)
    spec, records = load_spec(path), visits(0, 30)
    with Live(spec) as live:
        live.accept([("1", batch(spec, records[:30]))])
        publish_all(live, 10)
    backup = tmp_path / "backup"
    shutil.copyfile(spec.state_file, backup)
    shutil.copyfile(path.parent / "visits.jsonl", tmp_path / "backup.jsonl")
    with Live(spec) as live:
        live.accept([("2", batch(spec, records[30:]))])
        publish_all(live, 20)
    final = lines(path)
    side = sidecar_path(spec.key_file).read_bytes()

    def back() -> None:
        shutil.copyfile(backup, spec.state_file)
        for left in path.parent.glob("visits.state-*"):
            left.unlink()
        spec.state_file.chmod(0o600)

    back()
    with pytest.raises(StateError, match="--replay"):
        Live(spec)
    live = Live(spec, replay=True)
    live.accept([("2", batch(spec, records[31:]))])  # an event less
    with pytest.raises(StateError, match="input differs"):
        live.release_through(20)
    live.abandon()
    assert sidecar_path(spec.key_file).read_bytes() == side
    assert lines(path) == final
    back()
    with Live(spec, replay=True) as live:
        assert live.replaying
        live.accept([("2", batch(spec, records[30:]))])
        assert live.release_through(15) == []
        assert live.release_through(20) == []
        assert not live.replaying
        assert lines(path) == final
        publish_all(live, 22)
    assert lines(path).startswith(final)
    assert len(lines(path)) > len(final)
    Live(spec).__exit__(None)


def test_a_run_and_a_service_do_not_take_each_others_events(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    records = visits(0, 48)
    file = save(records, tmp_path / "v.csv")
    with Live(spec) as live:
        live.accept([("1", batch(spec, records))])
        publish_all(live, 5)
    with pytest.raises(StateError, match="a service has accepted"):
        run(spec, file)
    with Live(spec) as live:
        publish_all(live, 48)


def test_a_service_waits_for_a_run_to_be_finished(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    file = save(visits(0, 48), tmp_path / "v.csv")

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(spec, file, progress=stop)
    with pytest.raises(StateError, match="evertally run"):
        Live(spec)
    run(spec, file)
    with Live(spec) as live:
        assert live.ended


def test_a_state_that_comes_out_otherwise_stops_the_stream(
    write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    live = Live(spec)
    live.accept([("1", batch(spec, visits(0, 9)))])
    live.release_through(3)
    live.abandon()
    original = TickEvents.events
    monkeypatch.setattr(TickEvents, "events", lambda self, query: original(self, query)[:0])
    with pytest.raises(StateError, match="does not come out as it was released"):
        Live(spec)


def test_a_refused_upgrade_leaves_the_file_to_the_version_that_wrote_it(
    write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version with another table and another option: it refuses before it brings the file up to date."""
    spec = load_spec(write_spec(ON_REQUEST))
    with Live(spec) as live:
        publish_all(live, 3)
    before = spec.state_file.read_bytes()
    with monkeypatch.context() as later:
        later.setattr(database, "STEPS", (*database.STEPS, "CREATE TABLE new (one INTEGER);\n"))
        later.setattr(
            "evertally.contract.mechanism.guarantee_to_json",
            lambda guarantee: guarantee_to_json(guarantee) | {"new": "option"},
        )
        with pytest.raises(StateError, match="other addresses"):
            Live(spec)
    assert spec.state_file.read_bytes() == before
    with Live(spec) as live:
        assert live.released == 3


def test_a_copy_of_a_stream_that_was_only_started_since_has_nothing_to_replay(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    with Live(spec) as live:
        publish_all(live, 3)
    copy = spec.state_file.read_bytes()
    with Live(spec):
        pass
    spec.state_file.write_bytes(copy)
    with pytest.raises(StateError, match="not the last state"):
        Live(spec)
    with Live(spec, replay=True) as live:
        publish_all(live, 5)
        assert live.released == 5


@pytest.mark.parametrize("snapshot_every", [1, 50])
def test_a_version_with_one_more_option_is_refused(
    write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch, snapshot_every: int
) -> None:
    """All noise would come from other addresses: refused with and without a snapshot, and the old version goes on."""
    spec = replace(load_spec(write_spec(ON_REQUEST)), snapshot_every=snapshot_every)
    live = Live(spec)
    publish_all(live, 3)
    live.abandon()
    with monkeypatch.context() as later:
        later.setattr(
            "evertally.contract.mechanism.guarantee_to_json",
            lambda guarantee: guarantee_to_json(guarantee) | {"new": "option"},
        )
        with pytest.raises(StateError, match="other addresses"):
            Live(spec)
    with Live(spec) as live:
        assert live.released == 3


def test_what_cannot_be_served_is_refused_before_a_key_is_made(write_spec: WriteSpec, tmp_path: Path) -> None:
    integer = ('start = 2013-01-01T00:00:00Z\ntick = "1h"', "start = 0\ntick = 3600")
    with pytest.raises(ConfigurationError):
        Live(load_spec(write_spec(integer)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["visits.toml"]


def test_history_shows_what_is_published_and_kept(write_spec: WriteSpec) -> None:
    thin = ('file = "visits.state"', 'file = "visits.state"\nsnapshot_every = 4\n[retention]\nfull = 10\nevery = 5')
    spec = load_spec(write_spec(ON_REQUEST, thin))
    published = [0]
    with Live(spec) as live:
        history = History(live.spec, lambda: published[0], live.proof)
        assert history.latest() is None
        ticks = live.release_through(30)
        assert history.latest() is None  # committed is not published
        live.publish(ticks)
        published[0] = 29
        latest = history.latest()
        assert latest == ticks[28]
        publish_all(live, 32)
        assert history.ticks(1, 99) == [5, 10, 15, 20, *range(23, 30)]
        assert history.ticks(1, 99, every=10) == [10, 20]
        assert history.ticks(1, 99, limit=2) == [28, 29]
        assert history.read([5, 6, 28, 31]) == [ticks[4], ticks[27]]
        (only,) = history.read([28], queries=["ward"])
        assert list(only.payloads) == ["ward"]


def test_a_wrong_key_beside_the_right_sidecar(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(ON_REQUEST))
    with Live(spec) as live:
        publish_all(live, 2)
    spec.key_file.unlink()
    keep_key(Key.generate(), spec.key_file)
    with pytest.raises(StateError, match="belongs to another key"):
        Live(spec)


def test_a_sink_that_comes_later_gets_the_log_and_overwrites_nothing(write_spec: WriteSpec) -> None:
    path = write_spec(ON_REQUEST)
    with Live(load_spec(path)) as live:
        publish_all(live, 3)
    later = load_spec(write_spec(ON_REQUEST, append='\n[[sink]]\nfile = "later.jsonl"\n'))
    foreign = path.parent / "later.jsonl"
    foreign.write_text("precious\n")
    with pytest.raises(StateError, match="holds something already"):
        Live(later)
    assert foreign.read_text() == "precious\n"
    foreign.unlink()
    with Live(later) as live:
        publish_all(live, 5)
    assert foreign.read_bytes() == lines(path)


def test_a_sink_that_was_taken_away_does_not_hold_up_the_retention(write_spec: WriteSpec) -> None:
    thin = ('file = "visits.state"', 'file = "visits.state"\nsnapshot_every = 4\n[retention]\nfull = 3\nevery = 0')
    with Live(load_spec(write_spec(ON_REQUEST, thin, append='\n[[sink]]\nfile = "gone.jsonl"\n'))) as live:
        publish_all(live, 8)
    with Live(load_spec(write_spec(ON_REQUEST, thin))) as live:
        publish_all(live, 40)
    with Live(load_spec(write_spec(ON_REQUEST, thin))) as live:
        assert [release.tick for release in live._store.releases(1, 99)] == [38, 39, 40]
