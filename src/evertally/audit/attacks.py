"""Attacks on the system around the noise: replay, restore, overrun, and what releases look like.

None of them guesses from one honest stream of releases (that is the game, `audit.play`). Each does what an outsider,
or a careless operator, might do, and reports a `Finding` whose evidence consists of releases and nothing else.
Restarts of real processes (kill -9 between any two writes) are attacked in tests/runtime/test_crash.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from evertally.audit.game import Factory, FloatArray, Sent, flat, owned, public, take
from evertally.contract import restore
from evertally.errors import HorizonExceeded, ReplayRefused
from evertally.noise import simulation

# A rank correlation of n independent pairs times sqrt(n - 1) is nearly standard normal; beyond this there are 2e-9.
_ALARM = 6.0


@dataclass(frozen=True)
class Finding:
    """What an attack achieved. `evidence` says it in terms of releases; or, if there was nothing to look at, why."""

    name: str
    leaked: bool
    evidence: str
    looked: bool = True


def replay_attack(make: Factory, first: Any = 1, other: Any = 0) -> Finding:
    """Asks for a released tick again, with the same input and with another one, of a live and of a restored mechanism.

    The noise of a tick is fixed, so an answer for another input would differ by exactly what the inputs differ.

    >>> import evertally as et
    >>> replay_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)).leaked
    False
    """
    name, key = "replay", simulation(0)
    mechanism = make(key)
    released = public(take(mechanism, first, tick=1))
    for copy in (mechanism, restore(mechanism.snapshot(), key=key)):
        if not np.array_equal(public(take(copy, first, tick=1)), released, equal_nan=True):
            return Finding(name, True, "the same tick with the same input was released in two versions")
        try:
            again = public(take(copy, other, tick=1))
        except ReplayRefused:
            continue
        if not np.array_equal(again, released, equal_nan=True):
            return Finding(name, True, f"tick 1 for another input differs by {again - released}, free of noise")
    return Finding(name, False, "another input for a released tick is refused, or changes nothing")


def restore_attack(make: Factory, inputs: Sequence[Any] = (3, 1, 2, 0, 1, 2), copies: int = 16) -> Finding:
    """At every tick: restores the snapshot many times and lets each copy go on with the same input as the original.

    All copies must release what the original releases. If they differ, their average has less noise than one release;
    the shrinkage that is reported is measured: error of the average over error of a single copy.

    >>> import evertally as et
    >>> restore_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=8, key=key)).leaked
    False
    """
    name, key = "restore", simulation(1)
    original = make(key)
    inputs = inputs[: original.horizon]
    snapshots, released = [original.snapshot()], []
    for x in inputs:
        released.append(public(take(original, x)))
        snapshots.append(original.snapshot())
    for tick, blob in enumerate(snapshots[:-1]):
        try:
            restored = [restore(blob, key=key) for _ in range(copies)]
            continued = [[public(take(copy, x)) for x in inputs[tick:]] for copy in restored]
        except Exception as error:  # the original went on, so something was lost in the snapshot
            return Finding(name, True, f"a copy restored after tick {tick} stops with {type(error).__name__}")
        if not all(_alike(copy, continued[0]) for copy in continued):
            return Finding(name, True, _shrinkage(continued, inputs, tick))
        if not _alike(continued[0], released[tick:]):
            return Finding(name, True, f"a copy restored after tick {tick} releases later ticks in another version")
    return Finding(name, False, f"{copies} restored copies and the original released the same, from every tick on")


def _alike(left: Sequence[FloatArray], right: Sequence[FloatArray]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(left, right, strict=True))


def _shrinkage(continued: list[list[FloatArray]], inputs: Sequence[Any], tick: int) -> str:
    """How much noise the average of copies that differ has lost; of labels there is no average."""
    try:
        truth = np.cumsum(np.array(inputs).reshape(len(inputs), -1), axis=0)[tick:]
        single = np.array(continued) - truth
    except (ValueError, TypeError):
        return f"copies restored after tick {tick} release different versions of one tick"
    left = math.sqrt(float(np.mean(single.mean(axis=0) ** 2)) / float(np.mean(single**2)))
    return f"averaging {len(continued)} copies leaves {left:.2f} of the error of one release"


def horizon_attack(make: Factory, x: Any = 0) -> Finding:
    """Keeps calling after the last tick: by step, by events, by run, and on a restored copy.

    >>> import evertally as et
    >>> horizon_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)).leaked
    False
    """
    name, key = "horizon", simulation(3)
    mechanism = make(key)
    if mechanism.horizon is None:
        return Finding(name, False, "there is no horizon")
    for _ in range(mechanism.horizon):
        take(mechanism, x)
    calls: dict[str, Callable[[Any], Any]] = {
        "step": lambda m: take(m, x),
        "step_events": lambda m: through_door(m, []),
    }
    if not isinstance(x, Sent):  # a run does not say whose events are whose
        calls["run"] = lambda m: m.run([x])
    broken = ""
    for copy, whose in ((mechanism, ""), (restore(mechanism.snapshot(), key=key), " of a restored copy")):
        for call, more in calls.items():
            try:
                more(copy)
            except HorizonExceeded:
                continue
            except Exception as error:
                broken = f"; {call}{whose} stops with {type(error).__name__}, by accident"
                continue
            return Finding(name, True, f"{call}{whose} released a tick after the horizon {mechanism.horizon}")
    return Finding(name, False, f"nothing is released after tick {mechanism.horizon}{broken}")


def column_attack(make: Factory, keys: int = 160, ticks: int = 3) -> Finding:
    """Looks for noise shared by the columns of one mechanism: then differences of columns are less noisy, or exact.

    >>> import evertally as et
    >>> column_attack(lambda key: et.VectorCounter(3, guarantee=et.PureDP(1.0), horizon=4, key=key)).leaked
    False
    """
    noise = _noises(make, keys, ticks)
    found = [(*_most_alike(noise[:, t]), t) for t in range(ticks)]
    looks = ticks * noise.shape[2] * (noise.shape[2] - 1) // 2
    return _correlation_finding("columns", [(r, t, k) for r, k, t in found], keys, "the noise of two columns", looks)


_AT_ONCE = 1000  # columns that are compared with all others together


def _most_alike(noise: FloatArray) -> tuple[float, int]:
    """The rank correlation of the two columns, of (keys, columns), in which it is largest, and the later of them."""
    ranks = np.apply_along_axis(_ranks, 0, noise)
    found = [(0.0, 0)]
    for start in range(0, ranks.shape[1], _AT_ONCE):
        part = ranks[:, start : start + _AT_ONCE]
        # Columns before each one of the part: those behind it, and itself, are compared elsewhere.
        alike = np.triu(ranks[:, : start + part.shape[1]].T @ part, 1 - start)
        column = int(np.abs(alike).max(axis=0).argmax())
        found.append((float(alike[np.abs(alike[:, column]).argmax(), column]), start + column))
    return max(found, key=lambda one: abs(one[0]))


def through_door(mechanism: Any, events: Any) -> Any:
    """One tick of events, each of its own user where users are protected; what is `Sent` has its users."""
    if isinstance(events, Sent):
        return mechanism.step_events(events.events, users=events.users)
    named = getattr(mechanism, "_users", None) is not None or owned(mechanism)
    users = {"users": list(range(len(events)))} if named else {}
    return mechanism.step_events(events, **users)


def _noises(make: Factory, keys: int, ticks: int) -> FloatArray:
    """Releases without data, shape (keys, ticks, numbers)."""
    mechanisms = map(make, map(simulation, range(keys)))
    return np.array([[public(through_door(mechanism, [])) for _ in range(ticks)] for mechanism in mechanisms])


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Spearman's, ties sharing their mean rank; 0 where one side is constant."""
    return float(_ranks(x) @ _ranks(y))


def _ranks(values: FloatArray) -> FloatArray:
    """Around their mean, of length 1; zeros where all are the same."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    ranks = ranks - ranks.mean()
    length = math.sqrt(float(ranks @ ranks))
    return np.asarray(ranks / length if length else ranks)


def _correlation_finding(
    name: str, found: list[tuple[float, int, int]], keys: int, what: str, looks: int = 1
) -> Finding:
    largest, tick, column = max(found, key=lambda entry: abs(entry[0]), default=(0.0, 0, 0))
    text = f"{what} has rank correlation {largest:+.2f} over {keys} keys (tick {tick + 1}, column {column + 1})"
    # Of millions of pairs some are far out by chance: all looks together have the error of 1e-6.
    alarm = max(_ALARM, NormalDist().inv_cdf(1 - 1e-6 / (2 * max(1, looks))))
    return Finding(name, abs(largest) * math.sqrt(keys - 1) > alarm, text)


def form(release: Any, radii: bool = True) -> str:
    """Everything of a release but its numbers, as a reader gets it: tick, labels in their order, types, error bars
    (without `radii` not how wide they are: around estimates that follows what was released).

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=et.simulation(0))
    >>> json.loads(form(counter.step(5)))["radius"], form(counter.step(5, tick=1))[:26]
    ([3.0, 3.0], '{"tick": 1, "value": "int"')
    """
    lower, upper = (public(side) for side in release.interval(0.05))
    value = public(release.value)
    # An error bar around an integer has a public radius; one around a ratio may depend on the released sums.
    whole = radii and np.array(flat(release.value)).dtype.kind == "i"
    radius = [float(x) for x in (*(value - lower), *(upper - value))] if whole else "any"
    fields = {"tick": release.tick, "value": _shape(release.value), "stddev": release.stddev}
    return json.dumps(fields | {"private": release.private, "radius": radius})


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(label): _shape(number) for label, number in value.items()}
    return [str(value.dtype), *value.shape] if isinstance(value, np.ndarray) else type(value).__name__


def metadata_attack(
    make: Factory,
    left: Sequence[Any],
    right: Sequence[Any],
    name: str = "metadata",
    radii: bool = True,
    forms: bool = True,
) -> Finding:
    """Compares the forms of releases on two streams of event batches: labels, their order, types and error bars.
    Without `forms` only that nothing is raised: where labels are the content of a release, its form may follow data.

    >>> import evertally as et
    >>> wards = lambda key: et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> metadata_attack(wards, [["b"], ["a"]], [[], ["a"]]).leaked
    False
    """
    mechanisms = [make(simulation(4)) for _ in range(2)]
    for tick, batches in enumerate(zip(left, right, strict=True), start=1):
        looks = []
        if getattr(mechanisms[0], "horizon", None) == getattr(mechanisms[0], "tick", 0):  # the next one begins anew
            mechanisms = [make(simulation(4)) for _ in range(2)]
        for mechanism, events in zip(mechanisms, batches, strict=True):
            try:
                looks.append(form(through_door(mechanism, events), radii))
            except Exception as error:  # whatever it is, a reader sees that it happened
                return Finding(name, True, f"the content of a record raised {type(error).__name__} at tick {tick}")
        if forms and looks[0] != looks[1]:
            return Finding(name, True, f"tick {tick} looks like {looks[0]} on one side, like {looks[1]} on the other")
    alike = "look alike" if forms else "come without an error; how they look is their content"
    return Finding(name, False, f"the releases of {len(left)} ticks {alike}")


_GARBAGE: tuple[Any, ...] = (
    [None],
    ["x", b"\xff", "", object()],
    [float("nan"), float("inf"), -(10**30), 10**30],
    [[], {}, ("a", "b"), {"a": "b"}, {None: 1}, {"a": float("nan")}],
    [[["a"]], {("a",): 2}],
    np.array([np.nan, np.inf, -3.5]),
)


def bad_record_attack(
    make: Factory, garbage: Sequence[Any] = _GARBAGE, radii: bool = True, forms: bool = True
) -> Finding:
    """Sends records that nobody can count, beside a stream without events: no error, and the same form.

    >>> import evertally as et
    >>> bad_record_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=key)).leaked
    False
    """
    return metadata_attack(make, garbage, [[] for _ in garbage], "bad record", radii, forms)


def unknown_item_attack(make: Factory, label: str = "never declared", ticks: int = 3) -> Finding:
    """Sends a label that was not declared, beside a stream without events: nothing may change, not even a number.

    (Where labels go to a declared `other`, that number may change; its form may not.)

    >>> import evertally as et
    >>> wards = lambda key: et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> unknown_item_attack(wards).leaked
    False
    """
    name = "unknown item"
    looks = metadata_attack(make, [[label]] * ticks, [[]] * ticks, name)
    if looks.leaked:
        return looks
    first, second = make(simulation(5)), make(simulation(5))
    pairs = [(public(through_door(first, [label])), public(through_door(second, []))) for _ in range(ticks)]
    moved = int(np.count_nonzero(np.any([a != b for a, b in pairs], axis=0)))
    allowed = int(first._options.get("other") is not None) if hasattr(first, "_options") else 0
    text = f"an undeclared label changed {moved} numbers of each release, where {allowed} may change"
    return Finding(name, moved > allowed, text)
