"""The distance of two columns, exactly; the paper's constant; its two counters (factorization-counting 6.9, 14.1)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import local_laws
import numpy as np
import pytest
from local_laws import one_hot, prefix, reversed_cell, variance_of_each

import evertally as et
from evertally.counting.sqrt_factor import coefficients
from evertally.local.factor import column, swap_distance_squared


def distances(r: np.ndarray) -> dict[tuple[int, int], int]:
    columns = [column(r, cell).astype(object) for cell in range(r.size)]
    return {pair: int(((columns[pair[0]] - columns[pair[1]]) ** 2).sum()) for pair in combinations(range(r.size), 2)}


@pytest.mark.parametrize(("cells", "ratio"), [(2, 1), (4, 1.252), (16, 1.4233), (100, 1.5567), (1024, 1.6571)])
def test_the_table_and_that_the_paper_s_constant_is_too_small(cells: int, ratio: float) -> None:
    r = coefficients(cells)
    largest_column = sum(int(entry) ** 2 for entry in r)
    assert swap_distance_squared(r) / largest_column == pytest.approx(ratio, abs=6e-4 if cells == 4 else 6e-5)
    assert largest_column <= swap_distance_squared(r) < 2 * largest_column
    if cells > 2:
        assert swap_distance_squared(r) > largest_column, "the paper's noise would be too small"


def test_it_is_the_largest_distance_of_any_two_columns() -> None:
    rng = np.random.default_rng(1)
    factors = [coefficients(cells) for cells in range(2, 40)]
    factors += [np.sort(rng.integers(0, 50, cells))[::-1] for cells in range(2, 12)]
    factors += [rng.integers(-50, 50, cells) for cells in range(2, 12)]  # no shape is used
    for r in factors:
        found = distances(r)
        assert swap_distance_squared(r) == max(found.values())
        assert max(value for (first, _), value in found.items() if first == 0) == max(found.values())


def test_nothing_overflows() -> None:
    r = np.array([2**40, 2**39, 2**38], dtype=np.int64)
    assert swap_distance_squared(r) == max(distances(r).values()) > 2**63


def test_the_worst_pair_is_where_it_should_be() -> None:
    r = coefficients(1024)
    found = [int(((column(r, 0) - column(r, cell)) ** 2).sum()) for cell in range(1, 1024)]
    assert 0.80 < (1 + int(np.argmax(found))) / 1024 < 0.86


@pytest.mark.parametrize("cells", [2, 3, 4, 16, 100])
def test_noise_covers_it_exactly(cells: int) -> None:
    rho = Fraction(1, 7)
    protocol = et.local.Protocol(guarantee=et.ZCDP(rho), clients=10, low=0, high=1, cells=cells)
    needed = Fraction(protocol.swap_distance_squared) / (2 * rho)
    assert needed <= protocol.law.sigma_squared < needed * (1 + Fraction(1, 2**38))


# -- the paper's two counters ------------------------------------------------------------------------------------------


def test_reversed_vectors_add_up_to_one() -> None:
    for cells in range(1, 9):
        for cell in range(cells):
            u, v = one_hot(cell, cells), one_hot(reversed_cell(cell, cells), cells)
            assert all(prefix(u, t) + prefix(v, cells - t) == 1 for t in range(cells + 1))
            printed = one_hot(cells - 1 - cell - 1, cells)  # the paper's w - j
            assert not all(prefix(u, t) + prefix(printed, cells - t) == 1 for t in range(cells + 1))


@pytest.mark.parametrize("cells", [2, 4, 16, 100])
def test_two_counters_need_joint_calibration(cells: int) -> None:
    """Both get another input when one client's cell changes: squares of distances add up."""
    r, rho = coefficients(cells), Fraction(1, 2)
    swap, found = swap_distance_squared(r), distances(r)

    def joint(j: int, k: int) -> int:
        other = sorted((reversed_cell(j, cells), reversed_cell(k, cells)))
        return found[j, k] + found[other[0], other[1]]

    worst = max(joint(*pair) for pair in found)
    assert worst / (2 * variance_of_each(swap, rho)) <= rho, "sqrt(2) sigma_1 Delta_swap each is enough"
    assert worst / (2 * Fraction(swap) / (2 * rho)) > rho, "each calibrated as if it were alone is not"
    # Halves of epsilon and delta are safe with the right distance, and cost more than half of the budget.
    whole, half = et.ApproxDP(1.0, 1e-9).to_zcdp().exact_rho, et.ApproxDP(0.5, 5e-10).to_zcdp().exact_rho
    assert local_laws.variance_of_each(swap, whole) < Fraction(swap) / (2 * half)
