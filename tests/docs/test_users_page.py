"""The page about users: its code runs, and its numbers are the product's."""

from __future__ import annotations

import re

import pytest
from page_tables import rows

import evertally as et
from printed import run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/users.md")
    assert names["users"].tick == 1
    assert set(names["wards"].step_events([], users=[]).value) == {"north", "south", "elsewhere"}
    assert "a secret" not in capsys.readouterr().out


def test_its_changes_and_deviations_are_those_of_the_statistic() -> None:
    found = rows("docs/users.md", "what one protected unit can change")
    assert len(found) == 8
    for call, change, deviation in found:
        options = eval(call.strip("`").replace("DistinctUsers", "dict"))
        made = et.DistinctUsers(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1), **options)
        moved = made.sensitivity
        assert re.findall(r"\d+", change) == [str(n) for n in (moved.l1, moved.l2_squared, moved.linf)]
        assert made.worst_stddev() == pytest.approx(float(deviation), abs=0.006)
    capped = et.Counter(unit="user", max_events_per_user=10, guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    assert capped.worst_stddev() == pytest.approx(34.03, abs=0.006)
