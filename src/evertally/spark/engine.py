"""One batch after the other, for batch jobs and streams alike: fix what it closes, compute it, say that it counts, show
it. The order of these is what exactly once rests on (docs/theory/distributed.md 3)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from evertally.errors import HorizonExceeded, StateError
from evertally.runtime import load_spec
from evertally.secret import Secret
from evertally.spark.beginning import Taken, certified, remember, taken
from evertally.spark.failures import withheld
from evertally.spark.inputs import same_events
from evertally.spark.job import Job
from evertally.spark.public import check_shown, publish
from evertally.spark.root import NO_CHAIN, Record, chained, written
from evertally.spark.ways import parts_of

_NOT_YET = "nothing of it is released yet, so if it cannot come back, `evertally spark take-back SPEC`"

Run = Callable[[Job], list[dict[str, Any]]]


class Engine(Secret):
    """A stream that this driver plays."""

    def __init__(self, held: Taken, protections: Record | None = None) -> None:
        self._taken, self._log, self.spec = held, held.log, held.spec
        self._engine = certified(held.stand, protections)

    @property
    def last(self) -> int:
        """The last batch that is released, -1 if there is none."""
        return self._log.last()

    @property
    def through(self) -> int:
        """The last tick that is released."""
        record = self._log.manifest(self.last) if self.last >= 0 else None
        return 0 if record is None else int(record["through"])

    def catch_up(self) -> None:
        """Finishes what a driver left that died after a manifest: nothing is computed again."""
        last = self._log.check()
        check_shown(self._taken)
        if last >= 0:
            record = self._log.manifest(last)
            assert record is not None
            self._finish(record)

    def take_back(self) -> Any:
        """Takes back the batch that was begun and is not released; gives the id of its input. Other events may come
        under its number: what attempts of it have written stays under the root, where nobody reads it."""
        self.catch_up()
        batch = self.last + 1
        closed = self._log.closes(batch)
        if closed is None:
            raise StateError("no batch was begun that is not released: there is nothing to take back")
        self._log.take_back(batch)
        return closed["envelope"].get("id", batch)

    def advance(
        self,
        run: Run,
        batch: int,
        through: int,
        envelope: Record,
        stamp: int | None = None,
        again: Callable[[], Record] | None = None,
    ) -> Record:
        """Releases the ticks up to `through`; with a manifest the batch is over, and nothing is computed again.

        `run` plays a job over the events of the batch: the rows that its parts report. `envelope`: what the input is,
        as far as one can tell from outside. Under one number it never changes: other events would meet the same noise.
        `again` looks at it once more, after the job: it may have been replaced between the look and the reading.
        """
        envelope = json.loads(written(envelope))  # as it will be read again: a tuple is a list from then on
        record = self._log.manifest(batch)
        closed = self._log.closes(batch)
        if closed is not None and not (
            same_events(closed["envelope"], envelope) if record else closed["envelope"] == envelope
        ):
            raise StateError(
                f"batch {batch} comes from another input than before (other files, sizes, times or offsets). Bring the "
                "input back as it was: " + ("it is released, and those events would be lost" if record else _NOT_YET)
            )
        if record is not None:
            if closed is None:
                raise StateError(
                    f"closes/{batch:08d} is missing under the root: batch {batch} is released, and nothing says from "
                    "which input. Bring the root back; events of another would be lost"
                )
            self._finish(record)
            return record
        last = self._log.check()
        if batch != last + 1:
            raise StateError(
                f"batch {batch} does not follow batch {last}, the last that this root has: the checkpoint is not the "
                "one of this state; stopped"
            )
        before = self._log.manifest(last) if last >= 0 else None
        if before is not None:
            self._finish(before)  # its driver may have died after the manifest
        opened = 1 if before is None else before["through"] + 1
        if self.spec.last_tick is not None and through > self.spec.last_tick:
            raise HorizonExceeded(f"tick {through} is beyond {self.spec.last_tick}, the last one of this stream")
        asked = {
            "batch": batch,
            "opened": opened,
            "through": max(through, opened - 1),
            "width": self.spec.engine.slice_width,
            "release": self.spec.engine.release,
            "stamp": None if stamp is None else max(stamp, opened),  # a clock may go back
            "envelope": envelope,
        }
        closed = self._log.close(batch, asked)
        if (closed["envelope"], closed["opened"]) != (envelope, opened):
            raise StateError(f"another driver has begun batch {batch} with another input; stopped")
        if (closed["width"], closed["release"]) != (asked["width"], asked["release"]):
            raise StateError(
                f"batch {batch} was begun with slice_width = {closed['width']} and release = {closed['release']!r}: "
                "finish it with these, and change them before the next"
            )
        record = self._committed(run, closed, before, again)
        self._finish(record)
        return record

    def _committed(self, run: Run, closed: Record, before: Record | None, again: Callable[[], Record] | None) -> Record:
        job = self._job(closed, before)
        with withheld(f"batch {closed['batch']}"):
            done = run(job)
        parts = {row["part"]: row for row in done}
        buckets = range(job.stand.buckets) if job.stand.by_user else range(0)
        if sorted(parts) != sorted([*(-1 - bucket for bucket in buckets), *(part.number for part in job.parts)]):
            raise StateError(f"batch {job.batch}: not every part has reported exactly once; nothing was released")
        played = [parts[part.number] for part in job.parts]
        alike = {(bytes(row["seen"]), bytes(row["source"] or b"")) for row in played}
        told = {bytes(parts[-1 - bucket]["source"]) for bucket in buckets}
        if len(alike) != 1 or told - {source for _, source in alike}:
            raise StateError(
                f"batch {job.batch}: parts of one job saw different input: a machine was lost, and what was read again "
                "was not what it had been. Nothing was released; run it again"
            )
        if again is not None and again() != closed["envelope"]:
            raise StateError(
                f"batch {job.batch}: the input was replaced while it was read. Nothing was released; bring it back as "
                "it was"
            )
        chain = NO_CHAIN if before is None else before["chain"]
        record: Record = {
            "batch": job.batch,
            "opened": job.opened,
            "through": job.through,
            "before": chain,
            "parts": [[part.query, part.first, part.stop] for part in job.parts],
            "states": [row["state"] for row in played],
            "releases": [row["release"] for row in played],
            "values": [bytes(row["values"]).hex() for row in played],
            "users": [parts[-1 - bucket]["state"] for bucket in buckets],
            "release": closed["release"],
            "turn": closed["turn"],
        }
        record["chain"] = chained(chain, record)
        return self._log.commit(record)

    def _job(self, closed: Record, before: Record | None) -> Job:
        stand = self._taken.stand
        states, users = {}, {}
        if before is not None:
            states = {tuple(place): name for place, name in zip(before["parts"], before["states"], strict=True)}
            users = dict(enumerate(before["users"]))
        return Job(
            stand=stand,
            batch=closed["batch"],
            opened=closed["opened"],
            through=closed["through"],
            stamp=closed["stamp"],
            parts=tuple(parts_of(list(stand.ways), closed["width"])),
            states=states,
            users=users,
        )

    def _finish(self, record: Record) -> None:
        """What comes after a manifest: the mark, what readers see, and the end of states that nobody needs."""
        self._log.mark(record)
        remember(self._taken, record["through"])
        publish(self._taken, record, self._engine)
        root, last = self._log.root, record["batch"] - self.spec.engine.keep
        for folder in ("state", "users", "releases"):
            # With what dead attempts left there: other contents under the same noise should not lie about.
            for batch in [name for name in root.names(folder) if name.isdecimal() and int(name) <= last]:
                root.clear(f"{folder}/{batch}")


def take_back(spec: str | os.PathLike[str]) -> Any:
    """Takes back the batch that was begun and is not released, so that another input may come in its place: where a
    file cannot be read, or is gone. Gives its id (of a live stream its number).

    Nothing of it was shown. A driver that is still at work on it may be quicker; then it is released, and stays so.
    """
    settled = load_spec(spec)
    if not settled.key_file.exists():
        raise StateError(f"the stream of {settled.path} has not begun on Spark")
    with taken(settled) as held:
        return Engine(held).take_back()
