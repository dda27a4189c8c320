"""State faults as games: every mechanism goes on as if nothing had happened, and every planted mistake is broken."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import evertally as et
from conformance.mechanisms import MECHANISMS
from conformance.one_of_each import one_of_each
from evertally.audit.audited import AUDITED
from evertally.audit.faults import FAULTS, fault_audits
from evertally.audit.faults.plays import Subject
from evertally.audit.report import Report
from evertally.audit.suite import plan, run
from evertally.contract.admission import AdmissionEngine
from evertally.contract.mechanism import Mechanism
from evertally.contract.paths import Hold
from evertally.contract.rounding import Rounder
from evertally.counting import tree
from evertally.encode.separated import SeparatedCap
from evertally.encode.user_table import UserTable
from evertally.encode.users import UserCap
from evertally.errors import HorizonExceeded
from evertally.noise import Key, simulation
from evertally.noise.source import KeyedSource
from evertally.secret import Secret
from evertally.users.not_negative import NotNegative

Make = Callable[[Any], Any]
EACH = one_of_each()
WITH_USERS = [subject for subject in EACH if subject.users or subject.owned]
OWNED = [subject for subject in EACH if subject.owned]


def counter(key: Any) -> et.Counter:
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=9, mechanism="tree", key=key)


def capped(key: Any) -> et.Counter:
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=9, mechanism="tree", unit="user", max_events_per_user=3, key=key)


def amounts(key: Any) -> et.Histogram:
    return et.Histogram(
        categories=["a", "b"], max_weight=4, resolution=0.25, guarantee=et.ZCDP(0.5), horizon=9, key=key
    )


def rows(make: Make, *names: str) -> dict[str, Report]:
    return {name: run() for name, run in fault_audits(make, make(simulation(0))) if not names or name in names}


def row(make: Make, name: str) -> Report:
    return rows(make, name)[name]


# -- honest ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", EACH, ids=lambda subject: subject.name)
def test_every_kind_is_as_if_nothing_had_happened(subject: Any) -> None:
    found = rows(subject.make)
    assert list(found) == list(FAULTS), "a row has vanished"
    for report in found.values():
        assert report.aspect == "state"
        assert report.verdict != "broken", report
        assert report.stopped, "a row without a word about what was seen, or why not"
    seen = {name for name, report in found.items() if report.verdict == "holds (tight)"}
    assert {"forks and copies", "replays", "restored", "interrupted calls", "two calls at once"} <= seen


@pytest.mark.parametrize("subject", WITH_USERS, ids=lambda subject: subject.name)
def test_where_there_are_users_their_past_shows(subject: Any) -> None:
    assert Subject(subject.make, subject.make(simulation(0))).remembers_users, "no stream that the table decides"


def test_the_plan_of_every_audit_has_them() -> None:
    for audited in (AUDITED[0], AUDITED[-1]):
        assert [step.name for step in plan(audited.make, ticks=audited.ticks)][-len(FAULTS) :] == list(FAULTS)


def test_an_object_of_somebody_else_has_a_row_with_the_reason() -> None:
    class Foreign:
        guarantee, horizon, mechanism = et.PureDP(1.0), 4, "theirs"

    (report,) = [run() for _, run in fault_audits(lambda key: Foreign(), Foreign())]
    assert report.verdict == "no power here"
    assert "no snapshot" in report.stopped


def test_a_kind_that_takes_other_events_has_rows_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def choosy(self: Any, events: Any, **options: Any) -> None:
        raise TypeError("only events of a form of its own")

    monkeypatch.setattr(Mechanism, "step_events", choosy)
    found = rows(counter)
    assert list(found) == list(FAULTS)
    assert {report.verdict for report in found.values()} == {"no power here"}
    assert {"TypeError" in report.stopped for report in found.values()} == {True}


def test_what_is_played_for_a_stream_of_the_service_is_fenced_by_others() -> None:
    """Its mechanisms may be copied within the process: the audit makes them as everybody else does."""
    made = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=key, allow_copy=True)  # noqa: E731
    assert row(made, "forks and copies").verdict == "holds (tight)"


def _floored(key: Any, by: Any = None) -> et.DistinctUsers:
    return et.DistinctUsers(by=by, nonnegative=True, guarantee=et.ZCDP(0.5), horizon=9, key=key)


@pytest.mark.parametrize("by", [None, ["a", "b"]])
def test_a_table_that_is_shown_without_what_is_below_0_is_no_other_version(by: Any) -> None:
    """The noisy numbers are the same, and so are those above 0."""
    assert row(lambda key: _floored(key, by), "other keys and options").verdict == "holds (tight)"


def test_a_table_that_is_shown_without_what_is_below_0_and_otherwise_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = NotNegative.show
    monkeypatch.setattr(NotNegative, "show", lambda self, row: shown(self, row) + 1)
    assert row(_floored, "other keys and options").verdict == "broken"


def test_errors_of_numbers_that_are_shown_as_0_follow_what_was_released() -> None:
    steps = {step.name: step for step in plan(_floored)}
    assert run(steps["bad record"]).passed


@pytest.mark.parametrize("user", [{}, {"unit": "user", "max_labels_per_user": 2}])
def test_labels_that_a_sketch_finds_are_what_it_releases(user: Any) -> None:
    found = {"symbols": 4, "width": 64, "threshold": 1, "guarantee": et.ZCDP(2.0), "horizon": 9}
    steps = {step.name: step for step in plan(lambda key: et.HeavyPrefixes(**found, **user, key=key))}
    assert run(steps["bad record"]).passed


# -- planted: what is forgotten at a restore -------------------------------------------------------------------------


@pytest.mark.parametrize("subject", WITH_USERS, ids=lambda subject: subject.name)
def test_a_cap_or_a_table_of_users_that_is_forgotten_at_a_restore(
    subject: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cap in (UserCap, SeparatedCap):
        known = cap.from_bytes

        def forgetting(blob: bytes, known: Any = known, cap: Any = cap) -> Any:
            return cap._of_options(known(blob)._options())

        monkeypatch.setattr(cap, "from_bytes", staticmethod(forgetting))
    monkeypatch.setattr(AdmissionEngine, "load", lambda self, tick, parts: self.inner.load(tick, parts[1:]))
    report = row(subject.make, "restored users")
    assert report.verdict == "broken"
    assert "shows" in report.stopped, "not by its releases"


def test_a_table_that_is_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then both snapshots are alike, and only releases tell."""
    make = next(subject.make for subject in OWNED if subject.name.startswith("DistinctUsers"))
    rule = type(make(simulation(0))._engine.rule)
    fresh = make(simulation(0))._engine.rule.save()
    monkeypatch.setattr(rule, "save", lambda self: fresh)
    report = row(make, "restored users")
    assert report.verdict == "broken"
    assert "shows" in report.stopped


def test_a_cursor_that_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    resume = Mechanism._resume

    def late(self: Any, header: Any, parts: Any, allow_copy: bool) -> None:
        resume(self, header | {"tick": max(0, header["tick"] - 1)}, parts, allow_copy)

    monkeypatch.setattr(Mechanism, "_resume", late)
    assert row(counter, "restored").verdict == "broken"


def test_users_who_are_erased_and_come_back_with_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    load = UserTable.load

    def forgiving(self: Any, data: bytes) -> Any:
        found = load(self, data)
        self.erased = lambda numbers: numbers < -1  # nobody
        return found

    monkeypatch.setattr(UserTable, "load", forgiving)
    assert row(capped, "erased users").verdict == "broken"


# -- planted: noise and coins ----------------------------------------------------------------------------------------


def test_noise_that_is_drawn_anew_after_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nonce in the address: the average of two copies has less noise."""
    nonces, made, stream = itertools.count(), KeyedSource.__init__, KeyedSource._stream

    def numbered(self: Any, subkey: bytes) -> None:
        made(self, subkey)
        self.nonce = next(nonces)

    monkeypatch.setattr(KeyedSource, "__init__", numbered)
    monkeypatch.setattr(KeyedSource, "_stream", lambda self, lane, law: stream(self, f"{lane} {self.nonce}", law))
    for name in ("restored", "interrupted restores"):
        assert row(counter, name).verdict == "broken", name


def test_coins_that_are_tossed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    tosses, words = itertools.count(), Rounder._words

    def anew(self: Any, places: Any, tick: int, codes: Any, names: Any) -> Any:
        return words(self, places, tick + 1000 * next(tosses), codes, names)

    monkeypatch.setattr(Rounder, "_words", anew)
    for name in ("restored", "replays", "interrupted calls"):
        assert row(amounts, name).verdict == "broken", name


# -- planted: ticks --------------------------------------------------------------------------------------------------


def test_a_digest_that_is_not_compared_at_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    for subject in (counter, capped, amounts):
        door = type(subject(simulation(0))._door)
        monkeypatch.setattr(door, "digest", lambda self, totals: b"")
        assert row(subject, "replays").verdict == "broken"


def test_a_replay_that_is_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise over another content: the difference of two answers is exact."""
    step = Mechanism._step

    def anew(self: Any, totals: Any, tick: Any, users: Any = None) -> Any:
        if tick is not None and tick == self._kept.tick:
            played = self._engine.play(self._door.batch(totals), self._kept.played.state)
            return self._released(played.rows[-1], tick)
        return step(self, totals, tick, users)

    monkeypatch.setattr(Mechanism, "_step", anew)
    report = row(counter, "replays")
    assert report.verdict == "broken"


def test_a_horizon_that_is_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Mechanism._check_tick

    def late(self: Any, tick: int) -> None:
        try:
            check(self, tick)
        except HorizonExceeded:
            if tick > self._last_tick + 1:
                raise

    monkeypatch.setattr(Mechanism, "_check_tick", late)
    assert row(counter, "past the horizon").verdict == "holds (tight)", "the noise has a check of its own"
    monkeypatch.setattr(tree, "check_horizon", lambda process, tick: None)
    report = row(counter, "past the horizon")
    assert report.verdict == "broken"
    assert "after the horizon 9" in report.stopped


# -- planted: calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [counter, capped, amounts])
def test_a_state_that_is_committed_before_the_release(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard around a call: what an interrupted one has done stays."""
    monkeypatch.setattr(Mechanism, "step_events", Mechanism.step_events.__wrapped__)  # type: ignore[attr-defined]
    for name in ("interrupted calls", "two calls at once"):
        assert row(make, name).verdict == "broken", name


def test_a_cap_that_is_counted_before_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    look = UserCap.look

    def counted(self: Any, users: Any, tick: int) -> Any:
        kept, after = look(self, users, tick)
        self.last = after
        self._settle()
        return kept, after

    monkeypatch.setattr(UserCap, "look", counted)
    assert row(capped, "interrupted calls").verdict == "broken"


def test_an_engine_that_does_not_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    make = next(subject.make for subject in OWNED if subject.name.startswith("DistinctUsers"))
    monkeypatch.setattr(Mechanism, "_go_back", lambda self, kept: None)
    assert row(make, "interrupted calls").verdict == "broken"


# -- planted: copies -------------------------------------------------------------------------------------------------


def test_copies_that_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("__copy__", "__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__"):
        monkeypatch.delattr(Secret, method)
    report = row(counter, "forks and copies")
    assert report.verdict == "broken"
    assert report.stopped.startswith("copy")


@pytest.mark.parametrize("fence", ["begin", "resume", "check"])
def test_a_second_one_of_a_stream_that_is_allowed(fence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hold, fence, lambda self, *given: None)
    if fence == "check":
        monkeypatch.setattr(Hold, "release", lambda self, tick: None)
    assert row(counter, "forks and copies").verdict == "broken"


def test_a_snapshot_that_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Key, "mac", lambda self, purpose, data: bytes(32))
    assert row(counter, "other keys and options").verdict == "broken"


def test_the_list_of_subjects_is_that_of_the_conformance_suite() -> None:
    assert {type(s.make(simulation(0))) for s in MECHANISMS} == {type(s.make(simulation(0))) for s in EACH}
