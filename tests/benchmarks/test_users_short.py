"""What it costs to protect users: the specification's figures by the running code, and a check that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.user_cases import Case, cases
from benchmarks.users import columns_measured, counter, measured, predicted, table

PAGE = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
CASES = cases()


def test_every_figure_is_within_one_percent_and_on_the_page() -> None:
    rows = [predicted(case) for case in CASES]
    assert len(rows) > 45
    assert [row.case.what for row in rows if not row.agrees] == []
    for cells in table(rows).rows:
        assert f"| {' | '.join(cells[:9])} |" in PAGE
    wrong = replace(rows[0], case=replace(CASES[0], golden=CASES[0].golden * 1.02))
    assert not wrong.agrees
    assert wrong.cells()[-1] == "NO"


def first(section: str) -> Case:
    return next(case for case in CASES if case.section == section)


@pytest.mark.parametrize("section", ["2.2", "2.3", "2.4", "2.5", "6", "4", "5.1"])
def test_the_running_code_has_the_noise_that_it_states(section: str) -> None:
    case = first(section)
    found = measured(replace(case, played=min(case.played or 1, 24)), wanted=240)
    assert found.agrees
    assert found.error < 0.3


def test_noise_of_another_size_is_found_out() -> None:
    assert columns_measured(counter(8, 3)).agrees
    found = columns_measured(counter(8))
    assert not replace(found, value=found.value * 1.25).agrees
