"""Bugs in the linear engine: snapshots, replay, the horizon, and what a release shows."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.counting import Counter, LinearMechanism, VectorCounter, choose, mechanism, snapshot, tree
from evertally.counting.process import IntArray
from evertally.counting.tree import TreeProcess
from evertally.encode.labels import as_list
from evertally.errors import ReplayRefused
from evertally.histogram import Histogram


@plant("replay, restore, horizon")
def redrawn_after_restore() -> Bug:
    """noise redrawn after a restore (streaming-selection 10.2: re-drawing after a crash lets an observer average)"""
    original, number = TreeProcess.seek, itertools.count()

    def seek(self: TreeProcess, tick: int) -> None:
        self._lane = f"{self._lane}/{next(number)}"
        original(self, tick)

    return replaced(TreeProcess, seek=seek)


@plant("replay, restore, horizon")
def restarted_after_restore() -> Bug:
    """noise restarted after a restore (factorization-counting 12.12: resetting t without new noise)"""
    original = snapshot._restorers["Counter"]

    def restorer(*args: Any) -> Any:
        counter = original(*args)
        counter._noise = _Restarted(choose.build(counter._choice, counter._setting, counter._source), counter.tick)
        return counter

    return mock.patch.dict(snapshot._restorers, {"Counter": restorer})


class _Restarted:
    """A process at its beginning that calls its ticks by later numbers."""

    def __init__(self, inner: Any, offset: int) -> None:
        self._inner, self._offset = inner, offset

    @property
    def tick(self) -> int:
        return int(self._inner.tick) + self._offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@plant("replay, restore, horizon")
def blocks_forgotten() -> Bug:
    """a restored tree forgets the noise of earlier blocks (factorization-counting 11.1: recovery restores the noise
    before emitting)"""

    def seek(self: TreeProcess, tick: int) -> None:
        self._latest[:] = 0
        self.tick = tick

    return replaced(TreeProcess, seek=seek)


@plant("replay, restore, horizon")
def tick_forgotten() -> Bug:
    """a snapshot forgets the tick (price-of-continual-release P6, P7: state and tick move together)"""
    return replaced(mechanism, pack=lambda header, parts, key: snapshot.pack(header | {"tick": 0}, parts, key))


@plant("replay, restore, horizon")
def replay_answered() -> Bug:
    """a tick released again for another input (price-of-continual-release P6: a retry with different data must be
    refused)"""
    original = LinearMechanism._step

    @functools.wraps(original)
    def step(self: Any, row: IntArray, tick: int | None, users: Any = None) -> Any:
        if tick is not None and tick == self.tick and hasattr(self, "_sums_before"):
            noise, sums = self._last_row - self._sums, self._sums_before + row
            self._kept = replace(self._kept, played=mechanism.Played((sums + noise)[None, :], sums))
            return self._last_release()
        self._sums_before = self._sums
        return original(self, row, tick, users)

    return replaced(LinearMechanism, _step=step)


@plant("horizon of a tree that keeps no noise")
def horizon_overrun() -> Bug:
    """ticks released after the horizon (price-of-continual-release P7, factorization-counting 12.12: running past T
    silently)"""

    def check_tick(self: Any, tick: int) -> None:
        if tick not in (self.tick, self.tick + 1) or tick < 1:
            raise ReplayRefused("this tick cannot be released now")

    # The engine and the process each refuse on their own: the bug is that neither does.
    return all_of(
        replaced(LinearMechanism, _check_tick=check_tick),
        replaced(tree, check_horizon=lambda process, tick: None),
    )


@plant("bits of releases")
def float_noise() -> Bug:
    """float noise added to exact counts (factorization-counting E12, streaming-selection 10.4: bit patterns leak)"""

    def step(self: Any, row: IntArray, tick: int | None, users: Any = None) -> Any:
        sums = self._sums + row
        bits = self._key.mac("float noise", (self.tick + 1).to_bytes(8, "little"))
        first, second = ((int.from_bytes(part, "little") + 1) / 2.0**64 for part in (bits[:8], bits[8:16]))
        noise = float(getattr(self._noise.law, "scale", 1)) * math.log(first / second)
        played = mechanism.Played((sums + noise)[None, :], sums)
        self._kept = replace(self._kept, tick=self.tick + 1, played=played)
        return self._last_release()

    def settle(self: Any) -> None:
        """Its engine never moves."""

    return all_of(
        replaced(LinearMechanism, _step=step, _settle=settle),
        replaced(Counter, _show=lambda self, values: float(values[0])),
    )


# -- what a release shows --------------------------------------------------------------------------------------------


@plant("form of releases")
def zero_dropped() -> Bug:
    """a category is dropped while its count is zero (factorization-counting 12.14: the set of keys is public only if it
    is fixed)"""

    def show(self: Any, values: IntArray) -> dict[str, int]:
        exact = zip(self.columns, values.tolist(), self._sums.tolist(), strict=True)
        return {label: value for label, value, total in exact if total != 0}

    return replaced(Histogram, _show=show)


@plant("form of releases")
def order_by_count() -> Bug:
    """categories in the order of their exact counts (streaming-selection 10.3: output order is private)"""

    def show(self: Any, values: IntArray) -> dict[str, int]:
        order = np.argsort(-self._sums, kind="stable")
        return {self.columns[j]: int(values[j]) for j in order}

    return replaced(Histogram, _show=show)


@plant("form of releases")
def unknown_label_appears() -> Bug:
    """an unknown label appears among the categories (streaming-selection 10.3: only declared labels may leave)"""
    original = VectorCounter._event_row

    def event_row(self: Any, events: Any, tick: int) -> IntArray:
        self._seen = [str(label) for label in as_list(events) if isinstance(label, str)]
        return original(self, events, tick)

    def show(self: Any, values: IntArray) -> dict[str, int]:
        shown = dict(zip(self.columns, values.tolist(), strict=True))
        return shown | {label: 0 for label in getattr(self, "_seen", []) if label not in shown}

    return all_of(replaced(VectorCounter, _event_row=event_row), replaced(Histogram, _show=show))


@plant("form of releases")
def relative_error_bar() -> Bug:
    """error bar relative to the exact count (price-of-continual-release P9: every extra data-dependent item is outside
    the proof)"""

    def deviation(self: Any, spread: Any) -> float:
        return float(spread.stddev / max(1, int(np.abs(self._sums).sum())))

    return replaced(LinearMechanism, _deviation=deviation)
