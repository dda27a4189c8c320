"""The streams that are killed, and the events that they are fed; not a test.

Every user, ward and batch id that nobody declared has `canary` in it: a name to look for where it must not be.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from spec_text import ALL, BUSIEST, MIDDLE, ORDER, RARE, WARD, queries_text

NDJSON = "application/x-ndjson"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
CANARY = "canary"

_HEAD = """\
[stream]
name = "visits"
{stream}

[guarantee]
{guarantee}

[clock]
{clock}

[key]
file = "visits.key"

[state]
file = "visits.state"
snapshot_every = {snapshot_every}

[output]
file = "visits.jsonl"

[[sink]]
file = "visits.csv"

[[sink]]
file = "visits.parquet"
{sinks}
[serve]
port = 0
requests_per_second = 100000
{serve}
"""

_PLAIN = queries_text(ALL, WARD)

_EVERY_KIND = queries_text(
    {"name": "all", "kind": "counter", "share": 0.005},
    {
        "name": "ward",
        "kind": "histogram",
        "share": 0.005,
        "column": "ward",
        "categories": ["north", "south"],
        "other": "elsewhere",
    },
    BUSIEST,
    {
        "name": "median",
        "kind": "quantile",
        "q": 0.5,
        "share": 0.1,
        "column": "ward",
        "categories": ["north", "south", "attic"],
    },
    ORDER,
    MIDDLE,
    RARE,
    {"name": "minutes", "kind": "mean", "share": 0.05, "column": "minutes", "lower": 0, "upper": 60},
    {"name": "found", "kind": "unknown-histogram", "share": 0.05, "column": "ward"},
    {"name": "most", "kind": "unknown-top", "k": 2, "share": 0.03, "column": "ward", "mechanism": "meta"},
    {
        "name": "ahead",
        "kind": "streaming-top",
        "k": 2,
        "share": 0.01,
        "column": "ward",
        "categories": ["north", "south", "attic"],
        "mechanism": "meta",
    },
    # Who came by the north and did not go by the south; who came in the last four ticks, and where.
    {
        "name": "inside",
        "kind": "dynamic_count",
        "share": 0.01,
        "action": "ward",
        "insert": "north",
        "delete": "south",
        "id": "minutes",
        "lifetimes": 3,
        "protects": "event",
    },
    {
        "name": "lately",
        "kind": "dynamic_histogram",
        "share": 0.01,
        "column": "ward",
        "categories": ["north", "south"],
        "id": "minutes",
        "lifetimes": 5,
        "max_lifetime": 4,
        "protects": "event",
    },
)

_ON_REQUEST = 'column = "time"\nstart = 2013-01-01T00:00:00Z\ntick = "1h"\nclose = "request"'
_OF_USERS = """
[[query]]
name = "people"
kind = "distinct_users"
[[query]]
name = "wards"
kind = "distinct_users"
column = "ward"
categories = ["north", "south"]
max_categories = 2
[[query]]
name = "active"
kind = "active_users"
windows = [1, 7]
[[query]]
name = "daily"
kind = "period_users"
period = 6
[[query]]
name = "back"
kind = "retention"
period = 6
ages = 3
[[query]]
name = "then"
kind = "joined_events"
column = "ward"
after = ["north"]
then = ["south"]
[[query]]
name = "total"
kind = "running_sum"
column = "minutes"
upper = 40
max_total_per_user = 200
[[query]]
name = "lengths"
kind = "value_quantile"
column = "minutes"
edges = [0, 10, 20, 50]
q = [0.5]
max_ticks_per_user = 4
min_separation = 2
[[query]]
name = "some"
kind = "count_sketch"
column = "ward"
watch = ["north"]
width = 64
max_labels_per_user = 2
"""
_ON_THE_WALL = 'start = "first serve"\ntick = "1s"'
_USERS = 'unit = "user"\nmax_events_per_user = 9\nuser_column = "patient"\nmax_events_per_tick = 40'


def everything(sinks: str = "", snapshot_every: int = 5) -> str:
    """Ticks on request, capped users, a query of every kind: counters, partitions, selections, unknown items."""
    return (
        _HEAD.format(
            stream=f"horizon = 90000\n{_USERS}",
            guarantee="epsilon = 21000\ndelta = 1e-6",
            clock=_ON_REQUEST,
            snapshot_every=snapshot_every,
            sinks=sinks,
            serve="",
        )
        + _EVERY_KIND
    )


def of_users(sinks: str = "", snapshot_every: int = 5) -> str:
    """Ticks on request, users without a cap: every query bounds a user by a table of its own."""
    return (
        _HEAD.format(
            stream='horizon = 9000\nunit = "user"\nuser_column = "patient"',
            guarantee="rho = 50",
            clock=_ON_REQUEST,
            snapshot_every=snapshot_every,
            sinks=sinks,
            serve="",
        )
        + _OF_USERS
    )


def on_the_wall(sinks: str = "") -> str:
    """Ticks on the wall clock, one each second, published soon."""
    return (
        _HEAD.format(
            stream="horizon = 90000",
            guarantee="rho = 0.5",
            clock=_ON_THE_WALL,
            snapshot_every=3,
            sinks=sinks,
            serve="publish_after = 0.2",
        )
        + _PLAIN
    )


def plain(sinks: str = "", snapshot_every: int = 5, horizon: int = 9000, serve: str = "") -> str:
    """Ticks on request, two queries: quick to start."""
    return (
        _HEAD.format(
            stream=f"horizon = {horizon}",
            guarantee="rho = 0.5",
            clock=_ON_REQUEST,
            snapshot_every=snapshot_every,
            sinks=sinks,
            serve=serve,
        )
        + _PLAIN
    )


def hour(number: int) -> str:
    """The end of tick `number`."""
    day = pa.scalar(number * 3600 + 1_356_998_400, pa.timestamp("s"))
    return day.as_py().isoformat() + "Z"


def events(client: int, number: int, tick: int) -> list[dict[str, Any]]:
    """The events of one batch, a function of the arguments; some are late, some early, some unreadable."""
    records: list[dict[str, Any]] = []
    for i in range(400 if number % 13 == 7 else (number * 5 + client) % 9):
        mix = number * 7 + client * 3 + i
        ward = ("north", "south", "north", "attic", f"{CANARY}-ward-{mix}")[mix % 5]
        records.append(
            {
                "time": hour(max(0, tick + (0, 0, -3, 1, 0, 2)[mix % 6] - 1))[:-6] + f"{mix % 60:02d}:00Z",
                "ward": ward,
                "minutes": mix % 50,
                "patient": f"{CANARY}-{(number + mix % 4) // 6}",
            }
        )
    if number % 11 == 3:
        records.append({"time": "at noon", "ward": "north", "minutes": 1, "patient": f"{CANARY}-nobody"})
    return records


def body(records: list[dict[str, Any]], number: int) -> tuple[bytes, str]:
    """A batch as bytes and its media type: each number has one of three."""
    if number % 3 == 0:
        return "".join(json.dumps(record) + "\n" for record in records).encode(), NDJSON
    if number % 3 == 1:
        return json.dumps(records).encode(), JSON
    kinds = {"time": pa.string(), "ward": pa.string(), "minutes": pa.int64(), "patient": pa.string()}
    schema = pa.schema(list(kinds.items()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(records, schema))
    return sink.getvalue().to_pybytes(), ARROW
