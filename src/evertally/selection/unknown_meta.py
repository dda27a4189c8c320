"""Unknown items by blocks: MetaAlgo with a one-shot mechanism that finds labels (streaming-selection 5).

`UnknownTopK(mechanism="meta")` and `UnknownHistogram(mechanism="meta")` are these classes. The first is the only way to
name items of an unknown domain when an event may bring any number of them: what is paid grows with k, not with the size
of events. Both threshold every block on its own, so an item must be frequent within blocks; counts of blocks that did
not release it are lost, and totals are too low (7.4 there). Where events are small, "tree" counts better.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from evertally.counting.mechanism import LONGEST_HORIZON, Options, whole
from evertally.counting.process import spread_of
from evertally.counting.release import Release
from evertally.counting.tree import Radix, choose_radix, digits, levels
from evertally.encode import ItemTotals
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, NoiseKey
from evertally.privacy import ApproxZCDP, Contribution, Guarantee, Neighbours
from evertally.selection.histograms import OneShot, UnknownGauss, UnknownGumbel
from evertally.selection.item_mechanism import ItemMechanism
from evertally.selection.meta import MISSED, MetaAlgo, SeenBlocks, block_share, paid_by
from evertally.selection.reach import Reach
from evertally.selection.unknown import UnknownHistogram, UnknownTopK, charge_of

NO_LIMIT = 2**61  # the upper end of an interval that has none
_ANY_NUMBER = 2**31  # items in an event that may bring as many as it likes


@dataclass(frozen=True)
class BlockAccuracy:
    """The noise of a label that all `blocks` blocks of the tiling released: an upper bound for every other label."""

    law: DiscreteGaussian
    blocks: int

    @property
    def stddev(self) -> None:
        """None: how many blocks released a label differs from label to label."""

    def radius(self, beta: float) -> float:
        """What the noise of one label exceeds with probability at most beta."""
        return spread_of(self.law, self.blocks, 1.0).radius(beta)


class _Blocks(ItemMechanism):
    """MetaAlgo behind the contract. A subclass says which one-shot mechanism looks at a block."""

    charge: ApproxZCDP

    def __init__(
        self,
        *,
        guarantee: Guarantee,
        horizon: int,
        max_per_event: int,
        further: Options,
        mechanism: str = "meta",
        radix: Radix = "formula",
        max_weight: int = 1,
        max_events_per_tick: int | None = None,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user"] = "event",
        max_events_per_user: int | None = None,
        key: NoiseKey | None = None,
        stream: str = "stream",
        name: str | None = None,
        allow_copy: bool = False,
    ) -> None:
        if mechanism != "meta":
            raise ConfigurationError(f'this class is mechanism="meta", not {mechanism!r}')
        contribution = Contribution(
            max_per_event=max_per_event, max_weight=max_weight, unit=unit, max_events_per_user=max_events_per_user
        )
        relation = Neighbours.parse(neighbours)
        events = max_events_per_user or 1
        reach = Reach(max_weight, relation, events)
        T = whole("horizon", horizon, 2, LONGEST_HORIZON)
        r = choose_radix(T, radix, pure=False)
        depth = levels(T, r)
        charge = charge_of(guarantee)
        # One event meets one block of a level, replaced or not; a user's events, and those of the user who takes their
        # place, may each meet another, and every block has its own delta (additions 4).
        blocks = 1 if unit == "event" else reach.sides * events
        share = block_share(charge, depth, blocks)
        self._one_shot = paid_by(charge, self._look(share, reach), depth, blocks)
        busiest = None if max_events_per_tick is None else whole("max_events_per_tick", max_events_per_tick, 1, 2**40)
        self._growth = None if busiest is None else busiest * max_weight
        super().__init__(
            contribution=contribution,
            options=further | {"radix": radix, "max_events_per_tick": max_events_per_tick},
            guarantee=guarantee,
            charge=charge,
            horizon=T,
            mechanism=mechanism,
            key=key,
            neighbours=relation,
            stream=stream,
            name=name,
            allow_copy=allow_copy,
        )
        self._engine = MetaAlgo(
            self._one_shot, SeenBlocks(depth, self._source), radix=r, depth=depth, source=self._source
        )

    @abstractmethod
    def _look(self, share: ApproxZCDP, reach: Reach) -> OneShot:
        """The one-shot mechanism of a block, which may cost `share`."""

    def _law(self) -> DiscreteGaussian:
        law = getattr(self._one_shot, "law", None)
        assert isinstance(law, DiscreteGaussian)
        return law

    @property
    def unbounded_because(self) -> str | None:
        """Why counts have no upper end and what to declare, or None if they have."""
        return MISSED if self._growth is None else None

    def stddev(self, t: int) -> None:
        """None: the noise of a label depends on how many blocks released it."""
        self._checked(t)

    def error_bound(self, beta: float = 0.05, t: int | None = None, *, items: int = 1) -> float:
        """With probability at least 1 - beta no released count of `items` items is further *above* the truth than this;
        below, a count may have lost all blocks that did not release it (`Release.interval` says how much that is)."""
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        assert self.horizon is not None
        r = self._engine.radix
        cells = (r - 1) * levels(self.horizon, r) if t is None else sum(digits(self._checked(t), r))
        return BlockAccuracy(self._law(), cells).radius(beta / (self.horizon * whole("items", items, 1, 2**62)))

    def _play(self, totals: ItemTotals) -> None:
        self._engine.step(totals.mapping())

    def _value(self) -> dict[str, int]:
        return dict(self._engine.top(_ANY_NUMBER))

    def _accuracy(self, tick: int) -> BlockAccuracy:
        return BlockAccuracy(self._law(), sum(digits(tick, self._engine.radix)) if tick else 1)

    def _last_release(self) -> Release:
        release = super()._last_release()
        # What a block without the label held is anybody's guess, if nobody declared how much a tick may hold.
        most = NO_LIMIT if self._growth is None else self._growth
        lost = {label: min(self._engine.missed_ticks(label) * most, NO_LIMIT) for label in release.value}

        def interval(beta: float) -> tuple[dict[str, int], dict[str, int]]:
            lower, upper = release.interval(beta)
            return lower, {label: count + lost[label] for label, count in upper.items()}

        return Release(release.tick, release.value, release.stddev, release.private, interval)

    def _saved(self) -> list[bytes]:
        return self._engine.state()

    def _load_saved(self, tick: int, parts: list[bytes]) -> None:
        self._engine.load(tick, parts)

    def _checked(self, t: int) -> int:
        assert self.horizon is not None
        return whole("t", t, 1, self.horizon)


class BlockTopK(_Blocks):
    """The k items with the largest counts so far, unknown beforehand, for events that may bring any number of items.

    Every block of a tree is searched for its k leaders by Gumbel noise against a noisy threshold, from its `kbar`
    largest counts (default 10 k), and the released counts are added up. Theorem (streaming-selection 4.5 and 5.1,
    adaptive streams by 1.4 there): rho = k/tau^2 and delta = L kbar q for the whole stream; `unit="user"` multiplies
    delta by the number of blocks that a user's events can meet. Interval: the lower end holds for the noise; the upper
    end adds all that blocks without the label could hold, from the public fact `max_events_per_tick` (without it there
    is no upper end: 2^61 away, once a block has not shown the label). Exactness tier "exact"; time O(items of the
    block) for a tick, memory O(L items of a block).

    >>> import evertally as et
    >>> tags = et.UnknownTopK(2, mechanism="meta", guarantee=et.ApproxDP(4.0, 1e-6), horizon=8, key=et.simulation(1))
    >>> type(tags).__name__, list(tags.step([["tea", "milk", "sugar"]] * 9000 + [["tea"]] * 9000).value)[0]
    ('BlockTopK', 'tea')
    """

    def __init__(
        self,
        k: int,
        *,
        guarantee: Guarantee,
        horizon: int,
        kbar: int | None = None,
        max_per_event: int = _ANY_NUMBER,
        **common: Any,
    ) -> None:
        self.k = whole("k", k, 1, 2**20)
        self.kbar = whole("kbar", 10 * self.k if kbar is None else kbar, self.k, 2**24)
        further = {"k": self.k, "kbar": self.kbar}
        super().__init__(guarantee=guarantee, horizon=horizon, max_per_event=max_per_event, further=further, **common)

    def _look(self, share: ApproxZCDP, reach: Reach) -> OneShot:
        return UnknownGumbel.within(share, self.k, self.kbar, reach=reach)

    def _value(self) -> dict[str, int]:
        return dict(self._engine.top(self.k))


class BlockHistogram(_Blocks):
    """Counts of items that nobody listed, block by block, for events of at most `max_per_event` items.

    Every block of a tree shows its items above a noisy threshold (UnkGauss with `kbar` items at most, default 1000),
    and they are added up: more items are named than by the tree, but their counts are too low (streaming-selection
    7.4). Theorem: 4.3 and 5.1 there, adaptive streams by 1.4. Interval, tier and cost as `BlockTopK`.

    >>> import evertally as et
    >>> words = et.UnknownHistogram(mechanism="meta", guarantee=et.ApproxDP(2.0, 1e-6), horizon=8, key=et.simulation(1))
    >>> type(words).__name__, list(words.step([["tea"]] * 900 + [["a secret"]]).value)
    ('BlockHistogram', ['tea'])
    """

    def __init__(
        self, *, guarantee: Guarantee, horizon: int, kbar: int = 1000, max_per_event: int = 1, **common: Any
    ) -> None:
        self.kbar = whole("kbar", kbar, 1, 2**24)
        self._items = max_per_event
        further = {"kbar": self.kbar}
        super().__init__(guarantee=guarantee, horizon=horizon, max_per_event=max_per_event, further=further, **common)

    def _look(self, share: ApproxZCDP, reach: Reach) -> OneShot:
        return UnknownGauss.within(share, self.kbar, self._items, reach=reach)


UnknownTopK.other_engines["meta"] = BlockTopK
UnknownHistogram.other_engines["meta"] = BlockHistogram
