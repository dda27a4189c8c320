"""All benchmarks in one run: `python -m benchmarks` prints one report and writes it, with plots, to benchmarks/out.

`--short` takes less than a minute and is what the tests run: the square-root counter's error and speed, and the door.
`columns`: queries on column sums alone; `dynamic`: what is present now, alone (the short run of everything leaves out
both).
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.report import Table

from benchmarks import columns, dynamic, dynamic_speed, error, noise, speed


def machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("evertally", "numpy", "numba"))
    return f"{platform.machine()}, Python {platform.python_version()}, {packages}"


def noise_table(rows: list[noise.Row]) -> Table:
    return Table(
        "Speed of the samplers",
        f"CPU time, ns a sample on {noise.N:,} samples. Vector: one node; nodes: one column. Bar: at least "
        f"{noise.LEAST_RATIO:.0f} times faster than OpenDP and at most {noise.MOST_NANOSECONDS:.0f} ns, both ways.",
        ["law", "scale", "vector", "nodes", "OpenDP", "ratio", "bar"],
        [
            (
                row.law,
                f"{row.scale:,}",
                f"{row.vector:.1f}",
                f"{row.nodes:.1f}",
                f"{row.opendp:,.0f}",
                f"{row.ratio:,.0f}",
                "holds" if row.passes else "missed",
            )
            for row in rows
        ],
    )


def plain(result: Any) -> dict[str, Any]:
    """A result as JSON takes it; profiles are for the plot only."""
    fields = {name: value for name, value in dataclasses.asdict(result).items() if not isinstance(value, np.ndarray)}
    numbers = {name: value.item() if isinstance(value, np.generic) else value for name, value in fields.items()}
    return {name: None if value != value else value for name, value in numbers.items()}  # JSON has no NaN


ROOMS = ("cells", "crossover", "ladders", "speed")  # of the results on column sums


def only_columns(short: bool, out: Path, start: float) -> int:
    results = columns.measure(short)
    tables = columns.tables(results)
    for table in tables:
        print(table.text(), flush=True)
    columns.plot(results, out / "columns.png")
    heading = f"# Column sums\n\n{machine()}. One run of {time.perf_counter() - start:.0f} s.\n"
    (out / "columns.md").write_text("\n".join([heading, *(table.markdown() for table in tables)]))
    as_json = {room: [plain(cell) for cell in getattr(results, room)] for room in ROOMS}
    (out / "columns.json").write_text(json.dumps(as_json, indent=1) + "\n")
    print(f"written: {out}/columns.md, columns.json, columns.png")
    return 0


def only_dynamic(short: bool, out: Path, start: float) -> int:
    results: dict[str, list[Any]] = {"count": dynamic.counts(short), "query": dynamic.queries(short)}
    results |= {"sparse": dynamic.sparse_streams(short), "speed": dynamic_speed.measure(short)}
    tables = dynamic.tables(results["count"], results["query"], results["sparse"])
    tables += dynamic_speed.tables(results["speed"])
    for table in tables:
        print(table.text(), flush=True)
    dynamic.plot(results["count"], results["query"], out / "dynamic.png")
    heading = f"# What is present now\n\n{machine()}. One run of {time.perf_counter() - start:.0f} s.\n"
    (out / "dynamic.md").write_text("\n".join([heading, *(table.markdown() for table in tables)]))
    as_json = {room: [plain(row) for row in rows] for room, rows in results.items()}
    (out / "dynamic.json").write_text(json.dumps(as_json, indent=1) + "\n")
    print(f"written: {out}/dynamic.md, dynamic.json, dynamic.png")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="?", choices=["columns", "dynamic"], help="leave out all the others")
    parser.add_argument("--short", action="store_true", help="less than a minute")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out", help="directory of the results")
    parser.add_argument("--jax-python", help="an interpreter that has jax-privacy, if this one has not")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / ".gitignore").write_text("*\n")

    start = time.perf_counter()
    if options.only == "columns":
        return only_columns(options.short, options.out, start)
    if options.only == "dynamic":
        return only_dynamic(options.short, options.out, start)
    tables: list[Table] = []
    sampled: list[noise.Row] = []
    if options.short:
        print("The samplers beside OpenDP are left out of the short run.\n")
    elif importlib.util.find_spec("opendp") is None:
        print("The samplers are compared with OpenDP, which is not installed: dependency group `bench`.\n")
    else:
        sampled = noise.measure()
        tables.append(noise_table(sampled))
        print(tables[-1].text(), flush=True)
    timings = speed.measure(options.short, options.jax_python)
    for table in speed.tables(timings):
        tables.append(table)
        print(table.text(), flush=True)
    errors = error.measure(options.short)
    for table in error.tables(errors):
        tables.append(table)
        print(table.text(), flush=True)

    results: dict[str, Any] = {"noise": sampled, "speed": timings, "error": errors}
    if not options.short:
        sums = columns.measure()
        for table in columns.tables(sums):
            tables.append(table)
            print(table.text(), flush=True)
        columns.plot(sums, options.out / "columns.png")
        results |= {f"columns, {room}": getattr(sums, room) for room in ROOMS}

    speed.plot(timings, options.out / "speed.png")
    error.plot(errors, options.out / "error.png")
    heading = f"# Benchmarks\n\n{machine()}. One run of {time.perf_counter() - start:.0f} s.\n"
    (options.out / "report.md").write_text("\n".join([heading, *(table.markdown() for table in tables)]))
    as_json = {room: [plain(row) for row in rows] for room, rows in results.items()}
    (options.out / "results.json").write_text(json.dumps(as_json, indent=1) + "\n")
    print(f"written: {options.out}/report.md, results.json, error.png, speed.png")
    if not options.short:
        only_dynamic(False, options.out, time.perf_counter())
    return 0 if all(row.passes for row in sampled) else 1


if __name__ == "__main__":
    sys.exit(main())
