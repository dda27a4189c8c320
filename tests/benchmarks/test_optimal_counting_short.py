"""The tables of docs/optimal-counting.md, for short horizons; formulas beside the running code, so that it can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.optimal_counting import factors, pure
from benchmarks.optimal_frontier import SUBJECTS, Subject, compared, measured, plot, predicted, tables

from benchmarks import optimal_speed

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
