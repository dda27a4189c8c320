"""What a typical stream is expected to cost, piece by piece: the planner compares mechanisms by it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from evertally.errors import ConfigurationError
from evertally.partition.budget import Split
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


@pytest.mark.parametrize("part", ["tau", "mu", "histogram"])
def test_every_part_of_a_split_is_paid_for(part: str) -> None:
    """Nothing buys no noise: a part of 0 would be a test, or a count, without any budget."""
    parts = {"tau": Fraction(1, 4), "mu": Fraction(1, 4), "update": Fraction(1, 4), "histogram": Fraction(1, 4)}
    assert Split(**{**parts, "update": Fraction(0), "histogram": Fraction(1, 2)}).update == 0
    for wrong in (Fraction(0), Fraction(-1, 4)):
        rest = {name: value for name, value in parts.items() if name != part}
        rest["update"] = Fraction(1, 2) - wrong
        with pytest.raises(ConfigurationError, match="positive"):
            Split(**rest, **{part: wrong})
