"""A limit on labels that nobody listed: memory is bounded, what is shown is whole, one event decides about itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.selection import label_limit

_PROMISE = et.ApproxZCDP(4.0, 1e-6)
_MOST = 500


def _made(key: Any, **options: Any) -> Any:
    return et.UnknownHistogram(guarantee=_PROMISE, horizon=32, key=key, **{"max_labels": _MOST} | options)


def _flood(tick: int, size: int = 400) -> list[str]:
    """Three frequent labels, and very many that come in two ticks and never again."""
    once = [f"{t} {i}" for t in (tick - 1, tick) for i in range(size)]
    return [*(["tea"] * 90), *(["milk"] * 60), *(["salt"] * 40), *once]


def _table(mechanism: Any) -> dict[str, int]:
    table = mechanism._worker().table
    return dict(zip(table.labels.list(), table.counts.tolist(), strict=True))


def test_a_flood_leaves_memory_bounded_and_frequent_labels_whole() -> None:
    words, free = _made(et.simulation(3)), _made(et.simulation(3), max_labels=None)
    for tick in range(1, 25):
        released = words.step_events(_flood(tick))
        free.step_events(_flood(tick))
        if tick > 2:
            assert len(words._worker().table) <= _MOST + 800  # and the labels of one tick
    assert len(free._worker().table) > 9000
    assert len(words.snapshot()) < len(free.snapshot()) / 5
    assert list(released.value) == ["tea", "milk", "salt"]
    exact = _table(free)
    assert {label: exact[label] for label in _table(words)} == _table(words), "what is followed is whole"


def test_one_event_decides_about_its_own_label_alone() -> None:
    """streaming-selection 7.5: where both worlds see the same levels, the tables differ in the event's own label."""
    compared = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        stream = [_flood(tick, int(rng.integers(60, 260))) for tick in range(1, 9)]
        at, event = int(rng.integers(8)), f"{int(rng.integers(1, 9))} {int(rng.integers(300))}"
        ends = []
        for more in ([], [event]):
            words, levels = _made(et.simulation(seed)), []
            for tick, events in enumerate(stream):
                words.step_events(events + (more if tick == at else []))
                levels.append(words._worker().followed.level)
            ends.append((levels, _table(words)))
        (levels, without), (other, with_it) = ends
        if levels == other:
            compared += 1
            apart = {k: with_it.get(k, 0) - without.get(k, 0) for k in with_it.keys() | without.keys()}
            assert {label: n for label, n in apart.items() if n} in ({}, {event: 1})
    assert compared >= 10


def test_snapshots_go_on_with_the_same_labels() -> None:
    key = et.simulation(5)
    words, again = _made(key, sticky=True), _made(key, sticky=True, allow_copy=True)
    for tick in range(1, 12):
        here = words.step_events(_flood(tick)).value
        assert again.step_events(_flood(tick)).value == here
        again = et.restore(again.snapshot(), key=key, allow_copy=True)
        assert again.snapshot() == words.snapshot()
    assert words._worker().followed.level > 2


def test_users_of_pages_are_limited_alike() -> None:
    options: dict[str, Any] = {"guarantee": _PROMISE, "horizon": 32, "max_categories": 2}
    key = et.simulation(7)
    pages = et.UnknownDistinctUsers(key=key, max_labels=1000, **options)
    again = et.UnknownDistinctUsers(key=key, max_labels=1000, allow_copy=True, **options)
    for tick in range(1, 9):
        visits = [("home", 1000 * tick + i) for i in range(80)] + [
            (f"{tick} {i}", 10**6 * tick + i) for i in range(900)
        ]
        events, users = [page for page, _ in visits], [user for _, user in visits]
        released = pages.step_events(events, users=users)
        assert again.step_events(events, users=users).value == released.value
        again = et.restore(again.snapshot(), key=key, allow_copy=True)
        assert again.snapshot() == pages.snapshot()
        assert len(pages._engine.rule.labels) <= 1000 + 2 * 900
    assert pages._worker().followed.level > 1
    assert abs(released.value["home"] - 640) < 60


def test_what_the_noise_does_not_allow_is_refused() -> None:
    with pytest.raises(et.errors.ConfigurationError, match="max_labels=50 is less than the noise"):
        _made(et.simulation(1), max_labels=50)
    with pytest.raises(et.errors.ConfigurationError, match='max_labels belongs to mechanism="tree"'):
        _made(et.simulation(1), mechanism="meta")


def test_no_limit_leaves_the_noise_where_it_was() -> None:
    key = et.simulation(1)
    prints = [_made(key, max_labels=most, allow_copy=True).noise_fingerprint for most in (None, 500, 501)]
    assert len(set(prints)) == 3
    plain = et.UnknownHistogram(guarantee=_PROMISE, horizon=32, key=key, allow_copy=True)
    assert plain.noise_fingerprint == prints[0]


def test_no_more_labels_than_a_table_can_number() -> None:
    assert _made(et.simulation(1), max_labels=2**40).max_labels == 2**40
    with pytest.raises(et.ConfigurationError, match="max_labels"):
        _made(et.simulation(1), max_labels=2**40 + 1)


def test_the_level_rises_no_further_than_hashes_have_bits() -> None:
    """At the last level one bit of a hash is left to look at: a label can still pass."""
    words = _made(et.simulation(3))
    followed = words._worker().followed
    followed.rise(10**30, 0)
    assert followed.level == label_limit._FINEST - 1
    assert followed.look(1, 10**6) is None, "and does not rise again"
