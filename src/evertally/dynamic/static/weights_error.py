"""What multiplicative weights are off by: a bound that is proved (additions 10), from public numbers.

For all queries at once, n^ the noisy size, m how far it is off, z the largest measurement noise, K rounds, and
g = scale ln(|Q| K/beta) what a selection may miss:

    |f(D) - answer| <= sqrt(4 (n^)^2 ln|X|/K + (z + m)^2) + g + m + grid, and at most n + m.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evertally.counting.process import spread_of
from evertally.dynamic.parts import Budget
from evertally.noise import Law

LARGEST_SIZE = 2**40

if TYPE_CHECKING:
    from evertally.dynamic.static.weights_update import MultiplicativeWeights

_FINENESS = 8  # intervals of sizes for each doubling


def one_release(static: MultiplicativeWeights, budget: Budget, beta: float, size: float) -> float:
    """A bound for every size up to `size`: over sizes in [low, high] by the fewest and the most rounds that may come.

    The number of rounds rises with the noisy size, and the noisy size is within m.
    """
    m = _radius(static.size_law(budget), 1, beta / 3)
    if size + m > min(LARGEST_SIZE, static.largest_count):
        return math.inf  # counts are clipped
    worst, high = 0.0, max(size, 1.0)
    while True:
        low = high / 2 ** (1 / _FINENESS)
        worst = max(worst, min(high + m, _between(static, budget, beta, low if high > 1 else 0.0, high, m)))
        if high + m <= worst or high <= 1:
            return worst
        high = low


def _between(static: MultiplicativeWeights, budget: Budget, beta: float, low: float, high: float, m: float) -> float:
    if low - m < 1:
        return math.inf  # the noisy size may be 0, and then the answer is
    fewest = static.rounds(budget, math.floor(low - m), own_size=True)
    most = static.rounds(budget, math.ceil(high + m), own_size=True)
    K = most.count
    queries, grid = static.queries, static.family.unit
    g = float(most.select_scale) / grid * math.log(queries * 3 * K / beta)
    z = _radius(most.measure_law(), grid, beta / (3 * K))
    # n^ is what the synthetic data have in all: the term of the entropy has its square.
    begin = math.log(static.cells) + K * static.cells * 2.0**-static.weight_bits
    entropy = 4 * (high + m) ** 2 * begin / fewest.count
    rounding = 2 / grid + static.cells * 2.0**-20
    return math.sqrt(entropy + (z + m + rounding) ** 2) + g + m + rounding


def _radius(law: Law, grid: int, beta: float) -> float:
    return spread_of(law, 1.0, 1.0).radius(beta) / grid
