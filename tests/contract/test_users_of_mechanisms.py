"""Privacy of users: the cap at the door, what a whole user can move, and calls that must leave no trace in the cap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.errors import HorizonExceeded, ReplayRefused
from evertally.noise import ZeroNoise

PURE = et.PureDP(1.0)


def counter(cap: int = 2, **options: Any) -> et.Counter:
    common: dict[str, Any] = {"guarantee": PURE, "horizon": 10, "key": ZeroNoise()}
    return et.Counter(unit="user", max_events_per_user=cap, **(common | options))


def histogram(cap: int = 2, **options: Any) -> et.Histogram:
    common: dict[str, Any] = {"guarantee": PURE, "horizon": 10, "key": ZeroNoise(), "categories": ["a", "b", "c"]}
    return et.Histogram(unit="user", max_events_per_user=cap, **(common | options))


def test_the_cap_holds_for_the_whole_life_of_the_stream() -> None:
    c = counter(cap=2)
    assert c.step_events([1, 1, 1], users=["ann", "ann", "ann"]).value == 2
    assert c.step_events([1, 1], users=["ann", "bob"]).value == 3
    c = et.restore(c.snapshot(), key=ZeroNoise())
    assert c.step_events([1, 1, 1], users=["ann", "bob", "bob"]).value == 4
    assert c.step_events([1], users=[None]).value == 4


USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 2, "guarantee": PURE, "horizon": 10}
CONCENTRATED = USER | {"guarantee": et.ZCDP(0.5)}
PROTECTING = {
    "counter": lambda key: et.Counter(key=key, **USER),
    "vector": lambda key: et.VectorCounter(3, key=key, **USER),
    "histogram": lambda key: et.Histogram(categories=["a", "b", "c"], key=key, **USER),
    "square root": lambda key: et.Counter(mechanism="sqrt", key=key, **CONCENTRATED),
    "honaker": lambda key: et.Counter(mechanism="honaker", key=key, **USER),
    "mean": lambda key: et.RunningMean(lower=0, upper=1, key=key, **USER),
    "maximum": lambda key: et.MaxSum(columns=3, largest=9, key=key, **USER),
    "sparse counter": lambda key: et.Counter(mechanism="sparse", largest=9, key=key, **USER),
    "selection": lambda key: et.SumSelect(columns=["a", "b", "c"], largest=9, key=key, **USER),
}


@pytest.mark.parametrize("name", PROTECTING)
def test_totals_are_refused_where_users_are_protected(name: str) -> None:
    """A total does not say whose it is: no cap could be kept, and the promise would be about nobody."""
    m = PROTECTING[name](et.simulation(1))
    before = m.snapshot()
    for x in (100, [100, 0, 0], [1.0], 0, [0, 0, 0], "nonsense"):
        with pytest.raises(TypeError, match="step_events"):
            m.step(x)
        with pytest.raises(TypeError, match="step_events"):
            m.step(x, tick=1)
        with pytest.raises(TypeError, match="step_events"):
            m.run([x])
    assert m.snapshot() == before
    assert m.step_events([], users=[]).tick == 1


def test_a_release_says_what_its_interval_is_about() -> None:
    c = counter(cap=3, max_window=2)
    assert c.step_events([1], users=["ann"]).about == "what the cap kept: at most 3 events of each user"
    assert c.last(1).about == "what the cap kept: at most 3 events of each user"
    plain = et.Counter(guarantee=PURE, horizon=10, key=ZeroNoise())
    assert plain.step(1).about == "all events, within their bounds"
    assert "what the cap kept" in repr(c.step_events([], users=[]))


Stream = st.lists(
    st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from(["a", "b", "c", "zebra", None])), max_size=6),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(Stream, st.integers(1, 3), st.sampled_from("pqr"))
def test_one_user_more_or_less_moves_at_most_the_cap(stream: Any, cap: int, who: str) -> None:
    """Without noise the sums are seen as they are: in rows, ADD_REMOVE of a user is at most `cap` events."""

    def rows(ticks: Any) -> np.ndarray:
        h = histogram(cap)
        sums = [list(h.step_events([e for _, e in tick], users=[u for u, _ in tick]).value.values()) for tick in ticks]
        return np.diff(np.array([[0, 0, 0], *sums]), axis=0)

    without = [[pair for pair in tick if pair[0] != who] for tick in stream]
    difference = rows(stream) - rows(without)
    assert np.all(difference >= 0)
    assert difference.sum() <= cap
    # replaced: the user's events in other ticks and with other labels
    elsewhere = [tick + [(who, "a")] * 2 for tick in without]
    assert np.abs(rows(stream) - rows(elsewhere)).sum() <= 2 * cap


def test_numpy_arrow_and_lists_agree() -> None:
    users = ["ann", "bob", "ann", "ann", None]
    events = [1, 2, 3, 4, 5]
    values = set()
    for make_users in (list, tuple, lambda u: np.array(u, dtype=object), pa.array):
        for make_events in (list, tuple, np.array, pa.array, lambda e: pa.chunked_array([e[:2], e[2:]])):
            values.add(counter(max_weight=9).step_events(make_events(events), users=make_users(users)).value)
    assert values == {1 + 2 + 3}


@pytest.mark.parametrize(
    ("events", "users", "error"),
    [
        ([1, 1], ["ann"], TypeError),
        ([1], ["ann", "bob"], TypeError),
        ("ab", ["ann", "bob"], TypeError),
        ({"a": 1}, ["ann"], TypeError),
        (5, ["ann"], TypeError),
        (None, ["ann"], TypeError),
        (np.zeros((1, 1)), ["ann"], TypeError),
        ((e for e in [1]), ["ann"], TypeError),
        ([1], "a", TypeError),
        ([1], {"ann": 1}, TypeError),
        ([1], 5, TypeError),
        ([1], None, TypeError),
    ],
)
def test_a_refused_call_leaves_no_trace_in_the_cap(events: Any, users: Any, error: type[Exception]) -> None:
    """If it did, the corrected call would pass for a replay, and its users' events would not be counted: more than
    `cap` of them could be kept."""
    c = counter(cap=1, key=et.simulation(1))
    before = c.snapshot()
    with pytest.raises(error):
        c.step_events(events, users=users)
    assert c.snapshot() == before
    c = counter(cap=1)
    with pytest.raises(error):
        c.step_events(events, users=users)
    assert c.step_events([1, 1], users=["ann", "bob"]).value == 2
    assert c.step_events([1, 1], users=["ann", "bob"]).value == 2, "the cap of 1 is used up"


def test_refused_ticks_leave_no_trace_in_the_cap() -> None:
    c = counter(cap=1, horizon=2)
    for tick in (0, 2, 3, -1):
        with pytest.raises(ReplayRefused):
            c.step_events([1], users=["ann"], tick=tick)
    assert c.step_events([1], users=["bob"]).value == 1
    c.step_events([], users=[])
    with pytest.raises(HorizonExceeded):
        c.step_events([1], users=["ann"])
    assert c._users is not None
    assert b"ann" not in c._users.to_bytes()


def test_a_replayed_tick_counts_its_users_once() -> None:
    c = counter(cap=2)
    first = c.step_events([1, 1, 1], users=["ann", "ann", "bob"], tick=1)
    for _ in range(3):
        assert c.step_events([1, 1, 1], users=["ann", "ann", "bob"], tick=1) == first
    with pytest.raises(ReplayRefused):
        c.step_events([1], users=["carl"], tick=1)
    assert c.step_events([1, 1], users=["ann", "bob"]).value == 4
    assert c.step_events([1, 1], users=["bob", "carl"]).value == 5


def test_users_go_with_the_unit() -> None:
    with pytest.raises(TypeError, match="users"):
        counter().step_events([1])
    plain = et.Counter(guarantee=PURE, horizon=5, key=ZeroNoise())
    with pytest.raises(TypeError, match="users"):
        plain.step_events([1], users=["ann"])
    assert plain.tick == 0


def test_scales_grow_with_the_group() -> None:
    """Charges are those of the guarantee itself; the noise is that of w events, 2w where users are replaced."""
    one = et.Counter(guarantee=PURE, horizon=10, mechanism="tree", key=ZeroNoise())
    for cap in (1, 2, 7):
        for neighbours, times in (("add_remove", cap), ("replace", 2 * cap)):
            many = counter(cap=cap, neighbours=neighbours, mechanism="tree")
            assert many.charge == PURE
            assert many.noise.law.scale == pytest.approx(float(one.noise.law.scale * times))
