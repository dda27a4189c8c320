"""The nearest point: against another solver, against its conditions, and what the theorem says of every noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from evertally.agreement.apart import project_apart
from evertally.agreement.projection import _by_blocks, _one_by_one, project
from evertally.errors import ConfigurationError

NONE = np.empty((0, 0))


def covariance(rng: np.random.Generator, n: int) -> np.ndarray:
    root = np.tril(rng.random((n, n)))
    return root @ root.T / n + 0.05 * np.eye(n)


def rising(n: int) -> np.ndarray:
    return np.eye(n) - np.eye(n, k=-1)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_totals_that_never_fall(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(10):
        C = covariance(rng, n)
        truth = np.cumsum(rng.poisson(0.3, n)).astype(float)
        y = truth + np.linalg.cholesky(C) @ rng.standard_normal(n)
        fit = project(y, C, np.empty((0, n)), rising(n)).values
        white = np.linalg.cholesky(np.linalg.inv(C)).T
        steps, _ = nnls(white @ np.tril(np.ones((n, n))), white @ y)
        assert fit == pytest.approx(np.cumsum(steps), abs=1e-8)
        # in the norm of the noise no noise whatsoever makes it worse
        assert np.linalg.norm(white @ (fit - truth)) <= np.linalg.norm(white @ (y - truth)) + 1e-9


# a total with two ways to be parted: what is not below 0 follows from others
TWO_WAYS = np.array([[1.0, -1, -1, 0, 0], [1, 0, 0, -1, -1]])


def test_rows_that_follow_from_others() -> None:
    rng = np.random.default_rng(1)
    C = np.diag([1.0, 2, 3, 4, 5])
    inverse = np.linalg.inv(C)
    for _ in range(100):
        y = rng.normal(0.5, 3, 5)
        fit = project(y, C, TWO_WAYS, np.eye(5)).values
        assert fit.min() > -1e-8
        assert TWO_WAYS @ fit == pytest.approx(np.zeros(2), abs=1e-8)
        # next to y: (y - fit)' C^-1 (z - fit) <= 0 for every z that may be
        for parts in rng.random((20, 4)) * 4:
            parts[3] = max(0.0, parts[:2].sum() - parts[2])
            z = np.array([parts[2] + parts[3], parts[0], parts[2] + parts[3] - parts[0], parts[2], parts[3]])
            if z.min() >= 0:
                assert (y - fit) @ inverse @ (z - fit) <= 1e-7


def test_both_solvers_find_the_same() -> None:
    rng = np.random.default_rng(2)
    for _ in range(30):
        Q, q = covariance(rng, 12), rng.normal(size=12)
        quick = _by_blocks(Q, q, 1e-10)
        assert quick is not None
        assert _one_by_one(Q, q, 1e-10) == pytest.approx(quick, abs=1e-8)


def test_the_variance_of_the_linear_part_is_exact() -> None:
    rng = np.random.default_rng(3)
    C = covariance(rng, 5)
    linear = np.column_stack([project(unit, C, TWO_WAYS, NONE).values for unit in np.eye(5)])
    stated = project(np.zeros(5), C, TWO_WAYS, NONE).variances
    assert stated == pytest.approx(np.diag(linear @ C @ linear.T), abs=1e-12)
    assert (stated <= np.diag(C) + 1e-12).all()
    weights = np.linalg.inv(C)
    kernel = np.linalg.svd(TWO_WAYS)[2][2:].T  # all that keep the sums
    best = kernel @ np.linalg.inv(kernel.T @ weights @ kernel) @ kernel.T
    assert linear == pytest.approx(best @ weights, abs=1e-9)


def test_noise_of_its_own_has_a_way_of_its_own() -> None:
    rng = np.random.default_rng(4)
    for n in (5, 12, 40):
        for _ in range(20):
            v, y = rng.random(n) + 0.1, rng.normal(0.3, 3, n)
            sums = np.zeros((2, n))
            sums[0, 0], sums[0, 1 : n // 2] = 1.0, -1.0
            sums[1, 0], sums[1, n // 2 :] = 1.0, -1.0
            above = rng.random(n) < 0.8
            quick = project_apart(y, v, sums, above)
            slow = project(y, np.diag(v), sums, np.eye(n)[above])
            assert quick.values == pytest.approx(slow.values, abs=1e-7)
            assert quick.variances == pytest.approx(slow.variances, abs=1e-9)


def test_numbers_without_noise_that_contradict_each_other() -> None:
    with pytest.raises(ConfigurationError, match="cannot hold"):
        project(np.array([3.0, 1.0]), np.zeros((2, 2)), np.array([[1.0, -1.0]]), NONE)
