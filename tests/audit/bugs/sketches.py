"""Bugs of sketches: what is charged, what is merged, what is remembered, what is followed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from audit.bugs.planting import Bug, plant, replaced
from evertally.privacy import Contribution, Neighbours
from evertally.sketches import labels, options
from evertally.sketches.charges import Touched, sketch_change
from evertally.sketches.heavy_prefixes import HeavyPrefixes
from evertally.sketches.once import OncePerUser

_ONCE = "labels of a user, each once"


@plant("a label in all rows of a sketch")
def rows_not_charged() -> Bug:
    """a sketch charged as one row (10, bug 9: 1 instead of R)"""

    def change(relation: Any, touched: Touched, *rest: Any, **named: Any) -> Any:
        return sketch_change(relation, Touched(min(1, touched.plain), min(1, touched.signed)), *rest, **named)

    return replaced(options, sketch_change=change)


@plant("labels of an event that share buckets")
def buckets_not_clipped() -> Bug:
    """labels of an event that add up in a bucket, charged R b (10, bug 9, and trap 12)"""
    plain = labels.merged
    return replaced(labels, merged=lambda events, columns, values, bound: plain(events, columns, values, 2**40))


@plant("a label in the place of another, with opposite signs")
def signs_not_charged() -> Bug:
    """replacement in a sketch with signs, charged as without them (5.1: 4 R, labels may share all buckets)"""

    def change(relation: Any, touched: Touched, *rest: Any, **named: Any) -> Any:
        return sketch_change(relation, Touched(touched.columns, 0), *rest, **named)

    return replaced(options, sketch_change=change)


@plant(_ONCE)
def buckets_of_users_lost() -> Bug:
    """the buckets of users lost at a restart (10, bug 1, for sketches)"""
    return replaced(OncePerUser, load=lambda self, tick, data: None)


@plant(_ONCE)
def cap_of_a_tick() -> Bug:
    """buckets of a user capped in each tick (5.1: w for life)"""
    plain = OncePerUser.admit

    def admit(self: Any, arrivals: Any) -> Any:
        for field in range(self._places):
            self._users.write(field, np.arange(len(self._users)), np.zeros(len(self._users), dtype=np.int64))
        self._pairs.load(type(self._pairs)(0).save())
        return plain(self, arrivals)

    return replaced(OncePerUser, admit=admit)


@plant("a label at all lengths of its prefixes")
def levels_not_charged() -> Bug:
    """prefixes charged for the whole label alone (5.2: the sum over levels)"""

    def change(relation: Neighbours, touched: Touched, contribution: Contribution, *rest: Any, **named: Any) -> Any:
        return sketch_change(relation, replace(touched, plain=0), contribution, *rest, **named)

    return replaced(options, sketch_change=change)


@plant("which labels are found by their prefixes")
def empty_prefixes_left_out() -> Bug:
    """a descent that leaves out what never occurred (trap 15: released numbers only)"""
    plain = HeavyPrefixes._release

    def release(self: Any, row: Any, accuracy: Any) -> Any:
        exact = self._form.show(self._kept.played.state * 10**6)
        made = plain(self, row, accuracy)
        return replace(made, value={label: n for label, n in made.value.items() if label in exact})

    return replaced(HeavyPrefixes, _release=release)
