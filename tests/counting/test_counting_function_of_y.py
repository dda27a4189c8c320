"""The heart of exactness: a release depends on the stream only through the noisy sums y.

Two worlds with streams x and x' and noise Z and Z' = Z + A(x - x') have the same y = A x + Z. Whatever is released must
then be the same, tick by tick: only then is the law of the releases a post-processing of the law of y, and that is what
the privacy theorems are about. A rounding that looks at noise and data separately fails here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from counting_reference import (
    GRID,
    Planted,
    Statistic,
    epoch_tree_sums,
    honaker_sums,
    sqrt_sums,
    tree_sums,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et

Z = st.one_of(st.integers(-8, 8), st.integers(-(2**21), 2**21), st.integers(-(2**15), 2**15).map(lambda k: k * 2**15))


def make(mechanism: str, horizon: int | None, columns: int, key: Planted, **options: object) -> et.VectorCounter:
    pure = mechanism.endswith("/pure")
    guarantee = et.PureDP(1) if pure else et.ZCDP(0.5)
    return et.VectorCounter(
        columns, guarantee=guarantee, horizon=horizon, mechanism=mechanism.split("/")[0], key=key, **options
    )


def play(mechanism: et.VectorCounter, x: np.ndarray) -> np.ndarray:
    return np.array([mechanism.step(row).value for row in x])


def other_world(sums: Statistic, z: dict, x: np.ndarray, other: np.ndarray) -> dict:
    """Z' = Z + A(x - x'), so that y is the same."""
    difference = (x - other).astype(object)
    return {address: z[address] + np.array(a, dtype=object) @ difference for address, a in sums.items()}


def check(
    make_it: Callable[[Planted], et.VectorCounter], sums: Statistic, z: dict, x: np.ndarray, other: np.ndarray
) -> None:
    here, there = Planted(z), Planted(other_world(sums, z, x, other))
    first, second = play(make_it(here), x), play(make_it(there), other)
    assert np.array_equal(first, second)
    assert here.asked <= set(sums), "noise was drawn for a sum that the theorem does not know"


def drawn(data: st.DataObject, sums: Statistic, T: int, columns: int) -> tuple[dict, np.ndarray, np.ndarray]:
    row = st.lists(Z, min_size=columns, max_size=columns).map(lambda v: np.array(v, dtype=object))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    if data.draw(st.booleans()):  # a few planted draws, small enough for hypothesis to shrink
        chosen = set(data.draw(st.lists(st.sampled_from(sorted(sums)), max_size=6)))
        z = {address: data.draw(row) if address in chosen else np.zeros(columns, dtype=object) for address in sums}
    else:
        scale = data.draw(st.sampled_from([1, 3, 100, 2**15, 2**20, 2**33]))
        z = {address: rng.integers(-scale, scale + 1, columns).astype(object) for address in sums}
    x, other = rng.integers(0, 10, (2, T, columns))
    if data.draw(st.booleans()):  # neighbours: one event
        other = x.copy()
        other[data.draw(st.integers(0, T - 1))] += 1
    return z, x, other


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.data(), st.integers(1, 40), st.sampled_from([2, 3, 5]), st.sampled_from(["tree", "tree/pure"]))
def test_tree(data: st.DataObject, T: int, r: int, mechanism: str) -> None:
    r = min(r, max(2, T))
    sums = tree_sums(T, r)
    z, x, other = drawn(data, sums, T, 2)
    check(lambda key: make(mechanism, T, 2, key, radix=r), sums, z, x, other)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.data(), st.integers(1, 40), st.sampled_from(["honaker", "honaker/pure"]))
def test_honaker(data: st.DataObject, T: int, mechanism: str) -> None:
    sums = honaker_sums(T)
    z, x, other = drawn(data, sums, T, 2)
    check(lambda key: make(mechanism, T, 2, key), sums, z, x, other)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_sqrt(data: st.DataObject, T: int, columns: int) -> None:
    sums = sqrt_sums(T)
    z, x, other = drawn(data, sums, T, columns)
    check(lambda key: make("sqrt", T, columns, key), sums, z, x, other)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.data(), st.sampled_from([1, 3, 7, 15, 31, 63]), st.sampled_from(["epoch-tree", "epoch-tree/pure"]))
def test_epoch_tree(data: st.DataObject, T: int, mechanism: str) -> None:
    sums = epoch_tree_sums(T)
    z, x, other = drawn(data, sums, T, 2)
    # closing the last epoch draws nothing that is not in the sums
    check(lambda key: make(mechanism, None, 2, key), sums, z, x, other)


# -- forced ties of the square root ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 7])
@pytest.mark.parametrize("shift", [-2, 1, 5])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_ties_at_the_first_tick(k: int, shift: int, off: int) -> None:
    """e_1 = Z_1/2^16 is exactly k + 1/2 (or next to it) in one world and k + 1/2 + shift in the other."""
    tied = k * GRID + GRID // 2 + off
    for T in (1, 2, 30):
        x = np.zeros((T, 1), dtype=int)
        x[0] = 6
        other = x.copy()
        other[0] -= shift
        z = {address: np.zeros(1, dtype=object) for address in sqrt_sums(T)}
        z["sqrt", 1] = np.array([tied], dtype=object)
        check(lambda key, T=T: make("sqrt", T, 1, key), sqrt_sums(T), z, x, other)
        first = play(make("sqrt", T, 1, Planted(z)), x)[0, 0]
        assert first == 6 + k + (0 if off < 0 else 1), "half is rounded up, always"


@pytest.mark.parametrize("a", [-5, 0, 3, 10**6])
@pytest.mark.parametrize("k", [-2, 0, 4])
@pytest.mark.parametrize("shift", [(1, 0), (0, 1), (-3, 2)])
def test_ties_at_the_second_tick(a: int, k: int, shift: tuple[int, int]) -> None:
    """e_2 = Z_1/2^17 + Z_2/2^16 = k + 1/2 with Z_1 = 2a."""
    z = {
        ("sqrt", 1): np.array([2 * a], dtype=object),
        ("sqrt", 2): np.array([k * GRID + GRID // 2 - a], dtype=object),
    }
    x = np.full((2, 1), 9)
    other = x - np.array(shift)[:, None]
    check(lambda key: make("sqrt", 2, 1, key), sqrt_sums(2), z, x, other)
    assert play(make("sqrt", 2, 1, Planted(z)), x)[1, 0] == 18 + k + 1


@pytest.mark.parametrize("t", [3, 8, 9, 10, 17, 40])
def test_ties_at_any_tick(t: int) -> None:
    """All noise before t is zero, Z_t = 2^15: e_t = 1/2 exactly; in the other world earlier noise is not zero."""
    sums = sqrt_sums(t)
    z = {address: np.zeros(1, dtype=object) for address in sums}
    z["sqrt", t] = np.array([GRID // 2], dtype=object)
    rng = np.random.default_rng(t)
    for _ in range(5):
        x, other = rng.integers(0, 10, (2, t, 1))
        check(lambda key: make("sqrt", t, 1, key), sums, z, x, other)


def test_the_check_would_notice_a_rounding_that_looks_at_the_data() -> None:
    """Half to even, applied to sum and noise apart, is not a function of y."""
    key = Planted({("sqrt", 1): np.array([GRID // 2], dtype=object)})
    tied = make("sqrt", 1, 1, key).step([0]).value[0]
    moved = make("sqrt", 1, 1, Planted({("sqrt", 1): np.array([-GRID // 2], dtype=object)})).step([1]).value[0]
    assert tied == moved == 1
    assert 0 + np.rint(0.5) != 1 + np.rint(-0.5)
