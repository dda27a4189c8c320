"""The user cap decides about a user's events by that user's own events alone, and survives a snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.encode import UserCap
from evertally.errors import ConfigurationError, ReplayRefused, StateError

users = st.sampled_from(["ann", "bob", "é", "e\u0301", 7, "7", None, 2.5, b"bob"])
ticks = st.lists(st.lists(users, max_size=8), max_size=6)


def naive(stream: list[list[Any]], w: int) -> list[list[bool]]:
    spelled = {"e\u0301": "é", 7: "7", b"bob": "bob"}
    used: dict[str, int] = {}
    kept = []
    for tick in stream:
        row = []
        for user in tick:
            name = spelled.get(user, user)
            keep = isinstance(name, str) and used.get(name, 0) < w
            if keep:
                used[name] = used.get(name, 0) + 1
            row.append(keep)
        kept.append(row)
    return kept


def run(stream: list[list[Any]], w: int) -> list[list[bool]]:
    cap = UserCap(w)
    return [cap.keep(tick, t).tolist() for t, tick in enumerate(stream, 1)]


@given(ticks, st.integers(1, 4))
def test_keeps_the_first_w_events_of_each_user(stream: list[list[Any]], w: int) -> None:
    assert run(stream, w) == naive(stream, w)


@given(ticks, st.integers(1, 3))
def test_removing_a_user_changes_nobody_else(stream: list[list[Any]], w: int) -> None:
    kept = run(stream, w)
    without = [[user for user in tick if user != "ann"] for tick in stream]
    others = [
        [k for k, user in zip(row, tick, strict=True) if user != "ann"] for row, tick in zip(kept, stream, strict=True)
    ]
    assert run(without, w) == others


@given(ticks, st.integers(1, 3), st.integers(0, 6))
def test_snapshot_in_the_middle_continues_alike(stream: list[list[Any]], w: int, cut: int) -> None:
    cap = UserCap(w)
    for t, tick in enumerate(stream[:cut], 1):
        cap.keep(tick, t)
    again = UserCap.from_bytes(cap.to_bytes())
    assert again.to_bytes() == cap.to_bytes()
    for t, tick in enumerate(stream[cut:], cut + 1):
        assert again.keep(tick, t).tolist() == cap.keep(tick, t).tolist()


@given(ticks, st.integers(1, 3))
def test_a_replayed_tick_answers_the_same_and_changes_nothing(stream: list[list[Any]], w: int) -> None:
    cap = UserCap(w)
    for t, tick in enumerate(stream, 1):
        first = cap.keep(tick, t).tolist()
        state = cap.to_bytes()
        assert cap.keep(tick, t).tolist() == first
        assert UserCap.from_bytes(state).keep(tick, t).tolist() == first
        cap.keep(["ann"] * 9, t)
        assert cap.to_bytes() == state
    if len(stream) > 1:
        with pytest.raises(ReplayRefused):
            cap.keep([], 1)


def test_columns_of_every_kind() -> None:
    names = ["ann", "bob", "ann", None, "ann"]
    arrow = pa.array(names)
    for column in (
        names,
        tuple(names),
        arrow,
        arrow.dictionary_encode(),
        np.array(names, object),
        pa.chunked_array([arrow]),
    ):
        assert UserCap(2).keep(column, 1).tolist() == [True, True, True, False, False]
    assert UserCap(1).keep(np.array([3, 3, 4]), 1).tolist() == [True, False, True]
    assert UserCap(1).keep([], 1).tolist() == []


@pytest.mark.parametrize(
    "shared",
    [
        pa.array([["ann", "bob"]]),
        pa.array([{"a": 1}]),
        "ann",
        None,
        {"a": 1},
    ],
)
def test_a_column_of_several_users_for_each_event_is_a_call_mistake_and_changes_nothing(shared: Any) -> None:
    cap = UserCap(1)
    with pytest.raises(TypeError):
        cap.keep(shared, 1)
    assert cap.to_bytes() == UserCap(1).to_bytes()


@pytest.mark.parametrize("owners", [("ann", "bob"), ["bob"], {"bob"}, {"bob": 1}, np.array(["bob"]), object()])
def test_a_record_with_several_owners_is_not_kept_and_does_not_raise(owners: Any) -> None:
    cap = UserCap(2)
    assert cap.keep(["ann", owners, "bob"], 1).tolist() == [True, False, True]
    other = UserCap(2)
    other.keep(["ann", None, "bob"], 1)
    assert cap.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, 2**31])
def test_bad_caps_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        UserCap(wrong)


def test_damaged_state_is_refused() -> None:
    cap = UserCap(2)
    cap.keep(["ann", "bob"], 1)
    blob = cap.to_bytes()
    for damaged in (b"", b"other", blob[:-1], blob + b"x", blob[:30]):
        with pytest.raises(StateError):
            UserCap.from_bytes(damaged)


def earlier(max_events: int, tick: int, used: dict[str, int], before: dict[str, int]) -> bytes:
    """The state of a cap as the version wrote it that kept its users in dictionaries."""
    parts = [b"evertally-users-1\n", max_events.to_bytes(4, "big"), tick.to_bytes(8, "big")]
    for table in (used, before):
        parts.append(len(table).to_bytes(8, "big"))
        for name in sorted(table):
            raw = name.encode("utf-8", "surrogatepass")
            parts += [len(raw).to_bytes(4, "big"), raw, table[name].to_bytes(4, "big")]
    return b"".join(parts)


def test_the_state_of_an_earlier_version_goes_on() -> None:
    blob = earlier(2, 7, {"ann": 2, "bob": 1, "\ud83d": 1}, {"ann": 1, "\ud83d": 0})
    for cap in (UserCap.from_bytes(blob), UserCap.from_bytes(UserCap.from_bytes(blob).to_bytes())):
        assert (cap.max_events, cap.last.tick) == (2, 7)
        assert cap.keep(["ann", "ann", "\ud83d", "bob"], 7).tolist() == [True, False, True, True], "the same tick again"
        assert cap.keep(["ann", "bob", "bob", "\ud83d", "new"], 8).tolist() == [False, True, False, True, True]
    nobody = UserCap.from_bytes(earlier(3, 0, {}, {}))
    assert nobody.to_bytes() == UserCap(3).to_bytes()
    unknown = earlier(2, 7, {"bob": 1}, {"ann": 1})
    for damaged in (blob[:-1], blob + b"x", blob[:40], unknown):
        with pytest.raises(StateError):
            UserCap.from_bytes(damaged)


@pytest.mark.parametrize(
    ("place", "number"),
    [
        (2, -1),  # a tick before the first
        (4, 2),  # a user who is not in the table
        (4, -1),
        (4, 1),  # the same user twice: one of the two would be given back what the other has used
    ],
)
def test_a_last_tick_that_cannot_have_been_is_refused(place: int, number: int) -> None:
    cap = UserCap(2)
    cap.keep(["ann", "bob"], 1)
    blob, start = cap.to_bytes(), len(UserCap.format)
    numbers = np.frombuffer(blob[start : start + 8 * 8], dtype="<i8").copy()
    assert numbers.tolist()[:6] == [1, 2, 1, 2, 0, 1], "one option, 2 events each; tick 1, two users, who are 0 and 1"
    numbers[place] = number
    with pytest.raises(StateError, match="does not know"):
        UserCap.from_bytes(blob[:start] + numbers.tobytes() + blob[start + 8 * 8 :])
