"""Present items against a plain model, golden values, all short paths, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.counting.centred import CentredPath
from evertally.counting.path_factor import FINENESS, path_factor
from evertally.counting.runs import Presence, centred, uncentred
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, PureDP

Record = tuple[Any, ...]


def present(ticks: Sequence[Sequence[Any]], copies: bool, most: int | None) -> list[int]:
    """How many items are present after each tick, by a dictionary."""
    state: dict[str, int] = {}
    flips: dict[str, int] = {}
    seen = []
    for records in ticks:
        now = dict(state)
        for action, _, name in records:
            there = now.get(name, 0)
            if action == "insert":
                now[name] = there + 1 if copies else 1
            elif action == "delete":
                now[name] = max(0, there - 1)
        for name, there in now.items():
            if most is None or flips.get(name, 0) < most:
                flips[name] = flips.get(name, 0) + ((there > 0) != (state.get(name, 0) > 0))
                state[name] = there
        seen.append(sum(there > 0 for there in state.values()))
    return seen


def made(horizon: int | None = 12, **options: Any) -> et.PresentItems:
    given: dict[str, Any] = {"guarantee": ZCDP(0.5), "key": ZeroNoise()} | options
    return et.PresentItems(horizon=horizon, **given)


@pytest.mark.parametrize("semantics", ["set", "copies"])
@pytest.mark.parametrize("most", [None, 1, 2, 5])
def test_without_noise_it_is_the_count(semantics: str, most: int | None) -> None:
    rng = np.random.default_rng(most)
    ticks = [
        [(str(rng.choice(["insert", "delete"])), None, f"item {rng.integers(0, 4)}") for _ in range(rng.integers(0, 6))]
        for _ in range(12)
    ]
    truth = present(ticks, semantics == "copies", most)
    options: dict[str, Any] = {"semantics": semantics, "max_flips": most}
    noise = [[("vanish", None, "item 1"), None, 7.5, ("insert", None, None), ("insert", None, "x" * 5000)], []]
    noisy = [[*records, *noise[t % 2]] for t, records in enumerate(ticks)]
    assert made(**options).run(noisy).tolist() == truth
    part = made(**options)
    for records, exact in zip(ticks, truth, strict=True):
        assert part.step_events(records).value == exact
        if rng.random() < 0.5:
            part = et.restore(part.snapshot(), key=ZeroNoise())


def test_two_columns_of_names() -> None:
    seats = made()
    assert seats.step_events(["a", "b"], deleted=[]).value == 2
    assert seats.step_events([], deleted=["a", "nobody"]).value == 1
    assert seats.step_events(["a"], deleted=["a"]).value == 1  # comes and goes within a tick: no flip


@pytest.mark.parametrize(
    ("flips", "golden"), [(2, 4.87), (8, 7.65), (32, 12.19), (128, 18.8), (512, 27.0), (None, 32.5)]
)
def test_golden_factors(flips: int | None, golden: float) -> None:
    """users-and-domains 2.5, T = 4096."""
    rho = 1e-4
    worst = made(4096, max_flips=flips, guarantee=ZCDP(rho)).worst_stddev()
    assert worst is not None
    assert worst * math.sqrt(2 * rho) == pytest.approx(golden, rel=0.01)


def _all_paths(flips: int, ticks: int) -> np.ndarray:
    """Paths that begin at 0 and change at most so often."""
    paths = np.array(list(product([0, 1], repeat=ticks)), dtype=np.int64)
    changes = np.abs(np.diff(paths, axis=1, prepend=0)).sum(axis=1)
    return np.asarray(paths[changes <= flips])


@pytest.mark.parametrize("ratio", [0, 1 / 2, 7 / 8, 127 / 128])
@pytest.mark.parametrize("ticks", [1, 4, 7, 10])
def test_every_short_path_costs_what_is_charged(ratio: float, ticks: int) -> None:
    """11.1: all paths with F <= 5 flips, T <= 10, in integers."""
    factor = path_factor(FINENESS - round(ratio * FINENESS))
    r = factor.r
    R = np.array([[r[t - s] if 0 <= t - s < len(r) else 0 for s in range(ticks)] for t in range(ticks)], dtype=np.int64)
    for flips in range(1, 6):
        presence = Presence.flips(ticks, flips)
        paths = _all_paths(flips, ticks)
        plain = ((paths @ R.T) ** 2).sum(axis=1).max()
        around = (((2 * paths - 1) @ (R // 2).T) ** 2).sum(axis=1).max()
        assert plain <= uncentred(factor, presence)
        assert around <= centred(factor, presence)
        differences = ((paths[:, None] - paths[None]).reshape(-1, ticks) @ R.T) if len(paths) < 200 else paths @ R.T
        assert (differences**2).sum(axis=1).max() <= 4 * centred(factor, presence)
        if flips == 1:  # one that comes and stays
            assert plain >= factor.always(ticks)


def test_one_record_is_one_run() -> None:
    """Event unit, set semantics: worlds with and without one record differ in one run of ticks, of one sign."""
    kinds = ("insert", "delete", None)
    for actions in product(kinds, repeat=5):
        for left_out in [t for t, action in enumerate(actions) if action is not None]:
            worlds = []
            for hidden in (None, left_out):
                ticks = [[(a, None, "me")] if a and t != hidden else [] for t, a in enumerate(actions)]
                worlds.append(np.array(present(ticks, False, None)))
            moved = worlds[0] - worlds[1]
            assert len(set(moved[moved != 0].tolist())) <= 1
            assert int(np.abs(np.diff(np.concatenate([[0], moved, [0]]))).sum()) <= 2


def test_every_run_costs_no_more_than_a_record_is_charged() -> None:
    ticks = 48
    event = made(ticks, protects="event", key=et.simulation(1))
    noise = event._engine.inner.noise  # type: ignore[attr-defined]
    assert isinstance(noise, CentredPath)
    assert noise.laws.shared is None
    r = noise.laws.factor.r
    ones = [sum(r[:n]) for n in range(ticks + 1)]
    charged = noise.law.sigma_squared * 2 * event.charge.exact_rho  # type: ignore[attr-defined, union-attr]
    top = 0
    for length in range(1, ticks + 1):
        for first in range(ticks - length + 1):
            moved = [ones[t - first + 1] - ones[max(0, t - first + 1 - length)] for t in range(first, ticks)]
            top = max(top, sum(x * x for x in moved))
    assert 0.9 * charged < top <= charged


def test_with_flips_one_record_may_change_everything_later() -> None:
    """Why `protects="event"` is refused there: the worlds never agree again."""
    ticks = [[("insert", None, "me")], *[[("delete", None, "me")], [("insert", None, "me")]] * 3]
    whole, less = (np.array(present(world, False, 3)) for world in (ticks, [[], [], *ticks[2:]]))
    assert np.count_nonzero(np.diff(whole - less)) > 2


def test_an_item_moves_no_more_than_is_charged() -> None:
    """All streams of one item, five ticks: at most F changes, whatever is sent, and other items are as they were."""
    others = [[("insert", None, "x")], [], [("delete", None, "x")], [], []]
    for semantics, most in (("set", 2), ("copies", 3)):
        without = made(5, max_flips=most, semantics=semantics).run(others)
        for actions in product(("insert", "delete", None), repeat=5):
            ticks = [[*others[t], *([(a, None, "me")] if a else [])] for t, a in enumerate(actions)]
            moved = made(5, max_flips=most, semantics=semantics).run(ticks) - without
            assert set(moved.tolist()) <= {0, 1}
            assert int(np.abs(np.diff(moved, prepend=0)).sum()) <= most


def test_pure_and_approximate() -> None:
    few = made(4096, max_flips=2, guarantee=PureDP(1.0))
    assert few.mechanism == "pure-blocks"
    assert few.sensitivity.l1 == 2
    many = made(64, max_flips=None, guarantee=PureDP(1.0))
    assert many.mechanism == "path"
    assert isinstance(made(guarantee=ApproxDP(1.0, 1e-6)).charge, ZCDP | PureDP)
    replaced = made(max_flips=2, neighbours="replace", mechanism="path", key=et.simulation(1))
    assert replaced._engine.inner.noise.laws.shared is None  # type: ignore[attr-defined]


def test_a_stream_protects_items_of_one_kind() -> None:
    stream = et.Stream("s", guarantee=ZCDP(0.5), horizon=9, key=et.simulation(1))
    stream.add(et.PresentItems, share=0.5, max_flips=2)
    assert stream.add(et.DynamicCount, share=0.25, process="tree").protected_unit == "item by id"
    with pytest.raises(ConfigurationError):
        stream.add(et.Counter, share=0.25)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": None}, "horizon"),
        ({"unit": "user", "max_events_per_user": 2}, "several users"),
        ({"protects": "event", "max_flips": 2}, "all later presence"),
        ({"protects": "event", "semantics": "copies"}, "all later presence"),
        ({"protects": "event", "neighbours": "replace"}, "in place of another"),
        ({"semantics": "bag"}, "semantics"),
        ({"protects": "label"}, "protects"),
        ({"max_flips": 0}, "max_flips"),
        ({"mechanism": "sqrt"}, "pure budgets"),
        ({"mechanism": "what"}, "mechanism is"),
        ({"neighbours": "independent", "guarantee": ZCDP(0.5, adversary="oblivious")}, "add_remove"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        made(**options)
