"""The benchmark of the door runs."""

from __future__ import annotations

import pytest

from benchmarks import door
from evertally.encode import caps


def test_a_short_run_measures_lines_and_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "REPEATS", 1)
    monkeypatch.setattr(caps, "_LARGE", caps._LARGE)  # which the benchmark changes
    rows = [*door.json_rows(300), *door.cap_rows(300, 600)]
    assert len({row.what for row in rows}) == len(rows) == 11
    assert all(row.old > 0 and row.new > 0 for row in rows)
