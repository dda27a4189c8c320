"""Noise for paths of presence with one draw that all ticks share (users-and-domains 1.5, 2.3) [R, reviewed twice].

Released is a_t + floor(e_t + Z_0/2 + 1/2): e the noise of the path process, with variance for ||R(y - 1/2)||^2 <= B_c,
and Z_0 drawn once for the life of the series. The shared draw hides whether a unit is "mostly there" or "mostly not";
what is left to hide are its paths around 1/2, which cost a quarter. In differences between ticks it cancels.

The cost is rho_1 + rho_0, for adaptive streams too: world 1 with draw z_0 - 1 and world 0 with z_0 differ by r * (y -
1/2), a path of integers, since r is even. **The centre must be known before the unit is**: no shared draw for series of
which a unit is in some, chosen late (categories), and none where units are replaced (then 4 B_c without it).

Error: factor sqrt(B_c S) + 1/2 with rho_1 : rho_0 = sqrt(B_c S) : 1/2. Pure epsilon: independent Laplace noise, T/2 at
eps_1 and one step at eps_0, with the split of least variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from evertally.bounds.tails import Spread
from evertally.counting.path_factor import FINENESS, PathFactor, path_factor
from evertally.counting.process import Budget, FloatArray, IntArray, spread_of
from evertally.counting.recursion import RecursiveProcess
from evertally.counting.runs import PathCost, Presence, best_path
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, Source, round_up
from evertally.privacy import ZCDP, PureDP

UNIT = 1 << 16  # r_0


@dataclass(frozen=True)
class PathLaws:
    """What is drawn for one series of presence: the fresh noise of each tick, before the factor, and what all ticks
    share, in halves (None: nothing)."""

    factor: PathFactor
    fresh: Law
    shared: Law | None

    def variance(self) -> float:
        """Of one released number late in a long stream, before it is rounded."""
        own = self.fresh.stddev() ** 2 * float(np.sum(self.factor.inverse() ** 2))
        return own if self.shared is None else own + self.shared.stddev() ** 2 / 4


class CentredPath(RecursiveProcess):
    """Noise of one kind of series of presence; every column has its own fresh noise and its own shared draw.

    >>> from evertally.noise import simulation
    >>> laws = active_laws(ZCDP(0.02), Presence.windows(365, 28))
    >>> noise = CentredPath(laws, horizon=365, columns=1, source=simulation(0).source("demo"))
    >>> round(noise.worst().stddev, 1), round(noise.window_spread(9, 1).stddev, 1) < 1.42 * noise.worst().stddev
    (36.3, True)
    """

    def __init__(
        self,
        laws: PathLaws,
        *,
        horizon: int | None,
        columns: int,
        source: Source,
        lane: str = "path",
        shared_lane: str = "centre",
    ) -> None:
        factor = laws.factor
        inverse: FloatArray = factor.inverse()
        super().__init__(
            factor.r, laws.fresh, inverse[:horizon], horizon=horizon, columns=columns, source=source, lane=lane
        )
        self.laws, self._shared_lane = laws, shared_lane

    def spread(self, tick: int) -> Spread:
        own, shared = super().spread(tick), self.laws.shared
        return own if shared is None else own + spread_of(shared, 0.25, 0.5)

    def window_spread(self, tick: int, window: int) -> Spread:
        # What all ticks share cancels, but for a window that begins before the first tick.
        return self.spread(tick) if window >= tick else super().window_spread(tick, window)

    def _halves(self) -> IntArray | None:
        if self.laws.shared is None:
            return None
        # One address for the life of the series, whenever it is asked: node 0 of its own lane.
        drawn: IntArray = self._source.draws(self._shared_lane, self.laws.shared, [0], self.columns)[0]
        return drawn


def centred_laws(charge: Budget, path: PathCost) -> PathLaws:
    """The laws of a centred path of cost B_c: rho_1 : rho_0 = sqrt(B_c S) : 1/2."""
    assert isinstance(charge, ZCDP)
    part = Fraction(max(1, math.floor(path.deviation * 4096)), 4096)
    fresh = charge.exact_rho * part / (part + Fraction(1, 2))
    shared = charge.exact_rho - fresh
    # More noise than needed where a huge budget asks for less than there can be.
    half = max(round_up(1 / (2 * shared)), Fraction(1, 64))
    return PathLaws(path.factor, DiscreteGaussian(round_up(path.squared / (2 * fresh))), DiscreteGaussian(half))


def plain_laws(charge: ZCDP, path: PathCost, times: int = 1) -> PathLaws:
    """The laws of a path without a shared draw, for `times` its cost."""
    return PathLaws(path.factor, DiscreteGaussian(round_up(times * path.squared / (2 * charge.exact_rho))), None)


def white_laws(charge: Budget, ticks: int, centre: bool = True, times: int = 1) -> PathLaws:
    """Independent noise for each of `ticks` numbers, each of which a unit moves by 1 or not at all: centred, or without
    a shared draw for `times` the squared norm (the l1 norm, under a pure budget) of `ticks` ones.

    A row of a retention table is one such series (2.4): `white_laws(charge, ages)`, with the shared draw of its row.
    """
    white = path_factor(FINENESS)
    if isinstance(charge, ZCDP):
        path = PathCost(0, ticks * UNIT * UNIT // (4 if centre else 1), 1.0)
        return centred_laws(charge, path) if centre else plain_laws(charge, path, times)
    if not centre:
        return PathLaws(white, DiscreteLaplace(round_up(Fraction(times * ticks * UNIT) / charge.exact_epsilon)), None)
    # Least variance of 2 (T/(2 eps_1))^2 + 2 (1/(2 eps_0))^2 for a given sum: eps_1 : eps_0 = T^(2/3) : 1.
    part = Fraction(_cube_root(ticks * ticks << 24), 256)
    fresh = charge.exact_epsilon * part / (part + 1)
    shared = charge.exact_epsilon - fresh
    return PathLaws(
        white,
        DiscreteLaplace(round_up(Fraction(ticks * UNIT, 2) / fresh)),
        DiscreteLaplace(max(round_up(1 / shared), Fraction(1, 8))),
    )


def _cube_root(n: int) -> int:
    """The largest integer whose cube is at most n: the same on every machine."""
    low, high = 0, 1 << (n.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= n else (low, middle)
    return low


def joined(fresh: IntArray, shared: IntArray | int, unit: int = UNIT) -> IntArray:
    """floor(Z/unit + Z_0/2 + 1/2) for independent noise: what is added to a number, in integers.

    >>> joined(np.array([UNIT // 2, -UNIT, 0]), 1).tolist()
    [1, 0, 1]
    """
    noise: IntArray = (2 * fresh + unit * (np.asarray(shared) + 1)) // (2 * unit)
    return noise


def active_laws(
    charge: Budget,
    presence: Presence,
    *,
    relation: Literal["add_remove", "replace"] = "add_remove",
    centre: bool = True,
    times: int = 1,
) -> PathLaws:
    """The laws that hide one unit with the paths of `presence`, the better of centred and not.

    `centre=False` where a unit is in some of several series, and a shared draw is not allowed; `times`: how many such
    paths a unit may have there. Replaced units: 4 B, without a shared draw (triangle inequality around the common
    centre).
    """
    T, replaced = presence.horizon, relation == "replace"
    if isinstance(charge, PureDP):
        return _pure(charge, presence, replaced, centre and times == 1, times)
    assert isinstance(charge, ZCDP)
    plain = best_path(presence, False)
    centre = centre and T is not None and times == 1
    if replaced:
        # Two units in the *same* series have a common centre; in two series they have none.
        both = [plain, best_path(presence, True)] if centre else [plain]
        return plain_laws(charge, min(both, key=lambda path: path.deviation), 4 * times)
    if not centre:
        return plain_laws(charge, plain, times)
    around = best_path(presence, True)
    return centred_laws(charge, around) if around.deviation + 0.5 < plain.deviation else plain_laws(charge, plain)


def _pure(charge: PureDP, presence: Presence, replaced: bool, centre: bool, times: int) -> PathLaws:
    """Independent Laplace noise: all ticks around the centre, or as many ones as a path has."""
    T, most = presence.horizon, presence.most
    ones = min(x for x in (T, most) if x is not None)
    if replaced:  # |y - y'| <= |y| + |y'|; of two paths in the same series T at most
        both = 2 * times * ones
        return white_laws(charge, min(T, both) if T is not None and centre else both, centre=False)
    plain = white_laws(charge, ones, centre=False, times=times)
    if T is None or not centre:
        return plain
    around = white_laws(charge, T)
    return min(plain, around, key=PathLaws.variance)
