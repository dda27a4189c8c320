"""From the reports of an audit to what it says of a query, and of a whole stream.

A query **holds (tight)** if nothing is broken, and the audit would have seen a breach: some report of the whole way
from events to releases ("loss") is tight, or one of the noise ("noise", which takes the declared change for granted)
and one of that change ("change") are. Reports of a part (their units say so: "epsilon of H", "mu of counts") say
nothing of the whole, however tight; and state that is kept as it must be ("state") makes no noise large enough. A
stream holds if all its queries do, and the charges that were handed out use up what was promised, no more ("budget").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    # Chance may show a little more than is to be expected, and what was found could be found.
    return replace(report, power=max(games_power(*facts), report.audited if report.passed else 0.0))


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
    if {report.aspect for report in reports} == {"state"}:  # a service is asked for nothing else
        return HOLDS if all(report.verdict == HOLDS for report in reports) else NO_POWER
    tight = {report.aspect for report in reports if _decides(report) and report.verdict == HOLDS}
    return HOLDS if "loss" in tight or {"noise", "change"} <= tight else NO_POWER


def _decides(report: Report) -> bool:
    """Whether a report is about all that a query loses, or all that an event changes; not about a part of it."""
    return report.aspect in ("loss", "noise", "change") and " of " not in report.unit


def missing(reports: Sequence[Report]) -> str:
    """What a query lacks that has no power, in a few words: for whoever wants to know where to look.

    >>> missing([])
    'nothing of it was audited'
    """
    best: dict[str, float] = {}
    for report in filter(_decides, reports):
        best[report.aspect] = max(best.get(report.aspect, 0.0), report.fraction)
    words = {"loss": "the loss", "noise": "the noise, taken alone,", "change": "the declared change"}
    found = [f"{best[aspect]:.2f} of {told}" for aspect, told in words.items() if aspect in best]
    return f"{' and '.join(found)} was found" if found else "nothing of it was audited"


def of_stream(found: Mapping[str, Sequence[Report]], queries: Iterable[str]) -> Verdict:
    """The verdict of what all queries of a stream have in common: its budget, and games of all of them at once."""
    everything = [report for reports in found.values() for report in reports]
    common = [report for name in set(found) - set(queries) for report in found[name]]
    budget = [report for report in everything if report.aspect == "budget"]
    if not all(report.passed for report in (*common, *budget)):
        return BROKEN
    return HOLDS if any(report.verdict == HOLDS for report in budget) else NO_POWER


@dataclass(frozen=True)
class Verdicts:
    """What an audit says of each of its subjects, and of the stream that they are the queries of, if they are.

    `expected` are subjects that are known to be without power, each with the reason: they do not decide.
    """

    of: Mapping[str, Verdict]
    stream: Verdict | None = None
    expected: Mapping[str, str] = field(default_factory=dict)

    def named(self, verdict: Verdict) -> list[str]:
        """The subjects with this verdict."""
        return [name for name, found in self.of.items() if found == verdict]

    @property
    def unexpected(self) -> list[str]:
        """The subjects that the audit had no power over, and should have had."""
        return [name for name in self.named(NO_POWER) if not self.expected.get(name)]

    @property
    def whole(self) -> Verdict:
        """Of everything together.

        >>> Verdicts({"a": "holds (tight)", "b": "no power here"}).whole
        'no power here'
        >>> Verdicts({"a": "holds (tight)", "b": "no power here"}, expected={"b": "it shows less"}).whole
        'holds (tight)'
        """
        if BROKEN in (*self.of.values(), self.stream):
            return BROKEN
        return NO_POWER if self.unexpected or self.stream == NO_POWER else HOLDS

    def counted(self) -> str:
        """How many there are of each.

        >>> Verdicts({"a": "holds (tight)", "b": "no power here"}).counted()
        '1 holds (tight), 1 no power here, 0 broken'
        """
        holds, without, broken = (len(self.named(verdict)) for verdict in (HOLDS, NO_POWER, BROKEN))
        return f"{holds} hold{'s' if holds == 1 else ''} (tight), {without} no power here, {broken} broken"
