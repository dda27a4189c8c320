"""Values that are no labels mean the same however a body is read: one long record makes it be scanned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evertally.noise import simulation
from evertally.runtime import load_spec
from evertally.runtime.input.batches import JSON_LINES, parse
from evertally.runtime.input.json_lines import FEW
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.mechanisms import twins
from evertally.runtime.standing import standing
from spec_text import spec_text

CELLS: list[Any] = [True, False, 2.5, 1, "1", "2.5", 2.0, "true", None, [1], {"a": 1}, -0.0, 1e300, "", 3]
UPDATES = {"action": "what", "insert": "in", "delete": "out", "id": "who"}
RANGES = {"name": "r", "kind": "dynamic_range", "column": "x", **UPDATES}
LINEAR = {"name": "r", "kind": "linear_queries", "column": "x", **UPDATES}


@pytest.mark.parametrize(
    "query",
    [
        {**RANGES, "size": 4},
        {**RANGES, "edges": [0, 1.5, 3]},
        {**LINEAR, "family": {"kind": "ranges", "edges": [0, 1.5, 3]}},
        {**LINEAR, "family": {"kind": "ranges", "size": 4}},
    ],
)
def test_one_long_record_changes_no_other(query: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(spec_text(query, stream={"name": "visits", "horizon": 4}))
    spec = load_spec(file)
    rows = [{"time": "2013-01-01T00:10:00Z", "what": "in", "who": f"n{i}", "x": x} for i, x in enumerate(CELLS)]
    long = {"time": "2013-01-01T00:10:00Z", "what": "w" * FEW, "who": "somebody", "x": None}

    def events(*more: dict[str, Any]) -> list[Any]:
        body = "".join(json.dumps(row) + "\n" for row in [*rows, *more]).encode()
        return list(TickEvents(spec, [parse(body, JSON_LINES, spec)]).events(spec.queries[0]))

    short, scanned = events(), events(long)
    made = standing(spec)
    released = [
        twins(made, simulation(0))["r"].step_events(some).value for some in (short, scanned[: len(rows)], scanned[:0])
    ]
    assert released[0] == released[1]
    assert short == scanned[: len(rows)]
    assert released[0] != released[2]
