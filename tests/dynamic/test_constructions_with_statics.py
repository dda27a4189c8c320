"""Constructions around the static mechanisms of the library: hierarchies, tables, multiplicative weights."""

from __future__ import annotations

import numpy as np
import pytest

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
WAYS = [
    ("tree", {}),
    ("doubling", {"horizon": None}),
    ("subtract", {}),
    ("anew", {"every": 1}),
    ("anew", {"every": 1, "max_lifetime": 5, "horizon": None, "identity": "token", "protects": "item"}),
]


def plan(name, static, guarantee, **given):
    public = {"horizon": LENGTH, "identity": "raw", "protects": "event", "steps": 1} | given
    return CONSTRUCTIONS[name].plan(Setting(static, guarantee, **public), Contribution())


def ticks_of(cells, seed=1, deletions=True):
    """Deletions of what is there only, so that what is present is a multiset."""
    rng, present, out = np.random.default_rng(seed), np.zeros(cells, dtype=np.int64), []
    for _ in range(LENGTH):
        pairs = []
        for cell in rng.integers(0, cells, rng.poisson(6)).tolist():
            sign = -1 if deletions and present[cell] and rng.random() < 0.4 else 1
            present[cell] += sign
            pairs.append((cell, sign))
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        out.append(Updates(table[:, 0], table[:, 1], np.full(len(table), -1)))
    return out, present


@pytest.mark.parametrize(("family", "name", "query"), ASKED)
@pytest.mark.parametrize(("construction", "given_"), WAYS)
def test_without_noise_answers_are_exact(family, name, query, construction, given_):
    for guarantee in (PureDP(1), ZCDP(1)):
        if name == "square-root" and isinstance(guarantee, PureDP):
            continue
        static = make_static(name, family, pure=isinstance(guarantee, PureDP), options={})
        made = plan(construction, static, guarantee, **given_).worker(ZeroNoise().source("w"))
        batch, present = ticks_of(family.cells)
        values, _ = made.advance(batch)
        answer = float(static.weights(query) @ values[-1]) / static.unit
        assert answer == pytest.approx(float(family.vector(query) @ present) / family.unit)
        assert made.accuracy(LENGTH).of(query).stddev > 0


@pytest.mark.parametrize(
    ("construction", "given_", "deletions"),
    [
        ("tree", {"deletions": False}, False),
        ("doubling", {"deletions": False, "partition": "infinite", "horizon": None}, False),
        ("subtract", {}, True),
        ("anew", {"every": 4, "identity": "value"}, True),
        ("anew", {"every": None, "horizon": None, "identity": "id", "protects": "item"}, True),
    ],
)
@pytest.mark.parametrize("guarantee", [PureDP(8), ApproxDP(8, 1e-6)])
def test_multiplicative_weights_in_every_construction(construction, given_, deletions, guarantee):
    """Synthetic data of many releases add up on one grid; a restore in the middle gives the same bytes; each lane has
    one law (the source refuses a second one)."""
    static = make_static("multiplicative-weights", Ranges(size=6), pure=True, options={"max_rounds": 8})

    def make():
        made = plan(construction, static, guarantee, max_items=200, **given_)
        return made.worker(simulation(4).source("weights"))

    batch, present = ticks_of(6, deletions=deletions)
    whole = make()
    rows = np.repeat(*whole.advance(batch), axis=0)
    first, second = make(), make()
    begun = np.repeat(*first.advance(batch[:9]), axis=0)
    second.load(9, first.state())
    assert np.array_equal(rows, np.concatenate([begun, np.repeat(*second.advance(batch[9:]), axis=0)]))
    total = float(static.weights((0, 5)) @ rows[-1]) / static.unit
    assert abs(total - present.sum()) <= whole.accuracy(LENGTH).radius(0.01)
    assert whole.accuracy(LENGTH).of((0, 5)).stddev is None
