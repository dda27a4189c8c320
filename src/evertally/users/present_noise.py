"""Noise for what comes and goes: the path process, or under a pure budget any process for running sums of changes.

users-and-domains 2.5, 1.4, 1.5. Public numbers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evertally.counting.centred import CentredPath, PathLaws, active_laws
from evertally.counting.choose import Choice, budgets, build, rank
from evertally.counting.process import Budget, NoiseProcess, path_bound
from evertally.counting.processes import PROCESSES, Setting
from evertally.counting.runs import Presence
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import Change, Guarantee, PureDP
from evertally.ranking import Ranking, Way

PATH = "path"


@dataclass(frozen=True)
class Presences:
    """How one step of the neighbouring relation moves what is present: an item with at most `flips` changes, or one
    record (`single`: one run, of either sign, for which there is no centre); `replaced`: another one in its place."""

    horizon: int
    flips: int | None
    single: bool = False
    replaced: bool = False

    @property
    def change(self) -> Change:
        """In the rows of changes: each flip is a 1 or a -1."""
        flips = 2 if self.single else min(self.horizon, self.flips or self.horizon)
        # Two items whose flips meet in a tick move it by 2.
        return Change(2 * flips, 4 * flips, 2) if self.replaced else Change(flips, flips, 1)

    def ways(self, guarantee: Guarantee, mechanism: str) -> Ranking:
        """Every way to make the noise, with each budget that keeps the promise."""
        if mechanism not in ("auto", PATH, *PROCESSES):
            raise ConfigurationError(f'mechanism is "auto", "{PATH}" or a process for sums, not {mechanism!r}')
        found: list[Way] = []
        for charge in budgets(guarantee):
            if mechanism in ("auto", PATH):
                found.append(self._path(charge))
            if mechanism != PATH:
                found += self._sums(charge, mechanism)
        return Ranking(found)

    def _path(self, charge: Budget) -> Way:
        try:
            model = self.process(PATH, charge)(ZeroNoise().source())
        except ConfigurationError as refusal:
            return Way(name=PATH, charge=charge, refused=f'mechanism "{PATH}": {refusal}', nearly=True)
        worst = model.worst().stddev
        return Way(
            name=PATH,
            charge=charge,
            score=worst,
            expect=lambda: path_bound(model, 0.5),
            promise=lambda: path_bound(model, 0.05),
            memory=8 * len(self.laws(charge).factor.r),
            survey=lambda: (worst, worst),
        )

    def _sums(self, charge: Budget, mechanism: str) -> list[Way]:
        if not isinstance(charge, PureDP):
            # The squares of changes that come and go depend on the process; paths cost less than any of them.
            reason = f'mechanism "{mechanism}" is for pure budgets here; with this one use "{PATH}"'
            return [] if mechanism == "auto" else [Way(name=mechanism, charge=charge, refused=reason)]
        return list(rank(charge, self._setting, mechanism))

    @property
    def _setting(self) -> Setting:
        return Setting(self.change, self.horizon, 1, 2**30, "formula")

    def laws(self, charge: Budget) -> PathLaws:
        """Those of the path process."""
        if self.single:
            return active_laws(charge, Presence(self.horizon, 1), centre=False)
        flips = self.horizon if self.flips is None else self.flips
        presence = Presence.flips(self.horizon, flips)
        return active_laws(charge, presence, relation="replace" if self.replaced else "add_remove")

    def process(self, name: str, charge: Any) -> Callable[[Source], NoiseProcess]:
        """What makes the noise of a way."""
        if name == PATH:
            laws, horizon = self.laws(charge), self.horizon
            return lambda source: CentredPath(laws, horizon=horizon, columns=1, source=source)
        setting = self._setting
        return lambda source: build(Choice(name, charge), setting, source)
