"""What the sections of a spec must be to each other, and what a file run and a live service need of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evertally.kinds.query_table import a
from evertally.runtime.spec.types import StreamSpec

_USERS = ("text", "integer")


def check_whole(spec: StreamSpec) -> None:
    """Everything that must hold however the stream is run."""
    _check_files(spec)
    _check_events(spec)
    _check_publication(spec)
    _check_windows(spec)
    _check_protected(spec)
    _check_owners(spec)
    _check_users(spec)
    _check_order(spec)
    for query in spec.queries:
        needed = query.record.needs_rate and query.record.rests_on_rate(query.mechanism)
        if needed and spec.max_events_per_tick is None:
            # A default would be a promise that nobody made: error bounds and the choice of a mechanism rest on it.
            why = "the most events of any tick, which error bounds rest on (public)"
            spec.file.refuse(f"needs 'max_events_per_tick' for {a(query.kind)}: {why}", "stream")


def check_runnable(spec: StreamSpec) -> None:
    """A file of events is sorted into ticks by the time stamps in it."""
    if spec.clock.floating:
        spec.file.refuse('start = "first serve" is for `serve`; to run files write a time', "clock", "start")
    if spec.clock.column is None:
        spec.file.refuse("needs 'column' to run files: the column of the time stamps", "clock")


def check_servable(spec: StreamSpec) -> None:
    """A live stream needs to know when a tick is over."""
    if spec.clock.integer and spec.clock.close == "wall":
        problem = 'start is an integer, which no wall clock shows: write close = "request", or a time'
        spec.file.refuse(problem, "clock", "start")


@dataclass(frozen=True)
class _Use:
    """What a file is for, and where the spec says so."""

    name: str
    paths: tuple[Path, ...]
    section: str
    option: str | None
    number: int = 1


def _check_files(spec: StreamSpec) -> None:
    """Each file has one use, and nothing else lies in a folder of releases."""
    taken: dict[Path, str] = {}
    for use in _uses(spec):
        if any("\0" in str(path) for path in use.paths):
            spec.file.refuse(f"the name of {use.name} contains a NUL character", use.section, use.option, use.number)
    files = [sink.file for sink in spec.sinks if sink.file is not None]
    folders = [_real(file) for file in files if file.suffix.lower() == ".parquet"]
    for use in _uses(spec):
        for path in use.paths:
            problem = None
            if _real(path) in taken:
                problem = f"{path.name} is used as {taken[_real(path)]} already; they must be different files"
            elif any(folder in _real(path).parents for folder in folders):
                problem = f"{path.name}, {use.name}, lies in a folder of releases; put it elsewhere"
            if problem is not None:
                spec.file.refuse(problem, use.section, use.option, use.number)
            taken[_real(path)] = use.name


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _uses(spec: StreamSpec) -> Iterator[_Use]:
    """What the spec names, and what is kept beside it."""
    key, state, serve = spec.key_file, spec.state_file, spec.serve
    yield _Use("the spec", (spec.path,), "stream", None)
    yield _Use("the key", (key, Path(f"{key}.bound"), Path(f"{key}.lock")), "key", "file")
    beside = tuple(Path(f"{state}-{suffix}") for suffix in ("wal", "shm", "journal"))  # SQLite's own
    yield _Use("the state", (state, *beside), "state", "file")
    further = [sink for sink in spec.sinks if sink.name != "output"]
    if spec.output_file is not None:
        yield _Use("the output", (spec.output_file,), "output", "file")
    for number, sink in enumerate(further, 1):
        if sink.file is not None:
            yield _Use("a sink", (sink.file,), "sink", "file", number)
    yield _Use("the tokens", (serve.tokens,), "serve", "tokens")
    if serve.certificate is not None and serve.private_key is not None:
        both = dict.fromkeys((serve.certificate, serve.private_key))  # one PEM file may hold both
        yield _Use("the certificate and its private key", tuple(both), "serve", "certificate")


def _check_events(spec: StreamSpec) -> None:
    """A schema names every column that is used, with a type that its use can read."""
    if spec.events is None:
        return
    if spec.clock.column is not None:
        _check_column(spec, spec.clock.column, ("integer",) if spec.clock.integer else ("time",), "[clock] column")
    if spec.user_column is not None:
        _check_column(spec, spec.user_column, _USERS, "[stream] user_column")
    for query in spec.queries:
        for column in query.columns:
            _check_column(spec, column.name, column.reads.declared, f"the {query.kind} {query.name!r}")


def _check_column(spec: StreamSpec, column: str, types: tuple[str, ...], use: str) -> None:
    assert spec.events is not None
    wanted = " or ".join(f'"{name}"' for name in types)
    if column not in spec.events:
        spec.file.refuse(f"needs the column {column!r}, which {use} reads: add it as {wanted}", "events")
    if spec.events[column] not in types:
        spec.file.refuse(f'{column} is "{spec.events[column]}", but {use} reads {wanted}', "events", column)


def _check_protected(spec: StreamSpec) -> None:
    """What the queries pay adds up only if all of them hide a change of the same thing: an event that one query counts
    by itself may be half of an item of another."""
    for number, query in enumerate(spec.queries, 1):
        if query.items is not None and spec.unit == "user":
            problem = f'protects = "{query.items.one}" needs [stream] unit = "event"'
            spec.file.refuse(problem, "query", "protects", number)
        if query.items != spec.items:
            which, items = next((n, one.items) for n, one in enumerate(spec.queries, 1) if one.items is not None)
            spec.file.refuse(
                f'protects = "{items.one}" is a promise about {items.one}s, and another query of the stream makes one '
                f'about single events, or about other {items.one}s; write protects = "{items.single}", or give the '
                "query a stream of its own",
                "query",
                "protects",
                which,
            )


def _check_order(spec: StreamSpec) -> None:
    """A keyed hash has no before and after. And an event that is replaced gets another place by it, which is covered by
    what is proved of whole users, and of events that are there or not (distributed 6)."""
    if spec.order == "content" and spec.unit != "user" and spec.neighbours != "add_remove":
        problem = f'order = "content" with neighbours = "{spec.neighbours}" is proved for unit = "user" alone'
        spec.file.refuse(f'{problem}; write order = "arrival", or neighbours = "add_remove"', "stream", "order")
    for number, query in enumerate(spec.queries, 1):
        if spec.order == "content" and query.ordered:
            problem = (
                f'{a(query.kind)} is about what came before what, within a tick too; [stream] order = "content" '
                'forgets that. Write order = "arrival", or give the query a stream of its own'
            )
            spec.file.refuse(problem, "query", "kind", number)


def _check_users(spec: StreamSpec) -> None:
    """Every query bounds what one user may do: by a rule of its own, or by the cap of the stream."""
    bare = [(number, query) for number, query in enumerate(spec.queries, 1) if not query.user_rule]
    if spec.unit == "user" and bare and spec.max_events_per_user is None:
        which = f"the {bare[0][1].kind} {bare[0][1].name!r}"
        spec.file.refuse(
            f'unit = "user" needs max_events_per_user: {which} does not bound by itself what one user may do',
            "stream",
            "unit",
        )
    if spec.unit == "user" and not bare and spec.max_events_per_user is not None:
        problem = "max_events_per_user is not needed: every query bounds by itself what one user may do"
        spec.file.refuse(problem, "stream", "max_events_per_user")
    if spec.unit == "user-period" and bare:
        problem = 'unit = "user-period" is for queries that bound a user in every block by themselves; use "user"'
        spec.file.refuse(problem, "query", "kind", bare[0][0])
    if spec.unit == "event" and spec.user_column is not None and len(bare) == len(spec.queries):
        problem = 'user_column needs unit = "user", or a query that counts users'
        spec.file.refuse(problem, "stream", "user_column")
    if spec.user_column is None and len(bare) < len(spec.queries):
        counting = next(query for query in spec.queries if query.user_rule)
        problem = f"needs 'user_column': the {counting.kind} {counting.name!r} has to know whose an event is"
        spec.file.refuse(problem, "stream")


def _check_owners(spec: StreamSpec) -> None:
    """One column says whose a record is: that of the stream where users are protected, otherwise the query's own."""
    for number, query in enumerate(spec.queries, 1):
        owner = query.record.owner
        if owner is None:
            continue
        if spec.unit == "user" and owner.option in query.parameters:
            problem = f"{owner.option} is not needed: [stream] user_column says whose an event is"
            spec.file.refuse(problem, "query", owner.option, number)
        if spec.unit != "user" and owner.needed(query.parameters) and owner.option not in query.parameters:
            spec.file.refuse(f"needs {owner.option!r}, the column that says whose a record is", "query", None, number)


def _check_windows(spec: StreamSpec) -> None:
    """A window that outputs get must become full, and its beginning must be kept until then."""
    for number, query in enumerate(spec.queries, 1):
        window = query.words.window or 0
        if spec.last_tick is not None and window > spec.last_tick:
            spec.file.refuse(f"window is longer than the stream, {spec.last_tick} ticks", "query", "window", number)
        if window > spec.retention.full:
            problem = f"window is {window} ticks, and [retention] keeps {spec.retention.full} in full; raise `full`"
            spec.file.refuse(problem, "query", "window", number)


def _check_publication(spec: StreamSpec) -> None:
    """A tick is out before the next one ends, at a moment that no event moves."""
    clock, after = spec.clock, spec.serve.publish_after
    given = "publish_after" in spec.file.content.get("serve", {})
    if given and (clock.integer or clock.close == "request"):
        spec.file.refuse('publish_after goes with close = "wall"', "serve", "publish_after")
    if given and after * 1_000_000 >= clock.length:
        problem = f"publish_after must be below the length of a tick, {clock.length / 1_000_000:g} seconds"
        spec.file.refuse(problem, "serve", "publish_after")
