"""Guarantees: exact parameters, shown rounded up; what follows from what; shares and groups."""

import pickle
from fractions import Fraction

import pytest
from high_precision import exp, mpf, number
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, PureDP, epsilon_of_rho, rho_of_epsilon_delta

KINDS = [
    lambda x, **k: PureDP(x, **k),
    lambda x, **k: ZCDP(x, **k),
    lambda x, **k: ApproxDP(x, 1e-6, **k),
    lambda x, **k: ApproxZCDP(x, 1e-6, **k),
]

fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
floats = st.floats(1e-6, 100)
small_deltas = st.floats(-30, -1).map(lambda x: 10.0**x)


@given(fractions)
def test_parameters_are_exact_and_shown_rounded_up(value):
    g, a = ZCDP(value), ApproxDP(value, Fraction(1, 3), force=True)
    assert g.exact_rho == value
    assert 0 <= Fraction(g.rho) - value <= Fraction(g.rho) * Fraction(2, 2**52)
    assert Fraction(a.epsilon) >= value
    assert Fraction(a.delta) > Fraction(1, 3)
    assert Fraction(a.delta) - Fraction(1, 3) < Fraction(1, 2**53)


@given(floats)
def test_a_float_is_the_number_it_stores(value):
    assert PureDP(value).exact_epsilon == Fraction(value)
    assert PureDP(value).epsilon == value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), -float("inf"), True, "1", None, 1j, 10**400])
def test_bad_parameters_are_refused(kind, bad):
    with pytest.raises(ConfigurationError, match=r"epsilon|rho"):
        kind(bad)


@pytest.mark.parametrize("kind", [ApproxDP, ApproxZCDP])
@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), None, True])
def test_delta_lies_strictly_between_zero_and_one(kind, bad):
    with pytest.raises(ConfigurationError, match="delta"):
        kind(1, bad)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_values(kind):
    g = kind(0.5)
    assert g == kind(Fraction(1, 2))
    assert hash(g) == hash(kind(Fraction(1, 2)))
    assert g != kind(0.25)
    assert g != kind(0.5, adversary="oblivious")
    assert pickle.loads(pickle.dumps(g)) == g
    assert eval(repr(g)) == g
    with pytest.raises(AttributeError):
        g.adversary = "oblivious"


def test_different_kinds_are_never_equal():
    assert PureDP(1) != ZCDP(1)
    assert ApproxDP(1, 0.5, force=True) != ApproxZCDP(1, 0.5, force=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_adversary_survives_every_derivation(kind):
    g = kind(0.5, adversary="oblivious")
    derived = [g.to_zcdp(), g.to_approx(0.01), g.share(0.5), g.group(1)]
    assert {d.adversary for d in derived} == {"oblivious"}
    assert "oblivious" in repr(g)
    assert g.covers(kind(0.5))
    assert not kind(0.5).covers(g)
    with pytest.raises(ConfigurationError, match="adversary"):
        kind(0.5, adversary="nice")


# Conversions


@given(fractions)
def test_pure_conversions(value):
    g = PureDP(value)
    assert g.to_zcdp() == ZCDP(value**2 / 2)
    assert g.to_approx(1e-9) == ApproxDP(value, 1e-9)


@settings(deadline=None, max_examples=50)
@given(floats, small_deltas)
def test_approx_to_zcdp_and_back_stays_within_the_promise(epsilon, delta):
    promise = ApproxDP(epsilon, delta, force=True)
    rho = promise.to_zcdp()
    assert rho.exact_rho == rho_of_epsilon_delta(epsilon, delta)
    back = rho.to_approx(delta)
    assert promise.covers(rho)
    assert back.exact_epsilon <= promise.exact_epsilon * (1 + Fraction(1, 10**15))
    assert back.exact_epsilon >= promise.exact_epsilon * (1 - Fraction(1, 10**9))
    assert not promise.covers(ZCDP(rho.exact_rho * (1 + Fraction(1, 10**12))))


def test_approx_to_approx_only_weakens():
    g = ApproxDP(1, 1e-6)
    assert g.to_approx(1e-6) == g
    assert g.to_approx(1e-3) == ApproxDP(1, 1e-3)
    with pytest.raises(ConfigurationError, match="smaller delta"):
        g.to_approx(1e-9)
    with pytest.raises(ConfigurationError):
        g.to_approx(1)


def test_approximate_zcdp_conversion_uses_the_delta_that_is_left():
    g = ApproxZCDP(Fraction(1, 10), Fraction(1, 10**7))
    converted = g.to_approx(Fraction(1, 10**6))
    assert converted.exact_epsilon == epsilon_of_rho(Fraction(1, 10), Fraction(9, 10**7))
    assert g.to_zcdp() == ZCDP(Fraction(1, 10))
    with pytest.raises(ConfigurationError, match="spent"):
        g.to_approx(Fraction(1, 10**7))


def test_where_delta_covers_the_loss_epsilon_is_the_smallest_float():
    assert ZCDP(1e-6).to_approx(0.5).epsilon == 5e-324


# Shares


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [[0.1] * 10, ["1/3"] * 3, [0.3, 0.7], [Fraction(1, 7)] * 7, [1], ["0.25"] * 4])
def test_shares_that_make_one_whole_do_so_exactly(kind, parts):
    whole = kind(0.3)
    used = [whole.share(part).cost for part in parts]
    total = sum(used[1:], used[0])
    assert whole.used_by(total) == 1


def test_the_share_of_an_approximate_guarantee_is_zcdp():
    g = ApproxDP(1, 1e-6)
    assert g.share(0.5) == ZCDP(g.to_zcdp().exact_rho / 2)


@pytest.mark.parametrize("bad", [0, -0.1, 1.0000001, "2", "x", "1/0", None, float("nan"), float("inf"), []])
def test_bad_shares_are_refused(bad):
    with pytest.raises(ConfigurationError, match="share"):
        PureDP(1).share(bad)


# Groups


@given(fractions, st.integers(1, 1000))
def test_groups_of_pure_and_zcdp(value, k):
    assert PureDP(value).group(k) == PureDP(value * k)
    assert ZCDP(value).group(k) == ZCDP(value * k**2)


@settings(deadline=None)
@given(st.floats(1e-6, 5), small_deltas, st.integers(1, 10))
def test_groups_of_approximate_are_rounded_up(epsilon, delta, k):
    g = ApproxDP(epsilon, delta, force=True)
    true_delta = number(delta) * sum(exp(i * number(epsilon)) for i in range(k))
    if true_delta >= 1:
        with pytest.raises(ConfigurationError, match="groups"):
            g.group(k)
    else:
        group = g.group(k)
        assert group.exact_epsilon == k * Fraction(epsilon)
        assert true_delta <= number(group.exact_delta) <= true_delta * (1 + mpf(10) ** -9)


def test_a_group_of_one_changes_nothing():
    for kind in KINDS:
        assert kind(0.5).group(1) == kind(0.5)


def test_groups_that_are_refused():
    with pytest.raises(ConfigurationError, match="approximate zCDP"):
        ApproxZCDP(1, 1e-6).group(2)
    for bad in (0, -1, 1.5, True, None):
        with pytest.raises(ConfigurationError, match="whole number"):
            PureDP(1).group(bad)


# What covers what


def test_a_pure_promise_is_kept_by_pure_mechanisms_only():
    assert PureDP(1).covers(PureDP(1))
    assert not PureDP(1).covers(PureDP(Fraction(10**30 + 1, 10**30)))
    for other in (ZCDP(1e-9), ApproxDP(1e-9, 1e-9), ApproxZCDP(1e-9, 1e-9)):
        assert not PureDP(1).covers(other)


def test_a_zcdp_promise():
    assert ZCDP(0.5).covers(PureDP(1))
    assert not ZCDP(0.5).covers(PureDP(1.0000001))
    assert ZCDP(0.5).covers(ZCDP(0.5))
    assert not ZCDP(0.5).covers(ApproxZCDP(0.1, 1e-9))
    assert not ZCDP(0.5).covers(ApproxDP(0.1, 1e-9))


def test_an_approximate_promise():
    g = ApproxDP(1, 1e-6)
    assert g.covers(PureDP(1))
    assert not g.covers(PureDP(1.01))
    assert g.covers(g)
    assert not g.covers(ApproxDP(1, 2e-6))
    assert g.covers(ApproxZCDP(rho_of_epsilon_delta(1, Fraction(1e-6) / 2), Fraction(1e-6) / 2))
    assert not g.covers(ApproxZCDP(g.to_zcdp().exact_rho, 1e-9))
    assert not g.covers(ApproxZCDP(1e-9, 1e-6))


def test_an_approximate_zcdp_promise():
    g = ApproxZCDP(0.5, 1e-6)
    assert g.covers(PureDP(1))
    assert g.covers(ZCDP(0.5))
    assert g.covers(ApproxDP(1, 1e-6))
    assert not g.covers(ApproxDP(1, 1.1e-6))
    assert not g.covers(ZCDP(0.51))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.01, 5)), min_size=3, max_size=3))
def test_covering_is_transitive(choices):
    a, b, c = (KINDS[kind](value) for kind, value in choices)
    if a.covers(b) and b.covers(c):
        # Going through (eps, delta) the second time spends delta again: only the kinds without it are exact.
        assert a.covers(c) or isinstance(b, ApproxDP)
