"""The exact audit of partitions: golden values, agreement with plain enumeration, tight products, no false alarms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from audit.bugs.partitions import mu_halved, tau_dropped, tau_for_each_query
from audit.probes.partitions import all_at_once, ladder, ladders, near, swap_loss, swapped, terms, two_levels
from evertally import partition as partitions
from evertally.audit.laws.enumerated import everything, whole_law
from evertally.audit.partition import close_loss, histogram_loss, levels_after, transcript_loss
from evertally.errors import ConfigurationError
from evertally.histogram.tasks import AllColumns, Largest
from evertally.partition import PartitionedRelease, TwoLevelRelease
from evertally.partition.histograms import make_histogram
from evertally.partition.rules import Ladder, Rebased
from evertally.privacy import PureDP


def ticks_only(run: Any) -> tuple[int, ...]:
    return tuple(tick for tick, _ in run.releases)


# -- golden values of parameterized-histograms 9.2 and 9.3, scales 4 and 8 -------------------------------------------


def test_close_times_have_the_law_of_e5() -> None:
    loss = close_loss(ladder(PureDP(1), columns=1).engine, [[0], [0], [1], [0], [0]], [[0]] * 5)
    found = [[round(law[key], 6) for key in ((1,), (2,), (3,), (4,), (5,), ())] for law in (loss.left, loss.right)]
    assert found == [
        [0.360456, 0.193716, 0.134683, 0.084309, 0.055828, 0.171008],
        [0.360456, 0.193716, 0.119617, 0.079428, 0.055207, 0.191576],
    ]


def swap_of_the_text(wait: int) -> tuple[list[Any], list[Any]]:
    before, after = [(0, 1), (1, 1), (1, 1)], [(0, 0)] * wait + [(1, 0)] * 2
    return [*before, (1, 0), *after], [*before, (0, 1), *after]


@pytest.mark.parametrize(("wait", "golden", "halved"), [(20, 0.4462, 0.684), (100, 0.4873, 0.734)])
def test_the_swap_pair_has_its_golden_loss(wait: int, golden: float, halved: float) -> None:
    left, right = swap_of_the_text(wait)
    loss = close_loss(ladder(PureDP(1)).engine, left, right, tail=1e-15)
    at = (len(left),)
    assert math.log(loss.left[at] / loss.right[at]) == pytest.approx(golden, abs=5e-5)
    assert loss.epsilon >= golden - 5e-5
    if wait == 20:
        assert (loss.left[at], loss.right[at]) == pytest.approx((6.058e-4, 3.877e-4), rel=2e-4)
    with mu_halved():
        assert transcript_loss(ladder(PureDP(1)).engine, left, right, at).closes == pytest.approx(halved, abs=5e-4)


@pytest.mark.parametrize(("wait", "golden", "without_tau"), [(20, 0.4817, 2.72), (100, 0.4961, 12.72)])
def test_the_swap_pair_started_at_the_threshold(wait: int, golden: float, without_tau: float) -> None:
    def loss() -> float:
        plan = ladder(PureDP(1), rise=0)
        left, right = swapped(1, wait)
        start = np.array([2, 3])
        return transcript_loss(
            lambda source: plan.engine(source, base=start), left[1:], right[1:], [len(left) - 1]
        ).closes

    assert loss() == pytest.approx(golden, abs=5e-5)
    with tau_dropped():
        assert loss() == pytest.approx(without_tau, abs=5e-3)


# -- several queries, 8.8 --------------------------------------------------------------------------------------------


class Copies:
    """The largest column, k times."""

    def __init__(self, k: int) -> None:
        self.count = k

    def values(self, v: Any) -> Any:
        return np.full(self.count, v.max())


@contextmanager
def own_mu() -> Iterator[None]:
    """A test noise for each query. It costs accuracy, and no privacy."""

    def draw_mu(self: Any, first: int, number: int) -> Any:
        self._own = self._source.draws("mu", self._mu_law, range(first, first + number), self._rule.queries.count)
        return self._own[:, 0]

    def next_close(self: Any, rows: Any, start: int, first: int, mu: Any) -> int | None:
        c = self._c
        for at in range(start, len(rows)):
            c = c + rows[at]
            slack = self._rule.floors - self._rule.queries.values(self.released + c) + getattr(self, "_taus", self._tau)
            if (self._own[at] - self._rule.rise(self.closes + 1, np.array([first + at])) > slack).any():
                return at
        return None

    with mock.patch.multiple(PartitionedRelease, _draw_mu=draw_mu, _next_close=next_close):
        yield


def test_a_test_noise_for_each_query_is_no_leak() -> None:
    with own_mu():
        assert all_at_once(5) <= 1 / 3
        for k in (5, 50):
            plan = ladders(1, Copies(k), 2, rise=3, margin=0)
            left, right = swapped(3, 40)
            assert 0.3 <= transcript_loss(plan.engine, left, right, [len(left)], tail=1e-12).closes <= 1 / 3


def test_a_threshold_noise_for_each_query_is_one() -> None:
    with tau_for_each_query():
        assert all_at_once(5) > 0.5
        assert all_at_once(20) > 0.99
    # With a test noise of their own besides, the queries are independent: the text has 0.83 for k = 5, 3.3 for k = 20.
    assert [round(k * all_at_once(1), 2) for k in (5, 20)] == [0.83, 3.33]
    # That is no longer a matter of the smallest tau and the largest mu, and the audit says so.
    with tau_for_each_query(), own_mu(), pytest.raises(ConfigurationError, match="smallest tau"):
        all_at_once(2)


# -- the method itself -----------------------------------------------------------------------------------------------


def test_the_product_of_factors_is_the_law_of_all_runs() -> None:
    plan = ladder(PureDP(12), rise=1)
    pair: tuple[Any, Any] = ([(1, 0), (2, 0)], [(0, 1), (2, 0)])

    def make(source: Any) -> PartitionedRelease:
        return plan.engine(source, base=np.array([9, 10]))

    factors = close_loss(make, *pair)
    runs = whole_law(make, *pair, fixed={"histogram": 0}, see=ticks_only)
    for side in ("left", "right"):
        one, other = getattr(factors, side), getattr(runs, side)
        assert one.keys() == other.keys()
        assert all(0 <= one[key] - other[key] <= runs.tail for key in one)
    assert 0 <= factors.epsilon - runs.epsilon < 0.01


def test_everything_that_is_released_loses_what_its_parts_do() -> None:
    # One tick, one column: closes, update and histogram enumerated together, against the sum of the parts.
    plan = ladders(24, Largest(1), 1, rise=1, margin=1)
    whole = whole_law(plan.engine, [[1]], [[0]], tail=1e-4, see=lambda run: (*everything(run), *floors(run)))
    parts = transcript_loss(plan.engine, [[1]], [[0]], [1])
    assert (parts.updates, parts.histograms) == pytest.approx((8, 8))
    outcome = ((1, 1), 1)
    assert math.log(whole.left[outcome] / whole.right[outcome]) == pytest.approx(parts.epsilon, abs=0.01)


def floors(run: Any) -> tuple[int, ...]:
    return tuple(run.partition._rule.floors.tolist())


def test_a_larger_tail_never_reports_more() -> None:
    left, right = swapped(3, 20)
    losses = [transcript_loss(ladder(PureDP(1)).engine, left, right, [len(left)], tail=t).closes for t in (1e-20, 1e-5)]
    assert losses[1] < losses[0] <= 0.5


def test_forced_closes_cost_nothing() -> None:
    asked = terms(PureDP(1), 1, Largest(1))
    noise = partitions.bounded(asked).noise

    def make(source: Any, forced: int | None = 2) -> PartitionedRelease:
        process = make_histogram("running-sum", noise.histogram, asked.change, None, 1, source)
        rule = Ladder(asked.queries, lambda j, ticks: 3)
        return PartitionedRelease(noise.tau, noise.mu, process, rule, source, forced=forced)

    loss = transcript_loss(make, [[0], [0]], [[1], [0]], [])
    alone = transcript_loss(lambda source: make(source, None), [[0]], [[1]], [])
    assert loss.closes == pytest.approx(alone.closes)
    assert abs(loss.histograms) == pytest.approx(0.5)


def test_an_h_with_several_draws_for_an_insert_is_refused() -> None:
    plan = replace(partitions.bounded(terms(PureDP(1), 2, Largest(1))), histogram="best", intervals=3)
    with pytest.raises(ConfigurationError, match="several new draws"):
        histogram_loss(plan.engine, [(1, 0)] * 3, [(0, 0)] * 3, [1, 2, 3])


def test_levels_are_compared_where_the_row_is_gone() -> None:
    first, second = levels_after(ladder(PureDP(1), n=2).engine, [(1, 0), (0, 0), (1, 1)], [(0, 1), (0, 0), (1, 1)], [2])
    assert first == second
    assert list(first) == [("mu", 3)]


# -- the product is tight --------------------------------------------------------------------------------------------


def test_nothing_in_the_budget_can_be_trimmed() -> None:
    assert 0.995 <= swap_loss(ladders(1, Largest(1), 2, rise=3, margin=-1).engine, 3, 100) <= 1
    left, right = swap_of_the_text(500)
    assert 0.997 <= transcript_loss(ladder(PureDP(1)).engine, left, right, [len(left)], tail=1e-12).epsilon <= 1


@pytest.mark.parametrize(
    ("plan", "share"),
    [
        (partitions.bounded(terms(PureDP(1), 3, Largest(1), largest=10)), 1 / 2),
        (partitions.doubling(terms(PureDP(1), 3, Largest(1))), 1 / 2),
        (partitions.rebased.rebased(terms(PureDP(1), 3, Largest(2), largest=None)), 1 / 2),
        (partitions.rebased.intervals(terms(PureDP(1), 3, AllColumns(3), largest=None)), 1 / 2),
        (partitions.noisy_ladders(terms(PureDP(1), 3, AllColumns(3), largest=10)), 1 / 3),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_row_of_ones_shows_all_that_h_may_lose(plan: Any, share: float) -> None:
    plan = plan if plan.intervals is None else replace(plan, intervals=1)
    loss = histogram_loss(plan.engine, [(1, 1, 1), (0, 0, 0)], [(0, 0, 0)] * 2, [2])
    assert loss == pytest.approx(share, rel=1e-9)


def test_two_levels_lose_the_sum_of_their_parts() -> None:
    plan, start = two_levels(PureDP(8))
    left, right = swapped(start, 60)
    outer = transcript_loss(plan.outer.engine, left, right, [len(left)], tail=1e-12)
    both = transcript_loss(
        lambda source: TwoLevelRelease(plan, source), left, right, [("outer/mu", len(left))], tail=1e-12
    )
    assert outer.epsilon == pytest.approx(4, rel=0.03)
    assert both.histograms == outer.histograms == pytest.approx(2)
    waiting = both.closes - outer.closes  # of the inner level: at most its eps_tau
    assert 0.9 <= waiting <= 1


@pytest.mark.parametrize("seed", range(8))
def test_no_random_transcript_loses_more_than_the_shares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries = AllColumns(2) if seed % 2 else Largest(1)
    asked = terms(PureDP(16), 2, queries, linf=1 + seed % 3)
    plans: list[tuple[Any, tuple[float, float, float]]] = [
        (near(partitions.bounded(replace(asked, queries=Largest(1))), 2, 3), (8, 8, 0)),
        (
            near(
                partitions.bounded(replace(asked, queries=Largest(1))),
                2,
                3,
                lambda: Rebased(queries, lambda j, ticks: 2),
            ),
            (8, 8, 0),
        ),
        (ladders(16, queries, 2, rise=2, margin=1), (16 / 3, 16 / 3, 16 / 3)),
    ]
    for plan, shares in plans:
        height = plan.terms.change.linf
        rows = rng.integers(0, 3, size=(6, 2))
        at, moved = rng.integers(6), rng.integers(0, height + 1, size=(2, 2))
        left, right = (rows + np.eye(6, dtype=np.int64)[at][:, None] * change for change in moved)
        closes = [tick for tick in range(1, 7) if rng.random() < 0.4]
        loss = transcript_loss(plan.engine, left, right, closes, climb=bool(rng.integers(2)), tail=1e-30)
        for part, share in zip((loss.closes, loss.histograms, loss.updates), shares, strict=True):
            assert part <= share * (1 + 1e-9)
