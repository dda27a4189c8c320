"""What the page about users says of active users: its numbers are the product's."""

from __future__ import annotations

from typing import Any

import pytest
from page_tables import rows

import evertally as et


def test_its_deviations_are_those_of_the_statistic() -> None:
    found = rows("docs/users.md", "Standard deviations of every number, for a year of days")
    assert len(found) == 10

    def made(windows: list[int], **options: Any) -> float:
        key = et.simulation(1)
        worst = et.ActiveUsers(windows, guarantee=et.ZCDP(0.5), horizon=365, key=key, **options).worst_stddev()
        assert worst is not None
        return worst

    for call, printed in found:
        assert eval(call.strip("`"), {"ActiveUsers": made}) == pytest.approx(float(printed), abs=0.006)
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
    assert round(counter.worst_stddev() or 0, 1) == 2.7
