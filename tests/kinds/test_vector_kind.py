"""Counts of numbered columns from a spec: what the class releases, windows and pages, and nothing of their number
before a row is asked for."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from kind_runs import LOUD, QUIET, by_hand, hour, values, written

from evertally.encode.range_door import NumberedLabels
from evertally.errors import ConfigurationError
from evertally.kinds.query_table import Apart
from evertally.noise import simulation
from evertally.runtime import load_spec, run
from evertally.runtime.certificate import certificate_of
from evertally.runtime.input.sources import InputFile
from evertally.runtime.mechanisms import build, twins
from evertally.runtime.plan import plan_of
from evertally.runtime.releases import TickRelease, pack, unpack
from evertally.runtime.sample import try_sample
from evertally.runtime.windows import Question, Windows
from evertally.runtime.windows.listing import Listing, listing
from printed import ROOT

FIFTY: dict[str, Any] = {"name": "items", "kind": "vector_counter", "column": "item", "columns": 50}
FOUR = {"name": "shop", "horizon": 4}
# By tick: what counts by its number, and what counts nowhere.
ITEMS: list[list[int | None]] = [[0, 7, 7, 49], [50, -1, None, 3], [], [7] * 5 + [12]]
COUNTS = np.cumsum([[items.count(item) for item in range(50)] for items in ITEMS], axis=0)
MANY = 100_000_000
ROOM = 16 * 2**20  # bytes: a row of so many columns has 800 MB, and their labels more


def _sent(folder: Path, suffix: str) -> Path:
    times = [hour(tick) for tick, items in enumerate(ITEMS, 1) for _ in items]
    items = [item for tick in ITEMS for item in tick]
    path = folder / f"events{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table({"time": times, "item": pa.array(items, pa.int64())}), path)
    elif suffix == ".jsonl":
        rows = [{"time": time, "item": item} for time, item in zip(times, items, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [f"{time},{'' if item is None else item}\n" for time, item in zip(times, items, strict=True)]
        path.write_text("time,item\n" + "".join(lines))
    return path


def _by_label(row: Any, labels: Any) -> dict[str, int]:
    return dict(zip(labels, row.tolist(), strict=True))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_file_is_counted(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, FIFTY, stream=FOUR)
    run(spec, _sent(tmp_path, suffix))
    assert values(spec, "items") == [_by_label(row, map(str, range(50))) for row in COUNTS]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_it_releases_what_the_class_does(tmp_path: Path, suffix: str) -> None:
    spec = written(tmp_path, FIFTY, {"name": "all", "kind": "counter"}, stream=FOUR, guarantee=QUIET)
    run(spec, _sent(tmp_path, suffix))
    made = by_hand(spec, {"items": {"columns": 50}, "all": {}})["items"]
    released = made.run(np.diff(COUNTS, axis=0, prepend=0))
    assert values(spec, "items") == [_by_label(row, made.columns) for row in released]


def test_names_and_others_are_counted_too(tmp_path: Path) -> None:
    named = FIFTY | {"name": "named", "columns": ["7", 49, "x"]}
    rest = FIFTY | {"name": "rest", "columns": 8, "other": "rest"}
    spec = written(tmp_path, named, rest, stream=FOUR)
    run(spec, _sent(tmp_path, ".jsonl"))
    assert values(spec, "named")[-1] == {"7": 7, "49": 1, "x": 0}
    assert values(spec, "rest")[-1] == {"0": 1, "3": 1, "7": 7, "rest": 4, **dict.fromkeys("12456", 0)}
    assert [list(query.categories or ()) for query in spec.queries] == [["7", "49", "x"], [*"01234567", "rest"]]


def test_a_second_column_is_added_up(tmp_path: Path) -> None:
    sums = FIFTY | {"weight": "price", "max_weight": 20, "resolution": 0.25}
    spec = written(tmp_path, sums, stream=FOUR)
    path = tmp_path / "events.jsonl"
    cells = [(7, 2.5), (7, 99), (49, 0.25), (50, 3.0), (None, 1.0)]
    path.write_text("".join(json.dumps({"time": hour(1), "item": i, "price": p}) + "\n" for i, p in cells))
    run(spec, path)
    assert {label: cell for label, cell in values(spec, "items")[0].items() if cell} == {"7": 22.5, "49": 0.25}


def test_events_of_several_columns(tmp_path: Path) -> None:
    """Lists are cut to max_per_event, by a secret order: both of two stay, and one of three goes."""
    spec = written(tmp_path, FIFTY | {"max_per_event": 2, "max_weight": 3}, stream=FOUR)
    path = tmp_path / "events.jsonl"
    events = [[3, 4], {"5": 9, "6": 2}, [10, 11, 12]]
    path.write_text("".join(json.dumps({"time": hour(1), "item": event}) + "\n" for event in events))
    run(spec, path)
    found = values(spec, "items")[0]
    assert [found[str(item)] for item in (3, 4, 5, 6)] == [1, 1, 3, 2]
    assert sorted(found[str(item)] for item in (10, 11, 12)) == [0, 1, 1]


def test_windows_and_lists(tmp_path: Path) -> None:
    spec = written(tmp_path, FIFTY | {"columns": 60}, stream=FOUR)
    query, mechanism, kept = spec.queries[0], build(spec, simulation(1))["items"], {}
    for tick, items in enumerate(ITEMS, 1):
        kept[tick] = TickRelease(tick, tick, {"items": pack(query, mechanism.step_events(items), spec.beta, rows=True)})
    windows = Windows(spec, twins({"items": mechanism}), True, lambda ticks, _: [kept[tick] for tick in ticks])
    assert windows.windowed == {"items"}
    answer = windows.answer(Question("items", window=2, labels=("7", "12")), 4)
    assert (answer.labels, [numbers.value for numbers in answer.numbers]) == (["7", "12"], [[2, 0], [5, 1]])
    with pytest.raises(ConfigurationError, match="no such label"):
        windows.answer(Question("items", window=2, labels=("7", "07")), 4)
    assert (windows.answer(Question("items", window=2), 4).labels or [])[:2] == ["7", "12"], "the largest come first"
    page = listing(windows, Listing("items", window=2, search="1", sort="name", limit=3), 4)
    assert [(row["label"], row["value"]) for row in page["rows"]] == [("1", 0), ("10", 0), ("11", 0)]
    assert (page["labels"], page["matching"]) == (60, 15)
    columns = unpack(query, kept[4].payloads["items"])
    assert columns["category"] == [str(item) for item in range(60)]


def test_a_sample_is_looked_at(tmp_path: Path) -> None:
    (cells,) = try_sample(written(tmp_path, FIFTY, stream=FOUR), InputFile(_sent(tmp_path, ".csv"))).cells
    assert (cells.column, cells.missing, cells.outside, cells.near_misses()) == ("item", 1, 2, [])


def test_a_spec_makes_nothing_of_its_size(tmp_path: Path) -> None:
    written(tmp_path, FIFTY, stream=FOUR)  # what is made once in a process is made now
    tracemalloc.start()
    spec = written(tmp_path, FIFTY | {"columns": MANY, "workload": {"window": 2}}, stream=FOUR)
    labels = spec.queries[0].categories
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(labels, NumberedLabels)
    assert (len(labels), labels[-1], spec.rows) == (MANY, str(MANY - 1), MANY)
    assert most < ROOM


def test_a_plan_makes_no_labels(tmp_path: Path) -> None:
    """Rows of zeros that nobody touches are numpy's, and take no room; what is Python's is looked at."""
    sums = {"weight": "price", "max_weight": 20, "resolution": 0.25}
    items, prices = FIFTY | {"columns": MANY}, FIFTY | sums | {"name": "sums", "columns": MANY}
    spec = written(tmp_path, items, prices, stream=FOUR, guarantee=QUIET)
    tracemalloc.start()
    made = twins(build(spec, simulation(0)))
    planned = plan_of(spec, made)
    windows = Windows(spec, made, True, lambda ticks, queries: [])
    filed = json.dumps(certificate_of(spec, made))
    kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, 0)])
    tracemalloc.stop()
    assert [query.numbers for query in planned.queries] == [MANY, MANY]
    assert windows.windowed == {"items"}, "a log keeps no row of so many steps beside its values"
    assert len(filed) < 20_000
    assert sum(trace.size for trace in kept.traces) < ROOM


def test_the_memory_limit_decides_about_the_noise(tmp_path: Path) -> None:
    """A tree needs a row of noise, a bank several; the noise is made only where a row is."""
    few = build(written(tmp_path, FIFTY | {"columns": MANY}, stream=FOUR, guarantee=QUIET), simulation(0))["items"]
    raised = FIFTY | {"columns": MANY, "memory_limit": 10_000_000_000}
    more = build(written(tmp_path, raised, stream=FOUR, guarantee=QUIET), simulation(0))["items"]
    assert (few.mechanism, more.mechanism, more.memory_limit) == ("tree", "bank", 10_000_000_000)
    assert more.worst_stddev() < few.worst_stddev()
    with pytest.raises(
        ConfigurationError, match=r'"tree" needs 34359738368 bytes, above memory_limit=1073741824; raise'
    ):
        build(written(tmp_path, FIFTY | {"columns": 2**32}, stream=FOUR, guarantee=QUIET), simulation(0))


def test_the_documented_query_is_a_good_one(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "command-line.md").read_text().split("### Numbered columns\n")[1].split("\n### ")[0]
    written(tmp_path, FIFTY, stream=FOUR)
    (shown,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    path = tmp_path / "visits.toml"
    path.write_text(path.read_text() + "\n" + shown.replace('"items"', '"shown"'))
    assert [query.kind for query in load_spec(path).queries] == ["vector_counter"] * 2
    own = set(load_spec(path).queries[0].record.options.model_fields) - set(Apart.model_fields)
    assert own - {word for word in own if re.search(rf"\b{word}\b", section)} == set()


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"columns": 0}, "columns must be how many columns there are, from 1 to 4294967296, or a list of names"),
    ({"columns": 2**32 + 1}, "from 1 to 4294967296"),
    ({"columns": "50"}, "from 1 to 4294967296"),
    ({"columns": True}, "from 1 to 4294967296"),
    ({"columns": []}, "from 1 to 4294967296"),
    ({"columns": None}, "columns"),
    ({"column": None}, "column"),
    ({"categories": ["a"]}, "categories"),
    ({"memory_limit": 0}, "memory_limit must be an integer of at least 1"),
    ({"max_weight": 1.5}, "max_weight must be an integer of at least 1"),
    ({"weight": "price"}, "weight needs 'resolution'"),
    ({"resolution": 0.5}, "resolution goes with weight"),
]


@pytest.mark.parametrize(("changed", "problem"), REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    table = {option: value for option, value in (FIFTY | changed).items() if value is not None}
    with pytest.raises(ConfigurationError, match=problem):
        written(tmp_path, table, stream=FOUR, guarantee=LOUD)


@pytest.mark.parametrize("changed", [{"mechanism": "sparse"}, {"other": "7"}, {"columns": ["a", "a"]}])
def test_what_the_class_refuses_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="query 'items'"):
        build(written(tmp_path, FIFTY | changed, stream=FOUR), simulation(0))
