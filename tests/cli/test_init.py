"""`evertally init`: what it writes is accepted as it stands, says nothing about rows, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from evertally.cli.app import app
from evertally.runtime import load_spec
from evertally.runtime.first_spec import Guess, guessed
from evertally.runtime.input.sources import InputFile

SAMPLE = 'when,patient,ward,minutes,cost,"by ward"\n' + "".join(
    f"2026-01-{day:02d}T10:00,secret-{day},hidden ward,{day},{day}.5,x\n" for day in range(1, 20)
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(SAMPLE)
    return tmp_path


def call(*arguments: object, answers: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers)


def test_without_questions(home: Path) -> None:
    done = call("init", "--from", "visits.csv", "--yes", "--start", "2026-01-01", "--tick", "1d")
    assert done.exit_code == 0, done.stderr
    text = (home / "visits.toml").read_text()
    assert "hidden" not in text
    assert "secret-" not in text
    spec = load_spec(home / "visits.toml")
    assert (spec.clock.column, spec.user_column, spec.unit, spec.horizon) == ("when", "patient", "user", 366)
    assert [query.name for query in spec.queries] == ["all"]
    assert call("plan", "visits.toml").exit_code == 0
    assert call("check", "visits.toml", "--sample", "visits.csv").exit_code == 0
    assert call("run", "visits.toml", "--input", "visits.csv", "--until", "2026-01-21").exit_code == 0


def test_what_is_left_for_later_is_ready_to_be_filled_in(home: Path) -> None:
    assert call("init", "--from", "visits.csv", "--yes").exit_code == 0
    head, _, later = (home / "visits.toml").read_text().partition("# [[query]]")
    later = "\n".join(line.removeprefix("# ") for line in f"# [[query]]{later}".splitlines())
    (home / "visits.toml").write_text(head + later.replace('["...", "..."]', '["a", "b"]'))
    queries = load_spec(home / "visits.toml").queries
    assert [(query.name, query.column) for query in queries] == [
        ("all", None),
        ("by-ward", "ward"),
        ("mean-minutes", "minutes"),
        ("mean-cost", "cost"),
        ("by-by-ward", "by ward"),
    ]


def test_with_questions(home: Path) -> None:
    answers = "clinic\nwhen\n2026-01-01\n1h\nnone\n8760\n0.5\nnone\nnorth, south\n0 120\n\nx\n"
    done = call("init", "clinic.toml", "--from", "visits.csv", answers=answers)
    assert done.exit_code == 0, done.stderr
    spec = load_spec(home / "clinic.toml")
    assert (spec.name, spec.unit, spec.horizon, str(spec.guarantee)) == ("clinic", "event", 8760, "PureDP(epsilon=0.5)")
    assert [query.name for query in spec.queries] == ["all", "by-ward", "by-by-ward", "mean-minutes"]
    assert spec.queries[1].parameters["categories"] == ["north", "south"]


def test_without_a_sample_it_is_a_live_stream(home: Path) -> None:
    assert call("init", "--yes").exit_code == 0
    spec = load_spec(home / "stream.toml")
    assert (spec.clock.floating, spec.unit) == (True, "event")


def test_nothing_is_overwritten_and_nothing_half_done_is_left(home: Path) -> None:
    (home / "visits.toml").write_text("mine")
    refused = call("init", "--from", "visits.csv", "--yes")
    assert (refused.exit_code, "nothing is overwritten" in refused.stderr) == (2, True)
    assert (home / "visits.toml").read_text() == "mine"
    for options in (["--tick", "soon"], ["--start", "yesterday"], ["--start", "2026-01-01T00:00:00Z", "--tick", "0d"]):
        assert call("init", "new.toml", "--from", "visits.csv", "--yes", *options).exit_code == 2
        assert not (home / "new.toml").exists()
    (home / "twice.csv").write_text("a,a\n1,2\n")
    assert "each once" in call("init", "--from", "twice.csv", "--yes").stderr


def test_kinds_of_columns(home: Path) -> None:
    found = guessed(InputFile(home / "visits.csv"))
    assert found.kinds == {
        "when": "time",
        "patient": "text",
        "ward": "text",
        "minutes": "integer",
        "cost": "number",
        "by ward": "text",
    }
    assert (found.time, found.user) == ("when", "patient")
    table = pa.table({"at": pa.array([0, 10**6], pa.timestamp("us")), "n": [1.5, None], "e": pa.nulls(2)})
    pa.parquet.write_table(table, home / "t.parquet")
    assert guessed(InputFile(home / "t.parquet")).kinds == {"at": "time", "n": "number", "e": "text"}
    assert Guess({"count": "integer", "ts": "integer"}).time == "ts"
    (home / "empty.csv").write_text("a,time\n")
    assert guessed(InputFile(home / "empty.csv")).kinds == {"a": "text", "time": "text"}


def test_whole_numbers_as_times(home: Path) -> None:
    (home / "epochs.csv").write_text("ts,ward\n1767225600,north\n1767312000,south\n")
    assert call("init", "--from", "epochs.csv", "--yes", "--start", 1767225600).exit_code == 0
    spec = load_spec(home / "epochs.toml")
    assert (spec.clock.integer, spec.clock.length, spec.horizon) == (True, 86400, 366)
    assert "2 inside the clock" in call("check", "epochs.toml", "--sample", "epochs.csv").output
