"""The stack of holders against plain sets, and the worked trace of dynamic-data 6.4."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from evertally.dynamic.holders import Closed, Holders, dense
from evertally.dynamic.interval_index import level, query_chain, update_chain
from evertally.dynamic.parts import Updates

A, B, C, D, E, G = range(6)
TRACE = [
    ([(+1, A), (+1, B)], {}, (), {1: {A, B}}),
    ([(-1, B)], {}, (1,), {2: {A}}),
    ([(+1, C)], {2: set()}, (), {2: {A}, 3: {C}}),
    ([(+1, D)], {}, (3, 2), {4: {A, C, D}}),
    ([(-1, D), (+1, E)], {4: {D}}, (), {4: {A, C}, 5: {E}}),
    ([(-1, A)], {4: {A}}, (5,), {4: {C}, 6: {E}}),
    ([(+1, G), (-1, G)], {4: set(), 6: set()}, (), {4: {C}, 6: {E}, 7: set()}),
    ([(-1, C)], {}, (7, 6, 4), {8: {E}}),
]


@pytest.mark.parametrize("named", [True, False])
def test_the_worked_trace(named: bool) -> None:
    stack = Holders(named=named)
    for segment, (updates, fed, retired, holders) in enumerate(TRACE, start=1):
        for sign, x in updates:
            stack.apply(x, sign, x if named else -1)
        closed = stack.close(segment)
        assert {number: set(counts) for number, counts in closed.deleted.items()} == fed
        assert set(closed.retired) == set(retired)
        assert set(closed.content) == holders[segment]
        assert {number: set(stack.content(number)) for number in stack.numbers} == holders


def random_stream(rng: random.Random, segments: int) -> list[list[tuple[int, int, int]]]:
    """Insertions and deletions of named items: repeated deletions, deletions of what never was, same-segment pairs."""
    stream, used = [], 0
    for _ in range(segments):
        updates = []
        for _ in range(rng.randrange(5)):
            if rng.random() < 0.55:
                updates.append((+1, rng.randrange(3), used))
                used += 1
            else:
                updates.append((-1, rng.randrange(3), rng.randrange(used + 2)))
        stream.append(updates)
    return stream


def played(stream: list[list[tuple[int, int, int]]], named: bool) -> tuple[Holders, list[Closed], list[Counter[int]]]:
    """The stack, what each segment did, and what a plain model has after each."""
    stack, model, alive = Holders(named=named), Counter[int](), dict[int, int]()
    closings, truth = [], []
    for segment, updates in enumerate(stream, start=1):
        for sign, cell, item in updates:
            stack.apply(cell, sign, item if named else -1)
            if sign > 0:
                alive[item] = cell
                model[cell] += 1
            elif named and item in alive:
                model[alive.pop(item)] -= 1
            elif not named and model[cell] > 0:
                model[cell] -= 1
        closings.append(stack.close(segment))
        truth.append(+model)
    return stack, closings, truth


@pytest.mark.parametrize("named", [True, False])
def test_holders_together_hold_what_is_present(named: bool) -> None:
    rng = random.Random(1)
    for _ in range(150):
        stream = random_stream(rng, rng.randrange(1, 40))
        stack, _, truth = played(stream, named)
        assert stack.numbers == query_chain(len(stream))[::-1]
        together = sum((Counter(stack.content(number)) for number in stack.numbers), Counter[int]())
        assert together == truth[-1]


def test_a_deletion_is_fed_to_one_node_and_an_item_held_once_a_level() -> None:
    rng = random.Random(2)
    for _ in range(100):
        stream = [[(sign, item, item) for sign, _, item in updates] for updates in random_stream(rng, 40)]
        _, closings, _ = played(stream, named=True)
        fed: Counter[int] = Counter()
        held: dict[int, list[int]] = {}
        born = {item: j for j, updates in enumerate(stream, start=1) for sign, _, item in updates if sign > 0}
        for closed in closings:
            for counts in closed.deleted.values():
                fed.update(counts)
            for item in closed.content:
                held.setdefault(item, []).append(closed.segment)
        assert max(fed.values(), default=0) <= 1
        for item, nodes in held.items():
            assert len({level(number) for number in nodes}) == len(nodes)
            assert set(nodes) <= set(update_chain(born[item], len(stream)))


@pytest.mark.parametrize("named", [True, False])
def test_state_comes_back_and_does_not_tell_the_order(named: bool) -> None:
    rng = random.Random(3)
    stream = random_stream(rng, 23)
    whole, _, _ = played(stream, named)
    half, _, _ = played(stream[:11], named)
    other = Holders(named=named)
    other.load(half.state())
    for segment, updates in enumerate(stream[11:], start=12):
        for sign, cell, item in updates:
            other.apply(cell, sign, item if named else -1)
        if segment == 17:  # in an open segment too
            again = Holders(named=named)
            again.load(other.state())
            assert again.state() == other.state()
            other = again
        other.close(segment)
    assert other.state() == whole.state()
    one, two = Holders(named=named), Holders(named=named)
    for item in (3, 1, 2):
        one.apply(item, +1, item if named else -1)
    for item in (2, 3, 1):
        two.apply(item, +1, item if named else -1)
    assert one.state() == two.state()


def test_a_lifetime_begins_once() -> None:
    stack = Holders(named=True)
    stack.apply(0, +1, 7)
    with pytest.raises(AssertionError, match="begins once"):
        stack.apply(0, +1, 7)


def test_updates_of_a_tick_and_vectors() -> None:
    stack = Holders(named=False)
    stack.update(Updates(np.array([2, 2, 0]), np.array([1, 1, -1]), np.full(3, -1)))
    assert dense(stack.close(1).content, 4).tolist() == [0, 0, 2, 0]
