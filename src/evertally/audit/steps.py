"""A part of an audit, and how it is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evertally.audit.report import Aspect, Report
from evertally.audit.verdicts import with_power
from evertally.ranking import choosing_once


@dataclass(frozen=True)
class Step:
    """One part of an audit; `aspect` where the report cannot know what it takes for granted, as those of games."""

    name: str
    run: Callable[[], Report]
    aspect: Aspect | None = None


def run(step: Step) -> Report:
    """Runs one part of an audit, takes the time, and says what games could have shown."""
    started = time.perf_counter()
    with choosing_once():  # attacks make a mechanism under many keys
        report = step.run()
    report = report if step.aspect is None else replace(report, aspect=step.aspect)
    return replace(with_power(report), seconds=time.perf_counter() - started)


def of_aspect(steps: Iterable[Step], aspect: Aspect) -> list[Step]:
    """The same steps, all of which look at one aspect."""
    return [replace(step, aspect=aspect) for step in steps]
