"""One live mechanism for one path of noise: what is refused in a process, and how a user says that copies are meant."""

from __future__ import annotations

import contextlib
import gc
import os
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.checks.interruptions import lines_of, watched
from evertally.errors import ConfigurationError, NoiseReused


def counter(key: Any, **options: Any) -> et.Counter:
    return et.Counter(**{"guarantee": et.PureDP(1.0), "horizon": 50, "name": "visits"} | options, key=key)


def test_a_second_counter_under_the_same_name_is_refused() -> None:
    key = et.Key.generate()
    first = counter(key)
    with pytest.raises(NoiseReused, match="exact difference"):
        counter(key)
    assert counter(key, name="orders").step(1).tick == 1
    assert counter(key, horizon=51).step(1).tick == 1, "other parameters have other noise"
    assert counter(key, allow_copy=True).step(4).value == first.step(4).value


def test_a_cell_that_is_run_again_is_refused() -> None:
    key = et.Key.generate()
    counter(key).step(10)
    gc.collect()
    with pytest.raises(NoiseReused, match="already released"):
        counter(key)


def test_what_released_nothing_may_be_made_again() -> None:
    key = et.Key.generate()
    for _ in range(3):
        made = counter(key)
        del made
        gc.collect()
    assert counter(key).step(1).tick == 1


def test_two_keys_with_the_same_bytes_are_one_key(tmp_path: Path) -> None:
    et.Key.generate().save(tmp_path / "key")
    one, other = et.Key.load(tmp_path / "key"), et.Key.load(tmp_path / "key")
    first = counter(one)
    with pytest.raises(NoiseReused):
        counter(other)
    assert first.tick == 0


def test_a_key_that_was_not_made_for_it_needs_a_name(tmp_path: Path) -> None:
    fresh = et.Key.generate()
    assert fresh.fresh
    assert et.Counter(guarantee=et.PureDP(1.0), horizon=5, key=fresh).name == "counter"
    assert not fresh.fresh
    fresh.save(tmp_path / "key")
    for key in (fresh, et.Key.load(tmp_path / "key")):
        with pytest.raises(ConfigurationError, match="name="):
            et.Counter(guarantee=et.PureDP(1.0), horizon=6, key=key)
        with pytest.raises(ConfigurationError, match="name="):
            et.oneshot.known_top({"a": 5}, 1, ["a"], guarantee=et.ZCDP(0.5), key=key)
    assert et.Counter(guarantee=et.PureDP(1.0), horizon=6, key=fresh.derive("orders")).name == "counter"
    assert et.Counter(guarantee=et.PureDP(1.0), horizon=6, key=fresh, stream="clinic").name == "counter"


def test_a_restored_mechanism_takes_over() -> None:
    key = et.Key.generate()
    first = counter(key)
    first.step(3)
    blob = first.snapshot()
    second = et.restore(blob, key=key)
    for call in (lambda: first.step(1), first.snapshot, lambda: first.run([1])):
        with pytest.raises(NoiseReused, match="use that one"):
            call()
    third = et.restore(blob, key=key)  # nothing was released since
    with pytest.raises(NoiseReused):
        second.step(1)
    third.step(1)
    with pytest.raises(NoiseReused, match="tick 1, and tick 2"):
        et.restore(blob, key=key)


def test_copies_that_are_allowed_see_the_same_data_and_release_the_same() -> None:
    key = et.Key.generate()
    first = counter(key)
    first.run([1, 2, 3])
    copies = [et.restore(first.snapshot(), key=key, allow_copy=True) for _ in range(3)]
    values = {made.step(4).value for made in (first, *copies)}
    assert len(values) == 1


def test_a_stream_that_is_taken_over_during_a_call_is_not_released_by_it() -> None:
    key = et.Key.generate()
    first = counter(key)
    blob = first.snapshot()
    second: list[et.Counter] = []

    class Totals(np.ndarray[Any, Any]):
        @property
        def dtype(self) -> Any:
            if not second:
                second.append(et.restore(blob, key=key))
                second[0].run([5, 5])
            return np.ndarray.dtype.__get__(self)  # type: ignore[attr-defined]

    with pytest.raises(NoiseReused):
        first.run(np.array([1, 1]).view(Totals))
    assert (first.tick, second[0].tick) == (0, 2)


def test_a_signal_handler_may_restore_a_stream_at_any_line_of_a_call() -> None:
    """It never waits for itself, and never do both release: the call, or the stream that the handler took over."""
    model = counter(et.Key.generate())
    _, lines = lines_of(lambda: model.run([1, 1]))
    for line in lines:
        key = et.Key.generate()
        first = counter(key)
        blob = first.snapshot()
        second: list[et.Counter] = []

        def handler(here: Any, line: Any = line, key: Any = key, blob: bytes = blob, second: Any = second) -> None:
            if here == line and not second:
                with contextlib.suppress(NoiseReused):
                    second.append(et.restore(blob, key=key))
                    second[0].run([5, 5])

        with contextlib.suppress(NoiseReused):
            watched(partial(first.run, [1, 1]), handler)
        assert [made.tick for made in (first, *second)].count(2) <= 1


def test_the_same_bytes_are_another_key_where_they_are_not_private() -> None:
    raw = bytes(range(32))
    private, trial = counter(et.Key(raw)), counter(et.Key(raw, private=False))
    assert private.noise_fingerprint != trial.noise_fingerprint


def test_a_copy_at_an_older_tick_does_not_lower_the_mark() -> None:
    key = et.Key.generate()
    first = counter(key)
    blobs = [first.snapshot()]
    for _ in range(6):
        first.step(1)
        blobs.append(first.snapshot())
    et.restore(blobs[1], key=key, allow_copy=True).step(1)
    with pytest.raises(NoiseReused, match="tick 6"):
        et.restore(blobs[3], key=key)


def test_simulations_are_free() -> None:
    """Their releases are not private: there is no difference to hide."""
    made = [counter(et.simulation(1)) for _ in range(2)]
    assert made[0].step(1).value == made[1].step(1).value


def test_one_shot_releases_have_a_name_each() -> None:
    key = et.Key.generate()
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "key": key}
    first = et.oneshot.known_histogram({"a": 5, "b": 6}, ["a", "b"], **common, name="monday")
    again = et.oneshot.known_histogram({"b": 6, "a": 5}, ["a", "b"], **common, name="monday")
    assert first.value == again.value
    with pytest.raises(NoiseReused, match="name"):
        et.oneshot.known_histogram({"a": 5, "b": 7}, ["a", "b"], **common, name="monday")
    et.oneshot.known_histogram({"a": 5, "b": 7}, ["a", "b"], **common, name="tuesday")
    # two lone surrogates and the letter that they would make together are two labels
    et.oneshot.unknown_histogram({"\ud83d\ude00": 9}, guarantee=et.ApproxDP(1, 1e-6), key=key, name="signs")
    with pytest.raises(NoiseReused):
        et.oneshot.unknown_histogram({"\U0001f600": 9}, guarantee=et.ApproxDP(1, 1e-6), key=key, name="signs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a test process has threads
def test_a_forked_process_is_a_copy() -> None:
    key, fresh = et.Key.generate(), et.Key.generate()
    made = counter(key)
    made.step(1)
    blob = made.snapshot()
    stream = et.Stream("visits", guarantee=et.PureDP(1.0), horizon=9, key=key)
    calls: list[Callable[[], Any]] = [
        lambda: made.step(1),
        lambda: et.restore(blob, key=key),
        lambda: counter(key, name="orders"),
        lambda: counter(fresh, name=None),
        lambda: stream.add(et.Counter, share=1),
        lambda: et.oneshot.known_histogram({"a": 1}, ["a"], guarantee=et.ZCDP(0.5), key=key, name="once"),
    ]
    child = os.fork()
    if child == 0:
        refused = 0
        for call in calls:
            try:
                call()
            except (NoiseReused, ConfigurationError):
                refused += 1
        derived = counter(key.derive("shard 1")).step(1).tick == 1
        os._exit(refused if derived else 99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
    assert made.step(1).tick == 2


def test_a_mechanism_that_nobody_holds_is_gone_at_once() -> None:
    """Not when circles are next looked for: a path is free when its owner is gone and has released nothing."""
    gc.disable()
    try:
        key = et.Key.generate()
        for make in (
            counter,
            lambda key: et.RunningMean(lower=0, upper=1, guarantee=et.PureDP(1.0), horizon=9, key=key, name="mean"),
        ):
            gone = weakref.ref(make(key))
            assert gone() is None
            make(key)
    finally:
        gc.enable()
