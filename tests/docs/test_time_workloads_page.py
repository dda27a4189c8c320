"""The page about weights over time: its code runs, and its numbers are the product's."""

from __future__ import annotations

import re

import pytest

import evertally as et
from printed import ROOT, run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/time-workloads.md")
    printed = capsys.readouterr().out
    assert names["recent"].mechanism == "root"
    assert "±" in printed
    assert "honaker" in printed


def test_its_deviations_are_those_of_the_counters() -> None:
    page = (ROOT / "docs" / "time-workloads.md").read_text(encoding="utf-8")
    checked = 0
    for first, *_, last in (line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")):
        calls = re.findall(r"`((?:Decay|Window|Toeplitz)\(.*?\)|None)`", first)
        found = [float(number) for number in re.findall(r"\d+\.\d+", last)]
        if not calls or len(calls) != len(found):
            continue
        for call, shown in zip(calls, found, strict=True):
            workload = eval(call, vars(et.workloads))
            made = et.Counter(workload=workload, guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
            assert made.stddev(4096) == pytest.approx(shown, abs=0.005), call
            checked += 1
    assert checked == 7
