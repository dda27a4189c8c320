"""The row "in parts": planted mistakes of slices, shards and buckets are seen, and the product is the same in parts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from audit.test_ways_in import DELTA, FAMILIES, USERS, WARD, WORDS, Rows, broken, ways_in  # noqa: F401
from evertally.counting import plan as plans
from evertally.counting import side_by_side, slice_state, slices
from evertally.counting.side_by_side import SideBySide
from evertally.encode.user_table import UserTable
from evertally.encode.users import UserCap
from evertally.noise import SliceSource
from evertally.runtime.state.shelf import DiskShelf
from evertally.selection import item_index, item_shards
from evertally.selection.item_shards import ItemShard
from evertally.selection.item_state import ItemState
from mutation.specs import SPECS
from spec_text import spec_text

pytestmark = pytest.mark.long

SUMS, ITEMS = spec_text(WARD), spec_text(WORDS, guarantee=DELTA)


@pytest.fixture
def in_parts(ways_in: Rows) -> Any:  # noqa: F811
    return lambda text: ways_in(text, "in parts")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_product_is_the_same_in_parts(in_parts: Any, family: str) -> None:
    report = in_parts(SPECS[family])
    assert report.passed, report.stopped
    assert report.aspect == "state"
    assert report.verdict == "holds (tight)" or "nothing of it can be cut" in report.stopped


def test_it_says_what_was_cut(in_parts: Any) -> None:
    assert in_parts(SUMS).stopped.startswith("slices, memory, shelf")
    assert in_parts(ITEMS).stopped.startswith("many ticks at once, shards")
    assert "buckets, ticks of users" in in_parts(spec_text(WARD, stream=USERS)).stopped
    assert in_parts(SPECS["recompute"]).verdict == "no power here"


def test_late_cells_that_are_lost(in_parts: Any, monkeypatch: Any) -> None:
    honest = slices.LinearSlice._cells

    def punctual(self: Any, ticks: Any, *others: Any) -> Any:
        late = np.asarray(ticks) <= self.tick
        return honest(self, np.where(late, 2**40, ticks), *others)

    monkeypatch.setattr(slices.LinearSlice, "_cells", punctual)
    broken(in_parts(SUMS), "are not those of the whole")


def test_slices_that_all_have_the_noise_of_the_first_columns(in_parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(plans, "SliceSource", lambda source, first: SliceSource(source, 0))
    broken(in_parts(SUMS), "are not those of the whole")


def test_cells_that_wait_are_forgotten(in_parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(slice_state, "merged", lambda cells: slice_state.NO_CELLS)
    broken(in_parts(SUMS), "are not those of the whole")


def test_states_of_slices_with_a_hole(in_parts: Any, monkeypatch: Any) -> None:
    honest = slice_state.SliceState.joined

    def generous(states: Any, first: int, stop: int) -> Any:
        states = list(states)
        try:
            return honest(states, first, stop)
        except Exception:
            return states[0] if states else honest(states, first, stop)

    monkeypatch.setattr(slice_state.SliceState, "joined", staticmethod(generous))
    broken(in_parts(SUMS), "in the place of the states of slices is taken up")


def test_the_noise_of_another_tick_beside_the_sums(in_parts: Any, monkeypatch: Any) -> None:
    def next_one(self: Any) -> Any:
        process = self._process()
        process.seek(max(0, self.tick - 2))
        return process.advance(1)[0]

    monkeypatch.setattr(slices.LinearSlice, "noise", next_one)
    broken(in_parts(SUMS), "sums and noise")


def test_a_memory_of_noise_that_is_too_long(in_parts: Any, monkeypatch: Any) -> None:
    honest = SideBySide.recall

    def generous(self: Any, tick: int, memory: bytes) -> None:
        sizes = [int.from_bytes(memory[8 * i : 8 * i + 8], "little") for i in range(len(self.parts))]
        honest(self, tick, memory[: 8 * len(self.parts) + sum(sizes)])

    monkeypatch.setattr(side_by_side.SideBySide, "recall", generous)
    broken(in_parts(SPECS["active"]), "memory of the noise")


def test_labels_in_another_shard_after_a_batch(in_parts: Any, monkeypatch: Any) -> None:
    honest = ItemShard._own
    monkeypatch.setattr(ItemShard, "_own", lambda self, cells: honest(self, cells).where(cells.ticks > self.tick))
    broken(in_parts(ITEMS), "shards")


def test_the_order_of_shards_shows(in_parts: Any, monkeypatch: Any) -> None:
    from evertally.audit.ways import shards
    from evertally.selection.found import Found

    def chained(plan: Any, parts: Any) -> Found:
        return Found({label: count for part in parts for label, count in part.counts.items()}, {})

    assert shards.merged is item_shards.merged
    monkeypatch.setattr(shards, "merged", chained)
    broken(in_parts(ITEMS), "is not what the whole shows")


def test_labels_that_share_a_hash_are_counted_as_one(in_parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(item_index, "_compare", lambda *_: None)
    broken(in_parts(ITEMS), "shards")


def test_a_damaged_shard_is_taken_up(in_parts: Any, monkeypatch: Any) -> None:
    honest = ItemState.from_bytes
    monkeypatch.setattr(ItemState, "from_bytes", staticmethod(lambda data, *rest: honest(data.rstrip(b"\0"), *rest)))
    broken(in_parts(ITEMS), "damaged state of a shard")


def test_a_bucket_that_remembers_nobody(in_parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(UserCap, "from_bytes", classmethod(lambda cls, blob: cls(3)))
    broken(in_parts(spec_text(WARD, stream=USERS)), "bucket")


def test_several_ticks_of_which_one_field_is_remembered(in_parts: Any, monkeypatch: Any) -> None:
    honest = UserTable.write

    def first_field(self: UserTable, number: int, *given: Any) -> None:
        if number == 0 or sys._getframe(1).f_code.co_name != "_keep_at_once":
            honest(self, number, *given)

    monkeypatch.setattr(UserTable, "write", first_field)
    broken(in_parts(SPECS["separated-users"]), "ticks of users: several ticks in")


def test_a_shelf_where_nothing_is_taken_away(in_parts: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(DiskShelf, "clear", lambda self, folder: None)
    broken(in_parts(SUMS), "shelf")
