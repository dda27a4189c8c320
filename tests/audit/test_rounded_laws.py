"""The exact joint law of a few rounded releases of a bank: its loss is at most what is claimed, and nearly that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evertally as et
from audit.rounded_laws import RoundedLaw
from evertally.audit.gaussian import delta_of_mu, impulse_response
from evertally.counting import bank as bank_module
from evertally.counting.bank import BankProcess
from evertally.noise.reals import KnownReals
from evertally.privacy import Change
from long import LONG

KEY = et.simulation(0)
ORDERS = (1.5, 2.0, 4.0, 8.0, 12.5)


def law_of(guarantee: Any, T: int, nodes: int = 20) -> RoundedLaw:
    counter = et.Counter(guarantee=guarantee, horizon=T, mechanism="bank", key=KEY)
    W, _ = impulse_response(counter, T)
    assert np.abs(np.triu(W, 1)).max() == 0
    return RoundedLaw(np.asarray(W), nodes)


def change(T: int, tick: int) -> np.ndarray[Any, Any]:
    return (np.arange(1, T + 1) >= tick).astype(np.int64)


def largest(law: RoundedLaw, rho: float, orders: tuple[float, ...]) -> float:
    """The largest divergence over its order, in units of rho, over all ticks of a change."""
    T = law.ticks
    return max(law.renyi(change(T, tick), order) / order / rho for tick in range(1, T + 1) for order in orders)


@pytest.mark.parametrize(
    ("T", "rho", "nodes"), [(1, 0.5, 20), (1, 8, 20), (2, 0.5, 20), (2, 8, 20), (3, 8, 16), (4, 8, 8), (3, 2, 16)]
)
def test_divergences_are_at_most_what_is_claimed_and_nearly_that(T: int, rho: float, nodes: int) -> None:
    law = law_of(et.ZCDP(rho), T, nodes)
    orders = ORDERS if T < 3 or LONG else ORDERS[1::3]
    assert np.exp(law.log_mass(law.around(np.zeros(T)))).sum() == pytest.approx(1, abs=1e-6)
    found = largest(law, rho, orders)
    assert 0.9 < found <= 1


def test_nodes_are_enough() -> None:
    coarse, fine = (law_of(et.ZCDP(8), 3, nodes).renyi(change(3, 1), 8.0) for nodes in (16, 28))
    assert coarse == pytest.approx(fine, rel=1e-7)


def test_a_scale_that_is_too_small_shows_in_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    certified = bank_module._sensitivity
    monkeypatch.setattr(bank_module, "_sensitivity", lambda bank: certified(bank) / 1.05)
    assert largest(law_of(et.ZCDP(8), 2), 8, (8.0, 12.5)) > 1.03


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-6)])
def test_what_pays_in_epsilon_and_delta_keeps_them(epsilon: float, delta: float) -> None:
    """By the exact curve, alone; integers show a little less than the real numbers behind them."""
    law = law_of(et.ApproxDP(epsilon, delta, force=True), 2)
    found = max(law.delta(change(2, tick), epsilon) for tick in (1, 2))
    assert 0.5 * delta < found <= delta
    mu = float(np.sqrt((np.linalg.solve(law.W, change(2, 1)) ** 2).sum()))
    assert delta_of_mu(mu, epsilon) == pytest.approx(delta, rel=1e-5)


class Grid:
    """Every combination of a few numbers, one in each column."""

    def __init__(self, T: int) -> None:
        numbers = np.concatenate([np.linspace(-4, 4, 9) + 0.013, [-9.1, 9.2]])
        self.z = np.array(np.meshgrid(*[numbers] * T)).reshape(T, -1)

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        return KnownReals(self.z[[node - 1 for node in nodes], first : first + coordinates])


@pytest.mark.parametrize("T", [1, 2, 3])
def test_the_program_rounds_as_the_law_says(T: int) -> None:
    grid: Any = Grid(T)
    noise = BankProcess(et.ZCDP(8), Change(1, 1, 1), horizon=T, columns=grid.z.shape[1], source=grid).advance(T)
    real = law_of(et.ZCDP(8), T).W @ grid.z
    clear = np.abs(real - np.floor(real) - 0.5) > 1e-5
    assert clear.mean() > 0.99
    assert (noise == np.floor(real + 0.5))[clear].all()
