"""A folder of files: every record once, whatever is cut off; half-written files wait, changed files are reported."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from visit_stream import SPEC, WriteSpec

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.runtime.input import folder as folder_module
from evertally.runtime.input.batches import Piece, decode, encode
from evertally.runtime.input.folder import Folder, Unread
from evertally.runtime.input.tick_events import length
from evertally.runtime.spec import StreamSpec


class State:
    """What the stream has accepted: events and marks, together or not at all."""

    def __init__(self) -> None:
        self.marks: dict[str, int] = {}
        self.wards: list[Any] = []
        self.ids: list[str] = []
        self.sizes: list[int] = []

    def accept(self, piece: Piece) -> None:
        batch = decode(encode(piece.batch))
        self.ids.append(piece.batch_id)
        self.marks.update(piece.marks)
        self.sizes.append(length(batch))
        if length(batch) and "ward" in batch:
            column = batch["ward"]
            cells = column.to_pylist() if isinstance(column, pa.Array) else column.tolist()
            self.wards += [cell.decode() if isinstance(cell, bytes) else cell for cell in cells]


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    return load_spec(write_spec())


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    (tmp_path / "incoming").mkdir()
    return tmp_path / "incoming"


def put(path: Path, wards: list[str]) -> Path:
    table = pa.table({"ward": pa.array(wards, pa.string()), "x": pa.array(range(len(wards)), pa.int64())})
    if path.suffix == ".csv":
        path.write_text("x,ward\n" + "".join(f"{i},{ward}\n" for i, ward in enumerate(wards)))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"ward": ward}) + "\n" for ward in wards))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        write_arrow(table, path)
    return path


def write_arrow(table: Any, path: Path) -> None:
    with (pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)


def take(folder: Folder, state: State) -> None:
    take_all(folder.new(), state)


def take_all(pieces: Iterator[Piece], state: State) -> None:
    for piece in pieces:
        state.accept(piece)


def test_files_in_every_format_in_the_order_of_their_names(incoming: Path, spec: StreamSpec) -> None:
    for name in ("c.csv", "a.parquet", "b.jsonl", "d.arrow", "e.ipc"):
        put(incoming / name, [f"{name}-{i}" for i in range(3)])
    state = State()
    folder = Folder(incoming, spec, state.marks.get)
    take(folder, state)
    expected = [f"{name}-{i}" for name in ("a.parquet", "b.jsonl", "c.csv", "d.arrow", "e.ipc") for i in range(3)]
    assert state.wards == expected
    put(incoming / "A-late.csv", ["late"])
    take(folder, state)
    take(Folder(incoming, spec, state.marks.get), state)
    assert state.wards == [*expected, "late"]


def test_half_written_files_wait(incoming: Path, spec: StreamSpec) -> None:
    state = State()
    folder = Folder(incoming, spec, state.marks.get)
    for name in (".hidden.csv", "a.csv.tmp", "b.csv.part"):
        (incoming / name).write_text('x,ward\n1,"not yet')
    (incoming / "inner").mkdir()
    take(folder, state)
    assert state.ids == []
    (incoming / "a.csv.tmp").write_text("x,ward\n1,now\n")
    (incoming / "a.csv.tmp").rename(incoming / "a.csv")
    take(folder, state)
    assert state.wards == ["now"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_large_files_in_pieces_each_record_once_whatever_is_cut_off(
    incoming: Path, spec: StreamSpec, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    state = State()
    wards = [f"w{i}" for i in range(100)]
    put(incoming / f"large{suffix}", wards)
    for _ in range(100):
        monkeypatch.setattr(folder_module, "_ROWS", rng.choice((7, 16)))  # another version of the program
        for piece in Folder(incoming, spec, state.marks.get).new():
            if rng.random() < 0.3:
                break  # the process dies with a piece in hand
            state.accept(piece)
    assert state.wards == wards
    assert max(state.sizes) <= 16
    assert len(set(state.ids)) == len(state.ids) > 6
    take(Folder(incoming, spec, state.marks.get), state)
    assert state.wards == wards


def test_batch_ids_name_file_content_and_place(
    incoming: Path, spec: StreamSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_ROWS", 2)
    path = put(incoming / "a b\u00e9:%.csv", ["1", "2", "3"])
    state = State()
    take(Folder(incoming, spec, state.marks.get), state)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert state.ids == [f"file:a%20b%C3%A9%3A%25.csv:{digest}:{first}" for first in (0, 2)]
    os.rename(path, os.fsencode(incoming) + b"/\xff.csv")  # a name that is no text
    take(Folder(incoming, spec, state.marks.get), state)
    assert all(name.isascii() for name in state.marks)


def test_a_file_that_changes_later_is_reported_by_name(incoming: Path, spec: StreamSpec) -> None:
    state = State()
    folder = Folder(incoming, spec, state.marks.get)
    path = put(incoming / "day.csv", ["a", "b"])
    take(folder, state)
    os.utime(path, ns=(1, 1))  # touched, not changed
    take(folder, state)
    assert state.wards == ["a", "b"]
    put(path, ["a", "b", "c"])
    for again in (folder, Folder(incoming, spec, state.marks.get)):
        with pytest.raises(Unread, match=r"day\.csv has changed after it was read"):
            take(again, state)
    assert state.wards == ["a", "b"]
    put(path, ["a", "b"])
    take(Folder(incoming, spec, state.marks.get), state)
    assert state.wards == ["a", "b"]


def test_a_file_that_changes_while_it_is_read(
    incoming: Path, spec: StreamSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evertally.runtime.input.csv_lines._BLOCK", 64)
    state = State()
    path = put(incoming / "day.csv", [f"w{i}" for i in range(100)])
    pieces = Folder(incoming, spec, state.marks.get).new()
    state.accept(next(pieces))
    put(path, ["other"] * 200)
    with pytest.raises(Unread, match=r"day\.csv has changed after it was read"):
        take_all(pieces, state)
    assert state.wards
    assert state.wards == [f"w{i}" for i in range(len(state.wards))]


def test_files_without_records(incoming: Path, spec: StreamSpec) -> None:
    for name in ("a.csv", "b.jsonl", "c.parquet", "d.arrow"):
        put(incoming / name, [])
    state = State()
    folder = Folder(incoming, spec, state.marks.get)
    take(folder, state)
    assert state.sizes == [0, 0, 0, 0]
    take(Folder(incoming, spec, state.marks.get), state)
    assert len(state.ids) == 4


@pytest.mark.parametrize("name", ["a.csv", "b.jsonl", "c.parquet", "d.arrow"])
def test_events_that_are_only_counted(incoming: Path, tmp_path: Path, name: str) -> None:
    text = SPEC[: SPEC.index('[[query]]\nname = "ward"')].replace('column = "time"\n', "")
    (tmp_path / "count.toml").write_text(text)
    put(incoming / name, ["secret"] * 5)
    state = State()
    for piece in Folder(incoming, load_spec(tmp_path / "count.toml"), state.marks.get).new():
        assert b"secret" not in encode(piece.batch)
        state.accept(piece)
    assert state.sizes == [5]


def test_what_is_refused_names_the_file_and_nothing_in_it(incoming: Path, spec: StreamSpec, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a folder"):
        Folder(tmp_path / "nowhere", spec, {}.get)
    cases: list[tuple[str, Any, str]] = [
        ("notes.txt", b"secret", "unknown kind of input"),
        ("broken.arrow", b"ARROW1 secret", "not a readable Arrow file"),
        ("other.csv", b"secret\n1\n", "has no column 'ward'"),
    ]
    for name, content, words in cases:
        (incoming / name).write_bytes(content)
        with pytest.raises(ConfigurationError, match=rf"{name}.*{words}"):
            list(Folder(incoming, spec, {}.get).new())
        (incoming / name).unlink()
    write_arrow(pa.table({"ward": [[["secret"]]]}), incoming / "deep.arrow")
    with pytest.raises(ConfigurationError, match=r"deep\.arrow: column 'ward' has another type"):
        list(Folder(incoming, spec, {}.get).new())


def test_what_cannot_be_read_is_read_again_when_it_has_changed(
    incoming: Path, spec: StreamSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file that is no table would otherwise be hashed at every look into the folder."""
    read: list[str] = []
    real = hashlib.file_digest

    def file_digest(file: Any, name: str) -> Any:
        read.append(Path(file.name).name)
        return real(file, name)

    monkeypatch.setattr(hashlib, "file_digest", file_digest)
    state = State()
    put(incoming / "day.csv", ["a"])
    folder = Folder(incoming, spec, state.marks.get)
    take(folder, state)
    put(incoming / "day.csv", ["a", "b"])  # must not be
    (incoming / "broken.arrow").write_bytes(b"ARROW1 secret")
    (incoming / "fine.csv").write_bytes(b"ward\nnorth\n")
    (incoming / "other.csv").write_bytes(b"secret\n1\n")
    told = []
    read.clear()
    for _ in range(3):
        with pytest.raises(Unread) as caught:
            take(folder, state)
        told.append(caught.value.problems)
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 3
    assert sorted(read) == ["broken.arrow", "day.csv", "fine.csv", "other.csv"]
    put(incoming / "day.csv", ["a"])
    put(incoming / "broken.arrow", ["c"])
    (incoming / "other.csv").unlink()
    take(folder, state)
    assert state.wards == ["a", "north", "c"]


def test_numbers_that_the_schema_declares_may_be_written_in_csv(tmp_path: Path, incoming: Path) -> None:
    (tmp_path / "minutes.toml").write_text(
        SPEC.replace("share = 0.75", "share = 0.5")
        + '[[query]]\nname = "m"\nkind = "counter"\nshare = 0.25\ncolumn = "minutes"\nmax_weight = 60\n'
        + '[events]\ntime = "time"\nward = "text"\nminutes = "number"\n'
    )
    (incoming / "day.csv").write_text("ward,minutes\nnorth,7\n")
    [piece] = Folder(incoming, load_spec(tmp_path / "minutes.toml"), {}.get).new()
    assert piece.batch["minutes"].to_pylist() == [b"7"]
