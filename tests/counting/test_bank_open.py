"""The bank without a horizon: its table, its certificate by jumps, its spreads, its end (optimal-counting 5)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.gaussian import closed_form
from evertally.counting import bank_open
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_jumps import certify_by_jumps
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_open import OPEN_LAST_TICK, OPEN_SENSITIVITY, OpenBankProcess, open_bank
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, Change
from long import LONG

ONE = Change(1, 1, 1)


def process(columns: int = 2, seed: int = 0) -> OpenBankProcess:
    return OpenBankProcess(ZCDP(0.5), ONE, columns=columns, source=simulation(seed).source("open"))


@pytest.mark.parametrize("T", [64, 1500])
def test_jumps_prove_what_the_recursion_does(T: int) -> None:
    bank = build_bank(T)
    S = Fraction(certified(bank))
    jumps = certify_by_jumps(bank, S * (1 + Fraction(1, 10**7)))
    assert jumps is not None
    assert jumps < T or T < 100
    assert certify_by_jumps(bank, S * (1 - Fraction(1, 10**7))) is None


def test_jumps_refuse_what_the_lemma_does_not_cover() -> None:
    bank = build_bank(64)
    with pytest.raises(StateError):
        certify_by_jumps(replace(bank, K=bank.K * 1.01), Fraction(10**6))


def test_the_shipped_sensitivity_is_proved() -> None:
    """The last segments always, with EVERTALLY_LONG (`make audit`) all of them: 8 s."""
    bank = open_bank()
    assert bank.horizon == OPEN_LAST_TICK
    if LONG:
        assert certify_by_jumps(bank, OPEN_SENSITIVITY) == 8579
        assert certify_by_jumps(bank, Fraction("2.3360504")) is None
    else:
        assert certify_by_jumps(bank, OPEN_SENSITIVITY, last=200) is not None
    assert certify_by_jumps(bank, Fraction(2), last=len(bank.lengths) // 2) is None


def test_another_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank_open, "OPEN_DIGEST", build_bank(64).digest)
    open_bank.cache_clear()
    try:
        with pytest.raises(StateError, match="certified"):
            open_bank()
    finally:
        monkeypatch.undo()
        open_bank.cache_clear()


def test_ratios_to_the_least_of_every_horizon() -> None:
    """optimal-counting 5, to 0.005: variance times sensitivity over gamma_2(t)^2."""
    moments, S = moments_of(open_bank()), float(OPEN_SENSITIVITY)
    least = {0: 1.0, 10: 2.961465, 16: 4.265997, 20: 5.141968, 24: 6.020077}
    stated = {0: 1.596, 10: 1.593, 16: 1.594, 20: 1.590, 24: 1.581}
    for k, ratio in stated.items():
        assert moments.variance(2**k) * S / least[k] ** 2 == pytest.approx(ratio, abs=0.005)
    last = math.log(2) / math.pi * 30 + (6.020077 - math.log(2) / math.pi * 24)  # extrapolated
    assert moments.variance(2**30) * S / last**2 == pytest.approx(1.595, abs=0.01)


def test_spreads_are_those_of_the_paths() -> None:
    n = 20000
    noise, model = process(n).advance(40).astype(np.float64), process(1)
    for tick in (1, 2, 40):
        assert noise[tick - 1].std() == pytest.approx(model.spread(tick).stddev, rel=5 / math.sqrt(2 * n))
    for tick, window in ((40, 1), (40, 25)):
        expected = model.window_spread(tick, window).stddev
        assert (noise[tick - 1] - noise[tick - 1 - window]).std() == pytest.approx(expected, rel=5 / math.sqrt(2 * n))
    assert model.spread(2**30).stddev <= model.worst().stddev * (1 + 1e-9)
    assert model.window_spread(2**30, 2**29).stddev > 5
    for tick in (1, 5, 40):
        stretch = slice(2 ** (tick.bit_length() - 1) - 1, min(40, 2 ** tick.bit_length() - 1))
        assert (np.abs(noise[stretch]).max(axis=0) > model.joint_radius(0.2, tick)).mean() < 0.2


def test_a_bound_for_all_ticks_needs_no_horizon() -> None:
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=None, mechanism="bank-open", key=et.simulation(1))
    bounds = [counter.error_bound(0.05, tick=tick) for tick in (1, 1000, 2**20, 2**30)]
    assert bounds == sorted(bounds)
    tree = et.Counter(guarantee=et.ZCDP(0.5), horizon=None, mechanism="epoch-tree", key=et.simulation(1))
    assert bounds[1] < tree.error_bound(0.05, tick=1000)


@pytest.mark.parametrize("columns", [1, 3])
def test_however_one_gets_there_the_noise_is_the_same(columns: int) -> None:
    whole = process(columns).advance(300)
    for tick in (1, 50, 299):
        jumped = process(columns)
        jumped.seek(tick)
        assert (jumped.advance(1) == whole[tick]).all()
        kept, again = process(columns), process(columns)
        kept.advance(tick)
        again.recall(tick, kept.memory())
        assert (again.advance(300 - tick) == whole[tick:]).all()


def test_a_restored_stream_goes_on() -> None:
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": None, "mechanism": "bank-open"}
    begun, calm = (et.Counter(**common, key=et.simulation(n)) for n in (7, 7))
    expected = calm.run([1] * 60)
    assert (begun.run([1] * 30) == expected[:30]).all()
    snapshot = begun.snapshot()
    assert len(snapshot) < 20_000  # the table is not kept, only its name
    assert (et.restore(snapshot, key=et.simulation(7)).run([1] * 30) == expected[30:]).all()


def test_there_is_no_spread_beyond_the_last_tick() -> None:
    made: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": None, "key": et.simulation(1), "max_window": 5}
    counter, model = et.Counter(mechanism="bank-open", **made), process(1)
    asked = (
        counter.stddev,
        lambda tick: counter.worst_stddev(tick=tick),
        lambda tick: counter.error_bound(0.05, tick=tick),
        lambda tick: model.window_spread(tick, 5),
        model.mean_variance,
    )
    for ask in asked:
        assert ask(OPEN_LAST_TICK)
        for tick in (OPEN_LAST_TICK + 1, 2**31 + 5):
            with pytest.raises(HorizonExceeded, match=r"beyond 2\^30"):
                ask(tick)


def test_refusals() -> None:
    with pytest.raises(StateError):
        process().recall(0, b"evertally-open-1" + bytes(32))
    late = process()
    late.seek(OPEN_LAST_TICK)
    with pytest.raises(HorizonExceeded, match="2\\^30"):
        late.advance(1)
    with pytest.raises(ConfigurationError, match="without a horizon"):
        et.Counter(guarantee=et.ZCDP(1.0), horizon=100, mechanism="bank-open")
    with pytest.raises(ConfigurationError, match="Gaussian"):
        et.Counter(guarantee=et.PureDP(1.0), horizon=None, mechanism="bank-open")
    with pytest.raises(ConfigurationError, match="range of exact numbers"):
        OpenBankProcess(ZCDP(1e-20), ONE, columns=1, source=ZeroNoise().source())


def test_the_most_powerful_test_sees_no_more_than_is_claimed() -> None:
    """Of 300 ticks: an event then shows less than in 2^30, and never more than is claimed."""
    counter = et.Counter(guarantee=et.ZCDP(0.005), horizon=None, mechanism="bank-open", key=et.simulation(0))
    assert 0.95 * 0.1 < closed_form(counter, 300).mu.max() <= 0.1


def test_bytes_that_are_no_bank() -> None:
    data = open_bank().to_bytes()
    assert Bank.from_bytes(data).digest == bank_open.OPEN_DIGEST
    with pytest.raises(StateError):
        Bank.from_bytes(data[:-8])
