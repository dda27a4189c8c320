"""How far one event, or one user, moves what is released, through doors, buckets, batches and slices together: never
further than the mechanism has paid for. Under one key noise is the same for all inputs, so differences of releases are
those of exact sums, and every small input is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from by_hand import by_hand

from evertally.privacy.neighbours import Change
from evertally.runtime import load_spec
from evertally.runtime.state.shelf import register_shelf
from evertally.spark.beginning import Taken, taken
from evertally.spark.engine import Engine
from evertally.spark.public import shown
from long import LONG
from spec_text import Table
from streams import place, write

__all__ = ["place"]

Event = tuple[str, int, tuple[int, ...], int]  # user, tick, columns, batch
COLUMNS = (0, 17, 32)  # one of each slice
CONTENT: Table = {"name": "visits", "horizon": 2, "order": "content"}


class Memory:
    """A shelf of this process."""

    kept: dict[str, bytes] = {}  # noqa: RUF012  of all places: tests set it back

    def __init__(self, place: str) -> None:
        self._place = place

    def read(self, name: str) -> bytes | None:
        return self.kept.get(f"{self._place}/{name}")

    def put_new(self, name: str, data: bytes) -> bytes:
        return self.kept.setdefault(f"{self._place}/{name}", data)

    def delete(self, name: str) -> None:
        self.kept.pop(f"{self._place}/{name}", None)

    def names(self, folder: str) -> list[str]:
        start = f"{self._place}/{folder}/" if folder else f"{self._place}/"
        return sorted({name[len(start) :].split("/")[0] for name in self.kept if name.startswith(start)})


register_shelf("memory", Memory)
IN_MEMORY: Table = {
    "slice_width": 16, "user_buckets": 2, "root": "memory://root", "home": "memory://home", "public": "memory://public",
}  # fmt: skip


class Played:
    """A stream of two ticks that is played again and again from its beginning: which nobody may but a test."""

    def __init__(self, held: Taken) -> None:
        self._engine, self._spec = Engine(held), held.spec
        self.change: Change = held.mechanisms["counts"].sensitivity
        self.slices = held.stand.ways[0].parts
        self._begun = dict(Memory.kept)
        self._rows: dict[tuple[Event, ...], Any] = {}

    @classmethod
    @contextmanager
    def of(cls, folder: Path, query: Table, stream: Table) -> Iterator[Played]:
        Memory.kept.clear()
        with taken(load_spec(write(folder, query, stream=stream, engine=IN_MEMORY))) as held:
            yield cls(held)

    def rows(self, events: Sequence[Event]) -> Any:
        """What is released at both ticks: the first batch closes the first, the second the second."""
        known = tuple(sorted(events))
        if known not in self._rows:
            Memory.kept.clear()
            Memory.kept.update(self._begun)
            for batch in (0, 1):
                tables = [_table([event for event in known if event[3] == batch])]
                self._engine.advance(by_hand(tables), batch, batch + 1, {"id": str(batch)})
            self._rows[known] = np.array([row["value"] for _, row in shown(self._spec, "counts")])
        return self._rows[known]

    def check(self, events: Sequence[Event], more: Sequence[Event]) -> int:
        """That `more` moves the rows by no more than the declared change; gives by how much."""
        moved = self.rows([*events, *more]) - self.rows(events)
        moved[1] -= moved[0]  # of each tick by itself
        assert abs(moved).sum() <= self.change.l1
        assert (moved.sum(axis=0) ** 2).sum() <= self.change.l2_squared  # several ticks as if they met in one
        assert abs(moved).sum(axis=0).max() <= self.change.linf
        return int(abs(moved).sum())


def _table(events: Sequence[Event]) -> pa.Table:
    users, ticks, columns, _ = zip(*events, strict=True) if events else ((), (), (), ())
    kinds = {"user": pa.string(), "time": pa.int64(), "column": pa.list_(pa.int64())}
    cells = {"user": users, "time": [tick - 1 for tick in ticks], "column": [list(some) for some in columns]}
    return pa.table({name: pa.array(cells[name], kind) for name, kind in kinds.items()})


def streams(kinds: Sequence[Any], most: int) -> Iterator[tuple[Any, ...]]:
    for count in range(most + 1):
        yield from combinations_with_replacement(kinds, count)


def query(**options: Any) -> Table:
    return {
        "name": "counts",
        "kind": "vector_counter",
        "column": "column",
        "columns": 33,
        "mechanism": "tree",
        **options,
    }


def test_one_event_more_moves_what_it_may(place: Path) -> None:
    kinds = [("", tick, (column,), batch) for column, tick, batch in product(COLUMNS, (1, 2), (0, 1))]
    # A third beside two others is one of those again: of one column, or of two.
    again = kinds[: 8 if LONG else 4]
    with Played.of(place / "spark", query(), CONTENT) as played:
        assert (played.slices, played.change) == (3, Change(1, 1, 1))
        moved = {played.check(events, [more]) for events in streams(kinds, 1) for more in kinds}
        moved |= {played.check(events, [more]) for events in streams(again, 2) for more in again}
    assert moved == {1}  # every event is of a tick, and none is lost or counted twice


def test_an_event_of_several_columns_moves_what_it_may(place: Path) -> None:
    several = [(0,), (0, 17), (17, 17, 17), (0, 17, 32), ()]
    kinds = [("", tick, some, batch) for tick, some, batch in product((1, 2), several, (0, 1))]
    with Played.of(place / "spark", query(max_per_event=2), CONTENT) as played:
        assert played.change == Change(2, 2, 1)
        moved = {more[2]: played.check(events, [more]) for events in streams(kinds[::7], 1) for more in kinds}
    assert moved == {(0,): 1, (0, 17): 2, (17, 17, 17): 1, (0, 17, 32): 2, (): 0}


MINE = [("b", tick, (column,), batch) for tick, column, batch in product((1, 2), (0, 17), (0, 1))]
SOME = MINE if LONG else [MINE[number] for number in (0, 3, 5, 6)]  # every two of tick, column and batch together


@pytest.mark.parametrize("cap", [1, 2])
def test_one_user_more_moves_what_a_user_may(place: Path, cap: int) -> None:
    stream = {**CONTENT, "unit": "user", "user_column": "user", "max_events_per_user": cap}
    events: list[Event] = [("a", 1, (0,), 0), ("a", 2, (0,), 1), ("a", 2, (17,), 0)]
    cases = [*streams(SOME if cap == 1 else MINE, 2), *([one] * 3 for one in SOME), MINE]
    with Played.of(place / "spark", query(), stream) as played:
        assert played.change == Change(cap, cap * cap, cap)
        moved = {len(mine): played.check(events, mine) for mine in cases}
    assert moved == {size: min(size, cap) for size in (0, 1, 2, 3, 8)}


def test_one_user_more_in_ticks_that_are_apart(place: Path) -> None:
    stream = {**CONTENT, "unit": "user", "user_column": "user"}
    events: list[Event] = [("a", 1, (0,), 0), ("a", 2, (17,), 0)]
    with Played.of(place / "spark", query(max_ticks_per_user=1, min_separation=1), stream) as played:
        assert max(played.check(events, mine) for mine in streams(SOME, 2)) == 1
