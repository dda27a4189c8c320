"""Runs over files: what is released, that it is released once, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from visit_stream import (
    COLUMN_QUERIES,
    UNKNOWN_QUERIES,
    WITH_COLUMN_QUERIES,
    WITH_UNKNOWN_QUERIES,
    NoNoise,
    WriteSpec,
    save,
    visits,
)

from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP
from evertally.runtime import Asked, Step, load_spec, opening, plan, run
from evertally.runtime import runner as runner_module
from evertally.runtime.mechanisms import build
from made_keys import save_bound

RICH = """
[[query]]
name = "minutes"
kind = "counter"
share = 0.1
column = "minutes"
max_weight = 30

[[query]]
name = "mean"
kind = "mean"
share = 0.1
column = "minutes"
lower = 0
upper = 50
resolution = 1
"""
ROOM = (("share = 0.25", "share = 0.2"), ("share = 0.75", "share = 0.6"))


def output_of(path: Path) -> bytes:
    return (path.parent / "visits.jsonl").read_bytes()


def released(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output_of(path).splitlines()]


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases the exact sums, to see which tick each event entered."""
    monkeypatch.setattr(opening, "obtain_key", lambda *_: (NoNoise(), False))


def same_key(*specs: Path) -> None:
    """Gives several copies of one stream the same key: the same noise, to compare their releases byte by byte."""
    key = Key.generate()
    for spec in specs:
        save_bound(key, spec)


def test_every_declared_tick_is_released_in_declared_order(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec()
    report = run(load_spec(path), save(visits(0, 30), tmp_path / "v.csv"))
    assert (report.first, report.last, report.resumed) == (1, 48, False)
    rows = released(path)
    assert [row["tick"] for row in rows] == [tick for tick in range(1, 49) for _ in range(4)]
    assert [row["category"] for row in rows[:4]] == [None, "north", "south", "elsewhere"]
    assert list(rows[0]) == ["tick", "time", "query", "category", "value", "stddev", "lower", "upper"]
    assert rows[-1]["time"] == "2013-01-03T00:00:00Z"
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in rows)


@pytest.mark.usefixtures("no_noise")
def test_releases_are_the_truth_and_noise(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(*ROOM, append=RICH)
    spec = load_spec(path)
    records = visits(0, 48)
    run(spec, save(records, tmp_path / "v.csv"))
    last = {(row["query"], row["category"]): row["value"] for row in released(path) if row["tick"] == 48}
    wards = [record["ward"] for record in records]
    assert last["all", None] == len(records)
    assert last["ward", "north"] == wards.count("north")
    assert last["ward", "elsewhere"] == wards.count("attic")
    assert last["minutes", None] == sum(min(30, r["minutes"]) for r in records)
    assert last["mean", None] == pytest.approx(sum(r["minutes"] for r in records) / len(records))
    by_tick = {row["tick"]: row["value"] for row in released(path) if row["query"] == "all"}
    assert by_tick == {t: sum(r["time"] < spec.clock.end_of(t) for r in records) for t in range(1, 49)}


def test_the_formats_give_identical_releases(write_spec: WriteSpec, tmp_path: Path) -> None:
    specs = [write_spec(*ROOM, append=RICH, folder=name) for name in ("csv", "jsonl", "parquet")]
    same_key(*specs)
    for spec in specs:
        run(load_spec(spec), save(visits(0, 48), tmp_path / f"v.{spec.parent.name}"))
    assert output_of(specs[0]) == output_of(specs[1]) == output_of(specs[2])
    shuffled = write_spec(*ROOM, append=RICH, folder="shuffled")
    save_bound(Key.load(specs[0].parent / "visits.key"), shuffled)
    run(load_spec(shuffled), save(visits(0, 48)[::-1], tmp_path / "shuffled.csv"))
    assert output_of(shuffled) == output_of(specs[0])


@pytest.mark.parametrize(
    ("changes", "append"),
    [((), ""), (WITH_COLUMN_QUERIES, COLUMN_QUERIES), (WITH_UNKNOWN_QUERIES, UNKNOWN_QUERIES)],
    ids=["counts", "queries", "unknown"],
)
def test_csv_output_says_the_same(write_spec: WriteSpec, tmp_path: Path, changes: Any, append: str) -> None:
    lines = write_spec(*changes, append=append, folder="a")
    table = write_spec(*changes, ("visits.jsonl", "visits.csv"), append=append, folder="b")
    same_key(lines, table)
    for path in (lines, table):
        run(load_spec(path), save(visits(0, 48), tmp_path / "v.csv"))
    with open(table.parent / "visits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:  # a label that is released has a column of its own
        label = row.pop("label", "")
        assert not label or not row["value"]
        row["value"] = row["value"] or label
    assert rows == [{k: "" if v is None else str(v) for k, v in row.items()} for row in released(lines)]


@pytest.mark.parametrize(
    ("changes", "append"),
    [(ROOM, RICH), (WITH_COLUMN_QUERIES, COLUMN_QUERIES), (WITH_UNKNOWN_QUERIES, UNKNOWN_QUERIES)],
    ids=["counts", "queries", "unknown"],
)
def test_two_files_equal_one(write_spec: WriteSpec, tmp_path: Path, changes: Any, append: str) -> None:
    one, two = (write_spec(*changes, append=append, folder=name) for name in ("one", "two"))
    same_key(one, two)
    run(load_spec(one), save(visits(0, 48), tmp_path / "all.csv"))
    first = run(load_spec(two), save(visits(0, 24), tmp_path / "day1.jsonl"), until="2013-01-02")
    second = run(load_spec(two), save(visits(24, 48), tmp_path / "day2.parquet"))
    assert (first.last, second.first) == (24, 25)
    assert output_of(one) == output_of(two)


def test_user_level_across_two_files(write_spec: WriteSpec, tmp_path: Path) -> None:
    user = ("horizon = 48", 'horizon = 48\nunit = "user"\nmax_events_per_user = 3\nuser_column = "patient"')
    one, two = (write_spec(user, folder=name) for name in ("one", "two"))
    same_key(one, two)
    run(load_spec(one), save(visits(0, 48), tmp_path / "all.csv"))
    run(load_spec(two), save(visits(0, 24), tmp_path / "day1.csv"), until="2013-01-02")
    run(load_spec(two), save(visits(24, 48), tmp_path / "day2.jsonl"))
    assert output_of(one) == output_of(two)


@pytest.mark.usefixtures("no_noise")
def test_user_level_keeps_the_first_events_of_each(write_spec: WriteSpec, tmp_path: Path) -> None:
    user = ("horizon = 48", 'horizon = 48\nunit = "user"\nmax_events_per_user = 3\nuser_column = "patient"')
    path = write_spec(user)
    run(load_spec(path), save(visits(0, 48), tmp_path / "all.csv"))
    assert released(path)[-4]["value"] == 3 * 11  # eleven patients, three events of each


@pytest.mark.usefixtures("no_noise")
def test_the_first_events_of_a_user_are_the_first_in_the_file(write_spec: WriteSpec, tmp_path: Path) -> None:
    user = ("horizon = 48", 'horizon = 48\nunit = "user"\nmax_events_per_user = 1\nuser_column = "patient"')
    path = write_spec(user)
    times = ["2013-01-01T02:00", "2013-01-01T01:00"]
    records = [
        {"time": times[i % 2], "ward": "north" if i < 200 else "south", "patient": f"{i % 2}-{i // 2 % 100}"}
        for i in range(1000)
    ]
    run(load_spec(path), save(records, tmp_path / "all.csv"), until="2013-01-01T04:00")
    assert [row["value"] for row in released(path)][-4:] == [200, 200, 0, 0]


@pytest.mark.usefixtures("no_noise")
def test_late_early_and_unreadable_events(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec()
    at = [
        {"time": time, "ward": "north"} for time in ("2012-05-01", "2013-01-01T05:59:59", "2013-01-01T06:00", "x", None)
    ]
    asked = Asked(late="count", later="leave")
    run(load_spec(path), save(at, tmp_path / "a.jsonl"), until="2013-01-01T06:00:00Z", asked=asked)
    values = [row["value"] for row in released(path) if row["query"] == "all"]
    assert values == [1, 1, 1, 1, 1, 2]  # before the start: first tick; from `until` on and unreadable: nowhere
    late = [{"time": time, "ward": "north"} for time in ("2013-01-01T01:00", "2013-01-01T08:30", "2013-01-01T02:00")]
    run(load_spec(path), save(late, tmp_path / "b.jsonl"), until="2013-01-01T10:00:00Z", asked=asked)
    values = [row["value"] for row in released(path) if row["query"] == "all"]
    assert values[6:] == [4, 4, 5, 5]  # late: the first tick that was not out yet


@pytest.mark.usefixtures("no_noise")
def test_integer_clock(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(("start = 2013-01-01T00:00:00Z", "start = 100"), ('tick = "1h"', "tick = 10"))
    records = [{"time": time, "ward": "south"} for time in (100, 109, 110, 95, 131)]
    run(load_spec(path), save(records, tmp_path / "a.csv"), until="130", asked=Asked("count", "leave"))
    rows = [row for row in released(path) if row["query"] == "all"]
    assert [(row["time"], row["value"]) for row in rows] == [(110, 3), (120, 4), (130, 4)]


def test_garbage_records_change_nothing_and_say_nothing(write_spec: WriteSpec, tmp_path: Path) -> None:
    good, bad = write_spec(folder="good"), write_spec(folder="bad")
    same_key(good, bad)
    records = visits(0, 20)
    run(load_spec(good), save(records, tmp_path / "good.jsonl"))
    junk = b'\n{"time": 7}\n{broken\n[1]\n"text"\n\xff\xfe\n{"time": "2013-01-01T99:00", "ward": "north"}\n'
    (tmp_path / "bad.jsonl").write_bytes((tmp_path / "good.jsonl").read_bytes() + junk)
    run(load_spec(bad), tmp_path / "bad.jsonl")
    assert output_of(bad) == output_of(good)


@pytest.mark.usefixtures("no_noise")
def test_events_that_are_collections(write_spec: WriteSpec, tmp_path: Path) -> None:
    many = ('column = "ward"', 'column = "ward"\nmax_per_event = 2\nmax_weight = 3')
    specs = [write_spec(many, folder=name) for name in ("jsonl", "parquet")]
    records = [{"time": "2013-01-01", "ward": ward} for ward in (["north", "south", "north"], ["attic"], [], None)]
    for spec in specs:
        run(load_spec(spec), save(records, tmp_path / f"v.{spec.parent.name}"), until="2013-01-01T01:00")
    assert output_of(specs[0]) == output_of(specs[1])
    assert [row["value"] for row in released(specs[0])] == [4, 2, 1, 1]
    weighted = write_spec(many, folder="weighted")
    run(
        load_spec(weighted),
        save([{"time": "2013-01-01", "ward": {"north": 9, "south": -2}}], tmp_path / "w.jsonl"),
        until="2013-01-01T01:00",
    )
    assert [row["value"] for row in released(weighted)] == [1, 3, 0, 0]


def test_progress_is_public(write_spec: WriteSpec, tmp_path: Path) -> None:
    steps: list[Step] = []
    run(load_spec(write_spec()), save(visits(0, 9), tmp_path / "v.csv"), progress=steps.append)
    assert [step.tick for step in steps] == list(range(1, 49))
    assert (steps[0].first, steps[0].last, list(steps[0].releases)) == (1, 48, ["all", "ward"])


def test_what_is_refused(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec()
    spec = load_spec(path)
    day1, day2 = save(visits(0, 24), tmp_path / "day1.csv"), save(visits(24, 48), tmp_path / "day2.csv")
    for until, words in (
        ("2013-01-04", "horizon"),
        ("2013-01-01T00:30", "boundary"),
        ("2013-01-01", "nothing to release"),
        ("soon", "time"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            run(spec, day1, until=until)
    run(spec, day1, until="2013-01-02")
    before = output_of(path)
    with pytest.raises(StateError, match="counted already"):
        run(spec, day1)
    with pytest.raises(ConfigurationError, match="nothing to release"):
        run(spec, day2, until="2013-01-02")
    with pytest.raises(StateError, match="bound to another spec"):
        run(load_spec(write_spec(("rho = 0.5", "rho = 0.6"))), day2)
    assert output_of(path) == before
    run(spec, day2)
    with pytest.raises(ConfigurationError, match="nothing to release"):
        run(spec, day2)


def test_idle_files_may_look_alike(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec())
    for day in ("2013-01-02", "2013-01-03"):
        (tmp_path / "idle.csv").write_text("time,ward\n")
        run(spec, tmp_path / "idle.csv", until=day)


def test_an_unbounded_stream_needs_an_until(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(("horizon = 48\n", "")))
    day1 = save(visits(0, 24), tmp_path / "day1.csv")
    with pytest.raises(ConfigurationError, match="--until"):
        run(spec, day1)
    run(spec, day1, until="2013-01-02")
    assert plan(spec).ticks == 1024


def test_what_a_mechanism_refuses_is_reported_at_the_query_and_leaves_no_key(
    write_spec: WriteSpec, tmp_path: Path
) -> None:
    path = write_spec(('categories = ["north", "south"]', 'categories = ["north", "north"]'))
    with pytest.raises(ConfigurationError, match=r"visits\.toml:2[4-9]: query 'ward': .*twice"):
        run(load_spec(path), save(visits(0, 24), tmp_path / "v.csv"))
    assert not (tmp_path / "visits.key").exists()
    path = write_spec(("share = 0.25", 'share = 0.25\nmechanism = "magic"'))
    with pytest.raises(ConfigurationError, match=r"query 'all': .*magic"):
        plan(load_spec(path))


# -- queries on column sums --------------------------------------------------------------------------------------------


def test_releases_of_column_queries_are_numbers_labels_and_lists(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES)
    run(load_spec(path), save(visits(0, 48), tmp_path / "v.csv"))
    last = [row for row in released(path) if row["tick"] == 48]
    assert [(row["query"], row["category"]) for row in last[4:]] == [
        ("busiest", None),
        ("first", None),
        ("order", "1"),
        ("order", "2"),
        ("middle", "mean"),
        ("middle", "south"),
        ("rare", None),
    ]
    values = {(row["query"], row["category"]): row["value"] for row in last}
    assert values["first", None] in ("north", "south", "elsewhere")
    assert {values["order", "1"], values["order", "2"]} == {"north", "south"}
    assert all(isinstance(values[query, None], int) for query in ("busiest", "rare"))
    assert all(row["stddev"] is None for row in last[4:])
    for row in last[4:]:
        if isinstance(row["value"], str):
            assert row["lower"] == 0 <= row["upper"]
        else:
            assert row["lower"] < row["value"] < row["upper"]


@pytest.mark.usefixtures("no_noise")
def test_column_queries_without_noise_are_nearly_the_truth(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES)
    records = visits(0, 48)
    run(load_spec(path), save(records, tmp_path / "v.csv"))
    last = {(row["query"], row["category"]): row for row in released(path) if row["tick"] == 48}
    wards = [record["ward"] for record in records]
    north, south = wards.count("north"), wards.count("south")
    assert north > south
    assert last["first", None]["value"] == last["order", "1"]["value"] == "north"
    truth = {("busiest", None): north, ("middle", "south"): south, ("rare", None): len(records)}
    for key, exact in truth.items():
        row = last[key]
        assert row["lower"] <= exact <= row["upper"]
        assert exact / 2 < row["value"] <= exact  # stale, not noisy


def test_plan_of_column_queries(write_spec: WriteSpec) -> None:
    planned = {
        query.name: query for query in plan(load_spec(write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES))).queries
    }
    assert [query.numbers for query in planned.values()] == [1, 3, 1, 1, 2, 2, 1]
    assert planned["busiest"].mechanism == "rebased"
    assert planned["rare"].mechanism == "sparse"
    for name in ("busiest", "first", "order", "middle", "rare"):
        assert planned[name].stddev is None
        assert planned[name].error_bound is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('mechanism = "rebased"', 'mechanism = "sqr"', "unknown mechanism"),
        ('mechanism = "rebased"', 'mechanism = "intervals"', "weighted sums"),
        ('{column = "south"}', '{column = "attic"}', "no category 'attic'"),
        ('{column = "south"}', "{column = 2}", "needs at least 3 columns"),
        ('{column = "south"}', '{constant = "0", plus = [[2, {column = 0}]]}', "Counterexample"),
        ('{column = "south"}', '{constant = "1", plus = [[1, {column = 0}]]}', "1 at zero"),
        ("k = 2", "k = 3", "from 1 to 2"),
    ],
)
def test_refused_column_queries_name_the_query(write_spec: WriteSpec, old: str, new: str, words: str) -> None:
    assert old in COLUMN_QUERIES
    path = write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES.replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: query '\w+': ") as refusal:
        plan(load_spec(path))
    assert words in str(refusal.value)


# -- unknown items and leading columns ---------------------------------------------------------------------------------

ITEMS = (
    ("rho = 0.5", "epsilon = 300\ndelta = 1e-6"),
    ("share = 0.25", "share = 0.1"),
    ("share = 0.75", "share = 0.9\nmax_per_event = 2"),
    ('kind = "histogram"', 'kind = "unknown-histogram"'),
    ('categories = ["north", "south"]\nother = "elsewhere"\n', ""),
)


def baskets() -> list[dict[str, Any]]:
    """Pairs of items, some of them hostile, some that occur once, and events that are no list."""
    strange = 'no\rrow,"ends"\nhere\x1b[2J'
    return [
        {"time": f"2013-01-01T{i % 20:02d}:00", "ward": ward}
        for i in range(200)
        for ward in (["tea", "milk"], ["tea", strange], ["tea", f"only {i}"], [], None)
    ]


@pytest.mark.usefixtures("no_noise")
def test_only_items_above_the_threshold_have_rows(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(*ITEMS)
    spec = load_spec(path)
    run(spec, save(baskets(), tmp_path / "v.jsonl"))
    rows = [row for row in released(path) if row["query"] == "ward"]
    threshold = build(spec, None)["ward"].threshold_at(1)  # the same at all ticks
    assert threshold > 1
    truth = {tick: min(10 * tick, 200) for tick in range(1, 49)}
    expected = {
        (tick, label): times * truth[tick]
        for tick in truth
        for label, times in (("tea", 3), ("milk", 1), ('no\rrow,"ends"\nhere\x1b[2J', 1))
        if times * truth[tick] > threshold
    }
    assert {(row["tick"], row["category"]): row["value"] for row in rows} == expected
    assert [row["category"] for row in rows[-3:]] == ["tea", "milk", 'no\rrow,"ends"\nhere\x1b[2J']  # ties by label
    assert not any("only" in str(row["category"]) for row in rows)


def test_lists_of_items_in_every_format(write_spec: WriteSpec, tmp_path: Path) -> None:
    """JSON lines, Parquet and shuffled events give the same releases; CSV output can be read back."""
    specs = [write_spec(*ITEMS, folder=name) for name in ("jsonl", "parquet", "shuffled")]
    table = write_spec(*ITEMS, ("visits.jsonl", "visits.csv"), folder="table")
    same_key(*specs, table)
    records = baskets()
    for spec, events in zip(
        (*specs, table),
        (
            save(records, tmp_path / "v.jsonl"),
            save(records, tmp_path / "v.parquet"),
            save(records[::-1], tmp_path / "back.jsonl"),
            save(records, tmp_path / "v.jsonl"),
        ),
        strict=True,
    ):
        run(load_spec(spec), events)
    assert output_of(specs[0]) == output_of(specs[1]) == output_of(specs[2])
    assert len({row["category"] for row in released(specs[0])}) == 4
    with open(table.parent / "visits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [{k: "" if v is None else str(v) for k, v in row.items()} for row in released(specs[0])]


def test_plain_items_in_every_format(write_spec: WriteSpec, tmp_path: Path) -> None:
    specs = [
        write_spec(*WITH_UNKNOWN_QUERIES, append=UNKNOWN_QUERIES, folder=name) for name in ("csv", "jsonl", "parquet")
    ]
    same_key(*specs)
    for spec in specs:
        run(load_spec(spec), save(visits(0, 48), tmp_path / f"v.{spec.parent.name}"))
    assert output_of(specs[0]) == output_of(specs[1]) == output_of(specs[2])
    last = {(row["query"], row["category"]) for row in released(specs[0]) if row["tick"] == 48}
    assert {("found", "north"), ("found", "south"), ("found", "attic")} <= last


def test_unknown_items_give_every_share_a_delta(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(*ITEMS))
    assert spec.guarantee == ApproxDP(300, 1e-6)
    assert spec.shared == ApproxDP(300, 1e-6).with_bad_event()
    made = build(spec, None)
    assert made["ward"].guarantee == spec.shared.share("9/10")
    assert isinstance(made["ward"].charge, ApproxZCDP)
    assert made["all"].charge == ZCDP(spec.shared.share("1/10").exact_rho)  # type: ignore[union-attr]
    assert spec.guarantee.covers(spec.shared)


LEADING = (
    ("rho = 0.5", "epsilon = 2\ndelta = 1e-6"),
    ('kind = "histogram"', 'kind = "streaming-top"\nk = 2\nswitches = 3'),
)
ALONE = ('[[query]]\nname = "all"\nkind = "counter"\nshare = 0.25\n', "")


def test_sparse_gumbel_alone_gets_the_guarantee_itself(write_spec: WriteSpec, tmp_path: Path) -> None:
    path = write_spec(*LEADING, ALONE, ("share = 0.75\n", ""))
    spec = load_spec(path)
    top = build(spec, None)["ward"]
    assert (top.mechanism, top.accounting, top.guarantee) == ("sparse-gumbel", "adaptive", ApproxDP(2, 1e-6))
    assert (top.columns, top.sensitivity.l1) == (("north", "south", "elsewhere"), 3)  # an event may touch every column
    first = run(spec, save(visits(0, 24), tmp_path / "day1.csv"), until="2013-01-02")
    second = run(spec, save(visits(24, 48), tmp_path / "day2.csv"))
    assert (first.last, second.last) == (24, 48)
    assert [row["tick"] for row in released(path)] == [tick for tick in range(1, 49) for _ in range(2)]
    with pytest.raises(ConfigurationError, match="takes the whole guarantee: leave out share"):
        load_spec(write_spec(*LEADING, ALONE))


def test_sparse_gumbel_beside_other_queries(write_spec: WriteSpec) -> None:
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: .*stream of its own.*meta.*oblivious"):
        load_spec(write_spec(*LEADING))
    oblivious = ("delta = 1e-6", 'delta = 1e-6\nadversary = "oblivious"')
    spec = load_spec(write_spec(*LEADING, oblivious))
    top = build(spec, None)["ward"]
    assert (top.accounting, top.guarantee) == ("paper", spec.guarantee.share("3/4"))
    assert spec.guarantee.adversary == "oblivious"
    assert load_spec(write_spec(*LEADING[:1], oblivious)).digest != load_spec(write_spec(*LEADING[:1])).digest
    paper = ("switches = 3", 'switches = 3\naccounting = "standard"')
    assert build(load_spec(write_spec(*LEADING, oblivious, paper)), None)["ward"].accounting == "standard"
    with pytest.raises(ConfigurationError, match=r"query 'ward': .*adversary=.oblivious"):
        plan(load_spec(write_spec(*LEADING, paper, ALONE, ("share = 0.75\n", ""))))
    with pytest.raises(ConfigurationError, match=r"query 'ward': .*switches"):
        plan(load_spec(write_spec(*LEADING, oblivious, ("switches = 3\n", ""))))
    meta = ("k = 2\nswitches = 3", 'k = 2\nmechanism = "meta"')
    rate = ("horizon = 48", "horizon = 48\nmax_events_per_tick = 4")
    assert build(load_spec(write_spec(*LEADING, meta, rate)), None)["ward"].mechanism == "meta"


def test_plan_of_unknown_items(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(*WITH_UNKNOWN_QUERIES, append=UNKNOWN_QUERIES))
    planned = {query.name: query for query in plan(spec).queries}
    assert [planned[name].numbers for name in ("found", "most", "ahead")] == [None, 2, 2]
    discovery = planned["found"].discovery
    assert discovery is not None
    mechanism = build(spec, None)["found"]
    assert discovery.threshold == mechanism.threshold_at(48)
    assert discovery.surely - discovery.threshold - 1 == int(mechanism.error_bound(0.05, t=48))
    assert planned["most"].discovery is planned["ahead"].discovery is planned["ward"].discovery is None


def test_unknown_items_need_a_horizon(write_spec: WriteSpec) -> None:
    with pytest.raises(ConfigurationError, match=r"visits\.toml:\d+: query 'ward': .*need a horizon"):
        plan(load_spec(write_spec(*ITEMS, ("horizon = 48\n", ""))))


class StoppedError(Exception):
    pass


def test_an_interrupted_run_goes_on_with_the_same_input_only(
    write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module._Run, "_batch_ticks", lambda self: 5)
    whole, broken = write_spec(folder="whole"), write_spec(folder="broken")
    same_key(whole, broken)
    late = save(visits(0, 48), tmp_path / "v.csv")
    asked = Asked(later="leave")
    run(load_spec(whole), late, until="2013-01-02T12:00", asked=asked)
    spec = load_spec(broken)

    def stop(step: Step) -> None:
        if step.tick == 18:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(spec, late, until="2013-01-02T12:00", progress=stop, asked=asked)
    assert released(broken)[-1]["tick"] == 20  # a tick is shown after its batch is committed and written
    with pytest.raises(StateError, match="not that file"):
        run(spec, save(visits(0, 47), tmp_path / "w.csv"), until="2013-01-02T12:00", asked=asked)
    with pytest.raises(StateError, match="until 2013-01-02T12:00:00Z was interrupted"):
        run(spec, late)
    with pytest.raises(StateError, match="without --drop-late was interrupted"):
        run(spec, late, until="2013-01-02T12:00", asked=Asked("drop", "leave"))
    report = run(spec, late, until="2013-01-02T12:00", asked=asked)
    assert (report.first, report.last, report.resumed) == (1, 36, True)
    assert output_of(broken) == output_of(whole)


def test_nothing_is_shown_before_it_is_committed(write_spec: WriteSpec, tmp_path: Path) -> None:
    """A display is an emission: seen before the commit, a tick could be released again from other data."""
    path = write_spec()
    shown: list[int] = []

    def look(step: Step) -> None:
        assert released(path)[-1]["tick"] >= step.tick
        shown.append(step.tick)

    run(load_spec(path), save(visits(0, 48), tmp_path / "v.csv"), progress=look)
    assert shown == list(range(1, 49))


def test_plan_needs_no_files(write_spec: WriteSpec, tmp_path: Path) -> None:
    planned = plan(load_spec(write_spec(*ROOM, append=RICH)))
    assert [query.numbers for query in planned.queries] == [1, 3, 1, 1]
    assert planned.queries[0].stddev is not None
    assert planned.queries[0].stddev > 0
    assert planned.queries[3].error_bound is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["visits.toml"]
