"""The store: every interruption leaves a state to go on from, and nothing but the last state is gone on from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from visit_stream import WriteSpec

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.machine import Machine, StreamState
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec, load_spec
from evertally.runtime.state import database
from evertally.runtime.state.fence import fence, keep_key, obtain_key
from evertally.runtime.state.history import History
from evertally.runtime.state.mending import MendedStore
from evertally.runtime.state.public_log import digest_of, tick_digest
from evertally.runtime.state.sidecar import sidecar_path
from evertally.runtime.state.store import Cursor, Entry, RunInProgress, Store


class Interrupted(BaseException):
    """Stands for kill -9 inside one process: nobody catches it."""


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    spec = load_spec(write_spec())
    keep_key(Key.generate(), spec.key_file)
    return spec


@pytest.fixture
def stores(spec: StreamSpec) -> Iterator[Callable[[], Store]]:
    made: list[Store] = []

    def make() -> Store:
        made.append(Store(Key.load(spec.key_file), spec))
        return made[-1]

    yield make
    for store in made:
        store.close()


class NoEvents:
    def events(self, _: object) -> list[Any]:
        return []

    def users(self) -> list[Any]:
        return []


def released(spec: StreamSpec, *ticks: int) -> list[TickRelease]:
    machine = Machine.at(spec, StreamState(), Key.load(spec.key_file))
    every = [machine.step(NoEvents(), tick) for tick in range(1, max(ticks) + 1)]
    return [every[tick - 1] for tick in ticks]


def started(stores: Callable[[], Store]) -> Store:
    store = stores()
    assert not store.open()
    store.begin([("all", "1/4", "charge", "noise")])
    return store


def reopened(stores: Callable[[], Store], replay: bool = False) -> Store:
    store = stores()
    assert store.open(replay)
    return store


def commit(store: Store, spec: StreamSpec, *ticks: int, content: bytes = b"same") -> None:
    store.commit(
        released(spec, *ticks),
        [content] * len(ticks),
        snapshots={"all": b"A" * ticks[-1], "ward": b"W"},
        cursors={"output": Cursor(ticks[-1], 7)},
    )


def test_what_was_committed_comes_back(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    run = RunInProgress(store.input_name("hash"), 1, 9)
    store.commit(released(spec, 1, 2), [b"", b""], snapshots={"all": b"A", "ward": b""}, run=run, consumed="other")
    store.close()
    again = reopened(stores)
    assert (again.head.tick, again.head.snapshot, again.head.run) == (2, 2, run)
    assert again.snapshots() == {"all": b"A", "ward": b""}
    assert again.consumed("other")
    assert not again.consumed("hash")
    assert again.releases(1, 5) == released(spec, 1, 2)
    assert again.cursors() == {}
    for path in (spec.state_file, sidecar_path(spec.key_file)):
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_journal_keeps_order_within_a_tick_and_goes_with_the_snapshot(
    spec: StreamSpec, stores: Callable[[], Store]
) -> None:
    store = started(stores)
    store.add([Entry("a", b"da", 1, [(2, b"late"), (1, b"first")]), Entry("b", b"db", 1, [(1, b"second")])], {"k": 5})
    store.add([Entry("c", b"dc", 2, [])], {"k": 9})
    assert list(store.journal(0)) == [(1, b"first"), (1, b"second"), (2, b"late")]
    assert list(store.journal(1)) == [(2, b"late")]
    assert store.batch("b") == (b"db", 1)
    assert store.batch("d") is None
    assert store.mark("k") == 9
    assert store.mark("other") is None
    store.commit(released(spec, 1), [b""])
    assert list(store.journal(0)) == [(1, b"first"), (1, b"second"), (2, b"late")]
    commit(store, spec, 2)
    assert list(store.journal(0)) == []
    assert store.batch("c") == (b"dc", 2)


def test_batch_ids_are_forgotten_in_the_order_of_their_arrival(
    write_spec: WriteSpec, stores: Callable[[], Store], spec: StreamSpec
) -> None:
    few = load_spec(write_spec(('file = "visits.state"', 'file = "visits.state"\nbatch_ids = 3')))
    store = Store(Key.load(spec.key_file), few)
    assert not store.open()
    store.begin([])
    store.add([Entry(str(i), b"d", 1, []) for i in range(10)], {})
    commit(store, spec, 1)
    assert [i for i in range(10) if store.batch(str(i)) is not None] == [7, 8, 9]
    store.close()


def test_nothing_secret_is_in_the_file(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    store.add([Entry("batch-of-canary", b"digest", 1, [(1, b"canary in the journal")])], {})
    store.commit(released(spec, 1), [b"canary of the input"], snapshots={"all": b"canary sums", "ward": b""})
    store.add([Entry("another-canary", b"digest", 2, [(2, b"canary in the journal")])], {})
    for path in spec.state_file.parent.glob("visits.state*"):
        assert b"canary" not in path.read_bytes(), path.name


def test_every_interruption_of_a_commit_leads_to_the_same_end(
    spec: StreamSpec, stores: Callable[[], Store], tmp_path: Path
) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    saved = tmp_path.parent / f"{tmp_path.name}-saved"
    shutil.copytree(tmp_path, saved)
    ends = set()
    for count in range(1, 100):
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
        store = reopened(stores)
        with pytest.MonkeyPatch.context() as patch:
            interruptions(patch, store, count)
            try:
                commit(store, spec, 2)
                finished = True
            except Interrupted:
                finished = False
        store._connection = store._connection.connection  # type: ignore[attr-defined]
        store._connection.close()
        again = reopened(stores)
        if again.head.tick == 1:
            assert not finished
            assert again.releases(1, 9) == released(spec, 1)
            commit(again, spec, 2)
        assert again.releases(1, 9) == released(spec, 1, 2)
        ends.add(again.head.chain)
        again.close()
        if finished:
            break
    assert 10 < count < 99
    assert len(ends) == 1
    shutil.rmtree(saved)


def interrupted_system(monkeypatch: pytest.MonkeyPatch, count: int) -> Callable[..., Any]:
    """Interrupts at the count-th call of anything that moves bytes to the disk. Returns what makes a call count."""
    left = [count]

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted
            return call(*args, **options)

        return wrapper

    for name in ("open", "fsync", "replace", "fdopen"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))
    return guarded


def interruptions(monkeypatch: pytest.MonkeyPatch, store: Store, count: int) -> None:
    """The same, statements of the database included."""
    guarded = interrupted_system(monkeypatch, count)

    class Guarded:
        """The connection, with calls that may not come back."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self.execute = guarded(connection.execute)
            self.executemany = guarded(connection.executemany)
            self.close = connection.close
            self.connection = connection

        @property
        def in_transaction(self) -> bool:
            return False  # who is dead does not roll back: the next one to open the file does

    store._connection = Guarded(store._connection)  # type: ignore[assignment]


def test_a_lost_state_stops_the_stream_unless_nothing_was_released(
    spec: StreamSpec, stores: Callable[[], Store]
) -> None:
    store = started(stores)
    store.close()
    spec.state_file.unlink()
    assert not stores().open()  # nothing was released
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    spec.state_file.unlink()
    with pytest.raises(StateError, match="released 1 ticks"):
        stores().open()


def test_a_start_that_was_interrupted_starts_again(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    for count in range(1, 60):
        for path in (spec.state_file, sidecar_path(spec.key_file)):
            path.unlink(missing_ok=True)
        store = stores()
        with pytest.MonkeyPatch.context() as patch:
            interrupted_system(patch, count)
            try:
                assert not store.open()
                store.begin([])
                finished = True
            except Interrupted:
                finished = False
        store.close()
        again = stores()
        if not again.open():
            again.begin([])
        commit(again, spec, 1)
        assert again.releases(1, 1) == released(spec, 1)
        again.close()
        if finished:
            break
    assert 10 < count < 59


def test_damage_stops_the_stream(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    store.add([Entry("b", b"d", 2, [(2, os.urandom(9000))])], {})
    commit(store, spec, 1)
    store.close()
    blob = spec.state_file.read_bytes()
    stopped = 0
    for position in range(0, len(blob), 997):
        spec.state_file.write_bytes(blob[:position] + bytes([blob[position] ^ 0x55]) + blob[position + 1 :])
        for left in spec.state_file.parent.glob("visits.state-*"):
            left.unlink()
        store = stores()
        try:
            assert store.open()
            # Damage in unused space does no harm; all that is used must be as it was.
            assert store.snapshots() == {"all": b"A", "ward": b"W"}
            assert len(list(store.journal(0))) == 1
            assert [payload for tick in store.releases(1, 1) for payload in tick.payloads.values()]
        except StateError:
            stopped += 1
        finally:
            store.close()
    assert stopped > 5
    for shorter in (b"no database", blob[:100], blob[: len(blob) // 2]):
        spec.state_file.write_bytes(shorter)
        with pytest.raises(StateError):
            stores().open()


def test_a_state_from_a_backup_is_refused_and_so_is_a_fork(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    old, side = spec.state_file.read_bytes(), sidecar_path(spec.key_file)
    old_side = side.read_bytes()
    store = reopened(stores)
    commit(store, spec, 2, 3)
    store.close()
    spec.state_file.write_bytes(old)
    with pytest.raises(StateError, match=r"tick 1.*knows of tick 3.*--replay"):
        stores().open()
    # A fork: go on from the backup with the old sidecar, then meet the true one.
    side_now = side.read_bytes()
    side.write_bytes(old_side)
    fork = reopened(stores)
    commit(fork, spec, 2, 3, content=b"other")
    fork.close()
    side.write_bytes(side_now)
    for replay in (False, True):
        with pytest.raises(StateError, match="another history"):
            stores().open(replay)


def test_a_copy_that_missed_only_batches_is_refused_too(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    old = spec.state_file.read_bytes()
    store = reopened(stores)
    store.add([Entry("b", b"d", 2, [(2, b"x")])], {})
    store.close()
    spec.state_file.write_bytes(old)
    with pytest.raises(StateError, match="not the last state"):
        stores().open()
    again = reopened(stores, replay=True)
    assert again.replay_target is None  # what was released is known; the batches come again


def test_a_replay_of_the_same_input_arrives_and_another_does_not(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    old, side = spec.state_file.read_bytes(), sidecar_path(spec.key_file)
    store = reopened(stores)
    commit(store, spec, 2)
    commit(store, spec, 3)
    chain = store.head.chain
    store.close()
    before = side.read_bytes()
    for content in (b"other", b"same"):
        for start in (old, None):  # a backup, and nothing at all
            side.write_bytes(before)
            spec.state_file.unlink(missing_ok=True)
            if start is not None:
                spec.state_file.write_bytes(start)
                spec.state_file.chmod(0o600)
                again = reopened(stores, replay=True)
            else:
                again = stores()
                assert not again.open(replay=True)
                again.begin([])
                commit(again, spec, 1, content=b"same")
            assert again.replay_target == 3
            commit(again, spec, 2, content=content)
            assert side.read_bytes() == before
            with pytest.raises(StateError, match="does not lead to what was released"):
                commit(again, spec, 3, 4)  # jumps over the tick that is to be compared
            if content == b"same":
                commit(again, spec, 3)
                assert again.replay_target is None
                assert again.head.chain == chain
                assert side.read_bytes() != before
            else:
                with pytest.raises(StateError, match="input differs"):
                    commit(again, spec, 3)
                assert again.head.tick == 2
            again.close()
    final = reopened(stores)
    commit(final, spec, 4)


def test_the_sidecar_binds_the_key_to_one_spec(
    spec: StreamSpec, stores: Callable[[], Store], write_spec: WriteSpec
) -> None:
    started(stores).close()
    another = load_spec(write_spec(("horizon = 48", "horizon = 49")))
    with pytest.raises(StateError, match="bound to another spec"):
        Store(Key.load(spec.key_file), another).open()
    side = sidecar_path(spec.key_file)
    fields = json.loads(side.read_text())
    assert fields["spec"] == spec.digest
    side.write_text(json.dumps({**fields, "spec": another.digest}))
    with pytest.raises(StateError, match="damaged"):
        Store(Key.load(spec.key_file), another).open()
    side.write_text("{}")
    with pytest.raises(StateError, match="damaged"):
        stores().open()


def test_a_missing_sidecar_a_missing_key_and_a_wrong_key_stop_the_stream(
    spec: StreamSpec, stores: Callable[[], Store]
) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    side = sidecar_path(spec.key_file)
    content = side.read_bytes()
    side.unlink()
    with pytest.raises(StateError, match="missing beside the key"):
        stores().open()
    with pytest.raises(StateError, match="was not written with the key"):
        Store(Key.generate(), spec).open()
    spec.key_file.unlink()
    with pytest.raises(StateError, match="has run before"):
        obtain_key(spec.key_file, spec.state_file)
    side.write_bytes(content)
    with pytest.raises(StateError, match="has run before"):
        obtain_key(spec.key_file, spec.state_file)
    with pytest.raises(StateError, match="another key"):
        Store(Key.generate(), spec).open()


def test_keys_are_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    key, new = obtain_key(path, tmp_path / "none.state")
    assert new
    assert not path.exists()
    (tmp_path / "new.key.new").write_bytes(b"left by a crash")
    keep_key(key, path)
    again, new = obtain_key(path, tmp_path / "none.state", True)
    assert not new
    assert again.fingerprint() == key.fingerprint()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StateError):
        keep_key(Key.generate(), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.key", "new.key.new"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        fence(tmp_path / "s.key"),
        pytest.raises(StateError, match="another process"),
        fence(tmp_path / "s.key"),
    ):
        pass
    with fence(tmp_path / "s.key"):
        pass
    with fence(tmp_path / "keys" / "s.key"):
        assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    with pytest.raises(StateError, match="cannot lock"), fence(tmp_path / "missing" / "folder" / "s.key"):
        pass


def test_the_key_itself_is_held_whatever_becomes_of_the_lock_file(tmp_path: Path) -> None:
    key_file = tmp_path / "s.key"
    keep_key(Key.generate(), key_file)
    with fence(key_file):
        Path(f"{key_file}.lock").unlink()
        with pytest.raises(StateError, match="another process"), fence(key_file):
            pass
    new = tmp_path / "new.key"
    with fence(new) as hold:
        keep_key(Key.generate(), new)
        hold()
        Path(f"{new}.lock").unlink()
        with pytest.raises(StateError, match="another process"), fence(new):
            pass


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON release BEGIN DELETE FROM journal; END",
        "CREATE TABLE more (x)",
        "DROP TABLE mark",
    ],
)
def test_a_file_with_more_or_fewer_tables_is_refused(
    spec: StreamSpec, stores: Callable[[], Store], statement: str
) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store.close()
    with contextlib.closing(sqlite3.connect(spec.state_file)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(StateError, match="schema"):
        stores().open()


def test_the_chain_of_the_public_log_is_the_documented_one(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    """docs/command-line.md, `verify`: from 32 zero bytes, a hash of the one before, the tick and its digest."""
    store = started(stores)
    commit(store, spec, 1, 2)
    chain = bytes(32)
    for release in released(spec, 1, 2):
        digest = digest_of(spec, release)
        chain = hashlib.sha256(b"evertally log 1\n" + chain + release.tick.to_bytes(8, "big") + digest).digest()
    assert store.head.log == chain.hex()


def test_readers_get_what_is_published_in_one_piece_or_many(
    spec: StreamSpec, stores: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(stores)
    commit(store, spec, 1, 2, 3, 4)
    monkeypatch.setattr("evertally.runtime.state.history._AT_ONCE", 2)
    history = History(spec, lambda: 3, store.proof)
    assert history.read([3, 1, 2, 4]) == released(spec, 1, 2, 3)
    history.close()


@pytest.mark.parametrize(("damaged", "waits"), [(1, False), (2, False), (3, True), (4, True)])
def test_mending_leaves_out_no_tick_that_an_output_waits_for(
    spec: StreamSpec, stores: Callable[[], Store], damaged: int, waits: bool
) -> None:
    """The output has had ticks 1 and 2: of them a damaged one leaves the log; one that is still to come must not."""
    store = started(stores)
    name = spec.sinks[0].name
    store.commit(
        released(spec, 1, 2, 3, 4), [b""] * 4, snapshots={"all": b"A", "ward": b"W"}, cursors={name: Cursor(2, 7)}
    )
    store.close()
    with contextlib.closing(sqlite3.connect(spec.state_file)) as connection:
        connection.execute("UPDATE release SET payload = ? WHERE tick = ?", (b"other", damaged))
        connection.commit()
    with pytest.raises(StateError, match="damaged"):
        stores().open()
    mended = MendedStore(Key.load(spec.key_file), spec)
    assert mended.open()
    try:
        if waits:
            with pytest.raises(StateError, match="still waits"):
                mended.mend([])
        else:
            assert mended.mend([]) == 1
    finally:
        mended.close()


def test_a_full_disk_is_reported_and_nothing_is_half_done(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    store = started(stores)
    commit(store, spec, 1)
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite's own way to be full
    with pytest.raises(StateError, match="disk is full"):
        store.add([Entry("b", b"d", 2, [(2, os.urandom(100_000))])], {})
    with pytest.raises(StateError, match="disk is full"):
        store.commit(released(spec, 2), [b""], snapshots={"all": os.urandom(100_000), "ward": b""})
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert store.head.tick == 1
    assert store.batch("b") is None
    commit(store, spec, 2)
    assert store.snapshots() == {"all": b"AA", "ward": b"W"}


def test_a_sidecar_that_cannot_be_written_is_reported(
    spec: StreamSpec, stores: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(stores)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        commit(store, spec, 1)


def test_a_file_open_to_others_is_refused(spec: StreamSpec, stores: Callable[[], Store]) -> None:
    started(stores).close()
    spec.state_file.chmod(0o640)
    with pytest.raises(StateError, match="chmod 600"):
        stores().open()


def test_an_older_format_is_brought_up_to_date_and_a_later_one_refused(
    spec: StreamSpec, stores: Callable[[], Store]
) -> None:
    store = started(stores)
    commit(store, spec, 1)
    store._connection.execute("DROP TABLE mark")  # what the second step made
    store._connection.execute("ALTER TABLE ledger DROP COLUMN noise")  # and the third
    store._connection.execute("ALTER TABLE release DROP COLUMN mac")  # and the fifth
    store._connection.execute("DROP TABLE link")
    store._connection.execute("PRAGMA user_version = 1")
    (text,) = store._connection.execute("SELECT state FROM head").fetchone()
    old = json.dumps({**json.loads(text), "inventory": {}}, sort_keys=True)  # nor did its head know what is in tables
    store._connection.execute("UPDATE head SET state = ?, mac = ?", (old, store._key.mac("store head", old.encode())))
    store.close()
    again = reopened(stores)
    assert again.head.tick == 1
    assert again.head.since == again.proof.since == 1  # what an earlier version released is in no chain
    assert again.mark("any") is None
    assert again.releases(1, 1) == released(spec, 1)
    (version,) = again._connection.execute("PRAGMA user_version").fetchone()
    assert version == len(database.STEPS)
    again._connection.execute(f"PRAGMA user_version = {version + 1}")
    again.close()
    with pytest.raises(StateError, match="later version"):
        stores().open()


def test_other_noise_or_another_charge_is_refused(stores: Callable[[], Store]) -> None:
    store = started(stores)
    store.check_ledger([("all", "1/4", "charge", "noise")])
    for row in (
        ("all", "1/4", "charge", "other"),
        ("all", "1/4", "charge'", "noise"),
        ("all", "1/3", "charge", "noise"),
    ):
        with pytest.raises(StateError, match="other addresses"):
            store.check_ledger([row])
    with pytest.raises(StateError, match="other addresses"):
        store.check_ledger([])
    store.close()


def test_any_number_that_is_shown_is_in_the_digest() -> None:
    shown = {"category": ["a", "b"], "value": [5, 7], "lower": [1, 2], "upper": [9, 10], "stddev": 2.0}
    first = tick_digest(1, "2026-01-01", {"q": shown})
    for name in ("value", "lower", "upper"):
        for other in ([6, 7], [5, 8], [5, 2**62], [5, 2.0**63]):
            assert tick_digest(1, "2026-01-01", {"q": {**shown, name: other}}) != first
    assert tick_digest(1, "2026-01-01", {"q": {**shown, "stddev": 3.0}}) != first
