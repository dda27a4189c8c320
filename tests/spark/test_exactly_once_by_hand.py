"""Attempts die, drivers die, drivers meet: what is shown is what an undisturbed stream shows, and is shown once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from by_hand import bucket_groups, by_hand, from_buckets, groups, play

from evertally.errors import EvertallyError, StateError
from evertally.runtime import load_spec
from evertally.runtime.state.shelf import DiskShelf
from evertally.spark.beginning import Taken, taken
from evertally.spark.engine import Engine
from evertally.spark.failures import SparkFailed, TaskFailed
from evertally.spark.job import Job
from evertally.spark.public import batches, payloads, shown
from evertally.spark.root import Log
from evertally.spark.tasks import part_task
from spec_text import Table
from streams import WORDS, begun, events, place, twin, write

__all__ = ["place"]

Run = Callable[[Job], list[dict[str, Any]]]
APPROXIMATE = {"epsilon": 40.0, "delta": 1e-5}
CONTENT = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, "order": "content"}
QUERIES: list[Table] = [
    {"name": "all", "kind": "counter"},
    {"name": "pages", "kind": "histogram", "column": "page", "categories": WORDS[:40]},
    {"name": "found", "kind": "unknown_histogram", "column": "page"},
]
OF_USERS = {**CONTENT, "unit": "user", "user_column": "user", "max_events_per_user": 3}
PEOPLE: Table = {"name": "people", "kind": "distinct_users"}
STREAMS = {
    "events": (QUERIES, {"stream": CONTENT, "guarantee": APPROXIMATE}),
    "users": ([*QUERIES, PEOPLE], {"stream": OF_USERS, "guarantee": APPROXIMATE}),
}
BATCHES = [(events(60, seed=1), 3), (events(60, seed=2), 6), (events(60, seed=3), 8)]


@pytest.fixture(params=STREAMS)
def spec(request: pytest.FixtureRequest, place: Path) -> Path:
    queries, sections = STREAMS[request.param]
    return begun(write(place / "spark", *queries, **sections))


def undisturbed(spec: Path, folder: Path) -> tuple[Path, list[Any]]:
    """What comes of the same stream if nothing happens."""
    other = twin(spec, folder)
    return other, play(other, [([table], through) for table, through in BATCHES])


def advance(spec: Path, number: int, run: Run | None = None) -> Any:
    table, through = BATCHES[number]
    with taken(load_spec(spec)) as held:
        engine = Engine(held)
        engine.catch_up()
        return engine.advance(run or by_hand([table]), number, through, {"id": str(number)})


class MachineLost(Exception):
    pass


def dying(tables: Sequence[pa.Table], seed: int) -> Run:
    """Some parts are played, and then the job is no more."""

    def run(job: Job) -> list[dict[str, Any]]:
        order = random.Random(seed)
        parts = groups(job, tables, order)
        for table in order.sample(parts, order.randrange(len(parts))):
            part_task(job)(table)
        raise MachineLost("the record of Ada")

    return run


def public(spec: Path) -> dict[str, bytes]:
    folder = Path(load_spec(spec).engine.public)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def root_files(spec: Path) -> set[str]:
    folder = Path(load_spec(spec).engine.root)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_attempts_that_die_leave_what_the_next_one_writes(spec: Path, place: Path) -> None:
    other, expected = undisturbed(spec, place / "undisturbed")
    records = []
    for number, (table, _) in enumerate(BATCHES):
        for seed in range(2):
            with pytest.raises(SparkFailed, match=f"batch {number}: Spark stopped with MachineLost") as failed:
                advance(spec, number, dying([table.slice(0, 20), table.slice(20)], seed))
            assert "Ada" not in str(failed.value)
            assert len(batches(load_spec(spec))) == number  # nothing of it is shown
        records.append(advance(spec, number))
    assert records == expected
    assert public(spec) == public(other)
    assert root_files(spec) == root_files(other)


def test_what_a_dead_attempt_made_of_other_events_is_neither_shown_nor_read(spec: Path, place: Path) -> None:
    """A source that does not come again as it was: other contents under the same noise lie in the root."""
    other, expected = undisturbed(spec, place / "undisturbed")
    secret = events(80, seed=99)
    for number in range(len(BATCHES)):

        def dies_at_the_end(job: Job) -> list[dict[str, Any]]:
            by_hand([secret])(job)
            raise MachineLost

        with pytest.raises(SparkFailed):
            advance(spec, number, dies_at_the_end)
        assert advance(spec, number) == expected[number]
    left = root_files(spec) - root_files(other)
    assert {name.split("/")[0] for name in left} >= {"state", "releases"}
    assert public(spec) == public(other)


class NoMarks(DiskShelf):
    """The home of the marks on a disk that takes no more of them."""

    def put_new(self, name: str, data: bytes) -> bytes:
        if name.startswith("mark/") and self.read(name) is None:
            raise StateError("cannot write: the disk is full; the stream stops")
        return super().put_new(name, data)


def without_marks(held: Taken) -> Engine:
    return Engine(replace(held, log=Log(held.log.root, NoMarks(held.spec.engine.home), held.key)))


def test_a_driver_that_dies_between_manifest_and_mark(spec: Path, place: Path) -> None:
    other, expected = undisturbed(spec, place / "undisturbed")
    for number, (table, through) in enumerate(BATCHES):
        with taken(load_spec(spec)) as held, pytest.raises(StateError, match="disk is full"):
            without_marks(held).advance(by_hand([table]), number, through, {"id": str(number)})
        assert len(batches(load_spec(spec))) == number

        def never(job: Job) -> list[dict[str, Any]]:
            raise AssertionError("it has a manifest, and nothing is computed again")

        assert advance(spec, number, never) == expected[number]
    assert public(spec) == public(other)


def test_the_next_batch_shows_what_a_dead_driver_did_not(spec: Path, place: Path) -> None:
    other, expected = undisturbed(spec, place / "undisturbed")
    with taken(load_spec(spec)) as held, pytest.raises(StateError, match="disk is full"):
        without_marks(held).advance(by_hand([BATCHES[0][0]]), 0, 3, {"id": "0"})
    with taken(load_spec(spec)) as held:  # without `catch_up`
        for number, (table, through) in enumerate(BATCHES[1:], 1):
            record = Engine(held).advance(by_hand([table]), number, through, {"id": str(number)})
            assert record == expected[number]
    assert public(spec) == public(other)


def test_a_driver_that_dies_between_mark_and_showing(spec: Path, place: Path) -> None:
    other, expected = undisturbed(spec, place / "undisturbed")
    shown_at = Path(load_spec(spec).engine.public)
    shown_at.write_text("in the way")
    with pytest.raises(StateError, match=r"cannot read .*about.json: Not a directory"):
        advance(spec, 0)
    shown_at.unlink()
    assert [advance(spec, number) for number in range(3)] == expected
    assert public(spec) == public(other)


def test_what_was_shown_in_part_is_shown_again_as_it_was(spec: Path, place: Path) -> None:
    other, _ = undisturbed(spec, place / "undisturbed")
    for number in range(3):
        advance(spec, number)
        folder = Path(load_spec(spec).engine.public) / f"{number:08d}"
        (folder / "about.json").unlink()
        next(folder.glob("pages-*")).unlink()
        assert len(batches(load_spec(spec))) == number  # readers see whole batches or none
        assert len(list(shown(load_spec(spec), "pages"))) == [0, 3, 6][number]
        with taken(load_spec(spec)) as held:
            Engine(held).catch_up()
    assert public(spec) == public(other)


# two drivers


def test_one_driver_at_a_time(spec: Path) -> None:
    with taken(load_spec(spec)), pytest.raises(StateError, match="another process is running this stream"):
        play(spec, [])


def test_drivers_that_meet_release_one_thing(spec: Path, place: Path) -> None:
    """Where a file system locks nothing: the slower one finds what the quicker one has put."""
    other, expected = undisturbed(spec, place / "undisturbed")
    table, through = BATCHES[0]
    with taken(load_spec(spec)) as held:
        quick, slow = Engine(held), Engine(held)

        def overtaken(job: Job) -> list[dict[str, Any]]:
            done = by_hand([table])(job)
            for number, (later, until) in enumerate(BATCHES):
                quick.advance(by_hand([later], seed=5), number, until, {"id": str(number)})
            return done

        assert slow.advance(overtaken, 0, through, {"id": "0"}) == expected[0]
    assert public(spec) == public(other)
    assert Path(load_spec(spec).engine.home, "mark").exists()
    assert len(list(Path(load_spec(spec).engine.home, "mark").iterdir())) == 3  # and no mark went back


def test_of_drivers_that_read_different_events_the_slower_one_stops(spec: Path, place: Path) -> None:
    other, expected = undisturbed(spec, place / "undisturbed")
    table, through = BATCHES[0]
    with taken(load_spec(spec)) as held:

        def overtaken(job: Job) -> list[dict[str, Any]]:
            Engine(held).advance(by_hand([table]), 0, through, {"id": "0"})
            return by_hand([events(61, seed=99)])(job)

        with pytest.raises(StateError, match="another driver has released batch 0 from other events"):
            Engine(held).advance(overtaken, 0, through, {"id": "0"})
    assert [advance(spec, number) for number in range(3)] == expected
    assert public(spec) == public(other)


def test_a_driver_that_comes_too_late_finds_its_past_gone(spec: Path) -> None:
    advance(spec, 0)
    with taken(load_spec(spec)) as held:

        def overtaken(job: Job) -> list[dict[str, Any]]:
            for number, (later, until) in enumerate([*BATCHES[1:], (BATCHES[0][0], 9)], 1):
                Engine(held).advance(by_hand([later]), number, until, {"id": str(number)})
            return by_hand([BATCHES[1][0]])(job)

        with pytest.raises(TaskFailed, match=r"StateError at job.py"):
            Engine(held).advance(overtaken, 1, 6, {"id": "1"})
    assert len(batches(load_spec(spec))) == 4


def test_the_same_number_again_is_done_already(spec: Path) -> None:
    first = advance(spec, 0)
    before = public(spec), root_files(spec)
    assert advance(spec, 0, dying([], 1)) == first
    assert (public(spec), root_files(spec)) == before


# one realisation


def nothing_is_shown(spec: Path, number: int) -> bool:
    return len(batches(load_spec(spec))) == number and not any(name.startswith("manifest") for name in root_files(spec))


def mixed(one: list[pa.Table], two: list[pa.Table], of_two: int) -> list[pa.Table]:
    """Groups of two realisations of one input: the last `of_two` come from the second."""
    first, second = ({table["part"][0].as_py(): table for table in tables} for tables in (one, two))
    numbers = sorted(first)
    return [(first if number < numbers[len(numbers) - of_two] else second)[number] for number in numbers]


def test_parts_that_saw_different_events_release_nothing(spec: Path, place: Path) -> None:
    _, expected = undisturbed(spec, place / "undisturbed")
    table, order = BATCHES[0][0], random.Random(1)
    for second in (table.slice(1), pa.concat_tables([table, table.slice(3, 1)]), table.slice(0, 0)):

        def half(job: Job, second: pa.Table = second) -> list[dict[str, Any]]:
            parts = mixed(groups(job, [table], order), groups(job, [second], order), 2)
            return [row for part in parts for row in part_task(job)(part).to_pylist()]

        with pytest.raises(EvertallyError, match=r"parts of one job saw different input|part: StateError at tasks.py"):
            advance(spec, 0, half)
        assert nothing_is_shown(spec, 0)
    assert advance(spec, 0) == expected[0]


def test_an_arrow_batch_that_came_twice_to_some_parts_is_noticed(spec: Path) -> None:
    table, order = BATCHES[0][0], random.Random(1)

    def twice(job: Job) -> list[dict[str, Any]]:
        cut = [table.slice(0, 30), table.slice(30)]
        parts = groups(job, cut, order)
        again = [pa.concat_tables([part, part]) if part["part"][0].as_py() == 1 else part for part in parts]
        return [row for part in again for row in part_task(job)(part).to_pylist()]

    with pytest.raises(StateError, match="parts of one job saw different input"):
        advance(spec, 0, twice)
    assert nothing_is_shown(spec, 0)


def test_buckets_that_saw_different_events_release_nothing(place: Path) -> None:
    queries, sections = STREAMS["users"]
    spec = begun(write(place / "spark", *queries, **sections))
    table, order = BATCHES[0][0], random.Random(1)

    def half(job: Job) -> list[dict[str, Any]]:
        buckets = mixed(bucket_groups(job, [table], order), bucket_groups(job, [table.slice(1)], order), 1)
        return [row for part in from_buckets(job, buckets, order) for row in part_task(job)(part).to_pylist()]

    with pytest.raises(TaskFailed, match=r"part: StateError at tasks.py"):
        advance(spec, 0, half)
    assert nothing_is_shown(spec, 0)

    def other_state(job: Job) -> list[dict[str, Any]]:
        """All parts saw one input; the state that a bucket reports is of another."""
        done = {row["part"]: row for row in by_hand([table])(job)}
        lost = {row["part"]: row for row in by_hand([table.slice(1)])(job)}
        return list((done | {-1: lost[-1]}).values())

    with pytest.raises(StateError, match="parts of one job saw different input"):
        advance(spec, 0, other_state)
    assert nothing_is_shown(spec, 0)


def test_every_part_reports_once(spec: Path) -> None:
    for broken in (lambda rows: rows[1:], lambda rows: [*rows, {**rows[0], "part": 10_000}]):
        with pytest.raises(StateError, match="not every part has reported exactly once"):
            advance(spec, 0, lambda job, broken=broken: broken(by_hand([BATCHES[0][0]])(job)))
        assert nothing_is_shown(spec, 0)


def test_payloads_are_those_of_whole_queries(spec: Path) -> None:
    advance(spec, 0)
    assert [tick for tick, _ in payloads(load_spec(spec), "all")] == [1, 2, 3]
    assert list(payloads(load_spec(spec), "pages")) == []
