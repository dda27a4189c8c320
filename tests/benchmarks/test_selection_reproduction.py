"""The reproduction of streaming-selection 3.3 and 8.2 runs, draws its plots, and finds the numbers of the text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def selection():
    sys.path.insert(0, str(ROOT))
    try:
        import benchmarks.selection as module
    finally:
        sys.path.remove(str(ROOT))
    return module


def test_radix(selection):
    rows = [selection.radix(T) for T in selection.HORIZONS]
    assert [(row.horizon, row.binary, row.best, round(row.formula, 3)) for row in rows] == [
        (100, 7, 5, 6.0),
        (1000, 10, 4, 8.66),
        (1024, 11, 6, 8.944),
        (10**4, 14, 5, 12.0),
        (10**5, 17, 7, 14.697),
        (10**6, 20, 4, 17.321),
        (10**7, 24, 6, 20.125),
        (10**8, 27, 8, 23.812),
        (10**9, 30, 4, 25.981),
    ]
    assert all(row.worst < row.formula for row in rows)
    measured = selection.radix(100, replicas=2000)
    # A standard deviation of 2000 replicas is off by 1/sqrt(4000) of itself; six of that: below 1e-6.
    assert measured.measured == pytest.approx(measured.worst, rel=6 / 4000**0.5)


def test_zipf_and_plots(selection, tmp_path):
    panel = selection.PANELS[1]
    few = selection.Panel(panel.tau, panel.radix, 2, panel.ways[:3])
    results = selection.zipf((few,), jobs=1)
    assert [r.way for r in results] == ["KnownBase", "MetaAlgo", "sparseGumb s = 1, eta = 0"]
    assert all(r.profile.shape == (1000,) and r.mean > 0 for r in results)
    assert all(r.gap >= 0 and r.mean_error > 0 for r in results)
    text = "".join(table.text() for table in selection.zipf_tables(results))
    assert "MetaAlgo" in text
    selection.plot_zipf(results, tmp_path / "zipf.png")
    selection.plot_radix([selection.radix(100)], tmp_path / "radix.png")
    assert {path.name for path in tmp_path.iterdir()} == {"zipf.png", "radix.png"}
