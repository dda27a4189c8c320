"""Differences of releases: their value, and the exact law of their noise."""

from __future__ import annotations

import numpy as np
import pytest

import evertally as et

MECHANISMS = [
    ("bank", et.ZCDP(0.5)),
    ("sqrt", et.ZCDP(0.5)),
    ("tree", et.PureDP(1.0)),
    ("pure-blocks", et.PureDP(1.0)),
    ("honaker", et.ZCDP(0.5)),
    ("honaker", et.PureDP(1.0)),
    ("bank-open", et.ZCDP(0.5)),
    ("epoch-tree", et.PureDP(1.0)),
    ("epoch-tree", et.ZCDP(0.5)),
    ("epoch-blocks", et.PureDP(1.0)),
]
WITHOUT_END = ("bank-open", "epoch-tree", "epoch-blocks")


def many(mechanism: str, guarantee: et.Guarantee, horizon: int, runs: int) -> et.VectorCounter:
    """Many independent columns; one unit moves one column, whatever the width."""
    end = None if mechanism in WITHOUT_END else horizon
    return et.VectorCounter(runs, guarantee=guarantee, horizon=end, mechanism=mechanism, key=et.simulation(3))


def paths(mechanism: str, guarantee: et.Guarantee, horizon: int, runs: int) -> np.ndarray:
    """Their noise, shape (runs, horizon)."""
    counter = many(mechanism, guarantee, horizon, runs)
    return counter.run(np.zeros((horizon, runs), dtype=np.int64)).T.astype(float)


@pytest.mark.parametrize(("mechanism", "guarantee"), MECHANISMS)
def test_combinations_of_releases_have_the_stated_noise(mechanism: str, guarantee: et.Guarantee) -> None:
    horizon, runs = 30, 20_000
    noise = paths(mechanism, guarantee, horizon, runs)
    law = many(mechanism, guarantee, horizon, runs)
    for weights in ({30: 1, 23: -1}, {30: 1, 23: -2, 16: 1}, {8: 1, 7: -2, 6: 1}, {30: 0.5, 11: 0.25, 4: -3}):
        found = sum(weight * noise[:, tick - 1] for tick, weight in weights.items())
        stated = law.combined(weights)
        assert stated.stddev == pytest.approx(found.std(), rel=0.03)
        outside = np.mean(np.abs(found) > stated.radius(0.05))
        assert outside < 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)


def test_a_window_is_the_difference_of_two_releases() -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=30, max_window=9, key=et.simulation(1))
    days = [counter.step(n) for n in range(30)]
    week = counter.between(days[-8], days[-1])
    last = counter.last(7)
    assert (week.value, week.stddev, week.interval()) == (last.value, last.stddev, last.interval())
    assert (week.since, week.tick, days[-1].since) == (23, 30, 0)
    first = counter.between(None, days[6])
    assert (first.value, first.stddev) == (days[6].value, days[6].stddev)


def test_a_change_is_a_difference_of_windows() -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=30, key=et.simulation(1))
    days = [counter.step(100) for _ in range(30)]
    change = counter.change_of(days[29].row, days[22].row, days[15].row, ticks=(30, 23, 16))
    windows = [counter.between(days[a], days[b]).value for a, b in ((22, 29), (15, 22))]
    assert change.value == windows[0] - windows[1]


def test_means_of_windows() -> None:
    mean = et.RunningMean(lower=0, upper=100, guarantee=et.ZCDP(50), horizon=24, key=et.simulation(1))
    first = mean.step([20.0] * 1000)
    second = mean.step([80.0] * 1000)
    window = mean.between(first, second)
    lower, upper = window.interval()
    assert lower <= 80 <= upper
    assert abs(window.value - 80) < 1
    assert window.stddev is None


def test_what_has_no_windows_says_so() -> None:
    decayed = et.Counter(guarantee=et.ZCDP(0.5), horizon=9, workload=et.workloads.Decay("9/10"), key=et.simulation(1))
    release = decayed.step(3)
    assert release.row is None
    with pytest.raises(et.ConfigurationError, match="no sums"):
        decayed.stddev(2, since=1)
    with pytest.raises(et.ConfigurationError, match="row"):
        decayed.between(None, release)


def test_a_window_ends_with_a_release() -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    first = counter.step(3)
    for ends in ((first, None), (None, None), (None, 1), (1, first)):
        with pytest.raises(TypeError, match="takes two releases, the earlier one first"):
            counter.between(*ends)


def test_roundings_count_by_the_squares_of_their_weights() -> None:
    """Where there is little noise, rounding is much of it: a change has (1 + 4 + 1)/12 of it, not 4/12."""
    runs, weights = 20_000, {30: 1, 23: -2, 16: 1}
    law = et.VectorCounter(runs, guarantee=et.ZCDP(5), horizon=30, mechanism="bank", key=et.simulation(3))
    noise = paths("bank", et.ZCDP(5), 30, runs)
    found = sum(weight * noise[:, tick - 1] for tick, weight in weights.items())
    assert law.combined(weights).stddev == pytest.approx(found.std(), rel=0.02)


@pytest.mark.parametrize(("mechanism", "wide"), [("tree", 1.7), ("pure-blocks", 1.3)])  # a tree has Chernoff's bound
def test_changes_under_pure_budgets_have_tails_of_their_own(mechanism: str, wide: float) -> None:
    noise = paths(mechanism, et.PureDP(1.0), 365, 4000)
    law = et.Counter(guarantee=et.PureDP(1.0), horizon=365, mechanism=mechanism, key=et.simulation(3))
    weights = {300: 1, 293: -2, 286: 1}
    true = np.quantile(np.abs(sum(weight * noise[:, tick - 1] for tick, weight in weights.items())), 0.95)
    assert true <= law.combined(weights).radius(0.05) < wide * true


PUBLIC = [("a", "b"), ("b", "c"), ("c", "d")]
BEGIN_WITH_SOMETHING = [
    (et.graph.EdgeCount, {}),
    (et.graph.DegreeVector, {"vertices": list("abcd")}),
    (et.graph.HighDegree, {"threshold": 2}),
    (et.graph.DegreeHistogram, {"vertices": list("abcd")}),
]


@pytest.mark.parametrize(("kind", "options"), BEGIN_WITH_SOMETHING)
def test_the_first_window_is_the_change_since_a_public_beginning(kind: type, options: dict[str, object]) -> None:
    made = kind(
        guarantee=et.ZCDP(50),
        horizon=9,
        updates="delete",
        initial=PUBLIC,
        max_window=9,
        key=et.simulation(1),
        **options,
    )
    for records in ([("a", "b")], [], [("c", "d")]):
        release = made.step(records)
    whole, last = made.between(None, release), made.last(3)
    assert (whole.since, whole.value, whole.interval()) == (0, last.value, last.interval())
    begun = made._form.show(made._form.first()[0])
    numbers = [dict(one) if isinstance(one, dict) else {"": one} for one in (whole.value, release.value, begun)]
    change, now, then = numbers
    assert any(then.values())
    assert change == {label: now[label] - then[label] for label in now}
