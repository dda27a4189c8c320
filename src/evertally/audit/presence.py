"""Audits of what one unit is in or not: users of periods, retention tables, items that come and go.

On a small copy of the configuration *all* streams of one unit are played without noise, through the real mechanism,
put away and restored at some tick; what its releases differ by from those without the unit (from those with another
one in its place) is held against the noise of the program. Its matrix is read by impulses, one draw after the other,
through the mechanism as well: a draw that several numbers share shows in all of them. Numbers that are shown again must
carry the very noise of the first time. What a statistic is charged is never asked. users-and-domains 2.4, 2.5, 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.game import Factory, FloatArray
from evertally.audit.gaussian import claim_of
from evertally.audit.impulses import losses_of, read_noise
from evertally.audit.promises import loud
from evertally.audit.report import Report
from evertally.audit.whitebox import smaller
from evertally.contract.snapshot import restore
from evertally.noise import NoiseKey, ZeroNoise
from evertally.privacy import Neighbours
from evertally.users.periods import PeriodUsers
from evertally.users.present import PresentItems
from evertally.users.retention import Retention

Stream = tuple[Any, ...]  # what the unit does, tick by tick

_AUDITED = (PeriodUsers, PresentItems, Retention)


def is_presence(model: Any) -> TypeGuard[PeriodUsers | PresentItems | Retention]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, _AUDITED)


def numbers_of(mechanism: Any) -> FloatArray:
    """What was released last, as many numbers at every tick; a table of cohorts has a place for each cell."""
    row: FloatArray = mechanism._kept.played.recent[-1].astype(np.float64)
    return row


def small_copy(model: Any, **changed: Any) -> Any:
    """The same configuration, so small that all streams of one unit can be tried."""
    if isinstance(model, PresentItems):
        flips = None if model.max_flips is None else min(model.max_flips, 3)
        return smaller(model, min(model.horizon or 4, 4), max_flips=flips, **changed)  # type: ignore[arg-type]
    if isinstance(model, Retention):
        period, ages = min(model.period, 2), min(model.ages, 2)
        periods = min((model.horizon or 1) // model.period, 4 if period == 1 else 3)
        return smaller(model, periods * period, period=period, ages=ages, **changed)  # type: ignore[arg-type]
    period = min(model.period, 3 if model.so_far else 2)
    most = None if model.max_active_periods is None else min(model.max_active_periods, 2)
    horizon: Any = None if model.horizon is None else min(model.horizon // model.period, 6 // period) * period
    return smaller(model, horizon, period=period, max_active_periods=most, **changed)


class PathSearch:
    """All streams of one unit, on a small copy.

    >>> import evertally as et
    >>> table = et.Retention(period=7, ages=12, guarantee=et.ZCDP(0.5), horizon=364, mechanism="independent",
    ...                      key=et.simulation(0))
    >>> report = PathSearch(table).report()  # somebody who is active at all ages
    >>> round(report.fraction, 6), report.adversary
    (1.0, '001111 against nothing')
    """

    def __init__(self, model: Any, some: Sequence[Stream] | None = None) -> None:
        """With `some`, these streams and nothing (which must be the first) are tried, on the model itself."""
        self.model = small_copy(model) if some is None else model
        self._some = some
        self.ticks = self.model.horizon or 6

    # -- playing -------------------------------------------------------------------------------------------------------

    def _made(self, key: NoiseKey, model: Any = None) -> Any:
        model = model or self.model
        return type(model)(**(model._options | {"guarantee": model.guarantee}), key=key)

    def step(self, mechanism: Any, tick: int, does: Any, who: str = "me") -> FloatArray:
        """One tick with somebody else in it, and the numbers that it releases."""
        if isinstance(mechanism, PresentItems):
            mechanism.step([("insert", None, "other")] * (tick == 1) + ([] if does is None else [(does, None, who)]))
        else:
            mechanism.step_events(["other"] * (tick % 2) + [who] * (2 if does else 0))
        return numbers_of(mechanism)

    def played(self, stream: Stream, key: NoiseKey, restart: int = 0) -> FloatArray:
        """The numbers of all ticks: (ticks, numbers), by a mechanism that is restored before a tick."""
        mechanism, rows = self._made(key), []
        for tick, does in enumerate(stream, start=1):
            if tick == restart:
                mechanism = restore(mechanism.snapshot(), key=key)
            rows.append(self.step(mechanism, tick, does))
        return np.array(rows)

    @cached_property
    def streams(self) -> list[Stream]:
        """Everything that a unit can do, nothing first."""
        if self._some is not None:
            return list(self._some)
        acts = (None, "insert", "delete") if isinstance(self.model, PresentItems) else (0, 1)
        return list(product(acts, repeat=self.ticks))

    @cached_property
    def paths(self) -> dict[Stream, FloatArray]:
        """Releases without noise of each stream, restored before one tick or another."""
        return {
            stream: self.played(stream, ZeroNoise(), 2 + number % max(1, self.ticks - 1)).ravel()
            for number, stream in enumerate(self.streams)
        }

    def differences(self) -> dict[bytes, tuple[FloatArray, str]]:
        """What neighbours differ by, each with two that do."""
        found: dict[bytes, tuple[FloatArray, str]] = {}

        def note(left: Stream, right: Stream) -> None:
            moved = self.paths[left] - self.paths[right]
            found.setdefault(moved.tobytes(), (moved, f"{_shown(left)} against {_shown(right)}"))

        nothing = self.streams[0]
        distinct = list({path.tobytes(): stream for stream, path in self.paths.items()}.values())
        for stream in self.streams if getattr(self.model, "protects", "") == "event" else distinct:
            if getattr(self.model, "protects", "") == "event":
                for at in (tick for tick, does in enumerate(stream) if does is not None):
                    note(stream, (*stream[:at], None, *stream[at + 1 :]))
            elif Neighbours.parse(self.model.neighbours) is Neighbours.REPLACE:
                for other in distinct:
                    note(stream, other)
            else:
                note(stream, nothing)
        return found

    # -- noise ---------------------------------------------------------------------------------------------------------

    @cached_property
    def noise(self) -> tuple[FloatArray, list[Any]]:
        """W (numbers of all ticks x draws), and the law of each draw."""
        return read_noise(lambda key: self.played(self.streams[0], key).ravel())

    def losses(self, changes: Sequence[FloatArray]) -> FloatArray:
        """Epsilon, or mu, of each change; infinite where a change shows in a number without noise, or in one that is
        shown again."""
        W, laws = self.noise
        rows, first, which = np.unique(W.round(7), axis=0, return_index=True, return_inverse=True)
        moved = np.array(changes)
        torn = (moved != moved[:, first][:, which.ravel()]).any(axis=1)
        noisy = rows.any(axis=1)
        torn |= (moved[:, first][:, ~noisy] != 0).any(axis=1)
        kept, W = moved[:, first][:, noisy], W[first][noisy]
        lost = losses_of(W, laws, kept, self.model._engine.inner.noise.spread(self.ticks).roundings)
        lost[torn] = math.inf
        return np.asarray(lost)

    # -- reports -------------------------------------------------------------------------------------------------------

    def report(self) -> Report:
        """What the worst neighbours lose."""
        claim = claim_of(self.model.charge)
        found = list(self.differences().values())
        try:
            lost = self.losses([moved for moved, _ in found])
        except np.linalg.LinAlgError:
            silent = "a combination of releases that carries no noise"
            return Report.computed(self.model, silent, "closed form", *claim, math.inf)
        worst = int(np.argmax(lost))
        return Report.computed(self.model, found[worst][1], "closed form", *claim, float(lost[worst]))

    def whole(self) -> Report:
        """Whether a mechanism that is never put away releases the same."""
        some = self.streams[:: max(1, len(self.streams) // 12)]
        same = all(np.array_equal(self.played(stream, ZeroNoise()).ravel(), self.paths[stream]) for stream in some)
        return Report.attack(self.model, "restarts", not same, "restored or not, it releases the same without noise")

    def game(self) -> Factory:
        """The game with somebody who is there while the last number was high, against nobody, at a promise so weak that
        few games show it."""
        weak = small_copy(self.model, guarantee=loud(self.model.guarantee))

        def factory(key: NoiseKey) -> Any:
            return _ThereOrNot(self, self._made(key, weak))

        return factory


class _ThereOrNot:
    """A mechanism for games: the first row says whether the unit is there, later ones nothing."""

    columns = 1

    def __init__(self, search: PathSearch, mechanism: Any) -> None:
        self._mechanism = mechanism
        self._step: Callable[..., FloatArray] = search.step
        self._there, self._high = False, True
        self.guarantee, self.charge = mechanism.guarantee, mechanism.charge
        self.mechanism, self.horizon = mechanism.mechanism, search.ticks
        self.audited_as = type(mechanism).__name__

    def step(self, row: int) -> FloatArray:
        tick = self._mechanism.tick + 1
        self._there = bool(row) if tick == 1 else self._there
        does: Any = self._high
        if isinstance(self._mechanism, PresentItems):
            does = "insert" if self._high else "delete"
        if not self._there:
            does = None
        released = self._step(self._mechanism, tick, does)
        self._high = bool(released[-1] >= 1)
        return released


def _shown(stream: Stream) -> str:
    words = {None: ".", "insert": "+", "delete": "-"}
    shown = "".join(words.get(does, str(does)) for does in stream)
    return shown if shown.strip(".0") else "nothing"
