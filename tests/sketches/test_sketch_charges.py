"""What an event and a user can do to a sketch: all hashes and signs of small ones, through the real door."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from sketch_models import AllTables

import evertally as et
from evertally.counting.sqrt_factor import sqrt_factor
from evertally.noise import ZeroNoise
from evertally.privacy import Change, Contribution, Neighbours
from evertally.sketches.charges import Touched, sketch_change
from long import LONG

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
LABELS = ["0", "1", "2"]


def norms(rows: Any) -> tuple[int, int, int]:
    """Of the worst table: l1, squares, largest entry."""
    return int(np.abs(rows).sum(axis=1).max()), int((rows**2).sum(axis=1).max()), int(np.abs(rows).max())


@pytest.mark.parametrize("signs", [True, False])
def test_one_label_in_two_rows_all_hashes_and_signs(signs: bool) -> None:
    tables = AllTables(2, signs)
    rows = {label: tables.rows_of({label: 9}, max_weight=3) for label in LABELS}
    charged = sketch_change(ADD, tables.touched, Contribution(max_weight=3), None, loose=False)
    assert charged == Change(6, 18, 3)  # R m, R m^2, m
    assert all(norms(row) == (6, 18, 3) for row in rows.values())
    replaced = sketch_change(REPLACE, tables.touched, Contribution(max_weight=3), None, loose=False)
    found = [norms(rows[a] - rows[b]) for a, b in product(LABELS, repeat=2)]
    # Attained: 4 R m^2 with signs, 2 R m^2 without.
    assert tuple(max(one[i] for one in found) for i in range(3)) == (replaced.l1, replaced.l2_squared, replaced.linf)
    assert replaced.l2_squared == (72 if signs else 36)


@pytest.mark.parametrize("signs", [True, False])
def test_labels_of_one_event_that_share_buckets_are_clipped(signs: bool) -> None:
    rows_of_table = 2 if LONG or not signs else 1  # rows add up
    tables = AllTables(rows_of_table, signs)
    events: list[Any] = [[], *LABELS, *(list(two) for two in combinations(LABELS, 2))]
    rows = [tables.rows_of(event, max_per_event=2) for event in events]
    charged = sketch_change(ADD, tables.touched, Contribution(max_per_event=2), None, loose=False)
    assert max(norms(row)[1] for row in rows) == charged.l2_squared == 2 * rows_of_table  # R b
    unclipped = [tables.rows_of(event, max_per_event=2, clip=False) for event in events[4:]]
    assert max(norms(row)[1] for row in unclipped) == 4 * rows_of_table  # R b^2, what is charged where nobody clips
    replaced = sketch_change(REPLACE, tables.touched, Contribution(max_per_event=2), None, loose=False)
    assert all(norms(a - b)[1] <= replaced.l2_squared for a, b in product(rows, repeat=2))
    assert all(norms(a - b)[0] <= replaced.l1 for a, b in product(rows, repeat=2))


def _factors() -> list[Any]:
    """Gram matrices of three ticks: the square root, a binary tree of four leaves, sums released anew."""
    series = sqrt_factor(3).r / 2.0**16
    root = np.array([[series[i - j] if i >= j else 0.0 for j in range(3)] for i in range(3)])
    nodes = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)
    anew = np.tril(np.ones((3, 3)))
    return [factor.T @ factor for factor in (root, nodes, anew)]


@pytest.mark.parametrize("signs", [True, False])
@pytest.mark.parametrize("gram", _factors(), ids=["root", "tree", "anew"])
def test_two_events_of_a_user_in_any_ticks(signs: bool, gram: Any) -> None:
    """One row; rows add up. Users with up to two events, each of any label at any of three ticks."""
    tables = AllTables(1, signs)
    rows = np.array([tables.rows_of(label) for label in LABELS])  # labels, tables, columns
    single = [(label, tick) for label in range(3) for tick in range(3)]
    users = [(), *((one,) for one in single), *combinations(single, 2), *((one, one) for one in single)]
    streams = np.zeros((len(users), 3, tables.tables, 2))
    for stream, user in zip(streams, users, strict=True):
        for label, tick in user:
            stream[tick] += rows[label]
    squares = np.einsum("usxc,st,utxc->ux", streams, gram, streams, optimize=True)
    crossed = np.einsum("usxc,st,vtxc->uvx", streams, gram, streams, optimize=True)
    largest = gram.diagonal().max()
    contribution = Contribution(unit="user", max_events_per_user=2)
    charged = sketch_change(ADD, tables.touched, contribution, None, loose=False).l2_squared * largest
    assert squares.max() == pytest.approx(charged)
    replaced = sketch_change(REPLACE, tables.touched, contribution, None, loose=False).l2_squared * largest
    lost = (squares[:, None] + squares[None] - 2 * crossed).max()
    assert lost <= replaced * (1 + 1e-12)
    assert not signs or lost == pytest.approx(replaced)


def test_charges_of_users() -> None:
    touched = Touched(2, 10)
    capped = Contribution(unit="user", max_events_per_user=3, max_weight=2)
    assert sketch_change(ADD, touched, capped, None, loose=False) == Change(72, 12 * 4 * 9, 6)
    assert sketch_change(REPLACE, touched, capped, None, loose=False) == Change(144, 44 * 4 * 9, 12)
    once = Contribution(unit="user", user_rule="once", max_weight=2)
    assert sketch_change(ADD, touched, once, 3, loose=False) == Change(72, 12 * 4 * 3, 2)  # R w m^2, not R w^2 m^2
    assert sketch_change(REPLACE, touched, once, 3, loose=False) == Change(144, 44 * 4 * 3, 4)
    # Nothing is proved of somebody's own factor: two users may add up in exact columns too. Events share a tick.
    assert sketch_change(REPLACE, touched, once, 3, loose=True).l2_squared == 48 * 4 * 3
    assert sketch_change(REPLACE, touched, Contribution(), None, loose=True).l2_squared == 44


@pytest.mark.parametrize("symbols", [2, 3])
@pytest.mark.parametrize("rows", [1, 3])
def test_prefixes_of_all_small_labels(symbols: int, rows: int) -> None:
    def made(**options: Any) -> Any:
        return et.HeavyPrefixes(
            symbols=symbols, fanout=3, labels="number", width=3, rows=rows, threshold=5, horizon=4,
            guarantee=et.ZCDP(1), key=ZeroNoise(), **options,
        )  # fmt: skip

    one, other = made(), made(neighbours="replace")
    level = 1 + rows * (symbols - 1)
    assert one.sensitivity == Change(level, level, 1)
    assert other.sensitivity == Change(2 * level, 2 + 4 * rows * (symbols - 1), 2)
    table = np.array([one._door.events([n], 1) for n in range(3**symbols)])
    assert set((table**2).sum(axis=1).tolist()) == {level}
    squares = ((table[:, None] - table[None]) ** 2).sum(axis=2)
    assert squares.max() <= other.sensitivity.l2_squared
    if rows == 1:
        assert squares.max() == other.sensitivity.l2_squared  # attained by these hashes
