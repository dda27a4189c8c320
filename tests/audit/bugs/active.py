"""Bugs in active users: users-and-domains 10."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.counting import path_factor, runs
from evertally.counting.centred import CentredPath
from evertally.counting.recursion import RecursiveProcess
from evertally.counting.runs import Presence
from evertally.encode.user_table import UserTable
from evertally.users.active_rule import ActiveRule


@plant("daily active users, all short streams")
def shared_draw_anew() -> Bug:
    """the shared draw of active users drawn anew at every tick (users-and-domains 10, bug 3: once for life)"""

    def halves(self: Any) -> Any:
        return self._source.draws(self._shared_lane, self.laws.shared, [self.tick], self.columns)[0]

    return replaced(CentredPath, _halves=halves)


@plant("daily active users, all short streams")
def shared_draw_left_out() -> Bug:
    """the shared draw of active users left out, with the variance of the centred plan (users-and-domains 10, bug 4)"""
    return replaced(CentredPath, _halves=lambda self: None)


@plant("monthly active users who come and go")
def early_expiry() -> Bug:
    """users expire before their window is over (users-and-domains 10, bug 5, and trap 6: runs shorter than charged)"""

    def counted(self: Any, seen: Any, tick: int) -> Any:
        short = [1 for _ in self._windows]
        return np.stack([seen[np.arange(tick - w + 1, tick + 1) % self._longest].sum(axis=0) for w in short])

    return replaced(ActiveRule, _counted=counted)


@plant("active users of one block, put away and restored")
def recursion_lost() -> Bug:
    """the recursion of path noise lost at restarts (users-and-domains 10, bug 15: it is part of the snapshot)"""
    original = RecursiveProcess.recall

    def recall(self: Any, tick: int, memory: bytes) -> None:
        original(self, tick, bytes(len(memory)))

    return replaced(RecursiveProcess, recall=recall)


@plant("a user who stays while a crowd comes")
def evicted() -> Bug:
    """the table of active users evicts the least recent ones (users-and-domains 10, bug 18: grows with returns)"""
    original = ActiveRule.admit

    def admit(self: Any, tick: Any) -> Any:
        changes = original(self, tick)
        if len(self.users) > 100:
            for t in range(tick.tick - self._longest + 1, tick.tick):
                changes = changes - self._seen[t % self._longest].sum()
                self._seen[t % self._longest] = 0
            self.users = UserTable(fields=self.users.fields)
        return changes

    return replaced(ActiveRule, admit=admit)


@plant("daily active users, all short streams")
def half_the_horizon() -> Bug:
    """paths of active users charged for half of the horizon (users-and-domains 9, trap 20: T is part of B_c)"""
    original = Presence.windows.__func__  # type: ignore[attr-defined]

    def windows(cls: Any, horizon: int, window: int, **options: Any) -> Presence:
        found: Presence = original(cls, (horizon + 1) // 2, window, **options)
        return found

    return replaced(Presence, windows=classmethod(windows))


@plant("the cost of one run, in integers")
def costs_of_real_coefficients() -> Bug:
    """runs charged by real coefficients where rounded ones are used (users-and-domains 10, bug 17: near 1)"""
    original = path_factor._coefficients

    def factor(n: int) -> path_factor.PathFactor:
        k = np.arange(1, 4000)
        ratio = 1 - n / path_factor.FINENESS
        real = np.concatenate([[1.0], -np.cumprod((2 * k - 1) / (2 * k) * ratio) / (2 * k - 1)]) * 2.0**16
        r = original(path_factor.FINENESS - n)
        own = [round(float(real[: real.size - m] @ real[m:])) for m in range(len(r))]
        return path_factor.PathFactor(r, tuple(own), min(60_000, 40 * path_factor.FINENESS // n + 3000))

    return replaced(runs, path_factor=functools.lru_cache(factor))


@plant("the cost of one run, in integers")
def costs_of_the_last_run() -> Bug:
    """runs charged as if they lasted until the horizon (users-and-domains 10, bug 17: one that ends before costs
    more)"""

    def cost(self: path_factor.PathFactor, lengths: Any) -> Any:
        return np.array([self.always(int(length)) for length in lengths.ravel()]).reshape(lengths.shape)

    return replaced(path_factor.PathFactor, costs=cost)


@plant("active users by category, all short streams")
def centred_categories() -> Bug:
    """active users by category charged around a centre without its draw (users-and-domains 1.5: not for categories)"""
    from evertally.counting import centred
    from evertally.users import active_noise

    def laws(charge: Any, presence: Any, **options: Any) -> Any:
        plan = centred.active_laws(charge, presence)
        return centred.PathLaws(plan.factor, plan.fresh, None)

    return replaced(active_noise, active_laws=laws)
