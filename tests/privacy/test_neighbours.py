"""Sensitivities against brute force over small universes (factorization-counting 6.3)."""

import itertools
from collections.abc import Callable, Iterable

import pytest

from evertally.errors import ConfigurationError
from evertally.privacy import Change, Contribution, Neighbours, change

Row = tuple[int, ...]
Item = tuple[int, int]  # label, weight

ADD_REMOVE, REPLACE, INDEPENDENT = Neighbours.ADD_REMOVE, Neighbours.REPLACE, Neighbours.INDEPENDENT


def largest(differences: Iterable[Row]) -> Change:
    norms = [(sum(map(abs, v)), sum(x * x for x in v), max(map(abs, v))) for v in differences]
    return Change(*(max(column) for column in zip(*norms, strict=True)))


def within(found: Change, claimed: Change) -> bool:
    return found.l1 <= claimed.l1 and found.l2_squared <= claimed.l2_squared and found.linf <= claimed.linf


def minus(x: Row, y: Row) -> Row:
    return tuple(a - b for a, b in zip(x, y, strict=True))


def legal_rows(u: int, b: int, w: int, signed: bool) -> list[Row]:
    weights = range(-w if signed else 0, w + 1)
    return [row for row in itertools.product(weights, repeat=u) if sum(x != 0 for x in row) <= b]


EVENTS = [
    (u, b, w, signed)
    for u in range(1, 5)
    for b in range(1, u + 2)
    for w in (1, 2)
    for signed in (False, True)
    if (2 * w + 1 if signed else w + 1) ** u <= 100
]


@pytest.mark.parametrize(("u", "b", "w", "signed"), EVENTS)
def test_whole_events(u, b, w, signed):
    rows = legal_rows(u, b, w, signed)
    contribution = Contribution(max_per_event=b, max_weight=w, signed=signed)
    assert change(ADD_REMOVE, contribution, u) == largest(rows)
    assert change(REPLACE, contribution, u) == largest(minus(x, y) for x in rows for y in rows)


# One item of an event. An event is a set of items; an unsigned event has each label once, a signed one may
# hold both signs of a label.


def item_events(u: int, signed: bool) -> list[frozenset[Item]]:
    items = [(label, sign) for label in range(u) for sign in ((1, -1) if signed else (1,))]
    return [frozenset(c) for size in range(len(items) + 1) for c in itertools.combinations(items, size)]


def row_of(items: Iterable[Item], u: int) -> Row:
    row = [0] * u
    for label, weight in items:
        row[label] += weight
    return tuple(row)


def item_steps(
    events: list[frozenset[Item]], relation: Neighbours
) -> Iterable[tuple[frozenset[Item], frozenset[Item]]]:
    everything = frozenset().union(*events)
    for event in events:
        for item in event:
            yield event, event - {item}
            if relation is REPLACE:
                for other in everything:
                    yield event, event - {item} | {other}


def item_change(u: int, signed: bool, relation: Neighbours, cut: Callable[[frozenset[Item]], Iterable[Item]]) -> Change:
    steps = item_steps(item_events(u, signed), relation)
    return largest(minus(row_of(cut(x), u), row_of(cut(y), u)) for x, y in steps)


@pytest.mark.parametrize("u", [1, 2, 3, 4])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_one_item_without_truncation(u, signed, relation):
    contribution = Contribution(max_per_event=2 * u, signed=signed, protects="item", truncated=False, merged=False)
    assert change(relation, contribution, u) == item_change(u, signed, relation, lambda event: event)


@pytest.mark.parametrize(("u", "b"), [(u, b) for u in range(1, 5) for b in range(1, 4)])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_one_item_when_events_are_truncated(u, b, signed, relation):
    contribution = Contribution(max_per_event=b, signed=signed, protects="item", merged=False)
    claimed = change(relation, contribution, u)
    found = item_change(u, signed, relation, lambda event: sorted(event)[:b])
    assert within(found, claimed)
    if b < u and not signed:
        assert found == claimed
    if b < 2 * u and signed:
        # Ranking both signs of a label next to each other is the worst order.
        assert found.l2_squared == claimed.l2_squared == 4


def test_removing_one_of_b_plus_one_items_moves_two_columns():
    assert item_change(3, False, ADD_REMOVE, lambda event: sorted(event)[:2]) == Change(2, 2, 1)
    assert change(ADD_REMOVE, Contribution(max_per_event=2, protects="item"), 3) == Change(2, 2, 1)


@pytest.mark.parametrize("w", [2, 3])
@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_one_weighted_item_when_events_are_truncated(w, b, relation):
    """An item is a label with its merged weight, replaced by the same label or by one that is not there."""
    u = 3
    rows = list(itertools.product(range(w + 1), repeat=u))

    def cut(row: Row) -> Row:
        kept = [label for label in range(u) if row[label]][:b]
        return tuple(row[label] if label in kept else 0 for label in range(u))

    def steps() -> Iterable[Row]:
        for row in rows:
            for label in range(u):
                emptied = (*row[:label], 0, *row[label + 1 :])
                yield minus(cut(row), cut(emptied))
                for other in range(u):
                    if relation is REPLACE and emptied[other] == 0:
                        for weight in range(w + 1):
                            new = (*emptied[:other], weight, *emptied[other + 1 :])
                            yield minus(cut(row), cut(new))

    claimed = change(relation, Contribution(max_per_event=b, max_weight=w, protects="item", merged=False), u)
    assert largest(steps()) == claimed == Change(2 * w, 2 * w * w, w)


MERGED = [
    (u, b, w, signed)
    for u in range(1, 5)
    for b in range(1, u + 1)
    for w in (1, 2, 3)
    for signed in (False, True)
    if (2 * w + 1 if signed else w + 1) ** u <= 130
]


@pytest.mark.parametrize(("u", "b", "w", "signed"), MERGED)
@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_one_item_when_items_merge_in_their_columns(u, b, w, signed, truncated, relation):
    """Items of any weight are added per column, then clipped, then cut: what a door does."""
    weights = range(-w if signed else 0, w + 1)

    def cut(row: Row) -> Row:
        kept = [label for label in range(u) if row[label]][: b if truncated else u]
        return tuple(row[label] if label in kept else 0 for label in range(u))

    def moved(row: Row, column: int, weight: int) -> Row:
        return (*row[:column], weight, *row[column + 1 :])

    def without_item(row: Row, column: int) -> Iterable[Row]:
        return (moved(row, column, x) for x in weights if signed or x <= row[column])

    def with_item(row: Row, column: int) -> Iterable[Row]:
        return (moved(row, column, x) for x in weights if signed or x >= row[column])

    def differences() -> Iterable[Row]:
        for row in itertools.product(weights, repeat=u):
            for shorter in (x for column in range(u) for x in without_item(row, column)):
                yield minus(cut(row), cut(shorter))
                if relation is REPLACE:
                    for other in (x for column in range(u) for x in with_item(shorter, column)):
                        yield minus(cut(row), cut(other))

    contribution = Contribution(max_per_event=b, max_weight=w, signed=signed, protects="item", truncated=truncated)
    claimed, found = change(relation, contribution, u), largest(set(differences()))
    if truncated and b == u and not signed:  # the cut never bites, which the bound does not use
        assert within(found, claimed)
    else:
        assert found == claimed


def test_an_order_that_depends_on_the_whole_event_breaks_the_item_bound():
    """Why `Contribution` asks for a rank that is a function of the label alone."""

    def cut(event: frozenset[Item]) -> list[Item]:
        return sorted(event, reverse=len(event) % 2 == 0)[:2]

    assert item_change(4, False, ADD_REMOVE, cut).l2_squared == 4
    assert change(ADD_REMOVE, Contribution(max_per_event=2, protects="item"), 4).l2_squared == 2


# Users


@pytest.mark.parametrize("signed", [False, True])
def test_users_are_groups(signed):
    u, b, w = 3, 2, 2
    event = Contribution(max_per_event=b, signed=signed)
    user = Contribution(max_per_event=b, signed=signed, unit="user", max_events_per_user=w)
    assert change(ADD_REMOVE, user, u) == change(ADD_REMOVE, event, u).group(w)
    # All of a user's events in one tick: the bound is reached.
    steps = legal_rows(u, b, 1, signed)
    sums = (tuple(map(sum, zip(*events, strict=True))) for events in itertools.product(steps, repeat=w))
    assert largest(sums) == change(ADD_REMOVE, user, u)


@pytest.mark.parametrize("w", [1, 2])
def test_a_user_whose_events_lie_in_other_ticks_needs_twice_the_group(w):
    """price-of-continual-release 9.5: moved rows shift more nodes than w replaced ones; users-and-domains 1.2: at most
    twice as far, in squares, as a user who is there or not."""
    levels = 2  # a binary tree over 3 ticks releases the nodes {1}, {1,2}, {3}
    nodes = [(1, 0, 0), (1, 1, 0), (0, 0, 1)]

    def squared_shift(ticks: Row) -> int:
        return sum(sum(n * x for n, x in zip(node, ticks, strict=True)) ** 2 for node in nodes)

    # The w events of one user leave tick 1, and the w events of the other arrive in tick 3 (one column).
    moved = squared_shift((w, 0, -w))
    charge = Contribution(unit="user", max_events_per_user=w)
    assert moved == 3 * w * w > levels * w * w
    assert moved <= levels * change(REPLACE, charge, 1).l2_squared


# Independent columns


@pytest.mark.parametrize("u", [1, 2, 3])
@pytest.mark.parametrize(("signed", "w"), [(False, 1), (False, 2), (True, 1)])
def test_independent_columns_change_in_their_own_ticks(u, signed, w):
    ticks = 2
    values = range(-w if signed else 0, w + 1)
    changes = [(tick, a - b) for tick in range(ticks) for a in values for b in values]  # one column: where, by how much

    def cells(per_column: tuple[tuple[int, int], ...]) -> Row:
        grid = [0] * (ticks * u)
        for column, (tick, height) in enumerate(per_column):
            grid[tick * u + column] = height
        return tuple(grid)

    contribution = Contribution(max_per_event=u, max_weight=w, signed=signed)
    assert change(INDEPENDENT, contribution, u) == largest(map(cells, itertools.product(changes, repeat=u)))


@pytest.mark.parametrize(
    "contribution",
    [
        Contribution(max_per_event=2),
        Contribution(max_per_event=3, unit="user", max_events_per_user=2),
        Contribution(max_per_event=3, protects="item"),
    ],
)
def test_independent_neighbours_refuse_what_is_not_proved(contribution):
    with pytest.raises(ConfigurationError, match="independent"):
        change(INDEPENDENT, contribution, 3)


# Values and mistakes


def test_parse():
    for relation in Neighbours:
        assert Neighbours.parse(relation) is Neighbours.parse(relation.value) is relation
    for bad in ("swap", "", None, 1):
        with pytest.raises(ConfigurationError, match="add_remove"):
            Neighbours.parse(bad)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_per_event": 0},
        {"max_per_event": 1.5},
        {"max_weight": True},
        {"protects": "row"},
        {"unit": "person"},
        {"unit": "user"},
        {"unit": "user", "max_events_per_user": 0},
        {"max_events_per_user": 3},
        {"unit": "user", "max_events_per_user": 3, "protects": "item"},
    ],
)
def test_wrong_contributions_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        Contribution(**wrong)


def test_wrong_columns_and_groups_are_refused():
    for bad in (0, -1, 2.0, None):
        with pytest.raises(ConfigurationError, match="columns"):
            change(ADD_REMOVE, Contribution(), bad)
        with pytest.raises(ConfigurationError, match="group"):
            Change(1, 1, 1).group(bad)
