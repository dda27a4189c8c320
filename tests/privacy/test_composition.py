"""Composition: sums, and small laws in which the true loss of the whole is computed exactly."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, PureDP, compose

Law = dict[object, float]


@given(st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=10), min_size=1, max_size=6))
def test_sums(values):
    assert compose(*map(PureDP, values)) == PureDP(sum(values))
    assert compose(*map(ZCDP, values)) == ZCDP(sum(values))
    assert compose(ZCDP(1), *map(PureDP, values)) == ZCDP(1 + sum(v**2 for v in values) / 2)


def test_each_mix_gives_the_strongest_kind_that_is_proved():
    assert compose(PureDP(1), ApproxDP(2, 0.125, force=True)) == ApproxDP(3, 0.125, force=True)
    assert compose(ApproxDP(1, 0.125, force=True), ApproxDP(2, 0.25, force=True)) == ApproxDP(3, 0.375, force=True)
    assert compose(ZCDP(1), ApproxDP(2, 0.125, force=True)) == ApproxZCDP(3, 0.125, force=True)
    assert compose(PureDP(2), ApproxZCDP(1, 0.125, force=True)) == ApproxZCDP(3, 0.125, force=True)
    assert compose(ApproxZCDP(1, 0.25, force=True), ApproxZCDP(1, 0.25, force=True)) == ApproxZCDP(2, 0.5, force=True)


def test_the_whole_is_as_weak_as_its_weakest_adversary():
    assert compose(PureDP(1), PureDP(1, adversary="oblivious")).adversary == "oblivious"
    assert compose(PureDP(1), PureDP(1)).adversary == "adaptive"


def test_what_promises_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="nothing to compose"):
        compose()
    with pytest.raises(ConfigurationError, match="deltas"):
        compose(ApproxDP(1, 0.5, force=True), ApproxDP(1, 0.5, force=True))


# Exact laws. A mechanism is a pair of laws, one for each of two neighbours.


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    gain = math.exp(epsilon)
    return math.fsum(max(0.0, mass - gain * q.get(x, 0.0)) for x, mass in p.items())


def true_delta(pair: tuple[Law, Law], epsilon: float) -> float:
    return max(hockey_stick(pair[0], pair[1], epsilon), hockey_stick(pair[1], pair[0], epsilon))


def product(first: tuple[Law, Law], second: tuple[Law, Law]) -> tuple[Law, Law]:
    laws = [
        {(x, y): p * q for (x, p), (y, q) in itertools.product(first[side].items(), second[side].items())}
        for side in (0, 1)
    ]
    return laws[0], laws[1]


def randomised_response(epsilon: float) -> tuple[Law, Law]:
    high = math.exp(epsilon) / (1 + math.exp(epsilon))
    return {0: high, 1: 1 - high}, {0: 1 - high, 1: high}


def discrete_gaussian(rho: float) -> tuple[Law, Law]:
    """A shift by 1 at variance 1/(2 rho)."""
    weight = {x: math.exp(-rho * x * x) for x in range(-60, 61)}
    total = math.fsum(weight.values())
    return {x: w / total for x, w in weight.items()}, {x + 1: w / total for x, w in weight.items()}


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize(("epsilon", "rho"), [(1.0, 0.5), (0.1, 0.05), (3.0, 1.0)])
def test_pure_beside_zcdp(epsilon, rho, delta):
    whole = product(product(randomised_response(epsilon), randomised_response(epsilon)), discrete_gaussian(rho))
    claim = compose(PureDP(epsilon), PureDP(epsilon), ZCDP(rho)).to_approx(delta)
    assert true_delta(whole, claim.epsilon) <= delta


def with_bad_event(pair: tuple[Law, Law], weight: dict[object, float]) -> tuple[Law, Law]:
    """`w A_b` plus the missing mass on an outcome that betrays the neighbour: the worst that is allowed."""
    laws = []
    for side in (0, 1):
        law = {x: weight[x] * mass for x, mass in pair[side].items()}
        law[f"betrayed {side}"] = 1 - math.fsum(law.values())
        laws.append(law)
    return laws[0], laws[1]


@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_conditioned_and_dominated_bad_events_mix(rho, delta):
    """The one claim of the room that no spec states: both meanings of ApproxZCDP may be added up."""
    good = discrete_gaussian(rho)
    support = sorted(good[0].keys() | good[1].keys())
    conditioned = with_bad_event(good, dict.fromkeys(support, 1 - 0.01))
    reach = math.ceil(2 / math.sqrt(rho))
    dominated = with_bad_event(good, {x: float(-reach <= x <= reach + 1) for x in support})
    charges = []
    for pair in (conditioned, dominated):
        bad = max(pair[0]["betrayed 0"], pair[1]["betrayed 1"])
        assert 0 < bad < delta / 3
        charges.append(ApproxZCDP(rho, bad, force=True))
        assert true_delta(pair, charges[-1].to_approx(delta).epsilon) <= delta
    whole = product(conditioned, dominated)
    total = compose(*charges)
    claim = total.to_approx(delta)
    assert true_delta(whole, claim.epsilon) <= delta
    # The bad mass is really there: with the deltas forgotten the claim would be false.
    assert true_delta(whole, 50.0) > 0.9 * total.delta
