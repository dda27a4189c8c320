"""Users of periods against a plain model, golden values, all short paths, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.counting.path_factor import FINENESS
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.day_factor import DayFactor, best_day, day_factor
from evertally.users.period_noise import DayMoves, DayNoise
from evertally.users.white import CENTRED


def counted(ticks: Sequence[Sequence[Any]], period: int, so_far: bool, most: int | None) -> list[int]:
    """What is shown after each tick, by sets."""
    used: dict[str, set[int]] = {}
    today: set[str] = set()
    shown, seen = 0, []
    for tick, users in enumerate(ticks):
        now, place = divmod(tick, period)
        today = set() if place == 0 else today
        for user in users:
            periods = used.setdefault(user, set()) if isinstance(user, str) else None
            if periods is not None and (now in periods or most is None or len(periods) < most):
                periods.add(now)
                today.add(user)
        if so_far or place == period - 1:
            shown = len(today)
        seen.append(shown)
    return seen


def made(period: int = 3, horizon: int | None = 11, **options: Any) -> et.PeriodUsers:
    given: dict[str, Any] = {"guarantee": ZCDP(0.5), "key": ZeroNoise()} | options
    return et.PeriodUsers(period=period, horizon=horizon, **given)


@pytest.mark.parametrize("so_far", [False, True])
@pytest.mark.parametrize("most", [None, 1, 2])
@pytest.mark.parametrize("period", [1, 3, 4])
def test_without_noise_it_is_the_count(period: int, most: int | None, so_far: bool) -> None:
    rng = np.random.default_rng(period)
    ticks: list[list[Any]] = [
        [*(f"u{n}" for n in rng.integers(0, 6, rng.integers(0, 5))), *([None] if rng.random() < 0.3 else [])]
        for _ in range(11)
    ]
    options: dict[str, Any] = {"so_far": so_far, "max_active_periods": most}
    truth = counted(ticks, period, so_far, most)
    assert made(period, **options).run(ticks).tolist() == truth
    part = made(period, **options)
    for users, exact in zip(ticks, truth, strict=True):
        assert part.step_events(users).value == exact
        if rng.random() < 0.5:
            part = et.restore(part.snapshot(), key=ZeroNoise())


def test_a_period_without_a_cap_knows_nobody_of_the_one_before() -> None:
    days = made(period=1, horizon=9)
    days.run([[f"user {t}/{i}" for i in range(50)] for t in range(8)])
    assert len(days.snapshot()) < 8000
    with_cap = made(period=1, horizon=9, max_active_periods=2)
    with_cap.run([[f"user {t}/{i}" for i in range(50)] for t in range(8)])
    assert len(with_cap.snapshot()) > 10000


def test_golden_factors() -> None:
    """users-and-domains 2.4: ends of periods (sqrt N + 1)/2 and sqrt(min(k, N)), "so far today" 32.45."""
    rho = 1e-4
    factor = math.sqrt(2 * rho)

    def worst(**options: Any) -> float:
        found = made(24, 8760, guarantee=ZCDP(rho), **options).worst_stddev()
        assert found is not None
        return found * factor

    assert worst() == pytest.approx((math.sqrt(365) + 1) / 2, rel=1e-3)
    assert worst(max_active_periods=16) == pytest.approx(4, rel=1e-3)
    assert worst(max_active_periods=364) == pytest.approx((math.sqrt(365) + 1) / 2, rel=1e-3)  # a cap that is no help
    assert worst(neighbours="replace") == pytest.approx(math.sqrt(365), rel=1e-3)
    assert worst(neighbours="replace", max_active_periods=8) == pytest.approx(4, rel=1e-3)
    tenth = DayFactor(FINENESS - 1638, 24)  # lambda = 0.9
    assert tenth.cost(365, True).deviation + 0.5 == pytest.approx(32.45, rel=0.01)
    assert worst(so_far=True) <= 32.45
    assert worst(so_far=True) == pytest.approx(32.24, abs=0.01)
    assert math.sqrt(365) * math.sqrt(24) == pytest.approx(93.6, rel=1e-3)  # each tick anew


@pytest.mark.parametrize("j", [0, 64, 112, 127])
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_the_cost_of_a_day_is_the_maximum_over_its_paths(j: int, length: int) -> None:
    day = day_factor(j, length)
    R = np.array([[day.r[t - s] if 0 <= t - s < len(day.r) else 0 for s in range(length)] for t in range(length)])
    paths = [np.array([0] * tau + [1] * (length - tau)) for tau in range(length + 1)]
    assert all(x % 2 == 0 for x in day.r)
    assert day.centred * 4 == max(int(np.sum((R @ (2 * y - 1)) ** 2)) for y in paths)
    assert day.uncentred == max(int(np.sum((R @ y) ** 2)) for y in paths)
    inverse = np.linalg.inv(R.astype(np.float64))
    assert day.energy == pytest.approx(float(np.sum(inverse[-1] ** 2)) * day.r[0] ** 2)
    # 1.5: two users in each other's place.
    assert max(int(np.sum((R @ (y - z)) ** 2)) for y in paths for z in paths) <= 4 * day.centred


def test_days_are_exact_and_begin_anew() -> None:
    key, days = et.simulation(5), DayMoves(3, 3).made(CENTRED, ZCDP(0.01), 4)
    noise = DayNoise(days, horizon=12, source=key.source("day"))
    path = noise.advance(12)[:, 0].tolist()
    source = key.source("day")
    assert days.shared is not None
    half = Fraction(int(source.draws("centre", days.shared, [0])[0, 0]), 2)
    for day in range(3):
        e: list[Fraction] = []
        for place in range(4):
            tick = 4 * day + place + 1
            z = int(source.draws("day", days.own, [tick])[0, 0])
            later = sum(days.day.r[k] * e[place - k] for k in range(1, min(place + 1, len(days.day.r))))
            e.append(Fraction(z - later, days.day.r[0]))
            assert path[tick - 1] == math.floor(e[-1] + half + Fraction(1, 2))
    for tick in range(12):
        again = DayNoise(days, horizon=12, source=key.source("day"))
        again.seek(tick)
        assert again.advance(12 - tick)[:, 0].tolist() == path[tick:]


@pytest.mark.parametrize("so_far", [False, True])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_a_user_moves_no_more_than_is_charged(so_far: bool, most: int | None) -> None:
    """All streams of one user, six ticks, two in a period, beside somebody else."""
    others = [["bob"], [], ["bob"], ["cid"], [], ["bob"]]

    def played(active: Sequence[int]) -> np.ndarray:
        ticks = [[*others[t], *(["ann", "ann"] if there else [])] for t, there in enumerate(active)]
        return np.array(made(2, 6, so_far=so_far, max_active_periods=most).run(ticks))

    without = played([0] * 6)
    for active in product([0, 1], repeat=6):
        moved = played(active) - without
        by_period = moved.reshape(3, 2) if so_far else moved[1::2].reshape(3, 1)
        assert set(moved.tolist()) <= {0, 1}
        assert (np.diff(by_period, axis=1) >= 0).all()  # steps
        assert int(by_period.any(axis=1).sum()) <= (most or 3)


def test_so_far_costs_what_days_cost() -> None:
    """11.1: the loss of the Gaussian mechanism, days x ticks 1 x 2, 1 x 3, 2 x 2, all paths: at most the claim."""
    for periods, length in ((1, 2), (1, 3), (2, 2)):
        days = DayMoves(periods, periods).made(CENTRED, ZCDP(0.5), length)
        r, T = days.day.r, periods * length
        R = np.array([[r[t - s] if 0 <= t - s < len(r) else 0 for s in range(length)] for t in range(length)])
        L = np.kron(np.eye(periods), np.linalg.inv(R.astype(np.float64)))
        assert days.shared is not None
        own, shared = (float(law.sigma_squared) for law in (days.own, days.shared))  # type: ignore[attr-defined]
        covariance = own * L @ L.T + shared / 4 * np.ones((T, T))
        steps = [[0] * tau + [1] * (length - tau) for tau in range(length + 1)]
        lost = []
        for parts in product(steps, repeat=periods):
            y = np.concatenate(parts)
            lost.append(float(y @ np.linalg.solve(covariance, y)) / 2)
        assert 0.3 < max(lost) / 0.5 <= 1.0001


def test_laws_do_not_depend_on_how_they_were_found() -> None:
    assert best_day(24, True) == day_factor(110, 24)


def test_pure_and_approximate() -> None:
    assert made(so_far=True, guarantee=PureDP(1.0)).mechanism == "centred"
    assert isinstance(made(guarantee=ApproxDP(1.0, 1e-6)).charge, ZCDP | PureDP)
    forever = made(horizon=None, max_active_periods=3, key=et.simulation(1))
    assert forever.mechanism == "independent"
    assert forever.stddev(10**6) == pytest.approx(math.sqrt(3), rel=0.01)
    assert forever.error_bound(tick=300) > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "event"}, "protects users"),
        ({"max_events_per_user": 3}, "leave max_events_per_user out"),
        ({"horizon": None}, "max_active_periods"),
        ({"period": 12}, "not over within the horizon"),
        ({"period": 0}, "period"),
        ({"max_active_periods": 0}, "max_active_periods"),
        ({"mechanism": "tree"}, "centred"),
        ({"mechanism": "centred", "neighbours": "replace"}, "shared draw"),
        ({"mechanism": "centred", "neighbours": "replace", "so_far": True}, "shared draw"),
        ({"so_far": True, "period": 5000, "horizon": 10**4}, "period"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        made(**options)
