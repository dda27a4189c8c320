"""Erased users of distinct counts: names are gone, counts stay, and nobody counts again (users-and-domains 9, 7)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np
import pytest

import evertally as et
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.noise import ZeroNoise
from evertally.users.distinct_rules import FirstPairs, FirstSeen

KEY = ZeroNoise()


def made(**options: Any) -> et.DistinctUsers:
    return et.DistinctUsers(**({"guarantee": et.ZCDP(0.5), "horizon": 20, "key": KEY, "allow_copy": True} | options))


def test_the_count_stays_and_nobody_counts_again() -> None:
    users = made()
    users.step_events(["ann", "bob"])
    users.erase(["ann", "cid"])  # cid was never here
    assert b"ann" not in users.snapshot()
    assert users.step_events(["ann", "bob", "cid", "dora"]).value == 3
    users = et.restore(users.snapshot(), key=KEY, allow_copy=True)
    assert users.step_events(["ann", "cid", "eve"]).value == 4


def test_the_room_of_erased_users_is_used_up() -> None:
    wards = made(by=["x", "y", "z"], max_categories=2)
    wards.step_events(["x", "x"], users=["ann", "bob"])
    wards.erase(["ann", "cid"])
    assert wards.step_events(["y"] * 3, users=["ann", "bob", "cid"]).value == {"x": 2, "y": 1, "z": 0}
    wards = et.restore(wards.snapshot(), key=KEY, allow_copy=True)
    assert wards.step_events(["z"] * 4, users=["ann", "cid", "bob", "dan"]).value == {"x": 2, "y": 1, "z": 1}
    assert b"ann" not in wards.snapshot()


def test_bits_have_no_names_and_full_tables_stay_full() -> None:
    bits, few = made(bits=2**16), made(max_users=2)
    for one in (bits, few):
        one.step_events(["ann"])
        assert (b"ann" in one.snapshot()) == (one is few)
        one.erase(["ann"])
        assert one.step_events(["ann", "bob", "cid"]).value == (3 if one is bits else 2)
        assert b"ann" not in one.snapshot()


def test_pages_of_erased_users() -> None:
    pages = et.UnknownDistinctUsers(max_categories=2, guarantee=et.ApproxDP(50.0, 1e-6), horizon=20, key=KEY)
    pages.step_events(["home"] * 30, users=list(range(30)))
    pages.erase([3, 77])
    pages.step_events(["home", "cart"] * 2, users=[77, 77, 3, 3])
    assert pages._worker().table.counts.tolist() == [30]


def _forgotten(self: FirstSeen, names: Texts) -> None:
    gone, kept = set(names.names()), UserTable(fields=0)
    left = [name for name in self.users.names(np.arange(len(self.users))).names() if name not in gone]
    kept.enter(Texts.of_bytes(left))
    self.users = kept


def _with_room(self: FirstPairs, names: Texts) -> None:
    users = self.users.erase(names)
    for field in range(self._most):
        self.users.write(field, users, np.zeros(len(users), dtype=np.int64))


@pytest.mark.parametrize("bug", [False, True], ids=["the product", "erased users are forgotten"])
def test_planted_bug_24(bug: bool) -> None:
    """An erased user who counts again moves the count at two ticks: 3.57 times what is paid at T = 365."""
    planted = mock.patch.object(FirstSeen, "erase", _forgotten) if bug else nullcontext()
    counted = mock.patch.object(FirstPairs, "erase", _with_room) if bug else nullcontext()
    with planted, counted:
        users, wards = made(), made(by=["x"])
        values = [users.step_events(["ann"]).value, wards.step_events(["x"], users=["ann"]).value["x"]]
        users.erase(["ann"])
        wards.erase(["ann"])
        again = [users.step_events(["ann"]).value, wards.step_events(["x"], users=["ann"]).value["x"]]
    assert values == [1, 1]
    assert again == ([2, 2] if bug else [1, 1])


def test_a_table_that_is_more_than_full_takes_nobody() -> None:
    """Erased names that were never here take room too, and may be more than there is: nobody comes in then."""
    few = made(max_users=2)
    assert few.step_events(["ann", "bob"]).value == 2
    few.erase([f"never {i}" for i in range(5)])
    assert few.step_events([f"new {i}" for i in range(100)]).value == 2
    assert few.step_events([f"newer {i}" for i in range(100)]).value == 2
