"""The exact audit of selection: golden values, agreement with formulas and plain enumeration, tight products, controls.

Nothing here is random but streams and histograms of fixed seeds: an exact audit has no false alarms to count.
"""

from __future__ import annotations

import math
import random
from contextlib import nullcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from audit.bugs.label_noise import late_without_noise
from audit.bugs.one_shot import partial_sort, strict_candidates
from audit.bugs.switches import threshold_kept
from audit.probes.fresh_labels import FRESH
from audit.probes.item_probing import dominated, needed, pair_loss, released_by, unknown
from audit.probes.switches import switching, waits
from evertally.audit.exact import ExactLoss
from evertally.audit.label_noise import ABSENT, item_table, separation
from evertally.audit.laws.enumerated import bad_mass, item_loss, one_shot_law, outcome_law, shown
from evertally.audit.laws.switching import counter_table, sparse_vector_loss
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.privacy import ApproxZCDP, Neighbours
from evertally.selection.histograms import (
    FixedThresholdGauss,
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.reach import Reach


def mass(law, reach=60):
    """Probabilities of -reach..reach, from the formulas."""
    z = np.arange(-reach, reach + 1, dtype=float)
    if isinstance(law, DiscreteGaussian):
        p = np.exp(-z * z / (2 * float(law.sigma_squared)))
    else:
        p = np.exp(-np.abs(z) / float(law.scale))
    return p / p.sum()


def above(p, n):
    """P(Z > n) for probabilities around 0."""
    centre = len(p) // 2
    return float(p[max(0, centre + n + 1) :].sum())


# -- a label of an unknown domain --------------------------------------------------------------------------------------


def test_the_delta_event_of_three_ticks_by_convolution():
    make = unknown(Fraction(5, 2), Fraction(1, 10), 3)
    mechanism = make(None)
    p = mass(mechanism._engine.worker.tree.law)
    n = mechanism.threshold_at(1) - 1
    assert [mechanism.threshold_at(t) - 1 for t in (2, 3)] == [n, n]
    centre = len(p) // 2
    # Ticks 1, 2, 3 have the noise Z1, Z2, Z2 + Z3.
    below = sum(p[centre + z] * (1 - above(p, n - z)) for z in range(-40, n + 1))
    expected = 1 - (1 - above(p, n)) * below
    assert shown(item_loss(make, [1, 0, 0], [0, 0, 0], tail=1e-10).left) == pytest.approx(expected, rel=1e-7)
    late = 1 - below
    assert shown(item_loss(make, [0, 1, 0], [0, 0, 0], tail=1e-10).left) == pytest.approx(late, rel=1e-7)


def test_the_deltas_of_the_probe_are_where_thresholds_step():
    """With a little less delta the threshold is higher: nothing hides a bug of one step."""
    for fresh in FRESH:
        if fresh.name in ("two ticks", "three ticks", "the threshold of the paper", "an event of weight 3"):
            T = len(fresh.stream)
            lower, higher = (
                unknown(fresh.rho, fresh.delta * factor, T, **fresh.options)(None)
                for factor in (1, 1 - Fraction(1, 10**6))
            )
            assert lower.threshold_at(1) < higher.threshold_at(1), fresh.name


def test_the_product_uses_most_of_delta():
    found, claimed, _ = max((fresh.case() for fresh in FRESH), key=lambda case: case[0] / case[1])
    assert 0.6 < found / claimed <= 1


def test_the_noise_of_a_label_has_the_golden_separations():
    # 11.4 (1): mu = sqrt(Delta0)/tau for an event at t = 1, sqrt(n(t)/L) of that at t (3.1, fact 3).
    for T, r in ((16, 2), (26, 3), (27, 3)):
        responses, laws = item_table(unknown(Fraction(1, 2), 1e-6, T, radix=r), [1] + [0] * (T - 1))
        assert responses.shape == (T, T)
        L = len(np.base_repr(T, r))
        for t in range(1, T + 1):
            n = sum(-(-t // r**i) % r != 0 and -(-t // r**i) * r**i <= T for i in range(L))
            mu = separation(responses, laws, (np.arange(1, T + 1) >= t).astype(float))
            assert mu == pytest.approx(math.sqrt(n / L), rel=1e-6)


def test_a_late_label_has_the_same_table():
    make = unknown(Fraction(1, 2), 1e-6, 12, radix=3)
    early, _ = item_table(make, [1] + [0] * 11)
    late, _ = item_table(make, [0] * 6 + [1] + [0] * 5)
    assert {tuple(column) for column in early[6:].T if column.any()} == {tuple(c) for c in late[6:].T if c.any()}
    with late_without_noise():
        other, _ = item_table(make, [0] * 6 + [1] + [0] * 5)
    assert other[6:].sum() < late[6:].sum()


def test_a_move_without_noise_separates_for_sure():
    law = DiscreteGaussian(1)
    twice = np.array([[1.0], [1.0]])
    assert separation(twice, [law], np.array([1.0, 1.0])) == pytest.approx(1)
    assert separation(twice, [law], np.array([1.0, 0.0])) == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_no_random_pair_of_streams_loses_more_than_the_charge(seed):
    rng = random.Random(seed)
    charge = ApproxZCDP(Fraction(rng.choice([1, 3])), Fraction(1, rng.choice([10, 1000])), force=True)
    options = {"threshold": rng.choice(["sum", "per_tick", "paper"]), "sticky": bool(seed % 2)}
    make = unknown(charge.exact_rho, charge.exact_delta, 3, **options)
    stream = [rng.choice([0, 0, 1, 6]) for _ in range(3)]
    t = rng.randrange(3)
    more = [n + (i == t) for i, n in enumerate(stream)]
    found, allowed, _ = dominated(item_loss(make, more, stream, tail=1e-7), charge, "")
    assert found <= allowed * (1 + 1e-9)


def test_large_noise_is_not_enumerated():
    with pytest.raises(ConfigurationError, match="too many"):
        item_loss(unknown(Fraction(1, 100), 0.1, 4), [1, 0, 0, 0], [0, 0, 0, 0])


# -- one release -------------------------------------------------------------------------------------------------------


def test_orders_have_the_law_of_exponential_mechanisms_in_a_row():
    histogram = {"a": 3, "b": 2, "c": 0, "d": 2}
    law, missing = one_shot_law(released_by(KnownGumbel(2, Fraction(3, 2)))(histogram))
    weight = {u: math.exp(n / 1.5) for u, n in histogram.items()}
    total = sum(weight.values())
    expected = {
        ((u, None), (v, None)): weight[u] / total * weight[v] / (total - weight[u]) for u, v in permutations("abcd", 2)
    }
    assert law == pytest.approx(expected, rel=1e-9)
    assert missing == 0


def test_a_single_label_against_a_gumbel_threshold():
    # 11.2: exactly 1/(1 + delta^-2), up to the rounding of the margin.
    mechanism = UnknownGumbel(1, 1, Fraction(1), None, Fraction(1, 10))
    law, _ = one_shot_law(released_by(mechanism)({"a": 1}))
    assert law[("a", None),] == pytest.approx(1 / (1 + math.exp(mechanism.margin)), rel=1e-9)
    assert law[("a", None),] <= 1 / (1 + 100)


def test_a_single_label_against_a_noisy_threshold():
    for mechanism in (
        UnknownGauss(2, Fraction(1, 2), 1, Fraction(1, 20)),
        LimitedDomainLaplace(2, Fraction(1, 2), 1, Fraction(1, 20)),
    ):
        law, missing = one_shot_law(released_by(mechanism)({"a": 1}), tail=1e-7)
        p = mass(mechanism.law)
        expected = above(np.convolve(p, p[::-1]), mechanism.margin)
        found = sum(q for outcome, q in law.items() if outcome)
        assert expected - missing <= found <= expected * (1 + 1e-12)
        assert bad_mass(released_by(mechanism)({"a": 1}), released_by(mechanism)({})) == pytest.approx(expected)


def test_levels_give_the_bad_mass_of_the_enumeration():
    tied = {"b": 1, "c": 1, "d": 1}
    left, right = tied, {**tied, "a": 1}
    for mechanism in (
        UnknownGauss(3, Fraction(1, 4), 1, Fraction(1, 50)),
        LimitedDomainLaplace(3, Fraction(1, 4), 1, Fraction(1, 50)),
    ):
        release = released_by(mechanism)
        found = []
        for patch in (nullcontext, strict_candidates):
            with patch():
                (law, _), (other, _) = (one_shot_law(release(h), tail=1e-8) for h in (left, right))
                found.append(bad_mass(release(left), release(right)))
            possible = {label for outcome in other for label, _ in outcome}
            alone = sum(q for outcome, q in law.items() if {label for label, _ in outcome} - possible)
            assert found[-1] == pytest.approx(alone, rel=1e-4)
        assert found[0] <= mechanism.charge.delta
        assert 2 * found[0] < found[1] <= 3 * found[0], "three labels in place of one"


def test_the_strict_rule_at_ten_labels_as_in_the_text():
    # 4.3 [M]: 0.247 in place of 0.05; ten counts of 1, and one that goes from 0 to 1. Wide noise is nearly continuous.
    ten = dict.fromkeys("abcdefghij", 1)
    mechanism = UnknownGauss(10, Fraction(400), 1, Fraction(1, 20))
    # The quantile, 46.5, in place of Chernoff's bound: the difference of two draws is 47 at least.
    object.__setattr__(mechanism, "margin", math.floor(1.6448536 * math.sqrt(800)))
    release = released_by(mechanism)
    with strict_candidates():
        assert bad_mass(release(ten), release({**ten, "k": 1})) == pytest.approx(0.247, abs=0.005)
    assert bad_mass(release(ten), release({**ten, "k": 1})) == 0
    assert bad_mass(release(ten), release({**ten, "A": 1})) == pytest.approx(0.05, abs=0.002)


def test_ties_swap_one_label_for_one_event():
    many = {f"{i:02d}": 1 for i in range(22)}
    mechanism = LimitedDomainLaplace(4, Fraction(4), 1, Fraction(1, 20))
    release = released_by(mechanism)
    assert bad_mass(release(many), release({**many, "05": 2})) <= 0.05
    with partial_sort():
        assert bad_mass(release(many), release({**many, "05": 2})) > 0.08


@pytest.mark.parametrize("seed", range(5))
def test_no_random_pair_of_histograms_loses_more_than_the_charge(seed):
    rng = random.Random(100 + seed)
    reach = Reach(neighbours=rng.choice([Neighbours.ADD_REMOVE, Neighbours.REPLACE]))
    left = {u: rng.randint(1, 3) for u in "abc"[: rng.randint(1, 3)]}
    right = dict(left)
    if reach.sides == 2:
        right[rng.choice(sorted(left))] -= 1
    joined = rng.choice("abcd")
    right[joined] = right.get(joined, 0) + 1
    right = {u: n for u, n in right.items() if n}
    mechanisms = [
        UnknownGauss(2, Fraction(1, 4), 1, Fraction(1, 50), reach),
        FixedThresholdGauss(Fraction(1, 4), 1, Fraction(1, 50), reach),
        UnknownGumbel(1, 2, Fraction(1, 2), None, Fraction(1, 5), reach),
    ]
    for mechanism in mechanisms:
        loss = pair_loss(released_by(mechanism), left, right, tail=1e-9)
        found, allowed, _ = dominated(loss, mechanism.charge, "")
        assert found <= allowed * (1 + 1e-9)


def test_needed_is_the_bound_of_chernoff():
    assert float(needed(0.4, 2)) == pytest.approx(math.exp(-5), rel=1e-8)
    assert needed(0.4, 2) > math.exp(-5)


def test_a_draw_that_is_fixed_is_not_enumerated():
    law, missing = outcome_law(
        lambda source: tuple(source.draws("lane", DiscreteLaplace(1), [1, 2]).ravel().tolist()),
        fixed=lambda place: 7 if place[1] == 2 else None,
        tail=1e-3,
    )
    assert {outcome[1] for outcome in law} == {7}
    assert missing == 1e-3
    assert sum(law.values()) == pytest.approx(1, abs=1e-3)


# -- sparseGumb --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [1, 2])
def test_sparse_vectors_reach_their_interval_and_no_more(s):
    """6.2 [R, M]: ln(P_low/P_high) in [-1/4, 3/4] times 1/tau1, for each of s runs, and both ends are reached."""
    budget, make = switching(8, s, 12, 32, 50)
    tau1 = math.sqrt(s * budget.tau_squared)
    low, high, named = waits(s, round(2 * tau1), 50)
    assert sparse_vector_loss(make, low, high, named) * tau1 == pytest.approx(0.75 * s, abs=1e-5)
    # A switch in the tail, without a wait: the other end.
    d, eta = 2, 50
    rows = [np.zeros(d, dtype=np.int64), np.array([500, 0])]
    up = [row.copy() for row in rows]
    up[0][1] += 1
    budget, make = switching(8, 1, d, 8, eta)
    tau1 = math.sqrt(budget.tau_squared)
    found = sparse_vector_loss(make, np.array(up), np.array(rows), {1: 0, 2: 0}, tail=1e-250) * tau1
    assert found == pytest.approx(0.25, abs=0.01)


def test_counts_that_move_both_ways_lose_more():
    """6.2 [M]: generic queries reach 1/tau1; only then the row "monotone" is wrong, and "standard" is right."""
    budget, make = switching(8, 1, 12, 32, 50)
    tau1 = math.sqrt(budget.tau_squared)
    low, high, named = waits(1, round(2 * tau1), 50)
    low[0][11] += 1  # the column that ends the wait is higher where the others are lower
    assert sparse_vector_loss(make, low, high, named) * tau1 == pytest.approx(1, abs=1e-3)


def test_a_threshold_noise_that_is_kept_loses_less():
    """Not a leak, but not what the theorem is about: 1/2 once, and 1/4 for each switch."""
    s = 3
    budget, make = switching(8, s, 12, 32, 50)
    tau1 = math.sqrt(s * budget.tau_squared)
    low, high, named = waits(s, round(2 * tau1), 50)
    with threshold_kept():
        assert sparse_vector_loss(make, low, high, named) * tau1 == pytest.approx(0.5 + s / 4, abs=1e-5)


def test_no_switch_is_made_after_the_last():
    budget, make = switching(8, 1, 12, 32, 50)
    tau1 = math.sqrt(budget.tau_squared)
    once, twice = (
        sparse_vector_loss(make, *waits(runs, round(2 * tau1), 50)[:2], waits(runs, 2, 50)[2]) for runs in (1, 2)
    )
    assert once == pytest.approx(twice)


def test_levels_agree_with_all_draws():
    """Three ticks, one question each: the probability by levels is that of the enumeration."""
    budget, make = switching(200, 1, 2, 3, 1)
    rows, up = [(0, 0), (0, 0), (0, 1)], [(0, 1), (0, 0), (0, 1)]
    laws = []
    for stream in (rows, up):

        def run(source, stream=stream):
            engine = make(source)
            return tuple((engine.advance(np.array([row])), engine.selections)[1] for row in stream)

        law, _ = outcome_law(
            run,
            tail=1e-9,
            fixed=lambda p: None if p[0] == "threshold" or (p[0] == "question" and p[2] == 1) else 0,
            variates={"0": 2.0**30, "1": -(2.0**30)},
        )
        laws.append(law)
    for outcome, named in (((1, 1, 2), {1: 0, 3: 0}), ((1, 2, 2), {1: 0, 2: 0}), ((1, 1, 1), {1: 0})):
        exact = math.log(laws[0][outcome] / laws[1][outcome])
        assert sparse_vector_loss(make, rows, up, named) == pytest.approx(exact, abs=1e-6)
    assert ExactLoss(1e-8, *laws).epsilon <= 3 / (4 * math.sqrt(budget.tau_squared))


def test_the_counters_of_sparse_gumb_are_trees():
    budget, make = switching(8, 1, 3, 8, 50)
    rows = np.zeros((8, 3), dtype=np.int64)
    responses, laws = counter_table(make, rows, {1: 0, 5: 1})
    assert (responses.sum(axis=1) == [bin(t).count("1") for t in range(1, 9)]).all()
    need = 4 * 2 * budget.tau_squared  # L (s + 1) tau^2
    assert all(need <= law.sigma_squared <= need * (1 + Fraction(1, 2**30)) for law in laws)
    assert not (responses[:4].any(axis=0) & responses[4:].any(axis=0)).any(), "a new selection has new noise"


def test_absent_is_no_count():
    assert ABSENT < -(2**61)
