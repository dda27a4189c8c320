"""The table of dynamic-data 13.1 by enumeration: no small stream loses more than is charged, and the bounds are met
where the table says so."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from dynamic.charge_games import T, by_name, by_value, worst_losses
from evertally.counting.path_factor import best_factor
from evertally.counting.processes import Gram
from evertally.dynamic.charges import Encoder, Relation
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Neighbours

TIGHT = 1 - 2**-30
# encoders: the cells themselves, two columns that overlap, one with signs
PLAIN = (np.eye(2, dtype=np.int64), Encoder())
OVERLAPPING = (np.array([[1, 1], [0, 1]]), Encoder(2, 2, 1))
SIGNED = (np.array([[1], [-1]]), Encoder(1, 1, 1, positive=False))
ENCODERS = {"plain": PLAIN, "overlapping": OVERLAPPING, "signed": SIGNED}


def check(differences: Any, relation: Relation, norms: Encoder, *, tight: bool = False) -> None:
    """Never passed; with `tight`, met by one of the processes of which all is proved."""
    unique = np.unique(np.asarray(differences), axis=0)
    change, split = relation.change(norms), relation.change(norms, Gram.NONNEGATIVE)
    assert np.abs(unique).sum(axis=(1, 2)).max() <= change.l1 <= split.l1
    assert np.abs(unique).max() <= change.linf <= split.linf
    assert change.l2_squared <= split.l2_squared <= relation.change(norms, Gram.UNKNOWN).l2_squared
    losses = worst_losses(unique, change, split)
    for name, loss in losses.items():
        assert loss <= 1, f"{name}: a neighbour loses {float(loss):.3f} of what is charged"
    if tight:
        assert max(losses.values()) >= TIGHT, f"the bound is never met: {float(max(losses.values())):.3f}"


def item_rows() -> list[np.ndarray]:
    """Every way in which an item whose name is never used again can appear: when, where, up to 3 deletes."""
    found = []
    for cell, start in product(range(2), range(T)):
        for count in range(4):
            for deletes in combinations(range(T), count):
                ticks: list[list[Any]] = [[] for _ in range(T)]
                for t in deletes:
                    ticks[t].append((-1, -1, "x"))
                ticks[start].insert(0, (cell, 1, "x"))
                found.append(by_name(ticks))
    return found


ITEMS = np.unique(np.array(item_rows()), axis=0)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_tokens(encoder: str) -> None:
    matrix, norms = ENCODERS[encoder]
    item = ITEMS @ matrix
    check(item, Relation("token", "item"), norms, tight=encoder == "plain")
    assert Relation("token", "event").change(norms) == Relation("token", "item").change(norms)


def test_a_missing_event_of_a_token_costs_no_more_than_the_item() -> None:
    differences = []
    for start in range(T):
        for deletes in (d for n in range(1, 4) for d in combinations(range(T), n)):
            whole: list[list[Any]] = [[(-1, -1, "x")] if t in deletes else [] for t in range(T)]
            whole[start].insert(0, (0, 1, "x"))
            for t in deletes:
                less = [list(records) for records in whole]
                less[t].remove((-1, -1, "x"))
                differences.append(by_name(whole) - by_name(less))
    check(differences, Relation("token", "event"), Encoder(), tight=True)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_tokens_replaced(encoder: str) -> None:
    matrix, norms = ENCODERS[encoder]
    short = ITEMS[:: 1 if encoder == "plain" else 3] @ matrix
    differences = (short[:, None] - short[None, :]).reshape(-1, *short.shape[1:])
    item = Relation("token", "item", Neighbours.REPLACE)
    check(differences, item, norms, tight=encoder == "plain")  # 6 is met by the epoch tree
    event = Relation("token", "event", Neighbours.REPLACE).change(norms)
    assert event.l2_squared >= item.change(norms).l2_squared


# one action a tick: nothing, insertion into either cell, deletion
ACTIONS: tuple[tuple[Any, ...], ...] = ((), ((0, 1, "x"),), ((1, 1, "x"),), ((-1, -1, "x"),))


def named_streams(lifetimes: int) -> dict[tuple[int, ...], np.ndarray]:
    return {
        stream: by_name([ACTIONS[a] for a in stream], lifetimes)
        for stream in product(range(len(ACTIONS)), repeat=T - 1)
    }


@pytest.mark.parametrize("lifetimes", [1, 2, 3])
def test_names_from_outside(lifetimes: int) -> None:
    streams = named_streams(lifetimes)
    item = np.array(list(streams.values()))
    events = [
        table - streams[(*stream[:t], 0, *stream[t + 1 :])]
        for stream, table in streams.items()
        for t in range(T - 1)
        if stream[t]
    ]
    for matrix, norms in (PLAIN, OVERLAPPING, SIGNED):
        check(item @ matrix, Relation("id", "item", lifetimes=lifetimes), norms)
        check(np.array(events) @ matrix, Relation("id", "event", lifetimes=lifetimes), norms)


def test_an_event_of_a_name_from_outside_may_cost_more_than_an_item() -> None:
    """Without its first insertion the name begins another life, in another cell: two lifetimes change (6.3)."""
    ticks: list[list[Any]] = [[] for _ in range(T)]
    ticks[0], ticks[1] = [(0, 1, "x")], [(-1, -1, "x")]
    ticks[3], ticks[4] = [(1, 1, "x")], [(-1, -1, "x")]
    less = [list(records) for records in ticks]
    less[0] = []
    difference = by_name(ticks) - by_name(less)
    losses = worst_losses(difference[None], Relation("id", "item").change(Encoder()))
    assert max(losses.values()) > 1


def value_streams() -> dict[tuple[int, ...], np.ndarray]:
    return {
        stream: by_value([[(0, sign, None)] if sign else [] for sign in stream])
        for stream in product((0, 1, -1), repeat=T)
    }


def without(stream: tuple[int, ...], *places: int) -> tuple[int, ...]:
    return tuple(0 if t in places else sign for t, sign in enumerate(stream))


def test_values_floored_at_zero() -> None:
    streams = value_streams()
    one = [table - streams[without(stream, t)] for stream, table in streams.items() for t in range(T) if stream[t]]
    check(one, Relation("value", "event"), Encoder(), tight=True)
    two = [
        table - streams[without(stream, a, b)]
        for stream, table in streams.items()
        for a, b in product(range(T), repeat=2)
        if stream[a] == 1 and stream[b] == -1
    ]
    item = Relation("value", "item", unique_deletions=True)
    check(two, item, Encoder())


def entry(t: int, cell: int, sign: int) -> np.ndarray:
    table = np.zeros((T, 2), dtype=np.int64)
    table[t, cell] = sign
    return table


ENTRIES = [entry(t, cell, sign) for t in range(T) for cell in range(2) for sign in (1, -1)]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_raw(encoder: str) -> None:
    matrix, norms = ENCODERS[encoder]
    check(np.array(ENTRIES) @ matrix, Relation("raw", "event"), norms, tight=encoder == "plain")
    replaced = np.array([a - b for a, b in product(ENTRIES, repeat=2)])
    check(replaced @ matrix, Relation("raw", "event", Neighbours.REPLACE), norms, tight=True)
    pairs = np.array([a + b for a, b in product(ENTRIES, repeat=2) if a.sum() == 1 and b.sum() == -1])
    item = Relation("raw", "item", unique_deletions=True)
    check(pairs @ matrix, item, norms, tight=encoder != "overlapping")
    swapped = np.unique(pairs, axis=0)[::3]
    differences = (swapped[:, None] - swapped[None, :]).reshape(-1, T, 2)
    replaced_item = Relation("raw", "item", Neighbours.REPLACE, unique_deletions=True)
    check(differences @ matrix, replaced_item, norms)


def test_insertions_alone() -> None:
    inserted = np.array([e for e in ENTRIES if e.sum() == 1])
    moved = (inserted[:, None] - inserted[None, :]).reshape(-1, T, 2)
    for matrix, norms in (PLAIN, OVERLAPPING, SIGNED):
        for identity in ("raw", "token", "value", "id"):
            check(inserted @ matrix, Relation(identity, "item", deletions=False), norms)
        check(moved @ matrix, Relation("id", "event", deletions=False), norms)
        check(moved @ matrix, Relation("token", "item", Neighbours.REPLACE, deletions=False), norms)


@pytest.mark.parametrize(
    ("differences", "wrong"),
    [
        (ITEMS, Change(1, 1, 1)),  # an item is more than an event of a counter
        (ITEMS, Change(2, 1, 1)),
        ([a - b for a, b in product(ITEMS[::2], repeat=2)], Change(4, 5, 2)),  # a replaced item is more than 5
    ],
    ids=["item as event", "item without its end", "replaced item at 5"],
)
def test_smaller_charges_are_noticed(differences: Any, wrong: Change) -> None:
    assert max(worst_losses(np.unique(np.array(differences), axis=0), wrong).values()) > 1


def test_banks_and_blocks_lose_what_one_event_is_charged_and_more_where_too_little_is() -> None:
    inserted = np.array([one for one in ENTRIES if one.sum() == 1])
    assert [name for name, loss in worst_losses(inserted, Change(1, 1, 1)).items() if loss >= TIGHT][:2] == [
        "bank, ZCDP(rho=1/3)",
        "pure-blocks, PureDP(epsilon=0.7)",
    ]
    for wrong in (Change(1, 1, 1), Change(1, 2, 1)):
        losses = worst_losses(ITEMS, wrong)
        assert losses["pure-blocks, PureDP(epsilon=0.7)"] > 1
        assert (losses["bank, ZCDP(rho=1/3)"] > 1) == (wrong.l2_squared == 1)


def test_users_are_a_group_of_events_and_foreign_processes_add_up() -> None:
    assert Relation("token", "event", max_events_per_user=3).change(Encoder(2, 2, 1)) == Change(12, 36, 3)
    assert Relation("token", "item").change(Encoder(), Gram.UNKNOWN) == Change(2, 4, 2)
    assert Relation("id", "item", lifetimes=2).change(Encoder(), Gram.UNKNOWN) == Change(4, 16, 4)
    assert Relation("raw", "item", Neighbours.REPLACE, unique_deletions=True).change(Encoder(), Gram.UNKNOWN) == Change(
        4, 16, 4
    )
    assert Relation("value", "event").change(Encoder(), Gram.UNKNOWN) == Change(2, 4, 2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"identity": "raw", "protects": "item"}, "cannot protect items"),
        ({"identity": "value", "protects": "item"}, "cannot protect items"),
        ({"identity": "value", "protects": "event", "neighbours": Neighbours.REPLACE}, "no proved charge"),
        ({"identity": "value", "protects": "event", "max_lifetime": 3}, "which copy expires"),
        ({"identity": "raw", "protects": "event", "max_lifetime": 3}, "which copy expires"),
        ({"identity": "id", "protects": "item", "neighbours": Neighbours.INDEPENDENT}, "add_remove"),
        ({"identity": "token", "protects": "item", "lifetimes": 2}, "lifetimes belongs"),
        ({"identity": "id", "protects": "item", "unique_deletions": True}, "unique_deletions belongs"),
        ({"identity": "id", "protects": "item", "max_events_per_user": 3}, "whole events"),
        ({"identity": "name", "protects": "item"}, "identity is"),
        ({"identity": "id", "protects": "user"}, "protects is"),
    ],
)
def test_what_has_no_charge_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        Relation(**options)


@pytest.mark.parametrize("lifetimes", [1, 2])
@pytest.mark.parametrize("longest", [1, 2, 3])
def test_bounded_lifetimes_against_the_path_process(lifetimes: int, longest: int) -> None:
    """13.2: what one step does to paths of presence, under the integer factor that the noise is made for."""
    factor = best_factor(longest)
    r = [*factor.r[:T], *[0] * (T - len(factor.r))]
    R = np.array([[r[t - s] if s <= t else 0 for s in range(T)] for t in range(T)], dtype=np.int64)
    streams = {
        stream: np.cumsum(by_name([ACTIONS[a] for a in stream], lifetimes, longest), axis=0)
        for stream in product(range(len(ACTIONS)), repeat=T - 1)
    }
    items = np.array(list(streams.values()))
    events = np.array(
        [
            path - streams[(*stream[:t], 0, *stream[t + 1 :])]
            for stream, path in streams.items()
            for t in range(T - 1)
            if stream[t]
        ]
    )
    for matrix, norms in (PLAIN, OVERLAPPING, SIGNED):
        for paths, unit in ((items, "item"), (events, "event")):
            relation = Relation("id", unit, lifetimes=lifetimes, max_lifetime=longest)  # type: ignore[arg-type]
            allowed = relation.runs(norms) * norms.l2_squared * factor.cost(longest)
            spent = ((R @ np.unique(paths @ matrix, axis=0)) ** 2).sum(axis=(1, 2)).max()
            assert spent <= allowed
            assert unit == "event" or lifetimes > 1 or spent >= 0.9 * allowed, "noise is wasted"


def test_a_missing_event_of_a_token_is_one_run() -> None:
    longest = 3
    factor = best_factor(longest)
    r = [*factor.r[:T], *[0] * (T - len(factor.r))]
    R = np.array([[r[t - s] if s <= t else 0 for s in range(T)] for t in range(T)], dtype=np.int64)
    allowed = Relation("token", "event", max_lifetime=longest).runs(Encoder()) * factor.cost(longest)
    for start, first, second in product(range(T), repeat=3):
        ticks: list[list[Any]] = [[] for _ in range(T)]
        ticks[start].append((0, 1, "x"))
        ticks[second].append((-1, -1, "x"))
        less = [list(records) for records in ticks]
        ticks[first].append((-1, -1, "x"))
        path = np.cumsum(by_name(ticks, 1, longest) - by_name(less, 1, longest), axis=0)
        assert ((R @ path) ** 2).sum() <= allowed
