"""Objects with secret state show nothing, and are neither copied nor pickled, wherever they are met."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.checks.secrets import PLANTED, reachable
from evertally.encode import AmountDoor, CategoryDoor, ItemDoor, ItemTotals, UserCap, ValueDoor
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.noise import simulation
from evertally.runtime.input.batches import Piece
from evertally.runtime.input.encoded import Encoded, Part
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.machine import StreamState
from evertally.runtime.state.store import Entry
from evertally.runtime.waiting import Waiting
from evertally.secret import Secret
from evertally.selection.items import Items

COUNT = 8_675_309


def kept_users() -> UserCap:
    cap = UserCap(3)
    cap.keep([PLANTED] * 2, 1)
    return cap


def order(message: bytes) -> bytes:
    return message


def source() -> Any:
    return simulation(1).source("secret")


def erased_users() -> UserTable:
    table = UserTable(1)
    table.write(0, table.enter(Texts.of([PLANTED, "bob"])), np.array([COUNT, COUNT]))
    table.erase(Texts.of(["bob"]), lambda name: name * 2)
    return table


BATCH = {"ward": np.array([PLANTED, COUNT], dtype=object)}


def waiting_events() -> Waiting:
    waiting = Waiting(memory=2**20)
    waiting.add(1, Part.of(PLANTED.encode(), BATCH))
    return waiting


HOLDERS: dict[str, Callable[[], Any]] = {
    "texts": lambda: Texts.of([PLANTED]),
    "totals": lambda: ItemTotals.of({PLANTED: COUNT}),
    "items": lambda: Items.of({PLANTED: COUNT}, source()),
    "users": kept_users,
    "what a tick changed": lambda: kept_users().last,
    "table of users": erased_users,
    "index of names": lambda: erased_users()._now.index,
    "rows": lambda: et.SparseRows([0], [0], [COUNT], length=1, width=1),
    "amounts": AmountDoor,
    "values": lambda: ValueDoor(0, 1),
    "categories": lambda: CategoryDoor(["a"], order=order),
    "item door": lambda: ItemDoor(order=order),
    "source": source,
    "variates": lambda: source().variates("pick", "gumbel", node=0, coordinates=3),
    "state": lambda: StreamState(1, {"all": f"{PLANTED} {COUNT}".encode()}),
    "part": lambda: Part(b"", COUNT, BATCH, PLANTED),
    "encoded": lambda: Encoded(PLANTED.encode(), BATCH, PLANTED, 1, []),
    "waiting": waiting_events,
    "entry": lambda: Entry(PLANTED, b"", 1, [(1, PLANTED.encode())]),
    "events": lambda: TickEvents(None, [BATCH]),  # type: ignore[arg-type]
    "mechanism": lambda: et.Counter(guarantee=et.PureDP(1), horizon=4, key=simulation(1)),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_holds_secrets_is_not_shown_copied_or_pickled(name: str) -> None:
    holder = HOLDERS[name]()
    assert isinstance(holder, Secret)
    for text in (repr(holder), str(holder), f"{holder}", f"{holder!s:>40}", repr([holder])):
        assert PLANTED not in text
        assert str(COUNT) not in text
    for attempt in (copy.copy, copy.deepcopy, *(lambda x, p=p: pickle.dumps(x, p) for p in range(6))):
        with pytest.raises(TypeError, match=r"not (copied|pickled)"):
            attempt(holder)
    with pytest.raises(TypeError):
        holder.__getstate__()


def test_a_piece_of_a_source_is_not_shown_or_pickled() -> None:
    piece = Piece("id", BATCH, {})
    assert PLANTED not in f"{piece} {piece!r} {[piece]}"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(piece)
    with pytest.raises(TypeError, match="not pickled"):
        copy.copy(piece)


def test_one_error_shows_no_state_of_a_mechanism() -> None:
    """What a debugger or a crash reporter prints: all local names of all frames."""
    words = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=4, key=simulation(1))
    words.step([PLANTED] * 9)
    shown = "".join(repr(thing) for thing in reachable(words))
    assert PLANTED not in shown


def test_the_walk_finds_what_lies_deep() -> None:
    words = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=4, key=simulation(1))
    found = {type(thing).__name__ for thing in reachable(words)}
    assert found >= {"UnknownHistogram", "ItemTable", "ItemIndex", "ItemTree", "ItemDoor", "KeyedSource", "Key", "Kept"}
    top = et.MaxSum(3, guarantee=et.PureDP(1.0), horizon=8, mechanism="rebased", largest=9, key=simulation(1))
    found = {type(thing).__name__ for thing in reachable(top)}
    assert found >= {"MaxSum", "PartitionEngine", "PartitionedRelease", "Rebased", "OptimalBlocks", "RangeDoor"}
