"""Retention against a plain model, its golden values, exact small games, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.retention_table import Cells
from evertally.users.white import White

Table = dict[int, list[int]]


def retained(ticks: Sequence[Sequence[Any]], period: int, ages: int) -> list[Table]:
    """The table after each tick, by sets."""
    active: dict[int, set[str]] = {}
    cohort: dict[str, int] = {}
    seen = []
    for tick, users in enumerate(ticks, start=1):
        now = (tick - 1) // period + 1
        for user in users:
            if isinstance(user, str):
                cohort.setdefault(user, now)
                active.setdefault(now, set()).add(user)
        over = tick // period
        seen.append(
            {
                c: [sum(cohort[user] == c for user in active.get(c + a, ())) for a in range(min(ages, over + 1 - c))]
                for c in range(1, over + 1)
            }
        )
    return seen


def made(period: int = 2, ages: int = 3, horizon: int = 11, **options: Any) -> et.Retention:
    given: dict[str, Any] = {"guarantee": ZCDP(0.5), "key": ZeroNoise()} | options
    return et.Retention(period=period, ages=ages, horizon=horizon, **given)


@pytest.mark.parametrize("seed", range(6))
def test_without_noise_it_is_the_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    period, ages, horizon = 1 + seed % 3, 1 + seed // 2, 11
    odd: list[Any] = [None, ["a", "b"], 3.5, float("nan"), ""]
    ticks: list[list[Any]] = [
        [*(f"u{n}" for n in rng.integers(0, 9, rng.integers(0, 5))), *([odd[seed % 2]] if rng.random() < 0.3 else [])]
        for _ in range(horizon)
    ]
    truth = retained(ticks, period, ages)
    whole = made(period, ages, horizon)
    assert whole.run(ticks) == truth
    part = made(period, ages, horizon)
    for tick, users in enumerate(ticks):
        assert part.step_events(users).value == truth[tick]
        if rng.random() < 0.5:
            part = et.restore(part.snapshot(), key=ZeroNoise())
    flat = made(period, ages, horizon, by_cell=True)
    assert flat.run(ticks)[-1] == {
        f"cohort {c}, age {a}": number for c, row in truth[-1].items() for a, number in enumerate(row)
    }


def test_numbers_are_drawn_once_and_shown_again() -> None:
    key = et.simulation(3)
    weeks = made(period=3, ages=2, horizon=9, key=key)
    tables = weeks.run([["a"]] * 9)
    assert tables[:2] == [{}, {}]
    assert tables[2] == tables[3] == tables[4]
    assert tables[5] == tables[6] == tables[7]
    assert tables[5][1][:1] == tables[2][1]
    assert tables[8][1] == tables[5][1]
    back = et.restore(weeks.snapshot(), key=key, allow_copy=True)
    assert back._kept.played.recent.tolist() == weeks._kept.played.recent.tolist()


def test_shape_is_public() -> None:
    """Which cells there are, and their order, follow from numbers alone."""
    for ticks in ([[]] * 6, [["a", "b"]] * 6):
        tables = made(period=2, ages=2, horizon=6).run(ticks)
        assert [{c: len(row) for c, row in table.items()} for table in tables] == [
            {},
            {1: 1},
            {1: 1},
            {1: 2, 2: 1},
            {1: 2, 2: 1},
            {1: 2, 2: 2, 3: 1},
        ]


def test_full_tables_have_tick_cell_and_interval() -> None:
    found = made(period=2, ages=2, horizon=4, key=et.simulation(1)).run([["a"], ["b"], ["a"], []], full=True)
    assert found.column("tick").to_pylist() == [2, 3, 4, 4, 4]
    assert found.column("column").to_pylist()[-3:] == ["cohort 1, age 0", "cohort 1, age 1", "cohort 2, age 0"]
    lower, value, upper = (found[name].to_pylist() for name in ("lower", "value", "upper"))
    assert all(low <= x <= high for low, x, high in zip(lower, value, upper, strict=True))


@pytest.mark.parametrize("ages", [1, 4, 12, 52])
def test_golden_factors(ages: int) -> None:
    """users-and-domains 2.4: (sqrt A + 1)/2 with a shared draw for each row, sqrt A without; 2A replaced."""
    rho = 1e-4  # so much noise that rounding does not show
    factor = math.sqrt(2 * rho)
    common: dict[str, Any] = {"guarantee": ZCDP(rho), "horizon": 7 * 60, "period": 7, "ages": ages}
    alone = made(mechanism="independent", **common)
    assert alone.stddev(420) * factor == pytest.approx(math.sqrt(ages), rel=1e-3)
    centred = made(mechanism="centred", **common)
    assert centred.stddev(420) * factor == pytest.approx((math.sqrt(ages) + 1) / 2, rel=1e-3)
    replaced = made(neighbours="replace", **common)
    assert replaced.stddev(420) * factor == pytest.approx(math.sqrt(2 * ages), rel=1e-3)
    assert replaced.mechanism == "independent"
    assert made(**common).mechanism == ("centred" if ages > 1 else made(**common).mechanism)


def test_a_year_of_twelve_ages() -> None:
    assert round((math.sqrt(12) + 1) / 2, 2) == 2.23
    year = made(period=7, ages=12, horizon=364, guarantee=ZCDP(1e-4))
    assert round(year.stddev(364) * math.sqrt(2e-4), 2) == 2.23


def test_pure_budgets_take_the_better_way() -> None:
    assert made(ages=2, guarantee=PureDP(1.0)).mechanism == "independent"
    assert made(ages=5, guarantee=PureDP(1.0)).mechanism == "centred"
    assert made(ages=5, guarantee=ApproxDP(1.0, 1e-6)).charge != ApproxDP(1.0, 1e-6)


def test_noise_has_the_law_that_is_stated() -> None:
    """Variance of a cell, and of the difference of two cells of a row, which does not carry what they share."""
    made_of = made(1, 4, 1500, guarantee=ZCDP(0.02), mechanism="centred", key=et.simulation(11))
    (table,) = made_of.run([[]] * 1500, at=[1500])
    rows = np.array([row for row in table.values() if len(row) == 4], dtype=np.float64)
    assert rows.shape == (1497, 4)
    stated = made_of.stddev(1500)
    assert stated is not None
    # 1497 rows of four cells: a mean of squares is off by less than six times sqrt(2/1497).
    assert np.mean(rows**2) == pytest.approx(stated**2, rel=6 * math.sqrt(2 / 1497))
    white = made_of._engine.inner.noise.white  # type: ignore[attr-defined]
    own = 2 * (white.own.stddev() / white.unit) ** 2
    assert np.mean((rows[:, 0] - rows[:, 1]) ** 2) == pytest.approx(own, rel=6 * math.sqrt(2 / 1497) + 1 / (6 * own))
    assert abs(np.mean(rows)) < 6 * stated / math.sqrt(1497)  # halves are rounded up, and it does not show


def test_one_user_is_in_one_row_and_the_table_never_forgets() -> None:
    """All streams of one user, T = 6, period 1: at most A cells, all of one row, each moved by 1 (trap 16)."""
    cells = Cells(1, 6, 3)
    rows = {place: c for place, (c, _) in enumerate(cells.of)}
    others = [["bob"] if t % 2 else [] for t in range(6)]
    base = made(1, 3, 6)
    base.run(others)
    without = base._kept.played.recent[-1]
    for active in product([0, 1], repeat=6):
        twin = made(1, 3, 6)
        twin.run([[*others[t], *(["ann"] * 3 if there else [])] for t, there in enumerate(active)])
        moved = (twin._kept.played.recent[-1] - without)[1:]
        places = np.flatnonzero(moved).tolist()
        assert set(moved.tolist()) <= {0, 1}
        assert len(places) <= 3
        assert len({rows[place] for place in places}) <= 1
        assert bool(places) == any(active)


_REACH, _SHOWN = 24, 20  # of draws, and of released numbers: what is beyond weighs less than 1e-30


def _law(variance: float) -> np.ndarray:
    k = np.arange(-_REACH, _REACH + 1)
    mass = np.exp(-(k**2) / (2 * variance))
    return np.asarray(mass / mass.sum())


def _small(charge: ZCDP, ages: int) -> White:
    """The noise of the product on the grid of r = 2, on which it can be enumerated."""
    white = White.of(charge, ages, shared=True)
    coarse = DiscreteGaussian(white.own.sigma_squared * 4 / white.unit**2)  # type: ignore[attr-defined]
    return White(coarse, white.shared, unit=2)


def _joint(white: White, moved: Sequence[int]) -> np.ndarray:
    """The exact law of the release of one row whose true cells are `moved`."""
    assert white.shared is not None
    own, shared = (_law(float(law.sigma_squared)) for law in (white.own, white.shared))  # type: ignore[attr-defined]
    draws = np.arange(-_REACH, _REACH + 1)
    cells = []
    for true in moved:
        cell = np.zeros((len(draws), 2 * _SHOWN + 1))
        for i, z0 in enumerate(draws):
            shown = white.noise(draws, np.full(len(draws), z0)) + true + _SHOWN
            inside = (shown >= 0) & (shown <= 2 * _SHOWN)
            np.add.at(cell[i], shown[inside], own[inside])
        cells.append(cell)
    letters = "abc"[: len(moved)]
    parts = ",".join(f"z{letter}" for letter in letters)
    return np.asarray(np.einsum(f"z,{parts}->{letters}", shared, *cells))


def _renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    both = (p > 1e-60) & (q > 1e-60)
    return math.log(float(np.sum(p[both] ** order * q[both] ** (1 - order)))) / (order - 1)


@pytest.mark.parametrize("moved", [(1, 1), (1, 0), (0, 1), (1, 1, 0), (1, 1, 1)])
def test_exact_games_of_one_row(moved: tuple[int, ...]) -> None:
    """11.1: exact Renyi divergences of the release of a row, A = 2, 3: at most 1.000 of the claim (with r = 2)."""
    rho = 0.5
    white = _small(ZCDP(rho), len(moved))
    user, nobody = _joint(white, moved), _joint(white, (0,) * len(moved))
    assert user.sum() == pytest.approx(1)
    assert nobody.sum() == pytest.approx(1)
    found = [_renyi(*pair, order) / order for order in (1.5, 2.0, 4.0) for pair in ((user, nobody), (nobody, user))]
    assert 0.3 * rho < max(found) <= 1.00001 * rho


@pytest.mark.parametrize("ages", [2, 3])
def test_exact_games_against_every_strategy(ages: int) -> None:
    """11.1: activity is chosen after each release of the row; the supremum over all strategies, by recursion."""
    rho, order = 0.5, 2.0
    white = _small(ZCDP(rho), ages)
    nobody = _joint(white, (0,) * ages)

    def best(path: tuple[int, ...], user_first: bool) -> np.ndarray:
        """The largest moment from here on, for each transcript so far."""
        if len(path) < ages:
            ways = [best((*path, there), user_first).sum(axis=-1) for there in (0, 1)]
            return np.asarray(np.maximum(*ways))
        user = _joint(white, path)
        p, q = (user, nobody) if user_first else (nobody, user)
        both = (p > 1e-60) & (q > 1e-60)
        moment = np.zeros_like(p)
        moment[both] = p[both] ** order * q[both] ** (1 - order)
        return moment

    found = [math.log(float(best((), first))) / (order - 1) for first in (True, False)]
    assert 0.5 * order * rho < max(found) <= 1.00001 * order * rho


def test_one_draw_for_all_rows_would_not_do() -> None:
    """Planted bug 25 in closed form: user in the second of two rows, A = 2, rho_1 = 2 rho_0: 1.60 of the claim."""
    own, shared = 2 / (2 * 2 / 3), 1 / (2 * 1 / 3)  # variances for rho = 1, in units of the draws (r = 2)
    cell, draw = own / 4, shared / 4
    y = np.array([0, 0, 1, 1])
    together = cell * np.eye(4) + draw * np.ones((4, 4))
    rows = cell * np.eye(4) + draw * np.kron(np.eye(2), np.ones((2, 2)))
    lost = [float(y @ np.linalg.solve(cov, y)) / 2 for cov in (together, rows)]
    assert lost[0] == pytest.approx(1.60, abs=0.01)
    assert lost[1] <= 1


def test_replaced_users_are_in_two_rows() -> None:
    """Planted bug 26: charged 4 B_c = A, two users in two rows, always active, lose twice the claim; 2 A is right."""
    y = np.array([1, 1, -1, -1])
    charged_once = White.of(ZCDP(1), 2, shared=False).own.sigma_squared  # type: ignore[attr-defined]
    taken = made(ages=2, horizon=8, neighbours="replace", guarantee=ZCDP(1), key=et.simulation(1))
    right = taken._engine.inner.noise.white.own.sigma_squared  # type: ignore[attr-defined]
    assert [float(y @ y / (2 * variance)) for variance in (charged_once, right)] == [2, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "event"}, "protects users"),
        ({"max_events_per_user": 3}, "leave max_events_per_user out"),
        ({"neighbours": "independent", "guarantee": ZCDP(0.5, adversary="oblivious")}, "add_remove"),
        ({"horizon": None}, "declare the horizon"),
        ({"period": 12}, "not over within the horizon"),
        ({"period": 0}, "period"),
        ({"ages": 0}, "ages"),
        ({"mechanism": "tree"}, "centred"),
        ({"mechanism": "centred", "neighbours": "replace"}, "shared draw"),
        ({"period": 1, "horizon": 10**5, "ages": 10**4}, "cells"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        made(**options)


def test_totals_are_refused() -> None:
    with pytest.raises(TypeError, match="step_events"):
        made().step(3)
