"""How far one user, or one event, moves distinct counts: all small streams through the real rules, and golden numbers.

users-and-domains 2.1, 2.2, 2.6 and 11.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from evertally.counting.processes import Setting
from evertally.encode.owned import owned_tick
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.privacy import Change
from evertally.users.bitmap import Bitmap
from evertally.users.distinct_charge import moved_by
from evertally.users.distinct_rules import FirstCategories, FirstSeen
from evertally.users.labels import column_reader
from long import LONG

TICKS = 5 if LONG else 4
USERS = ("a", "b", "c")
SUBSETS = [tuple(u for u, there in zip(USERS, some, strict=True) if there) for some in product((0, 1), repeat=3)]


def gram(ticks: int) -> Any:
    """G of the square-root factor, in units of its largest entry."""
    r = np.array([1.0])
    for k in range(1, ticks):
        r = np.append(r, r[-1] * (2 * k - 1) / (2 * k))
    R = np.array([[r[i - j] if i >= j else 0.0 for j in range(ticks)] for i in range(ticks)])
    return R.T @ R


TICK = {users: owned_tick(list(users), None, 1) for users in SUBSETS}


def counted(rule: Any, stream: Iterable[Any]) -> tuple[int, ...]:
    return tuple(int(rule.admit(TICK[users])[0]) for users in stream)


def swap(ticks: int) -> float:
    """The largest square of +1 at one tick and -1 at another."""
    G = gram(ticks)
    diagonal = np.diag(G)
    return float((diagonal[:, None] + diagonal[None, :] - 2 * G).max() / G[0, 0])


@cache
def all_streams(make: Callable[[], Any]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    found = {}
    for begun in product(SUBSETS, repeat=TICKS - 1):
        rule = make()
        head = counted(rule, begun)
        for last in SUBSETS:
            rule.begin(TICKS - 1)
            found[*begun, last] = head + counted(rule, [last])
            rule.undo(TICKS - 1)
    return found


def without(stream: tuple[Any, ...], user: str, ticks: Iterable[int]) -> tuple[Any, ...]:
    gone = set(ticks)
    return tuple(tuple(u for u in users if u != user or t not in gone) for t, users in enumerate(stream))


def differences(make: Callable[[], Any], gone: Callable[[int], Iterable[Iterable[int]]]) -> set[tuple[int, ...]]:
    """How rows differ where one user is gone from some ticks, over all streams of three users."""
    rows = all_streams(make)
    found = set()
    for stream, row in rows.items():
        for ticks in gone(TICKS):
            other = rows[without(stream, "a", ticks)]
            found.add(tuple(x - y for x, y in zip(row, other, strict=True)))
    return found


def norms(found: set[tuple[int, ...]]) -> tuple[int, int, float]:
    G = gram(TICKS)
    rows = np.array(sorted(found))
    largest = float(np.einsum("nt,ts,ns->n", rows, G, rows).max() / G[0, 0])
    return int(np.abs(rows).sum(axis=1).max()), int(np.abs(rows).max()), largest


def all_ticks(ticks: int) -> list[range]:
    return [range(ticks)]


def single(ticks: int) -> list[list[int]]:
    return [[t] for t in range(ticks)]


def blocks_of_two(ticks: int) -> list[range]:
    return [range(start, min(ticks, start + 2)) for start in range(0, ticks, 2)]


def test_a_user_moves_one_number_by_one() -> None:
    found = differences(FirstSeen, all_ticks)
    assert norms(found) == (1, 1, 1.0)
    assert all(min(row) >= 0 for row in found)


@pytest.mark.parametrize("gone", [single, blocks_of_two])
def test_an_event_or_a_block_comes_and_goes(gone: Any) -> None:
    """+1, and -1 at the next event of the user: at most the swap value, below what is charged."""
    l1, linf, squared = norms(differences(FirstSeen, gone))
    assert (l1, linf) == (2, 1)
    assert squared == pytest.approx(swap(TICKS))
    assert swap(5) == pytest.approx(1.2899, abs=5e-5)


@pytest.mark.parametrize("most", [1, 2])
def test_a_full_table_lets_the_next_one_in(most: int) -> None:
    l1, linf, squared = norms(differences(lambda: FirstSeen(most), all_ticks))
    assert (l1, linf) == (2, 1)
    assert squared <= 2


def test_users_of_one_bit() -> None:
    """All three users in two bits: what comes with the first goes when a bit-mate comes."""

    def make() -> Bitmap:
        rule = Bitmap(2, lambda message: bytes(16))
        rule.places = lambda names: np.array([name == b"c" for name in names.names()], dtype=np.int64)  # type: ignore[method-assign]
        return rule

    l1, linf, squared = norms(differences(make, all_ticks))
    assert (l1, linf) == (2, 1)
    assert squared == pytest.approx(swap(TICKS))


def test_a_user_in_the_place_of_another() -> None:
    """All pairs of first ticks: (+1, -1), as the rows of both users have inner products of at least 0."""
    rows = {stream: counted(FirstSeen(), stream) for stream in product([(), ("a",)], repeat=TICKS)}
    found = {tuple(x - y for x, y in zip(one, other, strict=True)) for one in rows.values() for other in rows.values()}
    l1, linf, squared = norms(found)
    assert (l1, linf) == (2, 1)
    assert squared <= 2


def test_the_first_m_categories() -> None:
    """All streams of a user over four labels, two of which nobody declared: m cells, each once."""
    read = column_reader(["x", "y", "rest"], other=True)
    labels = [(), ("x",), ("y",), ("?",), ("!", "x")]
    G = gram(TICKS)
    for most in (1, 2):
        worst = 0.0
        for stream in product(labels, repeat=TICKS):
            rule = FirstCategories(most, 3)
            rows = np.array(
                [rule.admit(owned_tick(["a"] * len(some), read(list(some)), t)) for t, some in enumerate(stream, 1)]
            )
            assert rows.min() >= 0
            assert rows.sum() <= most
            assert rows.sum(axis=0).max() <= 1
            worst = max(worst, float(np.einsum("tc,ts,sc->", rows, G, rows) / G[0, 0]))
        assert worst == pytest.approx(most)


def test_two_users_never_meet() -> None:
    """A user's kept pairs are the same whoever else comes."""
    generator = np.random.default_rng(3)
    for _ in range(15):
        events = [(int(u), int(c)) for u, c in generator.integers(0, 4, size=(30, 2))]
        for user in range(4):
            together, alone = FirstCategories(2, 4), FirstCategories(2, 4)
            for start in range(0, 30, 5):
                some = events[start : start + 5]
                mine = [(u, c) for u, c in some if u == user]
                both = [
                    rule.admit(
                        owned_tick(
                            [u for u, _ in tick], np.array([c for _, c in tick], dtype=np.int64).reshape(-1, 1), 1
                        )
                    )
                    for rule, tick in ((together, some), (alone, mine))
                ]
                rest = [(u, c) for u, c in some if u != user]
                assert both[0].sum() <= both[1].sum() + len(rest)
            name = Texts.of([str(user)])
            kept = [
                [int(rule.pairs.users.read(f, rule.pairs.users.find(name))[0]) for f in range(2)]
                for rule in (together, alone)
                if rule.pairs.users.find(name)[0] >= 0
            ]
            assert len(kept) in (0, 2)
            assert kept[:1] == kept[1:]


# -- what is charged ---------------------------------------------------------------------------------------------------


def test_the_table() -> None:
    swapped, loose = Change(2, 2, 1), Change(2, 4, 1)
    assert moved_by("add_remove", "user").change == Change(1, 1, 1)
    assert moved_by("add_remove", "user").loose is None
    for found in (
        moved_by("replace", "user"),
        moved_by("add_remove", "event"),
        moved_by("add_remove", "user-period"),
        moved_by("add_remove", "user", full=True),
    ):
        assert (found.change, found.loose) == (swapped, loose)
    assert moved_by("add_remove", "user", categories=10).change == Change(10, 10, 1)
    assert moved_by("replace", "user", categories=10).change == Change(20, 20, 1)
    assert moved_by("replace", "user", categories=10).loose == Change(20, 40, 1)


@pytest.mark.parametrize(
    ("relation", "unit", "options"),
    [
        ("independent", "user", {}),
        ("replace", "event", {}),
        ("replace", "user-period", {}),
        ("replace", "user", {"full": True}),
        ("add_remove", "event", {"full": True}),
        ("add_remove", "event", {"categories": 2}),
        ("add_remove", "user-period", {"categories": 1}),
    ],
)
def test_what_nobody_proved_is_refused(relation: str, unit: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        moved_by(relation, unit, **options)


def test_golden_factors() -> None:
    """Of 2.1 and 2.2 at T = 4096: S_T, sqrt(m) S_T, against groups of m events; the exact swap value."""
    T = 4096
    f = np.cumprod(np.concatenate([[1.0], (2 * np.arange(1, T) - 1) / (2 * np.arange(1, T))]))
    S = float(f @ f)
    assert pytest.approx(3.71, abs=0.005) == S
    assert [round(m**0.5 * S, 2) for m in (4, 10)] == pytest.approx([7.43, 11.74], abs=0.01)
    assert [round(m * S, 2) for m in (4, 10)] == pytest.approx([14.86, 37.14], abs=0.01)
    for ticks, golden in ((365, 1.62), (4096, 1.70)):
        g = f[:ticks]
        norms = np.cumsum(g * g)
        S_T = float(norms[-1])
        # G[1,1] + G[t,t] - 2 G[1,t]: the square of a first tick against a later one
        swaps = [
            S_T + norms[ticks - t - 1] - 2 * float(g[t:] @ g[: ticks - t])
            for t in range(1, ticks, max(1, ticks // 400))
        ]
        assert max(swaps) / S_T == pytest.approx(golden, rel=0.01)
        if ticks == 365:  # planted bugs 1 and 24: a user who counts at ticks 1 and 2
            twice = S_T + norms[ticks - 2] + 2 * float(g[1:] @ g[:-1])
            assert twice / S_T == pytest.approx(3.57, rel=0.01)


def test_processes_get_what_is_proved_of_them() -> None:
    found = moved_by("replace", "user")
    setting = Setting(found.change, 10, 1, 2**30, loose=found.loose)
    assert {setting.for_process(name).change for name in ("bank", "tree", "sqrt", "epoch-tree")} == {Change(2, 2, 1)}


def test_pairs_are_kept_in_the_order_of_arrival() -> None:
    rule = FirstCategories(2, 4)
    cells = np.array([[3], [1], [3], [0]])
    assert rule.admit(owned_tick(["u"] * 4, cells, 1)).tolist() == [0, 1, 0, 1]
    assert rule.admit(owned_tick(["u"] * 4, cells, 2)).tolist() == [0, 0, 0, 0]
