"""The tree: cells, levels, radix, and the low-memory form against a literal table of per-cell noise."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from counting_reference import base_digits, cells, ticks_of
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.bounds.selection import L, digits
from evertally.counting.tree import TreeProcess, choose_radix, largest_digit_sum, level
from evertally.errors import ConfigurationError
from evertally.noise import Recording, Source, ZeroNoise, simulation
from evertally.privacy import ZCDP, Change, PureDP

ONE = Change(1, 1, 1)
POWERS = [(r**m, r, m) for r in range(2, 50) for m in range(1, 40) if r**m <= 10**12]


def tree(
    horizon: int,
    radix: int,
    *,
    columns: int = 1,
    keep: bool = True,
    pure: bool = False,
    seed: int = 0,
    source: Source | None = None,
) -> TreeProcess:
    return TreeProcess(
        PureDP(1) if pure else ZCDP(0.5),
        ONE,
        horizon=horizon,
        columns=columns,
        source=simulation(seed).source("tree test") if source is None else source,
        radix=radix,
        keep=keep,
    )


def test_levels_are_integers_where_float_logarithms_lose_one() -> None:
    """streaming-selection 10.4: 478 pairs (T = r^m, r), 29 of them one level short by floats."""
    assert len(POWERS) == 478
    for T, r, m in POWERS:
        assert L(T, r) == m + 1
        assert L(T - 1, r) == m
        assert L(T + 1, r) == m + 1
    short = {(T, r) for T, r, m in POWERS if math.floor(math.log(T) / math.log(r)) + 1 == m}
    assert len(short) == 29
    assert {(243, 3), (59049, 9), (4913, 17), (10**6, 10)} <= short


@given(st.integers(0, 10**15), st.integers(2, 60))
def test_digits(t: int, r: int) -> None:
    assert sum(d * r**i for i, d in enumerate(digits(t, r))) == t
    assert all(0 <= d < r for d in digits(t, r))
    assert digits(t, r) == (base_digits(t, r) or [0])


def test_cells_of_the_specification() -> None:
    assert cells(7, 2) == [(0, 7), (1, 3), (2, 1)]
    assert cells(11, 3) == [(0, 10), (0, 11), (2, 1)]


@pytest.mark.parametrize("r", [2, 3, 4, 5, 10])
def test_blocks_tile_the_prefix_and_obey_the_three_facts(r: int) -> None:
    T = 700
    process = tree(T, r)
    used: set[tuple[int, int]] = set()
    before: set[tuple[int, int]] = set()
    for t in range(1, T + 1):
        now = cells(t, r)
        assert sorted(tick for cell in now for tick in ticks_of(cell, r)) == list(range(1, t + 1))
        assert sorted(process._blocks(t)) == sorted(ticks_of(cell, r)[-1] for cell in now)
        assert len(now) == sum(base_digits(t, r))
        # fact 1: one new cell, of the level of t's trailing zeros; lower levels are dropped
        v = next(i for i, digit in enumerate(base_digits(t, r)) if digit)
        assert set(now) - before == {(v, t // r**v)}
        assert {cell for cell in before if cell[0] >= v} == set(now) - {(v, t // r**v)}
        before = set(now)
        used |= before
    # fact 2: last children are never used; T cells in all, so a tick names its cell
    assert all(index % r for _, index in used)
    assert len(used) == T
    assert len({ticks_of(cell, r)[-1] for cell in used}) == T
    # fact 3: how many used cells an event touches
    depth = L(T, r)
    touched = np.zeros(T + 2, dtype=int)
    for cell in used:
        touched[ticks_of(cell, r)[0]] += 1
        touched[ticks_of(cell, r)[-1] + 1] -= 1
    touched = np.cumsum(touched)
    for t in range(1, T + 1):
        ceilings = [-(-t // r**i) for i in range(depth)]
        assert touched[t] == sum(c % r != 0 and c * r**i <= T for i, c in enumerate(ceilings))
    assert touched[1] == depth == max(touched)
    assert touched[T] == 1


@pytest.mark.parametrize("T", [1, 2, 3, 7, 8, 9, 26, 27, 28, 80, 81, 82, 99, 100, 101])
@pytest.mark.parametrize("r", [2, 3, 10])
def test_no_event_lies_in_more_blocks_than_levels_at_the_edges(T: int, r: int) -> None:
    used = {cell for t in range(1, T + 1) for cell in cells(t, r)}
    counts = [sum(t in ticks_of(cell, r) for cell in used) for t in range(1, T + 1)]
    assert max(counts) == counts[0] == L(T, r)
    assert len(used) == T


@pytest.mark.parametrize(
    ("T", "binary_levels", "best", "its_levels", "ratio"),
    [
        (100, 7, 5, 3, 0.857),
        (1000, 10, 4, 5, 0.866),
        (1024, 11, 6, 4, 0.813),
        (10**4, 14, 5, 6, 0.857),
        (10**5, 17, 7, 6, 0.865),
        (10**6, 20, 4, 10, 0.866),
        (10**7, 24, 6, 9, 0.839),
        (10**8, 27, 8, 9, 0.882),
        (10**9, 30, 4, 15, 0.866),
    ],
)
def test_radix_table(T: int, binary_levels: int, best: int, its_levels: int, ratio: float) -> None:
    assert L(T, 2) == binary_levels
    assert choose_radix(T, "formula", pure=False) == best
    assert L(T, best) == its_levels
    assert round(math.sqrt((best - 1) * its_levels**2) / binary_levels, 3) == ratio


def test_radix_formula_is_the_minimum_over_all_radices() -> None:
    for T in [*range(1, 120), 255, 256, 257, 300, 600, 1000]:
        for pure in (False, True):
            power = 3 if pure else 2
            costs = {r: (r - 1) * L(T, r) ** power for r in range(2, max(2, T) + 1)}
            assert costs[choose_radix(T, "formula", pure)] == min(costs.values())
            exact = {r: largest_digit_sum(T, r) * L(T, r) ** (power - 1) for r in costs}
            assert exact[choose_radix(T, "exact", pure)] == min(exact.values())
    assert [9 * L(1000, 10) ** 2, 3 * L(1000, 4) ** 2] == [144, 75]
    assert [largest_digit_sum(1000, r) * L(1000, r) for r in (2, 4, 6)] == [90, 70, 72]


@pytest.mark.parametrize("radix", [1, 0, -3, 101, True, "best", None, 2.0])
def test_bad_radix_is_refused(radix: object) -> None:
    with pytest.raises(ConfigurationError):
        choose_radix(100, radix, pure=False)  # type: ignore[arg-type]


def test_largest_digit_sum_by_brute_force() -> None:
    for r in range(2, 13):
        best = 0
        for T in range(1, 500):
            best = max(best, sum(base_digits(T, r)))
            assert largest_digit_sum(T, r) == best
    assert tree(499, 7).worst() == max((tree(499, 7).spread(t) for t in range(1, 500)), key=lambda s: s.variance)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(1, 300), st.integers(2, 12), st.integers(1, 3), st.booleans(), st.integers(0, 10**6))
def test_stream_form_is_the_table_of_cell_noise(T: int, r: int, columns: int, pure: bool, seed: int) -> None:
    r = min(r, max(2, T))
    process = tree(T, r, columns=columns, pure=pure, seed=seed)
    noise = {
        t: process._source.draws("tree", process.law, [t], columns)[0] for t in range(1, T + 1)
    }  # a cell is addressed by the tick that completes it
    table = np.array([sum(noise[ticks_of(cell, r)[-1]] for cell in cells(t, r)) for t in range(1, T + 1)])
    assert np.array_equal(process.advance(T), table)
    forgetful = tree(T, r, columns=columns, pure=pure, seed=seed, keep=False)
    assert np.array_equal(forgetful.advance(T), table)
    # from any tick, in any portions
    rng = random.Random(seed)
    for mover in (process, forgetful):
        start = rng.randint(0, T - 1)
        mover.seek(start)
        while mover.tick < T:
            at, count = mover.tick, rng.randint(1, T - mover.tick)
            assert np.array_equal(mover.advance(count), table[at : at + count])


def test_shared_cells_carry_shared_noise() -> None:
    """noise(7) - noise(6) is the noise of cell (0, 7) alone."""
    process = tree(7, 2)
    path = process.advance(7)[:, 0]
    assert path[6] - path[5] == process._source.draws("tree", process.law, [7])[0, 0]
    assert path[3] == process._source.draws("tree", process.law, [4])[0, 0]


@given(st.integers(1, 2000), st.integers(2, 9), st.data())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_window_spread_counts_the_cells_that_differ(T: int, r: int, data: st.DataObject) -> None:
    r = min(r, max(2, T))
    process = tree(T, r)
    tick = data.draw(st.integers(1, T))
    window = data.draw(st.integers(1, tick))
    different = set(cells(tick, r)) ^ set(cells(tick - window, r))
    assert process.window_spread(tick, window).variance == pytest.approx(len(different) * process.law.stddev() ** 2)


@given(st.integers(1, 3000), st.integers(2, 9), st.data())
@settings(deadline=None, max_examples=40, derandomize=True)
def test_going_to_a_tick_draws_every_block_once(T: int, r: int, data: st.DataObject) -> None:
    """In one pass: as many draws as blocks tile the prefix, and the state of one who walked there."""
    r = min(r, max(2, T))
    tick = data.draw(st.integers(0, T))
    recording = Recording(simulation(3))
    sought = tree(T, r, columns=2, source=recording.source("tree test"))
    sought.seek(tick)
    drawn = [node for call in recording.draws for node in call.nodes]
    assert sorted(drawn) == sorted(sought._blocks(tick))
    walked = tree(T, r, columns=2, seed=3)
    walked.advance(tick)
    present = {level(t, r) for t in sought._blocks(tick)}  # of the other levels nothing is read any more
    assert all(np.array_equal(sought._latest[v], walked._latest[v]) for v in present)


def test_going_to_a_tick_with_more_columns_than_go_together() -> None:
    walked, sought = (tree(100, 3, columns=2**12 + 5) for _ in range(2))
    walked.advance(77)
    sought.seek(77)
    assert np.array_equal(sought.advance(3), walked.advance(3))


@pytest.mark.parametrize("charge", [PureDP(1), ZCDP(0.1)], ids=str)
def test_the_joint_law_reaches_to_one_in_a_billion(charge):
    """For all ticks together, and not for each of them: there the union over ticks would have to answer."""
    source = ZeroNoise().source()
    process = TreeProcess(charge, Change(1, 1, 1), horizon=1000, columns=1, source=source, radix=2)
    for beta in (1e-3, 1e-9):
        assert process.joint_radius(beta) < process.worst().radius(beta / 1000)
