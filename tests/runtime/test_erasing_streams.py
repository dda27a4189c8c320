"""Erasing users from a stream that is not running: no byte of its state names them, and no release changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from live_stream import ON_REQUEST, batch, values
from typer.testing import CliRunner
from visit_stream import NoNoise, WriteSpec, save, visits

from evertally.cli.app import app
from evertally.errors import ConfigurationError, StateError
from evertally.runtime import StreamSpec, load_spec, opening, run
from evertally.runtime.erasure import erase
from evertally.runtime.live import Live
from evertally.runtime.machine import Machine
from evertally.runtime.state.store import Store

USERS = ("horizon = 48", 'horizon = 48\nunit = "user"\nmax_events_per_user = 3\nuser_column = "patient"')
INTEGERS = ('start = 2013-01-01T00:00:00Z\ntick = "1h"', "start = 0\ntick = 10")


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key under which nothing is sealed, either: what is in the file can be looked for."""
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))


def record(hour: int, patient: Any) -> dict[str, Any]:
    return {"time": f"2013-01-01T{hour:02d}:30:00Z", "ward": "north", "patient": patient}


def begun(spec: StreamSpec) -> None:
    """Two ticks are released, the third is open, and the process dies: everything since tick 0 is in the journal."""
    live = Live(spec)
    live.accept([("a", batch(spec, [record(0, "planted-ann"), record(0, "bob"), record(0, "planted-ann")]))])
    live.publish(live.release_through(1))
    live.accept([("b", batch(spec, [record(1, "planted-ann"), record(1, 7)]))])
    live.publish(live.release_through(2))
    live.accept(
        [("c", batch(spec, [record(2, "planted-ann"), record(2, "bob")])), ("d", batch(spec, [record(2, "7")]))]
    )
    live.abandon()


def held(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob("visits.state*"))


@pytest.mark.usefixtures("no_noise")
def test_no_byte_of_the_state_names_an_erased_user_and_the_rest_goes_on(write_spec: WriteSpec) -> None:
    path = write_spec(USERS, ON_REQUEST)
    spec = load_spec(path)
    begun(spec)
    assert b"planted-ann" in held(path)
    released = (path.parent / "visits.jsonl").read_bytes()
    assert erase(spec, ["planted-ann", "7", "never here"]) == 2
    assert b"planted-ann" not in held(path)
    assert b"never here" not in held(path)
    assert b"bob" in held(path)
    assert (path.parent / "visits.jsonl").read_bytes() == released
    with Live(spec) as live:
        assert values(spec, live.release_through(3)[0])["all"] == 6, "five were counted, and bob's second event"
        names = ["planted-ann", 7, "never here", "bob", "cid"]
        live.accept([("e", batch(spec, [record(3, name) for name in names]))])
        assert values(spec, live.release_through(4)[0])["all"] == 8, "bob's third, and cid"
    assert b"planted-ann" not in held(path)


def test_an_erasure_is_done_as_a_whole_or_not_at_all(write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_spec(USERS, ON_REQUEST)
    spec = load_spec(path)
    begun(spec)

    def dies(*_: object) -> None:
        raise MemoryError

    for owner, name in ((Store, "_put_snapshots"), (Machine, "erase")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dies)
            with pytest.raises(MemoryError):
                erase(spec, ["planted-ann"])
    with Live(spec) as live:
        assert len(live._waiting.batches(3) or []) == 2, "nothing was lost"
    erase(spec, ["planted-ann"])
    with Live(spec) as live:
        assert live.released == 2


@pytest.mark.usefixtures("no_noise")
def test_a_stream_of_files_is_erased_from_too(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(USERS, INTEGERS)
    spec = load_spec(path)
    records = [{**record, "time": i} for i, record in enumerate(visits(0, 30))]
    run(spec, save(records[:20], tmp_path / "one.jsonl"), until=20)
    assert b"p3" in held(path)
    erase(spec, ["p3"])
    assert b"p3" not in held(path)
    run(spec, save(records[20:], tmp_path / "two.jsonl"))
    assert b"p3" not in held(path)


def test_what_is_refused(write_spec: WriteSpec, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="keeps no names"):
        erase(load_spec(write_spec(folder="events")), ["ann"])
    path = write_spec(USERS, ON_REQUEST)
    spec = load_spec(path)
    with pytest.raises(StateError, match="nothing to erase from"):
        erase(spec, ["ann"])
    assert not (path.parent / "visits.key").exists()
    with Live(spec), pytest.raises(StateError, match=r"lock|running|use"):
        erase(spec, ["ann"])


def test_the_command_reads_names_from_a_file_or_a_pipe(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(USERS, ON_REQUEST)
    begun(load_spec(path))
    call = partial(CliRunner().invoke, app)
    done = call(["erase", str(path), "--users", "-"], input=b"planted-ann\r\nbob\n\n")
    assert done.exit_code == 0, done.output
    assert done.stdout == "visits: 2 names are erased from the state of tick 2. Destroy older copies of it\n"
    for content, problem in ((b"", "names nobody"), (b"\xff", "not UTF-8"), (None, "cannot read")):
        file = tmp_path / "names.txt"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        refused = call(["erase", str(path), "--users", str(file)])
        assert refused.exit_code == 2
        assert problem in refused.stderr
