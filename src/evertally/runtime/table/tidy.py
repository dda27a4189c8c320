"""Releases as one tidy table: a row for each number, its error beside it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from evertally.contract.release import Release
from evertally.runtime.mechanisms import Mechanisms
from evertally.runtime.releases import TickRelease, entries, pack, unpack
from evertally.runtime.spec import QuerySpec, StreamSpec

COLUMNS = ("tick", "time", "query", "label", "value", "stddev", "low", "high")


@dataclass(frozen=True)
class Window:
    """Sums over `ticks` ticks each, a window ending every `every` ticks; `scale` makes rates of counts."""

    ticks: int
    every: int
    scale: float = 1.0
    per: str = ""  # in words


@dataclass
class Log:
    """All that was released, tick by tick."""

    ticks: list[TickRelease] = field(default_factory=list)
    releases: list[Mapping[str, Release]] = field(default_factory=list)

    def add(self, tick: TickRelease, releases: Mapping[str, Release]) -> None:
        """The next tick."""
        self.ticks.append(tick)
        self.releases.append(releases)


class _Rows:
    """The columns of a table that is being written."""

    def __init__(self, spec: StreamSpec, windowed: bool) -> None:
        self._spec = spec
        self._names = ("tick", "since", *COLUMNS[1:]) if windowed else COLUMNS
        self._cells: dict[str, list[Any]] = {name: [] for name in ("since", *COLUMNS)}

    def add(self, query: QuerySpec, release: Release, columns: Mapping[str, Any], scale: float = 1.0) -> None:
        """All numbers of one release. A rate is a real number, and so are its error and its interval."""
        time, cells = self._spec.clock.end_of(release.tick), self._cells
        times: Callable[[Any], Any] = _same if scale == 1 else lambda number: number * scale
        stddev = None if release.stddev is None else release.stddev * scale
        chosen = query.result.value == "label"
        for category, value, low, high in entries(columns):
            # A chosen label is no number: it stands where labels stand, best first.
            label, *numbers = (value, None, None, None) if chosen else (category, times(value), times(low), times(high))
            row = (release.since, release.tick, time, query.name, label, numbers[0], stddev, *numbers[1:])
            for name, cell in zip(("since", *COLUMNS), row, strict=True):
                cells[name].append(cell)

    def table(self) -> Any:
        """As Arrow: whole numbers where all of them are, real ones otherwise."""
        cells = self._cells
        found = [number for name in ("value", "low", "high") for number in cells[name] if number is not None]
        whole = all(type(number) is int for number in found)
        number = pa.int64() if whole else pa.float64()
        if not whole:
            for name in ("value", "low", "high"):
                cells[name] = [None if cell is None else float(cell) for cell in cells[name]]
        integer = self._spec.clock.integer
        if not integer:
            cells["time"] = [dt.datetime.fromisoformat(moment) for moment in cells["time"]]
        types = {
            "since": pa.int64(),
            "tick": pa.int64(),
            "time": pa.int64() if integer else pa.timestamp("us", "UTC"),
            "stddev": pa.float64(),
        }
        types |= dict.fromkeys(("query", "label"), pa.string()) | dict.fromkeys(("value", "low", "high"), number)
        cells["label"] = [None if label is None else _shown(str(label)) for label in cells["label"]]
        return pa.table({name: pa.array(cells[name], types[name]) for name in self._names})


def totals(spec: StreamSpec, log: Log, queries: Iterable[str]) -> Any:
    """Every release of these queries, as it was made."""
    rows = _Rows(spec, windowed=False)
    for query in _chosen(spec, queries):
        for tick, releases in zip(log.ticks, log.releases, strict=True):
            rows.add(query, releases[query.name], unpack(query, tick.payloads[query.name]))
    return rows.table()


def windows(spec: StreamSpec, laws: Mechanisms, log: Log, asked: Mapping[str, Window]) -> Any:
    """Sums over the windows of each query: differences of two releases, with the exact error of the difference."""
    last = len(log.ticks)
    rows = _Rows(spec, windowed=True)
    for query in _chosen(spec, asked):
        law, window = laws[query.name], asked[query.name]
        ends = list(range(last, window.ticks - 1, -window.every))[::-1]
        # Ratios and percentiles of a window are no sums, and have no rate.
        scale = window.scale if has_rate(spec, laws, query.name, window) else 1.0
        for tick in ends:
            since = tick - window.ticks
            now = log.releases[tick - 1][query.name].row
            before = log.releases[since - 1][query.name].row if since else None
            made = law.window_of(now, before, tick=tick, since=since)
            rows.add(query, made, unpack(query, pack(query, made, spec.beta)), scale)
    return rows.table()


def has_rate(spec: StreamSpec, laws: Mechanisms, name: str, window: Window) -> bool:
    """Whether the numbers of a query are sums, so that those of a window can be divided by its length."""
    (query,) = _chosen(spec, [name])
    return query.result.value == "integer" or laws[name].stddev(window.ticks) is not None


def _chosen(spec: StreamSpec, names: Iterable[str]) -> list[QuerySpec]:
    wanted = set(names)
    return [query for query in spec.queries if query.name in wanted]


def _same(number: Any) -> Any:
    return number


def _shown(label: str) -> str:
    """Arrow holds UTF-8 only; what else a label may contain is shown escaped."""
    return label.encode("utf-8", "backslashreplace").decode()
