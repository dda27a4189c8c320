"""Which noise active users take, and how windows share a budget: from public numbers (users-and-domains 2.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from evertally.counting.centred import CentredPath, active_laws
from evertally.counting.choose import Choice, budgets, build, misfit, worst_of
from evertally.counting.process import Budget, NoiseProcess, path_bound
from evertally.counting.processes import COMPARED_AT, OURS, PROCESSES, Setting
from evertally.counting.runs import Presence
from evertally.counting.side_by_side import SideBySide
from evertally.counting.survey import survey
from evertally.errors import ConfigurationError
from evertally.noise import Source, ZeroNoise
from evertally.privacy import ZCDP, Change, Guarantee, Neighbours, PureDP
from evertally.ranking import Ranking, Way

PATH, FRESH = "path", "fresh"
_PURE = tuple(name for name in OURS if PROCESSES[name].pure)  # of comings and goings, added up


@dataclass(frozen=True)
class Question:
    """What is counted, of whom, and what must not be told apart."""

    windows: tuple[int, ...]
    horizon: int | None
    unit: str
    period: int | None
    active: int | None  # how many active ticks of a user count
    width: int  # categories
    most: int  # categories of a user; 0 where there are none
    relation: Neighbours
    memory_limit: int

    def presence(self, window: int) -> Presence:
        """The paths that one unit can have in a window."""
        if self.unit == "user":
            assert self.horizon is not None
            return Presence.windows(self.horizon, window, active=self.active)
        return Presence.block(self.period or 1, window, self.horizon)

    def change(self) -> Change:
        """What one unit moves the *changes* of all windows by: comings and goings, each by one (1.2)."""
        units = 2 if self.relation is Neighbours.REPLACE else 1
        entries = [2 * units * self.presence(window).runs for window in self.windows]  # in one column
        columns = max(1, self.most)
        return Change(columns * sum(entries), columns * sum(n * n for n in entries), max(entries))

    def setting(self) -> Setting:
        """For the processes of counters, which add changes up. Pure budgets alone, where only l1 matters."""
        return Setting(self.change(), self.horizon, self.width * len(self.windows), self.memory_limit)


@dataclass(frozen=True)
class Noise:
    """What was chosen: a name, what it pays, and how to make it."""

    name: str
    charge: Budget
    make: Callable[[Source], NoiseProcess]
    ways: Ranking


def choose_noise(guarantee: Guarantee, asked: Question, mechanism: str) -> Noise:
    """The noise of least standard deviation, or the one that was named."""
    names = {PATH, FRESH, *_PURE}
    if mechanism != "auto" and mechanism not in names:
        raise ConfigurationError(f'there is no mechanism {mechanism!r} here; "auto", "{PATH}" and "{FRESH}" are')
    charges = budgets(guarantee)
    ways = Ranking(
        _way(name, charge, asked)
        for charge in charges
        for name in ([PATH] if isinstance(charge, ZCDP) else [FRESH, *_PURE])
        if mechanism in ("auto", name)
    )
    if not len(ways):
        pure = isinstance(charges[0], PureDP)
        say = f'Gaussian noise is never pure: take "{FRESH}"' if pure else f'it has Laplace noise: take "{PATH}"'
        raise ConfigurationError(f'mechanism "{mechanism}": {say}, or "auto"')
    name, charge = ways.best.name, ways.best.charge
    assert isinstance(charge, PureDP | ZCDP)
    return Noise(name, charge, lambda source: made(name, charge, asked, source), ways)


def _way(name: str, charge: Budget, asked: Question) -> Way:
    reason = misfit(name, charge, asked.setting()) if name in OURS else None
    if reason is None:
        try:
            model = made(name, charge, asked, ZeroNoise().source())
        except ConfigurationError as refusal:  # a noise scale out of range, a horizon too long
            reason = f'mechanism "{name}": {refusal}'
    if reason is not None:
        return Way(name=name, charge=charge, refused=reason)
    at = COMPARED_AT if asked.horizon is None else None
    return Way(
        name=name,
        charge=charge,
        score=worst_of(model),
        expect=lambda: path_bound(model, 0.5, at),
        promise=lambda: path_bound(model, 0.05, at),
        memory=PROCESSES[name].memory(asked.setting()) if name in OURS else _bytes(model),
        survey=lambda: survey(model, asked.horizon or COMPARED_AT),
    )


def made(name: str, charge: Budget, asked: Question, source: Source) -> NoiseProcess:
    """The noise of all windows: side by side, each with its share. A process of counters has one law for all of them,
    which shares a pure budget in the same way."""
    if name in OURS:
        return build(Choice(name, charge), asked.setting(), source)
    parts = zip(asked.windows, shares(charge, asked), strict=True)
    return SideBySide([_part(share, window, asked, source) for window, share in parts])


def _bytes(model: NoiseProcess) -> int:
    assert isinstance(model, SideBySide)
    return sum(8 * part.columns * len(part.coefficients) for part in model.parts if isinstance(part, CentredPath))


def shares(charge: Budget, asked: Question) -> list[Budget]:
    """One budget for each window, such that all have the same error: rho in the ratio of squared factors, epsilon in
    the ratio of the factors. Exact fractions, that add up."""
    if len(asked.windows) == 1:
        return [charge]
    one: Budget = ZCDP(Fraction(1, 1000)) if isinstance(charge, ZCDP) else PureDP(Fraction(1, 1000))
    nothing = ZeroNoise().source()
    spreads = [worst_of(_part(one, window, asked, nothing)) for window in asked.windows]
    sizes = [spread**2 if isinstance(charge, ZCDP) else spread for spread in spreads]
    weights = [max(1, math.floor(size / max(sizes) * 2**20)) for size in sizes]
    parts = [Fraction(weight, sum(weights)) for weight in weights]
    if isinstance(charge, ZCDP):
        return [ZCDP(charge.exact_rho * part, adversary=charge.adversary) for part in parts]
    return [PureDP(charge.exact_epsilon * part, adversary=charge.adversary) for part in parts]


def _part(charge: Budget, window: int, asked: Question, source: Source) -> CentredPath:
    laws = active_laws(
        charge,
        asked.presence(window),
        relation="replace" if asked.relation is Neighbours.REPLACE else "add_remove",
        centre=not asked.most and asked.unit == "user",
        times=max(1, asked.most),
    )
    return CentredPath(
        laws,
        horizon=asked.horizon,
        columns=asked.width,
        source=source,
        lane=f"path {window}",
        shared_lane=f"centre {window}",
    )
