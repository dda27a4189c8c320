"""Promises under which a part of an audit sees more than under that of the configuration: what is charged for a step,
and whether there is noise at all, is the same for every promise."""

from __future__ import annotations

from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP

_LOUD = 4.0  # epsilon or rho, at least


def loud(promise: Guarantee) -> Guarantee:
    """A promise so weak that few games show what it allows."""
    if isinstance(promise, PureDP):
        return PureDP(max(_LOUD, promise.epsilon), adversary=promise.adversary)
    if isinstance(promise, ZCDP | ApproxZCDP):  # beside unknown items a share has a delta, which only these use
        return ZCDP(max(_LOUD, promise.rho), adversary=promise.adversary)
    assert isinstance(promise, ApproxDP)
    return ApproxDP(max(_LOUD, promise.epsilon), promise.delta, adversary=promise.adversary, force=True)


def modest(promise: Guarantee) -> Guarantee:
    """A promise whose noise is seen in a few releases: that of a huge one is mostly 0."""
    if isinstance(promise, PureDP):
        return PureDP(min(1.0, promise.epsilon), adversary=promise.adversary)
    if isinstance(promise, ZCDP | ApproxZCDP):
        return ZCDP(min(0.5, promise.rho), adversary=promise.adversary)
    assert isinstance(promise, ApproxDP)
    return ApproxDP(min(1.0, promise.epsilon), promise.delta, adversary=promise.adversary, force=True)
