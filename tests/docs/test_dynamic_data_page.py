"""The page about what is present now: its code runs, its numbers are the product's, its example is real."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evertally as et
from evertally.audit.audited import AUDITED
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.runtime import load_spec, plan, run
from printed import ROOT, run_as_printed

RATIOS = {  # by (identity, protects), in units of the same process of a counter: Gaussian noise, and a pure epsilon
    ("id", "item"): (math.sqrt(2), 2),
    ("id", "event"): (2 * math.sqrt(2), 4),
    ("token", "item"): (math.sqrt(2), 2),
    ("token", "event"): (math.sqrt(2), 2),
    ("value", "item"): (math.sqrt(6), 4),
    ("value", "event"): (math.sqrt(2), 2),
    ("raw", "item"): (math.sqrt(2), 2),
    ("raw", "event"): (1, 1),
}
PROMISE = et.ApproxDP(epsilon=1.0, delta=1e-6)


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/dynamic-data.md")
    printed = capsys.readouterr().out
    assert names["beds"].tick == 2
    assert names["visits"].process == "path"
    assert "±" in printed
    assert "linear" in printed


@pytest.mark.parametrize(("identity", "protects"), RATIOS)
def test_the_table_of_noise_is_the_product_s(identity: Any, protects: Any) -> None:
    unique = identity in ("value", "raw") and protects == "item"
    gaussian, pure = RATIOS[identity, protects]
    by_a_bank = 2 * math.sqrt(2) if (identity, protects) == ("value", "item") else gaussian
    found = {}
    for promise, process, ratio in (
        (PROMISE, "sqrt", gaussian),
        (PROMISE, "bank", by_a_bank),
        (et.PureDP(1.0), "pure-blocks", pure),
    ):
        made: dict[str, Any] = {"guarantee": promise, "horizon": 512, "key": et.simulation(1)}
        there = et.DynamicCount(identity=identity, protects=protects, unique_deletions=unique, process=process, **made)
        found[process] = there.stddev(512)
        assert found[process] == pytest.approx(ratio * et.Counter(mechanism=process, **made).stddev(512), rel=0.01)
    taken = et.DynamicCount(
        identity=identity,
        protects=protects,
        unique_deletions=unique,
        guarantee=PROMISE,
        horizon=512,
        key=et.simulation(1),
    )
    assert taken.stddev(512) == min(found.values())
    assert taken.process == ("pure-blocks" if (identity, protects) == ("raw", "event") else "bank")


def test_bounded_lifetimes_and_several_lives_cost_what_is_said() -> None:
    def deviation(**options: Any) -> float:
        made = et.DynamicCount(guarantee=PROMISE, horizon=8760, key=et.simulation(1), **options)
        found = made.stddev(8760)
        assert found is not None
        return found

    assert deviation(max_lifetime=24) == pytest.approx(11.1, abs=0.05)
    assert deviation() == pytest.approx(21.7, abs=0.05)
    assert deviation(lifetimes=9, process="sqrt") == pytest.approx(3 * deviation(process="sqrt"), rel=0.01)
    assert deviation(lifetimes=9, process="bank") == pytest.approx(9 * deviation(process="bank"), rel=0.01)
    for k in (2, 9):
        made = et.DynamicCount(guarantee=PROMISE, horizon=8760, key=et.simulation(1), lifetimes=k)
        assert made.process == "sqrt"


def test_the_documented_spec_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    block = next(part for part in page.split("```toml\n") if 'kind = "dynamic_count"' in part).split("```")[0]
    (tmp_path / "clinic.toml").write_text(block)
    spec = load_spec(tmp_path / "clinic.toml")
    assert [query.kind for query in spec.queries] == [
        "dynamic_count",
        "dynamic_histogram",
        "dynamic_range",
        "linear_queries",
    ]
    assert spec.protects == "item"
    assert [planned.mechanism for planned in plan(spec).queries] == ["linear"] * 4
    names = ["time", "what", "visit", "ward", "age", "floor"]
    came = [["2013-01-01T00:30:00Z", "arrives", f"v{i}", "north", i % 90, i % 5] for i in range(2000)]
    went = [["2013-01-01T01:30:00Z", "leaves", f"v{i}", "", "", ""] for i in range(1500)]
    with open(tmp_path / "events.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *came, *went])
    run(spec, tmp_path / "events.csv", until="2013-01-01T02:00:00Z")
    rows = [json.loads(line) for line in (tmp_path / "clinic.jsonl").read_text().splitlines()]
    shown = [row["category"] for row in rows if row["tick"] == 2]
    assert shown == [None, "north", "south", "elsewhere", "[0, 18)", "[65, inf)", "all", "children", "upstairs"]
    first, second = (row for row in rows if row["query"] == "present")
    # The key is a fresh one: a 95 % interval misses in one run of twenty, six deviations in none of 10^8.
    for row, true in ((first, 2000), (second, 500)):
        assert abs(row["value"] - true) <= 6 * row["stddev"] < 300
        assert (row["upper"] - row["lower"]) / 2 == pytest.approx(1.96 * row["stddev"], abs=1.5)


def test_the_map_is_complete() -> None:
    """Each construction of the theory has a line, and each line names options and tests that there are."""
    page = (ROOT / "docs" / "dynamic-data.md").read_text(encoding="utf-8")
    table = page.split("| map |")[1].split("\n\n")[0]
    lines = [line for line in table.splitlines()[2:] if line.startswith("|")]
    named = {line.split("|")[1].strip(" *") for line in lines}
    theory = (
        (ROOT / "docs" / "theory" / "dynamic-data.md").read_text(encoding="utf-8").split("## 0.")[1].split("## 1.")[0]
    )
    rows = [line.split("|")[1].strip(" *").replace("/", ", ") for line in theory.splitlines() if line.startswith("| ")]
    assert set(rows) - {"#"} <= named
    for name in ("linear", *CONSTRUCTIONS):
        assert f'`"{name}"' in table
    tests = set(re.findall(r"test_\w+\.py", table))
    assert len(tests) > 8
    for test in tests - {"test_path.py"}:
        assert (ROOT / "tests" / "dynamic" / test).exists(), test
    assert (ROOT / "tests" / "counting" / "test_path.py").exists()
    audited = [subject.name for subject in AUDITED]
    for entry in re.findall(r"`((?:Dynamic|Linear)\w+\(.*?\))`", table):
        if any(name.startswith("Dynamic") for name in audited):
            parts = entry.strip(")").split("…")
            assert any(all(part.strip(", ") in name for part in parts) for name in audited), entry


@pytest.fixture
def example() -> ModuleType:
    found = importlib.util.spec_from_file_location("planes_in_the_air", ROOT / "examples" / "planes_in_the_air.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_example_runs_on_real_flights(
    example: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["planes", str(tmp_path), "--days", "3"])
    example.main()
    printed = capsys.readouterr().out
    assert "whether any one item (a name in the column 'flight') was ever there" in printed
    assert (tmp_path / "planes.png").stat().st_size > 20_000
    values, radii = example.released(tmp_path / "planes.jsonl")
    true = example.exact(example.events(72), 72)
    assert len(values[None]) == len(true[None]) == 72
    assert max(true[None]) > 150
    assert min(true[None][24:]) < 5, "nobody flies at night"
    inside = abs(values[None] - true[None]) <= radii[None]
    assert inside.mean() > 0.5  # 95 % each; they hang together
