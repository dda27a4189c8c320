"""Bugs in noise by label: late labels, shared or redrawn noise, levels, restored tables."""

from __future__ import annotations

import functools
import math
from itertools import count
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.counting.process import IntArray
from evertally.noise import item_addresses
from evertally.noise.keystream import Keystream
from evertally.selection import item_table
from evertally.selection.item_tree import ItemTree
from evertally.statistics import unknown

_RESTORED = "restored selections"


@plant("a label that comes back")
def late_without_noise() -> Bug:
    """a late label without the noise of earlier blocks (streaming-selection 7.1 and 11.4 (5): the noise would reveal
    the first appearance)"""
    original = ItemTree._join

    def join(self: Any, addresses: Any) -> None:
        first = self._items
        original(self, addresses)
        self._latest[:, first:] = 0

    return replaced(ItemTree, _join=join)


@plant("noise of a label, every tick of 16")
def redrawn_each_tick() -> Bug:
    """noise of labels redrawn at each tick (streaming-selection 9.15 and 11.4 (3): the average of releases sharpens)"""
    original = ItemTree.advance

    def advance(self: Any, addresses: Any) -> IntArray:
        self._lane = f"tick {self.tick + 1}"
        self._items = 0  # everybody joins anew
        noise: IntArray = original(self, addresses)
        return noise

    return replaced(ItemTree, advance=advance)


@plant("noise of a label, 243 ticks on a tree of three")
def float_levels() -> Bug:
    """levels by a float logarithm (streaming-selection 10.4 and 11.4 (2): one level short at some powers of the
    radix)"""
    original = ItemTree.__init__

    @functools.wraps(original)
    def init(self: Any, law: Any, *, depth: int, **options: Any) -> None:
        original(self, law, depth=depth + 1, **options)  # so that the last tick does not fail

    return all_of(replaced(unknown, L=lambda T, r: math.floor(math.log(T, r)) + 1), replaced(ItemTree, __init__=init))


@plant("labels have noise of their own")
def shared_noise() -> Bug:
    """labels share their noise (streaming-selection 7.1: one draw for each item and cell)"""
    original = ItemTree._draws

    def draws(self: Any, block: int, addresses: Any) -> IntArray:
        return original(self, block, np.repeat(addresses[:1], len(addresses), axis=0))

    return replaced(ItemTree, _draws=draws)


@plant("labels have noise of their own")
def short_addresses() -> Bug:
    """addresses of labels cut to 12 bits (streaming-selection 10.1: hash collisions must not merge items silently)"""

    def short(source: Any, labels: Any) -> Any:
        return item_addresses(source, labels) & np.array([0xFFF, 0], dtype=np.uint64)

    return replaced(item_table, item_addresses=short)


@plant("labels have noise of their own")
def block_not_in_the_address() -> Bug:
    """noise of a label the same in all blocks (streaming-selection 10.2: keyed by label, level and index)"""
    original = Keystream.item_words
    return replaced(Keystream, item_words=lambda self, node, items, round_=0: original(self, 0, items, round_))


@plant(_RESTORED)
def blocks_forgotten() -> Bug:
    """a restored table without the noise of earlier blocks (streaming-selection 10.2: replay after recovery gives
    identical outputs)"""
    original = ItemTree.seek

    def seek(self: Any, tick: int, addresses: Any) -> None:
        original(self, tick, addresses)
        self._latest[:] = 0

    return replaced(ItemTree, seek=seek)


@plant(_RESTORED)
def redrawn_after_restore() -> Bug:
    """noise of labels redrawn after a restore (streaming-selection 10.2: re-drawing after a crash lets an observer
    average)"""
    original, number = ItemTree.seek, count()

    def seek(self: Any, tick: int, addresses: Any) -> None:
        self._lane += f"/{next(number)}"
        original(self, tick, addresses)

    return replaced(ItemTree, seek=seek)
