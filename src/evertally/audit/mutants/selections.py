"""Bugs in streaming selection: thresholds, late labels, ties, margins, forgotten labels, sparse vectors, what is shown.

Two departures that the traps warn of lose no privacy by themselves. Ties in the order of arrival are not planted: one
event moves one label then, too. A threshold noise of sparseGumb that is kept after a switch loses 1/2 once and not s
times; only the ledger finds it, because the theorem is about another process.
"""

from __future__ import annotations

import functools
import math
from collections import Counter as Tally
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from evertally.audit.mutants.planting import all_of, plant, replaced, scaled
from evertally.bounds import selection as bounds
from evertally.bounds.selection import Threshold, gumbel_margin, gumbel_q
from evertally.counting.process import IntArray
from evertally.encode import ItemDoor, ItemTotals
from evertally.encode.door import _TOTAL_LIMIT
from evertally.encode.labels import as_list
from evertally.encode.plain import pairs, whole
from evertally.errors import ReplayRefused
from evertally.noise import item_addresses, round_up
from evertally.noise.keystream import Keystream
from evertally.privacy import ZCDP, ApproxZCDP, Change
from evertally.selection import histograms, item_table, streaming, unknown, unknown_meta
from evertally.selection.histograms import KnownGauss, KnownGumbel, LimitedDomainLaplace, UnknownGauss, UnknownGumbel
from evertally.selection.item_table import ItemTable
from evertally.selection.item_tree import ItemTree
from evertally.selection.items import Items
from evertally.selection.meta import block_share
from evertally.selection.noisy_max import noisy_argmax
from evertally.selection.reach import Reach
from evertally.selection.roots import root_up
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget
from evertally.selection.unknown import UnknownHistogram, UnknownTopK

Bug = AbstractContextManager[None]

_FRESH = "a label of a single event"
_FORM = "one event of an unknown domain, in any form"
_LONG = "one event of an unknown domain, out of many long ones"
_BELOW = "what is below the threshold"
_RESTORED = "restored selections"
_CUT = "a label just above the cut"
_GUMBEL = "labels that tie at a Gumbel threshold"
_VECTOR = "sparse vectors: a wait and a switch"


def once_made(kind: type, change: Callable[[Any], None]) -> Bug:
    """Objects of a class, changed once they are made."""
    original = kind.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        change(self)

    return replaced(kind, __init__=init)


# -- the threshold of an unknown domain ------------------------------------------------------------------------------


@plant(
    "a count at the threshold is released",
    "streaming-selection 10.4: strict > with integer noise",
    _FRESH,
)
def not_strict() -> Bug:
    original = Threshold.at
    return replaced(Threshold, at=lambda self, t: original(self, t) - 1)


@plant(
    "threshold without the + 1",
    "streaming-selection 7.1 (11): a label of one event has a count of 1",
    _FRESH,
)
def no_plus_one() -> Bug:
    original = Threshold.at
    return replaced(Threshold, at=lambda self, t: original(self, t) - self.move)


@plant(
    "threshold + 1 for events of any weight",
    "streaming-selection 1.3: + DeltaInf for weights, + g for g events of a user",
    _FRESH,
)
def plus_one_for_all() -> Bug:
    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, move=1)

    return once_made(UnknownHistogram, change)


@plant(
    "Gaussian quantile as a threshold for integer noise",
    "streaming-selection 10.4: never the Gaussian quantile forms",
    _FRESH,
)
def gaussian_quantile() -> Bug:
    def at(self: Threshold, t: int) -> int:
        tau = math.sqrt(self.variance / bounds.L(self.T, self.r))
        height = bounds.m(self.T, self.r, tau=tau, delta=float(self.delta), kind=self.kind, t=t)
        return self.move - 1 + math.floor(height)

    return replaced(Threshold, at=at)


@plant(
    "threshold for a single tick",
    "streaming-selection 7.2: the bad mass is a union over all ticks",
    _FRESH,
)
def one_tick() -> Bug:
    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, T=1)

    return once_made(UnknownHistogram, change)


@plant(
    "delta for one label, whatever an event has",
    "streaming-selection 7.2: Delta0 labels are at risk",
    _FRESH,
)
def delta_for_one_label() -> Bug:
    def change(self: Any) -> None:
        self._threshold = replace(self._threshold, delta=self.charge.exact_delta)

    return once_made(UnknownHistogram, change)


@plant(
    "threshold by the age of a label",
    "streaming-selection 7.2: per_tick thresholds are data-independent",
    _FRESH,
)
def threshold_by_age() -> Bug:
    original = UnknownHistogram._publish

    def publish(self: Any) -> dict[str, int]:
        first = self.__dict__.setdefault("_first", [])
        first += [self._tree.tick] * (len(self._table) - len(first))
        public = self._threshold
        self._threshold = SimpleNamespace(at=lambda t: np.array([public.at(t - f + 1) for f in first], dtype=np.int64))
        shown = original(self)
        self._threshold = public
        return shown

    return replaced(UnknownHistogram, _publish=publish)


@plant(
    "labels remembered as released before they are",
    "streaming-selection 7.1: sticky mode needs the released set, which is public",
    _FRESH,
)
def sticky_too_early() -> Bug:
    original = UnknownHistogram._publish

    def publish(self: Any) -> dict[str, int]:
        shown = original(self)
        if self._sticky:
            self._released[:] = True
        return shown

    return replaced(UnknownHistogram, _publish=publish)


@plant(
    "labels of weight 0 remembered",
    "streaming-selection 1.3: dropped before the truncation, else an event brings any number of labels",
    _FRESH,
)
def weightless_labels() -> Bug:
    def row(self: ItemDoor, event: object, tick: int) -> dict[str, int]:
        weightless = [(self._item(value), weight) for value, weight in pairs(event) if weight == 0]
        counted = {} if weightless else self._cut(self._items(event), tick)
        return counted | {item: 0 for item, _ in weightless if item is not None}

    return replaced(ItemDoor, row=row)


@plant(
    "labels ranked by their exact counts",
    "streaming-selection 5.2: the cut to k is post-processing of released counts",
    "the best label of an unknown domain",
)
def ranked_by_exact_counts() -> Bug:
    def best(self: Any, pairs: list[tuple[int, str]]) -> list[tuple[int, str]]:
        exact = dict(zip(self._table.labels.list(), self._table.counts.tolist(), strict=True))
        return sorted(pairs, key=lambda pair: (-exact[pair[1]], pair[1]))[: self.k]

    return replaced(UnknownTopK, _best=best)


# -- noise by label --------------------------------------------------------------------------------------------------


@plant(
    "a late label without the noise of earlier blocks",
    "streaming-selection 7.1 and 11.4 (5): the noise would reveal the first appearance",
    "a label that comes back",
)
def late_without_noise() -> Bug:
    original = ItemTree._join

    def join(self: Any, addresses: Any) -> None:
        first = self._items
        original(self, addresses)
        self._latest[:, first:] = 0

    return replaced(ItemTree, _join=join)


@plant(
    "noise of labels redrawn at each tick",
    "streaming-selection 9.15 and 11.4 (3): the average of releases sharpens",
    "noise of a label, every tick of 16",
)
def redrawn_each_tick() -> Bug:
    original = ItemTree.advance

    def advance(self: Any, addresses: Any) -> IntArray:
        self._lane = f"tick {self.tick + 1}"
        self._items = 0  # everybody joins anew
        noise: IntArray = original(self, addresses)
        return noise

    return replaced(ItemTree, advance=advance)


@plant(
    "levels by a float logarithm",
    "streaming-selection 10.4 and 11.4 (2): one level short at some powers of the radix",
    "noise of a label, 243 ticks on a tree of three",
)
def float_levels() -> Bug:
    original = ItemTree.__init__

    @functools.wraps(original)
    def init(self: Any, law: Any, *, depth: int, **options: Any) -> None:
        original(self, law, depth=depth + 1, **options)  # so that the last tick does not fail

    return all_of(
        replaced(unknown, levels=lambda T, r: math.floor(math.log(T, r)) + 1), replaced(ItemTree, __init__=init)
    )


@plant(
    "labels share their noise",
    "streaming-selection 7.1: one draw for each item and cell",
    "labels have noise of their own",
)
def shared_noise() -> Bug:
    original = ItemTree._draws

    def draws(self: Any, block: int, addresses: Any) -> IntArray:
        return original(self, block, np.repeat(addresses[:1], len(addresses), axis=0))

    return replaced(ItemTree, _draws=draws)


@plant(
    "addresses of labels cut to 12 bits",
    "streaming-selection 10.1: hash collisions must not merge items silently",
    "labels have noise of their own",
)
def short_addresses() -> Bug:
    def short(source: Any, labels: Any) -> Any:
        return item_addresses(source, labels) & np.array([0xFFF, 0], dtype=np.uint64)

    return replaced(item_table, item_addresses=short)


@plant(
    "noise of a label the same in all blocks",
    "streaming-selection 10.2: keyed by label, level and index",
    "labels have noise of their own",
)
def block_not_in_the_address() -> Bug:
    original = Keystream.item_words
    return replaced(Keystream, item_words=lambda self, node, items, round_=0: original(self, 0, items, round_))


@plant(
    "a restored table without the noise of earlier blocks",
    "streaming-selection 10.2: replay after recovery gives identical outputs",
    _RESTORED,
)
def blocks_forgotten() -> Bug:
    original = ItemTree.seek

    def seek(self: Any, tick: int, addresses: Any) -> None:
        original(self, tick, addresses)
        self._latest[:] = 0

    return replaced(ItemTree, seek=seek)


@plant(
    "noise of labels redrawn after a restore",
    "streaming-selection 10.2: re-drawing after a crash lets an observer average",
    _RESTORED,
)
def redrawn_after_restore() -> Bug:
    original, number = ItemTree.seek, count()

    def seek(self: Any, tick: int, addresses: Any) -> None:
        self._lane += f"/{next(number)}"
        original(self, tick, addresses)

    return replaced(ItemTree, seek=seek)


# -- the door and the table ------------------------------------------------------------------------------------------


def _door(contribution: Callable[[ItemDoor, list[dict[str, int]], int, int], dict[str, int]]) -> Bug:
    """Events counted one by one; `contribution(door, batch, i, tick)` is what event i of the batch adds."""

    def totals(self: ItemDoor, events: Any, tick: int) -> ItemTotals:
        batch = [self._items(event) for event in as_list(events)]
        found: Tally[str] = Tally()
        for i in range(len(batch)):
            found.update(contribution(self, batch, i, tick))
        return ItemTotals.of(dict(found))

    return replaced(ItemDoor, totals=totals)


@plant(
    "long lists of items cut by their place in the batch",
    "streaming-selection 10.1: never a function of the position in a batch",
    _LONG,
)
def cut_by_position() -> Bug:
    def contribution(door: ItemDoor, batch: list[dict[str, int]], i: int, tick: int) -> dict[str, int]:
        ranked = sorted(batch[i], key=lambda label: (sum(label.encode()) + i) % 3)
        return {label: batch[i][label] for label in ranked[: door.max_per_event]}

    return _door(contribution)


@plant(
    "long lists of items cut to the most frequent ones",
    "streaming-selection 10.1: never choose by private state",
    _LONG,
)
def cut_by_popularity() -> Bug:
    def contribution(door: ItemDoor, batch: list[dict[str, int]], i: int, tick: int) -> dict[str, int]:
        seen = Tally(label for row in batch for label in row)
        ranked = sorted(batch[i], key=lambda label: (-seen[label], label))
        return {label: batch[i][label] for label in ranked[: door.max_per_event]}

    return _door(contribution)


@plant(
    "items counted as often as an event names them",
    "streaming-selection 10.1: an event is a set, two copies of an item count once",
    _FORM,
)
def copies_counted() -> Bug:
    def pairs(self: Any, events: Any, items: Any, labels: Any, tick: int) -> Any:
        return np.bincount(items, minlength=len(labels))

    return replaced(ItemDoor, _of_pairs=pairs)


@plant(
    "weights of items not clipped",
    "streaming-selection 10.1: multiplicities beyond DeltaInf are clipped for each item",
    _FORM,
)
def weights_not_clipped() -> Bug:
    def items(self: ItemDoor, event: object) -> dict[str, int]:
        found: dict[str, int] = {}
        for value, weight in pairs(event):
            item, times = self._item(value), whole(weight, _TOTAL_LIMIT)
            if item is not None and times > 0:
                found[item] = found.get(item, 0) + times
        return found

    return replaced(ItemDoor, _items=items)


@plant(
    "spellings of an item clipped before they are merged",
    "streaming-selection 10.1: canonicalise, merge duplicates, then clip",
    _FORM,
)
def clipped_too_early() -> Bug:
    def items(self: ItemDoor, event: object) -> dict[str, int]:
        found: dict[str, int] = {}
        for value, weight in pairs(event):
            item, times = self._item(value), whole(weight, self.max_weight)
            if item is not None and times > 0:
                found[item] = found.get(item, 0) + times
        return found

    return replaced(ItemDoor, _items=items)


@plant(
    "the smallest counts forgotten",
    "streaming-selection 7.1: eviction by private state is broken in general",
    "one event before a long stream",
)
def eviction() -> Bug:
    original = ItemTable.add

    def add(self: ItemTable, totals: ItemTotals) -> None:
        original(self, totals)
        others = np.setdiff1d(np.flatnonzero(self.counts), self._index.find(totals.labels))[::-1]
        if others.size > 1:  # room for two; of equals, the one that came first stays
            self.counts[others[np.argmin(self.counts[others])]] = 0

    return replaced(ItemTable, add=add)


# -- what is shown ---------------------------------------------------------------------------------------------------


@plant(
    "labels released in the order of their arrival",
    "streaming-selection 10.3: insertion order is private",
    "the order of what is released",
)
def order_of_arrival() -> Bug:
    return replaced(UnknownHistogram, _best=lambda self, pairs: pairs)


@plant(
    "labels in the text of an error",
    "streaming-selection 10.3: no error texts with labels",
    _BELOW,
)
def labels_in_errors() -> Bug:
    original = UnknownHistogram._step

    def step(self: Any, totals: Any, tick: int | None, users: Any = None) -> Any:
        try:
            return original(self, totals, tick, users)
        except ReplayRefused as error:
            raise ReplayRefused(f"{error} (items: {', '.join(self._table.labels.list())})") from None

    return replaced(UnknownHistogram, _step=step)


@plant(
    "number of labels in the name of the object",
    "streaming-selection 10.3: no |U_t|, no row metrics",
    _BELOW,
)
def number_in_repr() -> Bug:
    return replaced(UnknownHistogram, __repr__=lambda self: f"UnknownHistogram({len(self._table)} items)")


@plant(
    "error bound for as many labels as there are",
    "streaming-selection 10.3: no |U_t|, no row metrics",
    _BELOW,
)
def bound_for_what_is_there() -> Bug:
    original = UnknownHistogram.error_bound

    def error_bound(self: Any, beta: float = 0.05, t: int | None = None, *, items: int | None = None) -> float:
        return original(self, beta, t, items=items or max(1, len(self._table)))

    return replaced(UnknownHistogram, error_bound=error_bound)


@plant(
    "unreleased labels shown with a count of 0",
    "streaming-selection 10.3: only the thresholded lists may leave",
    _BELOW,
)
def shown_as_zero() -> Bug:
    original = UnknownHistogram._publish

    def publish(self: Any) -> dict[str, int]:
        shown = original(self)
        return shown | {label: 0 for label in self._table.labels.list() if label not in shown}

    return replaced(UnknownHistogram, _publish=publish)


# -- one release -----------------------------------------------------------------------------------------------------


@plant(
    "ties at rank kbar as a partial sort leaves them",
    "streaming-selection 4.3: an unspecified partial sort can swap many tied labels",
    "labels that tie at a noisy threshold",
)
def partial_sort() -> Bug:
    def top(self: Items, kbar: int) -> tuple[IntArray, int]:
        order = sorted((i for i in range(len(self.labels)) if self.counts[i]), key=self.labels.__getitem__)
        if len(order) <= kbar:
            return np.array(order, dtype=np.int64), 0
        # Hoare's selection, on which numpy's argpartition builds.
        low, high = 0, len(order) - 1
        while low < high:
            pivot, i, j = self.counts[order[kbar]], low, high
            while i <= j:
                while self.counts[order[i]] > pivot:
                    i += 1
                while self.counts[order[j]] < pivot:
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i, j = i + 1, j - 1
            low, high = i if j < kbar else low, j if kbar < i else high
        return np.array(order[:kbar], dtype=np.int64), int(self.counts[order[kbar]])

    return replaced(Items, top=top)


@plant(
    "only counts above the cut are candidates of a noisy threshold",
    "streaming-selection 4.3: with the strict rule kbar labels exist in one world only",
    "labels that tie at a noisy threshold",
)
def strict_candidates() -> Bug:
    original, past = Items.top, histograms._past_noisy_threshold

    def strict(self: Items, kbar: int) -> tuple[IntArray, int]:
        chosen, cut = original(self, kbar)
        return chosen[self.counts[chosen] > cut], cut

    def release(*args: Any) -> Any:
        with replaced(Items, top=strict):
            return past(*args)

    return replaced(histograms, _past_noisy_threshold=release)


@plant(
    "margin of one event under replacement",
    "streaming-selection 1.3: the label and the cut may both move, + 2 DeltaInf",
    _CUT,
)
def small_margin() -> Bug:
    past = histograms._past_noisy_threshold

    def release(self: Any, items: Items, source: Any, node: int) -> Any:
        return past(items, self.kbar, self.reach.move + self.margin, self.law, source, node)

    return all_of(replaced(UnknownGauss, release=release), replaced(LimitedDomainLaplace, release=release))


@plant(
    "Gumbel threshold without the + 1",
    "streaming-selection 4.5: a label of one world only is up to 1 above the cut",
    _CUT,
)
def gumbel_without_plus_one() -> Bug:
    return _gumbel_threshold(lambda self, margin: margin - self.reach.above_cut)


@plant(
    "half the Gumbel threshold at the same delta",
    "streaming-selection 4.5: never combine the shortened threshold with the old charge",
    _GUMBEL,
)
def half_the_threshold() -> Bug:
    return _gumbel_threshold(lambda self, margin: margin // 2)


def _gumbel_threshold(lowered: Callable[[UnknownGumbel, int], int]) -> Bug:
    """Another margin, and the charge of the old one."""
    return replaced(
        UnknownGumbel,
        margin=property(lambda self: lowered(self, gumbel_margin(self.scale, self.delta))),
        q=property(lambda self: gumbel_q(self.scale, gumbel_margin(self.scale, self.delta))),
    )


@plant(
    "k labels at risk in place of kbar",
    "streaming-selection 4.5: Theorem 3 charges 2k delta, Theorem 10 kbar delta",
    _GUMBEL,
)
def k_for_kbar() -> Bug:
    def charge(self: UnknownGumbel) -> ApproxZCDP:
        rho = histograms._gumbel_rho(self.k, self.scale, self.count_variance, self.reach)
        return ApproxZCDP(rho, self.k * self.q, force=True)

    return replaced(UnknownGumbel, charge=property(charge))


@plant(
    "half the selection noise",
    "streaming-selection 2.2: Gumbel(b) costs 1/(8 b^2), b = tau/2",
    "the labels that are selected",
)
def half_the_gumbel() -> Bug:
    return replaced(histograms, noisy_argmax=lambda scores, scale, *rest: noisy_argmax(scores, scale / 2, *rest))


@plant(
    "selection charged as monotone under replacement",
    "streaming-selection 1.3 and 2.2: without monotone counts four times as much",
    "the labels that are selected",
)
def charged_as_monotone() -> Bug:
    rho, tau = histograms._gumbel_rho, histograms._tau

    def one_way(reach: Reach) -> Reach:
        return Reach(reach.max_weight, events=reach.events)

    return replaced(
        histograms,
        _gumbel_rho=lambda k, scale, variance, reach: rho(k, scale, variance, one_way(reach)),
        _tau=lambda charge, k, counts, reach: tau(charge, k, counts, one_way(reach)),
    )


@plant(
    "counts released with the noise of the selection",
    "streaming-selection 4.2: never output the Gumbel-noised values",
    "selected labels with their counts",
)
def gumbel_values() -> Bug:
    original = KnownGumbel.release

    def release(self: KnownGumbel, items: Items, source: Any, node: int) -> Any:
        variates = source.item_variates(histograms.LABELS, "gumbel", node, items.addresses)
        values = items.counts + np.rint(float(self.scale) * (variates.lower + variates.upper) / 2).astype(np.int64)
        noisy = dict(zip(items.labels, values.tolist(), strict=True))
        return [(label, noisy[label]) for label, _ in original(self, items, source, node)]

    return replaced(KnownGumbel, release=release)


@plant(
    "one noise for the counts of all selected labels",
    "streaming-selection 4.2: fresh Gaussians on the counts",
    "selected labels with their counts",
)
def one_noise_for_all_counts() -> Bug:
    def with_counts(items: Items, chosen: IntArray, law: Any, source: Any, node: int) -> Any:
        noise = int(source.item_draws(histograms.COUNTS, law, node, items.addresses[chosen[:1]])[0])
        return [(items.labels[i], int(items.counts[i]) + noise) for i in chosen.tolist()]

    return replaced(histograms, _with_counts=with_counts)


# -- MetaAlgo --------------------------------------------------------------------------------------------------------


def _unchecked(charge: Any, one_shot: Any, *rest: int) -> Any:
    """`paid_by` that pays for everything: the product refuses shares that are too large."""
    return one_shot


@plant(
    "the whole delta for every block",
    "streaming-selection 5.1: bad outcomes are union-bounded over L cells",
    "a label inside one block",
)
def delta_for_each_block() -> Bug:
    def share(charge: Any, depth: int, blocks: int = 1) -> Any:
        return ApproxZCDP(block_share(charge, depth, blocks).exact_rho, charge.exact_delta, force=True)

    return replaced(unknown_meta, block_share=share, paid_by=_unchecked)


@plant(
    "the whole rho for every block",
    "streaming-selection 5.1: an event touches L cells",
    "noise of the blocks of MetaAlgo, every tick of 9",
)
def rho_for_each_block() -> Bug:
    return replaced(streaming, block_share=lambda charge, depth: charge, paid_by=_unchecked)


@plant(
    "counts too exact for users that are replaced",
    "additions 4: in two blocks counts cost twice as much; count_variance >= 2 scale^2, or charge them apart",
    "a user whose place another takes in other blocks",
)
def charged_as_if_in_one_block() -> Bug:
    def tau(rho: Fraction, k: int, counts: bool, reach: Reach) -> tuple[Fraction, Fraction]:
        # scale^2 = 16 variance: one block in which all events meet costs rho, as it should.
        part = (Fraction(reach.sides**2, 16 * 8) + Fraction(1, 2)) * k * reach.move**2
        variance = round_up(part / rho)
        return 4 * root_up(variance), variance

    return replaced(histograms, _tau=tau, _rho_apart=histograms._gumbel_rho)


@plant(
    "the same noise in every block",
    "streaming-selection 1.4: each cell is released once, with fresh noise",
    "noise of the blocks of MetaAlgo, every tick of 9",
)
def same_noise_in_blocks() -> Bug:
    original = KnownGauss.release
    return replaced(KnownGauss, release=lambda self, items, source, node: original(self, items, source, 0))


# -- sparseGumb ------------------------------------------------------------------------------------------------------


@plant(
    "sparse vector goes on after the last switch",
    "streaming-selection 6.2: s runs at most, none after the last switch",
    _VECTOR,
)
def switches_never_end() -> Bug:
    def change(self: Any) -> None:
        self._budget = _like(_Endless, self._budget, switches=99, paid=self._budget.switches)
        self.switches_left = 99

    return once_made(SparseGumbel, change)


@dataclass(frozen=True)
class _Endless(SparseGumbelBudget):
    """More switches than the noise was made for."""

    paid: int = 1

    @property
    def _tau1_squared(self) -> Fraction:
        return self.paid * self.tau_squared * self.linf**2


def _like(kind: type, budget: SparseGumbelBudget, **more: Any) -> Any:
    """The budget as an object of another class."""
    return kind(**{field.name: getattr(budget, field.name) for field in fields(SparseGumbelBudget)} | more)


@dataclass(frozen=True)
class _Shrinking(SparseGumbelBudget):
    """tau1 = sqrt(switches that are left) tau."""

    left: int = 1

    @property
    def _tau1_squared(self) -> Fraction:
        return self.left * self.tau_squared * self.linf**2


@plant(
    "noise of the sparse vector for the switches that are left",
    "streaming-selection 6.1: tau1 is not recomputed when s decreases",
    _VECTOR,
)
def recomputed_scale() -> Bug:
    settle, play = SparseGumbel._settle, SparseGumbel._play

    def shrinking(self: Any, selection: int) -> None:
        self._budget = _like(_Shrinking, self._budget, left=max(1, self.switches_left))
        settle(self, selection)

    def one_by_one(self: Any, sums: IntArray, *out: IntArray) -> None:
        for i in range(len(sums)):  # questions are drawn tick by tick, each with the noise of its time
            play(self, sums[i : i + 1], *(part[i : i + 1] for part in out))

    return replaced(SparseGumbel, _settle=shrinking, _play=one_by_one)


@plant(
    "the bar of the sparse vector from exact counts",
    "additions 3: a bar that is no function of the transcript moves too, and a question has sensitivity 2",
    "sparse vector, replaced events, the same counts",
)
def exact_bar() -> Bug:
    play = SparseGumbel._play

    def by_exact_counts(self: Any, sums: IntArray, *out: IntArray) -> None:
        eta = self._eta
        for i in range(len(sums)):
            row = sums[i : i + 1]
            if self.tick:
                noise = self._counted(row, self.tick + 1).min() - row[:, self._named].min()
                self._eta = eta - int(noise)
            play(self, row, *(part[i : i + 1] for part in out))
        self._eta = eta

    return replaced(SparseGumbel, _play=by_exact_counts)


@plant(
    "half the noise of questions",
    "streaming-selection 6.1: Lap(4 tau1) on questions, Lap(2 tau1) on the threshold",
    _VECTOR,
)
def half_the_questions() -> Bug:
    original: Any = SparseGumbelBudget.__dict__["query"]
    return replaced(SparseGumbelBudget, query=property(lambda self: scaled(original.__get__(self), Fraction(1, 2))))


@plant(
    "no threshold noise in the sparse vector",
    "streaming-selection 6.2: without it every question is paid for",
    _VECTOR,
)
def no_threshold_noise() -> Bug:
    original = SparseGumbel._settle

    def settle(self: Any, selection: int) -> None:
        left, self.switches_left = self.switches_left, 0  # nothing is drawn for the last selection
        original(self, selection)
        self.switches_left = left

    return replaced(SparseGumbel, _settle=settle)


class _Elsewhere:
    """A source that reads one lane at node 0 only."""

    def __init__(self, inner: Any, lane: str) -> None:
        self._inner, self._lane = inner, lane

    def draws(self, lane: str, law: Any, nodes: Any, *rest: Any) -> Any:
        return self._inner.draws(lane, law, [0 for _ in nodes] if lane == self._lane else nodes, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _read_at_zero(lane: str) -> Bug:
    def change(self: Any) -> None:
        self._source = _Elsewhere(self._source, lane)

    return once_made(SparseGumbel, change)


@plant(
    "noise of questions reused at every tick",
    "streaming-selection 6.2: query noise never reused",
    "sparse vector of three ticks, all draws",
)
def questions_reused() -> Bug:
    return _read_at_zero("question")


@plant(
    "threshold noise of the sparse vector kept after a switch",
    "streaming-selection 6.2: threshold noise redrawn at each run",
    "noise ledger of sparseGumb",
)
def threshold_kept() -> Bug:
    return _read_at_zero("threshold")


@plant(
    "counters that pay as if nothing were named again",
    "streaming-selection 6.2: s + 1 selections share the budget of counts",
    "counts of sparseGumb, before and after a switch",
)
def counters_of_one_selection() -> Bug:
    def instance(self: SparseGumbelBudget) -> tuple[ZCDP, Change]:
        return ZCDP(1 / (2 * self.tau_squared)), Change(self.linf, self.linf**2, self.linf)

    return replaced(SparseGumbelBudget, instance=property(instance))


@plant(
    "selections that pay as if nothing were named again",
    "streaming-selection 6.1: tau2 = sqrt(s + 1) tau",
    "what sparseGumb names first",
)
def selections_of_one() -> Bug:
    original: Any = SparseGumbelBudget.__dict__["gumbel_scale"]
    return replaced(SparseGumbelBudget, gumbel_scale=property(lambda self: original.__get__(replace(self, switches=0))))


@plant(
    "all switches back after a restore",
    "streaming-selection 6.2: s switches in the whole life of the stream",
    _RESTORED,
)
def switches_come_back() -> Bug:
    original = SparseGumbel.load

    def load(self: Any, tick: int, parts: list[bytes]) -> None:
        original(self, tick, parts)
        self.switches_left = self._budget.switches

    return replaced(SparseGumbel, load=load)
