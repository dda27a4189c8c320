"""What is promised: pure, zero-concentrated and approximate differential privacy, as exact value objects.

A guarantee holds its parameters as exact fractions (a float is the binary fraction it stores) and shows them as floats
rounded up, so that no printed number claims less loss than is real. It covers the whole life of a stream.

Two questions have opposite directions, and mixing them up is a privacy bug:

- *What does this mechanism satisfy?* `cost`, `covers`, `to_approx`, `group`: weaker promises that follow.
- *What may I spend under this promise?* `share`: stronger promises that suffice.

A delta above 1e-3 is refused unless `force=True` says that it is meant; above 1e-5 the guarantee warns
wherever it is shown (`warning`). What *follows* from a promise (`to_approx`, `group`, a sum, a share) is a
statement and no new promise: it is never refused for its delta, and warns all the same.

`to_zcdp` is the first for `PureDP` (a pure mechanism *is* eps^2/2-zCDP; a zCDP mechanism is never pure) and
the second for `ApproxDP` and `ApproxZCDP` (a mechanism with that rho satisfies the promise).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from evertally.errors import ConfigurationError
from evertally.privacy._delta import checked_delta
from evertally.privacy._exact import SMALLEST_FLOAT, Number, exact, positive, probability
from evertally.privacy._promise import Adversary, Cost, Promise, RoundedUp, group_size, read_share, set_parameters
from evertally.privacy.conversions import epsilon_of_rho, group_delta, rho_of_epsilon_delta


@dataclass(frozen=True, repr=False, init=False)
class PureDP(Promise):
    """epsilon-differential privacy: no outcome becomes more likely than by the factor e^epsilon.

    Theorems: eps-DP implies eps^2/2-zCDP (Bun and Steinke; price-of-continual-release 2); a group of k costs
    k eps, adaptive inputs included (price-of-continual-release 2, groups in the adaptive game).

    >>> g = PureDP(epsilon=1.0)
    >>> g.to_zcdp(), g.to_approx(delta=1e-9), g.share("1/4"), g.group(3)
    (ZCDP(rho=0.5), ApproxDP(epsilon=1.0, delta=1e-09), PureDP(epsilon=0.25), PureDP(epsilon=3.0))
    """

    exact_epsilon: Fraction
    epsilon = RoundedUp()

    def __init__(self, epsilon: Number, *, adversary: Adversary = "adaptive") -> None:
        set_parameters(self, adversary, exact_epsilon=positive(epsilon, "epsilon"))

    @property
    def cost(self) -> Cost:
        return Cost(self.exact_epsilon, self.exact_epsilon**2 / 2)

    def used_by(self, cost: Cost) -> Fraction | None:
        """The sum of pure epsilons over epsilon; nothing but pure mechanisms fits."""
        return None if cost.epsilon is None or cost.delta else cost.epsilon / self.exact_epsilon

    def to_zcdp(self) -> ZCDP:
        """The zCDP guarantee that follows: rho = epsilon^2/2. (It never permits Gaussian noise here.)"""
        return ZCDP(self.exact_epsilon**2 / 2, adversary=self.adversary)

    def to_approx(self, delta: Number) -> ApproxDP:
        """(epsilon, delta) for any delta: no conversion through zCDP is ever better at a useful delta."""
        return ApproxDP(self.exact_epsilon, delta, adversary=self.adversary, force=True)

    def share(self, fraction: Fraction | str | float) -> PureDP:
        """The given part of epsilon."""
        return PureDP(self.exact_epsilon * read_share(fraction), adversary=self.adversary)

    def group(self, size: int) -> PureDP:
        """The guarantee for `size` events at once: size * epsilon."""
        return PureDP(self.exact_epsilon * group_size(size), adversary=self.adversary)


@dataclass(frozen=True, repr=False, init=False)
class ZCDP(Promise):
    """rho-zero-concentrated differential privacy: Renyi divergence of every order a at most a rho.

    Theorems: rho adds under composition (price-of-continual-release 2 [P 2.13]); a group of k costs k^2 rho, adaptive
    inputs included (price-of-continual-release 2); conversion to (eps, delta) as in `epsilon_of_rho`.

    >>> g = ZCDP(rho=0.5)
    >>> g.share(0.1), g.group(2), round(g.to_approx(1e-6).epsilon, 4)
    (ZCDP(rho=0.05), ZCDP(rho=2.0), 5.2215)
    """

    exact_rho: Fraction
    rho = RoundedUp()

    def __init__(self, rho: Number, *, adversary: Adversary = "adaptive") -> None:
        set_parameters(self, adversary, exact_rho=positive(rho, "rho"))

    @property
    def cost(self) -> Cost:
        return Cost(None, self.exact_rho)

    def used_by(self, cost: Cost) -> Fraction | None:
        """The sum of rho over rho; a delta never fits."""
        return None if cost.delta else cost.rho / self.exact_rho

    def to_zcdp(self) -> ZCDP:
        return self

    def to_approx(self, delta: Number) -> ApproxDP:
        """The (epsilon, delta) guarantee that follows, by the optimised conversion, rounded up."""
        return _approx(self.exact_rho, probability(delta, "delta"), Fraction(0), self.adversary)

    def share(self, fraction: Fraction | str | float) -> ZCDP:
        """The given part of rho."""
        return ZCDP(self.exact_rho * read_share(fraction), adversary=self.adversary)

    def group(self, size: int) -> ZCDP:
        """The guarantee for `size` events at once: size^2 * rho."""
        return ZCDP(self.exact_rho * group_size(size) ** 2, adversary=self.adversary)


@dataclass(frozen=True, repr=False, init=False)
class ApproxDP(Promise):
    """(epsilon, delta)-differential privacy.

    Theorems: kept by every mechanism of rho at most `rho_of_epsilon_delta` (price-of-continual-release 2.1
    row 3), hence `share` hands out zCDP; itself delta-approximately eps^2/2-zCDP (streaming-selection 2.1);
    a group of k costs (k eps, delta (e^{k eps} - 1)/(e^eps - 1)) (price-of-continual-release 2 [P 2.3]).

    >>> g = ApproxDP(epsilon=1.0, delta=1e-6)
    >>> round(g.to_zcdp().rho, 6), round(g.share(0.5).rho, 6)
    (0.024356, 0.012178)
    >>> g.group(2)
    ApproxDP(epsilon=2.0, delta=3.7182818284590455e-06)
    >>> ApproxDP(epsilon=1.0, delta=0.1)
    Traceback (most recent call last):
    evertally.errors.ConfigurationError: delta 0.1 is above 0.001: the promise may fail altogether for one in 10 ...
    """

    exact_epsilon: Fraction
    exact_delta: Fraction
    epsilon, delta = RoundedUp(), RoundedUp()

    def __init__(
        self, epsilon: Number, delta: Number, *, adversary: Adversary = "adaptive", force: bool = False
    ) -> None:
        e, d = positive(epsilon, "epsilon"), checked_delta(probability(delta, "delta"), force)
        set_parameters(self, adversary, exact_epsilon=e, exact_delta=d)

    @property
    def cost(self) -> Cost:
        """(epsilon, epsilon^2/2, delta): basic composition, or delta-approximate zCDP."""
        return Cost(self.exact_epsilon, self.exact_epsilon**2 / 2, self.exact_delta)

    def used_by(self, cost: Cost) -> Fraction | None:
        """The better of two counts: epsilons and deltas added, or rho converted once with the delta left."""
        ways = []
        if cost.epsilon is not None:
            ways.append(max(cost.epsilon / self.exact_epsilon, cost.delta / self.exact_delta))
        if cost.delta < self.exact_delta:
            ways.append(cost.rho / self._rho_beside(cost.delta))
        return min(ways, default=None)

    def left_after(self, cost: Cost) -> Fraction:
        """The largest share (of rho, see `share`) that still fits beside `cost`."""
        if cost.delta >= self.exact_delta:
            return Fraction(0)
        return max(Fraction(0), (self._rho_beside(cost.delta) - cost.rho) / self._rho_beside(Fraction(0)))

    def to_zcdp(self) -> ZCDP:
        """The largest certified rho that keeps this promise, rounded down."""
        return ZCDP(self._rho_beside(Fraction(0)), adversary=self.adversary)

    def to_approx(self, delta: Number) -> ApproxDP:
        """The same epsilon with a larger delta; a smaller delta does not follow and is refused."""
        if exact(delta, "delta") < self.exact_delta:
            raise ConfigurationError(
                f"{self} does not imply a smaller delta than {self.delta}; ask for delta={self.delta} or more"
            )
        return ApproxDP(self.exact_epsilon, delta, adversary=self.adversary, force=True)

    def share(self, fraction: Fraction | str | float) -> ZCDP:
        """The given part of the rho that keeps this promise: parts of rho add up, those of epsilon do not."""
        return self.to_zcdp().share(fraction)

    def with_bad_event(self, part: Fraction | str | float = "1/2") -> ApproxZCDP:
        """A stronger promise in the currency of unknown items: `part` of delta for a bad event, rho from the rest.

        Theorem: streaming-selection 2.3, one conversion at the end. Shares of it have a delta, which shares of this
        promise have not: a stream whose mechanisms need one is opened with it.

        >>> promise = ApproxDP(1.0, 1e-6).with_bad_event()
        >>> round(promise.rho, 6), promise.delta, ApproxDP(1.0, 1e-6).covers(promise)
        (0.022937, 5e-07, True)
        """
        bad = self.exact_delta * read_share(part)
        if bad == self.exact_delta:
            raise ConfigurationError("a part of delta below 1: the conversion of rho needs some of it")
        return ApproxZCDP(self._rho_beside(bad), bad, adversary=self.adversary, force=True)

    def group(self, size: int) -> ApproxDP:
        """The guarantee for `size` events at once, delta rounded up; refused where it would be empty."""
        delta = group_delta(self.exact_epsilon, self.exact_delta, group_size(size))
        if delta >= 1:
            raise ConfigurationError(
                f"{self} says nothing about groups of {size}: their delta reaches 1. Take a smaller delta or epsilon."
            )
        return ApproxDP(self.exact_epsilon * size, delta, adversary=self.adversary, force=True)

    def _rho_beside(self, delta: Fraction) -> Fraction:
        return rho_of_epsilon_delta(self.exact_epsilon, self.exact_delta - delta)


@dataclass(frozen=True, repr=False, init=False)
class ApproxZCDP(Promise):
    """rho-zCDP up to a bad event of probability delta.

    Meaning: for each neighbouring pair there are laws A_0, A_1 that are rho-close and one weight function
    `0 <= w <= 1` on outcomes with `w A_b <= M(x_b)` pointwise and `E_{A_b}[w] >= 1 - delta` for b = 0, 1.
    With constant w this is the conditioning definition of streaming-selection 2.1, with an indicator w the
    dominated form of 2.3; both may be mixed, because the proofs of 2.3 only use the inequalities:

    - conversion: `M_b(S) <= A_b(w 1_S) + delta <= e^eps A_{1-b}(w 1_S) + delta' + delta`, and
      `A_{1-b}(w 1_S) <= M_{1-b}(S)`;
    - composition: the weight `w_1(y_1) w_2(y_1, y_2)` has mean at least (1 - delta_1)(1 - delta_2).

    >>> round(ApproxZCDP(rho=0.1, delta=1e-9).to_approx(1e-6).epsilon, 4)
    2.142
    """

    exact_rho: Fraction
    exact_delta: Fraction
    rho, delta = RoundedUp(), RoundedUp()

    def __init__(self, rho: Number, delta: Number, *, adversary: Adversary = "adaptive", force: bool = False) -> None:
        r, d = positive(rho, "rho"), checked_delta(probability(delta, "delta"), force)
        set_parameters(self, adversary, exact_rho=r, exact_delta=d)

    @property
    def cost(self) -> Cost:
        return Cost(None, self.exact_rho, self.exact_delta)

    def used_by(self, cost: Cost) -> Fraction | None:
        """The larger of the parts of rho and of delta."""
        return max(cost.rho / self.exact_rho, cost.delta / self.exact_delta)

    def to_zcdp(self) -> ZCDP:
        """The same rho without a bad event: it suffices for this promise."""
        return ZCDP(self.exact_rho, adversary=self.adversary)

    def to_approx(self, delta: Number) -> ApproxDP:
        """The (epsilon, delta) guarantee that follows; delta must exceed the one already spent."""
        total = probability(delta, "delta")
        if total <= self.exact_delta:
            raise ConfigurationError(f"{self} has spent its delta; ask for a delta above {self.delta}")
        return _approx(self.exact_rho, total, self.exact_delta, self.adversary)

    def share(self, fraction: Fraction | str | float) -> ApproxZCDP:
        """The given part of rho and of delta."""
        part = read_share(fraction)
        return ApproxZCDP(self.exact_rho * part, self.exact_delta * part, adversary=self.adversary, force=True)

    def group(self, size: int) -> ApproxZCDP:
        """Refused for more than one event: no theorem of the specs covers the bad event of a group."""
        if group_size(size) > 1:
            raise ConfigurationError(
                "group privacy is not proved for approximate zCDP; use to_approx(delta).group(size) instead"
            )
        return self


Guarantee = PureDP | ZCDP | ApproxDP | ApproxZCDP


def _approx(rho: Fraction, total_delta: Fraction, spent_delta: Fraction, adversary: Adversary) -> ApproxDP:
    epsilon = epsilon_of_rho(rho, total_delta - spent_delta)
    # Where delta alone covers the loss the bound is (0, delta); a guarantee has a positive epsilon.
    return ApproxDP(max(epsilon, SMALLEST_FLOAT), total_delta, adversary=adversary, force=True)
