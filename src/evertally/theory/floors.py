"""The error floor of a task under a guarantee: which bound applies, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from evertally.theory import column_floors as floors
from evertally.theory.column_floors import Floor

Task = Literal["max_sum", "sum_select", "top_k", "top_k_select", "histogram"]


def floor(
    task: Task,
    horizon: int,
    columns: int,
    guarantee: Guarantee,
    *,
    neighbours: str | Neighbours = "add_remove",
    max_per_event: int | None = None,
    certified: bool = True,
) -> Floor:
    """What no mechanism with this guarantee can stay below at all ticks, with probability 2/3.

    Theorems: price-of-continual-release 4; for independent neighbours parameterized-histograms 9.1. `certified` floors
    have explicit constants: a packing for PureDP, two streams for ApproxDP (weak). There is none for zCDP. With
    `certified=False` the value is an order of magnitude for the papers' own setting (replacement, any rows).

    The first of the top k columns is the largest, so their floors are those of MaxSum and SumSelect; a histogram
    answers both, the second at twice its error. Add/remove is the weaker promise, so its floor also holds for replace.
    `max_per_event`: an event touches at most that many columns; any number unless told. Time: milliseconds.

    >>> import evertally as et
    >>> floor("max_sum", 65536, 1024, et.PureDP(1), neighbours="replace").value
    75.5
    >>> floor("sum_select", 10**6, 100, et.ApproxDP(0.01, 1e-6), neighbours="replace").value
    69.0
    >>> floor("max_sum", 10**6, 1000, et.ZCDP(0.01), certified=False).certified
    False
    """
    if task not in get_args(Task):
        raise ConfigurationError(f"task must be one of {', '.join(get_args(Task))}; got {task!r}")
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT:
        return _independent(task, horizon, columns, guarantee, certified)

    def of(kind: floors.Task) -> Floor:
        if certified:
            return _certified(kind, horizon, columns, guarantee, relation, max_per_event)
        return _shape(kind, horizon, columns, guarantee)

    if task != "histogram":
        return of("max_sum" if task in ("max_sum", "top_k") else "sum_select")
    values, selected = of("max_sum"), of("sum_select")
    return max(values, replace(selected, value=selected.value / 2), key=lambda one: one.value)


def price(task: Task, horizon: int, columns: int, guarantee: PureDP | ApproxDP) -> float:
    """How many times the error of one release at the end continual release costs: an order of magnitude.

    price-of-continual-release 4.3: about the square root of the horizon under pure DP with many columns, its cube root
    under approximate DP.

    >>> import evertally as et
    >>> round(price("max_sum", 10**6, 10**6, et.PureDP(1.0)))
    1000
    """
    if task not in ("max_sum", "sum_select"):
        raise ConfigurationError(f"the price is known for max_sum and sum_select; got {task!r}")
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
    return floors.price(task, horizon, columns, guarantee.epsilon, delta)


def _certified(
    kind: floors.Task, horizon: int, columns: int, guarantee: Guarantee, relation: Neighbours, max_per_event: int | None
) -> Floor:
    steps: floors.Steps = "replace" if relation is Neighbours.REPLACE else "add_remove"
    if isinstance(guarantee, PureDP):
        pure = floors.max_sum_pure if kind == "max_sum" else floors.sum_select_pure
        return pure(horizon, columns, guarantee.exact_epsilon, neighbours=steps, max_per_event=max_per_event)
    if isinstance(guarantee, ApproxDP):
        epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
        if kind == "max_sum":
            return floors.max_sum_two_point(horizon, epsilon, delta)
        return floors.sum_select_two_point(horizon, columns, epsilon, delta, neighbours=steps)
    raise ConfigurationError(
        f"there is no certified floor for {type(guarantee).__name__}: the papers prove floors for PureDP and ApproxDP; "
        "convert the guarantee with to_approx(delta), or take the order of magnitude with certified=False"
    )


def _independent(task: Task, horizon: int, columns: int, guarantee: Guarantee, certified: bool) -> Floor:
    if task != "histogram" or not isinstance(guarantee, PureDP):
        raise ConfigurationError(
            "independent neighbours have a floor for the histogram under PureDP only (parameterized-histograms 9.1)"
        )
    if certified:
        return floors.histogram_independent(horizon, columns, guarantee.exact_epsilon)
    return floors.histogram_independent_shape(horizon, columns, guarantee.epsilon)


def _shape(task: floors.Task, horizon: int, columns: int, guarantee: Guarantee) -> Floor:
    if isinstance(guarantee, PureDP):
        return floors.shape(task, horizon, columns, guarantee.epsilon)
    if isinstance(guarantee, ApproxDP):
        return floors.shape(task, horizon, columns, guarantee.epsilon, guarantee.delta)
    if isinstance(guarantee, ZCDP):
        return floors.zcdp_shape(task, horizon, columns, guarantee.rho)
    raise ConfigurationError(f"no floor is known for {type(guarantee).__name__}; convert it with to_approx(delta)")
