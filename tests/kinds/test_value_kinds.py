"""Sums, variances and adaptive sums from a spec: what is run is the truth without noise, words and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kind_runs import hour, lines_of, values, written

from evertally.errors import ConfigurationError
from evertally.kinds import find
from evertally.runtime import load_spec, run
from evertally.runtime.certificate import certificate
from evertally.runtime.plan import plan

REVENUE = {"name": "revenue", "kind": "sum", "column": "amount", "upper": 50, "resolution": 0.25}
SPREAD = {"name": "spread", "kind": "variance", "column": "amount", "lower": 0, "upper": 50, "resolution": 0.01}
SPENT = {"name": "spent", "kind": "adaptive_sum", "column": "amount", "upper": 64, "epochs": ["2h"], "first_bound": 16}
FOUR = {"name": "till", "horizon": 4}
USERS = {**FOUR, "unit": "user", "user_column": "who"}
EVENTS: list[tuple[int, str | None, Any]] = [
    (1, "a", 30.25),
    (1, "b", 99),
    (1, None, 5),
    (2, "a", 30),
    (2, "b", "seven"),
    (3, "a", 30),
    (4, "c", -4),
]


def sent(folder: Path) -> Path:
    path = folder / "events.jsonl"
    rows = [{"time": hour(tick, i), "who": who, "amount": amount} for i, (tick, who, amount) in enumerate(EVENTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_sums_of_events(tmp_path: Path) -> None:
    spec = written(tmp_path, REVENUE, SPREAD, SPENT, stream=FOUR)
    run(spec, sent(tmp_path))
    assert values(spec, "revenue") == [30.25 + 50 + 5, 115.25, 145.25, 145.25]
    assert values(spec, "spread")[0]["mean"] == pytest.approx((30.25 + 50 + 5) / 3, abs=0.01)
    assert list(values(spec, "spread")[0]) == ["mean", "variance", "stddev"]
    assert values(spec, "spent")[1] == {"total": 16 + 16 + 5 + 16, "bound": 16}
    assert values(spec, "spent")[2]["bound"] == 16, "four amounts say hardly anything: the bound stays"
    rows = [row for row in lines_of(spec.output_file) if row["query"] == "revenue"]
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)


def test_an_allowance_needs_no_cap(tmp_path: Path) -> None:
    allowed = {**REVENUE, "max_total_per_user": 70}
    spec = written(tmp_path, allowed, stream=USERS)
    run(spec, sent(tmp_path))
    assert values(spec, "revenue") == [80.25, 110.25, 120.0, 120.0]
    filed = json.dumps(certificate(spec))
    assert "amounts of 70" in filed
    with pytest.raises(ConfigurationError, match="max_events_per_user"):
        written(tmp_path, allowed, SPREAD, stream=USERS)
    both = written(tmp_path, allowed, SPREAD, stream={**USERS, "max_events_per_user": 2})
    assert len(plan(both).queries) == 2


def test_spellings_and_periods(tmp_path: Path) -> None:
    digests = set()
    for kind in ("sum", "running_sum"):
        spec = written(tmp_path, {**REVENUE, "kind": kind, "every": "2h"}, stream=FOUR)
        digests.add(spec.digest)
    assert len(digests) == 1
    assert load_spec(spec.path).queries[0].parameters["every"] == 2
    run(spec, sent(tmp_path))
    assert values(spec, "revenue") == [85.25, 115.25, 30, 30]
    assert find("variance") is find("running_variance")


@pytest.mark.parametrize(
    "query",
    [
        {**REVENUE, "rounding": "up"},
        {**REVENUE, "max_total_per_user": 5},
        {**REVENUE, "upper": -1},
        {**REVENUE, "max_total_per_user": -1},
        {**SPREAD, "lower": 60},
        {**SPENT, "pilot": 2},
        {**SPENT, "epochs": ["90m"]},
        {**SPENT, "quantile": 2.0},
    ],
)
def test_refused(tmp_path: Path, query: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"visits\.toml|revenue|spread|spent"):
        plan(written(tmp_path, query, stream=FOUR))
