"""What a stream on Spark refuses: data frames that are not the same when they are read again, and checkpoints, inputs
and drivers that would bring other events under numbers that are taken. In one real application."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign import SCHEMA, Size, made_events, write_spec
from one_process import assert_same, in_one_process

from evertally.errors import ConfigurationError, EvertallyError, StateError
from evertally.runtime import load_spec
from evertally.spark import LiveStream, release_batch, release_stream
from evertally.spark.public import batches
from evertally.spark.root import Record
from waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TINY = Size(columns=40, width=16, events=300, users=50)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """The spec of a stream that has not begun; its input goes into the folder beside it."""
    (tmp_path / "input").mkdir()
    return write_spec(tmp_path / "stream", TINY, horizon=20)


def put(stream: Path, tick: int, seed: int = 0) -> Path:
    """A file of events of a tick."""
    path = stream.parents[1] / f"input/{tick}.parquet"
    hidden = path.with_name(f".{path.name}")
    pq.write_table(made_events(TINY, tick, 100 * seed + tick), hidden)
    hidden.replace(path)
    return path


def live(spark: SparkSession, stream: Path) -> LiveStream:
    events = spark.readStream.schema(SCHEMA).option("maxFileAge", "100000d").parquet(str(stream.parents[1] / "input"))
    return release_stream(events, stream, every="50 milliseconds")


def place(stream: Path, name: str) -> Path:
    return Path(getattr(load_spec(stream).engine, name))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def closed(stream: Path) -> list[Record]:
    return [json.loads(path.read_bytes())["said"] for path in sorted(place(stream, "root").glob("closes/*"))]


def assert_as_one_process(stream: Path) -> None:
    """All that is shown is what one process makes of the very same batches; each file is in one of them."""
    played = []
    for about, record in zip(batches(load_spec(stream)), closed(stream), strict=False):
        assert about["batch"] == record["batch"]
        said = record["envelope"].get("input", record["envelope"])
        files = [pq.read_table(path) for path, *_ in said["files"]]
        nothing = made_events(TINY, 1, 1).slice(0, 0)
        played.append((pa.concat_tables([nothing, *files]), record["through"]))
    expected = in_one_process(stream, stream.parents[1] / "one", played)
    assert expected
    assert assert_same(stream, expected) > len(expected) * TINY.columns


# Data frames


Frame = Callable[["SparkSession", str], "DataFrame"]


def _read(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.schema(SCHEMA).parquet(folder)


def _of(options: dict[str, str], expression: str = "*") -> Frame:
    return lambda spark, folder: (
        spark.readStream.schema(SCHEMA)
        .option("maxFileAge", "100000d")
        .options(**options)
        .parquet(folder)
        .selectExpr(*expression.split("; "))
    )


_ALL = "time; user; page; item"
_STREAMS: dict[str, tuple[Frame, str]] = {
    "rand": (_of({}, "time; user; cast(40 * rand() as long) page; item"), "not the same when it is computed again"),
    "clock": (
        _of({}, "unix_timestamp(current_timestamp()) time; user; page; item"),
        "not the same when it is computed again",
    ),
    "uuid": (_of({}, "time; user; page; uuid() item"), "not the same when it is computed again"),
    "watermark": (
        lambda spark, folder: _of({}, f"{_ALL}; cast(time as timestamp) t")(spark, folder).withWatermark("t", "1 day"),
        "withWatermark",
    ),
    "duplicates": (lambda spark, folder: _of({})(spark, folder).dropDuplicates(["user"]), "Deduplicate"),
    "sums": (lambda spark, folder: _of({})(spark, folder).groupBy("time", "user", "item").agg({"page": "max"})
             .withColumnRenamed("max(page)", "page"), "Aggregate"),
    "bytes": (_of({"maxBytesPerTrigger": "1000"}), "maxbytespertrigger"),
    "no user": (_of({}, "time; page; item"), "no column 'user'"),
    "decimals": (_of({}, "time; user; cast(page as decimal(10, 2)) page; item"), "page"),
    "lists": (_of({}, "time; user; page; array(array(item)) item"), "item"),
    "flags as times": (_of({}, "true time; user; page; item"), "time"),
    "batch": (lambda spark, folder: spark.createDataFrame([], SCHEMA), "release_batch"),
}  # fmt: skip


@pytest.mark.parametrize(("frame", "words"), _STREAMS.values(), ids=_STREAMS.keys())
def test_data_frames_that_no_stream_can_be(spark: SparkSession, stream: Path, frame: Frame, words: str) -> None:
    events = frame(spark, str(stream.parents[1] / "input"))
    with pytest.raises(ConfigurationError, match=words.replace("(", r"\(")):
        release_stream(events, stream)
    assert os.listdir(stream.parent) == [stream.name]  # nothing has begun


def test_files_may_be_limited_where_ticks_close_on_request_only(spark: SparkSession, stream: Path) -> None:
    wall = stream.with_name("wall.toml")
    text = (
        stream.read_text()
        .replace('close = "request"', 'close = "wall"')
        .replace("start = 0", "start = 2026-01-01T00:00:00Z")
    )
    wall.write_text(text.replace("tick = 1\n", 'tick = "1h"\n'))
    one_file = (
        spark.readStream.schema(SCHEMA)
        .option("maxFileAge", "100000d")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(stream.parents[1] / "input"))
    )
    with pytest.raises(ConfigurationError, match="maxfilespertrigger"):
        release_stream(one_file, wall)
    with release_stream(one_file, stream, every="50 milliseconds") as running:
        assert running.close(1, wait=PATIENCE) == 1


_BATCHES: dict[str, tuple[Frame, str]] = {
    "rand": (
        lambda spark, folder: _read(spark, folder).selectExpr("time", "user", "page", "uuid() item"),
        "not the same when it is computed again",
    ),
    "some": (lambda spark, folder: _read(spark, folder).where("rand() < 0.5"), "not the same"),
    "any five": (lambda spark, folder: _read(spark, folder).limit(5), "follows from other rows"),
    "stream": (_of({}), "release_stream"),
    "no files": (lambda spark, folder: spark.createDataFrame([], SCHEMA), "snapshot="),
    "no user": (lambda spark, folder: _read(spark, folder).drop("user"), "no column 'user'"),
}  # fmt: skip


@pytest.mark.parametrize(("frame", "words"), _BATCHES.values(), ids=_BATCHES.keys())
def test_data_frames_that_no_batch_can_be(spark: SparkSession, stream: Path, frame: Frame, words: str) -> None:
    put(stream, 1)
    with pytest.raises(ConfigurationError, match=words):
        release_batch(frame(spark, str(stream.parents[1] / "input")), stream, batch="a", until=1)
    assert os.listdir(stream.parent) == [stream.name]


# Checkpoints


def test_checkpoints_that_are_not_the_one_that_ran(spark: SparkSession, stream: Path) -> None:
    put(stream, 1)
    with live(spark, stream) as running:
        running.close(1)
        with pytest.raises(StateError, match="another process is running"):
            live(spark, stream)
        put(stream, 2)
        running.close(2)
    checkpoint, shown = place(stream, "root") / "checkpoint", contents(place(stream, "public"))
    kept = checkpoint.with_name("kept")
    shutil.copytree(checkpoint, kept)

    shutil.rmtree(checkpoint)  # deleted: Spark would begin with batch 0, and all files again
    with live(spark, stream) as running, pytest.raises(StateError, match="another checkpoint"):
        running.wait()
    assert contents(place(stream, "public")) == shown

    shutil.rmtree(checkpoint)
    shutil.copytree(kept, checkpoint)
    last = len(closed(stream)) - 1
    older = last - 1  # begun and not committed, as far as this copy knows; what came after it, it does not know
    for number in range(older, last + 1):
        _forget(checkpoint / "commits", number)
    _forget(checkpoint / "offsets", last)
    put(stream, 3)  # an idle batch that is planned anew would be the same one, and may go on
    before = contents(place(stream, "root") / "manifest")
    with live(spark, stream) as running:
        with pytest.raises(StateError, match="it is released, and those events would be lost"):
            running.wait()
        assert f"batch {last} comes from another input" in str(running.failed)  # so batch `older` was handed back
    assert (checkpoint / f"commits/{older}").exists()
    assert contents(place(stream, "root") / "manifest") == before
    assert contents(place(stream, "public")) == shown

    shutil.rmtree(checkpoint)
    shutil.copytree(kept, checkpoint)
    with live(spark, stream) as running:
        running.close(3)
    assert_as_one_process(stream)


def _forget(folder: Path, number: int) -> None:
    for name in (str(number), f".{number}.crc"):
        (folder / name).unlink(missing_ok=True)


def test_input_that_is_replaced_before_the_manifest(spark: SparkSession, stream: Path) -> None:
    path = put(stream, 1)
    obstacle = place(stream, "root") / "state"
    obstacle.parent.mkdir()
    obstacle.write_bytes(b"")  # no task can write its state
    words = r"batch 0: Spark stopped .* in part: StateError at shelf.py:\d+ \(a file of the root cannot be .* written"
    with live(spark, stream) as running, pytest.raises(StateError, match=words):
        running.wait()
    obstacle.unlink()
    assert [len(record["envelope"]["files"]) for record in closed(stream)] == [1]
    data, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    put(stream, 1, seed=1)
    with live(spark, stream) as running, pytest.raises(StateError, match="nothing of it is released yet"):
        running.wait()
    assert not place(stream, "public").exists() or not os.listdir(place(stream, "public"))
    path.write_bytes(data)
    os.utime(path, ns=times)
    with live(spark, stream) as running:
        running.close(1)
    assert_as_one_process(stream)


# Two drivers


def on_another_machine(stream: Path) -> Path:
    """The same stream with a key file and a lock of its own: nothing but the log keeps the two apart."""
    engine, folder = load_spec(stream).engine, stream.parents[1] / "elsewhere"
    folder.mkdir()
    for path in stream.parent.iterdir():
        if path.is_file():
            shutil.copy(path, folder / path.name)
    named = {name: str(getattr(engine, name)) for name in ("root", "home", "public")}
    copy = folder / stream.name
    text = copy.read_text()
    lines = "".join(f'{name} = "{value}"\n' for name, value in named.items())
    copy.write_text(text.replace("[engine]\n", f"[engine]\n{lines}"))
    return copy


def test_two_drivers_on_two_machines(spark: SparkSession, stream: Path) -> None:
    """Of one batch there is one content; who comes with another is stopped, and who comes with the same may go on."""
    first = put(stream, 1)
    read = spark.read.schema(SCHEMA)
    release_batch(read.parquet(str(first)), stream, batch="1", until=1)
    other = on_another_machine(stream)
    same = str(put(stream, 2))
    found = _at_once(
        lambda: release_batch(read.parquet(same), stream, batch="2", until=2),
        lambda: release_batch(read.parquet(same), other, batch="2", until=2),
    )
    assert found[0] == found[1]
    files = [str(put(stream, tick)) for tick in (3, 4)]
    done = _at_once(
        lambda: release_batch(read.parquet(files[0]), stream, batch="3", until=3),
        lambda: release_batch(read.parquet(files[1]), other, batch="4", until=3),
    )
    assert sum(isinstance(one, StateError) for one in done) <= 1  # both, if one was over before the other began
    for number, one in enumerate(done):
        if isinstance(one, StateError):
            who = (stream, other)[number]
            release_batch(read.parquet(files[number]), who, batch=str(3 + number), until=4)
    assert_as_one_process(stream)


def _at_once(*tasks: Callable[[], Any]) -> list[Any]:
    found: list[Any] = [None] * len(tasks)
    ready = threading.Barrier(len(tasks))

    def run(number: int) -> None:
        ready.wait()
        try:
            found[number] = tasks[number]()
        except EvertallyError as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
