"""Queries on column sums: exact values, certificates that are true, and the gate for queries that have none."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import statistics
import timeit
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.doors import read_columns
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import (
    Certificate,
    Column,
    Columns,
    Expression,
    HIndex,
    Maximum,
    Mean,
    Minimum,
    OrderStatistic,
    Quantile,
    RankMean,
    Rounded,
    TopMean,
    TrimmedMean,
    ceil,
    clamp,
    exact_number,
    floor,
    from_json,
    h_index,
    maximum,
    mean,
    minimum,
    order_statistic,
    quantile,
    round_half_up,
    top_mean,
    total,
    trace,
    trimmed_mean,
)
from evertally.histogram.refuter import Counterexample, certified, refute
from evertally.noise import ZeroNoise

HALF = Fraction(1, 2)
OFFSETS = (0, 5, -7, 10**6, 2**61 - 8, -(2**61))


def naive(data: Any, v: list[Fraction]) -> Fraction:
    """The value of a query's JSON form from the definitions, by sorted lists of fractions; v may be any real vector."""
    if "column" in data:
        return v[data["column"]]
    if "plus" in data:
        return Fraction(data["constant"]) + sum(Fraction(w) * naive(term, v) for w, term in data["plus"])
    if "rounded" in data:
        x = naive(data["of"], v)
        return Fraction(
            {"floor": math.floor(x), "ceil": math.ceil(x), "half_up": math.floor(x + HALF)}[data["rounded"]]
        )
    of = data.get("of", data.get("h_index"))
    values = sorted(v if of == "all" else (naive(term, v) for term in of))
    n = len(values)
    if "h_index" in data:
        return Fraction(max(k for k in range(n + 1) if sum(x >= k for x in values) >= k))
    low, high = (math.ceil(Fraction(r) * n) if isinstance(r, str) else r if r > 0 else n + 1 + r for r in data["ranks"])
    return Fraction(sum(values[low - 1 : high])) / (high - low + 1)


def small_queries(d: int) -> Iterator[Expression]:
    """Every combinator, alone and nested, with certificates of all kinds."""
    h = Columns(d)
    yield from (Maximum(), Minimum(), Mean(), HIndex(), h[0], h[-1], h[0] * 0 + 3)
    yield from (OrderStatistic(r) for r in range(1, d + 1))
    yield from (OrderStatistic(-r) for r in range(1, d + 1))
    yield from (Quantile(Fraction(i, 7)) for i in range(1, 8))
    yield from (TopMean(k) for k in range(1, d + 1))
    yield from (TrimmedMean(cut) for cut in range((d + 1) // 2))
    convex = sum((x / 2 ** (i + 1) for i, x in enumerate(h)), 0 * h[0])
    yield from (convex, convex - 4, floor(convex), ceil(convex), round_half_up(convex), clamp(convex, 1, HALF * 5))
    yield from (maximum(h[0], convex, 2), minimum(h[-1], ceil(convex) + 1), abs(h[0] - h[-1]) / 2)
    yield from (h[0] // 2, (h[0] + h[-1]) // 3, h_index([*h, convex, h[0] - 1]), h_index([2 * x for x in h]))
    yield from (order_statistic([convex, *h, h[0] - 1, 3], 2), top_mean([convex, *h, 1], 2), h[0] / 3 - h[-1] / 2)
    yield from (h.max() - h.min(), total(h), 2 * h[0], floor(3 * h[0] / 2), -h[-1], h[0] - h[-1], maximum(-h[0], 2))
    yield from (trimmed_mean([*h, 0, convex], 1), total(clamp(x - 2, 0, 1) for x in h), total(h).normalised())
    yield from ((floor(3 * h[0] / 2) - h[-1]).normalised(), round_half_up(-h[0] / 2), ceil(floor(h[0] / 2) / 2 + 1))


def neighbours(d: int, offset: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for v in itertools.product(range(4), repeat=d):
        for u in itertools.product((-1, 0, 1), repeat=d):
            yield tuple(x + offset for x in v), u


@pytest.mark.parametrize("d", [1, 2, 3])
def test_certificates_are_true_and_values_exact_on_all_small_vectors(d: int) -> None:
    for query in small_queries(d):
        certificate, data = query.certificate, query.to_json()
        steps: dict[tuple[int, ...], set[Fraction]] = {}
        for offset in OFFSETS if d < 3 else OFFSETS[::2]:
            points = itertools.product(range(offset - 1, offset + 5), repeat=d)
            value = {v: query.evaluate(np.array(v)) for v in points}
            for v, exact in value.items():
                assert exact == naive(data, [Fraction(x) for x in v]), (query, v)
                assert query.ceiling(np.array(v)) == math.ceil(exact)
            for v, u in neighbours(d, offset):
                step = value[tuple(np.add(v, u).tolist())] - value[v]
                steps.setdefault(u, set()).add(step)
        largest = max(abs(step) for found in steps.values() for step in found)
        assert largest <= query.sensitivity, query
        assert certificate.unit_scale == (query.sensitivity <= 1)
        if certificate.monotone:
            assert min(step for u, found in steps.items() if min(u) >= 0 for step in found) >= 0, query
        if certificate.linear:
            assert all(len(found) == 1 for found in steps.values()), query
        assert certificate.zero_at_zero == (query.evaluate([0] * d) == 0)
        assert query.normalised().certificate.unit_scale


@pytest.mark.parametrize(
    ("query", "sensitivity"),
    [
        (Maximum(), 1),
        (OrderStatistic(2), 1),
        (HIndex(), 1),
        (Mean(), 1),
        (Column(0) / 3, Fraction(1, 3)),
        (floor(Column(0) / 3), 1),
        (floor(3 * Column(0) / 2), 2),
        (h_index([2 * Column(i) for i in range(3)] + [2 * Column(i) for i in range(3)]), 2),
        (h_index([Column(0) / 2, Column(1) / 3]), 1),
        (total(Columns(3)), 3),
        (Maximum() - Minimum(), 2),
        (Column(0) - Column(1) / 2, Fraction(3, 2)),
        (top_mean([Column(0), 2 * Column(1)], 1), 2),
    ],
    ids=str,
)
def test_the_sensitivity_is_the_smallest_that_holds(query: Expression, sensitivity: Fraction) -> None:
    values = [(query.evaluate(v), query.evaluate(np.add(v, u))) for v, u in neighbours(3, 0)]
    assert query.sensitivity == sensitivity == max(abs(a - b) for a, b in values)


# Random constructions, deeper than a list can be.

numbers = st.fractions(min_value=-3, max_value=3, max_denominator=6)
leaves = st.one_of(
    st.integers(0, 3).map(Column),
    st.sampled_from([Maximum(), Minimum(), Mean(), HIndex(), OrderStatistic(2), TopMean(2), Quantile("2/3")]),
)


def extended(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(st.one_of(parts, parts, parts, numbers), min_size=2, max_size=4)
    return st.one_of(
        st.builds(lambda a, b, w: w * a + (1 - abs(w)) * b, parts, parts, numbers.filter(lambda w: abs(w) <= 1)),
        st.builds(lambda a, b, w, c: a + w * b - c, parts, parts, numbers, numbers),
        st.builds(lambda of, data: order_statistic(of, data % len(of) + 1), several, st.integers(0, 3)),
        st.builds(lambda of, data: top_mean(of, data % len(of) + 1), several, st.integers(0, 3)),
        several.map(h_index),
        st.builds(lambda a, low, high: clamp(a, min(low, high), max(low, high)), parts, numbers, numbers),
        st.builds(lambda a, rounding: rounding(a), parts, st.sampled_from([floor, ceil, round_half_up])),
        parts.map(lambda a: a.normalised()),
    )


queries = st.recursive(leaves, extended, max_leaves=8)
reach = st.sampled_from([3, 50, 10**9, 2**61])
vectors = reach.flatmap(lambda m: st.lists(st.integers(-m, m), min_size=4, max_size=6))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(queries, vectors, st.data())
def test_random_constructions_keep_what_they_certify(query: Expression, v: list[int], data: st.DataObject) -> None:
    u = data.draw(st.lists(st.integers(-1, 1), min_size=len(v), max_size=len(v)))
    w = [a + b for a, b in zip(v, u, strict=True)]
    form, certificate = query.to_json(), query.certificate
    g_v, g_w = query.evaluate(v), query.evaluate(w)
    assert g_v == naive(form, [Fraction(x) for x in v])
    assert abs(g_v - g_w) <= query.sensitivity
    assert abs(query.ceiling(v) - query.ceiling(w)) <= math.ceil(query.sensitivity)
    if certificate.unit_scale:
        assert abs(query.ceiling(v) - query.ceiling(w)) <= 1
    if certificate.monotone:
        grown = [max(a, b) for a, b in zip(v, w, strict=True)]
        assert query.evaluate(grown) >= max(g_v, g_w)
    if certificate.linear:
        zero = [0] * len(v)
        assert g_w - g_v == query.evaluate(u) - query.evaluate(zero)
    if certificate.lipschitz:  # on real vectors, where only the definitions are at hand
        fine = data.draw(st.lists(st.fractions(-2, 2, max_denominator=7), min_size=len(v), max_size=len(v)))
        moved = [a + b for a, b in zip(v, fine, strict=True)]
        assert abs(naive(form, moved) - g_v) <= max(map(abs, fine))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(queries)
def test_json_is_canonical_and_comes_back(query: Expression) -> None:
    text = json.dumps(query.to_json())
    again = from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    assert (again.certificate, again.sensitivity, again.columns) == (
        query.certificate,
        query.sensitivity,
        query.columns,
    )


def test_one_query_has_one_form_however_it_is_written() -> None:
    h = Columns(3)
    ways = [
        [(h[0] + h[1]) / 2, h[1] / 2 + 0.5 * h[0], mean([h[1], h[0]]), h[0] - (h[0] - h[1]) / 2],
        [maximum(h), h.max(), Maximum(), Quantile(1), quantile(h, 1.0), OrderStatistic(-1), top_mean(h, 1), np.max(h)],
        [maximum(h[0], h[2]), maximum([h[2], h[0]]), order_statistic(h[::2], -1), quantile([h[0], h[2]], 1)],
        [h[0], h[0] * 1, h[0] - h[1] + h[1], maximum(h[0]), order_statistic([h[0]], 1), clamp(5, 0, 0) + h[0]],
        [Mean(), h.mean(), mean(h), np.mean(h), trimmed_mean(h, 0), total(h) / 3],
        [floor(h[0] / 2), h[0] // 2, math.floor(h[0] / 2), (h[0] / 2).__floor__()],
        [h[0] * 0 + 2, maximum(2, -3) + 0 * h[1], floor(HALF * 5) + 0 * h[0], h_index([2, 2, 7]) + 0 * h[0]],
    ]
    for same in ways:
        assert len({json.dumps(query.to_json()) for query in same}) == 1
    assert len({json.dumps(same[0].to_json()) for same in ways}) == len(ways)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        [],
        "max",
        {"column": "0"},
        {"column": -1},
        {"column": True},
        {"ranks": [1, 1]},
        {"ranks": [0, 0], "of": "all"},
        {"ranks": [-1, 1], "of": "all"},
        {"ranks": [2, 1], "of": "all"},
        {"ranks": [1.5, 1.5], "of": "all"},
        {"ranks": ["3/2", "3/2"], "of": "all"},
        {"ranks": ["1/2", 1], "of": "all"},
        {"ranks": [3, 3], "of": [{"column": 0}]},
        {"ranks": [1, 1], "of": []},
        {"rounded": "up"},
        {"rounded": "even", "of": {"column": 0}},
        {"constant": "x", "plus": []},
        {"constant": "0", "plus": [["1", {"ufo": 1}]]},
        {"h_index": []},
    ],
    ids=str,
)
def test_damaged_json_is_refused(data: Any) -> None:
    with pytest.raises(ConfigurationError):
        from_json(data)


# Named members and their certificates (parameterized-histograms 7.1).


def test_named_members_are_certified() -> None:
    h = Columns(5)
    members = [Maximum(), Minimum(), OrderStatistic(3), OrderStatistic(-2), Quantile("1/2"), TopMean(2), TrimmedMean(2)]
    members += [maximum(h[1:3]), minimum(h[0], h[4])]
    for query in members:
        assert query.certificate == Certificate(
            unit_scale=True,
            lipschitz=True,
            monotone=True,
            linear=False,
            zero_at_zero=True,
            reason="every step of the construction keeps the sensitivity at 1",
        )
    for query in (h[3], Mean(), (h[0] + h[1]) / 2, 0.6 * h[0] + 0.3 * h[1] + 0.1 * h[2], h[0] / 7):
        certificate = query.certificate
        assert certificate.linear
        assert certificate.unit_scale
        assert certificate.monotone
    for query in (HIndex(), floor(Mean()), ceil(Mean()), round_half_up(Mean())):
        certificate = query.certificate
        assert certificate.unit_scale
        assert certificate.monotone
        assert not certificate.lipschitz
        assert not certificate.linear


@pytest.mark.parametrize(
    ("query", "unit_scale", "monotone", "word"),
    [
        (Maximum() - Minimum(), False, False, "up to 2"),
        (total(Columns(7)), False, True, "up to 7"),
        (sum(Columns(7)), False, True, "up to 7"),
        (2 * Column(0), False, True, "up to 2"),
        (0.6 * Column(0) + 0.5 * Column(1), False, True, "11/10"),
        (Column(0) / 2 - Column(1) / 2, True, False, "negative"),
        (total(clamp(x - 3, 0, 1) for x in Columns(4)), False, True, "up to 4"),  # how many columns are above 3
        (maximum(0, 2 * (Column(0) - 5)), False, True, "up to 2"),
        (Column(0) + 3, True, True, "3 at zero"),
    ],
    ids=str,
)
def test_what_is_no_member_says_why(query: Expression, unit_scale: bool, monotone: bool, word: str) -> None:
    certificate = query.certificate
    assert (certificate.unit_scale, certificate.monotone) == (unit_scale, monotone)
    assert word in certificate.reason
    with pytest.raises(ConfigurationError, match=word):
        certified(query, 7)


def test_normalised_is_the_query_over_its_sensitivity() -> None:
    h = Columns(4)
    for query in (total(h), 3 * h[1] - 2, h.max() - h.min(), h[0] / 5, floor(5 * h[0] / 2)):
        unit = query.normalised()
        assert unit.certificate.unit_scale
        v = [7, -2, 9, 4]
        assert unit.evaluate(v) * query.sensitivity == query.evaluate(v)
    assert (h[0] * 0 + 5).normalised().evaluate([1]) == 5


def test_columns_that_a_query_needs() -> None:
    h = Columns(9)
    needed = [(h[4], 5), (h[1] + h[7] / 2, 8), (maximum(h[2], 3), 3), (Maximum(), "all"), (h[0] * 0, 0)]
    needed += [(h_index(h[:2]), 2), (floor(h[3] / 2), 4), (minimum(h[0], Mean()), "all")]
    assert all(query.columns == columns for query, columns in needed)
    limits = [(h[4], 5), (Maximum(), 1), (OrderStatistic(3), 3), (OrderStatistic(-4), 4), (TopMean(3), 3)]
    limits += [(TrimmedMean(2), 5), (Quantile("1/9"), 1), (Mean() + h[6], 7), (maximum(TopMean(2), h[0]), 2)]
    for query, least in limits:
        query.require(least)
        query.evaluate([0] * least)
        for refused in (lambda q=query, n=least - 1: q.require(n), lambda q=query, n=least - 1: q.evaluate([0] * n)):
            with pytest.raises(ConfigurationError, match=f"at least {least} column"):
                refused()


# Exactness.


def test_weights_that_doubles_get_wrong() -> None:
    v, w = np.full(3, 397), np.full(3, 398)
    assert 398.0 - (0.6 * 397 + 0.3 * 397 + 0.1 * 397) > 1  # the trap of parameterized-histograms 1.5
    query = certified(lambda v: 0.6 * v[0] + 0.3 * v[1] + 0.1 * v[2], 3)
    assert (query.evaluate(v), query.evaluate(w)) == (397, 398)
    assert (query.ceiling(v), query.ceiling(w)) == (397, 398)


def test_nothing_overflows() -> None:
    top = 2**61
    v = np.full(1000, top)
    w = v.copy()
    w[::2] = -top
    assert Mean().evaluate(v) == top
    assert total(Columns(1000)).evaluate(v) == 1000 * top
    assert sum(Columns(1000)).evaluate(v) == 1000 * top
    assert TopMean(600).evaluate(w) == Fraction(500 * top - 100 * top, 600)
    assert TrimmedMean(3).evaluate(w) == 0
    weights = [Fraction(1, 10**12 + i) for i in range(40)]
    query = sum((weight * x for weight, x in zip(weights, Columns(40), strict=True)), 0 * Column(0))
    assert query.evaluate(w) == sum(weight * int(x) for weight, x in zip(weights, w, strict=False))
    ends = np.array([-(2**63), 2**63 - 1])
    assert Mean().evaluate(ends) == Fraction(-1, 2)
    assert (Column(1) - Column(0)).evaluate(ends) == 2**64 - 1
    assert HIndex().evaluate(ends) == 1


def test_vectors_are_integers() -> None:
    assert Maximum().evaluate([True, 2]) == 2
    assert Maximum().evaluate(np.array([3, 2], dtype=np.uint8)) == 3
    for wrong in ([0.5, 1.0], np.array([1.0]), ["a"]):
        with pytest.raises(TypeError):
            Maximum().evaluate(wrong)
    with pytest.raises(ConfigurationError):
        Maximum().evaluate(np.zeros((2, 2), dtype=np.int64))


def test_evaluation_leaves_the_sums_alone() -> None:
    v = np.array([5, 1, 4, 1, 3])
    for query in small_queries(3):
        query.evaluate(v)
    assert v.tolist() == [5, 1, 4, 1, 3]


def test_numbers_mean_what_they_print() -> None:
    assert exact_number(0.07) == Fraction(7, 100)
    assert exact_number(np.float32(0.1)) == Fraction(1, 10)
    assert exact_number(np.int64(3)) == 3
    assert exact_number(0.1 + 0.2) == Fraction("0.30000000000000004")
    assert exact_number(1e-9) == Fraction(1, 10**9)
    assert exact_number(1e20) == 10**20
    assert all(exact_number(i / d) == Fraction(i, d) for d in (3, 49, 997, 999_983) for i in range(1, min(d, 2000)))
    for wrong in (math.nan, math.inf, True, None, "x", "1/0", 1j):
        with pytest.raises(ConfigurationError):
            exact_number(wrong)


# E7, quantiles (parameterized-histograms 9.2).


@pytest.mark.parametrize("d", [1, 2, 3, 7, 49, 100, 997, 1000])
def test_quantiles_are_order_statistics(d: int) -> None:
    v = np.random.default_rng(d).integers(-50, 1000, d)
    rising = sorted(v.tolist())
    assert Quantile(1).ceiling(v) == Maximum().ceiling(v) == rising[-1]
    assert Quantile(Fraction(1, d)).ceiling(v) == Minimum().ceiling(v) == rising[0]
    assert Quantile(HALF).ceiling(v) == statistics.median_low(rising)
    for i in range(1, d + 1):
        for q in (Fraction(i, d), i / d, f"{i}/{d}"):
            assert Quantile(q).ceiling(v) == rising[i - 1]
        assert OrderStatistic(i).ceiling(v) == rising[i - 1]
        if i < d:
            assert Quantile(Fraction(i, d) + Fraction(1, 10**30)).ceiling(v) == rising[i]
    top = [Quantile(Fraction(d + 1 - place, d)).ceiling(v) for place in range(1, d + 1)]
    assert top == [OrderStatistic(-place).ceiling(v) for place in range(1, d + 1)] == rising[::-1]


def test_the_definition_of_a_quantile() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        d, q = int(rng.integers(1, 12)), Fraction(int(rng.integers(1, 31)), 30)
        v = rng.integers(0, 6, d)
        smallest = min(x for x in v.tolist() if sum(y <= x for y in v.tolist()) >= q * d)
        assert Quantile(q).ceiling(v) == smallest


@pytest.mark.parametrize(
    "build",
    [
        lambda: Quantile(0),
        lambda: Quantile(1.01),
        lambda: Quantile(-0.5),
        lambda: Quantile("half"),
        lambda: OrderStatistic(0),
        lambda: OrderStatistic(1.0),
        lambda: TopMean(0),
        lambda: TrimmedMean(-1),
        lambda: Column(-1),
        lambda: Columns(0),
        lambda: Columns(2.0),
        lambda: maximum(),
        lambda: mean([]),
        lambda: h_index([]),
        lambda: order_statistic(Columns(3), 4),
        lambda: order_statistic([Column(0), 1], 3),
        lambda: clamp(Column(0), 2, 1),
        lambda: top_mean(Columns(2), 3),
        lambda: trimmed_mean([Column(0), Column(1)], 1),
        lambda: floor("1/2"),
        lambda: RankMean(low=3, high=2),
        lambda: Rounded("even", Column(0)),
        lambda: maximum(Column(0), None),
    ],
)
def test_nonsense_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        build()


# Tracing.


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda v: v[0], Column(0)),
        (lambda v: v[-1], Column(3)),
        (lambda v: sum(v) / len(v), mean(list(Columns(4)))),
        (lambda v: v.max(), Maximum()),
        (lambda v: np.min(v), Minimum()),
        (lambda v: np.float64(0.5) * v[0] + np.int64(1) * v[1] / 2, (Column(0) + Column(1)) / 2),
        (lambda v: np.array([0.5, 0.5]) @ v[:2], (Column(0) + Column(1)) / 2),
        (lambda v: maximum(x / 2 for x in v), maximum([x / 2 for x in Columns(4)])),
        (lambda v: math.ceil((v[0] + v[1]) / 2), ceil((Column(0) + Column(1)) / 2)),
        (lambda v: 5 - v[2], -Column(2) + 5),
        (lambda v: abs(v[0] - 3), maximum(Column(0) - 3, 3 - Column(0))),
    ],
)
def test_plain_functions_are_traced(function: Callable[[Any], Any], expected: Expression) -> None:
    assert trace(function, 4).to_json() == expected.to_json()


def branching(v: Any) -> Any:
    return v[0] if v[0] else v[1]


UNTRACEABLE = [
    branching,
    lambda v: max(v),
    lambda v: sorted(v)[0],
    lambda v: v[0] if v[1] == 0 else v[0] - 1,
    lambda v: v[0] if v[1] != v[0] else 0 * v[0],
    lambda v: v[0] if v[1] in (3, 4) else v[1],
    lambda v: v[0] if v[0] >= 2 else 0 * v[0],
    lambda v: int(v[0]),
    lambda v: float(v[0]) / 2,
    lambda v: range(v[0])[-1],
    lambda v: v[0] * v[1],
    lambda v: v[0] / v[1],
    lambda v: v[0] ** 2,
    lambda v: 1 / v[0],
    lambda v: v[0] % 2,
    lambda v: v[0] / 0,
    lambda v: round(v[0] / 2),
    lambda v: np.sqrt(v[0]),
    lambda v: np.sort(v)[0],
    lambda v: np.partition(v, 1)[1],
    lambda v: np.median(v),
    lambda v: v[int(np.argmax(v))],
    lambda v: np.maximum(v[0], v[1]),
    lambda v: np.clip(v[0], 0, 3),
    lambda v: np.where(v[0], v[1], v[2]),
    lambda v: v[0] * float("nan"),
    lambda v: v[0] + True,
    lambda v: v[0] + "1",
    lambda v: v[9],
    lambda v: Column(9),
    lambda v: v,
    lambda v: v[:2],
    lambda v: 0,
    lambda v: None,
    lambda v: v.std(),
]


@pytest.mark.parametrize("function", UNTRACEABLE)
def test_functions_that_look_at_counts_are_not(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigurationError):
        trace(function, 4)


def test_a_query_may_be_copied_and_kept_in_sets() -> None:
    query = maximum(Column(0) / 2, HIndex())
    assert query.certificate.unit_scale
    for twin in (copy.deepcopy(query), pickle.loads(pickle.dumps(query))):
        assert twin.to_json() == query.to_json()
    assert len({query, query}) == 1
    with pytest.raises(AttributeError):
        query.of = None  # type: ignore[misc]


# The refuter (E6) and the gate.


def float_weights(v: Any) -> Any:
    return 0.6 * float(v[0]) + 0.3 * float(v[1]) + 0.1 * float(v[2])


@pytest.mark.parametrize(
    ("g", "columns", "kind"),
    [
        (lambda v: 2 * int(v[0]), 1, "sensitivity"),
        (lambda v: max(0, 2 * (int(v[0]) - 5)), 1, "sensitivity"),
        (lambda v: max(0, 2 * (int(v[3]) - 5)), 9, "sensitivity"),
        (lambda v: int(v.max() - v.min()), 3, "sensitivity"),
        (lambda v: int(v.max() - v.min()), 500, "sensitivity"),
        (lambda v: int((v > 40).sum()), 50, "sensitivity"),
        (lambda v: v.sum(), 2, "sensitivity"),
        (lambda v: v[0] if v[0] < 10**9 else 2 * v[0] - 10**9, 2, "sensitivity"),
        (lambda v: v[0] if v[0] > -3 else 2 * v[0] + 3, 1, "sensitivity"),
        (lambda v: int(v[0] + v[1]) // 2 if v[0] != v[1] else int(v[0]) + 1, 2, "sensitivity"),
        (lambda v: float(v[0]), 1, "sensitivity"),  # from 2^53 on it moves in steps of 2 and more
        (float_weights, 3, "sensitivity"),
        (lambda v: round((int(v[0]) + int(v[1])) / 2), 2, "sensitivity"),
        (lambda v: -int(v[0]), 2, "monotone"),
        (lambda v: int(v[0]) % 2, 2, "monotone"),
        (lambda v: int(v[0]) + 1, 2, "zero"),
        (lambda v: Fraction(1, int(v[0]) - 3), 1, "total"),
        (lambda v: [0, 0, 0][int(v[0])], 1, "total"),
        (lambda v: math.log(v[0]), 1, "total"),
        (lambda v: math.nan, 2, "total"),
        (lambda v: np.inf, 2, "total"),
        (lambda v: "many", 2, "total"),
        (lambda v: v, 2, "total"),
    ],
)
def test_the_refuter_finds_what_is_wrong(g: Callable[[Any], Any], columns: int, kind: str) -> None:
    found = refute(g, columns)
    assert found is not None
    assert found.kind == kind
    assert found == refute(g, columns)
    assert len(found.v) == len(found.w) == columns
    v, w = np.array(found.v), np.array(found.w)
    assert np.abs(v - w).max() <= 1
    if kind != "total":
        assert (Fraction(float(g(v)) if isinstance(g(v), float) else int(g(v)))) == found.g_v
        assert {
            "sensitivity": abs(found.g_v - found.g_w) > 1,
            "monotone": bool(np.all(v <= w)) and found.g_v > found.g_w,
            "zero": not v.any() and found.g_v != 0,
        }[kind]
    with pytest.raises(ConfigurationError, match=r"Counterexample|refused"):
        certified(g, columns)


@pytest.mark.parametrize("d", [1, 2, 4, 40])
def test_the_refuter_spares_what_is_right(d: int) -> None:
    rank = (d + 1) // 2
    for g in (lambda v: sorted(v.tolist())[rank - 1], HIndex()):
        assert refute(g, d) is None
    assert refute(3 - d * Column(0), d, sensitivity=d, monotone=False, zero_at_zero=False) is None


def test_the_refuter_walks_the_whole_grid() -> None:
    """A fault at a single point of {0..3}^3 is seen; far and negative sums are visited too."""
    seen: set[tuple[int, ...]] = set()

    def watch(v: Any) -> int:
        seen.add(tuple(v.tolist()))
        return int(v.max())

    assert refute(watch, 3) is None
    assert set(itertools.product(range(-1, 5), repeat=3)) <= seen
    assert max(map(max, seen)) > 2**59
    assert min(map(min, seen)) < -(2**59)
    for point in [(3, 0, 3), (0, 0, 0), (2, 1, 3)]:
        assert refute(lambda v, p=point: int(v.max()) + 3 * (tuple(v.tolist()) == p), 3) is not None


def test_the_refuter_takes_no_harm_from_a_function_that_writes() -> None:
    def writes(v: Any) -> int:
        v += 1
        return 2 * int(v[0]) - 2

    found = refute(writes, 2)
    assert found is not None
    assert (found.v, found.w, found.g_v, found.g_w) == ((0, 0), (1, 1), 0, 2)


def test_passing_the_search_is_not_enough() -> None:
    def far(v: Any) -> int:
        return 2 * int(v[0]) - 123_456_789 if v[0] == 123_456_789 + 1 else int(v[0])

    assert refute(far, 1) is None
    with pytest.raises(ConfigurationError, match=r"a test proves nothing.*maximum, minimum, order_statistic"):
        certified(far, 1)


def test_the_example_that_passes_the_grid_is_refused() -> None:
    def hidden(v: Any) -> int:
        return max(0, 2 * (int(v[0]) - 5))

    grid = [np.array([x]) for x in range(4)]
    assert all(abs(hidden(v + u) - hidden(v)) <= 1 for v in grid for u in (-1, 0, 1))
    for query in (hidden, lambda v: maximum(0, 2 * (v[0] - 5)), maximum(0, 2 * (Column(0) - 5))):
        with pytest.raises(ConfigurationError, match=r"= 2 at v = \(5\), w = \(6\)"):
            certified(query, 1)


def test_the_gate() -> None:
    assert certified(Maximum(), 3).to_json() == Maximum().to_json()
    assert certified(lambda v: v.max(), 3).to_json() == Maximum().to_json()
    assert certified(lambda v: 3 - v[0], 2, privacy_only=True).sensitivity == 1
    with pytest.raises(ConfigurationError, match="it has a negative weight"):
        certified(lambda v: 3 - v[0], 2)
    with pytest.raises(ConfigurationError, match="= 2 at v"):
        certified(lambda v: v[0] - v[1], 2, privacy_only=True)
    with pytest.raises(ConfigurationError, match="at least 3 columns"):
        certified(OrderStatistic(3), 2)
    for query, columns in (("max", 2), (7, 2), (Maximum(), 0), (Maximum(), 1.5), (lambda v: v[0], True)):
        with pytest.raises(ConfigurationError):
            certified(query, columns)


def test_messages_stay_short_with_many_columns() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        certified(lambda v: sum(v), 300)
    assert len(str(refusal.value)) < 500
    text = str(Counterexample("sensitivity", (0,) * 99, (1,) * 99, Fraction(0), Fraction(99)))
    assert text == ("|g(v) - g(w)| = 99 at v = (0, 0, 0, 0, 0, 0, 0, 0, ...), w = (1, 1, 1, 1, 1, 1, 1, 1, ...)")


# Speed: a partition evaluates its queries at every tick.


@pytest.mark.parametrize(
    ("query", "microseconds"), [(Maximum(), 10), (Minimum(), 10), (OrderStatistic(300), 30), (Quantile("9/10"), 30)]
)
def test_named_queries_of_a_thousand_columns_are_fast(query: Expression, microseconds: float) -> None:
    v = np.random.default_rng(1).integers(0, 2**40, 1000)
    assert min(timeit.repeat(lambda: query.ceiling(v), number=100, repeat=30)) / 100 < microseconds * 1e-6


# -- queries that lie: what is certified is what was written down ------------------------------------------------------


class Doubled(RankMean):
    """Says that it is the maximum, and is a thousand times as large."""

    def _ratio(self, v: Any) -> tuple[int, int]:
        return 1000 * int(v.max()), 1

    def evaluate(self, v: Any) -> Fraction:
        return Fraction(0)

    def ceiling(self, v: Any) -> int:
        return 1000 * int(max(v))

    def require(self, columns: int) -> None:
        pass


class Innocent(Expression):
    """Says that it moves by nothing at all."""

    def _derive(self) -> Any:
        return Mean()._derive()

    def _ratio(self, v: Any) -> tuple[int, int]:
        return 1000 * int(v[0]), 1

    def to_json(self) -> dict[str, Any]:
        return {"constant": "0", "plus": [["1000", {"column": 0}]]}


class Unwritten(Maximum):
    """Has no written form, or one that nobody can read."""

    form: Any = None

    def to_json(self) -> Any:
        if self.form is None:
            raise RuntimeError("asked")
        return self.form


class LargeIndex(int):
    """A column number whose comparisons lie."""

    def __lt__(self, other: object) -> bool:
        return False


ROW = np.array([3, 9, 4])


def test_a_subclass_is_answered_by_what_it_writes_down() -> None:
    liars = [Doubled(low=-1, high=-1), maximum(Doubled(low=-1, high=-1), 0 * Column(0))]
    for liar in (*liars, lambda v: Doubled(low=-1, high=-1)):
        honest = certified(liar, 3)
        assert honest.ceiling(ROW) == 9
        assert type(honest) is RankMean
    with pytest.raises(ConfigurationError, match="up to 1000"):
        certified(Innocent(), 3)
    assert certified(Innocent() / 1000, 3).to_json() == Column(0).to_json()


@pytest.mark.parametrize(
    "form", [None, object(), {"column": object()}, {"column": -1}, {"column": "0"}, [], "h[0]", {"rounded": 1}, float]
)
def test_what_cannot_be_read_back_is_refused(form: Any) -> None:
    query = Unwritten()
    object.__setattr__(query, "form", form)
    with pytest.raises(ConfigurationError):
        certified(query, 3)


def test_numbers_of_the_caller_do_not_stay() -> None:
    with pytest.raises(ConfigurationError):
        certified(Column(LargeIndex(-1)), 3)
    kept = certified(Column(LargeIndex(2)), 3)
    assert type(kept.index) is int  # type: ignore[attr-defined]


def test_what_changes_after_the_certificate_has_no_say() -> None:
    values: list[Any] = [Column(0), Column(1)]
    query = RankMean(values, 2, 2)  # type: ignore[arg-type]
    assert query.certificate.unit_scale
    asked = {"top": query}
    kept = certified(query, 3)
    mechanism = et.MonotoneQuery(asked, columns=3, guarantee=et.PureDP(1.0), horizon=8, key=ZeroNoise())
    values[:] = [1000 * Column(2)] * 2
    asked["top"] = 1000 * Column(0)  # type: ignore[assignment]
    assert kept.ceiling(ROW) == 9
    assert mechanism._queries.values(ROW).tolist() == [9]


def test_facts_that_were_put_into_a_query_have_no_say() -> None:
    query = 1000 * Column(0)
    innocent = Column(0)
    query.__dict__["_facts"] = innocent._facts
    query.__dict__["certificate"] = innocent.certificate
    with pytest.raises(ConfigurationError, match="up to 1000"):
        certified(query, 3)


class Grown(list[Any]):
    """A list that says it is shorter than it is."""

    def __len__(self) -> int:
        return 1


def test_columns_are_counted_as_they_are_read() -> None:
    assert len(read_columns(Grown(["a", "b", "c"]))) == 3
    top = et.MaxSum(Grown(["a", "b", "c"]), guarantee=et.PureDP(1.0), horizon=8, key=ZeroNoise())
    assert top.sensitivity.l1 == 3
