"""Counting processes beside the least error that there is: by formula, and measured on the running code.

    python -m benchmarks.optimal_frontier [--short]

Factors are standard deviations, per 1/sqrt(2 rho) for Gaussian noise, per 1/epsilon for Laplace noise.

* Formula: what each process says of itself (`spread`, tick by tick), before it is rounded to integers.
* Measured: columns of the real process, run by `advance` from tick 1 to T under simulation keys; each column is a
  replica. "Worst" is measured at the tick where the formula is largest: the largest of many estimates would be biased.
* z: the measured variance minus that of the formula (rounding included), in standard errors: of the worst tick, of the
  mean over all ticks, and of eight ticks between, the one that is furthest off. "Agrees" is |z| <= 4 for all of them.
* Floor: gamma_2(T) for the worst tick and gamma_F(T) for the root mean square, certified for all Gaussian noise of a
  fixed linear recipe that is told T. For independent Laplace numbers sqrt(2) times that: an l1 norm is at least the l2
  norm, and a number of scale b has variance 2 b^2. Nothing is known to come near it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.report import Table, print_tables
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import PROCESSES, Setting
from evertally.noise import Source, ZeroNoise, simulation
from evertally.pictures import in_style
from evertally.privacy import ZCDP, Change, PureDP
from evertally.theory.frontier import optimal_factor, optimal_rms_factor

FloatArray = NDArray[np.float64]

UNIT = 10  # 1/sqrt(2 rho) and 1/epsilon: rounding to integers adds 1/12, less than 0.1 % of any variance here
GAUSS, PURE = ZCDP(1 / (2 * UNIT**2)), PureDP(1 / UNIT)
AGREES = 4.0  # standard errors

# Columns for each horizon: the longer, the fewer. Not fewer than these: means of squares along paths are skewed, and a
# hundred of them can have a standard error that is too small by half.
COLUMNS = {2**8: 10_000, 2**10: 5_000, 2**12: 2_000, 2**14: 1_000, 2**16: 500, 2**18: 512, 2**20: 256}
_PIECE = 2**20  # numbers looked at together
_AHEAD = 2**24  # numbers of one "sqrt" process, which makes all of them ahead


@dataclass(frozen=True)
class Subject:
    """A process by its name in the library."""

    mechanism: str
    pure: bool = False
    told: bool = True  # whether it is told T

    def make(self, T: int, columns: int, source: Source) -> NoiseProcess:
        setting = Setting(Change(1, 1, 1), T if self.told else None, columns, 2**40, "exact")
        return PROCESSES[self.mechanism].build(PURE if self.pure else GAUSS, setting, source)


ALL = (
    *map(Subject, ("bank", "sqrt", "honaker", "tree")),
    *(Subject(name, told=False) for name in ("bank-open", "epoch-tree")),
    *(Subject(name, pure=True) for name in ("pure-blocks", "tree")),
    *(Subject(name, pure=True, told=False) for name in ("epoch-blocks", "epoch-tree")),
)
SUBJECTS = tuple(subject for subject in ALL if subject.mechanism in PROCESSES)


@dataclass(frozen=True)
class Predicted:
    """What a process says of its noise at the ticks 1..T, in its unit."""

    variances: FloatArray  # before rounding
    rounded: FloatArray  # of what is released
    excess: FloatArray  # a bound on the excess kurtosis

    @property
    def worst_tick(self) -> int:
        return int(self.variances.argmax()) + 1

    @property
    def worst(self) -> float:
        return math.sqrt(self.variances.max())

    @property
    def rms(self) -> float:
        return math.sqrt(self.variances.mean())


def predicted(subject: Subject, T: int) -> Predicted:
    process = subject.make(T, 1, ZeroNoise().source())
    table = np.array([_moments(process.spread(t)) for t in range(1, T + 1)])
    return Predicted(table[:, 0] / UNIT**2, table[:, 1] / UNIT**2, table[:, 2])


def _moments(spread: Spread) -> tuple[float, float, float]:
    """The fourth cumulant of a Laplace number of scale b is 12 b^4, so the excess of a sum with weights w is
    3 sum (w b)^4/(sum (w b)^2)^2 <= 3 peak^2/proxy."""
    excess = 3 * spread.peak**2 / spread.proxy if spread.law == "laplace" else 0.0
    return spread.variance, spread.stddev**2, excess


@dataclass(frozen=True)
class Measured:
    """Of many columns: the second moment at every tick, and the mean square of each path; in the unit."""

    columns: int
    squares: FloatArray
    paths: FloatArray


def measured(subject: Subject, T: int, columns: int, seed: int = 0) -> Measured:
    squares, paths = np.zeros(T), []
    done = 0
    while done < columns:
        batch = min(columns - done, max(1, _AHEAD // T) if subject.mechanism == "sqrt" else columns)
        process = subject.make(T, batch, simulation(1000 * seed + len(paths)).source("benchmark"))
        path, piece = np.zeros(batch), max(1, _PIECE // batch)
        for start in range(0, T, piece):
            noise = process.advance(min(piece, T - start)) / UNIT
            squares[start : start + len(noise)] += np.einsum("ij,ij->i", noise, noise)
            path += np.einsum("ij,ij->j", noise, noise)
        paths.append(path / T)
        done += batch
    return Measured(columns, squares / columns, np.concatenate(paths))


@dataclass(frozen=True)
class Row:
    """One process at one horizon, predicted and measured; `*_error` are standard errors of standard deviations."""

    subject: Subject
    T: int
    columns: int
    worst: float
    worst_measured: float
    worst_error: float
    worst_floor: float
    rms: float
    rms_measured: float
    rms_error: float
    rms_floor: float
    z: float

    @property
    def agrees(self) -> bool:
        return abs(self.z) <= AGREES


def compared(subject: Subject, T: int, said: Predicted, found: Measured) -> Row:
    """Standard errors are relative, and taken at the value of the formula: a variance that comes out small must not
    make its own error small."""
    at = np.unique([said.worst_tick, *(max(1, T * i // 8) for i in range(1, 9))]) - 1
    one = np.sqrt((2 + said.excess) / found.columns)  # of the variance at a tick, relative
    z = (found.squares[at] / said.rounded[at] - 1) / one[at]
    mean, whole = said.rounded.mean(), found.paths.mean()
    spread = found.paths.std(ddof=1) / whole / math.sqrt(found.columns)
    of_all = [*z.tolist(), (whole / mean - 1) / spread]
    top = said.worst_tick - 1
    floor = math.sqrt(2) if subject.pure else 1.0
    return Row(
        subject,
        T,
        found.columns,
        said.worst,
        math.sqrt(found.squares[top]),
        said.worst * one[top] / 2,
        floor * optimal_factor(T)[0],
        said.rms,
        math.sqrt(whole),
        said.rms * spread / 2,
        floor * optimal_rms_factor(T)[0],
        max(of_all, key=abs),
    )


def measure(horizons: dict[int, int], subjects: tuple[Subject, ...] = SUBJECTS) -> list[Row]:
    """`horizons`: how many columns for each. Each table is printed as soon as it is complete."""
    found = []
    for pure, told in TITLES:
        group = []
        for subject in subjects:
            if (subject.pure, subject.told) == (pure, told):
                for T, columns in horizons.items():
                    # Keys of its own for each row: without a horizon, equal keys are equal noise.
                    found_here = measured(subject, T, columns, 100 * ALL.index(subject) + T.bit_length())
                    group.append(compared(subject, T, predicted(subject, T), found_here))
        print_tables(tables(group))
        found += group
    return found


TITLES = {
    (False, True): ("Gaussian noise, told T", "1/sqrt(2 rho)", "gamma_2"),
    (False, False): ("Gaussian noise, not told T", "1/sqrt(2 rho)", "gamma_2"),
    (True, True): ("Laplace noise, told T", "1/epsilon", "sqrt 2 gamma_2"),
    (True, False): ("Laplace noise, not told T", "1/epsilon", "sqrt 2 gamma_2"),
}


def tables(rows: list[Row]) -> list[Table]:
    made = []
    for (pure, told), (title, unit, floor) in TITLES.items():
        chosen = [row for row in rows if (row.subject.pure, row.subject.told) == (pure, told)]
        if not chosen:
            continue
        columns = ("process", "T", "worst, formula", "worst, measured", floor, "formula/floor")
        columns += ("rms, formula", "rms, measured", floor.replace("_2", "_F"), "formula/floor", "z", "columns")
        note = f"Standard deviations per {unit}; ± is one standard error. {verdict(chosen)}"
        made.append(Table(title, note, columns, [_cells(row) for row in chosen]))
    return made


def verdict(rows: list[Row]) -> str:
    """Whether what was measured is what the formulas say."""
    off = [f"{row.subject.mechanism} at {_power(row.T)}" for row in rows if not row.agrees]
    if off:
        return f"DISAGREES with the formula, by more than {AGREES:.0f} standard errors: {', '.join(off)}."
    return f"Formula and measurement agree within {AGREES:.0f} standard errors in every row."


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.subject.mechanism,
        _power(row.T),
        f"{row.worst:.4f}",
        f"{row.worst_measured:.3f} ± {row.worst_error:.3f}",
        f"{row.worst_floor:.4f}",
        f"{row.worst / row.worst_floor:.4f}",
        f"{row.rms:.4f}",
        f"{row.rms_measured:.3f} ± {row.rms_error:.3f}",
        f"{row.rms_floor:.4f}",
        f"{row.rms / row.rms_floor:.4f}",
        f"{row.z:+.1f}",
        f"{row.columns}",
    )


_STYLE = {"bank": "C0", "sqrt": "C1", "bank-open": "C2"}


@in_style
def plot(rows: list[Row], path: Path) -> None:
    """Over the floor at every horizon, and over the ticks of the shortest; lines are formulas, points measurements."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    shown = [row for row in rows if not row.subject.pure and row.subject.mechanism in _STYLE]
    for name, colour in _STYLE.items():
        mine = [row for row in shown if row.subject.mechanism == name]
        if not mine:
            continue
        horizons, floors = [row.T for row in mine], np.array([row.worst_floor for row in mine])
        left.plot(horizons, np.array([row.worst for row in mine]) / floors, color=colour, lw=1, label=name)
        # The worst tick is one tick; the mean over all of them is measured far better.
        floors = np.array([row.rms_floor for row in mine])
        left.plot(horizons, np.array([row.rms for row in mine]) / floors, color=colour, lw=1, ls=":")
        points, bars = (np.array([getattr(row, of) for row in mine]) / floors for of in ("rms_measured", "rms_error"))
        left.errorbar(horizons, points, 2 * bars, fmt="o", ms=3, color=colour, capsize=2)
        T = min(horizons)
        variances = predicted(mine[0].subject, T).variances
        right.plot(range(1, T + 1), np.sqrt(variances), color=colour, lw=1, label=name)
    left.axhline(1, color="k", ls="--", lw=1)
    left.set_xscale("log", base=2)
    left.set_xlabel("horizon T, ticks")
    left.set_title(
        "Over the least possible: worst tick (lines),\nroot mean square (dotted; points measured, ± 2 errors)"
    )
    left.set_ylabel("over gamma_2, gamma_F")
    left.legend(fontsize=8, loc="center right")
    if shown:
        T = min(row.T for row in shown)
        right.axhline(optimal_factor(T)[0], color="k", ls="--", lw=1, label="least possible worst")
        right.set_xlabel(f"tick, T = {T}")
        right.set_ylabel("standard deviation, 1/sqrt(2 rho)")
        right.set_ylim(bottom=0)
        right.set_title("At every tick")
        right.legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _power(T: int) -> str:
    return f"2^{T.bit_length() - 1}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="T = 2^8 alone, few columns")
    rows = measure({2**8: 2_000} if parser.parse_args().short else COLUMNS)
    return 0 if all(row.agrees for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
