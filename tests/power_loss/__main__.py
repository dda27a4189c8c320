"""`python tests/power_loss`: a power cut after every call that moves something to the disk. Fails if anything does not hold."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cuts import Recording, wrong_after


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/power_loss", description=__doc__)
    parser.add_argument("--several", type=int, default=4, help="random losses at each call, beside the four plain ones")
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    arguments = parser.parse_args()
    memory, began = Path("/dev/shm"), time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        recording = Recording(Path(folder))
        tried, wrong = 0, Counter[str]()
        for cut in recording.cuts(range(1, len(recording.calls) + 1, arguments.every), arguments.several):
            tried += 1
            for difference in wrong_after(cut, recording, Path(folder) / "after"):
                wrong[difference] += 1
                if wrong[difference] <= 3:
                    print(f"{cut.name}: {difference}", flush=True)
    print(f"{len(recording.calls)} calls, {tried} different disks, {time.monotonic() - began:.0f} seconds")
    for difference, count in wrong.most_common():
        print(f"  {count} times: {difference}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
