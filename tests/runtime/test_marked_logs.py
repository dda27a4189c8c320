"""Labels that are marked for spreadsheets: the log is still the one that was released, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from evertally.cli.app import app
from evertally.runtime import load_spec, run
from spec_text import spec_text

WARDS = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["=1+1", "'tis", "north"]}


@pytest.mark.parametrize("marked", [True, False])
def test_a_log_is_verified_with_and_without_marks(tmp_path: Path, marked: bool) -> None:
    spec, log = tmp_path / "visits.toml", tmp_path / "visits.csv"
    spec.write_text(spec_text(WARDS, output={"file": "visits.csv", "spreadsheet": marked}))
    (tmp_path / "v.csv").write_text("time,ward\n2013-01-01T00:30:00Z,north\n2013-01-01T01:30:00Z,=1+1\n")
    run(load_spec(spec), tmp_path / "v.csv", "2013-01-01T03:00")
    text = log.read_text()
    assert (",'=1+1," in text, ",''tis," in text) == (marked, marked)
    assert CliRunner().invoke(app, ["verify", str(spec), "--log", str(log)]).exit_code == 0
    log.write_text(text.replace("=1+1", "=1+2", 1))
    assert CliRunner().invoke(app, ["verify", str(spec), "--log", str(log)]).exit_code == 1


def test_rows_that_nobody_signs_are_said_to_be_passed_over(tmp_path: Path) -> None:
    spec, log = tmp_path / "visits.toml", tmp_path / "visits.csv"
    counted = {"name": "all", "kind": "counter", "window": "2h"}
    spec.write_text(spec_text(counted, output={"file": "visits.csv"}))
    (tmp_path / "v.csv").write_text("time\n2013-01-01T00:30:00Z\n")
    run(load_spec(spec), tmp_path / "v.csv", "2013-01-01T03:00")
    forged = "3,2013-01-01T03:00:00Z,all/2h,,999,1,998,1000\n"
    log.write_text(log.read_text() + forged)
    done = CliRunner().invoke(app, ["verify", str(spec), "--log", str(log)])
    assert (done.exit_code, "; 3 rows of windows were not checked" in done.output) == (0, True), done.output
