"""No record stops a stream for all others, and none decides how the others are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from one_process import assert_same, in_one_process

import evertally.spark as es
from evertally.errors import ConfigurationError
from streams import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = pa.table({"time": [0, 1, 2, 2], "page": [1, 2, 3, 33]})
RAW = pa.table({"time": ["0", "1", "2", "2", "noon"], "page": ["1", "2", "3", "33", "3"], "zero": [1, 1, 1, 1, 0]})


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return spec_of(tmp_path)


def spec_of(folder: Path, **sections: Any) -> Path:
    query = {"name": "pages", "kind": "vector_counter", "column": "page", "columns": 40}
    return write(folder / "stream", query, **sections)


@contextmanager
def set_to(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A session of somebody else, for a while."""
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def raw(spark: SparkSession, folder: Path) -> DataFrame:
    (folder / "raw").mkdir()
    pq.write_table(RAW, folder / "raw/0.parquet")
    return spark.read.parquet(str(folder / "raw"))


# -- functions that raise


def test_a_cell_that_is_no_number_is_null(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    events = raw(spark, tmp_path).selectExpr("cast(time as long) time", "cast(cast(page as int) / zero as int) page")
    es.release_batch(events, spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


_RAISE = {
    "cast(time as long)": "cast",
    "zero / zero": "divide",
    "to_timestamp(time)": "to_timestamp",
    "zero + 1": "add",
    "split(page, ',')[1]": "getarrayitem",
    "transform(array(time), t -> cast(t as int))": "cast",
}


@pytest.mark.parametrize("function", _RAISE)
def test_functions_that_raise_in_a_session_of_somebody(
    spark: SparkSession, spec: Path, tmp_path: Path, function: str
) -> None:
    rows = raw(spark, tmp_path)
    with set_to(spark, "spark.sql.ansi.enabled", "true"):
        events = rows.selectExpr("1L time", "page", f"{function} made")
        with pytest.raises(ConfigurationError, match=rf"raise for some values \({_RAISE[function]}\).*ansi.*try_cast"):
            es.release_batch(events, spec, batch="one", until=3)
        harmless = rows.selectExpr(
            "cast(zero as double) d", "try_cast(time as long) time", "try_divide(zero, zero) page"
        )
        es.release_batch(harmless, spec, batch="one", until=3)


@pytest.mark.parametrize(
    "function",
    [
        "timestamp_millis(zero)",
        "assert_true(zero = 1)",
        "raise_error(page)",
        "to_number(page, '99')",
        "parse_json(page)",
        "date_format(time, page)",
        "page rlike page",
        "split(page, ',') [0] = element_at(array(page), cast(time as int))",
        "cast(page as interval day)",
        "map(page, zero)",
        "unbase64(page)",
        "to_timestamp(time, 'yyyy')",
        "unix_timestamp(time)",
        "from_utc_timestamp(time, 'Europe/Vienna')",
        "cast(time as timestamp) + interval 1 day",
        "date_trunc('hour', cast(time as timestamp))",
        "cast(cast(time as date) as timestamp)",
        "decode(cast(page as binary), 'UTF-8')",
        "regexp_extract(page, '[0-9]+')",
        "from_csv(page, 'a int')",
        "from_json(page, 'a decimal(10, 2)')",
        "-cast(page as decimal(38, 0))",
        "slice(array(page), zero, 1)",
        "cast(array(cast(time as date)) as array<timestamp>)[0]",
        "array(cast(time as date)) = array(timestamp'2020-01-01')",
        "regexp_replace(page, 'EUR', '$')",
        "regexp_replace(page, 'EUR', '$1')",
        "regexp_replace(page, '(E)UR', page)",
        "to_date(time collate UTF8_LCASE, 'yyyy')",
        "repeat(page, zero)",
        "lpad(page, zero, ' ')",
        "space(zero)",
        "array_repeat(page, cast(zero as int))",
        "format_string('%c', zero)",
        "to_xml(named_struct('a', page))",
        "to_timestamp(page, time)",
        "xpath_int(page, 'a')",
        "format_string(page, zero)",
        "from_json(page, 'a int', map('Mode', 'FailFast'))",
    ],
)
def test_functions_that_always_may_raise(spark: SparkSession, spec: Path, tmp_path: Path, function: str) -> None:
    events = raw(spark, tmp_path).selectExpr("1L time", "page", f"{function} made")
    with pytest.raises(ConfigurationError, match="raise for some values"):
        es.release_batch(events, spec, batch="one", until=3)


def test_functions_that_raise_for_no_record(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    functions = [
        "date_format(cast(time as timestamp), 'yyyy')",
        "page rlike '^[0-9]'",
        "split(page, ',')[7]",
        "element_at(map('a', page), time)",
        "format_string('%s-%s', page, time)",
        "regexp_replace(page, ' ', '')",
        "cast(time as timestamp)",
        "page / zero",
        "to_timestamp(time)",
        "cast(time as date)",
        "hour(cast(time as timestamp))",
        "regexp_extract(page, '([0-9]+)', 1)",
        r"cast(regexp_replace(time, '(..)\\.(..)\\.(....)', '$3-$2-$1') as timestamp)",
        "cast(zero / 1000 as timestamp)",
        "try_parse_json(page)",
        "lpad(page, 5, ' ')",
        "cast(array(zero) as array<string>)",
        "get(array(page), zero)",
        "cast(cast(page as binary) as string)",
        "cast(page as decimal(10, 2))",
        "from_json(page, 'a int')",
        "cast(time as timestamp) > timestamp'2020-01-01'",
        "unix_timestamp(cast(time as timestamp))",
        "get_json_object(page, '$.a')",
        "hour(cast(time as timestamp))",
    ]
    columns = [f"{function} made{number}" for number, function in enumerate(functions)]
    events = raw(spark, tmp_path).selectExpr(
        "cast(time as long) time", "cast(cast(page as int) / zero as int) page", *columns
    )
    es.release_batch(events, spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


def test_a_condition_that_raises(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="raise for some values"):
        es.release_batch(raw(spark, tmp_path).filter("raise_error(page) is null"), spec, batch="one", until=3)


# -- types that follow from records

RECORDS = [{"time": t, "page": p} for t, p in zip(TABLE["time"].to_pylist(), TABLE["page"].to_pylist(), strict=True)]
DECLARED = {"time": "integer", "page": "integer"}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines/0.json").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path / "lines"


def test_json_whose_types_nobody_has_declared(spark: SparkSession, spec: Path, lines: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"reader of json a schema, and declare .*\[events\], of time, page"):
        es.release_batch(spark.read.json(str(lines)), spec, batch="one", until=3)


def test_declared_json(spark: SparkSession, lines: Path, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, events=DECLARED)
    events = spark.read.schema("time long, page long").json(str(lines))
    es.release_batch(events, spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


def test_one_record_that_would_change_the_type_of_all(spark: SparkSession, lines: Path, tmp_path: Path) -> None:
    (lines / "1.json").write_text('{"time": 1, "page": "n/a"}\n')
    with pytest.raises(ConfigurationError, match=r"column 'page' has another type than 'integer'"):
        es.release_batch(spark.read.json(str(lines)), spec_of(tmp_path, events=DECLARED), batch="one", until=3)


@pytest.mark.parametrize("option", ["inferSchema", "INFERSCHEMA"])
def test_csv_that_is_looked_at(spark: SparkSession, spec: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells/0.csv").write_text("time,page\n0,1\n")
    events = spark.read.option(option, "true").csv(
        str(tmp_path / "cells"), header=True, enforceSchema=False, maxColumns=10**6
    )
    with pytest.raises(ConfigurationError, match="take inferSchema away"):
        es.release_batch(events, spec, batch="one", until=3)


@pytest.mark.parametrize("live", [False, True])
def test_a_reader_that_stops_at_a_bad_record(spark: SparkSession, lines: Path, tmp_path: Path, live: bool) -> None:
    spec = spec_of(tmp_path, events=DECLARED)
    reader: Any = spark.readStream if live else spark.read
    reader = reader.option("MODE", "failfast").option("maxFileAge", "100000d")
    events = reader.schema("time long, page long").json(str(lines))
    release = (
        partial(es.release_stream, events, spec)
        if live
        else partial(es.release_batch, events, spec, batch="one", until=3)
    )
    with pytest.raises(ConfigurationError, match="FAILFAST"):
        release()


def test_a_stream_that_looks_at_its_first_files(spark: SparkSession, spec: Path, lines: Path) -> None:
    with set_to(spark, "spark.sql.streaming.schemaInference", "true"):
        events = spark.readStream.option("maxFileAge", "100000d").json(str(lines))
    with pytest.raises(ConfigurationError, match="reader of json a schema"):
        es.release_stream(events, spec)


def test_readers_of_the_other_generation(spark: SparkSession, lines: Path, tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    with set_to(spark, "spark.sql.sources.useV1SourceList", ""):
        with pytest.raises(ConfigurationError, match="reader of json a schema"):
            es.release_batch(spark.read.json(str(lines)), spec, batch="one", until=3)
        known = spark.read.schema("time long, page long")
        with pytest.raises(ConfigurationError, match="FAILFAST"):
            es.release_batch(known.option("mode", "FAILFAST").json(str(lines)), spec, batch="one", until=3)
        es.release_batch(spark.read.schema("time long, page long").json(str(lines)), spec, batch="one", until=3)
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


# -- names of folders


def folders(place: Path) -> str:
    """A folder for each page."""
    for number in range(3):
        (place / f"pages/page=0{number}").mkdir(parents=True)
        pq.write_table(pa.table({"time": [number], "other": [1]}), place / f"pages/page=0{number}/0.parquet")
    return str(place / "pages")


def test_names_of_folders_are_texts(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    """`page=XX`, a folder that one record makes, would turn 1 into 01 for all others."""
    events = spark.read.parquet(folders(tmp_path))
    assert dict(events.dtypes)["page"] == "string"


def test_names_of_folders_that_are_taken_for_numbers(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    name = "spark.sql.sources.partitionColumnTypeInference.enabled"
    with set_to(spark, name, "true"):
        events = spark.read.parquet(folders(tmp_path))
        with pytest.raises(ConfigurationError, match=r"these folders a schema, and declare .* of page:"):
            es.release_batch(events, spec, batch="one", until=3)
        renamed = events.selectExpr("time", "struct(page) as s").selectExpr("time", "s.page as page")
        with pytest.raises(ConfigurationError, match=r"declare .* of page:"):
            es.release_batch(renamed, spec, batch="one", until=3)
        es.release_batch(events.selectExpr("time", "other page"), spec, batch="one", until=3)


def test_a_stream_of_folders(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    """A schema without the columns that stand in names of folders leaves their types to Spark."""
    place = folders(tmp_path)
    with set_to(spark, "spark.sql.sources.partitionColumnTypeInference.enabled", "true"):
        events = spark.readStream.schema("time long").option("maxFileAge", "100000d").parquet(place)
        assert dict(events.dtypes)["page"] == "int"
        with pytest.raises(ConfigurationError, match=r"declare .* of page:"):
            es.release_stream(events, spec)


# -- records that take in others


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_records_over_several_lines(spark: SparkSession, spec: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0").write_text('0,"1\n1,2\n')
    events = (
        spark.read.schema("time long, page long").option("multiLine", True).format(kind).load(str(tmp_path / "raw"))
    )
    with pytest.raises(ConfigurationError, match="several lines"):
        es.release_batch(events, spec, batch="one", until=3)


def test_cells_without_names(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/0.csv").write_text("0,1\n1,2\n")
    events = spark.read.csv(str(tmp_path / "raw"), maxColumns=10**6).toDF("time", "page")
    with pytest.raises(ConfigurationError, match="reader of csv a schema"):
        es.release_batch(events, spec, batch="one", until=3)
    es.release_batch(
        spark.read.schema("time long, page long").csv(str(tmp_path / "raw"), maxColumns=10**6),
        spec,
        batch="one",
        until=3,
    )


def test_a_table_is_no_record(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    """What holds for readers and functions of events does not for tables: nobody's event is in them."""
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits/0.csv").write_text("page,most\n1,5\n2,6\n3,7\n33,8\n")
    limits = spark.read.csv(str(tmp_path / "limits"), header=True, inferSchema=True)
    limits = limits.selectExpr("page", "assert_true(most > 0) is null fine").where("fine")
    rows = raw(spark, tmp_path).where("zero = 1").selectExpr("cast(time as long) time", "cast(page as long) page")
    es.release_batch(rows.join(limits, "page"), spec, batch="one", until=3, look_up=[limits])
    assert assert_same(spec, in_one_process(spec, tmp_path / "one", [(TABLE, 3)])) == 3 * 40


def test_times_that_the_old_parser_read_otherwise(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    events = raw(spark, tmp_path)
    policy = set_to(spark, "spark.sql.legacy.timeParserPolicy", "EXCEPTION")
    with policy, pytest.raises(ConfigurationError, match="timeParserPolicy"):
        es.release_batch(events, spec, batch="one", until=3)


# -- readers that a record stops, or that leave others out


_READERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "corrupt": ("json", {"ignoreCorruptFiles": True}, "take ignoreCorruptFiles"),
    "missing": ("parquet", {"ignoreMissingFiles": True}, "ignoreMissingFiles away"),
    "dates": ("parquet", {"datetimeRebaseMode": "EXCEPTION"}, "must not be EXCEPTION"),
    "cells": ("csv", {"enforceSchema": False}, "maxColumns"),
    "long cells": ("csv", {"maxColumns": 10**6, "maxCharsPerColumn": 100}, "maxCharsPerColumn"),
}


@pytest.mark.parametrize("way", _READERS)
def test_readers_of_a_record_that_is_odd(spark: SparkSession, spec: Path, tmp_path: Path, way: str) -> None:
    kind, options, words = _READERS[way]
    raw(spark, tmp_path)
    events = spark.read.schema("time long, page long").options(**options).format(kind).load(str(tmp_path / "raw"))
    with pytest.raises(ConfigurationError, match=words):
        es.release_batch(events, spec, batch="one", until=3)


def test_a_session_that_leaves_out_what_it_cannot_read(spark: SparkSession, spec: Path, tmp_path: Path) -> None:
    events = raw(spark, tmp_path)
    open_to_it = set_to(spark, "spark.sql.files.ignoreCorruptFiles", "true")
    with open_to_it, pytest.raises(ConfigurationError, match="ignoreCorruptFiles"):
        es.release_batch(events, spec, batch="one", until=3)


def test_decimals_in_texts(spark: SparkSession, spec: Path, lines: Path) -> None:
    events = (
        spark.read.schema("time long, page decimal(10, 2)")
        .json(str(lines))
        .selectExpr("time", "cast(page as long) page")
    )
    with pytest.raises(ConfigurationError, match="a decimal number is worked at for minutes"):
        es.release_batch(events, spec, batch="one", until=3)


def test_names_of_files_alone(spark: SparkSession, spec: Path, lines: Path) -> None:
    reader = spark.readStream.schema("time long, page long").option("maxFileAge", "100000d")
    with pytest.raises(ConfigurationError, match="fileNameOnly"):
        es.release_stream(reader.option("fileNameOnly", True).parquet(str(lines)), spec)
