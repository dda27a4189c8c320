"""The benchmark of Spark beside one process, with few events: what it compares must be the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.spark import histogram, items, users

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES: dict[str, Callable[[Any, Path], dict[str, Any]]] = {
    "histogram": lambda spark, work: histogram(spark, work, 50_000, 70_000, 3),
    "users": lambda spark, work: users(spark, work, 20_000, 3_000, 3),
    "items": lambda spark, work: items(spark, work, 20_000, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_compared_is_the_same(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = CASES[name](spark, tmp_path)
    assert found["same"]
    assert found["warm_cpu"] > 0
    assert found["one_process_cpu"] > 0
