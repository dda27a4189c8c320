"""`evertally audit`: tables, picture, and an exit status that a build server can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import evertally as et
from concluded import conclusion, last_line
from evertally.audit import FirstTick, audited, picture, play, suite, tables
from evertally.audit.report import Report
from evertally.audit.steps import Step
from evertally.audit.suite import Sizes
from evertally.cli import audit as auditor
from evertally.cli.app import app
from evertally.errors import ConfigurationError
from evertally.kinds import find, forget_kind, register_kind
from spec_text import ALL, spec_text

WARDS = {"name": "wards", "kind": "histogram", "column": "ward", "categories": ["a", "b"]}
SPEC = spec_text(ALL, WARDS, stream={"name": "visits", "horizon": 24}, guarantee={"epsilon": 1.0})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", Sizes(8, 20_000, 2_000, 10_000, 200, 200))


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_a_counter(tmp_path: Path) -> None:
    png = tmp_path / "audit.png"
    result = call("counter", "--epsilon", 1, "--horizon", 1024, "--mechanism", "tree", "--picture", png)
    assert result.exit_code == 0, result.output
    for words in ("exact law", "change of tick 1", "late trigger", "epsilon 1", "1 - 1e-6", "replay", "No promise"):
        assert words in result.output
    for heading in ("looks at", "claimed", "lost at least", "could have found", "verdict"):
        assert heading in result.output
    assert "all of it" in result.output, "what is computed"
    assert last_line(result) == "holds (tight): 1 holds (tight), 0 no power here, 0 broken."
    assert "BROKEN" not in result.output
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_spec_touches_nothing_but_the_spec(tmp_path: Path) -> None:
    spec = tmp_path / "visits.toml"
    spec.write_text(SPEC)
    result = call(spec, "--picture", tmp_path / "audit.png")
    assert conclusion(result) == "2 hold (tight), 0 no power here, 0 broken"
    assert "all: Counter" in result.output
    assert "wards: Histogram" in result.output
    assert "epsilon 0.5" in result.output  # each query is held to its share
    assert "visits (all queries)" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.png", "visits.toml"]


def test_a_spec_of_what_is_present_now(tmp_path: Path) -> None:
    updates = {"action": "what", "id": "flight", "protects": "item"}
    wards = {"kind": "dynamic_histogram", "column": "ward", "categories": ["a", "b"], "max_lifetime": 12}
    queries = {"name": "present", "kind": "dynamic_count", **updates}, {"name": "wards", **wards, **updates}
    spec = tmp_path / "present.toml"
    spec.write_text(spec_text(*queries, stream={"name": "visits", "horizon": 24}, guarantee={"epsilon": 1.0}))
    result = call(spec)
    # What comes and what goes share noise in blocks: one item shows less than it is charged for.
    assert conclusion(result).endswith("0 broken")
    for words in ("present: DynamicCount", "wards: DynamicHistogram", "lifetimes:", "one lifetime", "(all queries)"):
        assert words in result.output


def test_a_spec_of_graphs_and_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "short", replace(suite.SIZES["short"], objects=40, pairs=20))
    triples = {"kind": "triangles", "columns": ["from", "to"], "vertices": ["a", "b", "c", "d"]}
    words = {"kind": "substring_counts", "column": "from", "alphabet": ["a", "b"], "longest": 2, "sequence": "stream"}
    queries = {"name": "triples", **triples}, {"name": "moves", **words}
    spec = tmp_path / "calls.toml"
    spec.write_text(spec_text(*queries, stream={"name": "calls", "horizon": 24}, guarantee={"epsilon": 1.0}))
    result = call(spec)
    assert conclusion(result).endswith("0 broken")
    for found in ("triples: Triangles", "moves: SubstringCounts", "restarts", "questions", "(all queries)"):
        assert found in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["histogram", "--rho", 0.5, "--horizon", 20, "--categories", 4, "--max-per-event", 2], "histogram: Histogram"),
        (["mean", "--rho", 0.5, "--horizon", 20, "--upper", 10], "RunningMean(mechanism=bank"),
        (["counter", "--epsilon", 1, "--delta", 1e-6, "--horizon", 20, "--max-events-per-user", 3], "l1 change 3"),
        (["counter", "--rho", 0.5], "bank-open"),
        (["sum_select", "--epsilon", 1, "--horizon", 9, "--mechanism", "recompute"], "SumSelect"),
        (["counter", "--epsilon", 1, "--horizon", 9, "--mechanism", "honaker", "--seed", 4], "honaker, T=9"),
    ],
)
def test_kinds_and_options(arguments: list[object], words: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert words in result.output


def test_a_leak_is_exit_status_1() -> None:
    class Quiet(et.Counter):
        """Half of the noise is forgotten."""

        def _step(self, row, tick, users=None):
            super()._step(row, tick, users)
            played = self._kept.played
            return self._release((played.recent[-1] + played.state) // 2, self._engine.accuracy(self.tick))

    quiet = register_kind(replace(find("counter"), statistic=Quiet))
    try:
        result = call("quiet", "--epsilon", 2, "--horizon", 1)
    finally:
        forget_kind(quiet)
    assert result.exit_code == 1, result.output
    assert "BROKEN" in result.output
    assert "breaks its promise" in result.output
    assert last_line(result) == "BROKEN: 0 hold (tight), 0 no power here, 1 broken."


@pytest.mark.parametrize("broken", [True, False])
def test_a_part_that_ends_with_an_error_hides_nothing_of_the_others(
    broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is broken is told, and decides; otherwise the error does, after all others were seen."""
    seen = []

    def planned(make: Any, *arguments: Any, **options: Any) -> list[Step]:
        model = make(et.simulation(0))

        def failing() -> Any:
            raise KeyError("a label")

        def looking() -> Any:
            seen.append("looked")
            return Report.attack(model, "attack", broken, "it was looked at")

        return [Step("first", failing), Step("second", looking)]

    monkeypatch.setattr("evertally.cli.audit.plan", planned)
    result = call("counter", "--epsilon", 2, "--horizon", 1)
    assert seen == ["looked"]
    assert result.exit_code == (1 if broken else 3), result.output
    assert "first: ended with KeyError" in result.output
    assert "a label" not in result.output
    assert ("BROKEN" in result.output) is broken


def test_no_power_is_exit_status_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is broken, and nobody has tried what an event changes."""

    def without_door(*arguments: Any, **options: Any) -> list[Any]:
        return [step for step in suite.plan(*arguments, **options) if step.name != "the door"]

    monkeypatch.setattr(auditor, "plan", without_door)
    monkeypatch.setattr(auditor, "kind_steps", lambda *_: {})
    result = call("counter", "--epsilon", 1, "--horizon", 1)
    assert result.exit_code == 4, result.output
    assert "BROKEN" not in result.output
    assert "counter: no power here: 1.00 of the noise, taken alone, was found" in result.output
    assert "a mechanism that leaks could look the same" in result.output
    assert last_line(result) == "no power here: 0 hold (tight), 1 no power here, 0 broken."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["counter"], "a guarantee is"),
        (["counter", "--rho", 1, "--epsilon", 1], "a guarantee is"),
        (["counter", "--delta", 1e-6], "a guarantee is"),
        (["counter", "--epsilon", -1], "epsilon"),
        (["counter", "--epsilon", 1, "--upper", 3], "no option --upper"),
        (["counter", "--epsilon", 1, "--horizon", 4, "--effort", "endless"], "short or long"),
        (["counter", "--epsilon", 1, "--horizon", 4, "--picture", "x.jpg"], ".png"),
        (["counter", "--epsilon", 1, "--horizon", 4, "--mechanism", "sqrt"], "never pure"),
        (["nothing"], "'nothing' is no kind of query, and no SPEC.toml; there are counter, "),
        (["countr", "--epsilon", 1], "did you mean 'counter'?"),
        (["all", "--picture", "x.png"], "all has --output"),
        (["counter", "--epsilon", 1, "--horizon", 4, "--output", "x"], "--output goes with all"),
        (["counter", "--epsilon", 1, "--horizon", 4, "--picture", "/nonexistent/x.png"], "no file can be written"),
        (["all", "--output", "/dev/null/x"], "no such folder can be made"),
        (["quantile", "--epsilon", 1], "needs q: audit it in a SPEC.toml"),
        (["missing.toml"], "missing.toml"),
        (["missing.toml", "--epsilon", 1], "a spec has its own"),
        (["all", "--horizon", 3], "a spec has its own"),
    ],
)
def test_bad_calls_are_exit_status_2(arguments: list[object], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "run", lambda step: pytest.fail("nothing is played"))
    monkeypatch.setattr(auditor, "audit_all", lambda *_, **__: pytest.fail("nothing is played"))
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = (audited.AUDITED[0], next(s for s in audited.AUDITED if s.why))
    monkeypatch.setattr(audited, "AUDITED", few)
    result = call("all", "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    document = (tmp_path / "out" / "audit.md").read_text()
    for subject in few:
        assert f"### {subject.name}" in document
        assert subject.section in document
    assert few[1].why in document
    assert document.count("### ") == 2
    widths = {line.count("|") for line in document.splitlines() if line.startswith("|")}
    assert widths == {8, 11}
    assert "2 hold (tight), 0 no power here, 0 broken" in document
    assert last_line(result).startswith("holds (tight): 2 hold")


def test_everything_that_is_known_to_be_without_power_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make audit` goes on with these, and they are listed; it stops at any other."""
    labels = next(s for s in audited.AUDITED if s.name.startswith("UnknownDistinctUsers"))
    for subject, status in ((labels, 0), (replace(labels, why=""), 4)):
        monkeypatch.setattr(audited, "AUDITED", (subject,))
        monkeypatch.setattr(tables, "AUDITED", (subject,))
        result = call("all", "--output", tmp_path / "out")
        assert result.exit_code == status, result.output
        assert f"{subject.name}: no power here: " in result.output.replace("\n", " ")
        assert "0 hold (tight), 1 no power here, 0 broken" in last_line(result)
        assert "| no power here |" in (tmp_path / "out" / "audit.md").read_text()


def test_a_progress_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = call("counter", "--epsilon", 1, "--horizon", 2)
    assert result.exit_code == 0, result.output
    assert "counter: " in result.stderr


def test_tables_come_as_they_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    """Also into a pipe: minutes without a word look like an error."""
    model = et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=et.simulation(0))
    seen: list[str] = []

    def compared() -> Report:
        seen.append(capsys.readouterr().out)
        return Report.attack(model, "replay", False, "")

    auditor.audit({name: [Step("replay", compared)] for name in ("one", "two")}, None)
    assert "one: Counter" not in seen[0]
    assert "one: Counter" in seen[1]
    assert "two: 1 of 1: replay: holds (tight), " in capsys.readouterr().err


def test_what_is_said_of_a_stream(tmp_path: Path) -> None:
    """Its budget, and what nobody pays for; games of all queries at once have no power here, and it says so."""
    halves = [{**query, "share": share} for query, share in ((ALL, 0.3), (WARDS, 0.51))]
    spec = tmp_path / "visits.toml"
    spec.write_text(spec_text(*halves, stream={"name": "visits", "horizon": 24}, guarantee={"epsilon": 1.0}))
    result = call(spec)
    said = result.output.replace("\n", " ")
    assert "all charges together: 0.81 of it; the stream leaves 19 % of its promise unused." in said
    assert "what they pay together is within the promise; played all at once: no power here" in said
    assert "the stream: holds" not in said


def test_a_picture_that_cannot_be_drawn_changes_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(picture, "draw", full)
    result = call("counter", "--epsilon", 1, "--horizon", 1, "--picture", tmp_path / "x.png")
    assert result.exit_code == 0, result.output
    assert "could not be written: No space left on device" in result.output


def test_an_interrupted_audit_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(step: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(auditor, "run", interrupted)
    result = call("counter", "--epsilon", 1, "--horizon", 1)
    assert result.exit_code == 130
    assert "interrupted; nothing of it is kept: the same command begins anew" in result.stderr


# -- the picture -----------------------------------------------------------------------------------------------------


def test_the_roc_curve_and_what_is_allowed() -> None:
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)  # noqa: E731
    report = play(make, FirstTick(make(et.simulation(0))), 20_000)
    alarms, hits = picture.roc(*report.scores)
    assert (alarms[0], hits[0], alarms[-1], hits[-1]) == (0, 0, 1, 1)
    assert (np.diff(alarms) >= 0).all()
    assert (hits <= picture.allowed(report, alarms) + 0.02).all()
    assert picture.allowed(report, np.array([0.1]))[0] == pytest.approx(0.1 * np.e)


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no games"):
        picture.draw({}, tmp_path / "x.png")
