"""K, a static release anew at public ticks: dynamic-data 13.3, 13.7."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_static import Recorded, Sampled, SmallHistogram

from evertally.dynamic.anew import Schedule
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.parts import Setting, Updates
from evertally.dynamic.prefix import amount
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxDP, Contribution, PureDP

CELLS = 3


def plan(static=None, guarantee=None, **given_):
    public = {"horizon": 40, "identity": "token", "protects": "item", "steps": 1, "every": 3} | given_
    return CONSTRUCTIONS["anew"].plan(
        Setting(static or SmallHistogram(CELLS), guarantee or PureDP(1), **public), Contribution()
    )


def worker(*args, source=None, **given_):
    return plan(*args, **given_).worker(source or ZeroNoise().source("w"))


def updates(pairs):
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Updates(table[:, 0], table[:, 1], np.full(len(table), -1))


def rows(made, ticks):
    values, lasts = made.advance([updates(pairs) for pairs in ticks])
    return np.repeat(values, lasts, axis=0).tolist()


update = st.tuples(st.integers(0, CELLS - 1), st.sampled_from([1, 1, -1]))


@settings(max_examples=60)
@given(st.lists(st.lists(update, max_size=5), min_size=1, max_size=40), st.sampled_from([None, 1, 3, 7]), st.data())
def test_without_noise_it_shows_what_was_there_at_the_last_release(ticks, every, data):
    cut = data.draw(st.integers(0, len(ticks)))
    made = worker(every=every, identity="raw", protects="event")
    present, shown, expected = Counter(), [0] * CELLS, []
    for t, pairs in enumerate(ticks, start=1):
        for cell, sign in pairs:
            present[cell] += sign
        if t in (1, 2, 4, 8, 16, 32) if every is None else t % every == 1 % every:
            shown = [present[cell] for cell in range(CELLS)]
        expected.append(shown)
    assert rows(made, ticks[:cut]) + rows(made, ticks[cut:]) == expected


# -- charges -----------------------------------------------------------------------------------------------------------


def present(a, deletes, ticks, longest):
    """The ticks at whose end an item lives that was inserted in tick a: until its first deletion, or its expiry."""
    ends = [d for d in deletes if d >= a]  # in the tick of the insertion: after it
    end = min([*ends, a + longest, ticks + 1])
    return frozenset(range(a, end))


@pytest.mark.parametrize("longest", range(1, 6))
@pytest.mark.parametrize("period", [1, 2, 3, 4, None])
def test_every_item_of_nine_ticks(longest, period):
    """At most 3 deletions, 9 ticks, both units: the item, or one of its events, is taken away. Lifetimes of at most W
    ticks are in at most ceil(W/P) releases; attained."""
    schedule = Schedule(period)
    charged = schedule.within(longest)
    assert charged == (-(-longest // period) if period else longest.bit_length())
    most = 0
    for a in range(1, 10):
        for count in range(4):
            for deletes in combinations(range(a, 10), count):
                here = present(a, deletes, 9, longest)
                others = [frozenset(), *(present(a, deletes[:i] + deletes[i + 1 :], 9, longest) for i in range(count))]
                for other in others:
                    differ = [t for t in here ^ other if schedule.due(t)]
                    assert len(differ) <= charged
                    most = max(most, len(differ))
    assert most == charged


def test_schedules():
    for period in [None, *range(1, 8)]:
        schedule = Schedule(period)
        due = [t for t in range(1, 200) if schedule.due(t)]
        assert due == [schedule.last(k) for k in range(1, len(due) + 1)]
        assert [schedule.by(t) for t in range(200)] == [sum(d <= t for d in due) for t in range(200)]
        for ticks in range(1, 40):
            runs = [sum(start <= d < start + ticks for d in due) for start in range(1, 150)]
            assert max(runs) == schedule.within(ticks)


def spent(one, other, guarantee, **given_):
    """Sum over all releases of budget times distance, or times its square, for two streams of (cell, sign)."""
    asked = []
    for ticks in (one, other):
        static = Recorded(CELLS)
        rows(worker(static, guarantee, **given_), ticks)
        asked.append(static.asked)
    total = Fraction(0)
    for a, b in zip(*asked, strict=True):
        assert (a.lane, a.node, a.budget) == (b.lane, b.node, b.budget)
        distance = sum(abs(x - y) for x, y in zip(a.data, b.data, strict=True))
        total += amount(a.budget) * (distance if isinstance(guarantee, PureDP) else distance**2)
    return total


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_a_lifetime_costs_what_is_promised(guarantee):
    def lives(a, b):
        return [[(1, 1)] if t == a else [(1, -1)] if t == b else [] for t in range(12)]

    nothing = [[]] * 12
    for given_, longest in [
        ({"every": 3, "horizon": 12}, 12),
        ({"every": 2, "horizon": None, "max_lifetime": 5}, 5),
        ({"every": 2, "horizon": 12, "max_lifetime": 100}, 12),
        ({"every": None, "horizon": 12}, 12),
    ]:
        ends = [(a, b) for a in range(12) for b in range(a + 1, min(a + longest, 12) + 1)]
        assert max(spent(lives(a, b), nothing, guarantee, **given_) for a, b in ends) == 1
    # no horizon and no bound: 1/2, 1/6, ... of it, less than 1 for ever
    costs = [spent(lives(a, 12), nothing, guarantee, every=None, horizon=None) for a in range(12)]
    assert max(costs) == 1 - Fraction(1, 5)  # releases at 1, 2, 4, 8


def streams_of_one_value(length):
    """One update, or none, in each tick."""
    return product([0, 1, -1], repeat=length)


@pytest.mark.parametrize("floor", [False, True])
def test_by_value_one_update_is_one_copy_in_every_release(floor):
    """All streams of one value over 6 ticks; one update more or less: clipped at the release, or floored before."""

    def data(signs):
        there, out = 0, []
        for sign in signs:
            there = max(0, there + sign) if floor else there + sign
            out.append(max(there, 0))
        return out

    for signs in streams_of_one_value(6):
        whole = data(signs)
        for t in range(6):
            if signs[t]:
                less = data([*signs[:t], 0, *signs[t + 1 :]])
                assert max(abs(x - y) for x, y in zip(whole, less, strict=True)) <= 1


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_by_value_an_item_is_two_updates(guarantee):
    """Declared to be deleted once; the deletion may name another value, which is distance 2 for ever."""
    given_ = {"identity": "value", "protects": "item", "every": 1, "horizon": 6}
    with pytest.raises(ConfigurationError, match="cannot protect items"):
        plan(**given_)
    unique = given_ | {"options": (("unique_deletions", True),)}
    base = [[(2, 1)], [], [], [], [], []]
    item = [[(2, 1), (0, 1), (2, -1)], [], [], [], [], []]
    assert spent(item, base, guarantee, **unique) == 1


def test_groups():
    for guarantee in (PureDP(1), ZCDP(1)):
        three = [[(0, 1), (1, 1), (2, 1)], [], [], []]
        assert spent(three, [[]] * 4, guarantee, steps=3, every=1, horizon=4) == 1


@pytest.mark.parametrize(
    ("given_", "reason"),
    [
        ({"horizon": None}, "max_lifetime or a horizon"),
        ({"every": 0}, "every must be"),
        ({"guarantee": PureDP(Fraction(1, 2**38))}, "scale"),
        ({"identity": "raw"}, "cannot protect items"),
        ({"identity": "value", "protects": "event", "max_lifetime": 4}, "which copy expires"),
        ({"options": (("svt", "paper"),)}, "no option"),
    ],
)
def test_refused(given_, reason):
    with pytest.raises(ConfigurationError, match=reason):
        plan(**given_)


# -- at work -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_", [{}, {"every": None, "horizon": None}, {"guarantee": ApproxDP(1, 1e-6)}])
def test_a_restore_in_the_middle_gives_the_same_bytes(given_):
    rng = np.random.default_rng(3)
    ticks = [[(int(c), 1) for c in rng.integers(0, 3, rng.poisson(4))] for _ in range(40)]

    def make():
        return worker(**given_, source=simulation(7).source("anew"))

    whole = rows(make(), ticks)
    for cut in range(41):
        first, second = make(), make()
        begun = rows(first, ticks[:cut])
        second.load(cut, first.state())
        assert second.state() == first.state()
        assert begun + rows(second, ticks[cut:]) == whole


def test_releases_follow_the_clock_alone():
    """Section 8, 11.1.7: how many, where and for how much, the same for every stream."""
    for every, count in [(1, 40), (3, 14), (None, 6)]:
        patterns = []
        for pairs in ([], [(0, 1), (1, -1)]):
            static = Recorded(CELLS)
            rows(worker(static, every=every), [pairs] * 40)
            patterns.append([(a.lane, a.node, a.budget) for a in static.asked])
        assert patterns[0] == patterns[1]
        assert len(set(patterns[0])) == count
        assert sum(amount(budget) for _, _, budget in patterns[0]) == 1


def test_accuracy():
    made = worker(max_items=50)
    one = PureDP(Fraction(1, 14))
    static = SmallHistogram(CELLS)
    assert made.accuracy(0).radius(0.05) == 0
    assert made.accuracy(4).radius(0.05) == static.error([one], 0.05, 50)
    assert made.accuracy(4).of(1).stddev == static.stddev([one], 1)
    assert made.accuracy(5).radius(0.05) == static.error([one], 0.025, 50) + 50  # the release is one tick old
    assert made.error_bound(0.05, 5) == made.accuracy(5).radius(0.05)
    assert made.error_bound(0.05, None) == static.error([one], 0.025 / 40, 50) + 50
    assert plan(max_items=50).open == ""
    assert "nobody declared" in plan().open
    assert worker().accuracy(5).radius(0.05) == math.inf
    assert worker(every=1).error_bound(0.05, None) < math.inf
    assert "nobody declared" in plan(Sampled(CELLS), every=1).open
    assert worker(every=None, horizon=None, max_items=9).error_bound(0.05, None) == math.inf


class Median:
    """Somebody's own statistic, not linear: the cell in the middle, by noisy scores, as a row of one."""

    cells, width, unit = 9, 1, 1
    pure, concentrated, additive, linear = True, False, False, False

    def fit(self, data, budget, place, size_hint=None):
        below = np.cumsum(data)
        scores = -np.abs(2 * below - data - data.sum())  # an item moves a score by 1
        noise = place.draws(noise_law(budget), self.cells)
        return np.array([int(np.argmax(scores + noise))])

    def weights(self, query):
        raise ConfigurationError("a median is no linear query")

    def error(self, budgets, beta, size, query=None):
        return math.inf

    def stddev(self, budgets, query):
        return None


def noise_law(budget):
    from evertally.noise import DiscreteLaplace, round_up

    return DiscreteLaplace(round_up(2 / budget.exact_epsilon))


def test_a_statistic_that_is_not_linear():
    made = worker(Median(), PureDP(4), every=2, horizon=4, source=simulation(1).source("median"))
    ticks = [[(4, 1)] * 100, [], [(8, 1)] * 500, []]
    assert rows(made, ticks) == [[4], [4], [8], [8]]
    assert made.accuracy(2).radius(0.05) == math.inf
