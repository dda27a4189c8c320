"""Coefficients of a bank are settled when a stream begins: every engine goes on with them, restored by a version that
would build others, and after a call that was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.counting import bank
from evertally.counting.bank_schedule import build_bank

COMMON: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 16, "mechanism": "bank"}
LETTERS: dict[str, Any] = {"alphabet": "ab", "longest": 2, "sequence": "stream"}
MADE: dict[str, tuple[Callable[..., Any], Any]] = {
    "linear": (lambda **o: et.VectorCounter(3, **COMMON, **o), [1, 2, 3]),
    "joint": (lambda **o: et.MaxSum(3, **COMMON, **o), [1, 2, 3]),
    "average": (lambda **o: et.Counter(workload=et.workloads.Average("1/100"), **COMMON, **o), 5),
    "weights": (lambda **o: et.Counter(workload=et.workloads.Weights(tuple(range(16))), **COMMON, **o), 5),
    "window": (lambda **o: et.Counter(workload=et.workloads.Window(2), **COMMON, **o), 5),
    "encoded": (lambda **o: et.graph.EdgeCount(**COMMON, **o), [("a", "b")]),
    "on demand": (lambda **o: et.strings.SubstringCounts(**LETTERS, **COMMON, **o), ["a", "b"]),
    "stacked": (lambda **o: et.Stacked({"one": et.part(et.graph.EdgeCount)}, **COMMON, **o), [("a", "b")]),
    "dynamic": (
        lambda **o: et.DynamicCount(guarantee=et.ZCDP(0.5), horizon=16, process="bank", **o),
        [("insert", "a")],
    ),
}


def value(mechanism: Any, x: Any) -> Any:
    shown = mechanism.step(x).value
    return shown.tolist() if isinstance(shown, np.ndarray) else shown


@pytest.mark.parametrize("name", MADE)
def test_restored_or_interrupted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, x = MADE[name]
    begun, calm = (make(key=et.simulation(4)) for _ in range(2))
    for _ in range(3):
        assert value(begun, x) == value(calm, x)
    snapshot = begun.snapshot()
    monkeypatch.setattr(bank, "build_bank", lambda horizon: build_bank(horizon, 2))
    again = et.restore(snapshot, key=et.simulation(4))
    expected = [value(calm, x) for _ in range(3)]
    assert value(again, x) == expected[0]
    again._engine.begin(again.tick)
    again._engine.go_back(again.tick, again._kept.played.state)
    assert [value(again, x) for _ in range(2)] == expected[1:]
    fresh = make(key=et.simulation(4))
    assert [value(fresh, x) for _ in range(6)][3:] != expected, "another version would draw other noise"


@pytest.mark.parametrize("mechanism", ["bank", "tree", "sqrt", "honaker"])
def test_whoever_moves_the_process_does_not_move_the_noise_of_a_tick(mechanism: str) -> None:
    """The process is public (its laws, its spreads): left at another tick, it must not be drawn from there again."""

    def counter() -> Any:
        return et.Counter(
            guarantee=et.ZCDP(0.5), horizon=40, mechanism=mechanism, key=et.simulation(7), allow_copy=True
        )

    undisturbed = [counter().run([3, 1, 4, 1, 5])[-1]]
    moved = counter()
    moved.run([3, 1, 4])
    moved.noise.seek(0)
    moved.step(1)
    moved.noise.advance(2)
    assert [moved.step(5).value] == undisturbed
