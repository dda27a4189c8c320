"""Prometheus metrics in two registries of our own: one for readers, one for administrators.

Readers get public and released values only. A registry of our own also leaves out the usual figures about the process:
its CPU time, memory and garbage collections follow the number of events that are being counted.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evertally.runtime.figures import ClientFigures
from evertally.runtime.pump import Pump
from evertally.runtime.releases import shown
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.runtime.windows import Windows
from evertally.runtime.windows.outputs import WindowRows
from evertally.service.about import next_release

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PRIVATE = "Not noised: for administrators."
_MOST_LABELS = 100  # a series for each; what has more is read from /v1/releases
_COLUMNS = {
    "value": "Released values.",
    "lower": "Lower ends of their intervals.",
    "upper": "Upper ends of their intervals.",
}


class Metrics:
    """Both registries, as text."""

    def __init__(self, spec: StreamSpec, pump: Pump, history: History, windows: Windows) -> None:
        self._spec, self._pump, self._history = spec, pump, history
        self._windows = WindowRows(spec, windows)

    def public(self) -> bytes:
        return _text(self._released())

    def private(self) -> bytes:
        return _text(self._figures())

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        gauge = GaugeMetricFamily(f"evertally_{name}", text, labels=["stream"])
        gauge.add_metric([self._spec.name], value)
        return gauge

    def _released(self) -> Iterator[Metric]:
        spec, published = self._spec, self._pump.published
        yield self._gauge("released_tick", "The last released tick.", published)
        yield self._gauge("horizon_ticks", "The number of ticks of the stream (0: no end).", spec.last_tick or 0)
        if (moment := next_release(spec, published)) is not None:
            left = (moment - dt.datetime.now(dt.UTC)).total_seconds()
            yield self._gauge("next_release_seconds", "Seconds until the next release.", max(0.0, left))
        latest = self._history.latest()
        found = [] if latest is None else self._windows.added([latest])
        series = [(name, columns) for release in found for name, _, columns in shown(spec, release)]
        for column, text in _COLUMNS.items():
            family = GaugeMetricFamily(f"evertally_{column}", text, labels=["stream", "query", "category"])
            for query, columns in series:
                for category, value in _series(columns, column):
                    family.add_metric([spec.name, query, category], value)
            yield family

    def _figures(self) -> Iterator[Metric]:
        figures = dataclasses.asdict(self._pump.figures)
        clients = figures.pop("clients")
        for name, value in figures.items():
            if isinstance(value, int | float):
                yield self._gauge(f"admin_{name}", _PRIVATE, value)
        for name in (field.name for field in dataclasses.fields(ClientFigures)):
            family = GaugeMetricFamily(f"evertally_admin_client_{name}", _PRIVATE, labels=["stream", "client"])
            for client, values in clients.items():
                family.add_metric([self._spec.name, client], values[name])
            yield family
        memory = GaugeMetricFamily("evertally_admin_memory_bytes", _PRIVATE, labels=["stream", "query"])
        for query, size in figures["memory"].items():
            memory.add_metric([self._spec.name, query], size)
        yield memory


@dataclasses.dataclass(eq=False)  # a registry looks it up by its identity
class _Collected(Collector):
    metrics: Iterator[Metric]

    def collect(self) -> Iterator[Metric]:
        return self.metrics


def _text(metrics: Iterator[Metric]) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Collected(metrics))
    return generate_latest(registry)


def _series(columns: dict[str, Any], column: str) -> list[tuple[str, float]]:
    """The numbers of a release by category; none where values are labels, or too many."""
    if columns["category"] is None:
        cells = [("", columns["value"], columns[column])]
    else:
        cells = list(zip(columns["category"], columns["value"], columns[column], strict=True))
    if len(cells) > _MOST_LABELS:
        return []
    # A label may be a text that UTF-8 cannot hold.
    return [
        (category.encode("utf-8", "backslashreplace").decode(), number)
        for category, value, number in cells
        if not isinstance(value, str | None)
    ]
