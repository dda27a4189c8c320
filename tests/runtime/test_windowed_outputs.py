"""Words of a spec, and the windows that it asks for: in files and Parquet parts, after a crash, on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from live_stream import batch
from typer.testing import CliRunner
from visit_stream import visits

from evertally.cli.app import app
from evertally.errors import ConfigurationError
from evertally.noise import Key, simulation
from evertally.runtime import StreamSpec, load_spec, plan, run
from evertally.runtime.live import Live
from evertally.runtime.mechanisms import build
from made_keys import save_bound
from spec_text import spec_text

MEAN = {"name": "mean", "kind": "mean", "column": "minutes", "lower": 0, "upper": 60, "share": 0.5}
COUNT = {"name": "all", "kind": "counter", "share": 0.25}
WARDS = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south"], "share": 0.25}
CLOCK = {"column": "time", "start": "2013-01-01", "tick": "1h", "close": "request"}
ASKED = ({**COUNT, "window": "3h", "per": "1h"}, {**WARDS, "window": 2}, {**MEAN, "window": "2h", "unit": "min"})


def _spec(
    folder: Path, *queries: dict[str, Any], output: str = "visits.csv", sink: str = "", **sections: Any
) -> StreamSpec:
    folder.mkdir(exist_ok=True)
    path = folder / "visits.toml"
    path.write_text(spec_text(*queries, clock=CLOCK, output={"file": output}, **sections) + sink)
    return load_spec(path)


def _input(folder: Path) -> Path:
    path = folder / "events.csv"
    rows = [record | {"minutes": 9} for record in visits(0, 12)]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_words_are_in_no_digest(tmp_path: Path) -> None:
    plain = _spec(tmp_path, COUNT, WARDS, MEAN)
    stream = {"name": "visits", "horizon": 48, "title": "T", "noun": "visit", "description": "D"}
    worded = _spec(tmp_path, *ASKED, stream=stream)
    assert worded.digest == plain.digest
    assert (worded.title, worded.noun, worded.description) == ("T", "visit", "D")
    assert [(query.words.window, query.words.per) for query in worded.queries] == [(3, 1), (2, None), (2, None)]
    assert [query.parameters for query in worded.queries] == [query.parameters for query in plain.queries]


def test_outputs_get_windows_beside_the_totals(tmp_path: Path) -> None:
    with_windows, plain = _spec(tmp_path / "a", *ASKED), _spec(tmp_path / "b", COUNT, WARDS, MEAN)
    run(with_windows, _input(tmp_path / "a"), "2013-01-01T12:00")
    for left in ("visits.key", "visits.key.bound", "visits.state"):
        source = tmp_path / "a" / left
        assert source.exists()
    save_bound(Key.load(tmp_path / "a" / "visits.key"), plain.path)
    run(plain, _input(tmp_path / "b"), "2013-01-01T12:00")
    lines, without = ((tmp_path / folder / "visits.csv").read_text().splitlines(True) for folder in "ab")
    assert [line for line in lines if "/" not in line.split(",")[2]] == without, "totals as ever"
    rows = list(csv.DictReader(lines))
    totals = {(int(row["tick"]), row["query"], row["category"]): row for row in rows}
    assert [int(row["tick"]) for row in rows if row["query"] == "all/3h per 1h"] == list(range(3, 13))
    for tick in range(4, 13):
        rate, now, before = (
            float(totals[at, name, ""]["value"])
            for at, name in ((tick, "all/3h per 1h"), (tick, "all"), (tick - 3, "all"))
        )
        assert rate == (now - before) / 3
        for ward in ("north", "south"):
            found = int(totals[tick, "ward/2", ward]["value"])
            assert found == int(totals[tick, "ward", ward]["value"]) - int(totals[tick - 2, "ward", ward]["value"])
    mean = totals[12, "mean/2h", ""]
    assert float(mean["lower"]) <= 9 <= float(mean["upper"])


def test_after_a_crash_the_same_windows_come_out(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("whole", "broken")]
    whole, broken = (
        _spec(
            folder, *ASKED, state={"file": "visits.state", "snapshot_every": 4}, sink='\n[[sink]]\nfile = "v.parquet"\n'
        )
        for folder in folders
    )
    with Live(whole) as live:
        live.accept([("one", batch(live.spec, [record | {"minutes": 9} for record in visits(0, 12)]))])
        live.publish(live.release_through(12))
    save_bound(Key.load(folders[0] / "visits.key"), broken.path)
    live = Live(broken)
    live.accept([("one", batch(live.spec, [record | {"minutes": 9} for record in visits(0, 12)]))])
    live.publish(live.release_through(5))
    live.release_through(7)  # committed, and never published
    live.abandon()
    with open(folders[1] / "visits.csv", "ab") as file:
        file.write(b"half a li")
    with Live(broken) as live:
        live.publish(live.release_through(12))
    assert (folders[1] / "visits.csv").read_bytes() == (folders[0] / "visits.csv").read_bytes()
    tables = [pq.read_table(folder / "v.parquet").to_pylist() for folder in folders]
    assert tables[0] == tables[1]
    assert {row["query"] for row in tables[0]} == {"all", "ward", "mean", "all/3h per 1h", "ward/2", "mean/2h"}


def test_windows_may_be_asked_for_later_and_no_longer(tmp_path: Path) -> None:
    spec = _spec(tmp_path, COUNT, {**WARDS, "share": 0.75}, output="v.parquet")
    for until, queries in (
        (4, (COUNT, {**WARDS, "share": 0.75})),
        (6, ({**COUNT, "window": 3, "per": 2}, {**WARDS, "share": 0.75})),
        (8, (COUNT, {**WARDS, "share": 0.75})),
    ):
        spec = _spec(tmp_path, *queries, output="v.parquet")
        with Live(spec) as live:
            live.publish(live.release_through(until))
    rows = pq.read_table(tmp_path / "v.parquet").to_pylist()
    assert [row["tick"] for row in rows if row["query"] == "all/3 per 2"] == [5, 6]
    assert [row["tick"] for row in rows if row["query"] == "all"] == list(range(1, 9))


def test_what_an_output_still_needs_stays_in_the_log(tmp_path: Path) -> None:
    """Windows begin with a tick that the retention would have dropped by then."""
    asked = ({**COUNT, "window": 4}, {**WARDS, "share": 0.75})
    spec = _spec(
        tmp_path,
        *asked,
        state={"file": "visits.state", "snapshot_every": 1},
        retention={"full": 4, "every": 0},
        sink='\n[[sink]]\nwebhook = "http://127.0.0.1:1/"\n',
    )
    with Live(spec) as live:
        live.delivered_through("webhook-1")
        live.release_through(1)
        live.delivered("webhook-1", 10)
        for tick in range(2, 21):
            live.publish(live.release_through(tick))
        assert [release.tick for release in live._store.releases(1, 20)] == list(range(7, 21))


@pytest.mark.parametrize(
    ("queries", "refused"),
    [
        (({**COUNT, "per": "1h"},), "per needs window"),
        (({**MEAN, "window": "2h", "per": "1h"},), r":\d+: \[\[query\]\] per is for counts and sums"),
        (({**COUNT, "window": "90m"},), "whole ticks"),
        (({**COUNT, "window": 49},), "longer than the stream"),
        (({"name": "max", "kind": "max", "column": "ward", "categories": ["a", "b"], "window": 2},), "sums over ticks"),
    ],
)
def test_windows_that_cannot_be(tmp_path: Path, queries: tuple[dict[str, Any], ...], refused: str) -> None:
    stream = {"name": "visits", "horizon": 48, "max_events_per_tick": 9}
    with pytest.raises(ConfigurationError, match=refused):
        plan(_spec(tmp_path, *queries, stream=stream))
    with pytest.raises(ConfigurationError, match=refused), Live(_spec(tmp_path, *queries, stream=stream)):
        pass
    assert not (tmp_path / "visits.key").exists()


@pytest.mark.parametrize("text", ["two\nlines", "a\0", "a\x1b[31m", "a\u2028b", "a\u202eb"])
def test_words_for_readers_can_be_seen(tmp_path: Path, text: str) -> None:
    for option in ("title", "noun", "unit"):
        with pytest.raises(ConfigurationError, match=rf"{option} must be a text without line breaks"):
            _spec(tmp_path, {**COUNT, option: text})
    with pytest.raises(ConfigurationError, match="title must be a text without line breaks"):
        _spec(tmp_path, COUNT, stream={"name": "visits", "horizon": 48, "title": text})
    if text == "two\nlines":
        assert _spec(tmp_path, {**COUNT, "description": text}).queries[0].words.description == text
    else:
        with pytest.raises(ConfigurationError, match="description must be"):
            _spec(tmp_path, {**COUNT, "description": text})


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_command_reads_the_state_and_writes_nothing(tmp_path: Path) -> None:
    spec = _spec(tmp_path, *ASKED)
    run(spec, _input(tmp_path), "2013-01-01T12:00")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["windows", str(spec.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    answer = json.loads(said("--query", "all", "--format", "json"))
    assert (answer["window"]["words"], answer["per"]["words"], answer["tick"]) == ("3 hours", "hour", [3, 6, 9, 12])
    rows = list(
        csv.DictReader(said("--query", "ward", "--window", "6", "--label", "south", "--format", "csv").splitlines())
    )
    assert [(row["since"], row["tick"], row["label"]) for row in rows] == [("0", "6", "south"), ("6", "12", "south")]
    table = said("--query", "mean", "--window", "4h", "--from", "4")
    assert "mean, by 4 hours, in min" in table
    rows = [
        line.split() for line in said("--query", "all", "--window", "6", "--per", "1h").splitlines() if "2013" in line
    ]
    assert [len(number.partition(".")[2]) for row in rows for number in row[2:5]] == [1] * 6, "digits are alike"
    empty = said("--query", "all", "--window", "20")
    assert "no window of 20 hours is full, kept and asked for; 12 ticks are out" in empty
    assert "2013-01-01T04:00:00Z" in table
    assert "2013-01-01T00:00:00Z" not in table
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_plan_says_how_exact_windows_will_be(tmp_path: Path) -> None:
    spec = _spec(tmp_path, *ASKED)
    shown = CliRunner().invoke(app, ["plan", str(spec.path)]).output
    counter = build(spec, simulation(1))["all"]
    radius = max(counter.window_of([0], [0], tick=t, since=t - 3).interval()[1] for t in range(3, 49))
    assert f"all/3h per 1h: within {radius / 3:,.4g} of the truth, 95 % of the time." in shown
    assert "ward/2: within" in shown
    assert "mean/2h: how exact depends on how much a window has" in shown


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    spec = _spec(tmp_path, *ASKED)
    for arguments, problem in (
        (["--query", "nobody"], "--query names one of: all, ward, mean"),
        (["--query", "all", "--format", "xml"], "--format is one of"),
        (["--query", "all"], "released nothing yet"),
    ):
        result = CliRunner().invoke(app, ["windows", str(spec.path), *arguments])
        assert result.exit_code == 2
        assert problem in result.output
