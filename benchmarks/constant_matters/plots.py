"""The figures of the paper, redrawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.constant_matters import published
from benchmarks.constant_matters.counting import USUAL, Pooled, Runs
from benchmarks.constant_matters.rows import written
from benchmarks.constant_matters.top_item import Top

from evertally.bounds.square_root import S
from evertally.pictures import in_style
from evertally.theory.frontier import mathias_lower, mathias_upper, optimal_factor


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(plt: Any, figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


@in_style
def errors(pools: Sequence[Pooled], path: Path) -> None:
    """Figures 1 and 2: the error at every tick, and bounds on the norm."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), constrained_layout=True)
    T = len(pools[0].std)
    ticks = np.arange(1, T + 1)
    for i, pooled in enumerate(pools):
        left.plot(ticks, pooled.std, ",", color=f"C{i}", alpha=0.6)
        left.plot(ticks, pooled.expected, lw=0.25, color=f"C{i}", label=f"{pooled.process.name}: formula, measured")
    left.axhline(optimal_factor(T)[0], color="k", ls="--", lw=1, label="least possible at the worst tick")
    left.set(title=f"Figure 1: error at every tick, T = {T:,}", xlabel="tick", ylabel="std, noise multipliers")
    left.set_ylim(bottom=0, top=1.25 * float(max(pooled.expected.max() for pooled in pools)))
    horizons = [2**i for i in range(1, 45)]
    for values, style, label in (
        ([S(t) for t in horizons], "C0", "S_T: what the square root has"),
        ([published.paper_psi(t) for t in horizons], "C3:", "Psi: what the paper prints for it"),
        ([mathias_upper(t) for t in horizons], "k-", "Mathias: some factorization has less"),
        ([mathias_lower(t) for t in horizons], "k--", "Mathias: none has less"),
    ):
        right.plot(horizons, values, style, lw=1.2, label=label)
    right.set_xscale("log", base=2)
    right.set(title="Figure 2: worst factor", xlabel="horizon T, ticks")
    for axis in (left, right):
        for line in axis.legend(fontsize=8, loc="upper left").get_lines():
            line.set_linewidth(1.5)
    _save(plt, figure, path)


@in_style
def streams(played: Sequence[Runs], path: Path) -> None:
    """Figure 3: one run for each density and process, in a band of one standard deviation."""
    plt = _pyplot()
    densities = list(dict.fromkeys(runs.density for runs in played))
    down = -(-len(densities) // 4)
    figure, axes = plt.subplots(down, 4, figsize=(14, 3.4 * down), constrained_layout=True, squeeze=False)
    figure.suptitle("Figure 3: one run for each density (bands: one standard deviation, measured)")
    T = played[0].horizon
    ticks = np.unique(np.linspace(1, T, 1500).astype(int))
    names = list(dict.fromkeys(runs.process.name for runs in played))
    for axis, density in zip(axes.flat, densities, strict=False):
        snr = []
        mine = [runs for runs in played if runs.density == density]
        for runs in reversed(mine):  # the narrower band on top
            colour, band = f"C{names.index(runs.process.name)}", np.sqrt(runs.variance)[ticks - 1] * runs.multiplier
            axis.fill_between(ticks, density * ticks - band, density * ticks + band, color=colour, alpha=0.25, lw=0)
            axis.plot(ticks, runs.released[ticks - 1], color=colour, lw=0.6, label=runs.process.name)
        axis.plot(ticks, mine[0].stream[ticks - 1], "k", lw=1, label="true count")
        title = f"p = {written(density)}"
        if density:
            snr = [f"{runs.snr()[USUAL]:.2f}" for runs in mine]
            place = round(-np.log2(density))
            known = [
                published.PAPER_SNR[r.process.mechanism] for r in mine if r.process.mechanism in published.PAPER_SNR
            ]
            title += f": SNR {', '.join(snr)}\n(paper {', '.join(f'{numbers[place]:g}' for numbers in known)})"
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=7)
    axes.flat[0].legend(fontsize=7)
    for axis in axes.flat[len(densities) :]:
        axis.set_axis_off()
    _save(plt, figure, path)


@in_style
def top(tops: Sequence[Top], path: Path) -> None:
    """Figure 4: the largest count, true and released, at the noise of the product."""
    plt = _pyplot()
    exponents = list(dict.fromkeys(t.exponent for t in tops))
    figure, axes = plt.subplots(1, len(exponents), figsize=(14, 3.8), constrained_layout=True, squeeze=False)
    figure.suptitle("Figure 4: the count of the most frequent of 20 items, as released")
    for axis, exponent in zip(axes.flat, exponents, strict=True):
        mine = [t for t in tops if t.exponent == exponent and t.noise == "product"]
        ticks = np.arange(1, len(mine[0].true) + 1)
        for i, found in reversed(list(enumerate(mine))):
            label = f"{found.process.name}: SNR {found.maximum[0]:.2f}"
            if found.process.mechanism in published.PAPER_TOP_SNR:
                label += f" (paper {published.PAPER_TOP_SNR[found.process.mechanism]})"
            axis.plot(ticks, found.released, color=f"C{i}", lw=0.7, label=label)
        axis.plot(ticks, mine[0].true, "k", lw=1.2, label="true")
        axis.set(title=f"Zipf {exponent}", xlabel="tick", ylabel="count")
        axis.legend(fontsize=7)
    _save(plt, figure, path)
