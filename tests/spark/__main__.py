"""`python tests/spark --kills 100`: kills of a live stream on Spark, at length. Prints what it measured; fails if
anything differed.

A campaign is over after some kills and the next begins anew; after each kill all that is released is compared with one
process, and all that lay in root, home and public with what lies there then.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # what all tests share

from apart import Driver
from campaign import SIZES, Report, Size, run_long

AT_ONCE = 10  # kills of one campaign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/spark", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="of drivers and of Python workers, over all campaigns")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument(
        "--size", choices=SIZES, default="small", help="of the stream; large: 10^6 columns, 10^6 events a tick"
    )
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="kills of one campaign, about as many ticks")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no campaign begins after so many")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance, began, kills, wrong = random.Random(arguments.seed), time.monotonic(), 0, 0
    while kills < arguments.kills and not wrong and time.monotonic() - began < 60 * arguments.minutes:
        report = campaign(SIZES[arguments.size], min(arguments.at_once, arguments.kills - kills), chance)
        kills += sum(report.kills.values())
        wrong += len(report.differences)
        show(report)
    print(f"{kills} kills in {time.monotonic() - began:.0f} seconds, {wrong} differences", flush=True)
    return 1 if wrong else 0


def campaign(size: Size, kills: int, chance: random.Random) -> Report:
    """One stream, killed so often."""
    started: list[Driver] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def start(script: Path, *arguments: object, name: str) -> Driver:
            started.append(Driver(script, arguments, folder / f"{name}.log", {}))
            return started[-1]

        try:
            return run_long(folder, start, size, kills, chance)
        finally:
            for driver in started:
                driver.kill()


def show(report: Report) -> None:
    print(f"\nkills: {', '.join(f'{what} {count}' for what, count in Counter(report.kills).most_common())}")
    print(f"  starts {report.starts}, batches {report.batches}, ticks {report.ticks}")
    print(f"  numbers compared {report.numbers}, files looked at {report.files_seen}")
    print(f"  differences {len(report.differences)}", flush=True)
    for difference in report.differences[:20]:
        print(f"    {difference}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
