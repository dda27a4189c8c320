"""Bugs in what is committed when, by whom, and under which identity: interruptions, threads, copies, upgrades."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally import oneshot
from evertally.contract import guarded, in_place, mechanism, paths
from evertally.contract.parts import Played
from evertally.contract.rows import Rows, dense
from evertally.counting.linear import LinearEngine
from evertally.counting.process import IntArray
from evertally.encode import UserCap, UserTick, bags, door
from evertally.noise import keystream

_INTERRUPTED = "interrupted and concurrent calls"
_USERS = "users after an interrupted call"
_COPIES = "the same names with other data"


@plant(_INTERRUPTED)
def sums_before_noise() -> Bug:
    """sums are written before the noise is drawn (decision 24: draw first, commit last)"""

    def play(self: LinearEngine, batch: Rows, state: IntArray) -> Played:
        rows = dense(batch)
        state += rows.sum(axis=0)
        values = state - np.cumsum(rows[::-1], axis=0)[::-1] + rows
        values += self.noise.advance(len(values))
        return Played(values, None, state)

    # A single number cannot be written to; with arrays alone there is something to do wrong.
    return all_of(replaced(LinearEngine, play=play), replaced(mechanism, plays_numbers=lambda engine: False))


@plant(_INTERRUPTED)
def engine_not_taken_back() -> Bug:
    """an engine that was interrupted is used as it is (decision 24: as it was, or poisoned)"""
    return replaced(guarded.Guarded, _settle=lambda self: None)


@plant(_INTERRUPTED)
def worker_not_taken_back() -> Bug:
    """a worker goes back to where it stopped (decision 24: as it was, or poisoned)"""
    return replaced(in_place.InPlace, go_back=lambda self, tick, state: None)


@plant(_USERS)
def cap_counts_at_once() -> Bug:
    """a user cap counts before the release (decision 24: a call that fails leaves a mechanism as it was)"""
    original = UserCap.look

    def look(self: UserCap, users: Any, tick: int) -> tuple[NDArray[np.bool_], UserTick]:
        kept, counted = original(self, users, tick)
        self._table.write(0, self._table.enter(counted.names), counted.after[:, 0])
        self._table.begin()
        return kept, counted

    return replaced(UserCap, look=look)


@plant(_INTERRUPTED)
def no_lock() -> Bug:
    """two calls may be inside at once (decision 24: threads)"""

    class Open(dict[str, object]):
        def setdefault(self, key: str, default: Any = None) -> Any:
            self[key] = default
            return default

        def __delitem__(self, key: str) -> None:
            self.pop(key, None)

    original = guarded.Guarded.__init__

    def init(self: Any) -> None:
        original(self)
        self._turn = Open()

    return replaced(guarded.Guarded, __init__=init)


@plant(_COPIES)
def second_mechanism() -> Bug:
    """a second mechanism on a path of noise (decision 25: one live mechanism per path and process)"""
    return replaced(paths.Hold, begin=lambda self: None)


@plant(_COPIES)
def older_snapshot() -> Bug:
    """an older snapshot resumed beside newer releases (decision 25: one live mechanism per path)"""
    return replaced(paths.Hold, resume=lambda self, tick: None)


@plant(_COPIES)
def goes_on() -> Bug:
    """a mechanism goes on after its stream was taken over (decision 25: one live mechanism per path)"""
    return replaced(paths.Hold, check=lambda self: None, _refuse=lambda self: None)


def _twin_engine(mechanism: Any) -> Any:
    return type(mechanism)(**mechanism._options, key=mechanism.key, allow_copy=True)._engine


@plant(_COPIES)
def copied() -> Bug:
    """mechanisms can be copied (decision 25: a second one only by allow_copy)"""

    def shallow(self: Any) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _engine=_twin_engine(self), _hold=None)
        twin._engine.go_back(self.tick, self._kept.played.state)
        return twin

    return replaced(guarded.Guarded, __copy__=shallow, __deepcopy__=lambda self, memo: shallow(self))


@plant(_COPIES)
def one_shot_twice() -> Bug:
    """one name for two histograms (decision 25: identity is bound)"""
    return replaced(oneshot, once=lambda *seen: None, named=lambda name, key, default: name or default)


@plant("one more option after an upgrade")
def path_not_bound() -> Bug:
    """a snapshot does not say from where its noise was drawn (decision 25: a keyed fingerprint of the noise path)"""
    return replaced(mechanism.Mechanism, noise_fingerprint="the same for all")


@plant("two laws in one lane")
def law_not_in_the_key() -> Bug:
    """two laws read the same bits (decision 25: a law is part of the page key)"""
    original = keystream.Keystream.__init__

    def init(self: Any, subkey: bytes, lane: str, law: str) -> None:
        original(self, subkey, lane, "")

    return replaced(keystream.Keystream, __init__=init)


@plant(_COPIES)
def released_after_all() -> Bug:
    """a call releases what was taken over meanwhile (decision 25: one live mechanism per path)"""
    return replaced(paths.Hold, release=lambda self, tick: None)


@plant("time-outs at the door")
def time_out_swallowed() -> Bug:
    """a time-out is taken for an unreadable record (decision 24: time-outs)"""
    return all_of(replaced(door, UNREADABLE=Exception), replaced(bags, UNREADABLE=Exception))
