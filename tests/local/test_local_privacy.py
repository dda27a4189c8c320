"""The law of a message, on small factors written down in full: every pair of inputs loses at most what is promised."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from local_laws import SMALL, masses, middle_of, sent, small_factor, worst_loss

import evertally as et
from evertally.local.losses import Loss

ORDERS = (1.25, 2.0, 4.0, 16.0)


def protocol(cells: int, variance: Fraction = Fraction(6), r: np.ndarray = SMALL) -> et.local.Protocol:
    """A protocol whose noise has this variance, or a hair more."""
    largest = {(2, 8): 80, (3, 8): 105, (2, 4): 20}[cells, int(r[0])]
    with small_factor(r):
        made = et.local.Protocol(guarantee=et.ZCDP(largest / (2 * variance)), clients=5, low=0, high=1, cells=cells)
        assert made.swap_distance_squared == largest
        return made


def test_every_draw_played_through_the_real_client() -> None:
    """w = 2: all Z in a box, both cells, orders 1.25 and 2. Outputs outside of the box carry less than 1e-12."""
    made = protocol(2, Fraction(5), np.array([4, 2], dtype=np.int64))
    laws: list[dict[tuple[int, ...], float]] = []
    for cell in range(2):
        outcomes: dict[tuple[int, ...], float] = {}
        for z in itertools.product(range(-21, 22), repeat=2):
            y, law = sent(made, middle_of(made, cell), np.array(z))
            probability = float(np.prod(masses(law, 40)[np.array(z) + 40]))
            outcomes[tuple(y.tolist())] = outcomes.get(tuple(y.tolist()), 0.0) + probability
        laws.append(outcomes)
        assert sum(outcomes.values()) == pytest.approx(1, abs=1e-12)
    for p, q in (laws, laws[::-1]):
        for order in (1.25, 2.0):
            total = sum(mass**order * q[y] ** (1 - order) for y, mass in p.items() if q.get(y, 0) > 0)
            lost = np.log(total) / (order - 1)
            assert lost <= order * made.guarantee.rho * (1 + 1e-9)  # type: ignore[union-attr]
            assert lost >= order * made.guarantee.rho * (1 - 1e-4), "and the promise is used up"  # type: ignore[union-attr]


def test_a_message_is_its_column_and_the_draws() -> None:
    """What the next tests take for granted: y - Z depends on the cell alone, and the law on nothing."""
    rng = np.random.default_rng(1)
    made = protocol(3)
    for cell in range(3):
        plain, law = sent(made, middle_of(made, cell))
        assert plain.tolist() == [0] * cell + SMALL[: 3 - cell].tolist()
        for _ in range(20):
            z = rng.integers(-40, 41, 3)
            assert ((sent(made, middle_of(made, cell), z)[0] - z) == plain).all()
            assert law == sent(made, rng.random(), z)[1] == made.law


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(6), Fraction(100, 3)])
def test_all_pairs_of_cells_within_the_promise(cells: int, variance: Fraction) -> None:
    made = protocol(cells, variance)
    for order in ORDERS:
        found = worst_loss(made, order)
        assert found <= 1 + 1e-9
        if variance > 1:
            assert found >= 1 - 1e-6, "the worst pair uses up the promise"


@pytest.mark.parametrize("cells", [2, 3, 16])
def test_the_factor_in_use_within_the_promise(cells: int) -> None:
    made = et.local.Protocol(guarantee=et.ApproxDP(1.0, 1e-6), clients=5, low=0, high=1, cells=cells)
    rho = made.guarantee.to_zcdp().exact_rho
    columns = [sent(made, middle_of(made, cell))[0] for cell in range(cells)]
    worst = max(sum(int(x) ** 2 for x in a - b) for a in columns for b in columns)
    assert Fraction(worst) / (2 * made.law.sigma_squared) <= rho


def test_all_pairs_of_losses_within_the_promise() -> None:
    """Random points cost nothing: laws of whole messages, mixed by the exact law of the point."""
    made, rng = protocol(3), random.Random(2)
    reach = 34
    one = masses(made.law, reach)

    def law_of(loss: Loss) -> np.ndarray:
        total = np.zeros((2 * reach + 1,) * 3)
        for point, mass in loss.law(made.low, made.high):
            column = sent(made, point)[0]
            moved = [np.concatenate([np.zeros(c), one[: one.size - c]]) for c in column.tolist()]
            total += float(mass) * np.einsum("i,j,k->ijk", *moved)
        return total

    losses = [Loss([], [0]), Loss([0.5], [-1, 1]), Loss([], [-1]), Loss([], [1])]
    for _ in range(4):
        breakpoints = sorted(Fraction(rng.randrange(12), 12) for _ in range(2))
        losses.append(Loss(breakpoints, sorted(Fraction(rng.randrange(-6, 7), 6) for _ in range(3))))
    laws = [law_of(loss) for loss in losses]
    worst = 0.0
    for p, q in itertools.permutations(laws, 2):
        both = (p > 0) & (q > 0)
        lost = np.log(np.sum(p[both] ** 2 / q[both]))
        worst = max(worst, float(lost / (2 * made.guarantee.rho)))  # type: ignore[union-attr]
    assert 0.5 < worst <= 1 + 1e-9
