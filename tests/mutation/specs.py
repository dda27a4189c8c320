"""Specs of one or two queries that together use every family of the library: whichever of them executes the line of a
mutant is the configuration that an audit of it looks at. Budgets of games are large, so that few games show much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mutation.covering import cache_folder
from spec_text import spec_text

_WARD: dict[str, Any] = {"column": "ward", "categories": ["north", "south", "attic"]}
_UPDATES = {"action": "ward", "insert": "north", "delete": "south", "id": "patient"}
_SIGNED = {"weight": "minutes", "max_weight": 2, "signed": True, "resolution": 1}
_EDGES = {"columns": ["patient", "ward"]}
_LETTERS = {"column": "ward", "alphabet": ["a", "b"], "sequence": "stream"}
_TABLE = {"ward": ["north", "south"], "patient": ["p1", "p2"]}
_PURE, _LOUD, _DELTA = {"epsilon": 1}, {"epsilon": 8}, {"epsilon": 2, "delta": 1e-6}
_BUSY = {"max_events_per_tick": 4}


def _query(kind: str, **options: Any) -> dict[str, Any]:
    return {"name": "asked", "kind": kind, **options}


def _of(query: dict[str, Any], guarantee: dict[str, Any] | None = None, **stream: Any) -> str:
    given = {} if guarantee is None else {"guarantee": guarantee}
    return spec_text(query, stream={"name": "visits", "horizon": 16, **stream}, **given)


def _endless(query: dict[str, Any], guarantee: dict[str, Any] | None = None) -> str:
    given = {} if guarantee is None else {"guarantee": guarantee}
    return spec_text(query, stream={"name": "visits"}, **given)


def _users(query: dict[str, Any], guarantee: dict[str, Any] | None = None, **stream: Any) -> str:
    return _of(query, guarantee, unit="user", user_column="patient", **stream)


_RARELY = {"max_ticks_per_user": 3, "min_separation": 5}

SPECS: dict[str, str] = {
    # counters: every process, with every law that it takes
    "counter": _of(_query("counter"), _LOUD),
    "tree": _of(_query("counter", mechanism="tree"), _LOUD, horizon=5),
    "tree-concentrated": _of(_query("counter", mechanism="tree"), neighbours="replace"),
    "honaker": _of(_query("counter", mechanism="honaker")),
    "honaker-pure": _of(_query("histogram", mechanism="honaker", **_WARD), _LOUD),
    "sqrt": _of(_query("histogram", mechanism="sqrt", **_WARD)),
    "bank": _of(_query("counter", mechanism="bank"), horizon=40),
    "bank-open": _endless(_query("counter", mechanism="bank-open")),
    "epoch-tree": _endless(_query("counter", mechanism="epoch-tree"), _LOUD),
    "blocks": _of(_query("counter", mechanism="pure-blocks"), _LOUD, horizon=64),
    "epoch-blocks": _endless(_query("counter", mechanism="epoch-blocks"), _LOUD),
    "approximate": _of(_query("counter"), _DELTA),
    "replaced": _of(_query("histogram", max_per_event=2, **_WARD), neighbours="replace"),
    "pure-histogram": _of(_query("histogram", max_per_event=2, **_WARD), _LOUD),
    "decay": _of(_query("counter", mechanism="bank", workload={"decay": "0.9"})),
    "root-endless": _endless(_query("counter", mechanism="root", workload={"decay": "0.7"})),
    "root": _of(_query("counter", mechanism="root", workload={"decay": "0.9"})),
    "window": _of(_query("counter", workload={"window": 3})),
    "toeplitz": _of(_query("counter", workload={"toeplitz": [3, 2, 1]})),
    "weights-of-ticks": _of(_query("counter", workload={"weights": [1, 2, 3, 4, 3, 2, 1, 1]}), horizon=8),
    "memory": _of(
        _query("vector_counter", mechanism="tree", column="ward", columns=["north", "south"], memory_limit=20), _LOUD
    ),
    "together": spec_text(
        {"name": "all", "kind": "counter", "share": 0.3},
        {"name": "ward", "kind": "histogram", "share": 0.7, **_WARD},
        stream={"name": "visits", "horizon": 16},
    ),
    # users
    "capped-users": _users(_query("histogram", **_WARD), max_events_per_user=3),
    "replaced-users": _users(_query("counter"), {"epsilon": 2}, max_events_per_user=2, neighbours="replace"),
    "signed-users": _users(
        _query("histogram", **_SIGNED, **_WARD),
        max_events_per_user=2,
        neighbours="replace",
    ),
    "separated-users": _users(
        _query("counter", mechanism="banded", column="minutes", max_weight=2, **_RARELY), horizon=24
    ),
    "calendar-users": _users(_query("counter", mechanism="sqrt", calendar=True, **_RARELY), horizon=24),
    "separated-tree": _users(
        _query("counter", mechanism="tree", column="minutes", max_weight=2, **_RARELY), horizon=24
    ),
    "content-users": _users(_query("histogram", max_per_event=2, **_WARD), max_events_per_user=3, order="content"),
    "distinct": _users(_query("distinct_users", **_WARD)),
    "active": _users(_query("active_users", windows=[1, 4])),
    "active-long": _users(_query("active_users", windows=[56]), horizon=160),
    "periods": _users(_query("period_users", period=4)),
    "retention": _users(_query("retention", period=4, ages=3)),
    # values and cells
    "sum": _of(_query("running_sum", column="minutes", upper=50, resolution=0.5)),
    "sum-of-users": _users(_query("running_sum", column="minutes", upper=50, max_total_per_user=80.0)),
    "mean": _of(_query("running_mean", column="minutes", lower=0, upper=50, resolution=1)),
    "variance": _of(_query("running_variance", column="minutes", lower=0, upper=50)),
    "value-quantile": _of(_query("value_quantile", column="minutes", edges=[0, 7, 20.5, 60], q=[0.5])),
    "value-histogram": _of(_query("value_histogram", column="minutes", edges={"from": 1, "to": 64, "ratio": 2})),
    "weights-sqrt": _of(
        _query("histogram", weight="minutes", max_weight=2.5, resolution=0.5, mechanism="sqrt", **_WARD)
    ),
    "weights-tree": _of(
        _query("histogram", weight="minutes", max_weight=2.5, resolution=0.5, mechanism="tree", **_WARD),
        neighbours="replace",
    ),
    "weights-honaker": _of(_query("counter", column="minutes", max_weight=3, mechanism="honaker")),
    "weights-blocks": _of(
        _query("histogram", weight="minutes", max_weight=2.5, resolution=0.5, mechanism="pure-blocks", **_WARD),
        _LOUD,
        horizon=40,
    ),
    "weights-root": _of(_query("counter", column="minutes", max_weight=3, mechanism="root", workload={"decay": "0.9"})),
    "signed-independent": _of(
        _query("vector_counter", column="ward", columns=["north"], **_SIGNED),
        {"rho": 0.5, "adversary": "oblivious"},
        neighbours="independent",
    ),
    "weights": _of(_query("histogram", weight="minutes", max_weight=2.5, resolution=0.5, **_WARD)),
    # questions about column sums
    "rebased": _of(_query("max_sum", mechanism="rebased", largest=60, **_WARD), _LOUD, **_BUSY),
    "bounded": _of(_query("max_sum", mechanism="bounded", largest=60, **_WARD), {"rho": 50}, **_BUSY),
    "ladders": _of(_query("max_sum", mechanism="noisy-ladders", largest=60, **_WARD), {"epsilon": 20}, **_BUSY),
    "doubling": _of(_query("top_k_select", k=2, mechanism="doubling", **_WARD), _LOUD, neighbours="replace", **_BUSY),
    "two-level": _of(_query("top_k", k=2, mechanism="two-level", largest=60, **_WARD), {"epsilon": 40}, **_BUSY),
    "intervals": _of(_query("top_k_select", k=2, mechanism="intervals", **_WARD), _LOUD, **_BUSY),
    "sparse": _of(_query("counter", mechanism="sparse", largest=60), _LOUD, **_BUSY),
    "sparse-long": _of(_query("counter", mechanism="sparse"), _LOUD, horizon=100_000, max_events_per_tick=50),
    "questions": _of(_query("max_sum", **_WARD), _LOUD, **_BUSY),
    "recompute": _of(_query("sum_select", mechanism="recompute", **_WARD), _LOUD, **_BUSY),
    # labels
    "found": _of(_query("unknown_histogram", column="ward"), _DELTA, **_BUSY),
    "found-limited": _of(_query("unknown_histogram", column="ward", max_labels=2000), _DELTA, **_BUSY),
    "found-meta": _of(_query("unknown_top_k", k=2, column="ward", mechanism="meta"), _DELTA, **_BUSY),
    "found-blocks": _of(_query("unknown_histogram", column="ward", mechanism="meta", max_per_event=2), _DELTA, **_BUSY),
    "found-heavy": _of(_query("unknown_histogram", column="ward", mechanism="meta", max_weight=3), _DELTA, **_BUSY),
    "ahead": _of(_query("streaming_top_k", k=2, mechanism="meta", **_WARD), **_BUSY),
    "ahead-gauss": _of(_query("streaming_top_k", k=2, mechanism="meta-gauss", **_WARD), **_BUSY),
    "switches": _of(_query("streaming_top_k", k=2, mechanism="sparse-gumbel", switches=2, **_WARD), _DELTA, **_BUSY),
    "found-users": _users(_query("unknown_histogram", column="ward"), _DELTA, max_events_per_user=2, **_BUSY),
    "found-lists": _of(_query("unknown_histogram", column="ward", max_per_event=2), _DELTA, **_BUSY),
    # what is present now; graphs, letters, sketches, dashboards
    "dynamic": _of(_query("dynamic_count", lifetimes=9, protects="event", **_UPDATES)),
    "dynamic-wards": _of(_query("dynamic_histogram", mechanism="subtract", **_UPDATES, **_WARD), _LOUD),
    "present": _of(_query("present_items", protects="event", **_UPDATES)),
    "edges": _of(_query("edge_count", **_EDGES)),
    "degrees": _of(_query("degree_vector", vertices=["north", "south", "p1"], **_EDGES)),
    "substrings": _of(_query("substring_counts", longest=2, **_LETTERS)),
    "sketch": _of(_query("count_sketch", column="patient", watch=["p1", "p2"], width=64)),
    "tables": _of(_query("group_by", columns=_TABLE, tables=[["ward"], []])),
    "dashboard": _of(_query("dashboard", column="ward", types=["north", "south"], metrics={"both": "all"})),
}


def written(name: str) -> Path:
    """A spec as a file."""
    folder = cache_folder() / "specs"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.is_file() or path.read_text(encoding="utf-8") != SPECS[name]:
        path.write_text(SPECS[name], encoding="utf-8")
    return path
