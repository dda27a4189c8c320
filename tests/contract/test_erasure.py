"""Erased users: their names are nowhere, their later events count nowhere, and nothing that was released changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.applications.encoder import EncodedEngine
from evertally.checks.interruptions import interrupted, lines_of
from evertally.contract.forms import NumberForm
from evertally.contract.options import option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.encode import SeparatedCap, UserCap
from evertally.encode.owned import OwnedTick
from evertally.encode.texts import Texts
from evertally.encode.user_table import Digest, UserTable
from evertally.noise import ZeroNoise
from evertally.privacy import Change
from evertally.secret import Secret
from evertally.statistics.linear_options import Linear


class Distinct(Secret):
    """Running distinct users (users-and-domains 2.1)."""

    def __init__(self) -> None:
        self.table = UserTable(0)

    def begin(self, tick: int) -> None:
        self.table.begin()

    def undo(self, tick: int) -> None:
        self.table.undo()

    def admit(self, arrivals: OwnedTick) -> Any:
        known = len(self.table)
        self.table.enter(arrivals.names)
        return np.array([len(self.table) - known])

    def save(self) -> bytes:
        return self.table.save()

    def load(self, tick: int, data: bytes) -> None:
        self.table.load(data)


class Erasable(Distinct):
    def recognise(self, digest: Digest) -> None:
        self.table.recognise(digest)

    def erase(self, names: Texts) -> None:
        self.table.erase(names)


@statistic
class ErasedDistinct(Linear):
    """Users, each of whom counts once. For tests."""

    unit: str = option("What is protected.", default="user")  # type: ignore[assignment]
    erasable: bool = option("Whether its rule can erase.", default=True)

    @classmethod
    def user_rule(cls, options: Any) -> str:
        return "everybody counts once"

    def _blueprint(self) -> Any:
        contribution = self._contributing(user_rule=self.user_rule({}))
        made = self._linear(
            "D", 1, Change(1, 1, 1), contribution, self._given("unit"), lambda *_: OwnedDoor(), NumberForm(1)
        )
        rule = Erasable if self.erasable else Distinct
        return replace(made, owned=True, engine=lambda source: EncodedEngine(rule(), made.engine(source)))


def counter(key: Any = None, **options: Any) -> et.Counter:
    most: dict[str, Any] = {"unit": "user", "max_events_per_user": 3} | options
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=key or ZeroNoise(), **most)


def distinct(key: Any = None, **options: Any) -> ErasedDistinct:
    return ErasedDistinct(guarantee=et.ZCDP(0.5), horizon=20, key=key or ZeroNoise(), **options)


def names_in(mechanism: Any) -> list[bytes]:
    snapshot = mechanism.snapshot()
    return [name for name in (b"ann", b"bob", b"cid") if name in snapshot]


def test_an_erased_user_is_used_up_in_a_cap() -> None:
    c = counter()
    c.step_events([1, 1, 1], users=["ann", "bob", "ann"])
    c.step_events([1, 1], users=["bob", "ann"])
    assert names_in(c) == [b"ann", b"bob"]
    c.erase(["ann", "cid"])
    assert names_in(c) == [b"bob"]
    assert c.step_events([1, 1, 1], users=["ann", "bob", "cid"]).value == 6, "bob alone is new"
    again = et.restore(c.snapshot(), key=ZeroNoise())
    assert again.step_events([1] * 4, users=["ann", "bob", "cid", "dora"]).value == 7
    assert names_in(again) == [b"bob"]


def test_an_erased_user_is_never_counted_again_by_a_rule() -> None:
    d = distinct()
    assert d.step_events(["ann", "bob"]).value == 2
    d.erase(["ann", "cid"])
    assert d.step_events(["ann", "bob", "cid", "dora"]).value == 3
    assert names_in(d) == [b"bob"]
    again = et.restore(d.snapshot(), key=ZeroNoise())
    assert again.step_events(["ann", "cid", "eve"]).value == 4


def test_releases_and_replays_are_what_they_were() -> None:
    key = et.simulation(3)
    for made in (counter, distinct):
        erased, other = made(key, name="one"), made(key, name="one", allow_copy=True)
        events, users = [1, 1, 1], ["ann", "bob", "ann"]
        first = erased.step_events(events, users=users)
        assert other.step_events(events, users=users) == first
        erased.erase(["ann"])
        assert erased.step_events(events, users=users, tick=1) == first, "the same tick again"
        with pytest.raises(et.ReplayRefused):
            erased.step_events([1], users=["bob"], tick=1)
        assert erased.step_events([1], users=["bob"]) == other.step_events([1], users=["bob"]), "the same noise"


def test_what_cannot_be_erased_is_refused() -> None:
    with pytest.raises(et.ConfigurationError, match="knows no users"):
        et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=ZeroNoise()).erase(["ann"])
    with pytest.raises(et.ConfigurationError, match="nobody said how to erase"):
        distinct(erasable=False).erase(["ann"])
    with pytest.raises(TypeError):
        counter().erase("ann")
    counter().erase([None, ["ann"]])


@pytest.mark.parametrize("make", [counter, distinct])
def test_an_erasure_that_is_interrupted_at_any_line_can_be_done_again(make: Any) -> None:
    def begun() -> Any:
        mechanism = make()
        mechanism.step_events([1, 1], users=["ann", "bob"])
        mechanism.step_events([1, 1], users=["ann", "cid"])
        return mechanism

    done = begun()
    done.erase(["ann", "dora"])
    expected = done.step_events([1, 1, 1], users=["ann", "bob", "dora"]), done.snapshot()
    fresh = begun()
    for line in lines_of(lambda: fresh.erase(["ann", "dora"]))[1]:
        mechanism = begun()
        assert interrupted(lambda: mechanism.erase(["ann", "dora"]), line)  # noqa: B023
        replayed = mechanism.step_events([1, 1], users=["ann", "cid"], tick=2)
        assert replayed.tick == 2
        mechanism.erase(["ann", "dora"])
        assert names_in(mechanism) == [b"bob", b"cid"]
        assert (mechanism.step_events([1, 1, 1], users=["ann", "bob", "dora"]), mechanism.snapshot()) == expected


@pytest.mark.parametrize("cap", [UserCap(5), SeparatedCap(None, 1)])
def test_caps_recognise_erased_users_after_a_restart(cap: Any) -> None:
    digest: Digest = lambda name: bytes(16) + name[::-1]  # noqa: E731
    cap.recognise(digest)
    cap.keep(["ann", "bob"], 1)
    cap.erase(Texts.of(["ann"]))
    assert cap.keep(["ann", "bob", "ann"], 1).tolist() == [True, True, isinstance(cap, UserCap)], "the same tick again"
    again = type(cap).from_bytes(cap.to_bytes())
    again.recognise(digest)
    for one in (cap, again):
        assert one.keep(["ann", "bob", "cid"], 2).tolist() == [False, True, True]
        assert one.keep(["ann", "bob", "cid"], 2).tolist() == [False, True, True]
        assert one.keep(["ann", "bob"], 3).tolist() == [False, True]
        assert b"ann" not in one.to_bytes()
