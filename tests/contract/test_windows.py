"""The last W ticks: differences of releases, their deviation, and what a restart keeps of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.errors import ConfigurationError

T, W = 40, 12
PROCESSES = [
    ("tree", et.ZCDP(0.5), T),
    ("tree", et.PureDP(1), T),
    ("honaker", et.ZCDP(0.5), T),
    ("honaker", et.PureDP(1), T),
    ("sqrt", et.ZCDP(0.5), T),
    ("epoch-tree", et.PureDP(1), None),
    ("bank", et.ZCDP(0.5), T),
    ("bank-open", et.ZCDP(0.5), None),
    ("pure-blocks", et.PureDP(1), T),
]


def vector(columns: int, process: tuple[str, Any, int | None], seed: int = 0, window: int = W) -> et.VectorCounter:
    mechanism, guarantee, horizon = process
    return et.VectorCounter(
        columns,
        guarantee=guarantee,
        horizon=horizon,
        mechanism=mechanism,
        max_window=window,
        key=et.simulation(seed),
    )


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_a_window_is_the_difference_of_two_releases(process: tuple[str, Any, int | None]) -> None:
    x = np.random.default_rng(0).integers(0, 9, (T, 2))
    values = np.vstack([np.zeros((1, 2), dtype=int), vector(2, process).run(x)])
    stepping, running = vector(2, process), vector(2, process)
    done = 0
    for t in range(1, T + 1):
        stepping.step(x[t - 1])
        if t % 7 == 0 or t == T:  # windows reach over the ends of runs
            running.run(x[done:t])
            done = t
        for mechanism in (stepping, running) if done == t else (stepping,):
            for window in range(1, min(W, t) + 1):
                release = mechanism.last(window)
                assert release.tick == t
                assert release.value.tolist() == (values[t] - values[t - window]).tolist()
                low, high = release.interval(0.1)
                assert np.all(low <= release.value)
                assert np.all(release.value <= high)
    again = et.restore(stepping.snapshot(), key=et.simulation(0))
    assert again.last(W).value.tolist() == stepping.last(W).value.tolist()


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_the_deviation_of_a_window_agrees_with_simulation(process: tuple[str, Any, int | None]) -> None:
    """Exact for tree and square root, an upper bound for the others.

    3000 independent columns: the mean square has a relative deviation below sqrt(5/3000) = 0.041 (Laplace; Gaussian
    sqrt(2/3000)). Six of them, 0.25, once for each of 21 pairs: false alarms below 1e-6.
    """
    columns = 3000
    mechanism = vector(columns, process, seed=5)
    exact = process[0] in ("tree", "sqrt")
    for t in range(1, T + 1):
        mechanism.step(np.zeros(columns, dtype=int))
        if t in (1, 2, 9, 16, 25, 31, 40):
            for window in {1, min(t, 5), min(t, W)}:
                release = mechanism.last(window)
                assert release.stddev is not None
                ratio = float(np.mean(release.value.astype(float) ** 2)) / release.stddev**2
                assert ratio < 1.25, (t, window)
                if exact:
                    assert ratio > 0.75, (t, window)
                beta = 0.05
                low, high = release.interval(beta)
                outside = float(np.mean((low > 0) | (high < 0)))
                assert outside <= beta + 6 * math.sqrt(beta / columns)


def test_a_whole_window_is_the_release_itself() -> None:
    for process in PROCESSES:
        mechanism = vector(2, process)
        for t in range(1, W + 1):
            release = mechanism.step([3, 4])
            last = mechanism.last(t)
            assert last.value.tolist() == release.value.tolist()
            assert last.stddev == pytest.approx(release.stddev, rel=0.02)


@pytest.mark.parametrize("window", [0, -1, W + 1, 1.0, True, "3", None])
def test_windows_that_were_not_declared_are_refused(window: Any) -> None:
    mechanism = vector(2, PROCESSES[0])
    with pytest.raises(ConfigurationError):
        mechanism.last(1)  # nothing released yet
    mechanism.run(np.ones((20, 2), dtype=int))
    with pytest.raises(ConfigurationError):
        mechanism.last(window)
    mechanism.last(W)
    none = vector(2, PROCESSES[0], window=0)
    none.run(np.ones((20, 2), dtype=int))
    with pytest.raises(ConfigurationError, match="max_window"):
        none.last(1)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 30), st.integers(1, 10))
def test_windows_without_noise_are_exact(x: list[int], window: int, declared: int) -> None:
    from evertally.noise import ZeroNoise

    c = et.Counter(guarantee=et.PureDP(1), horizon=30, max_window=declared, key=ZeroNoise())
    c.run(x)
    window = min(window, declared, len(x))
    assert c.last(window).value == sum(x[-window:])
