"""`evertally audit`: plays the auditor against a configuration, shows what it found, and exits accordingly."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evertally.audit.audited import audit_all
from evertally.audit.game import Factory
from evertally.audit.report import Report, Verdict
from evertally.audit.spec_down import kind_steps, spec_steps
from evertally.audit.steps import Step, run
from evertally.audit.suite import Effort, best, plan
from evertally.audit.tables import markdown, shown_claim, shown_loss, shown_power, verdicts_of_all
from evertally.audit.together import Together, together_plan
from evertally.audit.verdicts import BROKEN, HOLDS, NO_POWER, Verdicts, missing, of_stream, overall
from evertally.cli.show import output_console
from evertally.errors import ConfigurationError
from evertally.kinds import Kind, find, known
from evertally.kinds.query_table import a
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.runtime import load_spec
from evertally.runtime.mechanisms import twins
from evertally.runtime.standing import standing

_DEFAULTS: dict[str, Any] = {"categories": 3, "lower": 0.0, "upper": 1.0}  # of options that a kind needs
_NOT_NEEDED = {"name", "kind", "column"}  # there is no spec, and no input
_WIDTH = 150
# 3 is an internal error, of every command: an audit that fell over has not looked, and must not pass for one that has.
EXIT_STATUS: dict[Verdict, int] = {HOLDS: 0, BROKEN: 1, NO_POWER: 4}


def command(
    subject: str,
    promise: tuple[float | None, float | None, float | None],
    horizon: int | None,
    options: Mapping[str, Any],
    effort: str,
    seed: int,
    picture: Path | None,
    output: Path | None,
    jobs: int,
) -> Verdict:
    """What the command does; the verdict of all that was audited."""
    if effort not in ("short", "long"):
        raise ConfigurationError("--effort is short or long")
    how: Effort = "short" if effort == "short" else "long"
    if picture is not None and picture.suffix != ".png":
        raise ConfigurationError("--picture names a .png file")
    kind = find(subject)
    if kind is not None:
        made = subject_of_kind(kind, guarantee_of(*promise), horizon, options)
        first = kind_steps(kind, promise, horizon, _table_of_kind(kind, options), made, how, seed)
        return audit({subject: [*first, *plan(made, how, seed=seed)]}, picture)
    if (*promise, horizon) != (None,) * 4 or any(value is not None for value in options.values()):
        raise ConfigurationError("the options of a mechanism go with the name of a kind; a spec has its own")
    if subject == "all":
        return audit_everything(how, seed, jobs, output)
    if not subject.endswith(".toml"):
        names = ", ".join(kind.name for kind in known() if not _missing(kind))
        raise ConfigurationError(f"{subject!r} is neither a SPEC.toml nor one of {names}, all")
    plans = plans_of_spec(Path(subject), how, seed)
    return audit(plans, picture, [query.name for query in load_spec(Path(subject)).queries])


def guarantee_of(epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """The promise that the options name."""
    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is not None and rho is None:
        # A claim that is put to the test promises nobody anything.
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta, force=True)
    raise ConfigurationError("a guarantee is --epsilon, or --epsilon and --delta, or --rho")


def subject_of_kind(kind: Kind, guarantee: Guarantee, horizon: int | None, options: Mapping[str, Any]) -> Factory:
    """A mechanism by kind; options that were not given are left to its defaults."""
    given = {name: value for name, value in options.items() if value is not None}
    strange = sorted(set(given) - set(kind.options.model_fields) - {"neighbours", "max_events_per_user"})
    if strange:
        raise ConfigurationError(f"{a(kind.name)} has no option --{strange[0].replace('_', '-')}")
    if _missing(kind):
        raise ConfigurationError(f"{a(kind.name)} needs {', '.join(_missing(kind))}: audit it in a SPEC.toml")
    table = _table_of_kind(kind, options)
    if "max_events_per_user" in table:
        table["unit"] = "user"
    arguments = kind.arguments(table)
    return lambda key: kind.statistic(guarantee=guarantee, horizon=horizon, key=key, **arguments)


def _table_of_kind(kind: Kind, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a [[query]] would write them."""
    given = {name: value for name, value in options.items() if value is not None}
    table = {name: _DEFAULTS[name] for name in _needed(kind)} | given
    if "categories" in table:
        table["categories"] = [str(i) for i in range(table["categories"])]
    return table


def _needed(kind: Kind) -> list[str]:
    fields = kind.options.model_fields.items()
    return [name for name, field in fields if field.is_required() and name not in _NOT_NEEDED]


def _missing(kind: Kind) -> list[str]:
    return [name for name in _needed(kind) if name not in _DEFAULTS]


def plans_of_spec(path: Path, effort: Effort, seed: int) -> dict[str, list[Step]]:
    """The queries of a spec, each with its share of the guarantee, and all of them together, as the stream runs them if
    it has run. The games have keys of their own and see no data of the stream."""
    spec = load_spec(path)
    # Chosen and calibrated once: games make thousands of them.
    made = standing(spec)

    def one(name: str) -> Factory:
        return lambda key: twins({name: made[name]}, key)[name]

    plans = {query.name: plan(one(query.name), effort, seed=seed) for query in spec.queries}
    if len(plans) > 1:
        plans[f"{spec.name} (all queries)"] = together_plan(
            lambda key: Together(twins(made, key), spec.guarantee, spec.horizon),
            effort,
            seed=seed,
        )
    return _first(spec_steps(path, spec, made, effort, seed), plans)


def _first(steps: Mapping[str, list[Step]], plans: Mapping[str, list[Step]]) -> dict[str, list[Step]]:
    """Plans that begin with some steps."""
    return {name: [*steps.get(name, []), *own] for name, own in plans.items()}


def audit_service(path: Path, effort: str, seed: int) -> Verdict:
    """Plays faults on a real service of a copy of a spec: readers must see nothing but one stream."""
    from evertally.audit.faults.service import service_audits

    if effort not in ("short", "long") or path.suffix != ".toml":
        raise ConfigurationError("--service goes with a SPEC.toml, and --effort is short or long")
    spec = load_spec(path)
    rows = service_audits(spec, "short" if effort == "short" else "long", seed)
    return audit({f"{spec.name} (service)": [Step(name, found) for name, found in rows]}, None)


def audit(plans: Mapping[str, Sequence[Step]], picture: Path | None, queries: Sequence[str] | None = None) -> Verdict:
    """Audits, shows the tables, draws the picture. `queries`: which plans are those of queries; others are of the
    stream that they belong to."""
    found = _run(plans)
    console = output_console(_WIDTH)
    for name, reports in found.items():
        strongest = best(reports)
        rows = [(_row(report), report is strongest) for report in reports]
        console.print(_table(f"{name}: {reports[0].mechanism}", rows))
        _reasons(console, reports)
        if queries is None or name in queries:
            console.print(f"{name}: {_shouted(overall(reports))}", markup=False)
    names = list(found) if queries is None else [name for name in queries if name in found]
    stream = None if queries is None else of_stream(found, names)
    verdicts = Verdicts({name: overall(found[name]) for name in names}, stream)
    if picture is not None:
        from evertally.audit.picture import draw

        played = {name: [r for r in reports if r.scores is not None] for name, reports in found.items()}
        draw({name: best(reports) for name, reports in played.items() if reports}, picture)
        console.print(f"The two laws of the strongest score and the ROC curve: {picture}")
    _conclusion(console, found, verdicts)
    return verdicts.whole


def audit_everything(effort: Effort, seed: int, jobs: int, output: Path | None) -> Verdict:
    """Audits every mechanism of the library; one line each, and a document in `output`."""
    if jobs > 1:  # their processes share the cores: threads for small matrices would wait for each other
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _bar() as bar:
        task = bar.add_task("audit", total=None)

        def progress(name: str, done: int, total: int) -> None:
            bar.update(task, description=_cut(name, 60), completed=done, total=total)
            if bar.disable:  # minutes of work: a log wants to know that it goes on
                print(f"audited {done} of {total}: {name}", file=sys.stderr, flush=True)

        found = audit_all(effort, seed=seed, jobs=jobs, progress=progress)
    console = output_console(_WIDTH)
    console.print(_table(None, [(_summary(name, reports), False) for name, reports in found.items()]))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "audit.md").write_text(markdown(found), encoding="utf-8")
        console.print(f"The same with all details: {output / 'audit.md'}")
    verdicts = verdicts_of_all(found)
    _conclusion(console, found, verdicts)
    return verdicts.whole


def _run(plans: Mapping[str, Sequence[Step]]) -> dict[str, list[Report]]:
    found: dict[str, list[Report]] = {}
    with _bar() as bar:
        task = bar.add_task("audit", total=sum(map(len, plans.values())))
        for name, steps in plans.items():
            found[name] = []
            for step in steps:
                bar.update(task, description=f"{_cut(name, 40)}: {_cut(step.name, 24)}")
                found[name].append(run(step))
                bar.advance(task)
    return found


def _bar() -> Progress:
    """A progress bar on a terminal; a pipe sees nothing of it."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _table(title: str | None, rows: Sequence[tuple[Mapping[str, str], bool]]) -> Table:
    """Rows of cells by heading; those of the strongest adversary are bold."""
    table = Table(title=title, title_justify="left")
    for heading in rows[0][0] if rows else ():
        table.add_column(heading, justify="right" if heading in ("fraction", "games") else "left", overflow="fold")
    for cells, bold in rows:
        table.add_row(*cells.values(), style="bold" if bold else None)
    return table


def _loss(report: Report) -> dict[str, str]:
    return {
        "claimed": shown_claim(report),
        "lost at least": shown_loss(report),
        "fraction": f"{report.fraction:.3f}" if report.unit != "leak" else "",
        "could have found": shown_power(report),
    }


def _row(report: Report) -> dict[str, str]:
    return {
        "looks at": report.aspect,
        "audit": report.method,
        "adversary": report.adversary,
        "instance": _instance(report),
        **_loss(report),
        "games": f"{report.trials:,}" if report.trials else "",
        "verdict": _shouted(report.verdict),
    }


def _summary(name: str, reports: Sequence[Report]) -> dict[str, str]:
    report = best(reports)
    return {
        "mechanism": name,
        **_loss(report),
        "strongest adversary": f"{report.method}: {report.adversary}",
        "verdict": _shouted(overall(reports)),
    }


def _shouted(verdict: Verdict) -> str:
    return "BROKEN" if verdict == BROKEN else verdict


def _instance(report: Report) -> str:
    """ "tree, T=64" for "Counter(mechanism=tree, horizon=64)"."""
    inside = report.mechanism.partition("(")[2].rstrip(")")
    return inside.replace("mechanism=", "").replace("horizon=", "T=")


def _reasons(console: Console, reports: Sequence[Report]) -> None:
    """Why some rows have no power at all, below their table."""
    for report in reports:
        if report.method == "not here":
            console.print(f"{report.adversary}: {report.stopped}", markup=False)
    games = {report.error for report in reports if report.trials}
    if games:
        confidence = f"1 - {max(games):.0e}".replace("e-0", "e-")
        console.print(f"Bounds of games hold with confidence {confidence} each; the others are computed.")


def _conclusion(console: Console, found: Mapping[str, Sequence[Report]], verdicts: Verdicts) -> None:
    """What is wrong, what was not seen, and last how many there are of each."""
    for name, reports in found.items():
        for report in reports:
            if not report.passed:
                lost = f"{shown_loss(report)} is lost, {shown_claim(report)} claimed"
                what = report.stopped if report.unit == "leak" else lost
                console.print(f"[bold]{name} breaks its promise[/bold]: {report.method}, {report.adversary}: {what}")
    for name in verdicts.named(NO_POWER):
        known = verdicts.expected.get(name)
        why = f"{missing(found[name])}; known: {known}" if known else missing(found[name])
        console.print(f"{name}: no power here: {why}", markup=False)
    if verdicts.stream == NO_POWER:
        console.print("The stream: no power here: its charges were not compared with what it promises.")
    if verdicts.whole == NO_POWER:
        console.print("Where there is no power nothing was shown: a mechanism that leaks could look the same.")
    elif verdicts.whole == HOLDS:
        console.print("No promise was broken. That is evidence, not a proof: docs/auditing.md says what each can show.")
    stream = "" if verdicts.stream is None else f"; the stream: {_shouted(verdicts.stream)}"
    console.print(f"{_shouted(verdicts.whole)}: {verdicts.counted()}{stream}.", markup=False)
