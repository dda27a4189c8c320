"""The short benchmark of what is present now, once: errors are those predicted, in the order that is documented."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.dynamic import WAYS

import evertally as et

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "benchmarks", "dynamic", "--short", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"dynamic.md", "dynamic.png"} <= {path.name for path in out.iterdir()}
    return json.loads((out / "dynamic.json").read_text())


def test_measured_deviations_are_the_predicted_ones(results: Any) -> None:
    measured = [row for row in results["count"] if row["replicas"]]
    assert len(measured) == 25
    for row in measured:  # of 1,000 variates; one Laplace variate each makes a standard error of 3.5 %
        assert row["measured"] == pytest.approx(row["predicted"], rel=0.16), row["way"]


def test_predictions_are_those_of_the_specification(results: Any) -> None:
    """dynamic-data 13.5; L by a bank (tests/statistics/test_dynamic.py has its square root and trees)."""
    found = {(row["way"], row["pure"], row["horizon"]): row["predicted"] for row in results["count"]}
    for way, year, long in (
        ("L", 15.36, 21.78),
        ("L, item", 21.72, 30.79),
        ("L, lifetimes <= 168", 15.1, 15.1),
        ("B, doubling", 113, 177),
        ("C5, AT", 2582, 7467),
        ("C5, A2", 506, 955),
    ):
        for horizon, expected in ((8760, year), (2**20, long)):
            assert found[way, False, horizon] == pytest.approx(expected, rel=0.005), way
    for way, year, long in (("B, doubling", 167, 332), ("C5, AT", 62_705, 341_220), ("C5, A2", 3799, 10_430)):
        for horizon, expected in ((8760, year), (2**20, long)):
            assert found[way, True, horizon] == pytest.approx(expected, rel=0.005), way


def test_the_linear_counter_is_the_best_where_it_can_be_used(results: Any) -> None:
    errors = {row["way"]: row["measured"] for row in results["query"]}
    assert all(error > 2 * errors["L"] for way, error in errors.items() if way != "L")


def test_updates_pass_in_time(results: Any) -> None:
    for row in results["speed"]:
        assert row["updates"] / row["seconds"] > 2_000, row["way"]


def test_the_documented_predictions_are_these(results: Any) -> None:
    """The second table of constructions in docs/dynamic-data.md. The worst tick of the pure L is not the last."""
    page = (ROOT / "docs" / "dynamic-data.md").read_text(encoding="utf-8").split("### When the other")[1]
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith(("| L", "| B", "| C5"))]
    found = {(row["way"], row["pure"], row["horizon"]): row["predicted"] for row in results["count"]}
    names = {
        "L, lifetimes up to 168 ticks, item": "L, lifetimes <= 168",
        "B, doubling blocks (no horizon)": "B, doubling",
    }
    for name, *numbers in ([cell.strip() for cell in row] for row in rows):
        way = names.get(name, name)
        kinds = [(False, 8760), (False, 2**20), (True, 8760), (True, 2**20)]
        for (pure, horizon), said in zip(kinds[: 2 if name.startswith("L") else 4], numbers, strict=False):
            assert float(said.replace(",", "")) == pytest.approx(found[way, pure, horizon], rel=0.005), (name, said)
        if name in ("L", "L, item"):
            for (_, horizon), said in zip(kinds[2:], numbers[2:4], strict=True):
                made = et.DynamicCount(guarantee=et.PureDP(1.0), horizon=horizon, key=et.simulation(1), **WAYS[way][0])
                assert made.worst_stddev() == pytest.approx(float(said), rel=0.005)
    assert len(rows) == 9


def test_how_far_ahead_the_linear_counter_is() -> None:
    """What docs/dynamic-data.md says of its table."""
    page = (ROOT / "docs" / "dynamic-data.md").read_text(encoding="utf-8").split("### When the other")[1]
    rows = {line.split("|")[1].strip(): line.split("|")[2:6] for line in page.splitlines() if line.startswith("| ")}
    table = {
        name: [float(cell.replace(",", "").strip() or "nan") for cell in cells] for name, cells in rows.items() if name
    }
    ahead = {name: [x / y for x, y in zip(table[name], table["L"], strict=True)] for name in table}
    assert 5 < min(ahead["B, trees"]) < 6
    assert 12 < max(ahead["B, doubling blocks (no horizon)"]) < 12.5
    assert 20 < min(ahead["C5f, A2"]) < 25
    assert 12_000 < max(ahead["C5, AT"]) < 13_000


def test_three_releases(results: Any) -> None:
    """The same page: K with three releases, and L."""
    found = {(row["way"], row["pure"], row["horizon"]): row["predicted"] for row in results["count"]}
    for pure, thrice, year in ((False, 7.8, 15.4), (True, 4.2, 18.2)):
        assert found["K, every 24", pure, 63] == pytest.approx(thrice, abs=0.05)
        assert found["L", pure, 8760] == pytest.approx(year, abs=0.05)
        assert found["L", pure, 63] == pytest.approx(5.5, abs=0.05)
        options = WAYS["K, every 24"][0] | {"every": 2920}
        rare = et.DynamicCount(
            guarantee=et.PureDP(1.0) if pure else et.ApproxDP(1.0, 1e-6), horizon=8760, key=et.simulation(1), **options
        )
        assert rare.stddev(1) == found["K, every 24", pure, 63]
