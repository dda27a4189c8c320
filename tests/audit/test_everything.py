"""The audit of every mechanism: what is kept, what goes on, what an error hides."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import evertally as et
from evertally.audit import audit_mechanism, audited, everything, kept, overall, suite, tables
from evertally.audit.entries import Audited
from evertally.audit.everything import Done, Everything, audit_all, longest_first
from evertally.audit.kept import Kept, report_from_json, report_to_json
from evertally.audit.report import Report
from evertally.audit.steps import Step
from evertally.audit.suite import Sizes
from evertally.cli.app import app
from evertally.privacy import ApproxZCDP


def entry(horizon: int) -> Audited:
    def make(key: Any) -> Any:
        return et.Counter(guarantee=et.PureDP(1.0), horizon=horizon, mechanism="tree", key=key)

    return Audited(f"a counter of {horizon}", make, "streaming-selection 3.1")


LIBRARY = audited.AUDITED
ENTRIES = tuple(map(entry, (1, 2, 3)))
NAMES = [subject.name for subject in ENTRIES]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (audited, tables):
        monkeypatch.setattr(module, "AUDITED", ENTRIES)
    monkeypatch.setitem(suite.SIZES, "short", Sizes(8, 20_000, 2_000, 10_000, 200, 200))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which entries are audited, in their order."""
    numbers: list[int] = []
    real = everything.audited_entry

    def noted(number: int, *further: Any) -> Done:
        numbers.append(number)
        return real(number, *further)

    monkeypatch.setattr(everything, "audited_entry", noted)
    return numbers


def without_times(found: Everything) -> dict[str, list[Report]]:
    return {name: [replace(report, seconds=0.0) for report in reports] for name, reports in found.reports.items()}


# -- reports in files --------------------------------------------------------------------------------------------------


def reports() -> Iterator[Report]:
    yield from audit_mechanism(ENTRIES[2].make)
    one = next(report for report in audit_mechanism(ENTRIES[0].make) if report.trials)
    yield replace(
        one,
        guarantee=ApproxZCDP(Fraction(1, 3), Fraction(1, 10**7), adversary="oblivious"),
        audited=math.inf,
        claimed=1 / 3,
    )
    yield replace(one, audited=np.float64(0.1) + np.float64(0.2), trials=np.int64(7), undecided=np.bool_(True))
    yield replace(one, stopped='broken, seen in: \u00e9 | "form"\n', delta=5e-324, power=-0.0)


def test_reports_come_back_as_they_were() -> None:
    every = list(reports())
    assert {report.aspect for report in every} >= {"noise", "change", "state"}
    assert {report.method for report in every} >= {"exact law", "event", "attack", "not here"}
    for report in every:
        text = json.dumps(report_to_json(report), allow_nan=False)
        back = report_from_json(json.loads(text))
        assert back == report
        for field in fields(Report):
            value = getattr(report, field.name)
            if isinstance(value, float):  # to the last bit, and with its sign
                assert getattr(back, field.name).hex() == float(value).hex()
        assert (back.verdict, back.fraction, back.scores) == (report.verdict, report.fraction, None)
        assert json.dumps(report_to_json(back)) == text


def test_a_file_that_is_damaged_is_not_read(tmp_path: Path) -> None:
    kept = Kept(tmp_path, {"effort": "short"})
    kept.keep("one", audit_mechanism(ENTRIES[0].make))
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    assert kept.reports("one")
    for damaged in (b"", whole[: len(whole) // 2], b"[]", b"3", whole.replace(b'"trials"', b'"tries"')):
        path.write_bytes(damaged)
        assert kept.reports("one") is None
        assert kept.seconds("one") == math.inf
    path.write_bytes(whole.replace(b'"name": "one"', b'"name": "two"'))
    assert kept.reports("one") is None, "it is about something else"


def test_another_program_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a copy of the package with one changed line; the name of this one does not change."""
    home = tmp_path / "evertally"
    (home / "audit").mkdir(parents=True)
    (home / "__init__.py").write_text("")
    (home / "audit" / "x.py").write_text("a = 1\n")
    monkeypatch.setattr(et, "__file__", str(home / "__init__.py"))
    names = [kept.program.__wrapped__()]
    assert kept.program.__wrapped__() == names[0]
    (home / "audit" / "x.py").write_text("a = 2\n")
    names.append(kept.program.__wrapped__())
    (home / "audit" / "x.py").rename(home / "audit" / "y.py")
    names.append(kept.program.__wrapped__())
    assert len(set(names)) == 3


def test_names_are_those_of_one_entry_each() -> None:
    """Two entries of one name would share a file, and one of them would never be audited."""
    assert len({subject.name for subject in LIBRARY}) == len(LIBRARY) > 200


# -- going on ----------------------------------------------------------------------------------------------------------


def interrupted_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the next entry is under way."""
    real = everything.audited_entry
    done: list[int] = []

    def entry_of(number: int, *further: Any) -> Done:
        if len(done) == count:
            raise KeyboardInterrupt
        done.append(number)
        return real(number, *further)

    monkeypatch.setattr(everything, "audited_entry", entry_of)


def test_an_interrupted_audit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: list[int]) -> None:
    at_once = audit_all()
    assert (list(at_once.reports), at_once.errors, at_once.kept) == (NAMES, {}, 0)
    with monkeypatch.context() as patched:
        interrupted_after(2, patched)
        with pytest.raises(KeyboardInterrupt):
            audit_all(output=tmp_path)
    assert len(list(tmp_path.rglob("*.json"))) == 2
    played.clear()
    told: list[tuple[str, int, int]] = []
    rest = audit_all(output=tmp_path, progress=lambda *facts: told.append(facts))
    assert played == [2]
    assert told == [(NAMES[2], 3, 3)]
    assert rest.kept == 2
    assert without_times(rest) == without_times(at_once)
    assert list(rest.reports) == NAMES
    assert tables.summary(rest.reports) == tables.summary(at_once.reports)
    played.clear()
    again = audit_all(output=tmp_path)
    assert (played, again.kept, again.reports) == ([], 3, rest.reports), "with the times of those who played them"


def test_nothing_is_taken_over_from_another_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: list[int]
) -> None:
    def anew(**options: Any) -> bool:
        played.clear()
        found = audit_all(output=tmp_path, **options)
        assert found.kept + len(played) == 3
        return found.kept == 0

    assert anew()
    assert not anew()
    assert anew(seed=1)
    with monkeypatch.context() as patched:
        patched.setitem(suite.SIZES, "long", suite.SIZES["short"])
        assert anew(effort="long"), "of the same size, but it interrupts more places"
    with monkeypatch.context() as patched:
        patched.setitem(suite.SIZES, "short", replace(suite.SIZES["short"], trials=1999))
        assert anew()
    with monkeypatch.context() as patched:
        patched.setattr(kept, "program", lambda: "another")
        assert anew()
    assert not anew(), "and the first one is still there"


# -- the order of work -------------------------------------------------------------------------------------------------


def test_what_takes_long_begins_first() -> None:
    seconds = {"a": 1.0, "b": 30.0, "c": math.inf, "d": 1.0, "e": math.inf}
    assert longest_first(seconds, seconds.__getitem__) == ["c", "e", "b", "a", "d"]


def test_times_of_another_program_order_the_work(tmp_path: Path, played: list[int]) -> None:
    """And of no other effort; what nobody has timed comes first."""
    one = audit_mechanism(ENTRIES[0].make)[0]
    for name, effort, seconds in ((NAMES[0], "short", 1.0), (NAMES[1], "short", 9.0), (NAMES[2], "long", 99.0)):
        Kept(tmp_path, {"effort": effort, "seed": 5}).keep(name, [replace(one, seconds=seconds)])
    found = audit_all(output=tmp_path)
    assert played == [2, 1, 0]
    assert list(found.reports) == NAMES


def test_processes_hand_over_what_is_done_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one waits until two later ones are done: two processes do not wait for it."""
    monkeypatch.setattr(everything, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    later = threading.Semaphore(0)

    def entry_of(number: int, *_: Any) -> Done:
        if number == 0:
            assert later.acquire(timeout=60)
            assert later.acquire(timeout=60)
        return Done([], [])

    monkeypatch.setattr(everything, "audited_entry", entry_of)
    order: list[str] = []

    def progress(name: str, *_: int) -> None:
        order.append(name)
        later.release()

    found = audit_all(jobs=2, progress=progress)
    assert order == [NAMES[1], NAMES[2], NAMES[0]]
    assert list(found.reports) == NAMES


def test_an_interruption_waits_for_nothing_that_has_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(1))
    begun: list[int] = []
    go_on = threading.Event()

    def entry_of(number: int, *_: Any) -> Done:
        begun.append(number)
        if number:
            go_on.wait(60)
        return Done([], [])

    def progress(*_: Any) -> None:
        threading.Timer(0.2, go_on.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(everything, "audited_entry", entry_of)
    with pytest.raises(KeyboardInterrupt):
        audit_all(jobs=2, progress=progress)
    assert 2 not in begun


def test_spawned_processes_agree_with_one(tmp_path: Path) -> None:
    """They have the list of the library, not that of this test; so the first entry of it is enough."""
    work = {"first": 0, "again": 0}
    done = dict(everything._as_done(work, "short", 0, 2))
    assert done.keys() == work.keys()
    assert not done["first"].errors
    times = [[replace(report, seconds=0.0) for report in done[name].reports] for name in work]
    assert times[0] == times[1]
    assert overall(times[0]) == "holds (tight)"


# -- errors ------------------------------------------------------------------------------------------------------------


def with_errors(monkeypatch: pytest.MonkeyPatch, *, broken: bool = False) -> None:
    """The second entry ends with errors: in one of its parts, or at once."""
    real = everything.plan

    def plan(make: Any, *further: Any, **options: Any) -> list[Step]:
        if make is ENTRIES[2].make:
            raise KeyError("a label")
        steps = real(make, *further, **options)
        if make is ENTRIES[1].make:
            steps[0] = Step("first", lambda: {}["a label"])
            if broken:
                leak = Report.attack(make(et.simulation(0)), "replay", True, "two versions")
                steps.append(Step("replay", lambda: leak))
        return steps

    monkeypatch.setattr(everything, "plan", plan)


def test_an_error_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: list[int]) -> None:
    with monkeypatch.context() as patched:
        with_errors(patched)
        found = audit_all(output=tmp_path)
    assert [len(errors) for errors in found.errors.values()] == [1, 1]
    assert found.errors[NAMES[1]][0].startswith("first: KeyError at test_everything.py")
    assert found.errors[NAMES[2]][0].startswith("the plan: KeyError")
    assert "a label" not in str(found.errors), "nobody knows what errors quote"
    assert len(found.reports[NAMES[1]]) > 5
    assert found.reports[NAMES[2]] == []
    played.clear()
    assert audit_all(output=tmp_path).errors == {}
    assert played == [1, 2], "what ended with an error is not done"


def test_a_process_that_dies_is_an_error_of_what_was_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_of(number: int, *_: Any) -> Done:
        if number == 1:
            raise BrokenProcessPool("a child was killed")
        return Done([], [])

    monkeypatch.setattr(everything, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(everything, "audited_entry", entry_of)
    found = audit_all(jobs=2)
    assert list(found.errors) == [NAMES[1]]
    assert "BrokenProcessPool" in found.errors[NAMES[1]][0]


@pytest.mark.parametrize(("broken", "status"), [(False, 3), (True, 1)])
def test_the_command_tells_errors_last(
    broken: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_errors(monkeypatch, broken=broken)
    result = CliRunner().invoke(app, ["audit", "all", "--output", str(tmp_path)])
    assert result.exit_code == status, result.output
    assert f"internal error in {NAMES[1]}: first: KeyError" in result.stderr
    assert f"internal error in {NAMES[2]}: the plan: KeyError" in result.stderr
    assert "a label" not in result.output
    assert ("2 parts of the audit ended with an error" in result.stderr) is not broken
    assert result.stdout.rstrip().endswith("Not all was audited: 2 parts of the audit ended with an error.")
    assert ("breaks its promise" in result.output) is broken
    document = (tmp_path / "audit.md").read_text()
    assert f"### {NAMES[0]}" in document
    assert f"### {NAMES[1]}" in document
    assert NAMES[2] in document, "that it was not audited"


def test_the_command_says_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> Any:
        return CliRunner().invoke(app, ["audit", "all", "--output", str(tmp_path)])

    with monkeypatch.context() as patched:
        interrupted_after(1, patched)
        stopped = call()
    assert stopped.exit_code == 130
    assert "the same command continues where it stopped" in stopped.stderr
    result = call()
    assert result.exit_code == 0, result.output
    assert "1 of 3 were audited by an earlier call of this program" in result.output
    assert (tmp_path / "audit.md").exists()
