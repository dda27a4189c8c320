"""The short benchmark run, once: its numbers carry two of the promises made for the square-root counter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "benchmarks", "--short", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"report.md", "error.png", "speed.png"} <= {path.name for path in out.iterdir()}
    assert "Error, Gaussian noise" in done.stdout
    return json.loads((out / "results.json").read_text())


def test_worst_error_of_the_square_root_counter(results):
    (row,) = [row for row in results["error"] if row["name"] == "square root" and row["horizon"] == 2**12]
    assert row["replicas"] >= 5000
    assert row["worst"] == pytest.approx(3.714, rel=0.03)  # in units of 1/sqrt(2 rho), rounding to integers included
    assert row["rms"] == pytest.approx(3.551, rel=0.01)


def test_every_tick_has_the_variance_of_the_formula(results):
    # Under a fixed key; 6 standard errors at any of 2^12 ticks have probability below 1e-5 over the choice of it.
    assert all(row["z"] < 6 for row in results["error"])


def test_a_million_ticks_are_no_million_steps(results):
    """On whatever machine: seconds would say more about it, and what else it does, than about the counter."""
    run, step = (
        next(row for row in results["speed"] if row["kind"] == kind and row["columns"] == 1) for kind in ("run", "step")
    )
    assert run["what"] == step["what"]
    assert run["count"] == 2**20
    assert 5 * run["seconds"] / run["count"] < step["seconds"] / step["count"]  # a hundred times as quick, mostly
