"""Lists of labels that were found, by window; and how exact levels are, said before there are any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from release_stream import released, spec_of_all_kinds, spec_of_user_kinds
from visit_stream import WriteSpec

from evertally.contract.forms import flat
from evertally.contract.release import Release
from evertally.noise import simulation
from evertally.runtime.mechanisms import build
from evertally.runtime.releases import TickRelease, pack
from evertally.runtime.windows import Question, Windows
from evertally.runtime.windows.exactness import level
from evertally.runtime.windows.listing import Listing, listing


def test_a_list_of_what_was_found_has_rates_and_puts_what_came_later_last(write_spec: WriteSpec) -> None:
    spec = spec_of_all_kinds(write_spec)
    query = next(query for query in spec.queries if query.name == "found")

    def found(tick: int, **counts: int) -> TickRelease:
        low, high = ({label: count + by for label, count in counts.items()} for by in (-5, 5))
        release = Release(tick, counts, 2.0, True, lambda beta: (low, high))
        return TickRelease(tick, tick, {"found": pack(query, release, spec.beta)})

    log = [found(2, a=40, c=10), found(4, a=50, b=70, c=20), found(6, a=80, b=170, c=90, d=9)]

    def read(ticks: Sequence[int], queries: Sequence[str]) -> list[TickRelease]:
        return [release for release in log if release.tick in ticks]

    windows = Windows(spec, build(spec, simulation(3)), True, read)
    page = listing(windows, Listing("found", window=4, per=2), 6)
    assert (page["labels"], page["per"], page["beta"]) == (3, 2, 2 * spec.beta), "d has come just now"
    shown = [(row["label"], row["value"], row["lower"], row["upper"], row["since"]) for row in page["rows"]]
    assert shown == [("c", 40, 35, 45, None), ("a", 20, 15, 25, None), ("b", 100, 90, 110, 4)]
    places = [(row["from"], row["to"], row["tied"]) for row in page["rows"]]
    assert places == [(1, 1, False), (2, 2, False), (None, None, False)]
    rates = windows.answer(Question("found", window=4, per=2), 6)
    assert rates.per == 2
    assert dict(zip(rates.labels or [], rates.numbers[0].value, strict=True)) == {
        "a": 20,
        "b": None,
        "c": 40,
        "d": None,
    }


@pytest.mark.parametrize("users", [False, True])
def test_levels_are_as_exact_as_was_said_before(write_spec: WriteSpec, tmp_path: Path, users: bool) -> None:
    spec = spec_of_user_kinds(tmp_path) if users else spec_of_all_kinds(write_spec)
    windows = Windows(spec, build(spec, simulation(3)), True, lambda ticks, queries: [])
    said = {query.name: level(windows, query.name, 9) for query in spec.queries}
    known = {name: exact["radius"] for name, exact in said.items() if exact is not None}
    widest = dict.fromkeys(known, 0.0)
    for _, found in released(spec, 9):
        for name in known:
            off = flat(found[name].interval(beta=spec.beta)[1]) - flat(found[name].value)
            widest[name] = max(widest[name], float(off.max()))
    assert known == widest
    assert not windows.windowed & set(known)
    assert set(known) >= ({"people", "by-ward", "active"} if users else set())


def test_what_is_no_sum_has_no_rate_in_a_list(write_spec: WriteSpec) -> None:
    spec = spec_of_all_kinds(write_spec)
    mechanisms = build(spec, simulation(3))
    log = [
        TickRelease(kept.tick, kept.time, {q.name: pack(q, found[q.name], spec.beta, rows=True) for q in spec.queries})
        for kept, found in released(spec, 9)
    ]
    windows = Windows(spec, mechanisms, True, lambda ticks, queries: [one for one in log if one.tick in ticks])
    rated = set()
    for query in spec.queries:
        if query.categories is None or query.result.value == "label":
            continue
        plain, asked = (listing(windows, Listing(query.name, window=4, per=per), 9) for per in (None, 2))
        if asked["per"] is None:
            assert asked == plain
        else:
            rated.add(query.name)
            assert [row["value"] for row in asked["rows"]] == [row["value"] / 2 for row in plain["rows"]]
    assert rated == {name for name in rated if windows.laws[name].additive}
    assert rated
