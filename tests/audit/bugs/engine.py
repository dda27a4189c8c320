"""Bugs in the linear engine: snapshots, replay, the horizon, and what a release shows."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.contract import mechanism, snapshot
from evertally.contract.doors import EachColumn
from evertally.contract.forms import NumberForm
from evertally.contract.mechanism import Committed, Mechanism
from evertally.contract.release import Release
from evertally.counting import choose, tree
from evertally.counting.process import IntArray
from evertally.counting.tree import TreeProcess
from evertally.encode.labels import as_list
from evertally.errors import ReplayRefused
from evertally.statistics import Histogram
from evertally.statistics.linear_options import Linear, is_linear


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
    place, original = snapshot._restorers["Counter"]

    def restorer(*args: Any) -> Any:
        counter = original(*args)
        counter._engine.noise = _Restarted(
            choose.build(counter._choice, counter._setting, counter._source), counter.tick
        )
        return counter

    return mock.patch.dict(snapshot._restorers, {"Counter": (place, restorer)})


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
    original = Linear._step

    @functools.wraps(original)
    def step(self: Any, row: IntArray, tick: int | None, users: Any = None) -> Any:
        if not is_linear(self):
            return original(self, row, tick, users)
        played = self._kept.played
        if tick is not None and tick == self.tick and hasattr(self, "_sums_before"):
            return _committed(self, tick, played.recent[-1] - played.state, self._sums_before + row)
        self._sums_before = played.state
        return original(self, row, tick, users)

    return replaced(Linear, _step=step)


def _committed(self: Any, tick: int, noise: Any, sums: IntArray) -> Release:
    """These sums with this noise as the release of a tick."""
    played = Committed((sums + noise)[None, :], sums)
    self._kept = replace(self._kept, tick=tick, played=played)
    release: Release = self._release(played.recent[-1], self._engine.accuracy(tick))
    return release


@plant("horizon of a tree that keeps no noise")
def horizon_overrun() -> Bug:
    """ticks released after the horizon (price-of-continual-release P7, factorization-counting 12.12: running past T
    silently)"""

    def check_tick(self: Any, tick: int) -> None:
        if tick not in (self.tick, self.tick + 1) or tick < 1:
            raise ReplayRefused("this tick cannot be released now")

    # The engine and the process each refuse on their own: the bug is that neither does.
    return all_of(
        replaced(Linear, _check_tick=check_tick),
        replaced(tree, check_horizon=lambda process, tick: None),
    )


@plant("bits of releases")
def float_noise() -> Bug:
    """float noise added to exact counts (factorization-counting E12, streaming-selection 10.4: bit patterns leak)"""

    def step(self: Any, row: IntArray, tick: int | None, users: Any = None) -> Any:
        bits = self.key.mac("float noise", (self.tick + 1).to_bytes(8, "little"))
        first, second = ((int.from_bytes(part, "little") + 1) / 2.0**64 for part in (bits[:8], bits[8:16]))
        noise = float(getattr(self.noise.law, "scale", 1)) * math.log(first / second)
        return _committed(self, self.tick + 1, noise, self._kept.played.state + row)

    def settle(self: Any) -> None:
        """Its engine never moves."""

    return all_of(
        replaced(Linear, _step=step, _settle=settle),
        replaced(NumberForm, show=lambda self, row: float(row[0])),
    )


# -- what a release shows --------------------------------------------------------------------------------------------
#
# A form is given released rows and nothing else. Only the contract has both them and exact sums at hand.


def _shown(kind: type, change: Callable[[Any, Release], dict[str, Any]]) -> Bug:
    """Releases of a kind of mechanism, parts of them changed by somebody who has the mechanism at hand."""

    def release(self: Any, row: IntArray, accuracy: Any) -> Release:
        found = Mechanism._release(self, row, accuracy)
        return replace(found, **change(self, found))

    return replaced(kind, _release=release)


@plant("form of releases")
def zero_dropped() -> Bug:
    """a category is dropped while its count is zero (factorization-counting 12.14: the set of keys is public only if it
    is fixed)"""

    def change(self: Any, release: Release) -> dict[str, Any]:
        exact = zip(release.value.items(), self._kept.played.state.tolist(), strict=True)
        return {"value": {label: value for (label, value), total in exact if total != 0}}

    return _shown(Histogram, change)


@plant("form of releases")
def order_by_count() -> Bug:
    """categories in the order of their exact counts (streaming-selection 10.3: output order is private)"""

    def change(self: Any, release: Release) -> dict[str, Any]:
        order = np.argsort(-self._kept.played.state, kind="stable")
        return {"value": {self.labels[j]: release.value[self.labels[j]] for j in order}}

    return _shown(Histogram, change)


@plant("form of releases")
def unknown_label_appears() -> Bug:
    """an unknown label appears among the categories (streaming-selection 10.3: only declared labels may leave)"""
    original = EachColumn.event_row

    def event_row(self: Any, events: Any, tick: int) -> IntArray:
        self.seen = [str(label) for label in as_list(events) if isinstance(label, str)]
        return original(self, events, tick)

    def change(self: Any, release: Release) -> dict[str, Any]:
        seen = getattr(self._door, "seen", ())
        return {"value": release.value | {label: 0 for label in seen if label not in release.value}}

    return all_of(replaced(EachColumn, event_row=event_row), _shown(Histogram, change))


@plant("form of releases")
def relative_error_bar() -> Bug:
    """error bar relative to the exact count (price-of-continual-release P9: every extra data-dependent item is outside
    the proof)"""

    def change(self: Any, release: Release) -> dict[str, Any]:
        exact = max(1, int(np.abs(self._kept.played.state).sum()))
        return {"stddev": None if release.stddev is None else release.stddev / exact}

    return _shown(Linear, change)
