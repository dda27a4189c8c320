"""Coins of amounts are in nobody else's numbers; blocks of what begins anew share no draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.amounts import coins_report, tosses_coins
from evertally.audit.blocks import blocks_attack
from evertally.audit.suite import plan
from evertally.contract import rounding
from evertally.noise import simulation
from evertally.values.periods import PeriodSource

COMMON: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 2000}
SUMS: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda key: et.RunningSum(upper=5, key=key, **COMMON),
    "of both signs, replaced": lambda key: et.RunningSum(upper=5, lower=-2, neighbours="replace", key=key, **COMMON),
    "below 0": lambda key: et.RunningSum(upper=-1, lower=-5, key=key, **COMMON),
    "of capped users": lambda key: et.RunningSum(upper=7.5, unit="user", max_events_per_user=2, key=key, **COMMON),
    "that begins anew": lambda key: et.RunningSum(upper=5, every=3, key=key, **COMMON),
    "with a bound that is found": lambda key: et.AdaptiveSum(upper=64, key=key, **COMMON),
}
ANEW: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda key: et.RunningSum(upper=5, every=1, key=key, **COMMON),
    "a variance without an end": lambda key: et.RunningVariance(
        lower=0, upper=5, every=7, guarantee=et.ZCDP(0.5), horizon=None, key=key
    ),
    "percentiles": lambda key: et.ValueQuantile(edges=[0, 1, 2, 3], every=4, key=key, **COMMON),
}


@pytest.mark.parametrize("name", SUMS)
def test_one_coin_is_one_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = SUMS[name]
    assert "coins" in [step.name for step in plan(make)]
    assert coins_report(make(simulation(0))).fraction == 1
    monkeypatch.setattr(rounding, "_numbers_among_equals", lambda bits, codes: np.arange(len(bits)))
    assert coins_report(make(simulation(0))).verdict == "broken"


@pytest.mark.parametrize(
    "options", [{"rounding": "nearest"}, {"unit": "user", "max_total_per_user": 9}], ids=["nearest", "allowances"]
)
def test_where_no_coin_is_tossed_for_an_event_alone(options: dict[str, Any]) -> None:
    assert not tosses_coins(et.RunningSum(upper=5, key=simulation(0), **options, **COMMON))


@pytest.mark.parametrize("name", ANEW)
def test_blocks_have_noise_of_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = ANEW[name]
    assert "blocks far apart" in [step.name for step in plan(make)]
    assert not blocks_attack(make(simulation(0))).leaked
    real = PeriodSource.__init__
    monkeypatch.setattr(PeriodSource, "__init__", lambda self, source, number: real(self, source, number & 0xFF))
    assert blocks_attack(make(simulation(0))).evidence == "block 257 has draws of block 1"
