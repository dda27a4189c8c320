"""Whatever the kind of a query: in pieces, in any order, over several batches and drivers, what is shown is what one
process releases under the same key, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from by_hand import by_hand, play

from evertally.errors import ConfigurationError, StateError
from evertally.runtime import load_spec
from evertally.spark.beginning import taken
from evertally.spark.engine import Engine
from evertally.spark.failures import TaskFailed
from evertally.spark.public import shown
from spec_text import Table
from streams import (
    BY_HOUR,
    WORDS,
    begun,
    check_equal,
    events,
    in_pieces,
    place,
    places,
    three_batches,
    write,
)

__all__ = ["place"]

CONTENT = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, "order": "content"}
OF_USERS = {**CONTENT, "unit": "user", "user_column": "user", "max_events_per_user": 3}
APPROXIMATE = {"epsilon": 40.0, "delta": 1e-5}
MANY, FEW = WORDS[:40], WORDS[:3]


def named(kind: str, name: str = "", **options: Any) -> Table:
    return {"name": name or kind, "kind": kind, **options}


TYPES: Table = {"column": "what", "types": ["letter", "visit"], "other": "else"}
CROSSED = {"what": ["letter", "visit"], "does": ["comes", "goes"]}
COUNTS = [
    named("counter"),
    named("counter", "amounts", column="number", max_weight=20),
    named("counter", "lately", workload={"decay": "0.9"}),
    named("vector_counter", column="number", columns=50),
    named("vector_counter", "and-others", column="number", columns=33, other="rest"),
    named("vector_counter", "named", column="page", columns=MANY, memory_limit=4000),
    named("histogram", "few", column="page", categories=FEW, other="elsewhere"),
    named("histogram", "many", column="page", categories=MANY, other="elsewhere"),
    named("histogram", "lists", column="words", categories=MANY, max_per_event=3),
    named("histogram", "bins", column="amount", edges=[0, 5, 10, 40]),
    named("histogram", "narrow-bins", column="amount", edges=list(range(0, 60, 2)), outside="cells"),
    named("histogram", "sums", column="page", categories=FEW, weight="amount", max_weight=50, resolution=0.5),
    named(
        "histogram", "many-sums", column="page", categories=MANY, weight="amount", max_weight=50, resolution=0.5,
        signed=True,
    ),
    named("running_mean", column="amount", lower=0, upper=50),
    named("running_sum", column="amount", upper=50, resolution=0.1),
    named("running_sum", "rounded", column="amount", upper=50, resolution=0.1, rounding="nearest"),
    named("running_variance", column="amount", lower=0, upper=50),
    named("value_histogram", column="amount", edges=[0, 5, 10, 40]),
    named("value_quantile", column="amount", edges={"from": 1, "to": 100, "ratio": 1.2}),
    named("value_quantile", "of-bits", column="number", bits=6, fanout=4),
    named("adaptive_sum", column="number", upper=1000, pilot=4, first_bound=30),
    named("dashboard", **TYPES, metrics={"total": "all", "by-post": ["letter"]}),
    named("group_by", columns=CROSSED, tables=[["what", "does"], ["does"], []]),
    named("count_sketch", column="page", watch=FEW, rows=3, width=5),
    named("count_sketch", "wide-sketch", column="words", watch=FEW, rows=3, width=40, max_per_event=2),
    named("heavy_prefixes", column="page", symbols=2, threshold=30, rows=1, width=20),
]  # fmt: skip
OF_COLUMNS: Table = {"column": "page", "categories": WORDS[:6]}
QUESTIONS = [
    named("max_sum", **OF_COLUMNS),
    named("min_sum", **OF_COLUMNS),
    named("max_sum", "rebased", **OF_COLUMNS, mechanism="rebased", largest=60),
    named("sum_quantile", **OF_COLUMNS, q=0.5),
    named("top_k", **OF_COLUMNS, k=2),
    named("sum_select", **OF_COLUMNS),
    named("top_k_select", **OF_COLUMNS, k=2),
    named("streaming_top_k", **OF_COLUMNS, k=2, mechanism="tree"),
    named("monotone_query", **OF_COLUMNS, expression={"ranks": [1, -1], "of": "all"}),
    named("counter", "rare", mechanism="sparse"),
    named("histogram", "rare-pages", **OF_COLUMNS, mechanism="sparse"),
]
UNKNOWN = [
    named("unknown_histogram", column="page"),
    named("unknown_histogram", "kept", column="words", max_per_event=2, sticky=True),
    named("unknown_histogram", "at-each-tick", column="page", threshold="per_tick"),
    named("unknown_histogram", "few-labels", column="page", max_labels=400),
    named("unknown_histogram", "blocks", column="words", mechanism="meta"),
    named("unknown_top_k", column="words", k=3, max_per_event=2),
    named("unknown_top_k", "top-of-blocks", column="page", k=3, mechanism="meta"),
]
APART: Table = {"min_separation": 3, "max_ticks_per_user": 2}
USERS = [
    named("counter"),
    named("histogram", "many", column="page", categories=MANY),
    named("running_mean", column="amount", lower=0, upper=50),
    named("running_sum", column="amount", upper=50, resolution=0.1),
    named("max_sum", **OF_COLUMNS),
    named("unknown_histogram", column="page"),
    named("count_sketch", "capped-sketch", column="page", watch=FEW, rows=3, width=40),
    named("count_sketch", column="page", watch=FEW, rows=3, width=5, max_labels_per_user=2),
    named("count_sketch", "wide-sketch", column="words", watch=FEW, rows=3, width=40, max_labels_per_user=2),
    named("distinct_users"),
    named("distinct_users", "by-page", column="page", categories=FEW, other="elsewhere"),
    named("distinct_users", "by-many", column="page", categories=MANY, max_categories=2),
    named("distinct_users", "first-few", max_users=9),
    named("distinct_users", "bits", bits=64),
    named("distinct_users", "sample", sample="1/2"),
    named("unknown_distinct_users", column="page", max_categories=2),
    named("unknown_distinct_users", "few-labels", column="page", max_labels=2000),
    named("active_users", windows=[1, 3]),
    named("active_users", "active-by-page", windows=[2], column="page", categories=MANY),
    named("retention", period=3, ages=3),
    named("period_users", period=2, so_far=True),
    named("counter", "apart", **APART),
    named("histogram", "many-apart", column="page", categories=MANY, **APART),
    named("running_sum", "allowance", column="amount", upper=50, max_total_per_user=120),
    named("value_quantile", "quantile-apart", column="amount", edges=[0, 10, 20, 40], **APART),
]
ONCE_A_BLOCK: Table = {"min_separation": 2, "calendar": True}
PERIODS = [
    named("counter", **ONCE_A_BLOCK),
    named("histogram", "many", column="page", categories=MANY, **ONCE_A_BLOCK, max_events_per_user_tick=2),
]
GRAPHS = [
    named("edge_count", columns=["user", "other"]),
    named("triangles", columns=["user", "other"], max_degree=4),
    named("degree_histogram", columns=["user", "other"], max_degree=4),
    named("cut_graph", columns=["user", "other"], vertices=[f"person {n}" for n in range(9)], copies="counted"),
]

STREAMS: dict[str, tuple[list[Table], dict[str, Any]]] = {
    "counts": (COUNTS, {"stream": CONTENT, "guarantee": {"rho": 20.0}}),
    "counts, pure": (COUNTS[::3], {"stream": CONTENT, "guarantee": {"epsilon": 100.0}, "clock": BY_HOUR}),
    "questions": (QUESTIONS, {"stream": CONTENT, "guarantee": APPROXIMATE}),
    "unknown": (UNKNOWN, {"stream": CONTENT, "guarantee": APPROXIMATE}),
    "users": (USERS, {"stream": OF_USERS, "guarantee": {"epsilon": 200.0, "delta": 1e-4}, "clock": BY_HOUR}),
    "periods": (PERIODS, {"stream": {**CONTENT, "unit": "user-period", "user_column": "user", "period": 4}}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_it_is_what_one_process_releases(place: Path, name: str) -> None:
    queries, sections = STREAMS[name]
    spec = write(place / "spark", *queries, **sections)
    table = events(240, hours=sections.get("clock") is BY_HOUR)
    assert check_equal(spec, three_batches(table)) >= 12 * len(queries)


WIDE = {
    "vector_counter", "and-others", "named", "many", "lists", "narrow-bins", "wide-sketch",
    "heavy_prefixes", "capped-sketch", "by-many", "many-apart",
}  # fmt: skip
SHARDED = {"unknown_histogram", "kept", "at-each-tick", "unknown_top_k", "unknown_distinct_users"}
AS_RECORDS = {"running_sum", "rounded", "allowance", "first-few", "bits", "active_users", "active-by-page", "retention"}


def test_wide_rows_are_slices_items_are_shards_and_few_events_travel(place: Path) -> None:
    ways: dict[str, tuple[str, str]] = {}
    for number, (queries, sections) in enumerate(STREAMS.values()):
        ways |= places(write(place / str(number), *queries, **sections))
    assert {name for name, (where, _) in ways.items() if where == "slices"} == WIDE
    assert {name for name, (where, _) in ways.items() if where == "shards"} == SHARDED
    assert {name for name, (_, what) in ways.items() if what == "records"} > AS_RECORDS


def test_slices_of_pages_of_the_keystream(place: Path) -> None:
    wide = named("vector_counter", column="number", columns=9000)
    spec = write(place / "spark", wide, named("counter"), engine={"slice_width": 4096})
    table = events(300).set_column(3, "number", pa.array([n * n % 10_000 for n in range(300)]))
    assert check_equal(spec, three_batches(table)) == 12 * 9001


def test_order_by_arrival_is_enough_for_what_only_adds_up(place: Path) -> None:
    by_arrival = {"name": "visits", "horizon": 24}
    spec = write(place / "spark", COUNTS[0], COUNTS[7], COUNTS[13], stream=by_arrival)
    assert check_equal(spec, three_batches(events(200))) == 12 * (1 + 41 + 1)


@pytest.mark.parametrize(
    ("query", "stream"),
    [
        (USERS[0], {**OF_USERS, "order": "arrival"}),
        (named("distinct_users"), {**OF_USERS, "order": "arrival", "max_events_per_user": None}),
        (named("running_sum", column="amount", upper=50), {**CONTENT, "order": "arrival"}),
    ],
)
def test_what_depends_on_an_order_is_refused_without_one(place: Path, query: Table, stream: Table) -> None:
    kept = {name: value for name, value in stream.items() if value is not None}
    spec = write(place / "spark", query, stream=kept)
    with pytest.raises(ConfigurationError, match=r'which events of a user count must not .* write order = "content"'):
        begun(spec)
    assert sorted(path.name for path in spec.parent.iterdir()) == ["visits.toml"]  # and leaves nothing behind


ITEMS: Table = {"action": "does", "insert": "comes", "delete": "goes", "id": "item"}
ONE_AFTER_THE_OTHER = [
    (named("dynamic_count", **ITEMS), {}),
    (named("substring_counts", column="what", alphabet=["letter", "visit"], sequence="stream", longest=2), {}),
    (named("joined_events", column="what", after=["letter"], then=["visit"]), {"unit": "user", "user_column": "user"}),
    *((query, {}) for query in GRAPHS),  # of a vertex the first edges are kept
]


@pytest.mark.parametrize(("query", "unit"), ONE_AFTER_THE_OTHER)
def test_what_is_about_the_order_of_arrival_stays_in_one_process(place: Path, query: Table, unit: Table) -> None:
    with pytest.raises(ConfigurationError, match="is about what came before what, within a tick too"):
        begun(write(place / "content", query, stream={**CONTENT, **unit}))
    with pytest.raises(ConfigurationError, match="rows of a shuffle come in any order"):
        begun(write(place / "arrival", query, stream={**CONTENT, **unit, "order": "arrival"}))


def test_one_label_in_two_spellings_is_one_label_of_one_shard(place: Path) -> None:
    queries = [named("unknown_histogram", column="page"), named("histogram", "many", column="page", categories=MANY)]
    spec = write(place / "spark", *queries, stream=CONTENT, guarantee=APPROXIMATE)
    spellings = ["\u00e9", "e\u0301", "word-01", "\u212b", "\u00c5", "7", "x" * 5000, None]
    pages = pa.array([spellings[n % len(spellings)] for n in range(400)])
    table = events(400).set_column(2, "page", pages)
    check_equal(spec, three_batches(table))
    _, last = list(shown(load_spec(spec), "unknown_histogram"))[-1]
    assert set(last["category"]) == {"\u00e9", "word-01", "\u00c5", "7"}  # of 100 or 50 each, at epsilon = 20


def test_events_that_wait_may_be_of_narrower_types(place: Path) -> None:
    spec = write(place / "spark", named("counter"), named("distinct_users", "few", max_users=5), stream=OF_USERS)
    first, second = (
        events(60, seed=width).set_column(1, "user", pa.array([n % 9 for n in range(60)], kind))
        for width, kind in ((32, pa.int32()), (64, pa.int64()))
    )
    assert check_equal(spec, [(first, 2), (second, 9)]) == 18


def test_events_that_wait_are_not_read_as_another_type(place: Path) -> None:
    spec = write(place / "spark", named("counter"), stream=OF_USERS)
    numbers = events(60).set_column(1, "user", pa.array(range(60)))
    play(spec, [([numbers], 2)])
    with pytest.raises(TaskFailed, match=r"bucket: StateError at packing.py"):
        play(spec, [([events(60)], 9)], first=1)
    assert play(spec, [([numbers], 9)], first=1)[0]["through"] == 9


def test_a_user_who_is_written_otherwise_in_the_next_batch_has_one_cap(place: Path) -> None:
    """7, "7" and 7.0 are one user: of one bucket, which knows how many events were counted."""
    spec = write(place / "spark", named("counter"), named("distinct_users"), stream=OF_USERS, guarantee={"rho": 1e6})
    numbers = [n % 9 for n in range(36)]
    kinds = [pa.array(numbers), pa.array(map(str, numbers)), pa.array(map(float, numbers))]
    batches = [(pa.table({"time": [t] * 36, "user": users}), t + 1) for t, users in enumerate(kinds)]
    check_equal(spec, batches)
    assert [value["value"] for _, value in shown(load_spec(spec), "counter")] == [27, 27, 27]


def test_what_needs_no_user_counts_events_without_one(place: Path) -> None:
    of_events = {**CONTENT, "user_column": "user"}
    spec = write(place / "spark", named("counter"), named("distinct_users"), stream=of_events, guarantee={"rho": 1e6})
    table = pa.table({"time": [0] * 6, "user": ["ann", None, None, "ben", None, "ann"]})
    check_equal(spec, [(table, 1)])
    assert [next(shown(load_spec(spec), name))[1]["value"] for name in ("counter", "distinct_users")] == [6, 2]


def test_events_that_differ_in_one_column_alone_have_an_order(place: Path) -> None:
    """Whichever column it is: which event of a user counts, and who is among the first, follows from no arrival."""
    queries = [
        named("histogram", column="page", categories=MANY), named("running_sum", column="amount", upper=50),
        named("distinct_users", max_users=9),
    ]  # fmt: skip
    spec = write(place / "spark", *queries, stream={**OF_USERS, "max_events_per_user": 1}, guarantee={"rho": 1e6})
    rows = [(f"person {n}", WORDS[n % 2 if n < 60 else 0], float(n % 2) if n >= 60 else 0.0) for n in range(120)]
    rows += [
        (user, WORDS[1] if n < 60 else page, amount if n < 60 else 7.0) for n, (user, page, amount) in enumerate(rows)
    ]
    users, pages, amounts = map(list, zip(*rows, strict=True))
    check_equal(spec, [(pa.table({"time": [0] * 240, "user": users, "page": pages, "amount": amounts}), 1)])


def test_a_batch_may_close_nothing_and_events_wait_over_several(place: Path) -> None:
    spec = write(place / "spark", *COUNTS[:4], stream=CONTENT)
    early = pa.table({"time": [5, 5, 6], "number": [1, 1, 2], "page": ["word-01"] * 3})
    batches = [(early, 1), (early, 1), (early.slice(0, 0), 3), (early, 6), (early.slice(0, 0), 7)]
    assert check_equal(spec, batches) == 7 * 53


def test_an_own_stamp_for_all_events_of_a_batch(place: Path) -> None:
    """Where events have no time of their own, the driver says which tick they are of; what they say is not read."""
    loud = {"rho": 50.0}
    spec = write(place / "spark", COUNTS[3], stream=CONTENT, guarantee=loud, clock={"start": 0, "tick": 1})
    numbers = np.arange(90) % 7
    with taken(load_spec(spec)) as held:
        Engine(held).advance(by_hand([pa.table({"number": numbers})]), 0, 3, {"id": "0"}, stamp=3)
    rows = np.array([value["value"] for _, value in shown(load_spec(spec), "vector_counter")])
    expected = np.zeros((3, 50), np.int64)
    expected[2] = np.bincount(numbers, minlength=50)
    assert rows.shape == (3, 50)
    assert abs(rows - expected).max() <= 6


def test_shown_ticks_can_be_asked_for(place: Path) -> None:
    spec = write(place / "spark", *COUNTS[:4], stream=CONTENT)
    play(spec, in_pieces(three_batches(events(60)), 2, seed=1))
    for query in load_spec(spec).queries:
        everything = dict(shown(load_spec(spec), query.name))
        assert dict(shown(load_spec(spec), query.name, 4, 9)) == {t: everything[t] for t in range(4, 10)}
        assert list(dict(shown(load_spec(spec), query.name, 11))) == [11, 12]
    with pytest.raises(StateError, match="there is no query 'nobody'"):
        list(shown(load_spec(spec), "nobody"))
