"""What it costs to protect users: golden factors of users-and-domains, by the running code.

    python -m benchmarks.users [--monte-carlo] [--short] [--out FOLDER]

Factors are standard deviations in units of 1/sqrt(2 rho), of the widest number that a mechanism releases.

* UD: the specification's figure; formula: what the mechanism states of itself. Where the library looks for a better
  parameter than the specification's, the specification's own is computed too, and that is what must agree within 1 %.
* Group: a counter of single events whose noise is multiplied by how often a user can change what is counted. Anew:
  independent noise for every number, under composition. Both are made by the same library, in the same run.
* Measured: the mechanism itself under many simulation keys, on a stream of users, minus what it releases without noise;
  a mean of squares over the ticks of a shorter horizon, in units of the mechanism's own standard deviation, so that 1
  is right. "Agrees" is |z| <= 4; group and anew are measured the same way. The exit code says whether all agree.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table, print_tables
from benchmarks.user_cases import RHO, Case, cases, factor

import evertally as et
from evertally.noise import ZeroNoise

WITHIN, AGREES = 0.01, 4.0
NUMBERS = 8_000  # of one case: keys times ticks
COLUMNS = 2_000


@dataclass(frozen=True)
class Ratio:
    """The mean square of noise over its stated variance, with a standard error."""

    value: float
    error: float

    @property
    def z(self) -> float:
        return (self.value - 1) / self.error

    @property
    def agrees(self) -> bool:
        return abs(self.z) <= AGREES

    def __str__(self) -> str:
        return f"{math.sqrt(self.value):.3f} ± {self.error / 2:.3f}"  # of the deviation, not of its square


def counter(T: int, weight: int = 1, rho: float = RHO) -> Any:
    """Of events of a weight: what a user of so many events is to group privacy."""
    return et.VectorCounter(
        COLUMNS, max_weight=weight, guarantee=et.ZCDP(rho), horizon=T, mechanism="sqrt", key=et.simulation(0)
    )


@cache
def group_factor(T: int, times: int) -> float:
    return factor(counter(T, times))


@cache
def anew_factor(numbers: int) -> float:
    return factor(counter(1, rho=RHO / numbers))


@dataclass(frozen=True)
class Row:
    """One case: the factors, and what was measured."""

    case: Case
    formula: float
    own: float
    measured: Ratio | None = None

    @property
    def group(self) -> float | None:
        return (
            None
            if self.case.group is None
            else group_factor(1 if self.case.once else self.case.horizon, self.case.group)
        )

    @property
    def anew(self) -> float | None:
        return None if self.case.anew is None else anew_factor(self.case.anew)

    @property
    def agrees(self) -> bool:
        near = abs(self.own / self.case.golden - 1) <= WITHIN and self.formula <= self.case.golden * (1 + WITHIN)
        return near and (self.measured is None or self.measured.agrees)

    def cells(self) -> list[str]:
        golden = f"{self.case.golden:.4g}"
        found = [self.case.section, self.case.what, golden, f"{self.formula:.4g}", f"{self.own / self.case.golden:.4f}"]
        for other in (self.group, self.anew):
            found += ["", ""] if other is None else [f"{other:.4g}", f"{other / self.formula:.2f}"]
        return [*found, "not measured" if self.measured is None else str(self.measured), "yes" if self.agrees else "NO"]


def predicted(case: Case) -> Row:
    formula = factor(case.made(et.simulation(0)))
    return Row(case, formula, case.by_golden() if case.by_golden else formula)


def stepped(made: Any, tick: int) -> Any:
    """One tick of a stream in which users come, stay away and return."""
    users = [f"user {i}" for i in range(6) if (tick >> i) % 2]
    if isinstance(made, et.PresentItems):
        return made.step_events(users, deleted=[f"user {i}" for i in range(6) if not (tick >> i) % 2])
    if isinstance(made, et.ValueQuantile):
        return made.step([float(len(user)) for user in users])
    if isinstance(made, et.CountSketch):
        return made.step_events(users)
    if isinstance(made, et.Counter):
        return made.step_events([1] * len(users), users=users)
    if getattr(made, "by", None):
        return made.step_events([f"category {i}" for i in range(len(users))], users=users)
    return made.step_events(users)


def numbers(made: Any, release: Any, tick: int) -> tuple[list[float], float]:
    """What a tick released, flat, and the standard deviation that each number states."""
    if isinstance(made, et.ValueQuantile):
        found = release.at_most(release.cdf().edges[len(release.cdf().edges) // 2])
        return [found.value], float(found.stddev or 0.0)
    if isinstance(made, et.CountSketch):
        label = made.estimate("a label")
        return [label.value], float(label.stddev or 0.0)
    return list(flat(release.value)), float(made.stddev(tick) or 0.0)


def flat(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | np.ndarray):
        for each in value:
            yield from flat(each)
    else:
        yield float(value)


def path(case: Case, key: Any) -> list[tuple[list[float], float]]:
    made = case.made(key, case.played)
    return [numbers(made, stepped(made, tick), tick) for tick in range(1, made.horizon + 1)]


def measured(case: Case, wanted: int = NUMBERS) -> Ratio:
    """Each key is a replica: its mean of squares, over ticks and columns, in units of the stated variance."""
    exact = path(case, ZeroNoise())
    squares = []
    for seed in range(max(100, min(wanted, wanted // len(exact)))):
        noisy = path(case, et.simulation(seed))
        each = [
            ((value - true) / deviation) ** 2
            for (values, deviation), (truths, _) in zip(noisy, exact, strict=True)
            for value, true in zip(values, truths, strict=True)
            if deviation
        ]
        squares.append(sum(each) / len(each))
    return Ratio(float(np.mean(squares)), float(np.std(squares, ddof=1) / math.sqrt(len(squares))))


def columns_measured(made: Any) -> Ratio:
    """Of a vector counter: each column is a replica, at the last tick."""
    T = made.horizon
    last = made.run(np.zeros((T, COLUMNS), dtype=np.int64))[-1]
    squares = (last / made.stddev(T)) ** 2
    return Ratio(float(squares.mean()), float(squares.std(ddof=1) / math.sqrt(COLUMNS)))


def others_measured(rows: list[Row]) -> list[tuple[str, Ratio]]:
    """Group privacy and noise anew, as far as they are compared with."""
    groups = sorted(
        {(1 if row.case.once else min(row.case.horizon, 365), row.case.group) for row in rows if row.case.group}
    )
    fresh = sorted({row.case.anew for row in rows if row.case.anew})
    found = [(f"group of {k}, T = {T}", columns_measured(counter(T, k))) for T, k in groups]
    return found + [(f"{n:,} numbers anew", columns_measured(counter(1, rho=RHO / n))) for n in fresh]


HEAD = (
    "UD",
    "what",
    "its figure",
    "factor",
    "formula/UD",
    "group",
    "gain",
    "anew",
    "gain",
    "measured/stated",
    "agrees",
)


def table(rows: list[Row]) -> Table:
    note = "standard deviation in 1/sqrt(2 rho); gain: how many times less noise than that"
    return Table("What it costs to protect users", note, HEAD, [row.cells() for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--monte-carlo", action="store_true", help="on the running mechanisms too: ten minutes")
    parser.add_argument("--short", action="store_true", help="a tenth of the numbers")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the results")
    options = parser.parse_args()
    rows: list[Row] = []
    fine = True
    for case in cases():
        row = predicted(case)
        if options.monte_carlo and case.measurable:
            found = measured(case, NUMBERS // 10 if options.short else NUMBERS)
            row = Row(case, row.formula, row.own, found)
            print(case.what, found, "" if found.agrees else "DISAGREES", flush=True)
        rows.append(row)
    tables = [table(rows)]
    if options.monte_carlo:
        others = others_measured(rows)
        cells = [(what, str(found), "yes" if found.agrees else "NO") for what, found in others]
        tables.append(Table("The others", "measured/stated", ("what", "measured/stated", "agrees"), cells))
        fine = all(found.agrees for _, found in others)
    print_tables(tables)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / ".gitignore").write_text("*\n")
    (options.out / "users.md").write_text("\n".join(table.markdown() for table in tables))
    print(f"written: {options.out}/users.md")
    return 0 if fine and all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
