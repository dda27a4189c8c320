"""Workloads and hard streams: their identities, and what theory.floor answers (price-of-continual-release 5, 10.1)."""

from __future__ import annotations

import ast
import inspect

import numpy as np
import pytest
from benchmarks.reductions import KSelectToSumSelect, MarginalsToMaxSum
from benchmarks.streams import Pairs, Runs, Workload
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import evertally as et
from benchmarks import reductions, streams
from evertally.errors import ConfigurationError
from evertally.theory import floor, price

SEEDS = st.integers(0, 2**32 - 1)


def workloads() -> dict[str, Workload]:
    rng = np.random.default_rng(3)
    return {
        "zeros": streams.zeros(40, 3),
        "all_ones": streams.all_ones(40, 3),
        "one_heavy_column": streams.one_heavy_column(40, 3),
        "late_spike": streams.late_spike(40, 3, 5),
        "only a spike": streams.late_spike(40, 3, 40),
        "leader_rotation": streams.leader_rotation(40, 3, 4),
        "dead_heat": streams.dead_heat(40, 3),
        "block_stream": streams.block_stream([2, 0, 7], 40, 5),
        "uniform_rows": streams.uniform_rows(40, 3, rng),
        "bernoulli_columns": streams.bernoulli_columns(40, [0.9, 0.6, 0.3], rng),
        "zipf_columns": streams.zipf_columns(40, 3, rng),
        "very_sparse": streams.very_sparse(40, 3, 6, rng),
        "marginals": MarginalsToMaxSum(4, 3, 40, 3).stream(rng.integers(0, 2, (4, 3))),
        "selection": KSelectToSumSelect(4, 1, 3, 40, 3).stream(rng.integers(0, 2, (4, 3))),
        "two points": reductions.two_point_max_sum(40, 10)[1],
        "two selections": reductions.two_point_sum_select(40, 3, 10)[1],
    }


@pytest.mark.parametrize("name", list(workloads()))
def test_all_views_of_a_workload_agree(name: str):
    stream = workloads()[name]
    rows = stream.dense()
    assert rows.shape == (stream.horizon, stream.width)
    assert rows.dtype == np.uint8
    assert np.isin(rows, (0, 1)).all()
    ticks = np.random.default_rng(1).permutation(np.arange(1, stream.horizon + 1))[:17]
    np.testing.assert_array_equal(stream.sums(ticks), np.cumsum(rows, axis=0, dtype=np.int64)[ticks - 1])
    for size in (1, 7, 1000):
        np.testing.assert_array_equal(np.concatenate(list(stream.blocks(size))), rows)
    np.testing.assert_array_equal(stream.block(3, 5), rows[2:5])
    pairs = stream.pairs()
    assert (np.diff(pairs.ticks) >= 0).all()
    np.testing.assert_array_equal(pairs.dense(), rows)
    for wrong in ([0], [stream.horizon + 1], [], 5):
        with pytest.raises(ConfigurationError, match="ticks between 1"):
            stream.sums(wrong)


def test_every_workload_is_checked():
    named = {
        name
        for name, maker in inspect.getmembers(streams, inspect.isfunction)
        if maker.__module__ == streams.__name__ and not name.startswith("_")
    }
    assert named <= set(workloads())


def test_the_product_draws_no_random_numbers_of_its_own():
    """Workloads take the caller's generator; numpy.random is imported for its type only."""
    for module in (streams, reductions):
        assert "Generator" not in vars(module)
        names = {
            node.attr for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Attribute)
        }
        assert "default_rng" not in names


def test_dead_heat_stays_level():
    sums = streams.dead_heat(100, 7).sums(np.arange(1, 101))
    assert (np.ptp(sums, axis=1) <= 1).all()


@pytest.mark.parametrize(("width", "period"), [(2, 1), (3, 10), (20, 4)])
def test_leaders_rotate(width: int, period: int):
    """Each turn lasts longer than the period and ends with a strict new leader."""
    stream = streams.leader_rotation(3000, width, period)
    assert stream.horizon == 3000
    complete = np.cumsum(stream.lengths)[:-1]
    sums = stream.sums(complete)
    leaders = sums.argmax(axis=1)
    np.testing.assert_array_equal(leaders, np.arange(complete.size) % width)
    assert (np.sort(sums, axis=1)[:, -1] > np.sort(sums, axis=1)[:, -2]).all()
    assert (stream.lengths[:-1] > period).all()
    with pytest.raises(ConfigurationError, match="two columns"):
        streams.leader_rotation(10, 1, 2)


def test_block_streams_are_independent_neighbour_packings():
    """Ones exactly in one block for each column, so two of them are at most 2 b steps apart in every column."""
    stream = streams.block_stream([0, 3, 1], horizon=23, length=5)
    rows = stream.dense()
    np.testing.assert_array_equal(rows.sum(axis=0), [5, 5, 5])
    for column, block in enumerate([0, 3, 1]):
        assert rows[5 * block : 5 * block + 5, column].all()
    with pytest.raises(ConfigurationError, match="from 0 to 3"):
        streams.block_stream([4], horizon=23, length=5)


def test_random_workloads_have_the_rates_they_say():
    """Seeded, so this fails never or always; six standard deviations."""
    T = 20_000
    rates = np.array([0.9, 0.6, 0.3])
    for sums, p in (
        (streams.bernoulli_columns(T, rates, np.random.default_rng(5)).sums([T])[0], rates),
        (streams.uniform_rows(T, 4, np.random.default_rng(5)).sums([T])[0], np.full(4, 0.5)),
        (streams.zipf_columns(T, 50, np.random.default_rng(5)).sums([T])[0], 0.5 / np.arange(1, 51)),
    ):
        assert (np.abs(sums - T * p) <= 6 * np.sqrt(T * p * (1 - p))).all()
    sparse = streams.very_sparse(10**6, 1000, 50, np.random.default_rng(5))
    final = sparse.sums([10**6])[0]
    assert (final[0], final.max(), sparse.ticks.size) == (50, 50, final.sum())


def test_large_streams_stay_small():
    """A million ticks and a thousand columns: the hard stream for MaxSum takes megabytes, not a gigabyte."""
    hard = MarginalsToMaxSum.sized(10**6, 1000, 1.0, pure=True)
    stream = hard.stream(np.zeros((hard.rows, hard.attributes), dtype=np.uint8))
    assert (hard.attributes, hard.rows, stream.horizon, stream.width) == (1000, 500, 10**6, 1000)
    assert stream.rows.nbytes < 3 * 10**6


@st.composite
def marginals(draw: st.DrawFn) -> tuple[MarginalsToMaxSum, NDArray[np.uint8]]:
    n, attributes = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    hard = MarginalsToMaxSum(
        n, attributes, 2 * attributes * n + draw(st.integers(0, 9)), attributes + draw(st.integers(0, 3))
    )
    return hard, np.random.default_rng(draw(SEEDS)).integers(0, 2, (n, attributes), dtype=np.uint8)


@given(marginals())
def test_marginals_hide_in_max_sum(case: tuple[MarginalsToMaxSum, NDArray[np.uint8]]):
    """5.1: MaxSum at 2jn is n q_j + jn, so exact answers give the marginals back."""
    hard, y = case
    stream = hard.stream(y)
    assert (stream.horizon, stream.width) == (hard.horizon, hard.width)
    n, j = hard.rows, np.arange(1, hard.attributes + 1)
    np.testing.assert_array_equal(hard.ticks, 2 * j * n)
    answers = stream.sums(hard.ticks).max(axis=1)
    np.testing.assert_array_equal(answers, y.sum(axis=0) + j * n)
    np.testing.assert_allclose(hard.decode(answers), y.mean(axis=0), atol=1e-12)
    rows = stream.dense()
    assert not rows[:, hard.attributes :].any()
    assert not rows[2 * hard.attributes * n :].any()


@given(marginals(), SEEDS)
def test_errors_of_max_sum_carry_over_to_marginals(case, seed: int):
    hard, y = case
    answers = hard.stream(y).sums(hard.ticks).max(axis=1)
    error = np.random.default_rng(seed).integers(-5, 6, answers.size)
    off = np.abs(hard.decode(answers + error) - y.mean(axis=0))
    assert off.max() <= np.abs(error).max() / hard.rows + 1e-12


@st.composite
def selections(draw: st.DrawFn) -> tuple[KSelectToSumSelect, NDArray[np.uint8]]:
    n, k, size = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    hard = KSelectToSumSelect(n, k, size, 4 * k * n + draw(st.integers(0, 9)), k * size + draw(st.integers(0, 3)))
    return hard, np.random.default_rng(draw(SEEDS)).integers(0, 2, (n, k * size), dtype=np.uint8)


@given(selections())
def test_selections_hide_in_sum_select(case: tuple[KSelectToSumSelect, NDArray[np.uint8]]):
    """5.2: at 4rn block r leads all other columns by n, so exact answers are the winners of the blocks."""
    hard, y = case
    stream = hard.stream(y)
    n, k, size = hard.rows, hard.blocks, hard.block_size
    np.testing.assert_array_equal(hard.ticks, 4 * n * np.arange(1, k + 1))
    sums = stream.sums(hard.ticks)
    for r in range(k):
        inside = sums[r, r * size : (r + 1) * size]
        outside = np.delete(sums[r], np.arange(r * size, (r + 1) * size))
        assert inside.min() >= outside.max(initial=0) + n
    np.testing.assert_array_equal(hard.decode(sums.argmax(axis=1)), y.sum(axis=0).reshape(k, size).argmax(axis=1))
    assert (stream.horizon, stream.width) == (hard.horizon, hard.width)
    assert not stream.dense()[4 * k * n :].any()


def test_an_answer_outside_its_block_counts_as_the_first_column():
    hard = KSelectToSumSelect(1, 2, 3, 8, 7)
    assert hard.decode([3, 2]).tolist() == [0, 0]
    assert hard.decode([2, 6]).tolist() == [2, 0]


@settings(max_examples=30)
@given(marginals(), selections(), SEEDS)
def test_neighbouring_batches_become_neighbouring_streams(a, b, seed: int):
    rng = np.random.default_rng(seed)
    for hard, y in (a, b):
        i = int(rng.integers(hard.rows))
        other = y.copy()
        other[i] = 1 - y[i]
        differs = (hard.stream(y).dense() != hard.stream(other).dense()).any(axis=1)
        assert np.flatnonzero(differs).tolist() == [i]


def test_sizes():
    """5.1 and 5.2."""
    pure = MarginalsToMaxSum.sized(10**6, 10**4, 0.25, pure=True)
    assert (pure.attributes, pure.rows) == (500, 1000)
    approx = MarginalsToMaxSum.sized(10**6, 10**6, 0.01, pure=False)
    assert approx.attributes == int((10**4 * np.log(10**4)) ** (2 / 3))
    assert MarginalsToMaxSum.sized(10**6, 7, 1.0, pure=True).attributes == 7
    assert MarginalsToMaxSum.sized(100, 7, 1e-6, pure=False).attributes == 1
    select = KSelectToSumSelect.sized(4096, 512, 0.5, pure=False)
    assert select.block_size == 512 // select.blocks
    assert select.rows == 4096 // (4 * select.blocks)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (MarginalsToMaxSum, (0, 1, 10, 10)),
        (MarginalsToMaxSum, (1, 11, 100, 10)),
        (MarginalsToMaxSum, (5, 2, 19, 10)),
        (KSelectToSumSelect, (1, 1, 1, 10, 10)),
        (KSelectToSumSelect, (1, 4, 3, 100, 10)),
        (KSelectToSumSelect, (3, 2, 2, 23, 10)),
    ],
)
def test_impossible_sizes_are_refused(kind, sizes):
    with pytest.raises(ConfigurationError):
        kind(*sizes)


def test_a_batch_must_fit():
    hard = MarginalsToMaxSum(2, 3, 12, 3)
    for batch in ([[1, 0, 1]], [[1, 0, 2], [0, 0, 0]], [1, 0, 1]):
        with pytest.raises(ConfigurationError, match="2 rows of 3 zeros and ones"):
            hard.stream(batch)


def test_two_point_streams():
    """5.3 with distance T/4."""
    T = 40
    zero, spike = reductions.two_point_max_sum(T, T // 4)
    assert (zero.sums([T]).max(), spike.sums([T]).max(), zero.horizon, spike.horizon) == (0, T // 4, T, T)
    assert (zero.dense() != spike.dense()).any(axis=1).sum() == T // 4
    first, second = reductions.two_point_sum_select(T, 5, T // 4)
    assert (first.sums([T]).argmax(), second.sums([T]).argmax()) == (0, 1)
    assert (first.dense() != second.dense()).any(axis=1).sum() == T // 4


@given(SEEDS, st.integers(0, 4))
def test_packings_are_read_back(seed: int, alpha: int):
    """4.2: with 2 alpha + 1 (alpha + 1) copies an error of alpha leaves the word readable."""
    rng = np.random.default_rng(seed)
    n, copies = 12, 2 * alpha + 1
    u, y = reductions.packing_for_marginals(n, 5, copies, rng)
    hard = MarginalsToMaxSum(n, 5, 120, 5)
    answers = hard.stream(y).sums(hard.ticks).max(axis=1) + rng.integers(-alpha, alpha + 1, 5)
    np.testing.assert_array_equal(hard.decode(answers) * n > copies / 2, u == 1)
    v, z = reductions.packing_for_selection(n, 3, 4, alpha + 1, rng)
    choose = KSelectToSumSelect(n, 3, 4, 144, 12)
    sums = choose.stream(z).sums(choose.ticks)
    for r, row in enumerate(sums):  # any answer with a deficit of at most alpha
        good = np.flatnonzero(row.max() - row <= alpha)
        assert good.tolist() == [r * 4 + v[r]]


def test_packings_hold_no_more_copies_than_rows():
    with pytest.raises(ConfigurationError, match="copies"):
        reductions.packing_for_marginals(3, 2, 4, np.random.default_rng(0))


def test_fingerprints_betray_members():
    """Exact marginals of few people with many attributes: members score far above fresh rows. Seeded."""
    rng = np.random.default_rng(11)
    p, y = reductions.fingerprinting(20, 50_000, rng)
    fresh = (rng.random((50, 50_000)) < p).astype(np.uint8)
    inside = reductions.membership_scores(y.mean(axis=0), p, y)
    outside = reductions.membership_scores(y.mean(axis=0), p, fresh)
    assert abs(outside.mean()) < 6 * np.sqrt(50_000 / 50)
    assert inside.min() > outside.max()
    assert reductions.fingerprinting(20, 50, rng, eta=0.25)[0].min() >= 0.25 - 1e-12


def test_biased_columns():
    y = reductions.biased_columns(2000, 4, 50, np.random.default_rng(2))
    means = y.mean(axis=0)
    a = np.log(50)
    assert means.std() == pytest.approx(np.sqrt(1 / (4 * (2 * a + 1))), rel=0.3)


def test_floor_follows_the_guarantee():
    pure, approx = et.PureDP(0.25), et.ApproxDP(0.01, 1e-6)
    assert floor("max_sum", 2**20, 4096, pure, neighbours="replace").value == 603
    assert floor("sum_select", 2**20, 4096, pure, neighbours="replace").value == 1874
    assert floor("top_k", 2**20, 4096, pure, neighbours="replace").value == 603
    assert floor("top_k_select", 2**20, 4096, pure, neighbours="replace").value == 1874
    assert floor("histogram", 2**20, 4096, pure, neighbours="replace").value == 937
    assert floor("histogram", 2**20, 2, pure, neighbours="replace") == floor(
        "max_sum", 2**20, 2, pure, neighbours="replace"
    )
    assert floor("max_sum", 10**6, 100, approx).value == 34.5
    assert floor("sum_select", 10**6, 100, approx).value == 34
    assert floor("histogram", 10**6, 1000, et.PureDP(1.0), neighbours="independent").value == 1458.5
    assert not floor("histogram", 10**6, 1000, et.PureDP(1.0), neighbours="independent", certified=False).certified


def test_the_default_floor_holds_for_both_relations():
    for task in ("max_sum", "sum_select", "histogram"):
        default = floor(task, 65536, 1024, et.PureDP(1.0))
        assert default == floor(task, 65536, 1024, et.PureDP(1.0), neighbours="add_remove")
        assert default.value <= floor(task, 65536, 1024, et.PureDP(1.0), neighbours="replace").value
        assert floor(task, 65536, 1024, et.PureDP(1.0), max_per_event=1).value < default.value


def test_floors_that_do_not_exist_are_refused():
    with pytest.raises(ConfigurationError, match="no certified floor for ZCDP"):
        floor("max_sum", 1000, 10, et.ZCDP(0.1))
    with pytest.raises(ConfigurationError, match="no certified floor for ApproxZCDP"):
        floor("max_sum", 1000, 10, et.ApproxZCDP(0.1, 1e-9))
    with pytest.raises(ConfigurationError, match="to_approx"):
        floor("max_sum", 1000, 10, et.ApproxZCDP(0.1, 1e-9), certified=False)
    with pytest.raises(ConfigurationError, match="histogram under PureDP only"):
        floor("max_sum", 1000, 10, et.PureDP(1.0), neighbours="independent")
    with pytest.raises(ConfigurationError, match="task must be one of"):
        floor("mean", 1000, 10, et.PureDP(1.0))  # type: ignore[arg-type]
    for guarantee in (et.PureDP(1.0), et.ApproxDP(1.0, 1e-9), et.ZCDP(0.01)):
        shape = floor("sum_select", 1000, 10, guarantee, certified=False)
        assert not shape.certified
        assert shape.value > 0


def test_price_by_guarantee():
    assert price("max_sum", 10**6, 10**6, et.PureDP(1.0)) == pytest.approx(1000)
    assert price("max_sum", 10**6, 10**6, et.ApproxDP(1.0, 1e-9)) < 100
    with pytest.raises(ConfigurationError, match="max_sum and sum_select"):
        price("histogram", 10**6, 10**6, et.PureDP(1.0))


def test_runs_and_pairs_are_what_the_counters_take():
    stream = streams.late_spike(20, 2, 5)
    totals = et.VectorCounter(columns=2, guarantee=et.PureDP(1.0), horizon=20, max_per_event=2, key=et.simulation(1))
    assert totals.run(stream.dense()).shape == (20, 2)
    assert isinstance(stream, Runs)
    assert isinstance(stream.pairs(), Pairs)
