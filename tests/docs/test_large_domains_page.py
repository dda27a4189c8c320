"""The page about large domains: its code runs, and what it says of charges is the product's."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally.kinds import OURS
from evertally.runtime import load_spec, run
from evertally.sketches.medians import median_factor
from printed import ROOT, run_as_printed

PAGE = (ROOT / "docs/large-domains.md").read_text()


def test_it_runs_as_printed() -> None:
    names = run_as_printed("docs/large-domains.md")
    lower, upper = names["release"].estimate("/home").interval(1e-6)
    assert lower <= 900 <= upper
    assert abs(names["release"].value["/help"] - 300) < 40
    assert list(names["found"].value) == ["10.0.0.1"]
    assert list(names["found"].prefixes)[:3] == ["10.*", "10.0.*", "10.0.0.*"]
    assert "https://a.org/" in names["urls"]._form.show(names["urls"]._kept.played.recent[-1])
    assert names["ids"].tick == 1


SKETCH: dict[str, Any] = {"rows": 5, "width": 8, "max_per_event": 3, "max_weight": 2}
# Two exact levels and one that is sketched.
PREFIXES: dict[str, Any] = SKETCH | {"labels": "number", "symbols": 3, "fanout": 2, "width": 4, "threshold": 9}
CAPPED: dict[str, Any] = {"unit": "user", "max_events_per_user": 7}
ROWS: list[tuple[str, Any, dict[str, Any], dict[str, int]]] = [
    ("an event in a sketch", et.CountSketch, SKETCH, {}),
    ("an event in a sketch without signs", et.CountSketch, SKETCH | {"signs": False}, {}),
    ("an event in heavy prefixes", et.HeavyPrefixes, PREFIXES, {}),
    ("a user with `max_events_per_user`", et.CountSketch, SKETCH | CAPPED, {"w": 7}),
    (
        "a user with `max_labels_per_user`",
        et.HeavyPrefixes,
        PREFIXES | {"unit": "user", "max_labels_per_user": 11},
        {"b": 11},
    ),
]


@pytest.mark.parametrize(
    ("row", "kind", "options", "given"), ROWS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_charges_are_the_product_s(row: str, kind: Any, options: dict[str, Any], given: dict[str, int]) -> None:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| a")]
    numbers = {"R": 5, "b": 3, "m": 2, "E": 2, "S": 1, "w": 1} | given
    for place, neighbours in ((1, "add_remove"), (2, "replace")):
        cells = next(cells for cells in lines if re.match(rf"{re.escape(row)}(,| =| \(|$)", cells[0]))
        written = cells[place]
        if "times" in written or "in place" in written:  # of the row that the unit's events are in
            base = "an event in heavy prefixes" if kind is et.HeavyPrefixes else "an event in a sketch"
            written = next(cells for cells in lines if re.match(rf"{base}(,|$)", cells[0]))[place]
        expression = written.replace("m²", "m**2")
        expression = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", expression)
        value = eval(expression, {}, numbers) * numbers["w"] ** 2  # the page's own words, made of letters and digits
        made = kind(guarantee=et.ZCDP(1), horizon=9, key=et.simulation(0), neighbours=neighbours, **options)
        assert made.sensitivity.l2_squared == value


def test_the_noise_of_long_texts() -> None:
    urls = et.HeavyPrefixes(symbols=24, width=4096, threshold=9, guarantee=et.ZCDP(1), horizon=9, key=et.simulation(0))
    # The first length has 256 prefixes, which fit; all others are sketched.
    moved = urls.sensitivity.l2_squared
    printed = re.search(r"move (\d+) numbers, so the noise is ([\d.]+) times", PAGE)
    assert printed is not None
    assert int(printed[1]) == moved
    assert float(printed[2]) == round(math.sqrt(moved) * median_factor(5), 1)


def test_the_documented_spec_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs/command-line.md").read_text()
    block = next(part for part in page.split("```toml\n") if 'name = "traffic"' in part.split("[guarantee]")[0])
    (tmp_path / "traffic.toml").write_text(block.split("```")[0])
    spec = load_spec(tmp_path / "traffic.toml")
    with open(tmp_path / "events.csv", "w", newline="") as file:
        csv.writer(file).writerow(["time", "page", "address"])
        csv.writer(file).writerows([["2013-01-01T00:30:00Z", "/home", "10.0.0.1"]] * 2000)
    run(spec, tmp_path / "events.csv", until="2013-01-01T01:00:00Z")
    rows = [json.loads(line) for line in (tmp_path / "traffic.jsonl").read_text().splitlines()]
    assert [(row["query"], row["category"]) for row in rows] == [
        ("pages", "/home"),
        ("pages", "/help"),
        ("senders", "10.0.0.1"),
    ]
    assert abs(rows[0]["value"] - 2000) <= 8 * rows[0]["stddev"]
    assert rows[2]["lower"] <= 2000 <= rows[2]["upper"]
    sections = {name for kind in OURS if kind.name in ("count_sketch", "heavy_prefixes") for name in kind.spellings}
    assert all(f"`{name}`" in page for name in sections)
