"""The board and the alert rules in examples/: they ask for what the service really serves, and for nothing private."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from served import SPEC, Served

from evertally.runtime import load_spec
from evertally.runtime.mechanisms import build
from evertally.runtime.windows import Windows
from evertally.service.metrics import Metrics

EXAMPLES = Path(__file__).parents[2] / "examples"
BOARD = EXAMPLES / "grafana" / "evertally.json"
ALERTS = EXAMPLES / "alerts.yml"


def _metrics(text: str) -> set[str]:
    return set(re.findall(r"\bevertally_[a-z_]+", text))


def _served(service: Served, path: str, role: str) -> set[str]:
    return set(re.findall(r"^# TYPE (evertally_\w+) ", service.get(path, role).text, re.MULTILINE))


def _expressions(board: Any) -> list[str]:
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return asked + [one["query"] for one in board["templating"]["list"] if one["type"] == "query"]


# Only a stream on the wall clock has this one; the stream of these tests closes ticks on request.
WALL_CLOCK = {"evertally_next_release_seconds"}


def test_the_board_shows_public_values_that_are_served(service: Served) -> None:
    board = json.loads(BOARD.read_text())
    asked = {name for text in _expressions(board) for name in _metrics(text)}
    assert {"evertally_value", "evertally_lower", "evertally_upper"} < asked
    assert asked <= _served(service, "/metrics", "read") | WALL_CLOCK
    assert "admin" not in BOARD.read_text()
    for text in _expressions(board):
        assert text.count("(") == text.count(")")
        assert text.count("{") == text.count("}")
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len({panel["id"] for panel in board["panels"]}) == len(places) == len(set(places))


def test_the_alerts_ask_for_what_is_served(service: Served) -> None:
    public, private = ALERTS.read_text().split("- name: evertally-admin")
    asked = re.findall(r"expr: (.*)", public)
    assert {name for text in asked for name in _metrics(text)} <= _served(service, "/metrics", "read") | WALL_CLOCK
    asked = re.findall(r"expr: (.*)", private)
    assert {name for text in asked for name in _metrics(text)} <= _served(service, "/v1/admin/metrics", "admin")


def test_the_alerts_are_rules() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    assert [group["name"] for group in groups] == ["evertally", "evertally-admin"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) == 8
    for rule in rules:
        assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_metric_of_the_wall_clock_is_made_there(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC.replace('close = "request"', "").replace("start = 2013", "start = 2113"))
    pump: Any = SimpleNamespace(published=0)
    history: Any = SimpleNamespace(latest=lambda: None)
    spec = load_spec(path)
    windows = Windows(spec, build(spec, key=None), True, lambda ticks, queries: [])
    assert _metrics(Metrics(spec, pump, history, windows).public().decode()) > WALL_CLOCK
