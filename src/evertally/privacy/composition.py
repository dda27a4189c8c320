"""Several mechanisms on one stream: their losses add up."""

from __future__ import annotations

from evertally.errors import ConfigurationError
from evertally.privacy._promise import Adversary, Cost
from evertally.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP


def compose(*guarantees: Guarantee) -> Guarantee:
    """The guarantee of mechanisms that run side by side on the same stream; rho is not converted.

    Theorems: epsilons and deltas add (basic composition), rho adds (zCDP composition; price-of-continual-release 2,
    streaming-selection 2.1 and 2.3); a pure mechanism enters a zCDP sum at eps^2/2 and an (eps, delta) one at (eps^2/2,
    delta). The result stays pure if all are, is (eps, delta) if all are pure or (eps, delta), otherwise zCDP, with a
    delta if any has one. That these sums hold for mechanisms that *run at the same time* on adaptive input is
    concurrent composition (additions 1, and see `Ledger`). All must protect the same neighbours.

    >>> compose(PureDP(1), PureDP(0.5)), compose(PureDP(1), ZCDP(0.25))
    (PureDP(epsilon=1.5), ZCDP(rho=0.75))
    >>> compose(PureDP(1), ApproxDP(0.5, 1e-6)), compose(ZCDP(0.5), ApproxZCDP(0.5, 1e-6))
    (ApproxDP(epsilon=1.5, delta=1e-06), ApproxZCDP(rho=1.0, delta=1e-06))
    """
    if not guarantees:
        raise ConfigurationError("nothing to compose; give at least one guarantee")
    cost = sum((g.cost for g in guarantees), Cost())
    adaptive = all(g.adversary == "adaptive" for g in guarantees)
    adversary: Adversary = "adaptive" if adaptive else "oblivious"
    if cost.delta >= 1:
        raise ConfigurationError("the deltas add up to 1 or more: together these guarantees promise nothing")
    if cost.epsilon is not None and not cost.delta:
        return PureDP(cost.epsilon, adversary=adversary)
    if cost.epsilon is not None:
        return ApproxDP(cost.epsilon, cost.delta, adversary=adversary, force=True)
    if not cost.delta:
        return ZCDP(cost.rho, adversary=adversary)
    return ApproxZCDP(cost.rho, cost.delta, adversary=adversary, force=True)
