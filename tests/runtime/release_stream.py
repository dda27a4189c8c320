"""A spec with a query of every kind, and what it releases; not a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from visit_stream import COLUMN_QUERIES, UNKNOWN_QUERIES, WITH_UNKNOWN_QUERIES, WriteSpec, visits

from evertally.contract.release import Release
from evertally.noise import simulation
from evertally.runtime.input.json_cells import columns
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.mechanisms import build
from evertally.runtime.releases import TickRelease, entries, pack, unpacked
from evertally.runtime.spec import StreamSpec, load_spec
from spec_text import queries_text, spec_text

# The kinds that the specs of visit_stream leave out, and labels in other spellings than the one that is released.
REST = queries_text(
    {"name": "mean", "kind": "mean", "share": 0.01, "column": "minutes", "lower": 0, "upper": 50, "resolution": 1},
    {
        "name": "numbers",
        "kind": "histogram",
        "share": 0.01,
        "column": "minutes",
        "categories": [7, True, "cafe\u0301"],
        "other": 0,
    },
    {"name": "idle", "kind": "min", "share": 0.01, "column": "ward", "categories": ["north", "south"]},
    {"name": "half", "kind": "quantile", "q": 0.5, "share": 0.01, "column": "ward", "categories": ["north", "south"]},
    {"name": "best", "kind": "top", "k": 2, "share": 0.01, "column": "ward", "categories": ["north", "south", "attic"]},
    {
        "name": "one",
        "kind": "query",
        "share": 0.01,
        "column": "ward",
        "categories": ["north", "south"],
        "expression": {"ranks": [1, -1], "of": "all"},
    },
    {
        "name": "few",
        "kind": "histogram",
        "share": 0.01,
        "column": "ward",
        "categories": ["north", "south"],
        "mechanism": "sparse",
    },
)
# Patients who come by the north and go by the south. An event of theirs is counted by the others too.
_UPDATES = {"action": "ward", "insert": "north", "delete": "south", "id": "patient", "protects": "event"}
PRESENT = queries_text(
    {"name": "inside", "kind": "dynamic_count", "share": 0.01, **_UPDATES, "lifetimes": 9},
    {"name": "inside-again", "kind": "present_items", "share": 0.001, **_UPDATES},
    {
        "name": "inside-by-minutes",
        "kind": "dynamic_histogram",
        "share": 0.01,
        "column": "minutes",
        "categories": [7, 20],
        "other": 0,
        **_UPDATES,
    },
    {
        "name": "inside-by-range",
        "kind": "dynamic_range",
        "share": 0.01,
        "column": "minutes",
        "size": 50,
        "ranges": [[0, 9], "all"],
        **_UPDATES,
    },
    {
        "name": "inside-asked",
        "kind": "linear_queries",
        "share": 0.01,
        "columns": ["minutes", "patient"],
        "family": {"kind": "marginals", "attributes": {"minutes": 50, "patient": ["p1", "p2"]}, "order": 1},
        "show": {"one": {"patient": "p1"}, "all": {}},
        **_UPDATES,
    },
)
SUMS = queries_text(
    {"name": "sum", "kind": "sum", "share": 0.001, "column": "minutes", "upper": 50, "resolution": 0.5},
    {
        "name": "sum-by-ward",
        "kind": "histogram",
        "share": 0.001,
        "column": "ward",
        "categories": ["north", "south"],
        "weight": "minutes",
        "max_weight": 50,
        "resolution": 0.5,
    },
    {"name": "by-minute", "kind": "vector_counter", "share": 0.001, "column": "minutes", "columns": 50},
    {"name": "spread", "kind": "variance", "share": 0.001, "column": "minutes", "lower": 0, "upper": 50},
    {"name": "adapted", "kind": "adaptive_sum", "share": 0.001, "column": "minutes", "upper": 512, "pilot": 2},
)
# Patients and wards are joined by visits, and wards come one after the other.
_EDGES = {"share": 0.01, "columns": ["patient", "ward"]}
_KNOWN = {**_EDGES, "vertices": ["north", "south", "p1", "p2"]}
_LETTERS = {"share": 0.01, "column": "ward", "alphabet": ["north", "south"], "other": "south"}
APPLIED = queries_text(
    {"name": "edges", "kind": "edge_count", **_EDGES},
    {"name": "degrees", "kind": "degree_vector", **_KNOWN},
    {"name": "cuts", "kind": "cut_graph", **_KNOWN, "weight": "minutes", "max_weight": 9, "copies": "counted"},
    {"name": "triangles", "kind": "triangles", **_KNOWN},
    {"name": "stars", "kind": "stars", **_EDGES, "k": 2, "max_degree": 5},
    {"name": "copies", "kind": "subgraphs", **_KNOWN, "pattern": [["a", "b"], ["b", "c"]]},
    {"name": "busy", "kind": "high_degree", **_EDGES, "threshold": 2},
    {"name": "by-degree", "kind": "degree_histogram", **_EDGES, "max_degree": 3},
    {"name": "forest", "kind": "spanning_forest_cost", **_KNOWN, "weight": "minutes", "max_weight": 9},
    {"name": "groups", "kind": "components", **_KNOWN},
    {"name": "words", "kind": "substring_counts", **_LETTERS, "sequence": "stream", "longest": 2},
    {
        "name": "often",
        "kind": "frequent_substrings",
        **_LETTERS,
        "sequence": "user",
        "by": "patient",
        "longest": 2,
        "above": 5,
    },
    {"name": "then", "kind": "episode_counts", **_LETTERS, "sequence": "stream", "words": ["north south"]},
)
# Kinds that bound a user by themselves, in a stream that protects users.
OF_USERS = (
    {"name": "people", "kind": "distinct_users"},
    {"name": "by-ward", "kind": "distinct_users", "column": "ward", "categories": ["north", "south"], "other": "rest"},
    {"name": "in-bits", "kind": "distinct_users", "bits": 4096},
    {"name": "wards", "kind": "unknown_distinct_users", "column": "ward", "max_categories": 2},
    {"name": "then", "kind": "joined_events", "column": "ward", "after": ["north"], "then": ["south"]},
    {"name": "active", "kind": "active_users", "windows": [1, "7h"]},
    {"name": "daily", "kind": "period_users", "period": 4},
    {"name": "back", "kind": "retention", "period": 4, "ages": 3},
)
VALUES = queries_text(
    {
        "name": "stays",
        "kind": "value-quantile",
        "share": 0.001,
        "column": "minutes",
        "edges": {"from": 1, "to": 100, "ratio": 1.5},
        "q": [0.5, 0.9],
    },
    {"name": "lengths", "kind": "value_histogram", "share": 0.001, "column": "minutes", "edges": [0, 7, 20.5, 60]},
)
SKETCHED = queries_text(
    {"name": "some", "kind": "sketch", "share": 0.001, "column": "patient", "watch": ["p1", "cafe\u0301"], "width": 64},
    {
        "name": "minutes-often",
        "kind": "heavy-prefixes",
        "share": 0.001,
        "column": "minutes",
        "labels": "number",
        "symbols": 2,
        "fanout": 10,
        "width": 100,
        "threshold": 30,
    },
)
BOARDS = queries_text(
    {
        "name": "board",
        "kind": "dashboard",
        "share": 0.001,
        "column": "ward",
        "types": ["north", "south"],
        "metrics": {"both": "all", "cold": ["north"]},
    },
    {
        "name": "tables",
        "kind": "group_by",
        "share": 0.001,
        "columns": {"ward": ["north", "south"], "patient": ["p1", "p2"]},
        "tables": [["ward"], []],
    },
)
_ROOM = (("share = 0.2\n", "share = 0.13\n"),) * 4


FURTHER = VALUES + SUMS + SKETCHED + BOARDS


def spec_of_all_kinds(write_spec: WriteSpec, present: str = PRESENT + APPLIED + FURTHER) -> StreamSpec:
    path = write_spec(*WITH_UNKNOWN_QUERIES, append=COLUMN_QUERIES + UNKNOWN_QUERIES + REST + present)
    text = path.read_text()
    for old, new in _ROOM:
        text = text.replace(old, new, 1)
    path.write_text(text)
    return load_spec(path)


def spec_of_user_kinds(folder: Path) -> StreamSpec:
    path = folder / "users.toml"
    stream = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient"}
    path.write_text(spec_text(*OF_USERS, stream=stream, guarantee={"epsilon": 90, "delta": 1e-6}))
    return load_spec(path)


def as_objects(spec: StreamSpec, tick: int) -> Batch:
    return columns(visits(tick - 1, tick), spec.columns())[1]


def released(
    spec: StreamSpec, ticks: int, batch: Callable[[StreamSpec, int], Batch] = as_objects
) -> Iterator[tuple[TickRelease, dict[str, Release]]]:
    mechanisms = build(spec, simulation(3))
    for tick in range(1, ticks + 1):
        events = TickEvents(spec, [batch(spec, tick)])
        found = {
            query.name: mechanisms[query.name].step_events(
                events.events(query), **({"users": events.users()} if mechanisms[query.name].takes_users else {})
            )
            for query in spec.queries
        }
        payloads = {query.name: pack(query, found[query.name], spec.beta) for query in spec.queries}
        yield TickRelease(tick, spec.clock.end_of(tick), payloads), found


def rows(spec: StreamSpec, release: TickRelease) -> Iterator[tuple[Any, ...]]:
    """One row of `FIELDS` for each released number or label."""
    for query, kept in unpacked(spec, release):
        for category, value, lower, upper in entries(kept):
            yield release.tick, release.time, query.name, category, value, kept["stddev"], lower, upper
