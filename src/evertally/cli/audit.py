"""`evertally audit`: plays the auditor against a configuration, shows what it found, and exits accordingly."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evertally.audit.everything import audit_all
from evertally.audit.game import Factory
from evertally.audit.report import Report, Verdict
from evertally.audit.spec_down import kind_steps, spec_steps
from evertally.audit.steps import Step, run
from evertally.audit.suite import Effort, best, plan
from evertally.audit.tables import markdown, verdicts_of_all
from evertally.audit.together import Together, together_plan
from evertally.audit.verdicts import BROKEN, HOLDS, NO_POWER, Verdicts, of_stream, overall
from evertally.cli.audit_words import conclusion, reasons, row, shouted, summary, table
from evertally.cli.show import output_console
from evertally.errors import ConfigurationError, InternalError
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
    kind = find(subject)
    if kind is None and subject != "all" and not subject.endswith(".toml"):
        raise ConfigurationError(_unknown(subject))
    _check_places(subject, picture, output)
    if kind is not None:
        made = subject_of_kind(kind, guarantee_of(*promise), horizon, options)
        first = kind_steps(kind, promise, horizon, _table_of_kind(kind, options), made, how, seed)
        return audit({subject: [*first, *plan(made, how, seed=seed)]}, picture)
    if (*promise, horizon) != (None,) * 4 or any(value is not None for value in options.values()):
        raise ConfigurationError("the options of a mechanism go with the name of a kind; a spec has its own")
    if subject == "all":
        return audit_everything(how, seed, jobs, output)
    plans = plans_of_spec(Path(subject), how, seed)
    return audit(plans, picture, [query.name for query in load_spec(Path(subject)).queries])


def _unknown(subject: str) -> str:
    """What there is in place of a kind that there is not."""
    every = [kind.name for kind in known()]
    near = difflib.get_close_matches(subject.lower().replace("-", "_"), every, 1)
    alone, others = ", ".join(kind.name for kind in known() if not _missing(kind)), len(every)
    hint = f"did you mean {near[0]!r}? There are" if near else "there are"
    return (
        f"{subject!r} is no kind of query, and no SPEC.toml; {hint} {alone} and all. The other ones of {others} kinds "
        "have options of their own: audit them in a SPEC.toml"
    )


def _check_places(subject: str, picture: Path | None, output: Path | None) -> None:
    """Refuses what could not be written in the end, before minutes of games."""
    if picture is not None:
        if subject == "all":
            raise ConfigurationError("--picture is of a kind or a SPEC.toml; all has --output FOLDER")
        if picture.suffix != ".png":
            raise ConfigurationError("--picture names a .png file")
        if not picture.parent.is_dir() or not os.access(picture.parent, os.W_OK) or picture.is_dir():
            raise ConfigurationError(f"--picture {picture}: no file can be written there; name a folder that exists")
    if output is not None:
        if subject != "all":
            raise ConfigurationError("--output goes with all; what is said of one subject is printed")
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigurationError(f"--output {output}: no such folder can be made: {problem.strerror}") from None
        if not os.access(output, os.W_OK):
            raise ConfigurationError(f"--output {output}: nothing can be written there")


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
    stream that they belong to. A part that ends with an error does not keep others from being seen: the error comes at
    the end, unless something is broken."""
    console, found = output_console(_WIDTH), dict[str, list[Report]]()
    errors: list[Exception] = []
    for name, steps in plans.items():
        reports = found[name] = _run(name, steps, errors)
        if not reports:
            raise errors[0]
        strongest = best(reports)
        rows = [(row(report), report is strongest) for report in reports]
        console.print(table(f"{name}: {reports[0].mechanism}", rows))
        reasons(console, reports)
        if queries is None or name in queries:
            console.print(f"{name}: {shouted(overall(reports))}", markup=False)
    names = list(found) if queries is None else [name for name in queries if name in found]
    stream = None if queries is None else of_stream(found, names)
    verdicts = Verdicts({name: overall(found[name]) for name in names}, stream)
    if errors and verdicts.whole != "broken":
        raise errors[0]
    if picture is not None:
        console.print(_drawn(found, picture), markup=False)
    conclusion(console, found, verdicts)
    return verdicts.whole


def _drawn(found: Mapping[str, Sequence[Report]], picture: Path) -> str:
    """Draws what was played, and says where; or why not, which changes no verdict."""
    from evertally.audit.picture import draw

    played = {name: [report for report in reports if report.scores is not None] for name, reports in found.items()}
    try:
        draw({name: best(reports) for name, reports in played.items() if reports}, picture)
    except ConfigurationError as problem:
        return f"No picture: {problem}"
    except OSError as problem:
        return f"No picture: {picture} could not be written: {problem.strerror}"
    return f"The two laws of the strongest score and the ROC curve: {picture}"


def audit_everything(effort: Effort, seed: int, jobs: int, output: Path | None) -> Verdict:
    """Audits every mechanism of the library; one line each, and a document in `output`. Parts that ended with an error
    hide nothing that others found, and are told last."""
    if jobs > 1:  # their processes share the cores: threads for small matrices would wait for each other
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _bar() as bar:
        task = bar.add_task("audit", total=None)

        def progress(name: str, done: int, total: int) -> None:
            bar.update(task, description=_cut(name, 60), completed=done, total=total)
            if bar.disable:  # minutes of work: a log wants to know that it goes on
                print(f"audited {done} of {total}: {name}", file=sys.stderr, flush=True)

        everything = audit_all(effort, seed=seed, jobs=jobs, output=output, progress=progress)
    # One that did not come to a single report has an error instead.
    found = {name: reports for name, reports in everything.reports.items() if reports}
    console = output_console(_WIDTH)
    console.print(table(None, [(summary(name, reports), False) for name, reports in found.items()]))
    if everything.kept:
        console.print(
            f"{everything.kept} of {len(everything.reports)} were audited by an earlier call of this program."
        )
    errors = [f"{name}: {error}" for name, told in everything.errors.items() for error in told]
    if output is not None:
        (output / "audit.md").write_text(markdown(found, errors), encoding="utf-8")
        console.print(f"The same with all details: {output / 'audit.md'}")
    verdicts = verdicts_of_all(found)
    conclusion(console, found, verdicts)
    if errors:
        told = f"{len(errors)} part{'s' * (len(errors) > 1)} of the audit ended with an error"
        console.print(f"Not all was audited: {told}.", markup=False)
        for error in errors:
            print(f"evertally: internal error in {error}", file=sys.stderr, flush=True)
        if verdicts.whole != BROKEN:  # what fell over has not looked: nobody may say that it holds
            raise InternalError(told)
    return verdicts.whole


def _run(name: str, steps: Sequence[Step], errors: list[Exception]) -> list[Report]:
    """Runs the parts of one subject; its table follows at once. A log gets a line for each part: some take minutes.
    Parts that end with an error are left out, and told; the errors are kept."""
    reports: list[Report] = []
    with _bar() as bar:
        task = bar.add_task("audit", total=len(steps))
        for step in steps:
            bar.update(task, description=f"{_cut(name, 40)}: {_cut(step.name, 24)}")
            try:
                reports.append(run(step))
            except Exception as error:  # of the mechanism, or of the auditor: others may see what is wrong
                errors.append(error)
                print(f"{name}: {step.name}: ended with {type(error).__name__}", file=sys.stderr, flush=True)
                continue
            finally:
                bar.advance(task)
            if bar.disable:
                done = f"{len(reports)} of {len(steps)}: {step.name}: {shouted(reports[-1].verdict)}"
                print(f"{name}: {done}, {reports[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    return reports


def _bar() -> Progress:
    """A progress bar on a terminal, gone when its subject is done; a pipe sees nothing of it."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,  # tables go where stdout goes, never to the terminal of the bar
        disable=not console.is_terminal,
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
