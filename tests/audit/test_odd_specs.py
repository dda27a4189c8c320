"""Specs at the edges of what is legal: one tick, one label, budgets that are tiny or huge, users who come once or a
thousand times. Every audit that plays no games ends with a report, and none of the product is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evertally.audit import suite
from evertally.audit.promises import modest
from evertally.audit.steps import run
from evertally.audit.suite import Sizes
from evertally.cli.audit import plans_of_spec
from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, PureDP
from spec_text import spec_text

ONE_LABEL = {"column": "c", "categories": ["a"]}
LABELS = {"column": "c", "categories": ["a", "b"]}
LETTERS = {"column": "l", "alphabet": ["a", "b"]}
UPDATES = {"action": "what", "id": "v"}
USERS = {"unit": "user", "user_column": "u"}
COUNTER = {"kind": "counter"}
PURE, GAUSSIAN, OBLIVIOUS = {"epsilon": 1.0}, {"rho": 0.5}, {"rho": 0.5, "adversary": "oblivious"}

SPECS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # one tick
    ({"horizon": 1, **USERS}, GAUSSIAN, {"kind": "distinct_users"}),
    ({"horizon": 1, **USERS}, GAUSSIAN, {"kind": "distinct_users", **LABELS}),
    ({"horizon": 1, **USERS}, PURE, {"kind": "active_users", "windows": [1]}),
    ({"horizon": 1, **USERS}, GAUSSIAN, {"kind": "joined_events", "column": "c", "after": ["a"], "then": ["b"]}),
    ({"horizon": 1}, PURE, {"kind": "dynamic_count", **UPDATES}),
    ({"horizon": 1}, GAUSSIAN, {"kind": "edge_count", "columns": ["x", "y"]}),
    # one label
    ({"horizon": 6}, PURE, {"kind": "dynamic_histogram", **UPDATES, **ONE_LABEL, "max_lifetime": 2}),
    ({"horizon": 6}, GAUSSIAN, {"kind": "dynamic_histogram", **UPDATES, **ONE_LABEL, "other": "z"}),
    ({"horizon": 2, "neighbours": "replace"}, PURE, {"kind": "histogram", **ONE_LABEL}),
    # columns that change independently of each other
    ({"horizon": 5, "neighbours": "independent"}, OBLIVIOUS, COUNTER),
    ({"horizon": 5, "neighbours": "independent"}, OBLIVIOUS, {**COUNTER, "column": "m", "max_weight": 3}),
    ({"horizon": 5, "neighbours": "independent"}, OBLIVIOUS, {"kind": "histogram", **LABELS, "max_per_event": 2}),
    (
        {"horizon": 5, "neighbours": "independent"},
        OBLIVIOUS,
        {"kind": "histogram", **LABELS, "other": "z", "max_per_event": 3},
    ),
    # budgets
    ({"horizon": 4}, {"epsilon": 1e-4, "delta": 1e-12}, {**COUNTER, "workload": {"decay": "0.99"}}),
    ({"horizon": 4}, {"rho": 1e-24}, COUNTER),
    ({"horizon": 4}, {"epsilon": 1e-11}, COUNTER),
    ({"horizon": 4}, PURE, {**COUNTER, "workload": {"toeplitz": [1, 2**32]}}),
    ({"horizon": 6}, {"epsilon": 60.0}, {"kind": "edge_count", "columns": ["x", "y"]}),
    # users
    ({"horizon": 4, "max_events_per_user": 2, **USERS}, PURE, {**COUNTER, "workload": {"weights": [1, 2, 0, 5]}}),
    ({"horizon": 4, "max_events_per_user": 2, **USERS}, GAUSSIAN, {**COUNTER, "workload": {"decay": "0.5"}}),
    ({"horizon": 3, "max_events_per_user": 1, **USERS}, GAUSSIAN, {"kind": "histogram", **LABELS}),
    ({"horizon": 2, "max_events_per_user": 1000, "neighbours": "replace", **USERS}, PURE, COUNTER),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "short", Sizes(8, 2000, 100, 500, 20, least=20, wait=3, streams=2, pairs=20))


def played_without_games(step: Any) -> bool:
    """Faults of state and games are played elsewhere, for every kind."""
    return step.name in (
        "its share of the promise",
        "neighbours through the door",
        "all charges together",
        "all short streams",
        "lifetimes",
        "neighbours",
        "whole",
        "exact law",
        "closed form",
        "the door",
    )


@pytest.mark.parametrize(("stream", "guarantee", "query"), SPECS, ids=lambda one: "-".join(map(str, one.values())))
def test_nothing_falls_over_and_nothing_is_broken(
    stream: dict[str, Any], guarantee: dict[str, Any], query: dict[str, Any], tmp_path: Path
) -> None:
    spec = tmp_path / "odd.toml"
    spec.write_text(spec_text({"name": "q", **query}, stream={"name": "odd", **stream}, guarantee=guarantee))
    (steps,) = plans_of_spec(spec, "short", 0).values()
    reports = [run(step) for step in steps if played_without_games(step)]
    aspects = {report.aspect for report in reports}
    assert "budget" in aspects
    assert "loss" in aspects or {"noise", "change"} <= aspects
    assert [report for report in reports if not report.passed] == []
    assert any(report.fraction > 0.3 for report in reports if report.aspect != "budget"), "something was changed"


@pytest.mark.parametrize(
    ("name", "stream", "query"),
    [
        ("change of tick 1", {}, {"kind": "streaming_top_k", **ONE_LABEL, "k": 1, "switches": 1}),
        (
            "change of tick 1",
            {"max_events_per_user": 1, **USERS},
            {"kind": "value_quantile", "column": "m", "q": [0.5], "bits": 3},
        ),
        (
            "found",
            {"max_events_per_user": 1, **USERS},
            {"kind": "frequent_substrings", **LETTERS, "sequence": "stream", "longest": 2, "above": 1},
        ),
    ],
)
def test_one_row_of_an_odd_query(name: str, stream: dict[str, Any], query: dict[str, Any], tmp_path: Path) -> None:
    promise = {"epsilon": 4.0, "delta": 1e-6}
    spec = tmp_path / "odd.toml"
    spec.write_text(
        spec_text({"name": "q", **query}, stream={"name": "odd", "horizon": 2, **stream}, guarantee=promise)
    )
    (steps,) = plans_of_spec(spec, "short", 0).values()
    assert run(next(step for step in steps if step.name == name)).passed


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "running_sum", "column": "m", "upper": 5, "max_total_per_user": 7},
        {"kind": "joined_events", "column": "c", "after": ["a"], "then": ["b"]},
    ],
)
def test_what_bounds_a_user_for_life_is_refused_where_blocks_are_protected(query: Any, tmp_path: Path) -> None:
    spec = tmp_path / "odd.toml"
    stream = {"name": "odd", "horizon": 4, "unit": "user-period", "period": "2h", "user_column": "u"}
    spec.write_text(spec_text({"name": "q", **query}, stream=stream, guarantee=GAUSSIAN))
    with pytest.raises(ConfigurationError, match="once and for all"):
        plans_of_spec(spec, "short", 0)


@pytest.mark.parametrize("promise", [PureDP(60.0), ZCDP(900.0), ApproxDP(60.0, 1e-6), PureDP(0.1)])
def test_a_modest_promise_is_kept_by_whoever_keeps_a_smaller_one(promise: Any) -> None:
    assert type(modest(promise)) is type(promise)
    assert getattr(modest(promise), "rho", 0.0) <= 0.5
    assert getattr(modest(promise), "epsilon", 0.0) <= min(1.0, getattr(promise, "epsilon", 1.0))
