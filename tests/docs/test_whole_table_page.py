"""The ten lines with a data frame run as printed, on orders that are real."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot

import evertally as et
from printed import ROOT

SECTION = (ROOT / "docs" / "data-frames.md").read_text(encoding="utf-8").split("## One call for a whole table")[1]


def test_ten_lines(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pyplot.switch_backend("Agg")
    monkeypatch.setattr(et.Key, "generate", staticmethod(lambda: et.simulation(3)))
    (block,) = re.findall(r"```python\n(.*?)```", SECTION.split("\n## ")[0], flags=re.S)
    assert len([line for line in block.splitlines() if line]) == 10
    names: dict[str, Any] = {}
    exec(compile(block, "docs/data-frames.md", "exec"), names)
    pyplot.close("all")
    assert "low" in capsys.readouterr().out
    orders, found = names["orders"], names["found"]
    assert len(orders) == 69_659
    frame = found.frame
    assert isinstance(frame, pd.DataFrame)
    last = frame[(frame["query"] == "by_size") & (frame.tick == frame.tick.max())].set_index("label")
    true = orders.cds.clip(upper=4).map({1: "1", 2: "2", 3: "3", 4: "more"}).value_counts()
    assert (abs(last.value - true) < 6 * last.stddev).all()
    described = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", SECTION, flags=re.M)))
    assert sorted(described) == sorted(found.window("7d").frame.columns)
