"""What a typical stream is expected to cost, piece by piece: the planner compares mechanisms by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from evertally.errors import ConfigurationError
from evertally.partition import tuning
from evertally.partition.budget import Split
from evertally.partition.typical import _FINE, Scales, TypicalStream, _other_columns, _standard, _unit_of, noise_closes
from evertally.privacy import ZCDP, Change, PureDP


def test_noise_is_scaled_by_the_norm_of_its_law() -> None:
    change = Change(l1=3, l2_squared=5, linf=2)
    assert _unit_of(PureDP(0.5), change) == (6.0, True)
    assert _unit_of(ZCDP(0.1), change) == (pytest.approx(5.0), False)


@pytest.mark.parametrize("kappa", [-30.0, -2.0, 0.0, 2.0, 30.0])
def test_how_often_noise_alone_closes_an_interval(kappa: float) -> None:
    """Laplace against Laplace, by plain integration: P(mu > kappa + tau)."""
    tau = np.linspace(-80, 80, 400_001)
    above = np.where(kappa + tau > 0, 0.5 * np.exp(-np.abs(kappa + tau)), 1 - 0.5 * np.exp(-np.abs(kappa + tau)))
    exactly = float(np.sum(above * 0.25 * np.exp(-np.abs(tau) / 2)) * (tau[1] - tau[0]))
    assert math.isclose(noise_closes(kappa, Scales(2.0, 1.0, 1.0, True)), exactly, rel_tol=0.05, abs_tol=1e-3)


@pytest.mark.parametrize("part", ["tau", "mu", "histogram"])
def test_every_part_of_a_split_is_paid_for(part: str) -> None:
    """Nothing buys no noise: a part of 0 would be a test, or a count, without any budget."""
    parts = {"tau": Fraction(1, 4), "mu": Fraction(1, 4), "update": Fraction(1, 4), "histogram": Fraction(1, 4)}
    assert Split(**{**parts, "update": Fraction(0), "histogram": Fraction(1, 2)}).update == 0
    for wrong in (Fraction(0), Fraction(-1, 4)):
        rest = {name: value for name, value in parts.items() if name != part}
        rest["update"] = Fraction(1, 2) - wrong
        with pytest.raises(ConfigurationError, match="positive"):
            Split(**rest, **{part: wrong})


def test_two_parts_steady_and_one_of_the_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean: streams that cost the same cost that, and the steady one weighs twice."""
    stream, scales = TypicalStream(1000, 100, 1, 1), Scales(2.0, 4.0, 1.0, True)
    for steady, burst, expected in ((9.0, 9.0, 9.0), (3.0, 12.0, 6.0)):
        monkeypatch.setattr(tuning, "typical_error", lambda *_, burst, s=steady, b=burst, **__: b if burst else s)
        assert tuning._cost(stream, scales, 8, "blocks")[0] == pytest.approx(expected)


@pytest.mark.parametrize(("horizon", "largest", "epsilon"), [(100, 10, 1)])
def test_the_descent_finds_the_best_of_all_sizes_and_shares(horizon: int, largest: int, epsilon: float) -> None:
    promise, change, stream = PureDP(epsilon), Change(1, 1, 1), TypicalStream(horizon, largest, 1, 1)
    error, _, n, _ = tuning._search(promise, change, stream, None, False, "blocks")
    every = {
        (share, size): tuning._cost(
            stream,
            Scales.of(tuning.noise_of(promise, tuning._split(share, False), linf=change.linf), change),
            size,
            "blocks",
        )[0]
        for share in tuning._possible_shares(promise, change)
        for size in tuning.sizes_up_to(min(horizon, largest))
    }
    assert error <= 1.02 * min(every.values())
    assert n in {size for _, size in every}


def test_without_a_limit_the_middle_of_all_sizes_is_what_is_prepared_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a logarithmic scale, between 1 and all that can come."""
    asked = []

    class Enough(Exception):
        pass

    def settled(terms: object, stream: TypicalStream) -> None:
        asked.append(stream.largest)
        raise Enough

    monkeypatch.setattr(tuning, "_settled", settled)
    for horizon, growth in ((10**6, 1), (10**4, 100), (3, 1)):
        with pytest.raises(Enough):
            tuning._unlimited(None, "name", TypicalStream(horizon, 7, growth, 1), None)  # type: ignore[arg-type]
    assert asked == [1000, 1000, 1]


def test_a_way_that_a_later_version_settled_is_not_taken_for_one_of_ours() -> None:
    class Later:
        promise, change, split, one_way = PureDP(1), Change(1, 1, 1), None, False

        def rule(self, name: str, find: object, **_: object) -> str:
            return "a later way"

        def settle(self, name: str, find: object) -> list[object]:
            return [["1/4", "1/4", "1/2"], 8, 5]

    with pytest.raises(KeyError, match="a later way"):
        tuning._settled(Later(), TypicalStream(100, 10, 1, 1))  # type: ignore[arg-type]


def test_standard_draws_are_those_of_every_version() -> None:
    """Public, and frozen: a plan that one version has shown is what another one begins the stream with."""
    found = np.rint(_standard("tau", 2, 3) * _FINE).astype(int).tolist()
    assert found == [[-654307, 2134271, -556457], [-4205471, -15016, 1808530]]


def _astray(largest: float, **more: bool) -> Callable[[float], float]:
    """Of 100 columns, after 64 inserts with noise of unit scale."""
    stream = TypicalStream(1000, largest, 1, 100, **more)  # type: ignore[arg-type]
    return _other_columns(stream, Scales(1.0, 1.0, 1.0, True), "blocks", 64, 64, 0)


def test_a_column_far_behind_is_hardly_ever_taken_for_the_leader() -> None:
    near, far = _astray(10, selects=True), _astray(10**6, selects=True)
    assert near(1.0) > 1e-3
    assert far(1000.0) < 1e-6 * near(1.0)
    for more in ({}, {"selects": True}):
        wrong = _astray(100, **more)
        assert wrong(1.0) >= wrong(10.0) >= wrong(50.0)


def test_noise_of_empty_columns_counts_less_the_higher_the_answer_is() -> None:
    """It is above the true maximum only where that is still low; where all columns are shown, everywhere."""
    low, high, wide = _astray(1), _astray(10**5), _astray(10**5, wide=True)
    assert high(5.0) < 0.2 * low(5.0)
    assert wide(5.0) > 0.9 * low(5.0)
