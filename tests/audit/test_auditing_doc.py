"""docs/auditing.md runs as printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evertally.audit import suite
from evertally.audit.power import games_power
from evertally.audit.report import TIGHT
from evertally.cli.audit import EXIT_STATUS
from printed import python_blocks, run_as_printed

PAGE = (Path(__file__).parents[2] / "docs" / "auditing.md").read_text(encoding="utf-8")


def test_the_examples_run(capsys, monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", suite.Sizes(16, 40_000, 2_500, 100_000, 500, 500))  # quicker
    assert len(python_blocks("docs/auditing.md")) == 4
    run_as_printed("docs/auditing.md")
    printed = capsys.readouterr().out
    assert "closed form" in printed
    assert "claimed 1.0" in printed


def test_what_games_can_show_is_what_the_page_says():
    judged = [
        ("event", "epsilon", 0.1),
        ("event", "epsilon", 1.0),
        ("event", "epsilon", 4.0),
        ("separation", "mu", 1.0),
        ("event", "mu", 1.0),
        ("event", "rho", 0.5),
    ]
    lines = PAGE.partition("| games on each side |")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]
    assert [row[0] for row in rows] == ["200", "2,000", "20,000", "200,000", "400,000"]
    for games, *cells in rows:
        for cell, (method, unit, claimed) in zip(cells, judged, strict=True):
            power = games_power(method, unit, int(games.replace(",", "")), claimed, 0.0, 1e-6)
            assert float(cell) == pytest.approx(power, rel=0.01), (games, unit)


def test_verdicts_and_their_exit_status_are_on_the_page():
    table = PAGE.partition("| verdict | of a row |")[2].partition("\n\n")[0]
    rows = {line.split("|")[1].strip().lower(): line.split("|")[4].strip() for line in table.splitlines()[2:]}
    assert {name: int(status.split(",")[0]) for name, status in rows.items()} == EXIT_STATUS
    assert f"at least {TIGHT} of it" in table
