"""Covariances of all pairs of ticks at once are those of each pair by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.combined import covariances
from evertally.counting import together
from evertally.counting.banded import BandedProcess

LAWS = [
    (et.ZCDP(0.5), "tree"),
    (et.ZCDP(0.5), "honaker"),
    (et.ZCDP(0.5), "sqrt"),
    (et.PureDP(1.0), "tree"),
    (et.PureDP(1.0), "pure-blocks"),
]


def by_pairs(engine, ticks):
    found = np.zeros((len(ticks), len(ticks)))
    for i, s in enumerate(ticks):
        for j, t in enumerate(ticks[i + 1 :], i + 1):
            both = engine.accuracy(s).variance + engine.accuracy(t).variance
            found[i, j] = found[j, i] = (both - engine.window(t, t - s).variance) / 2
    return found + np.diag([engine.accuracy(t).stddev ** 2 for t in ticks])


@pytest.mark.parametrize(("guarantee", "mechanism"), LAWS, ids=str)
@settings(max_examples=8, deadline=None)
@given(horizon=st.sampled_from([1, 2, 63, 64, 600, 5000]), data=st.data())
def test_all_pairs_at_once(guarantee, mechanism, horizon, data) -> None:
    counter = et.Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=et.simulation(1))
    ticks = sorted(data.draw(st.sets(st.integers(1, horizon), min_size=1, max_size=8)))
    found, expected = covariances(counter._engine, ticks), by_pairs(counter._engine, ticks)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9 * expected.max())


def test_weights_that_end_and_ticks_that_are_far(monkeypatch: pytest.MonkeyPatch) -> None:
    short = np.array([1.0, -0.5, 0.25])
    rows = np.array([[short[t - k] if 0 <= t - k < 3 else 0.0 for k in range(1, 10)] for t in range(1, 10)])
    expected = rows @ rows.T
    found = together.by_age(short, range(1, 10))
    assert found is not None
    assert np.allclose(found, expected - np.diag(np.diag(expected)))
    assert together.by_age(short, [1, 2**13 + 1]) is None

    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=40, mechanism="sqrt", key=et.simulation(1))
    quick = counter.covariance(range(1, 41))
    monkeypatch.setattr(together, "_LONGEST", 8)
    assert np.allclose(counter.covariance(range(1, 41)), quick, rtol=1e-12)
    assert BandedProcess.covariances is type(counter.noise).covariances
