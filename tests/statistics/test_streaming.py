"""StreamingTopK: the common contract for all mechanisms, error bars that hold, the ranking of the reference run.

Statistical tests have fixed keys and fail with probability below 1e-6 over the choice of them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import evertally as et
from evertally import checks
from evertally.checks import Subject
from evertally.errors import BudgetExceeded, ConfigurationError
from evertally.noise import ZeroNoise
from evertally.statistics import StreamingTopK

NAMES = ["pear", "apple", "fig", "plum"]
APPROXIMATE = et.ApproxDP(4.0, 1e-3)
OBLIVIOUS = et.ZCDP(0.5, adversary="oblivious")

WAYS = {
    "adaptive": {"guarantee": APPROXIMATE, "switches": 3, "eta": 2},
    "reuse": {"guarantee": APPROXIMATE, "switches": 3, "eta": 2, "reuse": True},
    "paper": {"guarantee": OBLIVIOUS, "switches": 2},
    "standard, replace": {"guarantee": OBLIVIOUS, "switches": 2, "accounting": "standard", "neighbours": "replace"},
    "monotone": {"guarantee": OBLIVIOUS, "switches": 2, "accounting": "monotone"},
    "meta": {"guarantee": et.ZCDP(0.5), "mechanism": "meta"},
    "meta, replace": {"guarantee": et.ApproxZCDP(0.5, 1e-9), "mechanism": "meta", "neighbours": "replace"},
    "meta-gauss": {"guarantee": APPROXIMATE, "mechanism": "meta-gauss", "max_per_event": 2},
    "tree": {"guarantee": et.ZCDP(0.5), "mechanism": "tree"},
    "bank": {"guarantee": et.ZCDP(0.5), "mechanism": "bank"},
    "pure blocks": {"guarantee": et.PureDP(1.0), "mechanism": "pure-blocks", "max_per_event": 1},
    "pure tree": {"guarantee": et.PureDP(1.0), "mechanism": "tree", "max_per_event": 1},
}


def made(key, way, k=2, horizon=20, columns=NAMES, **more):
    return StreamingTopK(k, columns=columns, horizon=horizon, key=key, **(WAYS[way] | more))


def feed(n):
    return [[(t * t + 2 * j * t + j) % 5 + (9 if j == t // 6 else 0) for j in range(4)] for t in range(n)]


def subject(way):
    return Subject(
        name=way,
        make=lambda key: made(key, way),
        feed=feed,
        truth=lambda inputs: [],
        garbage=[[None, "x", float("nan"), [], {}, object(), {"fig": "b"}], [], [["fig", "fig", "pear"]]],
        wrong_calls=["abc", 7, [1] * 5, [0.5] * 4, None],
    )


CONTRACT = [
    checks.checks.check_declares_its_promise,
    checks.checks.check_run_equals_steps,
    checks.checks.check_snapshot_at_every_tick,
    checks.checks.check_snapshot_is_guarded,
    checks.checks.check_horizon_is_final,
    checks.checks.check_replay,
    checks.checks.check_wrong_calls_use_no_tick,
    checks.checks.check_content_never_raises,
    checks.checks.check_keys,
]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_contract(way, check):
    check(subject(way))


@pytest.mark.parametrize("way", WAYS)
def test_releases_are_the_same_to_the_order_of_labels(way):
    key, rows = et.simulation(3), feed(20)
    stepped = made(key, way)
    single = [stepped.step(row) for row in rows]
    whole = made(key, way).run(rows)
    assert [list(x.value.items()) for x in single] == [list(x.items()) for x in whole]
    for release in single:
        assert len(release.value) == 2
        assert list(release.value.items()) == sorted(release.value.items(), key=lambda pair: (-pair[1], pair[0]))
        assert release.stddev is None
        lower, upper = release.interval(0.05)
        assert list(lower) == list(upper) == list(release.value)
        assert all(lower[x] <= n <= upper[x] for x, n in release.value.items())
    table = made(key, way).run(rows, full=True, at=[4, 20])
    assert table.column_names == ["tick", "column", "value", "lower", "upper"]
    assert table["tick"].to_pylist() == [4, 4, 20, 20]
    shown = zip(table["column"].to_pylist(), table["value"].to_pylist(), strict=True)
    assert list(shown) == [pair for t in (4, 20) for pair in single[t - 1].value.items()]
    assert table["upper"].to_pylist()[2:] == list(single[19].interval(0.05)[1].values())


@pytest.mark.parametrize("way", ["adaptive", "meta", "tree"])
def test_ways_to_hand_over_a_tick(way):
    key = et.simulation(4)
    by_row = made(key, way).step([3, 0, 2, 0]).value
    assert made(key, way).step({"pear": 3, "fig": 2, "kiwi": 9}).value == by_row
    assert made(key, way).step_events([["pear", "fig"], {"pear": 1, "kiwi": 4}, ["fig", "pear"]]).value == by_row
    sparse = et.SparseRows([0, 0], [0, 2], [3, 2], length=1, width=4)
    assert made(key, way).run(sparse)[0] == by_row


def test_without_noise():
    rows = np.array(feed(20))
    sums = np.cumsum(rows, axis=0)
    for way in ("tree", "bank", "pure blocks", "meta-gauss"):
        for row, shown in zip(sums, made(ZeroNoise(), way).run(rows), strict=True):
            assert list(shown.values()) == sorted(row.tolist(), reverse=True)[:2]
            assert all(row[NAMES.index(label)] == n for label, n in shown.items())
    # With room for all switches and no margin sparse-gumbel follows the leaders; meta with k = d loses nothing.
    follows = StreamingTopK(2, 20, columns=NAMES, guarantee=OBLIVIOUS, horizon=20, eta=0, key=ZeroNoise())
    everything = made(ZeroNoise(), "meta", k=4)
    for row, shown, full in zip(sums, follows.run(rows), everything.run(rows), strict=True):
        assert list(shown.values()) == sorted(row.tolist(), reverse=True)[:2]
        assert list(full.values()) == sorted(row.tolist(), reverse=True)


def test_frozen_selection_still_counts():
    top = StreamingTopK(1, 1, columns=2, guarantee=OBLIVIOUS, horizon=9, eta=0, key=ZeroNoise())
    assert top.switches_left == 1
    shown = top.run([[1, 0], [0, 2], [5, 0], [5, 1], [5, 0]])
    assert top.switches_left == 0
    assert shown.tolist() == [{"0": 1}, {"1": 2}, {"1": 2}, {"1": 3}, {"1": 3}]


def test_the_margin_of_the_rule_of_thumb():
    # streaming-selection 6.4: tau = sqrt 6, s = 1: 113; s = 5: 252; scale 4 tau1 ln(dT), rounded up
    for s, eta in ((1, 113), (5, 253)):
        top = StreamingTopK(
            1, s, columns=100, guarantee=et.ZCDP(0.5, adversary="oblivious"), horizon=1000, key=ZeroNoise()
        )
        assert top.eta == eta == math.ceil(4 * math.sqrt(6 * s) * math.log(10**5))
    assert StreamingTopK(1, 0, columns=100, guarantee=OBLIVIOUS, horizon=1000).eta == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"switches": None}, "switches"),
        ({"switches": -1}, "switches"),
        ({"k": 5}, "k must be"),
        ({"horizon": 1}, "horizon"),
        ({"horizon": None}, "horizon"),
        ({"eta": -1}, "eta"),
        ({"mechanism": "nothing"}, "unknown mechanism"),
        ({"neighbours": "independent", "guarantee": OBLIVIOUS}, "add_remove"),
        ({"mechanism": "meta"}, "eta, accounting and reuse"),
        ({"mechanism": "meta", "eta": None, "guarantee": et.PureDP(1)}, "never pure"),
        ({"mechanism": "meta", "eta": None, "accounting": "paper"}, "eta, accounting and reuse"),
        ({"guarantee": et.ZCDP(0.5)}, "adversary="),
        ({"accounting": "monotone", "guarantee": OBLIVIOUS, "neighbours": "replace"}, "one way"),
        ({"columns": 0}, "columns"),
    ],
)
def test_refusals(options, says):
    arguments = {"k": 1, "switches": 2, "columns": NAMES, "guarantee": APPROXIMATE, "horizon": 20, "eta": 3} | options
    with pytest.raises(ConfigurationError, match=says):
        StreamingTopK(**arguments)


def test_one_stream_with_several_mechanisms():
    stream = et.Stream("fruit", guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1))
    top = stream.add(StreamingTopK, share=0.5, k=1, columns=NAMES, mechanism="meta")
    stream.add(et.Histogram, share=0.5, categories=NAMES)
    assert top.charge == et.ZCDP(0.25)
    assert top.step([1, 2, 3, 4]).tick == 1
    with pytest.raises(BudgetExceeded):
        stream.add(StreamingTopK, share=0.1, k=1, columns=NAMES, mechanism="meta", name="too much")


def test_users():
    options = {"unit": "user", "max_events_per_user": 3}
    for way in ("adaptive", "meta", "tree"):
        said = {"max_events_per_tick": 1}
        one, three = made(et.simulation(1), way, **said), made(et.simulation(1), way, **said, **options)
        # Noise in proportion to the events of a user (eta is given, and plays no part here).
        assert three.error_bound(0.01, t=3) > 2 * one.error_bound(0.01, t=3) - 4
        events = ["fig"] * 5 + ["pear"]
        counted = made(ZeroNoise(), way, **options).step_events(events, users=[1, 1, 1, 1, 1, 2]).value
        assert counted["fig"] == 3
        assert counted["pear"] == 1


# -- error bars --------------------------------------------------------------------------------------------------------


def zipf(seed, T, d):
    """One item a tick by Zipf's law. The names are shuffled: ties of integers go to the first name, not to the first
    item."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, d + 1)
    rows = np.zeros((T, d), dtype=np.int64)
    rows[np.arange(T), rng.permutation(d)[rng.choice(d, T, p=chances / chances.sum())]] = 1
    return rows


@pytest.mark.parametrize("way", ["adaptive", "meta", "meta-gauss", "tree"])
def test_intervals_and_bounds_hold(way):
    T, d, runs, beta = 40, 10, 100, 0.2
    missed = broken = 0
    for seed in range(runs):
        rows = zipf(seed, T, d)
        top = made(et.simulation(seed), way, horizon=T, columns=d, max_events_per_tick=1)
        assert math.isfinite(top.error_bound(beta))
        truth = np.cumsum(rows, axis=0)
        values = top.run(rows)
        last = top.step(rows[-1], tick=T)
        lower, upper = last.interval(beta)
        missed += any(not lower[x] <= truth[-1, int(x)] <= upper[x] for x in last.value)
        errors = [abs(n - truth[t, int(x)]) for t, value in enumerate(values) for x, n in value.items()]
        broken += max(errors) > top.error_bound(beta)
        assert top.error_bound(beta) >= max(top.error_bound(beta, t=t) for t in (1, 3, 39, 40)) * (1 - 1e-9)
    # Binomial(100, beta) exceeds its mean by six standard deviations with probability below 1e-6.
    limit = runs * beta + 6 * math.sqrt(runs * beta * (1 - beta))
    assert missed < limit
    assert broken < limit


def test_what_nobody_declared_carries_no_bound():
    """Leaders that take turns, with hundreds of events in a tick: the blocks lose what no declared number bounds."""
    bare, said = (made(et.simulation(1), "meta", **more) for more in ({}, {"max_events_per_tick": 900}))
    assert bare.error_bound(0.05) == math.inf
    assert "max_events_per_tick" in bare.unbounded_because
    assert math.isfinite(said.error_bound(0.05))
    assert said.unbounded_because is None
    for way in ("adaptive", "meta-gauss", "tree"):
        assert made(et.simulation(1), way).unbounded_because is None
        assert math.isfinite(made(et.simulation(1), way).error_bound(0.05))


def test_meta_says_how_much_it_may_have_lost():
    # Two columns that take turns: in most blocks one of them is lost. The upper end covers it, the value does not.
    T = 60
    rows = np.zeros((T, 2), dtype=np.int64)
    rows[::2, 0], rows[1::2, 1] = 100, 100
    top = StreamingTopK(
        1, columns=2, guarantee=et.ZCDP(2.0), horizon=T, mechanism="meta", max_events_per_tick=100, key=et.simulation(1)
    )
    release = [top.step(row) for row in rows][-1]
    ((label, count),) = release.value.items()
    truth = int(rows[:, int(label)].sum())
    lower, upper = release.interval(0.01)
    assert lower[label] <= truth <= upper[label]
    assert top.error_bound(0.01) > abs(truth - count)


# -- the reference run -------------------------------------------------------------------------------------------------


def test_ranking_of_the_reference_run():
    """streaming-selection 8.2 at tau = 0.3, radix 4: MetaAlgo 4.1, sparseGumb (s = 2, eta = 50) 8.0, KnownBase 15.8."""
    tau, T, d = 0.3, 1000, 100
    guarantee = et.ZCDP(1 / (2 * tau**2), adversary="oblivious")
    ways = {
        "meta": ({}, 4.1, 10, 1.2),
        "sparse-gumbel": ({"switches": 2, "eta": 50}, 8.0, 20, 1.5),
        "tree": ({}, 15.8, 20, 2.0),
    }
    means = {}
    for mechanism, (options, reference, trials, deviation) in ways.items():
        errors = []
        for seed in range(trials):
            rows = zipf(seed, T, d)
            top = StreamingTopK(
                1,
                columns=d,
                guarantee=guarantee,
                horizon=T,
                mechanism=mechanism,
                radix=4,
                key=et.simulation(seed),
                **options,
            )
            released = np.array([next(iter(value.values())) for value in top.run(rows)])
            errors.append(np.abs(released - np.cumsum(rows, axis=0).max(axis=1)).mean())
        means[mechanism] = np.mean(errors)
        # Six standard errors, `deviation` being that of one trial, and 10 % for the reference itself.
        slack = 6 * deviation / math.sqrt(trials) + 0.1 * reference
        assert means[mechanism] == pytest.approx(reference, abs=slack)
    assert means["meta"] < means["sparse-gumbel"] < means["tree"]


def test_what_blocks_may_lose_grows_with_certainty_blocks_and_columns():
    """A union over 3 d events for each block: less room for mistakes, more blocks, more columns, a larger bound."""
    few = made(ZeroNoise(), "meta", k=2, horizon=63)._engine
    many = made(ZeroNoise(), "meta", k=2, horizon=63, columns=[f"c{i}" for i in range(40)])._engine
    lost = {(beta, tick): few.accuracy(tick).lost(beta) for beta in (0.1, 1e-6) for tick in (32, 63)}
    assert lost[1e-6, 32] > 1.5 * lost[0.1, 32]
    assert lost[0.1, 63] > lost[0.1, 32]
    assert many.accuracy(32).lost(0.1) > lost[0.1, 32]
