"""What an audit found, in words and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evertally.audit.audited import AUDITED
from evertally.audit.report import Report
from evertally.audit.suite import best
from evertally.noise import simulation


def shown_claim(report: Report) -> str:
    """The claim of a report, e.g. "epsilon 1"."""
    if report.unit == "leak":
        return ""
    return f"{report.unit} {report.claimed:.4g}" + (f" at delta {report.delta:.0e}" if report.delta else "")


def shown_loss(report: Report) -> str:
    """What a report found, e.g. "epsilon 0.97"."""
    if report.method == "not here":
        return "not audited"
    if report.unit == "leak":
        return "a leak" if report.audited else "nothing"
    return f"{report.unit} {report.audited:.4g}"


def markdown(found: Mapping[str, Sequence[Report]]) -> str:
    """The result of `audit_all` as a document: one line for each mechanism, then all reports."""
    lines = ["# Audit of every mechanism", "", *summary(found)]
    lines += ["", "## All reports", ""]
    for name, reports in found.items():
        lines += [f"### {name}", "", "| audit | adversary | instance | claimed | found | fraction | games | seconds |"]
        lines.append("|---|---|---|---|---|---|---|---|")
        for report in reports:
            fraction = "" if report.unit == "leak" else f"{report.fraction:.3f}"
            lines.append(
                f"| {report.method} | {report.adversary} | {report.mechanism} | {shown_claim(report)} | "
                f"{shown_loss(report)} | {fraction} | {report.trials or ''} | {report.seconds:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)


def summary(found: Mapping[str, Sequence[Report]]) -> list[str]:
    """One line for each mechanism: claim, tier, proof, and which fraction of the claimed loss was found."""
    subjects = {subject.name: subject for subject in AUDITED}
    lines = [
        "| mechanism | claim | tier | proof | found by exact law or closed form | found in games |",
        "|---|---|---|---|---|---|",
    ]
    for name, reports in found.items():
        subject = subjects[name]
        model = subject.make(simulation(0))
        claim = repr(model.guarantee)
        computed = [report for report in reports if report.is_loss and not report.trials]
        games = [report for report in reports if report.is_loss and report.trials]
        broken = "" if all(report.passed for report in reports) else "**BROKEN** "
        why = f"; {subject.why}" if subject.why else ""
        short = name.replace(f"{claim}, ", "").replace("=", " ")
        cells = [broken + short, claim, model.exactness, subject.section, _cell(computed) + why, _cell(games)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cell(reports: Sequence[Report]) -> str:
    if not reports:
        return "none"
    report = best(reports)
    games = f", {report.trials:,} games" if report.trials else ""
    return f"**{report.fraction:.3f}** of {shown_claim(report)} ({report.method}{games})"
