"""The page about strings: its code runs, and its table is the product's."""

from __future__ import annotations

import re
from typing import Any

import pytest

import evertally as et
from printed import ROOT, run_as_printed

ROWS: dict[str, dict[str, Any]] = {
    "a letter is there or not, the rest closes up": {},
    "the same, with a gap rule | `gap": {"gap": 3},
    "a letter, or a null in its place": {"removal": "null"},
    "another letter in its place": {"neighbours": "replace"},
    "another record, its user included": {"neighbours": "replace", "replaces": "record"},
    "the same, with a gap rule | ...": {"neighbours": "replace", "replaces": "record", "gap": 3},
    "a letter is there or not, each word once per user": {"once_per_user": True},
    "a user is there or not": {"unit": "user", "max_events_per_user": 5},
    "the same, each word once per user": {"unit": "user", "max_events_per_user": 5, "once_per_user": True},
}


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/strings.md")
    assert names["text"].tick == 100
    assert "±" in capsys.readouterr().out


@pytest.mark.parametrize("row", ROWS)
def test_the_table_is_the_product_s(row: str) -> None:
    (line,) = [line for line in (ROOT / "docs/strings.md").read_text().splitlines() if line.startswith(f"| {row}")]
    printed = [int(number) for number in re.findall(r"\d+", line.split("|")[4])]
    made: dict[str, Any] = {"alphabet": "ab", "sequence": "user", "guarantee": et.ZCDP(0.5), "horizon": 8}
    for longest, value in enumerate(printed, start=1):
        counts = et.strings.SubstringCounts(longest=longest, key=et.simulation(1), **made, **ROWS[row])
        assert counts.sensitivity.l2_squared == value
    assert len(printed) == 5
