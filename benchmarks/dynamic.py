"""Errors of every construction over what is present now: measured under simulation keys, beside what is predicted.

    python -m benchmarks dynamic [--short]

Counts: each column of a histogram has noise of its own, so on an empty stream each is a replica; the tick is the worst
one of the construction. Queries: ranges over 64 cells, and 200 random queries over 1024 cells; the largest error of
any of them at the last tick, mean of a few runs, for streams in which `present` items are there and `updates` ever
happened. "Answer 0" is what an empty answer is off by. Everything is the product's own mechanism, through its public
door.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table
from numpy.typing import NDArray

import evertally as et
from evertally.dynamic.families import Family, Queries, Ranges
from evertally.pictures import in_style

IntArray = NDArray[np.int64]
APPROXIMATE, PURE = et.ApproxDP(epsilon=1.0, delta=1e-6), et.PureDP(1.0)
RAW_EVENT = {"identity": "raw", "protects": "event"}
TOKEN_EVENT = {"identity": "token", "protects": "event"}
_FREE = {"max_segments": "unlimited", "max_rounds": 1}

# As the tables call them: the option of the class, and whether the worst tick is that before the last power of two
# (all bits set), the one before that (doubling blocks), or the last.
WAYS: dict[str, tuple[dict[str, Any], int]] = {
    "L": ({"mechanism": "linear"} | RAW_EVENT, 0),
    "L, item": ({"mechanism": "linear", "identity": "token"}, 0),
    "L, lifetimes <= 168": ({"mechanism": "linear", "identity": "token", "max_lifetime": 168}, 0),
    "C1, signed": ({"mechanism": "tree"} | RAW_EVENT, 1),
    "C2, signed": ({"mechanism": "doubling"} | RAW_EVENT, 2),
    "B, trees": ({"mechanism": "subtract"} | RAW_EVENT, 1),
    "B, doubling": ({"mechanism": "subtract", "construction": {"structure": "doubling"}} | RAW_EVENT, 2),
    "C5, AT": ({"mechanism": "interval-tree", "construction": _FREE} | TOKEN_EVENT, 1),
    "C5, A2": ({"mechanism": "interval-tree", "construction": {"allocation": "A2"} | _FREE} | TOKEN_EVENT, 1),
    "C5f, AT": ({"mechanism": "interval-tree", "construction": {"max_rounds": 1}} | TOKEN_EVENT, 1),
    "C5f, A2": (
        {"mechanism": "interval-tree", "construction": {"allocation": "A2", "max_rounds": 1}} | TOKEN_EVENT,
        1,
    ),
    "K, every tick": ({"mechanism": "anew", "every": 1} | TOKEN_EVENT, 0),
    "K, every 24": ({"mechanism": "anew", "every": 24} | TOKEN_EVENT, 0),
}


@dataclass(frozen=True)
class Count:
    """The standard deviation of a count."""

    way: str
    pure: bool
    horizon: int
    tick: int
    predicted: float
    measured: float  # NaN: predicted only
    replicas: int


@dataclass(frozen=True)
class Query:
    """The largest error of any query, at the last tick."""

    family: str
    way: str
    static: str
    present: int
    updates: int
    measured: float
    answered_zero: float  # the largest true answer
    runs: int


@dataclass(frozen=True)
class Sparse:
    """Few updates in many ticks: root mean square error of a count, and how many segments a partition made."""

    way: str
    horizon: int
    updates: int
    measured: float
    segments: int


def worst_tick(T: int, kind: int) -> int:
    """
    >>> worst_tick(8760, 0), worst_tick(8760, 1), worst_tick(8760, 2), worst_tick(1023, 1)
    (8760, 8191, 8190, 1023)
    """
    full = 2 ** ((T + 1).bit_length() - 1) - 1
    return (T, full, full - 1)[kind]


def _histogram(way: str, T: int, pure: bool, columns: int, seed: int) -> tuple[Any, int]:
    options, kind = WAYS[way]
    made = et.DynamicHistogram(
        categories=[str(i) for i in range(columns)],
        guarantee=PURE if pure else APPROXIMATE,
        horizon=T,
        key=et.simulation(seed),
        **options,
    )
    return made, worst_tick(T, kind)


def count(way: str, T: int, pure: bool, columns: int = 0) -> Count:
    """Predicted; with columns also measured, on an empty stream."""
    made, tick = _histogram(way, T, pure, max(columns, 1), seed=T)
    tick = next(t for t in range(tick, 0, -1) if made.stddev(t) is not None)  # of K: the last release
    predicted, measured = made.stddev(tick), math.nan
    if columns:
        rows = made.run([[]] * tick)
        measured = float(np.sqrt(np.mean(rows[-1].astype(np.float64) ** 2)))
    return Count(way, pure, T, tick, float(predicted), measured, columns)


def counts(short: bool) -> list[Count]:
    fits = [(way, pure) for pure in (False, True) for way in WAYS if not (pure and "168" in way)]
    columns = {63: 1000, 8760: 0, 2**20: 0} if short else {63: 1000, 1023: 1000, 8760: 300, 2**20: 0}
    return [count(way, T, pure, columns[T]) for T in columns for way, pure in fits]


# Around multiplicative weights (PMW), which look at data, beside additive mechanisms.
ASKED: dict[str, dict[str, Any]] = {
    "L": {"mechanism": "linear"},
    "K, 1 release, PMW": {"mechanism": "anew", "every": 63, "static": "multiplicative-weights"},
    "K, 3 releases, PMW": {"mechanism": "anew", "every": 21, "static": "multiplicative-weights"},
    "K, 63 releases, PMW": {"mechanism": "anew", "every": 1, "static": "multiplicative-weights"},
    "B, hierarchy": {"mechanism": "subtract", "static": "hierarchy"},
    "B, PMW": {"mechanism": "subtract", "static": "multiplicative-weights"},
    "C5f, A2, hierarchy": {
        "mechanism": "interval-tree",
        "static": "hierarchy",
        "construction": {"allocation": "A2"},
    },
    "C5f, A2, PMW": {
        "mechanism": "interval-tree",
        "static": "multiplicative-weights",
        "construction": {"allocation": "A2"},
    },
    "C5f, AT, PMW": {"mechanism": "interval-tree", "static": "multiplicative-weights"},
}
_TICKS = 63


def ranges() -> tuple[Family, list[Any], IntArray]:
    """253 ranges over 64 cells, and their weights."""
    asked = [(low, high) for low in range(0, 64, 3) for high in range(low, 64, 3)]
    cells = np.arange(64)
    return Ranges(size=64), asked, np.array([(low <= cells) & (cells <= high) for low, high in asked], dtype=np.int64)


def arbitrary() -> tuple[Family, list[Any], IntArray]:
    """200 queries that each take half of 1024 cells, at random."""
    table = np.random.default_rng(7).integers(0, 2, (200, 1024))
    named = {f"q{i}": row.tolist() for i, row in enumerate(table)}
    return Queries(named, list(range(1024))), list(named), table


def turnover(cells: int, present: int, updates: int) -> tuple[list[list[tuple[str, int | None, int]]], IntArray]:
    """`present` items from the first tick on, replaced one by one, the oldest first, until so many updates happened."""
    rng = np.random.default_rng(present + updates)  # content to be counted, not noise
    moves = (updates - present) // 2 // (_TICKS - 1)
    values = rng.binomial(cells - 1, 0.3, present + moves * (_TICKS - 1)).tolist()
    ticks: list[list[tuple[str, int | None, int]]] = [[("insert", values[i], i) for i in range(present)]]
    for t in range(_TICKS - 1):
        fresh = range(present + t * moves, present + (t + 1) * moves)
        moved = [(("insert", values[n], n), ("delete", None, n - present)) for n in fresh]
        ticks.append([record for pair in moved for record in pair])
    return ticks, np.bincount(values[moves * (_TICKS - 1) :], minlength=cells)


def query(
    name: str, made_of: tuple[Family, list[Any], IntArray], way: str, present: int, updates: int, runs: int
) -> Query:
    """At the last tick."""
    family, asked, table = made_of
    ticks, cells = turnover(family.cells, present, updates)
    true = table @ cells
    errors, static = [], ""
    for seed in range(runs):
        made = et.LinearQueries(
            family,
            show=asked,
            guarantee=APPROXIMATE,
            horizon=_TICKS,
            key=et.simulation(seed),
            **ASKED[way],
        )
        static = made.static
        errors.append(np.abs(made.run(ticks)[-1] - true).max())
    return Query(name, way, static, present, updates, float(np.mean(errors)), float(true.max()), runs)


def queries(short: bool) -> list[Query]:
    sizes = [(1000, 3000)] if short else [(1000, 1000), (10_000, 10_000), (10_000, 40_000), (10_000, 160_000)]
    ways = [way for way in ASKED if not (short and "63 releases" in way)]
    found = [query("ranges", ranges(), way, n, updates, 1 if short else 3) for n, updates in sizes for way in ways]
    return found if short else found + arbitrary_queries()


def arbitrary_queries() -> list[Query]:
    """One run each: the matrix of the linear counter takes a minute to find."""
    made_of = arbitrary()
    ways = [way for way in ASKED if "hierarchy" not in way and "63" not in way]
    return [query("random", made_of, way, 10_000, updates, 1) for updates in (10_000, 160_000) for way in ways]


SPARSE: dict[str, dict[str, Any]] = {
    "L": {"mechanism": "linear"},
    "C2": {"mechanism": "doubling", "deletions": False},
    "C3": {"mechanism": "doubling", "deletions": False, "partition": "finite"},
    "C4": {"mechanism": "doubling", "deletions": False, "partition": "infinite"},
}


def sparse(way: str, T: int, updates: int) -> Sparse:
    """Insertions only, evenly spread; pure, because that is what partitions are best at."""
    made = et.DynamicCount(guarantee=PURE, horizon=T, key=et.simulation(T), **RAW_EVENT, **SPARSE[way])
    every = T // updates
    values = made.run([[("insert", None)] if t % every == 0 else [] for t in range(T)])
    true = np.cumsum(np.arange(T) % every == 0)
    segments = int(np.count_nonzero(np.diff(values))) + 1
    return Sparse(way, T, updates, float(np.sqrt(np.mean((values - true) ** 2.0))), segments)


def sparse_streams(short: bool) -> list[Sparse]:
    sizes = [(2**10, 256)] if short else [(2**12, 1024), (2**16, 1024), (2**16, 2**14)]
    return [sparse(way, T, updates) for T, updates in sizes for way in SPARSE]


def tables(counted: list[Count], asked: list[Query], rare: list[Sparse]) -> list[Table]:
    made = []
    for pure, promise in ((False, "epsilon 1, delta 1e-6"), (True, "epsilon 1, pure")):
        rows = [
            (
                c.way,
                f"{c.horizon:,}",
                f"{c.tick:,}",
                f"{c.predicted:,.1f}",
                "" if math.isnan(c.measured) else f"{c.measured:,.1f}",
                "" if math.isnan(c.measured) else f"{c.measured / c.predicted:.3f}",
                f"{c.predicted / first.predicted:.1f}",
            )
            for c in counted
            if c.pure == pure
            for first in [next(o for o in counted if (o.way, o.pure, o.horizon) == ("L", pure, c.horizon))]
        ]
        made.append(
            Table(
                f"Count of what is present, {promise}",
                "Standard deviation at the named tick, in the event unit unless another is named. Measured: root mean "
                "square over 1,000 columns of an empty stream, 300 for T = 8760 (± 2 to 6 % is chance).",
                ["construction", "T", "tick", "predicted", "measured", "measured/predicted", "over L"],
                rows,
            )
        )
    for family, title in (("ranges", "253 ranges over 64 cells"), ("random", "200 random queries over 1024 cells")):
        chosen = [q for q in asked if q.family == family]
        if chosen:
            made.append(
                Table(
                    f"{title}, epsilon 1, delta 1e-6, items",
                    f"The largest error of any of them at the last of {_TICKS} ticks, mean of a few runs.",
                    ["construction", "static", "present", "updates", "error", "over L", "of answering 0"],
                    [_query_row(q, chosen) for q in chosen],
                )
            )
    made.append(
        Table(
            "Few insertions in many ticks, epsilon 1, pure, events",
            "Root mean square error of the count over all ticks of one run.",
            ["construction", "T", "updates", "error", "releases that changed"],
            [(s.way, f"{s.horizon:,}", f"{s.updates:,}", f"{s.measured:.1f}", f"{s.segments:,}") for s in rare],
        )
    )
    return made


def _query_row(q: Query, among: list[Query]) -> tuple[str, ...]:
    base = next(o for o in among if (o.way, o.present, o.updates) == ("L", q.present, q.updates))
    return (
        q.way,
        q.static,
        f"{q.present:,}",
        f"{q.updates:,}",
        f"{q.measured:,.0f}",
        f"{q.measured / base.measured:.1f}",
        f"{q.measured / q.answered_zero:.2f}",
    )


@in_style
def plot(counted: list[Count], asked: list[Query], path: Path) -> None:
    """Deviations over the horizon, predicted (lines) and measured (points); errors of ranges over the updates."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {way: plt.get_cmap("tab20")(i) for i, way in enumerate(WAYS)}
    figure, axes = plt.subplots(1, 3, figsize=(16, 6.4), constrained_layout=True)
    for axis, pure in ((axes[0], False), (axes[1], True)):
        for way in WAYS:
            mine = [c for c in counted if c.way == way and c.pure == pure]
            axis.plot([c.horizon for c in mine], [c.predicted for c in mine], lw=1.2, color=colours[way], label=way)
            axis.plot([c.horizon for c in mine], [c.measured for c in mine], "o", ms=4, color=colours[way])
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("ticks T; lines: predicted, points: measured")
        axis.set_title("Standard deviation of a count, " + ("pure" if pure else "delta 1e-6"))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=5, fontsize=9)
    asked = [q for q in asked if q.family == "ranges"]
    largest = max(q.present for q in asked)
    for i, way in enumerate(dict.fromkeys(q.way for q in asked)):
        rows = [q for q in asked if q.way == way and q.present == largest]
        line = [q.measured for q in rows]
        axes[2].plot([q.updates for q in rows], line, "o-", ms=4, lw=1, color=f"C{i}", label=way)
    zero = [q for q in asked if q.way == "L" and q.present == largest]
    axes[2].plot([q.updates for q in zero], [q.answered_zero for q in zero], "k--", lw=1, label="answer 0")
    axes[2].set_xscale("log")
    axes[2].set_yscale("log")
    axes[2].set_xlabel("updates so far")
    axes[2].set_title(f"Largest error of a range, {largest:,} items present")
    figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower right", ncols=3, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
