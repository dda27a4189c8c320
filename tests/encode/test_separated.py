"""Separated participation keeps what its definition says, of each user by that user's own events and the clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.encode import SeparatedCap, UserCap
from evertally.errors import ConfigurationError, ReplayRefused, StateError

users = st.sampled_from(["ann", "bob", 7, "7", None, b"bob", ["ann"]])
ticks = st.lists(st.lists(users, max_size=5), max_size=14)
rules = st.builds(
    lambda ticks, separation, first, events: dict(
        ticks=ticks,
        separation=separation,
        events=events,
        **({} if first is None else {"calendar": True, "first_block": min(first, separation)}),
    ),
    st.none() | st.integers(1, 3),
    st.integers(1, 5),
    st.none() | st.integers(1, 5),
    st.integers(1, 2),
)


def naive(stream: list[list[Any]], rule: dict[str, Any]) -> list[list[bool]]:
    block_of = [0]  # tick 1 is in block 1, and so on
    for block in range(1, len(stream) + 2):
        size = rule.get("first_block", 1) if block == 1 else rule["separation"]
        block_of += [block] * size
    kept_ticks: dict[str, list[int]] = {}
    answer = []
    for tick, row in enumerate(stream, 1):
        here: dict[str, int] = {}
        answer.append([])
        for user in row:
            name = {7: "7", b"bob": "bob"}.get(user, user) if not isinstance(user, list) else None
            earlier = [t for t in kept_ticks.get(name, []) if t < tick] if name is not None else []
            if rule.get("calendar"):
                apart = all(block_of[t] != block_of[tick] for t in earlier)
            else:
                apart = all(tick - t >= rule["separation"] for t in earlier)
            few = rule["ticks"] is None or len(earlier) < rule["ticks"]
            keep = name is not None and apart and few and here.get(name, 0) < rule["events"]
            if keep:
                here[name] = here.get(name, 0) + 1
                kept_ticks[name] = [*earlier, tick]
            answer[-1].append(keep)
    return answer


def run(stream: list[list[Any]], rule: dict[str, Any]) -> list[list[bool]]:
    cap = SeparatedCap(**rule)
    return [cap.keep(row, tick).tolist() for tick, row in enumerate(stream, 1)]


@given(ticks, rules)
def test_keeps_what_the_definition_says(stream: list[list[Any]], rule: dict[str, Any]) -> None:
    assert run(stream, rule) == naive(stream, rule)


@given(ticks, rules, st.integers(0, 14))
def test_replays_and_restarts_change_nothing(stream: list[list[Any]], rule: dict[str, Any], cut: int) -> None:
    cap = SeparatedCap(**rule)
    for tick, row in enumerate(stream, 1):
        kept = cap.keep(row, tick).tolist()
        state = cap.to_bytes()
        if tick == cut:
            cap = SeparatedCap.from_bytes(state)
        assert cap.keep(row, tick).tolist() == kept
        cap.keep(["ann", "bob"], tick)
        assert cap.to_bytes() == state
    assert [cap.keep(["ann"], len(stream) + 1).tolist()] == naive([*stream, ["ann"]], rule)[-1:]
    if stream:
        with pytest.raises(ReplayRefused):
            cap.look([], len(stream))


def test_its_numbers_can_be_read_and_come_back() -> None:
    cap = SeparatedCap(None, 7, calendar=True, first_block=2, events=3)
    again = SeparatedCap.from_bytes(cap.to_bytes())
    for one in (cap, again):
        assert (one.ticks, one.separation, one.calendar, one.first_block, one.events) == (None, 7, True, 2, 3)
    assert SeparatedCap(4, 7).first_block == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"ticks": 0, "separation": 2},
        {"ticks": 1.5, "separation": 2},
        {"ticks": 1, "separation": 0},
        {"ticks": 1, "separation": 2, "events": 0},
        {"ticks": 1, "separation": 2, "first_block": 1},
        {"ticks": 1, "separation": 2, "calendar": True, "first_block": 3},
        {"ticks": 1, "separation": 2, "calendar": 1},
    ],
)
def test_bad_rules_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        SeparatedCap(**wrong)


def test_damaged_or_foreign_state_is_refused() -> None:
    cap = SeparatedCap(2, 3)
    cap.keep(["ann", "bob"], 1)
    blob = cap.to_bytes()
    for damaged in (b"", blob[:-1], blob + b"x", blob[:30], blob[:50], UserCap(1).to_bytes()):
        with pytest.raises(StateError):
            SeparatedCap.from_bytes(damaged)
    with pytest.raises(StateError):
        UserCap.from_bytes(blob)
