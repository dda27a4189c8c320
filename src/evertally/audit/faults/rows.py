"""The faults that are played on every mechanism, as rows of an audit; one that cannot be played says why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from evertally.audit.faults import interrupts, replays, restores
from evertally.audit.faults.findings import Found, not_here
from evertally.audit.faults.plays import Subject
from evertally.audit.game import Factory
from evertally.audit.report import Report
from evertally.contract.mechanism import Mechanism

Rows = list[tuple[str, Callable[[], Report]]]
PLACES = {"short": 12, "long": 10_000}  # of each kind at which a call is interrupted

FAULTS = (
    "restored",
    "restored users",
    "erased users",
    "forks and copies",
    "other keys and options",
    "replays",
    "past the horizon",
    "interrupted calls",
    "interrupted restores",
    "two calls at once",
)
_FOREIGN = "an object that is no mechanism of this library has no snapshot that could be restored, copied or replayed"


def fault_audits(factory: Factory, model: Any, effort: Literal["short", "long"] = "short") -> Rows:
    """All rows about state, for a mechanism of any kind: names, and what makes the report of each.

    >>> import evertally as et
    >>> make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=9, mechanism="tree", key=key)
    >>> reports = [run() for _, run in fault_audits(make, make(et.simulation(0)))]
    >>> any(report.verdict == "broken" for report in reports), len(reports)
    (False, 10)
    >>> [report.adversary for report in reports if report.verdict != "holds (tight)"]  # it knows no users
    ['restored users', 'erased users']
    """
    subject, most = Subject(factory, model), PLACES[effort]
    plays: tuple[Callable[[], Found], ...] = (
        partial(restores.restored, subject),
        partial(restores.restored_users, subject),
        partial(restores.erased, subject),
        partial(restores.forked, subject),
        partial(restores.elsewhere, subject),
        partial(replays.replayed, subject),
        partial(replays.past_the_horizon, subject),
        partial(interrupts.interrupted_calls, subject, most),
        partial(interrupts.interrupted_restores, subject, most),
        partial(interrupts.two_at_once, subject, most),
    )
    faults = dict(zip(FAULTS, plays, strict=True))
    if not isinstance(model, Mechanism):
        faults = {"faults": lambda: not_here(_FOREIGN)}
    return [(name, partial(_report, subject, name, fault)) for name, fault in faults.items()]


def _report(subject: Subject, name: str, fault: Callable[[], Found]) -> Report:
    if isinstance(subject.model, Mechanism) and subject.refused:
        return not_here(subject.refused).report(subject.model, name)
    return fault().report(subject.model, name)
