"""What paths of presence cost (users-and-domains 1.4, 1.5, 2.3, 2.5, 2.6): golden values, and every path of small
cases, in integers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evertally.counting.path_factor import FINENESS, PathFactor, path_factor
from evertally.counting.runs import RATIOS, PathCost, Presence, best_path, centred, uncentred
from evertally.errors import ConfigurationError
from long import LONG

# T, W: lambda, K, B_u/4^16, B_c/4^16, S, uncentred, centred
GOLDEN = {
    (30, 7): (1 / 2, 10, 15.7788, 6.5965, 1.073182, 4.115, 3.161),
    (365, 1): (0, 1, 365, 91.25, 1, 19.105, 10.052),
    (365, 7): (1 / 2, 10, 186.0803, 72.7884, 1.073182, 14.132, 9.338),
    (365, 28): (7 / 8, 35, 62.7685, 32.9881, 1.391311, 9.345, 7.275),
    (365, 90): (15 / 16, 58, 31.5547, 15.5191, 1.584107, 7.070, 5.458),
    (8760, 24): (27 / 32, 29, 1705.2528, 817.1686, 1.332633, 47.671, 33.500),
    (8760, 168): (31 / 32, 95, 383.7192, 196.9683, 1.787904, 26.193, 19.266),
    (8760, 672): (127 / 128, 221, 113.7940, 65.6081, 2.213723, 15.872, 12.552),
}


@pytest.mark.parametrize(("T", "W"), GOLDEN)
def test_the_table_of_the_specification(T: int, W: int) -> None:
    ratio, terms, b_u, b_c, energy, plain, around = GOLDEN[T, W]
    factor, presence = path_factor(round(FINENESS * (1 - ratio))), Presence.windows(T, W)
    assert len(factor.r) == terms
    assert uncentred(factor, presence) / 4**16 == pytest.approx(b_u, abs=6e-5)
    assert centred(factor, presence) / 4**16 == pytest.approx(b_c, abs=6e-5)
    S = float(np.sum(factor.inverse()[:T] ** 2)) * 4**16
    assert pytest.approx(energy, abs=6e-7) == S
    assert (uncentred(factor, presence) / 4**16 * S) ** 0.5 == pytest.approx(plain, abs=6e-4)
    assert (centred(factor, presence) / 4**16 * S) ** 0.5 + 0.5 == pytest.approx(around, abs=6e-4)
    found = best_path(presence, True)
    assert 0.95 * around < found.deviation + 0.5 < around + 6e-4


def test_other_golden_values() -> None:
    year = {W: best_path(Presence.windows(365, W), False).deviation for W in (1, 7, 28)}
    assert [round(x, 1) for x in year.values()] == [14.4, 11.4, 8.2]
    blocks = [best_path(Presence.block(1, W, None), False).deviation for W in (7, 28, 672)]
    assert blocks == pytest.approx([1.90, 2.52, 3.95], abs=0.006)
    flips = {2: 4.87, 8: 7.65, 32: 12.19, 128: 18.8, 512: 27.0, 4096: 32.5}
    for F, factor in flips.items():
        assert best_path(Presence.flips(4096, F), True).deviation + 0.5 == pytest.approx(factor, rel=0.01)


def test_the_small_exact_case() -> None:
    small, presence = PathFactor((16, -4), (272, -64), 10), Presence.windows(6, 2)
    assert [small.cost(length) for length in range(7)] == small.costs(np.arange(7)).tolist()
    assert (uncentred(small, presence), centred(small, presence)) == (976, 500)
    R = toeplitz(small, 6)
    paths = [np.array(y) for y in window_paths(6, 2)]
    assert max(norm(R, y) for y in paths) == 976
    assert max(norm(R, 2 * y - 1) for y in paths) // 4 == 436


def toeplitz(factor: PathFactor, T: int) -> np.ndarray:
    r = [*factor.r[:T], *[0] * (T - len(factor.r))]
    return np.array([[r[t - s] if s <= t else 0 for s in range(T)] for t in range(T)], dtype=np.int64)


def norm(R: np.ndarray, y: np.ndarray) -> int:
    """In Python's integers where they would not fit: entries are below 2^34, T of them."""
    return sum(int(x) ** 2 for x in R @ y)


def windows_of(active: tuple[int, ...], W: int) -> tuple[int, ...]:
    return tuple(int(any(active[max(0, t - W + 1) : t + 1])) for t in range(len(active)))


def window_paths(T: int, W: int, active: int | None = None) -> set[tuple[int, ...]]:
    found = set()
    for ticks in product((0, 1), repeat=T):
        if active is not None:
            counted, left = [], active
            for x in ticks:
                counted.append(x if left else 0)
                left -= counted[-1]
            ticks = tuple(counted)
        found.add(windows_of(ticks, W))
    return found


T_SMALL = 13 if LONG else 10
FACTORS = [small for n in (2**14, 2**13, 2**11, 128, 1) if (small := path_factor(n))]


def all_norms(R: np.ndarray, paths: list[tuple[int, ...]], centre: bool) -> int:
    y = np.array(sorted(paths), dtype=object).T
    moved = R.astype(object) @ (2 * y - 1 if centre else y)
    return max((moved * moved).sum(axis=0)) // (4 if centre else 1)


@pytest.mark.parametrize("W", [1, 2, 3, 5])
@pytest.mark.parametrize("carried", [False, True])
def test_no_window_path_costs_more(W: int, carried: bool) -> None:
    """Every path, every cap. A carried path begins anywhere in an earlier stream."""
    T = T_SMALL
    if carried:
        paths = {y[W - 1 :] for y in window_paths(T + W - 1, W)} if W > 1 else window_paths(T, W)
        sets = [(Presence.windows(T, W, carried=True), list(paths))]
    else:
        caps = (None, 1, 2, 3)
        sets = [(Presence.windows(T, W, active=k), list(window_paths(T, W, k))) for k in caps]
    for factor in FACTORS:
        R = toeplitz(factor, T)
        for presence, paths in sets:
            assert all_norms(R, paths, False) <= uncentred(factor, presence)
            assert all_norms(R, paths, True) <= centred(factor, presence)


@pytest.mark.parametrize("F", [1, 2, 3, 5])
def test_no_path_of_few_flips_costs_more(F: int) -> None:
    T = T_SMALL
    paths = [y for y in product((0, 1), repeat=T) if sum(a != b for a, b in zip((0, *y), y, strict=False)) <= F]
    for factor in FACTORS:
        R, presence = toeplitz(factor, T), Presence.flips(T, F)
        assert all_norms(R, paths, False) <= uncentred(factor, presence)
        assert all_norms(R, paths, True) <= centred(factor, presence)


@pytest.mark.parametrize("W", [1, 2, 3, 4])
def test_no_block_of_a_user_costs_more(W: int) -> None:
    """User-period: everything that the events of one block change, whatever happens around it."""
    T = T_SMALL - 1
    for P in (1, 2, 3, 5):
        start = 2
        differences = set()
        for ticks in product((0, 1), repeat=T):
            without = tuple(0 if start <= t < start + P else x for t, x in enumerate(ticks))
            pair = zip(windows_of(ticks, W), windows_of(without, W), strict=True)
            differences.add(tuple(a - b for a, b in pair))
        for factor in FACTORS:
            found = all_norms(toeplitz(factor, T), list(differences), False)
            assert found <= uncentred(factor, Presence.block(P, W, None))
            assert found <= uncentred(factor, Presence.block(P, W, T))


@pytest.mark.parametrize("W", [1, 2, 4])
def test_no_pair_of_bucket_mates_costs_more(W: int) -> None:
    T = 7
    paths = window_paths(T, W)
    differences = {tuple(max(0, a - b) for a, b in zip(y, mates, strict=True)) for y in paths for mates in paths}
    for factor in FACTORS:
        assert all_norms(toeplitz(factor, T), list(differences), False) <= uncentred(factor, Presence.mates(T, W))


@pytest.mark.parametrize("W", [1, 2, 4])
def test_no_replaced_user_costs_more(W: int) -> None:
    T = 7
    paths = list(window_paths(T, W))
    differences = {tuple(a - b for a, b in zip(y, other, strict=True)) for y in paths for other in paths}
    for factor in FACTORS:
        bound = 4 * centred(factor, Presence.windows(T, W))
        assert all_norms(toeplitz(factor, T), list(differences), False) <= bound


@pytest.mark.parametrize(("T", "W", "k"), [(40, 3, None), (61, 7, 4), (97, 1, None), (50, 60, None)])
def test_every_number_of_runs_is_covered(T: int, W: int, k: int | None) -> None:
    """The bounds look at the largest number of runs only; here all of them, by the formula of the specification."""
    presence = Presence.windows(T, W, active=k)
    for factor in FACTORS:
        h, tot = factor.level, factor.always(T)
        c = [factor.cost(length) for length in range(T + 2)]
        kappa = [x - length * h for length, x in enumerate(c)]

        def shared(cost: list[int], n: int, total: int) -> int:
            a, b = divmod(total, n)
            return (n - b) * cost[a] + b * cost[a + 1]

        plain = around = 0
        for n in range(1, presence.runs + 1):
            for total in range((n - 1) * W + 1, min(T - n + 1, presence.most or T) + 1):
                gaps = shared(kappa, n + 1, T - total)
                plain = max(plain, min(shared(c, n, total), tot - (T - total) * h + gaps))
                around = max(around, min(shared(kappa, n, total), gaps))
        assert uncentred(factor, presence) == plain
        assert centred(factor, presence) == tot // 4 + around


def test_costs_grow_and_bend() -> None:
    for factor in FACTORS:
        costs = factor.costs(np.arange(900))
        steps = np.diff(costs)
        assert (steps >= factor.level).all()
        assert (np.diff(steps) <= 0).all()
        assert costs[[1, 2, 300, 899]].tolist() == [factor.cost(length) for length in (1, 2, 300, 899)]


def test_all_coefficients_are_checked_and_the_search_finds_the_best() -> None:
    for T, W in ((365, 7), (1000, 30), (60, 60)):
        presence = Presence.windows(T, W)
        found = best_path(presence, True)

        def error(ratio: int, presence: Presence = presence, T: int = T) -> float:
            factor = path_factor(FINENESS - ratio)
            assert all(x % 2 == 0 for x in factor.r)
            return PathCost(ratio, centred(factor, presence), energy(ratio, T)).deviation

        assert found.deviation <= min(map(error, RATIOS)) * 1.0001


def energy(ratio: int, T: int) -> float:
    total, term = 0.0, 1.0
    for k in range(T):
        total += term * term
        term *= (2 * k + 1) / (2 * k + 2) * ratio / FINENESS
    return total


def test_odd_coefficients_have_no_centre() -> None:
    with pytest.raises(ArithmeticError, match="even"):
        centred(PathFactor((15, -3), (234, -45), 10), Presence.windows(6, 2))


def test_too_long_horizons_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="longer ticks"):
        best_path(Presence.windows(2**20 + 1, 2), True)
