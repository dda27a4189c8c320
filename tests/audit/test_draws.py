"""The row "draws": every planted word gives what its bits say; a sampler with a mistake does not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import evertally as et
from evertally.audit import audit_mechanism, tails
from evertally.audit.addresses import wrong_addresses
from evertally.audit.certificates import wrong_table
from evertally.audit.draws import draws_attack, laws_of, wrong_draw
from evertally.audit.tails import Tails, tails_of
from evertally.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    compiled,
    kernels,
    keystream,
    laws,
    quantile,
    reals,
    sampler,
    source,
    variates,
)
from evertally.noise.reals import RealLaw
from evertally.privacy._exact import ball


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
    listed = tails_of(law)
    assert listed is not None
    assert listed == sorted(listed, reverse=True)
    variance = 2 * sum((2 * k - 1) * tail for k, tail in enumerate(listed, start=1)) / 2**320 / 2
    assert variance == pytest.approx(law.stddev() ** 2, rel=1e-6)


@pytest.mark.parametrize(
    "law",
    [DiscreteLaplace(2**30), DiscreteGaussian(1100**2), DiscreteGaussian(Fraction(2**60) / 7), DiscreteGaussian(2**80)],
    ids=lambda law: law.text(),
)
def test_a_law_that_is_too_wide_to_list_has_the_tails_of_its_series(law: DiscreteLaplace | DiscreteGaussian) -> None:
    assert tails_of(law) is None
    far = Tails(law)
    assert 2**236 < far.at(far.last) < 2**242, "as far as listed ones"
    assert wrong_draw(law) == ""


@pytest.mark.parametrize("law", [DiscreteLaplace(41), DiscreteGaussian(900**2)], ids=lambda law: law.text())
def test_both_ways_to_tails_agree(law: DiscreteLaplace | DiscreteGaussian) -> None:
    listed, far = tails_of(law), Tails(law).last
    assert listed is not None
    for k in (1, 2, 17, far // 2, far):
        assert abs(tails._tail(law, k) - listed[k - 1]) <= 1


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


def _series_of_one_term(monkeypatch: pytest.MonkeyPatch) -> None:
    def bernoulli_free(self: laws.DiscreteGaussian, k: int) -> Any:
        x = (2 * k - 1) / arb(2) / ball(self.sigma_squared).sqrt()
        return (x / arb(2).sqrt()).erfc()

    monkeypatch.setattr(laws.DiscreteGaussian, "_wide_tail", bernoulli_free)


def _a_wide_series_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = laws.DiscreteGaussian._wide_tail
    monkeypatch.setattr(laws.DiscreteGaussian, "_wide_tail", lambda self, k: tail(self, k) + arb(0, 2.0**-40))


def _settled_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "settle", lambda law, first, more: 0)


@pytest.mark.parametrize(
    ("plant", "law"),
    [
        (_half_a_scale, DiscreteLaplace(3)),
        (_never_ties, DiscreteGaussian(2)),
        (_settled_too_soon, DiscreteLaplace(3)),
        (_series_of_one_term, DiscreteGaussian(5000**2)),
        (_a_wide_series_that_never_ends, DiscreteGaussian(5000**2)),
    ],
)
def test_mistakes_of_samplers_are_found(plant: Any, law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler.sampler.cache_clear()
    plant(monkeypatch)
    try:
        assert any(word in wrong_draw(law) for word in ("its bits say", "bits that decide it"))
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


def _bound_of_the_last(fill: Any) -> Any:
    def filled(words: Any, coefficients: Any, radius: Any, value: Any, largest: Any, size: Any) -> int:
        left: int = fill(words, coefficients, radius, value, largest, size)
        alone = np.empty(len(value))
        fill(words[:, -1:], coefficients, radius, np.empty((len(value), 1)), alone, np.empty(len(value)))
        largest[...] = alone
        return left

    return filled


def test_a_bound_that_is_not_of_the_worst_of_a_node_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "fill_reals", _bound_of_the_last(compiled.fill_reals))
    assert "farther than" in wrong_draw(RealLaw("normal", ""))


def test_a_bound_of_neighbours_that_is_the_smaller_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def smaller(self: Any, parts: Any) -> None:
        beside(self, parts)
        self.radius = np.min([part.radius for part in parts], axis=0)

    beside = reals.SideBySide.__init__
    monkeypatch.setattr(reals.SideBySide, "__init__", smaller)
    assert "farther than" in wrong_draw(RealLaw("normal", ""))


@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_radii_below_their_theorem_are_found(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_table(kind) == ""
    table = getattr(quantile, "gaussian_quantile" if kind == "normal" else "laplace_quantile")()
    less = replace(table, radius=table.radius * 0.93)  # sixteen roundings of Horner's rule in place of seventeen
    monkeypatch.setattr(quantile, "gaussian_quantile" if kind == "normal" else "laplace_quantile", lambda: less)
    assert "claims less" in wrong_table(kind)


def test_far_tails_that_are_cut_too_soon_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(refine: Any) -> tuple[float, float]:
        found = refine(256)
        high = float(found.mid())
        return high, 0.0

    monkeypatch.setattr(reals, "_double_of", coarse)
    assert "two floats" in wrong_draw(RealLaw("laplace", ""))


def test_a_trial_key_that_calls_itself_private_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_addresses() == ""
    monkeypatch.setattr(et.Key, "private", property(lambda key: True))
    assert "said to be private" in wrong_addresses()


@pytest.mark.parametrize("few", [2, 16, 64, 150])
def test_pages_that_do_not_turn_among_few_draws_are_found(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = keystream.Keystream.words

    def of_the_first_page(self: Any, nodes: Any, first: int, count: int, round_: int = 0) -> Any:
        if not 1 < len(nodes) <= few or nodes[0] >> keystream.PAGE_BITS == nodes[-1] >> keystream.PAGE_BITS:
            return honest(self, nodes, first, count, round_)
        page = int(nodes[0]) >> keystream.PAGE_BITS << keystream.PAGE_BITS
        within = np.asarray(nodes) & ((1 << keystream.PAGE_BITS) - 1)
        return honest(self, page | within, first, count, round_)

    monkeypatch.setattr(keystream.Keystream, "words", of_the_first_page)
    assert "of several pages, are not those of each alone" in wrong_addresses()


def test_columns_of_the_next_page_are_drawn_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = source.KeyedSource._piece

    def from_the_first_column(stream: Any, law: Any, nodes: Any, first: int, count: int) -> Any:
        return honest(stream, law, nodes, 0 if 1 < len(nodes) < 50 and first > 60_000 else first, count)

    monkeypatch.setattr(source.KeyedSource, "_piece", staticmethod(from_the_first_column))
    assert "of several pages, are not those of each alone" in wrong_addresses()


def test_every_audit_has_the_row() -> None:
    reports = audit_mechanism(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key))
    (row,) = [report for report in reports if report.adversary == "draws"]
    assert (row.aspect, row.verdict) == ("state", "holds (tight)"), "it takes no part in what decides a query"
