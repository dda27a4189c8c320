"""What an audit found, in words and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evertally.audit.audited import AUDITED
from evertally.audit.report import Report
from evertally.audit.suite import best
from evertally.audit.verdicts import BROKEN, HOLDS, Verdicts, overall, with_power
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


def shown_power(report: Report) -> str:
    """What a report could have found in a mechanism that loses all it may: "all of it" where the loss is computed.

    >>> import evertally as et
    >>> from evertally.audit import FirstTick, play
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)
    >>> shown_power(play(make, FirstTick(make(et.simulation(0))), trials=200))
    'nothing'
    """
    power = with_power(report).power
    if report.unit == "leak":
        return "nothing" if power == 0 else "a difference"
    return "all of it" if power == math.inf else f"{report.unit} {power:.4g}" if power else "nothing"


def verdicts_of_all(found: Mapping[str, Sequence[Report]]) -> Verdicts:
    """The verdicts of `audit_all`, with those that are known to be without power."""
    expected = {subject.name: subject.without_power for subject in AUDITED if subject.without_power}
    return Verdicts({name: overall(reports) for name, reports in found.items()}, expected=expected)


def markdown(found: Mapping[str, Sequence[Report]], errors: Sequence[str] = ()) -> str:
    """The result of `audit_all` as a document: one line for each mechanism, then all reports; and first what could not
    be audited, because it ended with an error."""
    lines = ["# Audit of every mechanism", "", f"{verdicts_of_all(found).counted()}.", ""]
    if errors:
        lines += ["Ended with an error, and has shown nothing:", "", *(f"- {error}" for error in errors), ""]
    lines += summary(found)
    lines += ["", "## All reports", ""]
    headings = "audit", "adversary", "instance", "claimed", "found", "could have found", "fraction", "verdict", "games"
    for name, reports in found.items():
        lines += [f"### {name}", "", f"| {' | '.join(headings)} | seconds |"]
        lines.append("|---" * (len(headings) + 1) + "|")
        for report in reports:
            fraction = "" if report.unit == "leak" else f"{report.fraction:.3f}"
            why = f": {report.stopped}" if report.method == "not here" else ""
            lines.append(
                f"| {report.method} | {report.adversary} | {report.mechanism} | {shown_claim(report)} | "
                f"{shown_loss(report)}{why} | {shown_power(report)} | {fraction} | {report.verdict} | "
                f"{report.trials or ''} | {report.seconds:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)


def summary(found: Mapping[str, Sequence[Report]]) -> list[str]:
    """One line for each mechanism: claim, tier, proof, which fraction of the claimed loss was found, the verdict."""
    subjects = {subject.name: subject for subject in AUDITED}
    lines = [
        "| mechanism | claim | tier | proof | found by exact law or closed form | found in games | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, reports in found.items():
        subject = subjects[name]
        model = subject.make(simulation(0))
        claim = repr(model.guarantee)
        judged = [report for report in reports if report.aspect in ("loss", "noise") and report.unit != "leak"]
        computed, games = ([report for report in judged if bool(report.trials) is played] for played in (False, True))
        verdict = overall(reports)
        told = f"**{verdict}**" if verdict == BROKEN else verdict
        if verdict != HOLDS and subject.lacks:
            told += f"; {subject.lacks}"
        why = f"; {subject.why}" if subject.why else ""
        short = name.replace(f"{claim}, ", "").replace("=", " ")
        cells = [short, claim, model.exactness, subject.section, _cell(computed) + why, _cell(games), told]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cell(reports: Sequence[Report]) -> str:
    if not reports:
        return "none"
    report = best(reports)
    games = f", {report.trials:,} games" if report.trials else ""
    return f"**{report.fraction:.3f}** of {shown_claim(report)} ({report.method}{games})"
