"""Running counts: of one thing, and of several at once."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import NDArray

from evertally.counting.amount_input import AmountInput
from evertally.counting.column_input import ColumnInput, Columns
from evertally.counting.linear import LinearMechanism
from evertally.counting.process import IntArray
from evertally.encode import AmountDoor
from evertally.privacy import Contribution, Guarantee, Neighbours, change


class Counter(AmountInput, LinearMechanism):
    """The running total of a stream: how many events so far, or how much.

    An event adds an integer from 0 to `max_weight` (from -max_weight if `signed`). After every tick the total of all
    ticks so far is released, with integer noise. The noise follows from key, `stream`, `name` and parameters: a second
    counter on *other* data needs another key or another name, or their difference is published exactly.

    Theorem (factorization-counting 4 and 11, price-of-continual-release 3.2): all releases together keep `guarantee`
    under `neighbours`, also when the stream is chosen after seeing earlier releases. With the square-root process the
    worst standard deviation is S_T max_weight/sqrt(2 rho), S_T = ln(T)/pi + 1.066. Exactness tier: "exact".
    Time per tick O(1) (tree) or O(log T) amortised (sqrt); memory O(log T) or 8 T bytes.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    >>> release = counter.step(3)
    >>> counter.mechanism, counter.tick, round(counter.stddev(4096), 2), counter.exactness
    ('sqrt', 1, 3.73, 'exact')
    >>> counter.run([1, 0, 2]).dtype
    dtype('int64')
    """

    named_ways = ("sparse",)

    def __init__(
        self,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        max_weight: int = 1,
        signed: bool = False,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        **common: Any,
    ) -> None:
        contribution = Contribution(
            max_weight=max_weight, signed=signed, unit=unit, max_events_per_user=max_events_per_user
        )
        self._amounts = AmountDoor(max_weight, signed)
        super().__init__(
            columns=1,
            change=change(neighbours, contribution, 1),
            contribution=contribution,
            options={
                "max_weight": max_weight,
                "signed": signed,
                "unit": unit,
                "max_events_per_user": max_events_per_user,
            },
            guarantee=guarantee,
            horizon=horizon,
            neighbours=neighbours,
            **common,
        )

    def _show(self, values: IntArray) -> int:
        return int(values[0])

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return values[:, 0]


class VectorCounter(ColumnInput, LinearMechanism):
    """Several running totals of one stream, released together: one column each.

    An event touches at most `max_per_event` columns and adds an integer from 0 to `max_weight` to each. All columns
    share one budget: the noise depends on how far *one event* moves the row, not on the number of columns
    (factorization-counting 5 and 6.3; streaming-selection 3.4, KnownBase).

    `neighbours`: "add_remove" costs l2^2 = b w^2, "replace" min(2b, d) w^2 (4 b w^2 if signed), "independent" d w^2.
    `protects="item"`: one item of an event instead of the whole event; where events are cut to `max_per_event` items,
    the removal of one lets another in, and two columns move.

    Exactness tier "exact"; time O(d) per tick (tree), O(d log T) amortised (sqrt); memory O(d log T) or 8 d T bytes.

    >>> import evertally as et
    >>> totals = et.VectorCounter(columns=3, guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> totals.step([2, 0, 1]).value.shape, totals.run([[0, 1, 0], [1, 1, 1]]).shape
    ((3,), (2, 3))
    """

    def __init__(
        self,
        columns: Columns,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        max_per_event: int = 1,
        max_weight: int = 1,
        signed: bool = False,
        protects: Literal["event", "item"] = "event",
        other: str | None = None,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        **common: Any,
    ) -> None:
        kept = self._open_door(
            columns, other, max_per_event, max_weight, signed=signed, rank_by_label=protects == "item"
        )
        contribution = Contribution(
            max_per_event=max_per_event,
            max_weight=max_weight,
            signed=signed,
            protects=protects,
            truncated=True,
            unit=unit,
            max_events_per_user=max_events_per_user,
        )
        super().__init__(
            columns=len(self.columns),
            change=change(neighbours, contribution, len(self.columns)),
            contribution=contribution,
            options={
                "columns": kept,
                "other": other,
                "max_per_event": max_per_event,
                "max_weight": max_weight,
                "signed": signed,
                "protects": protects,
                "unit": unit,
                "max_events_per_user": max_events_per_user,
            },
            guarantee=guarantee,
            horizon=horizon,
            neighbours=neighbours,
            **common,
        )
