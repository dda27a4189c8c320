"""File sinks: they hold what was released, interruptions do not change a byte, and what is wrong is said."""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_stream import released, rows, spec_of_all_kinds
from visit_stream import WriteSpec

from evertally.contract.release import Release
from evertally.errors import StateError
from evertally.runtime.releases import FIELDS, TickRelease, pack
from evertally.runtime.sinks import Lines, Parts, Sink, open_sinks
from evertally.runtime.sinks import parquet as parquet_module
from evertally.runtime.sinks.lines import csv_fields, encode
from evertally.runtime.sinks.parquet import ticks_of_a_part
from evertally.runtime.spec import StreamSpec, load_spec

NAMES = ("out.jsonl", "out.csv", "out.parquet")


class Interrupted(BaseException):
    """Stands for kill -9 inside one process: nobody catches it."""


@pytest.fixture
def spec(write_spec: WriteSpec) -> StreamSpec:
    return load_spec(write_spec())


@pytest.fixture
def ticks(spec: StreamSpec) -> list[TickRelease]:
    return [kept for kept, _ in released(spec, 11)]


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "_TICKS", 4)


def opened(path: Path, spec: StreamSpec) -> Sink:
    return Parts("out", path, spec) if path.suffix == ".parquet" else Lines("out", path, spec)


def content(path: Path) -> dict[str, bytes]:
    """What readers see: files, without those that a crash left aside."""
    if not path.is_dir():
        return {"": path.read_bytes()}
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if not file.name.startswith(".")}


# -- what they hold ----------------------------------------------------------------------------------------------------


def slowly_encoded(lines: Sequence[tuple[Any, ...]], suffix: str) -> bytes:
    def cell(value: Any) -> str:
        text = "" if value is None else str(value)
        return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text

    if suffix == ".csv":
        apart = [
            (*line[:4], *((None, line[4]) if isinstance(line[4], str) else (line[4], None)), *line[5:])
            for line in lines
        ]
        header = (*FIELDS[:5], "label", *FIELDS[5:])
        text = "".join(",".join(map(cell, line)) + "\n" for line in [header, *apart])
    else:
        text = "".join(json.dumps(dict(zip(FIELDS, line, strict=True)), ensure_ascii=False) + "\n" for line in lines)
    return text.encode("utf-8", "backslashreplace")


def odd(spec: StreamSpec) -> TickRelease:
    """Labels that nobody wants in a file, in a query for labels that were found."""
    labels = ["a,b", 'say "x"', "two\r\nlines", "\udc80 no UTF-8", "", "{}", "caf\u00e9", "\u2028"]
    counts = dict.fromkeys(labels, 7)
    release = Release(12, counts, 0.1, True, lambda beta: (dict.fromkeys(labels, 0), dict.fromkeys(labels, 2**70)))
    found = next(query for query in spec.queries if query.kind == "unknown_histogram")
    return TickRelease(12, spec.clock.end_of(12), {found.name: pack(found, release, 0.05)})


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_files_of_lines_hold_every_row(write_spec: WriteSpec, tmp_path: Path, suffix: str) -> None:
    spec = spec_of_all_kinds(write_spec)
    ticks = [*(kept for kept, _ in released(spec, 11)), odd(spec)]
    sink, path = Lines("out", tmp_path / f"out{suffix}", spec), tmp_path / f"out{suffix}"
    end = sink.publish(ticks, 0)
    assert end == path.stat().st_size
    assert path.read_bytes() == slowly_encoded([row for tick in ticks for row in rows(spec, tick)], suffix)


def test_a_csv_file_from_before_there_was_a_column_of_labels_goes_on_without_it(
    write_spec: WriteSpec, tmp_path: Path
) -> None:
    spec = spec_of_all_kinds(write_spec)
    first, second = (kept for kept, _ in released(spec, 2))
    old, path = tmp_path / "old.csv", tmp_path / "out.csv"
    old.write_bytes(encode(spec, [first, second], ".csv", header=True, fields=FIELDS))
    path.write_bytes(encode(spec, [first], ".csv", header=True, fields=FIELDS))
    Lines("out", path, spec).publish([second], path.stat().st_size)
    assert path.read_bytes() == old.read_bytes()
    assert "label" not in path.read_text().splitlines()[0]


def test_labels_for_spreadsheets_are_marked_and_come_back(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = spec_of_all_kinds(write_spec)
    labels = ["=1+1", "+1", "-5 to 0", "@x", "\t=1", "\r=1", "'", "'=1", "\uff1d1", "north", "", "a=1", '"', "=a,b"]
    release = Release(12, dict.fromkeys(labels, -7), 0.1, True, lambda beta: (dict.fromkeys(labels, -9),) * 2)
    found = next(query for query in spec.queries if query.kind == "unknown_histogram")
    tick = TickRelease(12, spec.clock.end_of(12), {found.name: pack(found, release, 0.05)})
    for spreadsheet in (False, True):
        path = tmp_path / f"{spreadsheet}.csv"
        Lines("out", path, spec, spreadsheet).publish([tick], 0)
        table = list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))
        given = [row["category"] for row in table]
        assert [cell.removeprefix("'") if spreadsheet else cell for cell in given] == labels
        assert any(cell[:1] in tuple("=+-@\t\r\uff1d") for cell in given) != spreadsheet
        assert {(row["value"], row["lower"]) for row in table} == {("-7", "-9")}  # numbers stay numbers
    lines = encode(spec, [tick], ".jsonl", header=False, spreadsheet=True)
    assert lines == encode(spec, [tick], ".jsonl", header=False)


def test_streams_without_labels_as_values_have_no_column_for_them(write_spec: WriteSpec) -> None:
    assert csv_fields(load_spec(write_spec())) == FIELDS


def test_parts_hold_every_row(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = spec_of_all_kinds(write_spec)
    ticks = [*(kept for kept, _ in released(spec, 11)), odd(spec)]
    assert Parts("out", tmp_path / "out.parquet", spec).publish(ticks, 0) == 12
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.field("value").type == pa.float64()  # there is a mean among the queries
    found = table.to_pylist()
    expected = [dict(zip(FIELDS, row, strict=True)) for tick in ticks for row in rows(spec, tick)]
    for line, row in zip(found, expected, strict=True):
        assert line.pop("time").strftime("%Y-%m-%dT%H:%M:%SZ") == row.pop("time")
        label, value = line.pop("label"), row.pop("value")
        assert (label if isinstance(value, str) else line["value"]) == value
        assert (line.pop("value") is None) == isinstance(value, str)
        if row["category"] is not None:
            row["category"] = row["category"].encode("utf-8", "backslashreplace").decode()
        assert line == row


def test_whole_numbers_stay_whole_in_parts(spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path) -> None:
    wide = Release(12, 2**62 + 1, None, True, lambda beta: (-(2**70), 2**70))
    ticks.append(TickRelease(12, spec.clock.end_of(12), {"all": pack(spec.queries[0], wide, 0.05)}))
    Parts("out", tmp_path / "out.parquet", spec).publish(ticks, 0)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.names == list(FIELDS)
    assert table.schema.field("value").type == table.schema.field("lower").type == pa.int64()
    last = table.to_pylist()[-1]
    assert (last["value"], last["lower"], last["upper"]) == (2**62 + 1, -(2**63 - 1), 2**63 - 1)


def test_integer_clocks(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(("start = 2013-01-01T00:00:00Z", "start = 100"), ('tick = "1h"', "tick = 10")))
    ticks = [kept for kept, _ in released(spec, 2)]
    for name in NAMES:
        opened(tmp_path / name, spec).publish(ticks, 0)
    assert pq.read_table(tmp_path / "out.parquet")["time"].to_pylist() == [110] * 4 + [120] * 4
    assert json.loads((tmp_path / "out.jsonl").read_bytes().splitlines()[-1])["time"] == 120


def test_the_size_of_parts_is_public(write_spec: WriteSpec, spec: StreamSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert ticks_of_a_part(spec) == 2**14
    many = json.dumps([f"c{i}" for i in range(10_000)])
    wide = write_spec(('categories = ["north", "south"]', f"categories = {many}"), folder="wide")
    assert ticks_of_a_part(load_spec(wide)) == 2**18 // 10_002
    assert ticks_of_a_part(spec_of_all_kinds(write_spec)) == 2**18 // (3 * 1000 + 83 + 50)


def test_sinks_of_a_spec(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(
        ('file = "visits.jsonl"', 'file = "visits.csv"'),
        append="".join(
            f"[[sink]]\n{line}\n"
            for line in ('file = "parts.PARQUET"', 'webhook = "https://example.org/x"', 'file = "more.jsonl"')
        ),
    )
    sinks = open_sinks(load_spec(path))
    assert [(type(sink), sink.name) for sink in sinks] == [
        (Lines, "output"),
        (Parts, "parts.PARQUET"),
        (Lines, "more.jsonl"),
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["visits.toml"]  # opening leaves nothing behind


# -- somebody else ---


def remembered(path: Path, spec: StreamSpec, sink: Sink) -> Sink:
    """The sink of the next process, which knows what the last one wrote."""
    again = opened(path, spec)
    assert sink.digest is not None
    again.expect(sink.digest)
    return again


def edited(path: Path) -> None:
    """One number, in place."""
    file = next(iter(sorted(path.iterdir(), reverse=True))) if path.is_dir() else path
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("running", [True, False])
def test_who_changes_an_output_is_found_out(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str, running: bool
) -> None:
    path = tmp_path / name
    sink = opened(path, spec)
    offset = sink.publish(ticks[:5], 0)
    offset = sink.publish(ticks[5:6], offset)
    edited(path)
    with pytest.raises(StateError, match=r"changed or replaced it|is damaged"):
        (sink if running else remembered(path, spec, sink)).publish(ticks[6:], offset)


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_was_copied_or_touched_goes_on(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    whole, path = tmp_path / "whole" / name, tmp_path / "now" / name
    for folder in (whole.parent, path.parent):
        folder.mkdir()
    end = opened(whole, spec).publish(ticks, 0)
    sink = opened(path, spec)
    offset = sink.publish(ticks[:3], 0)
    shutil.move(path.parent, tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", path.parent)
    offset = sink.publish(ticks[3:6], offset)
    shutil.rmtree(tmp_path / "moved")
    shutil.move(path.parent, tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", path.parent)
    assert remembered(path, spec, sink).publish(ticks[6:], offset) == end
    assert content(path) == content(whole)


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_lines_of_others_behind_ours(spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    sink = opened(path, spec)
    offset = sink.publish(ticks[:5], 0)
    with open(path, "ab") as file:
        file.write(b"a note\n")
    with pytest.raises(StateError, match="changed or replaced it"):
        sink.publish(ticks[5:], offset)
    assert path.read_bytes().endswith(b"a note\n")


# -- interruptions -----------------------------------------------------------------------------------------------------


@contextmanager
def interrupted(count: int) -> Iterator[None]:
    """Interrupts at the count-th call of anything that moves bytes to the disk."""
    left = [count]

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted
            return call(*args, **options)

        return wrapper

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "fsync", "replace", "fdopen", "close", "mkdir"):
            patch.setattr(os, name, guarded(getattr(os, name)))
        yield


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before", [0, 3, 4])
def test_every_interruption_leads_to_the_same_bytes(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str, before: int
) -> None:
    whole, path, saved = tmp_path / "whole" / name, tmp_path / "now" / name, tmp_path / "saved"
    for folder in (whole.parent, path.parent):
        folder.mkdir()
    sink = opened(whole, spec)
    end = sink.publish(ticks, 0)
    offset = opened(path, spec).publish(ticks[:before], 0)
    shutil.copytree(path.parent, saved)
    for count in range(1, 100):
        shutil.rmtree(path.parent)
        shutil.copytree(saved, path.parent)
        sink = opened(path, spec)
        finished = False
        with interrupted(count):
            try:
                assert sink.publish(ticks[before:], offset) == end
                finished = True
            except Interrupted:
                pass
        if name.endswith(".parquet") and path.exists():
            readable(path, ticks, at_least=before)
        # The store knows of nothing after `before`: the same ticks come again, in other portions.
        again, place = opened(path, spec), offset
        assert again.publish([], place) == place
        for first, last in ((before, before + 2), (before + 2, 9), (9, 11)):
            place = again.publish(ticks[first:last], place)
        assert place == end
        assert content(path) == content(whole)
        if finished:
            break
    assert 3 < count < 99


def readable(folder: Path, ticks: list[TickRelease], at_least: int) -> None:
    files = [file for file in folder.iterdir() if not file.name.startswith(".")]
    seen = pq.read_table(folder)["tick"].to_pylist() if files else []
    held = sorted(set(seen))
    assert held == list(range(1, len(held) + 1))
    assert len(seen) == 4 * len(held)
    assert len(held) >= at_least


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_half_written_lines_are_written_again(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    offset = opened(path, spec).publish(ticks[:5], 0)
    before = path.read_bytes()
    end = opened(path, spec).publish(ticks[5:], offset)
    whole = path.read_bytes()
    for left in (whole[: offset + 20], before + b"GARBAGE", before + b"GARBAGE" * 2000):
        path.write_bytes(left)
        assert opened(path, spec).publish(ticks[5:], offset) == end
        assert path.read_bytes() == whole
        path.write_bytes(left)
        assert opened(path, spec).publish([], offset) == offset
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", NAMES)
def test_one_tick_at_a_time_gives_the_same_bytes(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    one, all_of_them = tmp_path / f"one-{name}", tmp_path / f"all-{name}"
    sink, place = opened(one, spec), 0
    for tick in ticks:
        place = sink.publish([tick], place)
    assert opened(all_of_them, spec).publish(ticks, 0) == place
    assert content(one) == content(all_of_them)


def test_ticks_without_any_row_are_remembered(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = spec_of_all_kinds(write_spec)
    asked = next(query for query in spec.queries if query.kind == "unknown_histogram")
    nothing = pack(asked, Release(1, {}, 1.0, True, lambda beta: ({}, {})), 0.05)
    ticks = [TickRelease(tick, spec.clock.end_of(tick), {asked.name: nothing}) for tick in range(1, 8)]
    for name in NAMES:
        place = 0
        for tick in ticks:
            place = opened(tmp_path / name, spec).publish([tick], place)
        opened(tmp_path / f"all-{name}", spec).publish(ticks, 0)
        assert content(tmp_path / name) == content(tmp_path / f"all-{name}")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


def test_parts_have_fixed_bounds(spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path) -> None:
    folder = tmp_path / "out.parquet"
    Parts("out", folder, spec).publish(ticks, 0)
    assert {name: sorted(set(pq.read_table(folder / name)["tick"].to_pylist())) for name in content(folder)} == {
        "part-000000000001.parquet": [1, 2, 3, 4],
        "part-000000000005.parquet": [5, 6, 7, 8],
        "part-000000000009.parquet": [9, 10, 11],
    }


def test_ticks_that_are_no_longer_kept_are_left_out(spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path) -> None:
    """A sink that is added late gets what the log still has."""
    for name in NAMES:
        sink = opened(tmp_path / name, spec)
        sink.publish(ticks[6:], sink.publish([ticks[1], ticks[2]], 0))
    seen = [json.loads(line)["tick"] for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert sorted(set(seen)) == [2, 3, 7, 8, 9, 10, 11]
    assert pq.read_table(tmp_path / "out.parquet")["tick"].to_pylist() == seen


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_new_stream_takes_no_place_that_holds_something(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    sink = opened(path, spec)
    sink.check_new()
    sink.publish([], 0)
    sink.check_new()
    sink.publish(ticks, 0)
    with pytest.raises(StateError, match="holds something already"):
        opened(path, spec).check_new()
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.write_bytes(b"precious") if name.endswith(".parquet") else path.mkdir()
    with pytest.raises(StateError, match="holds something already"):
        opened(path, spec).check_new()
    with pytest.raises(StateError, match=rf"cannot write the output .*{name}: (Is a directory|File exists)"):
        opened(path, spec).publish(ticks, 0)


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_file_that_lost_lines_stops_the_stream(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    sink, path = opened(tmp_path / name, spec), tmp_path / name
    offset = sink.publish(ticks[:5], 0)
    path.write_bytes(path.read_bytes()[: offset - 1])
    for new in ([], ticks[5:]):
        with pytest.raises(StateError, match=f"has {offset - 1} bytes where the stream has written at least {offset}"):
            sink.publish(new, offset)
    path.unlink()
    with pytest.raises(StateError, match="0 bytes"):
        opened(path, spec).publish(ticks[5:], offset)


@pytest.mark.parametrize("fresh", [True, False], ids=["restarted", "running"])
def test_an_open_part_that_is_gone_stops_the_stream(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, fresh: bool
) -> None:
    folder = tmp_path / "out.parquet"
    sink = opened(folder, spec)
    assert sink.publish(ticks[:6], 0) == 6
    (folder / "part-000000000001.parquet").unlink()  # finished parts may be moved elsewhere
    if fresh:
        sink = opened(folder, spec)
    assert sink.publish([], 6) == 6
    part = folder / "part-000000000005.parquet"
    kept = part.read_bytes()
    part.unlink()
    with pytest.raises(StateError, match=r"part-000000000005\.parquet does not hold tick 6"):
        sink.publish(ticks[6:], 6)
    part.write_bytes(kept)
    assert sink.publish(ticks[6:7], 6) == 7
    part.write_bytes(kept)  # from a backup
    with pytest.raises(StateError, match="does not hold tick 7"):
        opened(folder, spec).publish(ticks[7:], 7)
    for damaged in (b"", b"PAR1" + kept[40:], kept[:-9]):
        part.write_bytes(damaged)
        with pytest.raises(StateError, match=r"part-000000000005\.parquet is damaged"):
            opened(folder, spec).publish(ticks[6:], 6)
        assert part.read_bytes() == damaged
    pq.write_table(pa.table({"tick": [5, 6], "other": ["a", "b"]}), part)
    with pytest.raises(StateError, match=r"part-000000000005\.parquet is damaged"):
        opened(folder, spec).publish(ticks[6:], 6)


@pytest.mark.parametrize("fresh", [True, False], ids=["restarted", "running"])
def test_a_finished_part_may_go_but_not_change(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, fresh: bool
) -> None:
    folder = tmp_path / "out.parquet"
    sink = opened(folder, spec)
    assert sink.publish(ticks[:9], 0) == 9
    if fresh:
        sink = opened(folder, spec)
    assert sink.publish([], 9) == 9
    part = folder / "part-000000000001.parquet"
    right = part.read_bytes()
    part.write_bytes(right)  # touched, and the same
    assert sink.publish(ticks[9:10], 9) == 10
    part.write_bytes(right[:-1] + b"x")
    for _ in range(2):  # it is said for as long as the process runs
        with pytest.raises(StateError, match=r"part-000000000001\.parquet is not what the stream wrote there"):
            sink.publish(ticks[10:], 10)
    assert sorted(content(folder)) == [f"part-00000000000{first}.parquet" for first in (1, 5, 9)]
    part.write_bytes(right)
    (folder / "part-000000000005.parquet").rename(tmp_path / "elsewhere")
    assert sink.publish(ticks[10:], 10) == 11


def test_of_many_finished_parts_some_are_looked_at_in_turn(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_module, "_TICKS", 1)
    monkeypatch.setattr("evertally.runtime.sinks.finished._AT_ONCE", 2)
    sink = opened(tmp_path / "out.parquet", spec)
    sink.publish(ticks[:10], 0)
    (tmp_path / "out.parquet" / "part-000000000005.parquet").write_bytes(b"")
    for _ in range(2):
        sink.publish([], 10)
    with pytest.raises(StateError, match="part-000000000005"):
        sink.publish([], 10)


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file may become longer than this: what a full disk looks like from inside one process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", NAMES)
def test_after_a_full_disk_the_same_bytes_are_written(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    sink = opened(path, spec)
    offset = sink.publish(ticks[:5], 0)
    with small_disk(700), pytest.raises(StateError, match=rf"cannot write the output .*{name}: File too large"):
        sink.publish(ticks[5:], offset)
    end = sink.publish(ticks[5:], offset)
    assert opened(tmp_path / f"whole-{name}", spec).publish(ticks, 0) == end
    assert content(path) == content(tmp_path / f"whole-{name}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_no_space_left_is_said(spec: StreamSpec, ticks: list[TickRelease]) -> None:
    with pytest.raises(StateError, match="cannot write the output /dev/full: No space left on device"):
        Lines("out", Path("/dev/full"), spec).publish(ticks, 0)


@contextmanager
def not_allowed_in(folder: Path) -> Iterator[None]:
    """Without rights to write in a folder; an administrator has them all and gives them up for a while."""
    folder.chmod(0o555)
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(65534)
    try:
        yield
    finally:
        if privileged:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_may_not_be_written_is_reported(
    spec: StreamSpec, ticks: list[TickRelease], tmp_path: Path, name: str
) -> None:
    sink = opened(tmp_path / name, spec)
    with not_allowed_in(tmp_path), pytest.raises(StateError, match=rf"cannot write .*{name}: Permission denied"):
        sink.publish(ticks, 0)
    sink.publish(ticks, 0)
    (tmp_path / "gone").mkdir()
    lost = opened(tmp_path / "gone" / name, spec)
    (tmp_path / "gone").rmdir()
    with pytest.raises(StateError, match=rf"cannot write .*{name}: No such file"):
        lost.publish(ticks, 0)
