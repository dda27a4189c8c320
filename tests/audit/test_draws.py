"""The row "draws": every planted word gives what its bits say; a sampler with a mistake does not."""

from __future__ import annotations

from typing import Any

import pytest

import evertally as et
from evertally.audit import audit_mechanism
from evertally.audit.draws import draws_attack, laws_of, tails_of, wrong_draw
from evertally.noise import DiscreteGaussian, DiscreteLaplace, kernels, laws, sampler, variates
from evertally.noise.reals import RealLaw


def test_laws_are_those_that_are_drawn() -> None:
    def make(key: Any) -> Any:
        return et.Counter(guarantee=et.ZCDP(0.5), horizon=4, mechanism="tree", key=key)

    (law,) = laws_of(make, [1, 2])
    assert isinstance(law, DiscreteGaussian)
    assert not draws_attack(make, [1, 2]).leaked


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(0.3), DiscreteLaplace(41), DiscreteGaussian(2), DiscreteGaussian(1000)],
    ids=lambda law: law.text(),
)
def test_the_product_draws_what_its_bits_say(law: DiscreteLaplace | DiscreteGaussian) -> None:
    assert wrong_draw(law) == ""
    tails = tails_of(law)
    assert tails is not None
    assert tails == sorted(tails, reverse=True)
    variance = 2 * sum((2 * k - 1) * tail for k, tail in enumerate(tails, start=1)) / 2**320 / 2
    assert variance == pytest.approx(law.stddev() ** 2, rel=1e-6)


def test_a_law_that_is_too_wide_to_add_up_is_left_to_its_address() -> None:
    assert tails_of(DiscreteLaplace(2**30)) is None
    assert wrong_draw(DiscreteLaplace(2**30)) == ""


def _half_a_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = laws.DiscreteLaplace.shift
    monkeypatch.setattr(laws.DiscreteLaplace, "shift", lambda self: tail(self) - 1)


def _never_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    def above(v: Any, thresholds: Any, start: int) -> int:
        k = start
        while k > 0 and thresholds[k - 1] <= v:
            k -= 1
        return k

    monkeypatch.setattr(kernels, "count_above", above)


def _settled_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "settle", lambda law, first, more: 0)


@pytest.mark.parametrize(
    ("plant", "law"),
    [(_half_a_scale, DiscreteLaplace(3)), (_never_ties, DiscreteGaussian(2)), (_settled_too_soon, DiscreteLaplace(3))],
)
def test_mistakes_of_samplers_are_found(plant: Any, law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler.sampler.cache_clear()
    plant(monkeypatch)
    try:
        assert "its bits say" in wrong_draw(law)
    finally:
        sampler.sampler.cache_clear()


def test_mistakes_of_variates_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_draw("gumbel") == wrong_draw(RealLaw("laplace", "")) == ""
    certified = variates._certified

    def shifted(kind: Any, words: Any) -> Any:
        value, error, sure = certified(kind, words)
        return value + 1e-6, error, sure

    monkeypatch.setattr(variates, "_certified", shifted)
    assert "its bits say" in wrong_draw("gumbel")


def test_every_audit_has_the_row() -> None:
    reports = audit_mechanism(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key))
    (row,) = [report for report in reports if report.adversary == "draws"]
    assert (row.aspect, row.verdict) == ("state", "holds (tight)"), "it takes no part in what decides a query"
