"""The tables of docs/optimal-counting.md, for short horizons."""

from __future__ import annotations

from pathlib import Path

from benchmarks.optimal_counting import factors, plain, pure

PAGE = (Path(__file__).parents[2] / "docs" / "optimal-counting.md").read_text(encoding="utf-8")


def test_the_page_says_what_the_benchmark_finds() -> None:
    for table in (factors(10), pure(8)):
        assert table.rows
        for row in table.rows:
            assert f"| {' | '.join(row)} |" in PAGE


def test_times_are_measured() -> None:
    assert plain(10, 10) > 0
