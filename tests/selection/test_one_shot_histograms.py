"""One-shot mechanisms: their laws, their charges by enumeration of small histograms, ties, and the public calls.

The laws of the Gumbel mechanisms are enumerated here as walks of exponential mechanisms, apart from the package; what
the package draws is compared with them. A claim (rho, delta_bad) is checked in full on small histograms: the common
labels and the padding of streaming-selection 4.5 are built, and closeness, domination and the bad mass are computed.
False-alarm rate of each statistical test: at most 1e-6, over the choice of its fixed key.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare

from evertally import oneshot
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise, item_addresses, simulation
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Ledger, Neighbours, PureDP
from evertally.selection.histograms import (
    FixedThresholdGauss,
    KnownGauss,
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.item_engine import charge_of
from evertally.selection.items import Items
from evertally.selection.reach import Reach

FALSE_ALARM = 1e-6
REPLACE = Neighbours.REPLACE
NAMES = "abcdef"

one_way = Reach()
REACHES = [one_way, Reach(neighbours=REPLACE), Reach(events=2), Reach(max_weight=3), Reach(2, REPLACE, 2)]


def items_of(histogram, source):
    return Items.of(histogram, source)


def zero_items(histogram):
    return items_of(histogram, ZeroNoise().source())


def released(mechanism, histogram, seed=0, node=0):
    source = simulation(seed).source("test")
    return mechanism.release(items_of(histogram, source), source, node)


def many(mechanism, histogram, runs, seed):
    source = simulation(seed).source("test")
    items = items_of(histogram, source)
    return [mechanism.release(items, source, node) for node in range(runs)]


# -- neighbours --------------------------------------------------------------------------------------------------------


def neighbour(rng, histogram, reach, max_items):
    """A neighbour as far away as `reach` allows: `events` events of one user removed, and under replacement as many
    others added, each with at most `max_items` labels of weight at most `max_weight`."""
    other = dict(histogram)

    def add(sign):
        labels = list(other) if sign > 0 else [u for u in other if histogram[u] > 0]
        alike = rng.random() < 0.3
        for event in range(reach.events):
            if not (alike and event):
                chosen = rng.sample(labels, min(len(labels), rng.randint(0, max_items)))
                weight = rng.randint(1, reach.max_weight)
            for u in chosen:
                other[u] += sign * weight

    add(-1)
    if any(count < 0 for count in other.values()):
        return neighbour(rng, histogram, reach, max_items)
    if reach.neighbours is REPLACE:
        add(1)
    return other


def pairs(seed, reach, cases, max_items=6, largest=4, names=NAMES):
    rng = random.Random(seed)
    for _ in range(cases):
        histogram = {u: rng.randint(0, largest * reach.move) for u in names}
        other = neighbour(rng, histogram, reach, max_items)
        yield rng, *rng.sample([histogram, other], 2)


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_the_reach_of_neighbours(reach):
    """What Reach says is what removing (and adding) events does, and it is reached."""
    seen = {"move": 0, "labels": 0, "l1": 0, "l2": 0}
    for max_items in (1, 2):
        for _, h0, h1 in pairs(800, reach, 1500, max_items):
            moves = [h0[u] - h1[u] for u in NAMES]
            assert max(map(abs, moves)) <= reach.move
            assert sum(map(bool, moves)) <= reach.labels(max_items)
            assert sum(map(abs, moves)) <= reach.l1(max_items)
            assert sum(x * x for x in moves) <= reach.l2_squared(max_items)
            assert reach.sides == 2 or not (min(moves) < 0 < max(moves))
            if max_items == 1:
                seen["move"] = max(seen["move"], *map(abs, moves))
                seen["labels"] = max(seen["labels"], sum(map(bool, moves)))
                seen["l1"] = max(seen["l1"], sum(map(abs, moves)))
                seen["l2"] = max(seen["l2"], sum(x * x for x in moves))
    assert seen == {"move": reach.move, "labels": reach.labels(1), "l1": reach.l1(1), "l2": reach.l2_squared(1)}


def test_reaches_of_the_specification():
    assert (one_way.above_cut, one_way.labels(3), one_way.l2_squared(3)) == (1, 3, 3)
    replaced = Reach(neighbours="replace")
    assert (replaced.move, replaced.above_cut, replaced.labels(3), replaced.l2_squared(3)) == (1, 2, 6, 6)
    group = Reach(max_weight=2, events=5)
    assert (group.move, group.above_cut, group.labels(3), group.l2_squared(3)) == (10, 10, 15, 300)


# -- the largest counts in a fixed order -------------------------------------------------------------------------------


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5), max_size=30), st.integers(1, 12))
def test_top_is_the_beginning_of_the_sorted_items(histogram, kbar):
    items = zero_items(histogram)
    ranked = sorted((u for u in histogram if histogram[u]), key=lambda u: (-histogram[u], u))
    chosen, cut = items.top(kbar)
    assert sorted(items.labels[i] for i in chosen) == sorted(ranked[:kbar])
    assert cut == (histogram[ranked[kbar]] if len(ranked) > kbar else 0)


def fixed_order(histogram, kbar):
    items = zero_items(histogram)
    chosen, cut = items.top(kbar)
    return {items.labels[i] for i in chosen}, cut


def arrival_order(histogram, kbar):
    """Ties as a dictionary finds them: first come, first served."""
    ranked = sorted((u for u in histogram if histogram[u]), key=lambda u: -histogram[u])
    return set(ranked[:kbar]), histogram[ranked[kbar]] if len(ranked) > kbar else 0


def partial_sort(histogram, kbar):
    """Ties as a partial sort leaves them: Hoare's selection, which is what numpy's argpartition builds on."""
    labels = sorted(u for u in histogram if histogram[u])
    if len(labels) <= kbar:
        return set(labels), 0
    low, high = 0, len(labels) - 1
    while low < high:
        pivot, i, j = histogram[labels[kbar]], low, high
        while i <= j:
            while histogram[labels[i]] > pivot:
                i += 1
            while histogram[labels[j]] < pivot:
                j -= 1
            if i <= j:
                labels[i], labels[j] = labels[j], labels[i]
                i, j = i + 1, j - 1
        low, high = (i, high) if j < kbar else (low, high)
        high = j if kbar < i else high
    return set(labels[:kbar]), histogram[labels[kbar]]


def relabelled(rng, h0, h1, kbar, top):
    """Common counts, counts of labels that only one world shows (paired anyhow, dummies in front of zeros), the cut."""
    (D0, cut0), (D1, cut1) = top(h0, kbar), top(h1, kbar)
    E0, E1 = sorted(D0 - D1), sorted(D1 - D0)
    rng.shuffle(E0)
    B = list(itertools.zip_longest([h0[u] for u in E0], [h1[u] for u in E1], fillvalue=0))
    vector = [(h0[u], h1[u]) for u in sorted(D0 & D1)] + B + [(cut0, cut1)]
    at_risk = [h0[u] - cut0 for u in E0] + [h1[u] - cut1 for u in E1]
    return [a - b for a, b in vector], max(len(E0), len(E1)), max(at_risk, default=0)


def broken_claims(reach, top, cases, seed, above_cut=None):
    """How often a claim of the sensitivity lemma (4.3) fails: norms, number of labels at risk, their height."""
    failures = {"norms": 0, "labels": 0, "height": 0}
    allowed = reach.above_cut if above_cut is None else above_cut
    for max_items in (1, 2):
        for rng, h0, h1 in pairs(seed, reach, cases, max_items, largest=2):
            for kbar in (1, 2, 3):
                moves, labels, height = relabelled(rng, h0, h1, kbar, top)
                both_ways = min(moves) < 0 < max(moves)
                l1, l2 = sum(map(abs, moves)), sum(x * x for x in moves)
                within = l1 <= reach.l1(max_items) and l2 <= reach.l2_squared(max_items)
                failures["norms"] += not within or (both_ways and reach.sides == 1)
                failures["labels"] += labels > reach.labels(max_items)
                failures["height"] += height > allowed
    return failures


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_the_sensitivity_lemma(reach):
    assert broken_claims(reach, fixed_order, 400, seed=801) == {"norms": 0, "labels": 0, "height": 0}


def test_integer_counts_change_few_bins():
    """4.3: without weights, at most Delta0 bins change by one each, the threshold included."""
    for rng, h0, h1 in pairs(802, one_way, 1000, max_items=2):
        for kbar in (1, 2, 4):
            moves, _, _ = relabelled(rng, h0, h1, kbar, fixed_order)
            assert sum(map(bool, moves)) <= 2
            assert set(moves) <= {0, 1} or set(moves) <= {0, -1}


@pytest.mark.parametrize("reach", [Reach(neighbours=REPLACE), Reach(events=2)], ids=str)
def test_the_margin_of_one_event_added_is_too_small_for_other_neighbours(reach):
    """Control: "+1" under replacement, or for two events of a user."""
    assert broken_claims(reach, fixed_order, 400, seed=803, above_cut=1)["height"] > 0


@pytest.mark.parametrize(("top", "expected"), [(fixed_order, 1), (partial_sort, 4)], ids=["by label", "partial sort"])
def test_an_event_of_one_label_moves_one_label(top, expected):
    """Control: a partial sort that leaves ties as it finds them swaps several tied labels at once, and the bad mass is
    several delta in place of one."""
    rng, most = random.Random(804), 0
    for _ in range(400):
        histogram = {f"{i:02d}": 2 if rng.random() < 0.1 else 1 for i in range(40)}
        other = histogram | {f"{rng.randrange(60):02d}": 2}
        kbar = rng.choice([3, 5, 10])
        most = max(most, len(top(histogram, kbar)[0] - top(other, kbar)[0]))
    assert most >= expected
    assert (most == 1) == (top is fixed_order)


def test_ties_in_order_of_arrival_are_noticed():
    """Control: the first event is the only one of a label that comes again later; without it the label moves back."""
    early = {"z": 2, "a": 2, "b": 2}
    late = {"a": 2, "b": 2, "z": 2, "c": 1}  # z's first event emptied, c's added: the counts of z are the same
    moved = arrival_order(early, 1)[0] ^ arrival_order(late, 1)[0]
    assert moved == {"z", "a"}
    assert fixed_order(early, 1)[0] == fixed_order(late, 1)[0]


# -- the law of UnknownGumbel, and its charge --------------------------------------------------------------------------


def candidates(histogram, kbar):
    ranked = sorted((u for u in histogram if histogram[u]), key=lambda u: (-histogram[u], u))
    cut = histogram[ranked[kbar]] if len(ranked) > kbar else 0
    return {u: histogram[u] for u in ranked[:kbar] if histogram[u] > cut}, cut


def walks(scores, k, scale):
    """All outcomes of at most k exponential mechanisms in a row, until the threshold (None) comes: {labels: p}."""
    law = {}

    def walk(met, left, p):
        if len(met) == k:
            law[met] = law.get(met, 0.0) + p
            return
        top = max(left.values())
        weights = {u: math.exp(float((score - top) / scale)) for u, score in left.items()}
        total = sum(weights.values())
        for u, weight in weights.items():
            if u is None:
                law[met] = law.get(met, 0.0) + p * weight / total
            else:
                walk((*met, u), {v: score for v, score in left.items() if v != u}, p * weight / total)

    walk((), scores, 1.0)
    return law


def unknown_law(histogram, mechanism, above_cut=None):
    C, cut = candidates(histogram, mechanism.kbar)
    above = mechanism.reach.above_cut if above_cut is None else above_cut
    return walks({**C, None: cut + above + mechanism.margin}, mechanism.k, mechanism.scale)


def hockey_stick(P, Q, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * Q.get(y, 0.0)) for y, p in P.items())


def random_mechanism(rng, reach):
    kbar = rng.randint(1, 4)
    scale = Fraction(rng.randint(1, 8), 4) * reach.move
    delta = Fraction(rng.choice([5, 4, 3, 1]), 10)
    return UnknownGumbel(rng.randint(1, min(kbar, 3)), kbar, scale, None, delta, reach)


def worst_excess(reach, cases, seed, above_cut=None):
    """The largest hockey-stick divergence at the pure epsilon of k picks, in units of kbar q."""
    worst = 0.0
    for rng, h0, h1 in pairs(seed, reach, cases, largest=2):
        mechanism = random_mechanism(rng, reach)
        epsilon = float(mechanism.k * reach.above_cut / mechanism.scale)
        P, Q = (unknown_law(h, mechanism, above_cut) for h in (h0, h1))
        worst = max(worst, hockey_stick(P, Q, epsilon) / float(mechanism.kbar * mechanism.q))
    return worst


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_unknown_gumbel_stays_within_its_delta(reach):
    """streaming-selection 4.5 and 11.1: at most kbar q, labels only."""
    assert worst_excess(reach, 1000, seed=805) <= 1 + 1e-9


def test_the_delta_of_unknown_gumbel_is_reached():
    """kbar labels at once exist in one world only: ten counts just above the cut, and one item lifts the cut."""
    mechanism = UnknownGumbel(1, 2, Fraction(1, 2), None, Fraction(1, 100))
    P, Q = (unknown_law(h, mechanism) for h in ({"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 1, "c": 1}))
    assert hockey_stick(P, Q, 2.0) == pytest.approx(float(2 * mechanism.q), rel=0.01)


@pytest.mark.parametrize("reach", [Reach(neighbours=REPLACE), Reach(events=2)], ids=str)
def test_the_small_margin_breaks_the_delta_of_unknown_gumbel(reach):
    """Control of 1.3: "+1" under replacement, or for two events of a user, exceeds kbar q."""
    assert worst_excess(reach, 1000, seed=806, above_cut=1) > 1.5


def renyi(P, Q, order):
    return math.log(sum(p**order * Q[y] ** (1 - order) for y, p in P.items())) / (order - 1)


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_the_claim_of_unknown_gumbel_in_full(reach):
    """2.3: A_b over common and relabelled bins is rho-close, dominated off the relabelled ones, and rarely on them."""
    for rng, h0, h1 in pairs(807, reach, 250, largest=2):
        mechanism = random_mechanism(rng, reach)
        k, kbar, scale = mechanism.k, mechanism.kbar, mechanism.scale
        (C0, cut0), (C1, cut1) = candidates(h0, kbar), candidates(h1, kbar)
        E0, E1 = sorted(C0.keys() - C1.keys()), sorted(C1.keys() - C0.keys())
        rng.shuffle(E1)
        A = [{u: h[u] for u in C0.keys() & C1.keys()} for h in (h0, h1)]
        for i, (u, v) in enumerate(itertools.zip_longest(E0, E1)):
            # A pair is one bin; a label without a partner keeps its true count in the other world.
            A[0][i], A[1][i] = h0[u or v], h1[v or u]
        for b, cut in enumerate((cut0, cut1)):
            A[b][None] = cut + reach.above_cut + mechanism.margin
        assert sum(isinstance(u, int) for u in A[0]) <= kbar
        moves = [A[0][u] - A[1][u] for u in A[0]]
        assert max(map(abs, moves)) <= reach.move
        assert reach.sides == 2 or not (min(moves) < 0 < max(moves))
        laws = [walks(scores, k, scale) for scores in A]
        rho = float(mechanism.charge.exact_rho)
        for order in (1.01, 2.0, 8.0):
            assert renyi(laws[0], laws[1], order) <= order * rho * (1 + 1e-9)
            assert renyi(laws[1], laws[0], order) <= order * rho * (1 + 1e-9)
        for h, law in zip((h0, h1), laws, strict=True):
            true = unknown_law(h, mechanism)
            good = {y: p for y, p in law.items() if not any(isinstance(u, int) for u in y)}
            assert all(p <= true[y] * (1 + 1e-9) for y, p in good.items())
            assert 1 - sum(good.values()) <= float(mechanism.charge.exact_delta) + 1e-12


def p_value(outcomes, law):
    """Chi-square of outcomes against an exact law, rare outcomes pooled."""
    n = len(outcomes)
    common = [y for y, p in law.items() if n * p >= 10]
    found = [sum(y == c for y in outcomes) for c in common]
    expected = [n * law[c] for c in common]
    rest = n - sum(expected)
    if rest >= 10:
        found, expected = [*found, n - sum(found)], [*expected, rest]
    elif n - sum(found) > 60:  # fewer than 10 were expected
        return 0.0
    else:
        expected = [e * sum(found) / sum(expected) for e in expected]
    return chisquare(found, expected).pvalue


@pytest.mark.parametrize(
    ("histogram", "mechanism"),
    [
        ({"a": 3, "b": 3, "c": 2, "d": 1}, UnknownGumbel(2, 3, Fraction(1), None, Fraction(1, 2))),
        ({"a": 5, "b": 2, "c": 2, "d": 2}, UnknownGumbel(2, 2, Fraction(2), 4, Fraction(9, 10))),
        ({"a": 6, "b": 3}, UnknownGumbel(1, 4, Fraction(3, 2), 4, Fraction(3, 5), Reach(neighbours=REPLACE))),
    ],
    ids=["two of four", "ties at the cut", "replace"],
)
def test_unknown_gumbel_has_the_law_of_the_walk(histogram, mechanism):
    outcomes = [tuple(label for label, _ in pairs_) for pairs_ in many(mechanism, histogram, 4000, 808)]
    law = unknown_law(histogram, mechanism)
    assert set(outcomes) <= set(law)
    assert p_value(outcomes, law) > FALSE_ALARM
    planted = unknown_law(histogram, mechanism, above_cut=mechanism.reach.above_cut - 1)
    assert p_value(outcomes, planted) < FALSE_ALARM, "a threshold that is 1 lower is told apart"


# -- labels that only one world has ------------------------------------------------------------------------------------


def pmf(law):
    reach = int(14 * law.stddev()) + 30
    tails = [float(law.tail(k)) / 2 for k in range(1, reach + 2)]
    right = [a - b for a, b in itertools.pairwise(tails)]
    return np.array([*right[::-1], 1 - 2 * sum(right), *right])


def beats(law, x, noisy_threshold):
    """P(draw > x), or of the difference of two draws."""
    p = pmf(law)
    p = np.convolve(p, p) if noisy_threshold else p
    return p[p.size // 2 + x + 1 :].sum()


RESTRICTED = [
    UnknownGauss(4, Fraction(2), 1, Fraction(2, 5)),
    UnknownGauss(4, Fraction(1, 2), 3, Fraction(1, 10), Reach(neighbours=REPLACE)),
    LimitedDomainLaplace(4, Fraction(3, 2), 1, Fraction(1, 5)),
    LimitedDomainLaplace(4, Fraction(4), 2, Fraction(1, 5), Reach(max_weight=2)),
    FixedThresholdGauss(Fraction(2), 1, Fraction(1, 4)),
    FixedThresholdGauss(Fraction(3), 2, Fraction(1, 4), Reach(max_weight=2, neighbours=REPLACE, events=2)),
]


@pytest.mark.parametrize("mechanism", RESTRICTED, ids=lambda m: f"{type(m).__name__}-{m.reach.neighbours.value}")
def test_a_label_of_one_unit_is_released_with_the_computed_probability(mechanism):
    """Histogram {a: D}: at most delta, and as often as the exact law says (binomial test, 1e-6)."""
    noisy = not isinstance(mechanism, FixedThresholdGauss)
    above = mechanism.reach.above_cut - mechanism.reach.move if noisy else 0
    exact = beats(mechanism.law, above + mechanism.margin, noisy)
    assert exact <= mechanism.delta
    runs = many(mechanism, {"a": mechanism.reach.move}, 4000, 809)
    assert binomtest(sum(map(bool, runs)), 4000, exact).pvalue > FALSE_ALARM
    # At the largest height that a label of one world can have above the cut, the bound is delta itself.
    highest = beats(mechanism.law, mechanism.margin, noisy)
    assert highest <= mechanism.delta
    assert beats(mechanism.law, mechanism.margin - 1, noisy) > mechanism.delta / 10
    if isinstance(mechanism, LimitedDomainLaplace):
        assert beats(mechanism.law, mechanism.margin - 1, noisy) > mechanism.delta, "the margin is the smallest"


@pytest.mark.parametrize(
    "mechanism",
    [
        UnknownGauss(4, Fraction(2), 1, Fraction("1e-6")),
        FixedThresholdGauss(Fraction(2), 1, Fraction("1e-6")),
        LimitedDomainLaplace(4, Fraction(2), 1, Fraction("1e-6")),
    ],
    ids=lambda m: type(m).__name__,
)
def test_margins_at_small_deltas(mechanism):
    """Neither too low nor much too high; 2 tau sqrt(ln(1/delta)) for two draws, tau sqrt(2 ln(1/delta)) for one."""
    noisy = not isinstance(mechanism, FixedThresholdGauss)
    assert mechanism.delta / 100 < beats(mechanism.law, mechanism.margin, noisy) <= mechanism.delta
    if not isinstance(mechanism, LimitedDomainLaplace):
        draws = 2 if noisy else 1
        assert mechanism.margin == math.floor(math.sqrt(draws * 2 * 2 * math.log(1e6)))


def test_a_label_of_one_event_against_the_gumbel_threshold():
    """4.5: {a: 1} with k = kbar = 1 shows a with probability q; binomial test, 1e-6."""
    mechanism = UnknownGumbel(1, 1, Fraction(2), None, Fraction(3, 5))
    shown = sum(map(bool, many(mechanism, {"a": 1}, 6000, 810)))
    assert binomtest(shown, 6000, 1 / (1 + math.exp(mechanism.margin / 2))).pvalue > FALSE_ALARM
    assert mechanism.q <= 1 / (1 + mechanism.delta**-2)


def bad_mass(kbar, items, delta, strict):
    """P(a label is released that the neighbour cannot show): `items` singletons, and one more in the other world."""
    mechanism = UnknownGauss(kbar, Fraction(1), 1, delta)
    labels = [f"{i:03d}" for i in range(items)]
    h0, h1 = dict.fromkeys(labels, 1), dict.fromkeys([*labels, "new"], 1)
    shown0, cut0 = fixed_order(h0, kbar)
    shown1, cut1 = fixed_order(h1, kbar)
    if strict:
        shown0 = {u for u in shown0 if h0[u] > cut0}
        shown1 = {u for u in shown1 if h1[u] > cut1}
    p = pmf(mechanism.law)
    upper = np.concatenate([np.cumsum(p[::-1])[::-1], np.zeros(p.size + mechanism.margin + 2)])
    masses = []
    for only, h, cut in ((shown0 - shown1, h0, cut0), (shown1 - shown0, h1, cut1)):
        x = cut + mechanism.reach.above_cut + mechanism.margin - 1
        assert all(h[u] == 1 for u in only)
        each = np.array([upper[max(0, z + x + 1)] for z in range(p.size)])  # P(draw - (z - centre) > x)
        masses.append(float((p * (1 - (1 - each) ** len(only))).sum()))
    return max(masses)


def test_the_strict_rule_is_not_for_unknown_gauss():
    """Control of 4.3: if a count must exceed the cut strictly, one item that lifts the cut takes kbar labels with it,
    and the mass of outcomes that one world cannot show is beyond Delta0 delta. With ties by label it is not."""
    delta = Fraction(1, 20)
    assert bad_mass(100, 100, delta, strict=False) <= delta
    assert bad_mass(100, 100, delta, strict=True) > 2 * delta


# -- KnownGumbel and counts --------------------------------------------------------------------------------------------


def test_known_gumbel_orders_are_peels():
    """Ordered pairs among 4, chi-square 1e-6; and a planted scale is told apart."""
    histogram = {"c": 4, "a": 0, "d": 1, "b": 2}
    outcomes = [tuple(u for u, _ in pairs_) for pairs_ in many(KnownGumbel(2, Fraction(2)), histogram, 6000, 811)]
    law = walks(histogram, 2, Fraction(2))
    assert p_value(outcomes, law) > FALSE_ALARM
    assert p_value(outcomes, walks(histogram, 2, Fraction(1))) < FALSE_ALARM


@pytest.mark.parametrize("reach", [one_way, Reach(neighbours=REPLACE), Reach(2, REPLACE, 1)], ids=str)
def test_the_charge_of_known_labels(reach):
    """Renyi divergence of the order of k labels; and what one-way counts cost does not pay for replacement."""
    worst = 0.0
    for rng, h0, h1 in pairs(812, reach, 300, names="abcd", max_items=4):
        k = rng.randint(1, 3)
        mechanism = KnownGumbel(k, Fraction(2), None, reach)
        P, Q = (walks(h, k, Fraction(2)) for h in (h0, h1))
        for order in (1.01, 4.0):
            found = renyi(P, Q, order) / order
            assert found <= float(mechanism.charge.exact_rho) * (1 + 1e-9)
            one_way_charge = KnownGumbel(k, Fraction(2), None, Reach(reach.max_weight)).charge
            worst = max(worst, found / float(one_way_charge.exact_rho))
    assert (worst > 1.5) == (reach.sides == 2)


def test_counts_have_fresh_noise():
    """An underdog wins only by its Gumbel noise; its count has Gaussian noise all the same (chi-square, 1e-6)."""
    mechanism = KnownGumbel(1, Fraction(4), 9)
    wins = [value for ((label, value),) in many(mechanism, {"a": 6, "b": 0}, 6000, 813) if label == "b"]
    p = pmf(mechanism.law)
    law = {z - p.size // 2: float(q) for z, q in enumerate(p) if q > 1e-12}
    assert len(wins) > 500
    assert p_value(wins, law) > FALSE_ALARM


def test_without_noise():
    zero = ZeroNoise().source()
    histogram = {"d": 7, "b": 7, "a": 0, "c": 30, "e": 1}
    items = Items.of(histogram, zero)
    assert KnownGauss(1, 1).release(items, zero, 0) == list(histogram.items())
    assert KnownGumbel(5, Fraction(1), 1).release(items, zero, 0) == [
        ("c", 30), ("d", 7), ("b", 7), ("e", 1), ("a", 0)
    ]  # fmt: skip
    delta = Fraction(1, 20)
    assert UnknownGauss(9, 1, 1, delta).release(items, zero, 0) == [("c", 30), ("b", 7), ("d", 7)]
    assert UnknownGauss(2, 1, 1, delta).release(items, zero, 0) == [("c", 30)]
    assert LimitedDomainLaplace(9, 1, 1, delta).release(items, zero, 0) == [("c", 30), ("b", 7), ("d", 7)]
    assert FixedThresholdGauss(4, 1, delta).release(items, zero, 0) == [("c", 30), ("b", 7), ("d", 7)]
    assert UnknownGumbel(9, 9, Fraction(1), 1, delta).release(items, zero, 0) == [("c", 30)]
    assert UnknownGumbel(2, 9, Fraction(1, 2), None, delta).release(items, zero, 0) == [("c", None), ("b", None)]


MECHANISMS = [
    KnownGauss(4, 2),
    KnownGumbel(2, Fraction(3), 9),
    KnownGumbel(3, Fraction(3)),
    UnknownGauss(3, 4, 2, Fraction(1, 3)),
    LimitedDomainLaplace(3, 2, 2, Fraction(1, 3)),
    FixedThresholdGauss(4, 2, Fraction(1, 3)),
    UnknownGumbel(2, 3, Fraction(1), 9, Fraction(1, 2)),
]
by_name = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)


@by_name
@settings(max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=8), st.randoms(use_true_random=False), st.integers(0, 10**6))
def test_arrival_order_has_no_influence(mechanism, counts, random, node):
    """Ties of counts and of released numbers are everywhere here."""
    histogram = {f"item {i}": count for i, count in enumerate(counts)}
    other = list(histogram.items())
    random.shuffle(other)
    expected, found = released(mechanism, histogram, 814, node), released(mechanism, dict(other), 814, node)
    if isinstance(mechanism, KnownGauss):  # the order of the public domain
        assert [label for label, _ in found] == [label for label, _ in other]
        assert sorted(found) == sorted(expected)
    else:
        assert found == expected


@pytest.mark.parametrize("mechanism", [MECHANISMS[0], MECHANISMS[5]], ids=lambda m: type(m).__name__)
def test_an_item_keeps_its_noise_whatever_else_there_is(mechanism):
    base = {"a": 400, "b": 300, "c": 200}
    for node in range(20):
        left, right = (dict(released(mechanism, h, 815, node)) for h in (base, {"new": 2} | base))
        assert {u: right[u] for u in base} == left


@pytest.mark.parametrize("mechanism", MECHANISMS[3:6], ids=lambda m: type(m).__name__)
def test_released_numbers_come_in_their_own_order(mechanism):
    histogram = {"z": 1, "c": 60, "a": 60, "b": 61}
    found = many(mechanism, histogram, 50, 816)
    assert {tuple(u for u, _ in pairs_[:3]) for pairs_ in found} == set(itertools.permutations("abc"))
    for pairs_ in found:
        assert pairs_ == sorted(pairs_, key=lambda pair: (-pair[1], pair[0]))


def test_selections_come_best_first_not_by_count():
    """The order of a selection is free; its numbers are released with other noise and need not fall."""
    falling = [
        all(a[1] >= b[1] for a, b in itertools.pairwise(pairs_))
        for pairs_ in many(KnownGumbel(3, Fraction(2), 25), {"a": 3, "b": 2, "c": 1, "d": 0}, 60, 817)
    ]
    assert not all(falling)


# -- what is drawn -----------------------------------------------------------------------------------------------------


def drawn(mechanism, histogram, node=5):
    recording = Recording(simulation(818))
    source = recording.source("test")
    items = Items.of(histogram, source)
    found = mechanism.release(items, source, node)
    names = {tuple(a): u for u, a in zip(items.labels, items.addresses.tolist(), strict=True)}
    names[tuple(item_addresses(source, [None])[0].tolist())] = None
    return found, [(e.law, e.nodes, [names[a] for a in e.items]) for e in recording.draws]


def test_each_item_is_drawn_once():
    histogram = {"b": 9, "a": 9, "c": 1, "d": 0}
    delta = Fraction(1, 2)
    found, calls = drawn(KnownGumbel(2, Fraction(1), 4), histogram)
    assert calls == [("gumbel", (5,), list("bacd")), (KnownGumbel(2, 1, 4).law, (5,), [u for u, _ in found])]
    _, calls = drawn(UnknownGauss(2, 1, 1, delta), histogram)
    assert [(law, sorted(map(str, names))) for law, _, names in calls] == [
        (UnknownGauss(2, 1, 1, delta).law, ["None", "a", "b"])
    ]
    _, calls = drawn(FixedThresholdGauss(1, 1, delta), histogram)
    assert [names for _, _, names in calls] == [["b", "a", "c"]]
    found, calls = drawn(UnknownGumbel(2, 2, Fraction(1), 4, Fraction(9, 10)), histogram)
    assert [names for _, _, names in calls] == [[None, "a", "b"], [u for u, _ in found]]


def test_thresholds_do_not_use_what_lies_beyond_the_next_count():
    """kbar limits access: counts from rank kbar + 2 on have no influence."""
    for mechanism in (MECHANISMS[3], MECHANISMS[4], MECHANISMS[6]):
        few = {"a": 30, "b": 20, "c": 12, "d": 5}
        lots = few | {f"x{i}": 5 for i in range(50)} | {f"y{i}": 2 for i in range(50)}
        for node in range(10):
            assert released(mechanism, few, 819, node) == released(mechanism, lots, 819, node)


# -- ledger values: 2.2, 4, 1.3, 11.1 and 12 ---------------------------------------------------------------------------

TAU = 3
HALF = Fraction(TAU, 2)


def test_ledger_values_for_events_added_or_removed():
    assert KnownGauss(TAU**2, 5).charge == ZCDP(Fraction(5, 2 * 9))
    assert KnownGumbel(4, HALF).charge == ZCDP(Fraction(4, 2 * 9))
    assert KnownGumbel(4, HALF, TAU**2).charge == ZCDP(Fraction(4, 9))
    delta = Fraction(1, 10**6)
    assert UnknownGauss(10, TAU**2, 5, delta).charge == ApproxZCDP(Fraction(5, 18), 5 * delta)
    assert FixedThresholdGauss(TAU**2, 5, delta).charge == ApproxZCDP(Fraction(5, 18), 5 * delta)
    assert LimitedDomainLaplace(10, Fraction(1, 2), 5, delta).charge == ApproxDP(10, 5 * delta)
    mechanism = UnknownGumbel(4, 20, HALF, TAU**2, delta)
    assert mechanism.charge == ApproxZCDP(Fraction(4, 9), 20 * mechanism.q)
    assert UnknownGumbel(4, 20, HALF, None, delta).charge.exact_rho == Fraction(4, 18)
    assert mechanism.margin == math.ceil(TAU * math.log(10**6))
    assert float(mechanism.q) == pytest.approx(1 / (1 + math.exp(mechanism.margin / 1.5)))
    assert mechanism.q <= 1 / (1 + delta**-2)


def test_ledger_values_under_replacement():
    replaced = Reach(neighbours=REPLACE)
    delta = Fraction(1, 10**6)
    assert KnownGauss(TAU**2, 5, replaced).charge == ZCDP(Fraction(5, 9))
    assert KnownGumbel(4, HALF, None, replaced).charge == ZCDP(4 * Fraction(4, 18))
    assert KnownGumbel(4, HALF, TAU**2, replaced).charge == ZCDP(Fraction(5 * 4, 2 * 9))
    assert UnknownGauss(10, TAU**2, 5, delta, replaced).charge == ApproxZCDP(Fraction(5, 9), 10 * delta)
    assert FixedThresholdGauss(TAU**2, 5, delta, replaced).charge == ApproxZCDP(Fraction(5, 9), 10 * delta)
    assert LimitedDomainLaplace(10, Fraction(1, 2), 5, delta, replaced).charge == ApproxDP(20, 10 * delta)
    mechanism = UnknownGumbel(4, 20, HALF, TAU**2, delta, replaced)
    assert mechanism.charge == ApproxZCDP(Fraction(5 * 4, 2 * 9), 20 * mechanism.q)


@pytest.mark.parametrize("make", [lambda reach: KnownGauss(4, 3, reach), lambda reach: KnownGumbel(3, 2, 4, reach)])
def test_groups_and_weights_cost_their_square(make):
    base = make(one_way).charge.exact_rho
    assert make(Reach(events=4)).charge.exact_rho == 16 * base
    assert make(Reach(max_weight=4)).charge.exact_rho == 16 * base
    assert make(Reach(max_weight=2, events=2)).charge.exact_rho == 16 * base


@given(
    rho=st.fractions(Fraction(1, 10**6), 10),
    delta=st.fractions(Fraction(1, 10**9), Fraction(1, 2)),
    k=st.integers(1, 50),
    max_items=st.integers(1, 20),
    weight=st.integers(1, 10),
    neighbours=st.sampled_from(["add_remove", "replace"]),
    events=st.integers(1, 5),
    counts=st.booleans(),
)
def test_a_budget_is_used_up_but_never_exceeded(rho, delta, k, max_items, weight, neighbours, events, counts):
    reach = Reach(weight, Neighbours(neighbours), events)
    zcdp, approximate, pure = ZCDP(rho), ApproxZCDP(rho, delta, force=True), ApproxDP(rho, delta, force=True)
    found = [
        (zcdp, KnownGauss.within(zcdp, max_items, reach)),
        (zcdp, KnownGumbel.within(zcdp, k, counts=counts, reach=reach)),
        (approximate, UnknownGauss.within(approximate, 10, max_items, reach)),
        (approximate, FixedThresholdGauss.within(approximate, max_items, reach)),
        (approximate, UnknownGumbel.within(approximate, k, 2 * k, counts=counts, reach=reach)),
        (pure, LimitedDomainLaplace.within(pure, 10, max_items, reach)),
    ]
    for budget, mechanism in found:
        ledger = Ledger(budget)
        ledger.promise("it", mechanism.charge)
        assert budget.used_by(mechanism.charge.cost) > Fraction(999, 1000)
    gumbel = found[4][1]
    smaller = 1 / (1 + math.exp((gumbel.margin - 1) / float(gumbel.scale)))
    assert 2 * k * smaller > float(delta) * (1 - 1e-9) or delta / (2 * k) > Fraction(1, 5), "the lowest threshold"


# -- refused -----------------------------------------------------------------------------------------------------------


def test_wrong_parameters_are_refused():
    delta = Fraction(1, 10)
    for wrong in (
        lambda: KnownGauss(0, 1),
        lambda: KnownGauss(1, 0),
        lambda: KnownGumbel(0, Fraction(1)),
        lambda: KnownGumbel(1, Fraction(0)),
        lambda: KnownGumbel(1, Fraction(1), 0),
        lambda: UnknownGauss(0, 1, 1, delta),
        lambda: UnknownGauss(1, 1, 1, Fraction(1)),
        lambda: UnknownGauss(1, 1, 20, delta).charge,
        lambda: UnknownGumbel(3, 2, Fraction(1), None, delta),
        lambda: UnknownGumbel(1, 2, Fraction(2**62), None, delta),
        lambda: LimitedDomainLaplace(1, 0, 1, delta),
        lambda: FixedThresholdGauss(1, True, delta),
        lambda: Reach(max_weight=0),
        lambda: Reach(events=1.0),
        lambda: Reach(2**30, Neighbours.ADD_REMOVE, 2**30),
        lambda: Reach(neighbours=Neighbours.INDEPENDENT),
        lambda: KnownGumbel(3, Fraction(1)).release(zero_items({"a": 1}), ZeroNoise().source(), 0),
    ):
        with pytest.raises(ConfigurationError):
            wrong()


def test_wrong_items_are_refused():
    labels, addresses = ["a", "b"], item_addresses(ZeroNoise().source(), ["a", "b"])
    with pytest.raises(TypeError):
        Items(labels, np.array([1.0, 2.0]), addresses)
    with pytest.raises(TypeError):
        Items(labels, np.array([1]), addresses)
    with pytest.raises(TypeError):
        Items(labels, np.array([1, 2]), addresses[:1])
    for counts in ([-1, 0], [0, 2**61 + 1]):
        with pytest.raises(ValueError, match="counts"):
            Items(labels, np.array(counts), addresses)


def test_empty_histograms():
    for mechanism in MECHANISMS[3:]:
        for node in range(30):
            assert released(mechanism, {}, 820, node) == []
            assert released(mechanism, {"a": 0}, 820, node) == []


# -- the public calls --------------------------------------------------------------------------------------------------

WORDS = {"the": 900, "of": 700, "private": 300, "once": 1}
G = ApproxDP(1.0, 1e-6)


def test_known_calls():
    key = simulation(821)
    release = oneshot.known_histogram(WORDS, ["of", "the", "absent"], guarantee=ZCDP(0.5), max_per_event=2, key=key)
    assert list(release.value) == ["of", "the", "absent"]
    assert not release.private
    lower, upper = release.interval(beta=1e-9)
    assert all(lower[u] <= WORDS.get(u, 0) <= upper[u] for u in release.value)
    assert release.stddev == pytest.approx(math.sqrt(2), rel=1e-6)
    top = oneshot.known_top(WORDS, 2, WORDS, guarantee=G, key=key)
    assert list(top.value) == ["the", "of"]
    labels = oneshot.known_top(WORDS, 2, WORDS, guarantee=G, counts=False, key=key)
    assert labels.value == ["the", "of"]
    assert labels.stddev is None
    with pytest.raises(ConfigurationError, match="counts"):
        labels.interval()


def test_unknown_calls():
    key = simulation(822)
    for options in ({}, {"kbar": 3}, {"kbar": 3, "noise": "laplace"}):
        for guarantee in (G, ApproxZCDP(0.02, 1e-6)):
            release = oneshot.unknown_histogram(WORDS, guarantee=guarantee, key=key, **options)
            assert list(release.value) == ["the", "of", "private"]
            lower, upper = release.interval(beta=1e-9)
            assert all(lower[u] <= WORDS[u] <= upper[u] for u in release.value)
    assert list(oneshot.unknown_top(WORDS, 2, guarantee=G, key=key).value) == ["the", "of"]
    assert oneshot.unknown_top(WORDS, 4, guarantee=G, counts=False, key=key).value == ["the", "of", "private"]


def test_a_delta_is_split_and_kept():
    """Half of delta for rare labels, half to convert rho; together they keep the promise (7.2)."""
    mechanism = FixedThresholdGauss.within(charge_of(G), 3)
    ledger = Ledger(G)
    ledger.promise("words", mechanism.charge)
    assert float(ledger.spent) > 0.999
    assert mechanism.charge.exact_delta == G.exact_delta / 2


def test_calls_bound_what_they_are_given():
    key = simulation(823)
    messy = {"a": 50, b"a": 40, 7: 30, "7": 60, None: 10**9, 1.5: 10**9, "neg": -5, "nan": math.nan, "big": 10**30}
    found = oneshot._seen(messy)
    assert found == {"a": 50, "7": 60, "big": 2**61}
    release = oneshot.known_histogram(messy, ["a", 7], guarantee=ZCDP(50), key=key)
    assert all(abs(release.value[u] - found[u]) <= 2 for u in ("a", "7"))


def test_names_and_parameters_address_the_noise():
    key = simulation(824)

    def noise(**options):
        options = {"guarantee": ZCDP(0.001), "key": key} | options
        value = oneshot.known_histogram({}, list("abcdefgh"), **options).value
        return tuple(value.values())

    assert noise() == noise()
    different = [
        noise(),
        noise(name="other"),
        noise(guarantee=ZCDP(0.0010001)),
        noise(max_weight=2),
        noise(neighbours="replace"),
        noise(max_events_per_user=2),
        noise(key=simulation(825)),
        noise(key=None),
        noise(key=None),
    ]
    assert len(set(different)) == len(different)


def test_without_a_key_releases_are_private():
    assert oneshot.known_histogram({}, ["a"], guarantee=ZCDP(1)).private


def test_wrong_calls_are_refused():
    for wrong in (
        lambda: oneshot.known_histogram(WORDS, ["a"], guarantee=PureDP(1)),
        lambda: oneshot.known_histogram(WORDS, [], guarantee=ZCDP(1)),
        lambda: oneshot.known_histogram(WORDS, ["a", b"a"], guarantee=ZCDP(1)),
        lambda: oneshot.known_histogram(WORDS, ["a", None], guarantee=ZCDP(1)),
        lambda: oneshot.known_top(WORDS, 3, ["a", "b"], guarantee=ZCDP(1)),
        lambda: oneshot.known_histogram(WORDS, ["a"], guarantee=ZCDP(1), neighbours="independent"),
        lambda: oneshot.unknown_histogram(WORDS, guarantee=ZCDP(1)),
        lambda: oneshot.unknown_histogram(WORDS, guarantee=PureDP(1), kbar=2, noise="laplace"),
        lambda: oneshot.unknown_histogram(WORDS, guarantee=G, noise="laplace"),
        lambda: oneshot.unknown_top(WORDS, 3, guarantee=G, kbar=2),
    ):
        with pytest.raises(ConfigurationError):
            wrong()
    with pytest.raises(TypeError, match="mapping"):
        oneshot.unknown_histogram(["a"], guarantee=G)
