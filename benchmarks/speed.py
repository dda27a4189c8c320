"""Speed of counters and of the door, beside OpenDP and jax-privacy, all in one run.

    python -m benchmarks.speed [--jax-python PATH]

Wall time, the best of several calls, everything included: noise, sums, release. Neither of the other libraries has a
continual counter on integers; what is nearest is measured and named for what it is:

* OpenDP: the noise of one release (list in, list out), and its b-ary tree over a *finished* stream.
* jax-privacy: correlated Gaussian noise in floats for model training, from its Toeplitz and buffered Toeplitz
  factorizations (`jax_counter.py`); it wants its own versions of things, so it may live in an environment of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table, quantity

import evertally as et
from evertally.pictures import in_style

GAUSS = et.ZCDP(rho=0.005)
PURE = et.PureDP(epsilon=0.1)
CATEGORIES = [f"category-{i:02d}" for i in range(50)]


@dataclass(frozen=True)
class Timing:
    """Seconds for `count` things: ticks, or rows of input."""

    what: str
    by: str  # whose program
    kind: str  # "step", "run", "noise" or "ingest"
    columns: int
    count: int
    seconds: float
    remark: str = ""

    @property
    def nanoseconds(self) -> float:
        """A tick and column, a draw, or a row."""
        return 1e9 * self.seconds / self.count / (self.columns if self.kind != "ingest" else 1)


def best(call: Callable[[int], Any], repeats: int) -> float:
    """Wall time of the quickest call; each gets its number, to be able to use fresh noise."""
    times = []
    for i in range(repeats):
        start = time.perf_counter()
        call(i)
        times.append(time.perf_counter() - start)
    return min(times)


# -- counters --------------------------------------------------------------------------------------------------------


def counter(name: str, columns: int, horizon: int, seed: int) -> Any:
    """A counter by the name of its row."""
    guarantee = PURE if name.endswith("Laplace") else GAUSS
    options = {"guarantee": guarantee, "horizon": horizon, "mechanism": name.split(",")[0], "key": et.simulation(seed)}
    return et.Counter(**options) if columns == 1 else et.VectorCounter(columns, **options)


COUNTERS = ("tree, Laplace", "tree, Gaussian", "honaker, Gaussian", "sqrt, Gaussian")


def counters(short: bool) -> list[Timing]:
    """step and run of every process, for one column, a thousand and a million."""
    found = []
    sizes = [(1, 2**20, 2**14), (1000, 2**12, 2**10), (10**6, 2**10, 16)]  # columns, horizon, single steps
    for columns, horizon, steps in sizes[: 1 if short else 3]:
        for name in ("sqrt, Gaussian",) if short else COUNTERS:
            try:
                made = counter(name, columns, horizon, 0)
            except et.ConfigurationError as refusal:
                remark = f"refused: {str(refusal).split(';')[0]}"
                found.append(Timing(name, "evertally", "step", columns, 1, math.nan, remark))
                continue
            ticks = steps if columns == 10**6 else horizon
            rows = np.ones(ticks if columns == 1 else (ticks, columns), dtype=np.int64)
            made.run(rows[:ticks])  # warm-up: compilers, tables, the factor of this horizon
            fresh = [counter(name, columns, horizon, seed) for seed in range(1, 4 if columns < 10**6 else 2)]
            seconds = best(lambda i, fresh=fresh, rows=rows: fresh[i].run(rows), len(fresh))
            found.append(Timing(name, "evertally", "run", columns, ticks, seconds))
            stepping = counter(name, columns, horizon, 9)

            def single(_: int, stepping: Any = stepping, rows: Any = rows, steps: int = steps) -> None:
                for t in range(steps):
                    stepping.step(rows[t])

            found.append(Timing(name, "evertally", "step", columns, steps, best(single, 1)))
    return found


# -- the door --------------------------------------------------------------------------------------------------------


def ingest(short: bool) -> list[Timing]:
    """Rows a second through step_events, the only door of the command line: columns as Arrow gives them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = 10**6 if short else 10**7
    generator = np.random.default_rng(0)  # content to be counted, not noise
    codes = pa.array(generator.integers(0, 60, rows), pa.int32())  # ten labels are not declared
    labels = pa.array([f"category-{i:02d}" for i in range(60)])
    coded = pa.DictionaryArray.from_arrays(codes, labels)
    plain = coded.cast(pa.string())
    amounts = pa.array(generator.exponential(5.0, rows))
    users = pa.array(generator.integers(0, rows // 10, rows // 10))

    def histogram(**options: Any) -> et.Histogram:
        return et.Histogram(
            categories=CATEGORIES, guarantee=PURE, horizon=1000, key=et.simulation(1), other="other", **options
        )

    def timing(what: str, count: int, call: Callable[[int], Any], by: str = "evertally") -> Timing:
        call(0)
        return Timing(what, by, "ingest", 1, count, best(call, 3))

    by_label, total = histogram(), et.Counter(guarantee=PURE, horizon=1000, max_weight=20, key=et.simulation(2))
    few = 10**4 if short else 10**5
    sets = [[f"category-{i:02d}" for i in row] for row in generator.integers(0, 60, (few, 3)).tolist()]
    by_set = histogram(max_per_event=2)
    made = [
        timing("labels, text", rows, lambda _: by_label.step_events(plain)),
        timing("labels, dictionary-encoded", rows, lambda _: by_label.step_events(coded)),
        timing("amounts, float64", rows, lambda _: total.step_events(amounts)),
        timing("sets of 3 labels cut to 2, Python lists", few, lambda _: by_set.step_events(sets)),
        timing("plain value_counts of labels, text", rows, lambda _: pc.value_counts(plain), by="pyarrow"),
    ]
    by_user = histogram(unit="user", max_events_per_user=4)
    part = plain.slice(0, len(users))
    start = time.perf_counter()  # once: the second time every user's lifetime is used up
    by_user.step_events(part, users=users)
    made.append(
        Timing("labels, text, 4 events a user", "evertally", "ingest", 1, len(users), time.perf_counter() - start)
    )
    return made


# -- beside others ---------------------------------------------------------------------------------------------------


def opendp() -> list[Timing]:
    """One-shot noise, and the tree over a finished stream."""
    if importlib.util.find_spec("opendp") is None:
        return [Timing("not installed (dependency group bench)", "OpenDP", "step", 1, 1, math.nan)]
    import opendp.prelude as dp

    dp.enable_features("contrib")
    by = f"OpenDP {version('opendp')}"
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    found = []
    noise = dp.m.make_laplace(*space, scale=50.0)
    for columns in (1, 1000):
        zeros = [0] * columns
        seconds = best(lambda _, zeros=zeros: noise(zeros), 3 if columns > 1 else 200)
        found.append(Timing("fresh Laplace noise, not continual", by, "step", columns, 1, seconds))
    T, radix = 2**16, 17
    tree = space >> dp.t.then_b_ary_tree(leaf_count=T, branching_factor=radix) >> dp.m.then_laplace(scale=50.0)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=radix)
    zeros = [0] * T
    seconds = best(lambda _: np.cumsum(consistent(tree(zeros))), 2)
    found.append(Timing(f"tree of radix {radix} over {T} finished ticks", by, "run", 1, T, seconds))
    return found


def jax_privacy(python: str | None) -> list[Timing]:
    """Correlated noise for training, timed by a program of its own."""
    if python is None and importlib.util.find_spec("jax_privacy") is None:
        remark = "not installed here; give --jax-python an interpreter that has it"
        return [Timing("correlated noise", "jax-privacy", "step", 1, 1, math.nan, remark)]
    script = Path(__file__).with_name("jax_counter.py")
    done = subprocess.run([python or sys.executable, str(script)], capture_output=True, text=True, timeout=400)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [Timing("correlated noise", "jax-privacy", "step", 1, 1, math.nan, f"failed: {last}")]
    return [Timing(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]


# -- report ----------------------------------------------------------------------------------------------------------


def measure(short: bool = False, jax_python: str | None = None) -> list[Timing]:
    found = counters(short) + ingest(short)
    if not short:
        found += opendp() + jax_privacy(jax_python)
    return found


def compared(theirs: Timing, timings: list[Timing]) -> str:
    """How many times longer it takes than our counter with the nearest noise, at the same number of columns."""
    for name in ("tree, Laplace",) if theirs.by.startswith("OpenDP") else ("sqrt, Gaussian", "tree, Gaussian"):
        for t in timings:
            same = (t.by, t.what, t.kind, t.columns) == ("evertally", name, theirs.kind, theirs.columns)
            if same and not math.isnan(t.seconds):
                return f"{theirs.nanoseconds / t.nanoseconds:.3g} x our {name}"
    return ""


def tables(timings: list[Timing]) -> list[Table]:
    """Counters (with the others beside them), then the door."""
    ticking = [t for t in timings if t.kind != "ingest"]
    rows = []
    for t in sorted(ticking, key=lambda t: (t.columns, t.kind, t.by != "evertally")):
        if math.isnan(t.seconds):
            rows.append((t.what, t.by, f"{t.columns:,}", t.kind, "-", "-", t.remark))
            continue
        ratio = "" if t.by == "evertally" else compared(t, ticking)
        rows.append(
            (
                t.what,
                t.by,
                f"{t.columns:,}",
                t.kind,
                f"{t.nanoseconds:,.1f}",
                quantity(t.count / t.seconds),
                "; ".join(filter(None, (ratio, t.remark))),
            )
        )
    made = [
        Table(
            "Speed of counters",
            "Wall time, noise included. `step`: one tick a call. `run`: many ticks a call.",
            ["process", "by", "columns", "call", "ns a tick and column", "ticks/s", "remark"],
            rows,
        )
    ]
    entering = [t for t in timings if t.kind == "ingest"]
    if entering:
        reference = next((t.nanoseconds for t in entering if t.by == "pyarrow"), math.nan)
        made.append(
            Table(
                "Speed of the door",
                "Rows through `step_events` as Arrow columns: bounded, counted, released.",
                ["rows", "by", "number", "ns a row", "rows/s", "against value_counts"],
                [
                    (
                        t.what,
                        t.by,
                        f"{t.count:,}",
                        f"{t.nanoseconds:,.1f}",
                        quantity(t.count / t.seconds),
                        f"{t.nanoseconds / reference:.2f}",
                    )
                    for t in entering
                ],
            )
        )
    return made


@in_style
def plot(timings: list[Timing], path: Path) -> None:
    """Nanoseconds a tick and column, all programs on one logarithmic scale, a panel for each number of columns."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    shown = [t for t in timings if t.kind in ("step", "run") and not math.isnan(t.seconds)]
    sizes = sorted({t.columns for t in shown})
    heights = [sum(t.columns == columns for t in shown) for columns in sizes]
    figure, axes = plt.subplots(
        len(sizes),
        1,
        figsize=(9, 0.27 * sum(heights) + 1.0 * len(sizes)),
        sharex=True,
        squeeze=False,
        height_ratios=heights,
        constrained_layout=True,
    )
    colours = {"evertally": "C0", "OpenDP": "C1", "jax-privacy": "C2"}
    for axis, columns in zip(axes[:, 0], sizes, strict=True):
        rows = sorted((t for t in shown if t.columns == columns), key=lambda t: (t.kind, t.nanoseconds), reverse=True)
        axis.barh(range(len(rows)), [t.nanoseconds for t in rows], color=[colours[t.by.split()[0]] for t in rows])
        axis.set_yticks(range(len(rows)), [f"{t.kind}: {t.what}" for t in rows], fontsize=8)
        axis.set_xscale("log")
        axis.margins(y=0.02)
        axis.set_title(f"{columns:,} column{'s' if columns > 1 else ''}", fontsize=10)
    axes[-1, 0].set_xlabel("nanoseconds a tick and column (less is better)")
    axes[0, 0].legend([Patch(color=c) for c in colours.values()], list(colours), fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--jax-python", help="an interpreter that has jax-privacy")
    options = parser.parse_args()
    for table in tables(measure(options.short, options.jax_python)):
        print(table.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
