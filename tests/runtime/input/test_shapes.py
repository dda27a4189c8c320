"""Batches with other columns than the spec names, and CSV in the body of a request."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from visit_stream import SPEC

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.runtime.input.batches import CSV, JSON, JSON_LINES, BatchRefused, decode, encode, parse
from evertally.runtime.input.envelope import known
from evertally.runtime.input.sources import InputFile
from evertally.runtime.input.tick_events import length
from evertally.runtime.spec import StreamSpec


@pytest.fixture
def visits(tmp_path: Path) -> StreamSpec:
    """On the wall clock, with a counter that reads no column: every event that is taken counts."""
    (tmp_path / "visits.toml").write_text(SPEC)
    return load_spec(tmp_path / "visits.toml")


RECORDS = [{"ward": "north"}, {"time": "2013"}, {"wrad": "north"}, {"wrad": 1, "x": 2}, {"wrad": 1, "ward": None}, {}]


def taken(records: tuple[Any, ...], media_type: str, spec: StreamSpec) -> int:
    lines = media_type == JSON_LINES
    body = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    try:
        return length(parse(body.encode(), media_type, spec))
    except BatchRefused:
        return 0


@pytest.mark.parametrize("media_type", [JSON_LINES, JSON])
def test_no_record_decides_whether_another_counts(visits: StreamSpec, media_type: str) -> None:
    """All batches of up to four records: each record adds what it adds alone, be the batch refused or not."""
    for count in range(5):
        for batch in itertools.product(RECORDS, repeat=count):
            alone = sum(taken((record,), media_type, visits) for record in batch)
            assert taken(batch, media_type, visits) == alone


def test_a_batch_without_any_declared_column_is_refused(visits: StreamSpec) -> None:
    with pytest.raises(BatchRefused) as caught:
        parse(b'{"wrad": "secret"}\n{"wrda": 1}\n', JSON_LINES, visits)
    assert str(caught.value) == "no record has any of the columns that the spec names ('time', 'ward'); none was taken"
    assert length(parse(b"{}", JSON_LINES, visits)) == 1  # names no column, so that none of them is misspelt
    assert length(parse(b"", JSON_LINES, visits)) == 0


def test_declared_columns_are_those_of_the_schema_too(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC + '[events]\ntime = "time"\nward = "text"\nvisit = "integer"\n')
    spec = load_spec(path)
    assert known(spec) == {"time", "ward", "visit"}
    assert length(parse(b'{"visit": 7}', JSON_LINES, spec)) == 1


def test_a_stream_that_reads_no_column_takes_any_event(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC[: SPEC.rindex("[[query]]")].replace("share = 0.25", "share = 1"))
    assert length(parse(b'{"whatever": 7}\n{}\n', JSON_LINES, load_spec(path))) == 2


def test_a_file_of_json_lines_without_any_declared_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"wrad": "secret"}\n' * 3)
    with pytest.raises(ConfigurationError, match=r"v\.jsonl: no record has any of the columns") as caught:
        list(InputFile(path).batches(["ward"], frozenset(["ward"])))
    assert "secret" not in str(caught.value)


# -- CSV in a body -----------------------------------------------------------------------------------------------------

CSV_BODY = (
    b'\xef\xbb\xbfid,ward,"time"\r\n1,north,x\r\n2,"a, ""b""",x\r\n3,,x\n\n4,south\n5,"open,x\n6,\xff,x\n7,"north",x'
)


def test_a_body_of_csv_is_read_as_a_file_is(visits: StreamSpec, tmp_path: Path) -> None:
    batch = parse(CSV_BODY, "Text/CSV; charset=utf-8", visits)
    assert batch["ward"].to_pylist() == [b"north", b'a, "b"', None, b"\xff", b"north"]
    (tmp_path / "v.csv").write_bytes(CSV_BODY)
    source = InputFile(tmp_path / "v.csv")
    assert [cell for part in source.batches(["ward"]) for cell in part["ward"].to_pylist()] == batch["ward"].to_pylist()
    assert source.broken == 2
    assert decode(encode(batch))["ward"].equals(batch["ward"])


def test_lines_of_csv_are_only_counted_where_no_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC[: SPEC.rindex("[[query]]")].replace("share = 0.25", "share = 1"))
    assert length(parse(b"a,b\n1,2\n3,4\n5\n", CSV, load_spec(path))) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "must begin with a line of column names"),
        (b"\n\nward\nnorth\n", "must begin with a line of column names"),
        (b"\xff,ward\n", "must begin with a line of column names"),
        (b"ward," * 14000 + b"\nnorth\n", "must begin with a line of column names"),
        (b"ward" + b"," * 5000 + b"\nnorth\n", "must begin with a line of column names"),
        (b"secret,wrad\nnorth,1\n", "must name the column 'ward', exactly once"),
        (b"ward,ward\nnorth,1\n", "must name the column 'ward', exactly once"),
    ],
)
def test_what_a_body_of_csv_is_refused_for(visits: StreamSpec, body: bytes, words: str) -> None:
    with pytest.raises(BatchRefused, match=words) as caught:
        parse(body, CSV, visits)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_header_alone_is_an_empty_batch(visits: StreamSpec) -> None:
    assert length(parse(b"ward\n", CSV, visits)) == 0
    assert length(parse(b"time,ward", CSV, visits)) == 0
