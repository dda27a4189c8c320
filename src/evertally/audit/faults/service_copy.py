"""A stream beside the user's: the same guarantee and queries, under a key of its own, with made-up events.

Nothing of the user's stream is touched or read but its spec: key, state, outputs and the address are those of a folder
that is thrown away. Ticks end on request, so that no run depends on the clock of the machine.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evertally.kinds.reads import Column
from evertally.runtime import load_spec
from evertally.runtime.spec import StreamSpec

STATE, KEY, OUTPUT = "stream.state", "stream.key", "releases.jsonl"
_KEPT = ("stream", "guarantee", "events")
_TIME, _START = "evertally_time", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
_EVENTS = 9  # of a batch
_USERS = 3  # who send half of them: caps are reached, and tables of users decide; the others are new


def write_copy(spec: StreamSpec, folder: Path, key_file: Path) -> StreamSpec:
    """The spec of such a stream in a folder, and a copy of its key.

    >>> import tempfile, evertally
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spec = Path(folder) / "visits.toml"
    ...     _ = spec.write_text('''
    ...         stream = {name = "visits", horizon = 9}
    ...         guarantee = {rho = 0.5}
    ...         clock = {start = "first serve", tick = "1h"}
    ...         key = {file = "k"}
    ...         state = {file = "s"}
    ...         query = [{name = "all", kind = "counter"}]
    ...     ''')
    ...     evertally.Key.generate().save(Path(folder) / "key")
    ...     copy = write_copy(load_spec(spec), Path(folder) / "copy", Path(folder) / "key")
    ...     copy.clock.close, [query.name for query in copy.queries], copy.serve.port
    ('request', ['all'], 0)
    """
    folder.mkdir(mode=0o700)
    given: Mapping[str, Any] = spec.file.content
    clock = {"column": _TIME, "start": _START, "close": "request"}
    told = {name: value for name, value in given["clock"].items() if name != "start" or value != "first serve"}
    sections = {name: given[name] for name in _KEPT if name in given}
    if "events" in sections and spec.clock.column is None:
        sections["events"] = {**sections["events"], _TIME: "time"}
    sections |= {
        "clock": clock | told | {"close": "request"},
        "key": {"file": KEY},
        "state": {"file": STATE, "snapshot_every": 3},
        "output": {"file": OUTPUT},
        "serve": {"port": 0, "tokens": "tokens"},
    }
    text = [f"{name} = {_toml(table)}" for name, table in sections.items()]
    path = folder / "stream.toml"
    path.write_text("\n".join([*text, f"query = {_toml(given['query'])}", ""]), "utf-8")
    shutil.copy2(key_file, folder / KEY)
    return load_spec(path)


def _toml(value: Any) -> str:
    """A value as TOML writes it, tables in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def batch(spec: StreamSpec, number: int) -> bytes:
    """The events of a batch, always the same: every column that a query reads, by the same few users and new ones."""
    columns = {column.name: (column, query.parameters) for query in spec.queries for column in query.columns}
    start = spec.clock.end_of(number - 1)
    when: Any = int(start) if spec.clock.integer else start
    records = []
    for i in range(_EVENTS):
        mix = _EVENTS * number + i
        record = {name: _cell(column, options, mix) for name, (column, options) in columns.items()}
        if spec.user_column is not None:
            record[spec.user_column] = f"user {mix % _USERS}" if i % 2 else f"new {mix}"
        records.append(record | {str(spec.clock.column): when})
    return json.dumps(records).encode()


def _cell(column: Column, options: Mapping[str, Any], mix: int) -> Any:
    """Something legal for what the column is read as."""
    if column.option == "action":
        return options.get("delete", "delete") if mix % 3 == 2 else options.get("insert", "insert")
    if column.reads.use == "amounts":
        low, high = (float(options.get(name, default)) for name, default in (("lower", 0), ("upper", 1)))
        return low + (high - low) * (mix % 10) / 10
    for name in ("categories", "by", "types", "alphabet", "vertices"):
        if isinstance(options.get(name), list | str) and options[name]:
            return options[name][mix % len(options[name])]
    if "after" in options:
        known = [*options["after"], *options["then"]]
        return known[mix % len(known)]
    return f"{column.name} {mix % 4}"
