"""Queries on column sums as a user meets them: answers, input, tables, refusals, streams, and what they pay.

That every engine keeps the contract tick by tick is in tests/checks; the partition engine itself in tests/partition.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from conformance.column_mechanisms import COLUMN_MECHANISMS
from evertally.audit.game import take
from evertally.checks.checks import same
from evertally.errors import BudgetExceeded, ConfigurationError, HorizonExceeded
from evertally.histogram.expressions import Columns
from evertally.histogram.ways import NAMES
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.partition.intervals import NO_BOUND

PURE, ZC, APPROX = et.PureDP(1.0), et.ZCDP(0.5), et.ApproxDP(1.0, 1e-6)
OBLIVIOUS = et.ApproxDP(1.0, 1e-6, adversary="oblivious")
LABELS = ["a", "b", "c", "d"]
EVERY = pytest.mark.parametrize("subject", COLUMN_MECHANISMS, ids=lambda subject: subject.name)
# Where users are protected there is no run.
RUNNING = pytest.mark.parametrize("subject", [s for s in COLUMN_MECHANISMS if not s.users], ids=lambda s: s.name)

KINDS: dict[str, Any] = {
    "MaxSum": lambda **o: et.MaxSum(LABELS, **o),
    "MinSum": lambda **o: et.MinSum(LABELS, **o),
    "Quantile": lambda **o: et.SumQuantile(0.5, LABELS, **o),
    "TopK": lambda **o: et.TopK(2, LABELS, **o),
    "SumSelect": lambda **o: et.SumSelect(LABELS, **o),
    "TopKSelect": lambda **o: et.TopKSelect(2, LABELS, **o),
    "MonotoneQuery": lambda **o: et.MonotoneQuery(et.expressions.mean, LABELS, **o),
    "several": lambda **o: et.MonotoneQuery({"low": et.expressions.minimum, "h": et.expressions.h_index}, LABELS, **o),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def make(kind: str = "MaxSum", **options: Any) -> Any:
    return KINDS[kind](**({"guarantee": PURE, "horizon": 20, "key": ZeroNoise()} | options))


def exact(kind: str, **options: Any) -> Any:
    """Without noise and without staleness."""
    return make(kind, mechanism="tree", **options)


# -- the contract, as printed ------------------------------------------------------------------------------------------


def test_the_contract_as_printed() -> None:
    key, g = et.Key.generate(), et.PureDP(epsilon=1.0)
    rows = np.zeros((300, 200), dtype=np.int64)
    rows[:, :3] = 1
    m = et.MaxSum(columns=200, guarantee=g, horizon=20000, key=key, stream="clinic")
    values = m.run(rows)
    assert (values.shape, values.dtype) == ((300,), np.int64)
    assert (m.tick, m.horizon, m.guarantee, m.neighbours) == (300, 20000, g, et.Neighbours.ADD_REMOVE)
    common: dict[str, Any] = {"columns": 200, "guarantee": g, "horizon": 20000, "key": key, "stream": "clinic"}
    assert et.MinSum(**common).run(rows).shape == (300,)
    assert et.SumQuantile(0.5, **common).run(rows).shape == (300,)
    assert et.TopK(5, **common).run(rows).shape == (300, 5)
    assert set(et.SumSelect(**common).run(rows)) <= set(map(str, range(200)))
    assert et.TopKSelect(5, **common).run(rows).shape == (300, 5)
    assert et.MonotoneQuery(lambda h: (h[0] + h[1]) / 2, **common).run(rows).shape == (300,)


@EACH
def test_release_and_run_have_one_form(kind: str) -> None:
    rows = [[5, 2, 9, 1], [0, 1, 0, 0]]
    release = exact(kind).step(rows[0])
    assert (release.tick, release.stddev, release.private) == (1, None, False)
    forms = {
        "MaxSum": 9,
        "MinSum": 1,
        "Quantile": 2,
        "TopK": [9, 5],
        "SumSelect": "c",
        "TopKSelect": ["c", "a"],
        "MonotoneQuery": 5,  # 17/4, rounded up
        "several": {"low": 1, "h": 2},
    }
    shown = release.value.tolist() if isinstance(release.value, np.ndarray) else release.value
    assert shown == forms[kind]
    assert type(shown) is type(forms[kind])
    assert same(exact(kind).run(rows)[0], release.value)
    assert len(exact(kind).run(np.zeros((0, 4), dtype=int))) == 0


# -- answers against brute force ---------------------------------------------------------------------------------------

Sums = st.lists(st.integers(0, 10**6), min_size=1, max_size=9)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(Sums, st.data())
def test_answers_are_the_textbook_ones(sums: list[int], data: st.DataObject) -> None:
    d = len(sums)
    options: dict[str, Any] = {"guarantee": PURE, "horizon": 3, "mechanism": "tree", "key": ZeroNoise()}
    falling = sorted(sums, reverse=True)
    k = data.draw(st.integers(1, d))
    assert et.MaxSum(d, **options).step(sums).value == max(sums)
    assert et.MinSum(d, **options).step(sums).value == min(sums)
    assert et.TopK(k, d, **options).step(sums).value.tolist() == falling[:k]
    assert et.SumSelect(d, **options).step(sums).value == str(sums.index(max(sums)))
    chosen = [int(label) for label in et.TopKSelect(k, d, **options).step(sums).value]
    assert chosen == sorted(range(d), key=lambda j: (-sums[j], j))[:k]
    q = data.draw(st.fractions(Fraction(1, 100), 1, max_denominator=100))
    smallest = next(v for v in sorted(sums) if sum(w <= v for w in sums) >= q * d)
    assert et.SumQuantile(q, d, **options).step(sums).value == smallest
    assert et.SumQuantile(float(q), d, **options).step(sums).value == smallest, "a float is read as what is meant"
    mean = et.MonotoneQuery(et.expressions.mean, d, **options).step(sums).value
    assert mean == math.ceil(Fraction(sum(sums), d))


def test_quantiles_are_order_statistics() -> None:
    sums = list(range(1, 101))
    options: dict[str, Any] = {"guarantee": PURE, "horizon": 3, "mechanism": "tree", "key": ZeroNoise()}
    for i in range(1, 101):
        assert et.SumQuantile(i / 100, 100, **options).step(sums).value == i
    assert et.SumQuantile(1, 100, **options).step(sums).value == et.MaxSum(100, **options).step(sums).value
    assert et.SumQuantile("1/100", 100, **options).step(sums).value == et.MinSum(100, **options).step(sums).value


@pytest.mark.parametrize("mechanism", ["tree", "rebased", "recompute", "two-level"])
def test_ties_go_to_the_first_column(mechanism: str) -> None:
    rich = et.PureDP(20.0)
    leader = make("SumSelect", guarantee=rich, mechanism=mechanism, horizon=None if mechanism == "rebased" else 20)
    assert leader.step([0, 7000, 7000, 7000]).value == "b"
    if mechanism != "recompute":
        top = make("TopKSelect", guarantee=rich, mechanism=mechanism, horizon=None if mechanism == "rebased" else 20)
        assert top.step([0, 7000, 7000, 7000]).value == ["b", "c"]


def test_selection_intervals_are_deficits() -> None:
    lower, upper = make("SumSelect", mechanism="recompute").step([1, 2, 3, 4]).interval(0.1)
    assert lower == 0 < upper
    lower, upper = make("TopKSelect", mechanism="intervals").step([1, 2, 3, 4]).interval(0.1)
    assert lower == [0, 0]
    assert upper[0] == upper[1] > 0


def test_an_interval_around_a_rounded_answer_has_room_for_what_was_rounded() -> None:
    """The query itself lies up to 1 below its ceiling."""
    mean = make("MonotoneQuery", mechanism="tree", key=et.simulation(3))
    release = mean.step([1, 0, 0, 0])
    counter = make("MaxSum", mechanism="tree", key=et.simulation(3)).step([1, 0, 0, 0])
    half = [(upper - lower) // 2 for lower, upper in (release.interval(0.1), counter.interval(0.1))]
    assert half[0] == half[1] + 1


# -- input -------------------------------------------------------------------------------------------------------------


def sparse_of(rows: np.ndarray, seed: int = 0) -> et.SparseRows:
    """The same table by entries: shuffled, and cells cut into pieces."""
    rng = np.random.default_rng(seed)
    ticks, columns = np.nonzero(rows)
    weights = rows[ticks, columns]
    part = weights // 3
    order = rng.permutation(2 * len(ticks))
    return et.SparseRows(
        np.tile(ticks, 2)[order],
        np.tile(columns, 2)[order],
        np.concatenate([part, weights - part])[order],
        length=len(rows),
        width=rows.shape[1],
    )


@RUNNING
def test_sparse_rows_are_the_same_rows(subject: Any) -> None:
    key = et.simulation(21)
    model = subject.make(key)
    n = subject.length(model)
    rows = np.array(subject.feed(n)).reshape(n, -1)
    dense, sparse, parts = model, subject.make(key), subject.make(key)
    expected = dense.run(subject.feed(n))
    entries = sparse_of(rows)
    assert same_all(sparse.run(entries), expected)
    cut = n // 3
    assert same_all([*parts.run(entries[:cut]), *parts.run(entries[cut:])], expected)
    assert dense.snapshot() == sparse.snapshot() == parts.snapshot()


def same_all(left: Any, right: Any) -> bool:
    return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))


@RUNNING
def test_some_ticks_of_a_run(subject: Any) -> None:
    key = et.simulation(22)
    whole, some = subject.make(key), subject.make(key)
    n = subject.length(whole)
    inputs = subject.feed(n)
    values = whole.run(inputs)
    at = [1, 2, 5, n - 1, n]
    assert same_all(some.run(inputs, at=at), [values[t - 1] for t in at])
    assert some.tick == n
    assert some.snapshot() == whole.snapshot()
    assert len(subject.make(key).run(inputs, at=[])) == 0


@pytest.mark.parametrize("at", [[0], [3, 2], [2, 2], [11], [1.5], "3", [[1]]], ids=repr)
def test_ticks_that_are_not_in_the_run_are_a_mistake(at: Any) -> None:
    m = make(horizon=20)
    with pytest.raises(TypeError):
        m.run(np.ones((10, 4), dtype=int), at=at)
    assert m.tick == 0


@EACH
@pytest.mark.parametrize("x", [None, "abcd", 7, [1, 2, 3], [1, 2, 3, 4, 5], [0.5] * 4, [[1, 2, 3, 4]]], ids=repr)
def test_mistakes_in_a_call_use_no_tick(kind: str, x: Any) -> None:
    m = make(kind)
    with pytest.raises(TypeError):
        m.step(x)
    with pytest.raises(TypeError):
        m.run(x if x is not None and x != [[1, 2, 3, 4]] else [x])
    assert m.tick == 0


def test_totals_events_and_labels_agree() -> None:
    ticks = [["a", "b", "a"], [], ["c", "zebra", None, "b", 7], [["a", "c", "a"], {"a": 5, "b": 0}]]
    rows = [[2, 1, 0, 0, 0], [0] * 5, [0, 1, 1, 0, 2], [2, 0, 1, 0, 0]]
    for kind in ("MaxSum", "TopKSelect"):
        by_event, by_row, by_label = (exact(kind, other="rest", key=et.simulation(5)) for _ in range(3))
        for events, row in zip(ticks, rows, strict=True):
            value = by_event.step_events(events).value
            assert same(value, by_row.step(row).value)
            assert same(value, by_label.step(dict(zip(by_row.columns, row, strict=True)) | {"yak": 0}).value)
        assert by_event.snapshot() == by_row.snapshot() == by_label.snapshot()


def test_an_event_is_cut_to_what_was_declared() -> None:
    m = exact("TopK", max_per_event=1, max_weight=3)
    assert m.step_events([["a", "b", "c", "d"]] * 8).value.sum() <= 8
    assert exact("TopK", max_weight=3).step_events([{"a": 99, "b": -5, "c": 2}]).value.tolist() == [3, 2]
    assert exact("TopK").step_events([{"a": 99}, "a", ["a", "a"]]).value.tolist() == [3, 0]


def test_negative_and_huge_totals_are_clipped_silently() -> None:
    m = make("TopK", mechanism="tree", horizon=4)
    assert m.step([-5, 2**80, -(2**80), 3]).value.tolist() == [2**61 // 4, 3]


def test_users_are_capped_at_the_door() -> None:
    m = exact("MaxSum", unit="user", max_events_per_user=2)
    assert m.step_events(["a"] * 5, users=["u"] * 5).value == 2
    assert m.step_events(["a", "a"], users=["u", "v"]).value == 3
    with pytest.raises(TypeError, match="users"):
        m.step_events(["a"])
    with pytest.raises(TypeError, match="users"):
        exact("MaxSum").step_events(["a"], users=["u"])


# -- tables ------------------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("mechanism", ["tree", "rebased"])
def test_full_tables(kind: str, mechanism: str) -> None:
    options: dict[str, Any] = {"mechanism": mechanism, "key": et.simulation(4)}
    rows = [[3, 1, 2, 0]] * 5
    table = make(kind, **options).run(rows, full=True)
    columns = {
        "TopK": ["1", "2"],
        "TopKSelect": ["1", "2"],
        "several": ["low", "h"],
    }.get(kind)
    assert table.column_names == ["tick", *(["column"] if columns else []), "value", "lower", "upper"]
    assert table["tick"].to_pylist() == [t for t in range(1, 6) for _ in columns or [0]]
    if columns:
        assert table["column"].to_pylist() == columns * 5
    text = kind in ("SumSelect", "TopKSelect")
    assert str(table["value"].type) == ("string" if text else "int64")
    assert {str(table[name].type) for name in ("lower", "upper")} == {"int64"}
    values = make(kind, **options).run(rows)
    assert table["value"].to_pylist() == np.array([list(v) if columns else v for v in values]).ravel().tolist()
    some = make(kind, **options).run(rows, full=True, at=[2, 5])
    assert sorted(set(some["tick"].to_pylist())) == [2, 5]
    assert make(kind, **options).run(np.zeros((0, 4), dtype=int), full=True).schema == table.schema


def test_intervals_of_a_table_are_at_least_as_wide_as_those_of_the_releases() -> None:
    """A table is made at the end of the run, when more intervals may have closed: a bound then is a bound before."""
    rows = np.tile([40, 5, 0, 0], (20, 1))
    options: dict[str, Any] = {"guarantee": et.PureDP(20.0), "mechanism": "rebased", "key": et.simulation(1)}
    table = make(**options).run(rows, full=True)
    m = make(**options)
    for t, row in enumerate(rows):
        lower, upper = m.step(row).interval(0.05)
        assert table["lower"][t].as_py() <= lower
        assert table["upper"][t].as_py() >= upper


# -- status and bounds -------------------------------------------------------------------------------------------------


def test_a_partition_that_was_promised_less_freezes_and_says_so() -> None:
    m = make(guarantee=et.PureDP(20.0), mechanism="bounded", largest=50, horizon=100)
    assert m.status == "ok"
    before = m.error_bound(0.1), m.error_bound(0.1, trust_largest=True)
    assert math.isinf(before[0]), "`largest` is a guess, and carries no bound"
    assert "max_events_per_tick" in m.unbounded_because
    assert math.isfinite(before[1])
    while m.status == "ok":
        m.step([1000, 0, 0, 0])
    frozen = m.step([1000, 0, 0, 0]).value
    assert set(m.run(np.full((99 - m.tick, 4), 1000))) == {frozen}
    last = m.step([0, 0, 0, 0])
    assert (last.value, m.tick) == (frozen, 100)
    lower, upper = last.interval(0.1)
    assert upper == frozen + int(NO_BOUND)
    assert 0 < lower < frozen, "what was released was not too high, and the truth only grows"
    after = m.error_bound(0.1), m.error_bound(0.1, trust_largest=True)
    assert after == before, "public numbers do not change with the data"
    assert et.restore(m.snapshot(), key=ZeroNoise()).status == "exhausted"
    with pytest.raises(HorizonExceeded):
        m.step([0, 0, 0, 0])


def test_only_partitions_run_out() -> None:
    for mechanism in ("tree", "recompute", "trivial"):
        for declared in ({}, {"max_events_per_tick": 10**6}):
            m = make(mechanism=mechanism, largest=1, horizon=3, **declared)
            m.run(np.full((3, 4), 10**6))
            assert m.status == ("ok" if mechanism == "tree" or declared else "unbounded")


@EVERY
def test_bounds_are_public_and_fall_with_beta(subject: Any) -> None:
    before, after = subject.make(et.simulation(0)), subject.make(et.simulation(0))
    n = subject.length(before)
    subject.run(after, subject.feed(n))
    for beta in (0.5, 0.1, 0.001):
        for t in (1, n):
            assert before.error_bound(beta, t) == after.error_bound(beta, t)
    bounds = [before.error_bound(beta, n) for beta in (0.5, 0.1, 0.01, 1e-6)]
    assert all(a <= b for a, b in pairwise(bounds))
    if before.horizon is None:
        with pytest.raises(ConfigurationError, match="tick="):
            before.error_bound(0.1)
    for beta in (0, 1, math.nan):
        with pytest.raises(ConfigurationError):
            before.error_bound(beta, 1)


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = [
    # what nothing proves
    ("MaxSum", {"mechanism": "rebased", "neighbours": "independent", "guarantee": OBLIVIOUS}, "counters only"),
    ("MaxSum", {"mechanism": "recompute", "neighbours": "independent", "guarantee": OBLIVIOUS}, "counters only"),
    ("MaxSum", {"mechanism": "tree", "neighbours": "independent"}, "oblivious streams only"),
    ("MaxSum", {"neighbours": "independent", "guarantee": OBLIVIOUS, "max_per_event": 2}, "max_per_event=4"),
    # what does not fit
    ("MaxSum", {"mechanism": "intervals"}, "weighted sums"),
    ("Quantile", {"mechanism": "intervals"}, "weighted sums"),
    ("TopK", {"mechanism": "bounded", "largest": 9}, "one ladder watches one query"),
    ("TopKSelect", {"mechanism": "bounded", "largest": 9}, "one ladder watches one query"),
    ("TopKSelect", {"mechanism": "recompute"}, "one column"),
    ("MaxSum", {"mechanism": "noisy-ladders"}, "need a horizon and `largest`"),
    ("MaxSum", {"mechanism": "noisy-ladders", "largest": 9, "split": (0.3, 0.3, 0.4)}, "leave it out"),
    ("MaxSum", {"mechanism": "recompute", "horizon": None}, "needs a horizon"),
    ("MaxSum", {"mechanism": "trivial", "horizon": None}, "no constant"),
    ("MaxSum", {"mechanism": "tree", "horizon": None}, "horizon"),
    ("MaxSum", {"mechanism": "sqrt"}, "pure"),
    ("MaxSum", {"mechanism": "magic"}, "rebased"),
    # bad numbers
    ("MaxSum", {"largest": 0}, "largest"),
    ("MaxSum", {"largest": 1.5}, "largest"),
    ("MaxSum", {"max_events_per_tick": 0}, "max_events_per_tick"),
    ("MaxSum", {"max_weight": 0}, "max_weight"),
    ("MaxSum", {"max_per_event": 0}, "max_per_event"),
    ("MaxSum", {"beta": 0}, "beta"),
    ("MaxSum", {"beta": math.nan}, "beta"),
    ("MaxSum", {"split": ("1/2", "1/2")}, "three parts"),
    ("MaxSum", {"mechanism": "rebased", "split": ("1/2", "1/2", "1/2")}, "add up to 1"),
    ("MaxSum", {"mechanism": "rebased", "split": (1, 1, -1)}, "positive"),
    ("MaxSum", {"split": ("a", "b", "c")}, "a part of the split"),
    ("MaxSum", {"horizon": 0}, "horizon"),
    ("MaxSum", {"guarantee": 1.0}, "guarantee"),
    ("MaxSum", {"unit": "user"}, "max_events_per_user"),
    ("MaxSum", {"other": "a"}, "twice"),
    ("MaxSum", {"memory_limit": 0}, "memory_limit"),
    ("MaxSum", {"stream": 7}, "texts"),
]


@pytest.mark.parametrize(("kind", "options", "words"), REFUSED)
def test_refused_configurations(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        make(kind, **options)
    assert words in str(refusal.value)


@pytest.mark.parametrize("columns", [0, -1, [], "abc", ["a", "a"], None, True, 2.5, {"a": 1}], ids=repr)
def test_refused_columns(columns: Any) -> None:
    for kind in (et.MaxSum, et.SumSelect):
        with pytest.raises(ConfigurationError):
            kind(columns, guarantee=PURE, horizon=9)


def test_unknown_options_are_mistakes_in_the_call() -> None:
    for options in ({"colour": 1}, {"radix": 2}, {"protects": "item"}):
        with pytest.raises(TypeError):
            make(**options)


@pytest.mark.parametrize("k", [0, 5, -1, 1.0, True, "2"], ids=repr)
def test_k_counts_columns(k: Any) -> None:
    for kind in (et.TopK, et.TopKSelect):
        with pytest.raises(ConfigurationError, match="k must be"):
            kind(k, LABELS, guarantee=PURE, horizon=9)
        assert kind(5, LABELS, other="rest", guarantee=PURE, horizon=9).k == 5


@pytest.mark.parametrize("q", [0, -0.5, 1.01, math.nan, math.inf, "half", None], ids=repr)
def test_q_is_a_share(q: Any) -> None:
    with pytest.raises(ConfigurationError):
        et.SumQuantile(q, LABELS, guarantee=PURE, horizon=9)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda h: 2 * h[0], "|g(v) - g(w)| = 2"),
        (lambda h: h[0] - h[1], "Counterexample"),
        (lambda h: h[0] + 1, "1 at zero"),
        (lambda h: h[0] * h[1], "nothing certifies"),
        (lambda h: max(h), "nothing certifies"),
        (lambda h: 0.6 * float(h[0]) + 0.3 * float(h[1]) + 0.1 * float(h[2]), "1/4503599627370496"),
        (lambda h: h[9], "nothing certifies"),
        (lambda h: 1 / 0, "no number"),
        (et.expressions.Column(4), "at least 5 columns"),
        (7, "not int"),
        ({}, "at least one query"),
        ({1: et.expressions.maximum}, "texts"),
        ({"good": et.expressions.maximum, "bad": lambda h: 3 * h[0]}, "up to 3"),
    ],
)
def test_queries_that_nothing_certifies(query: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        et.MonotoneQuery(query, LABELS, guarantee=PURE, horizon=9)
    assert words in str(refusal.value)


def test_what_is_certified_is_taken_as_it_is_written() -> None:
    h = Columns(4)
    written = et.expressions.clamp((h[0] + h[1]) / 2, 0, 10)
    for query in (written, lambda v: et.expressions.clamp((v[0] + v[1]) / 2, 0, 10)):
        m = et.MonotoneQuery(query, LABELS, guarantee=PURE, horizon=9, mechanism="tree", key=ZeroNoise())
        assert [m.step([3, 4, 99, 99]).value, m.step([30, 4, 0, 0]).value] == [4, 10]
        assert isinstance(et.restore(m.snapshot(), key=ZeroNoise()), et.MonotoneQuery)


def test_approximate_guarantees_that_have_no_proof_are_kept_purely() -> None:
    """Two levels with a delta against adaptive streams [U], and Gaussian partitions of users: the pure one is used."""
    assert isinstance(make(mechanism="two-level", guarantee=APPROX).charge, et.PureDP)
    assert isinstance(make(mechanism="two-level", guarantee=OBLIVIOUS, horizon=10**6).charge, et.ApproxDP)
    user = {"unit": "user", "max_events_per_user": 3, "mechanism": "noisy-ladders", "largest": 9}
    assert isinstance(make(guarantee=APPROX, **user).charge, et.PureDP)


# -- several on one stream ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", [PURE, ZC, APPROX, et.ApproxZCDP(0.5, 1e-6)], ids=repr)
def test_shares_of_one_stream(guarantee: Any) -> None:
    s = et.Stream("wards", guarantee=guarantee, horizon=50, key=et.simulation(1))
    made = [
        s.add(et.MaxSum, share="1/5", columns=LABELS, mechanism="rebased"),
        s.add(et.SumQuantile, share="1/5", q=0.5, columns=LABELS, mechanism="recompute"),
        s.add(et.SumSelect, share="1/5", columns=LABELS),
        s.add(et.Counter, share="1/5", mechanism="sparse", largest=100),
        s.add(et.Histogram, share="1/5", mechanism="sparse", categories=LABELS),
    ]
    paid = et.Ledger(guarantee)
    for mechanism in made:
        assert mechanism.guarantee.covers(mechanism.charge)
        assert (mechanism.horizon, mechanism.stream) == (50, "wards")
        paid.promise(mechanism.name, mechanism.charge)
    assert guarantee.covers(paid.total())
    assert [m.name for m in made] == ["maxsum", "quantile", "sumselect", "counter", "histogram"]
    with pytest.raises(BudgetExceeded):
        s.add(et.MinSum, share=0.01, columns=LABELS)
    for mechanism in made:
        again = et.restore(mechanism.snapshot(), key=et.simulation(1))
        assert (type(again), again.charge) == (type(mechanism), mechanism.charge)


@EVERY
def test_what_is_paid_keeps_what_is_promised(subject: Any) -> None:
    m = subject.make(et.simulation(0))
    assert m.guarantee.covers(m.charge)


@EACH
def test_a_snapshot_brings_everything_back(kind: str) -> None:
    options: dict[str, Any] = {
        "key": et.simulation(9),
        "other": "rest",
        "max_per_event": 2,
        "max_weight": 2,
        "neighbours": "replace",
        "largest": 99,
        "max_events_per_tick": 9,
        "beta": 0.2,
        "unit": "user",
        "max_events_per_user": 2,
        "stream": "s",
        "name": "n",
        "memory_limit": 2**20,
        "split": ("1/5", "1/5", "3/5"),
        "mechanism": "rebased",
    }
    m = make(kind, **options)
    take(m, [5, 0, 3, 0, 1])
    m.step_events(["a", "zebra"], users=["u", "u"])
    again = et.restore(m.snapshot(), key=et.simulation(9))
    assert again._options == m._options
    assert again.snapshot() == m.snapshot()
    assert (again.columns, again.sensitivity, again.charge) == (m.columns, m.sensitivity, m.charge)
    for x in (m, again):
        x.step_events(["a", "b"], users=["u", "v"])  # u has had its two events
    assert again.snapshot() == m.snapshot()
    assert same(take(again, [9, 9, 9, 9, 9]).value, take(m, [9, 9, 9, 9, 9]).value)


# -- noise: what is paid, at which addresses ---------------------------------------------------------------------------


class Path:
    """A key that remembers the path of its source."""

    private = False

    def __init__(self) -> None:
        self.path: tuple[Any, ...] = ()

    def source(self, *path: Any) -> Any:
        self.path = path
        return ZeroNoise().source()

    def mac(self, purpose: str, data: bytes) -> bytes:
        return b""

    def fingerprint(self) -> str:
        return "path"


def path_of(kind: str = "MaxSum", **options: Any) -> tuple[Any, ...]:
    key = Path()
    make(kind, **({"mechanism": "rebased", "largest": 10} | options | {"key": key}))
    return key.path


def test_every_public_number_is_part_of_the_address() -> None:
    paths = {
        path_of(),
        path_of(largest=11),
        path_of(largest=None),
        path_of(beta=0.1),
        path_of(max_events_per_tick=2),
        path_of(split=("1/3", "1/3", "1/3")),
        path_of(other="rest"),
        path_of(max_per_event=1),
        path_of(max_weight=2),
        path_of(neighbours="replace"),
        path_of(unit="user", max_events_per_user=1),
        path_of(unit="user", max_events_per_user=2),
        path_of(horizon=21),
        path_of(guarantee=et.PureDP(1.5)),
        path_of(mechanism="bounded"),
        path_of(stream="other"),
        path_of(name="other"),
        path_of(memory_limit=2**20),
        path_of("MinSum", name="maxsum"),
        path_of("Quantile", name="maxsum"),
        path_of("MonotoneQuery", name="maxsum"),
        path_of("several", name="maxsum"),
    }
    assert len(paths) == 22


def drawn(mechanism: str, kind: str = "MaxSum", ticks: int = 20, **options: Any) -> tuple[Any, list[Any]]:
    """What a mechanism draws when everything happens."""
    recording = Recording(ZeroNoise())
    m = make(kind, mechanism=mechanism, **(options | {"key": recording, "horizon": ticks}))
    for row in np.full((ticks, len(m.columns)), 10**6):
        take(m, row)
    return m, recording.draws


@pytest.mark.parametrize("ticks", [1, 7, 60, 97, 100])
@pytest.mark.parametrize(("kind", "queries"), [("MaxSum", 1), ("TopK", 2), ("several", 2)])
@pytest.mark.parametrize(
    ("options", "linf"),
    [({}, 1), ({"max_weight": 3}, 3), ({"unit": "user", "max_events_per_user": 2, "neighbours": "replace"}, 4)],
    ids=["event", "weight", "user"],
)
def test_recomputations_pay_exactly_their_budget(kind: str, queries: int, ticks: int, options: Any, linf: int) -> None:
    """price-of-continual-release 3.5, 3.6 and 10.1(6), trap P1: m = ceil(T/r) releases, m D1/b = eps or
    m D2^2/(2 sigma^2) = rho, up to the rounding of scales (up, by less than 2^-30)."""
    for guarantee in (et.PureDP(4.0), et.ZCDP(2.0)):
        m, draws = drawn("recompute", kind, ticks, guarantee=guarantee, **options)
        period = m._engine.worker.period
        releases = -(-ticks // period)
        assert [entry.nodes for entry in draws] == [(number,) for number in range(1, releases + 1)]
        assert {entry.coordinates for entry in draws} == {queries}
        (law,) = {entry.law for entry in draws}
        if isinstance(m.charge, et.PureDP):
            assert isinstance(law, DiscreteLaplace)
            paid, budget = releases * queries * linf / law.scale, m.charge.exact_epsilon
        else:
            assert isinstance(law, DiscreteGaussian)
            paid = releases * queries * linf**2 / (2 * law.sigma_squared)
            budget = m.charge.exact_rho
        assert budget * (1 - Fraction(1, 2**30)) <= paid <= budget


@pytest.mark.parametrize("ticks", [1, 7, 60, 97])
@pytest.mark.parametrize(
    ("options", "linf"),
    [
        ({}, 1),
        ({"max_weight": 3}, 3),
        ({"unit": "user", "max_events_per_user": 2}, 2),
        ({"max_weight": 3, "neighbours": "replace"}, 3),
    ],
    ids=["event", "weight", "user", "replaced event"],
)
def test_selections_pay_exactly_their_budget(ticks: int, options: Any, linf: int) -> None:
    """price-of-continual-release 3.7 and 10.1(6): m eps' = eps by permute-and-flip, m eps'^2/8 = rho by the exponential
    mechanism, where eps' = 2 D/scale, and D/scale where an event moves all scores one way (additions 7)."""
    for guarantee, kind in ((et.PureDP(4.0), "exponential"), (et.ZCDP(2.0), "gumbel")):
        scales: list[Fraction] = []
        m, draws = with_scales(
            scales, lambda g=guarantee: drawn("recompute", "SumSelect", ticks, guarantee=g, **options)
        )
        releases = -(-ticks // m._engine.worker.period)
        assert [entry.nodes for entry in draws] == [(number,) for number in range(1, releases + 1)]
        assert {(entry.law, entry.coordinates) for entry in draws} == {(kind, 4)}
        (scale,) = set(scales)
        assert len(scales) == releases
        epsilon = (2 if options.get("neighbours") == "replace" else 1) * linf / scale
        if kind == "exponential":
            assert releases * epsilon == m.charge.exact_epsilon == 4
        else:
            assert m.charge == et.ZCDP(2.0)
            assert 2 * (1 - Fraction(1, 2**50)) <= releases * epsilon**2 / 8 <= 2


def with_scales(scales: list[Fraction], play: Any) -> Any:
    from evertally.selection import one_shot

    original = one_shot.noisy_argmax
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_shot, "noisy_argmax", lambda s, scale, v: scales.append(scale) or original(s, scale, v))
        return play()


@pytest.mark.parametrize("mechanism", ["rebased", "bounded", "noisy-ladders", "doubling"])
@pytest.mark.parametrize(
    ("options", "linf", "units"),
    [
        ({}, 1, 1),
        ({"max_weight": 3}, 3, 1),
        ({"unit": "user", "max_events_per_user": 5}, 1, 5),
        ({"max_weight": 3, "neighbours": "replace"}, 3, 1),
        ({"unit": "user", "max_events_per_user": 5, "neighbours": "replace"}, 1, 10),
    ],
    ids=["event", "weight", "user", "replaced event", "replaced user"],
)
def test_a_partition_pays_exactly_its_budget(mechanism: str, options: Any, linf: int, units: int) -> None:
    """parameterized-histograms 2.2-2.4: eps_tau = linf/b_tau, eps_mu = 2 linf/b_mu, eps_U = k linf/b_U and eps_H add up
    to epsilon, for each event of a unit; eps_mu = linf/b_mu where neighbours move one way (additions 7). Guesses may
    move a split, and never the sum."""
    sides = 2 if options.get("neighbours") == "replace" else 1
    for guess in ({"largest": 10}, {"largest": 10**6, "beta": 0.3, "max_events_per_tick": 50}):
        m, draws = drawn(mechanism, guarantee=et.PureDP(2.0), **options, **guess)
        assert m.charge == et.PureDP(2.0)
        scales = {entry.lane: entry.law.scale for entry in draws}
        paid = linf / scales["tau"] + sides * linf / scales["mu"]
        paid += linf / scales["update"] if mechanism == "noisy-ladders" else 0
        paid += m._engine.worker._formula.noise.histogram.exact_epsilon
        assert Fraction(2, units) * (1 - Fraction(1, 2**30)) <= paid <= Fraction(2, units)


def test_a_split_is_taken_as_it_is_given() -> None:
    for guess in ({"largest": 10}, {"largest": 10**6, "beta": 0.3, "max_events_per_tick": 50}):
        for split in (("1/8", "3/8", "1/2"), (0.125, 0.375, 0.5)):
            for neighbours, mu in (("add_remove", Fraction(4, 3)), ("replace", Fraction(8, 3))):
                m, draws = drawn("rebased", guarantee=et.PureDP(2.0), split=split, neighbours=neighbours, **guess)
                # H may draw real numbers; tests draw integers.
                scales = {entry.lane: entry.law.scale for entry in draws if isinstance(entry.law, DiscreteLaplace)}
                assert (scales["tau"], m._engine.worker._formula.noise.histogram) == (4, et.PureDP(1))
                assert mu <= scales["mu"] < mu + Fraction(1, 2**30)


@pytest.mark.parametrize("guarantee", [PURE, ZC, APPROX, OBLIVIOUS, et.ApproxZCDP(0.5, 1e-6)], ids=repr)
@pytest.mark.parametrize("mechanism", ["auto", *NAMES])
def test_every_way_that_is_taken_is_covered(guarantee: Any, mechanism: str) -> None:
    taken = 0
    for kind in ("MaxSum", "TopKSelect", "SumSelect"):
        for options in ({}, {"horizon": None}, {"unit": "user", "max_events_per_user": 2, "neighbours": "replace"}):
            try:
                m = make(kind, guarantee=guarantee, mechanism=mechanism, **({"largest": 50} | options))
            except ConfigurationError:
                continue
            taken += 1
            assert m.guarantee.covers(m.charge)
            assert mechanism in ("auto", m.mechanism)
            assert m.charge.adversary == guarantee.adversary or m.mechanism == "trivial"
    gaussian = ("sqrt", "bank", "bank-open")
    laplace = ("pure-blocks", "epoch-blocks")
    zcdp = isinstance(guarantee, et.ZCDP | et.ApproxZCDP)
    assert bool(taken) != ((mechanism in gaussian and guarantee == PURE) or (mechanism in laplace and zcdp))


def test_a_bound_that_nothing_bounds_is_infinite_and_not_an_error() -> None:
    query = et.MaxSum(
        columns=4,
        guarantee=et.PureDP(1.0),
        horizon=None,
        mechanism="doubling",
        max_events_per_tick=10,
        key=et.simulation(1),
    )
    bounds = [query.error_bound(0.05, t=t) for t in (10, 1000, 2**16)]
    assert math.isfinite(bounds[0])
    assert bounds == sorted(bounds)
    assert bounds[-1] == math.inf
