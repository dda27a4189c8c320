"""A large delta: refused unless forced, and told wherever the guarantee is shown."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.privacy import ApproxDP, ApproxZCDP, Ledger, PureDP, compose

KINDS: list[Callable[..., Any]] = [ApproxDP, ApproxZCDP]


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_delta_is_refused_unless_it_is_forced(kind: Callable[..., Any]) -> None:
    for delta in (0.1, 0.5, Fraction(2, 1000), 0.0011):
        with pytest.raises(ConfigurationError, match=r"delta .* is above 0\.001.*force"):
            kind(1, delta)
        assert kind(1, delta, force=True).exact_delta == Fraction(delta)
    for delta in (1e-3, Fraction(1, 1000), 1e-5, 1e-9):
        assert kind(1, delta).exact_delta == Fraction(delta)
    with pytest.raises(ConfigurationError, match="force"):
        kind(1, 1e-6, force="yes")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_warns(kind: Callable[..., Any]) -> None:
    for delta, people in ((1e-4, 10000), (1e-3, 1000), (0.1, 10), (0.75, 1)):
        promise = kind(1, delta, force=True)
        assert f"one in {people} people" in promise.warning()
        assert "WARNING" in repr(promise)
        assert "WARNING" in str(promise)
    for delta in (1e-5, Fraction(1, 10**5), 1e-9):
        promise = kind(1, delta)
        assert promise.warning() is None
        assert "WARNING" not in repr(promise)
        assert promise.warning(events=int(1 / delta) - 1) is None
        assert "no protection" in promise.warning(events=3 * int(1 / delta))
    assert PureDP(1).warning(events=10**9) is None


def test_what_follows_from_a_promise_is_never_refused_and_warns() -> None:
    implied = [
        PureDP(1).to_approx(0.25),
        et.ZCDP(0.5).to_approx(0.25),
        ApproxDP(1, 1e-6).to_approx(0.25),
        ApproxDP(1, 1e-4).group(6),
        compose(ApproxDP(1, 1e-3), ApproxDP(1, 1e-3)),
        ApproxDP(1, 0.5, force=True).with_bad_event(),
        ApproxZCDP(1, 0.5, force=True).share(0.5),
        ApproxZCDP(1, 1e-6).to_approx(0.01),
    ]
    for promise in implied:
        assert "WARNING" in repr(promise)
    ledger = Ledger(ApproxDP(1, 0.5, force=True))
    ledger.promise("a", ApproxDP(0.5, 0.25, force=True))
    assert "WARNING" in repr(ledger.total())


def test_a_mechanism_under_a_forced_promise_runs_and_comes_back() -> None:
    key = simulation(3)
    u = et.UnknownHistogram(guarantee=ApproxDP(1, 0.1, force=True), horizon=9, key=key)
    u.step_events(["a"] * 40)
    again = et.restore(u.snapshot(), key=key)
    assert again.guarantee == u.guarantee
    assert "WARNING" in repr(again.guarantee)
    partition = et.MaxSum(
        columns=2, guarantee=ApproxDP(4, 0.1, force=True), horizon=50, largest=40, mechanism="rebased", key=key
    )
    assert partition.step([1, 0]).tick == 1
