"""Replacing a user, by exhaustion (users-and-domains 1.2 and 11.1): what is charged, for every pair of users."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evertally.bounds.selection import L
from evertally.counting.sqrt_factor import sqrt_factor
from evertally.counting.tree import blocks
from evertally.privacy import Change, Contribution, Neighbours, change, replaced_user

Rows = np.ndarray  # one user: ticks x columns


def square_root(T: int) -> tuple[np.ndarray, float]:
    """G and what every column of R has at most."""
    r = sqrt_factor(T).r
    R = np.array([[r[t - s] if t >= s else 0 for s in range(T)] for t in range(T)], dtype=np.int64)
    G = R.T @ R
    return G, G.max()


def tree(T: int, radix: int) -> tuple[np.ndarray, float]:
    """The same of a tree: one row for each block, the block of tick t is [parent + 1, t]."""
    R = np.zeros((T, T), dtype=np.int64)
    for t in range(1, T + 1):
        below = blocks(t, radix)
        R[t - 1, (below[1] if len(below) > 1 else 0) : t] = 1
    return R.T @ R, L(T, radix)


def factors(T: int) -> list[tuple[np.ndarray, float]]:
    return [square_root(T), tree(T, 2), tree(T, 3)]


def users(T: int, rows: list[tuple[int, ...]], w: int) -> np.ndarray:
    """Everything that at most w events can be, each one of `rows` in some tick."""
    d = len(rows[0])
    events = [(t, row) for t in range(T) for row in rows]
    found = {np.zeros((T, d), dtype=np.int64).tobytes()}
    for chosen in itertools.combinations_with_replacement(events, w):
        user = np.zeros((T, d), dtype=np.int64)
        for t, row in chosen:
            user[t] += row
        found.add(user.tobytes())
    return np.array([np.frombuffer(user, dtype=np.int64).reshape(T, d) for user in sorted(found)])


def worst(everybody: np.ndarray, G: np.ndarray) -> int:
    """The largest ||R (x - y)||^2 over all pairs of users."""
    inner = np.einsum("iac,ab,jbc->ij", everybody, G, everybody, optimize=True)
    own = np.diag(inner)
    return int((own[:, None] + own[None, :] - 2 * inner).max())


def rows_of(d: int, b: int, m: int, signed: bool) -> list[tuple[int, ...]]:
    weights = (0, m, -m) if signed else (0, m)
    return [row for row in itertools.product(weights, repeat=d) if 0 < sum(x != 0 for x in row) <= b]


@pytest.mark.parametrize(
    ("T", "d", "b", "w", "m", "signed"),
    [
        (3, 2, 1, 2, 1, False),
        (4, 2, 1, 2, 1, False),
        (4, 3, 1, 1, 1, False),
        (3, 2, 1, 3, 1, False),
        (8, 1, 1, 2, 1, False),
        (4, 3, 2, 1, 2, False),
        (3, 3, 2, 2, 1, False),
        (4, 1, 1, 2, 1, True),
        (3, 2, 2, 1, 1, True),
        (3, 2, 1, 2, 1, True),
    ],
)
def test_no_pair_of_users_is_further_apart_than_is_charged(T, d, b, w, m, signed):
    contribution = Contribution(max_per_event=b, max_weight=m, signed=signed, unit="user", max_events_per_user=w)
    charged = change("replace", contribution, d)
    everybody = users(T, rows_of(d, b, m, signed), w)
    reached = 0.0
    for G, top in factors(T):
        found = worst(everybody, G)
        assert found <= charged.l2_squared * top
        reached = max(reached, found / (charged.l2_squared * top))
    apart = max(int(np.abs(x - y).sum()) for x in everybody for y in everybody) if len(everybody) < 200 else 0
    assert apart <= charged.l1
    if d >= 2 * b or signed:
        assert reached == pytest.approx(1.0)  # attained: the charge cannot be lower


def test_the_one_event_replacement_of_a_group_is_passed():
    """The trap of 1.2: old and new user need not share ticks. Planted bug 20, in closed form."""
    T, w = 8, 2
    one = change("replace", Contribution(), 1)  # min(2b, d) = 1
    everybody = users(T, [(1,)], w)
    G, top = tree(T, 2)
    assert worst(everybody, G) > one.group(w).l2_squared * top
    # the square root at T = 365: an event at tick 1 against one at tick 0.8 T
    r = sqrt_factor(365).r.astype(object)
    late = 292
    shift = np.array(r)
    shift[late - 1 :] -= np.array(r)[: 365 - late + 1]
    assert round(sum(int(x) ** 2 for x in shift) / sum(int(x) ** 2 for x in r), 2) == 1.62


@pytest.mark.parametrize(("A", "w", "T"), [(1, 1, 3), (2, 1, 3), (1, 2, 3), (2, 2, 2)])
def test_means(A, w, T):
    """Rows (v, A): inner products are not negative, so twice; attained."""
    removed = Change(2 * A, 2 * A * A, A).group(w)
    charged = replaced_user(removed, 4 * w * A, signs=False)
    assert charged == Change(4 * w * A, 4 * w * w * A * A, 4 * w * A)
    everybody = users(T, [(v, A) for v in range(-A, A + 1)], w)
    found = [worst(everybody, G) / (charged.l2_squared * top) for G, top in factors(T)]
    assert max(found) == pytest.approx(1.0)
    assert max(found) <= 1.0


def test_a_gram_matrix_with_signs_needs_four_times():
    """R = ((1, -1)): two users, one event in each tick: what they do adds up."""
    contribution = Contribution(unit="user", max_events_per_user=1)
    everybody = users(2, [(1,)], 1)
    G = np.array([[1, -1], [-1, 1]])
    assert worst(everybody, G) == 4 > change("replace", contribution, 1).l2_squared
    assert worst(everybody, G) <= change("replace", contribution, 1, cancels=False).l2_squared == 4


def test_the_table_of_the_specification():
    def user(**bounds):
        return Contribution(unit="user", max_events_per_user=3, **bounds)

    assert change("replace", user(max_per_event=2, max_weight=5), 9) == Change(2 * 2 * 15, 2 * 2 * 225, 30)
    assert change("replace", user(max_per_event=2, max_weight=5), 2) == Change(2 * 2 * 15, 2 * 2 * 225, 30)
    assert change("replace", user(max_per_event=2, max_weight=5, signed=True), 9) == Change(60, 4 * 2 * 225, 60)
    # what streams of earlier versions pay
    assert change("replace", user(in_steps=True), 9) == Change(12, 72, 6)
    # the group size that partitions read off linf
    event = change(Neighbours.REPLACE, Contribution(max_weight=5), 9)
    assert change("replace", user(max_weight=5), 9).linf // event.linf == 2 * 3
