"""Distinct users: against plain sets, restored, with odd users; estimates and their intervals; what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.noise import ZeroNoise
from evertally.users.bitmap import Bitmap
from evertally.users.estimates import BitsForm, SampleForm

PROMISE = et.ZCDP(0.5)


def made(key: Any = None, **options: Any) -> et.DistinctUsers:
    return et.DistinctUsers(**({"guarantee": PROMISE, "horizon": 40, "key": key or ZeroNoise()} | options))


def test_odd_users_in_every_form_of_a_column() -> None:
    import pyarrow as pa

    users = made()
    assert users.step_events([7, "7", 7.0, None, float("nan"), ["ann"], {"a": 1}, True, "true", b"7"]).value == 2
    assert users.step_events(np.array([7, 8])).value == 3
    assert users.step_events(pa.array(["8", None, "\u00e9"])).value == 4
    assert users.step_events(None, users=pa.array(["e\u0301"])).value == 4
    assert users.step_events([]).value == 4
    for wrong in ("ann", 7, {"ann"}, None):
        with pytest.raises(TypeError):
            users.step_events(wrong)
    with pytest.raises(TypeError):
        users.step(3)
    assert users.tick == 5


def test_against_a_set_with_restarts() -> None:
    generator, key, seen = np.random.default_rng(1), ZeroNoise(), set()
    users, bits = made(key), made(key, bits=2**20, name="bits")
    for tick in range(1, 41):
        names = [f"u{n}" for n in generator.integers(0, 60, size=5)]
        seen |= set(names)
        assert users.step_events(names).value == len(seen)
        bits.step_events(names)
        assert abs(bits.noisy_bits - len(seen)) <= 1  # among sixty users two share one of a million bits with luck
        if tick % 9 == 0:
            users, bits = (et.restore(one.snapshot(), key=key) for one in (users, bits))


def test_windows_count_new_users() -> None:
    users = made(max_window=2)
    for names in (["a"], ["a", "b"], ["c", "b"]):
        users.step_events(names)
    assert users.last(2).value == 2


def test_a_stream_of_users_needs_no_cap() -> None:
    stream = et.Stream("s", guarantee=PROMISE, horizon=9, key=et.simulation(1), unit="user")
    users = stream.add(et.DistinctUsers, share=0.5)
    assert users.contribution.user_rule == "the first event"
    assert "the first event" in users.step_events(["ann"]).about
    with pytest.raises(et.ConfigurationError):
        stream.add(et.Counter, share=0.5)


def test_the_weaker_unit_is_the_dearer_one() -> None:
    whole, event = made(mechanism="tree"), made(mechanism="tree", unit="event")
    assert event.stddev(9) / whole.stddev(9) == pytest.approx(math.sqrt(2), rel=1e-6)
    ten = made(mechanism="tree", by=list("abcdefghij"), max_categories=10)
    assert ten.stddev(9) / whole.stddev(9) == pytest.approx(math.sqrt(10), rel=1e-6)


def test_processes_of_somebody_else_pay_for_any_factor() -> None:
    from evertally.counting.accumulate import AccumulatingProcess
    from evertally.counting.linear import LinearEngine
    from evertally.statistics.own_engines import ENGINES

    def piled(guarantee: Any, setting: Any, source: Any) -> LinearEngine:
        return LinearEngine(
            lambda: AccumulatingProcess(
                guarantee, setting.change, horizon=setting.horizon, columns=setting.columns, source=source
            )
        )

    et.register_engine("piled for users", piled, proof="parameterized-histograms 3.1")
    try:
        assert made(mechanism="piled for users", unit="event").sensitivity.l2_squared == 4
        assert made(mechanism="piled for users").sensitivity.l2_squared == 1
    finally:
        del ENGINES["piled for users"]


def test_numbers_below_zero() -> None:
    plain, cut = (
        made(et.simulation(5), nonnegative=cut, name="n", allow_copy=True, guarantee=et.ZCDP(0.01))
        for cut in (False, True)
    )
    values = [(plain.step_events([]).value, cut.step_events([]).value) for _ in range(30)]
    assert any(value < 0 for value, _ in values)
    assert all(shown == max(0, value) for value, shown in values)


# -- estimates ---------------------------------------------------------------------------------------------------------


def test_golden_deviations() -> None:
    """users-and-domains 2.6."""
    M, n = 2**20, 500_000
    assert BitsForm(M).own_deviation(n) == pytest.approx(375, rel=0.01)
    assert BitsForm(M).own_deviation(n) == pytest.approx(math.sqrt(M * (math.exp(n / M) - n / M - 1)), rel=1e-3)
    assert SampleForm(0.25).own_deviation(1000) == pytest.approx(math.sqrt(1000 * 3), rel=1e-6)


def test_mean_and_variance_of_set_bits() -> None:
    """Exactly, by the recursion of how many of M bits n users set."""
    M = 8
    law = np.zeros(M + 1)
    law[0] = 1
    form = BitsForm(M)
    for n in range(1, 20):
        law = law * np.arange(M + 1) / M + np.concatenate([[0], law[:-1] * (M - np.arange(M)) / M])
        mean = float(law @ np.arange(M + 1))
        assert form.mean(n) == pytest.approx(mean)
        assert form.variance(n) == pytest.approx(float(law @ (np.arange(M + 1) - mean) ** 2), abs=1e-9)


@pytest.mark.parametrize("options", [{"bits": 512}, {"sample": "1/8"}])
def test_intervals_include_the_chance_of_the_estimate(options: dict[str, Any]) -> None:
    """400 users under 60 keys: 95 % intervals miss at most 12 times, up to a probability below 1e-4."""
    missed, wide = 0, []
    for seed in range(60):
        one = made(et.simulation(seed), mechanism="tree", horizon=4, guarantee=et.ZCDP(8.0), **options)
        lower, upper = one.step_events(list(range(400))).interval(beta=0.05)
        missed += not lower <= 400 <= upper
        wide.append(upper - lower)
        assert one.stddev(1) is None
        assert one.error_bound() == math.inf
        assert 0 < one.error_bound(users=400) < 400
    assert missed <= 12
    assert max(wide) < 500


def test_a_full_map_has_no_upper_end() -> None:
    full = made(et.simulation(1), bits=64)
    release = full.step_events(list(range(5000)))
    assert release.value <= 64 * math.log(64) + 1
    assert release.interval()[1] >= 2**60


def test_bits_are_spread_and_stay() -> None:
    from evertally.encode.texts import Texts

    source = et.simulation(1).source("bits")
    rule = Bitmap(100, source.order)
    places = rule.places(Texts.of([str(n) for n in range(20_000)]))
    assert (places.min(), places.max()) == (0, 99)
    assert np.bincount(places).std() < 40  # about 14
    assert (places == Bitmap(100, source.order).places(Texts.of([str(n) for n in range(20_000)]))).all()


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_events_per_user": 3}, "leave out max_events_per_user"),
        ({"neighbours": "independent"}, "add_remove"),
        ({"unit": "event", "neighbours": "replace"}, "add_remove"),
        ({"unit": "user-period"}, "period"),
        ({"period": 7}, "period"),
        ({"unit": "everybody"}, "unit"),
        ({"other": "rest"}, "go with by"),
        ({"max_categories": 2}, "go with by"),
        ({"by": ["a"], "max_categories": 2}, "max_categories"),
        ({"by": ["a", "a"]}, "twice"),
        ({"by": "ab"}, "list"),
        ({"by": ["a"], "unit": "event"}, "unit"),
        ({"by": ["a"], "bits": 512}, "do not go together"),
        ({"max_users": 9, "sample": "1/2"}, "do not go together"),
        ({"max_users": 9, "neighbours": "replace"}, "add_remove"),
        ({"max_users": 9, "unit": "event"}, "unit"),
        ({"bits": 512, "neighbours": "replace"}, "add_remove"),
        ({"bits": 512, "max_window": 3}, "windows"),
        ({"bits": 8}, "bits"),
        ({"sample": 0}, "sample"),
        ({"sample": "3/2"}, "sample"),
        ({"mechanism": "sparse"}, "unknown mechanism"),
    ],
)
def test_what_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(et.ConfigurationError, match=told):
        made(**options)
