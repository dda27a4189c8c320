"""What a step of the neighbouring relation costs the interval tree, through the real door: every short stream, random
longer ones, every record or every name taken away, over all restarts. dynamic-data 6.3, 6.6, 14.2."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from interval_costs import Prices, cost_of, differences
from interval_runs import Update
from small_static import SmallHistogram

from evertally.dynamic.charges import Relation
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.parts import Setting
from evertally.dynamic.prefix import amount
from evertally.dynamic.presence import presence_of
from evertally.encode.updates import Arrivals
from evertally.noise import simulation
from evertally.privacy import ZCDP, Contribution, PureDP

CELLS = 2
Record = tuple[int, int, str | None] | None  # sign, cell, name; at most one a tick
BY_NAME: list[Record] = [None, *((1, c, n) for c in (0, 1) for n in "ab"), *((-1, -1, n) for n in "ab")]
BY_VALUE: list[Record] = [None, *((sign, cell, None) for sign in (1, -1) for cell in (0, 1))]


def admitted(records: tuple[Record, ...], relation: Relation) -> list[list[Update]]:
    """What the door lets through."""
    presence = presence_of(
        "id" if relation.identity == "token" else relation.identity,  # a token is a name that is inserted once
        simulation(1).source("door"),
        protects=relation.protects,
        lifetimes=relation.lifetimes,
        longest=relation.max_lifetime,
    )
    presence.begin(0)
    stream = []
    for record in records:
        kept = [] if record is None else [record]
        updates = presence.admit(
            Arrivals(
                np.array([cell for _, cell, _ in kept], dtype=np.int64),
                np.array([sign for sign, _, _ in kept], dtype=np.int64),
                [name for _, _, name in kept],
            )
        )
        named = relation.identity != "value"
        items = updates.items.tolist() if named else [-1] * len(updates)
        stream.append(list(zip(updates.signs.tolist(), updates.cells.tolist(), items, strict=True)))
    return stream


def neighbours(records: tuple[Record, ...], relation: Relation) -> Iterator[tuple[Record, ...]]:
    """Without one record; or without one name."""
    for t, record in enumerate(records):
        if record is None:
            continue
        if relation.protects == "event":
            yield (*records[:t], None, *records[t + 1 :])
        else:
            yield tuple(None if other is not None and other[2] == record[2] else other for other in records)


def streams(relation: Relation, rng: random.Random) -> Iterator[tuple[Record, ...]]:
    records = BY_VALUE if relation.identity == "value" else BY_NAME
    once = relation.identity == "token"
    for stream in product(records, repeat=4):
        names = [record[2] for record in stream if record is not None and record[0] > 0]
        if not once or len(set(names)) == len(names):
            yield stream
    for _ in range(150):
        stream = tuple(rng.choices(records, k=rng.randrange(5, 20)))
        if once:
            stream = tuple(
                record if record is None or record[0] < 0 or record not in stream[:t] else None
                for t, record in enumerate(stream)
            )
            names = [record[2] for record in stream if record is not None and record[0] > 0]
            if len(set(names)) != len(names):
                continue
        yield stream


@pytest.mark.parametrize(
    "relation",
    [
        Relation("token", "item"),
        Relation("token", "event"),
        Relation("token", "event", max_lifetime=3),
        Relation("id", "item"),
        Relation("id", "event"),
        Relation("id", "item", lifetimes=2),
        Relation("id", "event", max_lifetime=3),
        Relation("value", "event"),
    ],
    ids=lambda r: f"{r.identity}-{r.protects}-{r.lifetimes}-{r.max_lifetime}",
)
def test_no_step_costs_more_than_promised(relation: Relation) -> None:
    def planned(guarantee: Any, **more: Any) -> Any:
        setting = Setting(
            SmallHistogram(CELLS),
            guarantee,
            None,
            relation.identity,
            relation.protects,
            relation.steps,
            max_lifetime=relation.max_lifetime,
            **more,
        )
        plan = CONSTRUCTIONS["interval-tree"].plan(setting, Contribution())
        return plan.worker(simulation(1).source("tree"))

    pure, rho = (float(amount(planned(g)._shop.budget)) for g in (PureDP(1), ZCDP(1)))
    prices = Prices.like(planned(PureDP(1))._shop.allocation)
    of_partition = planned(PureDP(1), partition="infinite")._partition._test.epsilon
    rng = random.Random(str(relation))
    worst, named, seen = 0.0, relation.identity != "value", set()
    for stream in streams(relation, rng):
        ours = admitted(stream, relation)
        for other in neighbours(stream, relation):
            theirs = admitted(other, relation)
            cells = [[[u[:2] for u in tick] for tick in updates] for updates in (ours, theirs)]
            if str(cells) in seen:
                continue
            seen.add(str(cells))
            counts = sum(abs(len(a) - len(b)) for a, b in zip(ours, theirs, strict=True))
            assert counts * of_partition <= 0.5  # its half of the promise
            found = differences(ours, theirs, named)
            spent = pure * cost_of(found, prices)
            assert spent <= 1 + 1e-12
            assert rho * cost_of(found, prices, power=2) <= 1 + 1e-12
            worst = max(worst, spent)
    assert worst > 0.55  # the enumeration is not blind
