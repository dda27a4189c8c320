"""Quantiles of users whose ticks are few, and apart."""

from __future__ import annotations

from typing import Any

import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.values.quantile_domains import SquareRootDomain

OPTIONS: dict[str, Any] = {"edges": range(33), "guarantee": et.ZCDP(0.5), "unit": "user"}


def test_the_charge_is_that_of_a_counter_times_the_norm_of_the_encoder() -> None:
    rule: dict[str, Any] = {"max_ticks_per_user": 12, "min_separation": 30, "horizon": 365, "mechanism": "sqrt"}
    counter = et.Counter(guarantee=et.ZCDP(0.5), unit="user", key=et.simulation(1), **rule)
    apart = et.ValueQuantile(**OPTIONS, **rule, key=et.simulation(1))
    domain, each = SquareRootDomain(32), apart._engine.accuracy(365).stddev
    assert each is not None
    assert counter.stddev(365) is not None
    assert each == pytest.approx(domain.added.l2_squared**0.5 * counter.stddev(365), rel=0.01)


def test_only_ticks_that_are_apart_count() -> None:
    one = et.ValueQuantile(**OPTIONS, max_ticks_per_user=2, min_separation=2, horizon=9, q=[1.0], key=ZeroNoise())
    for value in (5, 9, 7, 11, 13):  # ticks 1 and 3 count
        release = one.step_events([value], users=["ann"])
    assert release.value == {1.0: 7.0}
    assert release.cdf().counts[-1] == pytest.approx(2)


def test_large_domains_have_no_such_rule() -> None:
    with pytest.raises(ConfigurationError, match="bits"):
        et.ValueQuantile(bits=8, guarantee=et.ZCDP(0.5), unit="user", max_ticks_per_user=2, horizon=9, key=ZeroNoise())
