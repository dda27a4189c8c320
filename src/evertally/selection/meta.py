"""MetaAlgo: a one-shot mechanism on every block of a tree, and its answers added up.

streaming-selection 5. Blocks are those of counting/tree.py: tick t completes exactly one block that is ever used, of
length r^v, v the number of trailing zero digits of t in base r, and 1..t is tiled by digitsum(t) such blocks. When a
block is complete the one-shot mechanism looks at its histogram, once; what it released is kept as long as the tiling
needs it. The answer at t adds up, for every label, what the blocks of the tiling released for it.

Privacy [R], adaptive streams included (1.4 and 5.1 there): one event lies in at most L blocks, each released once with
fresh noise, so L charges of the one-shot mechanism pay for the whole stream. The events of one user may lie in several
blocks of a level; what those cost together is `OneShot.charge_apart`, and `paid_by` checks it (additions 4). Everything
after that is post-processing.

Accuracy: what a block does not release is lost, so answers are too low. No theorem bounds this beforehand; `missed`
says, from released numbers alone, how many blocks may have lost something, and how little they released.

Online (5.3 there): one exact histogram a level. A complete block is added to the block above it, so a tick costs one
one-shot call and O(size of a block's histogram) more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from evertally.contract.rows import from_bytes, to_bytes
from evertally.counting.process import IntArray
from evertally.counting.tree import level
from evertally.encode.texts import tables_from_bytes, tables_to_bytes
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource, item_addresses
from evertally.privacy import ZCDP, ApproxZCDP
from evertally.secret import Secret
from evertally.selection.histograms import OneShot
from evertally.selection.items import Items

MISSED = (
    "blocks that do not show a label lose its counts, and nobody declared how much a tick may hold: declare "
    "max_events_per_tick"
)

Charge = TypeVar("Charge", ZCDP, ApproxZCDP)


class KnownBlocks(Secret):
    """Histograms over declared labels: totals are one integer for each label, zeros stay.

    >>> from evertally.noise import ZeroNoise
    >>> blocks = KnownBlocks(["a", "b"], depth=2, source=ZeroNoise().source())
    >>> [blocks.complete(np.array([1, 2 * t]), v).counts.tolist() for t, v in ((1, 0), (2, 1), (3, 0))]
    [[1, 2], [2, 6], [1, 6]]
    """

    def __init__(self, labels: Sequence[str], depth: int, source: ItemSource) -> None:
        self._labels = list(labels)
        self._addresses = item_addresses(source, self._labels)
        self._sums = np.zeros((depth, len(self._labels)), dtype=np.int64)

    def complete(self, totals: IntArray, v: int) -> Items:
        self._sums[0] += totals
        for i in range(v):
            self._sums[i + 1] += self._sums[i]
        block = self._sums[v].copy()
        self._sums[: v + 1] = 0
        if v + 1 < len(self._sums):
            self._sums[v + 1] += block
        return Items(self._labels, block, self._addresses)

    def state(self) -> bytes:
        return to_bytes(self._sums)

    def load(self, data: bytes) -> None:
        self._sums = from_bytes(data).reshape(self._sums.shape)


class SeenBlocks(Secret):
    """Histograms over whatever labels occur: totals are positive counts by label, a block knows its own labels only.

    >>> from evertally.noise import ZeroNoise
    >>> blocks = SeenBlocks(depth=2, source=ZeroNoise().source())
    >>> _ = blocks.complete({"b": 2}, v=0)
    >>> items = blocks.complete({"b": 1, "a": 1}, v=1)
    >>> items.labels, items.counts.tolist()
    (['a', 'b'], [1, 3])
    """

    def __init__(self, depth: int, source: ItemSource) -> None:
        self._source = source
        self._counts: list[Counter[str]] = [Counter() for _ in range(depth)]

    def complete(self, totals: Mapping[str, int], v: int) -> Items:
        self._counts[0].update(totals)
        for i in range(v):
            self._counts[i + 1].update(self._counts[i])
            self._counts[i] = Counter()
        block = self._counts[v]
        self._counts[v] = Counter()
        if v + 1 < len(self._counts):
            self._counts[v + 1].update(block)
        # In the order of their names: the order in which they arrived must not reach anything that is released.
        names = sorted(block)
        counts = np.array([block[name] for name in names], dtype=np.int64)
        return Items(names, counts, item_addresses(self._source, names))

    def state(self) -> bytes:
        return tables_to_bytes(self._counts)

    def load(self, data: bytes) -> None:
        self._counts = [Counter(table) for table in tables_from_bytes(data)]


def block_share(charge: Charge, depth: int, blocks: int = 1) -> Charge:
    """What the one-shot mechanism may cost in each block if the whole stream may cost `charge`: 1/L of it (5.1, 2.3).

    A unit of several events can meet `blocks` blocks of a level. Each of them has a delta; their rho add up to
    `OneShot.charge_apart`, which is not always that of one call in which all events meet: see `paid_by`.

    >>> block_share(ZCDP(1), 5), block_share(ApproxZCDP(1, 1e-6), 5), block_share(ApproxZCDP(1, 1e-6), 5, blocks=2)
    (ZCDP(rho=0.2), ApproxZCDP(rho=0.2, delta=2e-07), ApproxZCDP(rho=0.2, delta=1e-07))
    """
    rho, adversary = charge.exact_rho / depth, charge.adversary
    if isinstance(charge, ZCDP):
        return ZCDP(rho, adversary=adversary)
    return ApproxZCDP(rho, charge.exact_delta / (depth * blocks), adversary=adversary, force=True)


def paid_by(charge: Charge, one_shot: OneShot, depth: int, blocks: int = 1) -> OneShot:
    """The one-shot mechanism, if `charge` pays for it in every block of a tree of so many levels; refused otherwise.

    Checked for the noise that will be used, whatever it was made for: under replacement a user's events and those of
    the user who takes their place may lie in different blocks, and a call that one block can pay for may then be too
    dear. Selections of scale b with counts of variance v are safe if v >= 2 b^2 (additions 4).

    >>> from evertally.privacy import Neighbours
    >>> from evertally.selection.histograms import KnownGumbel
    >>> from evertally.selection.reach import Reach
    >>> users = Reach(neighbours=Neighbours.REPLACE, events=3)
    >>> paper, other = KnownGumbel(1, 3, 36, users), KnownGumbel(1, 6, 18, users)
    >>> paper.charge, other.charge, paper.charge_apart, other.charge_apart
    (ZCDP(rho=0.625), ZCDP(rho=0.375), ZCDP(rho=0.625), ZCDP(rho=0.5625))
    >>> paid_by(ZCDP(0.375), other, depth=1)
    Traceback (most recent call last):
    evertally.errors.ConfigurationError: the calls in all blocks of a level cost ZCDP(rho=0.5625) ...
    """
    cost = one_shot.charge_apart.cost
    if depth * cost.rho > charge.exact_rho or depth * blocks * cost.delta > charge.cost.delta:
        raise ConfigurationError(
            f"the calls in all blocks of a level cost {one_shot.charge_apart} where the events of one unit lie in "
            f"different blocks (delta in each of {blocks}), and {depth} levels of that are more than {charge}; use "
            "more noise (selections with counts: a count variance of at least twice the square of the scale)"
        )
    return one_shot


class MetaAlgo(Secret):
    """The engine: one tick's totals in, what the blocks of the tiling released comes out.

    >>> from evertally.noise import ZeroNoise
    >>> from evertally.selection.histograms import KnownGauss
    >>> source = ZeroNoise().source()
    >>> meta = MetaAlgo(KnownGauss(1, 2), KnownBlocks(["a", "b"], 2, source), radix=2, depth=2, source=source)
    >>> for _ in range(3):
    ...     meta.step(np.array([1, 5]))
    >>> meta.counts(), meta.missed("a")
    ({'a': 3, 'b': 15}, (0, 0))
    """

    def __init__(
        self, one_shot: OneShot, blocks: KnownBlocks | SeenBlocks, *, radix: int, depth: int, source: ItemSource
    ) -> None:
        self.tick, self.radix = 0, radix
        self._one_shot, self._blocks, self._source = one_shot, blocks, source
        # By level, what the blocks of the tiling of 1..tick released.
        self._released: list[list[dict[str, int]]] = [[] for _ in range(depth)]

    @property
    def cells(self) -> list[dict[str, int]]:
        """What each block of the tiling released: label -> noisy count of the block."""
        return [cell for cells in self._released for cell in cells]

    def step(self, totals: Any) -> None:
        """One tick. Its number is the address of the noise: one tick, one block, one call."""
        self.tick += 1
        v = level(self.tick, self.radix)
        items = self._blocks.complete(totals, v)
        for i in range(v):
            self._released[i] = []
        released = self._one_shot.release(items, self._source, self.tick)
        self._released[v].append({label: count for label, count in released if count is not None})

    def counts(self) -> dict[str, int]:
        """Rule (a) of 5.2: the noisy counts of every label that some block of the tiling released, added up."""
        total: Counter[str] = Counter()
        for cell in self.cells:
            total.update(cell)
        return dict(total)

    def top(self, k: int) -> list[tuple[str, int]]:
        """The k largest of them, ties by name."""
        return sorted(self.counts().items(), key=lambda pair: (-pair[1], pair[0]))[:k]

    def missed(self, label: str) -> tuple[int, int]:
        """How many blocks did not release this label, and the sum of the smallest counts that they did release."""
        floors = [max(0, min(cell.values(), default=0)) for cell in self.cells if label not in cell]
        return len(floors), sum(floors)

    def missed_ticks(self, label: str) -> int:
        """How many ticks lie in blocks of the tiling that did not release this label."""
        return sum(self.radix**v for v, cells in enumerate(self._released) for cell in cells if label not in cell)

    def state(self) -> list[bytes]:
        cells = to_bytes(np.array([len(cells) for cells in self._released], dtype=np.int64))
        return [self._blocks.state(), cells, tables_to_bytes(self.cells)]

    def load(self, tick: int, parts: list[bytes]) -> None:
        self.tick = tick
        self._blocks.load(parts[0])
        cells = iter(tables_from_bytes(parts[2]))
        self._released = [list(islice(cells, count)) for count in from_bytes(parts[1]).tolist()]
