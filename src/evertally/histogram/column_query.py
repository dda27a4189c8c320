"""The mechanism around a question about column sums: the door, the chosen way, and how an answer is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from evertally.histogram.expressions import exact_number
from evertally.histogram.tasks import Task, monotone
from evertally.histogram.veils import Bound
from evertally.histogram.ways import choose, rank
from evertally.noise import NoiseKey
from evertally.partition import Queries, Split
from evertally.partition.veil import PartitionAccuracy, PartitionVeil
from evertally.privacy import Contribution, Guarantee, Neighbours, change, moves_one_way
from evertally.ranking import Ranking

Share = str | float | Fraction


class ColumnQuery(ColumnInput, VeiledMechanism):
    """Not used directly; see `MaxSum`, `MinSum`, `Quantile`, `TopK`, `SumSelect`, `TopKSelect`, `MonotoneQuery`.

    An event touches at most `max_per_event` columns (default: all) and adds an integer from 0 to `max_weight` to each.
    `largest` is a public guess at the largest answer: it steers accuracy. `max_events_per_tick` is a public fact: no
    tick has more events. Neither is ever enforced, and no privacy rests on them. A guess carries no error bound, and
    neither does what nobody declared: bounds, intervals and `status` hold whatever the answers are, as long as
    `max_events_per_tick` is true; without it some ways have no bound, and "auto" takes none of these. `split` divides
    the budget of a partition between tau, mu and the histogram. `calibration` holds the numbers that a planner settled
    for this mechanism; a snapshot carries them.
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
        weight = whole("max_weight", max_weight, 1, 2**40)
        most = (
            None
            if max_events_per_tick is None
            else weight * whole("max_events_per_tick", max_events_per_tick, 1, 2**40)
        )
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
            growth=most or _guessed_growth(weight, largest, horizon),
            most=most,
            beta=beta,
            split=None if shares is None else Split.of(*shares),
            memory_limit=whole("memory_limit", memory_limit, 1, 2**62),
            settled=calibration,
        )
        approach = choose(self._task, mechanism)
        self._answers = approach.answers
        self._open = approach.open
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
    def status(self) -> Literal["ok", "exhausted", "unbounded"]:
        """Whether the present answer has an error bound ("ok").

        "exhausted": a partition has used up its intervals, and the answer is frozen. "unbounded": nothing that was
        declared bounds the error of a repeated or constant answer (`unbounded_because`). Both are private, and their
        intervals say what is known.
        """
        if isinstance(self._veil, PartitionVeil):
            return "exhausted" if self._veil.partition.exhausted else "ok"
        return "unbounded" if self._open else "ok"

    @property
    def unbounded_because(self) -> str | None:
        """Why `error_bound` is infinite and what to declare, or None if it is not."""
        return self._open or None

    def error_bound(self, beta: float = 0.05, t: int | None = None, *, trust_largest: bool = False) -> float:
        """With probability at least 1 - beta no answer of any tick is further off than this.

        With `t`, the bound for that tick, all ticks together still failing with probability at most beta; without a
        horizon `t` is needed. It holds on every stream, or where `max_events_per_tick` was declared on every stream
        that keeps it; where that bounds nothing it is infinite (`unbounded_because`). With `trust_largest` it is the
        bound of a partition while answers stay below `largest`: smaller, and worth as much as that guess.

        >>> import evertally as et
        >>> top = et.MaxSum(10, guarantee=et.PureDP(1.0), horizon=10**6, largest=10**4, mechanism="bounded")
        >>> top.error_bound(), 0 < top.error_bound(trust_largest=True) < 10**5
        (inf, True)
        """
        sure = super().error_bound(beta, t)
        if trust_largest and isinstance(self._veil, PartitionVeil):
            return min(sure, self._veil.guessed_bound(beta, t))
        return sure

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its way from, with bounds that hold with probability 1 - beta."""
        return rank(replace(self._task, settled=None))

    # -- how an answer is shown: post-processing of what was released ------------------------------------------------

    def _numbers(self, values: IntArray) -> IntArray:
        """The integer answers behind a released row."""
        return values if self._answers else self._queries.values(values)

    def _show(self, values: IntArray) -> Any:
        return int(self._numbers(values)[0])

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return np.array([self._show(row) for row in values], dtype=np.int64)

    def _interval(self, values: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        (below, above), shown = sides(accuracy, beta), self._show(values)
        return shown - below, shown + above

    def _labels(self) -> list[str] | None:
        return None


def sides(accuracy: Accuracy, beta: float) -> tuple[int, int]:
    """How far the truth may be below an answer and above it, in whole numbers."""
    assert isinstance(accuracy, Bound | PartitionAccuracy)
    below, above = accuracy.sides(beta)
    return int(below), int(above)


def _guessed_growth(weight: int, largest: int | None, horizon: int | None) -> int:
    """What an answer may grow by in a tick, where nobody said: one event, or more if `largest` needs more."""
    return max(weight, 1 if largest is None or horizon is None else -(-largest // horizon))
