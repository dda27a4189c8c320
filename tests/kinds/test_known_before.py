"""What a plan says of errors that depend on data agrees with the mechanisms, and there is a sentence for every kind."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import evertally as et
from evertally.cli.show import plan_table
from evertally.kinds.known_before import by_users, by_values, in_ranks
from evertally.kinds.registry import is_ours, known
from evertally.runtime import load_spec, plan

PROMISE: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 100}
SPEC = """\
[stream]
name = "till"
horizon = 24
[guarantee]
rho = 0.5
[clock]
column = "time"
start = 2013-01-01
tick = "1h"
[key]
file = "secret/till.key"
[state]
file = "till.state"
[output]
file = "till.csv"
[[query]]
name = "basket"
kind = "mean"
column = "euros"
lower = 0
upper = 50
[[query]]
name = "minutes"
kind = "value_quantile"
column = "minutes"
q = [0.5, 0.9]
edges = [0, 1, 2, 5, 10]
[[query]]
name = "watched"
kind = "count_sketch"
column = "item"
watch = ["a"]
"""


def test_every_error_that_comes_later_has_something_that_is_known_before() -> None:
    assert all(kind.known_before for kind in known() if kind.error_later and is_ours(kind))


def test_values() -> None:
    for mechanism in (et.RunningMean(lower=0, upper=100, **PROMISE), et.RunningVariance(lower=-5, upper=5, **PROMISE)):
        said = re.findall(r"([\d.,]+) from ([\d,]+)", by_values(mechanism, 0.05, None))
        assert len(said) == 3
        for off, count in said:
            bound = mechanism.error_bound(0.05, count=int(count.replace(",", "")))
            assert abs(float(off.replace(",", "")) - bound) <= 0.01 * bound


def test_users_where_they_are_estimated() -> None:
    assert by_users(et.DistinctUsers(**PROMISE), 0.05, None) == ""
    estimate = et.DistinctUsers(sample="1/16", **PROMISE)
    off, users = re.findall(r"([\d.,]+) with ([\d,]+)", by_users(estimate, 0.05, None))[0]
    bound = estimate.error_bound(0.05, users=int(users.replace(",", "")))
    assert abs(float(off.replace(",", "")) - bound) <= 0.01 * bound


def test_quantiles_lie_between_true_ones() -> None:
    """So many values as it says, and the true ranks of what is released at every tick."""
    quantile = et.ValueQuantile(q=[0.5, 0.9], edges=range(101), **PROMISE, key=et.simulation(17))
    said = in_ranks(quantile, 0.05, None)
    values = int(re.findall(r"from ([\d,]+) values", said)[0].replace(",", ""))
    ends = [tuple(map(float, pair)) for pair in re.findall(r"true ([\d.]+) % and ([\d.]+) %", said)]
    assert [low < q < high for q, (low, high) in zip((50, 90), ends, strict=True)] == [True, True]
    released = quantile.step_events([1 + i % 100 for i in range(values)])
    for value, (low, high) in zip(released.value.values(), ends, strict=True):
        assert low - 1 <= value <= high + 1  # of these values the p % quantile is p; a cell is 1 wide


def test_the_plan_prints_it(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "till.toml"
    file.write_text(SPEC)
    spec = load_spec(file)
    plan_table(spec, plan(spec))
    shown = capsys.readouterr().out
    assert re.search(r"basket: no release is off by more than .* values on", shown)
    assert re.search(r"minutes: in every release from .* 50 % between", shown)
    assert re.search(r"watched: noise alone moves no release by more than \d+, with probability 95%", shown)
