"""Unknown items by blocks: MetaAlgo with a one-shot mechanism that finds labels (streaming-selection 5).

`UnknownTopK(mechanism="meta")` and `UnknownHistogram(mechanism="meta")` run on it. The first is the only way to name
items of an unknown domain when an event may bring any number of them: what is paid grows with k, not with the size of
events. Both threshold every block on its own, so an item must be frequent within blocks; counts of blocks that did not
release it are lost, and totals are too low (7.4 there). Where events are small, "tree" counts better.
"""

from __future__ import annotations

from dataclasses import dataclass

from evertally.bounds.selection import L, digit_sum
from evertally.counting.process import spread_of
from evertally.encode import ItemTotals
from evertally.noise import DiscreteGaussian, ItemSource
from evertally.secret import Secret
from evertally.selection.found import Found
from evertally.selection.histograms import OneShot
from evertally.selection.meta import MetaAlgo, SeenBlocks

NO_LIMIT = 2**61  # the upper end of an interval that has none
ANY_NUMBER = 2**31  # items in an event that may bring as many as it likes


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


class BlockEngine(Secret):
    """MetaAlgo over labels that occur. `growth` is how much a tick may hold, as somebody declared it; `most` how many
    labels are shown."""

    width = 0  # as many numbers as items are found

    def __init__(
        self,
        one_shot: OneShot,
        *,
        radix: int,
        depth: int,
        horizon: int,
        source: ItemSource,
        growth: int | None,
        most: int = ANY_NUMBER,
    ) -> None:
        law = getattr(one_shot, "law", None)
        assert isinstance(law, DiscreteGaussian)
        self._law = law
        self.engine = MetaAlgo(one_shot, SeenBlocks(depth, source), radix=radix, depth=depth, source=source)
        self._horizon, self._growth, self._most = horizon, growth, most

    def advance(self, batch: list[ItemTotals]) -> tuple[list[Found], None]:
        rows = []
        for totals in batch:
            self.engine.step(totals.mapping())
            rows.append(self.released(self.engine.tick))
        return rows, None

    def released(self, tick: int) -> Found:
        """The sums of what blocks released, and what those that did not show a label may have held: anybody's guess, if
        nobody declared how much a tick may hold."""
        counts = dict(self.engine.top(self._most))
        most = NO_LIMIT if self._growth is None else self._growth
        return Found(counts, {label: min(self.engine.missed_ticks(label) * most, NO_LIMIT) for label in counts})

    def accuracy(self, tick: int) -> BlockAccuracy:
        return BlockAccuracy(self._law, digit_sum(tick, self.engine.radix) if tick else 1)

    def error_bound(self, beta: float, tick: int | None) -> float:
        r = self.engine.radix
        cells = (r - 1) * L(self._horizon, r) if tick is None else digit_sum(tick, r)
        return BlockAccuracy(self._law, cells).radius(beta / self._horizon)

    def state(self) -> list[bytes]:
        return self.engine.state()

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.engine.load(tick, parts)
