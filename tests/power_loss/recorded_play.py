"""A play that says what the outside has seen of it, into a file: run it under `disk_log.c`. Not a test.

What it says: "accept 2" when the batches of tick 2 are acknowledged, "tick 2" when tick 2 may be published.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "crash")]

import plays


def main(spec_file: str, observed: str) -> None:
    with open(observed, "w", buffering=1) as outside:

        @contextmanager
        def told(part: str) -> Iterator[None]:
            yield
            outside.write(part + "\n")

        plays.play(spec_file, told)
        plays.play(spec_file, told)  # a second start, with nothing left to do


if __name__ == "__main__":
    main(*sys.argv[1:])
