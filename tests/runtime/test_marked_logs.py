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
