"""Which items live: against plain models, through snapshots and calls that are taken back."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.dynamic.presence import Minted, Named, Presence, presence_of
from evertally.dynamic.tokens import Tokens
from evertally.encode.updates import Arrivals
from evertally.errors import StateError
from evertally.noise import simulation

SOURCE = simulation(1).source("presence")
RECORD = st.tuples(st.integers(0, 2), st.sampled_from([1, -1]), st.sampled_from("abcde"))
TICKS = st.lists(st.lists(RECORD, max_size=6), max_size=12)


def arrivals(records: list[tuple[int, int, Any]], by_name: bool = True) -> Arrivals:
    cells = [-1 if by_name and sign < 0 else cell for cell, sign, _ in records]
    return Arrivals(np.array(cells, np.int64), np.array([r[1] for r in records], np.int64), [r[2] for r in records])


class Model:
    """A dictionary of what lives, and how often each name has lived."""

    def __init__(self, lifetimes: int, longest: int | None) -> None:
        self.lifetimes, self.longest = lifetimes, longest
        self.living: dict[str, tuple[int, int]] = {}
        self.used: Counter[str] = Counter()

    def tick(self, number: int, records: list[tuple[int, int, str]]) -> Counter[tuple[int, int]]:
        changes: Counter[tuple[int, int]] = Counter()
        for name, (cell, born) in list(self.living.items()):
            if self.longest is not None and number - born == self.longest:
                changes[cell, -1] += 1
                del self.living[name]
        for cell, sign, name in records:
            if sign > 0 and name not in self.living and self.used[name] < self.lifetimes:
                self.living[name] = cell, number
                self.used[name] += 1
                changes[cell, 1] += 1
            elif sign < 0 and name in self.living:
                changes[self.living.pop(name)[0], -1] += 1
        return changes


def again(presence: Presence[Any], fresh: Presence[Any]) -> Presence[Any]:
    """Through a snapshot."""
    saved = presence.save()
    fresh.load(presence.tick, saved)
    assert fresh.save() == saved
    return fresh


@given(ticks=TICKS, lifetimes=st.integers(1, 3), longest=st.one_of(st.none(), st.integers(1, 4)), data=st.data())
def test_names_from_outside(ticks: Any, lifetimes: int, longest: int | None, data: Any) -> None:
    def fresh() -> Named:
        return Named(lifetimes=lifetimes, counts_all=True, longest=longest)

    presence, model, numbers = fresh(), Model(lifetimes, longest), []
    for t, records in enumerate(ticks, start=1):
        if data.draw(st.booleans()):
            presence = again(presence, fresh())
        presence.begin(t - 1)
        if data.draw(st.booleans()):  # a call that is taken back leaves nothing
            before = presence.save()
            presence.admit(arrivals(data.draw(st.lists(RECORD, max_size=6))))
            presence.admit(arrivals(data.draw(st.lists(RECORD, max_size=6))))
            presence.undo(t - 1)
            assert presence.save() == before
            presence.begin(t - 1)
        updates = presence.admit(arrivals(records))
        found = Counter(zip(updates.cells.tolist(), updates.signs.tolist(), strict=True))
        assert found == model.tick(t, records)
        assert presence.living == len(model.living)
        assert updates.arrived == len(records), "the event unit counts what does nothing, too"
        numbers += updates.items[updates.signs > 0].tolist()
    assert len(set(numbers)) == len(numbers), "a lifetime was numbered twice"


@given(ticks=TICKS, data=st.data())
def test_values_are_floored(ticks: Any, data: Any) -> None:
    presence = presence_of("value", SOURCE, protects="event")
    copies: Counter[int] = Counter()
    for t, records in enumerate(ticks):
        presence.begin(t)
        if data.draw(st.booleans()):
            presence.admit(arrivals(data.draw(st.lists(RECORD, max_size=6)), by_name=False))
            presence.undo(t)
        if data.draw(st.booleans()):
            presence = again(presence, presence_of("value", SOURCE, protects="event"))
            presence.begin(t)
        updates = presence.admit(arrivals(records, by_name=False))
        for cell, sign, _ in records:
            copies[cell] = max(0, copies[cell] + sign)
        assert presence.living == copies.total()
        assert updates.arrived == len(records)


@given(ticks=TICKS)
def test_raw_records_pass(ticks: Any) -> None:
    presence = presence_of("raw", SOURCE, protects="item")
    for records in ticks:
        updates = presence.admit(arrivals(records, by_name=False))
        assert updates.signs.tolist() == [sign for _, sign, _ in records]
        assert updates.cells.tolist() == [cell for cell, _, _ in records]
        assert updates.arrived is None


@settings(max_examples=50)
@given(ticks=st.lists(st.lists(st.integers(-1, 2), max_size=5), max_size=8), data=st.data())
def test_minted_names(ticks: Any, data: Any) -> None:
    """Insertions into cells (-1: of nothing that counts) and deletions of tokens, each as often as one likes."""

    def fresh() -> Presence[Any]:
        return presence_of("token", SOURCE, protects="item", longest=3)

    presence = fresh()
    living: dict[str, tuple[int, int]] = {}
    given_out: list[str] = ["no token", "00" * 16]
    for t, cells in enumerate(ticks, start=1):
        if data.draw(st.booleans()):
            presence = again(presence, fresh())
        presence.begin(t - 1)
        deleted = data.draw(st.lists(st.sampled_from(given_out), max_size=4))
        records = [*((cell, 1, None) for cell in cells), *((-1, -1, token) for token in deleted)]
        updates = presence.admit(arrivals(records))
        expected: Counter[tuple[int, int]] = Counter()
        for token, (cell, born) in list(living.items()):
            if t - born == 3 or token in deleted:
                expected[cell, -1] += 1
                del living[token]
        assert isinstance(presence, Minted)
        minted = presence.tokens()
        assert len(minted) == len(cells), "one token for every insertion, in order"
        for token, cell in zip(minted, cells, strict=True):
            if cell >= 0:
                living[token] = cell, t
                expected[cell, 1] += 1
        assert Counter(zip(updates.cells.tolist(), updates.signs.tolist(), strict=True)) == expected
        assert presence.living == len(living), "dead tokens are forgotten"
        given_out += minted
    assert len(set(given_out)) == len(given_out)


def test_tokens_are_a_keyed_permutation() -> None:
    one, other = Tokens(SOURCE), Tokens(simulation(2).source("presence"))
    made = one.of(range(1000))
    assert len(set(made)) == 1000
    assert [one.number(token) for token in made] == list(range(1000))
    assert not set(made) & set(other.of(range(1000)))
    for nonsense in (None, "", "zz" * 16, "é" * 32, " " * 32, made[0][:-2], "0 " * 16):
        assert one.number(nonsense) is None


def test_damaged_bytes_are_refused() -> None:
    named = Named(lifetimes=1, counts_all=False, longest=None)
    named.admit(arrivals([(0, 1, "ann")]))
    saved = named.save()
    for damaged in (b"", saved[:-1], saved + b"x", b"x" + saved[1:]):
        with pytest.raises(StateError):
            Named(lifetimes=1, counts_all=False, longest=None).load(1, damaged)
    with pytest.raises(StateError):
        presence_of("value", SOURCE, protects="event").load(1, saved)


def test_a_tick_does_not_ask_how_many_live() -> None:
    """Many items live; ticks of a few updates take what a few updates take."""
    presence = Named(lifetimes=1, counts_all=False, longest=10_000)
    n = 300_000
    items = Arrivals(np.zeros(n, np.int64), np.ones(n, np.int64), [str(i) for i in range(n)])
    started = time.process_time()
    presence.admit(items)
    all_of_them, started = time.process_time() - started, time.process_time()
    for t in range(1, 1001):
        presence.begin(t)
        presence.admit(Arrivals(np.array([-1, 0]), np.array([-1, 1]), [str(t), f"new {t}"]))
    # Whatever the machine: a thousand ticks that looked at all who live would take a thousand times as long.
    assert time.process_time() - started < 10 * all_of_them
