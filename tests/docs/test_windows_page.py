"""The page about windows: its Python runs, and what it says about longer windows and fits is so."""

from __future__ import annotations

import pytest

import evertally as et
from printed import run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/windows.md")
    assert (names["week"].since, names["week"].tick) == (63, 70)
    assert names["week"].stddev == names["orders"].stddev(70, since=63)
    week = names["calendar"].value["week"][-1]
    assert week == pytest.approx(sum(names["calendar"].value["day"][-7:]), abs=1e-6)
    fit = names["fit"].value
    assert fit["all"] == pytest.approx(sum(fit["airport"].values()), abs=1e-6)
    assert "clear" in capsys.readouterr().out


def test_a_day_over_four_weeks_is_ten_times_as_exact() -> None:
    orders = et.Counter(guarantee=et.ApproxDP(epsilon=1.0, delta=1e-9), horizon=365, key=et.simulation(1))
    day, weeks = orders.stddev(70, since=69), orders.stddev(70, since=42)
    assert day is not None
    assert weeks is not None
    assert 10 * weeks / 28 < day
