"""Windows over HTTP: differences of what was released, with their error, in every form, and nothing else."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.ipc
import pytest
from served import HOURLY, Served, lines, served

from spec_text import spec_text

LABELS = [f"ward-{number}" for number in range(120)]
SPEC = spec_text(
    {"name": "all", "kind": "counter", "title": "Visits", "window": "6h", "per": "1h", "share": 0.2},
    {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south"], "share": 0.2},
    {"name": "many", "kind": "histogram", "column": "ward", "categories": LABELS, "share": 0.1},
    {"name": "mean", "kind": "mean", "column": "minutes", "lower": 0, "upper": 60, "unit": "min", "share": 0.2},
    {"name": "stays", "kind": "value_quantile", "column": "minutes", "edges": [0, 5, 10, 20, 60], "share": 0.1},
    {"name": "max", "kind": "max", "column": "ward", "categories": ["north", "south"], "share": 0.05},
    {"name": "first", "kind": "leader", "column": "ward", "categories": ["north", "south"], "share": 0.05},
    {"name": "sum", "kind": "sum", "column": "minutes", "upper": 60, "resolution": 0.5, "share": 0.1},
    stream={"name": "visits", "horizon": 72, "max_events_per_tick": 500, "title": "The clinic", "noun": "visit"},
    guarantee={"rho": 50},
    clock={**HOURLY, "close": "request"},
    serve={"port": 0, "requests_per_second": 10000},
)
TICKS = 48


def _events() -> list[dict[str, Any]]:
    return [
        {"time": f"2013-01-{1 + t // 24:02d}T{t % 24:02d}:30:00Z", "ward": "north" if n % 3 else "south", "minutes": 8}
        for t in range(TICKS)
        for n in range(20 + t)
    ]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("clinic"), SPEC) as running:
        assert running.send("one", lines(_events())).status_code == 202
        assert running.close_until(TICKS).json() == {"released": TICKS}
        yield running


def _windows(clinic: Served, **asked: Any) -> dict[str, Any]:
    answer = clinic.get("/v1/windows", **asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _released(clinic: Served, query: str) -> dict[int, Any]:
    releases = clinic.get("/v1/releases", query=query, limit=1000).json()["releases"]
    return {one["tick"]: one["queries"][query] for one in releases}


def test_a_window_is_the_difference_of_two_releases(clinic: Served) -> None:
    found, kept = _windows(clinic, query="ward", window="6h"), _released(clinic, "ward")
    assert found["window"] == {"ticks": 6, "seconds": 21600.0, "words": "6 hours"}
    assert found["labels"] == ["north", "south"] and found["measure"] == "window" and found["per"] is None
    assert found["tick"] == list(range(6, 49, 6)) and found["since"] == list(range(0, 43, 6))
    assert found["start"][0] == "2013-01-01T00:00:00Z" and found["end"][-1] == "2013-01-03T00:00:00Z"
    for place in range(2):
        totals = [0, *(kept[tick]["value"][place] for tick in found["tick"])]
        assert found["value"][place] == np.diff(totals).tolist()
        changes = [None, *np.diff(found["value"][place]).tolist()]
        assert found["change"]["value"][place] == changes
    twin = clinic.spec  # the error follows from public numbers
    assert twin.beta == found["beta"]
    assert all(0 < sd < 1.5 * found["stddev"][0] for sd in found["stddev"])
    assert found["change"]["stddev"][0] is None and found["change"]["stddev"][1] > found["stddev"][1]
