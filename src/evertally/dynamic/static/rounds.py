"""How multiplicative weights spend a budget: K rounds, each a selection and a measurement, and the size (3.3).

All in fractions: pure 2 K eps0 + eps0' = eps; zCDP K (eps0^2/8 + eps0^2/2) + eps0'^2/2 = rho, where only the root eps0
of the selection is rounded, down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from evertally.dynamic.parts import Budget
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.noise.laws import SMALLEST_SCALE
from evertally.privacy import PureDP
from evertally.selection.noisy_max import require_scale
from evertally.selection.roots import root_down

SIZE_SHARE = Fraction(1, 16)  # of the budget, where a release measures its own size


@dataclass(frozen=True)
class Rounds:
    """K rounds and their budgets: epsilons if pure, rhos otherwise. `grid`: what an item moves an answer by.

    >>> rounds = Rounds(True, 4, Fraction(1, 10), Fraction(1, 10), Fraction(1, 5), grid=1)
    >>> rounds.spent, rounds.select_scale
    (Fraction(1, 1), Fraction(20, 1))
    """

    pure: bool
    count: int
    select_epsilon: Fraction
    measure: Fraction
    size: Fraction  # 0 where somebody else gave the size
    grid: int

    @property
    def spent(self) -> Fraction:
        """The whole charge: never more than the budget."""
        select = self.select_epsilon if self.pure else self.select_epsilon**2 / 8
        return self.count * (select + self.measure) + self.size

    @property
    def select_scale(self) -> Fraction:
        """Of the Gumbel variates: 2 sensitivity/eps0, since one item may move scores in both directions."""
        return 2 * self.grid / self.select_epsilon

    def measure_law(self) -> Law:
        """The noise of a measurement."""
        return _law(self.pure, self.measure, self.grid)

    def size_law(self) -> Law:
        """The noise of the size."""
        return _law(self.pure, self.size, 1)

    def check(self) -> None:
        """Refuses noise that there is no law for."""
        self.measure_law()
        self.size_law()
        require_scale(self.select_scale)


def rounds_for(budget: Budget, size: int, own_size: bool, cells: int, queries: int, grid: int, most: int) -> Rounds:
    """The rounds of a release whose noisy size is known.

    K balances the bound of the error (`weights_error`): about (n^ eps)^(2/3) (sqrt(ln|X|)/ln|Q|)^(2/3) for pure budgets
    and n^ sqrt(rho ln|X|)/ln|Q| for rho, a power of two. In integers and fractions: a float here would decide laws.

    >>> from evertally.privacy import ZCDP
    >>> [rounds_for(budget, 10**4, True, 1024, 1000, 1, 256).count for budget in (PureDP(1), ZCDP(1))]
    [64, 256]
    """
    x, q = cells.bit_length(), queries.bit_length() + 9
    pure = isinstance(budget, PureDP)
    total = budget.exact_epsilon if isinstance(budget, PureDP) else budget.exact_rho
    own = total * SIZE_SHARE if own_size else Fraction(0)
    if pure:
        cube = size**2 * total**2 * x / (11 * q**2)
        count = _power_of_two(lambda K: cube >= K**3, most)
    else:
        square = Fraction(23, 10) * size**2 * total * x / q**2
        count = _power_of_two(lambda K: square >= K**2, most)
    each = (total - own) / count
    if pure:
        return Rounds(True, count, each / 2, each / 2, own, grid)
    return Rounds(False, count, root_down(each * Fraction(8, 5)), each * Fraction(4, 5), own, grid)


def _power_of_two(reached: Callable[[int], bool], most: int) -> int:
    K = 1
    while most >= 2 * K and reached(2 * K):
        K *= 2
    return K


def _law(pure: bool, part: Fraction, sensitivity: int) -> Law:
    if pure:
        return DiscreteLaplace(max(round_up(sensitivity / part), SMALLEST_SCALE))
    return DiscreteGaussian(max(round_up(sensitivity**2 / (2 * part)), SMALLEST_SCALE**2))
