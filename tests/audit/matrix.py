"""The kill matrix: every planted bug against every kind of audit. `PYTHONPATH=tests python -m audit.matrix`.

A cell is the number of probes of that family that found the bug ("!" if none did and one broke down on it), the last
column how many were played. The battery was not made for single bugs: a row shows how many ways there are to find a
bug, and a bug that is found in one way only shows where the auditor is thin. Probes that run nothing of what a bug
changes are not played again (`concerned`); of the others the one that must find it, then the quick ones, for
`--seconds` each bug. With `--seconds inf` it takes hours.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, get_args

from audit.bugs import MUTANTS, Mutant
from audit.concerned import affordable, traced
from audit.probes import PROBES, Family

FAMILIES: tuple[Family, ...] = get_args(Family)

_PATIENCE = 60  # seconds of one core for one probe: a bug may also make a loop endless


@dataclass(frozen=True)
class Row:
    """What the whole battery found in one mutant (or in the product, name "")."""

    name: str
    found: dict[str, str]  # probe -> evidence
    broken: dict[str, str]  # probe -> kind of error that stopped it
    seconds: float
    played: int

    def cell(self, family: Family) -> str:
        """The entry of one family."""
        hits = sum(PROBES[name].family == family for name in self.found)
        broke = any(PROBES[name].family == family for name in self.broken)
        return str(hits) if hits else "!" if broke else "."


def judge(name: str, probes: Iterable[str] = ()) -> Row:
    """The battery (or some probes of it) against one planted bug, or against the product if the name is empty.

    >>> judge("sampler drops the sign bit", ["one tick, pure"]).cell("game"), judge("", ["one tick, pure"]).found
    ('1', {})
    """
    patch = next((m.patch for m in MUTANTS if m.name == name), nullcontext)
    found, broken = {}, {}
    start = time.perf_counter()
    names = list(probes) or list(PROBES)
    for probe in names:
        try:
            with patch(), time_limit(_PATIENCE):
                detection = PROBES[probe]()
        except (Exception, TimeIsUp) as error:  # a bug may do anything to a probe that was not made for it
            broken[probe] = type(error).__name__
            continue
        if detection.caught:
            found[probe] = detection.evidence
    return Row(name, found, broken, time.perf_counter() - start, len(names))


class TimeIsUp(BaseException):
    """No probe may catch this."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raises TimeIsUp in the main thread when so much time of a core is used up: what else the machine does is not the
    probe's. No limit where there is no such signal."""

    def over(*_: Any) -> None:
        raise TimeIsUp

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def rows(mutants: Sequence[Mutant], seconds: float) -> Iterator[Row]:
    """The product, then one bug after the other, made on all processors, each in a process of its own: patches hold for
    a whole process, and what a bug leaves in caches would be there for the next one."""
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    afresh = get_context("forkserver")
    afresh.set_forkserver_preload(["audit.bugs", "audit.concerned", "audit.probes"])
    with ProcessPoolExecutor(workers, mp_context=afresh, max_tasks_per_child=1) as pool:
        product = pool.submit(judge, "")
        runs = dict(zip(PROBES, pool.map(traced, PROBES), strict=True))
        yield product.result()
        yield from pool.map(
            judge, [mutant.name for mutant in mutants], [affordable(one, runs, seconds) for one in mutants]
        )


def main() -> int:
    """Prints the matrix; 0 if the product passes every probe and every bug is found."""
    parser = argparse.ArgumentParser(prog="python -m audit.matrix", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of probes that are played on each bug")
    seconds = parser.parse_args().seconds
    width = max(len(mutant.name) for mutant in MUTANTS)
    print(f"{'planted bug':<{width}}  " + "  ".join(FAMILIES) + "  played")
    survivors, alarms = [], []
    caught = dict.fromkeys(FAMILIES, 0)
    for row in rows(MUTANTS, seconds):
        cells = [row.cell(family) for family in FAMILIES]
        line = "  ".join(f"{cell:^{len(family)}}" for cell, family in zip(cells, FAMILIES, strict=True))
        print(f"{row.name or '(the product itself)':<{width}}  {line}  {row.played:>6}", flush=True)
        if not row.name:
            alarms = [*row.found, *row.broken]
            continue
        for family, cell in zip(FAMILIES, cells, strict=True):
            caught[family] += cell.isdigit()
        if not row.found:
            survivors.append(f"{row.name} ({', '.join(f'{probe}: {kind}' for probe, kind in row.broken.items())})")
    counts = ", ".join(f"{family} {number}" for family, number in caught.items())
    print(f"\n{len(MUTANTS)} planted bugs, {len(survivors)} survive; found by {counts}; {len(PROBES)} probes")
    for name in survivors:
        print(f"survives: {name}")
    for name in alarms:
        print(f"false alarm on the product: {name}")
    return int(bool(survivors or alarms))


if __name__ == "__main__":
    raise SystemExit(main())
