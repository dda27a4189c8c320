"""The constructions "tree", "doubling" and "subtract" at work: dynamic-data 5, 6.1, 11.1, 11.2."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_laws import boundaries
from small_static import Recorded, Sampled, SmallHistogram

from evertally.contract.in_place import InPlace
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.partitioners import SparseVector
from evertally.dynamic.parts import Setting, Updates
from evertally.dynamic.prefix import amount
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxDP, Contribution, PureDP

CELLS = 3


def setting(static=None, guarantee=None, **given):
    public = {"horizon": 40, "identity": "raw", "protects": "event", "steps": 1} | given
    return Setting(static or SmallHistogram(CELLS), guarantee or PureDP(1), **public)


def plan(name, *args, **given):
    return CONSTRUCTIONS[name].plan(setting(*args, **given), Contribution())


def worker(name, *args, source=None, **given):
    return plan(name, *args, **given).worker(source or ZeroNoise().source("w"))


def updates(pairs):
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Updates(table[:, 0], table[:, 1], np.full(len(table), -1))


def rows(made, ticks):
    values, lasts = made.advance([updates(pairs) for pairs in ticks])
    return np.repeat(values, lasts, axis=0).tolist()


def random_ticks(rng, rate, length):
    def tick(n):
        return [(int(c), int(s)) for c, s in zip(rng.integers(0, 3, n), rng.choice([1, 1, -1], n), strict=True)]

    return [tick(n) for n in rng.poisson(rate, length)]


def streams(signs):
    update = st.tuples(st.integers(0, CELLS - 1), st.sampled_from(signs))
    return st.lists(st.lists(update, max_size=5), min_size=1, max_size=40)


def model(ticks):
    seen, out = Counter(), []
    for pairs in ticks:
        for cell, sign in pairs:
            seen[cell] += sign
        out.append([seen[cell] for cell in range(CELLS)])
    return out


DENSE = [
    ("tree", {"deletions": False}, [1]),
    ("doubling", {"deletions": False, "horizon": None}, [1]),
    ("tree", {}, [1, -1]),
    ("doubling", {}, [1, -1]),
    ("subtract", {}, [1, -1]),
    ("subtract", {"horizon": None}, [1, -1]),
    ("subtract", {"options": (("structure", "doubling"),)}, [1, -1]),
]


@pytest.mark.parametrize(("name", "given_", "signs"), DENSE)
def test_without_noise_every_tick_is_the_model(name, given_, signs):
    @settings(max_examples=25)
    @given(streams(signs), st.integers(0, 40))
    def check(ticks, cut):
        made = worker(name, **given_)
        assert rows(made, ticks[:cut]) + rows(made, ticks[cut:]) == model(ticks)

    check()


@pytest.mark.parametrize("name", ["doubling", "subtract"])
@pytest.mark.parametrize("partition", ["finite", "infinite"])
def test_without_noise_a_partition_shows_the_last_boundary(name, partition):
    """11.1.2: the answer of the last boundary, of each side its own, and 0 before the first."""
    rng = np.random.default_rng(5)
    ticks = [
        [(int(c), int(s)) for c, s in zip(rng.integers(0, 3, n), rng.choice([1, 1, -1], n), strict=True)]
        for n in rng.poisson(9, 200)
    ]
    made = worker(name, partition=partition, horizon=200, guarantee=PureDP(4))
    found = rows(made, ticks)
    sides = [lambda s: True] if name == "doubling" else [lambda s: s > 0, lambda s: s < 0]
    shown = np.zeros((200, CELLS), dtype=int)
    changed = 0
    for wanted in sides:
        mine = [[(c, s) for c, s in pairs if wanted(s)] for pairs in ticks]
        sums = np.array(model(mine))
        # Two sides of the event unit have the whole budget each, half of it for the partition.
        test = SparseVector(Fraction(2))
        j, count, last, at = 1, 0, 0, np.zeros(CELLS, dtype=int)
        for t in range(1, 201):
            count += len(mine[t - 1])
            T, beta = (200, 0.05 / 200) if partition == "finite" else (max(2, last**2), 6 * 0.05 / (math.pi * j) ** 2)
            if count >= math.ceil(test.threshold(T, beta)) or (partition == "infinite" and t >= T):
                j, count, last, at, changed = j + 1, 0, t, sums[t - 1], changed + 1
            shown[t - 1] += at
    assert changed > 10
    assert found == shown.tolist()


@pytest.mark.parametrize(
    ("name", "given_"),
    [
        *[(name, given_) for name, given_, _ in DENSE],
        ("doubling", {"partition": "infinite", "guarantee": PureDP(6)}),
        ("subtract", {"partition": "finite", "guarantee": ApproxDP(8, 1e-6), "options": (("svt", "cumulative"),)}),
    ],
)
def test_a_restore_in_the_middle_gives_the_same_bytes(name, given_):
    rng = np.random.default_rng(1)
    signs = [1] if given_.get("deletions") is False else [1, -1]
    ticks = [[(int(c), int(rng.choice(signs))) for c in rng.integers(0, 3, rng.poisson(6))] for _ in range(40)]

    def make():
        return worker(name, **given_, source=simulation(8).source("restored"))

    whole = rows(make(), ticks)
    singly = make()
    assert [row for pairs in ticks for row in rows(singly, [pairs])] == whole
    for cut in range(0, 41, 3):
        first, second = make(), make()
        begun = rows(first, ticks[:cut])
        second.load(cut, first.state())
        assert second.state() == first.state()
        assert begun + rows(second, ticks[cut:]) == whole
        assert second.accuracy(40).radius(0.05) == pytest.approx(singly.accuracy(40).radius(0.05))


def test_an_interrupted_call_goes_back():
    engine = InPlace(plan("subtract", partition="infinite").worker, simulation(2).source("back"))
    ticks = [updates([(0, 1), (1, -1)])] * 5
    engine.begin(0)
    engine.play(ticks, None)
    engine.begin(5)
    before = engine.save(None)
    engine.play(ticks, None)
    engine.go_back(5, None)
    assert engine.save(None) == before


def test_number_of_releases_and_their_pattern():
    """Section 8: one release for each index and side, and (11.1.7) the same ones whatever the data are."""
    for name, each in [("tree", 1), ("doubling", 1), ("subtract", 2)]:
        patterns = []
        for pairs in ([], [(0, 1), (1, -1), (2, 1)]):
            static = Recorded(CELLS)
            rows(worker(name, static), [pairs] * 37)
            assert len(static.asked) == 37 * each
            patterns.append([(a.lane, a.node, a.budget) for a in static.asked])
        assert patterns[0] == patterns[1]
        assert len(set(patterns[0])) == len(patterns[0])


# -- what a step costs: differential inputs (11.2.2) -------------------------------------------------------------------


def spent(name, one, other, **given_):
    """Sum over all releases of budget times distance (pure), or times its square (rho), for two streams."""
    asked = []
    for ticks in (one, other):
        static = Recorded(CELLS)
        rows(worker(name, static, **given_), ticks)
        asked.append(static.asked)
    total = Fraction(0)
    for a, b in zip(*asked, strict=True):
        assert (a.lane, a.node, a.budget) == (b.lane, b.node, b.budget)
        distance = sum(abs(x - y) for x, y in zip(a.data, b.data, strict=True))
        total += amount(a.budget) * (distance if isinstance(a.budget, PureDP) else distance**2)
    return total


def lifetime(a, b, length, cell=1):
    """Inserted in tick a, deleted in b (None: never)."""
    ticks = [[] for _ in range(length)]
    if a is not None:
        ticks[a].append((cell, 1))
        if b is not None:
            ticks[b].append((cell, -1))
    return ticks


@pytest.mark.parametrize("name", ["tree", "doubling", "subtract"])
@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_a_lifetime_costs_what_is_promised(name, guarantee):
    """Names: a lifetime comes or goes, or its deletion moves. 2 epsilon and 2 rho: attained, never passed."""
    length = 7
    given_ = {"horizon": length, "identity": "token", "guarantee": guarantee}
    nothing = lifetime(None, None, length)
    found = set()
    for a in range(length):
        ends = [*range(a, length), None]
        for b in ends:
            found.add(spent(name, lifetime(a, b, length), nothing, **given_))
        for b, c in combinations(ends, 2):
            found.add(spent(name, lifetime(a, b, length), lifetime(a, c, length), **given_))
    # In one tree the two ticks cannot both be in nodes of all levels: index 1 is in three, index 5 in two.
    assert max(found) == (Fraction(5, 6) if name == "tree" else 1)


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_an_update_may_use_the_whole_budget_of_its_side(guarantee):
    for name, sign in product(["tree", "doubling", "subtract"], [1, -1]):
        costs = []
        for t in range(9):
            one = [[] for _ in range(9)]
            one[t] = [(0, sign)]
            costs.append(spent(name, one, [[]] * 9, horizon=9, guarantee=guarantee))
        assert max(costs) == 1


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_groups_and_replacements(guarantee):
    """Two updates of one tick, or one with another value or sign: as many steps as there are updates."""
    for name, given_ in [("tree", {}), ("subtract", {}), ("doubling", {"horizon": None})]:
        one, other = [[] for _ in range(9)], [[] for _ in range(9)]
        one[0], other[0] = [(0, 1)], [(2, 1)]
        assert spent(name, one, other, guarantee=guarantee, steps=2, **({"horizon": 9} | given_)) <= 1
        other[0] = [(0, -1)]
        assert spent(name, one, other, guarantee=guarantee, steps=2, **({"horizon": 9} | given_)) <= 1
        three = [[(0, 1)] * 3, *([[]] * 8)]
        assert spent(name, three, [[]] * 9, guarantee=guarantee, steps=3, **({"horizon": 9} | given_)) <= 1
    # two lifetimes at once, everything in one node: the square of 2 times 2 rho
    twice = [[(0, 1), (1, 1)], *([[]] * 7), [(0, -1), (1, -1)]]
    for name in ("tree", "subtract"):
        cost = spent(name, twice, [[]] * 9, guarantee=guarantee, steps=2, horizon=9, identity="id", protects="item")
        assert cost <= 1


def floored(raw):
    """Deletions where nothing is left do nothing: the door of identity "value"."""
    there, out = 0, []
    for signs in raw:
        kept = []
        for sign in signs:
            if there + sign >= 0:
                there += sign
                kept.append((1, sign))
        out.append(kept)
    return out


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP(1)])
def test_by_value_every_stream_of_five_updates(guarantee):
    """One update more or less, of all streams of one value and up to 5 updates, one a tick, floored at 0."""
    for name in ("tree", "subtract"):
        largest = Fraction(0)
        for signs in product([1, -1], repeat=5):
            raw = [[sign] for sign in signs]
            for t in range(5):
                less = [*raw[:t], [], *raw[t + 1 :]]
                cost = spent(name, floored(raw), floored(less), horizon=5, identity="value", guarantee=guarantee)
                largest = max(largest, cost)
        assert largest == (Fraction(1, 2) if name == "tree" else Fraction(5, 6))


@pytest.mark.parametrize("scales", ["paper", "cumulative"])
def test_joint_law_of_boundaries_and_releases(scales):
    """C4 over 6 ticks (5.4, 13.6: 0.977 of eps_p + eps_t). Releases are Laplace and independent given the boundaries,
    so the largest loss of a pattern is that of the pattern plus the budgets of all releases that see the update."""
    epsilon = Fraction(1)
    b = SparseVector(epsilon, scales)
    largest = 0.0
    for base, threshold in product(([1] * 6, [0, 3, 0, 0, 1, 0], [0, 0, 9, 0, 0, 0]), (-4, 1, 6)):
        law = boundaries(base, threshold, float(b.rho.scale), float(b.nu.scale))
        for t in range(6):
            more = list(base)
            more[t] += 1
            other = boundaries(more, threshold, float(b.rho.scale), float(b.nu.scale))
            for pattern, probability in law.items():
                closed = sum(pattern)
                segment = sum(pattern[:t])  # the update is in this one, from 0
                seen = releases_seeing(segment, closed)
                largest = max(largest, abs(math.log(probability / other[pattern])) + float(seen))
    assert largest <= (2 if scales == "cumulative" else 1.5) + 1e-9
    assert largest > (1.95 if scales == "cumulative" else 1.45)


def releases_seeing(segment, closed):
    static = Recorded(1)
    made = worker("doubling", static, deletions=False, horizon=None)
    rows(made, [[(0, 1)] if j == segment else [] for j in range(closed)])
    return sum(amount(a.budget) * a.data[0] for a in static.asked)


# -- budgets -----------------------------------------------------------------------------------------------------------


def test_budgets_are_exact():
    static = Recorded(CELLS)
    item = {"identity": "id", "protects": "item"}
    # an (eps, delta) promise: a rho ledger; the item in both instances: 2 rho (6.1)
    rows(worker("subtract", static, guarantee=ApproxDP(1, 1e-6), horizon=1, **item), [[]])
    rho = ApproxDP(1, 1e-6).to_zcdp().exact_rho
    assert {a.budget.exact_rho for a in static.asked} == {rho / 2}
    made = plan("subtract", guarantee=ApproxDP(1, 1e-6), partition="infinite", **item)
    assert made.charge == ApproxDP(1, 1e-6)
    # rho of the partition: eps^2/2
    assert plan("doubling", guarantee=ZCDP(1), partition="infinite").charge == ZCDP(1)

    class Pure(Recorded):
        concentrated = False

    static = Pure(CELLS)
    rows(worker("tree", static, guarantee=ZCDP(Fraction(1, 2)), horizon=1), [[]])
    assert static.asked[0].budget.exact_epsilon == 1


@pytest.mark.parametrize(
    ("name", "given_", "reason"),
    [
        ("tree", {"horizon": None}, "known horizon"),
        ("tree", {"partition": "infinite"}, "every tick"),
        ("tree", {"static": Sampled(CELLS)}, "additive"),
        ("doubling", {"static": Sampled(CELLS)}, "additive"),
        ("doubling", {"static": Sampled(CELLS), "deletions": False, "max_lifetime": 4, "identity": "id"}, "additive"),
        ("doubling", {"horizon": None, "partition": "finite"}, "needs a horizon"),
        ("doubling", {"partition": "often"}, "partition is"),
        ("doubling", {"partition": "infinite", "options": (("split", 1),)}, "split"),
        ("doubling", {"partition": "infinite", "options": (("svt", "best"),)}, "svt"),
        ("doubling", {"partition": "infinite", "guarantee": PureDP(100)}, "scale"),
        ("doubling", {"options": (("alloc", 1),)}, "no option"),
        ("doubling", {"guarantee": PureDP(Fraction(1, 2**35)), "horizon": None}, "scale"),
        ("tree", {"guarantee": ZCDP(Fraction(1, 2**80))}, "variance"),
        ("subtract", {"deletions": False}, "nothing is deleted"),
        ("subtract", {"protects": "item"}, "cannot protect items"),
        ("subtract", {"identity": "value", "max_lifetime": 3}, "which copy expires"),
        ("subtract", {"options": (("structure", "tree"),), "horizon": None}, "structure is"),
    ],
)
def test_refused(name, given_, reason):
    with pytest.raises(ConfigurationError, match=reason):
        plan(name, **given_)


def test_a_pure_promise_needs_a_pure_mechanism():
    class Gaussian(SmallHistogram):
        pure = False

    with pytest.raises(ConfigurationError, match="not pure"):
        plan("tree", Gaussian(CELLS))
    neither = Gaussian(CELLS)
    neither.concentrated = False
    with pytest.raises(ConfigurationError, match="neither"):
        plan("tree", neither, guarantee=ZCDP(1))


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors_of_the_specification():
    """13.5: B around a count, two C2, worst tick: 113 and 167 (T = 8760), 177 and 332 (T = 2^20)."""
    for horizon, rho_error, pure_error in [(8760, 113, 167), (2**20, 177, 332)]:
        ticks = [t for k in range(5, 21) for t in (2**k - 2, horizon - 1) if t < horizon]
        for guarantee, expected in [(ApproxDP(1, 1e-6), rho_error), (PureDP(1), pure_error)]:
            options = (("structure", "doubling"),)
            made = worker("subtract", SmallHistogram(1), guarantee=guarantee, horizon=horizon, options=options)
            worst = max(made.accuracy(t).of(0).stddev for t in ticks)
            assert round(worst) == expected


def test_accuracy_is_noise_and_staleness():
    made = worker("doubling", partition="infinite", horizon=None, source=simulation(3).source("a"))
    rows(made, [[(0, 1)]] * 7)
    now = made.accuracy(7)
    assert now.stddev is None
    assert now.of(1).stddev is None  # how many segments there are is no public number beforehand
    before = now.radius(0.05)
    # half of beta each; segments closed at 2 and 4, so the third one is open, with its deadline at 16
    test = SparseVector(Fraction(1, 2))
    part = 6 / (math.pi * 3) ** 2
    stale = math.ceil(test.threshold(16, 0.05 * part)) + test.unnoticed(0.025 * part)
    index = made._sides[0].structure.budgets(2)
    assert before == pytest.approx(stale + SmallHistogram(CELLS).error(index, 0.025, None))
    assert now.of(1).radius(0.05) < before <= made.error_bound(0.05, 7)
    rows(made, [[(0, 1)]] * 9)
    assert now.radius(0.05) == before  # what was said stays said
    assert made.error_bound(0.05, None) == math.inf


def test_the_size_is_needed_where_noise_looks_at_data():
    free = {"deletions": False, "static": Sampled(CELLS)}
    open_ = plan("doubling", **free)
    assert "max_items" in open_.open
    assert open_.worker(ZeroNoise().source("w")).accuracy(3).radius(0.05) == math.inf
    declared = plan("doubling", **free, max_items=100)
    assert not declared.open
    assert declared.worker(ZeroNoise().source("w")).accuracy(3).radius(0.05) < math.inf
    both = plan("subtract", Sampled(CELLS), max_items=100)
    assert "ever inserted" in both.open
    assert both.worker(ZeroNoise().source("w")).error_bound(0.05, 3) == math.inf


@pytest.mark.parametrize(
    ("name", "given_"),
    [
        ("tree", {}),
        ("doubling", {"horizon": None}),
        ("subtract", {}),
        ("doubling", {"partition": "infinite"}),
        ("subtract", {"partition": "finite", "options": (("svt", "cumulative"),)}),
    ],
)
def test_stated_errors_hold(name, given_):
    """Coverage: of 60 runs with beta = 0.2 fewer than 33 are off at tick 40 (binomial, below 1e-6)."""
    off = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        ticks = [
            [(int(c), int(s)) for c, s in zip(rng.integers(0, 3, n), rng.choice([1, 1, -1], n), strict=True)]
            for n in rng.poisson(4, 40)
        ]
        made = worker(name, **given_, source=simulation(seed).source("coverage"))
        wrong = np.abs(np.array(rows(made, ticks)[-1]) - model(ticks)[-1]).max()
        off += wrong > made.accuracy(40).radius(0.2)
        assert made.accuracy(40).radius(0.2) <= made.error_bound(0.2, 40) + 1e-9
    assert off < 33
