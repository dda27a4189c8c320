"""Whatever the kind of a query: in pieces, in any order, over several batches and drivers, what is shown is what one
process releases under the same key, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spec_text import Table
from streams import BY_HOUR, WORDS, check_equal, events, place, places, three_batches, write

CONTENT = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, "order": "content"}
OF_USERS = {**CONTENT, "unit": "user", "user_column": "user", "max_events_per_user": 3}
APPROXIMATE = {"epsilon": 40.0, "delta": 1e-5}
MANY, FEW = WORDS[:40], WORDS[:3]


def named(kind: str, name: str = "", **options: Any) -> Table:
    return {"name": name or kind, "kind": kind, **options}


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
    named("dashboard", column="what", types=["letter", "visit"], other="else", metrics={"total": "all", "by-post": ["letter"]}),
    named("group_by", columns={"what": ["letter", "visit"], "does": ["comes", "goes"]}, tables=[["what", "does"], ["does"], []]),
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
    named("unknown_distinct_users", "few-labels", column="words", max_labels=2000),
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
    "counts, pure": (COUNTS, {"stream": CONTENT, "guarantee": {"epsilon": 100.0}, "clock": BY_HOUR}),
    "questions": (QUESTIONS, {"stream": CONTENT, "guarantee": APPROXIMATE}),
    "unknown": (UNKNOWN, {"stream": CONTENT, "guarantee": APPROXIMATE}),
    "users": (USERS, {"stream": OF_USERS, "guarantee": {"epsilon": 200.0, "delta": 1e-4}, "clock": BY_HOUR}),
    "periods": (PERIODS, {"stream": {**CONTENT, "unit": "user-period", "user_column": "user", "period": 4}}),
    "graphs": (GRAPHS, {"stream": CONTENT}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_it_is_what_one_process_releases(place: Path, name: str) -> None:
    queries, sections = STREAMS[name]
    spec = write(place / "spark", *queries, **sections)
    table = events(240, hours=sections.get("clock") is BY_HOUR)
    assert check_equal(spec, three_batches(table)) >= 12 * len(queries)
