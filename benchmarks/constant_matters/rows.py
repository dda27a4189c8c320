"""How large errors are: each number beside what the specification and the paper say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.constant_matters import published
from benchmarks.constant_matters.counting import Pooled
from benchmarks.report import Table

from evertally.bounds.square_root import S
from evertally.theory.frontier import mathias_lower, mathias_upper, optimal_factor, optimal_rms_factor

LEAST = "least possible, by formula"


@dataclass(frozen=True)
class Row:
    """A number: measured where it has a standard error, else by formula."""

    what: str
    process: str
    here: float
    error: float | None = None
    spec: float | None = None
    paper: float | None = None
    form: str = ".3f"

    def cells(self) -> tuple[str, str, str]:
        here = f"{self.here:,{self.form}}" + ("" if self.error is None else f" ± {self.error:,{self.form}}")
        return here, *("" if value is None else f"{value:,}" for value in (self.spec, self.paper))


@dataclass(frozen=True)
class Section:
    """One figure or table of the paper."""

    title: str
    note: str
    rows: Sequence[Row]

    def table(self) -> Table:
        """A line for each quantity; for each process its number, and what is said elsewhere if anything is."""
        found = {(row.what, row.process): row.cells() for row in self.rows}
        columns, shown = [""], []
        for process in dict.fromkeys(row.process for row in self.rows):
            for place, heading in enumerate((process, "specification", "paper")):
                if any(cells[place] for (_, whose), cells in found.items() if whose == process):
                    columns.append(heading)
                    shown.append((process, place))
        empty = ("", "", "")
        lines = [
            (what, *(found.get((what, process), empty)[place] for process, place in shown))
            for what in dict.fromkeys(row.what for row in self.rows)
        ]
        return Table(self.title, self.note, columns, lines)


def over(process: str, reference: str) -> str:
    return f"{process} / {reference}"


def written(density: float) -> str:
    return f"2^{round(math.log2(density))}" if density else "0"


def noise(epsilons: Sequence[float]) -> Section:
    """Noise multipliers, by formula."""
    rows = [
        Row(f"epsilon = {e}, {name}", "formula", value, spec=published.SPEC_MULTIPLIERS[e, name], form=".4f")
        for e in epsilons
        for name, value in published.multipliers(e).items()
    ]
    note = (
        "The standard deviation that hides one event of weight 1, delta = 1e-10. Product: through zCDP, which "
        "holds also for the integer noise that is released. Exact: the least for continuous noise. C: of the paper, "
        "sqrt(2) too large as a standard deviation. Measured errors are multiples of it, so "
        "they can be read at any of the four."
    )
    return Section("Noise multipliers", note, rows)


def figure_1(pools: Sequence[Pooled]) -> Section:
    """Errors along the ticks, and of whole runs."""
    T = len(pools[0].std)
    ours = T == published.T
    rows = []
    for t in [t for t in (1, 15, 16, 255, 256, 4095, 4096, 32768, 65535, 65536) if t <= T]:
        for pooled in pools:
            spec = published.SPEC_STD.get(pooled.process.mechanism, {}).get(t) if ours else None
            rows.append(Row(f"std at t = {t:,}", pooled.process.name, pooled.std[t - 1], pooled.std_error(t), spec))
        first = pools[0]
        for other in pools[1:] if t in published.SPEC_RATIOS else ():
            ratio = other.std[t - 1] / first.std[t - 1]
            spec = published.SPEC_RATIOS[t] if ours and other.process.mechanism == "tree" else None
            names = over(other.process.name, first.process.name)
            rows.append(Row(f"std at t = {t:,}", names, ratio, ratio / math.sqrt(first.runs), spec))
    for what, key in (
        ("std at the worst tick", "worst"),
        ("rms over ticks", "rms"),
        ("mean largest error of a run", "largest"),
        ("2/3-quantile of it", "2/3"),
        ("95 %-quantile of it", "95 %"),
    ):
        for pooled in pools:
            value, error = of_runs(pooled, key)
            spec = published.SPEC_RUNS.get(pooled.process.mechanism, {}).get(key) if ours else None
            rows.append(Row(what, pooled.process.name, value, error, spec))
        if key in ("worst", "rms"):
            rows.append(Row(what, LEAST, (optimal_factor if key == "worst" else optimal_rms_factor)(T)[0]))
    note = (
        f"T = {T:,}, in noise multipliers, {pools[0].runs:,} runs of each process; ± is one standard error. The "
        "paper's Figure 1 shows a smooth curve below a saw-tooth, and gives no numbers."
    )
    return Section("Figure 1: error at every tick", note, rows)


def of_runs(pooled: Pooled, key: str) -> tuple[float, float]:
    """A number of whole runs and its standard error."""
    n = pooled.runs
    if key == "worst":
        t = int(pooled.expected.argmax()) + 1  # where the formula is largest; the largest estimate would be biased
        return float(pooled.std[t - 1]), pooled.std_error(t)
    if key == "rms":
        rms = math.sqrt(np.mean(pooled.rms**2))
        return rms, float(np.std(pooled.rms**2, ddof=1)) / math.sqrt(n) / (2 * rms)
    if key == "largest":
        return float(pooled.largest.mean()), float(pooled.largest.std(ddof=1)) / math.sqrt(n)
    level = {"2/3": 2 / 3, "95 %": 0.95}[key]
    rank = math.sqrt(level * (1 - level) / n)
    low, middle, high = np.quantile(pooled.largest, [max(0, level - rank), level, min(1, level + rank)])
    return float(middle), float(high - low) / 2


def figure_2() -> Section:
    """Bounds on the norm of the counting matrix, by formula."""
    rows = []
    for T, specs in published.SPEC_NORMS.items():
        values = (S(T), mathias_upper(T), mathias_lower(T))
        for what, value, spec in zip(("S_T", "Mathias, upper", "Mathias, lower"), values, specs, strict=True):
            rows.append(Row(f"{what}, T = 2^{T.bit_length() - 1}", "formula", value, spec=spec, form=".6f"))
        rows.append(Row(f"Psi, T = 2^{T.bit_length() - 1}", "formula", published.paper_psi(T), form=".6f"))
    note = "What the paper says about these curves does not follow from its formulas (factorization-counting 7.1)."
    return Section("Figure 2: norm of the counting matrix", note, rows)


def last_std(pools: Sequence[Pooled], epsilons: Sequence[float]) -> Section:
    """Standard deviations at t = T in counts."""
    T = len(pools[0].std)
    rows = []
    for epsilon in epsilons:
        for name, unit in published.multipliers(epsilon).items():
            what = f"epsilon = {epsilon}, {name}"
            for pooled in pools:
                mine = T == published.T and pooled.process.mechanism == "sqrt"
                spec = published.SPEC_LAST_STD.get((epsilon, name)) if mine else None
                value, error = unit * pooled.std[-1], unit * pooled.std_error(T)
                rows.append(Row(what, pooled.process.name, value, error, spec, form=".2f"))
            rows.append(Row(what, LEAST, unit * optimal_factor(T)[0], form=".2f"))
    note = (
        f"T = {T:,}, in counts, for each of the four noise multipliers. The tree is at its best at t = T, one node; "
        "the least possible is that of the worst tick."
    )
    return Section("Standard deviation at t = T", note, rows)


def theorems(pools: Sequence[Pooled], epsilons: Sequence[float]) -> Section:
    """Bounds at confidence 2/3 and how often runs pass them."""
    T = len(pools[0].std)
    rows = []
    for epsilon in epsilons:
        units = published.multipliers(epsilon)
        specs = published.SPEC_BOUNDS[epsilon] if T == published.T else (None,) * 4
        for (name, bound), spec in zip(published.bounds(epsilon, T).items(), specs, strict=True):
            rows.append(Row(f"epsilon = {epsilon}: {name}", "formula", bound, spec=spec, form=".2f"))
        for noise in ("exact", "C/sqrt(2)"):
            for pooled in pools:
                value, error = of_runs(pooled, "2/3")
                what = f"epsilon = {epsilon}: 2/3-quantile of the largest error, {noise}"
                unit = units[noise]
                rows.append(Row(what, pooled.process.name, unit * value, unit * error, form=".2f"))
    units, first = published.multipliers(epsilons[0]), pools[0]
    for noise in ("C/sqrt(2)", "C"):
        beyond = float(np.mean(first.largest * units[noise] > published.bounds(epsilons[0], T)["eq. (2) with S_T"]))
        error = math.sqrt(max(beyond * (1 - beyond), 1 / first.runs) / first.runs)
        rows.append(Row(f"share of runs above eq. (2) with S_T, {noise}", first.process.name, beyond, error))
    note = (
        f"The largest error of {T:,} ticks, in counts, confidence 2/3. A share above 1/3 means that the bound does not "
        "hold for that noise; the paper's text takes C for a standard deviation (factorization-counting 0, E5)."
    )
    return Section("Bounds of the theorems", note, rows)
