"""Windows over HTTP: differences of what was released, with their error, in every form, and nothing else."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.ipc
import pytest
from served import HOURLY, Served, lines, served
from typer.testing import CliRunner

from evertally.cli.app import app
from evertally.noise import simulation
from evertally.runtime import load_spec
from evertally.runtime.certificate import guesses, plain_words
from evertally.runtime.mechanisms import build
from evertally.runtime.releases import TickRelease, pack
from evertally.runtime.windows import Question, Windows
from evertally.service.windows import WindowPages
from spec_text import ALL, spec_text

LABELS = [f"ward-{number}" for number in range(120)]
SPEC = spec_text(
    {"name": "all", "kind": "counter", "title": "Visits", "window": "6h", "per": "1h", "share": 0.2},
    {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south"], "share": 0.2},
    {"name": "many", "kind": "histogram", "column": "ward", "categories": LABELS, "share": 0.1},
    {"name": "mean", "kind": "mean", "column": "minutes", "lower": 0, "upper": 60, "unit": "min", "share": 0.2},
    {"name": "stays", "kind": "value_quantile", "column": "minutes", "edges": [0, 5, 10, 20, 60], "share": 0.1},
    {"name": "max", "kind": "max", "column": "ward", "categories": ["north", "south"], "share": 0.05},
    {"name": "first", "kind": "leader", "column": "ward", "categories": ["north", "south"], "share": 0.05},
    {"name": "sum", "kind": "sum", "column": "minutes", "upper": 60, "resolution": 0.5, "share": 0.1},
    stream={"name": "visits", "horizon": 72, "max_events_per_tick": 500, "title": "The clinic", "noun": "visit"},
    guarantee={"rho": 50},
    clock={**HOURLY, "close": "request"},
    serve={"port": 0, "requests_per_second": 10000},
)
TICKS = 48


def _events() -> list[dict[str, Any]]:
    return [
        {"time": f"2013-01-{1 + t // 24:02d}T{t % 24:02d}:30:00Z", "ward": "north" if n % 3 else "south", "minutes": 8}
        for t in range(TICKS)
        for n in range(20 + t)
    ]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("clinic"), SPEC) as running:
        assert running.send("one", lines(_events())).status_code == 202
        assert running.close_until(TICKS).json() == {"released": TICKS}
        yield running


def _windows(clinic: Served, **asked: Any) -> dict[str, Any]:
    answer = clinic.get("/v1/windows", **asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def _released(clinic: Served, query: str) -> dict[int, Any]:
    releases = clinic.get("/v1/releases", query=query, limit=1000).json()["releases"]
    return {one["tick"]: one["queries"][query] for one in releases}


def test_a_window_is_the_difference_of_two_releases(clinic: Served) -> None:
    found, kept = _windows(clinic, query="ward", window="6h"), _released(clinic, "ward")
    assert found["window"] == {"ticks": 6, "seconds": 21600.0, "words": "6 hours"}
    assert found["labels"] == ["north", "south"]
    assert found["measure"] == "window"
    assert found["per"] is None
    assert found["tick"] == list(range(6, 49, 6))
    assert found["since"] == list(range(0, 43, 6))
    assert found["start"][0] == "2013-01-01T00:00:00Z"
    assert found["end"][-1] == "2013-01-03T00:00:00Z"
    for place in range(2):
        totals = [0, *(kept[tick]["value"][place] for tick in found["tick"])]
        assert found["value"][place] == np.diff(totals).tolist()
        changes = [None, *np.diff(found["value"][place]).tolist()]
        assert found["change"]["value"][place] == changes
    twin = clinic.spec  # the error follows from public numbers
    assert twin.beta == found["beta"]
    assert all(0 < sd < 1.5 * found["stddev"][0] for sd in found["stddev"])
    assert found["change"]["stddev"][0] is None
    assert found["change"]["stddev"][1] > found["stddev"][1]


def test_json_csv_and_arrow_agree(clinic: Served) -> None:
    asked = {"query": "ward", "window": "12", "every": "4", "per": "1d"}
    found = _windows(clinic, **asked)
    rows = list(csv.DictReader(io.StringIO(clinic.get("/v1/windows", **asked, format="csv").text)))
    table = pyarrow.ipc.open_stream(clinic.get("/v1/windows", **asked, format="arrow").content).read_all().to_pylist()
    expected = [
        (since, tick, label, found["value"][place][number], found["lower"][place][number], found["stddev"][number])
        for number, (since, tick) in enumerate(zip(found["since"], found["tick"], strict=True))
        for place, label in enumerate(found["labels"])
    ]
    assert found["per"] == {"ticks": 24, "seconds": 86400.0, "words": "day"}
    assert len(expected) == 20
    names = ("since", "tick", "label", "value", "lower", "stddev")
    assert [tuple(row[name] for name in names) for row in table] == expected
    assert [
        tuple(type(a)(row[n]) for n, a in zip(names, e, strict=True)) for row, e in zip(rows, expected, strict=True)
    ] == expected
    assert rows[0]["start"] == "2013-01-01T00:00:00Z"
    assert table[0]["end"].isoformat() == "2013-01-01T12:00:00+00:00"


@pytest.mark.parametrize("asked", [{}, {"window": "12h"}, {"per": "1d"}, {"per": ""}, {"window": "12h", "per": "1h"}])
def test_the_command_line_says_what_the_service_sends(clinic: Served, asked: dict[str, str]) -> None:
    arguments = [part for option, text in asked.items() for part in (f"--{option}", text)]
    said = CliRunner().invoke(app, ["windows", str(clinic.spec_file), "--query", "all", "--format", "json", *arguments])
    assert said.exit_code == 0, said.output
    found = _windows(clinic, query="all", **asked)
    assert json.loads(said.output) == found
    rates = {"": None, "1h": "hour", "1d": "day"}
    assert (found["per"] or {}).get("words") == rates[asked.get("per", "" if "window" in asked else "1h")]


def test_windows_of_means_sums_and_percentiles(clinic: Served) -> None:
    """Every stay has 8 minutes: whatever is released about windows says so, or that it is not known."""
    mean = _windows(clinic, query="mean", window="1d", per="1h")
    assert mean["per"] is None
    assert mean["stddev"] == [None, None]
    assert mean["change"]["clear"] == [[None, False]]
    assert all(
        low <= 8 <= high and high - low < 10 for low, high in zip(mean["lower"][0], mean["upper"][0], strict=True)
    )
    total = _windows(clinic, query="sum", window="1d", per="1h")
    events = [sum(20 + t for t in range(24 * day, 24 * day + 24)) for day in range(2)]
    for number, count in enumerate(events):
        assert total["lower"][0][number] < 8 * count / 24 < total["upper"][0][number]
    assert total["change"]["clear"] == [[None, True]], "more stays on the second day, by far"
    half = _windows(clinic, query="stays", window="1d", label="0.5")
    assert half["labels"] == ["0.5"]
    assert half["value"] == [[10.0, 10.0]]


def test_totals_levels_and_labels_as_values(clinic: Served) -> None:
    total, kept = _windows(clinic, query="all", window="total", **{"from": "40"}), _released(clinic, "all")
    assert total["measure"] == "total"
    assert total["window"] is None
    assert total["change"] is None
    assert total["tick"] == list(range(41, 49))
    assert total["value"] == [[kept[tick]["value"] for tick in total["tick"]]]
    level = _windows(clinic, query="max", window="6h")
    assert level["measure"] == "level"
    assert level["value"] == [[value["value"] for tick, value in _released(clinic, "max").items() if tick % 6 == 0]]
    leader = _windows(clinic, query="first", window="1d")
    assert leader["value"][0][-1] == "north"
    assert leader["change"]["value"] == [[None, None]]


def test_the_spec_chooses_the_window_unless_the_reader_does(clinic: Served) -> None:
    assert _windows(clinic, query="all")["window"]["ticks"] == 6
    assert _windows(clinic, query="ward")["window"]["ticks"] == 1
    thin = _windows(clinic, query="all", window="1", points=5)
    assert thin["tick"] == [8, 18, 28, 38, 48]


def test_many_labels_have_places_and_a_bound_for_all_of_them(clinic: Served) -> None:
    page = clinic.get("/v1/labels", query="many", window="total", limit=10).json()
    assert (page["labels"], page["matching"], len(page["rows"])) == (120, 120, 10)
    assert page["clear"] == 0, "nothing of that name ever came"
    assert all(
        row["upper"] - row["value"] < page["bound"] and (row["from"], row["to"]) == (1, 120) for row in page["rows"]
    )
    found = clinic.get("/v1/labels", query="many", search="ARD-11", sort="name").json()
    assert [row["label"] for row in found["rows"]] == ["ward-11", *(f"ward-11{n}" for n in range(10))]
    two = clinic.get("/v1/labels", query="ward", window="total").json()
    assert [(row["label"], row["from"], row["to"], row["clear"], row["tied"]) for row in two["rows"]] == [
        ("north", 1, 1, True, False),
        ("south", 2, 2, True, False),
    ]
    day, hour = (clinic.get("/v1/labels", query="ward", window="1d", per=per).json() for per in ("", "1h"))
    assert (day["per"], hour["per"]["words"]) == (None, "hour")
    assert [row["upper"] / 24 for row in day["rows"]] == pytest.approx([row["upper"] for row in hour["rows"]])
    no_rate = clinic.get("/v1/labels", query="stays", window="1d", per="1h").json()
    assert no_rate["per"] is None
    largest = _windows(clinic, query="many", window="1d")
    assert len(largest["labels"]) == 50
    last = clinic.get("/v1/labels", query="many", window="1d", limit=50).json()["rows"]
    assert [row["label"] for row in last] == largest["labels"]


def test_exactness_is_known_beforehand(clinic: Served) -> None:
    rows = clinic.get("/v1/exactness", query="all").json()["windows"]
    assert [row["words"] for row in rows] == ["1 hour", "6 hours", "1 day", "3 days"]
    found = _windows(clinic, query="all", window="1")
    assert max(found["stddev"]) <= rows[0]["stddev"] * (1 + 1e-12)
    assert rows[1]["per"] == {"words": "hour", "radius": rows[1]["radius"] / 6, "usual": rows[1]["usual"] / 6}
    assert all(0 < row["usual"] <= row["radius"] for row in rows)
    assert clinic.get("/v1/exactness", query="mean").json()["windows"] == []


def test_words_of_the_spec_are_told(clinic: Served) -> None:
    about = clinic.get("/v1/stream").json()
    assert (about["title"], about["noun"], about["description"], about["guesses"]) == ("The clinic", "visit", None, 100)
    assert [one["words"] for one in about["windows"]] == ["1 h", "6 h", "Day"]  # a tick, that of a query, a day
    queries = {query["name"]: query for query in about["queries"]}
    assert (queries["all"]["title"], queries["all"]["window"], queries["all"]["per"]) == ("Visits", 6, 1)
    assert queries["mean"]["unit"] == "min"
    assert queries["mean"]["differences"]
    assert not queries["max"]["differences"]
    assert queries["stays"]["edges"] == [0, 5, 10, 20, 60]
    assert queries["all"]["edges"] is None


def test_windows_of_the_spec_are_in_the_metrics_and_not_in_the_releases(clinic: Served) -> None:
    rate = _windows(clinic, query="all", per="1h")
    sample = re.search(r'evertally_value\{[^}]*query="all/6h per 1h"[^}]*\} (\S+)', clinic.get("/metrics").text)
    assert float(sample[1]) == rate["value"][0][-1]
    assert "all/6h per 1h" not in clinic.get("/v1/releases/latest").json()["queries"]


def test_an_answer_is_kept_until_the_next_release(tmp_path: Path) -> None:
    (tmp_path / "visits.toml").write_text(spec_text({**ALL, "window": 2}, clock=HOURLY))
    spec = load_spec(tmp_path / "visits.toml")
    mechanisms = build(spec, simulation(1))
    kept = {t: pack(spec.queries[0], mechanisms["all"].step(7), spec.beta) for t in range(1, 5)}
    asked: list[int] = []

    def read(ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
        asked.extend(ticks)
        return [TickRelease(tick, tick, {"all": kept[tick]}) for tick in ticks if tick in kept]

    pages = WindowPages(spec, Windows(spec, mechanisms, True, read))
    first, again, later = (pages.page(Question("all", window=2), tick, "json") for tick in (2, 2, 4))
    assert first == again
    assert (json.loads(first)["tick"], json.loads(later)["tick"]) == ([2], [2, 4])
    assert asked == [2, 2, 4]
    assert f"in at most {guesses(spec)} of 100 cases" in plain_words(spec)


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (404, {"query": "nobody"}),
        (400, {}),
        (400, {"query": "all", "wndow": "6h"}),
        (400, {"query": "all", "window": "soon"}),
        (400, {"query": "all", "window": "90m"}),
        (400, {"query": "all", "label": "north"}),
        (400, {"query": "ward", "label": "west"}),
        (400, {"query": "max", "label": "west"}),
        (400, {"query": "all", "per": "total"}),
        (400, {"query": ["all", "ward"]}),
    ],
)
def test_what_cannot_be_asked(clinic: Served, status: int, asked: dict[str, Any]) -> None:
    answer = clinic.get("/v1/windows", **asked)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
