"""A batch job: a data frame of events in, released ticks out."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evertally.errors import ConfigurationError, StateError
from evertally.runtime import load_spec
from evertally.runtime.input.arrow_columns import is_text
from evertally.runtime.input.envelope import BatchRefused, check_type, check_use
from evertally.runtime.spec import StreamSpec
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.failures import withheld
from evertally.spark.inputs import counted_again, input_of
from evertally.spark.plans import Plan, check_plan
from evertally.spark.protections import check
from evertally.spark.readers import check_readers
from evertally.spark.root import Record
from evertally.spark.running import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def release_batch(
    events: DataFrame,
    spec: str | os.PathLike[str],
    *,
    batch: str,
    until: object,
    look_up: Sequence[DataFrame] = (),
    snapshot: str | None = None,
    accept: Collection[str] = (),
) -> Record:
    """Takes the events of a data frame in, and releases all ticks that are over at `until`.

    `batch` is an id of your choosing: the same id with the same input is done already, with another input refused. The
    input is told by its files, their sizes and times; what has none (a table, a query) is told by `snapshot`, a text
    that changes when its rows do. `look_up` names the data frames in which events are looked up by a join or a
    subquery: whatever is not in it are events. Those of later ticks wait; late ones enter the first tick that is not
    released. Returns what was closed: batch, opened, through, chain.
    """
    check_frame(events)
    for name, said in (("batch", batch), ("snapshot", "none" if snapshot is None else snapshot)):
        if not isinstance(said, str) or not said:
            raise ConfigurationError(f"{name} must be a text that is not empty, the same for the same input")
    settled = load_spec(spec)
    through = settled.clock.tick_before(until)
    if settled.clock.column is None:
        raise ConfigurationError(f"{settled.path}: [clock] a batch job needs the column that says when events happened")
    if events.isStreaming:
        raise ConfigurationError("this is a data frame of a stream: use release_stream, or spark.read")
    protections = check(events.sparkSession, accept).as_dict()
    plan = checked_plan(events, settled, look_up)

    def looked_at() -> Record:
        return {"id": batch, "input": input_of(plan, snapshot)}

    envelope = looked_at()
    with taken(settled) as held:
        engine = Engine(held, protections)
        engine.catch_up()
        number = _number(engine, held.log, envelope)
        return engine.advance(partial(run, events), number, through, envelope, again=looked_at)


def _number(engine: Engine, log: Any, envelope: Record) -> int:
    """The number of a batch by its id: that under which it was begun, or the next. What was counted under another id is
    refused: each event of it would count twice, and be charged for once."""
    bound = log.root.read("query")
    if bound is not None:
        raise StateError(
            "this root is fed by a stream of Spark; it takes no batches of files beside it"
            + (". Nothing of it is released: take the root away, and begin anew" if engine.last < 0 else "")
        )
    last = engine.last
    for number in range(last + 2):
        closed = log.closes(number)
        if closed is None and number <= last:
            raise StateError(
                f"closes/{number:08d} is missing under the root: batch {number} is released, and nothing says from "
                "which input. Bring the root back; this one might be the same, and count twice"
            )
        if closed is None:
            return number
        if "query" in closed["envelope"]:
            raise StateError("this root is fed by a stream of Spark; it takes no batches of files beside it")
        earlier = closed["envelope"]
        if earlier.get("id") == envelope["id"]:
            return number
        if why := counted_again(envelope["input"], earlier.get("input", {}), earlier.get("id")):
            raise StateError(why)
    raise StateError(
        f"batch {earlier.get('id')!r} was begun and not finished: run it again first, with the same input. If that "
        "cannot come back, or cannot be read: `evertally spark take-back SPEC`"
    )


def check_frame(events: object) -> None:
    """Refuses what is no data frame of Spark."""
    if not hasattr(events, "isStreaming"):
        raise ConfigurationError("the events must be a data frame of Spark: spark.read, spark.readStream, spark.table")


def checked_plan(events: DataFrame, spec: StreamSpec, look_up: Sequence[DataFrame]) -> Plan:
    """Refuses a data frame without the columns of the spec, with types that they cannot have, whose rows follow from
    other rows, or are not the same when they are computed again."""
    known = {field.name: field.dataType for field in events.schema.fields}
    for name in spec.columns():
        if name.startswith("evertally_"):
            raise ConfigurationError(f"{spec.path.name}: names that begin with evertally_ are taken; rename {name!r}")
        if name not in known:
            raise ConfigurationError(f"the data frame has no column {name!r}, which {spec.path.name} names")
        if events.columns.count(name) > 1:
            raise ConfigurationError(f"the data frame has two columns {name!r}: rename one of them")
    if not isinstance(look_up, Sequence) or any(getattr(table, "isStreaming", True) for table in look_up):
        raise ConfigurationError("look_up takes a list of data frames that stand still: look_up=[table]")
    with withheld("the plan"):
        plan = Plan(events, look_up)
    check_plan(plan)
    found_in_records = check_readers(plan, spec)
    for name in spec.columns():
        try:
            kind = _arrow_type(known[name])
            # A text is read as a cell of CSV is; but where records decide what is one, it is another type for all.
            (check_use if is_text(kind) and not found_in_records else check_type)(spec, name, kind)
        except TypeError:
            raise ConfigurationError(f"{spec.path.name}: column {name!r} has a type that no query reads") from None
        except BatchRefused as problem:
            raise ConfigurationError(f"{spec.path.name}: {problem}") from None
    return plan


def _arrow_type(kind: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except TypeError:  # versions before 4.2 need no zone
        return to_arrow_type(kind)
