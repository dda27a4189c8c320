"""The plan of a mechanism over unknown items: what it has settled, as public text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from shard_cases import CASES, HORIZON, stepped, stream, whole

import evertally as et
from evertally.errors import ConfigurationError, StateError
from evertally.noise import item_addresses
from evertally.selection.item_plan import ItemPlan


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_text_and_back(case: str) -> None:
    key = et.simulation(1)
    mechanism = whole(case, key)
    plan = mechanism.item_plan()
    again = ItemPlan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()
    assert (plan.horizon, plan.most, plan.sticky) == (HORIZON, CASES[case].get("k"), CASES[case].get("sticky", False))
    assert plan.limit == 2**61 // HORIZON
    assert [plan.threshold.at(t) for t in (1, 7)] == [mechanism.threshold_at(t) for t in (1, 7)]
    # the address as it was used: the same noise, under the same name
    source, own = plan.source(key), mechanism._worker().tree
    assert source.fingerprint().hex() == mechanism.noise_fingerprint
    addresses = item_addresses(source, ["pear", "fig"])
    made = again.engine(source).tree
    assert all(np.array_equal(made.advance(addresses), own.advance(addresses)) for _ in range(9))


def test_a_plan_does_not_depend_on_ticks_or_restarts() -> None:
    key = et.Key.generate()
    mechanism = whole("sticky", key)
    before = mechanism.item_plan()
    stepped(mechanism, stream(1), ticks=5)
    assert mechanism.item_plan() == before
    assert et.restore(mechanism.snapshot(), key=key).item_plan() == before


def test_users_of_items_have_a_plan() -> None:
    options: dict[str, Any] = {"guarantee": et.ApproxDP(1.0, 1e-6), "horizon": 90, "key": et.simulation(1)}
    pages = et.UnknownDistinctUsers(max_categories=3, sticky=True, **options)
    plan = pages.item_plan()
    assert (plan.path[2], plan.sticky, plan.most) == ("UnknownDistinctUsers", True, None)
    assert plan.threshold.at(5) == pages.threshold_at(5)


def test_another_key_is_refused() -> None:
    plan = whole("sum", et.simulation(1)).item_plan()
    with pytest.raises(StateError, match="not the key of the plan"):
        plan.source(et.simulation(2))


def test_where_one_label_decides_about_another_there_is_no_plan() -> None:
    options: dict[str, Any] = {"guarantee": et.ApproxDP(1.0, 1e-6), "horizon": 90, "key": et.simulation(1)}
    limited = et.UnknownHistogram(max_labels=10**6, **options)
    users = et.UnknownDistinctUsers(max_labels=10**6, **options)
    blocks = et.UnknownHistogram(mechanism="meta", **options)
    for mechanism in (limited, users, blocks, et.UnknownTopK(3, mechanism="meta", **options)):
        with pytest.raises(ConfigurationError, match="none decides about another"):
            mechanism.item_plan()


def test_what_is_no_plan_is_refused() -> None:
    text = whole("top 3", et.simulation(1)).item_plan().to_json()
    found = json.loads(text)
    for name in found:
        with pytest.raises(StateError):
            ItemPlan.from_json(json.dumps({other: value for other, value in found.items() if other != name}))
    changes: list[dict[str, object]] = [
        {"variance": "1/0"},
        {"variance": "-3"},
        {"threshold": ["other", "1/9", 1]},
        {"threshold": ["sum", "2", 1]},
        {"tree": [2, 3]},
        {"tree": [1, 3, 9]},
        {"tree": ["2", 3, 9]},
        {"sticky": 1},
        {"most": 0},
        {"limit": 2**62},
        {"noise": None},
        {"path": 7},
    ]
    for wrong in ("", "[]", "7", text[:-9], *(json.dumps(found | change) for change in changes)):
        with pytest.raises(StateError, match="not the plan"):
            ItemPlan.from_json(wrong)
    with pytest.raises(StateError, match="another version"):
        ItemPlan.from_json(json.dumps(found | {"format": "evertally-item-plan-2"}))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("threshold", 2, 0),  # a label that nobody may add would have no threshold
        ("tree", 0, 1),
        ("tree", 1, 0),
        ("tree", 1, 65),
        ("tree", 2, 1),
        ("most", None, 0),
        ("limit", None, 0),
        ("limit", None, 2**61 + 1),
    ],
)
def test_numbers_that_no_mechanism_has_are_refused(name: str, place: int | None, value: int) -> None:
    written = json.loads(whole("sum", et.simulation(1)).item_plan().to_json())
    if place is None:
        written[name] = value
    else:
        written[name][place] = value
    with pytest.raises((StateError, ConfigurationError)):
        ItemPlan.from_json(json.dumps(written))
