"""Counting under pure privacy by blocks: certificate, algebra, budgets, correct rounding (optimal-counting 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from block_costs import costs, in_levels
from flint import arb

import evertally as et
from conformance.mechanisms import counter
from evertally.balls import at_precision
from evertally.bounds import inversion
from evertally.bounds.inversion import Line
from evertally.checks import CHECKS
from evertally.counting import block_kernels, block_level, block_tails, pure_blocks
from evertally.counting.block_table import GRID, ROOTS, BlockTable, block_table, sizes_for
from evertally.counting.pure_blocks import PureBlocksProcess, float_above, shares_of
from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import Change, PureDP

ONE = Change(1, 1, 1)
STATED = {16: 15.42, 32: 21.88, 64: 30.72, 128: 41.80, 256: 56.37, 512: 74.56, 1024: 95.05}


def process(T: int = 300, columns: int = 2, seed: int = 0, epsilon: float = 1.0) -> PureBlocksProcess:
    source = simulation(seed).source("blocks")
    return PureBlocksProcess(PureDP(epsilon), ONE, horizon=T, columns=columns, source=source)


@pytest.mark.parametrize("n", STATED)
def test_tables(n: int) -> None:
    """Exact l1 norms, V of the specification, L R = A, and the numbers by which budgets are divided."""
    table = block_table(n)
    R = np.vstack([np.diag(table.d), table.dense])
    assert np.abs(R).sum(axis=0).max() == GRID
    V = 2 * float(table.energies.max())
    assert pytest.approx(V, abs=0.006) == STATED[n]
    assert ROOTS[n] == round(1000 * V ** (1 / 3))
    if n <= 256:
        assert np.allclose(table.weights[1:] @ (R / GRID), np.tri(n), atol=1e-9)


def test_full_rank_modulo_a_prime() -> None:
    """Another way to the second half of the certificate, for a small table with bare ticks."""
    table, prime = block_table(16), 2147483629
    assert table.bare
    rows = [[int(v) % prime for v in row] for row in np.vstack([np.diag(table.d), table.dense])]
    for column in range(16):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        assert pivot is not None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        inverse = pow(rows[column][column], -1, prime)
        for i in range(column + 1, len(rows)):
            factor = rows[i][column] * inverse % prime
            rows[i] = [(a - factor * b) % prime for a, b in zip(rows[i], rows[column], strict=True)]


def broken(name: str) -> dict[str, Any]:
    table = block_table(32)
    d, value = table.d.copy(), table.value.copy()
    if name == "one unit more":
        d[3] += 1
    elif name == "a negative entry":
        d[3] = -d[3]
    elif name == "an entry larger":
        value[0] += 2
    elif name == "rank":
        d[:] = 0  # 32 bare ticks, three rows
    return {"d": d, "value": value}


@pytest.mark.parametrize("name", ["one unit more", "a negative entry", "an entry larger", "rank"])
def test_tables_that_are_refused(name: str) -> None:
    with pytest.raises(StateError):
        replace(block_table(32), **broken(name))


def test_sizes() -> None:
    for T in (1, 2, 16, 17, 1000, 1025, 10**5, 2**20, 2**30, 2**40):
        sizes = sizes_for(T)
        assert math.prod(sizes) >= T
        assert math.prod(sizes) < 2 * max(T, 16)
    V = {T: (sum(STATED[n] ** (1 / 3) for n in sizes_for(T))) ** 3 for T in (2**12, 2**14, 2**16, 2**18, 2**20, 2**24)}
    stated = {2**12: 245.8, 2**14: 334.4, 2**16: 451.0, 2**18: 592.3, 2**20: 760.4, 2**24: 1522}
    assert pytest.approx(stated, rel=1e-3) == V


@pytest.mark.parametrize(("T", "bar"), [(2**10, 96), (2**16, 452), (2**20, 762)])
def test_variances_of_the_specification(T: int, bar: float) -> None:
    assert process(T, 1).worst().variance <= bar


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(2, 7), Fraction(10**9 + 7, 10**9)])
def test_budgets_add_up(epsilon: Fraction) -> None:
    for T in (10, 5000, 2**21, 2**31):
        shares = shares_of(epsilon, sizes_for(T))
        assert sum(shares) == epsilon
        assert min(shares) > 0
    noise = PureBlocksProcess(PureDP(epsilon), Change(3, 5, 2), horizon=5000, columns=1, source=ZeroNoise().source())
    for share, level in zip(noise.shares, noise._levels, strict=True):
        assert 0 <= Fraction(level.scale) - 3 / share < Fraction(1, 10**12)
    assert Fraction(float_above(Fraction(1, 3))) >= Fraction(1, 3)


@pytest.mark.parametrize(
    ("T", "sizes"), [(1, (16,)), (16, (16,)), (300, (512,)), (40, (16, 16)), (256, (16, 16)), (600, (32, 16, 16))]
)
def test_one_event_costs_no_more_than_epsilon(T: int, sizes: tuple[int, ...]) -> None:
    with in_levels(*sizes):
        charged, wrong = costs(T)
    assert max(charged) <= 1
    assert max(charged) > Fraction(99, 100)
    assert wrong < 1e-9


def test_the_walk_is_the_dense_product() -> None:
    for n in (16, 64, 256):
        noise = process(n, 3)
        level = noise._levels[0]
        centre, radius = level.rows(0, n + 1)
        z = level._drawn(0, 0, level.table.rows).value
        assert np.allclose(centre, level.scale * level.table.weights @ z, atol=1e-9)
        assert radius[0] == 0
        assert radius.max() < 1e-9


def distances(level: Any, centre: list[float]) -> list[float]:
    path = level.block_ball(0, 0, 192)
    return [float(abs(ball * level.scale - arb(value)).upper()) for ball, value in zip(path, centre, strict=True)]


def test_bounds_hold_and_are_not_idle() -> None:
    """Against balls, tick by tick; a ten-thousandth of the bound would not hold."""
    for n in (16, 128):
        level = process(n, 1)._levels[0]
        centre, radius = level.rows(1, n)
        off = at_precision(256, partial(distances, level, centre[:, 0].tolist()))
        assert (np.array(off) <= radius).all()
        assert (np.array(off) > radius * 1e-4).any()


@pytest.fixture
def levels() -> Iterator[None]:
    """Three levels of 16 ticks, in place of one block for such short horizons."""
    with in_levels(16, 16, 16):
        yield


@pytest.mark.usefixtures("levels")
def test_balls_lead_to_the_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    small = process(40, 2)
    noise = small.advance(40)
    for tick in (1, 15, 16, 17, 32, 40):
        assert [small.settled(tick, column) for column in (0, 1)] == noise[tick - 1].tolist()
    asked = []
    original = pure_blocks.round_half_up
    monkeypatch.setattr(pure_blocks, "round_half_up", lambda centre, radius: original(centre, radius + 0.05))
    settled = PureBlocksProcess.settled
    monkeypatch.setattr(PureBlocksProcess, "settled", lambda self, *at: asked.append(at) or settled(self, *at))
    assert (process(40, 2).advance(40) == noise).all()
    assert asked


@pytest.mark.usefixtures("levels")
def test_large_amounts() -> None:
    counter = et.Counter(
        guarantee=et.PureDP(1), horizon=60, mechanism="pure-blocks", max_weight=10**10, key=et.simulation(3)
    )
    off = np.array(counter.run([0] * 60))
    assert 10**9 < np.abs(off).max() < 30 * 10 * 10**10
    assert [counter.noise.settled(t, 0) for t in (1, 33, 60)] == off[[0, 32, 59]].tolist()


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("columns", [1, 3, 100])
def test_however_one_gets_there_the_noise_is_the_same(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    T = 200
    whole = process(T, columns).advance(T)
    pieces = process(T, columns)
    assert (np.concatenate([pieces.advance(n) for n in (1, 1, 15, 50, 133)]) == whole).all()
    for tick in (0, 15, 16, 17, 64, 199, 3):
        pieces.seek(tick)
        assert (pieces.advance(1) == whole[tick]).all()
    monkeypatch.setattr(block_level, "_AT_ONCE", 5 * columns)
    monkeypatch.setattr(pure_blocks, "_AT_ONCE", 7 * columns)
    assert (process(T, columns).advance(T) == whole).all()
    if columns < 100:
        monkeypatch.setattr(block_kernels, "compiled", lambda name: getattr(block_kernels, name))
        assert (process(T, columns).advance(40) == whole[:40]).all()


@pytest.mark.usefixtures("levels")
def test_columns_do_not_depend_on_their_company() -> None:
    assert (process(50, 3).advance(50) == process(50, 70).advance(50)[:, :3]).all()


@pytest.mark.usefixtures("levels")
def test_spreads_are_those_of_the_paths() -> None:
    n = 20000
    noise, model = process(40, n).advance(40).astype(np.float64), process(40, 1)
    for tick in (1, 15, 16, 17, 31, 40):
        # the fourth moment of such sums is at most that of Laplace numbers
        assert noise[tick - 1].std() == pytest.approx(model.spread(tick).stddev, rel=6 * math.sqrt(5 / (4 * n)))
    for tick, window in ((15, 5), (17, 1), (40, 30), (40, 8)):
        expected = model.window_spread(tick, window).stddev
        moved = noise[tick - 1] - noise[tick - 1 - window]
        assert moved.std() == pytest.approx(expected, rel=6 * math.sqrt(5 / (4 * n)))
    assert (np.abs(noise[20]) > model.spread(21).radius(0.1)).mean() < 0.1
    assert model.worst().stddev >= max(model.spread(t).stddev for t in range(1, 41)) - 1e-12


def test_refusals() -> None:
    with pytest.raises(HorizonExceeded):
        process(10).advance(11)
    with pytest.raises(ConfigurationError, match="pure budgets"):
        et.Counter(guarantee=et.ZCDP(1.0), horizon=100, mechanism="pure-blocks")
    with pytest.raises(ConfigurationError, match="horizon"):
        et.Counter(guarantee=et.PureDP(1.0), horizon=None, mechanism="pure-blocks")
    with pytest.raises(ConfigurationError, match="range of exact numbers"):
        PureBlocksProcess(PureDP(Fraction(1, 10**15)), ONE, horizon=9, columns=1, source=ZeroNoise().source())
    assert isinstance(block_table(16), BlockTable)


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Any) -> None:
    """Here and not in the list of all: the auditor has no exact loss for real Laplace numbers, and `costs` is ours."""
    check(counter(et.PureDP(1.0), 40, "pure-blocks", ticks=18))


def test_half_the_variance_of_a_tree() -> None:
    for T in (1024, 2**16):
        made = [
            et.Counter(guarantee=et.PureDP(1), horizon=T, mechanism=name, key=et.simulation(1)).noise.worst().variance
            for name in ("pure-blocks", "tree")
        ]
        assert made[0] < made[1] / 2


@pytest.mark.parametrize("T", [40, 400])
def test_the_whole_path_stays_below_its_joint_bound(T: int) -> None:
    process = PureBlocksProcess(
        PureDP(1), Change(2, 2, 1), horizon=T, columns=2000, source=simulation(5).source("joint")
    )
    largest = np.abs(process.advance(T)).max(axis=0)
    for beta in (0.5, 0.05):
        bound = process.joint_radius(beta)
        assert np.mean(largest > bound) <= beta
        assert bound < process.worst().radius(beta / T)
    assert bound < 1.3 * np.quantile(largest, 0.95), "and says something"


@pytest.mark.parametrize("T", [16, 256, 4096])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_what_the_inversion_cuts_off_is_negligible(T: int, beta: float) -> None:
    """Terms may cancel in the sum that is looked at; their sizes, which only fall along the line, must be small too."""
    levels = block_tails._levels(sizes_for(T))

    def product(z: complex, size: Any) -> Any:
        return math.prod(size(1 / np.prod(1 - z * z * rows, axis=1)).sum() for rows in levels) - 1

    line = Line(lambda z: complex(product(z, np.asarray)), math.sqrt(max(float(rows.max()) for rows in levels)), beta)
    assert line._sharp
    left = product(complex(line._z[-1]), np.abs) / math.exp(line._log)
    assert left <= len(line._z) * inversion._NEGLIGIBLE


def test_spreads_by_kept_sums_are_those_of_the_weights() -> None:
    """Bit for bit, at every tick: what was released with a standard deviation is released with the same one."""
    blocks = PureBlocksProcess(PureDP(0.7), Change(3, 3, 1), horizon=5000, columns=1, source=ZeroNoise().source())
    assert len(blocks._levels) > 1
    for tick in range(1, 5001, 7):
        rows = [level.weights(j) for level, (_, j) in zip(blocks._levels, blocks._places(tick), strict=True)]
        kept, made = blocks.spread(tick), block_tails.RowSpread([row * row for row in rows])
        assert (kept, kept.stddev) == (made, made.stddev)
        assert (kept._weights() == made._weights()).all()


def test_errors_grow_with_the_l1_norm_of_an_event() -> None:
    """Laplace noise of scale l1/epsilon: three of weight 1 under three times the budget are one."""
    one, three = (
        PureBlocksProcess(PureDP(w), Change(w, w * w, w), horizon=300, columns=1, source=ZeroNoise().source())
        for w in (1, 3)
    )
    assert three.worst().stddev == pytest.approx(one.worst().stddev)
    for beta in (0.1, 1e-3):
        assert three.joint_radius(beta) == one.joint_radius(beta)
