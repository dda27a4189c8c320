"""`evertally plan --sweep`: a table of errors by guarantee."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from evertally.cli.app import app
from evertally.runtime import load_spec
from evertally.runtime.affordable import Wanted
from evertally.runtime.mechanisms import build
from evertally.runtime.sweep import swept

SPEC = """\
[stream]
name = "visits"
horizon = 24
[guarantee]
epsilon = 1.0
delta = 1e-9
[clock]
column = "time"
start = 2013-01-01
tick = "1h"
[key]
file = "visits.key"
[state]
file = "visits.state"
[output]
file = "visits.csv"
[[query]]
name = "all"
kind = "counter"
[[query]]
name = "stay"
kind = "mean"
column = "minutes"
lower = 0
upper = 50
"""


def test_errors_fall_as_epsilon_grows(tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(SPEC)
    plans = swept(load_spec(file), [0.5, 1.0, 2.0])
    bounds = [plan.queries[0].error_bound for _, plan in plans]
    assert bounds == sorted(bounds, reverse=True)
    file.write_text(SPEC.replace("epsilon = 1.0", "epsilon = 2.0"))
    assert bounds[2] == build(load_spec(file), key=None)["all"].error_bound(0.05)
    assert [path.name for path in tmp_path.iterdir()] == ["visits.toml"], "nothing is written"


def test_it_prints_a_row_for_each(tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(SPEC)
    result = CliRunner().invoke(app, ["plan", str(file), "--sweep", "0.5,2"])
    assert result.exit_code == 0, result.output
    rows = re.findall(r"epsilon=([\d.]+).*?([\d.]+) \(([\d.]+)\).*\*", result.output)
    assert [row[0] for row in rows] == ["0.5", "2.0"]
    assert float(rows[0][1]) > float(rows[1][1]) > float(rows[1][2])
    for wrong in ("many", "0", ""):
        refused = CliRunner().invoke(app, ["plan", str(file), "--sweep", wrong])
        assert refused.exit_code == 2
        assert "sweep takes numbers" in refused.stderr


def test_it_draws_what_is_known(tmp_path: Path) -> None:
    file, picture = tmp_path / "visits.toml", tmp_path / "sweep.svg"
    file.write_text(SPEC)
    result = CliRunner().invoke(app, ["plan", str(file), "--sweep", "0.5,2", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    assert "<svg" in picture.read_text()
    for wrong in (["--picture", str(picture)], ["--sweep", "1", "--picture", str(tmp_path / "no.such")]):
        refused = CliRunner().invoke(app, ["plan", str(file), *wrong])
        assert refused.exit_code == 2
        assert "--picture" in refused.stderr


def test_a_wanted_error_of_a_mean_needs_a_number_of_values(tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(SPEC)
    asked = ["plan", str(file), "--error", "2"]
    refused = CliRunner().invoke(app, [*asked, "--query", "stay"])
    assert refused.exit_code == 2
    assert "--count" in refused.stderr
    spec = load_spec(file)
    assert Wanted(spec, 2.0).uncounted() == ["stay"]
    wanted = Wanted(spec, 2.0, query="stay", count=5000)
    assert wanted.uncounted() == []
    found = wanted.guarantee()
    file.write_text(SPEC.replace("epsilon = 1.0", f"epsilon = {found.epsilon}"))
    assert build(load_spec(file), key=None)["stay"].error_bound(0.05, count=5000) <= 2
    assert CliRunner().invoke(app, ["plan", str(file), "--count", "5"]).exit_code == 2
