"""E9 and the edges: restarts at every tick, forced closes, full histograms, and the veil around an engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from partition_cases import ALL, IDS, Case, D, terms
from partition_reference import LARGEST, Planted, columns

from evertally.counting.tree import TreeProcess
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace, Recording, ZeroNoise, simulation
from evertally.partition import (
    PartitionedRelease,
    PartitionEngine,
    Split,
    TwoLevelPlan,
    TwoLevelRelease,
    bounded,
    noisy_ladders,
)
from evertally.partition.engine import project
from evertally.partition.intervals import NO_BOUND
from evertally.partition.rebased import intervals, rebased
from evertally.partition.rules import Ladder, Rebased, Rule
from evertally.privacy import ApproxDP, Change, PureDP

T = 48


def rows_of(seed: int, length: int = T) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 30, (length, D)) * (rng.random((length, D)) < 0.7)
    rows[length // 3 : length // 2] = 0
    return rows


def listed(releases: list[tuple[int, np.ndarray]]) -> list[tuple[int, list[int]]]:
    return [(t, s.tolist()) for t, s in releases]


def addresses(recording: Recording) -> set[tuple[str, int, int]]:
    return {(call.lane, node, i) for call in recording.draws for node in call.nodes for i in range(call.coordinates)}


def taus(engine: Any) -> list[int]:
    if isinstance(engine, TwoLevelRelease):
        return [engine._outer._tau, engine._inner._tau]
    return [engine._tau]


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_resume_at_every_tick(case: Case) -> None:
    rows, key = rows_of(4), simulation(8)
    whole = case.engine(key.source("resume"))
    expected = listed(whole.play(rows, 1))
    assert len(expected) >= 3
    final = whole.state()
    walker = case.engine(key.source("resume"))
    for t in range(T + 1):
        resumed = case.engine(key.source("resume"))
        resumed.load(walker.state())
        assert resumed.state() == walker.state()
        assert resumed.released.tolist() == walker.released.tolist()
        assert (resumed.closes, resumed.exhausted) == (walker.closes, walker.exhausted)
        assert taus(resumed) == taus(walker), "tau is not stored, it follows from its address"
        assert listed(resumed.play(rows[t:], t + 1)) == [close for close in expected if close[0] > t]
        assert resumed.state() == final
        if t < T:
            walker.play(rows[t : t + 1], t + 1)


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_a_restart_draws_no_noise_of_its_own(case: Case) -> None:
    """The same ledger: a restart reads noise again, at the same addresses (8, "checkpoint")."""
    rows, once, twice = rows_of(4), Recording(simulation(8)), Recording(simulation(8))
    case.engine(once.source("resume")).play(rows, 1)
    engine = case.engine(twice.source("resume"))
    for t in range(T):
        state = engine.state()
        engine = case.engine(twice.source("resume"))
        engine.load(state)
        engine.play(rows[t : t + 1], t + 1)
    extra, unused = addresses(twice) - addresses(once), addresses(once) - addresses(twice)
    assert all(lane.endswith("sqrt") for lane, _, _ in extra), "this noise is made ahead, from where one is"
    assert all(lane.endswith("mu") for lane, _, _ in unused), "a block may draw the mu of ticks that need none"


def small(
    source: Any, n: int, forced: int | None = None, step: int = 10**9, rule_of: type[Rule] = Ladder
) -> PartitionedRelease:
    process = TreeProcess(PureDP(1), Change(D, D, 1), horizon=n, columns=D, source=source, radix=2)
    rule = rule_of(LARGEST, lambda j, ticks: step)
    return PartitionedRelease(DiscreteLaplace(4), DiscreteLaplace(8), process, rule, source, forced=forced)


def test_forced_closes() -> None:
    """At public ticks an interval always closes; forced closes count, and end with the histogram."""
    rows = np.ones((100, D), dtype=np.int64)
    engine = small(ZeroNoise().source(), 100, forced=8)
    assert listed(engine.play(rows, 1)) == [(t, [t] * D) for t in range(8, 97, 8)]
    engine = small(ZeroNoise().source(), 3, forced=8)
    assert listed(engine.play(rows, 1)) == [(t, [t] * D) for t in (8, 16, 24)]
    assert engine.exhausted
    # data and clock together: a released answer plus 30 is passed, or 50 ticks have gone
    engine = small(ZeroNoise().source(), 100, forced=50, step=30, rule_of=Rebased)
    assert [t for t, _ in engine.play(rows, 1)] == [31, 50, 81, 100]


def test_forced_closes_do_not_depend_on_noise() -> None:
    for noise in (-(10**6), 10**6):
        planted = Planted({("tau", j): noise for j in range(1, 20)} | {("mu", t): -(10**7) for t in range(1, 101)})
        closes = small(planted, 100, forced=25).play(np.zeros((100, D), dtype=np.int64), 1)
        assert [t for t, _ in closes] == [25, 50, 75, 100]


def test_a_full_histogram_is_frozen() -> None:
    """After n closes nothing is released, tested or drawn; the rows that come are counted for nobody."""
    recording = Recording(simulation(3))
    engine = small(recording.source("full"), 2, step=50)
    rows = np.full((40, D), 20)
    for t in range(1, 41):
        before = len(recording.draws)
        was_full = engine.exhausted
        closes = engine.play(rows[t - 1 : t], t)
        if was_full:
            assert closes == []
            assert len(recording.draws) == before, "no mu once j > n"
    assert engine.closes == 2
    assert engine.exhausted
    frozen = engine.released.copy()
    assert engine.play(np.full((1000, D), 10**9), 41) == []
    assert np.array_equal(engine.released, frozen)
    resumed = small(simulation(3).source("full"), 2, step=50)
    resumed.load(engine.state())
    assert resumed.exhausted
    assert resumed.play(rows, 2000) == []
    assert np.array_equal(resumed.released, frozen)


def test_two_levels_thaw_with_the_next_segment() -> None:
    """An inner partition that is full stands still until the outer level starts another one."""
    plan = TwoLevelPlan(terms(LARGEST, horizon=1000, growth=1), start=1)
    release = TwoLevelRelease(plan, ZeroNoise().source())
    n = plan.inner(1).intervals
    assert n is not None
    release._outer._tau = 10**9  # the outer level sleeps
    K = plan.inner(1).rise(1, 1)
    rows = np.full((n + 5, D), K + 1)
    assert len(release.play(rows, 1)) == n
    assert release.exhausted
    release._outer._tau = 0
    closes = release.play(np.ones((1, D), dtype=np.int64), n + 6)
    assert [t for t, _ in closes] == [n + 6]
    assert closes[0][1].tolist() == [(n + 5) * (K + 1) + 1] * D, "nothing is lost"
    assert not release.exhausted


def test_projection() -> None:
    assert project(np.array([-3, 0, 5])).tolist() == [0, 0, 5]
    # H keeps its sign: a clamped release does not shift later ones
    planted = Planted({("tree", 1): [-100] * D, ("tree", 2): [1] * D})
    engine = small(planted, 4, forced=1)
    assert listed(engine.play(np.ones((2, D), dtype=np.int64), 1)) == [(1, [0] * D), (2, [3] * D)]


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_veil(case: Case) -> None:
    """What is in force at every tick, in blocks and tick by tick, and across a restart."""
    rows, key = rows_of(5), simulation(6)
    veil = PartitionEngine(case.engine(key.source("veil")), case.plan)
    values, lasts = veil.advance(rows[:30])
    assert lasts.sum() == 30
    shown = np.repeat(values, lasts, axis=0)
    again = PartitionEngine(case.engine(key.source("veil")), case.plan)
    again.load(30, veil.state())
    values, lasts = again.advance(rows[30:])
    shown = np.concatenate([shown, np.repeat(values, lasts, axis=0)])
    in_force = np.zeros((T, D), dtype=np.int64)
    for t, s in case.engine(key.source("veil")).play(rows, 1):
        in_force[t - 1 :] = s
    assert np.array_equal(shown, in_force)
    assert again.tick == T
    radius = again.accuracy(T).radius(0.05)
    assert (radius == NO_BOUND) == again.partition.exhausted


def test_bounds_of_a_tick_cover_every_number_of_intervals() -> None:
    """`error(beta, t)` without an interval must hold for any that can be open at tick t; intervals never help."""
    for case in ALL:
        for t in (1, 2, 7, 50, 150):
            bound = case.plan.error(0.05, t)
            most = min(t, 8)
            if isinstance(case.plan, TwoLevelPlan):  # segments end when the truth passes K_1, 2 K_1, ...
                K, reached = case.plan.outer.rise(1, 1), t * case.plan.terms.growth
                most = 1 + sum(K * 2**i < reached for i in range(8))
            if isinstance(case.plan, TwoLevelPlan) or case.plan.closes is None:
                assert all(bound >= case.plan.error(0.05, t, j) for j in range(1, most + 1)), case.name
            else:
                # The bound on all intervals knows how many there are, which bounds on single ones may not rely on;
                # both are true, and neither is a part of the other. But for what that costs:
                assert all(1.5 * bound >= case.plan.error(0.05, t, j) for j in range(1, most + 1)), case.name
        finite = [case.plan.error(beta, 100, 2) for beta in (0.5, 0.05, 0.001, 1e-9)]
        assert finite == sorted(finite)
        assert finite[0] < finite[-1], "a smaller beta costs a wider bound"


def test_refusals() -> None:
    with pytest.raises(ConfigurationError, match="oblivious"):
        TwoLevelPlan(terms(LARGEST, ApproxDP(1.0, 1e-6)))
    with pytest.raises(ConfigurationError, match="rebased"):
        noisy_ladders(terms(columns(D), largest=None))
    with pytest.raises(ConfigurationError, match="one query"):
        bounded(terms(columns(D)))
    with pytest.raises(ConfigurationError, match="too large"):
        bounded(terms(LARGEST, PureDP(1.0), largest=2**60))
    with pytest.raises(ConfigurationError, match="updates"):
        noisy_ladders(terms(columns(D), split=Split.halves()))
    with pytest.raises(ConfigurationError, match="too large"):
        TwoLevelPlan(terms(LARGEST, horizon=2**40, growth=2**20))  # and not in its last segment
    for parts in (("1/4", "1/4", "1/4"), ("0", "1/2", "1/2"), ("1/2", "1", "-1/2")):
        with pytest.raises(ConfigurationError):
            Split.of(*parts)


def test_tiny_terms() -> None:
    """One tick, one column, nothing expected: every configuration can still be built and played."""
    for make in (bounded, noisy_ladders, rebased, intervals):
        for largest in (0, 1):
            plan = make(terms(LARGEST, horizon=1, largest=largest, growth=1))
            assert plan.intervals is not None
            assert plan.intervals >= 1
            plan.engine(simulation(0).source("tiny")).play(np.zeros((1, D), dtype=np.int64), 1)
    plan = TwoLevelPlan(terms(LARGEST, horizon=1, growth=1))
    assert TwoLevelRelease(plan, ZeroNoise().source()).play(np.ones((1, D), dtype=np.int64), 1) == []
