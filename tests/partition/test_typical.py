"""What a typical stream is expected to cost, piece by piece: the planner compares mechanisms by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evertally.partition.typical import Scales, _unit_of, noise_closes
from evertally.privacy import ZCDP, Change, PureDP


def test_noise_is_scaled_by_the_norm_of_its_law() -> None:
    change = Change(l1=3, l2_squared=5, linf=2)
    assert _unit_of(PureDP(0.5), change) == (6.0, True)
    assert _unit_of(ZCDP(0.1), change) == (pytest.approx(5.0), False)


@pytest.mark.parametrize("kappa", [-30.0, -2.0, 0.0, 2.0, 30.0])
def test_how_often_noise_alone_closes_an_interval(kappa: float) -> None:
    """Laplace against Laplace, by plain integration: P(mu > kappa + tau)."""
    tau = np.linspace(-80, 80, 400_001)
    above = np.where(kappa + tau > 0, 0.5 * np.exp(-np.abs(kappa + tau)), 1 - 0.5 * np.exp(-np.abs(kappa + tau)))
    exactly = float(np.sum(above * 0.25 * np.exp(-np.abs(tau) / 2)) * (tau[1] - tau[0]))
    assert math.isclose(noise_closes(kappa, Scales(2.0, 1.0, 1.0, True)), exactly, rel_tol=0.05, abs_tol=1e-3)
