"""The experiments of factorization-counting 14.4 in one command, on the product's own mechanisms.

    python -m benchmarks.constant_matters [--quick] [--also PROCESS] [--out DIR]

Figures 1 to 4 and Table 2 of Fichtenberger, Henzinger and Upadhyay (ICML 2023), where signal equals noise, the bounds
of the theorems, and the standard deviation at t = T: `Counter` and `Histogram` under simulation keys, by the
square-root process, the binary tree and the optimal counter ("bank"), each number beside that of the specification and
of the paper. Three minutes; `--quick`, on short streams, a few seconds. `--also honaker` (or any other process with
Gaussian noise for a known horizon) adds its rows to all of it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.constant_matters import counting, plots, published, rows, signal_rows, top_item
from benchmarks.constant_matters.counting import FURTHER, PROCESSES, Pooled, Process, Runs
from benchmarks.constant_matters.rows import Section
from benchmarks.constant_matters.top_item import Top


@dataclass(frozen=True)
class Size:
    """How long and how often everything is played."""

    horizon: int = published.T
    figure_1: int = 300  # runs
    density: int = 120  # runs for each
    top: int = 200
    top_horizon: int = top_item.HORIZON
    exponents: tuple[float, ...] = top_item.EXPONENTS


QUICK = Size(2**10, 60, 20, 5, 2**8, (1.0,))
EPSILONS = (0.8, 0.5)


@dataclass(frozen=True)
class Results:
    """All that was played."""

    pools: list[Pooled]
    played: list[Runs]  # Figure 3, by density
    tops: list[Top]

    def sections(self) -> list[Section]:
        return [
            rows.noise((*EPSILONS, top_item.EPSILON)),
            rows.figure_1(self.pools),
            rows.figure_2(),
            rows.last_std(self.pools, EPSILONS),
            rows.theorems(self.pools, EPSILONS),
            signal_rows.figure_3(self.played),
            signal_rows.table_2(self.played),
            signal_rows.meanings(self.played),
            signal_rows.crossing(self.played),
            signal_rows.figure_4(self.tops),
        ]


def measure(size: Size, processes: tuple[Process, ...] = PROCESSES) -> Results:
    """Plays everything. Every stream has its own seed; the processes meet the same streams."""
    played = [
        counting.play(process, EPSILONS[1], density, size.horizon, size.density, 10_000 * (i + 1))
        for i, density in enumerate(published.DENSITIES)
        for process in processes
    ]
    empty = [counting.play(process, EPSILONS[0], 0.0, size.horizon, size.figure_1, 0) for process in processes]
    pools = [counting.pool([one, *(runs for runs in played if runs.process is one.process)]) for one in empty]
    units = published.multipliers(top_item.EPSILON)
    tops = [
        top_item.play(process, exponent, noise, units[noise], size.top_horizon, size.top, 100_000 * (i + 1))
        for i, exponent in enumerate(size.exponents)
        for noise in ("product", "C")
        for process in processes
    ]
    return Results(pools, played, tops)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constant_matters", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short streams, a few seconds")
    parser.add_argument("--also", action="append", default=[], metavar="PROCESS", help="another process, by its name")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "out", help="directory of the report")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    further = tuple(FURTHER.get(name, Process(name, name)) for name in options.also)
    results = measure(QUICK if options.quick else Size(), PROCESSES + further)
    tables = [section.table() for section in results.sections()]
    for table in tables:
        print(table.text())
    (options.out / "constant-matters.md").write_text("\n".join(table.markdown() for table in tables))
    plots.errors(results.pools, options.out / "constant-matters-error.png")
    plots.streams(results.played, options.out / "constant-matters-streams.png")
    plots.top(results.tops, options.out / "constant-matters-top.png")
    print(f"written: {options.out}/constant-matters.md, -error.png, -streams.png, -top.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
