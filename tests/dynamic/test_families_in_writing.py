"""Families that were written down and read again, by whoever keeps tables in another order."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

import evertally as et
from evertally.dynamic.families import HalfSpaces, Marginals, Queries, read_family
from evertally.noise import ZeroNoise

ORDERED: list[tuple[Any, Any]] = [
    (Marginals({"ward": ["north", "south"], "age": 3}, order=1), ["north", 2]),
    (Queries({"warm": [1, 0.5, 0], "cold": [0, 0, 1]}, ["red", "green", "blue"]), "green"),
]


@pytest.mark.parametrize(("family", "value"), ORDERED, ids=lambda one: type(one).__name__)
def test_a_restored_statistic_means_what_it_meant(family: Any, value: Any) -> None:
    """A snapshot sorts tables by name. The order of attributes numbers the cells, that of queries the answers."""
    assert read_family(json.loads(json.dumps(family.written(), sort_keys=True))) == family
    key = ZeroNoise()
    before = et.LinearQueries(family, guarantee=et.ZCDP(0.5), horizon=9, key=key)
    shown = before.step([("insert", value, "a"), ("insert", value, "b")]).value
    after = et.restore(before.snapshot(), key=key, allow_copy=True)
    assert after.family == family
    again = after.step([]).value
    assert list(again) == list(shown)
    assert again == pytest.approx(shown)
    assert after.step([("delete", None, "a")]).value == pytest.approx({name: n / 2 for name, n in shown.items()})


def test_points_are_the_same_in_every_file() -> None:
    family = HalfSpaces([(0, 0.1), (1, "1/3")], declared=[((1, 1), Fraction(1, 3))])
    assert [family.cell(point) for point in ([0, 0.1], ["0", "0.1"], (1, "1/3"), ["1", "x"], ["", "0.1"])] == [
        0,
        0,
        1,
        None,
        None,
    ]
    assert read_family(json.loads(json.dumps(family.written()))) == family
