"""Conversions: on the safe side of 60-digit arithmetic, and next to the optimum."""

import itertools
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import ctx
from high_precision import best_epsilon, best_log_delta, best_rho, exp, gaussian_delta, log, mpf, number, sqrt
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.balls import at_precision
from evertally.errors import ConfigurationError
from evertally.privacy import (
    conversions,
    delta_of_rho,
    epsilon_of_rho,
    rho_of_epsilon_delta,
)
from evertally.privacy._exact import SMALLEST_FLOAT, root_of
from evertally.privacy.conversions import (
    _rho_of_epsilon_delta,
    _surely_within,
    epsilon_of_mu,
    gaussian_mu,
    group_delta,
)
from formulas.conversions import (
    ideal_gaussian_delta,
    ideal_gaussian_rho,
    simple_delta_of_rho,
    simple_epsilon_of_rho,
    simple_rho_of_epsilon_delta,
)

NEAR = mpf(10) ** -9  # promised; the results are in fact within 2^-51

epsilons = st.floats(-6, 2).map(lambda x: 10.0**x)
deltas = st.one_of(st.floats(-300, -1), st.floats(-12, -0.302)).map(lambda x: 10.0**x)
rhos = st.floats(-15, 3).map(lambda x: 10.0**x)
CORNERS = list(itertools.product([1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0], [1e-300, 1e-30, 1e-9, 1e-3, 0.1, 0.5]))


def same_digits(value: float | Fraction, printed: str) -> bool:
    """Whether the printed number is the value rounded to its digits (at least 5 of them)."""
    half_unit = Decimal(5).scaleb(Decimal(printed).as_tuple().exponent - 1)  # type: ignore[operator]
    return abs(Fraction(value) - Fraction(printed)) <= Fraction(half_unit)


def bits(value: Fraction) -> int:
    odd = value.numerator
    while odd and odd % 2 == 0:
        odd //= 2
    return odd.bit_length()


# The tables of the specs


@pytest.mark.parametrize(
    ("epsilon", "delta", "simple", "optimised", "gaussian"),
    [
        ("1", "1e-6", "0.0174689", "0.024356", "0.0280145"),
        ("0.5", "1e-6", "0.00444384", "0.00664152", "0.00770117"),
        ("0.1", "1e-6", "1.80304e-4", "3.21048e-4", "3.79354e-4"),
        ("1", "1e-9", "0.0117812", "0.0149731", "0.0165574"),
        ("4", "1e-6", "0.253936", "0.311065", "0.351004"),
    ],
)
def test_table_of_price_of_continual_release(epsilon, delta, simple, optimised, gaussian):
    e, d = Fraction(epsilon), Fraction(delta)
    assert same_digits(simple_rho_of_epsilon_delta(e, d), simple)
    assert same_digits(rho_of_epsilon_delta(e, d), optimised)
    assert same_digits(ideal_gaussian_rho(e, d), gaussian)


@pytest.mark.parametrize(
    ("epsilon", "delta", "ideal_sigma", "sigma", "rho"),
    [
        ("0.8", "1e-10", "7.271154", "7.61836", "0.008615"),
        ("0.5", "1e-10", "11.436240", "11.99520", "0.003475"),
        ("0.1", "1e-10", "54.206296", "57.05350", "0.000154"),
        ("0.5", "1e-6", "8.057618", "8.67663", "0.006642"),
        ("0.9", "1e-5", "4.106624", "4.45665", "0.025174"),
        ("1.0", "1e-6", "4.224679", "4.53088", "0.024356"),
    ],
)
def test_table_of_factorization_counting(epsilon, delta, ideal_sigma, sigma, rho):
    e, d = Fraction(epsilon), Fraction(delta)
    assert same_digits(rho_of_epsilon_delta(e, d), rho)
    assert same_digits(float(2 * rho_of_epsilon_delta(e, d)) ** -0.5, sigma)
    assert same_digits((2 * ideal_gaussian_rho(e, d)) ** -0.5, ideal_sigma)


# Safe, and close to the optimum


def check_rho(epsilon: float, delta: float) -> None:
    best, found = best_rho(epsilon, delta), rho_of_epsilon_delta(epsilon, delta)
    assert best * (1 - NEAR) <= number(found) <= best
    assert bits(found) <= 53


def check_epsilon(rho: float, delta: float) -> None:
    best, found = best_epsilon(rho, delta), epsilon_of_rho(rho, delta)
    if best <= 0:
        assert found == 0
    else:
        assert best <= number(found) <= best * (1 + NEAR)
    assert bits(found) <= 53


def check_delta(rho: float, epsilon: float) -> None:
    best, found = best_log_delta(rho, epsilon), delta_of_rho(rho, epsilon)
    if best < -744:
        assert found >= SMALLEST_FLOAT
    else:
        assert best <= log(number(found)) <= best + NEAR
    assert found <= 1


@pytest.mark.parametrize(("epsilon", "delta"), CORNERS)
def test_corners(epsilon, delta):
    check_rho(epsilon, delta)
    check_epsilon(float(rho_of_epsilon_delta(epsilon, delta)), delta)
    check_epsilon(epsilon, delta)
    check_delta(float(rho_of_epsilon_delta(epsilon, delta)), epsilon)


@settings(deadline=None, max_examples=60)
@given(epsilons, deltas)
def test_rho_is_certified(epsilon, delta):
    check_rho(epsilon, delta)


@settings(deadline=None, max_examples=60)
@given(rhos, deltas)
def test_epsilon_is_certified(rho, delta):
    check_epsilon(rho, delta)


@settings(deadline=None, max_examples=60)
@given(rhos, epsilons)
def test_delta_is_certified(rho, epsilon):
    check_delta(rho, epsilon)


@settings(deadline=None, max_examples=100)
@given(epsilons, deltas)
def test_simple_conversions_are_certified(epsilon, delta):
    L, e = -log(number(delta)), number(epsilon)
    rho = simple_rho_of_epsilon_delta(epsilon, delta)
    best = (e / (sqrt(L + e) + sqrt(L))) ** 2
    assert best * (1 - NEAR) <= number(rho) <= best
    assert number(rho) + 2 * sqrt(number(rho) * L) <= e
    best = e + 2 * sqrt(e * L)
    assert best <= number(simple_epsilon_of_rho(epsilon, delta)) <= best * (1 + NEAR)
    if 4 * rho * 700 > (Fraction(epsilon) - rho) ** 2:
        best = exp(-((e - number(rho)) ** 2) / (4 * number(rho)))
        assert best <= number(simple_delta_of_rho(rho, epsilon)) <= best * (1 + NEAR)


@settings(deadline=None, max_examples=100)
@given(epsilons, deltas)
def test_the_optimised_conversion_lies_between_the_simple_and_the_ideal_gaussian_one(epsilon, delta):
    optimised = rho_of_epsilon_delta(epsilon, delta)
    assert simple_rho_of_epsilon_delta(epsilon, delta) <= optimised <= Fraction(ideal_gaussian_rho(epsilon, delta))
    assert epsilon_of_rho(optimised, delta) <= simple_epsilon_of_rho(optimised, delta)
    assert delta_of_rho(optimised, epsilon) <= simple_delta_of_rho(optimised, epsilon)


# Shape


@settings(deadline=None, max_examples=60)
@given(epsilons, deltas, st.floats(1e-9, 3))
def test_monotone(epsilon, delta, step):
    more = epsilon * (1 + step)
    assert rho_of_epsilon_delta(epsilon, delta) <= rho_of_epsilon_delta(more, delta)
    assert rho_of_epsilon_delta(epsilon, delta) <= rho_of_epsilon_delta(epsilon, min(0.6, delta * (1 + step)))
    rho = epsilon
    assert epsilon_of_rho(rho, delta) <= epsilon_of_rho(rho * (1 + step), delta)
    assert epsilon_of_rho(rho, delta) >= epsilon_of_rho(rho, min(0.6, delta * (1 + step)))
    assert delta_of_rho(rho, epsilon) >= delta_of_rho(rho, more)
    assert delta_of_rho(rho, epsilon) <= delta_of_rho(rho * (1 + step), epsilon)


@settings(deadline=None, max_examples=60)
@given(epsilons, deltas)
def test_there_and_back_loses_next_to_nothing_and_gains_nothing(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    rho = rho_of_epsilon_delta(e, d)
    assert rho_of_epsilon_delta(max(epsilon_of_rho(rho, d), SMALLEST_FLOAT), d) >= rho * (1 - Fraction(1, 10**9))
    assert epsilon_of_rho(rho, d) <= e * (1 + Fraction(1, 10**15))
    assert d * (1 - Fraction(1, 10**9)) <= delta_of_rho(rho, e) <= d * (1 + Fraction(1, 10**15))


def test_beyond_the_range_of_floats():
    tiny = Fraction(1, 10**400)
    assert 0 < rho_of_epsilon_delta(1, tiny) < rho_of_epsilon_delta(1, 1e-300)
    assert 0 < rho_of_epsilon_delta(tiny, 1e-6) <= rho_of_epsilon_delta(1e-300, 1e-6)
    assert 0 < simple_rho_of_epsilon_delta(tiny, tiny) < tiny**2
    assert delta_of_rho(1e-12, 100) == simple_delta_of_rho(1e-12, 100) == SMALLEST_FLOAT
    assert delta_of_rho(1e290, 1) == 1
    assert simple_delta_of_rho(2, 1) == 1
    assert epsilon_of_rho(1e-6, 0.5) == 0
    assert rho_of_epsilon_delta(1, 1 - Fraction(1, 10**30)) > rho_of_epsilon_delta(1, 0.999)


def test_numbers_do_not_depend_on_the_global_precision_and_leave_it_alone():
    before, expected = ctx.prec, rho_of_epsilon_delta(1, 1e-6)
    _rho_of_epsilon_delta.cache_clear()
    try:
        ctx.prec = 20
        assert rho_of_epsilon_delta(1, 1e-6) == expected
        with pytest.raises(ConfigurationError):
            rho_of_epsilon_delta(1, 2)
        assert ctx.prec == 20
    finally:
        ctx.prec = before


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), True, "1", None, 10**400])
def test_bad_parameters_are_refused(bad):
    for call in (epsilon_of_rho, simple_epsilon_of_rho, rho_of_epsilon_delta, simple_rho_of_epsilon_delta):
        with pytest.raises(ConfigurationError):
            call(bad, 1e-6)
        with pytest.raises(ConfigurationError):
            call(1, bad)
    for call in (epsilon_of_mu, gaussian_mu):
        with pytest.raises(ConfigurationError):
            call(bad, 1e-6)
        with pytest.raises(ConfigurationError):
            call(1, bad)
    for call in (delta_of_rho, simple_delta_of_rho, ideal_gaussian_delta):
        with pytest.raises(ConfigurationError):
            call(bad, 1)
    with pytest.raises(ConfigurationError):
        ideal_gaussian_rho(1, 1)


@settings(deadline=None, max_examples=60)
@given(epsilons, st.floats(-300, -5).map(lambda x: 10.0**x), st.integers(1, 50))
def test_group_delta_is_certified(epsilon, delta, size):
    best = number(delta) * sum(exp(i * number(epsilon)) for i in range(size))
    found = number(group_delta(Fraction(epsilon), Fraction(delta), size))
    if best < 1 and (size - 1) * epsilon <= 800:
        assert best <= found <= best * (1 + NEAR)
    else:
        assert found == 1


# The exact Gaussian curve


def check_curve(mu: float | Fraction, delta: float) -> None:
    found, d = epsilon_of_mu(mu, delta), number(delta)
    assert gaussian_delta(mu, number(found)) <= d
    less = number(found) - NEAR * (number(found) + d)
    assert less < 0 or gaussian_delta(mu, less) > d, "and hardly a smaller one"
    assert bits(found) <= 53


@pytest.mark.parametrize(("mu", "delta"), CORNERS)
def test_corners_of_the_curve(mu, delta):
    check_curve(mu, delta)


@settings(deadline=None, max_examples=60)
@given(st.floats(-9, 2).map(lambda x: 10.0**x), deltas)
def test_epsilon_of_mu_is_certified(mu, delta):
    check_curve(mu, delta)
    assert epsilon_of_mu(mu, delta) <= epsilon_of_rho(Fraction(mu) ** 2 / 2, delta)
    assert epsilon_of_mu(mu, delta) >= epsilon_of_mu(mu, min(0.6, delta * 1.5))
    assert epsilon_of_mu(mu, delta) <= epsilon_of_mu(mu * 1.5, delta)


@settings(deadline=None, max_examples=60)
@given(epsilons, deltas)
def test_mu_and_epsilon_are_inverse(epsilon, delta):
    e, d = Fraction(epsilon), Fraction(delta)
    mu = gaussian_mu(e, d)
    assert gaussian_delta(mu, number(e)) <= number(d)
    assert e - (e + d) / 10**9 <= epsilon_of_mu(mu, d) <= e * (1 + Fraction(1, 10**15))


def test_the_curve_far_out():
    assert epsilon_of_mu(1, 0.5) == epsilon_of_mu(1e-300, 1e-6) == 0
    for mu in (1e10, 1e20, 1e100):  # no search finds these; what follows from rho is true all the same
        assert Fraction(mu) ** 2 / 2 < epsilon_of_mu(mu, 1e-6) <= epsilon_of_rho(Fraction(mu) ** 2 / 2, 1e-6)


# The exact Gaussian curve is for ideal noise


def discrete_gaussian_delta(variance: mpf, epsilon: mpf) -> mpf:
    """True delta of one release with a discrete Gaussian and a shift by 1, summed."""
    reach = int(40 * sqrt(variance)) + 40
    mass = {x: exp(-(mpf(x) ** 2) / (2 * variance)) for x in range(-reach, reach + 1)}
    total = sum(mass.values())
    losses = (mass[x] - exp(epsilon) * mass[x - 1] for x in range(-reach + 1, reach + 1))
    return sum(loss for loss in losses if loss > 0) / total


@pytest.mark.parametrize(("delta", "truth"), [("1e-6", "1.0197e-6"), ("1e-9", "1.037e-9")])
def test_the_exact_gaussian_curve_is_wrong_for_the_discrete_gaussian(delta, truth):
    variance = 1 / (2 * number(ideal_gaussian_rho(1, Fraction(delta))))
    true_delta = discrete_gaussian_delta(variance, mpf(1))
    assert true_delta > number(Fraction(delta)) * (1 + mpf(10) ** -2)
    assert same_digits(float(true_delta), truth)

    allowed = 1 / (2 * number(rho_of_epsilon_delta(1, Fraction(delta))))
    assert discrete_gaussian_delta(allowed, mpf(1)) < number(Fraction(delta))


def test_at_small_variance_the_discrete_gaussian_loses_twice_the_ideal_one():
    ratio = discrete_gaussian_delta(mpf(1) / 4, mpf(5)) / mpf(ideal_gaussian_delta(2, 5))
    assert same_digits(float(ratio), "2.09")


@settings(deadline=None, max_examples=40)
@given(epsilons, deltas)
def test_ideal_gaussian_inverse(epsilon, delta):
    rho = ideal_gaussian_rho(epsilon, delta)
    assert ideal_gaussian_delta((2 * rho) ** 0.5, epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("noise", ["discrete", "exponential mechanism"])
def test_the_exact_gaussian_curve_is_refused_for_released_noise(noise):
    with pytest.raises(ConfigurationError, match="continuous noise only"):
        ideal_gaussian_rho(1, 1e-6, noise=noise)
    with pytest.raises(ConfigurationError, match="continuous noise only"):
        ideal_gaussian_delta(1, 1, noise=noise)


@pytest.mark.parametrize(("mu", "delta"), [("64/25", "1/100"), ("197/100", "1/100000000"), ("157/50", "1/100")])
def test_where_the_first_candidate_is_not_certified_the_next_is_hardly_larger(mu: str, delta: str) -> None:
    """The search ends below the root here. What is taken instead is certified, and within a millionth of it."""
    m, d = Fraction(mu), Fraction(delta)
    found = epsilon_of_mu(m, d)
    assert _surely_within(m, found, d)
    assert not _surely_within(m, found * (1 - Fraction(1, 10**6)), d)


def test_a_search_that_ends_a_hair_above_is_drawn_back_by_a_hair(monkeypatch):
    """By way of rho it would be 7 % less mu: more noise than the promise needs."""
    e, d = Fraction(1), Fraction(1, 10**6)
    exact = gaussian_mu(e, d)

    def above(formula):
        found = root_of(formula)
        return at_precision(200, lambda: found * (1 + 2.0**-51))

    monkeypatch.setattr(conversions, "root_of", above)
    found = conversions._gaussian_mu.__wrapped__(e, d)
    assert _surely_within(found, e, d)
    assert exact * (1 - Fraction(1, 2**48)) < found <= exact * (1 + Fraction(1, 2**52))
