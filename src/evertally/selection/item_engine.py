"""Running counts of items that nobody listed beforehand: UnkBase (streaming-selection 7), in integers."""

from __future__ import annotations

from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.selection import Threshold
from evertally.bounds.tails import Spread
from evertally.contract.options import check_guarantee
from evertally.encode import ItemTotals
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, ItemSource
from evertally.privacy import ApproxDP, ApproxZCDP, Guarantee
from evertally.secret import Secret
from evertally.selection.found import Found
from evertally.selection.item_index import grown
from evertally.selection.item_table import ItemTable
from evertally.selection.item_tree import ItemTree
from evertally.selection.label_limit import FollowedLabels, LabelLimit


class ItemEngine(Secret):
    """Exact counts and tree noise of every item so far; released is what is above the threshold.

    A tick changes tables of all labels in place: to keep a copy of them would cost as much as the tick.
    """

    width = 0  # as many numbers as items are found

    def __init__(
        self,
        law: DiscreteGaussian,
        threshold: Threshold,
        *,
        radix: int,
        depth: int,
        horizon: int,
        source: ItemSource,
        sticky: bool = False,
        most: int | None = None,
        limit: LabelLimit | None = None,
    ) -> None:
        self.threshold = threshold
        self.followed = None if limit is None else FollowedLabels(limit, source)
        self.table = ItemTable(source, self.followed)
        self.tree = ItemTree(law, radix=radix, depth=depth, source=source)
        self.horizon, self.sticky = horizon, sticky
        self.most = most  # how many are shown; None: all that are above the threshold
        self._shown_before = np.zeros(0, dtype=np.bool_)  # which items were ever released; kept if they are to stay

    def advance(self, batch: list[ItemTotals]) -> tuple[list[Found], None]:
        rows = []
        for totals in batch:
            if self.followed is not None and self.tree.tick:
                self._look(self.followed)
            self.table.add(totals)
            self.tree.advance(self.table.addresses)
            rows.append(self.released(self.tree.tick))
        return rows, None

    def _look(self, followed: FollowedLabels) -> None:
        """Where labels become too many, drops some by their hashes, but nothing that was released at the last tick (of
        very many, the largest stay): the rule is public, so one event decides about no other (7.5)."""
        noisy = followed.look(self.tree.tick, len(self.table))
        if noisy is None:
            return
        released = list(self.released(self.tree.tick).counts)
        stay = self.table.find(Texts.of(released[: followed.rise(noisy, len(released))]))
        passing = self.table.passing()
        passing[stay] = True
        numbers = np.flatnonzero(passing)
        self.table.keep(numbers)
        self.tree.keep(numbers)
        if self.sticky:
            self._shown_before = self._shown_before[numbers]

    def released(self, tick: int) -> Found:
        """The last tick's release: a function of exact counts and noise (and of what was released before)."""
        if not tick:
            return Found({}, {})
        noisy = self.table.counts + self.tree.noise
        above = noisy > self.threshold.at(tick)
        if self.sticky:
            self._shown_before = grown(self._shown_before, above.size)
            above |= self._shown_before[: above.size]
            self._shown_before[: above.size] = above
        shown = np.flatnonzero(above)
        pairs = list(zip((-noisy[shown]).tolist(), self.table.labels.take(shown).list(), strict=True))
        # By count and label: the order in which items came is private (streaming-selection 10.3).
        best = sorted(pairs) if self.most is None else nsmallest(self.most, pairs)
        return Found({label: -count for count, label in best}, {})

    def accuracy(self, tick: int) -> Spread:
        return self.tree.spread(tick)

    def widest(self, tick: int) -> Spread:
        return self.tree.worst(tick)

    def error_bound(self, beta: float, tick: int | None) -> float:
        spread = self.tree.worst(self.horizon) if tick is None else self.tree.spread(tick)
        return spread.radius(beta / self.horizon)

    @property
    def shown_before(self) -> NDArray[np.bool_]:
        """Which items were ever released, where they are to stay."""
        return self._shown_before[: len(self.table)]

    def take(self, tick: int, shown_before: NDArray[np.bool_]) -> None:
        """Goes to the state after `tick`, with the items that are in the table."""
        self._shown_before = shown_before
        self.tree.seek(tick, self.table.addresses)

    def state(self) -> list[bytes]:
        level = [] if self.followed is None else [self.followed.level.to_bytes(8, "little")]
        return [np.packbits(self.shown_before).tobytes(), *self.table.to_bytes(), *level]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.table.load(parts[1:])
        if self.followed is not None:
            self.followed.level = int.from_bytes(parts[4], "little")
        bits = np.frombuffer(parts[0], dtype=np.uint8)
        self.take(tick, np.unpackbits(bits, count=len(self.table) if self.sticky else 0).astype(np.bool_))


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
