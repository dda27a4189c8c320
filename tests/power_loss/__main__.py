"""`python tests/power_loss`: a power cut after every call that moves something to the disk, and again after such a cut.

Prints what it tried; fails if anything does not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from cuts import NEW, Recording, wrong_after


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/power_loss", description=__doc__)
    parser.add_argument("--several", type=int, default=4, help="random losses at each call, beside the five plain ones")
    parser.add_argument("--again", type=int, default=3, help="after how many of the cuts everything is tried again")
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance, wrong = random.Random(arguments.seed), 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        starts = [NEW]
        for number in range(arguments.again + 1):
            began, before = time.monotonic(), starts[number]
            recording, tried = Recording(Path(folder) / str(number), before), []
            for cut in recording.cuts(range(1, len(recording.calls) + 1, arguments.every), arguments.several):
                tried.append(cut)
                for difference in wrong_after(cut, recording, Path(folder) / "after"):
                    print(f"{cut.name}: {difference}", flush=True)
                    wrong += 1
            seconds = time.monotonic() - began
            print(f"{before.name}: {len(recording.calls)} calls, {len(tried)} disks, {seconds:.0f} seconds", flush=True)
            if number == 0:
                starts += chance.sample([cut for cut in tried if cut.accepted < 3], arguments.again)
    print(f"differences {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
