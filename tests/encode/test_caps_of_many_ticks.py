"""Several ticks at once: a cap decides, remembers and writes down what it would tick after tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evertally.encode import UserCap
from evertally.encode.caps import Cap
from evertally.encode.separated import SeparatedCap
from evertally.encode.texts import Texts
from evertally.errors import ReplayRefused, StateError

CAPS: list[Callable[[], Cap]] = [
    lambda: UserCap(3),
    lambda: SeparatedCap(2, 3, events=2),
    lambda: SeparatedCap(None, 4, calendar=True),
]


def column(rng: np.random.Generator, events: int, form: str) -> pa.Array:
    users = [None if rng.random() < 0.1 else int(user) for user in rng.integers(0, 90, events)]
    if form == "texts":
        return pa.array([None if user is None else f"ünser {user}" for user in users])
    numbers = pa.array(users, pa.int64())
    return numbers if form == "numbers" else numbers.dictionary_encode()


def edges(ticks: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    ends = np.cumsum([0, *sizes]).tolist()
    return list(zip(ticks, ends[:-1], ends[1:], strict=True))


@pytest.mark.parametrize("form", ["numbers", "by value", "texts"])
@pytest.mark.parametrize("made", CAPS)
@pytest.mark.parametrize("most", [12, 400])  # events of a tick: read one by one, and in one piece
def test_the_same_as_tick_after_tick(made: Callable[[], Cap], form: str, most: int) -> None:
    rng = np.random.default_rng(most)
    at_once, in_turn, tick, seen = made(), made(), 0, list[bool]()
    for _ in range(4):
        count = int(rng.integers(1, 6))
        sizes = rng.integers(0, most, count).tolist()
        users, where = column(rng, sum(sizes), form), edges(range(tick + 1, tick + 1 + count), sizes)
        tick += count
        kept = [in_turn.keep(users[start:stop], at) for at, start, stop in where]
        seen += np.concatenate(kept).tolist()
        assert at_once.keep_ticks(users, where).tolist() == np.concatenate(kept).tolist()
        assert at_once.to_bytes() == in_turn.to_bytes()
        if rng.random() < 0.5:
            at_once = at_once.from_bytes(at_once.to_bytes())
        # The last tick may be asked again, and answers as it did.
        last, start, stop = where[-1]
        assert at_once.keep(users[start:stop], last).tolist() == kept[-1].tolist()
    assert set(seen) == {False, True}


def test_the_last_tick_again_and_erased_users_are_left_to_one_tick_after_the_other() -> None:
    users = pa.array(["ann", "bob", "ann", "ann", "cid"])
    for erase in (False, True):
        at_once, in_turn = UserCap(1), UserCap(1)
        for cap in (at_once, in_turn):
            cap.keep(users, 1)
            if erase:
                cap.recognise(lambda name: name[::-1])
                cap.erase(Texts.of(["ann"]))
        where = edges([2, 3] if erase else [1, 2], [3, 2])
        kept = [in_turn.keep(users[start:stop], tick) for tick, start, stop in where]
        assert at_once.keep_ticks(users, where).tolist() == np.concatenate(kept).tolist()
        assert at_once.to_bytes() == in_turn.to_bytes()


@pytest.mark.parametrize("place", ["enter", "write", "begin", "find"])
@pytest.mark.parametrize("erased", [False, True])
def test_after_an_interrupted_call_the_cap_refuses(place: str, erased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cap, users = UserCap(2), pa.array(["ann", "bob", "ann", "dan"])
    cap.keep(users[:2], 1)
    if erased:
        cap.recognise(lambda name: name[::-1])
        cap.erase(Texts.of(["ann"]))
    kept = cap.to_bytes()

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cap._table, place, stopped)
        with pytest.raises(KeyboardInterrupt):
            cap.keep_ticks(users, edges([2, 3], [1, 3]))
    if not erased:  # tick after tick, each is counted whole or not at all
        for asked in (lambda: cap.keep(users, 9), cap.to_bytes, lambda: cap.keep_ticks(users, edges([2, 3], [1, 3]))):
            with pytest.raises(StateError, match="interrupted"):
                asked()
    again = UserCap.from_bytes(kept)
    if not erased:
        assert again.keep_ticks(users, edges([2, 3], [1, 3])).tolist() == [True, True, False, True]


@pytest.mark.parametrize("ticks", [[2, 2], [3, 3, 4], [2, 5, 5]])
def test_a_tick_that_comes_twice_in_one_call_is_asked_twice(ticks: list[int]) -> None:
    users = pa.array(["ann", "bob", "ann"] * 2)[: 2 * len(ticks)]
    at_once, in_turn = UserCap(2), UserCap(2)
    where = edges(ticks, [2] * len(ticks))
    kept = [in_turn.keep(users[start:stop], tick) for tick, start, stop in where]
    assert at_once.keep_ticks(users, where).tolist() == np.concatenate(kept).tolist()
    assert at_once.to_bytes() == in_turn.to_bytes()
    with pytest.raises(ReplayRefused):
        at_once.keep_ticks(users, edges([9, 8], [2, 2]))


def test_no_events_and_no_ticks() -> None:
    cap = UserCap(2)
    assert cap.keep_ticks(pa.array([], pa.int64()), []).tolist() == []
    assert cap.keep_ticks(pa.array([], pa.int64()), edges([1, 2], [0, 0])).tolist() == []
    assert cap.last.tick == 2
