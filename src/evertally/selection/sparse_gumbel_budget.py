"""What a promise buys in sparseGumb: one noise level tau, and from it four noise scales.

streaming-selection 6.2 with the replacement rows of 1.3 and the adaptive claim of 1.4. With s switches, and D the
largest change of one count by one protected unit, the engine uses

    tau1 = sqrt(s) tau D,  tau2 = sqrt(s + 1) tau D
    s + 1 selections, Gumbel scale tau2/2       k/(2 tau^2) in all; 4 times that where counts move both ways (replace)
    (s + 1) k counters, L tau2^2 a block        k/(2 tau^2)
    s sparse vectors, Laplace 2 tau1, 4 tau1    "paper" 2/tau^2, "standard" 1/(2 tau^2), "monotone" 1/(8 tau^2)

zCDP sums are proved for streams that are fixed beforehand. Against adaptive streams the proof exchanges the Gaussian
and selection factors first, and then each sparse vector at every point: (eps(k/tau^2, delta) + 3 sqrt(s)/(4 tau),
delta). Under replacement the same two steps give (eps(5k/(2 tau^2), delta) + sqrt(s)/tau, delta), a standard sparse
vector being (1/tau1)-DP at every point (additions 3). tau^2 is an exact fraction, every scale is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace, round_up
from evertally.privacy import ZCDP, ApproxDP, Change, Guarantee, Neighbours, PureDP
from evertally.privacy.conversions import epsilon_of_rho, rho_of_epsilon_delta
from evertally.selection.roots import root_up

Accounting = Literal["adaptive", "paper", "standard", "monotone"]

# rho of all sparse vectors together, times tau^2
_SPARSE_VECTORS: dict[str, Fraction] = {"paper": Fraction(2), "standard": Fraction(1, 2), "monotone": Fraction(1, 8)}
_BISECTIONS = 45


@dataclass(frozen=True)
class SparseGumbelBudget:
    """The noise of sparseGumb with s = `switches` for a unit that moves a count by at most `linf`.

    >>> budget = sparse_gumbel_budget(ZCDP(3, adversary="oblivious"), 1, 4, 1, Neighbours.ADD_REMOVE)
    >>> budget.accounting, budget.tau_squared, budget.threshold.scale, budget.query.scale
    ('paper', Fraction(1, 1), Fraction(4, 1), Fraction(8, 1))
    >>> round(float(budget.gumbel_scale), 4), budget.instance[0]
    (1.118, ZCDP(rho=0.1))
    """

    charge: Guarantee
    accounting: Accounting
    k: int
    switches: int
    linf: int
    tau_squared: Fraction

    @property
    def gumbel_scale(self) -> Fraction:
        """tau2/2, of the selections."""
        return _root(self._tau2_squared / 4)

    @property
    def threshold(self) -> DiscreteLaplace:
        """Lap(2 tau1), one for each sparse vector."""
        return DiscreteLaplace(_root(4 * self._tau1_squared))

    @property
    def query(self) -> DiscreteLaplace:
        """Lap(4 tau1), fresh for every item and tick."""
        return DiscreteLaplace(_root(16 * self._tau1_squared))

    @property
    def instance(self) -> tuple[ZCDP, Change]:
        """What the counter of one selected item pays (blocks of variance L tau2^2), and how far one unit moves it."""
        return ZCDP(1 / (2 * (self.switches + 1) * self.tau_squared)), Change(self.linf, self.linf**2, self.linf)

    @property
    def _tau1_squared(self) -> Fraction:
        return self.switches * self.tau_squared * self.linf**2

    @property
    def _tau2_squared(self) -> Fraction:
        return (self.switches + 1) * self.tau_squared * self.linf**2


def sparse_gumbel_budget(
    guarantee: Guarantee, k: int, switches: int, linf: int, neighbours: Neighbours, accounting: str | None = None
) -> SparseGumbelBudget:
    """The smallest tau that keeps `guarantee` under this accounting (default: "adaptive", or "paper" if oblivious).

    >>> budget = sparse_gumbel_budget(ApproxDP(1.0, 1e-6), 1, 4, 1, Neighbours.ADD_REMOVE)
    >>> budget.accounting, round(float(budget.tau_squared) ** 0.5, 3)
    ('adaptive', 7.82)
    """
    chosen = _accounting(guarantee, neighbours, accounting)
    replaced = neighbours is Neighbours.REPLACE
    # Without monotone counts the range of the exponential mechanism doubles, and its rho is four times as large (1.3).
    rate = Fraction(k, 2) * (4 if replaced else 1) + Fraction(k, 2)
    charge: Guarantee
    if chosen == "adaptive":
        assert isinstance(guarantee, ApproxDP)
        pure = Fraction(1) if replaced else Fraction(3, 4)
        x = _largest(guarantee.exact_epsilon, guarantee.exact_delta, rate, pure**2 * switches)
        tau_squared, charge = 1 / x, guarantee
    else:
        charge = ZCDP(guarantee.to_zcdp().exact_rho, adversary=guarantee.adversary)
        rate += _SPARSE_VECTORS[chosen] if switches else 0
        tau_squared = rate / charge.exact_rho
    return SparseGumbelBudget(charge, chosen, k, switches, linf, tau_squared)


def _accounting(guarantee: Guarantee, neighbours: Neighbours, accounting: str | None) -> Accounting:
    names: tuple[Accounting, ...] = ("adaptive", "paper", "standard", "monotone")
    if accounting is not None and accounting not in names:
        raise ConfigurationError(f"accounting is one of {', '.join(names)}, not {accounting!r}")
    if isinstance(guarantee, PureDP):
        raise ConfigurationError(
            'mechanism "sparse-gumbel" counts with Gaussian noise, which is never pure; '
            'give ApproxDP(epsilon, delta), or use mechanism="tree"'
        )
    if neighbours is Neighbours.INDEPENDENT:
        raise ConfigurationError('mechanism "sparse-gumbel" is proved for "add_remove" and "replace" neighbours only')
    oblivious = guarantee.adversary == "oblivious"
    chosen = next(n for n in names if n == (accounting or ("paper" if oblivious else "adaptive")))
    if chosen == "adaptive":
        if not isinstance(guarantee, ApproxDP):
            raise ConfigurationError(
                'against adaptive streams mechanism "sparse-gumbel" is proved (epsilon, delta)-DP, not zCDP '
                "(streaming-selection 1.4): give ApproxDP(epsilon, delta), or, if the stream does not react to the "
                'releases, say so with adversary="oblivious"; mechanism="meta" keeps zCDP against adaptive streams'
            )
        return chosen
    if not oblivious:
        raise ConfigurationError(
            f'accounting={chosen!r} is proved for streams that are fixed beforehand: say adversary="oblivious" in the '
            'guarantee, or use accounting="adaptive" with ApproxDP(epsilon, delta)'
        )
    if chosen == "monotone" and neighbours is not Neighbours.ADD_REMOVE:
        raise ConfigurationError(
            'accounting="monotone" needs counts that all move one way; under "replace" use accounting="standard"'
        )
    return chosen


@lru_cache(maxsize=256)
def _largest(epsilon: Fraction, delta: Fraction, rate: Fraction, pure_squared: Fraction) -> Fraction:
    """The largest x = 1/tau^2 found with eps(rate x, delta) + sqrt(pure_squared x) <= epsilon, certainly."""

    def fits(x: Fraction) -> bool:
        return epsilon_of_rho(rate * x, delta) + root_up(pure_squared * x) <= epsilon

    high = rho_of_epsilon_delta(epsilon, delta) / rate
    if not pure_squared:
        return high
    high = min(high, epsilon**2 / pure_squared)
    # Half of epsilon for each part; a hair less, because converting there and back may round up.
    low = min(rho_of_epsilon_delta(epsilon / 2, delta) / rate, epsilon**2 / (4 * pure_squared))
    low *= 1 - Fraction(1, 2**40)
    assert fits(low)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _root(square: Fraction) -> Fraction:
    """A noise scale: the root, rounded up to a short fraction."""
    return round_up(root_up(square))
