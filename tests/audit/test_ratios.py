"""Planted bugs lose what users-and-domains 10 says, the product never more than it claims; docs/auditing.md says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from audit.bugs import MUTANTS
from audit.ratios import RATIOS, Ratio, found

PAGE = (Path(__file__).parents[2] / "docs/auditing.md").read_text()
BUGS = PAGE.partition("## Bugs that the auditor must catch")[2]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in BUGS.splitlines() if re.match(r"\| \d+ \|", line)]


@pytest.mark.parametrize("one", RATIOS, ids=lambda one: f"{one.number}: {one.pair}")
def test_a_planted_bug_loses_what_the_specification_says(one: Ratio) -> None:
    right, wrong = found(one)
    assert right <= 1 + 1e-9
    assert wrong == pytest.approx(one.spec, rel=0.03)
    printed = [row[3] for row in ROWS if int(row[0]) == one.number]
    assert f"{wrong:.2f}" in ", ".join(printed)


def test_the_page_lists_all_bugs_and_who_finds_them() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 27))
    names = {f"{m.patch.__module__.split('.')[-1]}.{m.patch.__name__}": m.detect.name for m in MUTANTS}
    for row in ROWS:
        for bug in re.findall(r"`([a-z_]+\.[a-z_]+)`", row[4]):
            assert names[bug] in row[4], f"{bug} is found by {names[bug]!r}"
        assert "`" in row[4]
