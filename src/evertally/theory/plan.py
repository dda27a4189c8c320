"""All ways to answer a question about column sums, ranked by the error that they are predicted to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from evertally.errors import ConfigurationError
from evertally.histogram import MaxSum, MinSum, Quantile, SparseHistogram, SumSelect, TopK, TopKSelect
from evertally.histogram.approaches import survey
from evertally.histogram.column_query import ColumnQuery
from evertally.noise import ZeroNoise
from evertally.privacy import ApproxDP, Guarantee, Neighbours, PureDP
from evertally.theory.floors import floor

_QUERIES: dict[str, Any] = {
    "max_sum": MaxSum,
    "min_sum": MinSum,
    "quantile": Quantile,
    "top_k": TopK,
    "sum_select": SumSelect,
    "top_k_select": TopKSelect,
    "histogram": SparseHistogram,
}
_FLOORS = ("max_sum", "sum_select", "top_k", "top_k_select", "histogram")


@dataclass(frozen=True)
class Way:
    """One way: its name (`mechanism=`), what it pays, the median largest error on a steady stream, the error bound."""

    name: str
    charge: Guarantee
    predicted: float
    bound: float


class Plan(Sequence[Way]):
    """Ways, best first. `constant` is the error of the constant answer 0; `floor` what no mechanism stays below on all
    streams of this length, small answers or not (None where nothing is certified); `reasons` why other ways do not fit.
    """

    def __init__(self, ways: Sequence[Way], constant: float, floor: float | None, reasons: Sequence[str]) -> None:
        self._ways = tuple(ways)
        self.constant = constant
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
        lines = [("mechanism", "pays", "predicted", "bound")]
        lines += [(way.name, _short(way), f"{way.predicted:,.0f}", f"{way.bound:,.0f}") for way in self]
        lines.append(("constant 0", "nothing", f"{self.constant:,.0f}", f"{self.constant:,.0f}"))
        if self.floor is not None:
            lines.append(("floor, any stream", "", "", f"{self.floor:,.0f}"))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        return "\n".join(
            f"{name:<{widths[0]}}  {pays:<{widths[1]}}  {predicted:>{widths[2]}}  {bound:>{widths[3]}}".rstrip()
            for name, pays, predicted, bound in lines
        )


def _short(way: Way) -> str:
    return "nothing" if way.name == "trivial" else repr(way.charge)


def plan(query: str, columns: int, guarantee: Guarantee, horizon: int | None, **options: Any) -> Plan:
    """The ways to answer `query`, with their predicted errors and bounds: what `mechanism="auto"` chooses from.

    `query` is "max_sum", "min_sum", "quantile" (with `q=`), "top_k" and "top_k_select" (with `k=`), "sum_select" or
    "histogram"; `options` are those of its class, `largest` above all. Predictions are for a stream that reaches
    `largest` evenly (price-of-continual-release 3.8, `histogram/predict.py`). From public numbers only: this costs no
    budget, and no data are asked for.

    >>> import evertally as et
    >>> ranked = plan("max_sum", 10, et.PureDP(1.0), 10**6, largest=10**4, max_per_event=1)
    >>> ranked[0].name
    'rebased'
    >>> ranked.constant, [way.name for way in ranked if way.name in ("rebased", "tree", "recompute")]
    (10000.0, ['rebased', 'tree', 'recompute'])
    >>> repr(ranked).splitlines()[0].split()
    ['mechanism', 'pays', 'predicted', 'bound']
    """
    if query not in _QUERIES:
        raise ConfigurationError(f"query must be one of {', '.join(_QUERIES)}; got {query!r}")
    made = _mechanism(query, columns, guarantee, horizon, options)
    ways, reasons = survey(made._task)
    return Plan(
        [Way(way.name, way.charge, way.predicted, way.bound) for way in ways],
        made._task.ceiling,
        _floor(query, columns, guarantee, horizon, options),
        reasons,
    )


def _mechanism(
    query: str, columns: int, guarantee: Guarantee, horizon: int | None, options: dict[str, Any]
) -> ColumnQuery:
    make = _QUERIES[query]
    options = {"guarantee": guarantee, "horizon": horizon, "key": ZeroNoise()} | options
    made: ColumnQuery = (
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
