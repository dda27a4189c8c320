"""Count sketches against plain models: tables, estimates, users, intervals, refused configurations."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sketch_models import table_of

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.sketches.medians import median_factor, share_of_rows

EXACT = ZeroNoise()


def made(key: Any = EXACT, **options: Any) -> Any:
    defaults: dict[str, Any] = {"rows": 3, "width": 32, "guarantee": et.ZCDP(0.5), "horizon": 50}
    return et.CountSketch(key=key, **(defaults | options))


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signs", [True, False])
def test_without_noise_the_table_is_the_exact_sketch_of_all_spellings(signs: bool) -> None:
    sketch = made(signs=signs, max_weight=4)
    ticks = [
        ["fig", "fig", 7, 7.0, "7", b"fig", True, None, float("nan"), ""],
        [{"fig": 3}, {"fig": 9, "x": 0}, ["lime"]],
    ]
    sketch.step_events(ticks[0])
    table = sketch.step_events(ticks[1]).table
    assert (table == table_of(sketch, {"fig": 3 + 3 + 4, "7": 3, "true": 1, "": 1, "lime": 1})).all()


def test_columns_of_all_kinds_give_one_table() -> None:
    labels = [f"label {i % 17}" for i in range(100)]
    expected = made().step_events(labels).table
    columns = [np.array(labels), pa.array(labels), pa.array(labels).dictionary_encode(), [[label] for label in labels]]
    for column in [*columns, pa.array([[label] for label in labels]), [{label: 1} for label in labels]]:
        for several in (1, 2):
            assert (made(max_per_event=several).step_events(column).table == expected).all()
    assert (made().run([labels, []])[-1] == expected).all()


@pytest.mark.parametrize("arrow", [False, True])
def test_long_events_are_merged_clipped_and_cut_one_by_one(arrow: bool) -> None:
    """Lists take a fast path; mappings are looked at one by one. Both make the same rows, event by event."""
    dice = np.random.default_rng(1)
    lists = [[f"l{i}" for i in dice.integers(0, 40, size)] for size in dice.integers(0, 9, 60)]
    sketch = made(max_per_event=3, max_weight=2, width=8)
    door = sketch._door
    row = door.events(pa.array(lists) if arrow else lists, 5)
    expected = np.zeros_like(row)
    for one in lists:
        event = np.zeros_like(row)
        for label, weight in door.reader.row(dict(Counter(one)), 5).items():
            event += weight * table_of(sketch, {label: 1}).ravel()
        expected += np.clip(event, -2, 2)
    assert (row == expected).all()
    mapped = sum(door.events([dict(Counter(one))], 5) for one in lists)
    assert (row == mapped).all()


# -- users -------------------------------------------------------------------------------------------------------------


class OnceModel:
    """In every row the first buckets of each user, each once, by sets."""

    def __init__(self, sketch: Any, most: int) -> None:
        self.sketch, self.most = sketch, most
        self.table = np.zeros(sketch.rows * sketch.width, dtype=np.int64)
        self.used: dict[tuple[str, int], set[int]] = {}

    def take(self, label: str, user: str) -> None:
        for cell in np.flatnonzero(alone := table_of(self.sketch, {label: 1}).ravel()).tolist():
            used = self.used.setdefault((user, cell // self.sketch.width), set())
            if cell not in used and len(used) < self.most:
                used.add(cell)
                self.table[cell] += alone[cell]


def test_users_count_once_in_a_bucket_through_restarts_and_odd_names() -> None:
    dice = np.random.default_rng(2)
    sketch = made(width=5, unit="user", max_labels_per_user=3)
    assert sketch.sensitivity == et.privacy.Change(9, 9, 1)
    model = OnceModel(sketch, 3)
    users: list[Any] = ["ann", "bob", 7, "7", None, ["ann", "bob"], float("nan"), "cafe\u0301", "caf\u00e9"]
    names = ["ann", "bob", "7", "7", None, None, None, "caf\u00e9", "caf\u00e9"]
    for _ in range(12):
        picked = dice.integers(0, len(users), 8)
        labels = [f"l{i}" for i in dice.integers(0, 9, 8)]
        for label, i in zip(labels, picked.tolist(), strict=True):
            if names[i] is not None:
                model.take(label, str(names[i]))
        sketch = et.restore(sketch.snapshot(), key=EXACT)
        release = sketch.step_events(labels, users=[users[i] for i in picked])
        assert (release.table.ravel() == model.table).all()
    assert release.about == "what the rule for users kept: of each user at most 3 labels count, each once"


def test_other_users_change_nothing_of_what_counts_of_one() -> None:
    dice = np.random.default_rng(3)
    events = [[(f"l{i}", f"u{u}") for i, u in dice.integers(0, 6, (9, 2)).tolist()] for _ in range(6)]

    def total(kept: Any) -> Any:
        sketch = made(width=4, unit="user", max_labels_per_user=2)
        for tick in events:
            mine = [pair for pair in tick if kept(pair[1])]
            release = sketch.step_events([label for label, _ in mine], users=[user for _, user in mine])
        return release.table

    parts = [total(lambda user, i=i: user == f"u{i}") for i in range(6)]
    assert (sum(parts) == total(lambda user: True)).all()
    assert all(np.abs(part).max() <= 1 and (np.abs(part).sum(axis=1) <= 2).all() for part in parts)


def test_capped_users() -> None:
    sketch = made(unit="user", max_events_per_user=2, watch=["a", "b"])
    assert sketch.step_events(["a", "a", "a", "b"], users=["x", "x", "x", "y"]).value == {"a": 2, "b": 1}
    assert sketch.step_events(["a", "b", "b"], users=["x", "y", "y"]).value == {"a": 2, "b": 2}
    assert sketch.sensitivity.l2_squared == 3 * 4


# -- estimates ---------------------------------------------------------------------------------------------------------


def test_any_label_at_any_tick_from_release_and_mechanism() -> None:
    sketch = made(width=512, watch=["fig"], max_window=3)
    with pytest.raises(ConfigurationError, match="take a step first"):
        sketch.estimate("fig")
    first = sketch.step_events(["fig"] * 20 + [7] * 5)
    assert (first.value, first.estimate(7).value, first.estimate("nobody").value) == ({"fig": 20}, 5, 0)
    sketch.step_events(["fig"] * 3)
    assert (sketch.estimate("fig").value, first.estimate("fig").value) == (23, 20)
    assert {label: one.value for label, one in sketch.estimates(["fig", 7.0, b"fig"]).items()} == {
        "fig": 23, 7.0: 5, b"fig": 23
    }  # fmt: skip
    assert sketch.last(1).value == {"fig": 3}
    assert sketch.last(1).estimate("fig").value == 3
    with pytest.raises(ConfigurationError, match="a label is"):
        first.estimate(None)
    with pytest.raises(ConfigurationError, match="in a list"):
        first.estimates("fig")


def test_a_sketch_without_signs_takes_off_what_others_have_on_average() -> None:
    dice = np.random.default_rng(4)
    labels = [f"l{i}" for i in dice.integers(0, 400, 20_000)]
    release = made(signs=False, width=64).step_events(labels)
    counts = Counter(labels)
    errors = [release.estimate(label).value - counts[label] for label in list(counts)[:60]]
    # In one row the others of a bucket add 50 sqrt(6) = 120 more or less, on top of 310 on average.
    assert abs(np.mean(errors)) < 60
    assert release.table.mean() == 20_000 / 64


def test_the_noise_of_a_median_and_its_share() -> None:
    # users-and-domains 5.1: c_R = 1, 1.160, 1.198, 1.214, 1.223
    golden = {1: 1.0, 3: 1.160, 5: 1.198, 7: 1.214, 9: 1.223}
    for rows, expected in golden.items():
        assert math.sqrt(rows) * median_factor(rows) == pytest.approx(expected, abs=5e-4)
        share = share_of_rows(rows, 0.05)
        off = sum(math.comb(rows, j) * share**j * (1 - share) ** (rows - j) for j in range((rows + 1) // 2, rows + 1))
        assert off == pytest.approx(0.05)
    flat = et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, mechanism="sqrt", key=et.simulation(0)).stddev(4096)
    assert flat == pytest.approx(3.71, abs=0.02)
    small = made(key=et.simulation(0), rows=5, width=2, horizon=4096, mechanism="sqrt", watch=["a"])
    assert small.stddev(4096) == pytest.approx(1.198 * flat, rel=0.01)
    assert made(guarantee=et.PureDP(1), watch=["a"], key=et.simulation(0)).stddev(9) is None


def test_intervals_cover_noise_and_collisions_and_use_released_numbers_alone() -> None:
    """Narrow tables, so that collisions matter. With coverage 95 % of 1200 labels, 900 are missed by bad luck only."""
    counts = {f"l{i}": 4000 // (i + 1) for i in range(300)}
    inside = wide = 0
    for seed in range(30):
        sketch = made(key=et.simulation(seed), rows=5, width=128, max_weight=4000, guarantee=et.ZCDP(1e7))
        release = sketch.step_events([{label: n} for label, n in counts.items()])
        asked = release.estimates(list(counts)[:40])
        ends = {label: one.interval(0.05) for label, one in asked.items()}
        inside += sum(low <= counts[label] <= high for label, (low, high) in ends.items())
        wide += sum(high - low for low, high in ends.values())
        again = et.restore(sketch.snapshot(), key=et.simulation(seed), allow_copy=True)
        assert again.estimate("l0").interval() == asked["l0"].interval()
        assert asked["l0"].collisions < asked["l9"].collisions  # the largest label is not its own collision
    assert inside >= 0.95 * 1200
    assert wide / 1200 < 400  # ||f||/sqrt(width) is 450: most buckets hold less


def test_reference_run_at_a_tenth_of_its_size() -> None:
    """users-and-domains 5.1: rmse of the top 200 of a Zipf law, R = 5; the full size is benchmarks/sketches.py."""
    dice = np.random.default_rng(5)
    weights = 1 / np.arange(1, 10**5 + 1) ** 1.1
    counts = dice.multinomial(10**5, weights / weights.sum())
    events = np.repeat(np.arange(len(counts)), counts)
    errors = {}
    for width in (1638, 6554):
        release = made(rows=5, width=width).step_events(events)
        found = np.array([one.value for one in release.estimates(range(200)).values()])
        errors[width] = float(np.sqrt(np.mean((found - counts[:200]) ** 2)))
    # At the full size 6 to 7 and 1.3 for widths ten times these: counts and widths are a tenth, so about sqrt(1/10) x.
    assert errors[6554] < 3 < errors[1638] < 12


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 4}, "rows is odd"),
        ({"rows": 0}, "rows"),
        ({"width": 2**26, "rows": 3}, "more than 2\\^26"),
        ({"max_weight": 2**31}, "max_weight"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(1, adversary="oblivious")}, "add_remove"),
        ({"watch": "fig"}, "watch is a list"),
        ({"watch": ["fig", "fig"]}, "declared twice"),
        ({"max_labels_per_user": 3}, 'for unit="user"'),
        ({"unit": "user"}, "max_events_per_user"),
        ({"unit": "user", "max_labels_per_user": 3, "max_events_per_user": 2}, "leave out"),
        ({"unit": "user", "max_labels_per_user": 0}, "max_labels_per_user"),
        ({"unit": "user-period"}, "period"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        made(**options)


def test_one_user_for_each_event() -> None:
    sketch = made(unit="user", max_labels_per_user=1)
    with pytest.raises(TypeError, match="one user for each event"):
        sketch.step_events(["a"])
    with pytest.raises(TypeError, match="differ in length"):
        sketch.step_events(["a"], users=[])
    with pytest.raises(ConfigurationError, match="declare watch"):
        made().run([["a"]], full=True)
    assert made(watch=["a"]).run([["a"], []], full=True).column("value").to_pylist() == [1, 1]


def test_in_a_stream() -> None:
    stream = et.Stream("s", guarantee=et.ZCDP(1), horizon=9, unit="user", key=et.simulation(0))
    sketch = stream.add(et.CountSketch, share=0.5, width=64, max_labels_per_user=2)
    assert sketch.step_events(["a"], users=["x"]).tick == 1
    assert len(sketch.hash_key) == 32
