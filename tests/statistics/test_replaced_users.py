"""What a replaced user is charged, by what is proved of the noise (users-and-domains 1.2)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.adversaries import worst_pair
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.linear import LinearEngine
from evertally.counting.toeplitz_factor import root_factor
from evertally.privacy import Change

W = 2
REPLACED: dict[str, Any] = {"unit": "user", "max_events_per_user": W, "neighbours": "replace", "key": et.simulation(1)}
DECAY, WINDOW = et.workloads.Decay("0.9"), et.workloads.Window(3)


def charged(kind: Any = et.Counter, **options: Any) -> Any:
    return kind(**{"guarantee": et.ZCDP(0.5), "horizon": 12} | REPLACED | options).sensitivity


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, 2),
        ({"mechanism": "tree"}, 2),
        ({"horizon": None}, 2),
        ({"signed": True}, 4),
        ({"workload": WINDOW, "mechanism": "root"}, 4),  # its coefficients change their sign
        ({"workload": WINDOW, "mechanism": "sqrt"}, 2),
        ({"workload": WINDOW, "mechanism": "input"}, 2),
        ({"workload": DECAY, "mechanism": "root"}, 2),
        ({"workload": DECAY, "mechanism": "bank"}, 4),  # S2 alone is proved
        ({"workload": et.workloads.Weights(beta=[1] * 12)}, 2),
    ],
    ids=str,
)
def test_by_what_is_proved_of_the_noise(options, times):
    assert charged(**options).l2_squared == times * W * W


def test_noise_of_somebody_else_gets_four_times():
    def pile(charge, setting, source):
        make = AccumulatingProcess
        return make(charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source)

    et.register_process("pile for replaced users", pile, proof="nowhere", pure=True)
    et.register_engine(
        "engine for replaced users",
        lambda guarantee, setting, source: LinearEngine(lambda: pile(guarantee, setting, source)),
        proof="nowhere",
    )
    for name in ("pile for replaced users", "engine for replaced users"):
        assert charged(mechanism=name, guarantee=et.PureDP(1.0)) == Change(2 * W, 4 * W * W, 2 * W)
    assert charged(et.MaxSum, columns=3, max_per_event=1, mechanism="pile for replaced users").l2_squared == 2 * W * W


def test_the_root_of_a_window_by_enumeration():
    """Its Gram matrix has negative entries: twice is passed by some pair, four times by none."""
    T = 9
    r = root_factor(et.workloads.Window(2), T).r.astype(object)
    R = np.array([[r[t - s] if t >= s else 0 for s in range(T)] for t in range(T)], dtype=object)
    G, top = R.T @ R, sum(int(x) ** 2 for x in r)
    assert (G < 0).any()
    cells = [np.eye(1, T, s, dtype=object)[0] for s in range(T)]
    users = [x + y for x, y in itertools.combinations_with_replacement([0 * cells[0], *cells], W)]
    worst = max((x - y) @ G @ (x - y) for x in users for y in users)
    assert 2 * W * W * top < worst <= 4 * W * W * top


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (et.Histogram, {"categories": ["a", "b", "c"]}),
        (et.Histogram, {"categories": ["a", "b", "c", "d", "e"], "max_per_event": 2}),
        (et.VectorCounter, {"columns": 3, "signed": True}),
        (et.RunningMean, {"lower": 0, "upper": 10}),
        (et.MaxSum, {"columns": 4, "max_per_event": 2, "mechanism": "tree"}),
    ],
    ids=str,
)
def test_the_worst_pair_of_the_auditor_reaches_the_charge(kind, options):
    model = kind(**{"guarantee": et.ZCDP(0.5), "horizon": 12} | REPLACED | options)
    left, right = worst_pair(model)
    assert int(((left - right) ** 2).sum()) == model.sensitivity.l2_squared
