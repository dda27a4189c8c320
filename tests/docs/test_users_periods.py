"""The page about users: sections on periods, retention and present items."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from page_tables import rows

import evertally as et
from printed import ROOT

PAGE = "docs/users.md"
RHO = 1e-4  # so much noise that rounding does not show


def factor(mechanism: Any) -> float:
    return float(mechanism.worst_stddev()) * math.sqrt(2 * RHO)


def test_factors_of_periods() -> None:
    said = {row[0]: (float(row[1]), row[2]) for row in rows(PAGE, "for a year of hours")}
    common: dict[str, Any] = {"period": 24, "guarantee": et.ZCDP(RHO), "horizon": 8760, "key": et.simulation(1)}
    each = said["the number of each day"]
    assert factor(et.PeriodUsers(**common)) == pytest.approx(each[0], abs=0.006)
    assert math.sqrt(365) == pytest.approx(float(each[1]), abs=0.006)
    few = et.PeriodUsers(max_active_periods=12, **common)
    assert factor(few) == pytest.approx(said["the same, the first 12 active days of a user"][0], abs=0.006)
    today = said["so far today, every hour"]
    assert factor(et.PeriodUsers(so_far=True, **common)) == pytest.approx(today[0], abs=0.006)
    assert math.sqrt(8760) == pytest.approx(float(today[1]), abs=0.006)


def test_factors_of_flips() -> None:
    said = {row[0]: float(row[1]) for row in rows(PAGE, "Choosing it from the data")}
    assert len(said) == 6
    for flips, told in said.items():
        most = None if flips == "no limit" else int(flips)
        made = et.PresentItems(max_flips=most, guarantee=et.ZCDP(RHO), horizon=4096, key=et.simulation(1))
        assert factor(made) == pytest.approx(told, abs=0.006)
    event = et.PresentItems(protects="event", guarantee=et.ZCDP(RHO), horizon=4096, key=et.simulation(1))
    text = (ROOT / PAGE).read_text()
    assert factor(event) == pytest.approx(
        float(re.findall(r"without a limit only \(factor ([\d.]+)\)", text)[0]), abs=0.006
    )


def test_factors_of_retention() -> None:
    text = " ".join((ROOT / PAGE).read_text().split())
    said = re.findall(r"for 12 ages ([\d.]+) \(sqrt\(ages\) = ([\d.]+) without; sqrt\(2 ages\) = ([\d.]+) where", text)[
        0
    ]
    common: dict[str, Any] = {
        "period": 7,
        "ages": 12,
        "guarantee": et.ZCDP(RHO),
        "horizon": 364,
        "key": et.simulation(1),
    }
    made = ({}, {"mechanism": "independent"}, {"neighbours": "replace"})
    for told, options in zip(said, made, strict=True):
        assert factor(et.Retention(**common, **options)) == pytest.approx(float(told), abs=0.006)
