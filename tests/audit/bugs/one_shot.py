"""Bugs in the release of one histogram: ties, margins, thresholds, charges; and in the blocks that repeat it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.bounds.selection import gumbel_margin, gumbel_q
from evertally.counting.process import IntArray
from evertally.noise import round_up
from evertally.privacy import ApproxZCDP
from evertally.selection import histograms
from evertally.selection.histograms import KnownGauss, KnownGumbel, LimitedDomainLaplace, UnknownGauss, UnknownGumbel
from evertally.selection.items import Items
from evertally.selection.meta import block_share
from evertally.selection.noisy_max import noisy_argmax
from evertally.selection.reach import Reach
from evertally.selection.roots import root_up
from evertally.statistics import streaming, unknown

_CUT = "a label just above the cut"
_GUMBEL = "labels that tie at a Gumbel threshold"


# -- one release -----------------------------------------------------------------------------------------------------


@plant("labels that tie at a noisy threshold")
def partial_sort() -> Bug:
    """ties at rank kbar as a partial sort leaves them (streaming-selection 4.3: an unspecified partial sort can swap
    many tied labels)"""

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


@plant("labels that tie at a noisy threshold")
def strict_candidates() -> Bug:
    """only counts above the cut are candidates of a noisy threshold (streaming-selection 4.3: with the strict rule kbar
    labels exist in one world only)"""
    original, past = Items.top, histograms._past_noisy_threshold

    def strict(self: Items, kbar: int) -> tuple[IntArray, int]:
        chosen, cut = original(self, kbar)
        return chosen[self.counts[chosen] > cut], cut

    def release(*args: Any) -> Any:
        with replaced(Items, top=strict):
            return past(*args)

    return replaced(histograms, _past_noisy_threshold=release)


@plant(_CUT)
def small_margin() -> Bug:
    """margin of one event under replacement (streaming-selection 1.3: the label and the cut may both move, + 2
    DeltaInf)"""
    past = histograms._past_noisy_threshold

    def release(self: Any, items: Items, source: Any, node: int) -> Any:
        return past(items, self.kbar, self.reach.move + self.margin, self.law, source, node)

    return all_of(replaced(UnknownGauss, release=release), replaced(LimitedDomainLaplace, release=release))


@plant(_CUT)
def gumbel_without_plus_one() -> Bug:
    """Gumbel threshold without the + 1 (streaming-selection 4.5: a label of one world only is up to 1 above the cut)"""
    return _gumbel_threshold(lambda self, margin: margin - self.reach.above_cut)


@plant(_GUMBEL)
def half_the_threshold() -> Bug:
    """half the Gumbel threshold at the same delta (streaming-selection 4.5: never combine the shortened threshold with
    the old charge)"""
    return _gumbel_threshold(lambda self, margin: margin // 2)


def _gumbel_threshold(lowered: Callable[[UnknownGumbel, int], int]) -> Bug:
    """Another margin, and the charge of the old one."""
    return replaced(
        UnknownGumbel,
        margin=property(lambda self: lowered(self, gumbel_margin(self.scale, self.delta))),
        q=property(lambda self: gumbel_q(self.scale, gumbel_margin(self.scale, self.delta))),
    )


@plant(_GUMBEL)
def k_for_kbar() -> Bug:
    """k labels at risk in place of kbar (streaming-selection 4.5: Theorem 3 charges 2k delta, Theorem 10 kbar delta)"""

    def charge(self: UnknownGumbel) -> ApproxZCDP:
        rho = histograms._gumbel_rho(self.k, self.scale, self.count_variance, self.reach)
        return ApproxZCDP(rho, self.k * self.q, force=True)

    return replaced(UnknownGumbel, charge=property(charge))


@plant("the labels that are selected")
def half_the_gumbel() -> Bug:
    """half the selection noise (streaming-selection 2.2: Gumbel(b) costs 1/(8 b^2), b = tau/2)"""
    return replaced(histograms, noisy_argmax=lambda scores, scale, *rest: noisy_argmax(scores, scale / 2, *rest))


@plant("the labels that are selected")
def charged_as_monotone() -> Bug:
    """selection charged as monotone under replacement (streaming-selection 1.3 and 2.2: without monotone counts four
    times as much)"""
    rho, tau = histograms._gumbel_rho, histograms._tau

    def one_way(reach: Reach) -> Reach:
        return Reach(reach.max_weight, events=reach.events)

    return replaced(
        histograms,
        _gumbel_rho=lambda k, scale, variance, reach: rho(k, scale, variance, one_way(reach)),
        _tau=lambda charge, k, counts, reach: tau(charge, k, counts, one_way(reach)),
    )


@plant("selected labels with their counts")
def gumbel_values() -> Bug:
    """counts released with the noise of the selection (streaming-selection 4.2: never output the Gumbel-noised
    values)"""
    original = KnownGumbel.release

    def release(self: KnownGumbel, items: Items, source: Any, node: int) -> Any:
        variates = source.item_variates(histograms.LABELS, "gumbel", node, items.addresses)
        values = items.counts + np.rint(float(self.scale) * (variates.lower + variates.upper) / 2).astype(np.int64)
        noisy = dict(zip(items.labels, values.tolist(), strict=True))
        return [(label, noisy[label]) for label, _ in original(self, items, source, node)]

    return replaced(KnownGumbel, release=release)


@plant("selected labels with their counts")
def one_noise_for_all_counts() -> Bug:
    """one noise for the counts of all selected labels (streaming-selection 4.2: fresh Gaussians on the counts)"""

    def with_counts(items: Items, chosen: IntArray, law: Any, source: Any, node: int) -> Any:
        noise = int(source.item_draws(histograms.COUNTS, law, node, items.addresses[chosen[:1]])[0])
        return [(items.labels[i], int(items.counts[i]) + noise) for i in chosen.tolist()]

    return replaced(histograms, _with_counts=with_counts)


# -- MetaAlgo --------------------------------------------------------------------------------------------------------


def _unchecked(charge: Any, one_shot: Any, *rest: int) -> Any:
    """`paid_by` that pays for everything: the product refuses shares that are too large."""
    return one_shot


@plant("a label inside one block")
def delta_for_each_block() -> Bug:
    """the whole delta for every block (streaming-selection 5.1: bad outcomes are union-bounded over L cells)"""

    def share(charge: Any, depth: int, blocks: int = 1) -> Any:
        return ApproxZCDP(block_share(charge, depth, blocks).exact_rho, charge.exact_delta, force=True)

    return replaced(unknown, block_share=share, paid_by=_unchecked)


@plant("noise of the blocks of MetaAlgo, every tick of 9")
def rho_for_each_block() -> Bug:
    """the whole rho for every block (streaming-selection 5.1: an event touches L cells)"""
    return replaced(streaming, block_share=lambda charge, depth: charge, paid_by=_unchecked)


@plant("a user whose place another takes in other blocks")
def charged_as_if_in_one_block() -> Bug:
    """counts too exact for users that are replaced (additions 4: in two blocks counts cost twice as much;
    count_variance >= 2 scale^2, or charge them apart)"""

    def tau(rho: Fraction, k: int, counts: bool, reach: Reach) -> tuple[Fraction, Fraction]:
        # scale^2 = 16 variance: one block in which all events meet costs rho, as it should.
        part = (Fraction(reach.sides**2, 16 * 8) + Fraction(1, 2)) * k * reach.move**2
        variance = round_up(part / rho)
        return 4 * root_up(variance), variance

    return replaced(histograms, _tau=tau, _rho_apart=histograms._gumbel_rho)


@plant("noise of the blocks of MetaAlgo, every tick of 9")
def same_noise_in_blocks() -> Bug:
    """the same noise in every block (streaming-selection 1.4: each cell is released once, with fresh noise)"""
    original = KnownGauss.release
    return replaced(KnownGauss, release=lambda self, items, source, node: original(self, items, source, 0))
