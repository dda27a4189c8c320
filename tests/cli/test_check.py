"""`evertally check`: what a sample is to a spec. Nothing is read or made beside the two files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evertally.cli.app import app

SPEC = """\
[stream]
name = "visits"
horizon = 24
unit = "user"
user_column = "patient"
max_events_per_user = 3
[guarantee]
rho = 0.5
[clock]
column = "time"
start = 2013-01-01
tick = "1h"
[key]
file = "secret/visits.key"
[state]
file = "visits.state"
[[query]]
name = "ward"
kind = "histogram"
column = "ward"
categories = ["north", "south"]
[[query]]
name = "stay"
kind = "mean"
column = "minutes"
lower = 0
upper = 60
"""
ROWS: list[dict[str, Any]] = [
    {"time": "2013-01-01T05:00", "patient": "a", "ward": "north", "minutes": 5, "note": "x"},
    {"time": "2013-01-01T05:00", "patient": "b", "ward": "North ", "minutes": 61, "note": "x"},
    {"time": "2012-12-31T05:00", "patient": "c", "ward": "attic", "minutes": -1, "note": "x"},
    {"time": "2013-01-02", "patient": None, "ward": None, "minutes": "many", "note": "x"},
    {"time": "noon", "patient": "d", "ward": ["south", "nroth"], "minutes": 60, "note": "x"},
]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "visits.toml").write_text(SPEC)
    return tmp_path / "visits.toml"


def check(spec: Path, rows: list[dict[str, Any]] | str, name: str = "sample.jsonl") -> tuple[int, str]:
    sample = spec.parent / name
    sample.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["check", str(spec), "--sample", str(sample)])
    assert sorted(path.name for path in spec.parent.iterdir()) == sorted([name, "visits.toml"])
    return result.exit_code, result.output


def test_a_sample_is_looked_through(spec: Path) -> None:
    code, told = check(spec, [*ROWS, {"other": 1}])
    assert code == 0, told
    for words in (
        "visits.toml is in order: visits, 2 queries, ZCDP(rho=0.5)",
        "all that are needed are there; not used: note, other",
        "Rows     5\n",
        "2 inside the clock; 1 before its start, 2013-01-01T00:00:00Z; 1 at or after its end, 2013-01-02T00:00:00Z; "
        "1 that cannot be read (write them like 2013-01-01T00:00:00Z)",
        "1 row without one",
        "ward: column 'ward', 1 cell empty, 3 with labels that are not declared, counted for nothing",
        "'North ' is not declared. Did you mean 'north'?",
        "'nroth' is not declared. Did you mean 'north'?",
        "stay: column 'minutes', 1 cell without a number, 2 beyond 0..60: cut",
        "one tick with 5 rows and simulated noise went through; no key, state or output was read or made",
        "Never choose a label, a bound or any\nother parameter by looking at private data",
    ):
        assert words in told, words
    assert "'attic'" not in told  # looks like nothing that was declared


def test_columns_that_are_missing_and_what_may_be_meant(spec: Path) -> None:
    code, told = check(spec, "Tmie,patient,wrad,minutes\n2013-01-01,a,north,5\n", "sample.csv")
    assert code == 1
    assert "MISSING  the spec names a column 'time', and" in told
    assert "Did you mean 'Tmie'?" in told
    assert "the spec names a column 'ward', and" in told
    assert "Did you mean 'wrad'?" in told
    assert "It has: Tmie, patient, wrad, minutes" in told


def test_a_sample_of_which_nothing_would_count(spec: Path) -> None:
    code, told = check(spec, "time,patient,ward,minutes\n03.01.2013,a,north,5\nbroken\n", "sample.csv")
    assert code == 1
    assert "Rows     1; 1 line cannot be read as one" in told
    assert "NOTHING of the sample would be counted" in told


def test_a_spec_for_receipts_needs_no_times(spec: Path) -> None:
    spec.write_text(SPEC.replace('column = "time"\nstart = 2013-01-01', 'start = "first serve"'))
    code, told = check(spec, "patient,ward,minutes\na,north,5\n", "sample.csv")
    assert (code, "Times" in told) == (0, False)
    spec.write_text(SPEC)
    code, told = check(spec, "patient,ward,minutes\na,north,5\n", "sample.csv")
    assert code == 0
    assert "no column 'time': the sample can be sent to a service, but not run as a file" in told


def test_a_spec_alone(spec: Path) -> None:
    def alone() -> tuple[int, str]:
        result = CliRunner().invoke(app, ["check", str(spec)])
        return result.exit_code, result.output

    assert alone()[0] == 0
    spec.write_text(SPEC.replace('"south"', '"north"'))
    code, told = alone()
    assert (code, "twice" in told) == (2, True)
    assert [path.name for path in spec.parent.iterdir()] == ["visits.toml"]


def test_a_file_that_is_no_sample(spec: Path) -> None:
    code, told = check(spec, "no parquet", "sample.parquet")
    assert code == 2
    assert told == f"evertally: {spec.parent / 'sample.parquet'} is not a readable parquet file\n"


@pytest.mark.parametrize(("declared", "said"), [("number", True), ("integer", False)])
def test_counters_that_would_cut_fractions_are_named(spec: Path, declared: str, said: bool) -> None:
    events = f'[events]\ntime = "time"\npatient = "text"\nward = "text"\nminutes = "{declared}"\n'
    counter = '[[query]]\nname = "sum"\nkind = "counter"\ncolumn = "minutes"\nmax_weight = 60\n'
    spec.write_text(SPEC + counter + events)
    result = CliRunner().invoke(app, ["check", str(spec)])
    assert result.exit_code == 0, result.output
    assert ("NOTE     sum: a counter counts: fractions of 'minutes' are cut" in result.output) is said
