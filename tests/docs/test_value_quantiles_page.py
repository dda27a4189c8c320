"""The page about quantiles: its code runs, its numbers are the product's, its example plays a few days."""

from __future__ import annotations

import importlib
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally.values.quantile_domains import SquareRootDomain, TreeDomain
from printed import ROOT, run_as_printed

PAGE = "docs/value-quantiles.md"


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(et.Key, "generate", staticmethod(lambda: et.simulation(7)))
    names = run_as_printed(PAGE)
    assert abs(names["latency"].step([]).at_most(100).value - 1500) < 60
    assert abs(names["release"].value[0.5] - 1500) < 1500
    assert "10 to 100" in capsys.readouterr().out


def test_its_table() -> None:
    lines = re.findall(
        r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| \*\*([\d.]+)\*\* \| x ([\d.]+) \|", _text(), re.M
    )
    assert len(lines) == 4
    for line in lines:
        cells, (flat, binary, four, root, swap) = int(line[0]), map(float, line[1:])
        domain, trees = SquareRootDomain(cells), [TreeDomain(cells, b) for b in (2, 4)]
        assert math.sqrt(cells) == pytest.approx(flat, abs=0.005)
        for tree, shown in zip(trees, (binary, four), strict=True):
            factor = math.sqrt(tree.added.l2_squared * float(tree.energy[:-1].max()))
            assert factor == pytest.approx(shown, abs=0.005)
        assert math.sqrt(domain.added.l2_squared * domain.energy[-1]) == pytest.approx(root, abs=0.01)
        assert domain.replaced.l2_squared / domain.added.l2_squared == pytest.approx(swap, abs=0.02)


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example = importlib.import_module("departure_delays")
    monkeypatch.setattr(et.Key, "generate", staticmethod(lambda: et.simulation(7)))
    monkeypatch.setattr(sys, "argv", ["departure_delays", str(tmp_path), "--days", "4"])
    example.main()
    printed = capsys.readouterr().out
    rows = re.findall(r"^ *\d+%((?: +-?\d+){4})$", printed, flags=re.M)
    assert len(rows) == 3
    for row in rows:
        _, lower, upper, exact = map(int, row.split())
        assert lower <= exact <= upper
    assert (tmp_path / "cdf.png").stat().st_size > 20_000
    assert (ROOT / "docs" / "images" / "cdf.png").exists()
    assert "departure_delays.py" in _text()


def _text() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")
