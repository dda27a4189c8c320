"""The interval tree around the library's static mechanisms, and behind the public classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.families import Boxes, Count, Marginals, Points, Ranges
from evertally.dynamic.parts import Setting, Updates
from evertally.dynamic.static import make_static
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP, ApproxDP, Contribution, PureDP

LENGTH = 20
ASKED = [
    (Count(), "histogram", "count"),
    (Points(["a", "b", "c"]), "histogram", "b"),
    (Ranges(size=9), "hierarchy", (2, 7)),
    (Ranges(size=9), "square-root", (0, 4)),
    (Boxes([4, 3]), "hierarchy", [(1, 3), (0, 1)]),
    (Marginals({"ward": ["north", "south"], "age": 3}, 1), "marginals", {"age": 1}),
]


def plan(static: Any, guarantee: Any, **given: Any) -> Any:
    public: dict[str, Any] = {"horizon": LENGTH, "identity": "value", "protects": "event", "steps": 1} | given
    return CONSTRUCTIONS["interval-tree"].plan(Setting(static, guarantee, **public), Contribution())


def ticks_of(cells: int, seed: int = 1) -> tuple[list[Updates], Any]:
    """Updates by value, and what is present after them."""
    rng, present, out = np.random.default_rng(seed), np.zeros(cells, dtype=np.int64), []
    for _ in range(LENGTH):
        pairs = []
        for cell in rng.integers(0, cells, rng.poisson(6)).tolist():
            sign = -1 if rng.random() < 0.4 else 1
            present[cell] = max(0, present[cell] + sign)
            pairs.append((cell, sign))
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        out.append(Updates(table[:, 0], table[:, 1], np.full(len(table), -1)))
    return out, present


@pytest.mark.parametrize(("family", "name", "query"), ASKED)
def test_without_noise_answers_are_exact(family: Any, name: str, query: Any) -> None:
    for guarantee in (PureDP(1), ZCDP(1)):
        pure = isinstance(guarantee, PureDP)
        if name == "square-root" and pure:
            continue
        static = make_static(name, family, pure=pure, options={})
        made = plan(static, guarantee).worker(ZeroNoise().source("w"))
        batch, present = ticks_of(family.cells)
        rows, _ = made.advance(batch)
        answer = float(static.weights(query) @ rows[-1]) / static.unit
        assert answer == pytest.approx(float(family.vector(query) @ present) / family.unit)
        assert made.accuracy(LENGTH).of(query).stddev > 0


@pytest.mark.parametrize("guarantee", [PureDP(8), ApproxDP(8, 1e-6)])
@pytest.mark.parametrize("given_", [{}, {"options": (("max_segments", 31),)}, {"partition": "infinite"}])
def test_multiplicative_weights(guarantee: Any, given_: dict[str, Any]) -> None:
    """Synthetic data of many nodes add up on one grid, each lane has one law (the source refuses a second one), and a
    restore in the middle gives the same bytes."""
    family = Ranges(size=8)
    static = make_static("multiplicative-weights", family, pure=isinstance(guarantee, PureDP), options={})
    made = plan(static, guarantee, max_items=200, **given_)
    batch, _ = ticks_of(family.cells)
    whole = made.worker(simulation(1).source("w"))
    rows, lasts = whole.advance(batch)
    rows = np.repeat(rows, lasts, axis=0)
    first, second = (made.worker(simulation(1).source("w")) for _ in range(2))
    first.advance(batch[:9])
    second.load(9, first.state())
    later, stands = second.advance(batch[9:])
    assert np.array_equal(np.repeat(later, stands, axis=0), rows[9:])
    assert second.state() == whole.state()
    assert whole.accuracy(LENGTH).of((2, 5)).radius(0.05) > 0


def test_behind_a_public_class() -> None:
    """Ids, tokens and values; a snapshot in the middle goes on bit for bit."""
    for identity, protects in (("id", "item"), ("value", "event")):
        for partition in ("identity", "infinite"):
            key = et.simulation(7)
            wards = et.DynamicHistogram(
                categories=["north", "south"],
                guarantee=et.ApproxDP(1.0, 1e-6),
                horizon=64,
                mechanism="interval-tree",
                identity=identity,
                protects=protects,
                partition=partition,
                construction={"allocation": "AT", "max_rounds": 4},
                key=key,
            )
            records = [
                [("insert", "north", f"{t}"), ("delete", "north", f"{t - 2}")]
                if identity == "id"
                else [("insert", "north"), ("delete", "south")]
                for t in range(40)
            ]
            for tick in records[:20]:
                wards.step(tick)
            blob = wards.snapshot()
            before = [wards.step(tick).value for tick in records[20:]]
            again = et.restore(blob, key=key, allow_copy=True)
            assert [again.step(tick).value for tick in records[20:]] == before
            assert wards.mechanism == "interval-tree"
