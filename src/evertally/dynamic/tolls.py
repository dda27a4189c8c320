"""What one step of the neighbouring relation costs a construction, and what its parts may spend therefore.

A *toll* says how many times over a step is charged. Steps are counted in lifetimes where items have names, else in
updates (event) or items; see `Setting`.

Of one lifetime the updates that a construction sees change in at most two places, which have one cell: an insertion and
its deletion come or go, or a deletion moves (dynamic-data 6.3, 14.2). So do those of one update by value, floored at 0
(6.3). In trees of disjoint nodes both are 2 epsilon and 2 rho, not 4 rho: a node holds one of the two places, or both,
of which one sign cancels the other (6.1, "node Gram matrix"). Several steps at once: epsilon adds up, rho by the
triangle inequality for norms, so with the square of their number.

Partition and releases (1.2): pure losses add up. Under (epsilon, delta) the releases keep a rho ledger, converted once
with what the partition leaves of epsilon. Under rho the partition is epsilon^2/2, by concurrent composition
(additions 1: the tree is asked at the boundaries that the partition answered).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evertally.dynamic.parts import Budget, Setting
from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.privacy.conversions import pure_epsilon_of_rho


@dataclass(frozen=True)
class Toll:
    """Multiples of what a partition and the releases are made for.

    >>> Toll(2, 2).of(3)
    Toll(epsilon=6, rho=18)
    """

    epsilon: int  # of the releases, and of a partition
    rho: int

    def of(self, steps: int) -> Toll:
        """Of several steps."""
        return Toll(self.epsilon * steps, self.rho * steps**2)


@dataclass(frozen=True)
class Purse:
    """What there is to spend: `partition` is the epsilon of one partition (None: there is none), `releases` what one
    update may cost in all releases, `charge` what both cost in a step of the neighbouring relation."""

    charge: Guarantee
    partition: Fraction | None
    releases: Budget


def insertions_toll(setting: Setting) -> Toll:
    """Insertion-only: a step is one insertion more or less; they may all be in one node."""
    return Toll(1, 1).of(setting.steps)


def two_toll(setting: Setting) -> Toll:
    """B: insertions and deletions in an instance each, the sides of a fixed division of the records (6.1).

    One update reaches one of them. A lifetime reaches both, or the second one twice, at different ticks.
    """
    if setting.identity == "raw" and setting.protects == "event":
        return Toll(1, 1).of(setting.steps)
    if setting.identity == "value" and setting.protects == "item":
        return Toll(2, 2).of(2 * setting.steps)  # two updates
    return Toll(2, 2).of(setting.steps)


def signed_toll(setting: Setting) -> Toll:
    """One signed instance around an additive mechanism (6.1, refinement)."""
    if setting.identity == "raw" and setting.protects == "item":
        return Toll(1, 1).of(2 * setting.steps)  # the deletion may name another cell of the same node
    return two_toll(setting)


def anew_toll(setting: Setting) -> Toll:
    """K, in each release that a step reaches (13.3): present or not is one item; by value, an update is one copy."""
    by_value = setting.identity in ("value", "raw")
    return Toll(1, 1).of(2 * setting.steps if by_value and setting.protects == "item" else setting.steps)


def purse(setting: Setting, toll: Toll, *, split: Fraction | None = None) -> Purse:
    """What parts may spend so that a step costs no more than the promise. `split`: the part of it that a partition has;
    None: there is none.

    >>> from types import SimpleNamespace as Static
    >>> static = Static(pure=True, concentrated=True)
    >>> item = Setting(static, ApproxDP(1, 1e-6), None, "id", "item", steps=1)
    >>> spent = purse(item, two_toll(item), split=Fraction(1, 2))
    >>> spent.partition, round(spent.releases.rho, 6), round(ApproxDP(0.5, 1e-6).to_zcdp().rho / 2, 6)
    (Fraction(1, 4), 0.003321, 0.003321)
    """
    promise, static = setting.guarantee, setting.static
    part = Fraction(0) if split is None else split
    if isinstance(promise, PureDP):
        if not static.pure:
            raise ConfigurationError("this static mechanism is not pure: promise ApproxDP or ZCDP, or take another one")
        return _pure(promise, promise.exact_epsilon, toll, part)
    if not static.concentrated:
        if not static.pure:
            raise ConfigurationError("this static mechanism takes neither a pure nor a zCDP budget")
        if isinstance(promise, ApproxDP):
            whole = PureDP(promise.exact_epsilon, adversary=promise.adversary)
        else:
            whole = PureDP(pure_epsilon_of_rho(promise.exact_rho), adversary=promise.adversary)
        return _pure(whole, whole.exact_epsilon, toll, part)
    if isinstance(promise, ApproxDP):
        if not part:
            whole_rho = promise.to_zcdp()
            return Purse(whole_rho, None, ZCDP(whole_rho.exact_rho / toll.rho))
        # D_a <= eps_p + a rho, hence (eps_p + eps(rho, delta), delta), for a group as for one update (1.2 [R]).
        left = ApproxDP(promise.exact_epsilon * (1 - part), promise.exact_delta, force=True).to_zcdp()
        return Purse(promise, promise.exact_epsilon * part / toll.epsilon, ZCDP(left.exact_rho / toll.rho))
    rho = promise.exact_rho
    epsilon = pure_epsilon_of_rho(rho * part) / toll.epsilon if part else None
    return Purse(ZCDP(rho, adversary=promise.adversary), epsilon, ZCDP(rho * (1 - part) / toll.rho))


def _pure(charge: PureDP, epsilon: Fraction, toll: Toll, part: Fraction) -> Purse:
    partition = epsilon * part / toll.epsilon if part else None
    releases = epsilon * (1 - part) / toll.epsilon
    assert toll.epsilon * ((partition or 0) + releases) == epsilon, "the parts cost what there is, exactly"
    return Purse(charge, partition, PureDP(releases))


def options_of(setting: Setting, **known: Any) -> dict[str, Any]:
    """The options of a construction with their defaults; others are refused."""
    given = dict(setting.options)
    for name in given:
        if name not in known and name != "unique_deletions":
            raise ConfigurationError(f"this construction has no option {name!r}; it takes {', '.join(known) or 'none'}")
    return known | given


def check_units(setting: Setting) -> None:
    """Refuses the item unit where items cannot be told apart, unless deletions are declared to be unique (12)."""
    by_value = setting.identity in ("value", "raw")
    unique = dict(setting.options).get("unique_deletions", False)
    if setting.protects == "item" and by_value and setting.deletions and not unique:
        raise ConfigurationError(
            f'identity="{setting.identity}" cannot protect items: a deletion that comes twice takes away something '
            'else. Use identity="id" or "token", or protects="event"'
        )
    if setting.max_lifetime is not None and by_value:
        raise ConfigurationError(
            "max_lifetime needs items with names: by value nobody can say which copy expires. "
            'Use identity="id" or "token"'
        )
