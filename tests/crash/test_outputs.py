"""Outputs of a running stream that somebody else writes into, and labels that look like formulas."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from crash_stream import plain
from nursery import Nursery
from one_service import Service

SINKS = '\n[[sink]]\nfile = "plain.csv"\n[[sink]]\nfile = "safe.csv"\nspreadsheet = true\n'
CHANGED = "somebody else has changed or replaced it"


def test_somebody_changes_the_output(nursery: Nursery, tmp_path: Path) -> None:
    """Between two runs, and while it runs: it is said, nothing is overwritten, and there is a way on."""
    service = Service(nursery, tmp_path, plain(SINKS))
    service.start()
    service.sent(1)
    service.close(2)
    service.stop()
    output = service.spec.output_file
    assert output is not None
    right = output.read_bytes()
    wrong = right.replace(b'"value": ', b'"value":1', 1)
    output.write_bytes(wrong)
    assert CHANGED in service.refused()
    assert output.read_bytes() == wrong

    output.write_bytes(right)  # brought back
    service.start()
    service.close(3)
    right = (tmp_path / "plain.csv").read_bytes()
    (tmp_path / "plain.csv").write_bytes(right.upper())
    told = len(service.stderr())
    answer = service.world.ask("POST", "/v1/ticks", "admin", json.dumps({"until": "2013-01-01T04:00"}).encode())
    assert answer is None or answer[0] == 503
    assert CHANGED in service.failed(before=told)
    assert (tmp_path / "plain.csv").read_bytes() == right.upper()

    # The way on: another file in its place, which gets what the log still has.
    (tmp_path / "visits.toml").write_text(plain(SINKS.replace("plain.csv", "again.csv")))
    service.start()
    service.close(5)
    service.stop()
    assert (tmp_path / "again.csv").read_bytes().startswith(right)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "safe.csv").read_bytes()  # no label is a formula


def test_labels_that_look_like_formulas(nursery: Nursery, tmp_path: Path) -> None:
    labels = ["=cmd|' /C calc'!A0", "@sum", "-5 to 0", "'quoted", "north"]
    spec = plain(SINKS).replace('categories = ["north", "south"]', f"categories = {json.dumps(labels)}")
    assert json.dumps(labels) in spec
    service = Service(nursery, tmp_path, spec)
    service.start()
    service.close(2)

    def categories(text: str, column: str) -> list[str]:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        return list(dict.fromkeys(row[column] for row in rows if row[column] and row["tick"] == "2"))

    marked = [label if label == "north" else f"'{label}" for label in labels]
    for path, column in (
        ("/v1/releases?query=ward&format=csv", "category"),
        ("/v1/windows?query=ward&format=csv", "label"),
    ):
        status, body = service.world.ask("GET", path, "read") or (0, b"")
        assert status == 200
        assert categories(body.decode(), column)[: len(labels)] == marked
    status, body = service.world.ask("GET", "/v1/releases/latest", "read") or (0, b"")
    assert json.loads(body)["queries"]["ward"]["category"][: len(labels)] == labels
    service.stop()
    assert categories((tmp_path / "plain.csv").read_text(), "category")[: len(labels)] == labels
    assert categories((tmp_path / "safe.csv").read_text(), "category")[: len(labels)] == marked
