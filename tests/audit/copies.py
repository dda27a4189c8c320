"""Attacks by doing things twice: copies of a stream, a cell run again, a version with one more option, a call that is
interrupted and tried again with other data.

The noise of a mechanism follows from key, names and parameters. Whoever gets two releases with one noise and other data
has their exact difference; whoever gets one number with two noises can average. Keys here are private ones, because
only those are guarded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from evertally import oneshot
from evertally.audit.attacks import Finding
from evertally.audit.game import Factory, public
from evertally.checks.interruptions import Line, interrupted, lines_of, watched
from evertally.contract import restore
from evertally.contract.snapshot import guarantee_to_json
from evertally.errors import EvertallyError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Key, ZeroNoise, simulation
from evertally.privacy import ZCDP


def copies_attack(make: Factory, left: Any = 1, right: Any = 0) -> list[Finding]:
    """Makes a second mechanism with the noise of the first, in every way that a user might, and feeds it other data.

    >>> import evertally as et
    >>> found = copies_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=8, name="visits", key=key))
    >>> [finding.name for finding in found if finding.leaked], len(found)
    ([], 7)
    """

    def again(first: Any, key: Any, blob: bytes) -> Any:
        return make(key)

    def restored(first: Any, key: Any, blob: bytes) -> Any:
        return restore(blob, key=key)

    def restored_twice(first: Any, key: Any, blob: bytes) -> Any:
        one, other = restore(first.snapshot(), key=key), restore(first.snapshot(), key=key)
        one.step(left)
        return other

    ways: dict[str, Callable[[Any, Any, bytes], Any]] = {
        "a second mechanism": again,
        "a snapshot restored beside its original": restored,
        "a snapshot restored twice": restored_twice,
        "copy.copy": lambda first, key, blob: copy.copy(first),
        "copy.deepcopy": lambda first, key, blob: copy.deepcopy(first),
    }
    found = [_twice(name, make, way, left, right) for name, way in ways.items()]
    return [*found, _made_anew(make, left, right), _taken_over(make, left, right)]


def _twice(name: str, make: Factory, way: Callable[[Any, Any, bytes], Any], left: Any, right: Any) -> Finding:
    key = Key.generate()
    first = make(key)
    blob = first.snapshot()
    released = [public(first.step(left))]
    try:
        second = way(first, key, blob)
        for x in (right,) * (2 if second.tick == 0 else 1):
            public(second.step(x))
        released.append(public(first.step(left)))
    except (EvertallyError, TypeError):
        return Finding(name, False, "refused")
    return Finding(name, True, "two mechanisms with one noise both released, on other data")


def _made_anew(make: Factory, left: Any, right: Any) -> Finding:
    """A notebook cell, run again on corrected data."""
    name, key = "a mechanism made again after its predecessor", Key.generate()
    before = public(make(key).step(left))
    try:
        after = public(make(key).step(right))
    except EvertallyError:
        return Finding(name, False, "refused")
    return Finding(name, True, f"two releases differ by {before - after}, free of noise")


def _taken_over(make: Factory, left: Any, right: Any) -> Finding:
    """A watchdog restores a stream whose worker is still inside a call, and both release."""
    name, key = "a stream taken over during a call", Key.generate()
    first = make(key)
    blob = first.snapshot()

    class Watchdog(np.ndarray[Any, Any]):
        """Totals that do something when they are looked at. What else runs code of its own is refused by its type."""

        @property
        def dtype(self) -> Any:
            if "taken" not in vars(self):
                vars(self)["taken"] = True
                restore(blob, key=key).run([right])
            return np.ndarray.dtype.__get__(self)  # type: ignore[attr-defined]

    try:
        first.run(np.array([left]).view(Watchdog))
    except EvertallyError:
        return Finding(name, False, "refused")
    return Finding(name, True, "the call that was taken over released its ticks, on other data")


def time_out_attack(make: Factory, events: list[Any], error: type[Exception] = TimeoutError) -> Finding:
    """Lets a time-out strike at every line of a tick: it must end the call, and leave the tick as it was.

    >>> import evertally as et
    >>> def wards(key):
    ...     return et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> time_out_attack(wards, [["a"], {"b": 1}]).leaked
    False
    """
    model = make(ZeroNoise())
    expected, lines = lines_of(lambda: public(model.step_events(events)))
    for line in lines:
        mechanism = make(ZeroNoise())
        try:
            found = public(_struck(mechanism, events, line, error))
        except error:
            found = public(mechanism.step_events(events, tick=1))
        if not np.array_equal(found, expected):
            return Finding("time-out", True, f"a time-out was taken for a record: {found} in place of {expected}")
    return Finding("time-out", False, f"{len(lines)} time-outs each ended the call, or changed nothing")


def _struck(mechanism: Any, events: list[Any], at: Line, error: type[Exception]) -> Any:
    def strike(line: Line) -> None:
        if line == at:
            raise error

    return watched(lambda: mechanism.step_events(events), strike)


def one_shot_attack() -> Finding:
    """Two histograms under one key and one name, also by default.

    >>> one_shot_attack().leaked
    False
    """
    for name in (None, "words"):
        key = Key.generate()
        try:
            for count in (100, 101):
                oneshot.known_histogram({"a": count}, ["a"], guarantee=ZCDP(0.5), key=key, name=name)
        except EvertallyError:
            continue
        return Finding("one-shot", True, f"two histograms were released with one noise, name={name!r}")
    return Finding("one-shot", False, "the second histogram is refused")


def upgrade_attack(make: Factory, inputs: tuple[Any, ...] = (3, 1, 2)) -> Finding:
    """Restores a snapshot under a version of the program that has one more option, with a default.

    Its digest of public parameters is another one, and so is all noise that it draws.

    >>> import evertally as et
    >>> upgrade_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)).leaked
    False
    """
    key = simulation(4)
    mechanism = make(key)
    released = [public(mechanism.step(x)) for x in inputs]
    blob = mechanism.snapshot()
    later = mock.patch(
        "evertally.contract.mechanism.guarantee_to_json", lambda guarantee: guarantee_to_json(guarantee) | {"new": "1"}
    )
    with later:
        try:
            again = restore(blob, key=key)
        except EvertallyError:
            return Finding("upgrade", False, "a version that would draw other noise is refused")
        here = public(again.step(inputs[-1], tick=len(inputs)))
        onwards = public(again.step(inputs[0]))
    there = public(mechanism.step(inputs[0]))
    redrawn = not np.array_equal(onwards, there) or not np.array_equal(here, released[-1])
    return Finding("upgrade", redrawn, "the next tick was released in two versions" if redrawn else "the same noise")


def two_laws_attack(draws: int = 400) -> Finding:
    """Draws the same addresses of one lane under two laws, as a changed planner would: their signs must not agree.

    >>> two_laws_attack().leaked
    False
    """
    laws = (DiscreteLaplace(1000), DiscreteGaussian(10**6))
    one, other = (simulation(5).source("laws").draws("lane", law, range(draws))[:, 0] for law in laws)
    agree = int(np.sum(np.sign(one) == np.sign(other)))
    # Of 400 fair coins more than 260 agree with probability below 1e-9.
    leaked = agree > draws // 2 + 3 * draws // 20
    return Finding("two laws", leaked, f"under two laws {agree} of {draws} draws have the same sign")


def interrupted_users_attack(make: Factory) -> Finding:
    """Interrupts a tick at every line, and releases it with other users: all count once, and no cap is used up unseen.

    >>> import evertally as et
    >>> def counter(key):
    ...     return et.Counter(guarantee=et.PureDP(1.0), horizon=9, unit="user", max_events_per_user=1, key=key)
    >>> interrupted_users_attack(counter).leaked
    False
    """

    def call(mechanism: Any, users: list[str]) -> Any:
        return mechanism.step_events([1] * len(users), users=users, tick=1)

    _, lines = lines_of(lambda: call(make(ZeroNoise()), ["ann", "bob"]))
    for line in lines:
        mechanism = make(ZeroNoise())
        if not interrupted(lambda m=mechanism: call(m, ["ann", "bob"]), line):  # type: ignore[misc]
            continue
        try:
            first = call(mechanism, ["cyd", "dan", "eve"]).value
            second = mechanism.step_events([1] * 5, users=["ann", "bob", "cyd", "dan", "eve"], tick=2).value
        except EvertallyError:
            continue
        if (first, second) != (3, 5):
            return Finding("interrupted users", True, f"three users, then two more, were counted as {first}, {second}")
    return Finding("interrupted users", False, f"interrupted at {len(lines)} lines, all users count once")
