"""What processes remember, cut between columns and put together again: the same noise as without a break."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slice_cases import CASES, Case, whole

import evertally as et
from evertally.counting.ahead import AHEAD, Ahead
from evertally.counting.column_memory import GROUP, ColumnMemory, Divisible
from evertally.counting.honaker import HonakerProcess
from evertally.counting.processes import PROCESSES
from evertally.errors import HorizonExceeded, StateError
from evertally.noise import simulation
from evertally.privacy import Change

REMEMBER = [case for case in CASES if case.mechanism in ("honaker", "bank", "bank-open")]


def made(case: Case, first: int, stop: int, columns: int = 9) -> Any:
    plan = whole(case, columns, et.simulation(1)).plan()
    noise = plan.process(plan.source(et.simulation(1)), first, stop)
    return Ahead(noise) if PROCESSES[case.mechanism].ahead else noise


def test_which_processes_remember() -> None:
    """The others are trees, which go to a tick in one pass."""
    for case in CASES:
        assert isinstance(made(case, 0, 2), Divisible) == (case.mechanism not in ("tree", "epoch-tree"))


@pytest.mark.parametrize("tick", [0, 1, 23, 31])
@pytest.mark.parametrize("case", [case for case in CASES if case.mechanism not in ("tree", "epoch-tree")], ids=str)
def test_cut_and_put_together(case: Case, tick: int) -> None:
    expected = made(case, 0, 9).advance(60)
    parts = []
    for first, stop in ((0, 1), (1, 6), (6, 9)):  # one column alone has a kernel of its own
        part = made(case, first, stop)
        assert np.array_equal(part.advance(tick), expected[:tick, first:stop])
        parts.append(part.kept())
    for first, stop in ((0, 9), (0, 4), (3, 4), (5, 9)):
        again = made(case, first, stop)
        memory = ColumnMemory.joined(parts)
        assert memory is not None
        again.take(tick, memory.cut(first, stop))
        assert again.tick == tick
        assert np.array_equal(again.advance(60 - tick), expected[tick:, first:stop])


@pytest.mark.parametrize("case", REMEMBER[:3], ids=str)
def test_more_columns_than_share_bounds(case: Case) -> None:
    columns = 2 * GROUP + 50
    process = made(case, 0, columns, columns)
    process.advance(9)
    kept = process.kept()
    expected = process.advance(1)
    cut = [kept.cut(first, stop) for first, stop in ((0, 3), (3, GROUP + 7), (GROUP + 7, columns))]
    assert [part.bounds.shape[1] for part in cut] == [1, 2, 2]
    again = made(case, 0, columns, columns)
    memory = ColumnMemory.joined(cut)
    assert memory is not None
    again.take(9, memory)
    assert np.array_equal(again.advance(1), expected)


@given(st.integers(1, 40), st.lists(st.integers(0, 40), max_size=6), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_bounds_hold_wherever_it_is_cut(columns: int, cuts: list[int], seed: int) -> None:
    """No column gets a smaller bound than it had."""
    rng = np.random.default_rng(seed)
    memory = ColumnMemory.of(rng.integers(0, 9, (2, columns)), rng.random((3, 1)))
    edges = sorted({0, columns, *(cut for cut in cuts if cut < columns)})
    parts = [memory.cut(first, stop) for first, stop in pairwise(edges)]
    again = ColumnMemory.joined(parts)
    assert again is not None
    assert np.array_equal(again.numbers, memory.numbers)
    assert (again.bound_of_each() >= memory.bound_of_each()).all()


def test_states_of_a_bank_are_bounded_after_one_column_alone() -> None:
    """Its own kernel keeps no bound of |e|; beside neighbours it needs one."""
    case = Case("bank", et.ZCDP(0.5))
    parts = [made(case, first, stop) for first, stop in ((0, 1), (1, 2))]
    for part in parts:
        part.advance(40)
    memory = ColumnMemory.joined([part.kept() for part in parts])
    assert memory is not None
    both = made(case, 0, 2)
    both.take(40, memory)
    (block,) = both._path._blocks
    assert (block.big >= np.abs(block.e).max(axis=1)).all()
    assert (block.big > 0).all()


def test_bounds_of_the_refined_tree_are_true() -> None:
    """Taken from a group, a bound is not below the column's own, in nodes and in prefixes."""

    def process() -> HonakerProcess:
        source = simulation(1).source("h")
        return HonakerProcess(et.ZCDP(0.5), Change(1, 1, 1), horizon=90, columns=7, source=source)

    walked, taken = process(), process()
    walked.advance(45)
    taken.take(45, walked.kept())
    heights = [h for h in range(7) if 45 >> h & 1]
    for mine, theirs in ((taken._node, walked._node), (taken._prefix, walked._prefix)):
        assert np.array_equal(mine[0, heights], theirs[0, heights])
        assert (mine[1, heights] >= theirs[1, heights]).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_no_memory_of_this_process_is_refused(case: Case) -> None:
    process = made(case, 0, 3)
    if not isinstance(process, Divisible):
        return
    wrong = [ColumnMemory.of(np.zeros((50, 3))), ColumnMemory.of(np.zeros((1, 3)), np.zeros((9, 1)))]
    if case in REMEMBER:
        process.advance(3)
        good = process.kept()
        wrong += [ColumnMemory(good.numbers[:, :2], good.bounds), ColumnMemory(good.numbers[:-1], good.bounds)]
    for memory in wrong:
        with pytest.raises(StateError, match="intact"):
            made(case, 0, 3).take(3, memory)


def test_memories_that_do_not_go_together_are_left_out() -> None:
    one, other = ColumnMemory.of(np.zeros((4, 3))), ColumnMemory.of(np.zeros((8, 3)))
    assert ColumnMemory.joined([one, other]) is None
    assert ColumnMemory.joined([one, None]) is None
    assert ColumnMemory.joined([one]) is one


def test_noise_made_ahead_ends_with_the_horizon() -> None:
    case = Case("sqrt", et.ZCDP(0.5), 40)
    expected = whole(case, 2, et.simulation(1)).noise.advance(40)
    process = Ahead(whole(case, 2, et.simulation(1)).noise)
    parts = [process.advance(n) for n in (1, AHEAD - 1, 3, 5)]
    assert len(process.kept().numbers) == 0
    assert np.array_equal(np.concatenate(parts), expected)
    with pytest.raises(HorizonExceeded):
        process.advance(1)
    process.seek(5)
    assert np.array_equal(process.advance(2), expected[5:7])
