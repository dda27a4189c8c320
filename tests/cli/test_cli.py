"""The commands: what they print, what they refuse, how they exit. Never a traceback, never a record."""

from __future__ import annotations

import builtins
import csv
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import evertally.cli
from concluded import conclusion
from evertally.audit import suite
from evertally.cli import app as app_module
from evertally.cli.app import app
from evertally.cli.demo import replay
from evertally.cli.show import _margin
from evertally.runtime import load_spec
from evertally.runtime.mechanisms import build
from evertally.spark import conf
from spec_text import queries_text

SPEC = """\
[stream]
name = "visits"
horizon = 24

[guarantee]
epsilon = 1.0
delta = 1e-9

[clock]
column = "time"
start = 2013-01-01
tick = "1h"

[key]
file = "visits.key"

[state]
file = "visits.state"

[output]
file = "visits.csv"

[[query]]
name = "all"
kind = "counter"

[[query]]
name = "stay"
kind = "mean"
column = "minutes"
lower = 0
upper = 60
"""


WARDS = {"column": "ward", "categories": ["north", "south"]}
COLUMN_QUERIES = queries_text(
    {"name": "busiest", "kind": "max", **WARDS, "mechanism": "rebased"},
    {"name": "none", "kind": "min", **WARDS, "mechanism": "trivial"},
    {"name": "first", "kind": "leader", "column": "ward", "categories": ["[/north]", "south"], "mechanism": "tree"},
    {"name": "best", "kind": "top", "k": 2, **WARDS},
)


UNKNOWN_QUERIES = """
[[query]]
name = "wards"
kind = "unknown-histogram"
column = "ward"

[[query]]
name = "most"
kind = "unknown-top"
k = 2
column = "ward"
mechanism = "meta"

[[query]]
name = "ahead"
kind = "streaming-top"
k = 1
column = "ward"
categories = ["north", "[/south]"]
mechanism = "meta"
"""
STRANGE = "\x1b[2J[/red]\u202eward"


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    large = SPEC.replace("horizon = 24", "horizon = 24\nmax_events_per_tick = 900").replace(
        "epsilon = 1.0", "epsilon = 20"
    )
    path.write_text(large.replace("visits.csv", "visits.jsonl") + UNKNOWN_QUERIES)
    wards = ["north"] * 500 + [STRANGE] * 400 + [f"once {i}" for i in range(50)] + ["x" * 900] * 300
    (tmp_path / "events.jsonl").write_text(
        "".join(json.dumps({"time": "2013-01-01T03:00", "minutes": 3, "ward": ward}) + "\n" for ward in wards)
    )
    return path


@pytest.fixture
def columns(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC.replace("horizon = 24", "horizon = 24\nmax_events_per_tick = 60") + COLUMN_QUERIES)
    rows = "".join(f"2013-01-01T03:00:00Z,30,{'north' if i % 3 else 'south'}\n" for i in range(50))
    (tmp_path / "events.csv").write_text("time,minutes,ward\n" + rows)
    return path


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC)
    (tmp_path / "events.csv").write_text("time,minutes\n" + "2013-01-01T03:00:00Z,30\n" * 50 + "secret garbage\n")
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_plan_shows_what_will_be_released_and_touches_nothing(spec: Path) -> None:
    result = call("plan", spec)
    assert result.exit_code == 0, result.output
    for words in ("visits", "epsilon=1.0", "24 ticks", "all", "counter", "1/2", "rho", "2013-01-02T00:00:00Z", "±"):
        assert words in result.output
    assert sorted(path.name for path in spec.parent.iterdir()) == ["events.csv", "visits.toml"]


def test_a_stream_that_ends_beyond_the_calendar_of_this_language(spec: Path) -> None:
    spec.write_text(SPEC.replace("horizon = 24", "horizon = 1_000_000_000"))
    for command in ("plan", "certificate"):
        result = call(command, spec)
        assert result.exit_code == 0, result.output + result.stderr
        assert "+116092-" in result.output


def test_plan_shows_where_things_go(spec: Path) -> None:
    result = call("plan", spec)
    assert f"Releases go to {spec.parent / 'visits.csv'}" in result.output
    assert "keeps the last 100,000 ticks, then every 60th" in result.output
    assert "Files: ticks by their time stamps" in result.output
    assert (
        "ticks close every hour, published 0.5 s later; at http://127.0.0.1:8321, readers need a token" in result.output
    )
    spec.write_text(
        SPEC.replace("horizon = 24", 'horizon = 24\nunit = "user"\nuser_column = "who"\nmax_events_per_user = 3')
        .replace('column = "time"\n', "")
        .replace("start = 2013-01-01", 'start = "first serve"')
        .replace('tick = "1h"', 'tick = "15m"')
        .replace('file = "visits.csv"', 'file = "[red].parquet"')
        + '[[sink]]\nwebhook = "https://hooks.example/secret-path"\n'
        + "[retention]\nfull = 5\nevery = 0\nkeep = 70\n"
        + '[serve]\nhost = "::"\nport = 9\npublic = true\ncertificate = "c.pem"\nprivate_key = "k.pem"\n'
    )
    result = call("plan", spec)
    assert result.exit_code == 0, result.output + result.stderr
    for words in (
        "at most 3 events of each 'who'",
        "Clock: from the first serve to tick 24, time stamps are those of receipt",
        f"Releases go to {spec.parent / '[red].parquet'}",
        "the webhook webhook-1 at hooks.example",
        "keeps the last 5 ticks, none after 70 ticks",
        "Files: not with this spec",
        "ticks close every 15 minutes, published 0.5 s later; at https://[::]:9, anybody may read",
    ):
        assert words in result.output
    assert "1970" not in result.output
    assert "secret-path" not in result.output


def test_plan_of_an_integer_clock_says_what_serving_needs(spec: Path) -> None:
    whole = SPEC.replace("start = 2013-01-01", "start = 0").replace('tick = "1h"', "tick = 5")
    spec.write_text(whole)
    result = call("plan", spec)
    assert re.search(r'Live: not with this spec\. .*visits.toml:\d+: .*close = "request"', result.output)
    spec.write_text(whole.replace("tick = 5", 'tick = 5\nclose = "request"'))
    assert "Live: ticks close on request" in call("plan", spec).output


def test_certificate_is_json_on_stdout_and_touches_nothing(spec: Path) -> None:
    result = call("certificate", spec)
    assert result.exit_code == 0, result.output + result.stderr
    filed = json.loads(result.stdout)
    assert filed["guarantee"]["exact"]["epsilon"] == "1"
    assert [query["name"] for query in filed["queries"]] == ["all", "stay"]
    assert sorted(path.name for path in spec.parent.iterdir()) == ["events.csv", "visits.toml"]
    spec.write_text(SPEC.replace("epsilon = 1.0", "epsilon = -1"))
    result = call("certificate", spec)
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.search(r"visits.toml:6: \[guarantee\].*epsilon", result.stderr)


def test_spark_conf_is_a_properties_file(spec: Path) -> None:
    done = CliRunner().invoke(app, ["spark", "conf", str(spec)])
    assert done.exit_code == 0
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert found == conf(load_spec(spec))
    assert found["spark.app.name"] == "evertally visits"
    assert not any("secret" in name for name in found)
    assert not list(spec.parent.glob("*.key"))


def test_plan_of_column_queries(columns: Path) -> None:
    result = call("plan", columns)
    assert result.exit_code == 0, result.output
    lines = {line.split("│")[1].strip(): line for line in result.output.splitlines() if line.startswith("│")}
    assert list(lines) == ["all", "stay", "busiest", "none", "first", "best"]
    assert "rebased, exact" in lines["busiest"]
    assert "delta" in lines["busiest"] or "epsilon" in lines["busiest"]
    assert "nothing" in lines["none"]
    assert "≤" in lines["first"]
    assert "*" in lines["stay"]
    assert all("*" not in lines[name] and "±" in lines[name] for name in ("busiest", "none", "best"))


def test_plan_shows_every_way_best_first(columns: Path) -> None:
    result = call("plan", columns, "--ways")
    assert result.exit_code == 0, result.output
    tables = dict(table.split(": ", 1) for table in result.output.strip().split("\n\n"))
    assert list(tables) == ["all", "stay", "busiest", "none", "first", "best"]
    taken, heading, best = tables["all"].splitlines()[:3]
    assert best.split()[0] == taken.split()[0]
    assert heading.split()[:4] == ["mechanism", "pays", "predicted", "bound"]
    assert 'mechanism "epoch-tree" is for streams without a horizon' in tables["all"]


def test_plan_says_what_a_wanted_error_costs(spec: Path) -> None:
    result = call("plan", spec, "--error", 40, "--beta", 0.01, "--query", "all")
    assert result.exit_code == 0, result.output
    said = re.search(r"guarantee: ApproxDP\(epsilon=([\d.]+), .*\n  horizon: (\d+) \(now 24\)", result.output)
    assert said is not None, result.output

    def bound(old: str, new: str) -> float:
        spec.write_text(SPEC.replace(old, new))
        return float(build(load_spec(spec), key=None)["all"].error_bound(0.01))

    needed, longest = float(said[1]), int(said[2])
    assert bound("epsilon = 1.0", f"epsilon = {needed}") <= 40 < bound("epsilon = 1.0", f"epsilon = {needed - 0.01}")
    assert bound("horizon = 24", f"horizon = {longest}") <= 40
    assert sorted(path.name for path in spec.parent.iterdir()) == ["events.csv", "visits.toml"]
    impossible = call("plan", spec, "--error", 0.001)
    assert re.search(r"guarantee: .*\n  horizon: no horizon .* at best", impossible.output)
    for wrong, words in (
        (["--beta", 0.1], "--error"),
        (["--error", 5, "--query", "nobody"], "no query 'nobody', but all, stay"),
        (["--error", 5, "--query", "stay"], "Of means and variances say how many"),
        (["--error", 5, "--beta", 2], "between 0 and 1"),
    ):
        refused = call("plan", spec, *wrong)
        assert refused.exit_code == 2
        assert words in refused.stderr


def test_plan_says_where_there_is_no_bound_and_why(columns: Path) -> None:
    text = columns.read_text()
    columns.write_text(text.replace('mechanism = "rebased"', 'mechanism = "bounded"\nlargest = 7', 1))
    result = call("plan", columns)
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("│ busiest"))
    assert "no bound" in line
    assert "inf" not in result.output
    assert re.search(r"busiest has no error bound: .*largest=7 is a guess", result.output)
    assert re.search(r"busiest: ± [\d,]+ while answers stay below `largest`", result.output)


def test_a_margin_that_is_none() -> None:
    assert [_margin(5, -2, 12), _margin(5, 1, 2**61), _margin(5, -(2**61), 2**61)] == ["7", "at least 1", "no bound"]
    assert [_margin("north", 0, 12), _margin("north", 0, 2**61)] == ["≤ 12", "no bound"]


def test_plan_explains_what_will_be_found(unknown: Path) -> None:
    result = call("plan", unknown)
    assert result.exit_code == 0, result.output
    lines = {line.split("│")[1].strip(): line for line in result.output.splitlines() if line.startswith("│")}
    assert "found" in lines["wards"]
    assert "≤ 2" in lines["most"]
    assert "at most +" in lines["most"]
    assert "±" in lines["wards"]
    assert "±" in lines["ahead"]
    said = re.search(
        r"wards: an item is shown if its noisy count is above (\d+); nothing is shown of any other\. "
        r"At 2013-01-02T00:00:00Z one that occurred (\d+) times is shown with probability 95%",
        result.output,
    )
    assert said is not None, result.output
    assert 1 < int(said[1]) < int(said[2]) < 100
    assert "most: items are looked for in every block of ticks on its own" in result.output
    assert "ahead:" not in result.output


def test_labels_that_are_found_cannot_write_on_the_terminal(unknown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "160")
    result = call("run", unknown, "--input", unknown.parent / "events.jsonl", "--until", "end")
    assert result.exit_code == 0, result.output + result.stderr
    assert r"\x1b[2J[/red]\u202eward" in result.output, "a label is shown as it is, on one line, without its controls"
    assert "\x1b[2J" not in result.output
    assert "\u202e" not in result.output
    assert "x" * 59 + "…" in result.output
    assert "x" * 60 not in result.output
    rows = [json.loads(line) for line in (unknown.parent / "visits.jsonl").read_text().split("\n") if line]
    assert {row["category"] for row in rows if row["query"] == "wards"} == {"north", STRANGE, "x" * 900}
    assert "once" not in (unknown.parent / "visits.jsonl").read_text() + result.output


def test_audit_beside_unknown_items(unknown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "short", suite.Sizes(8, 20_000, 2_000, 10_000, 200, 200))
    result = call("audit", unknown)
    assert conclusion(result).endswith("0 broken")
    for name in ("wards: Unknown", "most: ", "ahead: StreamingTopK", "all: Counter"):
        assert name in result.output
    assert result.output.count("threshold") >= 2
    assert "wards: holds (tight)" in result.output
    assert "visits (all queries)" in result.output


def test_run_of_column_queries_on_a_terminal(columns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    result = call("run", columns, "--input", columns.parent / "events.csv", "--until", "end")
    assert result.exit_code == 0, result.output + result.stderr
    assert "24/24" in result.output
    assert "≤" in result.output
    with open(columns.parent / "visits.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tick"] == "24"]
    assert [(row["query"], row["category"]) for row in rows[2:]] == [
        ("busiest", ""),
        ("none", ""),
        ("first", ""),
        ("best", "1"),
        ("best", "2"),
    ]
    assert rows[4]["label"] in ("[/north]", "south")
    assert rows[4]["label"] in result.output, "a label is shown as it is, not as markup"


def test_audit_of_column_queries(columns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "short", suite.Sizes(8, 20_000, 2_000, 10_000, 200, 200))
    result = call("audit", columns)
    assert conclusion(result).endswith("0 broken")
    for name in ("busiest: MaxSum", "none: ", "first: SumSelect", "best: TopK", "all: Counter"):
        assert name in result.output
    assert "visits (all queries)" in result.output
    assert "BROKEN" not in result.output
    assert not (columns.parent / "visits.key").exists()


def test_run_and_run_again(spec: Path) -> None:
    events = spec.parent / "events.csv"
    result = call("run", spec, "--input", events, "--until", "2013-01-01T12:00")
    assert result.exit_code == 0, result.output
    assert "ticks 1 to 12 are out, until 2013-01-01T12:00:00Z" in result.output
    assert len((spec.parent / "visits.csv").read_text().splitlines()) == 1 + 12 * 2
    again = call("run", spec, "--input", events, "--until", "end")
    assert again.exit_code == 2
    assert "counted already" in again.stderr
    assert again.stderr.count("\n") == 1
    (spec.parent / "more.csv").write_text("time,minutes\n")
    quiet = call("run", spec, "-i", spec.parent / "more.csv", "--quiet", "--until", "end")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_refusals_are_one_line_with_exit_code_2(spec: Path) -> None:
    spec.write_text(SPEC.replace("horizon = 24", "horizn = 24"))
    result = call("run", spec, "--input", spec.parent / "events.csv", "--until", "end")
    assert result.exit_code == 2
    assert result.stderr == f"evertally: {spec}:3: [stream] has no option 'horizn'. Did you mean 'horizon'?\n"
    assert call("plan", spec).exit_code == 2
    assert call("run", spec).exit_code == 2  # no --input


def test_an_unexpected_error_does_not_show_its_text(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("secret record")

    monkeypatch.setattr(app_module, "run", broken)
    result = call("run", spec, "--input", spec.parent / "events.csv", "--until", "end")
    assert result.exit_code == 3
    assert "secret" not in result.output + result.stderr
    assert "ValueError at test_cli.py" in result.stderr


def test_no_warning_shows_a_record(unknown: Path) -> None:
    twice = pyarrow.array([[("secret", 1), ("secret", 2)]] * 3, pyarrow.map_(pyarrow.string(), pyarrow.int64()))
    table = pyarrow.table({"time": ["2013-01-01T03:00"] * 3, "minutes": [3] * 3, "ward": twice})
    pyarrow.parquet.write_table(table, unknown.parent / "events.parquet")
    command = [
        sys.executable,
        "-m",
        "evertally.cli",
        "run",
        str(unknown),
        "-i",
        str(unknown.parent / "events.parquet"),
        "--until",
        "end",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_run_says_how_to_go_on(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app_module, "run", interrupted)
    result = call("run", spec, "--input", spec.parent / "events.csv", "--until", "end")
    assert result.exit_code == 130
    assert "continues where it stopped" in result.stderr


def test_every_command_says_what_is_true_when_it_is_interrupted() -> None:
    """That it goes on is said by what keeps a state while it runs, that nothing is kept by what writes none."""
    source = inspect.getsource(app_module)
    said = dict(re.findall(r"\ndef (\w+)_command\([^\0]*?with _readable_errors\([^\n]*?(_[A-Z_]+|)\):", source))
    assert {name for name, words in said.items() if words == "_GOES_ON"} == {
        "audit",  # of all, into a folder
        "run",
        "serve",
        "spark_run",
        "spark_stream",
    }
    assert {name for name, words in said.items() if not words} == {
        "init",
        "erase",
        "rescue",
        "token_add",
        "token_remove",
        "quarantine_retry",
        "quarantine_drop",
        "spark_submit",
        "demo",
    }


def test_version_and_help() -> None:
    assert call("--version").output.startswith("evertally 0.")
    for command in ("run", "plan", "demo"):
        assert command in call("--help").output


def test_as_a_process(spec: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "evertally.cli",
        "run",
        str(spec),
        "--input",
        str(spec.parent / "events.csv"),
        "--until",
        "end",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2
    assert "Traceback" not in again.stderr


def test_a_live_display_on_a_terminal(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = call("run", spec, "--input", spec.parent / "events.csv", "--until", "end")
    assert result.exit_code == 0, result.output
    assert "released" in result.output
    assert "24/24" in result.output


def test_missing_requirements_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = builtins.__import__

    def without_typer(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("typer"):
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "evertally.cli.app")
    monkeypatch.setattr(builtins, "__import__", without_typer)
    with pytest.raises(SystemExit) as stop:
        evertally.cli.main()
    assert stop.value.code == 2
    assert "pip install 'evertally[cli]'" in capsys.readouterr().err


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole demo on its first month, through a real service: releases, picture, report; a second starts afresh."""
    month = replay.SPEC.replace("end = 2014-01-01T05", "end = 2013-02-01T05")
    monkeypatch.setattr(replay, "SPEC", month)
    flights = replay.departures()
    assert 320_000 < len(flights) < 337_000
    monkeypatch.setattr(replay, "departures", lambda: flights)
    folder = tmp_path / "demo"
    for _ in range(2):
        result = call("demo", "--output", folder, "--leave")
        assert result.exit_code == 0, result.output + result.stderr
    assert "Live page: http://127.0.0.1:" in result.output
    assert (folder / "departures.png").read_bytes().startswith(b"\x89PNG")
    report = (folder / "report.md").read_text()
    assert "26,483 departures went in over HTTP and 124 ticks came out" in report
    within = re.search(r"Of ([0-9,]+) released counts ([0-9.]+)% are within", report)
    assert within is not None
    assert int(within[1].replace(",", "")) > 124 * 20
    assert float(within[2]) > 60  # noise of neighbouring ticks is alike: one bad draw costs many
    assert json.loads((folder / "certificate.json").read_text())["stream"]
    with open(folder / "releases.jsonl") as lines:
        rows = [json.loads(line) for line in lines]
    windows = [row for row in rows if row["query"] == "all/7d per 1d"]
    assert [row["tick"] for row in windows] == [*range(28, 125)]
    assert len([row for row in rows if row["query"] != "top-destinations"]) == 124 * 27 + len(windows)
    assert not any(log.stat().st_size for log in folder.glob("*.state-wal"))  # the service has closed its store
    assert call("plan", folder / "departures.toml").exit_code == 0


def test_demo_without_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    result = call("demo", "--output", tmp_path / "demo")
    assert result.exit_code == 2
    assert "pip install 'evertally[demo]'" in result.stderr


def test_a_key_beside_the_state_is_pointed_out_and_one_elsewhere_is_not(spec: Path) -> None:
    words = "Give the key a folder of its own"
    assert words in call("plan", spec).output
    spec.write_text(spec.read_text().replace('"visits.key"', '"secret/visits.key"'))
    assert words not in call("plan", spec).output
    result = call("run", spec, "--input", spec.parent / "events.csv", "--quiet", "--until", "end")
    assert result.exit_code == 0, result.stderr
    assert (spec.parent / "secret" / "visits.key").exists()


PRESENT = """\
[[query]]
name = "present"
kind = "dynamic_count"
action = "what"
insert = "in"
delete = "out"
id = "visit"

[[query]]
name = "ages"
kind = "dynamic_range"
action = "what"
insert = "in"
delete = "out"
id = "visit"
column = "age"
size = 100
ranges = [[0, 17], "all"]
"""


@pytest.fixture
def present(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC[: SPEC.index("[[query]]")].replace("epsilon = 1.0", "epsilon = 1e6") + PRESENT)
    came = [f"2013-01-01T03:00:00Z,in,{i},{i}\n" for i in range(40)]
    went = [f"2013-01-01T04:00:00Z,out,{i},\n" for i in range(30)]
    odd = ["2013-01-01T05:00:00Z,out,secret,\n", "2013-01-01T05:00:00Z,sideways,39,3\n"]
    (tmp_path / "events.csv").write_text("time,what,visit,age\n" + "".join(came + went + odd))
    return path


def test_what_is_present_is_planned_certified_and_run(present: Path) -> None:
    planned = call("plan", present)
    assert planned.exit_code == 0, planned.output
    for words in ("dynamic_count", "dynamic_range", "linear, exact", "protected unit: one item"):
        assert words in planned.output
    ways = call("plan", present, "--ways")
    assert ways.exit_code == 0, ways.output
    for words in ("present: linear is taken", "anew", "subtract"):
        assert words in ways.output
    filed = json.loads(call("certificate", present).output)
    assert [query["kind"] for query in filed["queries"]] == ["dynamic_count", "dynamic_range"]
    assert {query["protects"] for query in filed["queries"]} == {"one item: its insertion and everything that names it"}
    done = call("run", present, "--input", present.parent / "events.csv", "--until", "2013-01-01T06:00:00Z")
    assert done.exit_code == 0, done.output
    assert "secret" not in done.output
    with open(present.parent / "visits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["value"]) for row in rows if row["query"] == "present"] == [0, 0, 0, 40, 10, 10]
    assert [int(row["value"]) for row in rows if row["category"] == "0..17"] == [0, 0, 0, 18, 0, 0]
    assert [int(row["value"]) for row in rows if row["category"] == "all"] == [0, 0, 0, 40, 10, 10]


def test_an_error_of_what_is_present_has_its_price(present: Path) -> None:
    present.write_text(present.read_text().replace("epsilon = 1e6", "epsilon = 1.0"))
    asked = call("plan", present, "--error", 100)
    assert asked.exit_code == 0, asked.output
    assert "guarantee: ApproxDP" in asked.output
    assert "horizon: " in asked.output


def test_a_stream_that_promises_two_things_is_refused(present: Path) -> None:
    present.write_text(present.read_text() + '\n[[query]]\nname = "events"\nkind = "counter"\n')
    refused = call("plan", present)
    assert refused.exit_code == 2
    assert "a promise about items" in refused.output
