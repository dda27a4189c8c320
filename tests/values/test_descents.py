"""Descents through a large domain: they read what was released and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evertally as et
from conformance.hostile import GARBAGE
from evertally.checks import checks
from evertally.checks.subject import Subject
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.values.descent import Walker

SHARES = (0.25, 0.5, 0.9)


def large(key: Any, **options: Any) -> et.ValueQuantile:
    given = {"bits": 12, "fanout": 16, "q": SHARES, "guarantee": et.ZCDP(0.5), "horizon": 6}
    return et.ValueQuantile(**(given | options), key=key)


def _values(ticks: int) -> list[list[float]]:
    return [[float((37 * t + i * i) % 4000) for i in range(50)] for t in range(ticks)]


def _seen(inputs: list[list[float]]) -> list[list[float]]:
    return [[x for tick in inputs[: t + 1] for x in tick] for t in range(len(inputs))]


def _ranks(value: Any, seen: list[float]) -> np.ndarray:
    answers = list(value.values()) if isinstance(value, dict) else list(value)
    pairs = zip(SHARES, answers, strict=True)
    values = np.array(seen)
    return np.array([max(0, q * len(seen) - np.sum(values <= x), np.sum(values < x) - q * len(seen)) for q, x in pairs])


SUBJECT = Subject(
    name="ValueQuantile(12 bits)",
    make=large,
    feed=_values,
    truth=_seen,
    garbage=GARBAGE,
    wrong_calls=[7, None],
    ticks=4,
    independent_numbers=False,
    error=_ranks,
    bound=lambda mechanism, beta, t: 6 * float(mechanism.error_bound(beta=beta, tick=t)),  # a prefix for each level
    growth=16 * 50 + 64,  # what occurred, and how often
    runs=40,
)
ADDRESSES = "check_noise_sees_no_data"  # which follow from what was released: below


@pytest.mark.parametrize("check", [c for c in checks.CHECKS if c.__name__ != ADDRESSES], ids=lambda c: c.__name__)
def test_conformance(check: Any) -> None:
    check(SUBJECT)


def played(ticks: list[list[float]]) -> tuple[list[Any], list[Any], list[Any]]:
    recording = Recording(simulation(10))
    mechanism = large(recording, guarantee=et.ZCDP(200))
    rows = []
    values = []
    for tick in ticks:
        values.append(mechanism.step(tick).value)
        rows.append(mechanism._kept.played.recent[-1])
    return values, rows, recording.draws


def test_what_is_read_follows_from_what_was_released() -> None:
    """A value moves to another leaf below a node that no descent reads: the same releases, and the same draws."""
    ticks = [[*values, *[4001.0] * 3] for values in _values(6)]
    values, rows, draws = played(ticks)
    form: Any = large(simulation(10), guarantee=et.ZCDP(200))._form
    read = {code for row in rows for code in form._nodes(row)}
    assert form.tree.code((2, 4001 // 16)) not in read
    moved = [[4007.0 if x == 4001.0 else x for x in tick] for tick in ticks]
    other_values, other_rows, other_draws = played(moved)
    assert other_values == values
    assert np.array_equal(rows, other_rows)
    assert other_draws == draws


def test_the_same_walk_follows_from_the_released_row_alone() -> None:
    """Whoever has the row finds the nodes that were read: each is where a descent over released numbers goes."""
    mechanism = large(simulation(11))
    for tick in _values(6):
        mechanism.step(tick)
        row, form = mechanism._kept.played.recent[-1], mechanism._form
        read = form._nodes(row)  # type: ignore[attr-defined]
        tree = form.tree  # type: ignore[attr-defined]
        radii = tree.radii(mechanism._engine.accuracy(mechanism.tick), 0.05)
        visited = set()
        for q in SHARES:
            for side in ("answer", "lowest", "highest"):
                walker, total = Walker(q, side), float(tree.children.prefixes(read[0])[-1])  # type: ignore[arg-type]
                for level in range(tree.levels):
                    code = tree.code((level, walker.number))
                    visited.add(code)
                    walker.step(tree.children.prefixes(read[code]), total, radii(q, level))
        assert visited == set(read)


def test_an_empty_subtree_is_descended_like_any_other() -> None:
    """Trap 15: nothing stops where nothing occurred."""
    empty, full = large(simulation(12)), large(simulation(12), name="other")
    shapes = [one.step(values).value.keys() for one, values in ((empty, []), (full, [5.0] * 1000))]
    assert shapes[0] == shapes[1]
    assert empty._kept.played.recent.shape == full._kept.played.recent.shape


def test_intervals_of_other_probabilities_are_coarser_never_wrong() -> None:
    mechanism = large(simulation(13))
    release = mechanism.step([float(x) for x in range(4000)])
    ends = [release.interval(beta) for beta in (0.5, 0.2, 0.05, 0.01, 1e-6)]
    for (narrow_low, narrow_high), (low, high) in zip(ends, ends[1:], strict=False):  # noqa: RUF007
        assert all(low[q] <= narrow_low[q] and narrow_high[q] <= high[q] for q in SHARES)


def test_restored_descents_go_on() -> None:
    for mechanism in ("bank", "tree", "honaker", "sqrt"):
        one = large(simulation(14), mechanism=mechanism, horizon=12)
        one.run(_values(3))
        again = et.restore(one.snapshot(), key=simulation(14), allow_copy=True)
        assert [again.step(v).value for v in _values(4)] == [one.step(v).value for v in _values(4)]


def test_users() -> None:
    one = large(ZeroNoise(), unit="user", max_events_per_user=2, q=[1.0])
    release = one.step_events([5, 6, 7, 1], users=["ann", "ann", "ann", "bob"])
    assert release.value == {1.0: 6.0}


@pytest.mark.parametrize("mechanism", ["bank", "tree", "honaker", "sqrt"])
def test_the_noise_of_a_node_does_not_depend_on_what_else_is_read(mechanism: str) -> None:
    one = large(simulation(15), mechanism=mechanism)
    one.run(_values(4))
    engine: Any = one._engine
    state = one._kept.played.state
    alone = engine._read(state, 2, [7], 4)
    together = engine._read(state, 2, [0, 7, 200], 4)
    assert np.array_equal(alone[7], together[7])
    assert not np.array_equal(together[0], together[200])
    # Where nothing occurred there is noise as everywhere else.
    assert np.all(engine._exact(state, 2, 255) == 0)
    assert np.any(engine._read(state, 2, [255], 4)[255] != 0)
