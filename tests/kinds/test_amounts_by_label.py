"""Sums of an amount by category from a spec: a histogram with a weight. Run without noise, in windows, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from kind_runs import by_hand, hour, values, written

from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.runtime import run
from evertally.runtime.certificate import certificate
from evertally.runtime.input.sources import InputFile
from evertally.runtime.mechanisms import build, twins
from evertally.runtime.plan import plan
from evertally.runtime.releases import TickRelease, pack
from evertally.runtime.sample import try_sample
from evertally.runtime.sinks.parquet import release_schema
from evertally.runtime.windows import Question, Windows
from evertally.runtime.windows.listing import Listing, listing

COUNTRIES = {"column": "country", "categories": ["DE", 7], "other": "rest"}
REVENUE: dict[str, Any] = {
    "name": "revenue", "kind": "histogram", **COUNTRIES, "weight": "amount", "max_weight": 50, "resolution": 0.25,
}  # fmt: skip
PLAIN = {"name": "orders", "kind": "histogram", **COUNTRIES}
FOUR = {"name": "till", "horizon": 4}
# Odd cells: what is no amount adds nothing, what is no label neither, and what is too much is cut.
CELLS: list[tuple[int, Any, Any]] = [
    (1, "DE", 30.25),
    (1, 7, 99),
    (1, "IT", 5),
    (2, "7", "2.5"),
    (2, "DE", None),
    (2, "DE", "seven"),
    (2, None, 9),
    (3, "DE", -4),
    (3, ["DE"], 3),
    (3, {"DE": 2}, 3),
    (3, 7.0, 0.5),
    (4, True, 1),
]
SUMS = [
    {"DE": 30.25, "7": 50, "rest": 5},
    {"DE": 30.25, "7": 52.5, "rest": 5},
    {"DE": 30.25, "7": 53, "rest": 5},
    {"DE": 30.25, "7": 53, "rest": 6},
]


def sent(folder: Path) -> Path:
    path = folder / "events.jsonl"
    rows = [{"time": hour(tick, i), "country": label, "amount": cell} for i, (tick, label, cell) in enumerate(CELLS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_amounts_are_added_up_by_category(tmp_path: Path) -> None:
    spec = written(tmp_path, REVENUE, PLAIN, stream=FOUR)
    run(spec, sent(tmp_path))
    assert values(spec, "revenue") == SUMS
    assert values(spec, "orders")[0] == {"DE": 1, "7": 1, "rest": 1}, "a histogram beside it counts as ever"
    assert spec.columns() == ["time", "country", "amount"]


def test_a_file_of_columns_is_the_same(tmp_path: Path) -> None:
    spec = written(tmp_path, REVENUE, stream=FOUR)
    rows = [(tick, str(label), cell) for tick, label, cell in CELLS if isinstance(label, str | int)]
    cells = [float(cell) if isinstance(cell, int | float) else None for _, _, cell in rows]
    table = {"time": [hour(tick) for tick, _, _ in rows], "country": [label for _, label, _ in rows]}
    path = tmp_path / "events.parquet"
    pyarrow.parquet.write_table(pa.table({**table, "amount": pa.array(cells)}), path)
    run(spec, path)
    assert values(spec, "revenue")[0] == SUMS[0]


def test_it_is_the_class_with_a_resolution(tmp_path: Path) -> None:
    """Noise and coins are those of the histogram that Python makes under the same key."""
    spec = written(tmp_path, REVENUE | {"resolution": 0.3}, stream=FOUR, guarantee={"rho": 0.5})
    run(spec, sent(tmp_path))
    options = {"categories": ["DE", 7], "other": "rest", "max_weight": 50, "resolution": 0.3}
    made = by_hand(spec, {"revenue": options})["revenue"]
    for tick, found in enumerate(values(spec, "revenue"), start=1):
        events = [{label: cell} for own, label, cell in CELLS if own == tick and not isinstance(label, list | dict)]
        assert made.step_events(events).value == pytest.approx(found)


def test_users_are_capped(tmp_path: Path) -> None:
    stream = FOUR | {"unit": "user", "user_column": "who", "max_events_per_user": 2}
    spec = written(tmp_path, REVENUE, stream=stream)
    path = tmp_path / "events.jsonl"
    rows = [{"time": hour(1, i), "who": "ann", "country": "DE", "amount": 1.25} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(spec, path)
    assert values(spec, "revenue")[0]["DE"] == 2.5


def test_words_and_figures(tmp_path: Path) -> None:
    spec = written(tmp_path, REVENUE, stream=FOUR, guarantee={"rho": 0.5})
    (planned,) = plan(spec).queries
    in_steps = written(tmp_path, PLAIN | {"max_weight": 200}, stream=FOUR, guarantee={"rho": 0.5})
    assert planned.stddev == pytest.approx((plan(in_steps).queries[0].stddev or 0) / 4)
    filed = certificate(spec)["queries"][0]
    assert filed["in_plain_words"] == "Sum of amount by country"
    assert filed["proved_in"]["built_on"] == "additions 12"
    assert release_schema(spec).field("value").type == pa.float64()
    assert release_schema(in_steps).field("value").type == pa.int64()


def test_a_sample_is_looked_at(tmp_path: Path) -> None:
    labels, amounts = try_sample(written(tmp_path, REVENUE, stream=FOUR), InputFile(sent(tmp_path))).cells
    assert (labels.column, labels.outside, labels.declared) == ("country", 2, frozenset({"DE", "7"}))
    assert (amounts.column, amounts.bounds, amounts.missing, amounts.outside) == ("amount", (0.0, 50.0), 2, 2)


def test_windows_are_differences_of_sums(tmp_path: Path) -> None:
    spec = written(tmp_path, REVENUE, stream=FOUR)
    query, mechanism, kept = spec.queries[0], build(spec, simulation(1))["revenue"], {}
    for tick in range(1, 5):
        events = [{label: cell} for own, label, cell in CELLS if own == tick and not isinstance(label, list | dict)]
        kept[tick] = TickRelease(tick, tick, {"revenue": pack(query, mechanism.step(events), spec.beta, rows=True)})
    windows = Windows(spec, twins({"revenue": mechanism}), True, lambda ticks, queries: [kept[tick] for tick in ticks])
    answer = windows.answer(Question("revenue", window=2), 4)
    assert [numbers.value for numbers in answer.numbers] == [[30.25, 52.5, 5.0], [0.0, 0.5, 1.0]]
    assert [numbers.stddev for numbers in answer.numbers] == [mechanism.stddev(2), mechanism.stddev(4, since=2)]
    assert answer.changes[1][0].value == [-30.25, -52.0, -4.0]
    page = listing(windows, Listing("revenue", window=2), 4)
    assert [(row["label"], row["value"]) for row in page["rows"]] == [("rest", 1.0), ("7", 0.5), ("DE", 0.0)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"resolution": None}, "weight needs 'resolution'"),
    ({"max_weight": None}, "weight needs 'max_weight'"),
    ({"weight": None}, "resolution goes with weight"),
    ({"weight": None, "resolution": None, "max_weight": 1.5}, "max_weight must be an integer of at least 1"),
    ({"weight": None, "resolution": None, "max_weight": 0}, "max_weight must be an integer of at least 1"),
    ({"max_per_event": 2}, "an event with a weight has one label"),
    ({"weight": "country"}, "weight is another column"),
    ({"categories": None, "other": None, "max_weight": None, "edges": [0, 1]}, "weight goes with categories"),
    ({"weight": ""}, "must be a text"),
    ({"max_weight": "50"}, "must be a number"),
]


@pytest.mark.parametrize(("changed", "problem"), REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    table = {option: value for option, value in (REVENUE | changed).items() if value is not None}
    with pytest.raises(ConfigurationError, match=problem):
        written(tmp_path, table, stream=FOUR)


@pytest.mark.parametrize(
    "changed", [{"max_weight": -1}, {"resolution": 0}, {"resolution": 60}, {"workload": {"window": 2}}]
)
def test_what_the_class_refuses_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        build(written(tmp_path, REVENUE | changed, stream=FOUR), simulation(0))


def test_columns_have_their_types(tmp_path: Path) -> None:
    events = {"time": "time", "country": "text", "amount": "text"}
    with pytest.raises(ConfigurationError, match="amount"):
        written(tmp_path, REVENUE, stream=FOUR, events=events)
    with pytest.raises(ConfigurationError, match="country"):
        written(tmp_path, REVENUE, stream=FOUR, events=events | {"country": "counts", "amount": "number"})
    assert written(tmp_path, REVENUE, stream=FOUR, events=events | {"amount": "number"}).queries
