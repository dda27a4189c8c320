"""The benchmark of user tables runs."""

from __future__ import annotations

from benchmarks.user_tables import rows_of


def test_a_short_run_measures_columns_tables_and_caps() -> None:
    rows = list(rows_of(600, 300))
    assert {row.unit for row in rows} == {"ns a row", "ns a user", "bytes a user"}
    assert len({row.what for row in rows}) == len(rows) == 17
