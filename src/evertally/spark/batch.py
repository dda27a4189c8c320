"""A batch job: a data frame of events in, released ticks out."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from evertally.errors import ConfigurationError, StateError
from evertally.runtime import load_spec
from evertally.runtime.input.envelope import BatchRefused, check_type
from evertally.runtime.spec import StreamSpec
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.failures import withheld
from evertally.spark.protections import check
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
    snapshot: str | None = None,
    accept: Collection[str] = (),
) -> Record:
    """Takes the events of a data frame in, and releases all ticks that are over at `until`.

    `batch` is an id of your choosing: the same id with the same input is done already, with another input refused. The
    input is told by its files, their sizes and times; what has none (a table, a query) is told by `snapshot`, a text
    that changes when its rows do. Events of later ticks wait; late ones enter the first tick that is not released.
    Returns what was closed: batch, opened, through, chain.
    """
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
    check_events(events, settled)

    def looked_at() -> Record:
        return {"id": batch, "input": _input(events, snapshot)}

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
        raise StateError("this root is fed by a stream of Spark; it takes no batches of files beside it")
    for number in range(engine.last + 2):
        closed = log.closes(number)
        if closed is None and number <= engine.last:
            raise StateError(
                f"closes/{number:08d} is missing under the root: batch {number} is released, and nothing says from "
                "which input. Bring the root back; this one might be the same, and count twice"
            )
        if closed is None:
            continue
        if "query" in closed["envelope"]:
            raise StateError("this root is fed by a stream of Spark; it takes no batches of files beside it")
        if closed["envelope"].get("id") == envelope["id"]:
            return number
        again = _names(closed["envelope"].get("input", {})) & _names(envelope["input"])
        if again:
            raise StateError(
                f"{min(again)} was counted already, in batch {closed['envelope']['id']!r}: its events would count "
                "twice. Give a batch what is new, and new files new names"
            )
    number = engine.last + 1
    closed = log.closes(number)
    if closed is not None:
        raise StateError(
            f"batch {closed['envelope'].get('id')!r} was begun and not finished: run it again first, with the "
            "same input"
        )
    return number


def _names(given: Record) -> set[str]:
    """What an input is told by, whatever has become of it."""
    files = {str(name) for name, *_ in given.get("files", [])}
    return files | ({f"snapshot {given['snapshot']!r}"} if "snapshot" in given else set())


def _input(events: DataFrame, snapshot: str | None) -> Any:
    if snapshot is not None:
        return {"snapshot": snapshot}
    with withheld("the input"):
        names = sorted(events.inputFiles())
    if not names:
        raise ConfigurationError(
            "this data frame is read from no files: say what it holds with snapshot=..., a text that changes when its "
            "rows do, such as the version of a table"
        )
    return {"files": [told(name) for name in names]}


def told(name: str) -> list[Any]:
    """What can be said about a file without reading it: name, size and time."""
    address = urlparse(name)
    if address.scheme not in ("", "file"):
        raise ConfigurationError(
            f'sizes and versions of files of "{address.scheme}" are not known here: give snapshot=..., a text that '
            "changes when they do"
        )
    path = Path(unquote(address.path))
    try:
        found = path.stat()
    except OSError as error:
        raise StateError(f"cannot look at {path}: {error.strerror}") from None
    return [str(path), found.st_size, found.st_mtime_ns]


# What gives another value when it is computed again: half of the parts would count one, half another.
_FICKLE = ("rand", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name")
# Of limit, offset, tail, sample and randomSplit, dropDuplicates, groupBy, window functions.
_BY_OTHERS = (
    "GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample", "Deduplicate", "DeduplicateWithinWatermark", "Aggregate",
    "Window",
)  # fmt: skip
_CLOCKS = ("current_timestamp", "current_date", "now", "localtimestamp", "unix_timestamp")


def check_events(events: DataFrame, spec: StreamSpec) -> None:
    """Refuses a data frame without the columns of the spec, with types that they cannot have, or whose rows are not the
    same when they are computed again."""
    known = {field.name: field.dataType for field in events.schema.fields}
    for name in spec.columns():
        if name.startswith("evertally_"):
            raise ConfigurationError(f"{spec.path.name}: names that begin with evertally_ are taken; rename {name!r}")
        if name not in known:
            raise ConfigurationError(f"the data frame has no column {name!r}, which {spec.path.name} names")
        if events.columns.count(name) > 1:
            raise ConfigurationError(f"the data frame has two columns {name!r}: rename one of them")
        try:
            check_type(spec, name, _arrow_type(known[name]))
        except BatchRefused as problem:
            raise ConfigurationError(f"{spec.path.name}: {problem}") from None
    with withheld("the plan"):
        placed = sorted({name for node in nodes_of(events) for name in [node.nodeName()] if name in _BY_OTHERS})
    if placed:
        raise ConfigurationError(
            f"{', '.join(placed)}: which rows there are, or what they hold, follows from other rows, and one event "
            "more changes several. Hand over single events, chosen by what each of them holds (filter, distinct)"
        )
    fickle = _fickle(events)
    if fickle:
        raise ConfigurationError(
            f"the data frame is not the same when it is computed again ({', '.join(fickle)}): a task that is tried "
            "again would count other rows under the same noise. Write it to files first, and read those"
        )


def _arrow_type(kind: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except TypeError:  # versions before 4.2 need no zone
        return to_arrow_type(kind)


def _fickle(events: DataFrame) -> list[str]:
    with withheld("the plan"):
        deterministic = all(_deterministic(node) for node in nodes_of(events))
        words = events._jdf.queryExecution().analyzed().toString().lower()
    found = [name for name in (*_FICKLE, *_CLOCKS) if re.search(rf"\b{name}\(", words)]
    return found or ([] if deterministic else ["an expression that is not deterministic"])


def _deterministic(node: Any) -> bool:
    expressions = node.expressions()
    return all(expressions.apply(i).deterministic() for i in range(expressions.size()))


def nodes_of(events: DataFrame) -> list[Any]:
    """The steps of the plan of a data frame, as Java has them."""
    found, todo = [], [events._jdf.queryExecution().analyzed()]
    while todo:
        node = todo.pop()
        found.append(node)
        children = node.children()
        todo += [children.apply(i) for i in range(children.size())]
    return found
