"""Partitions: an answer is released when it has changed (parameterized-histograms 2-7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from evertally.contract.in_place import InPlace
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import AllColumns, Largest, Task
from evertally.histogram.ways import predict
from evertally.histogram.ways.column_way import NOBODY_SAID, ColumnWay
from evertally.partition import (
    Calibration,
    Configuration,
    PartitionEngine,
    Terms,
    TwoLevelPlan,
    TwoLevelRelease,
    bounded,
    doubling,
    noisy_ladders,
    tuned,
)
from evertally.privacy import ApproxDP, Guarantee, PureDP
from evertally.privacy.conversions import pure_epsilon_of_rho

LADDERS: dict[str, Callable[[Terms], Configuration]] = {
    "bounded": bounded,
    "noisy-ladders": noisy_ladders,
    "doubling": doubling,
}
NAMES = ("intervals", "rebased", *LADDERS, "two-level")


def partitions(task: Task, name: str) -> Iterator[ColumnWay]:
    if name == "intervals" and not task.linear:
        raise ConfigurationError('only weighted sums of columns can be tested by interval; use "rebased" for others')
    reasons = []
    for charge in _partition_charges(task.guarantee):
        try:
            yield _partition(task, name, charge)
        except ConfigurationError as error:
            reasons.append(str(error))
    if len(reasons) == len(_partition_charges(task.guarantee)):
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))


def _partition(task: Task, name: str, charge: PureDP | ApproxDP) -> ColumnWay:
    promise: PureDP | ApproxDP = charge
    if task.group > 1:
        # The lemma covers one event; a unit of several pays for each (groups in the adaptive game, price 2 [R]).
        if isinstance(charge, ApproxDP):
            raise ConfigurationError("several events of a user are covered by pure partitions only")
        promise = PureDP(charge.exact_epsilon / task.group, adversary=charge.adversary)
    calibration = Calibration(task.settled)
    terms = Terms(
        promise,
        task.event,
        task.horizon,
        task.columns,
        task.queries,
        task.largest,
        task.beta,
        task.growth,
        task.most,
        task.split,
        task.one_way,
        calibration=calibration,
    )
    at = task.ticks if task.horizon is None else None
    if name == "two-level":
        plan = TwoLevelPlan(terms, factor=2 if task.selects else 1)
        return ColumnWay(
            name=name,
            charge=charge,
            score=predict.two_level_error(task, plan),
            promise=lambda: plan.sure_error(task.beta, at),
            guess=lambda: plan.error(task.beta, at),
            memory=_state(task, plan.outer),
            open=NOBODY_SAID if task.most is None else "",
            build=partial(InPlace, lambda source: PartitionEngine(TwoLevelRelease(plan, source), plan)),
            width=task.columns,
            calibration=calibration,
        )
    if name in LADDERS:
        configuration = LADDERS[name](terms)
    else:
        configuration = tuned(terms, name, predict.typical_stream(task), _reach(task))
    if task.selects and task.queries.count > 1:
        configuration = replace(configuration, factor=2)  # the chosen and the right column are both off
    elif task.selects:
        # One column: the largest sum is off by its staleness and err, the chosen one by err (7.1 [D][R]).
        a, b, c = configuration.weights
        configuration = replace(configuration, weights=(a, b + 1, c))
    chosen = configuration
    return ColumnWay(
        name=name,
        charge=charge,
        score=predict.partition_error(task, chosen),
        promise=lambda: chosen.sure_error(task.beta, at),
        guess=lambda: chosen.error(task.beta, at, None if at is None else predict.intervals_reached(task, chosen)),
        memory=_state(task, chosen),
        open=_used_up(task, chosen),
        build=partial(InPlace, lambda source: PartitionEngine(chosen.engine(source), chosen)),
        width=task.columns,
        calibration=calibration,
    )


def _state(task: Task, made: Configuration) -> int:
    """Bytes: what is inserted, released and open, and a block for each level of H."""
    return 8 * task.columns * (3 + (made.intervals or task.ticks).bit_length())


def _used_up(task: Task, made: Configuration) -> str:
    """Why a partition may use up its intervals, or nothing."""
    if made.name == "doubling" and task.horizon is None:
        return "without a horizon nothing bounds how far its thresholds double: declare one"
    if made.covers is None or task.reachable <= made.covers:
        return ""
    if task.most is None:
        return f"it may use up its intervals, and the answer then stands still: {NOBODY_SAID.split(': ')[1]}"
    return (
        f"it may use up its intervals, for largest={task.largest} is a guess and answers may reach "
        f'{task.reachable:.0f}: declare largest={task.reachable:.0f}, or take "rebased"'
    )


def _reach(task: Task) -> int:
    """How much the test values can grow in total while the answers stay below `largest`.

    A test value grows no more than some column does: queries move by at most as much as every column. In the horizon a
    column grows by so much at most; and where the answers show the largest column, none of them passes `largest`.
    """
    everything = (task.ticks) * task.growth
    if task.largest is None or not isinstance(task.queries, AllColumns | Largest):
        return everything
    return min(everything, task.columns * task.largest)


def _partition_charges(guarantee: Guarantee) -> list[PureDP | ApproxDP]:
    """A partition is pure, or approximate in its own right; under a zCDP promise it must be pure (eps^2/2 = rho)."""
    if isinstance(guarantee, PureDP):
        return [guarantee]
    if isinstance(guarantee, ApproxDP):
        return [guarantee, PureDP(guarantee.exact_epsilon, adversary=guarantee.adversary)]
    return [pure_within(guarantee)]


def pure_within(guarantee: Guarantee) -> PureDP:
    rho = guarantee.to_zcdp().exact_rho
    return PureDP(pure_epsilon_of_rho(rho), adversary=guarantee.adversary)
