"""Retention: the statements leave in a real table what the rule keeps, however often and however late they run."""

from __future__ import annotations

import sqlite3

from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.runtime.spec.types import Retention
from evertally.runtime.state.retention import dropped_where, thinned_through


def rule(full: int, every: int, more: int | None) -> Retention:
    """What a spec may say: at least what is kept in full is kept."""
    return Retention(full=full, every=every, keep=None if more is None else full + more)


def kept(tick: int, released: int, retention: Retention) -> bool:
    """Whether a tick is in the log once `released` ticks are out.

    >>> [tick for tick in range(1, 101) if kept(tick, 100, Retention(full=3, every=20, keep=50))]
    [60, 80, 98, 99, 100]
    """
    age = released - tick
    if retention.keep is not None and age >= retention.keep:
        return False
    return age < retention.full or (retention.every > 0 and tick % retention.every == 0)


RULES = st.builds(rule, full=st.integers(1, 30), every=st.integers(0, 12), more=st.none() | st.integers(0, 60))


def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE release (tick INTEGER, query TEXT, payload BLOB, PRIMARY KEY (tick, query))")
    return connection


def drop(connection: sqlite3.Connection, condition: str, values: tuple[int, ...]) -> None:
    connection.execute(f"DELETE FROM release WHERE {condition}", values)


def ticks(connection: sqlite3.Connection) -> list[int]:
    rows = connection.execute("SELECT tick, count(*) FROM release GROUP BY tick ORDER BY tick").fetchall()
    assert all(count == 2 for _, count in rows)
    return [tick for tick, _ in rows]


@settings(max_examples=150, deadline=None)
@given(RULES, st.lists(st.tuples(st.integers(1, 25), st.integers(0, 40), st.booleans()), min_size=1, max_size=8))
def test_the_table_holds_what_the_rule_keeps(rule: Retention, steps: list[tuple[int, int, bool]]) -> None:
    connection, released, swept, gone = table(), 0, 0, set[int]()
    for count, undelivered, restart in steps:
        for tick in range(released + 1, released + count + 1):
            connection.executemany("INSERT INTO release VALUES (?, ?, '')", [(tick, "a"), (tick, "b")])
        released += count
        not_after = max(0, released - undelivered)
        swept = 0 if restart else swept
        for condition, values in dropped_where(released, rule, not_after, swept):
            drop(connection, condition, values)
        swept = max(swept, thinned_through(released, rule, not_after))
        gone |= {tick for tick in range(1, not_after + 1) if not kept(tick, released, rule)}
        assert ticks(connection) == [tick for tick in range(1, released + 1) if tick not in gone]


@given(RULES, st.integers(1, 200), st.integers(0, 200))
def test_what_is_gone_stays_gone(rule: Retention, tick: int, age: int) -> None:
    """Nobody may wait for a tick that was dropped to come back, and the newest tick is always there."""
    assert kept(tick, tick, rule)
    assert kept(tick, tick + age, rule) or not kept(tick, tick + age + 1, rule)


def test_the_rule_of_a_spec_without_one_keeps_every_sixtieth_for_ever() -> None:
    rule = Retention(full=100_000, every=60, keep=None)
    assert [kept(tick, 10**9, rule) for tick in (59, 60, 899_999_999, 999_900_001)] == [False, True, False, True]
    assert dropped_where(100_000, rule, not_after=100_000) == []


def test_a_sweep_does_not_visit_what_is_kept_for_good() -> None:
    connection, rule = table(), Retention(full=10, every=5, keep=None)
    connection.executemany("INSERT INTO release VALUES (?, 'a', '')", [(tick,) for tick in range(5, 500_000, 5)])
    [(condition, values)] = dropped_where(500_011, rule, not_after=500_011, swept=500_000)
    visits = [0]
    connection.set_progress_handler(lambda: visits.append(1) and None, 1000)
    drop(connection, condition, values)
    assert sum(visits) < 5
    [(condition, values)] = dropped_where(500_011, rule, not_after=500_011)
    drop(connection, condition, values)
    assert sum(visits) > 100  # the same without a mark
