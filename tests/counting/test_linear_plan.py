"""The plan of a linear mechanism: what it has settled, as public text."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from slice_cases import CASES, Case, whole

import evertally as et
from evertally.counting.bank import BankProcess
from evertally.counting.bank_schedule import build_bank
from evertally.counting.plan import LinearPlan
from evertally.errors import ConfigurationError, StateError


@pytest.mark.parametrize("by_label", [False, True], ids=["columns", "categories"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_plan_is_text_and_back(case: Case, by_label: bool) -> None:
    mechanism = whole(case, 5, et.simulation(1), by_label=by_label)
    plan = mechanism.plan()
    again = LinearPlan.from_json(plan.to_json())
    assert again == plan
    assert again.to_json() == plan.to_json()
    assert (plan.choice, plan.columns, plan.horizon) == (mechanism._choice, 5, case.horizon)
    # the address as it was used: the same noise, under the same name
    noise = plan.process(plan.source(et.simulation(1)), 0, 5)
    assert plan.source(et.simulation(1)).fingerprint().hex() == mechanism.noise_fingerprint
    assert np.array_equal(noise.advance(9), mechanism.noise.advance(9))


def test_options_of_every_sort_are_in_the_plan() -> None:
    one = {"guarantee": et.ZCDP(0.5), "horizon": 90, "key": et.simulation(1)}
    signed = et.VectorCounter(
        columns=["a", "b"], other="rest", signed=True, max_weight=7, radix=3, mechanism="tree", **one
    )
    plan = signed.plan()
    assert (plan.columns, plan.setting.radix, plan.low, plan.limit) == (3, 3, -(2**61 // 90), 2**61 // 90)
    assert plan.setting.change == signed.sensitivity
    users = et.Histogram(categories=["a"], unit="user", max_events_per_user=4, neighbours="replace", **one).plan()
    assert LinearPlan.from_json(users.to_json()) == users
    assert users.setting.loose is not None or users.setting.change.l1 > 1
    assert et.Counter(**one).plan().columns == 1
    money = et.Histogram(categories=["a"], max_weight=5, resolution=0.01, **one)
    assert money.plan().path[2] == "Histogram"


def test_a_plan_does_not_depend_on_ticks_or_restarts() -> None:
    key = et.Key.generate()
    mechanism = et.VectorCounter(columns=3, guarantee=et.ZCDP(0.5), horizon=90, key=key)
    before = mechanism.plan()
    mechanism.run(np.ones((5, 3), dtype=np.int64))
    assert mechanism.plan() == before
    assert et.restore(mechanism.snapshot(), key=key).plan() == before


def test_coefficients_are_those_of_the_plan() -> None:
    """Found by floats: what another machine, or version, has settled is what is drawn by."""
    mechanism = whole(Case("bank", et.ZCDP(0.5)), 3, et.simulation(1))
    plan = mechanism.plan()
    other = replace(plan, settled=build_bank(90, 3).to_bytes())
    noise = other.process(other.source(et.simulation(1)), 0, 3)
    assert isinstance(noise, BankProcess)
    assert (noise.bank.states, mechanism.noise.bank.states) == (3, 4)
    with pytest.raises(StateError, match="memory of a bank"):
        replace(plan, settled=build_bank(64).to_bytes()).process(plan.source(et.simulation(1)), 0, 3)


def test_another_key_is_refused() -> None:
    plan = whole(CASES[0], 3, et.simulation(1)).plan()
    with pytest.raises(StateError, match="not the key of the plan"):
        plan.source(et.simulation(2))
    with pytest.raises(StateError, match="not the key of the plan"):
        replace(plan, path=(*plan.path[:-1], "00" * 32)).source(et.simulation(1))


@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (2, 2), (2, 6), (3, 1)])
def test_a_slice_is_a_range_of_columns(first: int, stop: int) -> None:
    plan = whole(CASES[0], 5, et.simulation(1)).plan()
    with pytest.raises(ConfigurationError, match="range of the columns 0 to 4"):
        plan.process(plan.source(et.simulation(1)), first, stop)


def test_what_is_no_plan_is_refused() -> None:
    text = whole(CASES[0], 5, et.simulation(1)).plan().to_json()
    found = json.loads(text)
    for name in found:
        with pytest.raises(StateError):
            LinearPlan.from_json(json.dumps({other: value for other, value in found.items() if other != name}))
    for wrong in ("", "[]", "7", text[:-9], json.dumps(found | {"settled": "?"}), json.dumps(found | {"bounds": [1]})):
        with pytest.raises(StateError, match="not the plan"):
            LinearPlan.from_json(wrong)
    with pytest.raises(StateError, match="another version"):
        LinearPlan.from_json(json.dumps(found | {"format": "evertally-plan-2"}))


def test_what_is_not_cut_by_columns_has_no_plan() -> None:
    one = {"guarantee": et.PureDP(1.0), "horizon": 90, "key": et.simulation(1)}
    decayed = et.VectorCounter(columns=3, workload=et.workloads.Window(7), **one)
    sparse = et.Histogram(categories=["a", "b"], mechanism="sparse", largest=100, **one)
    for mechanism in (decayed, sparse):
        with pytest.raises(ConfigurationError, match="only running totals"):
            mechanism.plan()
