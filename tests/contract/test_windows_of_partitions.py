"""A counter that a partition keeps has windows too: differences of releases, with both errors."""

from __future__ import annotations

import numpy as np

import evertally as et


def test_windows_of_a_sparse_counter_are_differences_and_their_intervals_hold() -> None:
    inside = 0
    for seed in range(40):
        options = {"guarantee": et.PureDP(4.0), "horizon": 400, "largest": 2000, "max_events_per_tick": 50}
        counter = et.Counter(mechanism="sparse", max_window=100, key=et.simulation(seed), **options)
        inputs = np.where(np.arange(400) % 50 < 10, 20, 0)
        values = counter.run(inputs)
        release = counter.last(100)
        assert release.value == values[-1] - values[-101]
        assert release.stddev is None
        lower, upper = release.interval(0.1)
        inside += lower <= inputs[-100:].sum() <= upper
        again = et.restore(counter.snapshot(), key=et.simulation(seed))
        assert again.last(100).value == release.value
        assert again.last(1).interval() == counter.last(1).interval()
    assert inside >= 36  # each fails with probability 0.1 at most, and bounds are wide


def test_windows_after_steps_and_after_a_run_are_the_same() -> None:
    def made() -> et.Counter:
        return et.Counter(
            mechanism="sparse", max_window=7, guarantee=et.PureDP(8.0), horizon=60, key=et.simulation(3), largest=500
        )

    one, other = made(), made()
    inputs = [30, 0, 0, 90, 0, 0, 0, 0, 70, 0] * 6
    other.run(inputs)
    for x in inputs:
        one.step(x)
    assert [one.last(w).value for w in range(1, 8)] == [other.last(w).value for w in range(1, 8)]
    assert one.snapshot() == other.snapshot()
