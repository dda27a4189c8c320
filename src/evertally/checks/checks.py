"""The conformance checks: what every mechanism does, tested the same way for all. Each raises AssertionError."""

from __future__ import annotations

import copy
import math
import pickle
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.checks import interruptions
from evertally.checks.addresses import check_noise_sees_no_data
from evertally.checks.secrets import check_secrets_stay
from evertally.checks.subject import Subject, alike, events_of, labels, numbers, same
from evertally.contract import Release, restore
from evertally.contract.snapshot import pack, unpack
from evertally.errors import (
    ConfigurationError,
    HorizonExceeded,
    InterruptedCall,
    NoiseReused,
    ReplayRefused,
    StateError,
)
from evertally.noise import Key, ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Neighbours, PureDP
from evertally.ranking import choosing_once

Check = Callable[[Subject], None]


def stepped(subject: Subject, mechanism: Any, inputs: list[Any]) -> list[Any]:
    return [subject.step(mechanism, x).value for x in inputs]


def batch(subject: Subject, events: Any) -> dict[str, Any]:
    users: dict[str, Any] = {"users": [(None, "x", 7, float("nan"))[i % 4] for i in range(len(events))]}
    return {"events": events} | (users if subject.users or subject.owned else {})


def check_declares_its_promise(subject: Subject) -> None:
    """Guarantee, neighbouring relation, tier, mechanism and horizon are there before any data."""
    mechanism = subject.make(simulation(0))
    assert isinstance(mechanism.guarantee, PureDP | ZCDP | ApproxDP | ApproxZCDP)
    assert isinstance(mechanism.neighbours, Neighbours)
    assert mechanism.exactness in ("exact", "certified"), "there is no third tier"
    if mechanism.exactness == "certified":  # it adds a delta, which a pure or zCDP promise has no room for
        assert isinstance(mechanism.guarantee, ApproxDP | ApproxZCDP)
    assert mechanism.guarantee.covers(mechanism.charge), "what is paid must keep what is promised"
    assert mechanism.tick == 0
    assert isinstance(mechanism.mechanism, str)
    assert mechanism.mechanism != "auto", "say what was chosen"
    assert type(mechanism).__doc__, "the docstring carries the theorem"


def check_run_equals_steps(subject: Subject) -> None:
    """`run` is bit-identical to repeated `step`, in one piece, in several, and mixed with steps."""
    key = simulation(1)
    mechanism = subject.make(key)
    inputs = subject.feed(subject.length(mechanism))
    expected = stepped(subject, mechanism, inputs)
    assert mechanism.tick == len(inputs)
    assert alike(subject.run(subject.make(key), inputs), expected), "run differs from step"
    parts = subject.make(key)
    third = max(1, len(inputs) // 3)
    values = [
        *subject.run(parts, inputs[:third]),
        *stepped(subject, parts, inputs[third : 2 * third]),
        *subject.run(parts, inputs[2 * third :]),
    ]
    assert alike(values, expected), "run in parts differs from step"


def check_snapshot_at_every_tick(subject: Subject) -> None:
    """Restored at any tick, a mechanism continues bit-identically, and repeats its last tick."""
    key = simulation(2)
    mechanism = subject.make(key)
    inputs = subject.feed(subject.length(mechanism))
    snapshots = [mechanism.snapshot()]
    values: list[Any] = []
    for x in inputs:
        values.append(subject.step(mechanism, x).value)
        snapshots.append(mechanism.snapshot())
    for tick, blob in enumerate(snapshots):
        again = restore(blob, key=key)
        assert type(again) is type(mechanism)
        assert (again.tick, again.mechanism, again.guarantee) == (tick, mechanism.mechanism, mechanism.guarantee)
        if tick:
            last = subject.step(again, inputs[tick - 1], tick=tick).value
            assert same(last, values[tick - 1]), "replay differs"
        assert alike(stepped(subject, again, inputs[tick:]), values[tick:]), f"differs after tick {tick}"
        assert again.snapshot() == snapshots[-1], "the final state differs"


def check_snapshot_is_guarded(subject: Subject) -> None:
    """A damaged snapshot, a wrong key and foreign bytes stop the stream."""
    key = Key.generate()
    mechanism = subject.make(key)
    subject.step(mechanism, subject.feed(1)[0])
    blob = mechanism.snapshot()
    damaged = [blob[:-1], b"something else", blob[: len(blob) // 2], b""]
    damaged += [blob[:i] + bytes([blob[i] ^ 1]) + blob[i + 1 :] for i in range(0, len(blob), max(1, len(blob) // 50))]
    for bad in damaged:
        _expect(StateError, lambda bad=bad: restore(bad, key=key))  # type: ignore[misc]
    _expect(StateError, lambda: restore(blob, key=Key.generate()))


def check_without_noise_it_is_exact(subject: Subject) -> None:
    """With zero noise the releases are the truth, up to the stated staleness."""
    mechanism = subject.make(ZeroNoise())
    inputs = subject.feed(subject.length(mechanism))
    for tick, (x, exact) in enumerate(zip(inputs, subject.truth(inputs), strict=True), start=1):
        value = subject.step(mechanism, x).value
        gap = float(np.max(np.abs(subject.error(value, exact))))
        assert gap <= subject.slack(mechanism), f"off by {gap} at tick {tick} without noise"


def check_horizon_is_final(subject: Subject) -> None:
    """No tick after the horizon: refused by step, step_events and run, and nothing is used up by asking."""
    mechanism = subject.make(simulation(3))
    if mechanism.horizon is None:
        return
    inputs = subject.feed(min(mechanism.horizon, 2000))
    if len(inputs) < mechanism.horizon:
        _expect(HorizonExceeded, lambda: subject.run(mechanism, subject.feed(1) * (mechanism.horizon + 1)))
        assert mechanism.tick == 0, "a refused run used ticks"
        return
    subject.run(mechanism, inputs[:-1])
    if not subject.users:  # there is no run for users
        _expect(HorizonExceeded, lambda: mechanism.run(inputs[-1:] * 2))
    assert mechanism.tick == mechanism.horizon - 1, "a refused run used ticks"
    subject.step(mechanism, inputs[-1])
    for _ in range(2):
        _expect(HorizonExceeded, lambda: subject.step(mechanism, inputs[-1]))
        _expect(HorizonExceeded, lambda: mechanism.step_events(**batch(subject, [])))
        _expect(HorizonExceeded, lambda: subject.run(mechanism, inputs[-1:]))
    assert mechanism.tick == mechanism.horizon


def check_replay(subject: Subject) -> None:
    """The last tick again with the same input is the same release; with another input, or any other tick, refused."""
    mechanism = subject.make(simulation(4))
    inputs = subject.feed(subject.length(mechanism))
    first = subject.step(mechanism, inputs[0], tick=1)
    assert same(subject.step(mechanism, inputs[0], tick=1).value, first.value)
    assert mechanism.tick == 1
    other = next((x for x in inputs if not _equal(x, inputs[0])), None)
    if other is not None:
        _expect(ReplayRefused, lambda: subject.step(mechanism, other, tick=1))
    for tick in (0, 3, -1):
        _expect(ReplayRefused, lambda tick=tick: subject.step(mechanism, inputs[0], tick=tick))  # type: ignore[misc]
    assert mechanism.tick == 1
    if len(inputs) < 3:
        return
    values = subject.run(mechanism, inputs[1:3])
    assert same(subject.step(mechanism, inputs[2], tick=3).value, values[-1]), "the last tick of a run, again, differs"
    other = next((x for x in inputs if not _equal(x, inputs[2])), None)
    if other is not None:
        _expect(ReplayRefused, lambda: subject.step(mechanism, other, tick=3))


def check_wrong_calls_use_no_tick(subject: Subject) -> None:
    """A mistake in the call raises TypeError before the tick is used, and leaves no trace."""
    mechanism = subject.make(simulation(5))
    before = mechanism.snapshot()
    for x in subject.wrong_calls:
        _expect(TypeError, lambda x=x: mechanism.step(x))  # type: ignore[misc]
    if subject.users:
        for x in subject.feed(2):  # a total does not say whose it is, so nothing could keep a cap
            _expect(TypeError, lambda x=x: mechanism.step(x))  # type: ignore[misc]
            _expect(TypeError, lambda x=x: mechanism.run([x]))  # type: ignore[misc]
    assert mechanism.snapshot() == before, "a refused call changed the state"


def check_content_never_raises(subject: Subject) -> None:
    """Whatever records contain, the door takes it silently, one tick for each batch."""
    mechanism = subject.make(simulation(6))
    for tick, events in enumerate(subject.garbage[: subject.length(mechanism)], start=1):
        assert mechanism.step_events(**batch(subject, events)).tick == tick


def check_release_form(subject: Subject) -> None:
    """Releases are finite numbers in a fixed form; counts are integers in range; intervals surround them.

    Of labels, the interval is the range of their error, which is at least 0. Where labels are found and not declared,
    the form is: labels that occurred, largest count first, ties by label.
    """
    for key, private in ((simulation(7), False), (Key.generate(), True)):
        mechanism = subject.make(key)
        forms = set()
        inputs = subject.feed(subject.length(mechanism))
        for tick, x in enumerate(inputs, start=1):
            release = subject.step(mechanism, x)
            assert release.private is private, "the label must follow the key"
            named = labels(release.value)
            assert named is None or set(named) <= set(mechanism.columns), "a label that nobody declared"
            flat = np.zeros(len(named)) if named is not None else numbers(release.value)
            assert np.all(np.isfinite(flat))
            assert np.all(np.abs(flat) < 2.0**62)
            lower, upper = release.interval(beta=0.05)
            narrow = release.interval(beta=0.5)
            assert np.all(numbers(lower) <= flat)
            assert np.all(flat <= numbers(upper))
            assert np.all(numbers(lower) <= numbers(narrow[0]))
            assert np.all(numbers(narrow[1]) <= numbers(upper))
            if isinstance(release.value, dict):
                assert list(lower) == list(upper) == list(release.value), "an interval for each number"
            forms.add(tuple(release.value) if isinstance(release.value, dict) else flat.shape)
            if subject.labels is not None:
                assert set(release.value) <= subject.labels(mechanism, inputs[:tick]), "a label that never occurred"
                assert len(release.value) <= getattr(mechanism, "k", math.inf), "more labels than were asked for"
                ranked = sorted(release.value.items(), key=lambda pair: (-pair[1], pair[0]))
                assert list(release.value.items()) == ranked, "another order than that of the released numbers"
            if subject.shape is not None:
                assert list(release.value) == subject.shape(tick), "labels that do not follow from the tick"
        if subject.labels is None and subject.shape is None:
            assert len(forms) == 1, "labels or their order changed during the stream"
        else:
            assert any(forms), "no label was ever released"


def check_keys(subject: Subject) -> None:
    """The same key gives the same noise, another key other noise (unless there is none)."""
    inputs = subject.feed(subject.length(subject.make(simulation(8))))
    first = stepped(subject, subject.make(simulation(8)), inputs)

    def differs(seed: int) -> bool:
        return not alike(first, stepped(subject, subject.make(simulation(seed)), inputs))

    assert not differs(8), "one key gave two noises"
    # A single small number may agree by chance; four hundred of them do not.
    noisy = any(differs(seed) for seed in range(100, 140 if subject.noise == "none" else 500))
    assert noisy == (subject.noise != "none"), "all keys gave one noise, or there is noise where none is claimed"


def check_error_formula(subject: Subject) -> None:
    """The public standard deviation agrees with simulation, and the error bound holds. False alarms: below 1e-6."""
    mechanism = subject.make(simulation(0))
    n, runs = subject.length(mechanism), subject.runs
    inputs = subject.feed(n)
    truth = subject.truth(inputs)
    errors = []
    with choosing_once():
        for seed in range(runs):
            values = subject.run(subject.make(simulation(1000 + seed)), inputs)
            errors.append([subject.error(v, t) for v, t in zip(values, truth, strict=True)])
    sample = np.array(errors)  # runs, ticks, numbers
    if mechanism.stddev(1) is not None and subject.independent_numbers:
        for tick in range(1, n + 1):
            deviation = mechanism.stddev(tick)
            if deviation is None:  # an answer that waits for the next release is off by more than noise
                continue
            ratio = float(np.mean(sample[:, tick - 1] ** 2)) / deviation**2
            # The mean of m squares has relative deviation at most sqrt(5/m) (Laplace: kurtosis 6); six of them leave
            # less than 1e-6 for all ticks together. A factor of sqrt 2 in the scale does not pass.
            slack = 6 * math.sqrt(5 / (runs * sample.shape[2]))
            assert abs(ratio - 1) < slack, f"variance at tick {tick} is {ratio:.3f} times the formula"
    bound = np.array([subject.bound(mechanism, 0.1, t) for t in range(1, n + 1)])
    failures = int(np.sum(np.any(np.abs(sample) > bound[None, :, None], axis=(1, 2))))
    # Binomial(runs, 0.1) exceeds its mean by six standard deviations with probability below 1e-6.
    assert failures <= 0.1 * runs + 6 * math.sqrt(0.09 * runs), f"error_bound failed in {failures} of {runs} runs"
    if mechanism.horizon is not None and mechanism.horizon <= n:
        of_all = subject.bound(mechanism, 0.1, None) * (1 + 1e-9)
        assert max(bound) <= of_all, "error_bound without t must cover every t"


def check_state_and_memory(subject: Subject) -> None:
    """The state does not grow with the stream (but with the items in it), and a run stays near the declared memory."""
    mechanism = subject.make(simulation(11))
    inputs = subject.feed(subject.length(mechanism))
    sizes = []
    for x in inputs:
        subject.step(mechanism, x)
        sizes.append(len(mechanism.snapshot()))
    growth = max(b - a for a, b in pairwise([sizes[0], *sizes]))
    # Protected users are remembered, by a digest and a number each.
    allowed = subject.growth + (64 * max(len(events_of(mechanism, x)) for x in inputs) if subject.users else 0)
    assert growth <= allowed, f"a snapshot grew by {growth} bytes in one tick"
    tracemalloc.start()
    try:
        subject.run(subject.make(simulation(11)), inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**28, f"a run of {len(inputs)} ticks took {peak} bytes"


def check_interrupted_calls(subject: Subject) -> None:
    """Whatever line of a call is interrupted: the next try releases what an undisturbed one does, or is refused."""
    key = simulation(12)
    twin, victim = subject.make(key), subject.make(key)
    inputs = subject.feed(subject.length(twin))[:4]
    calls: list[Callable[[Any], Any]] = [lambda m, x=x: subject.step(m, x) for x in inputs[:2]]  # type: ignore[misc]
    if len(inputs) > 2 and not subject.users:
        calls.append(lambda m: subject.run(m, inputs[2:]))
    tried: set[interruptions.Place] = set()
    for number, call in enumerate(calls, start=1):
        before, ticks, windows = twin.snapshot(), twin.tick, _windows(twin)
        expected, lines = interruptions.lines_of(partial(call, twin))
        # And between two instructions of a line, in the code that commits: signals come there often.
        _, returns = interruptions.returns_of(partial(call, restore(before, key=key)), _COMMITTING)
        places: list[interruptions.Place] = [*lines, *returns]
        for place in places:
            if place in tried:
                continue
            tried.add(place)
            # A call that ran another way than its twin's came to its end.
            if not interruptions.interrupted(partial(call, victim), place, _COMMITTING) or not _usable(victim):
                victim = restore(before, key=key)
            where = f"interrupted {interruptions.name_of(place)}, a call"
            assert victim.tick == ticks, f"{where} used ticks"
            assert _windows(victim) == windows, f"{where} changed the windows"
        again = f"call {number}, tried again after interruptions"
        assert _released(call(victim), expected), f"{again}, releases other values"


_COMMITTING = ("contract/guarded.py", "contract/mechanism.py", "contract/paths.py")


def _windows(mechanism: Any) -> list[Any]:
    """What the mechanism says about the last ticks, where it keeps them."""
    longest = min(getattr(mechanism, "max_window", 0), mechanism.tick)
    return [numbers(mechanism.last(window).value).tolist() for window in range(1, longest + 1)]


def _usable(mechanism: Any) -> bool:
    try:
        mechanism.snapshot()
    except InterruptedCall:
        return False
    return True


def _released(found: Any, expected: Any) -> bool:
    if isinstance(found, Release):
        return same(found.value, expected.value)
    return alike(found, expected)


def check_one_call_at_a_time(subject: Subject) -> None:
    """Whoever enters while a call is inside, from a thread or a signal handler, is refused, and disturbs nothing."""
    key = simulation(13)
    inputs = subject.feed(1)
    take = partial(subject.step, x=inputs[0])
    expected, lines = interruptions.lines_of(lambda: take(subject.make(key)))
    inside = [line for line in lines if line[0].co_name == "_step"]
    mechanism = subject.make(key)
    release, others = interruptions.entered(lambda: take(mechanism), inside[0], lambda: take(mechanism))
    assert len(others) == 2, "nobody could try to enter"
    assert all(isinstance(error, InterruptedCall) for error in others), "two calls were inside at once"
    assert mechanism.tick == 1
    assert same(release.value, expected.value)


def check_copies_are_refused(subject: Subject) -> None:
    """Two mechanisms with one noise publish the difference of their data: a copy is refused unless it is asked for."""
    key = Key.generate()
    mechanism = subject.make(key)
    x = subject.feed(1)[0]
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        _expect(TypeError, lambda again=again: again(mechanism))  # type: ignore[misc]
    _expect((NoiseReused, ConfigurationError), lambda: subject.make(key))
    blob = mechanism.snapshot()
    release = subject.step(mechanism, x)
    _expect(NoiseReused, lambda: restore(blob, key=key))
    newest = restore(mechanism.snapshot(), key=key)
    _expect(NoiseReused, lambda: subject.step(mechanism, x))
    assert same(subject.step(newest, x, tick=1).value, release.value)
    allowed = restore(blob, key=key, allow_copy=True)
    assert same(subject.step(allowed, x).value, release.value)


def check_snapshot_binds_the_noise(subject: Subject) -> None:
    """A snapshot says from where its noise was drawn, and is refused by whoever would draw it from elsewhere."""
    key = simulation(14)
    mechanism = subject.make(key)
    subject.step(mechanism, subject.feed(1)[0])
    header, parts = unpack(mechanism.snapshot(), key)
    assert header["noise"] == mechanism.noise_fingerprint
    elsewhere = subject.make(simulation(15)).noise_fingerprint
    _expect(StateError, lambda: restore(pack(header | {"noise": elsewhere}, parts, key), key=key))


CHECKS: tuple[Check, ...] = (
    check_declares_its_promise,
    check_run_equals_steps,
    check_snapshot_at_every_tick,
    check_snapshot_is_guarded,
    check_without_noise_it_is_exact,
    check_horizon_is_final,
    check_replay,
    check_wrong_calls_use_no_tick,
    check_content_never_raises,
    check_release_form,
    check_keys,
    check_noise_sees_no_data,
    check_error_formula,
    check_state_and_memory,
    check_interrupted_calls,
    check_one_call_at_a_time,
    check_copies_are_refused,
    check_snapshot_binds_the_noise,
    check_secrets_stay,
)


def _expect(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any]) -> None:
    try:
        call()
    except kind:
        return
    names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
    raise AssertionError(f"{names} was expected")


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) if not isinstance(a, np.ndarray) else np.array_equal(a, b)
