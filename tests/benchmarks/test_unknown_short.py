"""The short benchmark of an unknown domain: a million events a second, and memory by item."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_events_a_second_and_bytes_an_item(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.unknown", "--short", "--json", str(tmp_path / "results.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr  # a million events a second of CPU time, labels and lists
    rows = json.loads((tmp_path / "results.json").read_text())
    assert [row["shape"] for row in rows] == ["labels", "lists"]
    for row in rows:
        assert row["events"] == 10 * row["items"] == 10**6
        assert row["released"] > 100
        assert row["bytes_an_item"] < 160  # 12 of them are the label
