"""The mechanism around a question about column sums: the door, the chosen way, and how an answer is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.counting.column_input import ColumnInput, Columns, column_count
from evertally.counting.mechanism import (
    Accuracy,
    Options,
    check_guarantee,
    check_horizon_option,
    check_neighbours,
    whole,
)
from evertally.counting.process import IntArray
from evertally.counting.veil import VeiledMechanism
from evertally.errors import ConfigurationError
from evertally.histogram.approaches import choose_approach
from evertally.histogram.expressions import exact_number
from evertally.histogram.tasks import Task, monotone
from evertally.noise import NoiseKey
from evertally.partition import Queries, Split
from evertally.partition.veil import PartitionVeil
from evertally.privacy import Contribution, Guarantee, Neighbours, change, moves_one_way

Share = str | float | Fraction


class ColumnQuery(ColumnInput, VeiledMechanism):
    """Not used directly; see `MaxSum`, `MinSum`, `Quantile`, `TopK`, `SumSelect`, `TopKSelect`, `MonotoneQuery`.

    An event touches at most `max_per_event` columns (default: all) and adds an integer from 0 to `max_weight` to each.
    `largest` is a public guess at the largest answer: it steers accuracy, never privacy. `max_events_per_tick` is used
    for predictions and error bounds only; left out, they are those of one event in a tick, and "auto" does not choose
    to ignore the data. `split` divides the budget of a partition between tau, mu and the histogram. `calibration` holds
    the numbers that a planner settled for this mechanism; a snapshot carries them.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        queries: Queries,
        options: Options,
        guarantee: Guarantee,
        horizon: int | None,
        linear: bool = False,
        selects: bool = False,
        mechanism: str = "auto",
        largest: int | None = None,
        max_per_event: int | None = None,
        max_weight: int = 1,
        max_events_per_tick: int | None = None,
        other: str | None = None,
        signed: bool = False,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        beta: float = 0.05,
        split: Sequence[Share] | None = None,
        memory_limit: int = 2**30,
        calibration: Mapping[str, Any] | None = None,
        key: NoiseKey | None = None,
        stream: str = "stream",
        name: str | None = None,
        allow_copy: bool = False,
    ) -> None:
        check_guarantee(guarantee)
        horizon = check_horizon_option(horizon)
        relation = check_neighbours(neighbours, guarantee)
        largest = None if largest is None else whole("largest", largest, 1, 2**60)
        busiest = 1 if max_events_per_tick is None else whole("max_events_per_tick", max_events_per_tick, 1, 2**40)
        growth = busiest * whole("max_weight", max_weight, 1, 2**40)
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        if signed:
            raise ConfigurationError(
                "queries on column sums need counts that only grow; signed amounts are for Counter, VectorCounter and "
                "Histogram with linear noise"
            )
        d = column_count(columns, other)
        per_event = d if max_per_event is None else max_per_event
        shares = None if split is None else [exact_number(share, "a part of the split") for share in split]
        if shares is not None and len(shares) != 3:
            raise ConfigurationError("a split has three parts: for tau, for mu and for the histogram")
        kept = self._open_door(columns, other, per_event, max_weight)
        if self._door.width != d:
            raise ConfigurationError("columns are a number or a list that says the same whenever it is read")
        contribution = Contribution(
            max_per_event=per_event,
            max_weight=max_weight,
            unit=unit,
            max_events_per_user=max_events_per_user,
        )
        one_event = Contribution(max_per_event=per_event, max_weight=max_weight)
        self.sensitivity = change(relation, contribution, d)
        event = change(relation, one_event, d)
        self._queries = queries
        self._task = Task(
            guarantee,
            relation,
            self.sensitivity,
            event,
            self.sensitivity.linf // event.linf,
            horizon,
            d,
            queries,
            one_way=moves_one_way(relation, contribution) and monotone(queries),
            linear=linear,
            selects=selects,
            largest=largest,
            growth=growth,
            beta=beta,
            split=None if shares is None else Split.of(*shares),
            memory_limit=whole("memory_limit", memory_limit, 1, 2**62),
            declared=largest is not None or max_events_per_tick is not None,
            settled=calibration,
        )
        approach = choose_approach(self._task, mechanism)
        self._answers = approach.answers
        super().__init__(
            columns=d,
            width=approach.width,
            contribution=contribution,
            options=options
            | {
                "columns": kept,
                "largest": largest,
                "max_per_event": max_per_event,
                "max_weight": max_weight,
                "max_events_per_tick": max_events_per_tick,
                "other": other,
                "unit": unit,
                "max_events_per_user": max_events_per_user,
                "beta": beta,
                "split": None if shares is None else [str(share) for share in shares],
                "memory_limit": memory_limit,
                "calibration": approach.numbers,
            },
            guarantee=guarantee,
            charge=approach.charge,
            horizon=horizon,
            mechanism=approach.name,
            key=key,
            neighbours=relation,
            stream=stream,
            name=name,
            allow_copy=allow_copy,
        )
        self._set_veil(approach.build)

    @property
    def status(self) -> Literal["ok", "exhausted"]:
        """ "exhausted": a partition has used up its intervals, and the answer is frozen (private, without a bound)."""
        frozen = isinstance(self._veil, PartitionVeil) and self._veil.partition.exhausted
        return "exhausted" if frozen else "ok"

    # -- how an answer is shown: post-processing of what was released ------------------------------------------------

    def _numbers(self, values: IntArray) -> IntArray:
        """The integer answers behind a released row."""
        return values if self._answers else self._queries.values(values)

    def _show(self, values: IntArray) -> Any:
        return int(self._numbers(values)[0])

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return np.array([self._show(row) for row in values], dtype=np.int64)

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        radius, shown = int(accuracy.radius(beta)), self._show(values)
        return shown - radius, shown + radius

    def _labels(self) -> list[str] | None:
        return None
