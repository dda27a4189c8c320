"""Blocks, single ticks and the literal pseudo-code release the same, bit for bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from partition_cases import ALL, IDS, Case, D
from partition_reference import (
    LARGEST,
    MIXED,
    LadderOfMax,
    Literal,
    NoisyUpdates,
    OpenInterval,
    Queries,
    Released,
    Thresholds,
    Tree,
    columns,
    four_bits_up,
)

from evertally.contract.rows import Rows, SparseRows, dense
from evertally.counting.tree import TreeProcess
from evertally.noise import DiscreteLaplace, simulation
from evertally.partition import PartitionedRelease
from evertally.partition.rules import Intervals, Ladder, NoisyLadders, Rebased, Rule
from evertally.privacy import Change, PureDP


def stream(seed: int, length: int, density: float, height: int, sparse: bool) -> Rows:
    """Rows of weights 0..height, a share of `density` of them not 0, with a quiet stretch in the middle."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, height + 1, (length, D)) * (rng.random((length, D)) < density)
    rows[length // 3 : length // 2] = 0
    if not sparse:
        return rows
    t, j = np.nonzero(rows)
    order = rng.permutation(len(t))
    return SparseRows(t[order], j[order], rows[t, j][order], length=length, width=D)


def in_blocks(engine: Any, rows: Rows, seed: int) -> list[tuple[int, list[int]]]:
    """Played in blocks of random sizes, some of them empty."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(rows) + 1, rng.integers(0, 6)))
    edges = [0, *cuts.tolist(), len(rows)]
    return [(t, s.tolist()) for a, b in pairwise(edges) for t, s in engine.play(rows[a:b], a + 1)]


def by_ticks(engine: Any, rows: Rows) -> list[tuple[int, list[int]]]:
    return [(t, s.tolist()) for i in range(len(rows)) for t, s in engine.play(rows[i : i + 1], i + 1)]


STREAMS = {
    "seed": st.integers(0, 2**32 - 1),
    "length": st.integers(1, 150),
    "density": st.sampled_from([0.03, 0.3, 1.0]),
    "height": st.sampled_from([1, 4, 40]),
    "sparse": st.booleans(),
}


@pytest.mark.parametrize("case", ALL, ids=IDS)
@settings(max_examples=14, deadline=None, derandomize=True)
@given(**STREAMS)
@example(seed=1, length=150, density=1.0, height=40, sparse=False)
@example(seed=2, length=150, density=0.3, height=4, sparse=True)
def test_configurations(case: Case, seed: int, length: int, density: float, height: int, sparse: bool) -> None:
    rows, key = stream(seed, length, density, height, sparse), simulation(seed)
    expected = case.literal(key.source(case.name), rows)
    ticks, blocks = case.engine(key.source(case.name)), case.engine(key.source(case.name))
    assert by_ticks(ticks, rows) == expected
    assert in_blocks(blocks, rows, seed) == expected
    assert ticks.state() == blocks.state()
    assert ticks.released.tolist() == (expected[-1][1] if expected else [0] * D)


@pytest.mark.parametrize("case", ALL, ids=IDS)
def test_the_streams_above_do_close_intervals(case: Case) -> None:
    """Else equality would say nothing."""
    rows = stream(1, 150, 1.0, 40, False)
    assert len(case.literal(simulation(1).source(case.name), rows)) >= 3


def direct(kind: str, queries: Queries, step: int, n: int, forced: int | None, key: Any) -> tuple[Any, Literal]:
    """An engine put together by hand, with thresholds so small that noise and data both decide."""
    tau, mu, update = DiscreteLaplace(3), DiscreteLaplace(5), DiscreteLaplace(4)
    charge, change = PureDP(2.0), Change(D, D, 1)
    base = np.array([2, -3, 0])
    source = key.source("direct")

    def moving(j: int, t: int) -> int:
        return step + j % 3 + t.bit_length()

    def rise(j: int, ticks: np.ndarray) -> np.ndarray:
        return np.array([moving(j, int(t)) for t in ticks])

    rule: Rule
    thresholds: Thresholds
    if kind == "ladder":
        rule, thresholds = Ladder(queries, rise), LadderOfMax(queries, moving)
    elif kind == "noisy":
        rule, thresholds = NoisyLadders(queries, step, 2, update), NoisyUpdates(queries, step, 2, update, source)
    elif kind == "rebased":
        rule, thresholds = Rebased(queries, rise), Released(queries, moving)
    else:
        rule, thresholds = Intervals(queries, rise), OpenInterval(queries, moving)
    process = TreeProcess(charge, change, horizon=n, columns=D, source=key.source("direct"), radix=2)
    engine = PartitionedRelease(tau, mu, process, rule, key.source("direct"), base=base, forced=forced)
    literal = Literal(source, tau, mu, n, Tree(charge, change, D, source, n), thresholds, base.tolist(), forced)
    return engine, literal


@pytest.mark.parametrize("kind", ["ladder", "noisy", "rebased", "intervals"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    **STREAMS,
    queries=st.sampled_from([LARGEST, MIXED, columns(D)]),
    step=st.sampled_from([0, 5, 30]),
    n=st.sampled_from([1, 3, 8, 100]),
    forced=st.sampled_from([None, None, 7, 50]),
)
def test_rules(
    kind: str,
    seed: int,
    length: int,
    density: float,
    height: int,
    sparse: bool,
    queries: Queries,
    step: int,
    n: int,
    forced: int | None,
) -> None:
    rows = stream(seed, length, density, height, sparse)
    engine, literal = direct(kind, queries, step, n, forced, simulation(seed))
    assert engine.released.tolist() == literal.s == [2, 0, 0], "the base is projected before the first tick (2.1)"
    expected = literal.play(dense(rows).tolist())
    assert in_blocks(engine, rows, seed) == expected
    again, _ = direct(kind, queries, step, n, forced, simulation(seed))
    assert by_ticks(again, rows) == expected
    assert again.state() == engine.state()


def test_a_long_quiet_block() -> None:
    """Looks double in size while nothing happens; the close at the end of a long block is still found."""
    rows = np.zeros((5000, D), dtype=np.int64)
    rows[4321] = 10**6
    engine, literal = direct("rebased", LARGEST, 1000, 8, None, simulation(5))
    expected = literal.play(rows.tolist())
    assert [t for t, _ in expected] == [4322]
    assert in_blocks(engine, rows, 3) == expected


def test_moving_rises_are_asked_at_few_ticks_and_never_fall() -> None:
    """Thresholds move with the public tick (5.5): rounded up to four significant bits, in the test as in the bound."""
    plan: Any = next(case.plan for case in ALL if case.name == "rebased, unlimited, delta")
    rise, ticks = plan.make_rule().rise, np.arange(1, 3000)
    for j in (1, 2, 7, 40):
        found = rise(j, ticks).tolist()
        assert found == [plan.rise(j, t) for t in ticks.tolist()]
        assert found == [plan.rise(j, four_bits_up(t)) for t in ticks.tolist()]
        assert all(a <= b for a, b in pairwise(found))
        assert found[-1] > found[0]
    by_interval = [plan.rise(j, 100) for j in range(1, 200)]
    assert by_interval == sorted(by_interval), "the noise of an epoch tree falls now and then, the threshold must not"
