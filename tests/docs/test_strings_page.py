"""The page about strings: its code runs, and its table is the product's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_tables import noise_column, rows

import evertally as et
from evertally.applications import strings
from printed import ROOT, run_as_printed

ROWS: dict[str, dict[str, Any]] = {
    "a letter is there or not, the rest closes up": {},
    "the same, with a gap rule | `gap": {"gap": 3},
    "a letter, or a null in its place": {"removal": "null"},
    "another letter in its place": {"neighbours": "replace", "replaces": "letter"},
    "another record, its user included": {"neighbours": "replace"},
    "the same, with a gap rule | ...": {"neighbours": "replace", "gap": 3},
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
    page = (ROOT / "docs/strings.md").read_text().split("## Episodes")[0]
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {row}")]
    printed = [int(number) for number in re.findall(r"\d+", line.split("|")[4])]
    made: dict[str, Any] = {"alphabet": "ab", "sequence": "user", "guarantee": et.ZCDP(0.5), "horizon": 8}
    for longest, value in enumerate(printed, start=1):
        counts = et.strings.SubstringCounts(longest=longest, key=et.simulation(1), **made, **ROWS[row])
        assert counts.sensitivity.l2_squared == value
    assert len(printed) == 5


EPISODES: dict[str, dict[str, Any]] = {
    "a letter, there or not": {},
    "another letter in its place": {"neighbours": "replace"},
}


@pytest.mark.parametrize("row", EPISODES)
def test_the_table_of_episodes_is_the_product_s(row: str) -> None:
    table = rows("docs/strings.md", "How far one unit moves")
    (cells,) = [cells for cells in table if cells[0].startswith(row) and cells[0].endswith("all episodes")]
    printed = [int(number) for number in re.findall(r"(?:: |; |, )(\d{1,5})(?= for|,|$)", cells[1].split("):")[-1])]
    made: dict[str, Any] = {"sequence": "stream", "guarantee": et.ZCDP(0.5), "horizon": 8, "key": et.simulation(1)}
    sizes = [(2, 2), (3, 3), (26, 3)]
    stated = [
        strings.EpisodeCounts(alphabet=[str(i) for i in range(u)], longest=ell, **made, **EPISODES[row])
        for u, ell in sizes
    ]
    assert [counts.sensitivity.l2_squared for counts in stated] == printed[:3]


def test_a_record_of_a_user_is_replaced_as_a_whole() -> None:
    made: dict[str, Any] = {"alphabet": "abc", "words": ["ab", "abc"], "guarantee": et.ZCDP(0.5), "horizon": 8}
    there, replaced = (
        strings.EpisodeCounts(sequence="user", neighbours=relation, key=et.simulation(1), **made).sensitivity
        for relation in ("add_remove", "replace")
    )
    assert (replaced.l2_squared, replaced.l1) == (4 * there.l2_squared, 2 * there.l1)


def test_the_table_of_noise_is_the_product_s() -> None:
    classes = {name: getattr(strings, name) for name in strings.__all__}
    common: dict[str, Any] = {"guarantee": et.ApproxDP(1, 1e-6), "horizon": 365, "key": et.simulation(1)}
    found = noise_column("docs/strings.md", classes, **common)
    assert len(found) == 12
    for call, printed, stated in found:
        assert printed == pytest.approx(stated, abs=0.051), call
    for mechanism, printed in (("pure-blocks", 8.6), ("bank", 11.2)):
        assert et.Counter(mechanism=mechanism, **common).stddev(365) == pytest.approx(printed, abs=0.051)
