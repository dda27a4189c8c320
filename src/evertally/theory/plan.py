"""All ways to answer a question about column sums, ranked by the error that they are predicted to make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

from evertally.errors import ConfigurationError
from evertally.histogram.approaches import survey
from evertally.noise import ZeroNoise
from evertally.privacy import ApproxDP, Guarantee, Neighbours, PureDP
from evertally.statistics import Histogram, MaxSum, MinSum, Quantile, SumSelect, TopK, TopKSelect
from evertally.statistics.column_options import Guessing
from evertally.theory.floors import floor

_QUERIES: dict[str, Any] = {
    "max_sum": MaxSum,
    "min_sum": MinSum,
    "quantile": Quantile,
    "top_k": TopK,
    "sum_select": SumSelect,
    "top_k_select": TopKSelect,
    "histogram": partial(Histogram, mechanism="sparse"),
}
_FLOORS = ("max_sum", "sum_select", "top_k", "top_k_select", "histogram")


@dataclass(frozen=True)
class Way:
    """One way: its name (`mechanism=`), what it pays, the median largest error on a steady stream, the error bound.

    `bound` holds on every stream that keeps `max_events_per_tick`; where it is infinite `open` says why, and what to
    declare. `guessed` is the bound while answers stay below `largest`.
    """

    name: str
    charge: Guarantee
    predicted: float
    bound: float
    guessed: float
    open: str


class Plan(Sequence[Way]):
    """Ways, best first, those without an error bound last.

    `constant` is the expected error of the constant answer 0, and `possible` the largest that what was declared allows;
    `floor` what no mechanism stays below on all streams of this length, small answers or not (None where nothing is
    certified); `reasons` why other ways do not fit.
    """

    def __init__(
        self, ways: Sequence[Way], constant: float, possible: float, floor: float | None, reasons: Sequence[str]
    ) -> None:
        self._ways = tuple(ways)
        self.constant = constant
        self.possible = possible
        self.floor = floor
        self.reasons = tuple(reasons)

    @overload
    def __getitem__(self, index: int) -> Way: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Way]: ...
    def __getitem__(self, index: int | slice) -> Way | Sequence[Way]:
        return self._ways[index]

    def __len__(self) -> int:
        return len(self._ways)

    def __repr__(self) -> str:
        lines = [("mechanism", "pays", "predicted", "bound", "if below largest")]
        lines += [
            (way.name, _short(way), f"{way.predicted:,.0f}", _bound(way.bound), _bound(way.guessed)) for way in self
        ]
        lines.append(("constant 0", "nothing", _bound(self.constant), _bound(self.possible), _bound(self.constant)))
        if self.floor is not None:
            lines.append(("floor, any stream", "", "", f"{self.floor:,.0f}", ""))
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        return "\n".join(
            "  ".join(
                f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}"
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def _bound(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "none"


def _short(way: Way) -> str:
    return "nothing" if way.name == "trivial" else repr(way.charge)


def plan(query: str, columns: int, guarantee: Guarantee, horizon: int | None, **options: Any) -> Plan:
    """The ways to answer `query`, with their predicted errors and bounds: what `mechanism="auto"` chooses from.

    `query` is "max_sum", "min_sum", "quantile" (with `q=`), "top_k" and "top_k_select" (with `k=`), "sum_select" or
    "histogram"; `options` are those of its class, `largest` above all. Predictions are for a stream that reaches
    `largest` evenly (price-of-continual-release 3.8, `histogram/predict.py`). From public numbers only: this costs no
    budget, and no data are asked for. Ways whose error nothing that was declared bounds come last.

    >>> import evertally as et
    >>> ranked = plan("max_sum", 10, et.PureDP(1.0), 10**6, largest=10**4, max_per_event=1)
    >>> ranked[0].name
    'rebased'
    >>> ranked.constant, [way.name for way in ranked if way.name in ("rebased", "tree", "recompute")]
    (10000.0, ['rebased', 'tree', 'recompute'])
    >>> ranked[-1].bound, ranked[-1].open.split(": ")[-1]
    (inf, 'declare max_events_per_tick')
    >>> repr(ranked).splitlines()[0].split()[:4]
    ['mechanism', 'pays', 'predicted', 'bound']
    """
    if query not in _QUERIES:
        raise ConfigurationError(f"query must be one of {', '.join(_QUERIES)}; got {query!r}")
    made = _mechanism(query, columns, guarantee, horizon, options)
    ways, reasons = survey(made._task)
    return Plan(
        [Way(way.name, way.charge, way.predicted, way.bound, way.guessed, way.open) for way in ways],
        made._task.ceiling,
        made._task.reachable,
        _floor(query, columns, guarantee, horizon, options),
        reasons,
    )


def _mechanism(
    query: str, columns: int, guarantee: Guarantee, horizon: int | None, options: dict[str, Any]
) -> Guessing:
    make = _QUERIES[query]
    options = {"guarantee": guarantee, "horizon": horizon, "key": ZeroNoise()} | options
    made: Guessing = (
        make(categories=[str(j) for j in range(columns)], **options)
        if query == "histogram"
        else make(columns=columns, **options)
    )
    return made


def _floor(
    query: str, columns: int, guarantee: Guarantee, horizon: int | None, options: dict[str, Any]
) -> float | None:
    """The certified floor, where there is one."""
    if query not in _FLOORS or horizon is None or not isinstance(guarantee, PureDP | ApproxDP):
        return None
    relation = Neighbours.parse(options.get("neighbours", "add_remove"))
    if relation is Neighbours.INDEPENDENT:
        return None
    per_event = options.get("max_per_event", 1 if query == "histogram" else None)
    return floor(query, horizon, columns, guarantee, neighbours=relation, max_per_event=per_event).value  # type: ignore[arg-type]
