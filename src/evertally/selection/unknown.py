"""Running counts of items that nobody listed beforehand: UnkBase (streaming-selection 7), in integers."""

from __future__ import annotations

from heapq import nsmallest
from typing import Any, Literal

import numpy as np

from evertally.bounds.selection import Threshold
from evertally.bounds.tails import Spread
from evertally.counting.guarded import Kept
from evertally.counting.mechanism import LONGEST_HORIZON, Options, check_guarantee, whole
from evertally.counting.process import node_law
from evertally.counting.tree import Radix, choose_radix, levels
from evertally.encode import ItemTotals
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, NoiseKey
from evertally.privacy import ApproxDP, ApproxZCDP, Contribution, Guarantee, Neighbours, change
from evertally.selection.item_index import grown
from evertally.selection.item_mechanism import ItemMechanism
from evertally.selection.item_table import ItemTable
from evertally.selection.item_tree import ItemTree

# The best radix is below 20; a threshold by digit sums is not made for thousands of them.
_LARGEST_RADIX = 1024


class UnknownHistogram(ItemMechanism):
    """How often each item occurred so far, where the items are not known in advance.

    An event is a collection of items: at most `max_per_event` of them are counted, each with a weight of at most
    `max_weight` (`encode.ItemDoor` says how events are bounded). At every tick the items whose noisy count is above a
    threshold are released, label -> count, largest first; of the others nothing is, not their labels and not their
    number. An item may leave the release when its noise falls; with `sticky=True` what was once released stays.

    Theorem (streaming-selection 7.2 [R], 10.4 for integer noise, adaptive streams included, 1.4): every item has the
    discrete Gaussian noise of a tree, of variance L tau^2 in each block, late items that of all earlier blocks too;
    the charge is (Delta0/(2 tau^2), Delta0 delta), `ApproxZCDP(rho, delta)`. What delta is: an item that exists only
    because of one event shows up, at any tick, with at most this probability (all items of the event together), so a
    guarantee without a delta cannot be kept. (epsilon, delta) is paid as rho at delta/2 and delta/2 for the items
    (7.2). "replace" doubles rho and the items at risk; `unit="user"` with g events costs g^2 rho, g times as many items
    at risk and thresholds higher by g - 1 weights (1.3).

    `threshold`: "sum", the lowest one that is the same at all ticks; "per_tick", lower where the noise is smaller;
    "paper", the formula of the paper with Chernoff's tail. `stddev` and intervals are those of the noise: an item named
    beforehand is off by more than its interval with probability at most beta. Among items just above the threshold
    those with upward noise are seen, so their counts lean upwards (7.3).

    Exactness tier "exact". Time O(items so far) a tick: one draw each, about 20 ns; a million events a second through
    Arrow lists. Memory O(items so far): 60 to 90 + 8 L bytes each, beside the label. No item is ever dropped (7.1:
    dropping by counts is not private); what should not be counted at all is left out beforehand, by a public rule that
    looks at one label. Time, memory and snapshot of this object depend on unreleased items: they are as private as the
    data.

    >>> import evertally as et
    >>> from evertally.selection.unknown import UnknownHistogram
    >>> words = UnknownHistogram(max_per_event=2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=et.simulation(1))
    >>> release = words.step([["tea"]] * 900 + [["tea", "milk"]] * 800 + [["a secret"]])
    >>> list(release.value), words.threshold(1), round(release.stddev)
    (['tea', 'milk'], 297, 11)
    >>> lower, upper = release.interval(beta=0.01)
    >>> lower["tea"] <= 1700 <= upper["tea"]
    True
    """

    charge: ApproxZCDP
    named_ways = ("tree", "meta")

    def __init__(
        self,
        *,
        max_per_event: int = 1,
        guarantee: Guarantee,
        horizon: int,
        mechanism: str = "tree",
        threshold: Literal["sum", "per_tick", "paper"] = "sum",
        sticky: bool = False,
        radix: Radix = "formula",
        max_weight: int = 1,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        key: NoiseKey | None = None,
        stream: str = "stream",
        name: str | None = None,
        allow_copy: bool = False,
    ) -> None:
        if mechanism not in ("auto", "tree"):
            ways = ", ".join(['"tree"', *(f'"{other}"' for other in self.other_engines)])
            raise ConfigurationError(f"unknown mechanism {mechanism!r}; choose one of {ways}")
        relation = Neighbours.parse(neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('items of an unknown domain are protected under "add_remove" or "replace" only')
        T = _horizon(horizon)
        r = choose_radix(T, radix, pure=False)
        whole("radix", r, 2, _LARGEST_RADIX)
        charge = charge_of(guarantee)
        contribution = Contribution(
            max_per_event=max_per_event, max_weight=max_weight, unit=unit, max_events_per_user=max_events_per_user
        )
        # The domain has room for any two events: no limit on columns makes a change smaller.
        self.sensitivity = change(relation, contribution, columns=2 * contribution.max_per_event)
        super().__init__(
            contribution=contribution,
            options={"threshold": threshold, "sticky": bool(sticky), "radix": radix} | self._further_options(),
            guarantee=guarantee,
            charge=charge,
            horizon=T,
            mechanism="tree",
            key=key,
            neighbours=relation,
            stream=stream,
            name=name,
            allow_copy=allow_copy,
        )
        law = node_law(charge.to_zcdp(), self.sensitivity, levels(T, r))
        assert isinstance(law, DiscreteGaussian)
        # Labels that exist in one of two neighbouring streams only: all that moves, if each moves by one weight.
        at_risk = self.sensitivity.l1 // contribution.max_weight
        delta = charge.exact_delta / at_risk
        self._threshold = Threshold(threshold, T, r, law.sigma_squared, delta, move=self.sensitivity.linf)
        self._table = ItemTable(self._source)
        self._tree = ItemTree(law, radix=r, depth=levels(T, r), source=self._source)
        self._sticky = bool(sticky)
        self._released = np.zeros(0, dtype=np.bool_)  # which items were ever released; kept if they are to stay
        self._kept = Kept(played={})

    def threshold(self, t: int) -> int:
        """What a noisy count must exceed to be released at tick t; public, known before any data."""
        return self._threshold.at(self._checked(t))

    def stddev(self, t: int) -> float:
        """Standard deviation of the noise of each item at tick t, released or not; public, known before any data."""
        return self._tree.spread(self._checked(t)).stddev

    def error_bound(self, beta: float = 0.05, t: int | None = None, *, items: int = 1) -> float:
        """With probability at least 1 - beta the noise of none of `items` items is larger than this at any tick.

        It holds for items that are named beforehand; for all that will ever be released, `items` is a public limit on
        how many different items the stream can have (how many it has is private). With `t`, the bound for that tick,
        all ticks together still failing with probability at most beta.
        """
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        assert self.horizon is not None
        spread = self._tree.worst(self.horizon) if t is None else self._tree.spread(self._checked(t))
        return spread.radius(beta / (self.horizon * whole("items", items, 1, 2**62)))

    def _further_options(self) -> Options:
        """Options of a subclass: public parameters are part of the address of the noise."""
        return {}

    # -- the engine ------------------------------------------------------------------------------------------------

    def _play(self, totals: ItemTotals) -> dict[str, int]:
        self._table.add(totals)
        self._tree.advance(self._table.addresses)
        return self._publish()

    def _publish(self) -> dict[str, int]:
        """The last tick's release: a function of exact counts and noise (and of what was released before)."""
        noisy = self._table.counts + self._tree.noise
        above = noisy > self._threshold.at(self._tree.tick)
        if self._sticky:
            self._released = grown(self._released, above.size)
            above |= self._released[: above.size]
            self._released[: above.size] = above
        shown = np.flatnonzero(above)
        pairs = list(zip((-noisy[shown]).tolist(), self._table.labels.take(shown).list(), strict=True))
        # By count and label: the order in which items came is private (streaming-selection 10.3).
        return {label: -count for count, label in self._best(pairs)}

    def _best(self, pairs: list[tuple[int, str]]) -> list[tuple[int, str]]:
        return sorted(pairs)

    def _value(self) -> dict[str, int]:
        shown: dict[str, int] = self._kept.played
        return shown

    def _accuracy(self, tick: int) -> Spread:
        return self._tree.spread(tick)

    def _saved(self) -> list[bytes]:
        return [np.packbits(self._released[: len(self._table)]).tobytes(), *self._table.to_bytes()]

    def _load_saved(self, tick: int, parts: list[bytes]) -> dict[str, int]:
        self._table.load(parts[1:])
        released = np.frombuffer(parts[0], dtype=np.uint8)
        self._released = np.unpackbits(released, count=len(self._table) if self._sticky else 0).astype(np.bool_)
        self._tree.seek(tick, self._table.addresses)
        return self._publish() if tick else {}

    def _checked(self, t: int) -> int:
        assert self.horizon is not None
        return whole("t", t, 1, self.horizon)


class UnknownTopK(UnknownHistogram):
    """The k items with the largest counts so far, where the items are not known in advance.

    For events of at most `max_per_event` items (`mechanism="tree"`): the k largest counts that `UnknownHistogram`
    releases, whose options and theorem apply; the cut to k is post-processing and costs nothing. Fewer than k are shown
    while fewer are above the threshold.

    >>> import evertally as et
    >>> from evertally.selection.unknown import UnknownTopK
    >>> top = UnknownTopK(1, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=et.simulation(1))
    >>> list(top.step(["tea"] * 1700 + ["milk"] * 800).value)
    ['tea']
    """

    def __init__(self, k: int, *, guarantee: Guarantee, horizon: int, **common: Any) -> None:
        self.k = whole("k", k, 1, 2**31)
        super().__init__(guarantee=guarantee, horizon=horizon, **common)

    def _further_options(self) -> Options:
        return {"k": self.k}

    def _best(self, pairs: list[tuple[int, str]]) -> list[tuple[int, str]]:
        return nsmallest(self.k, pairs)


def charge_of(guarantee: Guarantee) -> ApproxZCDP:
    """What a mechanism over an unknown domain pays under a promise: (rho, delta) as in streaming-selection 2.3.

    An (epsilon, delta) promise gives half of its delta to the items and converts rho with the other half (7.2).

    >>> charge = charge_of(ApproxDP(1.0, 1e-6))
    >>> round(charge.rho, 6), charge.delta
    (0.022937, 5e-07)
    """
    check_guarantee(guarantee)
    if isinstance(guarantee, ApproxZCDP):
        return guarantee
    if isinstance(guarantee, ApproxDP):
        return guarantee.with_bad_event()
    raise ConfigurationError(
        f"{guarantee} has no delta: an item that only one person brought can always show up, with a small probability, "
        "where items are not listed beforehand. Use ApproxDP(epsilon, delta) or ApproxZCDP(rho, delta) (for a stream "
        "of several mechanisms ApproxDP(...).with_bad_event(), whose shares have a delta), or declare the items and "
        "use a Histogram."
    )


def _horizon(horizon: Any) -> int:
    if horizon is None:
        raise ConfigurationError(
            "items of an unknown domain need a horizon: the threshold is made for a known number of ticks; "
            "choose a long one, or start a new stream with its own budget when it is over"
        )
    return whole("horizon", horizon, 2, LONGEST_HORIZON)
