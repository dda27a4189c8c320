"""Running variance: its rows by exhaustion, exact without noise, intervals that cover, windows, what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import Neighbours
from evertally.values.variance import variance_change


def spread(**options: Any) -> et.RunningVariance:
    common: dict[str, Any] = {"lower": 0, "upper": 10, "guarantee": et.ZCDP(0.5), "horizon": 20, "key": ZeroNoise()}
    return et.RunningVariance(**(common | options))


def row(v: int, A: int) -> tuple[int, int, int]:
    return A, v, (2 * v * v + A) // (2 * A)


@pytest.mark.parametrize("A", [*range(1, 13), 50, 301])
def test_all_rows(A: int) -> None:
    """users-and-domains 3 and 11.1: 3 A^2 and 3A there or not, 4 A^2 and 3A replaced; what is no number is no row."""
    rows = np.array([(0, 0, 0), *(row(v, A) for v in range(-A, A + 1))])
    there, replaced = (
        variance_change(A, relation, None)[0] for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
    )
    assert (rows**2).sum(axis=1).max() == there.l2_squared == 3 * A * A
    assert np.abs(rows).sum(axis=1).max() == there.l1 == 3 * A
    apart = rows[:, None] - rows[None]
    assert (apart**2).sum(axis=2).max() == replaced.l2_squared == 4 * A * A
    assert np.abs(apart).sum(axis=2).max() == replaced.l1 == 3 * A
    assert np.abs(apart).max() == replaced.linf
    assert (rows @ rows.T).min() >= 0, "what a replaced user is charged rests on it"


def test_users_of_one_or_two_events() -> None:
    """Square root, w <= 2, T <= 3, A = 2: at most 4.71 w^2 A^2 when replaced, 6 are charged; epoch trees reach them."""
    A, T, w = 2, 3, 2
    f = np.cumprod([1.0, 1 / 2, 3 / 4])
    R = np.array([[f[t - s] if t >= s else 0.0 for s in range(T)] for t in range(T)])
    G = R.T @ R / (f @ f)
    rows = [np.zeros(3), *(np.array(row(v, A), float) for v in range(-A, A + 1))]
    users = []
    for ticks in product(range(T), repeat=w):
        for events in product(rows, repeat=w):
            path = np.zeros((T, 3))
            for tick, event in zip(ticks, events, strict=True):
                path[tick] += event
            users.append(path)
    found = np.unique(np.array(users), axis=0)
    norms = np.einsum("nsc,st,ntc->n", found, G, found)
    assert norms.max() == pytest.approx(variance_change(A, Neighbours.ADD_REMOVE, w)[0].l2_squared)
    cross = np.einsum("nsc,st,mtc->nm", found, G, found)
    apart = (norms[:, None] + norms[None] - 2 * cross).max()
    assert apart == pytest.approx(4.71 * w * w * A * A, rel=0.002)
    assert apart <= variance_change(A, Neighbours.REPLACE, w)[0].l2_squared == 6 * w * w * A * A


def test_without_noise() -> None:
    made, random = spread(resolution=0.001), np.random.default_rng(1)
    seen: list[float] = []
    for _ in range(5):
        values = random.uniform(-1, 12, 50)
        seen += np.clip(values, 0, 10).tolist()
        value = made.step(values).value
        assert value["mean"] == pytest.approx(np.mean(seen), abs=1e-3)
        assert value["stddev"] == pytest.approx(np.std(seen), abs=2e-3)
        assert value["variance"] == value["stddev"] ** 2
    assert spread().step([]).value == {"mean": 5.0, "variance": 0.0, "stddev": 0.0}
    odd = spread().step([None, float("nan"), "seven", object(), [3], 4, "4"]).value
    assert (odd["mean"], odd["stddev"]) == (4, pytest.approx(0, abs=0.12))
    assert spread().step([float("inf"), float("-inf")]).value == {"mean": 5, "variance": 25, "stddev": 5}
    assert spread().run([[1, 3], [5]]).shape == (2, 3)


def test_windows() -> None:
    made = spread(max_window=2, resolution=0.001)
    made.run([[9.0] * 50, [2.0, 4.0] * 50, [3.0] * 100])
    value = made.last(2).value
    assert (value["mean"], value["variance"]) == (pytest.approx(3), pytest.approx(0.5, abs=0.01))
    days = spread(every=2, resolution=0.001)
    days.run([[9.0] * 50, [9.0] * 50])
    assert days.step([2.0, 4.0]).value["mean"] == pytest.approx(3)


def test_intervals_cover_and_hold_what_is_shown() -> None:
    """40 runs of 10 ticks at beta 0.1: Binomial(400, 0.1) is above 76 with probability below 1e-6 (ticks of a run are
    dependent; failures are so rare that runs alone would do)."""
    failures = 0
    for seed in range(40):
        made, random = spread(key=et.simulation(seed)), np.random.default_rng(seed)
        seen: list[float] = []
        for _ in range(10):
            values = random.normal(4, 2, 30)
            seen += np.clip(values, 0, 10).tolist()
            release = made.step(values)
            lower, upper = release.interval(0.1)
            truth = {"mean": np.mean(seen), "variance": np.var(seen), "stddev": np.std(seen)}
            for name, exact in truth.items():
                assert lower[name] <= release.value[name] <= upper[name]
                failures += not lower[name] <= exact <= upper[name]
    assert failures <= 76
    assert release.stddev is None


def test_the_largest_variance_may_lie_between_the_corners() -> None:
    """Correction of users-and-domains 3: concave in 1/n, so ends of three intervals are not enough."""
    form = spread()._form
    s1, s2, counts = [4.0, 6.0], [5.0, 6.0], [2.0, 40.0]
    _, high = form._variances(s1, s2, counts)
    A = form._values.steps
    corners = [A * A * (b / n - a * a / n**2) for a in s1 for b in s2 for n in counts]
    grid = [A * A * (6.0 / n - 16.0 / n**2) for n in np.linspace(2, 40, 2000)]
    assert max(corners) < max(grid) <= high * (1 + 1e-12)


def test_bounds_of_the_error() -> None:
    made = spread()
    assert made.error_bound() == 10, "without a public count nothing is promised but the range"
    assert made.error_bound(count=10**6) < made.error_bound(count=10**4) < 10
    worst = 0.0
    for seed in range(20):
        keyed = spread(key=et.simulation(seed))
        for _ in range(3):
            worst = max(worst, abs(keyed.step([2.0, 6.0] * 5000).value["stddev"] - 2))
    assert worst <= made.error_bound(beta=1e-6, count=10_000)
    assert [way.name for way in made.ways(count=1000)]


def test_refused() -> None:
    for options in ({"lower": 10}, {"resolution": 0}, {"neighbours": "independent"}, {"unit": "user"}, {"every": 0}):
        with pytest.raises(ConfigurationError):
            spread(**options)


@pytest.mark.parametrize("bounds", [{"lower": 0, "upper": 500, "resolution": 1000}, {"lower": 0, "upper": 1e300}])
def test_ranges_without_a_variance_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(et.ConfigurationError, match="resolution below the width"):
        et.RunningVariance(guarantee=et.ZCDP(1), horizon=9, key=et.simulation(1), **bounds)
