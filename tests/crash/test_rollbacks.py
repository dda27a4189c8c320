"""An operator brings back what was there, or somebody puts it back: no tick is ever shown over two inputs, what was
published stays, and what has ended stays ended."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from damage import change, command, forge_release
from one_service import Service, written

from evertally.errors import StateError
from evertally.runtime.live import Live
from evertally.runtime.rescue import end
from evertally.runtime.state.database import PROVED
from evertally.runtime.state.verifying import StoreToVerify

OUTPUTS = ("visits.jsonl", "visits.csv")


def contents(folder: Path) -> dict[str, bytes]:
    """All that is published."""
    paths = [folder / name for name in OUTPUTS] + sorted((folder / "visits.parquet").iterdir())
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture
def earlier(service: Service) -> Path:
    """The files of the stream at tick 7, which then goes on to tick 9."""
    kept = service.folder.with_name("earlier")
    kept.mkdir()
    for name in ("visits.state", "visits.key.bound", *OUTPUTS):
        shutil.copy2(service.folder / name, kept / name)
    shutil.copytree(service.folder / "visits.parquet", kept / "visits.parquet")
    with Live(service.spec) as live:
        live.publish(live.release_through(9))
    return kept


# -- a replay that is fed something else ------------------------------------------------------------------------------


def test_nothing_of_a_replay_is_shown_before_it_has_arrived(service: Service, earlier: Path) -> None:
    """The same noise over other events: who saw both would know the difference exactly."""
    spec = service.folder / "visits.toml"
    assert command("windows", spec, "--query", "all", "--window", "total")[0] == 0
    shutil.copy2(earlier / "visits.state", service.folder / "visits.state")
    live = Live(service.spec, replay=True)
    live.release_through(8)
    for stage in ("under way", "left"):
        for asked in (("windows", "--query", "all", "--window", "1h"), ("head",), ("head", "--digests")):
            code, said = command(asked[0], spec, *asked[1:])
            assert (code, "is not the last state of this stream" in said) == (2, True), (stage, said)
        assert command("verify", spec)[0] == 1
        live.abandon()
    assert command("certificate", spec)[0] == 0, "it says nothing of releases"


def test_a_tick_that_is_only_committed_is_not_shown_offline(service: Service) -> None:
    """The process died before the sidecar moved: nothing of that tick was published, and another state may yet be."""
    spec, sidecar = service.folder / "visits.toml", service.folder / "visits.key.bound"
    shown = json.loads(command("head", spec, "--digests")[1])
    with Live(service.spec) as live:  # a start is a new generation
        before = sidecar.read_bytes()
        live.release_through(8)
    sidecar.write_bytes(before)
    head = json.loads(command("head", spec, "--digests")[1])
    assert (head["tick"], head["chain"], head["digests"]) == (7, shown["chain"], shown["digests"])
    told = json.loads(command("windows", spec, "--query", "all", "--window", "1h", "--format", "json")[1])
    assert told["tick"][-1] == 7
    assert command("verify", spec)[0] == 0


def test_whoever_looks_while_the_stream_goes_on_finds_nothing_wrong(service: Service) -> None:
    """Between a look at the state and one at the sidecar any number of ticks may pass."""
    with Live(service.spec) as live, StoreToVerify.of(service.spec) as (_, store):
        live.release_through(8)
        live.release_through(9)
        assert list(store.problems()) == []
        assert store.signed(digests=False)["tick"] == 7


# -- what only outputs know -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", ["visits.jsonl", "visits.csv", "visits.parquet"])
def test_outputs_that_are_ahead_prove_that_the_stream_was_put_back(service: Service, earlier: Path, ahead: str) -> None:
    """State and sidecar of one backup look current. The ticks after it are published all the same."""
    for name in ("visits.state", "visits.key.bound", *({*OUTPUTS} - {ahead})):
        shutil.copy2(earlier / name, service.folder / name)
    if ahead != "visits.parquet":
        shutil.rmtree(service.folder / "visits.parquet")
        shutil.copytree(earlier / "visits.parquet", service.folder / "visits.parquet")
    published = contents(service.folder)
    with pytest.raises(StateError, match="holds tick 9, and the stream is at tick 7"):
        Live(service.spec)
    assert contents(service.folder) == published


def test_what_was_published_stays_where_the_log_has_lost_it(service: Service) -> None:
    """The last tick is in the outputs and not in the log any more: a stream that has ended writes none of it again."""
    published = contents(service.folder)
    change(service.folder / "visits.state", "DELETE FROM release WHERE tick = 7")
    end(service.spec)
    with Live(service.spec) as live:
        assert live.ended
    assert contents(service.folder) == published


# -- what has ended ---------------------------------------------------------------------------------------------------


def test_an_ended_stream_does_not_go_on_by_replay(service: Service) -> None:
    end(service.spec)
    (service.folder / "visits.state").unlink()
    with pytest.raises(StateError, match="ended by its operator"):
        Live(service.spec, replay=True)


ENDINGS = {
    "no ledger": "DELETE FROM ledger",
    "positions of outputs": "UPDATE sink SET offset = offset - 1",
    "no positions of outputs": "DELETE FROM sink",
    "a position in a source": "INSERT INTO mark VALUES ('a', 1, x'00')",
    "a release that is a broken text": "UPDATE release SET payload = CAST(x'ff' AS TEXT) WHERE tick = 3",
}


@pytest.mark.parametrize("what", ENDINGS)
def test_what_was_released_can_be_read_after_the_end_whatever_was_damaged(service: Service, what: str) -> None:
    published = contents(service.folder)
    change(service.folder / "visits.state", ENDINGS[what])
    with pytest.raises(StateError, match="damaged"):
        Live(service.spec)
    end(service.spec)
    with Live(service.spec) as live:
        assert (live.ended, live.mark("a")) == (True, None)
        kept = {release.tick for release in live._store.releases(1, 7)}
    assert kept == {1, 2, 4, 5, 6, 7} if "text" in what else kept == set(range(1, 8))
    assert contents(service.folder) == published
    assert command("verify", service.folder / "visits.toml")[0] == 0


# -- what proofs are for ----------------------------------------------------------------------------------------------


def test_an_older_format_gives_no_proofs_to_what_was_forged(service: Service) -> None:
    """A start proves what an earlier version left. Whoever sets the version back would have anything proved."""
    state = service.folder / "visits.state"
    forge_release(state, 2)
    with closing(sqlite3.connect(state)) as connection:
        connection.executescript(
            "ALTER TABLE release DROP COLUMN mac; DROP TABLE link; DELETE FROM batch WHERE number = 3;"
            f"PRAGMA user_version = {PROVED - 1}"
        )
    with pytest.raises(StateError, match=r"damaged \(version\)"):
        Live(service.spec)
    assert command("verify", service.folder / "visits.toml")[0] == 1


STRANGE = {
    "trigger": "CREATE TRIGGER x BEFORE INSERT ON journal BEGIN SELECT RAISE(IGNORE); END",
    "view": "CREATE VIEW x AS SELECT * FROM release",
    "table": "CREATE TABLE x (y TEXT UNIQUE)",
}


@pytest.mark.parametrize("what", STRANGE)
def test_nothing_acts_inside_the_state_but_the_stream(service: Service, what: str) -> None:
    """With this trigger a batch would be acknowledged and be nowhere."""
    change(service.folder / "visits.state", STRANGE[what])
    with pytest.raises(StateError, match=r"damaged \(schema\)"):
        Live(service.spec)
    assert "schema" in command("verify", service.folder / "visits.toml")[1]
    code, said = command("rescue", service.folder / "visits.toml")
    assert code == 0, said
    assert command("verify", service.folder / "visits.toml")[0] == 0
    with Live(service.spec) as live:
        live.publish(live.release_through(8))


def test_a_log_that_holds_broken_texts_is_mended_like_any_other(service: Service) -> None:
    change(service.folder / "visits.state", "UPDATE release SET payload = CAST(x'ff' AS TEXT) WHERE tick IN (3, 6)")
    change(service.folder / "visits.state", "UPDATE release SET mac = CAST(x'ff' AS TEXT) WHERE tick = 7")
    code, said = command("rescue", service.folder / "visits.toml")
    assert (code, "goes on after tick 7; 1 damaged ticks are gone" in said) == (0, True), said
    assert command("verify", service.folder / "visits.toml")[0] == 0


# -- what is said -----------------------------------------------------------------------------------------------------


def test_a_state_without_its_log_and_a_key_without_its_sidecar_are_called_so(service: Service) -> None:
    spec = service.folder / "visits.toml"
    (service.folder / "visits.key.bound").rename(service.folder / "kept")
    code, said = command("verify", spec)
    assert (code, "visits.key.bound is missing" in said) == (1, True), said
    (service.folder / "kept").rename(service.folder / "visits.key.bound")
    (service.folder / "visits.state").write_bytes(b"")  # a stream that was killed before it was ever folded
    for asked, expected in (("verify", 1), ("head", 2)):
        code, said = command(asked, spec)
        assert (code, "-wal" in said) == (expected, True), said
    with pytest.raises(StateError, match="-wal"):
        Live(service.spec)


SPECS = {
    "[guarantee]": ("[guarantee]\n", "[guarantee]\nadversary = 'oblivious'\n"),
    "[clock]": ('tick = "1h"', 'tick = "30m"'),
    "query 'all' (gone), the order of queries, query 'sum' (new)": ('name = "all"', 'name = "sum"'),
}


@pytest.mark.parametrize("what", SPECS)
def test_a_refused_spec_is_told_what_was_changed(service: Service, what: str) -> None:
    before = contents(service.folder), (service.folder / "visits.key.bound").read_bytes()
    changed = service.text.replace(*SPECS[what], 1)
    assert changed != service.text
    with pytest.raises(StateError, match=re.escape(f"(stream 'visits'; changed: {what})")):
        Live(written(service.folder, changed))
    assert before == (contents(service.folder), (service.folder / "visits.key.bound").read_bytes())
