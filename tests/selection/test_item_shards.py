"""Shards of labels release together, label by label and in order, what the mechanism releases: whatever the number of
shards, the batches, the order of cells and the breaks between."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_cases import CASES, HORIZON, Cell, advanced, played, stepped, stream, texts, whole, written

import evertally as et
from evertally.encode import ItemTotals
from evertally.encode.siphash import siphash
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError, HorizonExceeded, StateError
from evertally.noise import Recording, ZeroNoise
from evertally.selection import item_shards
from evertally.selection.found import Found
from evertally.selection.item_plan import ItemPlan
from evertally.selection.item_shards import ItemShard, merged, shard_of
from evertally.users.labels import LabelledDoor

NOTHING: tuple[Any, Texts, Any] = [], Texts.of([]), []


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("case", CASES)
def test_shards_are_the_whole(case: str, count: int) -> None:
    key, cells = et.simulation(3), stream(1)
    plan = ItemPlan.from_json(whole(case, key).item_plan().to_json())
    expected = stepped(whole(case, key), cells)
    assert len(expected[-1]) > 1
    for cuts in ([0, HORIZON], [0, 1, 7, 8, 8, 19, HORIZON]):
        batches = [([cell for cell in cells if a < cell[0] <= b], b) for a, b in pairwise(cuts)]
        assert written(played(plan, key, count, batches)[0]) == written(expected)


@pytest.mark.parametrize("case", ["sum", "sticky per_tick", "sticky top 2"])
def test_all_at_once_waits(case: str) -> None:
    """Cells of later ticks are kept in the state until their time has come."""
    key, cells = et.simulation(3), stream(2)
    plan, expected = whole(case, key).item_plan(), written(stepped(whole(case, key), cells))
    batches: list[tuple[list[Cell], int]] = [(cells, 0), ([], 1), ([], 9), ([], HORIZON)]
    assert written(played(plan, key, 2, batches)[0]) == expected


def totals(batches: list[tuple[list[Cell], int]], limit: int) -> list[dict[str, int]]:
    """The rule of cells, said again in plain Python."""
    rows: list[dict[str, int]] = [{} for _ in range(10**3)]
    tick = 0
    for cells, through in batches:
        for t, label, w in cells:
            if w:
                row = rows[max(t, tick + 1)]
                row[label] = row.get(label, 0) + w
        tick = through
    return [{label: min(limit, total) for label, total in row.items()} for row in rows[1 : tick + 1]]


LABELS = st.sampled_from(["a", "a\x00", "aa", "", "b" * 30, "b" * 30 + "c", "é", "\ud800", "\U0001f600", "7"])
WEIGHTS = st.one_of(st.integers(0, 90), st.sampled_from([2**62, 2**61, 2**61 // HORIZON, 2**40]))
CELLS = st.lists(st.tuples(st.integers(-2, HORIZON + 3), LABELS, WEIGHTS), max_size=12)


@given(data=st.data())
@settings(deadline=None, max_examples=60, derandomize=True)
def test_any_cells_and_batches(data: st.DataObject) -> None:
    """Late, early, before the start, beyond the end; huge ones; cells in any order have the same bytes after them."""
    key, case = et.simulation(1), data.draw(st.sampled_from(["sum", "per_tick", "sticky", "top 3"]))
    steps = data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=3))
    batches = [(data.draw(CELLS), sum(steps[: i + 1])) for i in range(len(steps))]
    mechanism = whole(case, key)
    plan = mechanism.item_plan()
    engine = plan.engine(plan.source(key))
    expected = [engine.advance([ItemTotals.of(row)])[0][0].counts for row in totals(batches, plan.limit)]
    for count in (1, 3):
        releases, states = played(plan, key, count, batches)
        assert [list(one.items()) for one in releases] == [list(one.items()) for one in expected]
        shuffled = [(data.draw(st.permutations(cells)), through) for cells, through in batches]
        assert played(plan, key, count, shuffled) == (releases, states)


def test_what_waits_has_one_order() -> None:
    """Cells that came in several calls, in any order, are the same bytes, and have the same future."""
    key = et.simulation(1)
    plan = whole("sticky", key).item_plan()
    cells = [(t, f"label {i}", 1 + i * t) for t in (1, 2, 5, 9) for i in range(30)]
    made = []
    for order in (cells, cells[::-1], cells[40:] + cells[:40]):
        shard = ItemShard(plan, key, 0, 1)
        for piece in (order[:50], order[50:]):
            advanced(shard, piece, 0)
        advanced(shard, [], 3)
        made.append(shard.to_bytes())
        made.append(ItemShard.from_bytes(plan, key, 0, 1, shard.to_bytes()).to_bytes())
    assert len(set(made)) == 1


def test_distinct_users_by_shards() -> None:
    """Behind a rule about users the engine is the same: it takes what the rule lets through."""
    key, rng = et.simulation(1), np.random.default_rng(1)
    options: dict[str, Any] = {"max_categories": 2, "guarantee": et.ApproxZCDP(20.0, 1e-3), "horizon": 9, "key": key}
    mechanism, other = (et.UnknownDistinctUsers(**options) for _ in range(2))
    rule, door = other._engine.rule, LabelledDoor()  # type: ignore[attr-defined]
    expected, cells = [], list[Cell]()
    for tick in range(1, 10):
        pages, users = rng.integers(0, 12, 300) // 2, rng.integers(0, 200 * tick, 300)
        expected.append(mechanism.step_events(pages.tolist(), users=users.tolist()).value)
        rule.begin(tick - 1)
        admitted = rule.admit(door.owned(pages.tolist(), users.tolist(), tick))
        cells += [(tick, label, w) for label, w in admitted.mapping().items()]
    assert len(expected[-1]) > 2
    batches: list[tuple[list[Cell], int]] = [(cells, 4), ([], 9)]
    assert written(played(mechanism.item_plan(), key, 3, batches)[0]) == written(expected)


def test_every_label_has_one_shard() -> None:
    labels, key = Texts.of([f"label {i}" for i in range(4000)] + ["", "\ud800"]), et.simulation(1)
    found = shard_of(labels, key, 5)
    sizes = np.bincount(found)
    assert sizes.size == 5
    assert sizes.min() > 650  # 800 on average, and a standard deviation of 25
    assert not np.array_equal(shard_of(labels, et.simulation(2), 5), found)
    # few labels are hashed without a compiler, to the same shards; so is a part that lies within other memory
    assert np.array_equal(shard_of(labels.take(np.arange(90)), key, 5), found[:90])
    inner = Texts(labels.data, labels.offsets[50:])
    assert np.array_equal(shard_of(inner, key, 5), found[50:])
    digest = int.from_bytes(siphash(key.mac("shards of items", b"")[:16], b"label 7", 16)[:8], "little")
    assert found[7] == (digest >> 32) * 5 >> 32
    assert shard_of(Texts.of([]), key, 5).tolist() == []
    with pytest.raises(ConfigurationError, match="count"):
        shard_of(labels, key, 0)


def test_a_shard_draws_for_its_own_labels_alone() -> None:
    """The privacy of a cut: whoever holds a shard has met no noise of other labels, and none is drawn ahead."""
    cells = stream(1, ticks=3)
    recording = Recording(et.simulation(1))
    shard = ItemShard(whole("sum", et.simulation(1)).item_plan(), recording, 0, 2)
    advanced(shard, cells, 3)
    table = {tuple(address) for address in shard._engine.table.addresses.tolist()}
    assert 0 < len(table) < len({label for _, label, _ in cells})
    assert {item for call in recording.draws for item in call.items or ()} == table


def test_idle_ticks_and_ends() -> None:
    key = ZeroNoise()
    shard = ItemShard(whole("sum", key).item_plan(), key, 0, 1)
    height = shard.plan.threshold.at(1)
    assert advanced(shard, [(HORIZON + 1, "tea", 10**6), (1, "none", 0)], 0) == []  # no tick, and no trace
    assert len(shard._engine.table) == 0
    found = advanced(shard, [(3, "tea", height), (-7, "milk", height + 1)], 1)
    assert [one.counts for one in found] == [{"milk": height + 1}]
    with pytest.raises(ConfigurationError, match="through"):
        shard.advance(*NOTHING, 0)
    with pytest.raises(HorizonExceeded):
        shard.advance(*NOTHING, HORIZON + 1)
    found = advanced(shard, [(1, "tea", 2)], HORIZON)
    both = {"tea": height + 2, "milk": height + 1}
    assert [one.counts for one in found] == [{"milk": height + 1}] + [both] * (HORIZON - 2)
    assert advanced(shard, [(1, "tea", 1)], HORIZON) == []  # all is over: late cells enter none
    state = shard.to_bytes()
    assert ItemShard.from_bytes(shard.plan, key, 0, 1, state).to_bytes() == state


def test_all_releases_are_asked_for() -> None:
    key = et.simulation(1)
    shard = ItemShard(whole("sum", key).item_plan(), key, 0, 1)
    ticks = shard.advance([1, 2], Texts.of(["a", "a"]), [500, 1], 3)
    assert next(ticks)[0] == 1
    for refused in (shard.to_bytes, lambda: shard.advance(*NOTHING, 3)):
        with pytest.raises(StateError, match="ask for all of them"):
            refused()
    assert [tick for tick, _ in ticks] == [2, 3]
    assert ItemShard.from_bytes(shard.plan, key, 0, 1, shard.to_bytes()).tick == 3


@pytest.mark.parametrize(
    "batch",
    [
        ([1], ["x"], [1]),
        ([1, 2], Texts.of(["x"]), [1]),
        ([1], Texts.of(["x"]), [1, 2]),
        ([1.5], Texts.of(["x"]), [1]),
        ([1], Texts.of(["x"]), [-1]),
        ([1], Texts.of(["x" * 1025]), [1]),
        ([[1]], Texts.of(["x"]), [[1]]),
    ],
    ids=["no texts", "ticks", "weights", "float", "negative", "long", "shape"],
)
def test_mistakes_in_cells_are_refused_and_change_nothing(batch: tuple[Any, Any, Any]) -> None:
    key = et.simulation(1)
    shard = ItemShard(whole("sum", key).item_plan(), key, 0, 1)
    before = shard.to_bytes()
    with pytest.raises(TypeError):
        shard.advance(*batch, 2)
    assert (shard.to_bytes(), shard.tick) == (before, 0)


def test_a_label_of_another_shard_is_refused() -> None:
    """Two shards with one label would have the same noise for two counts: their difference is exact."""
    key, labels = et.simulation(1), texts([(1, f"label {i}", 1) for i in range(9)])
    plan = whole("sum", key).item_plan()
    for number in range(2):
        with pytest.raises(TypeError, match=f"gives the number {number}"):
            ItemShard(plan, key, number, 2).advance([1] * 9, labels, [1] * 9, 1)
    with pytest.raises(StateError, match="in two of these parts"):
        merged(plan, [Found({"a": 5}, {}), Found({"b": 5}, {}), Found({"a": 6}, {})])
    for number, count in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ConfigurationError):
            ItemShard(plan, key, number, count)


def test_the_cut_to_most_is_after_the_merge() -> None:
    plan = whole("top 3", et.simulation(1)).item_plan()
    parts = [Found({"d": 9, "b": 7, "z": 7}, {}), Found({}, {}), Found({"c": 8, "a": 7, "y": 1}, {})]
    assert list(merged(plan, parts).counts.items()) == [("d", 9), ("c", 8), ("a", 7)]
    assert list(merged(plan, []).counts) == []


def state_of(plan: ItemPlan, key: Any, number: int = 0, count: int = 1) -> bytes:
    shard = ItemShard(plan, key, number, count)
    advanced(shard, stream(1), 5)
    return shard.to_bytes()


def test_states_that_do_not_fit_are_refused() -> None:
    key, other = et.simulation(1), et.simulation(2)
    plan = whole("sticky", key).item_plan()
    state = state_of(plan, key, 1, 3)
    assert ItemShard.from_bytes(plan, key, 1, 3, state).tick == 5
    for number, count in ((0, 3), (1, 2), (2, 3)):
        with pytest.raises(StateError, match="shard 1 of 3"):
            ItemShard.from_bytes(plan, key, number, count, state)
    for foreign, their in ((whole("sticky", other).item_plan(), other), (whole("sum", key).item_plan(), key)):
        with pytest.raises(StateError, match="another plan or key"):
            ItemShard.from_bytes(foreign, their, 1, 3, state)
    with pytest.raises(StateError, match="not the key of the plan"):
        ItemShard.from_bytes(plan, other, 1, 3, state)
    with pytest.raises(StateError, match="another version"):
        ItemShard.from_bytes(plan, key, 1, 3, b"x" + state[1:])


def test_damaged_states_are_refused() -> None:
    key = et.simulation(1)
    plan = whole("sticky", key).item_plan()
    state = state_of(plan, key)
    for wrong in (b"", state[:40], state[:-1], state + bytes(8), bytes(len(state))):
        with pytest.raises(StateError):
            ItemShard.from_bytes(plan, key, 0, 1, wrong)
    for place in range(0, len(state), 7):
        wrong = state[:place] + bytes([state[place] ^ 4]) + state[place + 1 :]
        with pytest.raises(StateError):
            ItemShard.from_bytes(plan, key, 0, 1, wrong)


def test_a_version_with_another_law_is_refused() -> None:
    """The same random bits at two scales reveal data."""
    key = et.simulation(1)
    plan = whole("sum", key).item_plan()
    with pytest.raises(StateError, match="another law"):
        ItemShard.from_bytes(replace(plan, law=et.noise.DiscreteGaussian(7)), key, 0, 1, state_of(plan, key))


def test_the_layout_is_fixed() -> None:
    """Bytes of this version are read by later ones; a change is a new format."""
    key = ZeroNoise()
    shard = ItemShard(whole("sticky", key).item_plan(), key, 0, 1)
    height = shard.plan.threshold.at(1)
    advanced(shard, [(1, "b", height + 1), (1, "a", 2), (4, "z", 1), (3, "b", 5), (4, "a", 3), (4, "z", 1)], 2)
    address = shard._engine.table.addresses[np.argsort(shard._engine.table.labels.list())]
    body = b"evertally-items1" + bytes(16) + struct.pack("<10q", 0, 1, 2, 0, 2, 2, 2, 3, 3, 3)
    body += struct.pack("<2q", 2, height + 1)
    body += address[:, 0].astype("<u8").tobytes() + address[:, 1].astype("<u4").tobytes()
    body += struct.pack("<2H", 1, 1) + bytes([0b01000000]) + b"ab"
    body += struct.pack("<9q3H", 3, 4, 4, 1, 0, 2, 5, 3, 2, 1, 1, 1) + b"abz"
    assert shard.to_bytes() == body + shard._source.order(b"state of a shard of items 1" + body)


def test_many_labels_are_compiled_and_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few labels and many take different loops; what they give does not differ."""
    key = et.simulation(1)
    plan = whole("sticky", key).item_plan()
    cells = [(1 + i % 4, f"page/{i * 7919 % 1000}", 1 + i % 50) for i in range(3000)]
    batches = [(cells[:2000], 2), (cells[2000:], 5)]
    compiled = played(plan, key, 2, batches)
    monkeypatch.setattr(item_shards, "_FEW", 10**9)
    assert played(plan, key, 2, batches) == compiled
    assert len(compiled[0][-1]) > 9


def test_nothing_of_a_shard_is_shown() -> None:
    key = et.simulation(1)
    assert repr(ItemShard(whole("sum", key).item_plan(), key, 0, 1)) == "<ItemShard, not shown>"


def test_one_label_that_is_too_long_is_refused_among_short_ones() -> None:
    key = et.simulation(1)
    shard = ItemShard(whole("sum", key).item_plan(), key, 0, 1)
    with pytest.raises(TypeError, match="at most"):
        shard.advance([1, 1], Texts.of(["a", "b" * (item_shards.LONGEST_LABEL + 1)]), [1, 1], 1)
    assert list(shard.advance([1, 1], Texts.of(["a", "b" * item_shards.LONGEST_LABEL]), [1, 1], 1))
