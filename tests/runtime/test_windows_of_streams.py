"""Windows from the release log: the same as from the mechanism itself, and from nothing but released numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_stream import batch
from release_stream import released, spec_of_all_kinds, spec_of_user_kinds
from visit_stream import WriteSpec, visits

from evertally.contract.forms import flat
from evertally.contract.release import Release
from evertally.errors import ConfigurationError, StateError
from evertally.noise import simulation
from evertally.runtime import StreamSpec, load_spec
from evertally.runtime.live import Live
from evertally.runtime.mechanisms import build, twins
from evertally.runtime.releases import TickRelease, pack, row_of, unpack
from evertally.runtime.state import store as stores
from evertally.runtime.windows import Question, Windows
from evertally.runtime.windows.listing import Listing, listing
from evertally.runtime.windows.written import as_arrow, as_csv, as_json
from spec_text import spec_text

MEAN = {"name": "mean", "kind": "mean", "column": "minutes", "lower": 0, "upper": 60, "share": 0.5}
COUNT = {"name": "all", "kind": "counter", "share": 0.25}
WARDS = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south"], "share": 0.25}
CLOCK = {"column": "time", "start": "2013-01-01", "tick": "1h", "close": "request"}


class Log:
    """A release log in memory."""

    def __init__(self, spec: StreamSpec, releases: Sequence[tuple[int, dict[str, Release]]], rows: bool = True) -> None:
        self.spec = spec
        self.payloads = {
            tick: {query.name: pack(query, found[query.name], spec.beta, rows=rows) for query in spec.queries}
            for tick, found in releases
        }

    def read(self, ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
        return [TickRelease(tick, tick, self.payloads[tick]) for tick in ticks if tick in self.payloads]


# -- the same as the mechanism says ------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [False, True])
def test_windows_of_every_kind_are_those_of_its_mechanism(write_spec: WriteSpec, tmp_path: Path, users: bool) -> None:
    spec = spec_of_user_kinds(tmp_path) if users else spec_of_all_kinds(write_spec)
    ticks = [(kept.tick, found) for kept, found in released(spec, 9)]
    log, mechanisms = Log(spec, ticks), build(spec, simulation(3))
    windows = Windows(spec, mechanisms, True, log.read)
    releases = dict(ticks)
    windowed = {query.name for query in spec.queries if mechanisms[query.name].differences and not query.record.level}
    assert windows.windowed == windowed
    assert len(windowed) == (1 if users else 22)
    for name in sorted(windowed):
        mechanism = mechanisms[name]
        answer = windows.answer(Question(name, window=3), 9)
        assert (answer.since, answer.tick) == ([0, 3, 6], [3, 6, 9])
        expected = mechanism.between(releases[3][name], releases[6][name])
        lower, upper = expected.interval(beta=spec.beta)
        numbers = answer.numbers[1]
        assert numbers.stddev == expected.stddev, name
        assert (numbers.lower, numbers.upper) == (flat(lower).tolist(), flat(upper).tolist()), name
        shown = flat(expected.value).tolist()
        assert all(a == b or a is None for a, b in zip(numbers.value, shown, strict=True)), name
        rows = [row_of(log.payloads[tick][name]) for tick in (9, 6, 3)]
        assert [row.tolist() for row in rows] == [releases[tick][name].row.tolist() for tick in (9, 6, 3)]
        if windows.laws[name].additive:
            change = mechanism.change_of(*rows, ticks=(9, 6, 3))
            assert answer.changes[2][0].value == flat(change.value).tolist(), name
            assert answer.changes[2][0].stddev == change.stddev, name
    for query in spec.queries:
        _check_list(windows, query.name)


def _check_list(windows: Windows, name: str) -> None:
    """A list of labels says the same as the windows: also which ticks the numbers are about."""
    for window in (3, None):
        answer = windows.answer(Question(name, window=window), 9)
        if answer.labels is None or any(isinstance(value, str) for value in answer.numbers[-1].value):
            with pytest.raises(ConfigurationError, match="without"):
                listing(windows, Listing(name, window), 9)
            continue
        page = listing(windows, Listing(name, window, limit=1000), 9)
        said = page["measure"], page["since"], page["tick"]
        assert said == (answer.measure, answer.since[-1], answer.tick[-1]), name
        listed = {row["label"]: row["value"] for row in page["rows"]}
        known = zip(answer.labels or [], answer.numbers[-1].value, strict=True)
        assert all(listed[label] == value for label, value in known if value is not None), name


def test_what_began_with_something_public_is_counted_from_there(tmp_path: Path) -> None:
    """There are three edges before the first tick; a window since the beginning is about the change."""
    edges = [["a", "b"], ["b", "c"], ["c", "d"]]
    graph = {"columns": ["from", "to"], "updates": "delete", "initial": edges, "share": 0.5}
    links, ends = {"name": "links", "kind": "edge_count"}, {"name": "ends", "kind": "degree_vector"}
    path = tmp_path / "graph.toml"
    path.write_text(spec_text(links | graph, ends | graph | {"vertices": list("abcd")}, clock=CLOCK))
    spec = load_spec(path)
    mechanisms = build(spec, simulation(3))
    ticks = [(tick, {name: mechanism.step([]) for name, mechanism in mechanisms.items()}) for tick in (1, 2, 3, 4)]
    windows = Windows(spec, twins(mechanisms), True, Log(spec, ticks).read)
    for name, begun in (("links", [3]), ("ends", [1, 2, 2, 1])):
        total = windows.answer(Question(name, window=None), 4).numbers[-1].value
        assert total == flat(ticks[-1][1][name].value).tolist()
        change = [now - then for now, then in zip(total, begun, strict=True)]
        assert windows.answer(Question(name, window=4), 4).numbers[0].value == change
        assert flat(mechanisms[name].between(None, ticks[-1][1][name]).value).tolist() == change


def test_how_many_there_are_has_no_windows(write_spec: WriteSpec) -> None:
    """Components are not counted by the tick; the difference of two numbers of them is no such number."""
    spec = spec_of_all_kinds(write_spec)
    ticks = [(kept.tick, found) for kept, found in released(spec, 4)]
    windows = Windows(spec, build(spec, simulation(3)), True, Log(spec, ticks).read)
    answer = windows.answer(Question("groups", window=4), 4)
    assert (answer.measure, answer.since) == ("level", [0])
    assert answer.numbers[0].value == [ticks[-1][1]["groups"].value]


def test_an_answer_depends_on_released_numbers_and_public_ones_alone(tmp_path: Path) -> None:
    """Laws with other keys, before and after a tick, and the same log: the same answers."""
    path = tmp_path / "visits.toml"
    path.write_text(spec_text(COUNT, WARDS, MEAN, clock=CLOCK))
    spec = load_spec(path)
    log = Log(spec, [(kept.tick, found) for kept, found in released(spec, 8)])
    said = []
    for seed in (1, 2):
        mechanisms = build(spec, simulation(seed))
        if seed == 2:
            for mechanism in mechanisms.values():
                mechanism.step_events([])
        windows = Windows(spec, mechanisms, True, log.read)
        said.append([windows.answer(Question(name, window=2, per=1), 8) for name in ("all", "ward", "mean")])
    assert [one.numbers for one in said[0]] == [one.numbers for one in said[1]]
    assert [one.changes for one in said[0]] == [one.changes for one in said[1]]


def test_intervals_of_windows_and_changes_hold(tmp_path: Path) -> None:
    labels = [f"label-{number}" for number in range(400)]
    path = tmp_path / "many.toml"
    query = {"name": "many", "kind": "histogram", "column": "label", "categories": labels}
    path.write_text(spec_text(query, guarantee={"rho": 0.01}, clock=CLOCK))
    spec = load_spec(path)
    mechanism = build(spec, simulation(11))["many"]
    truth = np.random.default_rng(5).poisson(20, size=(24, 400))
    log = Log(spec, [(tick, {"many": mechanism.step(row)}) for tick, row in enumerate(truth, 1)])
    windows = Windows(spec, twins({"many": mechanism}), True, log.read)
    answer = windows.answer(Question("many", window=4, labels=tuple(labels)), 24)
    inside, changed, wrong = [], [], []
    for number, (since, tick) in enumerate(zip(answer.since, answer.tick, strict=True)):
        right = truth[since:tick].sum(axis=0)
        inside += [
            low <= x <= high
            for low, x, high in zip(answer.numbers[number].lower, right, answer.numbers[number].upper, strict=True)
        ]
        if answer.changes[number] is not None:
            change, clear = answer.changes[number]
            move = right - truth[since - 4 : since].sum(axis=0)
            changed += [low <= x <= high for low, x, high in zip(change.lower, move, change.upper, strict=True)]
            wrong += [good and x * shown <= 0 for good, x, shown in zip(clear, move, change.value, strict=True)]
    # 2400 and 2000 intervals with independent noise between labels; the windows of one label are not independent.
    assert 0.935 < np.mean(inside) < 0.975
    assert 0.935 < np.mean(changed) < 0.985
    assert np.mean(wrong) < 0.04
    page = listing(windows, Listing("many", window=None, limit=400), 24)
    right = dict(zip(labels, truth.sum(axis=0).tolist(), strict=True))
    ranks = sorted(right.values(), reverse=True)
    for row in page["rows"]:
        assert abs(row["value"] - right[row["label"]]) <= page["bound"]
        assert row["from"] <= ranks.index(right[row["label"]]) + 1
        assert row["to"] >= ranks.index(right[row["label"]]) + ranks.count(right[row["label"]])


def test_a_mean_of_too_few_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(spec_text({**MEAN, "share": 1}, guarantee={"rho": 0.01}, clock=CLOCK))
    spec = load_spec(path)
    mechanism = build(spec, simulation(4))["mean"]
    days = [[30.0] * 3] * 2 + [[30.0] * 100_000] * 2
    log = Log(spec, [(tick, {"mean": mechanism.step(day)}) for tick, day in enumerate(days, 1)])
    answer = Windows(spec, twins({"mean": mechanism}), True, log.read).answer(Question("mean", window=2), 4)
    few, many = answer.numbers
    assert (few.value, few.lower, few.upper) == ([None], [0.0], [60.0])
    assert 29 < many.lower[0] < 30 < many.upper[0] < 31
    assert answer.changes[1][1] == [None]


def test_labels_that_were_found_have_windows_where_they_were_released_at_both_ends(write_spec: WriteSpec) -> None:
    spec = spec_of_all_kinds(write_spec)
    query = next(query for query in spec.queries if query.name == "found")

    def found(tick: int, **counts: int) -> bytes:
        around = {label: (count - 5, count + 5) for label, count in counts.items()}
        low, high = ({label: ends[side] for label, ends in around.items()} for side in (0, 1))
        return pack(query, Release(tick, counts, 2.0, True, lambda beta: (low, high)), spec.beta)

    log = Log(spec, [])
    log.payloads = {4: {"found": found(4, a=50)}, 8: {"found": found(8, a=80, b=60)}}
    windows = Windows(spec, build(spec, simulation(3)), True, log.read)
    answer = windows.answer(Question("found", window=4), 8)
    assert (answer.measure, answer.labels, answer.beta) == ("window", ["a", "b"], 2 * spec.beta)
    assert [numbers.value for numbers in answer.numbers] == [[50, None], [30, None]]
    assert (answer.numbers[1].lower[0], answer.numbers[1].upper[0]) == (20, 40)
    page = listing(windows, Listing("found", window=4), 8)
    assert [(row["label"], row["lower"], row["upper"]) for row in page["rows"]] == [("a", 20, 40)]
    assert windows.answer(Question("found", window=None), 8).measure == "level"


@pytest.mark.parametrize("window", [4, None])
def test_where_no_label_was_found_there_are_no_numbers(write_spec: WriteSpec, window: int | None) -> None:
    spec = spec_of_all_kinds(write_spec)
    query = next(query for query in spec.queries if query.name == "found")
    log = Log(spec, [])
    nothing: dict[str, int] = {}
    log.payloads = {
        tick: {"found": pack(query, Release(tick, nothing, 2.0, True, lambda beta: (nothing, nothing)), spec.beta)}
        for tick in (4, 8)
    }
    windows = Windows(spec, build(spec, simulation(3)), True, log.read)
    answer = windows.answer(Question("found", window, every=4), 8)
    said = as_json(spec, answer)
    assert (said["labels"], said["tick"], said["value"], said["lower"]) == ([], [4, 8], [], [])
    assert as_csv(spec, answer).count(b"\n") == 1
    assert as_arrow(spec, answer)
    page = listing(windows, Listing("found", window), 8)
    assert (page["labels"], page["rows"]) == (0, [])


def test_windows_whose_ends_are_not_kept_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(spec_text(COUNT, {**WARDS, "share": 0.75}, clock=CLOCK))
    spec = load_spec(path)
    log = Log(spec, [(kept.tick, found) for kept, found in released(spec, 12)])
    for tick in (1, 2, 3, 5, 6, 7):
        del log.payloads[tick]
    windows = Windows(spec, build(spec, simulation(3)), True, log.read)
    answer = windows.answer(Question("all", window=2, every=1), 12)
    assert answer.tick == [10, 11, 12]
    assert [change is None for change in answer.changes] == [True, True, False]
    assert windows.answer(Question("all", window=4), 12).tick == [4, 8, 12]


@pytest.mark.parametrize(
    "question",
    [
        Question("all", window=1),
        Question("many", window=1, last=3000, labels=tuple(f"l{n}" for n in range(100))),
        Question("many", window=1, last=9000),
    ],
)
def test_too_much_at_once_is_refused_before_anything_is_read(tmp_path: Path, question: Question) -> None:
    path = tmp_path / "visits.toml"
    many = {"name": "many", "kind": "histogram", "column": "l", "categories": [f"l{n}" for n in range(1000)]}
    path.write_text(spec_text({"name": "all", "kind": "counter"}, many, stream={"name": "visits", "horizon": 20000}))
    spec = load_spec(path)

    def read(ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
        raise AssertionError("read")

    with pytest.raises(ConfigurationError, match=r"more than .* `points` thins"):
        Windows(spec, build(spec, simulation(3)), True, read).answer(question, 20000)


# -- rows in the log ---------------------------------------------------------------------------------------------------


def _earlier_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """New streams keep no rows, as before there were any."""
    opened = stores.Store.open

    def open_(self: stores.Store, *arguments: Any) -> bool:
        known = opened(self, *arguments)
        if not known and self.replay_target is None:
            self.head = replace(self.head, rows=False)
        return known

    monkeypatch.setattr(stores.Store, "open", open_)


def _fed(spec: StreamSpec, ticks: int, replay: bool = False) -> dict[int, bytes]:
    """Feeds a stream, leaves it without closing it, and gives what it released of the mean."""
    live = Live(spec, replay=replay)
    records = [record | {"minutes": 7} for record in visits(0, 6)]
    live.accept([(f"batch {live.released}", batch(live.spec, records if live.released == 0 else []))])
    live.publish(live.release_through(ticks))
    kept = {release.tick: release.payloads["mean"] for release in live._store.releases(1, ticks)}
    live.abandon()
    return kept


@pytest.mark.parametrize("rows", [True, False])
def test_a_stream_keeps_rows_for_its_whole_life_or_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: bool
) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(spec_text(COUNT, WARDS, MEAN, clock=CLOCK))
    spec = load_spec(path)
    with monkeypatch.context() as earlier:
        if not rows:
            _earlier_version(earlier)
        begun = _fed(spec, 3)
    assert all((b'"row"' in payload) == rows for payload in begun.values())
    later = _fed(spec, 6)  # goes through the journal again, which must lead to the same bytes
    assert {tick: later[tick] for tick in begun} == begun
    assert all((b'"row"' in payload) == rows for payload in later.values())
    with Live(spec) as live:
        windows = Windows(spec, *live.laws(), live._publisher._kept)
        assert windows.windowed == ({"all", "ward", "mean"} if rows else {"all", "ward"})
        assert windows.answer(Question("mean", window=2), 6).measure == ("window" if rows else "level")
    # A state that is lost is rebuilt with the payloads that the sidecar knows the hash of.
    spec.state_file.unlink()
    with pytest.raises(StateError, match="--replay"):
        Live(spec)
    assert _fed(spec, 6, replay=True) == later


def test_payloads_without_rows_are_those_of_before(write_spec: WriteSpec) -> None:
    spec = spec_of_all_kinds(write_spec)
    for kept, found in released(spec, 2):
        for query in spec.queries:
            with_row = json.loads(pack(query, found[query.name], spec.beta, rows=True))
            with_row.pop("row", None)
            assert with_row == json.loads(kept.payloads[query.name])
            assert unpack(query, pack(query, found[query.name], spec.beta, rows=True)) == unpack(
                query, kept.payloads[query.name]
            )
