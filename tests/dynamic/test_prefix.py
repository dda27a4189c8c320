"""C1 and C2: dynamic-data 5.1 and 5.2."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_static import Recorded, SmallHistogram

from evertally.dynamic.parts import Place
from evertally.dynamic.prefix import DoublingBlocks, FiniteTree, amount, chain, level_of
from evertally.errors import HorizonExceeded
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, PureDP

SOURCE = ZeroNoise().source()


def tree(static, budget, length, source=SOURCE):
    return FiniteTree(static, budget, length, lambda level, index: Place(source, f"level-{level}", index))


def blocks(static, budget, source=SOURCE):
    return DoublingBlocks(static, budget, lambda lane, node: Place(source, lane, node))


def test_a_prefix_is_the_disjoint_union_of_its_chain():
    for index in range(1, 600):
        covered = sorted(u for node in chain(index) for u in range(node - 2 ** level_of(node) + 1, node + 1))
        assert covered == list(range(1, index + 1))


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=40))
def test_without_noise_both_are_the_multiset(stream):
    one, two = tree(SmallHistogram(4), PureDP(1), len(stream)), blocks(SmallHistogram(4), ZCDP(1))
    model: Counter[int] = Counter()
    for inserted in stream:
        model.update(inserted)
        data = np.bincount(np.array(inserted, dtype=np.int64), minlength=4).astype(np.int64)
        one.feed(data)
        two.feed(data)
        assert one.row().tolist() == two.row().tolist() == [model[cell] for cell in range(4)]


@pytest.mark.parametrize("length", [*range(1, 20), 127, 128, 129, 299])
def test_levels_of_the_tree(length):
    """Index 1 really lies in bl(T) nodes, each node at a level of its own; dividing by log T would overspend."""
    static = Recorded(length)
    made = tree(static, PureDP(1), length)
    for index in range(length):
        made.feed(np.eye(length, dtype=np.int64)[index])
    spent = sum(np.array(a.data) * a.budget.exact_epsilon for a in static.asked)
    assert max(spent) == 1  # every index within the budget, the first one at its end
    assert len(static.asked) == length


def test_a_tree_ends_where_its_levels_end():
    made = tree(Recorded(), PureDP(1), 5)
    for _ in range(7):
        made.feed(np.array([1]))
    with pytest.raises(HorizonExceeded, match="7 indices"):
        made.feed(np.array([1]))
    assert made.index == 7


def test_every_index_of_the_blocks_is_paid_for_once():
    """One outer release at a half, at most i inner ones at 1/(2i); a release per index; each lane has one budget."""
    count = 300
    static = Recorded(count)
    made = blocks(static, ZCDP(1))
    for index in range(count):
        made.feed(np.eye(count, dtype=np.int64)[index])
        assert made.row()[: index + 1].tolist() == [1] * (index + 1)
        assert not made.row()[index + 1 :].any()
    spent = sum(np.array(a.data) * a.budget.exact_rho for a in static.asked)
    assert max(spent) == 1
    assert len(static.asked) == count == len({(a.lane, a.node) for a in static.asked})
    laws = {(a.lane, a.budget) for a in static.asked}
    assert len(laws) == len({lane for lane, _ in laws})


def test_cover_of_the_blocks():
    """dynamic-data 11.1.4: the cover of [1, t], and how much of the budget each part of it has, for t <= 4096."""
    made = blocks(SmallHistogram(), PureDP(1))
    for t in range(1, 4097):
        i = t.bit_length() - 1
        u = t - 2**i + 1
        outer = [Fraction(1, 2)] * (i + 1) if u == 2**i else [Fraction(1, 2)] * i + [Fraction(1, 2 * i)] * u.bit_count()
        assert [amount(b) for b in made.budgets(t)] == outer
        assert len(outer) <= max(1, 2 * i)


def test_variances_of_the_specification():
    """5.2: continuous Laplace counting, eps = 1."""
    made = blocks(SmallHistogram(), PureDP(1))
    variances = [sum(2 / amount(b) ** 2 for b in made.budgets(t)) for t in range(1, 9)]
    assert variances == [8, 16, 16, 48, 48, 80, 24, 96]
    # 11.5: the worst of block i is 8 (i + i^3), and at its end it drops
    for i in range(1, 11):
        block = [sum(2 / amount(b) ** 2 for b in made.budgets(t)) for t in range(2**i, 2 ** (i + 1))]
        assert (max(block), block[-1]) == (8 * (i + i**3), 8 * (i + 1))


@pytest.mark.parametrize(
    "make", [lambda: blocks(SmallHistogram(), PureDP(1)), lambda: tree(SmallHistogram(), PureDP(1), 63)]
)
def test_widest_is_no_better_than_any(make):
    made = make()
    for last in range(1, 64):
        widest = sum(2 / amount(b) ** 2 for b in made.widest(last))
        assert widest >= max(sum(2 / amount(b) ** 2 for b in made.budgets(t)) for t in range(1, last + 1))


@pytest.mark.parametrize("kind", ["tree", "blocks"])
def test_a_state_continues_with_the_same_bytes(kind):
    def make():
        source = simulation(3).source("prefix")
        return (
            tree(SmallHistogram(3), ZCDP(1), 40, source)
            if kind == "tree"
            else blocks(SmallHistogram(3), ZCDP(1), source)
        )

    data = np.random.default_rng(1).integers(0, 9, (40, 3))
    whole = make()
    rows = []
    for row in data:
        whole.feed(row)
        rows.append(whole.row().tolist())
    for cut in range(40):
        first, second = make(), make()
        for row in data[:cut]:
            first.feed(row)
        second.load(first.state())
        assert second.state() == first.state()
        assert second.row().tolist() == (rows[cut - 1] if cut else [0, 0, 0])
        second.feed(data[cut])
        assert second.row().tolist() == rows[cut]


def test_noise_has_the_stated_variance():
    """11.3.1 at eps = 1, t = 1..64, with one column for each run: 20 000 runs, false alarms below 1e-6."""
    runs = 20_000
    static = SmallHistogram(runs)
    one = tree(static, PureDP(1), 64, simulation(5).source("tree"))
    two = blocks(static, PureDP(1), simulation(6).source("blocks"))
    nothing = np.zeros(runs, dtype=np.int64)
    for _ in range(64):
        for made in (one, two):
            made.feed(nothing)
            expected = static.stddev(made.budgets(), 0) ** 2
            # The variance of a squared sum of Laplace draws is at most 5 of its mean squared; six deviations.
            assert abs(made.row().astype(float).var() / expected - 1) < 6 * (5 / runs) ** 0.5
