"""P0, P1, P2: dynamic-data 2.2, 4, 11.2.3, 11.3."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partition_laws import boundaries, halting, loss

from evertally.dynamic.partitioners import EveryTick, SparsePartition, SparseVector, deadline, partitioner
from evertally.errors import ConfigurationError, HorizonExceeded
from evertally.noise import Recording, ZeroNoise, simulation

ONE = Fraction(1)


def infinite(source, epsilon=ONE, scales="paper", beta=0.05, horizon=None):
    return SparsePartition(SparseVector(epsilon, scales), source, beta=beta, horizon=horizon)


def scales(test):
    return float(test.rho.scale), float(test.nu.scale)


def test_numbers_of_the_specification():
    test = SparseVector(ONE)
    for ticks, segment, threshold, stale in [
        (2, 1, 34.158, 59.278),
        (4, 2, 48.714, 82.151),
        (16, 3, 64.095, 102.398),
        (10**6, 50, 180.783, 252.847),
    ]:
        beta = 6 * 0.05 / (math.pi * segment) ** 2
        assert round(test.threshold(ticks, beta, tails=2), 3) == threshold
        assert round(test.threshold(ticks, beta, tails=2) + test.unnoticed(beta, tails=2), 3) == stale
        # whole numbers: ln(4.) for ln(2.), that is 7 ln 2 and 6 ln 2 more
        assert math.isclose(test.threshold(ticks, beta), threshold + 7 * math.log(2), abs_tol=1e-3)
    assert scales(SparseVector(Fraction(1, 2))) == (4, 8)
    assert scales(SparseVector(Fraction(1, 2), "cumulative")) == (2, 2)


def test_staleness_of_the_specification():
    """13.4: 506/eps and 203/eps, for eps_p = eps/2 and t = 10^6, with real-valued noise."""
    t = 10**6
    for name, expected in [("paper", 506), ("cumulative", 203)]:
        test = SparseVector(Fraction(1, 2), name)
        found = min(
            test.threshold(t, 6 * 0.05 / (math.pi * j) ** 2, tails=2)
            + test.unnoticed(6 * 0.05 / (math.pi * j) ** 2, tails=2)
            for j in (50,)
        )
        assert abs(found - expected) < 1


def test_an_empty_stream_closes_at_its_deadlines():
    partition = infinite(ZeroNoise().source())
    partition.look_ahead(65536)
    assert [t for t in range(1, 65537) if partition.boundary(0)] == [2, 4, 16, 256, 65536]
    assert deadline(1) == 2


def test_finite_partitions_have_no_deadline_and_an_end():
    partition = infinite(ZeroNoise().source(), horizon=100)
    assert not any(partition.boundary(0) for _ in range(100))
    with pytest.raises(HorizonExceeded):
        partition.boundary(0)
    threshold = math.ceil(SparseVector(ONE).threshold(100, 0.05 / 100))
    partition = infinite(ZeroNoise().source(), horizon=100)
    assert [partition.boundary(n) for n in (threshold - 1, 1, threshold)] == [False, True, True]


class Written:
    """A source whose noise is written down."""

    def __init__(self, rho, nu):
        self.rho, self.nu = rho, nu

    def draws(self, lane, law, nodes, coordinates=1, first=0):
        values = self.rho if lane.endswith("tau") else self.nu
        return np.array([[values[node % len(values)]] for node in nodes], dtype=np.int64)


noise = st.lists(st.integers(-60, 60), min_size=1, max_size=7)


@given(noise, noise, st.lists(st.integers(0, 40), min_size=1, max_size=40), st.booleans())
def test_decisions_are_those_of_the_algorithm(rho, nu, arrived, ahead):
    """Algorithm 2 as it is written in 4.2, with the same noise."""
    test = SparseVector(ONE)
    partition = infinite(Written(rho, nu))
    if ahead:
        partition.look_ahead(len(arrived))
    j, count, T = 1, 0, 2
    for t, n in enumerate(arrived, start=1):
        count += n
        threshold = math.ceil(test.threshold(T, 6 * 0.05 / (math.pi * j) ** 2))
        closes = count + nu[t % len(nu)] >= threshold + rho[j % len(rho)] or t >= T
        assert partition.boundary(n) == closes
        if closes:
            j, count, T = j + 1, 0, max(2, t * t)
    assert partition.closed == j - 1


def test_noise_by_address():
    """nu at every tick, empty ones too; rho for every segment; each address once."""
    key = Recording(simulation(1))
    partition = infinite(key.source("partition"), epsilon=Fraction(8))
    closed = sum(partition.boundary(t % 3) for t in range(200))
    lanes = {drawn.lane for drawn in key.draws}
    nodes = {lane: [node for drawn in key.draws if drawn.lane == lane for node in drawn.nodes] for lane in lanes}
    assert nodes == {"partition/mu": list(range(1, 201)), "partition/tau": list(range(1, closed + 2))}


@pytest.mark.parametrize("horizon", [None, 300])
def test_together_or_one_by_one_and_after_a_restore(horizon):
    arrived = np.random.default_rng(2).poisson(3, 300).tolist()

    def make():
        return infinite(simulation(4).source("p"), epsilon=Fraction(4), horizon=horizon)

    one = make()
    singly = [one.boundary(n) for n in arrived]
    two = make()
    two.look_ahead(300)
    assert [two.boundary(n) for n in arrived] == singly
    assert sum(singly) > 3
    for cut in range(0, 300, 17):
        first, second = make(), make()
        for n in arrived[:cut]:
            first.boundary(n)
        second.load(first.state())
        assert second.state() == first.state()
        assert [second.boundary(n) for n in arrived[cut:]] == singly[cut:]


def test_options():
    with pytest.raises(ConfigurationError, match="svt is"):
        SparseVector(ONE, "fast")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="scale"):
        SparseVector(Fraction(100)).check()
    assert isinstance(partitioner("identity", None, "paper", ZeroNoise().source(), 0.05, None, "p"), EveryTick)


# -- exact laws: 2.2, 11.2.3 -------------------------------------------------------------------------------------------


def running_counts():
    """Pairs of running counts that differ by one update, short and long, below and above the threshold of 0."""
    for length, level, place in product((2, 30, 400), (-60, -20, 0, 3, 20), (0, 1, -1)):
        f = np.full(length, level)
        step = (np.arange(length) >= place % length).astype(int)
        yield f, f + step


@pytest.mark.parametrize(("name", "lost"), [("paper", 0.5), ("cumulative", 1.0)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), ONE])
def test_one_update_costs_what_is_stated(name, lost, epsilon):
    """0.500 eps for the paper's scales and 1.000 eps for (1/eps, 1/eps), never more; equal before the update."""
    b_rho, b_nu = scales(SparseVector(epsilon, name))
    most = 0.0
    for f, g in running_counts():
        one, other = halting(f, 0, b_rho, b_nu), halting(g, 0, b_rho, b_nu)
        shown = (one > 1e-200) & (other > 1e-200)
        found = loss(one[shown], other[shown]) / float(epsilon)
        assert found <= lost + 1e-6
        most = max(most, found)
        same = int(np.argmax(f != g))
        assert np.allclose(one[:same], other[:same], rtol=1e-12)
    assert most > lost - 0.002


def test_generic_queries_attain_epsilon():
    """Queries that are no running counts: 0, ..., 0 against 1, ..., 1, -1. The paper's scales are needed there."""
    for name, low, high in [("paper", 0.99, 1.0), ("cumulative", 1.9, 3.0)]:
        b_rho, b_nu = scales(SparseVector(ONE, name))
        n = 3000
        f, g = np.zeros(n), np.ones(n)
        g[-1] = -1
        one, other = halting(f, 8, b_rho, b_nu), halting(g, 8, b_rho, b_nu)
        assert low < abs(math.log(one[-2] / other[-2])) <= high + 1e-9


CHANGES = {
    # what arrives more in one of two streams, at which ticks: one update; a deletion that moves; a whole lifetime
    "update": [({a: 1}) for a in range(6)],
    "moved": [({a: 1, b: -1}) for a in range(6) for b in range(6) if a != b],
    "lifetime": [({a: 1, b: 1}) for a in range(6) for b in range(a + 1, 6)],
}


@pytest.mark.parametrize(
    ("name", "kind", "most", "found"),
    [
        ("paper", "update", 0.5, 0.499),
        ("cumulative", "update", 1.0, 0.999),
        ("paper", "moved", 1.0, 0.72),
        ("cumulative", "moved", 2.0, 1.98),
        ("paper", "lifetime", 1.0, 0.96),
        ("cumulative", "lifetime", 2.0, 1.999),
    ],
)
def test_whole_partitions_of_six_ticks(name, kind, most, found):
    """13.6, 13.7: the joint law of all boundaries. An update costs eps (half of it at the paper's scales), two updates
    twice that, whatever they are."""
    b_rho, b_nu = scales(SparseVector(ONE, name))
    largest = 0.0
    for threshold in (-6, 1, 4):
        for base in ([1] * 6, [9, 0, 0, 0, 0, 0]):
            law = boundaries(base, threshold, b_rho, b_nu)
            for change in CHANGES[kind]:
                other = list(base)
                for tick, by in change.items():
                    other[tick] += by
                if min(other) >= 0:
                    with_it = boundaries(other, threshold, b_rho, b_nu)
                    largest = max(largest, loss(list(law.values()), list(with_it.values())))
    assert found < largest <= most + 1e-9


# -- accuracy: 4.2, 11.3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper", "cumulative"])
@pytest.mark.parametrize("horizon", [None, 4000])
def test_lemma_7(name, horizon):
    """Staleness within S_j at all ticks, and no more segments than updates and deadlines, in all of 40 runs: each may
    fail with probability 0.05 at most; in fact bounds are loose, and none does (false alarm below 1e-6 by far)."""
    for seed in range(40):
        rate = (0.0, 0.01, 0.3, 2.0)[seed % 4]
        arrived = np.random.default_rng(seed).poisson(rate, 4000).tolist()
        partition = infinite(simulation(seed).source("lemma"), scales=name, horizon=horizon)
        partition.look_ahead(4000)
        open_count = total = 0
        for t, n in enumerate(arrived, start=1):
            total += n
            open_count = 0 if partition.boundary(n) else open_count + n
            stale = partition.staleness()(0.05)
            assert open_count <= stale <= partition.staleness(t)(0.05)
            assert stale == 0 or open_count < stale
        forced = 0 if horizon else 1 + math.floor(math.log2(math.log2(4000)))
        assert partition.closed <= total + forced


def test_segments_of_the_reference():
    """11.3.3: 20 000 ticks, mean of 30 runs: rate 1: about 103 segments; 0.1: 15; 0.001: 4. Ours have thresholds that
    are a little higher (whole numbers), so a few segments less."""
    for rate, low, high in [(1.0, 85, 108), (0.1, 12, 16.5), (0.001, 3.9, 4.5)]:
        closed = []
        for seed in range(30):
            partition = infinite(simulation(100 + seed).source("reference"))
            partition.look_ahead(20_000)
            arrived = np.random.default_rng(seed).random(20_000) < rate
            closed.append(sum(partition.boundary(n) for n in arrived.astype(int).tolist()))
        assert low < np.mean(closed) < high
