"""The page about data frames: its code runs, and its table of columns is that of the statistics."""

from __future__ import annotations

import pandas as pd
import pytest

import evertally as et
from printed import ROOT, run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/data-frames.md")
    printed = capsys.readouterr().out
    assert names["released"].index.equals(names["visits"].index)
    assert list(names["released"].columns) == ["north", "south"]
    assert "['tick', 'time', 'value', 'lower', 'upper']" in printed
    assert "ward=north" in printed


def test_columns_of_records_are_those_that_it_names() -> None:
    page = (ROOT / "docs" / "data-frames.md").read_text(encoding="utf-8")
    promise = {"guarantee": et.ZCDP(0.5), "horizon": 9, "key": et.noise.ZeroNoise()}
    named = {
        "PresentItems": (et.PresentItems(max_flips=4, **promise), ["action", "id"]),
        "strings": (
            et.strings.EpisodeCounts(alphabet="ab", words=["ab"], sequence="user", **promise),
            ["user", "letter"],
        ),
    }
    for statistic, (mechanism, columns) in named.items():
        line = next(line for line in page.splitlines() if line.startswith(("| `" + statistic, "| " + statistic)))
        assert all(f"`{column}`" in line for column in columns)
        mechanism.step_events(pd.DataFrame({column: ["a"] for column in columns}))
        assert mechanism.tick == 1
