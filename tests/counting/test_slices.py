"""Slices of a linear mechanism release, number by number, what the whole releases: whatever the cut, the batches, the
order of cells and the breaks between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from slice_cases import CASES, Case, released, whole

import evertally as et
from evertally.counting import slices
from evertally.counting.plan import LinearPlan
from evertally.counting.slices import LinearSlice
from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import Recording, ZeroNoise

Ints = NDArray[np.int64]
TREE, BANK = Case("tree", et.ZCDP(0.5)), Case("bank", et.ZCDP(0.5))


def cells(rows: Ints, before: int, first: int, stop: int) -> tuple[Ints, Ints, Ints]:
    """What rows of the ticks before + 1, ... have in some columns."""
    t, j = np.nonzero(rows[:, first:stop])
    return t + before + 1, j + first, rows[:, first:stop][t, j]


def played(part: LinearSlice, batch: tuple[Any, Any, Any], through: int) -> list[Ints]:
    """The rows of all ticks, one by one."""
    return [row for _, rows in part.advance(*batch, through) for row in rows]


@pytest.mark.parametrize("by_label", [False, True], ids=["columns", "categories"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_slices_are_the_whole(case: Case, by_label: bool) -> None:
    """Uneven cuts, carried through bytes several times."""
    d, n, key = 11, 50, et.simulation(1)
    rows = np.random.default_rng(1).integers(0, 4, (n, d))
    mechanism = whole(case, d, key, by_label=by_label)
    plan = LinearPlan.from_json(mechanism.plan().to_json())
    expected = released(mechanism, rows)
    for first, stop in pairwise([0, 1, d // 3, d // 3 + 5, d]):
        part, mine = LinearSlice(plan, key, first, stop), []
        for before, through in pairwise([0, 1, 7, 8, 40, n]):
            mine += played(part, cells(rows[before:through], before, first, stop), through)
            part = LinearSlice.from_bytes(plan, key, first, stop, [part.to_bytes()])
        assert np.array_equal(np.stack(mine), expected[:, first:stop])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_another_cut(case: Case) -> None:
    """A slice reads the overlapping parts of the old ones, what waits and what noise remembers included."""
    d, n, key = 11, 40, et.simulation(1)
    rows = np.random.default_rng(2).integers(0, 3, (n, d))
    plan = whole(case, d, key).plan()
    expected = released(whole(case, d, key), rows)
    states, before = [], 0
    for through, cut in ((9, [0, 4, 5, 11]), (10, [0, 1, 11]), (33, [0, 11]), (n, [0, 3, 6, 9, 11])):
        found, made = [], []
        for first, stop in pairwise(cut):
            part = (
                LinearSlice.from_bytes(plan, key, first, stop, states)
                if states
                else LinearSlice(plan, key, first, stop)
            )
            # all that is left arrives with the first batch: later ticks wait
            came = cells(rows, 0, first, stop) if not before else ([], [], [])
            found.append(np.stack(played(part, came, through)))
            made.append(part.to_bytes())
        assert np.array_equal(np.concatenate(found, axis=1), expected[before:through])
        states, before = made, through


def totals(batches: Sequence[tuple[list[tuple[int, int, int]], int]], columns: int, limit: tuple[int, int]) -> Ints:
    """The rule of cells, said again in plain Python: rows of all closed ticks."""
    last, tick = batches[-1][1], 0
    rows = [[0] * columns for _ in range(10**3)]
    for came, through in batches:
        for t, j, w in came:
            rows[max(t, tick + 1)][j] += w
        tick = through
    return np.array([[max(limit[0], min(limit[1], x)) for x in row] for row in rows[1 : last + 1]]).reshape(-1, columns)


@st.composite
def histories(
    draw: st.DrawFn, signed: bool
) -> tuple[int, list[tuple[list[tuple[int, int, int]], int]], list[list[int]]]:
    columns = draw(st.integers(1, 6))
    weight = st.one_of(st.integers(-5 if signed else 0, 5), st.sampled_from([2**62, 2**61, 2**40]))
    if signed:
        weight = st.one_of(weight, st.sampled_from([-(2**62), -(2**61)]))
    cell = st.tuples(st.integers(-2, 24), st.integers(0, columns - 1), weight)
    steps = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    batches = [(draw(st.lists(cell, max_size=8)), sum(steps[: i + 1])) for i in range(len(steps))]
    cuts = [sorted({0, columns, *draw(st.lists(st.integers(0, columns), max_size=3))}) for _ in steps]
    return columns, batches, cuts


@pytest.mark.parametrize("signed", [False, True])
@given(data=st.data())
@settings(deadline=None, max_examples=30, derandomize=True)
def test_any_cells_cuts_and_batches(signed: bool, data: st.DataObject) -> None:
    """Late, early, before the start, beyond the end; huge ones; a new cut in every batch; cells in any order."""
    columns, batches, cuts = data.draw(histories(signed))
    key = et.simulation(1)
    mechanism = whole(Case("tree", et.ZCDP(0.5), 24), columns, key, signed=signed)
    plan = mechanism.plan()
    rows = totals(batches, columns, (plan.low, plan.limit))
    expected = mechanism.run(rows) if len(rows) else rows
    states: list[bytes] = []
    before = 0
    for (came, through), cut in zip(batches, cuts, strict=True):
        made, shuffled = [], data.draw(st.permutations(came))
        for first, stop in pairwise(cut):
            mine = [cell for cell in shuffled if first <= cell[1] < stop]
            batch = tuple(list(x) for x in zip(*mine, strict=True)) if mine else ([], [], [])
            pair = []
            for order in (1, -1):  # the order of cells is no part of the state
                part = LinearSlice(plan, key, first, stop)
                if states:
                    part = LinearSlice.from_bytes(plan, key, first, stop, states)
                out = played(part, tuple(x[::order] for x in batch), through)  # type: ignore[arg-type]
                assert np.array_equal(np.array(out).reshape(-1, stop - first), expected[before:through, first:stop])
                pair.append(part.to_bytes())
            assert pair[0] == pair[1]
            made.append(pair[0])
        states, before = made, through


def test_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many ticks of many columns come in pieces, and the state is that of all of them or none."""
    monkeypatch.setattr(slices, "_PIECE", 12)
    rows, key = np.random.default_rng(3).integers(0, 3, (10, 4)), et.simulation(1)
    mechanism = whole(BANK, 4, key)
    part = LinearSlice(mechanism.plan(), key, 0, 4)
    pieces = part.advance(*cells(rows, 0, 0, 4), 10)
    first, one = next(pieces)
    assert (first, one.shape) == (1, (3, 4))
    for refused in (part.to_bytes, lambda: part.advance([], [], [], 10)):
        with pytest.raises(StateError, match="ask for all of them"):
            refused()
    rest = list(pieces)
    assert [first for first, _ in rest] == [4, 7, 10]
    assert np.array_equal(np.concatenate([one, *(rows for _, rows in rest)]), mechanism.run(rows))
    assert LinearSlice.from_bytes(mechanism.plan(), key, 0, 4, [part.to_bytes()]).tick == 10


def test_idle_ticks_and_ends() -> None:
    key = ZeroNoise()
    part = LinearSlice(whole(Case("tree", et.ZCDP(0.5), 4), 3, key).plan(), key, 0, 3)
    nothing: tuple[Any, Any, Any] = [], [], []
    assert played(part, ([9], [0], [1]), 0) == []  # beyond the end: enters no tick
    assert np.array_equal(played(part, ([2, -7], [1, 2], [5, 1]), 1), [[0, 0, 1]])
    with pytest.raises(ConfigurationError, match="through"):
        part.advance(*nothing, 0)
    with pytest.raises(HorizonExceeded):
        part.advance(*nothing, 5)
    assert np.array_equal(played(part, nothing, 4), [[0, 5, 1]] * 3)
    assert played(part, ([1], [0], [1]), 4) == []  # all is over: late cells enter none
    assert part.to_bytes() == LinearSlice.from_bytes(part.plan, key, 0, 3, [part.to_bytes()]).to_bytes()


def test_a_slice_draws_only_its_own_columns() -> None:
    for case in (TREE, BANK):
        plan, recording = whole(case, 9, et.simulation(1)).plan(), Recording(et.simulation(1))
        part = LinearSlice(plan, recording, 4, 7)
        played(part, ([1], [5], [3]), 6)
        assert recording.draws
        assert all(call.first >= 4 and call.first + call.coordinates <= 7 for call in recording.draws)


@pytest.mark.parametrize(
    "batch",
    [([1], [9], [1]), ([1], [1], [1]), ([1, 2], [5], [1]), ([[1]], [[5]], [[1]]), ([1.5], [5], [1]), (["1"], [5], [1])],
    ids=["beyond", "before", "lengths", "shape", "float", "text"],
)
def test_mistakes_in_cells_are_refused_and_change_nothing(batch: Any) -> None:
    key = et.simulation(1)
    part = LinearSlice(whole(TREE, 9, key).plan(), key, 4, 7)
    before = part.to_bytes()
    with pytest.raises(TypeError):
        part.advance(*batch, 2)
    assert part.to_bytes() == before


def test_states_that_do_not_fit_are_refused() -> None:
    key, other = et.simulation(1), et.simulation(2)
    plan = whole(TREE, 9, key).plan()

    def state(first: int, stop: int, through: int = 2) -> bytes:
        part = LinearSlice(plan, key, first, stop)
        played(part, ([5], [first], [1]), through)
        return part.to_bytes()

    for states in ([], [state(0, 4)], [state(0, 4), state(5, 9)], [state(0, 5), state(4, 9)], [state(1, 9)]):
        with pytest.raises(StateError, match="do not cover"):
            LinearSlice.from_bytes(plan, key, 0, 9, states)
    with pytest.raises(StateError, match="different plans or ticks"):
        LinearSlice.from_bytes(plan, key, 0, 9, [state(0, 4), state(4, 9, through=3)])
    with pytest.raises(StateError, match="another plan or key"):
        LinearSlice.from_bytes(whole(TREE, 9, other).plan(), other, 0, 9, [state(0, 9)])
    good = state(0, 9)
    for wrong in (b"", good[:-1], good + bytes(8), good[:40], b"x" + good[1:], bytes(len(good))):
        with pytest.raises(StateError):
            LinearSlice.from_bytes(plan, key, 0, 9, [wrong])
    assert LinearSlice.from_bytes(plan, key, 3, 5, [state(0, 4), state(4, 9)]).tick == 2


def test_a_version_with_another_law_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same random bits at two scales reveal data."""
    key = et.simulation(1)
    plan = whole(TREE, 3, key).plan()
    part = LinearSlice(plan, key, 0, 3)
    played(part, ([], [], []), 2)
    state = part.to_bytes()
    monkeypatch.setattr("evertally.counting.tree.node_law", lambda *_: et.noise.DiscreteGaussian(7))  # type: ignore[attr-defined]
    with pytest.raises(StateError, match="another law"):
        LinearSlice.from_bytes(plan, key, 0, 3, [state])


def test_the_layout_is_fixed() -> None:
    """Bytes of this version are read by later ones; a change is a new format."""
    key = ZeroNoise()
    part = LinearSlice(whole(Case("tree", et.ZCDP(0.5), 9), 5, key).plan(), key, 1, 3)
    played(part, ([1, 4, 4, 3], [2, 1, 1, 2], [6, 1, 2, 5]), 2)
    numbers = [1, 3, 2, 0, 2, 0, 0, 0, 0, 6, 3, 4, 2, 1, 5, 3]
    assert part.to_bytes() == b"evertally-slice1" + bytes(16) + np.array(numbers, dtype="<i8").tobytes()


def test_nothing_of_a_slice_is_shown() -> None:
    key = et.simulation(1)
    assert repr(LinearSlice(whole(TREE, 3, key).plan(), key, 0, 3)) == "<LinearSlice, not shown>"


@pytest.mark.parametrize("case", [Case("tree", et.ZCDP(0.5)), Case("sqrt", et.ZCDP(0.5))], ids=str)
def test_sums_and_noise_of_a_slice_are_its_last_release(case: Case) -> None:
    key = et.simulation(4)
    part = LinearSlice(whole(case, 5, key).plan(), key, 1, 4)
    for through in (1, 2, 9):
        rows = [
            row
            for _, some in part.advance(ticks=[through], coordinates=[2], weights=[7], through=through)
            for row in some
        ]
        assert np.array_equal(part.sums + part.noise(), rows[-1])
