"""One release of a histogram: all counts, the largest counts, or those above a threshold. streaming-selection 4.

Four settings, and the mechanisms for them:

| | an event touches few items (`max_items`) | an event may touch all of them |
|---|---|---|
| the labels are public | `KnownGauss`: all counts | `KnownGumbel`: the k largest |
| labels come with the data | what passes a threshold, see below | `UnknownGumbel`: at most k |

Thresholds: `FixedThresholdGauss` looks at all counts, `UnknownGauss` and `LimitedDomainLaplace` at the kbar largest.

Exactness tier "exact" throughout: integer noise of the exact law, real variates that are compared and never rounded,
thresholds rounded up. Noise is addressed by label, so the order in which items arrived has no influence; what is
released comes in the order of released numbers, then of labels.

`delta`, where labels are unknown, bounds the probability that a label is shown which exists in one of two neighbouring
histograms only; see `bounds/selection.py`. The charge of such a mechanism is the pair (rho, delta_bad) of the dominated
form (2.3 there), with the constants of `Reach` for weights, replacement and several events of a user (1.3 there).

Counts that are released because they passed a noisy test are too high on average, the more the closer to the threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.selection import gaussian_margin, gumbel_margin, gumbel_q, laplace_margin
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, ItemSource, Law, item_addresses, round_up
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee
from evertally.selection.items import LARGEST_COUNT, IntArray, Items
from evertally.selection.noisy_max import noisy_argmax, require_scale
from evertally.selection.reach import Reach, whole
from evertally.selection.roots import root_down, root_up

Released = list[tuple[str, int | None]]

# Lanes: noise on counts is never that of the selection, which would reveal by how much a label won (4.2).
LABELS = "one-shot labels"
COUNTS = "one-shot counts"

_NO_REACH = Reach()


class OneShot(Protocol):
    """A mechanism that looks at one histogram, once."""

    @property
    def charge(self) -> Guarantee:
        """What one release costs, if the whole unit lies in its histogram."""

    @property
    def charge_apart(self) -> Guarantee:
        """At least what releases of several histograms cost together, each with a part of one unit: rho is their sum,
        delta that of one of them."""

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        """(label, noisy count) pairs; None in place of counts that are not released.

        A node serves one histogram: the same noise on another one reveals the difference.
        """


class _Checked(OneShot):
    reach: Reach

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def charge_apart(self) -> Guarantee:
        return self.charge  # (squared) norms are superadditive: spreading a unit over histograms costs nothing


class _Gauss(_Checked):
    variance: Fraction
    max_items: int

    @property
    def law(self) -> DiscreteGaussian:
        """The noise of a count, and of a threshold that has noise."""
        return DiscreteGaussian(self.variance)

    @property
    def _rho(self) -> Fraction:
        return self.reach.l2_squared(self.max_items) / (2 * self.variance)


class _Gumbel(_Checked):
    k: int
    scale: Fraction
    count_variance: Fraction | None

    @property
    def law(self) -> DiscreteGaussian | None:
        """The noise of a count, if counts are released."""
        return None if self.count_variance is None else DiscreteGaussian(self.count_variance)

    @property
    def _numbers(self) -> tuple[int, Fraction, Fraction | None, Reach]:
        return self.k, self.scale, self.count_variance, self.reach


@dataclass(frozen=True)
class KnownGauss(_Gauss):
    """All counts of a public domain with Gaussian noise, in the order of the domain.

    Theorem (streaming-selection 4.1): Delta0 D^2/(2 variance)-zCDP; twice that under replacement. Time and memory O(d).

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> KnownGauss(variance=8, max_items=2).release(Items.of({"b": 3, "a": 0}, source), source, node=1)
    [('b', 3), ('a', 0)]
    >>> KnownGauss(variance=8, max_items=2).charge, KnownGauss.within(ZCDP(0.125), max_items=2).variance
    (ZCDP(rho=0.125), Fraction(8, 1))
    """

    variance: Fraction
    max_items: int
    reach: Reach = _NO_REACH

    @classmethod
    def within(cls, charge: ZCDP, max_items: int, reach: Reach = _NO_REACH) -> Self:
        """The least noise that `charge` pays for."""
        return cls(_variance(reach.l2_squared(max_items), charge.exact_rho), max_items, reach)

    @property
    def charge(self) -> ZCDP:
        return ZCDP(self._rho)

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        noisy = items.counts + source.item_draws(COUNTS, self.law, node, items.addresses)
        return list(zip(items.labels, noisy.tolist(), strict=True))


@dataclass(frozen=True)
class KnownGumbel(_Gumbel):
    """The k largest of a public domain, best first: labels alone, or with noisy counts (`count_variance`).

    Theorem (streaming-selection 4.2, 2.2): k selections by the exponential mechanism, one after the other, each
    D^2/(8 scale^2)-zCDP because all counts move one way, and four times that under replacement, where they do not (1.3
    there); and k counts with fresh noise, D^2/(2 count_variance) each. With probability 1 - beta the first label is at
    most scale ln(d/beta) below the largest. Time O(d + k log k), memory O(d); the time depends on data in near-ties.

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> items = Items.of({"a": 3, "b": 0, "c": 9}, source)
    >>> tau = 2
    >>> KnownGumbel(2, scale=Fraction(tau, 2), count_variance=tau**2).release(items, source, node=1)
    [('c', 9), ('a', 3)]
    >>> KnownGumbel(2, Fraction(tau, 2), tau**2).charge, KnownGumbel(2, Fraction(tau, 2)).charge
    (ZCDP(rho=0.5), ZCDP(rho=0.25))
    """

    k: int
    scale: Fraction
    count_variance: Fraction | None = None
    reach: Reach = _NO_REACH

    @classmethod
    def within(cls, charge: ZCDP, k: int, *, counts: bool = True, reach: Reach = _NO_REACH) -> Self:
        """The paper's tau = 2 scale = sqrt(count_variance), as small as `charge` allows."""
        return cls(k, *_tau(charge.exact_rho, k, counts, reach), reach)

    @property
    def charge(self) -> ZCDP:
        return ZCDP(_gumbel_rho(*self._numbers))

    @property
    def charge_apart(self) -> ZCDP:
        return ZCDP(_rho_apart(*self._numbers))

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        if self.k > len(items.labels):
            raise ConfigurationError(f"k = {self.k} items are more than the domain has, {len(items.labels)}")
        variates = source.item_variates(LABELS, "gumbel", node, items.addresses)
        best = noisy_argmax(items.counts, self.scale, variates, self.k)
        return _with_counts(items, np.array(best, dtype=np.int64), self.law, source, node)


@dataclass(frozen=True)
class UnknownGauss(_Gauss):
    """What passes a noisy threshold, from the kbar largest counts: Gaussian noise, unknown labels.

    The threshold lies `margin` above h_(kbar+1) + D (2D under replacement) and has noise of its own.

    Theorem (streaming-selection 4.3): (Delta0 D^2/(2 variance), g Delta0 delta), both doubled under replacement (1.3
    there). Charged for Delta0 labels and not for kbar because items that tie at rank kbar are taken by label, and
    because items that equal h_(kbar+1) are candidates too; see the traps there. `kbar` costs no privacy: it limits how
    many counts are looked at, and a larger one lowers the threshold. Time O(n), memory O(n + kbar).

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> mechanism = UnknownGauss(kbar=2, variance=1, max_items=1, delta=Fraction(1, 10**6))
    >>> mechanism.margin, mechanism.charge
    (7, ApproxZCDP(rho=0.5, delta=1e-06))
    >>> items = Items.of({"a": 20, "b": 14, "c": 6}, source)
    >>> mechanism.release(items, source, node=1)  # the threshold is 6 + 1 + 7
    [('a', 20)]
    """

    kbar: int
    variance: Fraction
    max_items: int
    delta: Fraction
    reach: Reach = _NO_REACH

    @classmethod
    def within(cls, charge: ApproxZCDP, kbar: int, max_items: int, reach: Reach = _NO_REACH) -> Self:
        """The least noise and the lowest threshold that `charge` pays for."""
        variance = _variance(reach.l2_squared(max_items), charge.exact_rho)
        return cls(kbar, variance, max_items, charge.exact_delta / reach.labels(max_items), reach)

    @property
    def charge(self) -> ApproxZCDP:
        return ApproxZCDP(self._rho, self.reach.labels(self.max_items) * self.delta, force=True)

    @cached_property
    def margin(self) -> int:
        """The difference of two draws exceeds it with probability at most delta (10.4 there)."""
        return gaussian_margin(2 * self.variance, self.delta)

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        return _past_noisy_threshold(items, self.kbar, self.reach.above_cut + self.margin, self.law, source, node)


@dataclass(frozen=True)
class LimitedDomainLaplace(_Checked):
    """As `UnknownGauss`, with Laplace noise and its exact tail.

    Theorem (streaming-selection 4.4): (Delta0 D/scale, g Delta0 delta)-DP, both doubled under replacement (1.3 there).

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> mechanism = LimitedDomainLaplace(kbar=2, scale=1, max_items=1, delta=Fraction(1, 10**6))
    >>> mechanism.margin, mechanism.charge
    (15, ApproxDP(epsilon=1.0, delta=1e-06))
    >>> items = Items.of({"a": 30, "b": 22, "c": 6}, source)
    >>> mechanism.release(items, source, node=1)  # the threshold is 6 + 1 + 15
    [('a', 30)]
    """

    kbar: int
    scale: Fraction
    max_items: int
    delta: Fraction
    reach: Reach = _NO_REACH

    def __post_init__(self) -> None:
        _settle(self, scale=lambda value: DiscreteLaplace(value).scale)

    @classmethod
    def within(cls, charge: ApproxDP, kbar: int, max_items: int, reach: Reach = _NO_REACH) -> Self:
        """The least noise and the lowest threshold that `charge` pays for."""
        scale = round_up(reach.l1(max_items) / charge.exact_epsilon)
        return cls(kbar, scale, max_items, charge.exact_delta / reach.labels(max_items), reach)

    @property
    def charge(self) -> ApproxDP:
        epsilon = self.reach.l1(self.max_items) / self.scale
        return ApproxDP(epsilon, self.reach.labels(self.max_items) * self.delta, force=True)

    @property
    def law(self) -> DiscreteLaplace:
        """The noise of a count, and of the threshold."""
        return DiscreteLaplace(self.scale)

    @cached_property
    def margin(self) -> int:
        """The difference of two draws exceeds it with probability at most delta."""
        return laplace_margin(self.scale, self.delta)

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        return _past_noisy_threshold(items, self.kbar, self.reach.above_cut + self.margin, self.law, source, node)


@dataclass(frozen=True)
class FixedThresholdGauss(_Gauss):
    """What passes a fixed threshold, D + `margin`, from all positive counts: Gaussian noise, unknown labels.

    Theorem (streaming-selection 4.6): the charge of `UnknownGauss`. The threshold has no noise, so it is lower: prefer
    this one whenever all counts are at hand. Time and memory O(n).

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> mechanism = FixedThresholdGauss(variance=1, max_items=1, delta=Fraction(1, 10**6))
    >>> mechanism.margin, mechanism.charge
    (5, ApproxZCDP(rho=0.5, delta=1e-06))
    >>> mechanism.release(Items.of({"b": 7, "a": 7, "c": 6}, source), source, node=1)
    [('a', 7), ('b', 7)]
    """

    variance: Fraction
    max_items: int
    delta: Fraction
    reach: Reach = _NO_REACH

    @classmethod
    def within(cls, charge: ApproxZCDP, max_items: int, reach: Reach = _NO_REACH) -> Self:
        """The least noise and the lowest threshold that `charge` pays for."""
        variance = _variance(reach.l2_squared(max_items), charge.exact_rho)
        return cls(variance, max_items, charge.exact_delta / reach.labels(max_items), reach)

    @property
    def charge(self) -> ApproxZCDP:
        return ApproxZCDP(self._rho, self.reach.labels(self.max_items) * self.delta, force=True)

    @cached_property
    def margin(self) -> int:
        """A draw exceeds it with probability at most delta (10.4 there)."""
        return gaussian_margin(self.variance, self.delta)

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        positive = np.flatnonzero(items.counts)
        noisy = items.counts[positive] + source.item_draws(COUNTS, self.law, node, items.addresses[positive])
        return _above(self.reach.move + self.margin, items, positive, noisy)


@dataclass(frozen=True)
class UnknownGumbel(_Gumbel):
    """At most k labels that win against a noisy threshold, best first, from the kbar largest counts; unknown labels.

    Fewer than k labels mean that the threshold came before the next one. Counts as in `KnownGumbel`.

    Theorem (streaming-selection 4.5): the rho of `KnownGumbel`, and delta_bad = kbar q, q = 1/(1 + exp(margin/scale)).
    That is at most 1/(1 + delta^-2): the paper's threshold is twice as high as `delta` needs. Candidates are the counts
    strictly above h_(kbar+1); up to kbar of them may exist in one world only, however few items an event touches.
    Charged for k labels, also if fewer come out. Time O(n + kbar), memory O(n); the time depends on data in near-ties.

    >>> from evertally.noise import ZeroNoise
    >>> source = ZeroNoise().source()
    >>> mechanism = UnknownGumbel(k=2, kbar=3, scale=Fraction(1, 2), count_variance=1, delta=Fraction(1, 1000))
    >>> mechanism.margin, mechanism.charge.rho, float(mechanism.q)
    (7, 2.0, 8.315280276641322e-07)
    >>> items = Items.of({"a": 20, "b": 14, "c": 9, "d": 6}, source)
    >>> mechanism.release(items, source, node=1)  # the threshold is 6 + 1 + 7
    [('a', 20)]
    """

    k: int
    kbar: int
    scale: Fraction
    count_variance: Fraction | None
    delta: Fraction
    reach: Reach = _NO_REACH

    def __post_init__(self) -> None:
        _settle(self, kbar=lambda value: whole("kbar", value, self.k))
        if self.margin > LARGEST_COUNT // 2:
            raise ConfigurationError("the threshold is beyond all counts; choose a larger delta or budget")

    @classmethod
    def within(cls, charge: ApproxZCDP, k: int, kbar: int, *, counts: bool = True, reach: Reach = _NO_REACH) -> Self:
        """The paper's tau, and the lowest threshold, that `charge` pays for."""
        q = min(charge.exact_delta / kbar, Fraction(1, 4))
        delta = root_down(q / (1 - q))  # so that 1/(1 + delta^-2) <= q
        scale, variance = _tau(charge.exact_rho, k, counts, reach)
        return cls(k, kbar, scale, variance, delta, reach)

    @property
    def charge(self) -> ApproxZCDP:
        return ApproxZCDP(_gumbel_rho(*self._numbers), self.kbar * self.q, force=True)

    @property
    def charge_apart(self) -> ApproxZCDP:
        return ApproxZCDP(_rho_apart(*self._numbers), self.charge.exact_delta, force=True)

    @cached_property
    def margin(self) -> int:
        """At least 2 scale ln(1/delta): chosen after the scale was rounded (10.4 there)."""
        return gumbel_margin(self.scale, self.delta)

    @cached_property
    def q(self) -> Fraction:
        """At least the probability that one label beats the threshold from `margin` below it."""
        return gumbel_q(self.scale, self.margin)

    def release(self, items: Items, source: ItemSource, node: int) -> Released:
        chosen, cut = items.top(self.kbar)
        candidates = chosen[items.counts[chosen] > cut]
        # By label, so that under a stand-in without noise, too, nothing depends on the order of arrival.
        candidates = np.array(sorted(candidates.tolist(), key=items.labels.__getitem__), dtype=np.int64)
        threshold = cut + self.reach.above_cut + self.margin
        scores = np.concatenate([np.array([threshold], dtype=np.int64), items.counts[candidates]])
        variates = source.item_variates(LABELS, "gumbel", node, _with_threshold(source, items.addresses[candidates]))
        walk = noisy_argmax(scores, self.scale, variates, min(self.k, scores.size))
        passed = walk[: walk.index(0)] if 0 in walk else walk
        return _with_counts(items, candidates[np.array(passed, dtype=np.int64) - 1], self.law, source, node)


def _past_noisy_threshold(items: Items, kbar: int, above_cut: int, law: Law, source: ItemSource, node: int) -> Released:
    chosen, cut = items.top(kbar)
    noise = source.item_draws(COUNTS, law, node, _with_threshold(source, items.addresses[chosen]))
    return _above(cut + above_cut + int(noise[0]), items, chosen, items.counts[chosen] + noise[1:])


def _with_threshold(source: ItemSource, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Addresses with that of the threshold, which is no item, in front."""
    return np.concatenate([item_addresses(source, [None]), addresses])


def _above(threshold: int, items: Items, chosen: IntArray, noisy: IntArray) -> Released:
    passed = noisy > threshold
    pairs = zip((items.labels[i] for i in chosen[passed].tolist()), noisy[passed].tolist(), strict=True)
    return [*sorted(pairs, key=lambda pair: (-pair[1], pair[0]))]


def _with_counts(
    items: Items, chosen: IntArray, law: DiscreteGaussian | None, source: ItemSource, node: int
) -> Released:
    labels = [items.labels[i] for i in chosen.tolist()]
    if law is None:
        return [(label, None) for label in labels]
    noisy = items.counts[chosen] + source.item_draws(COUNTS, law, node, items.addresses[chosen])
    return list(zip(labels, noisy.tolist(), strict=True))


def _variance(l2_squared: int, rho: Fraction) -> Fraction:
    return round_up(l2_squared / (2 * rho))


def _gumbel_rho(k: int, scale: Fraction, count_variance: Fraction | None, reach: Reach) -> Fraction:
    # The loss of a selection lies in an interval of length above_cut/scale: D/scale one way, 2D/scale both ways (2.2).
    rho = k * (reach.above_cut / scale) ** 2 / 8
    return rho if count_variance is None else rho + k * Fraction(reach.move**2) / (2 * count_variance)


def _rho_apart(k: int, scale: Fraction, count_variance: Fraction | None, reach: Reach) -> Fraction:
    """The largest sum of `_gumbel_rho` over histograms that share the events of one unit (additions 4).

    A sum of squares is largest at a corner: all events in one histogram, or, under replacement, those that go in one
    and those that come in another. Then two histograms move, each one way: cheaper selections, but twice the counts.
    The first is the larger one if, and only if, count_variance >= 2 scale^2.
    """
    together = _gumbel_rho(k, scale, count_variance, reach)
    if reach.sides == 1:
        return together
    one_way = Reach(reach.max_weight, events=reach.events)
    return max(together, 2 * _gumbel_rho(k, scale, count_variance, one_way))


def _tau(rho: Fraction, k: int, counts: bool, reach: Reach) -> tuple[Fraction, Fraction | None]:
    """(scale, count variance) with scale = tau/2 and variance = tau^2, rho = (sides^2 + 1) k D^2/(2 tau^2).

    As variance >= 2 scale^2 this rho also pays for a unit whose events lie in several histograms (`_rho_apart`).
    """
    parts = reach.sides**2 + (1 if counts else 0)
    tau_squared = round_up(parts * k * reach.move**2 / (2 * rho))
    return root_up(tau_squared / 4), tau_squared if counts else None


def _selection_scale(value: Fraction) -> Fraction:
    require_scale(Fraction(value))
    return Fraction(value)


def _probability(value: Fraction) -> Fraction:
    number = Fraction(value)
    if not 0 < number < 1:
        raise ConfigurationError(f"delta must lie strictly between 0 and 1, not {value!r}")
    return number


_FIELDS: dict[str, Callable[[Any], Any]] = {
    "k": partial(whole, "k"),
    "kbar": partial(whole, "kbar"),
    "max_items": partial(whole, "max_items"),
    "variance": lambda value: DiscreteGaussian(value).sigma_squared,
    "count_variance": lambda value: None if value is None else DiscreteGaussian(value).sigma_squared,
    "scale": _selection_scale,
    "delta": _probability,
    "reach": lambda value: value,
}


def _settle(mechanism: Any, **own: Callable[[Any], Any]) -> None:
    """Every field in its range, as the exact number that it stands for."""
    for field in fields(mechanism):
        value = (_FIELDS | own)[field.name](getattr(mechanism, field.name))
        object.__setattr__(mechanism, field.name, value)
