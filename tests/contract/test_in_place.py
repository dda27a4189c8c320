"""The contract around an engine whose releases stand for many ticks: steps, runs, pieces, chosen ticks, snapshots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract import doors
from evertally.contract.doors import EachColumn, read_columns
from evertally.contract.forms import RowForm
from evertally.contract.in_place import InPlace, stairs
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import statistic
from evertally.contract.parts import Blueprint
from evertally.contract.rows import Rows, from_bytes, to_bytes, total
from evertally.counting.process import IntArray
from evertally.encode import CategoryDoor
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused
from evertally.histogram.in_place import Bound
from evertally.noise import ZeroNoise
from evertally.privacy import Contribution, change


class EveryFew:
    """An engine for tests: the exact sums, released at every tick that `period` divides."""

    def __init__(self, columns: int, period: int) -> None:
        self.tick = 0
        self.width = columns
        self._period = period
        self._sums = np.zeros(columns, dtype=np.int64)
        self._last = self._sums

    def advance(self, rows: Rows) -> tuple[IntArray, IntArray]:
        before, changes = self._last, []
        for offset in range(len(rows)):
            self._sums = self._sums + total(rows[offset : offset + 1])
            self.tick += 1
            if self.tick % self._period == 0:
                self._last = self._sums
                changes.append((offset, self._last))
        return stairs(before, changes, len(rows))

    def accuracy(self, tick: int) -> Bound:
        return Bound(lambda beta: tick - math.log(beta))

    def error_bound(self, beta: float, tick: int | None) -> float:
        return -1.0 if tick is None else float(tick)

    def state(self) -> list[bytes]:
        return [to_bytes(self._sums), to_bytes(self._last)]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self._sums, self._last = map(from_bytes, parts)


@statistic
class Lazy(Mechanism):
    """Sums of two columns, every few ticks."""

    guarantee: et.PureDP = et.PureDP(1)
    horizon: int | None = 100
    period: int = 1

    def _blueprint(self) -> Blueprint:
        contribution = Contribution(max_per_event=2)
        door = CategoryDoor(["a", "b"], None, 2, order=lambda message: message)
        return Blueprint(
            word="Lazy",
            address={"period": self.period},
            mechanism="lazy",
            charge=et.PureDP(1),
            contribution=contribution,
            sensitivity=change("add_remove", contribution, 2),
            door=lambda source, limit: EachColumn(door, limit),
            engine=lambda source: InPlace(lambda _: EveryFew(2, self.period), source),
            form=RowForm(2, ["a", "b"]),
        )


def lazy_one(period: int, **options: Any) -> Lazy:
    return Lazy(period=period, **({"key": ZeroNoise()} | options))


Inputs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(list), min_size=1, max_size=40)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(Inputs, st.integers(1, 12), st.integers(1, 7), st.data())
def test_runs_are_steps_whatever_the_pieces(inputs: Any, period: int, piece: int, data: st.DataObject) -> None:
    one = lazy_one(period)
    expected = np.array([one.step(x).value for x in inputs])
    cut = data.draw(st.integers(0, len(inputs)))
    at = sorted(data.draw(st.sets(st.integers(1, len(inputs)))))
    rows = np.array(inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "_PIECE", 2 * piece)
        whole, parts, some = lazy_one(period), lazy_one(period), lazy_one(period)
        assert np.array_equal(whole.run(rows), expected)
        assert np.array_equal(np.concatenate([parts.run(rows[:cut]), parts.run(rows[cut:])]), expected)
        assert np.array_equal(some.run(rows, at=at), expected[[t - 1 for t in at]])
        table = lazy_one(period).run(rows, full=True, at=at)
    assert table["tick"].to_pylist() == [t for t in at for _ in range(2)]
    assert table["value"].to_pylist() == expected[[t - 1 for t in at]].ravel().tolist()
    assert one.snapshot() == whole.snapshot() == parts.snapshot() == some.snapshot()
    last = len(inputs)
    for m in (one, whole, parts, some, et.restore(one.snapshot(), key=ZeroNoise())):
        assert np.array_equal(m.step(inputs[-1], tick=last).value, expected[-1]), "the last tick again"
        with pytest.raises(ReplayRefused):
            m.step([99, 99], tick=last)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(st.integers(0, 30), unique=True, max_size=8).map(sorted), st.integers(1, 31))
def test_stairs_stand_until_the_next_one(offsets: list[int], count: int) -> None:
    offsets = [offset for offset in offsets if offset < count]
    values, lasts = stairs(np.array([-1]), [(offset, np.array([offset])) for offset in offsets], count)
    assert lasts.sum() == count
    assert len(values) == len(lasts) == len(offsets) + 1
    expected = [max([offset for offset in offsets if offset <= t], default=-1) for t in range(count)]
    assert np.repeat(values[:, 0], lasts).tolist() == expected


def test_releases_carry_an_interval_and_no_deviation() -> None:
    lazy = lazy_one(3)
    release = lazy.step([4, 5])
    assert release.stddev is None
    lower, upper = release.interval(0.5)
    assert lower.tolist() == [-1, -1]
    assert upper.tolist() == [1, 1]
    assert lazy.stddev(7) is None


def test_bounds_pass_beta_and_tick_on() -> None:
    lazy, endless = lazy_one(3), lazy_one(3, horizon=None)
    assert (lazy.error_bound(), lazy.error_bound(0.1, t=7), endless.error_bound(0.1, t=10**6)) == (-1, 7, 10**6)
    with pytest.raises(ConfigurationError, match="tick="):
        endless.error_bound(0.1)
    for t in (0, 101, 1.5, "3", True):
        with pytest.raises(ConfigurationError):
            lazy.error_bound(0.1, t=t)
        with pytest.raises(ConfigurationError):
            lazy.stddev(t)
    for beta in (0, 1, math.nan):
        with pytest.raises(ConfigurationError):
            lazy.error_bound(beta)


def test_the_horizon_is_final() -> None:
    lazy = lazy_one(4, horizon=5)
    with pytest.raises(HorizonExceeded):
        lazy.run(np.ones((6, 2), dtype=int))
    assert lazy.run(np.ones((5, 2), dtype=int)).tolist() == [[0, 0]] * 3 + [[4, 4]] * 2
    with pytest.raises(HorizonExceeded):
        lazy.step([1, 1])


def test_columns_are_a_number_or_a_list() -> None:
    assert [len(read_columns(columns)) for columns in (3, np.int64(3), ["a", "b"], ("a",))] == [3, 3, 2, 1]
    for bad in (True, None, 2.5, {"a": 1}, {"a"}, np.array([1]), "ab"):
        with pytest.raises(ConfigurationError, match="a number or a list"):
            read_columns(bad)
