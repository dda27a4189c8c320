"""The picture of what is possible: its example runs, and what it prints is what the mechanisms say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally.noise import ZeroNoise
from evertally.theory.frontier import optimal_factor
from printed import ROOT


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    if str(ROOT / "examples") not in sys.path:
        sys.path.append(str(ROOT / "examples"))
    example = importlib.import_module("least_error")
    monkeypatch.setattr(sys, "argv", ["least_error", str(tmp_path), "--longest", "8"])
    example.main()
    (picture,) = tmp_path.glob("*.png")
    assert picture.stat().st_size > 20_000
    assert (ROOT / "docs" / "images" / picture.name).exists()
    page = (ROOT / "docs" / "optimal-counting.md").read_text()
    assert "examples/least_error.py" in page
    assert f"images/{picture.name}" in page
    head, *lines, _ = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [int(line[0]) for line in lines] == [16, 64, 256]
    last = dict(zip(head[:6], map(float, lines[-1]), strict=False))
    assert last["floor"] == pytest.approx(optimal_factor(256)[0], abs=1e-3)
    assert last["floor"] < last["bank"] < last["sqrt"] < last["bank-open"] < last["tree"]
    for name in ("bank", "sqrt"):
        counter = et.Counter(guarantee=et.ZCDP(5e-5), horizon=256, mechanism=name, key=ZeroNoise())
        assert counter.worst_stddev() == pytest.approx(last[name] / 1e-2, rel=1e-3)
