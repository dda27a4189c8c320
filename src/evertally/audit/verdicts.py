"""From the reports of an audit to what it says of a query, and of a whole stream.

A query **holds (tight)** if nothing is broken, and the audit would have seen a breach: some report of the whole way from
events to releases ("loss") is tight, or one of the noise ("noise", which takes the declared change for granted) and one
of that change ("change") are. Reports of a part (the noise of one level, of counts without their labels) say nothing of
the whole, however tight; and state that is kept as it must be ("state") makes no noise large enough. A stream holds if
all its queries do, and the charges that were handed out use up what was promised and no more ("budget").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evertally.audit.power import games_power
from evertally.audit.report import Report, Verdict

HOLDS: Verdict = "holds (tight)"
NO_POWER: Verdict = "no power here"
BROKEN: Verdict = "broken"


def with_power(report: Report) -> Report:
    """A report of games, with the most that so many of them could have shown; others as they are.

    >>> import evertally as et
    >>> from evertally.audit import FirstTick, play
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=key)
    >>> report = with_power(play(make, FirstTick(make(et.simulation(0))), trials=200))
    >>> report.passed, report.power, report.verdict  # two hundred games show nothing, whoever plays them
    (True, 0.0, 'no power here')
    """
    if not report.trials or report.power != float("inf"):
        return report
    facts = report.method, report.unit, report.trials, report.claimed, report.delta, report.error
    return replace(report, power=games_power(*facts))


def overall(reports: Iterable[Report]) -> Verdict:
    """The verdict of a query, from all its reports.

    >>> import evertally as et
    >>> from evertally.audit import audit_mechanism, overall
    >>> make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=16, mechanism="tree", key=key)
    >>> reports = audit_mechanism(make)
    >>> overall(reports), overall(report for report in reports if report.aspect == "noise")
    ('holds (tight)', 'no power here')
    """
    reports = list(reports)
    if not all(report.passed for report in reports):
        return BROKEN
    tight = {report.aspect for report in reports if _decides(report) and report.verdict == HOLDS}
    return HOLDS if "loss" in tight or {"noise", "change"} <= tight else NO_POWER


def _decides(report: Report) -> bool:
    """Whether a report is about all that a query loses, or all that an event changes; not about a part of it."""
    return report.is_loss or report.aspect == "change" or (report.aspect == "loss" and report.unit == "leak")


def missing(reports: Sequence[Report]) -> str:
    """What a query lacks that has no power, in a few words: for whoever wants to know where to look.

    >>> missing([])
    'neither the noise nor the change of an event was audited'
    """
    best = {
        aspect: max((report.fraction for report in reports if _decides(report) and report.aspect == aspect), default=-1)
        for aspect in ("loss", "noise", "change")
    }
    if best["loss"] >= 0 and best["noise"] < 0:
        return f"the largest loss that was found is {best['loss']:.2f} of the claim"
    if best["noise"] < 0:
        return "neither the noise nor the change of an event was audited" if best["change"] < 0 else "no noise was audited"
    if best["change"] < 0:
        return f"the noise ({best['noise']:.2f} of the claim) was audited, what an event changes was not"
    return f"{best['noise']:.2f} of the claim was found in the noise, {best['change']:.2f} of the declared change in events"


@dataclass(frozen=True)
class Verdicts:
    """What an audit says of each of its subjects, and of a stream whether its budget was looked at.

    `expected` are subjects that are known to be without power, each with the reason: they are counted apart.
    """

    of: Mapping[str, Verdict]
    budget: Verdict | None = None  # None: there is no stream
    expected: Mapping[str, str] | None = None

    def named(self, verdict: Verdict) -> list[str]:
        """The subjects with this verdict."""
        return [name for name, found in self.of.items() if found == verdict]

    @property
    def unexpected(self) -> list[str]:
        """The subjects that the audit had no power over, and should have had."""
        return [name for name in self.named(NO_POWER) if name not in (self.expected or {})]

    @property
    def whole(self) -> Verdict:
        """Of everything together.

        >>> Verdicts({"a": "holds (tight)", "b": "no power here"}).whole
        'no power here'
        >>> Verdicts({"a": "holds (tight)", "b": "no power here"}, expected={"b": "it shows less"}).whole
        'holds (tight)'
        """
        if BROKEN in (*self.of.values(), self.budget):
            return BROKEN
        return NO_POWER if self.unexpected or self.budget == NO_POWER else HOLDS


def budget_verdict(reports: Iterable[Report]) -> Verdict:
    """Whether what was handed out was compared with what was promised: over all reports of a stream."""
    found = [report for report in reports if report.aspect == "budget"]
    if not all(report.passed for report in found):
        return BROKEN
    return HOLDS if any(report.verdict == HOLDS for report in found) else NO_POWER
