"""A real `evertally serve` of a small clinic, fed over HTTP. Ticks close on request: every test knows what is out."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from evertally.service import TokenFile

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
WARDS = ["north", "south", "west", "<script>window.harmed = 1</script>"]
_READY_SECONDS = 60

HEAD = """\
[stream]
name = "clinic-visits"
horizon = {horizon}
{stream}

[guarantee]
epsilon = {epsilon}
delta = 1e-6

[clock]
{clock}

[key]
file = "clinic.key"

[state]
file = "clinic.state"

[serve]
tokens = "clinic.tokens"
public = {public}
requests_per_second = 1000
"""

HOURLY = 'column = "time"\nstart = 2026-01-01T00:00:00Z\ntick = "1h"\nclose = "request"'
DAILY = HOURLY.replace("1h", "1d")
ON_THE_WALL = 'start = "first serve"\ntick = "6s"'
NUMBERED = 'column = "time"\nstart = 1000\ntick = 10\nclose = "request"'

VISITS = {"name": "visits", "kind": "counter"}
DRINKS = {"name": "drinks", "kind": "unknown-top", "column": "drink", "k": 5}
_WARD = {"column": "ward", "categories": WARDS}
# Events are sent in many copies, so that they have no names.
_COMINGS = {"action": "comes", "identity": "raw", "protects": "event"}
ALL_KINDS: list[dict[str, Any]] = [
    VISITS,
    {"name": "stay", "kind": "mean", "column": "minutes", "lower": 0, "upper": 120},
    {"name": "stays", "kind": "value-quantile", "column": "minutes", "edges": {"from": 1, "to": 120, "ratio": 1.2}},
    {"name": "lengths", "kind": "value-histogram", "column": "minutes", "edges": [0, 30, 60, 120]},
    {"name": "by-ward", "kind": "histogram", **_WARD},
    {"name": "by-room", "kind": "histogram", "column": "room", "categories": [f"room {n}" for n in range(40)]},
    {"name": "by-minute", "kind": "vector_counter", "column": "minutes", "columns": 120, "other": "longer"},
    {"name": "median", "kind": "quantile", "q": 0.5, **_WARD},
    {"name": "lower-quartile", "kind": "quantile", "q": 0.25, **_WARD},
    {"name": "busiest", "kind": "max", **_WARD},
    {"name": "quietest", "kind": "min", **_WARD},
    {"name": "top-wards", "kind": "top", "k": 3, **_WARD},
    {"name": "leader", "kind": "leader", **_WARD},
    {"name": "leaders", "kind": "leaders", "k": 2, **_WARD},
    {"name": "often", "kind": "streaming-top", "k": 2, "mechanism": "meta", **_WARD},
    DRINKS,
    {"name": "all-drinks", "kind": "unknown-histogram", "column": "drink"},
    {"name": "range", "kind": "query", "expressions": {"most": {"ranks": [-1, -1], "of": "all"}}, **_WARD},
    {"name": "inside", "kind": "dynamic_count", **_COMINGS},
    {"name": "inside-by-ward", "kind": "dynamic_histogram", **_COMINGS, **_WARD},
    {
        "name": "inside-by-stay",
        "kind": "dynamic_range",
        **_COMINGS,
        "column": "minutes",
        "size": 121,
        "ranges": [[0, 29], [30, 120]],
    },
    {
        "name": "inside-asked",
        "kind": "linear_queries",
        **_COMINGS,
        "column": "drink",
        "family": {"kind": "queries", "universe": ["tea", "coffee"], "queries": {"caffeine": [0.25, 1.0]}},
    },
]

_ROOMS = [f"room {n}" for n in range(40)]
_MOVES = {"columns": ["ward", "next"]}
_BEDS = {"columns": ["room", "ward"]}
_KNOWN = {**_MOVES, "vertices": WARDS}
_CUPS = {"column": "drink", "alphabet": ["tea", "coffee"], "sequence": "stream"}
ALL_KINDS += [
    {"name": "moves", "kind": "cut_graph", **_KNOWN, "weight": "minutes", "max_weight": 60, "copies": "counted"},
    {"name": "beds", "kind": "cut_graph", **_BEDS, "vertices": [*WARDS, *_ROOMS], "copies": "counted"},
    {"name": "ways", "kind": "edge_count", **_MOVES},
    {"name": "ways-of-wards", "kind": "degree_vector", **_KNOWN, "copies": "counted"},
    {"name": "triangles", "kind": "triangles", **_KNOWN},
    {"name": "stars", "kind": "stars", **_KNOWN, "k": 2},
    {"name": "paths", "kind": "subgraphs", **_KNOWN, "pattern": [["a", "b"], ["b", "c"]]},
    {"name": "hubs", "kind": "high_degree", **_BEDS, "threshold": 3},
    {"name": "by-degree", "kind": "degree_histogram", **_BEDS, "vertices": [*WARDS, *_ROOMS], "max_degree": 12},
    {"name": "forest", "kind": "spanning_forest_cost", **_KNOWN, "weight": "minutes", "max_weight": 60},
    {"name": "groups", "kind": "components", **_BEDS, "vertices": [*WARDS, *_ROOMS]},
    {"name": "cups", "kind": "substring_counts", **_CUPS, "longest": 2},
    {"name": "often-cups", "kind": "frequent_substrings", **_CUPS, "longest": 3, "above": 400},
    {"name": "then", "kind": "episode_counts", **_CUPS, "words": ["tea coffee", "coffee tea coffee"]},
    {"name": "some-drinks", "kind": "count_sketch", "column": "drink", "watch": ["tea", "coffee"], "width": 256},
    {
        "name": "drinks-often",
        "kind": "heavy_prefixes",
        "column": "drink",
        "symbols": 8,
        "width": 256,
        "threshold": 1000,
    },
    {"name": "all-minutes", "kind": "running_sum", "column": "minutes", "upper": 120},
    {"name": "spread", "kind": "running_variance", "column": "minutes", "lower": 0, "upper": 120},
    {"name": "adapted", "kind": "adaptive_sum", "column": "minutes", "upper": 512, "pilot": 2},
    {
        "name": "tiles",
        "kind": "dashboard",
        "column": "ward",
        "types": WARDS,
        "metrics": {"all-wards": "all", "sides": ["south", "west"]},
    },
    {
        "name": "table",
        "kind": "group_by",
        "columns": {"ward": WARDS, "drink": ["tea"]},
        "tables": [["ward"], ["drink"]],
    },
    {"name": "inside-again", "kind": "present_items", "action": "comes", "id": "room", "protects": "event"},
]

# Statistics of people, who are protected as such, day by day.
PEOPLE: list[dict[str, Any]] = [
    {"name": "people", "kind": "distinct_users"},
    {"name": "people-by-ward", "kind": "distinct_users", **_WARD},
    {"name": "found", "kind": "unknown_distinct_users", "column": "drink", "max_categories": 2},
    {"name": "active", "kind": "active_users", "windows": ["1d", "7d", "28d"]},
    {"name": "active-by-ward", "kind": "active_users", **_WARD, "windows": ["1d", "7d"]},
    {"name": "weekly", "kind": "period_users", "period": "7d"},
    {"name": "retention", "kind": "retention", "period": "7d", "ages": 4},
    {"name": "then-west", "kind": "joined_events", "column": "ward", "after": ["north"], "then": ["west", WARDS[3]]},
    {
        "name": "prefixes",
        "kind": "heavy_prefixes",
        "column": "drink",
        "symbols": 12,
        "width": 256,
        "threshold": 80,
        "max_labels_per_user": 1,
        "show": "prefixes",
    },
    {
        "name": "watched",
        "kind": "count_sketch",
        "column": "drink",
        "watch": ["tea", WARDS[3]],
        "width": 256,
        "max_labels_per_user": 1,
    },
]

# Plain statistics with words for readers. There are more rooms than a list shows at once.
ROOMS = [f"room {n}" for n in range(120)]
IN_WORDS = 'title = "Visits to the clinic"\nnoun = "visit"\nmax_events_per_tick = 2000'
WORDED: list[dict[str, Any]] = [
    {"name": "visits", "kind": "counter", "title": "Visits"},
    {"name": "stay", "kind": "mean", "column": "minutes", "lower": 0, "upper": 120, "title": "Stay", "unit": "min"},
    {"name": "by-ward", "kind": "histogram", "title": "By ward", **_WARD},
    {"name": "by-room", "kind": "histogram", "title": "By room", "column": "room", "categories": ROOMS},
    {**DRINKS, "title": "Drinks"},
]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + "}"
    return json.dumps(value)


class Clinic:
    """The service as a process of its own."""

    def __init__(
        self,
        folder: Path,
        queries: Sequence[Mapping[str, Any]] = ALL_KINDS,
        horizon: int = 500,
        public: bool = False,
        clock: str = HOURLY,
        stream: str = "max_events_per_tick = 2000",
        epsilon: float = 20.0,
    ) -> None:
        given = {"horizon": horizon, "public": str(public).lower(), "clock": clock, "stream": stream}
        lines = [HEAD.format(**given, epsilon=epsilon)]
        for query in queries:
            lines += ["[[query]]", *(f"{name} = {_toml(value)}" for name, value in query.items()), ""]
        self.spec_file = folder / "clinic.toml"
        self.spec_file.write_text("\n".join(lines), encoding="utf-8")
        tokens = TokenFile(folder / "clinic.tokens")
        self.read_token, self._admin_token = tokens.add("reader", "read"), tokens.add("keeper", "admin")
        self._clock = clock
        self._length = dt.timedelta(days=1) if clock == DAILY else dt.timedelta(hours=1)
        self.tick = 0
        self._port = 0
        self.start()

    def start(self) -> None:
        """Starts the process, again on the port that it had before."""
        command = [sys.executable, "-m", "evertally.cli", "serve", str(self.spec_file), "--port", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        found = re.search(r"http://\S+?:(\d+)/", first)
        assert found is not None, f"the service did not start: {first!r}"
        self.address, self._port = found[0], int(found[1])
        headers = {"Authorization": f"Bearer {self._admin_token}"}
        self._client = httpx.Client(base_url=self.address, headers=headers, timeout=_READY_SECONDS)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._client.close()
        self._process.send_signal(how)
        self._process.communicate(timeout=_READY_SECONDS)

    @property
    def with_token(self) -> str:
        return f"{self.address}#token={self.read_token}"

    def release(self, *events: tuple[int, Mapping[str, Any]]) -> None:
        """One more tick, of so many copies of each event."""
        moment = self._end()
        self.tick += 1
        body = "".join((json.dumps({"time": moment, **event}) + "\n") * copies for copies, event in events)
        posted = self._client.post(
            "/v1/events",
            content=body,
            headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": f"tick-{self.tick}"},
        )
        assert posted.status_code == 202, posted.text
        closed = self._client.post("/v1/ticks", json={"until": self._end()})
        assert closed.json() == {"released": self.tick}

    def _end(self) -> str | int:
        """When the last tick ended."""
        return 1000 + 10 * self.tick if self._clock == NUMBERED else (START + self.tick * self._length).isoformat()

    def get(self, path: str) -> httpx.Response:
        return self._client.get(path)

    def latest(self, query: str) -> dict[str, Any]:
        """What was released of a query at the last tick."""
        found: dict[str, Any] = self.get("/v1/releases/latest").json()["queries"][query]
        return found


def visit(
    ward: str = "north", drink: str = "tea", room: int = 0, minutes: int = 30, comes: bool = True, to: str = "west"
) -> dict[str, Any]:
    return {"ward": ward, "drink": drink, "room": f"room {room}", "minutes": minutes, "comes": comes, "next": to}
