"""Four events and a table of something else, for tests of data frames; not a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streams import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = pa.table({"time": [0, 1, 2, 2], "page": [1, 2, 3, 33]})
LIMITS = pa.table({"page": [1, 2, 3, 33], "most": [5, 6, 7, 8]})


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Events and a table of something else, as files and as views."""
    for name, table in (("events", TABLE), ("limits", LIMITS)):
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    yield tmp_path
    for name in ("events", "limits"):
        spark.catalog.dropTempView(name)


def events_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "events"))


def spec_of(folder: Path) -> Path:
    return write(folder / "stream", {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40})
