"""Every way to answer a question about column sums, with the budget it pays and the error that it makes.

`"auto"` takes the way with the smallest predicted error (`predict`) among those that fit. The choice is made from
public numbers before the stream starts, so it costs nothing (price-of-continual-release 3.8, M7; running several ways
and publishing the best afterwards would be another, unproved procedure, trap P4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from evertally.bounds.recompute import Period, best_period, period_from, releases
from evertally.contract.in_place import InPlace
from evertally.contract.parts import Engine
from evertally.contract.snapshot import guarantee_to_json
from evertally.counting.choose import KINDS, Choice, Setting, budgets, build, misfit
from evertally.counting.linear import JointSums
from evertally.counting.process import Budget, IntArray, node_law
from evertally.errors import ConfigurationError
from evertally.histogram import predict
from evertally.histogram.in_place import Constant, Recomputation, noise_radius, noisy_answers, unseen
from evertally.histogram.tasks import AllColumns, Largest, Task
from evertally.noise import ItemSource, ZeroNoise
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
from evertally.privacy import ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from evertally.privacy.conversions import pure_epsilon_of_rho
from evertally.selection import ExponentialMechanism, PermuteAndFlip

LADDERS: dict[str, Callable[[Terms], Configuration]] = {
    "bounded": bounded,
    "noisy-ladders": noisy_ladders,
    "doubling": doubling,
}
NAMES = (*KINDS, "intervals", "rebased", *LADDERS, "two-level", "recompute", "trivial")

_ALL_PERIODS = 2**12  # ticks up to which every period is tried

# No guarantee can say 0; this is as near as none is needed to be.
_NOTHING = PureDP(2.0**-1000)


@dataclass(frozen=True)
class Approach:
    """One way. `predicted` is what the largest error of any tick typically is (`predict`); `bound` holds at all ticks
    with probability 1 - beta of the task (without a horizon: at tick 2^16) on every stream that keeps what was
    declared, and is infinite where that does not bound it: `open` says why, and what to declare. `guessed` is the bound
    while answers stay below `largest` (without a horizon: of a stream that reaches it evenly).
    `answers`: the engine releases the answers themselves, not the column sums that they are taken from. `calibration`:
    the numbers that were settled for it."""

    name: str
    charge: Guarantee
    predicted: float
    promise: Callable[[], float]
    build: Callable[[ItemSource], Engine]
    width: int
    answers: bool = False
    calibration: Calibration = field(default_factory=Calibration)
    open: str = ""
    guess: Callable[[], float] | None = None  # where it differs from the promise

    @property
    def numbers(self) -> dict[str, Any]:
        """What a task needs to be given (`settled`) to come to this approach again, as JSON."""
        return self.calibration.numbers | {"charge": guarantee_to_json(self.charge)}

    @cached_property
    def bound(self) -> float:
        """The error bound; it takes longer than the prediction, and few ask for it."""
        return self.promise()

    @cached_property
    def guessed(self) -> float:
        """The bound that trusts `largest`."""
        return self.bound if self.guess is None else self.guess()


def choose_approach(task: Task, mechanism: str) -> Approach:
    """The named way, or the best one."""
    found, reasons = survey(task, mechanism)
    if task.settled is not None:
        found = [approach for approach in found if guarantee_to_json(approach.charge) == task.settled["charge"]]
    if not found:
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))
    return found[0]


def survey(task: Task, mechanism: str = "auto") -> tuple[list[Approach], list[str]]:
    """All ways that fit, best first, and why the others do not. Those without an error bound come last: what looks best
    on a guess must not be what is taken."""
    if mechanism != "auto" and mechanism not in NAMES:
        raise ConfigurationError(f'unknown mechanism {mechanism!r}; choose "auto" or one of {", ".join(NAMES)}')
    found: list[Approach] = []
    reasons: list[str] = []
    for name in _all_names(task) if mechanism == "auto" else (mechanism,):
        try:
            found.extend(_ways(task, name))
        except ConfigurationError as error:
            reasons.append(f'mechanism "{name}": {error}')
    return sorted(found, key=lambda approach: (approach.open != "", approach.predicted)), reasons


def _all_names(task: Task) -> Iterator[str]:
    # Nobody should get an answer that ignores the data because of a guess: a constant is for what was declared.
    sure = math.isfinite(task.reachable) and (task.largest is None or task.largest >= task.reachable)
    return (name for name in NAMES if name != "trivial" or sure)


def _ways(task: Task, name: str) -> Iterator[Approach]:
    if name in KINDS:
        return _counters(task, name)
    if task.neighbours is Neighbours.INDEPENDENT:
        # parameterized-histograms 1.2: d intervals could each contain a difference
        raise ConfigurationError('independent neighbours are proved for counters only, e.g. "tree"')
    if name == "recompute":
        return _recompute(task)
    if name == "trivial":
        return iter([_trivial(task)])
    return _partitions(task, name)


# -- counters ----------------------------------------------------------------------------------------------------------


def _counters(task: Task, name: str) -> Iterator[Approach]:
    setting = Setting(task.change, task.horizon, task.columns, task.memory_limit)
    reasons = []
    for charge in budgets(task.guarantee):
        reason = misfit(name, charge, setting)
        if reason:
            reasons.append(reason)
            continue
        yield _counter(task, Choice(name, charge), setting)
    if reasons and len(reasons) == len(budgets(task.guarantee)):
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))


def _counter(task: Task, choice: Choice, setting: Setting) -> Approach:
    factor = 2 if task.selects else 1
    # One column with its part of the memory has the same spread, and keeps the trial small.
    trial = replace(setting, columns=1, memory_limit=max(1, setting.memory_limit // setting.columns))
    if choice.mechanism == "sqrt":
        assert isinstance(choice.charge, ZCDP)
        model: predict.Spreads = predict.SquareRoot(choice.charge, setting.change, _horizon(task))
    else:
        model = build(choice, trial, ZeroNoise().source())

    def promise() -> float:
        spread = model.spread(predict.SOMEWHERE) if task.horizon is None else model.worst()
        return factor * spread.radius(task.beta / (task.columns * (task.horizon or predict.SOMEWHERE)))

    return Approach(
        choice.mechanism,
        choice.charge,
        predict.counter_error(task, model),
        promise,
        lambda source: JointSums(lambda: build(choice, setting, source), factor),
        task.columns,
    )


# -- partitions --------------------------------------------------------------------------------------------------------


def _partitions(task: Task, name: str) -> Iterator[Approach]:
    if name == "intervals" and not task.linear:
        raise ConfigurationError(
            'only queries that are weighted sums of columns can be tested by interval; use "rebased"'
        )
    reasons = []
    for charge in _partition_charges(task.guarantee):
        try:
            yield _partition(task, name, charge)
        except ConfigurationError as error:
            reasons.append(str(error))
    if len(reasons) == len(_partition_charges(task.guarantee)):
        raise ConfigurationError("; ".join(dict.fromkeys(reasons)))


def _partition(task: Task, name: str, charge: PureDP | ApproxDP) -> Approach:
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
    at = predict.SOMEWHERE if task.horizon is None else None
    if name == "two-level":
        plan = TwoLevelPlan(terms, factor=2 if task.selects else 1)
        return Approach(
            name,
            charge,
            predict.two_level_error(task, plan),
            lambda: plan.sure_error(task.beta, at),
            partial(InPlace, lambda source: PartitionEngine(TwoLevelRelease(plan, source), plan)),
            task.columns,
            calibration=calibration,
            open=_NOBODY_SAID if task.most is None else "",
            guess=lambda: plan.error(task.beta, at),
        )
    if name in LADDERS:
        configuration = LADDERS[name](terms)
    else:
        configuration = tuned(terms, name, predict.course_of(task), _reach(task))
    if task.selects and task.queries.count > 1:
        configuration = replace(configuration, factor=2)  # the chosen and the right column are both off
    elif task.selects:
        # One column: the largest sum is off by its staleness and err, the chosen one by err (7.1 [D][R]).
        a, b, c = configuration.weights
        configuration = replace(configuration, weights=(a, b + 1, c))
    chosen = configuration
    return Approach(
        name,
        charge,
        predict.partition_error(task, chosen),
        lambda: chosen.sure_error(task.beta, at),
        partial(InPlace, lambda source: PartitionEngine(chosen.engine(source), chosen)),
        task.columns,
        calibration=calibration,
        open=_used_up(task, chosen),
        guess=lambda: chosen.error(task.beta, at, None if at is None else predict.intervals_reached(task, chosen)),
    )


_NOBODY_SAID = "nothing that was declared bounds how much an answer grows in a tick: declare max_events_per_tick"


def _used_up(task: Task, made: Configuration) -> str:
    """Why a partition may use up its intervals, or nothing."""
    if made.name == "doubling" and task.horizon is None:
        return "without a horizon nothing bounds how far its thresholds double: declare one"
    if made.covers is None or task.reachable <= made.covers:
        return ""
    if task.most is None:
        return f"it may use up its intervals, and the answer then stands still: {_NOBODY_SAID.split(': ')[1]}"
    return (
        f"it may use up its intervals, for largest={task.largest} is a guess and answers may reach "
        f'{task.reachable:.0f}: declare largest={task.reachable:.0f}, or take "rebased"'
    )


def _reach(task: Task) -> int:
    """How much the test values can grow in total while the answers stay below `largest`.

    A test value grows no more than some column does: queries move by at most as much as every column. In the horizon a
    column grows by so much at most; and where the answers show the largest column, none of them passes `largest`.
    """
    everything = (task.horizon or predict.SOMEWHERE) * task.growth
    if task.largest is None or not isinstance(task.queries, AllColumns | Largest):
        return everything
    return min(everything, task.columns * task.largest)


def _partition_charges(guarantee: Guarantee) -> list[PureDP | ApproxDP]:
    """A partition is pure, or approximate in its own right; under a zCDP promise it must be pure (eps^2/2 = rho)."""
    if isinstance(guarantee, PureDP):
        return [guarantee]
    if isinstance(guarantee, ApproxDP):
        return [guarantee, PureDP(guarantee.exact_epsilon, adversary=guarantee.adversary)]
    return [_pure_within(guarantee)]


def _pure_within(guarantee: Guarantee) -> PureDP:
    rho = guarantee.to_zcdp().exact_rho
    return PureDP(pure_epsilon_of_rho(rho), adversary=guarantee.adversary)


# -- recomputation -----------------------------------------------------------------------------------------------------


def _recompute(task: Task) -> Iterator[Approach]:
    if task.horizon is None:
        raise ConfigurationError("recomputation divides its budget by the number of releases, so it needs a horizon")
    if task.selects and task.queries.count > 1:
        raise ConfigurationError("recomputation selects one column")
    charges: list[Budget] = budgets(task.guarantee)
    if isinstance(task.guarantee, ZCDP):
        charges.append(_pure_within(task.guarantee))
    for charge in charges:
        yield _selection(task, charge) if task.selects else _answers(task, charge)


def _answers(task: Task, charge: Budget) -> Approach:
    """M4, M5: Laplace scale D1 m/eps or Gaussian variance D2^2 m/(2 rho) (price-of-continual-release 3.5, 3.6 [R])."""
    T, k = _horizon(task), task.queries.count

    def noise(r: int, beta: float = task.beta) -> float:
        m = releases(T, r)
        return noise_radius(node_law(charge, task.shift, m), m * k, beta)

    calibration = Calibration(task.settled)
    period = _period(T, lambda r: task.growth * (r - 1) + noise(r), calibration)
    law = node_law(charge, task.shift, period.m)

    def made(source: ItemSource) -> Recomputation:
        answer = noisy_answers(task.queries, law, source)
        return Recomputation(task.columns, k, T, period.r, answer, lambda beta: noise(period.r, beta), task.most)

    typical = predict.recompute_error(task, law, period.r, period.m)
    return _recomputed(task, charge, typical, period, made, k, calibration, noise)


def _recomputed(
    task: Task,
    charge: Budget,
    typical: float,
    period: Period,
    made: Callable[[ItemSource], Recomputation],
    width: int,
    calibration: Calibration,
    noise: Callable[[int], float],
) -> Approach:
    return Approach(
        "recompute",
        charge,
        typical,
        lambda: noise(period.r) + unseen(task.most, period.r - 1),
        partial(InPlace, made),
        width,
        answers=True,
        calibration=calibration,
        open=_NOBODY_SAID if task.most is None and period.r > 1 else "",
    )


def _selection(task: Task, charge: Budget) -> Approach:
    """M6: permute-and-flip under a pure budget, the exponential mechanism with its /8 under zCDP (3.7 there [R])."""
    T, d = _horizon(task), task.columns
    kind = PermuteAndFlip if isinstance(charge, PureDP) else ExponentialMechanism

    def noise(r: int, beta: float = task.beta) -> float:
        m = releases(T, r)
        select = kind.within(charge.share(_part(m)), task.change.linf, one_way=task.one_way)
        return float(select.scale) * math.log(d * m / beta) if d > 1 else 0.0

    calibration = Calibration(task.settled)
    period = _period(T, lambda r: task.growth * (r - 1) + noise(r), calibration)
    select = kind.within(charge.share(_part(period.m)), task.change.linf, one_way=task.one_way)

    def made(source: ItemSource) -> Recomputation:
        def answer(sums: IntArray, number: int) -> IntArray:
            return np.array([select.select(sums, source, "select", number)], dtype=np.int64)

        return Recomputation(d, 1, T, period.r, answer, lambda beta: noise(period.r, beta), task.most)

    typical = predict.selection_error(task, float(select.scale), period.r, period.m)
    return _recomputed(task, charge, typical, period, made, 1, calibration, noise)


def _period(T: int, alpha: Callable[[int], float], calibration: Calibration) -> Period:
    r = calibration.settle("period", lambda: _best_period(T, alpha).r)
    return Period(r, releases(T, r), alpha(r))


def _best_period(T: int, alpha: Callable[[int], float]) -> Period:
    """The period with the least bound; for long horizons the best of about a hundred, first far apart and then near.
    Periods whose noise would be out of range are left out."""
    alpha = _infinite_where_refused(alpha)
    if T <= _ALL_PERIODS:
        return best_period(T, alpha)

    def best(wished: Iterable[float]) -> Period:
        tried = {period_from(T, math.ceil(m)) for m in wished}
        return min((Period(r, m, alpha(r)) for r, m in tried), key=lambda period: (period.alpha, period.m))

    coarse = best(1.25**i for i in range(math.ceil(math.log(T, 1.25)) + 1))
    return best(coarse.m * 1.25 ** (i / 24) for i in range(-24, 25))


def _infinite_where_refused(alpha: Callable[[int], float]) -> Callable[[int], float]:
    def at(r: int) -> float:
        try:
            return alpha(r)
        except ConfigurationError:
            return math.inf

    return at


def _part(m: int) -> str:
    return f"1/{m}"


def _horizon(task: Task) -> int:
    assert task.horizon is not None
    return task.horizon


# -- no data -----------------------------------------------------------------------------------------------------------


def _trivial(task: Task) -> Approach:
    """M0 (3.1 there): half of the largest answer that is expected, or the first column."""
    if math.isinf(task.ceiling):
        raise ConfigurationError("without a horizon or `largest` there is no constant to answer with")
    limit = int(task.ceiling)

    def value(t: int) -> int:
        return 0 if task.selects else min(t * task.growth, limit) // 2

    width = 1 if task.selects and task.queries.count == 1 else task.columns if task.selects else task.queries.count
    # Among one column the first is the right one.
    most = 0 if task.selects and task.columns == 1 else task.most

    def made(source: ItemSource | None = None) -> Constant:
        return Constant(width, value, most, task.horizon)

    return Approach(
        "trivial",
        _NOTHING,
        (0.0 if most == 0 else float(limit)) if task.selects else float(limit - limit // 2),
        lambda: made().error_bound(task.beta, task.horizon or predict.SOMEWHERE),
        partial(InPlace, made),
        width,
        answers=not task.selects or width == 1,
        open=_NOBODY_SAID if most is None else "",
    )
