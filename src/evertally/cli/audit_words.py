"""What `evertally audit` prints: a table for each subject, the reasons below it, and what follows from all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from evertally.audit.report import Report, Verdict
from evertally.audit.suite import best
from evertally.audit.tables import shown_claim, shown_loss, shown_power
from evertally.audit.verdicts import BROKEN, HOLDS, NO_POWER, Verdicts, missing, overall


def table(title: str | None, rows: Sequence[tuple[Mapping[str, str], bool]]) -> Table:
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


def row(report: Report) -> dict[str, str]:
    return {
        "looks at": report.aspect,
        "audit": report.method,
        "adversary": report.adversary,
        "instance": _instance(report),
        **_loss(report),
        "games": f"{report.trials:,}" if report.trials else "",
        "verdict": shouted(report.verdict),
    }


def summary(name: str, reports: Sequence[Report]) -> dict[str, str]:
    report = best(reports)
    return {
        "mechanism": name,
        **_loss(report),
        "strongest adversary": f"{report.method}: {report.adversary}",
        "verdict": shouted(overall(reports)),
    }


def shouted(verdict: Verdict) -> str:
    return "BROKEN" if verdict == BROKEN else verdict


def _instance(report: Report) -> str:
    """ "tree, T=64" for "Counter(mechanism=tree, horizon=64)"."""
    inside = report.mechanism.partition("(")[2].rstrip(")")
    return inside.replace("mechanism=", "").replace("horizon=", "T=")


def reasons(console: Console, reports: Sequence[Report]) -> None:
    """Why some rows have no power at all, below their table."""
    for report in reports:
        if report.method == "not here":
            console.print(f"{report.adversary}: {report.stopped}", markup=False)
    games = {report.error for report in reports if report.trials}
    if games:
        confidence = f"1 - {max(games):.0e}".replace("e-0", "e-")
        console.print(f"Bounds of games hold with confidence {confidence} each; the others are computed.")


def conclusion(console: Console, found: Mapping[str, Sequence[Report]], verdicts: Verdicts) -> None:
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
    for report in (report for reports in found.values() for report in reports if report.aspect == "budget"):
        if report.stopped:  # exact, hence no matter of power: but whoever reads "tight" should know
            console.print(f"{report.adversary}: {report.fraction:.2f} of it; {report.stopped}.", markup=False)
    if verdicts.stream == NO_POWER:
        console.print("The stream: no power here: its charges were not compared with what it promises.")
    if verdicts.whole == NO_POWER:
        console.print("Where there is no power nothing was shown: a mechanism that leaks could look the same.")
    elif verdicts.whole == HOLDS:
        console.print("No promise was broken. That is evidence, not a proof: docs/auditing.md says what each can show.")
    stream = "" if verdicts.stream is None else f"; {_of_stream(found, verdicts)}"
    console.print(f"{shouted(verdicts.whole)}: {verdicts.counted()}{stream}.", markup=False)


def _of_stream(found: Mapping[str, Sequence[Report]], verdicts: Verdicts) -> str:
    """What was seen of all queries together: what they pay, and (where they were played so) all of them at once."""
    paid = {
        HOLDS: "what they pay together is within the promise",
        NO_POWER: "what they pay together was not compared with the promise",
        BROKEN: "the stream is BROKEN",
    }[verdicts.stream or NO_POWER]
    joint = [report for name in found.keys() - verdicts.of.keys() for report in found[name] if report.aspect == "loss"]
    if not joint or verdicts.stream == BROKEN:
        return paid
    seen = (
        "tight too"
        if any(report.verdict == HOLDS for report in joint)
        else "no power here, and that privacy composes is taken for granted"
    )
    return f"{paid}; played all at once: {seen}"
