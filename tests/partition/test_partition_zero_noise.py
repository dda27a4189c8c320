"""E1: without noise every configuration is an exact staircase under the truth. parameterized-histograms 9.2."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from partition_cases import ALL, APPROXIMATE, PURE, D, ladder_constants, terms
from partition_reference import LARGEST, MEAN, MIXED, RANKS, SMALLEST, Queries, columns

from evertally.noise import ZeroNoise
from evertally.partition import Configuration, TwoLevelPlan, TwoLevelRelease, bounded, doubling, noisy_ladders
from evertally.partition.rebased import intervals, rebased
from evertally.privacy import ApproxDP, PureDP

T = 3000
RATES = {
    "three rates": (0.9, 0.6, 0.3),
    "one heavy column": (1.0, 0.0, 0.0),
    "all ones": (1.0, 1.0, 1.0),
    "sparse": (0.02, 0.01, 0.0),
    "zeros": (0.0, 0.0, 0.0),
}


def stream(name: str) -> np.ndarray:
    if name == "rotating":
        rows = np.zeros((T, D), dtype=np.int64)
        rows[np.arange(T), np.arange(T) // 100 % D] = 1
        return rows
    return (np.random.default_rng(7).random((T, D)) < RATES[name]).astype(np.int64)


STREAMS = [*RATES, "rotating"]


def play(plan: Configuration | TwoLevelPlan, rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    source = ZeroNoise().source()
    engine: Any = TwoLevelRelease(plan, source) if isinstance(plan, TwoLevelPlan) else plan.engine(source)
    return engine.play(rows, 1)


def answers(
    queries: Queries, rows: np.ndarray, releases: list[tuple[int, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """The true answers and the released ones at ticks 0..T, one line for each tick."""
    truth = np.array([queries.of(h) for h in np.cumsum(rows, axis=0).tolist()])
    out = np.zeros_like(truth)
    for t, s in releases:
        out[t - 1 :] = queries.of(s.tolist())
    return truth, out


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [LARGEST, SMALLEST, MEAN], ids=repr)
@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
def test_bounded(name: str, queries: Queries, promise: PureDP | ApproxDP) -> None:
    rows = stream(name)
    plan = bounded(terms(queries, promise, horizon=T, largest=T, growth=1))
    K, releases = plan.rise(1, 1), play(plan, rows)
    truth, out = answers(queries, rows, releases)
    M = truth[:, 0]
    assert [t for t, _ in releases] == [1 + int(np.argmax(j * K + 1 == M)) for j in range(1, (M[-1] - 1) // K + 1)]
    assert np.array_equal([queries.of(s.tolist())[0] for _, s in releases], [M[t - 1] for t, _ in releases])
    stale = M - out[:, 0]
    assert stale.min() >= 0
    assert stale.max() <= K
    if releases:
        assert stale[releases[0][0] - 1 :].max() <= K - 1


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [columns(D), RANKS, MIXED], ids=repr)
@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
def test_noisy_ladders(name: str, queries: Queries, promise: PureDP | ApproxDP) -> None:
    """The staleness reaches beyond K: a threshold may climb while its query is C below it."""
    rows = stream(name)
    plan = noisy_ladders(terms(queries, promise, horizon=T, largest=T, growth=1))
    K, C = ladder_constants(plan)
    assert plan.rise(1, 1) == K + C
    releases = play(plan, rows)
    truth, out = answers(queries, rows, releases)
    assert (truth - out).min() >= 0
    assert (truth - out).max() < K + C
    if name == "all ones":
        assert [t for t, _ in releases] == [j * K + 1 for j in range(1, (T - 1) // K + 1)]
    if name == "zeros":
        assert not releases


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [LARGEST, columns(D), RANKS, MIXED], ids=repr)
def test_rebased(name: str, queries: Queries) -> None:
    rows = stream(name)
    plan = rebased(terms(queries, horizon=T, largest=T, growth=1))
    kappa, releases = plan.rise(1, 1), play(plan, rows)
    truth, out = answers(queries, rows, releases)
    assert (truth - out).min() >= 0
    assert (truth - out).max() <= kappa
    last = np.zeros(queries.count, dtype=np.int64)
    for t, _ in releases:
        assert (truth[t - 1] - last).max() == kappa + 1, "an interval closes when an answer passes kappa, not before"
        last = truth[t - 1]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [columns(D), MEAN], ids=repr)
def test_intervals(name: str, queries: Queries) -> None:
    rows = stream(name)
    plan = intervals(terms(queries, horizon=T, largest=T, growth=1))
    kappa, releases = plan.rise(1, 1), play(plan, rows)
    truth, out = answers(queries, rows, releases)
    assert (truth - out).min() >= 0
    assert (truth - out).max() <= kappa
    edges = [0, *(t for t, _ in releases)]
    for a, b in pairwise(edges):
        assert max(queries.of(rows[a:b].sum(axis=0).tolist())) == kappa + 1


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [LARGEST, columns(D)], ids=repr)
def test_doubling_from_one(name: str, queries: Queries) -> None:
    rows = stream(name)
    releases = play(doubling(terms(queries, horizon=T, growth=1), start=1), rows)
    M = np.cumsum(rows, axis=0).max(axis=1)
    if M[-1] >= 2:
        assert len(releases) == int(M[-1] - 1).bit_length()  # ceil(log2 M_T)
    else:
        assert not releases
    assert [M[t - 1] for t, _ in releases] == [2 ** (j - 1) + 1 for j in range(1, len(releases) + 1)]


def test_the_largest_answer_of_a_horizon_fits_the_closes_of_doubling() -> None:
    """J = ceil(log2(T/K_1)) + 1: the last threshold is at least T, so that the last segment does not grow on (5.1)."""
    for horizon in (1, 2, 3, 16, 17, 1000, 1024, 1025):
        for start in (1, 2, 7, 5000):
            plan = doubling(terms(LARGEST, horizon=horizon, growth=1), start=start)
            assert plan.intervals is not None
            thresholds = [start * 2 ** (j - 1) for j in range(1, plan.intervals + 1)]
            assert thresholds[-1] >= horizon
            assert len(thresholds) == 1 or thresholds[-2] < horizon


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("queries", [LARGEST, columns(D)], ids=repr)
@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
def test_two_levels_lose_nothing(name: str, queries: Queries, promise: PureDP | ApproxDP) -> None:
    """Every released histogram is exact: what a discarded partition had not released is counted by the outer level."""
    rows = stream(name)
    plan = TwoLevelPlan(terms(queries, promise, horizon=T, growth=1), start=1)
    releases, sums = play(plan, rows), np.cumsum(rows, axis=0)
    for t, s in releases:
        assert s.tolist() == sums[t - 1].tolist()
    outer = {t for t, _ in play(plan.outer, rows)}
    assert outer <= {t for t, _ in releases}
    if name == "all ones":
        assert len(releases) > len(outer), "the inner level closes too"
        segment, start, rungs = 1, 0, 0
        for t, _ in releases:  # inside a segment the ladder is that of its own configuration
            if t in outer:
                segment, start, rungs = segment + 1, t, 0
            else:
                rungs, inner = rungs + 1, plan.inner(segment)
                K = inner.rise(1, 1) if queries is LARGEST else ladder_constants(inner)[0]
                assert t - start == rungs * K + 1


def test_nothing_happens_on_zeros() -> None:
    for case in ALL:
        engine = case.engine(ZeroNoise().source())
        assert engine.play(np.zeros((150, D), dtype=np.int64), 1) == []
        assert engine.closes == 0
