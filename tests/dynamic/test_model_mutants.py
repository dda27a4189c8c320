"""Planted mistakes that the comparison with a multiset must see."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from multiset import Record
from test_model import AWKWARD, CELLS, DENSE, DOORS, LENGTH, STALE, Run

from evertally.contract.rows import from_bytes
from evertally.dynamic import presence
from evertally.dynamic.holders import Holders
from evertally.dynamic.lifetimes import Named
from evertally.dynamic.prefix import FiniteTree
from evertally.dynamic.presence import Everything


def agrees(case: str, door: str) -> bool:
    """Whether every release is what was there at its tick, or at the last boundary."""
    rng = random.Random(1)
    streams: list[Any] = [AWKWARD]
    for _ in range(6):
        streams.append(
            [
                (rng.random() < 0.4, [_record(rng) for _ in range(rng.randrange(12))])  # restored before; records
                for _ in range(LENGTH)
            ]
        )
    for stream in streams:
        run, last = Run((DENSE | STALE)[case], DOORS[door]), [0] * len(CELLS)
        for restored, records in stream:
            if restored:
                run.restore()
            shown, present = run.step(records)
            if shown != present and (case in DENSE or shown != last):
                return False
            last = shown
    return True


def _record(rng: random.Random) -> Record:
    return rng.choice(["insert", "insert", "delete"]), rng.choice(CELLS), rng.randrange(40)


def forgets_the_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Named, "_end", lambda self, name, life: self._set(name, None))


def does_not_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(presence, "Multiplicities", Everything)


def restores_without_what_was_deleted(patch: pytest.MonkeyPatch) -> None:
    plain = Holders.load

    def load(self: Any, parts: Any) -> None:
        plain(self, parts)
        self._deleted = [{} for _ in self.numbers]

    patch.setattr(Holders, "load", load)


def merges_without_the_new(patch: pytest.MonkeyPatch) -> None:
    plain = Holders._merge
    patch.setattr(Holders, "_merge", lambda self, contents: plain(self, contents[:-1] or contents))


def deletes_in_two_holders(patch: pytest.MonkeyPatch) -> None:
    """By value a deletion hits more than one holder that has a copy (6.3, the literal reading)."""
    plain = Holders.apply

    def apply(self: Any, cell: int, sign: int, item: int = -1) -> None:
        plain(self, cell, sign, item)
        if sign < 0 and not self.named and any(cell in content.copies for content in self._contents):
            plain(self, cell, sign, item)

    patch.setattr(Holders, "apply", apply)


def restores_without_open_nodes(patch: pytest.MonkeyPatch) -> None:
    plain = FiniteTree.load

    def load(self: Any, parts: Any) -> None:
        plain(self, parts)
        self._held = np.zeros_like(from_bytes(parts[1])).reshape(self._held.shape)

    patch.setattr(FiniteTree, "load", load)


MISTAKES: list[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (forgets_the_dead, "L", "names"),
    (forgets_the_dead, "C5", "names"),
    (does_not_floor, "B", "values"),
    (does_not_floor, "L", "values"),
    (restores_without_what_was_deleted, "C5 after P2", "values"),
    (merges_without_the_new, "C5f", "tokens"),
    (deletes_in_two_holders, "C5", "values"),
    (restores_without_open_nodes, "C1, signed", "raw"),
    (restores_without_open_nodes, "C2, signed", "names"),
    (restores_without_open_nodes, "B", "tokens"),
]


@pytest.mark.parametrize(("mistake", "case", "door"), MISTAKES)
def test_a_mistake_is_seen(
    mistake: Callable[[pytest.MonkeyPatch], None], case: str, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert agrees(case, door)
    mistake(monkeypatch)
    try:
        seen = not agrees(case, door)
    except (AssertionError, KeyError):  # the program stops before it releases anything
        seen = True
    assert seen
