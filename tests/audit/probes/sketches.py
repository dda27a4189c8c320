"""Probes of sketches: the rows of their short audit that play no games."""

from __future__ import annotations

from typing import Any

from audit.probes.applications import verdict
from audit.probes.probing import Verdict, first_leak, probe
from evertally.audit.sketches import SketchSearch, descent_attack
from evertally.noise import simulation
from evertally.privacy import ZCDP, PureDP
from evertally.sketches.count_sketch import CountSketch
from evertally.sketches.heavy_prefixes import HeavyPrefixes

_TREE: dict[str, Any] = {"guarantee": ZCDP(0.5), "horizon": None, "mechanism": "epoch-tree"}
_DIGITS: dict[str, Any] = {"symbols": 2, "fanout": 16, "labels": "number", "width": 16, "threshold": 20}


def row(kind: Any, **options: Any) -> Verdict:
    return verdict(SketchSearch(kind(key=simulation(0), **options)).report())


@probe("closed form", "a label in all rows of a sketch")
def one_label() -> Verdict:
    return row(CountSketch, **_TREE)


@probe("closed form", "labels of an event that share buckets")
def shared_buckets() -> Verdict:
    return row(CountSketch, rows=1, max_per_event=3, **_TREE)


@probe("closed form", "a label in the place of another, with opposite signs")
def replaced_label() -> Verdict:
    return row(CountSketch, rows=3, neighbours="replace", **_TREE)


@probe("closed form", "labels of a user, each once")
def labels_of_a_user() -> Verdict:
    return row(CountSketch, rows=3, unit="user", max_labels_per_user=2, **_TREE)


@probe("closed form", "a label at all lengths of its prefixes")
def prefixes() -> Verdict:
    return row(HeavyPrefixes, **_TREE, **_DIGITS)


@probe("attack", "which labels are found by their prefixes")
def descent() -> Verdict:
    def make(key: Any) -> HeavyPrefixes:
        return HeavyPrefixes(guarantee=PureDP(1), horizon=8, key=key, **(_DIGITS | {"fanout": 4, "threshold": 9}))

    return first_leak(descent_attack(make))
