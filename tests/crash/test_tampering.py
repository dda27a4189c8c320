"""Somebody changes the files of a stream, or runs it twice: it is noticed, nothing false is shown, and what then."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from crash_stream import body, events, plain
from damage import change, command, forge_release
from driver import differences_from_calm
from nursery import Nursery
from one_service import Service

from evertally.errors import StateError
from evertally.runtime import opening
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live
from evertally.runtime.state.records import Cursor
from evertally.runtime.state.store import TakenOver

# -- two processes --------------------------------------------------------------------------------------------------


def test_a_lock_file_that_is_gone_lets_nobody_in(nursery: Nursery, tmp_path: Path) -> None:
    first = Service(nursery, tmp_path, plain())
    first.start()
    running = first.child
    (tmp_path / "visits.key.lock").unlink()
    assert "another process is running this stream" in first.refused()
    first.child = running
    first.close(2)
    first.kill()


@pytest.mark.parametrize("first_to", ["accept", "close"])
def test_a_second_process_ends_the_first_before_it_writes(nursery: Nursery, tmp_path: Path, first_to: str) -> None:
    """Lock file gone, key file replaced by a copy: no lock can keep it out. One of the two goes on, and only one."""
    service = Service(nursery, tmp_path, plain())
    service.start()
    service.sent(1, 1)
    service.close(2)
    first, address = service.child, service.world.address()
    (tmp_path / "visits.key.lock").unlink()
    shutil.copy2(tmp_path / "visits.key", tmp_path / "copy")
    os.replace(tmp_path / "copy", tmp_path / "visits.key")
    service.start()
    service.sent(2, 3)
    service.close(5)
    second, now = service.child, service.world.address()
    service.world.serves(address)
    if first_to == "accept":
        answer = service.send(3, 3)
        assert answer is None or answer[0] == 503, "a batch for a tick that is out"
    else:
        content = json.dumps({"until": "2013-01-01T03:00"}).encode()
        answer = service.world.ask("POST", "/v1/ticks", "admin", content)
        assert answer is None or answer[0] == 503
    service.child = first
    assert "another process has written" in service.failed()
    service.child = second
    service.world.serves(now)
    service.sent(3, 6)
    service.close(7)
    service.kill()
    service.start()
    service.close(8)
    service.stop()
    assert differences_from_calm(service) == []


def test_a_process_that_was_overtaken_writes_nothing(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it wants to write: batches, ticks, positions, erased users."""
    monkeypatch.setattr(opening, "fence", lambda key_file: nullcontext(lambda: None))  # as if no lock were there
    first = Live(service.spec)
    second = Live(service.spec)
    content = (service.folder / "visits.jsonl").read_bytes()
    batch = parse(*body(events(0, 9, 9), 9), first.spec)
    writes: list[Callable[[], object]] = [
        lambda: first.accept([("new", batch)], {"a": 1}),
        lambda: first.accept([], {"a": 1}),
        lambda: first.release_through(9),
        lambda: first.publish(second._store.releases(7, 7)),
        lambda: first._store.keep_cursors({"output": Cursor(1, 1)}),
        lambda: first._store.rewrite({}, []),
    ]
    for write in writes:
        with pytest.raises(TakenOver, match="writes nothing"):
            write()
    assert (service.folder / "visits.jsonl").read_bytes() == content
    assert second._store.batch("new") is None
    second.release_through(8)  # it is the stream
    os.replace(service.folder / "visits.state", service.folder / "moved")
    with pytest.raises(TakenOver, match="was replaced"):
        second.accept([("new", batch)])
    first.abandon()
    second.abandon()


# -- changed files --------------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Path], object]] = {
    "a release with another value": lambda state: forge_release(state, 2),
    "a release that is broken": lambda state: change(state, "UPDATE release SET payload = x'00' WHERE tick = 3"),
    "a release that is gone": lambda state: change(state, "DELETE FROM release WHERE tick = 2 AND query = 'ward'"),
    "a release of another tick": lambda state: change(
        state, "UPDATE release SET (payload, mac) = (SELECT payload, mac FROM release WHERE tick = 1) WHERE tick = 2"
    ),
    "a batch id that is gone": lambda state: change(state, "DELETE FROM batch WHERE number = 3"),
    "a batch id of another tick": lambda state: change(state, "UPDATE batch SET tick = 9 WHERE number = 3"),
    "a batch that waits and is gone": lambda state: change(state, "DELETE FROM journal WHERE tick = 8"),
    "a batch that was counted and is gone": lambda state: change(state, "DELETE FROM journal WHERE tick = 6"),
    "no snapshots": lambda state: change(state, "DELETE FROM snapshot"),
    "no positions": lambda state: change(state, "DELETE FROM sink"),
    "another ledger": lambda state: change(state, "DELETE FROM ledger WHERE query = 'ward'"),
    "no chain": lambda state: change(state, "DELETE FROM link WHERE tick = 3"),
    "a release that is a text": lambda state: change(state, "UPDATE release SET payload = 'x' WHERE tick = 3"),
    "a release that is a broken text": lambda state: change(
        state, "UPDATE release SET payload = CAST(x'ff' AS TEXT) WHERE tick = 3"
    ),
    "a proof that is a text": lambda state: change(state, "UPDATE release SET mac = 'x' WHERE tick = 3"),
    "a chain that is a number": lambda state: change(state, "UPDATE link SET chain = 7 WHERE tick = 3"),
    "a position with a text": lambda state: change(state, "UPDATE sink SET mac = 'x'"),
    "events that are a text": lambda state: change(state, "UPDATE journal SET sealed = 'x'"),
    "a snapshot that is a text": lambda state: change(state, "UPDATE snapshot SET sealed = 'x'"),
    "no table of batches": lambda state: change(state, "DROP TABLE batch"),
    "a trigger": lambda state: change(state, TRIGGER),
    "a view": lambda state: change(state, "CREATE VIEW seen AS SELECT * FROM release"),
    "another index": lambda state: change(state, "CREATE UNIQUE INDEX one ON journal (number)"),
    "another head": lambda state: change(state, "UPDATE head SET state = replace(state, 'tick\": 7', 'tick\": 6')"),
    "another proof of the head": lambda state: change(state, "UPDATE head SET mac = x'00'"),
    "a head that is bytes": lambda state: change(state, "UPDATE head SET state = x'00'"),
    "a proof of the head that is a number": lambda state: change(state, "UPDATE head SET mac = 7"),
    "no head": lambda state: change(state, "DELETE FROM head"),
    "nothing": lambda state: state.write_bytes(b""),
    "something else": lambda state: state.write_bytes(b"not a database" * 1000),
}
# What waits for tick 9 is counted in tick 10: nothing that is there has changed yet.
TRIGGER = (
    "CREATE TRIGGER late AFTER INSERT ON journal WHEN new.tick = 9 "
    "BEGIN UPDATE journal SET tick = 10 WHERE number = new.number; END"
)


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_is_noticed_at_the_start_and_offline(service: Service, what: str) -> None:
    CHANGES[what](service.folder / "visits.state")
    code, said = command("verify", service.folder / "visits.toml")
    assert (code, "WRONG" in said) == (1, True), said
    if what in ("a release with another value", "a batch id that is gone"):
        assert "damaged" in service.refused()
    with pytest.raises(StateError, match="damaged"):
        Live(service.spec)


def test_a_sidecar_that_was_changed_does_not_verify(service: Service) -> None:
    sidecar = service.folder / "visits.key.bound"
    sidecar.write_text(sidecar.read_text().replace('"tick": 7', '"tick": 6'))
    code, said = command("verify", service.folder / "visits.toml")
    assert (code, "WRONG" in said, "visits.key.bound is damaged" in said) == (1, True, True), said


def test_what_cannot_be_said_has_another_exit_status(service: Service) -> None:
    change(service.folder / "visits.state", "PRAGMA user_version = 99")
    assert command("verify", service.folder / "visits.toml")[0] == 2
    (service.folder / "visits.state").unlink()
    assert command("verify", service.folder / "visits.toml")[0] == 2


def test_a_trigger_under_a_running_stream_is_noticed_before_it_acts(service: Service) -> None:
    """A file that somebody has packed meanwhile has the same tables, and goes on."""
    with Live(service.spec) as live:
        state = service.folder / "visits.state"
        batch = parse(*body(events(0, 9, 9), 9), live.spec)
        change(state, "VACUUM")
        live.accept([("before", batch)])
        change(state, TRIGGER)
        for write in (lambda: live.accept([("after", batch)]), lambda: live.release_through(9)):
            with pytest.raises(StateError, match="'trigger late'"):
                write()
        change(state, "DROP TRIGGER late")
        live.accept([("after", batch)])
    assert command("verify", service.folder / "visits.toml")[0] == 0


@pytest.mark.parametrize(
    "what",
    [
        what
        for what in CHANGES
        if any(word in what for word in ("text", "number", "table", "trigger", "head", "nothing", "else"))
    ],
)
def test_whatever_a_column_holds_the_stream_can_be_ended(service: Service, what: str) -> None:
    """SQLite keeps anything in any column."""
    CHANGES[what](service.folder / "visits.state")
    code, said = command("rescue", service.folder / "visits.toml", "--end")
    assert code == 0, said
    with pytest.raises(StateError):
        Live(service.spec).release_through(9)


def test_what_is_changed_under_a_running_service_is_not_shown(service: Service) -> None:
    service.start()
    ask = service.world.ask
    for path in ("/readyz", "/v1/releases", "/v1/head?first=1", "/v1/releases/latest"):
        assert ask("GET", path, "read")[0] == 200
    forge_release(service.folder / "visits.state", 2)
    assert ask("GET", "/v1/releases?last=1", "read")[0] == 200
    for path in ("/v1/releases", "/v1/releases?format=csv&query=all", "/v1/head?first=1", "/v1/windows?query=all"):
        status, content = ask("GET", path, "read")
        assert status == 503, path
        assert b"is not shown" in content
    assert ask("GET", "/readyz", "read")[0] == 503
    change(service.folder / "visits.state", "UPDATE release SET payload = x'00' WHERE tick = 7")
    assert ask("GET", "/v1/releases/latest", "read")[0] == 503
    for text in ("'x'", "CAST(x'ff' AS TEXT)"):  # SQLite keeps anything in any column
        change(service.folder / "visits.state", f"UPDATE release SET payload = {text} WHERE tick = 7")
        assert ask("GET", "/v1/releases/latest", "read")[0] == 503
    service.kill()


def test_nothing_is_signed_that_was_not_released(service: Service) -> None:
    """Rows that are gone have no proof that could fail: the chain of the log tells."""
    spec, state = service.folder / "visits.toml", service.folder / "visits.state"
    service.start()
    ask = service.world.ask
    status, content = ask("GET", "/v1/head?first=1", "read")
    assert status == 200
    change(state, "DELETE FROM release WHERE tick = 5 AND query = 'ward'")
    assert ask("GET", "/v1/head?first=1", "read")[0] == 503
    assert json.loads(ask("GET", "/v1/head", "read")[1])["chain"] == json.loads(content)["chain"]
    change(state, "DELETE FROM release WHERE tick = 4")  # and the tick before as if it were not kept
    change(state, "DELETE FROM link WHERE tick = 4")
    for path in ("head?first=5", "releases?first=5", "releases?first=5&query=ward", "releases?query=ward&format=csv"):
        assert ask("GET", f"/v1/{path}", "read")[0] == 503, path
    assert ask("GET", "/v1/releases?first=6", "read")[0] == 200
    change(state, "DELETE FROM link WHERE tick = 7")
    assert ask("GET", "/v1/head", "read")[0] == 503
    assert ask("GET", "/readyz", "read")[0] == 503
    service.kill()
    for more in ((), ("--digests",)):
        code, said = command("head", spec, *more)
        assert (code, "signature" in said) == (2, False), said


@pytest.mark.parametrize("ends", [True, False])
def test_the_last_tick_is_damaged_and_the_log_still_leads_to_the_head(service: Service, ends: bool) -> None:
    spec, state = service.folder / "visits.toml", service.folder / "visits.state"
    with Live(service.spec):  # leaves a snapshot of the last tick: nothing is computed again
        pass
    signed = json.loads(command("head", spec)[1])["chain"]
    forge_release(state, 7)
    code, said = command("rescue", spec, *(["--end"] if ends else []))
    assert code == 0, said
    assert command("verify", spec)[0] == 0
    assert json.loads(command("head", spec)[1])["chain"] == signed
    service.start()
    assert json.loads(service.world.ask("GET", "/v1/head", "read")[1])["chain"] == signed
    service.kill()


# -- an old key -----------------------------------------------------------------------------------------------------


def test_a_key_without_state_and_sidecar_starts_nothing(service: Service) -> None:
    for name in ("visits.state", "visits.key.bound", "visits.jsonl", "visits.csv"):
        (service.folder / name).unlink()
    shutil.rmtree(service.folder / "visits.parquet")
    before = {path.name for path in service.folder.iterdir()}
    assert "same noise on other data" in service.refused()
    (service.folder / "v.csv").write_text("time,ward\n2013-01-01T00:30:00Z,north\n")
    ran = ("run", service.folder / "visits.toml", "--input", service.folder / "v.csv", "--until", "2013-01-01T01:00")
    code, said = command(*ran)
    assert (code, "--nothing-was-released" in said) == (2, True), said
    assert {path.name for path in service.folder.iterdir()} - {"v.csv", "stdout"} == before - {"stdout"}
    service.start("--nothing-was-released")
    service.kill()
    code, said = command(*ran, "--nothing-was-released")  # says nothing about a stream that has its state
    assert code == 0, said


# -- ways on --------------------------------------------------------------------------------------------------------


def test_a_damaged_log_is_mended_and_the_stream_goes_on(service: Service) -> None:
    """Ticks since the snapshot come again, proved by the chain; an older one is gone. Nothing is released twice."""
    state, outputs = service.folder / "visits.state", ("visits.jsonl", "visits.csv")
    before = {name: (service.folder / name).read_bytes() for name in outputs}
    with closing(sqlite3.connect(state)) as connection:
        kept = connection.execute("SELECT tick, query, payload FROM release ORDER BY tick, query").fetchall()
    forge_release(state, 2)
    forge_release(state, 6)
    change(state, "DELETE FROM release WHERE tick = 7")
    assert "damaged (release)" in service.refused()
    code, said = command("rescue", service.folder / "visits.toml")
    assert (code, "goes on after tick 7; 1 damaged ticks are gone" in said) == (0, True), said
    with closing(sqlite3.connect(state)) as connection:
        now = connection.execute("SELECT tick, query, payload FROM release ORDER BY tick, query").fetchall()
    assert now == [row for row in kept if row[0] != 2]
    assert command("verify", service.folder / "visits.toml")[0] == 0
    service.start()
    assert service.sent(3)["duplicate"]
    service.close(9)
    service.stop()
    for name in outputs:
        assert (service.folder / name).read_bytes().startswith(before[name])


def test_a_damaged_journal_is_not_gone_on_from_and_the_stream_ends(service: Service) -> None:
    state = service.folder / "visits.state"
    change(state, "DELETE FROM journal WHERE tick = 6")
    sidecar = (service.folder / "visits.key.bound").read_bytes()
    code, said = command("rescue", service.folder / "visits.toml")
    assert code == 2
    assert "does not come out as it was released" in said or "cannot be proved" in said
    assert "evertally rescue" in said
    assert "damaged (journal)" in service.refused(), "a rescue that was refused has vouched for nothing"
    assert (service.folder / "visits.key.bound").read_bytes() == sidecar
    code, said = command("rescue", service.folder / "visits.toml", "--end")
    assert (code, "ended at tick 7" in said) == (0, True), said
    assert command("verify", service.folder / "visits.toml")[0] == 0
    service.start()
    answer = service.send(9, 9)
    assert answer is not None
    assert answer[0] == 410
    assert json.loads(service.world.ask("GET", "/readyz", "read")[1]) == {"status": "ended"}
    told = json.loads(service.world.ask("GET", "/v1/releases", "read")[1])
    assert [release["tick"] for release in told["releases"]] == list(range(1, 8))
    service.stop()
    (service.folder / "v.csv").write_text("time,ward\n2013-01-01T09:30:00Z,north\n")
    ran = ("run", service.folder / "visits.toml", "--input", service.folder / "v.csv", "--until", "2013-01-01T10:00")
    code, said = command(*ran)
    assert (code, "ended by its operator" in said) == (2, True), said


def test_a_state_that_cannot_be_read_ends_too(service: Service) -> None:
    state = service.folder / "visits.state"
    state.write_bytes(state.read_bytes()[:5000])
    assert command("rescue", service.folder / "visits.toml")[0] == 2
    assert command("rescue", service.folder / "visits.toml", "--end")[0] == 0
    assert "damaged" in service.refused()
    state.unlink()
    assert "says that the stream has released 7 ticks" in service.refused()


# -- a log that anybody can check -----------------------------------------------------------------------------------


def test_anybody_checks_a_log_with_the_certificate(service: Service, tmp_path: Path) -> None:
    service.start()
    read = lambda path: service.world.ask("GET", path, "read")[1]  # noqa: E731
    public = tmp_path / "public"  # what an outsider has: no key, no state
    public.mkdir()
    (public / "certificate.json").write_bytes(read("/v1/certificate"))
    (public / "head.json").write_bytes(read("/v1/head"))
    (public / "part.head.json").write_bytes(read("/v1/head?first=3&last=5"))
    (public / "log.json").write_bytes(read("/v1/releases"))
    (public / "part.json").write_bytes(read("/v1/releases?first=3&last=5"))
    service.stop()
    for name in ("visits.jsonl", "visits.csv"):
        shutil.copy2(service.folder / name, public / name)
    shutil.copytree(service.folder / "visits.parquet", public / "visits.parquet")

    def verdict(log: str, head: str = "head.json") -> tuple[int, str]:
        return command("verify", public / "certificate.json", "--head", public / head, "--log", public / log)

    for log in ("visits.jsonl", "visits.csv", "visits.parquet", "log.json"):
        assert verdict(log) == (0, f"ok     {public / log}: ticks 1 to 7 are what stream visits has released\n")
    assert verdict("part.json")[0] == 1, "a part does not lead to the chain"
    assert verdict("part.json", "part.head.json")[0] == 0
    lines = (public / "visits.jsonl").read_text().splitlines(keepends=True)
    for wrong in (
        lines[:3] + lines[4:],
        [line for line in lines if '"tick": 7' not in line],
        [lines[0], *lines],
        [lines[-1], *lines],
        [lines[0].replace('"stddev": ', '"stddev": 1'), *lines[1:]],
        [re.sub('"value": -?', '"value": 1', lines[0]), *lines[1:]],
        [*lines[:1], lines[1].replace("T01:00", "T01:30"), *lines[2:]],
        [],
    ):
        assert wrong != lines
        (public / "wrong.jsonl").write_text("".join(wrong))
        code, said = verdict("wrong.jsonl")
        assert code == 1, said
    for added in (
        lines[0].replace('"query": "all"', '"query": "total"'),  # neither a query nor a window of one
        lines[0].replace('"value": ', '"value": ' + "9" * 400),
        lines[0].replace('"query": "all"', '"query": "\\ud800"'),
        lines[0].replace('"tick": 1', '"tick": "x"'),
        lines[0].replace('"query": "all"', '"query": null'),
        "7\n",
    ):
        assert added != lines[0]
        (public / "wrong.jsonl").write_text("".join([added, *lines]))
        code, said = verdict("wrong.jsonl")
        assert code in (1, 2), said
    answer = json.loads((public / "log.json").read_text())
    columns = answer["releases"][0]["queries"]["ward"]
    columns["lower"].append(columns["upper"].pop(0))
    (public / "wrong.json").write_text(json.dumps(answer))
    assert verdict("wrong.json")[0] in (1, 2)
    parts = public / "visits.parquet"
    shutil.copy2(next(parts.glob("part-*")), parts / "more.parquet")
    assert verdict("visits.parquet")[0] in (1, 2), "whoever reads the folder reads that too"
    head: dict[str, Any] = json.loads((public / "head.json").read_text())
    for name, value in {"tick": 6, "chain": "0" * 64, "public_key": "0" * 64, "signature": "0" * 128}.items():
        (public / "forged.json").write_text(json.dumps(head | {name: value}))
        assert "not signed" in verdict("visits.jsonl", "forged.json")[1]
