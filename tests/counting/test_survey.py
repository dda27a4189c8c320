"""The widest and the mean noise over ticks, in closed form, against all ticks one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from evertally.bounds.tails import Spread
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.choose import Choice, misfit, model_of
from evertally.counting.path import PathProcess, Runs
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import PROCESSES, Setting
from evertally.counting.survey import mean_variance, sampled, survey, widest
from evertally.counting.toeplitz import Lagged
from evertally.counting.tree import TreeProcess
from evertally.noise import ZeroNoise
from evertally.privacy import ZCDP, Change, PureDP

ONE = Change(1, 1, 1)
OURS = [(name, charge) for name in PROCESSES for charge in (PureDP(0.7), ZCDP(0.3))]


def made(name: str, charge: Any, horizon: int | None) -> NoiseProcess | None:
    setting = Setting(ONE, horizon if PROCESSES[name].bounded else None, 1, 2**30)
    if misfit(name, charge, setting) is not None:
        return None
    return model_of(Choice(name, charge), setting)


def one_by_one(process: NoiseProcess, tick: int) -> tuple[float, float]:
    spreads = [process.spread(t).stddev for t in range(1, tick + 1)]
    return max(spreads), math.fsum(s * s for s in spreads) / tick


@pytest.mark.parametrize(("name", "charge"), OURS)
@pytest.mark.parametrize("horizon", [1, 2, 3, 37, 600, 1025])
def test_every_process_knows_its_widest_tick_and_its_mean(name: str, charge: Any, horizon: int) -> None:
    process = made(name, charge, horizon)
    if process is None:
        return
    for tick in {1, horizon // 3 + 1, horizon}:
        top = widest(process, tick)
        worst, mean = one_by_one(process, tick)
        assert top is not None
        assert top.stddev == pytest.approx(worst, rel=1e-6)
        assert mean_variance(process, tick) == pytest.approx(mean, rel=1e-9)
        assert survey(process, tick) == (top.stddev, math.sqrt(mean_variance(process, tick)))


@pytest.mark.parametrize("tick", [1, 2, 7, 100, 5000])
def test_processes_that_are_no_counters(tick: int) -> None:
    source = ZeroNoise().source()
    pile = AccumulatingProcess(PureDP(1), ONE, horizon=None, columns=1, source=source)
    path = PathProcess(ZCDP(0.5), Runs(1, 7), horizon=None, columns=1, source=source)
    for process in (pile, path):
        top = widest(process, tick)
        assert top is not None
        assert (top.stddev, mean_variance(process, tick)) == (
            pytest.approx(one_by_one(process, tick)[0]),
            pytest.approx(one_by_one(process, tick)[1], rel=2e-3 if tick > 2**12 else 1e-9),
        )


def test_blocks_that_are_cut_by_the_horizon() -> None:
    # Three levels, the last block of each one cut: nothing that lies beyond the horizon counts.
    setting = Setting(ONE, 2**21 + 12345, 1, 2**30)
    process = model_of(Choice("pure-blocks", PureDP(1)), setting)
    for last in (255, 256, 257, 20000):
        top = widest(process, last)
        worst, mean = one_by_one(process, last)
        assert top is not None
        assert top.stddev == pytest.approx(worst, rel=1e-12)
        assert mean_variance(process, last) == pytest.approx(mean, rel=1e-9)


def test_a_window_on_a_tree_is_known_for_few_ticks_only() -> None:
    make: Callable[[], NoiseProcess] = partial(
        TreeProcess, PureDP(1), ONE, horizon=10**5, columns=1, source=ZeroNoise().source()
    )
    window = Lagged(make, 24)
    for tick in (5, 24, 400):
        top = widest(window, tick)
        assert top is not None
        assert top.stddev == one_by_one(window, tick)[0]
    assert widest(window, 10**5) is None  # not the bound that `worst` is


class Foreign:
    """Somebody else's process, which knows nothing but the protocol."""

    def __init__(self, inner: NoiseProcess) -> None:
        self._inner, self.horizon, self.columns, self.tick = inner, inner.horizon, 1, 0

    def spread(self, tick: int) -> Spread:
        return self._inner.spread(tick)

    def worst(self) -> Spread:
        return self._inner.worst()


@pytest.mark.parametrize("name", ["tree", "honaker", "bank"])
def test_a_process_that_knows_nothing_is_asked(name: str) -> None:
    horizon = 10**5
    known = made(name, ZCDP(0.5), horizon)
    assert known is not None
    foreign: Any = Foreign(known)
    assert widest(foreign, horizon) == known.worst()
    assert widest(foreign, horizon - 1) is None
    assert widest(foreign, 300) == max((known.spread(t) for t in range(1, 301)), key=lambda spread: spread.stddev)
    assert mean_variance(foreign, 300) == pytest.approx(mean_variance(known, 300))
    if name != "bank":  # whose variances are made by stretches
        assert sampled(foreign, horizon) == pytest.approx(mean_variance(known, horizon), rel=5e-3)
