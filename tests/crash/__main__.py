"""`python tests/crash --kills 1000`: the long campaigns. Prints what it measured; fails if anything differed.

A campaign is over after some kills and the next begins anew, so that each kill costs the same: at every kill files and
clients are looked at, and in the end the whole stream is played again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # what all tests share

from crash_stream import everything, of_users, on_the_wall
from driver import AIMS, Campaign, Report
from nursery import Nursery

AT_ONCE = 50  # kills of one campaign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="kill -9 of a service under load, over all campaigns")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance, wrong = random.Random(arguments.seed), 0
    with Nursery() as nursery:
        fourth = arguments.kills // 4
        for name, text, kills in (
            ("ticks on request, a query of every kind, capped users", everything, arguments.kills - 2 * fourth),
            ("ticks on request, users without a cap", of_users, fourth),
            ("ticks on the wall clock", on_the_wall, fourth),
        ):
            report = Report()
            while report.kills < kills and not report.differences:
                report.add(campaign(nursery, text, min(AT_ONCE, kills - report.kills), chance))
            show(name, report)
            wrong += len(report.differences)
    return 1 if wrong else 0


def campaign(nursery: Nursery, text: Callable[[str], str], kills: int, chance: random.Random) -> Report:
    """One stream, killed so often."""
    with tempfile.TemporaryDirectory() as folder:
        running = Campaign(nursery, Path(folder), text, chance.randrange(2**32))
        try:
            running.begin()
            while running.report.kills < kills:
                running.kill(chance.choice(AIMS))
            return running.finish()
        except AssertionError as error:  # it does not start again, or does not answer
            running.report.differences.append(str(error))
            running.abandon()
            return running.report


def show(name: str, report: Report) -> None:
    print(f"\n{name}")
    print(f"  kills {report.kills}, starts {report.starts}, {report.seconds:.0f} seconds")
    print(f"  batches {report.batches} ({report.events} events), sent again {report.retries} times")
    print(f"  ticks {report.ticks}, each compared in the release log, three outputs and the hash chain, and in")
    print(f"    {report.live_events} live events, {report.answers} answers, {report.deliveries} deliveries")
    for title, counts in (("aimed at", report.aims), ("the kill came", report.phases)):
        print(f"  {title}: " + ", ".join(f"{what} {count}" for what, count in counts.most_common()))
    print(f"  differences {len(report.differences)}", flush=True)
    for difference in report.differences[:20]:
        print(f"    {difference}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
