"""Families of linear queries: cells, queries, what they refuse, and what they write down."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.hostile import liars
from evertally.dynamic.families import (
    Boxes,
    Count,
    HalfSpaces,
    Marginals,
    Points,
    Queries,
    Ranges,
    read_family,
)
from evertally.errors import ConfigurationError

FAMILIES = [
    Count(),
    Points(["a", "b", 7]),
    Points(["a", ""], other="rest"),
    Ranges(size=9),
    Ranges(edges=[-math.inf, 0, 0.5, 18, math.inf]),
    Boxes([3, 4]),
    Boxes([2, [0, 1, 5], 3]),
    Marginals({"ward": ["n", "s"], "age": 3, "sex": ["f", "m"]}, order=2),
    Queries({"z": [1, 0], "a": [0, 1]}, ["y", "x"]),
    Queries({"half": [0.5, 0.25, 1], "third": [1 / 3, 0, 1]}, ["x", "y", "z"]),
    HalfSpaces([(0, 0), (1, 2), (Fraction(1, 3), 5)], declared=[((1, Fraction(1, 3)), 2)]),
    HalfSpaces([(0,), (1,), (2,)]),
]
IDS = [f"{family.kind}-{family.cells}" for family in FAMILIES]


@pytest.mark.parametrize("family", FAMILIES, ids=IDS)
class TestEveryFamily:
    def test_writes_down_what_it_is(self, family):
        text = json.dumps(family.written(), allow_nan=False)
        assert read_family(json.loads(text)) == family
        assert hash(read_family(json.loads(text))) == hash(family)

    def test_keeps_its_order_where_tables_are_sorted(self, family):
        text = json.dumps(family.written(), sort_keys=True)
        assert read_family(json.loads(text)) == family

    def test_queries_lie_between_nothing_and_one(self, family):
        for name, query in family.shown.items():
            vector = family.vector(query)
            assert family.name(query) == name
            assert vector.shape == (family.cells,)
            assert vector.dtype == np.int64
            assert vector.min() >= 0
            assert vector.max() <= family.unit

    def test_a_hostile_value_is_no_error(self, family):
        for value in [*liars(), None, [], {}, [[]], np.zeros((2, 2)), object(), float("nan"), Decimal("1e999999"), "x"]:
            cell = family.cell(value)
            assert cell is None or (type(cell) is int and 0 <= cell < family.cells)

    def test_refuses_what_is_no_query(self, family):
        for query in [object(), "no such name", (5, "two"), (5, 2, 1), ((1, 2, 3, 4, 5, 6), 1), {"no": 1}]:
            with pytest.raises(ConfigurationError):
                family.vector(query)

    def test_says_how_many_queries_there_are(self, family):
        if isinstance(family, HalfSpaces) and not family.declared:
            with pytest.raises(ConfigurationError):
                family.workload()
            return
        workload = family.workload()
        if not isinstance(family, HalfSpaces):
            assert len(workload) == family.queries
        vectors = {family.vector(query).tobytes() for query in workload}
        assert len(vectors) <= family.queries


def test_ranges_by_size_take_whole_numbers_in_any_spelling():
    family = Ranges(size=4)
    assert [family.cell(x) for x in (0, 3, "2", " 1 ", 2.0, True, np.int8(3), Fraction(2), b"1")] == [
        0, 3, 2, 1, 2, 1, 3, 2, 1,
    ]  # fmt: skip
    assert [family.cell(x) for x in (-1, 4, 2.5, "two", None, math.inf, math.nan, 10**400)] == [None] * 8


@given(st.integers(0, 40), st.floats(allow_nan=True, allow_infinity=True))
def test_cells_of_edges_are_half_open(seed, value):
    rng = np.random.default_rng(seed)
    edges = sorted(set(rng.normal(size=6).round(1).tolist()))
    family = Ranges(edges=edges)
    inside = [i for i in range(family.cells) if edges[i] <= value < edges[i + 1]]
    assert family.cell(value) == (inside[0] if inside else None)


def test_a_range_of_edges_is_half_open():
    family = Ranges(edges=[0, 18, 65, math.inf])
    assert family.vector((0, 18)).tolist() == [1, 0, 0]
    assert family.vector((18, "inf")).tolist() == [0, 1, 1]
    for wrong in [(0, 17), (18, 18), (65, 18), (0,)]:
        with pytest.raises(ConfigurationError):
            family.vector(wrong)


@given(st.integers(0, 10**6))
def test_a_box_is_the_product_of_its_ranges(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 6, size=3).tolist()
    family = Boxes(shape)
    query = [sorted(rng.integers(0, n, size=2).tolist()) for n in shape]
    vector = family.vector(query)
    for place in np.ndindex(*shape):
        inside = all(low <= x <= high for x, (low, high) in zip(place, query, strict=True))
        assert vector[family.cell(list(place))] == inside


def test_a_marginal_counts_matching_items():
    family = Marginals({"ward": ["n", "s"], "age": 3, "sex": ["f", "m"]}, order=2)
    items = [["n", 0, "f"], ["s", 2, "m"], ["s", 2, "f"], ["n", 2, "m"]]
    data = np.bincount([family.cell(item) for item in items], minlength=family.cells)
    assert int(family.vector({"ward": "s", "age": 2}) @ data) == 2
    assert int(family.vector({}) @ data) == 4
    assert family.cell({"sex": "m", "ward": "s", "age": "2", "more": 1}) == family.cell(["s", 2, "m"])
    with pytest.raises(ConfigurationError, match="at most 2"):
        family.vector({"ward": "s", "age": 2, "sex": "m"})


def test_values_are_rounded_item_by_item():
    """dynamic-data 14.9: rounding the sum instead would add a grid step to the sensitivity."""
    family = Queries({"third": [1 / 3, 2 / 3, 1]}, range(3))
    assert family.unit == 2**16
    assert family.vector("third").tolist() == [21845, 43691, 65536]
    assert Queries({"half": [0.5, 1]}, range(2)).unit == 2
    assert Queries({"f": [True, False]}, range(2)).unit == 1
    for wrong in ([0.5], [0.5, 1.5], [-0.1, 0], [math.nan, 0], ["x", 1]):
        with pytest.raises(ConfigurationError, match="from 0 to 1"):
            Queries({"wrong": wrong}, range(2))


def test_half_spaces_are_decided_exactly():
    third = Fraction(1, 3)
    family = HalfSpaces([(third, third), (0.1, 0.2), (1, 0)])
    assert family.vector(((1, 1), Fraction(2, 3))).tolist() == [0 + 1, 1, 0]
    # In floats 0.1 + 0.2 > 0.3; the numbers themselves are a little more than 1/10 and 2/10, and 0.3 a little less.
    assert family.vector(((1, 1), 0.3)).tolist() == [0, 0, 0]
    assert family.cell([0.1, 0.2]) == 1
    assert family.cell(["1/3", "1/3"]) == 0
    assert family.vector(((1, 1), "2/3")).tolist() == [1, 1, 0]
    assert family.cell([0.1, 0.3]) is None


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_covers_count_bounds_the_half_spaces(seed):
    rng = np.random.default_rng(seed)
    points = list({tuple(p) for p in rng.integers(0, 4, size=(6, 2)).tolist()})
    family = HalfSpaces(points)
    planes = [(rng.integers(-5, 6, 2).tolist(), Fraction(int(rng.integers(-20, 21)), 2)) for _ in range(300)]
    assert len({family.vector(plane).tobytes() for plane in planes}) <= family.queries


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ranges(size=2**22 + 1),
        lambda: Boxes([2**12, 2**11]),
        lambda: Marginals({f"a{i}": 2 for i in range(23)}, 1),
        lambda: Ranges(),
        lambda: Ranges(size=3, edges=[1, 2]),
        lambda: Ranges(edges=[1, 1]),
        lambda: Ranges(edges="12"),
        lambda: Ranges(edges=[0, Fraction(1, 3)]),
        lambda: Points([]),
        lambda: Points(["a", "a"]),
        lambda: HalfSpaces([(0, 0), (0, 0)]),
        lambda: HalfSpaces([(0, 0), (0,)]),
        lambda: Marginals({}, 0),
        lambda: Marginals({"a": 2}, 2),
        lambda: Queries({}, ["a"]),
        lambda: Queries([["f", [1]], ["f", [1]]], ["a"]),
        lambda: Queries([["f"]], ["a"]),
        lambda: Marginals([["a", 2, 3]], 1),
        lambda: read_family({"kind": "no such"}),
        lambda: read_family({"kind": "ranges", "length": 3}),
        lambda: read_family(["ranges"]),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(ConfigurationError):
        make()
