"""A live stream: batches as Spark cuts them, ticks as the declared clock and the operator close them.

Which events belong to batch N, Spark has fixed in its log before anything is computed; what N closes, `closes/N` fixes.
Nothing that is computed from events decides about a tick: no watermark, no limit by rows (docs/theory/distributed.md
4). A clock source gives a batch at every trigger, also when nothing happens: idle ticks are released, too.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Self

from evertally.errors import ConfigurationError, EvertallyError, HorizonExceeded, StateError
from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec
from evertally.secret import Secret
from evertally.spark.batch import check_frame, checked_plan
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.failures import failure_of, silence_pyspark, withheld
from evertally.spark.inputs import Known, tables_of, told
from evertally.spark.plans import CONSTANT, DISTINCT, Plan
from evertally.spark.protections import check
from evertally.spark.readers import reader_options
from evertally.spark.reading import BEAT
from evertally.spark.root import Log, Record, written
from evertally.spark.running import numbered, run_rows
from evertally.spark.sources import files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_SOON = 0.05  # seconds between two looks


def release_stream(
    events: DataFrame,
    spec: str | os.PathLike[str],
    *,
    every: str = "5 seconds",
    look_up: Sequence[DataFrame] = (),
    accept: Collection[str] = (),
) -> LiveStream:
    """Releases a stream of Spark until it is stopped. `every`: how often a batch is cut; a batch takes about a CPU
    second, however small it is, so ticks of less than ten seconds are for one process (`evertally serve`).

    With `close = "request"` events enter the tick of their own time, and `close(time)` says when ticks are over; with
    "wall" a tick closes in the first batch that was cut `grace` seconds after its end. `look_up` names the data
    frames in which events are looked up.
    """
    check_frame(events)
    settled = load_spec(spec)
    protections = check(events.sparkSession, accept).as_dict()
    plan = check_stream(events, settled, look_up)
    return LiveStream(plan, settled, every, protections)


class LiveStream(Secret):
    """A stream that runs. Use it in a `with` block, or `stop` it; who does neither holds the key until the end."""

    def __init__(self, plan: Plan, spec: StreamSpec, every: str, protections: Record) -> None:
        self.spec, self._plan = spec, plan
        self._failed: EvertallyError | None = None
        self._asked: list[tuple[int, int]] = []  # (tick, number of the first batch of Spark that may close it)
        self._lock = threading.Lock()
        self._checkpoint = _checkpoint(spec)
        with ExitStack() as stack:
            held = stack.enter_context(taken(spec))
            self._engine, self._log = Engine(held, protections), held.log
            self._engine.catch_up()
            check_checkpoint(held.log, self._checkpoint)
            self._known = Known(held.log)
            silence_pyspark()
            with withheld("the start of the stream"):
                self.query = self._started(plan.frame, every)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def released(self) -> int:
        """The last tick that is released."""
        return self._engine.through

    @property
    def active(self) -> bool:
        """Whether it still runs. One that has stopped by itself says why in `failed`."""
        found: bool = self.query.isActive
        return found

    @property
    def failed(self) -> EvertallyError | None:
        """What it has stopped by; None while it runs, and of one that was stopped."""
        if self._failed is None and not self.active:
            error = self.query.exception()
            return None if error is None else failure_of(error, "the stream")
        return self._failed

    def close(self, until: object, *, wait: float | None = None) -> int:
        """Says that all ticks up to a time are over, and waits until they are released; gives the last one.

        All that the source had when this was called is in the batch that closes them. Raises why the stream stopped, if
        it does; TimeoutError after `wait` seconds, if any are given, and the request stays.
        """
        if self.spec.clock.close != "request":
            raise ConfigurationError(
                'ticks of this stream close by the clock; [clock] close = "request" lets you say so'
            )
        tick = self.spec.clock.tick_before(until)
        if self.spec.last_tick is not None and tick > self.spec.last_tick:
            raise HorizonExceeded(f"tick {tick} is beyond {self.spec.last_tick}, the last one of this stream")
        with self._lock:
            # The batch that Spark is planning now may have looked at its source before this call: not that one.
            self._asked.append((tick, _latest(self._checkpoint / "offsets") + 2))
        end = None if wait is None else time.monotonic() + wait
        while self.released < tick:
            if not self.active:
                raise self.failed or StateError("the stream was stopped before these ticks were released")
            if end is not None and time.monotonic() > end:
                raise TimeoutError("these ticks are not released yet; the request stays")
            time.sleep(_SOON)
        return tick

    def stop(self) -> None:
        """Lets go of it. A batch that was begun is finished by the next start."""
        with withheld("the end of the stream"):
            self.query.stop()
        self._stack.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the end of the stream; raises what it stopped by."""
        try:
            ended = self.query.awaitTermination(seconds) if seconds is not None else self.query.awaitTermination()
        except Exception as error:
            problem = self.failed or failure_of(error, "the stream")
        else:
            return True if seconds is None else bool(ended)
        raise problem

    def _started(self, events: DataFrame, every: str) -> StreamingQuery:
        writer = (
            _with_clock(numbered(events, self.spec.columns()))
            .writeStream.foreachBatch(self._each)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=every)
        )
        return writer.start()

    def _each(self, batch: DataFrame, number: int) -> None:
        problem: EvertallyError
        try:
            self._play(batch, number)
            return
        except EvertallyError as error:
            problem = error
        except Exception as error:
            problem = failure_of(error, f"batch {number}")
        self._failed = problem
        raise problem

    def _play(self, batch: DataFrame, number: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not query:
            raise StateError("this batch belongs to no query of Spark that has a name of its own; stopped")
        first = _bind(self._log, query, self._engine.last + 1)

        def looked_at() -> Record:
            found = _envelope(self._checkpoint, number) | {"query": query}
            tables = tables_of(self._plan)
            return found | {"beside": tables} if tables else found

        cut: int = _offsets(self._checkpoint, number)["cut"]
        self._known.add(first + number, looked_at())
        stamp = None if self.spec.clock.column is not None else self._tick_at(cut)
        play, through = partial(run_rows, batch, [*self.spec.columns(), BEAT]), self._through(number, cut)
        self._engine.advance(play, first + number, through, looked_at(), stamp, looked_at)

    def _through(self, number: int, cut: int) -> int:
        """What batch `number`, cut at this moment, closes."""
        if self.spec.clock.close == "wall":
            through = self._tick_at(cut - int(self.spec.engine.grace * 1_000_000)) - 1
        else:
            with self._lock:
                through = max((tick for tick, since in self._asked if since <= number), default=0)
        last = self.spec.last_tick
        return max(0, through if last is None else min(through, last))

    def _tick_at(self, moment: int) -> int:
        return max(1, self.spec.clock.open_tick(moment))


def _with_clock(rows: DataFrame) -> DataFrame:
    """The events, and a row a second that is none: an idle source would run no batch at all."""
    from pyspark.sql.functions import lit

    clock = rows.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    nothing = [lit(None).cast(field.dataType).alias(field.name) for field in rows.schema.fields]
    return rows.withColumn(BEAT, lit(False)).unionByName(clock.select(*nothing, lit(True).alias(BEAT)))


# The checkpoint: what Spark says a batch is, and what it does not say


def _checkpoint(spec: StreamSpec) -> Path:
    root = spec.engine.root.removeprefix("file://")
    if "://" in root:
        raise ConfigurationError(f"{spec.path}: [engine] the checkpoint of a stream needs a root that is a folder")
    return Path(root) / "checkpoint"


def _bound(log: Log) -> Record | None:
    data = log.root.read("query")
    found: Record | None = None if data is None else json.loads(data)
    return found


def check_checkpoint(log: Log, checkpoint: Path) -> None:
    """Refuses a root and a checkpoint of which one does not know the other. A driver that died before its first batch
    leaves a checkpoint that has planned that one and finished none: nothing came of it."""
    if _bound(log) is not None:
        return
    if _latest(checkpoint / "offsets") > 0 or _latest(checkpoint / "commits") >= 0:
        raise StateError(f"{checkpoint} has a checkpoint, and the root knows none: one of them is not of this stream")
    last = log.last()
    closed = log.closes(last + 1) or (log.closes(last) if last >= 0 else None)
    if closed is not None and "id" in closed["envelope"]:
        raise StateError(
            "this root takes batches of files; a stream beside them would count what lies in its folder once more. A "
            "stream needs a root and a key of its own"
        )
    if closed is not None and "query" in closed["envelope"]:
        raise StateError(
            "the root has batches of a stream of Spark, and does not say of which: the file `query` in it is missing. "
            "Bring the root back; a new checkpoint would count all that its source still has once more"
        )


def _bind(log: Log, query: str, first: int) -> int:
    """The number of the first batch of this query of Spark: a root has one query, for ever. A new checkpoint would give
    other events the numbers of old batches."""
    found = json.loads(log.root.put_new("query", written({"id": query, "first": first})))
    if found["id"] != query:
        raise StateError(
            "this state belongs to another checkpoint: that was deleted, or is a copy of another stream's. Bring it "
            "back (it lies in the root); other events would come under the numbers of batches that are released"
        )
    return int(found["first"])


def _latest(folder: Path) -> int:
    """The last batch that Spark has planned."""
    return max((int(name) for name in _listed(folder) if name.isdigit()), default=-1)


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _envelope(checkpoint: Path, number: int) -> Record:
    """What a batch is, as Spark's log has it, with sizes and times of files, which it has not."""
    offsets = _offsets(checkpoint, number)
    before = _offsets(checkpoint, number - 1) if number else None
    files = []
    for source, offset in enumerate(offsets["sources"]):
        now = _log_offset(offset)
        if now is not None:
            then = None if before is None else _log_offset(before["sources"][source])
            for path in _files(checkpoint / "sources" / str(source), -1 if then is None else then, now):
                files.append(told(path))
    return {"offsets": offsets["sources"], "files": files}


def _offsets(checkpoint: Path, number: int) -> Record:
    """Where the sources of a batch end, and when it was cut, in microseconds."""
    try:
        version, metadata, *sources = (checkpoint / "offsets" / str(number)).read_text().splitlines()
        if version != "v1":
            raise StateError(f"the checkpoint of Spark is of a format {version!r} that is not known here; stopped")
        return {"cut": 1000 * int(json.loads(metadata)["batchTimestampMs"]), "sources": sources}
    except (OSError, ValueError, KeyError):
        raise StateError(
            f"the checkpoint of Spark says nothing about its batch {number}, or is damaged; stopped"
        ) from None


def _log_offset(offset: str) -> int | None:
    """The place of a batch in the log of a source of files; None of other sources."""
    try:
        found = json.loads(offset)
        return int(found["logOffset"]) if isinstance(found, dict) and "logOffset" in found else None
    except ValueError:
        return None


def _files(folder: Path, after: int, through: int) -> list[str]:
    """The files of some entries of the log of a source: each is a file of its own until Spark joins old ones."""
    names = _listed(folder)
    joined = sorted(int(name.removesuffix(".compact")) for name in names if name.endswith(".compact"))
    found = []
    for entry in range(after + 1, through + 1):
        whole = next((number for number in joined if number >= entry), None)
        name = str(entry) if str(entry) in names else None if whole is None else f"{whole}.compact"
        if name is None:
            raise StateError("the checkpoint of Spark has lost the files of a batch; bring it back")
        for line in (folder / name).read_text().splitlines()[1:]:
            said = json.loads(line)
            if said["batchId"] == entry:
                found.append(said["path"])
    return sorted(found)


# What a stream must not be


_BY_ROWS = ("maxoffsetspertrigger", "minoffsetspertrigger", "maxbytespertrigger", "maxrowspertrigger")


def check_stream(events: DataFrame, spec: StreamSpec, look_up: Sequence[DataFrame] = ()) -> Plan:
    """Refuses streams in which one event could move another, or which do not come again as they were."""
    if not events.isStreaming:
        raise ConfigurationError("this is a data frame of a batch job: use release_batch, or spark.readStream")
    if spec.clock.close == "wall" and spec.clock.integer:
        raise ConfigurationError(f'{spec.path}: [clock] a clock of integers closes on request: close = "request"')
    plan = checked_plan(events, spec, look_up)
    steps = plan.steps
    with withheld("the plan"):
        names = {step.kind for step in steps}
        keeping = sorted(step.kind for step in steps if step.kind in DISTINCT and step.of_events)
        options = {name: value for step in steps for name, value in reader_options(step).items()}
    if any(step.kind not in CONSTANT and files_of(step) is None for step in plan.tables):
        raise ConfigurationError(
            "what a stream looks events up in must be files, read by their place: of a table of a catalog, or rows in "
            "memory, nobody could tell whether they are the same when a batch is tried again"
        )
    with withheld("the plan"):
        live = [(step, reader_options(step).get("path")) for step in plan.events]
        twice = any(
            one.node.sameResult(other.node) or (path is not None and path == same)
            for (one, path), (other, same) in combinations(live, 2)
        )
    if twice:
        raise ConfigurationError(
            "one stream is read twice (union): each of its events would come twice. Choose events in one filter"
        )
    if "EventTimeWatermark" in names:
        raise ConfigurationError(
            "take withWatermark away: it is the largest time stamp of the data, and one event would close ticks for "
            "all others. The clock of the spec closes ticks"
        )
    if keeping:
        raise ConfigurationError(
            f"{keeping[0]}: Spark would keep events in the clear, to compare them with later ones. Hand over single "
            "events"
        )
    limits = [name for name in _BY_ROWS if name in options]
    if spec.clock.close == "wall" and "maxfilespertrigger" in options:
        limits.append("maxfilespertrigger")
    if limits:
        raise ConfigurationError(
            f"take {', '.join(limits)} away: with such a limit one event more pushes another into the next batch, that "
            "one a third, and so on. Files may be limited where ticks close on request"
        )
    if options.get("failondataloss", "true").lower() != "true":
        raise ConfigurationError("failOnDataLoss must be true: a stream that has lost events must not go on silently")
    return plan
