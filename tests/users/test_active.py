"""Active users: golden errors, a plain model with restarts and odd users, zero noise, and what is refused."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from conformance.active_mechanisms import active_by, active_users
from evertally.counting.runs import Presence, best_path
from evertally.noise import ZeroNoise
from evertally.users.active_noise import Question, shares

HALF = et.ZCDP(0.5)  # so that standard deviations are factors


def made(windows: list[int], horizon: int | None = 40, guarantee: Any = HALF, key: Any = None, **options: Any) -> Any:
    return et.ActiveUsers(windows, guarantee=guarantee, horizon=horizon, key=key or ZeroNoise(), **options)


def test_the_errors_of_the_specification() -> None:
    """users-and-domains 2.3: a year of days, alone, together, and against noise that is drawn anew."""
    for window, factor in ((1, 10.052), (7, 9.338), (28, 7.275)):
        found = made([window], 365).worst_stddev()
        assert 0.99 * factor < found < factor * 1.001 + 0.01  # rounding to whole numbers adds 1/12 to the variance
        assert found < 0.53 * math.sqrt(365)
    together = made([1, 7, 28], 365)
    assert together.worst_stddev() == pytest.approx(15.53, abs=0.02)
    thirds = [made([window], 365, et.ZCDP(Fraction(1, 6))).worst_stddev() for window in (1, 7, 28)]
    assert max(thirds) == pytest.approx(17.41, abs=0.02)
    each = [part.worst().stddev for part in together.noise.parts]
    assert max(each) / min(each) < 1.001
    assert made([28], 365, et.ZCDP(0.02)).worst_stddev() == pytest.approx(36.4, rel=0.01)


@pytest.mark.parametrize("guarantee", [et.ZCDP(Fraction(1, 3)), et.PureDP(Fraction(2, 7))])
def test_shares_add_up_exactly(guarantee: Any) -> None:
    asked = Question((1, 7, 28), 365, "user", None, None, 1, 0, et.Neighbours.ADD_REMOVE, 2**30)
    parts = shares(guarantee, asked)
    pure = isinstance(guarantee, et.PureDP)
    total = sum((part.exact_epsilon if pure else part.exact_rho) for part in parts)
    assert total == (guarantee.exact_epsilon if pure else guarantee.exact_rho)


def test_options_cost_what_they_should() -> None:
    year = Presence.windows(365, 7)
    plain = best_path(year, False).deviation
    alone = made([7], 365, by=["a", "b", "c"], max_categories=2).worst_stddev()
    assert alone == pytest.approx(math.sqrt(2) * plain, rel=0.01)
    replaced = made([7], 365, neighbours="replace").worst_stddev()
    assert replaced == pytest.approx(2 * best_path(year, True).deviation, rel=0.01)
    one = best_path(Presence.windows(365, 7, active=1), False).deviation
    assert made([7], 365, max_active=1).worst_stddev() == pytest.approx(one, rel=0.02)
    assert one == pytest.approx(1.90, abs=0.01)
    block = made([7], None, unit="user-period", period=1).stddev(tick=10**6)
    assert block == made([7], None, unit="event").stddev(tick=10**6) == pytest.approx(1.92, abs=0.01)
    assert made([7], 10**7, unit="event").worst_stddev() == pytest.approx(1.92, abs=0.01)


def test_pure_promises_take_the_better_way() -> None:
    assert made([1], 365, et.PureDP(1)).mechanism == "fresh"
    long = made([90], 365, et.PureDP(1))
    assert long.mechanism == "pure-blocks"
    assert long.sensitivity.l1 == 2 * math.ceil(365 / 91)
    # T/2 at eps_1 and one step at eps_0
    fresh = made([1], 365, et.PureDP(1)).worst_stddev()
    assert fresh == pytest.approx(math.sqrt(2) * 365 / 2 * (1 + 365 ** (-2 / 3)) ** 1.5, rel=0.001)


def odd_stream(seed: int, ticks: int) -> list[list[Any]]:
    chance = random.Random(seed)
    odd = [None, "", float("nan"), 3, 3.5, True, ("a", "b"), b"x", ["ann"], {"u": 1}]
    return [
        [*chance.choices([f"u{i}" for i in range(12)], k=chance.randrange(5)), *chance.sample(odd, chance.randrange(4))]
        for _ in range(ticks)
    ]


def named(tick: list[Any]) -> list[str]:
    """Who is somebody: texts and whole numbers, as everywhere."""
    from evertally.encode.users import owners

    codes, names = owners(tick)
    return [names[code] for code in codes if code >= 0]


@pytest.mark.parametrize("options", [{}, {"max_active": 3}], ids=["all", "capped"])
def test_a_plain_model_with_restarts(options: dict[str, Any]) -> None:
    windows = [1, 2, 5, 9]
    for seed in range(4):
        stream = odd_stream(seed, 40)
        truth = active_users([named(tick) for tick in stream], windows, options.get("max_active"))
        mechanism = made(windows, **options)
        for t, users in enumerate(stream):
            if t % 3 == seed % 3:
                mechanism = et.restore(mechanism.snapshot(), key=ZeroNoise())
            release = mechanism.step_events(users)
            assert release.value == truth[t]
            assert mechanism.step_events(users, tick=t + 1).value == release.value  # again: the same
        rows = made(windows, **options).run(stream)
        assert rows.tolist() == [list(value.values()) for value in truth]


def test_a_plain_model_by_category() -> None:
    chance = random.Random(5)
    for most, other in ((1, None), (2, "rest")):
        stream = []
        for _ in range(40):
            n = chance.randrange(7)
            labels = chance.choices(["north", "south", "west", "moon", "mars", None], k=n)
            stream.append((labels, chance.choices([f"u{i}" for i in range(6)], k=n)))
        truth = active_by(stream, [1, 4], most, other)
        mechanism = made([1, 4], by=["north", "south", "west"], other=other, max_categories=most)
        for t, (labels, users) in enumerate(stream):
            if t % 5 == 2:
                mechanism = et.restore(mechanism.snapshot(), key=ZeroNoise())
            assert mechanism.step_events(labels, users=users).value == truth[t]


def test_users_do_not_interact() -> None:
    """Whatever others do, a user's own path is the same."""
    stream = [[user for user in tick if isinstance(user, str)] for tick in odd_stream(9, 30)]
    whole = made([1, 4], 30).run(stream)
    without = made([1, 4], 30).run([[user for user in tick if user != "u3"] for tick in stream])
    alone = made([1, 4], 30).run([[user for user in tick if user == "u3"] for tick in stream])
    assert np.array_equal(whole - without, alone)


def test_ratios() -> None:
    key = et.simulation(4)
    mechanism = made([1, 28], 365, et.ZCDP(50), key)
    for day in range(28):
        release = mechanism.step_events([f"u{(37 * day + i) % 900}" for i in range(300)])
    share, lower, upper = release.ratio(1, 28)
    assert 0 < lower < 300 / 900 < upper < 1
    assert lower < share < upper
    assert made([1, 2]).step_events([]).ratio(1, 2)[0] == 1.0  # 0 of 0
    with pytest.raises(et.ConfigurationError, match="name them"):
        release.ratio(1, 7)


def test_every_window_has_its_own_interval() -> None:
    mechanism = made([1, 3], 10, et.ZCDP(0.01), et.simulation(2))
    for _ in range(3):
        release = mechanism.step_events(["a", "b"])
    lower, upper = release.interval(0.05)
    widths = [upper[window] - lower[window] for window in (1, 3)]
    spreads = [2 * math.floor(part.spread(3).radius(0.05)) for part in mechanism.noise.parts]
    assert widths == spreads
    assert release.stddev == max(part.spread(3).stddev for part in mechanism.noise.parts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windows": []}, "a list of whole numbers"),
        ({"windows": 7}, "a list of whole numbers"),
        ({"windows": [0]}, "a window"),
        ({"windows": [7, 1]}, "shortest first"),
        ({"windows": [7, 7]}, "once each"),
        ({"windows": [2**16 + 1]}, "a window"),
        ({"horizon": None}, "needs a horizon"),
        ({"horizon": 2**20 + 1}, "longer ticks"),
        ({"max_events_per_user": 3}, "any number of events"),
        ({"unit": "user-period"}, "period"),
        ({"period": 3}, "period"),
        ({"unit": "user-period", "period": 3, "max_active": 2}, "unit='user' only"),
        ({"unit": "event", "by": ["a"]}, "unit='user' only"),
        ({"max_active": 2, "by": ["a"]}, "do not go together"),
        ({"max_active": 0}, "max_active"),
        ({"other": "x"}, "go with by"),
        ({"by": ["a", "b"], "max_categories": 3}, "max_categories"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(1, adversary="oblivious")}, "independent"),
        ({"mechanism": "bank"}, "no mechanism"),
        ({"mechanism": "tree"}, "Laplace"),
        ({"mechanism": "path", "guarantee": et.PureDP(1)}, "never pure"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"windows": [2], "horizon": 30, "guarantee": HALF} | options
    with pytest.raises(et.ConfigurationError, match=words):
        et.ActiveUsers(key=et.simulation(1), **given)


def test_the_horizon_is_the_end() -> None:
    """Planted bug of trap 20: B_c belongs to T ticks."""
    mechanism = made([1], 3, key=et.simulation(1))
    mechanism.run([["a"]] * 3)
    with pytest.raises(et.HorizonExceeded):
        mechanism.step_events(["a"])


def test_totals_and_mistakes() -> None:
    mechanism = made([1])
    with pytest.raises(TypeError, match="totals"):
        mechanism.step(3)
    with pytest.raises(TypeError):
        mechanism.step_events("ann")
    assert mechanism.tick == 0
