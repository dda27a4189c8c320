"""The short benchmark of local learning: real messages give the sums that are measured, errors are within bounds."""

from __future__ import annotations

import pytest
from benchmarks.local import learn, table

import evertally as et


def test_errors_beside_the_formula() -> None:
    row = learn(et.ZCDP(2), 400, first=1, runs=2)
    assert row.same_integers
    assert row.stddev == pytest.approx(row.formula, rel=1e-4)
    assert 0.3 * row.stddev < row.slopes_off < row.noise_bound
    assert row.loss_off < row.loss_bound
    assert "ZCDP" in table([row]).text()
