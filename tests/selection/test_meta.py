"""MetaAlgo: its blocks online are those offline, one call a tick, what it pays and draws, and what it loses.

Blocks and tilings are written here again from streaming-selection 3.1.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.bounds.selection import L, digits
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxZCDP, Neighbours
from evertally.selection.histograms import FixedThresholdGauss, KnownGauss, KnownGumbel, UnknownGauss, UnknownGumbel
from evertally.selection.meta import KnownBlocks, MetaAlgo, SeenBlocks, block_share, paid_by
from evertally.selection.reach import Reach


def trailing_zeros(t, r):
    return next(i for i, digit in enumerate(digits(t, r)) if digit)


def tiling(t, r):
    """The blocks (first tick, last tick) that tile 1..t."""
    blocks, end = [], t
    for i, digit in enumerate(digits(t, r)):
        for _ in range(digit):
            blocks.append((end - r**i + 1, end))
            end -= r**i
    assert end == 0
    return blocks


class Exact:
    """A stand-in that releases what it sees, and remembers it."""

    def __init__(self):
        self.calls = []

    def release(self, items, source, node):
        self.calls.append((node, dict(zip(items.labels, items.counts.tolist(), strict=True))))
        return [(label, int(count)) for label, count in zip(items.labels, items.counts, strict=True)]


def names(d):
    return [f"item {j}" for j in range(d)]


def sparse_totals(row, labels):
    seen = np.flatnonzero(row).tolist()
    return {labels[j]: int(row[j]) for j in seen}


def engine(one_shot, source, T, r, labels=None):
    depth = L(T, r)
    blocks = SeenBlocks(depth, source) if labels is None else KnownBlocks(labels, depth, source)
    return MetaAlgo(one_shot, blocks, radix=r, depth=depth, source=source)


# -- blocks ------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(r=st.sampled_from([2, 3, 4, 7]), T=st.integers(7, 130), known=st.booleans(), seed=st.integers(0, 1000))
def test_online_blocks_are_those_of_the_stream(r, T, known, seed):
    rows = np.random.default_rng(seed).poisson(0.3, (T, 5))
    labels, exact, source = names(5), Exact(), ZeroNoise().source()
    meta = engine(exact, source, T, r, labels if known else None)
    prefix = np.zeros(5, dtype=np.int64)
    for t, row in enumerate(rows, start=1):
        meta.step(row if known else sparse_totals(row, labels))
        v = trailing_zeros(t, r)
        block = rows[t - r**v : t].sum(axis=0)
        expected = {label: int(n) for label, n in zip(labels, block, strict=True) if known or n}
        # One call a tick, at the tick's own address, on the block that ends there and nothing else.
        assert exact.calls[-1] == (t, expected)
        assert len(exact.calls) == t
        # What is kept is one release for each block of the tiling.
        kept = [rows[a - 1 : b].sum(axis=0) for a, b in tiling(t, r)]
        assert sorted(map(repr, meta.cells)) == sorted(
            repr({label: int(n) for label, n in zip(labels, cell, strict=True) if known or n}) for cell in kept
        )
        prefix += row
        assert meta.counts() == {label: int(n) for label, n in zip(labels, prefix, strict=True) if known or n}


def test_the_order_in_which_labels_arrive_is_not_to_be_seen():
    rng = np.random.default_rng(4)
    labels = names(40)
    one_shot = FixedThresholdGauss(Fraction(2), 1, Fraction(1, 10))
    outputs = []
    for turn in (1, -1):
        source = simulation(5).source("x")
        meta = engine(one_shot, source, 60, 3)
        rng = np.random.default_rng(4)
        out = []
        for _ in range(60):
            totals = sparse_totals(rng.poisson(1.0, 40), labels)
            meta.step(dict(list(totals.items())[::turn]))
            out.append((meta.top(10), repr(meta.cells), meta.state()))
        outputs.append(out)
    assert outputs[0] == outputs[1]
    assert any(top for top, _, _ in outputs[0])


@pytest.mark.parametrize("known", [True, False])
def test_every_tick_can_be_restored(known):
    labels, T, r = names(6), 30, 3
    one_shot = KnownGumbel(2, Fraction(1), Fraction(4)) if known else UnknownGauss(3, Fraction(1), 1, Fraction(1, 5))
    rows = np.random.default_rng(6).poisson(2.0, (T, 6))

    def made():
        return engine(one_shot, simulation(7).source("x"), T, r, labels if known else None)

    meta = made()
    seen = []
    for row in rows:
        meta.step(row if known else sparse_totals(row, labels))
        seen.append((meta.top(3), meta.state()))
    for t in range(T):
        again = made()
        if t:
            again.load(t, seen[t - 1][1])
            assert again.top(3) == seen[t - 1][0]
        for later in range(t, min(t + 4, T)):
            again.step(rows[later] if known else sparse_totals(rows[later], labels))
            assert (again.top(3), again.state()) == seen[later]


# -- without noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_shot", [KnownGauss(Fraction(4), 3), KnownGumbel(5, Fraction(1), Fraction(4))])
def test_without_noise_and_without_a_cut_it_is_exact(one_shot):
    rows = np.random.default_rng(8).poisson(1.0, (100, 5))
    meta = engine(one_shot, ZeroNoise().source(), 100, 4, names(5))
    for t, row in enumerate(rows, start=1):
        meta.step(row)
        assert meta.counts() == dict(zip(names(5), rows[:t].sum(axis=0).tolist(), strict=True))


def test_what_a_block_does_not_release_is_lost_and_said_to_be():
    # Radix 2: at tick 3 the blocks are 1..2 and 3. "a" leads the first, "b" the second.
    meta = engine(KnownGumbel(1, Fraction(1), Fraction(4)), ZeroNoise().source(), 3, 2, ["a", "b"])
    for row in ([3, 1], [3, 1], [4, 5]):
        meta.step(np.array(row))
    assert meta.cells == [{"b": 5}, {"a": 6}]
    assert meta.top(2) == [("a", 6), ("b", 5)]
    # "a" lost at most 5 in the block where "b" led with 5: it was 4. "b" lost at most 6: it was 2.
    assert meta.missed("a") == (1, 5)
    assert meta.missed("b") == (1, 6)
    assert meta.missed("never seen") == (2, 11)


def test_unknown_blocks_know_their_own_labels_only():
    exact = Exact()
    meta = engine(exact, ZeroNoise().source(), 8, 2)
    for label in ("a", "b", "c", "d", "e"):
        meta.step({label: 1})
    assert [set(block) for _, block in exact.calls] == [{"a"}, {"a", "b"}, {"c"}, {"a", "b", "c", "d"}, {"e"}]


# -- what it pays ------------------------------------------------------------------------------------------------------

TAU = Fraction(3)
REPLACED = Reach(neighbours=Neighbours.REPLACE)


def total(one_shot, depth):
    charge = one_shot.charge
    return depth * charge.exact_rho, depth * getattr(charge, "exact_delta", Fraction(0))


@pytest.mark.parametrize("depth", [1, 5, 11])
def test_rows_of_the_ledger(depth):
    """streaming-selection 5.1, from noise at sqrt(L) tau and delta/L in every block."""
    k, kbar, few, delta = 3, 20, 2, Fraction(1, 1000)
    variance, scale = depth * TAU**2, Fraction(math.isqrt(depth * 9 * 10**30 // 4) + 1, 10**15)  # sqrt(L) tau/2, up
    half = 1 / (2 * TAU**2)
    assert total(KnownGauss(variance, few), depth) == (few * half, 0)
    rho, _ = total(KnownGumbel(k, scale, variance), depth)
    assert k / TAU**2 * (1 - Fraction(1, 10**12)) < rho <= k / TAU**2
    rho, _ = total(KnownGumbel(k, scale, variance, REPLACED), depth)
    assert Fraction(5 * k, 2) / TAU**2 * (1 - Fraction(1, 10**12)) < rho <= Fraction(5 * k, 2) / TAU**2
    assert total(UnknownGauss(kbar, variance, few, delta / depth), depth) == (few * half, few * delta)
    rho, bad = total(UnknownGumbel(k, kbar, scale, variance, delta / depth), depth)
    assert rho <= k / TAU**2
    assert bad <= depth * kbar / (1 + (depth / delta) ** 2)  # q_L


@pytest.mark.parametrize("blocks", [1, 3])
def test_shares_add_up_to_the_whole(blocks):
    depth, charge = 7, ApproxZCDP(Fraction(1, 2), Fraction(1, 10**6))
    share = block_share(charge, depth, blocks)
    assert (share.exact_rho * depth, share.exact_delta * depth * blocks) == (charge.exact_rho, charge.exact_delta)
    for one_shot in (
        UnknownGauss.within(share, 10, 2),
        UnknownGumbel.within(share, 2, 10),
        FixedThresholdGauss.within(share, 2),
    ):
        rho, delta = total(one_shot, depth)
        assert charge.exact_rho * (1 - Fraction(1, 2**30)) < rho <= charge.exact_rho
        assert delta * blocks <= charge.exact_delta
    oblivious = block_share(ZCDP(1, adversary="oblivious"), 5)
    assert (oblivious.exact_rho, oblivious.adversary) == (Fraction(1, 5), "oblivious")


@pytest.mark.parametrize("g", [1, 2, 5])
def test_a_users_events_in_several_blocks_cost_no_more_than_in_one(g):
    """The cost of a block, in units of one call for all g events, added up over every way to spread the events."""

    def parts(n):
        if n == 0:
            yield ()
        for first in range(n, 0, -1):
            for rest in parts(n - first):
                yield (first, *rest)

    for removed in parts(g):
        # add_remove: selections and counts go with the square of the events in the block
        assert sum(n * n for n in removed) <= g * g
        for added in parts(g):
            for shift in range(len(removed) + 1):  # blocks may be shared or not
                n = np.zeros(shift + len(added) + len(removed), dtype=int)
                m = n.copy()
                n[: len(removed)] += removed
                m[shift : shift + len(added)] += added
                # replace: a selection ranges over n + m, a count moves by max(n, m), a histogram's l2 by both
                assert ((n + m) ** 2 + np.maximum(n, m) ** 2).sum() <= 5 * g * g
                assert ((n + m) * np.maximum(n, m)).sum() <= 2 * g * g


def spreads(g, blocks):
    """Every way to put at most g events of those that go, and of those that come, into so many blocks."""
    parts = [p for p in itertools.product(range(g + 1), repeat=blocks) if sum(p) <= g]
    return itertools.product(parts, repeat=2)


# count_variance over scale^2: from far below the condition of additions 4, over its border, to the paper's 4
RATIOS = [Fraction(1, 16), Fraction(1), Fraction(2) - Fraction(1, 10**9), Fraction(2), Fraction(3), Fraction(4)]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_the_charge_of_events_apart_is_the_largest_sum_over_all_ways_to_spread_them(ratio, neighbours):
    """Written again from 2.2 and 1.3: in a block from which n events go and to which m come, a selection ranges over
    (n + m) w/scale and costs its square over 8; a count moves by at most max(n, m) w."""
    k, w, scale = 2, 3, Fraction(7)
    variance = ratio * scale**2
    for g, blocks in ((1, 3), (2, 3), (3, 2)):
        reach = Reach(w, neighbours, g)
        worst = max(
            sum(
                k * ((n + m) * w / scale) ** 2 / 8 + k * Fraction(max(n, m) * w) ** 2 / (2 * variance)
                for n, m in zip(gone, come, strict=True)
            )
            for gone, come in spreads(g, blocks)
            if neighbours is Neighbours.REPLACE or not any(come)
        )
        known = KnownGumbel(k, scale, variance, reach)
        unknown = UnknownGumbel(k, 4, scale, variance, Fraction(1, 100), reach)
        assert known.charge_apart.exact_rho == unknown.charge_apart.exact_rho == worst
        breaks = neighbours is Neighbours.REPLACE and variance < 2 * scale**2
        assert (known.charge.exact_rho < worst) == breaks, "the condition of additions 4, exactly"
        labels_only = KnownGumbel(k, scale, None, reach)
        assert labels_only.charge_apart == labels_only.charge


@pytest.mark.parametrize("g", [1, 2, 3])
def test_squared_norms_of_events_apart_add_up_to_no_more_than_together(g):
    """One label an event, weight 1: those that go take one label, those that come another, or the same."""
    reach = Reach(neighbours=Neighbours.REPLACE, events=g)
    worst = max(
        sum(max(n * n + m * m, (n - m) ** 2) for n, m in zip(gone, come, strict=True)) for gone, come in spreads(g, 3)
    )
    assert worst == reach.l2_squared(1) == 2 * g * g
    for one_shot in (KnownGauss(5, 1, reach), UnknownGauss(4, 5, 1, Fraction(1, 100), reach)):
        assert one_shot.charge_apart == one_shot.charge
        assert one_shot.charge.exact_rho == Fraction(worst, 10)


def test_noise_that_pays_for_one_block_only_is_refused():
    users = Reach(neighbours=Neighbours.REPLACE, events=2)
    charge, depth = ZCDP(1), 3
    dear = KnownGumbel(1, scale=6, count_variance=Fraction(33, 4), reach=users)  # 3 (4/72 + 4/16.5) < 1 in one block
    assert depth * dear.charge.exact_rho <= charge.exact_rho < depth * dear.charge_apart.exact_rho
    with pytest.raises(ConfigurationError, match="in different blocks"):
        paid_by(charge, dear, depth)
    unknown = UnknownGumbel(1, 3, 6, dear.count_variance, Fraction(1, 100), users)
    with pytest.raises(ConfigurationError, match="in different blocks"):
        paid_by(ApproxZCDP(1, Fraction(1, 10), force=True), unknown, depth, blocks=4)
    few = ApproxZCDP(1, Fraction(1, 10**6))
    share = block_share(few, depth, blocks=2)
    made = UnknownGumbel.within(share, 1, 3, reach=users)
    assert paid_by(few, made, depth, blocks=2) is made
    with pytest.raises(ConfigurationError, match="in each of 4"):
        paid_by(few, made, depth, blocks=4)


@settings(max_examples=60, deadline=None)
@given(
    rho=st.fractions(Fraction(1, 50), 20, max_denominator=10**6),
    k=st.integers(1, 9),
    w=st.integers(1, 5),
    g=st.integers(1, 6),
    depth=st.integers(1, 12),
)
def test_what_is_made_within_a_share_is_paid_wherever_the_events_lie(rho, k, w, g, depth):
    reach = Reach(w, Neighbours.REPLACE, g)
    known = KnownGumbel.within(block_share(ZCDP(rho), depth), k, reach=reach)
    assert known.charge_apart == known.charge
    assert paid_by(ZCDP(rho), known, depth) is known
    every = KnownGauss.within(block_share(ZCDP(rho), depth), k, reach)
    assert paid_by(ZCDP(rho), every, depth) is every
    bad, blocks = ApproxZCDP(rho, Fraction(1, 10**5)), 2 * g
    for made in (
        UnknownGumbel.within(block_share(bad, depth, blocks), k, 2 * k, reach=reach),
        UnknownGauss.within(block_share(bad, depth, blocks), 20, k, reach),
    ):
        assert paid_by(bad, made, depth, blocks) is made


# -- what it draws -----------------------------------------------------------------------------------------------------


def test_draws():
    T, r, k, d = 40, 3, 2, 6
    one_shot = KnownGumbel.within(block_share(ZCDP(Fraction(1, 2)), L(T, r)), k)
    key = Recording(simulation(9))
    meta = engine(one_shot, key.source("x"), T, r, names(d))
    for row in np.random.default_rng(9).poisson(1.0, (T, d)):
        meta.step(row)
    # At every tick one selection among d items and k counts of those selected, all with the tick as address.
    assert [(x.nodes, x.coordinates) for x in key.draws] == [((t,), n) for t in range(1, T + 1) for n in (d, k)]
    assert [x.law for x in key.draws] == ["gumbel", one_shot.law] * T
    assert len({x.lane for x in key.draws}) == 2
    assert one_shot.law.sigma_squared == pytest.approx(L(T, r) * k / Fraction(1, 2))  # L tau^2, tau^2 = k/rho
    assert float(one_shot.scale) == pytest.approx(math.sqrt(one_shot.law.sigma_squared) / 2)


@pytest.mark.parametrize("r", [2, 3, 5])
def test_a_label_that_no_block_released_missed_every_tick(r):
    """The blocks of a tiling hold each tick once; one that released the label misses none of its own."""
    found = engine(Exact(), ZeroNoise().source(), 60, r)
    for t in range(1, 61):
        found.step(["seen"] if t > 30 else ["before"])
        blocks = tiling(t, r)
        assert found.missed_ticks("nobody") == t
        without = [last - first + 1 for first, last in blocks if last <= 30]
        assert found.missed_ticks("seen") == sum(without)
