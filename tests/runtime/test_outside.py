"""Rows before the first tick of a run and after its last one: told before anything is released, never lost unasked."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from visit_stream import NoNoise, WriteSpec, save, visits

from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.runtime import Asked, Step, load_spec, opening, run
from evertally.runtime import runner as runner_module
from evertally.runtime.input.binning import BinnedEvents
from evertally.runtime.input.sources import InputFile
from made_keys import save_bound

DAY_1, DAY_2 = "2013-01-02T00:00:00Z", "2013-01-03T00:00:00Z"
GROWS = Asked(late="drop", later="leave")


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        run(*arguments, **options)
    return str(caught.value)


def at(*times: str) -> list[dict[str, Any]]:
    return [{"time": time, "ward": "north"} for time in times]


def test_later_rows_are_refused_before_anything_is_made(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec, records = load_spec(write_spec()), visits(0, 48)
    later = sum(record["time"] >= DAY_1 for record in records)
    told = refused(spec, save(records, tmp_path / "v.csv"), until=DAY_1)
    assert f"has {later} rows at or after {DAY_1}, which this run would not count" in told
    assert "--leave-later" in told
    assert told.endswith("Nothing was released")
    assert {path.name for path in tmp_path.iterdir()} == {"visits.toml", "v.csv"}
    for folder in ("secret", "."):  # made for the key, and one that was there
        spec.path.write_text(spec.path.read_text().replace('"visits.key"', f'"{folder}/visits.key"'))
        refused(load_spec(spec.path), tmp_path / "v.csv", until=DAY_1)
        assert {path.name for path in tmp_path.iterdir()} == {"visits.toml", "v.csv"}
    run(spec, tmp_path / "v.csv", until=DAY_1, asked=GROWS)
    assert (tmp_path / "visits.key.lock").exists()


def test_rows_after_the_end_of_the_stream_are_said_to_be_lost(write_spec: WriteSpec, tmp_path: Path) -> None:
    told = refused(load_spec(write_spec()), save(at("2013-01-05", "2013-01-01"), tmp_path / "v.jsonl"))
    assert f"has 1 row at or after {DAY_2}, where the stream ends: no run will count them" in told


def test_late_rows_are_refused_until_somebody_says_what_they_are(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec())
    first = save(at("2012-12-31", "2013-01-01"), tmp_path / "a.jsonl")
    assert "has 1 row before 2013-01-01T00:00:00Z, the start of the clock" in refused(spec, first, until=DAY_1)
    run(spec, first, until=DAY_1, asked=Asked(late="drop"))
    second = save(at("2013-01-01", "2013-01-02T05:00"), tmp_path / "b.jsonl")
    assert f"has 1 row before {DAY_1}, up to where all ticks are out" in refused(spec, second)
    run(spec, second, asked=Asked(late="count"))


def test_a_file_that_grows_is_released_like_a_whole_one(write_spec: WriteSpec, tmp_path: Path) -> None:
    """Half a day at a time, with rows of later hours in it: byte for byte what one run of the whole file gives."""
    one, growing = write_spec(folder="one"), write_spec(folder="growing")
    key = Key.generate()
    for spec in (one, growing):
        save_bound(key, spec)
    records = visits(0, 48)
    run(load_spec(one), save(records, tmp_path / "whole.csv"))
    for hour in (12, 24, 36, 48):
        until = f"2013-01-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z"
        seen = [record for record in records if record["time"] < until or record["minutes"] % 2]
        run(load_spec(growing), save(seen, tmp_path / "grows.csv"), until=until, asked=GROWS)
    assert (growing.parent / "visits.jsonl").read_bytes() == (one.parent / "visits.jsonl").read_bytes()


def test_what_was_left_is_counted_by_a_later_run_of_the_same_file(write_spec: WriteSpec, tmp_path: Path) -> None:
    one, two = write_spec(folder="one"), write_spec(folder="two")
    key = Key.generate()
    for spec in (one, two):
        save_bound(key, spec)
    file = save(visits(0, 48), tmp_path / "v.csv")
    run(load_spec(one), file)
    run(load_spec(two), file, until=DAY_1, asked=Asked(later="leave"))
    with pytest.raises(StateError, match=r"counted already .* run it with --drop-late"):
        run(load_spec(two), file, asked=Asked(late="count"))
    run(load_spec(two), file, asked=Asked(late="drop"))
    assert (one.parent / "visits.jsonl").read_bytes() == (two.parent / "visits.jsonl").read_bytes()


def test_no_row_is_counted_twice_however_the_ticks_are_cut_into_runs(write_spec: WriteSpec, tmp_path: Path) -> None:
    """All ways to cut four ticks into runs of one file without late rows: each row of them once, others never."""
    spec = load_spec(write_spec())
    hours = [f"2013-01-01T{hour:02d}:30" for hour in range(6)]
    source = InputFile(save(at("2012-12-31", *hours, "x"), tmp_path / "v.csv"))
    for cuts in itertools.chain.from_iterable(itertools.combinations((1, 2, 3), count) for count in range(4)):
        counted = []
        for first, last in itertools.pairwise((0, *cuts, 4)):
            events = BinnedEvents(spec, source, first + 1, last, "drop")
            counted += [len(events.events(spec.queries[0], tick)) for tick in range(first + 1, last + 1)]
            rows = events.rows
            assert (rows.all, rows.late, rows.later, rows.unreadable) == (8, 1 + first, 6 - last, 1)
        assert counted == [1, 1, 1, 1]


class StoppedError(Exception):
    pass


def test_an_interrupted_run_is_finished_in_the_same_way(
    write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module._Run, "_batch_ticks", lambda self: 5)
    spec, file = load_spec(write_spec()), save(visits(0, 48), tmp_path / "v.csv")

    def stop(step: Step) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        run(spec, file, progress=stop, asked=Asked(late="drop"))
    with pytest.raises(StateError, match="with --drop-late was interrupted; finish it with that first"):
        run(spec, file)
    assert run(spec, file, asked=Asked(late="drop")).resumed


def test_all_is_announced_before_the_first_release(
    write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))
    path = write_spec()
    lines = [json.dumps(row) for row in at("2012-12-31", "2013-01-01", "2013-01-01", "2013-01-04", "noon")]
    (tmp_path / "v.jsonl").write_text("\n".join([*lines, "{broken", "", "[1]"]))
    told: list[str] = []

    def announce(lines: list[str]) -> None:
        assert not (tmp_path / "visits.jsonl").exists() or not (tmp_path / "visits.jsonl").read_bytes()
        told.extend(lines)

    run(load_spec(path), tmp_path / "v.jsonl", asked=Asked("count", "leave"), announce=announce)
    assert told == [
        "1 row before 2013-01-01T00:00:00Z are counted in the first tick of this run",
        f"1 row at or after {DAY_2} are left out of this run",
        "1 row without a readable time are left out",
        "2 rows that cannot be read at all are left out",
        "the last row is in tick 1: ticks 2 to 48 are released empty, and no later run can change that",
    ]
    assert json.loads((tmp_path / "visits.jsonl").read_text().splitlines()[0])["value"] == 3


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (["2013-01-01T03:30", "2013-01-01T01:30"], []),
        (
            ["2013-01-01T02:30"],
            ["the last row is in tick 3: tick 4 is released empty, and no later run can change that"],
        ),
        ([], ["no row is in the ticks of this run: ticks 1 to 4 are released empty, and no later run can change that"]),
    ],
)
def test_ticks_after_the_last_row_are_announced(
    write_spec: WriteSpec, tmp_path: Path, times: list[str], told: list[str]
) -> None:
    spec, seen = load_spec(write_spec()), []
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in at(*times)))
    run(spec, tmp_path / "v.jsonl", until="2013-01-01T04:00", announce=seen.extend)
    assert seen == told


def test_a_file_in_which_no_time_can_be_read_is_refused(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec, file = load_spec(write_spec()), save(at("01.02.2013", "noon"), tmp_path / "v.csv")
    told = refused(spec, file)
    assert "has 2 rows and no readable time in the column 'time', so that nothing would be counted" in told
    assert "noon" not in told
    run(spec, file, until=DAY_1, asked=Asked(unreadable="drop"))
    (tmp_path / "idle.csv").write_text("time,ward\n")
    run(spec, tmp_path / "idle.csv")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_misspelt_column_is_refused_before_anything_is_made(
    write_spec: WriteSpec, tmp_path: Path, suffix: str
) -> None:
    records = [{"tmie": record["time"], "wrad": record["ward"]} for record in visits(0, 5)]
    file = save(records, tmp_path / f"v.{suffix}")
    assert "column" in refused(load_spec(write_spec()), file)
    assert not list(tmp_path.glob("visits.key")) + list(tmp_path.glob("visits.state*")) + list(tmp_path.glob("*.bound"))


def test_nonsense_is_not_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="late must be one of 'refuse', 'count', 'drop'"):
        Asked(late="keep")  # type: ignore[arg-type]


OUTSIDE = {
    "late": '{"time": "2012-05-01", "ward": "north"}\n',
    "later": '{"time": "2013-02-01", "ward": "north"}\n',
    "unreadable": '{"time": "noon", "ward": "north"}\n',
    "broken": '{"time": \n',
}


def test_rows_outside_change_nothing_that_others_see(write_spec: WriteSpec, tmp_path: Path) -> None:
    """With everything asked for: the same bytes whichever rows outside there are, also where there are no others."""
    key, found = Key.generate(), set()
    for name in ("none", *OUTSIDE):
        path = write_spec(folder=name)
        save_bound(key, path)
        (tmp_path / "v.jsonl").write_text(OUTSIDE.get(name, ""))
        run(load_spec(path), tmp_path / "v.jsonl", until=DAY_1, asked=Asked("drop", "leave", "drop"))
        found.add((path.parent / "visits.jsonl").read_bytes())
    assert len(found) == 1
