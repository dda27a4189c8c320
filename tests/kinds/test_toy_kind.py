"""A kind of somebody else's, in a module of its own: one file and one call, and everything takes it from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from served import lines, served

from evertally import kinds
from evertally.errors import ConfigurationError
from evertally.runtime import certificate, load_spec, plain_words, plan, run

MODULE = '''\
"""Minutes of delay: a kind that the library does not know."""

import evertally as et
from evertally.kinds import AMOUNTS, Card, Proof, Query, Result
from evertally.kinds.fields import Text, Whole


class MinutesLate(et.Counter):
    """How many minutes all trains together were late so far."""


class MinutesLateQuery(Query):
    column: Text
    longest: Whole


KIND = et.register_kind(
    et.Kind(
        statistic=MinutesLate,
        also=("delay",),
        options=MinutesLateQuery,
        reads=AMOUNTS,
        result=Result(),
        card=Card("figure", "Minutes late so far, at most {longest} of any {column}"),
        proofs={"bank": Proof("the handbook of the railway, page 7")},
        change_proof="the handbook of the railway, page 3",
        arguments=lambda options: {"max_weight": options["longest"]},
    )
)
'''
SPEC = """\
[stream]
name = "trains"
horizon = 24

[guarantee]
rho = 100

[clock]
column = "time"
start = 2013-01-01T00:00:00Z
tick = "1h"
close = "request"

[key]
file = "trains.key"

[state]
file = "trains.state"

[output]
file = "trains.parquet"

[serve]
port = 0

[[query]]
name = "trains"
kind = "counter"

[[query]]
name = "late"
kind = "minutes_late"
column = "minutes"
longest = 30
"""
WORDS = "Minutes late so far, at most 30 of any minutes"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that brings the kind. Processes that are started now find it."""
    home = tmp_path / "installed"
    about = home / "railway-1.0.dist-info"
    about.mkdir(parents=True)
    (home / "railway_kinds.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: railway\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[evertally.kinds]\nrailway = railway_kinds\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(home), *filter(None, [os.environ.get("PYTHONPATH")])]))
    return home


@pytest.fixture
def toy(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[kinds.Kind]:
    """The kind in this process, until the test is over."""
    monkeypatch.syspath_prepend(package)
    invalidate_caches()
    record = import_module("railway_kinds").KIND
    yield record
    kinds.forget_kind(record)
    del sys.modules["railway_kinds"]


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "trains.toml"
    path.write_text(SPEC)
    return path


def late(minutes: int, hour: int) -> dict[str, Any]:
    return {"time": f"2013-01-01T{hour:02d}:30:00Z", "minutes": minutes}


def test_it_is_loaded_planned_and_certified(toy: kinds.Kind, spec_file: Path) -> None:
    spec = load_spec(spec_file)
    assert (spec.queries[1].kind, spec.queries[1].record, spec.queries[1].ours) == ("minutes_late", toy, False)
    spec_file.write_text(SPEC.replace("minutes_late", "delay"))
    assert load_spec(spec_file).digest == spec.digest
    planned = plan(spec).queries[1]
    assert (planned.kind, planned.numbers, planned.mechanism) == ("minutes_late", 1, "bank")
    ours, theirs = certificate(spec)["queries"]
    assert ours["made_by"] == "evertally"
    assert theirs["made_by"] == "not ours: railway_kinds"
    assert theirs["in_plain_words"] == WORDS
    assert theirs["proved_in"] == {
        "mechanism": "the handbook of the railway, page 7",
        "change_of_one_unit": "the handbook of the railway, page 3",
    }
    assert theirs["error_bound"] == planned.error_bound
    assert "late: of a kind that is not ours" in " ".join(certificate(spec)["warnings"])
    assert "not ours" in plain_words(spec)
    spec_file.write_text(SPEC.replace("longest = 30", "longest = 0"))
    with pytest.raises(ConfigurationError, match=r"trains\.toml:34: \[\[query\]\] longest must be an integer"):
        load_spec(spec_file)
    spec_file.write_text(SPEC.replace("longest = 30", ""))
    with pytest.raises(ConfigurationError, match="needs 'longest' for a minutes_late"):
        load_spec(spec_file)


def test_it_runs_from_a_file_and_goes_on(toy: kinds.Kind, spec_file: Path) -> None:
    import pyarrow.parquet as pq

    first = spec_file.parent / "first.jsonl"
    first.write_bytes(lines([late(7, 0), late(500, 1), late(-3, 2)]))
    run(load_spec(spec_file), first, until="2013-01-01T03:00:00Z")
    second = spec_file.parent / "second.jsonl"
    second.write_bytes(lines([late(20, 4)]))
    run(load_spec(spec_file), second)
    rows = pq.read_table(spec_file.parent / "trains.parquet").to_pylist()
    shown = [row["value"] for row in rows if row["query"] == "late"]
    assert len(shown) == 24
    assert shown[-1] == pytest.approx(7 + 30 + 20, abs=30)


def test_it_is_served_and_shown(toy: kinds.Kind, package: Path, tmp_path: Path) -> None:
    """Over HTTP, by a process that has never imported the module: the entry point of the package leads to it."""
    with served(tmp_path, SPEC, fresh=True) as service:
        assert service.send("one", lines([late(25, 0)] * 8)).status_code == 202
        assert service.close_until(2).json() == {"released": 2}
        ours, theirs = service.get("/v1/stream").json()["queries"]
        assert (ours["ours"], theirs["ours"], theirs["kind"]) == (True, False, "minutes_late")
        assert theirs["card"] == {
            "view": "figure",
            "words": WORDS,
            "together": None,
            "order": None,
            "values": "numbers",
            "places": False,
            "vertices": None,
            "names": None,
            "scale": "linear",
            "apart": False,
            "nested": False,
            "period": None,
            "made": None,
        }
        latest = service.get("/v1/releases/latest").json()
        assert latest["queries"]["late"]["value"] == pytest.approx(200, abs=30)
        assert service.get("/v1/certificate").json()["queries"][1]["made_by"] == "not ours: railway_kinds"
        assert service.get("/v1/plan").json()["queries"][1]["kind"] == "minutes_late"


def test_the_command_line_finds_it(package: Path, spec_file: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "evertally.cli", *arguments, str(spec_file)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    planned = call("plan")
    assert planned.returncode == 0, planned.stderr
    assert "minutes_late" in planned.stdout
    assert "WARNING: late: of a kind that is not ours" in planned.stdout
    assert json.loads(call("certificate").stdout)["queries"][1]["made_by"] == "not ours: railway_kinds"
    (package / "railway_kinds.py").write_text("import nothing_that_exists\n")
    refused = call("plan")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "cannot be imported" in refused.stderr
