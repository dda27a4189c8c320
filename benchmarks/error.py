"""Error of every counting process: measured, by formula, and beside the least that is possible.

    python -m benchmarks.error

Every number is measured on the product's own mechanism, released under simulation keys on an empty stream: what it
releases is its noise. The columns of a vector counter have independent noise, so each column is a replica of a scalar
counter. Worst: the standard deviation over replicas *at the tick where the formula is largest* (the largest of many
estimates would be biased upwards). Root mean square: over all ticks and replicas. `z`: the largest deviation of any
tick's variance from the formula, in standard errors; over thousands of ticks it is near 4 when all is well.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.formulas import (
    EpochTreeFormula,
    Formula,
    HonakerFormula,
    SqrtFormula,
    TreeFormula,
    best_radix,
)
from benchmarks.report import Table, print_tables
from numpy.typing import NDArray

import evertally as et
from evertally.pictures import in_style
from evertally.theory.frontier import optimal_factor, optimal_rms_factor, pure_frontier

UNIT = 10  # 1/sqrt(2 rho) and 1/epsilon, so that rounding to integers (1/12 of variance) does not blur the factors
GAUSS = et.ZCDP(rho=1 / (2 * UNIT**2))
PURE = et.PureDP(epsilon=1 / UNIT)

HORIZONS = (2**8, 2**10, 2**12, 2**16)
REPLICAS = {2**8: 20_000, 2**10: 20_000, 2**12: 10_000, 2**16: 2_000}
_BATCH = 2**24  # numbers of one mechanism: ticks times columns
_PIECE = 2**21  # numbers looked at together

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """A process under test: how to make it for a horizon, and what it should do."""

    name: str
    mechanism: str
    guarantee: et.ZCDP | et.PureDP
    formula: Callable[[int], Formula]
    bounded: bool = True
    options: Callable[[int], dict[str, Any]] = field(default=lambda T: {})

    @property
    def pure(self) -> bool:
        return self.guarantee is PURE


SUBJECTS = (
    Subject("square root", "sqrt", GAUSS, SqrtFormula),
    Subject("Honaker tree", "honaker", GAUSS, HonakerFormula),
    Subject("binary tree", "tree", GAUSS, lambda T: TreeFormula(T, 2), options=lambda T: {"radix": 2}),
    Subject(
        "tree, best radix",
        "tree",
        GAUSS,
        lambda T: TreeFormula(T, best_radix(T)),
        options=lambda T: {"radix": "exact"},
    ),
    Subject("epoch tree", "epoch-tree", GAUSS, lambda T: EpochTreeFormula(T), bounded=False),
    Subject("Honaker tree", "honaker", PURE, lambda T: HonakerFormula(T, pure=True)),
    Subject("binary tree", "tree", PURE, lambda T: TreeFormula(T, 2, pure=True), options=lambda T: {"radix": 2}),
    Subject(
        "tree, best radix",
        "tree",
        PURE,
        lambda T: TreeFormula(T, best_radix(T, pure=True), pure=True),
        options=lambda T: {"radix": "exact"},
    ),
    Subject("epoch tree", "epoch-tree", PURE, lambda T: EpochTreeFormula(T, pure=True), bounded=False),
)


@dataclass(frozen=True)
class Result:
    """Factors of one process at one horizon; `*_error` are standard errors."""

    name: str
    pure: bool
    horizon: int
    replicas: int
    worst_tick: int
    formula_worst: float
    worst: float
    worst_error: float
    formula_rms: float
    rms: float
    rms_error: float
    z: float
    reference_worst: float
    reference_rms: float
    profile: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))


def measure_one(subject: Subject, T: int, replicas: int, unit: float = UNIT, seed: int = 0) -> Result:
    """Runs `replicas` columns over T ticks and compares."""
    formula = subject.formula(T)
    squares, fourths = np.zeros(T), np.zeros(T)
    path_means: list[FloatArray] = []
    done = 0
    while done < replicas:
        columns = min(replicas - done, max(1, _BATCH // T))
        mechanism = et.VectorCounter(
            columns,
            guarantee=subject.guarantee,
            horizon=T if subject.bounded else None,
            mechanism=subject.mechanism,
            key=et.simulation(1000 * seed + len(path_means)),
            **subject.options(T),
        )
        path = np.zeros(columns)
        piece = max(1, _PIECE // columns)
        for start in range(0, T, piece):
            ticks = min(piece, T - start)
            squared = (mechanism.run(np.zeros((ticks, columns), dtype=np.int64)) / unit) ** 2
            squares[start : start + ticks] += squared.sum(axis=1)
            fourths[start : start + ticks] += np.einsum("ij,ij->i", squared, squared)
            path += squared.sum(axis=0)
        path_means.append(path / T)
        done += columns
    variance, fourth = squares / replicas, fourths / replicas
    variance_error = np.sqrt(np.maximum(fourth - variance**2, 0) / replicas)
    expected = np.array([formula.variance(t) for t in range(1, T + 1)])
    worst_tick = formula.worst_tick()
    worst = math.sqrt(variance[worst_tick - 1])
    means = np.concatenate(path_means)
    rms = math.sqrt(means.mean())
    return Result(
        subject.name,
        subject.pure,
        T,
        replicas,
        worst_tick,
        formula.worst,
        worst,
        variance_error[worst_tick - 1] / (2 * worst),
        formula.rms,
        rms,
        means.std(ddof=1) / math.sqrt(replicas) / (2 * rms),
        float(np.max(np.abs(variance - expected) / variance_error)),
        *_reference(subject.pure, T),
        profile=np.sqrt(variance),
    )


def _reference(pure: bool, T: int) -> tuple[float, float]:
    """The least possible worst and root-mean-square factors; for Laplace noise, which has no floor, the best known."""
    if not pure:
        return optimal_factor(T)[0], optimal_rms_factor(T)[0]
    known = [entry for entry in pure_frontier() if entry.horizon == T]
    return min(entry.worst for entry in known), min(entry.rms for entry in known)


def measure(short: bool = False) -> list[Result]:
    """All processes at all horizons; short: the square-root counter and the tree at T = 2^12."""
    if short:
        chosen = [s for s in SUBJECTS if not s.pure and s.name in ("square root", "tree, best radix")]
        return [measure_one(subject, 2**12, 8_000) for subject in chosen]
    return [measure_one(subject, T, REPLICAS[T], seed=i) for i, subject in enumerate(SUBJECTS) for T in HORIZONS]


def tables(results: list[Result]) -> list[Table]:
    """One table for each noise law."""
    made = []
    for pure, title, unit, reference in (
        (False, "Error, Gaussian noise", "1/sqrt(2 rho)", "least possible"),
        (True, "Error, Laplace noise", "1/epsilon", "best known"),
    ):
        chosen = [r for r in results if r.pure == pure]
        if not chosen:
            continue
        rows = [
            (
                r.name,
                f"2^{r.horizon.bit_length() - 1}",
                f"{r.formula_worst:.3f}",
                f"{r.worst:.3f} ± {r.worst_error:.3f}",
                f"{r.reference_worst:.3f}",
                f"{r.worst / r.reference_worst:.3f}",
                f"{r.formula_rms:.3f}",
                f"{r.rms:.3f} ± {r.rms_error:.3f}",
                f"{r.reference_rms:.3f}",
                f"{r.rms / r.reference_rms:.3f}",
                f"{r.z:.1f}",
                f"{r.replicas}",
            )
            for r in chosen
        ]
        columns = ["process", "T", "worst, formula", "worst, measured", reference, "ratio"]
        columns += ["rms, formula", "rms, measured", reference, "ratio", "z", "replicas"]
        note = f"Standard deviations per {unit}, for one event of weight 1; ± is one standard error."
        made.append(Table(title, note, columns, rows))
    return made


@in_style
def plot(results: list[Result], path: Path) -> None:
    """Worst factors over the horizon, and the error at every tick of the shortest horizon; lines are formulas."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    every = plt.get_cmap("tab10")  # more of them than our lines have colours
    colours = {name: every(i) for i, name in enumerate(dict.fromkeys(subject.name for subject in SUBJECTS))}
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), constrained_layout=True)
    for axis, pure in ((axes[0], False), (axes[1], True)):
        chosen = [r for r in results if r.pure == pure]
        horizons = sorted({r.horizon for r in chosen})
        for name in dict.fromkeys(r.name for r in chosen):
            mine = [r for r in chosen if r.name == name]
            axis.plot(horizons, [r.formula_worst for r in mine], color=colours[name], lw=1)
            points, bars = [r.worst for r in mine], [2 * r.worst_error for r in mine]
            axis.errorbar(horizons, points, bars, fmt="o", ms=4, color=colours[name], label=name, capsize=2)
        if chosen:
            least = [_reference(pure, T)[0] for T in horizons]
            axis.plot(horizons, least, "k--", lw=1, label="best known" if pure else "least possible")
            axis.legend(fontsize=8)
            axis.set_xscale("log", base=2)
            axis.set_xticks(horizons)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("horizon T, ticks")
        axis.set_ylabel("standard deviation, 1/epsilon" if pure else "standard deviation, 1/sqrt(2 rho)")
        axis.set_title("Laplace noise: worst tick" if pure else "Gaussian noise: worst tick")
    T = min(r.horizon for r in results)
    formulas = {subject.name: subject.formula for subject in SUBJECTS if not subject.pure}
    ticks = np.arange(1, T + 1)
    for r in results:
        if r.horizon == T and not r.pure and r.name != "tree, best radix":
            axes[2].plot(ticks, r.profile, ".", ms=3, color=colours[r.name], label=r.name)
            expected = [formulas[r.name](T).stddev(int(t)) for t in ticks]
            axes[2].plot(ticks, expected, lw=0.5, color=colours[r.name])
    axes[2].set_ylim(bottom=0)
    axes[2].set_xlabel(f"tick, T = {T}")
    axes[2].set_title("Gaussian noise: every tick, measured and by formula")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    print_tables(tables(measure("--short" in sys.argv[1:])))
