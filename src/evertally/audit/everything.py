"""The audit of every mechanism of the list: by processes that share the work, and kept as it is done.

What takes long begins first, so that no process is left alone with it at the end, and whatever is done is there at
once: an interruption costs what was under way. A part that ends with an error hides nothing that others found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from evertally.audit import audited
from evertally.audit.kept import Kept
from evertally.audit.report import Progress, Report
from evertally.audit.steps import run
from evertally.audit.suite import SIZES, Effort, plan
from evertally.errors import described


class Done(NamedTuple):
    """One mechanism: what was found, without scores, and what its parts that fell over ended with."""

    reports: list[Report]
    errors: list[str]


@dataclass(frozen=True)
class Everything:
    """What was found of each mechanism, by its name, in the order of the list; which parts ended with an error; how
    many mechanisms were found in a folder, from an earlier call that had been interrupted."""

    reports: dict[str, list[Report]]
    errors: dict[str, list[str]]
    kept: int = 0


def audit_all(
    effort: Effort = "short",
    *,
    seed: int = 0,
    jobs: int = 1,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Everything:
    """Audits every mechanism. `make audit` is the long version; `jobs` processes share the work. What is done is kept
    in the folder `output`, if there is one, and the same call goes on from there."""
    numbers = {subject.name: number for number, subject in enumerate(audited.AUDITED)}
    kept = None if output is None else Kept(output, {"effort": effort, "sizes": repr(SIZES[effort]), "seed": seed})
    earlier = {name: kept.reports(name) for name in numbers} if kept else {}
    found = {name: reports for name, reports in earlier.items() if reports is not None}
    known, errors = len(found), dict[str, list[str]]()
    left = longest_first([name for name in numbers if name not in found], kept.seconds if kept else lambda name: 0.0)
    work = {name: numbers[name] for name in left}
    for count, (name, done) in enumerate(_as_done(work, effort, seed, jobs), start=known + 1):
        found[name] = done.reports
        if done.errors:  # it is not done: the next call tries again
            errors[name] = done.errors
        elif kept:
            kept.keep(name, done.reports)
        if progress:
            progress(name, count, len(numbers))
    return Everything({name: found[name] for name in numbers}, errors, known)


def longest_first(names: Iterable[str], seconds: Callable[[str], float]) -> list[str]:
    """Names by the time that each is expected to take; those that are expected to take the same stay in their order."""
    return sorted(names, key=lambda name: -seconds(name))


def _as_done(work: Mapping[str, int], effort: Effort, seed: int, jobs: int) -> Iterator[tuple[str, Done]]:
    """What is done, when it is; begun in the order of `work`, which is names and numbers in the list."""
    if jobs == 1:
        for name, number in work.items():
            yield name, audited_entry(number, effort, seed)
        return
    # Spawned, not forked: a forked child would inherit compiled code and threads in an unknown state.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        futures = {pool.submit(audited_entry, number, effort, seed): name for name, number in work.items()}
        for future in as_completed(futures):
            yield futures[future], _result(future)
    finally:  # whoever interrupts does not wait for all that has not begun
        pool.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[Done]) -> Done:
    try:
        return future.result()
    except Exception as error:  # the process ended, by a signal or for lack of memory: the others are not its fault
        return Done([], [described(error)])


def audited_entry(number: int, effort: Effort, seed: int) -> Done:
    """The entry of the list with this number, from 0, each part on its own."""
    subject = audited.AUDITED[number]
    reports: list[Report] = []
    errors: list[str] = []
    try:
        steps = plan(subject.make, effort, ticks=subject.ticks, seed=seed)
    except Exception as error:
        return Done([], [f"the plan: {described(error)}"])
    for step in steps:
        try:
            reports.append(replace(run(step), scores=None))
        except Exception as error:
            errors.append(f"{step.name}: {described(error)}")
    return Done(reports, errors)
