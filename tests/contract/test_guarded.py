"""All of a call or nothing of it, one call at a time. The conformance suite interrupts every line of every mechanism;
here is what was once reproduced from outside, and what a user meets."""

from __future__ import annotations

import itertools
import signal
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.checks.interruptions import interrupted, lines_of, watched
from evertally.counting.honaker import HonakerProcess
from evertally.counting.tree import TreeProcess
from evertally.errors import InterruptedCall
from evertally.noise import DiscreteLaplace, ZeroNoise
from evertally.partition import PartitionEngine
from evertally.selection.item_tree import ItemTree


def fails_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: type[BaseException]) -> None:
    """The next call of a method does its work and then raises: the worst moment."""
    original, left = getattr(owner, name), [1]

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        result = original(self, *arguments, **options)
        if left:
            left.pop()
            raise error
        return result

    monkeypatch.setattr(owner, name, method)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, TimeoutError])
def test_a_heavy_event_is_counted_once(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=8, max_weight=1000, mechanism="tree", key=ZeroNoise())
    fails_once(monkeypatch, TreeProcess, "advance", error)
    with pytest.raises(error):
        counter.step_events([1000])
    assert counter.tick == 0
    assert counter.step_events([1000]).value == 1000


def test_an_interrupted_run_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=100, mechanism="tree", key=ZeroNoise(), max_window=4)
    counter.run([1, 2])
    fails_once(monkeypatch, TreeProcess, "advance", KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        counter.run(range(50))
    assert counter.tick == 2
    assert counter.last(1).value == 2
    assert counter.run([1, 1, 1]).tolist() == [4, 5, 6]
    assert counter.last(4).value == 5


def test_pieces_of_an_interrupted_run_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evertally.contract.doors._PIECE", 3)
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=100, mechanism="honaker", key=et.simulation(3))
    expected = et.Counter(guarantee=et.ZCDP(0.5), horizon=100, mechanism="honaker", key=et.simulation(3)).run(range(20))
    calls = [0]
    original = HonakerProcess.advance

    def third_time(self: HonakerProcess, count: int = 1) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            raise MemoryError
        return original(self, count)

    monkeypatch.setattr(HonakerProcess, "advance", third_time)
    with pytest.raises(MemoryError):
        counter.run(range(20))
    assert counter.tick == 0
    assert counter.run(range(20)).tolist() == expected.tolist()


def test_what_fails_after_the_release_is_made_uses_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Arrow for the table of a run: the caller got nothing, so nothing was used."""
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=8, key=et.simulation(1))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError):
        counter.run([1, 2, 3], full=True)
    monkeypatch.undo()
    assert counter.tick == 0
    assert counter.run([1, 2, 3], full=True).num_rows == 3


def test_a_veil_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> et.MaxSum:
        return et.MaxSum(
            columns=3, guarantee=et.PureDP(9.0), horizon=50, largest=900, mechanism="rebased", key=et.simulation(2)
        )

    rows = [[30 * (t % 2), 20, 5] for t in range(30)]
    expected = make().run(rows)
    query = make()
    first = query.run(rows[:10])
    fails_once(monkeypatch, PartitionEngine, "advance", KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        query.run(rows[10:])
    assert np.concatenate([first, query.run(rows[10:])]).tolist() == expected.tolist()


def test_items_have_no_way_back_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> et.UnknownHistogram:
        return et.UnknownHistogram(guarantee=et.ApproxDP(4.0, 1e-6), horizon=9, key=et.simulation(2))

    expected = make().run([["tea"] * 300] * 3)
    words = make()
    words.step(["tea"] * 300)
    blob = words.snapshot()
    fails_once(monkeypatch, ItemTree, "advance", KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        words.step(["tea"] * 300)
    for call in (lambda: words.step(["tea"]), lambda: words.run([["tea"]]), words.snapshot):
        with pytest.raises(InterruptedCall, match="last snapshot"):
            call()
    again = et.restore(blob, key=et.simulation(2))
    assert again.run([["tea"] * 300] * 2) == expected[1:]


def test_an_interrupted_run_of_items_is_not_half_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    words = et.UnknownHistogram(guarantee=et.ApproxDP(4.0, 1e-6), horizon=9, key=et.simulation(2))
    original = ItemTree.advance

    def second_tick(self: ItemTree, addresses: Any) -> Any:
        if self.tick == 1:
            raise KeyboardInterrupt
        return original(self, addresses)

    monkeypatch.setattr(ItemTree, "advance", second_tick)
    with pytest.raises(KeyboardInterrupt):
        words.run([["tea"] * 300] * 3)
    monkeypatch.undo()
    assert words.tick == 0
    with pytest.raises(InterruptedCall):
        words.run([["tea"] * 300] * 3)


def test_a_replay_after_an_interruption_is_still_the_released_tick() -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(7))
    first = counter.step(5, tick=1)
    _, lines = lines_of(lambda: counter.step(5, tick=1))
    for line in lines:
        try:
            interrupted(partial(counter.step, 5, tick=1), line)
            assert counter.step(5, tick=1).value == first.value
            with pytest.raises(et.errors.ReplayRefused):
                counter.step(6, tick=1)
        except InterruptedCall:
            counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(7))
            counter.step(5, tick=1)


def test_threads_never_release_a_tick_twice() -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=4000, key=et.simulation(1), mechanism="tree")
    released: list[tuple[int, int]] = []
    refused = [0]

    def work() -> None:
        for _ in range(400):
            try:
                release = counter.step(1)
            except InterruptedCall:
                refused[0] += 1
            else:
                released.append((release.tick, release.value))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ticks = sorted(tick for tick, _ in released)
    assert ticks == list(range(1, counter.tick + 1))
    alone = et.Counter(guarantee=et.PureDP(1.0), horizon=4000, key=et.simulation(1), mechanism="tree")
    expected = alone.run([1] * counter.tick).tolist()
    assert [value for _, value in sorted(released)] == expected


def test_signals_leave_no_tick_used_and_no_ticket_behind() -> None:
    """Real ones, at moments of their own: whatever they hit, the next try gives what an undisturbed run gives."""

    def make() -> et.Counter:
        return et.Counter(guarantee=et.PureDP(1.0), horizon=3000, mechanism="tree", key=et.simulation(5))

    def ring(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    expected = make().run([7] * 3000).tolist()
    counter, values, moments = make(), [], itertools.cycle(range(5, 400, 3))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        while counter.tick < 2000:
            tick = counter.tick
            value = None
            try:
                signal.setitimer(signal.ITIMER_REAL, next(moments) * 1e-6)
                try:
                    value = counter.step(7, tick=tick + 1).value
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                # It may have come after the return: the same call again gives the same release.
                value = counter.step(7, tick=tick + 1).value
            values.append(value)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert values == expected[: len(values)]


@pytest.mark.parametrize("error", [TimeoutError, MemoryError, KeyboardInterrupt])
def test_a_time_out_at_the_door_is_no_unreadable_record(error: type[BaseException]) -> None:
    def make() -> et.Histogram:
        return et.Histogram(
            categories=["a", "b"], max_per_event=2, guarantee=et.PureDP(1.0), horizon=50, key=et.simulation(4)
        )

    events = [["a", "b"], {"a": 1}, "b"] * 3
    model = make()
    expected, lines = lines_of(lambda: model.step_events(events))
    stopped = 0
    for line in lines:
        histogram = make()

        def stop(here: Any, line: Any = line) -> None:
            if here == line:
                raise error

        try:
            released = watched(partial(histogram.step_events, events), stop)
        except error:
            stopped += 1
            assert histogram.tick == 0
            released = histogram.step_events(events)
        assert released.value == expected.value
    assert stopped > 100


def test_a_law_has_its_name_also_after_an_interrupted_repr() -> None:
    """The text of a data class goes through a set of calls under way, which an interruption leaves as it is."""
    law = DiscreteLaplace(10)
    assert law.text() == "DiscreteLaplace(scale=Fraction(10, 1))" == repr(law)
    poisoned = type(law).__repr__.__closure__
    assert poisoned is not None
    running = next(cell.cell_contents for cell in poisoned if isinstance(cell.cell_contents, set))
    running.add((id(law), threading.get_ident()))
    try:
        assert repr(law) == "..."
        source = et.simulation(1).source("law")
        assert (
            source.draws("lane", law, range(9)).tolist()
            == et.simulation(1).source("law").draws("lane", DiscreteLaplace(10), range(9)).tolist()
        )
    finally:
        running.discard((id(law), threading.get_ident()))


def test_reading_what_is_public_needs_no_turn() -> None:
    """Deviation, bound, tick and promise may be read while a call is inside."""
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9, key=et.simulation(7))
    counter._turn["inside"] = object()
    assert counter.tick == 0
    assert counter.stddev(3) is not None
    assert counter.error_bound() > 0
    with pytest.raises(InterruptedCall, match="restore"):
        counter.snapshot()
