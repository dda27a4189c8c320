"""Every configuration of the engine at small size, and its literal counterpart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from partition_reference import (
    LARGEST,
    MEAN,
    MIXED,
    RANKS,
    Blocks,
    Epochs,
    H,
    LadderOfMax,
    Literal,
    NoisyUpdates,
    OpenInterval,
    Pile,
    Process,
    Queries,
    Released,
    Thresholds,
    Tree,
    Vector,
    columns,
    literal_two_levels,
)

from evertally.contract.rows import Rows, dense
from evertally.partition import (
    Configuration,
    Terms,
    TwoLevelPlan,
    TwoLevelRelease,
    bounded,
    doubling,
    noisy_ladders,
    tuned,
)
from evertally.partition.histograms import IN_BLOCKS, make_histogram
from evertally.partition.lanes import Lanes
from evertally.partition.rebased import intervals, rebased
from evertally.partition.typical import TypicalStream
from evertally.privacy import ApproxDP, Change, PureDP

D = 3
PURE = PureDP(24.0)
APPROXIMATE = ApproxDP(16.0, 0.01, adversary="oblivious", force=True)


@dataclass(frozen=True)
class Case:
    """A plan and the two engines that it describes: the product's and the literal one.

    It is made when a test asks for it: tuning takes its time, and every run of any test collects.
    """

    name: str
    make: Callable[[], Configuration | TwoLevelPlan]

    @cached_property
    def plan(self) -> Configuration | TwoLevelPlan:
        return self.make()

    def engine(self, source: Any) -> Any:
        return TwoLevelRelease(self.plan, source) if isinstance(self.plan, TwoLevelPlan) else self.plan.engine(source)

    def literal(self, source: Any, rows: Rows) -> list[tuple[int, Vector]]:
        table = dense(rows).tolist()
        if not isinstance(self.plan, TwoLevelPlan):
            return literal_of(self.plan, source, [0] * self.plan.terms.columns).play(table)
        plan = self.plan
        outer = literal_of(plan.outer, Lanes(source, "outer"), [0] * plan.terms.columns)
        return literal_two_levels(
            outer, lambda j, s: literal_of(plan.inner(j), Lanes(source, f"segment-{j}"), s), table
        )


def terms(queries: Queries, promise: PureDP | ApproxDP = PURE, **more: Any) -> Terms:
    options: dict[str, Any] = {"horizon": 200, "largest": 100, "growth": 5} | more
    return Terms(promise, Change(D, D, 1), options.pop("horizon"), D, queries, **options)


def literal_of(configuration: Configuration, source: Any, base: Vector) -> Literal:
    noise, d = configuration.noise, configuration.terms.columns
    n = None if configuration.histogram in IN_BLOCKS else configuration.intervals  # blocks follow one another for ever
    return Literal(
        source, noise.tau, noise.mu, n, _histogram(configuration, source, d), _thresholds(configuration, source), base
    )


def _histogram(configuration: Configuration, source: Any, d: int) -> H:
    charge, change = configuration.noise.histogram, configuration.terms.change
    if configuration.histogram == "running-sum":
        return Pile(charge, change, d, source)
    if configuration.histogram == "epoch-tree":
        return Epochs(charge, change, d, source)
    n = configuration.intervals
    assert n is not None
    if configuration.histogram in IN_BLOCKS:
        blocks: Any = make_histogram(configuration.histogram, charge, change, n, d, source)
        return Blocks(lambda k, length: blocks._process_of(k, length, d), n, d)
    if configuration.histogram == "binary-tree":
        return Tree(charge, change, d, source, n)
    return Process(make_histogram("best", charge, change, n, d, source))


def _thresholds(configuration: Configuration, source: Any) -> Thresholds:
    queries: Any = configuration.terms.queries
    if configuration.name == "bounded":
        return LadderOfMax(queries, configuration.rise)
    if configuration.name == "doubling":
        K = configuration.rise(1, 1)
        return LadderOfMax(queries, lambda j, t: K if j == 1 else K * 2 ** (j - 2))
    if configuration.name == "rebased":
        return Released(queries, configuration.rise)
    if configuration.name == "intervals":
        return OpenInterval(queries, configuration.rise)
    assert configuration.name == "noisy-ladders"
    K, C = ladder_constants(configuration)
    assert configuration.noise.update is not None
    return NoisyUpdates(queries, K, C, configuration.noise.update, source)


def ladder_constants(configuration: Configuration) -> tuple[int, int]:
    """K = 3 (C + err), C = alpha_SV + alpha_U (4.3)."""
    terms, n = configuration.terms, configuration.intervals
    tails = terms.noise_bounds(configuration.noise, "binary-tree", n)
    C = tails.sparse_vector(terms.beta) + tails.update(terms.beta)
    return 3 * (C + tails.histogram(terms.beta) + terms.base_error), C


ALL = [
    Case("bounded", lambda: bounded(terms(LARGEST))),
    Case("bounded, mean", lambda: bounded(terms(MEAN))),
    Case("bounded, delta", lambda: bounded(terms(LARGEST, APPROXIMATE))),
    Case("bounded, unlimited", lambda: bounded(terms(LARGEST, horizon=None, largest=None))),
    Case("doubling from 1", lambda: doubling(terms(LARGEST), start=1)),
    Case("doubling, columns", lambda: doubling(terms(columns(D)))),
    Case("doubling, delta", lambda: doubling(terms(RANKS, APPROXIMATE))),
    Case("doubling, unlimited", lambda: doubling(terms(LARGEST, horizon=None))),
    Case("noisy ladders", lambda: noisy_ladders(terms(columns(D)))),
    Case("noisy ladders, mixed", lambda: noisy_ladders(terms(MIXED))),
    Case("noisy ladders, delta", lambda: noisy_ladders(terms(RANKS, APPROXIMATE))),
    Case("rebased", lambda: rebased(terms(RANKS))),
    Case("rebased, delta", lambda: rebased(terms(columns(D), APPROXIMATE))),
    Case("rebased, unlimited", lambda: rebased(terms(MIXED, largest=None))),
    Case("rebased, unlimited, delta", lambda: rebased(terms(columns(D), APPROXIMATE, horizon=None))),
    Case("intervals", lambda: intervals(terms(columns(D)))),
    Case("intervals, unlimited", lambda: intervals(terms(MEAN, horizon=None, largest=None))),
    Case("tuned", lambda: tuned(terms(RANKS), "rebased", TypicalStream(200, 100, 5, D), 2 * 100)),
    Case(
        "tuned, intervals, delta",
        lambda: tuned(terms(columns(D), APPROXIMATE), "intervals", TypicalStream(200, 100, 5, D, True), 300),
    ),
    Case(
        "tuned, unlimited",
        lambda: tuned(terms(LARGEST, horizon=None, largest=None), "rebased", TypicalStream(200, 100, 5, D), 1000),
    ),
    Case("two levels, largest", lambda: TwoLevelPlan(terms(LARGEST), start=1)),
    Case("two levels, columns", lambda: TwoLevelPlan(terms(columns(D)))),
    Case("two levels, delta", lambda: TwoLevelPlan(terms(RANKS, APPROXIMATE), start=2)),
    Case("two levels, unlimited", lambda: TwoLevelPlan(terms(LARGEST, horizon=None))),
]
IDS: Callable[[Any], str] = lambda case: case.name  # noqa: E731
