"""The noise of a slice is that of the whole in the same columns, for every process."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slice_cases import CASES, Case

import evertally as et
from evertally.counting.choose import build, choose
from evertally.counting.processes import PROCESSES, ProcessRecord, Setting
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace, SliceSource, simulation
from evertally.noise.reals import RealLaw
from evertally.privacy import Change, Participation

RULE = Participation(Change(1, 1, 1), ticks=5, separation=7)


def setting(case: Case, columns: int, memory_limit: int = 2**30) -> Setting:
    rule = RULE if case.apart else None
    change = Change(1, 1, 1) if rule is None else rule.group(case.horizon)
    return Setting(change, case.horizon, columns, memory_limit, rule=rule, band=7 if case.apart else None)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_noise_of_slices(case: Case) -> None:
    whole = setting(case, 11)
    choice = choose(case.guarantee, whole, case.mechanism)
    expected = build(choice, whole, simulation(1).source("s")).advance(60)
    for first, stop in ((0, 1), (1, 4), (4, 11)):
        part = build(choice, whole, SliceSource(simulation(1).source("s"), first), stop - first)
        assert part.columns == stop - first
        part.seek(31)
        assert np.array_equal(part.advance(29), expected[31:, first:stop])


@pytest.mark.parametrize("mechanism", ["tree", "epoch-tree"])
def test_the_limit_of_memory_decides_about_no_number(mechanism: str) -> None:
    """The whole is too large to keep its noise, a slice is not; both draw the same."""
    case = Case(mechanism, et.ZCDP(0.5), 90 if mechanism == "tree" else None)
    whole = setting(case, 40, memory_limit=400)
    choice = choose(case.guarantee, whole, mechanism)
    expected = build(choice, whole, simulation(1).source("s")).advance(60)
    part = build(choice, whole, SliceSource(simulation(1).source("s"), 3), 2)
    assert np.array_equal(part.advance(60), expected[:, 3:5])


@given(st.integers(0, 2**32 - 9), st.integers(0, 3), st.integers(1, 4))
@settings(deadline=None, max_examples=30, derandomize=True)
def test_a_source_seen_from_a_coordinate(first: int, inside: int, count: int) -> None:
    source, law = simulation(2).source("s"), DiscreteLaplace(10)
    seen = SliceSource(source, first)
    assert np.array_equal(
        seen.draws("tree", law, [3, 70000], count, inside), source.draws("tree", law, [3, 70000], count, first + inside)
    )
    real = RealLaw("normal", "s")
    theirs = source.reals("bank", real, range(1, 3), count, first + inside).value
    assert np.array_equal(seen.reals("bank", real, range(1, 3), count, inside).value, theirs)
    assert seen.order(b"x") == source.order(b"x")


def test_no_address_wraps_around() -> None:
    seen, law = SliceSource(simulation(2).source("s"), 2**32 - 2), DiscreteLaplace(10)
    assert seen.draws("tree", law, [1], 2).shape == (1, 2)
    with pytest.raises(ValueError, match="wrap around"):
        seen.draws("tree", law, [1], 3)
    with pytest.raises(ConfigurationError, match="coordinate 0 or later"):
        SliceSource(simulation(2).source("s"), -1)


def test_a_process_of_somebody_else_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = PROCESSES["tree"]
    theirs = ProcessRecord(True, True, tree.memory, tree.build, proof="elsewhere")
    monkeypatch.setitem(PROCESSES, "theirs", theirs)
    whole = setting(Case("theirs", et.PureDP(1.0)), 4)
    choice = choose(et.PureDP(1.0), whole, "theirs")
    assert build(choice, whole, simulation(1).source("s")).columns == 4
    with pytest.raises(ConfigurationError, match="not ours"):
        build(choice, whole, simulation(1).source("s"), 2)
