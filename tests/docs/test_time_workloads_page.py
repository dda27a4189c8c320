"""The page about weights over time: its code runs, and its numbers are the product's."""

from __future__ import annotations

import math
import re

import pytest

import evertally as et
from evertally.counting import age_ways
from evertally.counting.choose import Choice
from evertally.counting.processes import Setting
from evertally.noise import ZeroNoise
from evertally.privacy import Change
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
    assert et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1)).mechanism == "bank"


def test_its_table_of_decays_is_that_of_the_processes() -> None:
    """Predictions are computed again for the shorter horizons; what was measured is near all of them."""
    page = (ROOT / "docs" / "time-workloads.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").replace(",", "").split(" | ") for line in page.splitlines() if line.startswith("| 0.9")]
    assert len(rows) == 20
    for factor, T, bank, found, root, seen, ratio in rows:
        assert float(bank) / float(root) == pytest.approx(float(ratio), abs=0.001)
        assert float(found) / float(bank) == pytest.approx(1, abs=6 / math.sqrt(2 * 2000))
        assert float(seen) / float(root) == pytest.approx(1, abs=6 / math.sqrt(2 * 2000))
        if int(T) <= 256:
            for mechanism, shown in (("bank", bank), ("root", root)):
                setting = Setting(Change(1, 1, 1), int(T), 1, 2**30)
                workload = et.workloads.Decay(factor)
                made = age_ways.build(Choice(mechanism, et.ZCDP(0.5)), setting, workload, ZeroNoise().source())
                assert made.worst().stddev == pytest.approx(float(shown), abs=0.0006)
