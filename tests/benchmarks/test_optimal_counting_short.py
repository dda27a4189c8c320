"""The tables of docs/optimal-counting.md, for short horizons; formulas beside the running code, so that it can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.optimal_counting import factors, pure
from benchmarks.optimal_frontier import SUBJECTS, Subject, compared, measured, plot, predicted, tables

from benchmarks import optimal_speed
from evertally.theory.frontier import gaussian_frontier, optimal_factor, pure_frontier, unbounded_frontier

PAGE = (Path(__file__).parents[2] / "docs" / "optimal-counting.md").read_text(encoding="utf-8")


def test_the_page_says_what_the_benchmark_finds() -> None:
    for table in (factors(10), pure(8)):
        assert table.rows
        for row in table.rows:
            assert f"| {' | '.join(row)} |" in PAGE


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: f"{s.mechanism}-{'pure' if s.pure else 'gaussian'}")
def test_the_running_code_has_the_error_of_its_formula_and_no_other(subject: Subject) -> None:
    T, columns = 2**6, 4_000
    said, found = predicted(subject, T), measured(subject, T, columns)
    assert compared(subject, T, said, found).agrees
    for wrong in (1.1, 1 / 1.1):
        off = replace(said, variances=said.variances * wrong, rounded=said.rounded * wrong)
        row = compared(subject, T, off, found)
        assert not row.agrees
        assert "DISAGREES" in tables([row])[0].note


def test_the_frontier_lists_what_is_built() -> None:
    for T in (256, 1024):
        bank, blocks = predicted(Subject("bank"), T), predicted(Subject("pure-blocks", pure=True), T)
        (row,) = [entry for entry in gaussian_frontier() if (entry.mechanism, entry.horizon) == ("bank (as built)", T)]
        assert (row.worst, row.rms) == pytest.approx((bank.worst, bank.rms), abs=6e-6)
        (row,) = [e for e in pure_frontier() if (e.mechanism, e.horizon) == ("pure-blocks (as built)", T)]
        assert (row.worst**2, row.rms**2) == pytest.approx((blocks.worst**2, blocks.rms**2), abs=6e-3)
        last = predicted(Subject("bank-open", told=False), T).variances[-1]
        ratio = last / optimal_factor(T)[0] ** 2
        assert unbounded_frontier()["bank-open (as built)", T] == pytest.approx(ratio, abs=6e-5)


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    subject, T = Subject("bank"), 2**4
    row = compared(subject, T, predicted(subject, T), measured(subject, T, 100))
    plot([row], tmp_path / "optimal.png")
    assert (tmp_path / "optimal.png").stat().st_size > 1000


def test_times_are_measured() -> None:
    assert optimal_speed.plain(10, 10) > 0


def test_without_jax_privacy_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimal_speed.importlib.util, "find_spec", lambda name: None)
    assert "pip install jax-privacy" in optimal_speed.jax_rows(None)
