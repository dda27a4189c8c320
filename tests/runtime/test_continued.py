"""What is said about a stream that has run is what runs: a real state of the version before, which took other noise.

`before/` was written by that version: its "auto" took "sqrt" under zCDP where this one takes "pure-blocks".
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from release_stream import spec_of_all_kinds
from typer.testing import CliRunner
from visit_stream import WriteSpec

from evertally.cli.app import app
from evertally.cli.audit import plans_of_spec
from evertally.errors import StateError
from evertally.noise import simulation
from evertally.runtime import StreamSpec, certificate, load_spec, plan, run
from evertally.runtime.live import Live
from evertally.runtime.mechanisms import build, twins
from evertally.runtime.opening import opened
from evertally.runtime.plan import plan_of
from evertally.runtime.standing import standing
from evertally.runtime.verify import state_of
from evertally.service.about import About

BEFORE = Path(__file__).parent / "before"
SAID: dict[str, Any] = json.loads((BEFORE / "certificate.json").read_text())
(QUERY,) = SAID["queries"]


@pytest.fixture
def begun(tmp_path: Path) -> StreamSpec:
    """The spec of the stream, in a folder where the version before has run it for eight ticks."""
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    state = gzip.decompress((BEFORE / "visits.state.gz").read_bytes())
    files = {tmp_path / name: (BEFORE / name).read_bytes() for name in ("visits.toml", "visits.jsonl", "second.csv")}
    files |= {tmp_path / "visits.state": state}
    files |= {secret / f"visits.key{end}": (BEFORE / f"only-for-tests.key{end}").read_bytes() for end in ("", ".bound")}
    for path, content in files.items():
        path.write_bytes(content)
        path.chmod(0o600)
    return load_spec(tmp_path / "visits.toml")


def _files(spec: StreamSpec) -> dict[str, bytes]:
    folder = spec.state_file.parent
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _change(spec: StreamSpec, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(spec.state_file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(statement, values)
        connection.commit()


def test_this_version_would_choose_otherwise(begun: StreamSpec) -> None:
    """Otherwise the tests below show nothing."""
    assert build(begun, key=None)["all"].mechanism != QUERY["mechanism"] == "sqrt"


def test_the_certificate_is_that_of_the_version_before(begun: StreamSpec) -> None:
    before = _files(begun)
    filed = json.loads(json.dumps(certificate(begun)))
    promises = ("stream", "spec_digest", "guarantee", "neighbours", "unit", "horizon")
    assert {name: filed[name] for name in promises} == {name: SAID[name] for name in promises}
    assert filed["composition"] == SAID["composition"] | {"mu": None}, "by rho, as it began, and not by the exact curve"
    now, then = ({f"{row['delta']:.3g}": row["epsilon"] for row in said["epsilon_delta"]} for said in (filed, SAID))
    assert now == then
    numbers = ("share", "mechanism", "class", "exactness", "charge", "error_bound", "stddev")
    assert {name: filed["queries"][0][name] for name in numbers} == {name: QUERY[name] for name in numbers}
    assert _files(begun) == before


def test_the_plan_is_that_of_what_runs(begun: StreamSpec) -> None:
    (row,) = plan(begun).queries
    assert (row.mechanism, row.stddev, row.error_bound) == (QUERY["mechanism"], QUERY["stddev"], QUERY["error_bound"])
    assert (type(row.charge).__name__, row.charge.exact_rho) == ("ZCDP", row.promised.exact_rho)  # type: ignore[attr-defined]
    with opened(begun) as (_, machine, _publisher):
        running = machine._mechanisms["all"]
        assert (running.mechanism, running.charge, running.stddev(48)) == (row.mechanism, row.charge, row.stddev)
        assert plan(begun) == plan(begun)  # also while the stream is open
        assert certificate(begun)["queries"][0]["mechanism"] == "sqrt"


def test_the_service_says_the_same(begun: StreamSpec) -> None:
    with Live(begun) as live:
        about = About(live.spec, *live.described())
        assert about.certificate == certificate(begun)
        assert about.plan().queries[0].mechanism == about.stream(8, None, False).queries[0].mechanism == "sqrt"
        (entry,) = about.ledger().entries
        assert entry.promised == entry.charge == str(plan(begun).queries[0].charge)
        live.release_through(9)
        assert live.described()[1] == about.certificate


def test_the_stream_goes_on_as_the_version_before_went_on(begun: StreamSpec) -> None:
    said = certificate(begun)
    run(begun, begun.state_file.parent / "second.csv", "16")
    assert begun.output_file is not None
    assert begun.output_file.read_bytes() == (BEFORE / "visits-16.jsonl").read_bytes()
    assert certificate(begun) == said


def test_the_ways_and_the_audit_are_of_what_runs(begun: StreamSpec) -> None:
    shown = CliRunner().invoke(app, ["plan", str(begun.path), "--ways"]).output
    assert "all: sqrt is taken" in shown
    assert standing(begun)["all"].tick == 0
    (steps,) = plans_of_spec(begun.path, "short", 0).values()
    report = steps[0].run()
    assert "sqrt" in report.mechanism


def test_every_kind_has_a_twin_that_says_what_it_says(write_spec: WriteSpec) -> None:
    spec = spec_of_all_kinds(write_spec)
    made = build(spec, simulation(3))
    assert plan_of(spec, twins(made)) == plan_of(spec, made)


def test_a_new_stream_has_the_whole_promise(begun: StreamSpec) -> None:
    """Nothing is beside it: what it was given is the guarantee itself, no zCDP share of it."""
    begun.state_file.unlink()
    for left in begun.key_file.parent.iterdir():
        left.unlink()
    assert begun.output_file is not None
    begun.output_file.unlink()
    new = certificate(begun)
    assert new["queries"][0]["mechanism"] == build(begun, key=None)["all"].mechanism
    with Live(begun) as live:
        about = About(live.spec, *live.described())
        assert about.ledger().entries[0].promised == str(begun.guarantee)
        assert new["release_log"]["public_key"] is None, "nobody has signed anything yet"
        assert about.certificate == {**new, "release_log": about.certificate["release_log"]}


def test_a_changed_spec_is_a_new_stream(begun: StreamSpec) -> None:
    begun.path.write_text(begun.path.read_text().replace("horizon = 48", "horizon = 40"))
    changed = load_spec(begun.path)
    expected = build(changed, key=None)["all"].mechanism
    assert certificate(changed)["queries"][0]["mechanism"] == expected
    begun.key_file.unlink()
    assert certificate(changed)["queries"][0]["mechanism"] == expected


def _without_key(spec: StreamSpec) -> None:
    spec.key_file.unlink()


def _key_of_another(spec: StreamSpec) -> None:
    spec.key_file.write_bytes(bytes(32))


def _without_state(spec: StreamSpec) -> None:
    spec.state_file.unlink()


def _no_database(spec: StreamSpec) -> None:
    spec.state_file.write_bytes(b"not a database" * 100)


def _damaged_snapshot(spec: StreamSpec) -> None:
    _change(spec, "UPDATE snapshot SET sealed = ?", bytes(200))


def _damaged_head(spec: StreamSpec) -> None:
    _change(spec, "UPDATE head SET state = replace(state, ?, ?)", spec.digest, "0" * len(spec.digest))


def _another_charge(spec: StreamSpec) -> None:
    _change(spec, "UPDATE ledger SET charge = 'PureDP(epsilon=1.0)'")


def _no_snapshot(spec: StreamSpec) -> None:
    """As a live stream leaves it before its first snapshot: what this version would build is not what began."""
    _change(spec, "DELETE FROM snapshot")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_without_key, "sealed with its key"),
        (_key_of_another, "belongs to another key"),
        (_without_state, "is missing, but"),
        (_no_database, "not a state file"),
        (_damaged_snapshot, r"is damaged \(snapshot\)"),
        (_damaged_head, "is damaged or was not written with the key"),
        (_another_charge, "pay otherwise"),
        (_no_snapshot, "pay otherwise"),
    ],
)
def test_where_nothing_true_can_be_said_nothing_is(
    begun: StreamSpec, damage: Callable[[StreamSpec], None], words: str
) -> None:
    damage(begun)
    for ask in (certificate, plan):
        with pytest.raises(StateError, match=words):
            ask(begun)  # type: ignore[operator]
    said = CliRunner().invoke(app, ["certificate", str(begun.path)])
    assert said.exit_code == 2
    assert "PureDP" not in said.output


def test_a_stream_of_the_version_before_gets_proofs_and_a_chain(begun: StreamSpec) -> None:
    """From where it is taken up: what is there is signed tick by tick, what comes is in the chain."""
    folder = begun.state_file.parent
    before = CliRunner().invoke(app, ["verify", str(begun.path)])
    assert (before.exit_code, "start the stream once" in before.output) == (1, True)
    run(begun, folder / "second.csv", until=16)
    assert (folder / "visits.jsonl").read_bytes() == (BEFORE / "visits-16.jsonl").read_bytes()
    with state_of(begun) as store:
        assert list(store.problems()) == []
        assert (store.head.since, store.signed(digests=True)["tick"]) == (8, 16)
    done = CliRunner().invoke(app, ["verify", str(begun.path), "--log", str(folder / "visits.jsonl")])
    assert done.exit_code == 0, done.output
    assert "ticks 1 to 16" in done.output
    _change(begun, "UPDATE release SET payload = x'00' WHERE tick = 3")
    with pytest.raises(StateError, match="damaged"), opened(begun):
        pass
