"""docs/spark.md: its spec is read, its tables are those of the program, its figures follow from the costs it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from page_tables import rows

import evertally.spark as es
from evertally.cli.app import spark as commands
from evertally.errors import ConfigurationError
from evertally.kinds import known
from evertally.runtime import load_spec
from evertally.runtime.spec.sections import EngineSection
from evertally.spark.protections import ROWS
from evertally.spark.public import batches
from printed import ROOT, python_blocks
from spec_text import spec_text

PAGE = "docs/spark.md"
TEXT = (ROOT / PAGE).read_text()


def printed_spec(folder: Path) -> Path:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.S)
    path = folder / "visits.toml"
    path.write_text(block)
    return path


def test_the_spec_is_read_and_says_where_it_is_played(tmp_path: Path) -> None:
    spec = printed_spec(tmp_path)
    settled = load_spec(spec)
    assert (settled.engine.root, settled.engine.home) == ("/cluster/visits", "/marks/visits")
    played = es.certificate(spec)["engine"]["queries"]
    assert (played["all"]["place"], played["pages"]["place"], played["pages"]["parts"]) == ("whole", "slices", 16)
    assert batches(settled) == []


def test_every_option_of_the_engine_is_listed_with_its_default() -> None:
    listed = {name.strip("`"): default for name, default, _ in rows(PAGE, "A stream that has none of this")}
    assert list(listed) == list(EngineSection.model_fields)
    for name, field in EngineSection.model_fields.items():
        if field.default is not None:
            assert listed[name] == f"`{json.dumps(field.default)}`", name


def test_places_are_named_after_spec_and_key(tmp_path: Path) -> None:
    spec = tmp_path / "visits.toml"
    spec.write_text(re.sub(r"\[engine\].*?\n\n", "", printed_spec(tmp_path).read_text(), flags=re.S))
    engine = load_spec(spec).engine
    assert engine.root == str(tmp_path / "visits.state.root")
    assert engine.home == str(tmp_path / "secret/visits.key.marks")
    assert engine.public == str(tmp_path / "visits.public")
    assert engine.worker_key == tmp_path / "secret/visits.key.worker"


def test_every_protection_is_listed() -> None:
    assert [name.strip("`") for name, *_ in rows(PAGE, "## What Spark shows")] == [row.name for row in ROWS]


def test_messages_are_those_of_the_program() -> None:
    program = "\n".join(path.read_text() for path in sorted((ROOT / "src/evertally").rglob("*.py")))
    program = re.sub(r'"\s*\n\s*f?"', "", program)  # one text in several literals
    quoted = [part for said, _ in rows(PAGE, "Nothing is ever mended") for part in re.findall(r"`([^`]+)`", said)]
    assert len(quoted) > 25
    assert [message for message in quoted if message not in program] == []


def test_commands_are_those_of_the_program() -> None:
    box = TEXT.partition("## On the command line")[2].partition("\n## ")[0]
    listed = re.findall(r"^ +evertally spark ([\w-]+) ", box, flags=re.M)
    assert listed == [command.name for command in commands.registered_commands]


def test_python_uses_names_that_are_there() -> None:
    used = {name for block in python_blocks(PAGE) for name in re.findall(r"\bes\.(\w+)", block)}
    assert used == {"application", "ask", "check", "release_batch", "release_stream", "releases", "shown"}
    assert used <= set(es.__all__)
    of_a_stream = {name for block in python_blocks(PAGE) for name in re.findall(r"\blive\.(\w+)", block)}
    assert of_a_stream | {"active", "failed", "wait", "stop"} <= {*dir(es.LiveStream), "failed"}


WARDS: dict[str, Any] = {"column": "ward", "categories": [f"ward {n}" for n in range(40)]}
AMOUNT: dict[str, Any] = {"column": "amount", "upper": 50, "resolution": 1}
COMING: dict[str, Any] = {"identity": "raw", "protects": "event", "deletions": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "counter": {},
    "vector_counter": {"column": "page", "columns": 100},
    "histogram": WARDS,
    "value_histogram": {"column": "amount", "edges": list(range(40))},
    "count_sketch": {"column": "page", "watch": ["x"], "rows": 3, "width": 40},
    "heavy_prefixes": {"column": "page", "symbols": 2, "threshold": 30, "rows": 1, "width": 40},
    "unknown_histogram": {"column": "page"},
    "unknown_top_k": {"column": "page", "k": 3},
    "running_mean": {"column": "amount", "lower": 0, "upper": 50},
    "max_sum": WARDS,
    "min_sum": WARDS,
    "sum_quantile": {**WARDS, "q": 0.5},
    "top_k": {**WARDS, "k": 2},
    "sum_select": WARDS,
    "top_k_select": {**WARDS, "k": 2},
    "streaming_top_k": {**WARDS, "k": 2, "mechanism": "tree"},
    "monotone_query": {**WARDS, "expression": {"ranks": [1, -1], "of": "all"}},
    "running_sum": AMOUNT,
    "running_variance": {"column": "amount", "lower": 0, "upper": 50},
    "adaptive_sum": {"column": "page", "upper": 1000, "pilot": 4, "first_bound": 30},
    "value_quantile": {"column": "amount", "edges": [0, 10, 20]},
    "dashboard": {"column": "what", "types": ["a", "b"], "other": "else", "metrics": {"total": "all"}},
    "group_by": {"columns": {"what": ["a", "b"], "ward": ["x", "y"]}, "tables": [["what"], []]},
    "distinct_users": WARDS,
    "unknown_distinct_users": {"column": "page", "max_categories": 2},
    "active_users": {"windows": [1, 3]},
    "period_users": {"period": 2},
    "retention": {"period": 3, "ages": 3},
    "dynamic_count": COMING,
    "dynamic_histogram": {**WARDS, **COMING},
    "dynamic_range": {"column": "page", "size": 8, **COMING},
    "linear_queries": {"column": "page", "family": {"kind": "boxes", "shape": [8]}, **COMING},
}
OF_USERS = ("distinct_users", "unknown_distinct_users", "active_users", "period_users", "retention")


def one_query(folder: Path, kind: str, options: dict[str, Any], order: str = "content") -> Path:
    stream = {"name": "visits", "horizon": 24, "max_events_per_tick": 500, "order": order}
    if kind in OF_USERS or kind == "joined_events":
        stream |= {"unit": "user", "user_column": "user"}
    path = folder / "visits.toml"
    sections: dict[str, Any] = {
        "stream": stream,
        "guarantee": {"epsilon": 40.0, "delta": 1e-5},
        "clock": {"column": "time", "start": 0, "tick": 1, "close": "request"},
        "engine": {"slice_width": 16},
    }
    path.write_text(spec_text({"name": "q", "kind": kind, **options}, **sections))
    return path


def listed_places() -> dict[str, str]:
    found: dict[str, str] = {}
    names = {kind.name for kind in known()}
    for place, which, _ in rows(PAGE, "## Where each query is played"):
        for name in re.findall(r"`(\w+)`", which):
            if name in names:
                found.setdefault(name, place)  # a kind that is cut where it is wide stands above, and again below
    return found


@pytest.mark.parametrize("kind", OPTIONS)
def test_kinds_are_played_where_the_page_says(tmp_path: Path, kind: str) -> None:
    way = es.certificate(one_query(tmp_path, kind, OPTIONS[kind]))["engine"]["queries"]["q"]
    travels = "records" if way["travels"] == "records" else "sums"
    place = f"whole, from {travels}" if way["place"] == "whole" else way["place"]
    assert listed_places()[kind] == place


def test_every_kind_has_its_place() -> None:
    assert {name for name, place in listed_places().items() if place != "refused"} == set(OPTIONS)
    assert {kind.name for kind in known() if kind.ordered is None} <= set(OPTIONS)


def test_what_is_about_the_order_of_arrival_is_refused(tmp_path: Path) -> None:
    options = {"column": "what", "after": ["a"], "then": ["b"]}
    for order in ("content", "arrival"):
        with pytest.raises(ConfigurationError):
            es.certificate(one_query(tmp_path, "joined_events", options, order))


def test_sizes_follow_from_the_costs() -> None:
    said = TEXT.partition("## How large")[2]
    found = re.search(
        r"batch ([\d.]+) CPU s; for an event ([\d.]+) µs; .*? each column (\d+) ns .*? and (\d+) ns .*?\n"
        r"for a released number (\d+) ns. A column has (\d+) bytes .*? number ([\d.]+) bytes",
        said,
    )
    assert found
    batch, event, column, seek, number, state, shown = map(float, found.groups())
    theory = (ROOT / "docs/theory/distributed.md").read_text().partition("## 16. Scale")[2]
    assert f"a job costs about {batch:.0f} CPU s" in theory
    assert f"a further released number {number:.0f} ns" in theory
    assert f"a further column on demand {column:.0f} ns" in theory
    assert f"+ {seek:.0f} (seek)" in theory
    for row in rows(PAGE, "## How large"):
        width, ticks, events = (_number(cell) for cell in row[:3])
        cpu = batch + event * events / 1e6 + (column + seek) * width / 1e9 + number * width * ticks / 1e9
        assert [cell.replace(",", "") for cell in row[3:]] == [
            f"{cpu:.0f}",
            f"{2 * state * width / 1e6:.0f}",
            f"{shown * width * ticks / 1e6:.1g}" if width * ticks < 2e6 else f"{shown * width * ticks / 1e6:.0f}",
        ]


def _number(cell: str) -> float:
    factor, _, power = cell.rpartition("10^")
    return float(cell) if "10^" not in cell else float(factor.strip("·") or 1) * 10 ** int(power)
