"""Running counts of items that nobody listed beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

from evertally.bounds.selection import L, Threshold
from evertally.contract.cutting import CutsEvents
from evertally.contract.doors import Items
from evertally.contract.in_place import InPlace
from evertally.contract.mechanism import Mechanism, by_tick
from evertally.contract.options import foreign, option, statistic
from evertally.contract.parts import Blueprint, Options
from evertally.contract.ticks import LONGEST_HORIZON, checked_tick
from evertally.counting.process import node_law
from evertally.counting.tree import ABOUT_RADIX, Radix, choose_radix
from evertally.encode import ItemDoor
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import DiscreteGaussian, ItemSource
from evertally.privacy import ApproxZCDP, Change, Neighbours, change
from evertally.selection.block_engine import ANY_NUMBER, BlockEngine
from evertally.selection.found import FoundItems
from evertally.selection.histograms import OneShot, UnknownGauss, UnknownGumbel
from evertally.selection.item_engine import ItemEngine, charge_of
from evertally.selection.item_plan import ItemPlan
from evertally.selection.label_limit import LabelLimit
from evertally.selection.meta import MISSED, block_share, paid_by
from evertally.selection.reach import Reach

# The best radix is below 20; a threshold by digit sums is not made for thousands of them.
_LARGEST_RADIX = 1024
MECHANISMS = ("tree", "meta")
_OF_TREES: Options = {"threshold": "sum", "sticky": False, "max_labels": None}
_OF_BLOCKS: Options = {"kbar": None, "max_events_per_tick": None}


@statistic
class ItemFinder(Mechanism):
    """Counts of items of an unknown domain, each with the noise of a tree, above a threshold. Not used directly."""

    threshold: Literal["sum", "per_tick", "paper"] = option(
        'Which threshold of "tree": "sum", "per_tick" or "paper".', default="sum"
    )
    sticky: bool = option('Whether what "tree" once released stays.', default=False)
    max_labels: int | None = option(
        'How many labels "tree" remembers at most. Beyond that, a keyed hash and what was released decide which ones '
        "(costs a sixteenth of rho); None: all that ever occurred.",
        default=None,
    )
    radix: Radix = option(ABOUT_RADIX, default="formula")

    @by_tick
    def threshold_at(self, tick: int) -> int:
        """What a noisy count must exceed to be released at a tick; public, known before any data. By a tree only."""
        worker = self._worker()
        if not isinstance(worker, ItemEngine):
            raise ConfigurationError('each block of "meta" has a threshold of its own; mechanism="tree" has one a tick')
        return worker.threshold.at(checked_tick(tick, self.horizon))

    def item_plan(self) -> ItemPlan:
        """What this mechanism has settled, as public numbers: `ItemShard` plays some of its labels by it.

        Only by a tree without `max_labels`: blocks compare the counts of all labels, and a limit looks at their number.
        """
        worker = self._worker()
        if not isinstance(worker, ItemEngine) or worker.followed is not None:
            raise ConfigurationError(
                'labels can be cut apart only where none decides about another: each block of mechanism="meta" '
                'compares the counts of all labels, and max_labels goes by their number. Take mechanism="tree", and '
                "leave out max_labels"
            )
        *names, digest = self._path
        path = *map(str, names), digest.hex()
        return ItemPlan.of(worker, path, self.noise_fingerprint, self._tick_limit)

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None, *, items: int = 1) -> float:
        """With probability at least 1 - beta the noise of none of `items` items is larger than this at any tick.

        It holds for items that are named beforehand; for all that will ever be released, `items` is a public limit on
        how many different items the stream can have (how many it has is private). With `tick`, the bound for that tick,
        all ticks together still failing with probability at most beta. With "meta" it bounds how far a count is *above*
        the truth; below, it may have lost all blocks that did not release it (`Release.interval` says how much).
        """
        return self._bound(beta / whole("items", items, 1, 2**62) if 0 < beta < 1 else beta, tick)

    def _worker(self) -> Any:
        assert isinstance(self._engine, InPlace)
        return self._engine.worker

    def _relation_and_horizon(self) -> tuple[Neighbours, int]:
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('unknown items are protected under "add_remove" or "replace" neighbours only')
        if self.horizon is None:
            raise ConfigurationError(
                "items of an unknown domain need a horizon: the threshold is made for a known number of ticks; "
                "choose a long one, or start a new stream with its own budget when it is over"
            )
        return relation, whole("horizon", self.horizon, 2, LONGEST_HORIZON)

    def _by_tree(
        self, charge: ApproxZCDP, moved: Change, at_risk: int, most: int | None = None
    ) -> Callable[..., ItemEngine]:
        """How to make the engine of a tree, where one protected unit moves counts by `moved`. `at_risk`: labels that
        exist in one of two neighbouring streams only."""
        T = whole("horizon", self.horizon, 2, LONGEST_HORIZON)
        r = whole("radix", choose_radix(T, self.radix, pure=False), 2, _LARGEST_RADIX)
        depth = L(T, r)
        limit = None if self.max_labels is None else LabelLimit(self.max_labels, charge, at_risk, T)
        left = charge if limit is None else limit.left
        law = node_law(left.to_zcdp(), moved, depth)
        assert isinstance(law, DiscreteGaussian)
        threshold = Threshold(self.threshold, T, r, law.sigma_squared, charge.exact_delta / at_risk, move=moved.linf)
        ways: Options = {"radix": r, "depth": depth, "horizon": T, "sticky": self.sticky, "most": most, "limit": limit}
        return partial(ItemEngine, law, threshold, **ways)

    def _limit_address(self) -> Options:
        """What addresses keep of the limit: nothing where there is none, as before there were limits."""
        return {} if self.max_labels is None else self._given("max_labels")


@statistic
class UnknownItems(ItemFinder, CutsEvents):
    """Counts of items of an unknown domain. Not used directly; see `UnknownHistogram` and `UnknownTopK`.

    There are no totals to hand over: `step` takes the tick's events and bounds them as `step_events` does, and `run`
    takes a list of ticks. Where users are protected both are refused: events without owners have no cap. With `tick`,
    the same events for the last tick, in any order, give the same release again.
    """

    kbar: int | None = option('How many items of a block "meta" looks at; None: 1000, or 10 k.', default=None)
    max_weight: int = option("The largest amount that an event adds (to each of its items).", default=1)
    max_events_per_tick: int | None = option(
        'A public fact: no tick has more events. Error bounds of "meta" rest on it, privacy does not.', default=None
    )

    named_ways: ClassVar[tuple[str, ...]] = MECHANISMS
    _may_cut = True

    def _found(
        self,
        words: tuple[str, str],
        max_per_event: int,
        look: Any,
        of_trees: Options,
        of_blocks: Options,
        most: int | None = None,
    ) -> Blueprint:
        """The blueprint, by a tree or by blocks. `look(share, reach)` is the one-shot mechanism of a block."""
        mechanism = MECHANISMS[0] if self.mechanism == "auto" else self.mechanism
        if mechanism not in MECHANISMS:
            ways = ", ".join(f'"{way}"' for way in MECHANISMS)
            raise ConfigurationError(f"unknown mechanism {mechanism!r}; choose one of {ways}")
        relation, T = self._relation_and_horizon()
        r = choose_radix(T, self.radix, pure=False)
        depth = L(T, r)
        charge = charge_of(self.guarantee)
        contribution = self._contributing(max_per_event=max_per_event, max_weight=self.max_weight)
        # The domain has room for any two events: no limit on columns makes a change smaller.
        moved = change(relation, contribution, columns=2 * contribution.max_per_event)
        bounds = {"max_per_event": contribution.max_per_event}
        bounds |= self._given("radix", "max_weight") | self._user_address()
        opened = ""
        if mechanism == "tree":
            foreign(self._given(*_OF_BLOCKS), _OF_BLOCKS, 'mechanism="meta"')
            # Labels that exist in one of two neighbouring streams only: all that moves, if each moves by one weight.
            made: Any = self._by_tree(charge, moved, moved.l1 // contribution.max_weight, most)
            address = of_trees | self._given("threshold", "sticky") | self._limit_address()
        else:
            foreign(self._given(*_OF_TREES), _OF_TREES, 'mechanism="tree"')
            events = contribution.max_events_per_user or 1
            reach = Reach(contribution.max_weight, relation, events)
            # One event meets one block of a level, replaced or not; a user's events, and those of the user who takes
            # their place, may each meet another, and every block has its own delta (additions 4).
            blocks = 1 if self.unit == "event" else reach.sides * events
            one_shot: OneShot = paid_by(charge, look(block_share(charge, depth, blocks), reach), depth, blocks)
            busiest = self.max_events_per_tick
            busiest = None if busiest is None else whole("max_events_per_tick", busiest, 1, 2**40)
            growth = None if busiest is None else busiest * contribution.max_weight
            address = of_blocks | {"max_events_per_tick": self.max_events_per_tick}
            opened = MISSED if growth is None else ""
            shown = ANY_NUMBER if most is None else most
            made = partial(BlockEngine, one_shot, radix=r, depth=depth, horizon=T, growth=growth, most=shown)

        def engine(source: ItemSource) -> InPlace:
            return InPlace(lambda source: made(source=source), source, returns=False)

        bounded = contribution.max_per_event, contribution.max_weight
        cutting = self.cutting
        return Blueprint(
            word=words[MECHANISMS.index(mechanism)],
            address=address | bounds,
            mechanism=mechanism,
            charge=charge,
            contribution=contribution,
            sensitivity=moved,
            door=lambda source, limit: Items(ItemDoor(*bounded, order=source.order, cutting=cutting), limit),
            engine=engine,
            form=FoundItems(),
            open=opened,
        )


@statistic
class UnknownHistogram(UnknownItems):
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
    Arrow lists. Memory O(items so far): 60 to 90 + 8 L bytes each, beside the label. No item is dropped for its count
    (7.1: that is not private); what should not be counted at all is left out beforehand, by a public rule that looks at
    one label. With `max_labels` at most so many are remembered (and those of one tick): when their noisy number comes
    near it, only 1 in 2, 4, 8, .. of all labels is followed on, chosen by a keyed hash, and what is released at that
    moment. Counts of what is shown stay whole; an item that is not followed is never found (7.5 [R]). Time, memory and
    snapshot of this object depend on unreleased items: they are as private as the data.

    `mechanism="meta"`: every block of a tree shows its items above a noisy threshold (UnkGauss with `kbar` items at
    most, default 1000), and they are added up: more items are named than by the tree, but their counts are too low
    (streaming-selection 7.4). Theorem: 4.3 and 5.1 there, adaptive streams by 1.4; `unit="user"` multiplies delta by
    the number of blocks that a user's events can meet. Interval: the lower end holds for the noise; the upper end adds
    all that blocks without the label could hold, from the public fact `max_events_per_tick` (without it there is no
    upper end: 2^61 away, once a block has not shown the label). Time O(items of the block) for a tick, memory O(L items
    of a block).

    >>> import evertally as et
    >>> words = et.UnknownHistogram(max_per_event=2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500,
    ...                             key=et.simulation(1))
    >>> release = words.step([["tea"]] * 900 + [["tea", "milk"]] * 800 + [["a secret"]])
    >>> list(release.value), words.threshold_at(1), round(release.stddev)
    (['tea', 'milk'], 297, 11)
    >>> lower, upper = release.interval(beta=0.01)
    >>> lower["tea"] <= 1700 <= upper["tea"]
    True
    >>> blocks = et.UnknownHistogram(mechanism="meta", guarantee=et.ApproxDP(2.0, 1e-6), horizon=8,
    ...                              key=et.simulation(1))
    >>> list(blocks.step([["tea"]] * 900 + [["a secret"]]).value)
    ['tea']
    """

    max_per_event: int = option("How many items of an event are counted at most.", default=1)

    def _blueprint(self) -> Blueprint:
        kbar = whole("kbar", 1000 if self.kbar is None else self.kbar, 1, 2**24)

        def look(share: ApproxZCDP, reach: Reach) -> OneShot:
            return UnknownGauss.within(share, kbar, self.max_per_event, reach=reach)

        return self._found(("UnknownHistogram", "BlockHistogram"), self.max_per_event, look, {}, {"kbar": kbar})


@statistic
class UnknownTopK(UnknownItems):
    """The k items with the largest counts so far, where the items are not known in advance.

    For events of at most `max_per_event` items (`mechanism="tree"`): the k largest counts that `UnknownHistogram`
    releases, whose options and theorem (streaming-selection 7.2) apply; the cut to k is post-processing and costs
    nothing. Fewer than k are shown while fewer are above the threshold.

    For events that may bring any number of items (`mechanism="meta"`): every block of a tree is searched for its k
    leaders by Gumbel noise against a noisy threshold, from its `kbar` largest counts (default 10 k), and the released
    counts are added up. Theorem (streaming-selection 4.5 and 5.1, adaptive streams by 1.4 there): rho = k/tau^2 and
    delta = L kbar q for the whole stream. Intervals, users and cost as `UnknownHistogram(mechanism="meta")`.

    >>> import evertally as et
    >>> top = et.UnknownTopK(1, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=et.simulation(1))
    >>> list(top.step(["tea"] * 1700 + ["milk"] * 800).value)
    ['tea']
    >>> tags = et.UnknownTopK(2, mechanism="meta", guarantee=et.ApproxDP(4.0, 1e-6), horizon=8, key=et.simulation(1))
    >>> list(tags.step([["tea", "milk", "sugar"]] * 9000 + [["tea"]] * 9000).value)[0]
    'tea'
    """

    k: int = option("How many.", kw_only=False)
    max_per_event: int | None = option(
        "How many items of an event are counted at most; None: one by a tree, any number by blocks.", default=None
    )

    def _blueprint(self) -> Blueprint:
        blocks = self.mechanism == "meta"
        k = whole("k", self.k, 1, 2**20 if blocks else 2**31)
        kbar = whole("kbar", 10 * k if self.kbar is None else self.kbar, min(k, 2**24), 2**24) if blocks else 0
        per_event = (ANY_NUMBER if blocks else 1) if self.max_per_event is None else self.max_per_event

        def look(share: ApproxZCDP, reach: Reach) -> OneShot:
            return UnknownGumbel.within(share, k, kbar, reach=reach)

        return self._found(("UnknownTopK", "BlockTopK"), per_event, look, {"k": k}, {"k": k, "kbar": kbar}, most=k)
