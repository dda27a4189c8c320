"""Files of events: three formats, one meaning; broken records vanish alone; only the envelope is ever reported."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from visit_stream import save, visits

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.input import csv_lines
from evertally.runtime.input.sources import ROWS, InputFile, PipedInput


def read(path: Path, columns: list[str]) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {name: [] for name in columns}
    for batch in InputFile(path).batches(columns):
        for name in columns:
            table[name] += batch[name].tolist() if isinstance(batch[name], np.ndarray) else batch[name].to_pylist()
    return table


def cells(batch: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for name, c in batch.items()}


def test_the_formats_agree(tmp_path: Path) -> None:
    records = visits(0, 24)
    tables = [
        read(save(records, tmp_path / f"v{suffix}"), ["time", "ward"])
        for suffix in (".csv", ".jsonl", ".parquet", ".arrow", ".ipc", ".feather")
    ]
    as_text = [
        {k: [v.decode() if isinstance(v, bytes) else v for v in column] for k, column in t.items()} for t in tables
    ]
    assert all(table == as_text[0] for table in as_text)
    assert len(as_text[0]["time"]) == len(records)


CSV_LINES = st.lists(
    st.one_of(
        st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")),
        st.lists(
            st.sampled_from([b"a", b"", b'"q"', b'"x,y"', b'"', b'""', b" 1", b"\xff", b"\r", b'"a""b"', b"\x00"]),
            max_size=4,
        ).map(b",".join),
    ),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(CSV_LINES, st.integers(1, 40), st.booleans())
def test_a_csv_record_is_one_line_and_read_by_itself(
    tmp_path: Path, lines: list[bytes], block: int, ended: bool
) -> None:
    """Any bytes at all: no error, and each line gives what it gives alone, wherever the blocks are cut."""
    alone = [row for line in lines for row in _rows_of(tmp_path, [line], 2**20)]
    assert _rows_of(tmp_path, lines, block, ended) == alone


def _rows_of(folder: Path, lines: list[bytes], block: int, ended: bool = True) -> list[tuple[Any, ...]]:
    path = folder / "lines.csv"
    path.write_bytes(b"\n".join([b"x,y,z", *lines]) + (b"\n" if ended else b""))
    before, csv_lines._BLOCK = csv_lines._BLOCK, block
    try:
        table = read(path, ["x", "z"])
    finally:
        csv_lines._BLOCK = before
    return list(zip(table["x"], table["z"], strict=True))


@given(CSV_LINES)
def test_the_fast_and_the_careful_splitter_agree_where_both_apply(lines: list[bytes]) -> None:
    block = b"".join(line.replace(b'"', b"") + b"\n" for line in lines)
    if not csv_lines._is_plain(block):
        return
    skipped: list[int] = []
    fast = csv_lines._plain_block(block, [0, 2], 3, skipped.append)
    careful = csv_lines._careful_block(block, [0, 2], 3, lambda count: skipped.append(-count))
    assert [column.to_pylist() for column in fast] == [column.to_pylist() for column in careful]
    assert sum(skipped) == 0


@pytest.mark.parametrize("before", [[], [b"short"], [b"", b"short", b"\r"]])
@pytest.mark.parametrize("beside", [b"4,5,6", b'"4",5,6', b"\xff,5,6", b"4,5"])
def test_a_mark_of_the_order_of_bytes_is_part_of_a_cell(tmp_path: Path, before: list[bytes], beside: bytes) -> None:
    """Whatever the other records are, and also where it is the first byte of a block: after the header, or a cut."""
    marked = b"\xef\xbb\xbf1,2,3"
    for block in (2**20, 1):
        rows = _rows_of(tmp_path, [*before, marked, beside, marked], block)
        assert rows[0] == rows[-1] == (b"\xef\xbb\xbf1", b"3")


@given(st.lists(st.sampled_from(["a", "bc", '"', '""', ",", '"d"', '"e,f"', '","', " "]), max_size=9).map("".join))
def test_cells_are_what_the_csv_module_says(line: str) -> None:
    try:
        expected = next(csv.reader([line], strict=True), [])
    except csv.Error:
        expected = []
    assert not line or csv_lines._cells(line) == expected


def test_quoted_cells(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes(
        b'\xef\xbb\xbf"time","a,b"\r\n"1","x,y"\r\n2,"say ""hi"""\r\n3,""\r\n4,"open\r\n5,z\r\n'
    )
    table = read(tmp_path / "q.csv", ["time", "a,b"])
    assert table == {"time": [b"1", b"2", b"3", b"5"], "a,b": [b"x,y", b'say "hi"', None, b"z"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=10),
            st.sampled_from(
                [
                    b'{"a": 1}',
                    b'{"a": [1]}',
                    b'{"a": NaN}',
                    b"[" * 100000,
                    b'{"a"',
                    b"7",
                    b"null",
                    b'{"b": 2}',
                ]
            ),
        )
    )
)
def test_broken_json_lines_vanish_alone(tmp_path: Path, lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    path = tmp_path / "lines.jsonl"

    def values(some: list[bytes]) -> list[str]:
        path.write_bytes(b"\n".join(some))
        return [repr(value) for value in read(path, ["a"])["a"]]

    assert values(lines) == [value for line in lines for value in values([line])]


def test_a_line_that_never_ends_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "_BLOCK", 8)
    monkeypatch.setattr(csv_lines, "_LONGEST_LINE", 30)
    (tmp_path / "long.csv").write_bytes(b"x,y\n1,2\n" + b"3," + b"9" * 100 + b"\n4,5\n6," + b"7" * 100)
    assert read(tmp_path / "long.csv", ["x"])["x"] == [b"1", b"4"]


def test_parquet_columns_keep_their_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": [1, None],
            "l": [["a"], None],
            "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", ["n", "l"]) == {"n": [1, None], "l": [[b"a"], None]}


def arrow_bytes(column: Any, stream: bool, **options: Any) -> bytes:
    table = pa.table({"a": column, "b": column})
    sink = pa.BufferOutputStream()
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("stream", [True, False])
def test_arrow_files_and_streams(tmp_path: Path, stream: bool, compression: str | None) -> None:
    column = pa.array([["x", "y"], None, []])
    (tmp_path / "t.arrow").write_bytes(arrow_bytes(column, stream, compression=compression))
    assert read(tmp_path / "t.arrow", ["b"]) == {"b": [[b"x", b"y"], None, []]}
    coded = pa.array(["x", None, "y"]).dictionary_encode()
    (tmp_path / "t.arrow").write_bytes(arrow_bytes(coded, stream, compression=compression))
    assert read(tmp_path / "t.arrow", ["b", "a"]) == {"b": [b"x", None, b"y"], "a": [b"x", None, b"y"]}


@pytest.mark.parametrize("stream", [True, False])
def test_damaged_arrow_files(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "t.arrow"
    offsets = np.array([0, 6, 12], np.int32).tobytes()
    whole = arrow_bytes(pa.array(["secret", "SECRET"]), stream)
    damaged = [whole[:cut] for cut in range(0, len(whole), 11)] + [whole[:-8], whole.replace(offsets, b"\x7f" * 12)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"t\.arrow is not a (readable|complete) Arrow file") as refusal:
            read(path, ["a"])
        assert "secret" not in str(refusal.value).lower()
    path.write_bytes(whole)
    with pytest.raises(ConfigurationError, match=r"has no column 'c'.*a, b"):
        read(path, ["c"])


def test_a_pipe_is_a_file_that_cannot_be_read_twice(tmp_path: Path) -> None:
    for suffix, name in ((".csv", "csv"), (".jsonl", "jsonl"), (".parquet", "parquet"), (".arrow", "arrow")):
        path = save(visits(0, 5), tmp_path / f"v{suffix}")
        file = InputFile(path)
        with open(path, "rb") as pipe:
            piped = PipedInput(pipe, name)
        assert (piped.sha256, piped.format) == (file.sha256, file.format)
        for _ in range(2):  # hashed first, read later
            assert [cells(batch) for batch in piped.batches(["ward"])] == [cells(b) for b in file.batches(["ward"])]
        piped.check()
        if name != "jsonl":  # where broken lines are broken records
            with pytest.raises(ConfigurationError, match=r"standard input (has no column|is not a)"):
                list(PipedInput(io.BytesIO(b"secret\n1\n"), name).batches(["time"]))
    with pytest.raises(ConfigurationError, match="must be one of csv, jsonl, parquet, arrow; got 'xml'"):
        PipedInput(io.BytesIO(b""), "xml")


def test_records_can_be_counted_without_a_column(tmp_path: Path) -> None:
    records = visits(0, 5)
    for suffix in (".csv", ".jsonl", ".parquet", ".arrow"):
        batches = list(InputFile(save(records, tmp_path / f"v{suffix}")).batches([]))
        assert all(list(batch) == [ROWS] for batch in batches)
        assert sum(len(batch[ROWS]) for batch in batches) == len(records)


def test_errors_of_the_envelope(tmp_path: Path) -> None:
    records = visits(0, 5)
    with pytest.raises(ConfigurationError, match="unknown kind of input"):
        InputFile(save(records, tmp_path / "v.csv").rename(tmp_path / "v.txt"))
    with pytest.raises(ConfigurationError, match="cannot read the input"):
        InputFile(tmp_path / "none.csv")
    with pytest.raises(ConfigurationError, match=r"has no column 'room'.*time, ward, minutes, patient"):
        read(save(records, tmp_path / "v.parquet"), ["time", "room"])
    with pytest.raises(ConfigurationError, match=r"has no column 'room'.*first line must name") as headless:
        read(save(records, tmp_path / "v.csv"), ["time", "room"])
    assert "patient" not in str(headless.value)  # a file without a header would show its first record
    (tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ConfigurationError, match="more than one column 'a'"):
        read(tmp_path / "twice.csv", ["a"])
    (tmp_path / "head.csv").write_bytes(b"\xff\xfea,b\n")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        read(tmp_path / "head.csv", ["a"])
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="has no column"):
        read(tmp_path / "empty.csv", ["a"])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 secret content PAR1")
    with pytest.raises(ConfigurationError, match="not a readable Parquet file") as refusal:
        read(tmp_path / "bad.parquet", ["a"])
    assert "secret" not in str(refusal.value)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    path = save(visits(0, 5), tmp_path / "v.csv")
    source = InputFile(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(StateError, match="changed while it was read"):
        list(source.batches(["time"]))
