"""Streaming selection, reproduced: which radix a tree should have, and who finds the most frequent of 100 items.

    python -m benchmarks.selection [--short] [--out DIR] [--jobs N]

Radix (streaming-selection 3.3, Figure 1 of the paper): the standard deviation of a count's noise, tau L sqrt(r - 1),
for binary trees and for the best radix; and the same measured on the product's own counters at their worst tick.

Zipf (streaming-selection 8, Figure 3 of the paper): one item a tick out of d = 100 by Zipf's law with exponent 1, T =
1000 ticks, top 1. Error at a tick: the released count of the named item against the largest true count. All mechanisms
keep the same 1/(2 tau^2)-zCDP, for streams that are fixed beforehand. Names are shuffled in every trial. `gap`: how far
the named item is behind the largest at the end, without noise. Beside each number stands that of the reference run of
the specification (300 trials, continuous noise). 1000 trials at tau = 1, r = 4, 300 elsewhere.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.formulas import TreeFormula
from benchmarks.report import Table
from numpy.typing import NDArray

import evertally as et
from evertally.bounds.selection import L
from evertally.counting.tree import choose_radix
from evertally.pictures import in_style
from evertally.statistics import StreamingTopK

FloatArray = NDArray[np.float64]

# -- radix -------------------------------------------------------------------------------------------------------------

HORIZONS = (100, 1000, 1024, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
UNIT = 10  # tau: large, so that noise is not blurred by its being integer
MEASURED = {100: 20_000, 1000: 8_000, 10**4: 1_000}  # replicas


@dataclass(frozen=True)
class Radix:
    """A horizon: the best radix by formula, and what it gains. Standard deviations in units of tau."""

    horizon: int
    best: int
    binary: float  # L_2
    formula: float  # L_r sqrt(r - 1)
    worst: float  # sqrt of the largest digit sum times L_r: what the worst tick really has
    measured: float = math.nan
    error: float = math.nan


def formula(T: int, r: int) -> float:
    return L(T, r) * math.sqrt(r - 1)


def radix(T: int, replicas: int = 0) -> Radix:
    """The row of one horizon; with replicas, measured at the worst tick of the product's counter."""
    r = choose_radix(T, "formula", pure=False)
    exact = TreeFormula(T, r)
    found = Radix(T, r, formula(T, 2), formula(T, r), exact.worst)
    if not replicas:
        return found
    counter = et.VectorCounter(
        replicas,
        guarantee=et.ZCDP(1 / (2 * UNIT**2)),
        horizon=T,
        mechanism="tree",
        radix=r,
        key=et.simulation(T),
    )
    tick = exact.worst_tick()
    nothing = et.SparseRows([], [], length=tick, width=replicas)
    measured = float(np.std(counter.run(nothing, at=[tick])[0] / UNIT))
    return Radix(T, r, found.binary, found.formula, found.worst, measured, measured / math.sqrt(2 * replicas))


def radix_table(rows: list[Radix]) -> Table:
    return Table(
        "Radix of the tree",
        "Standard deviation of a count's noise in units of tau. Formula: L sqrt(r - 1), and its ratio to r = 2; worst "
        "tick: with the digit sums that occur up to T; measured: on the product's counter, ± one standard error.",
        ["T", "r = 2", "best r", "L", "formula", "ratio", "worst tick", "measured"],
        [
            (
                f"{row.horizon:,}",
                f"{row.binary:.0f}",
                f"{row.best}",
                f"{L(row.horizon, row.best)}",
                f"{row.formula:.3f}",
                f"{row.formula / row.binary:.3f}",
                f"{row.worst:.3f}",
                "" if math.isnan(row.measured) else f"{row.measured:.3f} ± {row.error:.3f}",
            )
            for row in rows
        ],
    )


@in_style
def plot_radix(rows: list[Radix], path: Path) -> None:
    """Noise over the horizon for several radices and the best, and what the best gains over r = 2."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    horizons = np.unique(np.round(np.logspace(2, 8, 200)).astype(int)).tolist()
    for r in (2, 4, 8, 16):
        axes[0].plot(horizons, [formula(T, r) for T in horizons], lw=1, label=f"r = {r}")
    best = [choose_radix(T, "formula", pure=False) for T in horizons]
    least = [formula(T, r) for T, r in zip(horizons, best, strict=True)]
    axes[0].plot(horizons, least, "k", lw=2, label="best r")
    seen = [row for row in rows if not math.isnan(row.measured)]
    axes[0].errorbar(
        [row.horizon for row in seen],
        [row.measured for row in seen],
        [2 * row.error for row in seen],
        fmt="ro",
        ms=4,
        label="measured, worst tick",
    )
    axes[0].set_ylabel("standard deviation of a count / tau")
    axes[0].legend(fontsize=8)
    ratios = [s / formula(T, 2) for s, T in zip(least, horizons, strict=True)]
    axes[1].plot(horizons, ratios, lw=1)
    axes[1].axhline(float(np.mean(ratios)), color="k", lw=0.8, ls="--", label=f"mean {np.mean(ratios):.3f}")
    axes[1].set_ylim(0.7, 1.02)
    axes[1].set_ylabel("best r against r = 2")
    axes[1].legend(fontsize=8)
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xlabel("horizon T, ticks")
    figure.savefig(path, dpi=110)
    plt.close(figure)


# -- Zipf --------------------------------------------------------------------------------------------------------------

D, T = 100, 1000


@dataclass(frozen=True)
class Way:
    """A mechanism with its options, and what the reference run found: (mean over ticks, last tick)."""

    name: str
    options: dict[str, Any]
    reference: tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """One privacy level and radix."""

    tau: float
    radix: int
    trials: int
    ways: tuple[Way, ...]

    @property
    def name(self) -> str:
        return f"tau = {self.tau}, r = {self.radix}"

    @property
    def guarantee(self) -> et.ZCDP:
        return et.ZCDP(1 / (2 * self.tau**2), adversary="oblivious")


def sparse(s: int, eta: int, reference: tuple[float, float]) -> Way:
    name = f"sparseGumb s = {s}, eta = {eta}"
    return Way(name, {"mechanism": "sparse-gumbel", "switches": s, "eta": eta}, reference)


def ways(base: tuple[float, float], meta: tuple[float, float], *more: Way) -> tuple[Way, ...]:
    return Way("KnownBase", {"mechanism": "tree"}, base), Way("MetaAlgo", {"mechanism": "meta"}, meta), *more


PANELS = (
    Panel(
        1,
        4,
        1000,
        ways(
            (72.7, 43.9),
            (9.2, 14.2),
            sparse(1, 0, (92.1, 181.8)),
            sparse(1, 100, (37.3, 62.9)),
            sparse(2, 200, (49.7, 25.1)),
            sparse(5, 200, (30.6, 36.4)),
            sparse(10, 200, (54.6, 83.8)),
            sparse(25, 400, (60.3, 71.1)),
            sparse(5, 100, (91.5, 178)),
        ),
    ),
    Panel(
        0.3,
        4,
        300,
        ways(
            (15.8, 15.4),
            (4.1, 5.7),
            sparse(1, 0, (86.6, 173.4)),
            sparse(1, 50, (8.3, 6.0)),
            sparse(2, 50, (8.0, 7.0)),
            sparse(5, 50, (10.0, 12.7)),
            sparse(10, 100, (16.4, 13.5)),
            sparse(5, 20, (81.7, 162)),
        ),
    ),
    Panel(
        1,
        2,
        300,
        ways(
            (92.4, 45.5),
            (9.2, 13.7),
            sparse(1, 0, (91.8, 180.3)),
            sparse(1, 100, (41.9, 68.5)),
            sparse(2, 200, (48.1, 30.4)),
            sparse(5, 200, (34.8, 39.7)),
            sparse(10, 200, (65.5, 104.7)),
            sparse(25, 400, (66.9, 69.9)),
        ),
    ),
    Panel(
        0.1,
        4,
        300,
        ways(
            (4.9, 5.4),
            (2.9, 5.1),
            sparse(1, 0, (72.7, 145.6)),
            sparse(1, 20, (2.9, 3.3)),
            sparse(2, 20, (2.6, 2.3)),
            sparse(5, 20, (3.2, 3.4)),
            sparse(10, 50, (7.3, 4.7)),
        ),
    ),
)


@dataclass(frozen=True)
class Zipf:
    """Mean errors of one mechanism; `*_error` are standard errors."""

    panel: str
    way: str
    trials: int
    mean: float
    mean_error: float
    last: float
    last_error: float
    gap: float
    reference: tuple[float, float]
    profile: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))


def stream(seed: int) -> NDArray[np.int64]:
    """One item a tick by Zipf's law; which name stands for which rank is drawn too, because ties go by name."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, D + 1)
    rows = np.zeros((T, D), dtype=np.int64)
    rows[np.arange(T), rng.permutation(D)[rng.choice(D, T, p=chances / chances.sum())]] = 1
    return rows


def trials(panel: Panel, way: Way, seeds: range) -> tuple[FloatArray, FloatArray]:
    """Errors of every tick, and the gap at the last one, of one trial for each seed."""
    errors, gaps = np.empty((len(seeds), T)), np.empty(len(seeds))
    for i, seed in enumerate(seeds):
        top = StreamingTopK(
            1,
            columns=D,
            guarantee=panel.guarantee,
            horizon=T,
            radix=panel.radix,
            key=et.simulation(seed),
            **way.options,
        )
        counts = np.cumsum(stream(seed), axis=0)
        released = [next(iter(value.items())) for value in top.run(stream(seed))]
        errors[i] = np.abs(np.array([count for _, count in released]) - counts.max(axis=1))
        gaps[i] = counts[-1].max() - counts[-1, int(released[-1][0])]
    return errors, gaps


def zipf(panels: tuple[Panel, ...], jobs: int, batch: int = 50) -> list[Zipf]:
    """All trials of all mechanisms, spread over processes."""
    tasks = [
        (panel, way, range(start, min(start + batch, panel.trials)))
        for panel in panels
        for way in panel.ways
        for start in range(0, panel.trials, batch)
    ]
    if jobs == 1:
        done = [trials(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            done = list(pool.map(trials, *zip(*tasks, strict=True)))
    results = []
    for panel in panels:
        for way in panel.ways:
            mine = [found for task, found in zip(tasks, done, strict=True) if task[0] is panel and task[1] is way]
            errors, gaps = (np.concatenate(part) for part in zip(*mine, strict=True))
            root = math.sqrt(panel.trials)
            results.append(
                Zipf(
                    panel.name,
                    way.name,
                    panel.trials,
                    float(errors.mean()),
                    float(errors.mean(axis=1).std(ddof=1)) / root,
                    float(errors[:, -1].mean()),
                    float(errors[:, -1].std(ddof=1)) / root,
                    float(gaps.mean()),
                    way.reference,
                    errors.mean(axis=0),
                )
            )
    return results


def zipf_tables(results: list[Zipf]) -> list[Table]:
    """One table for each privacy level and radix."""
    columns = ["mechanism", "mean over ticks", "reference", "last tick", "reference", "gap", "trials"]
    made = []
    for name in dict.fromkeys(result.panel for result in results):
        rows = [
            (
                r.way,
                f"{r.mean:.1f} ± {r.mean_error:.1f}",
                f"{r.reference[0]}",
                f"{r.last:.1f} ± {r.last_error:.1f}",
                f"{r.reference[1]}",
                f"{r.gap:.1f}",
                f"{r.trials}",
            )
            for r in results
            if r.panel == name
        ]
        note = (
            f"d = {D}, T = {T}, 1/(2 tau^2)-zCDP for all; mean absolute error of the top count, ± one standard error."
        )
        made.append(Table(f"Zipf, {name}", note, columns, rows))
    return made


@in_style
def plot_zipf(results: list[Zipf], path: Path) -> None:
    """Error at every tick, a panel for each privacy level and radix."""
    plt = _pyplot()
    names = list(dict.fromkeys(result.panel for result in results))
    rows = -(-len(names) // 2)
    across = min(2, len(names))
    figure, axes = plt.subplots(
        rows, across, figsize=(6.5 * across, 4.4 * rows), constrained_layout=True, squeeze=False
    )
    for axis, name in zip(axes.flat, names, strict=False):
        for r in (result for result in results if result.panel == name):
            style = {"KnownBase": "k--", "MetaAlgo": "k"}.get(r.way, "")
            axis.plot(np.arange(1, T + 1), r.profile, style, lw=1.6 if style else 1, label=r.way)
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("tick")
        axis.set_ylabel("mean absolute error of the top count")
        axis.set_title(name)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


# -- both --------------------------------------------------------------------------------------------------------------


def measure(short: bool = False, jobs: int = 1) -> tuple[list[Radix], list[Zipf]]:
    """Everything; short: fewer replicas, and a few trials of three mechanisms at tau = 0.3."""
    if short:
        panel = PANELS[1]
        few = Panel(panel.tau, panel.radix, 10, (*panel.ways[:2], panel.ways[4]))
        return [radix(H, MEASURED.get(H, 0) // 10) for H in HORIZONS], zipf((few,), jobs, batch=5)
    return [radix(H, MEASURED.get(H, 0)) for H in HORIZONS], zipf(PANELS, jobs)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="less than a minute")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the plots")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    radices, errors = measure(options.short, options.jobs)
    for table in (radix_table(radices), *zipf_tables(errors)):
        print(table.text())
    plot_radix(radices, options.out / "selection-radix.png")
    plot_zipf(errors, options.out / "selection-zipf.png")
    print(f"written: {options.out}/selection-radix.png, selection-zipf.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
