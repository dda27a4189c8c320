"""Selection: the argmax over real numbers, the laws of the two mechanisms, and what these laws lose.

Laws are written here again, in closed form and by enumeration of permutations. False-alarm rate of each chi-square
test: at most 1e-6, over the choice of its fixed key.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import chisquare

from evertally.balls import at_precision
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.noise.variates import AddressedVariates
from evertally.privacy import ZCDP, PureDP
from evertally.selection import ExponentialMechanism, PermuteAndFlip
from evertally.selection.noisy_max import noisy_argmax
from evertally.selection.roots import root_up

mp.prec = 256  # one precision for all tests: the setting is global, and files share a process

FALSE_ALARM = 1e-6
KINDS = ["exponential", "gumbel"]
MECHANISMS = [ExponentialMechanism, PermuteAndFlip]


class Useless:
    """The same variates with bounds that decide nothing: everything goes through balls."""

    def __init__(self, inner):
        self.refined = 0
        self._inner = inner
        self.lower, self.upper = inner.lower - 1e30, inner.upper + 1e30

    def refine(self, i, bits):
        self.refined += 1
        return self._inner.refine(i, bits)


class Blurred(Useless):
    """The same variates with bounds of very different quality."""

    def __init__(self, inner, rng):
        super().__init__(inner)
        widths = rng.choice([0, 1e-3, 0.3, 2, 9], (2, inner.lower.size))
        self.lower, self.upper = inner.lower - widths[0], inner.upper + widths[1]


# -- the argmax --------------------------------------------------------------------------------------------------------


def by_mpmath(scores, scale, kind, words):
    """The order of scores + scale * variate from 128 bits of each, in 256 bits; None if that cannot tell."""
    values = []
    for u, (a, b) in zip(scores.tolist(), words.tolist(), strict=True):
        e = -mp.log((mpf(a << 64 | b) + 0.5) / mpf(2) ** 128)
        values.append(u + mpf(scale.numerator) / scale.denominator * (e if kind == "exponential" else -mp.log(e)))
    order = sorted(range(len(values)), key=lambda j: -values[j])
    gaps = [values[j] - values[k] for j, k in itertools.pairwise(order)]
    return order if min(gaps, default=1) > mpf(2) ** -60 * scale.numerator / scale.denominator else None


int64 = st.integers(-(2**63), 2**63 - 1)
near = st.tuples(int64, st.lists(st.integers(-40, 40), min_size=1, max_size=12)).map(
    lambda pair: [min(max(pair[0] + k, -(2**63)), 2**63 - 1) for k in pair[1]]
)


@settings(max_examples=200, deadline=None)
@given(
    scores=st.one_of(near, st.lists(int64, min_size=1, max_size=12)),
    scale=st.fractions(Fraction(1, 50), 10**6, max_denominator=10**6)
    | st.sampled_from([Fraction(2**64), Fraction(1, 2**64)]),
    kind=st.sampled_from(KINDS),
    node=st.integers(0, 2**20),
)
@example(scores=[2**61, 2**61 - 1, -(2**61)], scale=Fraction(1), kind="gumbel", node=0)
@example(scores=[-(2**63), 2**63 - 1], scale=Fraction(2**64), kind="exponential", node=0)
def test_the_order_is_that_of_the_real_numbers(scores, scale, kind, node):
    source = simulation(500).source("selection")
    variates = source.variates("pick", kind, node, len(scores))
    scores = np.array(scores, dtype=np.int64)
    expected = by_mpmath(scores, scale, kind, source._lanes["pick"][0].words([node], 0, scores.size)[0])
    if expected is not None:
        for count in {1, min(3, scores.size), scores.size}:
            assert noisy_argmax(scores, scale, variates, count) == expected[:count]
        assert noisy_argmax(scores, scale, Useless(variates), scores.size) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_floats_and_balls_give_the_same_answers(kind):
    rng = np.random.default_rng(501)
    source = simulation(501).source("selection")
    for node in range(60):
        scores = rng.integers(-50, 50, 40)
        variates = source.variates("pick", kind, node, 40)
        slow, mixed = Useless(variates), Blurred(variates, rng)
        for count in (1, 5, 40):
            answer = noisy_argmax(scores, Fraction(7, 2), variates, count)
            assert answer == noisy_argmax(scores, Fraction(7, 2), slow, count)
            assert answer == noisy_argmax(scores, Fraction(7, 2), mixed, count)
        assert slow.refined > mixed.refined > 0


def test_floats_decide_almost_always(monkeypatch):
    def never(*_):
        raise AssertionError("balls were needed")

    monkeypatch.setattr(AddressedVariates, "refine", never)
    source = simulation(502).source("selection")
    scores = np.random.default_rng(502).integers(0, 100, 1000)
    for node in range(50):
        assert len(noisy_argmax(scores, Fraction(20), source.variates("pick", "gumbel", node, 1000), 1000)) == 1000


def planted(kind, rounds):
    """rounds[i][r]: the 128 bits of coordinate i in round r, 0 behind the last."""

    def pair(bits):
        return bits >> 64, bits & (2**64 - 1)

    words = np.array([pair(r[0]) for r in rounds], dtype=np.uint64)
    return AddressedVariates(kind, words, lambda i, r: pair(rounds[i][r]) if r < len(rounds[i]) else (0, 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("round_", [0, 1, 2, 5])
def test_variates_that_differ_late_are_told_apart(kind, round_):
    """Equal up to the last bit of some round. Gumbel rises with U, exponential falls."""
    alike = 0x9E3779B97F4A7C15F39CC0605CEDC835
    smaller = [alike] * (round_ + 1)
    larger = [*smaller[:-1], alike + 2]
    variates = planted(kind, [smaller, larger])
    first = 1 if kind == "gumbel" else 0
    assert noisy_argmax(np.array([5, 5]), Fraction(3), variates, 2) == [first, 1 - first]
    assert noisy_argmax(np.array([5, 5]), Fraction(3), planted(kind, [larger, smaller])) == [1 - first]


@pytest.mark.parametrize("step", [-1000, -2, 2, 1000])
@pytest.mark.parametrize("base", [0, 2**61, -(2**61)])
def test_near_ties_between_different_scores(step, base):
    """E_0 - E_1 = (1 score)/scale up to `step` units of 2^-128: candidate 0 is ahead iff its U is smaller still."""
    scale = Fraction(7, 3)
    one = int(mpf(2) ** 127)
    zero = int(one * mp.exp(-mpf(3) / 7)) + step
    variates = planted("exponential", [[zero], [one]])
    scores = np.array([base - 1, base])
    assert noisy_argmax(scores, scale, variates) == [0 if step < 0 else 1]


def test_near_ties_far_out_where_the_gap_itself_is_rounded():
    """E_0 = about 1477 ln 2 (just below 1024) and E_1 = 2^-60 are both known to the last bits of a float; gap/scale is
    their difference up to 2^-55. Smaller margins than the code's answer wrongly here."""
    rng = np.random.default_rng(510)
    for tail in rng.integers(2**59, 2**59 + 2**50, 8).tolist():
        variates = planted("exponential", [[0] * 11 + [tail], [(2**60 - 1) << 68]])
        assert (variates.upper - variates.lower).max() < 1e-12
        far = -mp.log(tail * mpf(2) ** -1536) + mp.log(1 - mpf(2) ** -60)
        difference = Fraction(int(far * mpf(2) ** 200), 2**200)
        for gap in rng.integers(2**62, 2**62 + 2**56, 200).tolist():
            for side in (-1, 1):
                scale = gap / (difference + Fraction(side, 2**55))
                answer = noisy_argmax(np.array([-(2**62), gap - 2**62]), scale, variates)
                assert answer == [0 if side < 0 else 1], "a larger scale favours candidate 0, which lives on its noise"


def test_a_source_that_repeats_itself_is_found_out():
    variates = planted("gumbel", [[2**127 + 1], [2**127 + 1]])
    with pytest.raises(ArithmeticError, match="broken"):
        noisy_argmax(np.array([0, 0]), Fraction(1), variates)
    assert noisy_argmax(np.array([0, 1]), Fraction(1), variates) == [1]


@given(st.lists(int64, min_size=1, max_size=30), st.data())
def test_without_noise_it_is_the_argmax_with_the_smallest_index(scores, data):
    count = data.draw(st.integers(1, len(scores)))
    variates = ZeroNoise().source("any").variates("pick", "gumbel", 0, len(scores))
    expected = sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:count]
    assert noisy_argmax(np.array(scores, dtype=np.int64), Fraction(5), variates, count) == expected


def test_one_candidate_is_selected():
    assert ExponentialMechanism(Fraction(1)).select(np.array([3]), simulation(1).source("x"), "pick", 0) == 0


def test_wrong_calls_are_refused():
    variates = simulation(503).source("selection").variates("pick", "gumbel", 0, 3)
    for scores in (
        np.array([1.0, 2.0, 3.0]),
        np.array([1, 2]),
        np.array([[1, 2, 3]]),
        np.array([1, 2, 3], dtype=np.int32),
    ):
        with pytest.raises(TypeError, match="int64"):
            noisy_argmax(scores, Fraction(1), variates)
    for count in (0, 4):
        with pytest.raises(ValueError, match="count"):
            noisy_argmax(np.array([1, 2, 3]), Fraction(1), variates, count)
    for scale in (Fraction(0), Fraction(-1), Fraction(1, 2**65), Fraction(2**65)):
        with pytest.raises(ConfigurationError, match="scale"):
            noisy_argmax(np.array([1, 2, 3]), scale, variates)


# -- laws that are drawn -----------------------------------------------------------------------------------------------


def em_law(scores, epsilon):
    """Along the last axis, proportional to exp(epsilon u / 2)."""
    weights = np.exp(epsilon / 2 * (scores - scores.max(axis=-1, keepdims=True)))
    return weights / weights.sum(axis=-1, keepdims=True)


def pf_law(scores, epsilon):
    """Along the last axis: in each order, accept with probability exp(epsilon (u - max) / 2) until one is accepted."""
    accept = np.exp(epsilon / 2 * (scores - scores.max(axis=-1, keepdims=True)))
    law = np.zeros_like(accept)
    orders = list(itertools.permutations(range(scores.shape[-1])))
    for order in orders:
        reached = np.full(accept.shape[:-1], 1 / len(orders))
        for j in order:
            law[..., j] += reached * accept[..., j]
            reached = reached * (1 - accept[..., j])
    return law


LAWS = {ExponentialMechanism: em_law, PermuteAndFlip: pf_law}


def p_value(outcomes, law):
    return chisquare(np.bincount(outcomes, minlength=law.size), law * len(outcomes)).pvalue


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("scores", "epsilon", "sensitivity"),
    [([0, 1, 3, 3], 1, 1), ([10, 4, 7], Fraction(3, 5), 2), ([2**61, 2**61 - 1, 2**61 - 3], Fraction(1, 2), 1)],
    ids=str,
)
def test_selections_have_the_law(mechanism, scores, epsilon, sensitivity):
    select = mechanism(Fraction(epsilon), sensitivity).select
    source = simulation(504).source("selection")
    outcomes = [select(np.array(scores), source, "pick", node) for node in range(8000)]
    small = np.array([u - max(scores) for u in scores], dtype=np.float64)
    assert p_value(outcomes, LAWS[mechanism](small, float(epsilon) / sensitivity)) > FALSE_ALARM
    # planted bugs: the other mechanism's law, and the law without the factor 2
    other = LAWS[next(m for m in MECHANISMS if m is not mechanism)]
    assert p_value(outcomes, other(small, float(epsilon) / sensitivity)) < FALSE_ALARM
    assert p_value(outcomes, LAWS[mechanism](small, 2 * float(epsilon) / sensitivity)) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_the_slow_path_has_the_law(kind):
    mechanism = MECHANISMS[kind == "exponential"]
    source = simulation(505).source("selection")
    scores = np.array([0, 2, 3])
    outcomes = [
        noisy_argmax(scores, Fraction(2), Useless(source.variates("pick", kind, node, 3)))[0] for node in range(3000)
    ]
    assert p_value(outcomes, LAWS[mechanism](scores.astype(np.float64), 1.0)) > FALSE_ALARM


def test_the_gumbel_order_is_one_exponential_mechanism_after_the_other():
    scores, scale = np.array([0, 1, 2, 4]), Fraction(2)
    source = simulation(506).source("selection")
    pairs = list(itertools.permutations(range(4), 2))
    weights = np.exp(scores / 2)
    law = np.array([weights[j] / weights.sum() * weights[k] / (weights.sum() - weights[j]) for j, k in pairs])
    outcomes = [
        pairs.index(tuple(noisy_argmax(scores, scale, source.variates("pick", "gumbel", node, 4), 2)))
        for node in range(8000)
    ]
    assert p_value(outcomes, law) > FALSE_ALARM


# -- what the laws lose: price-of-continual-release 10.1 (8) -----------------------------------------------------------

EPSILONS = [0.1, 1.0, 4.0]
ORDERS = [1.001, 1.5, 2.0, 4.0, 16.0, 64.0]
SIZES = [1, 2, 3, 4]
BOTH_WAYS, ONE_WAY = (-1, 0, 1), (0, 1)


def neighbours(law, d, epsilon, moves=BOTH_WAYS):
    """log P and log Q for all scores in {0..6}^d and all shifts, in both orders."""
    scores = np.array(list(itertools.product(range(-1, 8), repeat=d)), dtype=np.float64)
    logs = np.log(law(scores, epsilon)).reshape([9] * d + [d])
    left = logs[(slice(1, 8),) * d]
    shifts = [s for s in itertools.product(moves, repeat=d) if any(s)]
    right = np.stack([logs[tuple(slice(1 + m, 8 + m) for m in shift)] for shift in shifts])
    left = np.broadcast_to(left, right.shape)
    return np.stack([left, right]).reshape(2, -1, d), np.stack([right, left]).reshape(2, -1, d)


def loss(law, d, epsilon, moves=BOTH_WAYS):
    P, Q = neighbours(law, d, epsilon, moves)
    return np.abs(P - Q).max()


def renyi(law, d, epsilon, order):
    P, Q = neighbours(law, d, epsilon)
    return (np.log(np.exp(order * P + (1 - order) * Q).sum(axis=-1)) / (order - 1)).max()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("law", [em_law, pf_law])
@pytest.mark.parametrize("d", SIZES)
def test_pure_loss_is_at_most_epsilon(law, d, epsilon):
    assert loss(law, d, epsilon) <= epsilon * (1 + 1e-9)
    if law is pf_law and d > 1:
        assert loss(law, d, epsilon) >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", SIZES[1:])
def test_renyi_losses_are_within_the_charges(d, order, epsilon):
    em, pf = ExponentialMechanism(Fraction(epsilon)), PermuteAndFlip(Fraction(epsilon))
    assert renyi(em_law, d, epsilon, order) <= order * em.charge_zcdp.rho * (1 + 1e-9)
    assert renyi(pf_law, d, epsilon, order) <= order * pf.charge_zcdp.rho * (1 + 1e-9)


def test_the_bound_of_the_exponential_mechanism_is_nearly_reached():
    assert renyi(em_law, 2, 0.1, 1.5) > 0.999 * 1.5 * 0.1**2 / 8


@pytest.mark.parametrize("order", [1.001, 2.0])
def test_permute_and_flip_fails_the_bound_of_the_exponential_mechanism(order):
    """Guard: at epsilon = 0.1, scores (0, 1) against (1, 0), its divergence is 0.00476 > 0.00125."""
    P, Q = pf_law(np.array([0.0, 1.0]), 0.1), pf_law(np.array([1.0, 0.0]), 0.1)
    divergence = math.log((P**order * Q ** (1 - order)).sum()) / (order - 1)
    assert divergence / order > 3.5 * 0.1**2 / 8
    assert divergence / order <= 0.1**2 / 2
    assert (P * np.log(P / Q)).sum() == pytest.approx(0.00476, abs=5e-6)
    assert PermuteAndFlip(Fraction(1, 10)).charge_zcdp.exact_rho == Fraction(1, 200)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_without_the_factor_2_the_loss_under_replacement_doubles(epsilon):
    """Trap P3: monotone scores are safe with half the noise, replaced records are not."""
    assert loss(pf_law, 3, 2 * epsilon) == pytest.approx(2 * epsilon, rel=1e-9)
    assert loss(em_law, 3, 2 * epsilon) > 1.2 * epsilon
    for law in (em_law, pf_law):
        assert loss(law, 3, 2 * epsilon, ONE_WAY) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("d", SIZES[1:])
def test_accuracy(d, epsilon):
    """The stated bound holds for both; permute-and-flip never expects to fall further behind."""
    scores = np.array(list(itertools.product(range(7), repeat=d)), dtype=np.float64)
    behind = scores.max(axis=1, keepdims=True) - scores
    em, pf = em_law(scores, epsilon), pf_law(scores, epsilon)
    for beta in (0.5, 0.1, 0.01):
        too_far = behind > 2 / epsilon * math.log(d / beta)
        assert max((em * too_far).sum(axis=1).max(), (pf * too_far).sum(axis=1).max()) <= beta
    assert ((pf * behind).sum(axis=1) <= (em * behind).sum(axis=1) + 1e-12).all()


# -- mechanisms --------------------------------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 10**6), 100), st.integers(1, 1000))
def test_scales_and_charges_are_exact(epsilon, sensitivity):
    em, pf = ExponentialMechanism(epsilon, sensitivity), PermuteAndFlip(epsilon, sensitivity)
    assert em.scale == pf.scale == 2 * sensitivity / epsilon
    assert em.charge_pure == pf.charge_pure == PureDP(epsilon)
    assert em.charge_zcdp == ZCDP(epsilon**2 / 8)
    assert pf.charge_zcdp == ZCDP(epsilon**2 / 2)


@given(st.fractions(Fraction(1, 10**12), 10**4), st.sampled_from(MECHANISMS))
def test_a_charge_is_used_up_but_never_exceeded(rho, mechanism):
    used = mechanism.within(ZCDP(rho)).charge_zcdp.exact_rho
    assert rho * (1 - Fraction(1, 2**60)) <= used <= rho
    assert mechanism.within(PureDP(rho), 3) == mechanism(rho, 3)


def test_wrong_parameters_are_refused():
    for mechanism in MECHANISMS:
        for epsilon in (0, -1, math.nan, math.inf):
            with pytest.raises(ConfigurationError, match="epsilon"):
                mechanism(epsilon)
        for sensitivity in (0, -1, 1.0, Fraction(1, 2)):
            with pytest.raises(ConfigurationError, match="sensitivity"):
                mechanism(Fraction(1), sensitivity)
        for epsilon in (Fraction(1, 2**70), 1e-320, 2**70):
            with pytest.raises(ConfigurationError, match="scale"):
                mechanism(epsilon)


@pytest.mark.parametrize(("mechanism", "kind"), [(ExponentialMechanism, "gumbel"), (PermuteAndFlip, "exponential")])
def test_one_selection_takes_one_vector_of_noise(mechanism, kind):
    recording = Recording(simulation(507))
    source = recording.source("selection")
    scores = np.array([4, 1, 4])
    picked = [mechanism(Fraction(1)).select(scores, source, "pick", node) for node in (3, 8)]
    assert [(e.lane, e.law, e.nodes, e.coordinates) for e in recording.draws] == [
        ("pick", kind, (3,), 3),
        ("pick", kind, (8,), 3),
    ]
    again = simulation(507).source("selection")
    assert picked == [mechanism(Fraction(1)).select(scores, again, "pick", node) for node in (3, 8)]


def test_a_lane_serves_one_mechanism():
    source = simulation(508).source("selection")
    ExponentialMechanism(Fraction(1)).select(np.array([0, 1]), source, "pick", 0)
    with pytest.raises(AssertionError, match="two laws"):
        PermuteAndFlip(Fraction(1)).select(np.array([0, 1]), source, "pick", 1)


def test_infinite_balls_ask_for_more_bits():
    class Late(Useless):
        def refine(self, i, bits):
            return super().refine(i, bits) if bits > 256 else arb(0, arb("inf"))

    variates = simulation(509).source("selection").variates("pick", "gumbel", 0, 5)
    scores = np.array([1, 2, 3, 2, 1])
    assert noisy_argmax(scores, Fraction(4), Late(variates), 5) == noisy_argmax(scores, Fraction(4), variates, 5)


class Late:
    """Two variates that are 2^62 apart, up to their last bits: what decides stands in bit 2^15 - 8."""

    lower = np.array([-1.0, 2.0**62 - 1024])
    upper = np.array([1.0, 2.0**62 + 1024])

    def __init__(self):
        self.asked = []

    def refine(self, i, bits):
        self.asked.append(bits)
        exact = [Fraction(0), 2**62 - Fraction(1, 2 ** (2**15 - 8))][i]
        known = Fraction(math.floor(exact * 2**bits), 2**bits)
        return at_precision(2**16, lambda: arb(known.numerator) / known.denominator + arb(0, 1) / arb(2) ** bits)


def test_all_of_the_last_bits_decide_whatever_the_scores_are():
    """2^15 bits behind the point tell them apart; 62 bits of scores before it take nothing away from that."""
    variates = Late()
    assert noisy_argmax(np.array([2**62, 0]), Fraction(1), variates) == [0]
    assert max(variates.asked) == 2**15


@pytest.mark.parametrize(("square", "shift"), [(Fraction(2), 64), (Fraction(3, 7), 65), (Fraction(5, 3), 64)])
def test_scales_have_as_many_bits_as_they_always_had(square, shift):
    """A scale is part of the law under which a state is restored: another rounding would be another stream."""
    root = root_up(square)
    assert root.denominator <= 2**shift
    assert root == Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator) + 1, 2**shift)
    assert root**2 > square > (root - Fraction(1, 2**shift)) ** 2
