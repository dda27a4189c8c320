"""The page about values: its code runs, its queries are read, and what it says about noise is so."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import evertally as et
from evertally.runtime.spec import load_spec
from printed import ROOT, run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/values.md")
    assert names["spent"].tick == 15
    assert names["release"].value["bound"] in (16, 32, 64)
    daily, year = (float(number) for number in capsys.readouterr().out.splitlines()[-2].split())
    assert 1.9 * daily < year


def test_its_queries_are_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "values.md").read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    path = tmp_path / "till.toml"
    head = (
        '[stream]\nname = "till"\nunit = "user"\nuser_column = "who"\nmax_events_per_user = 4\n'
        '[guarantee]\nrho = 0.5\n[clock]\ncolumn = "time"\nstart = 2013-01-01T00:00:00Z\ntick = "12h"\n'
        'end = 2014-01-01T00:00:00Z\n[key]\nfile = "till.key"\n'
        '[state]\nfile = "till.state"\n[output]\nfile = "till.jsonl"\n'
    )
    path.write_text(head + text)
    spec = load_spec(path)
    assert [query.kind for query in spec.queries] == ["running_sum", "histogram", "running_variance", "adaptive_sum"]
    assert spec.queries[0].parameters["every"] == 2
    assert spec.queries[3].parameters["pilot"] == 28


def test_its_table_is_that_of_the_classes() -> None:
    common = {"guarantee": et.ZCDP(0.5), "horizon": 9, "key": et.simulation(1)}
    A = 1000
    for options, factor in (({}, 3), ({"neighbours": "replace"}, 4)):
        made = et.RunningVariance(lower=0, upper=10, **options, **common)
        assert made.sensitivity.l2_squared == factor * A * A
    made = et.RunningVariance(lower=0, upper=10, unit="user", max_events_per_user=3, neighbours="replace", **common)
    assert math.sqrt(made.sensitivity.l2_squared) == pytest.approx(math.sqrt(6) * 3 * A)
