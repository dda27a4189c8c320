"""The golden factors of users-and-domains as mechanisms of this library: what benchmarks/users.py measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import evertally as et
from evertally.counting.path_factor import FINENESS, path_factor
from evertally.counting.runs import Presence, centred

UNIT = 100  # 1/sqrt(2 rho): rounding to integers adds next to nothing
RHO = 1 / (2 * UNIT**2)

Make = Callable[..., Any]  # of a key, and perhaps a horizon
YEAR, HOURS = 365, 8760


@dataclass(frozen=True)
class Case:
    """One figure of the specification, and how to make the mechanism that has it.

    `by_golden`: the same with the specification's own parameters, where the library looks for better ones. `group`: how
    often a user can change what is counted. `anew`: the variance of noise that is drawn anew for each number (or for
    each tick, and added up, if that is less). `played`: a horizon for Monte Carlo, where the whole one takes too long.
    """

    section: str
    what: str
    golden: float
    make: Make
    horizon: int
    group: int | None = None
    anew: int | None = None
    played: int | None = None
    by_golden: Callable[[], float] | None = None
    measurable: bool = True  # not so where a release is a quantile alone, and no number with a stated deviation
    once: bool = False  # every number is about another time, so that a single event is in one of them

    def made(self, key: Any, horizon: int | None = None) -> Any:
        return self.make(guarantee=et.ZCDP(RHO), horizon=horizon or self.horizon, key=key)


def at_ratio(T: int, W: int, ratio: float) -> float:
    """sqrt(B_c S) + 1/2 for a given lambda, in the integers of the library."""
    found = path_factor(round((1 - ratio) * FINENESS))
    norm = centred(found, Presence.windows(T, W))
    energy = float(np.sum(found.inverse()[:T] ** 2))
    return math.sqrt(norm * energy) + 0.5


def factor(made: Any) -> float:
    """The largest standard deviation of a number, in 1/sqrt(2 rho)."""
    worst = made.rank_stddev(made.horizon) if isinstance(made, et.ValueQuantile) else made.worst_stddev()
    if worst is None:
        raise TypeError(f"{type(made).__name__} states no standard deviation")
    return float(worst) / UNIT


def counted(T: int) -> list[Case]:
    """2.1, 2.2: different users."""
    by = [f"category {i}" for i in range(40)]
    distinct = partial(et.DistinctUsers, mechanism="sqrt")
    cases = [Case("2.1", "different users", 3.71, distinct, T, None, T, played=32)]
    for m, golden in ((4, 7.43), (10, 11.74)):
        what = f"by category, {m} a user"
        make = partial(distinct, by=by, max_categories=m)
        cases.append(Case("2.2", what, golden, make, T, m, m * T, played=32))
    return cases


def active() -> list[Case]:
    """2.3: the whole table, one draw in the centre; several windows; blocks of a user's life."""
    table = [
        *[(30, 7, 1 / 2, 3.161), (YEAR, 1, 0, 10.052), (YEAR, 7, 1 / 2, 9.338), (YEAR, 28, 7 / 8, 7.275)],
        *[(YEAR, 90, 15 / 16, 5.458), (HOURS, 24, 27 / 32, 33.500), (HOURS, 168, 31 / 32, 19.266)],
        (HOURS, 672, 127 / 128, 12.552),
    ]
    cases = []
    for T, W, ratio, golden in table:
        comings = 2 * math.ceil(T / (W + 1))  # and goings
        make, own = partial(et.ActiveUsers, [W]), partial(at_ratio, T, W, ratio)
        cases.append(Case("2.3", f"active, T = {T}, W = {W}", golden, make, T, comings, T, min(T, 32), own))
    three = partial(et.ActiveUsers, [1, 7, 28])
    cases.append(Case("2.3", "active, T = 365, W = 1, 7, 28", 15.53, three, YEAR, None, 3 * YEAR, played=32))
    for W, golden in ((7, 1.90), (28, 2.52)):
        make = partial(et.ActiveUsers, [W], unit="user-period", period=1)
        cases.append(Case("2.3", f"active, one tick of a user, W = {W}", golden, make, YEAR, None, W, played=32))
    return cases


def periods() -> list[Case]:
    """2.4: users of days, the day that runs, and retention."""
    day = partial(et.PeriodUsers, period=24)
    running = partial(et.PeriodUsers, period=24, so_far=True)
    cohorts = partial(et.Retention, period=7, ages=12)
    return [
        Case("2.4", "users of each day", (math.sqrt(365) + 1) / 2, day, HOURS, 365, 365, played=72, once=True),
        Case("2.4", "so far today, every hour", 32.45, running, HOURS, None, HOURS, played=48),
        Case("2.4", "retention, 12 ages", 2.23, cohorts, 364, 12, 12, played=28, once=True),
    ]


def present() -> list[Case]:
    """2.5: items that come and go."""
    T = 4096
    goldens: Sequence[tuple[int | None, float]] = [
        *[(2, 4.87), (8, 7.65), (32, 12.19), (128, 18.8), (512, 27.0)],
        (None, 32.5),
    ]
    cases = []
    for flips, golden in goldens:
        what = f"present items, {'any number of' if flips is None else flips} flips"
        cases.append(Case("2.5", what, golden, partial(et.PresentItems, max_flips=flips), T, flips, T, played=32))
    return cases


def separated() -> list[Case]:
    """6: a counter of events, k ticks of a user, b apart: the square root, and the best band."""
    table = [
        *[(365, 12, 1, 29.14, None), (365, 12, 30, 18.23, 16.21), (365, 52, 7, 72.62, 57.75)],
        *[(365, 365, 1, 500.0, 365.0), (1024, 10, 100, 16.74, 15.11), (8760, 12, 720, 22.25, 19.86)],
        *[(8760, 52, 168, 85.45, 65.47), (8760, 365, 24, 581.3, 391.0)],
    ]
    cases = []
    for T, k, b, *goldens in table:
        rule = {"unit": "user", "max_ticks_per_user": k, "min_separation": b}
        for process, golden in zip(("sqrt", "banded"), goldens, strict=True):
            if golden is not None:
                make = partial(et.Counter, mechanism=process, **rule)
                what = f"T = {T}, {k} ticks of a user, {b} apart, {process}"
                cases.append(Case("6", what, golden, make, T, k, k * T, min(T, 48)))
    return cases


def values() -> list[Case]:
    """4, 5.1: along a domain (one tick), both axes at once, a tree of 32 bits, medians of sketches."""
    root = partial(et.ValueQuantile, mechanism="sqrt")
    cases = []
    for U, golden in ((64, 2.3888), (256, 2.8310), (1024, 3.2726), (2048, 3.4932)):
        make = partial(root, edges=list(range(U + 1)))
        cases.append(Case("4", f"quantiles, {U} cells, one tick", golden, make, 1, None, U))
    both = partial(root, edges=list(range(2049)))
    cases.append(Case("4", "quantiles, 2048 cells, T = 1440", 11.81, both, 1440, None, 2048 * 1440, played=1))
    deep = partial(root, bits=32, fanout=256)
    cases.append(Case("4", "quantiles, 32 bits, one tick", 11.32, deep, 1, measurable=False))
    for rows, golden in ((1, 1.0), (3, 1.160), (5, 1.198), (7, 1.214), (9, 1.223)):
        make = partial(et.CountSketch, rows=rows, width=64, watch=["a label"], mechanism="sqrt")
        cases.append(Case("5.1", f"sketch, {rows} rows, one tick", golden, make, 1))
    return cases


def cases() -> list[Case]:
    return [*counted(4096), *active(), *periods(), *present(), *separated(), *values()]
