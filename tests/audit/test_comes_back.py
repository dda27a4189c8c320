"""The row "comes back": memories that end, and lives that do not, are seen; the product forgets nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evertally.audit.report import Report
from evertally.audit.returns.books import ActiveBooks, CohortBooks, FirstEvents, FirstVisit, PeriodBooks, SeparateTicks
from evertally.audit.returns.histories import CROWD, Manners, Visit, few, many
from evertally.audit.returns.lives import FlipBooks, LifeBooks
from evertally.audit.spec_down import spec_steps
from evertally.audit.suite import run
from evertally.dynamic.lifetimes import Lifetimes, Named
from evertally.encode import SeparatedCap, UserCap
from evertally.encode.user_table import UserTable
from evertally.runtime import load_spec
from evertally.runtime.mechanisms import build
from evertally.users.active_rule import ActiveRule
from evertally.users.period_rule import PeriodRule
from evertally.users.present_rule import PresenceRule
from evertally.users.retention_rule import CohortRule
from mutation.specs import SPECS
from spec_text import spec_text

USERS = {"name": "visits", "horizon": 365, "unit": "user", "user_column": "patient"}
ITEMS = {"name": "visits", "horizon": 365}
BED = {"action": "what", "id": "bed"}
DELTA = {"epsilon": 2, "delta": 1e-6}
WARD = {"column": "ward", "categories": ["north", "south"]}

Row = Callable[..., Report | None]


def query(kind: str, **options: Any) -> dict[str, Any]:
    return {"name": "asked", "kind": kind, **options}


CAPPED = spec_text(query("counter"), stream=USERS | {"max_events_per_user": 3})
SEPARATED = spec_text(query("counter", min_separation=7, max_ticks_per_user=4), stream=USERS)
PERIODS = spec_text(query("period_users", period=7), stream=USERS)
COHORTS = spec_text(query("retention", period=7, ages=6), stream=USERS)
ACTIVE = spec_text(query("active_users", windows=[1, 7, 28]), stream=USERS)
SEATS = spec_text(query("present_items", max_flips=4, **BED), stream=ITEMS)
BEDS = spec_text(query("dynamic_count", max_lifetime=24, **BED), stream=ITEMS)

# Every rule with a memory of users or items, and options that give it another one.
FAMILIES = {
    "first events": CAPPED,
    "first events, far away": spec_text(
        query("counter", mechanism="tree"), stream={**USERS, "horizon": 2**24, "max_events_per_user": 3}
    ),
    "first events, more than are played": spec_text(
        query("counter"), stream={**USERS, "horizon": 48, "max_events_per_user": 10**6}
    ),
    "first events, labels": spec_text(
        query("unknown_histogram", column="ward"), stream=USERS | {"max_events_per_user": 4}, guarantee=DELTA
    ),
    "first events, values": spec_text(
        query("running_variance", column="minutes", lower=0, upper=50), stream=USERS | {"max_events_per_user": 4}
    ),
    "separated ticks": SEPARATED,
    "calendar": SPECS["calendar-users"],
    "content": SPECS["content-users"],
    "distinct": spec_text(query("distinct_users"), stream={name: USERS[name] for name in USERS if name != "horizon"}),
    "distinct, categories": spec_text(query("distinct_users", max_categories=2, **WARD), stream=USERS),
    "distinct, the first ones": spec_text(query("distinct_users", max_users=1000), stream=USERS),
    "distinct, a sample": spec_text(query("distinct_users", sample="1/16"), stream=USERS),
    "distinct, labels": spec_text(
        query("unknown_distinct_users", column="ward", max_categories=3), stream=USERS, guarantee=DELTA
    ),
    "active": ACTIVE,
    "active, categories": spec_text(query("active_users", windows=[28], max_categories=1, **WARD), stream=USERS),
    "active, the first ticks": spec_text(query("active_users", windows=[28], max_active=12), stream=USERS),
    "periods": PERIODS,
    "periods, so far": spec_text(query("period_users", period=7, so_far=True, max_active_periods=5), stream=USERS),
    "retention": COHORTS,
    "joined": spec_text(
        query("joined_events", column="what", after=["shown"], then=["order"], max_pairs=2, within=9), stream=USERS
    ),
    "allowance": spec_text(query("running_sum", column="minutes", upper=50, max_total_per_user=120), stream=USERS),
    "sketch": spec_text(
        query("count_sketch", column="ward", watch=["a"], width=64, max_labels_per_user=3), stream=USERS
    ),
    "flips": SEATS,
    "flips, copies": spec_text(query("present_items", max_flips=3, semantics="copies", **BED), stream=ITEMS),
    "lives": SPECS["dynamic-wards"],
    "lives that end": BEDS,
    "lives that end, ranges": spec_text(
        query("dynamic_range", max_lifetime=9, lifetimes=2, size=20, ranges=[[0, 3], [5, 19]], column="age", **BED),
        stream=ITEMS,
    ),
    "lives behind a cap": spec_text(
        query("dynamic_count", lifetimes=3, protects="event", **BED), stream=USERS | {"max_events_per_user": 4}
    ),
}


@pytest.fixture
def comes_back(tmp_path: Path) -> Row:
    """That row of a spec with one query; None if it has none."""

    def audited(text: str) -> Report | None:
        path = tmp_path / "visits.toml"
        path.write_text(text)
        spec = load_spec(path)
        (steps,) = spec_steps(path, spec, build(spec, None)).values()
        return next((run(step) for step in steps if step.name == "comes back"), None)

    return audited


# -- the product -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_product_forgets_nobody(comes_back: Row, family: str) -> None:
    report = comes_back(FAMILIES[family])
    assert report is not None
    assert (report.verdict, report.aspect) == ("holds (tight)", "state"), report.stopped


def test_it_says_how_far_it_went(comes_back: Row) -> None:
    assert "2048 ticks of 16777216, and all in which somebody comes; silent for up to 16777215 ticks" in said(
        comes_back(FAMILIES["first events, far away"])
    )
    assert said(comes_back(ACTIVE)).startswith("365 ticks of 365; silent for up to 364 ticks, by themselves and among")
    one_period = spec_text(query("period_users", period=48), stream={**USERS, "horizon": 48})
    assert "nobody is silent for longer than declared" in said(comes_back(one_period))


def test_windows_that_nobody_outlasts_show_nothing(comes_back: Row, monkeypatch: Any) -> None:
    monkeypatch.setattr("evertally.audit.returns.comes_back._LONGEST", 28)
    report = comes_back(ACTIVE)
    assert report is not None
    assert report.method == "not here"
    assert "28 ticks of 365; nobody is silent for longer" in report.stopped


def test_who_cannot_spend_all_is_not_judged(comes_back: Row) -> None:
    fine = query("running_sum", column="minutes", upper=1, max_total_per_user=200_000)
    report = comes_back(spec_text(fine, stream=USERS))
    assert report is not None
    assert report.method == "not here"
    assert "200000 events" in report.stopped


@pytest.mark.parametrize("name", ["counter", "edges", "found"])
def test_what_remembers_nobody_has_no_such_row(comes_back: Row, name: str) -> None:
    assert comes_back(SPECS[name]) is None


def test_bits_that_users_share_are_no_names(comes_back: Row) -> None:
    assert comes_back(spec_text(query("distinct_users", bits=4096), stream=USERS)) is None


def said(report: Report | None) -> str:
    assert report is not None
    return report.stopped


# -- planted mistakes --------------------------------------------------------------------------------------------------


def broken(report: Report | None, who: str) -> None:
    assert report is not None
    assert report.verdict == "broken", report.stopped
    assert f"among {who}" in report.stopped


@pytest.mark.parametrize("text", [CAPPED, SEPARATED])
def test_a_cap_that_begins_anew_beyond_1000_names(comes_back: Row, monkeypatch: Any, text: str) -> None:
    for kind in (UserCap, SeparatedCap):
        real = kind._decide

        def decide(self: Any, codes: Any, before: Any, tick: int, real: Any = real) -> Any:
            return real(self, codes, before * (len(self._table) <= 1000), tick)

        monkeypatch.setattr(kind, "_decide", decide)
    broken(comes_back(text), "thousands")


def test_a_cap_that_begins_anew_after_a_long_silence(comes_back: Row, monkeypatch: Any) -> None:
    real = UserCap._decide

    def decide(self: Any, codes: Any, before: Any, tick: int) -> Any:
        return real(self, codes, before * (tick - self.last.tick < 10**6), tick)

    monkeypatch.setattr(UserCap, "_decide", decide)
    broken(comes_back(FAMILIES["first events, far away"]), "few")


@pytest.mark.parametrize("family", ["distinct", "distinct, categories", "distinct, labels", "joined", "allowance"])
def test_a_table_that_is_emptied_beyond_1000_names(comes_back: Row, monkeypatch: Any, family: str) -> None:
    begin = UserTable.begin

    def emptied(self: UserTable) -> None:
        begin(self)
        if len(self) > 1000:
            self._now = self.emptied()._now

    monkeypatch.setattr(UserTable, "begin", emptied)
    broken(comes_back(FAMILIES[family]), "thousands")


@pytest.mark.parametrize("early", [2, 14])
def test_active_users_who_are_forgotten_too_early(comes_back: Row, monkeypatch: Any, early: int) -> None:
    def forget(self: Any, tick: int) -> None:
        if len(self.users) >= 2 * int(self._seen.sum()) + 64:
            self.users.forget(np.flatnonzero(self.users.column(self._last) <= tick - self._longest + early))

    monkeypatch.setattr(ActiveRule, "_forget", forget)
    broken(comes_back(ACTIVE), "thousands")


@pytest.mark.parametrize("away", [1, 6, 40])
def test_cohorts_that_are_forgotten(comes_back: Row, monkeypatch: Any, away: int) -> None:
    real = CohortRule.admit

    def admit(self: Any, arrivals: Any) -> Any:
        period = (arrivals.tick - 1) // self._cells.period + 1
        self._users.forget(np.flatnonzero(self._users.column(1) < period - away))
        return real(self, arrivals)

    monkeypatch.setattr(CohortRule, "admit", admit)
    # Numbers of newcomers go on behind those of who is forgotten.
    monkeypatch.setattr(UserTable, "__len__", lambda self: self._now.index.size)
    broken(comes_back(COHORTS), "few")


def test_a_period_that_is_not_over_before_somebody_comes(comes_back: Row, monkeypatch: Any) -> None:
    real = PeriodRule.admit
    monkeypatch.setattr(PeriodRule, "admit", lambda self, of: real(self, of) if len(of) else np.zeros(1, np.int64))
    broken(comes_back(PERIODS), "few")


def test_active_users_who_stay_until_somebody_comes(comes_back: Row, monkeypatch: Any) -> None:
    real = ActiveRule.admit
    monkeypatch.setattr(ActiveRule, "admit", lambda self, of: real(self, of) if len(of) else np.zeros(3, np.int64))
    broken(comes_back(ACTIVE), "few")


def test_items_whose_changes_are_forgotten(comes_back: Row, monkeypatch: Any) -> None:
    begin = PresenceRule.begin

    def forgetting(self: Any, tick: int) -> None:
        begin(self, tick)
        if tick == 300:
            self._items.write(1, self._items.present(), np.zeros(len(self._items), np.int64))

    monkeypatch.setattr(PresenceRule, "begin", forgetting)
    broken(comes_back(SEATS), "few")


def test_items_that_live_once_more_among_many(comes_back: Row, monkeypatch: Any) -> None:
    real = Named._end
    monkeypatch.setattr(
        Named, "_end", lambda self, name, life: real(self, name, (*life[:3], life[3] * (len(self._lives) < 1000)))
    )
    broken(comes_back(BEDS), "thousands")


def test_items_that_expire_with_the_next_arrival(comes_back: Row, monkeypatch: Any) -> None:
    """At once where somebody comes in every tick, late where nobody does."""
    real = Lifetimes._changes

    def changes(self: Any, arrivals: Any, tick: int) -> Any:
        if not len(arrivals):
            self._waiting = [*getattr(self, "_waiting", []), tick]
            self._inserted[tick] = []
            return []
        late = [change for at in getattr(self, "_waiting", []) for change in real(self, arrivals.__class__(*_none), at)]
        self._waiting = []
        return late + real(self, arrivals, tick)

    _none = np.zeros(0, np.int64), np.zeros(0, np.int64), list[str | None]()
    monkeypatch.setattr(Lifetimes, "_changes", changes)
    broken(comes_back(BEDS), "few")


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_people_are_silent_for_a_little_less_and_more_than_what_is_declared() -> None:
    manners = Manners(last=1000, lengths=(28, 100))
    assert {27, 28, 29, 57, 99, 100, 101, 201, 999} <= set(manners.silences)
    visits = few(manners)
    assert set(visits) <= set(range(1, 1001))
    for silence in manners.silences:
        ticks = [
            tick for tick, here in visits.items() if f"returning after {silence}" in {visit.name for visit in here}
        ]
        assert silence in {later - earlier for earlier in ticks for later in ticks}
    assert any(len(here) == 1 for here in visits.values())
    assert len(visits) < 500


def test_a_crowd_comes_and_goes_and_comes_back_at_the_end() -> None:
    visits = many(Manners(last=365, lengths=(28,)))
    assert [len(visits[tick]) >= CROWD for tick in (2, 5)] == [True, True]
    assert len(visits[365]) >= 2 * CROWD
    assert {"bridge 28, 7", "bridge 28, 32"} <= {visit.name for here in visits.values() for visit in here}
    large = many(Manners(last=365, whole=500, singly=False))
    assert {visit.events for visit in large[2] if "guest" in visit.name} == {1}  # all that counts would be too much


def played(books: Any, visits: dict[int, list[Visit]], ticks: int) -> list[Any]:
    return [books.moved(tick, visits.get(tick, [])) for tick in range(1, ticks + 1)]


def ann(*ticks: int, ends: bool = False) -> dict[int, list[Visit]]:
    return {tick: [Visit(tick, "ann", ends=ends)] for tick in ticks}


def test_books_of_caps() -> None:
    first = FirstEvents(3)
    counted = [[visit.events for visit in first.counting(tick, [Visit(tick, "ann", 2)])] for tick in (1, 2, 10**6)]
    assert counted == [[2], [1], []]
    separate = SeparateTicks(SeparatedCap(ticks=2, separation=3))
    assert [bool(separate.counting(tick, [Visit(tick, "ann")])) for tick in (1, 3, 4, 90)] == [True, False, True, False]
    week = SeparateTicks(SeparatedCap(ticks=None, separation=7, calendar=True, first_block=2))
    counted_at = [tick for tick in range(1, 20) if week.counting(tick, [Visit(tick, "ann")])]
    assert counted_at == [1, 3, 10, 17]
    once = FirstVisit(most=1)
    assert [len(once.counting(tick, [Visit(tick, name)])) for tick, name in enumerate(("ann", "bob", "ann"))] == [
        1,
        0,
        0,
    ]


def test_books_of_numbers() -> None:
    active = played(ActiveBooks([1, 3], 0, 1, None), ann(1, 3, 7), 8)
    assert active == [{0: 1, 1: 1}, {0: -1}, {0: 1}, {0: -1}, {}, {1: -1}, {0: 1, 1: 1}, {0: -1}]
    assert played(ActiveBooks([1], 0, 1, most=1), ann(1, 3), 3) == [{0: 1}, {0: -1}, {}]
    assert played(PeriodBooks(2, so_far=False, most=None), ann(1, 2, 5), 6) == [{}, {0: 1}, {}, {0: -1}, {}, {0: 1}]
    assert played(PeriodBooks(2, so_far=True, most=1), ann(1, 3), 4) == [{0: 1}, {}, {0: -1}, {}]
    # Cells: (1, 0), (1, 1), (2, 0), (2, 1), (3, 0); the first number counts periods.
    cohorts = {1: [Visit(1, "ann")], 2: [Visit(2, "bob"), Visit(2, "ann")], 3: [Visit(3, "ann")]}
    assert played(CohortBooks(1, 3, 2), cohorts, 4) == [{0: 1, 1: 1}, {0: 1, 2: 1, 3: 1}, {0: 1}, {}]


def test_books_of_items() -> None:
    there = ann(1, 3) | ann(2, 4, ends=True)
    assert played(FlipBooks(copies=False, most=2), there, 4) == [{0: 1}, {0: -1}, {}, {}]
    twice = {1: [Visit(1, "ann", 2)], 2: [Visit(2, "ann", 1, ends=True)], 3: [Visit(3, "ann", 1, ends=True)]}
    assert played(FlipBooks(copies=True, most=None), twice, 3) == [{0: 1}, {}, {0: -1}]
    assert played(LifeBooks(2, 2, 5), ann(1, 2, 5, 9), 9) == [{5: 1}, {}, {5: -1}, {}, {5: 1}, {}, {5: -1}, {}, {}]
    assert played(LifeBooks(1, None, 0), there, 4) == [{0: 1}, {0: -1}, {}, {}]
