"""Audits of active users: everything that one user can do on a small copy, against the noise of the program.

All streams of one user are played without noise through the real mechanism, among other users; what its releases differ
by from those without the unit (from those with another in its place) is held against the noise. The matrix of the noise
is read by impulses, one draw after the other, through the mechanism as well, which is put away and restored before
every tick: a draw that all ticks share shows at all of them. What is charged is never asked. users-and-domains 1.4,
1.5, 2.3 and 10.
"""

from __future__ import annotations

import math
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
from evertally.users.active import ActiveUsers

Acts = tuple[int, ...]  # tick by tick: 0, or 1 + the category of the user's event

_LONGEST = 3  # windows of the copy
_CROWD = 200  # other users who come before one returns
_HABITS, _WIDE = 60, 20  # ticks, and the longest window, of the copy in which users come and go regularly


def is_active(model: Any) -> TypeGuard[ActiveUsers]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, ActiveUsers)


def small_copy(model: ActiveUsers, ticks: int, **changed: Any) -> ActiveUsers:
    """The same configuration, so small that all streams of one user can be tried."""
    windows = sorted({min(window, _LONGEST) for window in model.windows})
    labels = None if model.by is None else list(model.by)[:2]
    given: dict[str, Any] = {
        "windows": windows,
        "by": labels,
        "max_categories": min(model.max_categories, 2),
        "max_active": None if model.max_active is None else min(model.max_active, 2),
        "period": None if model.period is None else min(model.period, 2),
    }
    horizon: Any = None if model.horizon is None else ticks
    made: Any = smaller(model, horizon, **(given | changed))  # type: ignore[arg-type]
    assert is_active(made)
    return made


class ActiveSearch:
    """All streams of one user, on a small copy.

    >>> import evertally as et
    >>> daily = et.ActiveUsers([1], guarantee=et.ZCDP(0.5), horizon=365, neighbours="replace", key=et.simulation(0))
    >>> report = ActiveSearch(daily).report()  # always there, in the place of somebody who never is
    >>> round(report.fraction, 6), report.adversary
    (1.0, '00000 against 11111')
    """

    def __init__(self, model: ActiveUsers, ticks: int = 5) -> None:
        self.ticks = ticks if model.by is None else ticks - 1
        self.given, self.model = model, small_copy(model, self.ticks)

    def _made(self, key: NoiseKey, model: ActiveUsers | None = None) -> ActiveUsers:
        model = model or self.model
        return ActiveUsers(**(model._options | {"guarantee": model.guarantee}), key=key)

    def step(self, mechanism: ActiveUsers, act: int) -> FloatArray:
        """One tick with others in it, who never come again, and the numbers that it releases."""
        tick = mechanism.tick + 1
        others = [f"other {tick} {i}" for i in range(3)] + ["often"]
        users = [*others, *(["me", "me"] if act else [])]
        if mechanism.by is None:
            mechanism.step_events(users)
        else:
            labels = list(mechanism.by)
            mechanism.step_events([labels[0]] * len(others) + [labels[act - 1]] * (2 if act else 0), users=users)
        row: FloatArray = mechanism._kept.played.recent[-1].astype(np.float64)
        return row

    def played(self, acts: Acts, key: NoiseKey, restarts: bool = False) -> FloatArray:
        """The numbers of all ticks."""
        mechanism, rows = self._made(key), []
        for act in acts:
            if restarts:
                mechanism = restore(mechanism.snapshot(), key=key)
            rows.append(self.step(mechanism, act))
        return np.concatenate(rows)

    @cached_property
    def streams(self) -> list[Acts]:
        """Everything that a user can do, nothing first."""
        kinds = 1 if self.model.by is None else len(self.model.by)
        return list(product(range(kinds + 1), repeat=self.ticks))

    @cached_property
    def paths(self) -> dict[Acts, FloatArray]:
        return {acts: self.played(acts, ZeroNoise()) for acts in self.streams}

    def differences(self) -> dict[bytes, tuple[FloatArray, str]]:
        """What neighbours differ by, each with two that do."""
        found: dict[bytes, tuple[FloatArray, str]] = {}
        replaced = Neighbours.parse(self.model.neighbours) is Neighbours.REPLACE

        def note(left: Acts, right: Acts) -> None:
            moved = self.paths[left] - self.paths[right]
            found.setdefault(moved.tobytes(), (moved, f"{_shown(left)} against {_shown(right)}"))

        distinct = list({path.tobytes(): acts for acts, path in self.paths.items()}.values())
        block = self.model.period or 1
        if self.model.unit == "user" and not replaced:
            for acts in distinct:
                note(acts, self.streams[0])
        elif self.model.unit == "user":
            for acts in distinct:
                for other in distinct:
                    note(acts, other)
        else:
            # One block of ticks, or one tick: there or not; of two users, each can have one.
            for acts in self.streams:
                for start in range(0, self.ticks, block):
                    left = tuple(0 if start <= t < start + block else act for t, act in enumerate(acts))
                    note(acts, left)
            if replaced:
                ones: list[FloatArray] = [moved for moved, _ in found.values()]
                for gone in ones:
                    for come in ones:
                        swapped = come - gone
                        found.setdefault(swapped.tobytes(), (swapped, "one block in the place of another"))
        return found

    @cached_property
    def restored_noise(self) -> tuple[FloatArray, list[Any]]:
        """The noise of a mechanism that is restored before every tick."""
        return self.noise(restarts=True)

    def noise(self, restarts: bool) -> tuple[FloatArray, list[Any]]:
        """W (numbers of all ticks x draws), and the law of each draw."""
        return read_noise(lambda key: self.played(self.streams[0], key, restarts))

    def report(self) -> Report:
        """What the worst neighbours lose."""
        claim = claim_of(self.model.charge)
        found = list(self.differences().values())
        changes = np.array([moved for moved, _ in found])
        try:
            lost = losses_of(*self.restored_noise, changes)
        except np.linalg.LinAlgError:
            silent = "a combination of releases that carries no noise"
            return Report.computed(self.model, silent, "closed form", *claim, math.inf)
        worst = int(np.argmax(lost))
        return Report.computed(self.model, found[worst][1], "closed form", *claim, float(lost[worst]))

    def habits(self) -> Report:
        """What users lose who come and go with a fixed rhythm, in one window of a longer copy: were their runs shorter
        than the window, many more of them would fit in than are charged for."""
        window = min(max(self.given.windows), _WIDE)
        plain: dict[str, Any] = {"windows": [window], "by": None, "max_categories": 1}
        ticks: Any = _HABITS if self.given.horizon is None else min(self.given.horizon, _HABITS)
        made: Any = smaller(self.given, None if self.given.horizon is None else ticks, **plain)  # type: ignore[arg-type]
        rhythms = [(on, off) for on in (1, 2, ticks) for off in (1, 2, 3, 5, window, window + 1)]
        streams = [[(["me"] if t % (on + off) < on else []) for t in range(ticks)] for on, off in rhythms]
        changes = np.array([self._made(ZeroNoise(), made).run(stream)[:, 0] for stream in streams], dtype=np.float64)
        if Neighbours.parse(made.neighbours) is Neighbours.REPLACE:
            changes = np.array([one - other for one in changes for other in changes])
        noise = read_noise(lambda key: self._made(key, made).noise.advance(ticks)[:, 0].astype(np.float64))
        claim = claim_of(made.charge)
        lost = float(losses_of(*noise, changes).max())
        return Report.computed(made, "comes and goes", "closed form", *claim, lost)

    def whole(self) -> Report:
        """Whether a mechanism that is never put away has the same noise, and the same releases without it."""
        here, there = self.noise(restarts=False)[0], self.restored_noise[0]
        same = here.shape == there.shape and np.allclose(here, there, atol=1e-6)
        for acts in self.streams[:: max(1, len(self.streams) // 12)]:
            same = same and np.array_equal(self.played(acts, ZeroNoise(), restarts=True), self.paths[acts])
        return Report.attack(self.model, "restarts", not same, "restored or not, it releases the same")

    def returning(self) -> Report:
        """Whether somebody who is active stays so while many others come (and nobody is evicted for them)."""
        mechanism = small_copy(self.model, self.ticks, windows=[2], max_active=None, by=None, max_categories=1)
        mechanism = self._made(ZeroNoise(), mechanism)
        crowd = [f"one of many {i}" for i in range(_CROWD)]
        mechanism.step_events(["me"])
        rows = [mechanism.step_events([*crowd, *me]).value[2] for me in ([], ["me"], [])]
        expected = [_CROWD + 1, _CROWD + 1, _CROWD + 1]
        return Report.attack(self.model, "a crowd", rows != expected, "a user stays active whoever else comes")

    def game(self, feedback: bool) -> Factory:
        """The game with somebody who is there all the time, or while the last number was high, against nobody, at a
        promise so weak that few games show it."""
        weak = small_copy(self.model, self.ticks, guarantee=loud(self.model.guarantee))
        return lambda key: _ThereOrNot(self, self._made(key, weak), feedback)


class _ThereOrNot:
    """A mechanism for games: the first row says whether the user is there, later ones nothing."""

    columns = 1

    def __init__(self, search: ActiveSearch, mechanism: ActiveUsers, feedback: bool) -> None:
        self._search, self._mechanism, self._feedback = search, mechanism, feedback
        self._there, self._high = False, True
        self.guarantee, self.charge = mechanism.guarantee, mechanism.charge
        self.mechanism, self.horizon = mechanism.mechanism, search.ticks
        self.audited_as = type(mechanism).__name__

    def step(self, row: int) -> FloatArray:
        self._there = bool(row) if not self._mechanism.tick else self._there
        released = self._search.step(self._mechanism, int(self._there and (self._high or not self._feedback)))
        others = 4 * min(self._mechanism.tick, max(self._mechanism.windows))
        self._high = bool(released[-1] >= min(others, 4) + 1)
        return released


def _shown(acts: Acts) -> str:
    return "".join(map(str, acts))
