"""Specs as texts, from their tables; not a test."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

Table = Mapping[str, Any]

# What nearly every spec of a test says: visits to the wards of a clinic, by the hour.
HOURLY: Table = {"column": "time", "start": dt.datetime(2013, 1, 1, tzinfo=dt.UTC), "tick": "1h"}
_USUAL: dict[str, Table] = {
    "stream": {"name": "visits", "horizon": 48},
    "guarantee": {"rho": 0.5},
    "clock": HOURLY,
    "key": {"file": "visits.key"},
    "state": {"file": "visits.state"},
    "output": {"file": "visits.jsonl"},
}
ALL: Table = {"name": "all", "kind": "counter"}
WARD: Table = {
    "name": "ward",
    "kind": "histogram",
    "column": "ward",
    "categories": ["north", "south"],
    "other": "elsewhere",
}
# Questions about them whose partitions close within a few hundred visits, under a large budget.
_WARDS: Table = {"column": "ward", "categories": ["north", "south"]}
BUSIEST: Table = {"name": "busiest", "kind": "max", "share": 0.2, **_WARDS, "mechanism": "rebased", "largest": 60}
ORDER: Table = {"name": "order", "kind": "leaders", "k": 2, "share": 0.2, **_WARDS, "mechanism": "intervals"}
MIDDLE: Table = {
    "name": "middle",
    "kind": "query",
    "share": 0.2,
    **_WARDS,
    "mechanism": "two-level",
    "expressions": {"mean": {"ranks": [1, -1], "of": "all"}, "south": {"column": "south"}},
}
RARE: Table = {"name": "rare", "kind": "counter", "share": 0.1, "mechanism": "sparse"}


def spec_text(*queries: Table, **sections: Table | None) -> str:
    """The usual spec with these queries. A section replaces the usual one; None leaves it out.

    >>> print(spec_text(ALL, guarantee={"epsilon": 1}, clock=None, key=None, state=None, output=None), end="")
    [stream]
    name = "visits"
    horizon = 48
    <BLANKLINE>
    [guarantee]
    epsilon = 1
    <BLANKLINE>
    [[query]]
    name = "all"
    kind = "counter"
    """
    tables = [(f"[{name}]", table) for name, table in {**_USUAL, **sections}.items() if table is not None]
    return "\n".join(_table(head, table) for head, table in tables) + queries_text(*queries)


def queries_text(*queries: Table) -> str:
    """More queries, to be appended to a spec."""
    return "".join("\n" + _table("[[query]]", query) for query in queries)


def _table(head: str, table: Table) -> str:
    return "\n".join([head, *(f"{name} = {_value(value)}" for name, value in table.items())]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_value(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
