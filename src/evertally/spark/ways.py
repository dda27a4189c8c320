"""How each query of a stream is played on many machines, settled on the driver from public numbers alone.

    slices   wide rows of counts: ranges of columns, each with its exact sums and its noise (counting/slices.py)
    shards   items that nobody listed: labels by a keyed hash, each shard with counts, noise and threshold
    whole    everything else, in one place: its tick is added up on the way there if it can be ("cells", "items"),
             otherwise its events go there ("records")

Rules of users that look at one user alone (`ruled`) are played where that user's events meet, in buckets, and what they
let through goes on as cells or items. Caps of users as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from evertally.contract.admission import AdmissionEngine
from evertally.contract.doors import Items, RowDoor
from evertally.contract.folding import bounds_each_event
from evertally.contract.forms import LabelledForm, RowForm
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey
from evertally.runtime.mechanisms import Mechanisms
from evertally.runtime.spec import StreamSpec
from evertally.sketches.labels import LabelDoor
from evertally.sketches.once import OncePerUser
from evertally.statistics.linear_options import sums_rows
from evertally.statistics.unknown import ItemFinder
from evertally.users.distinct_rules import FirstCategories, FirstSeen
from evertally.users.distinct_unknown import FirstLabels

Place = Literal["slices", "shards", "whole"]
Travel = Literal["cells", "items", "records"]


@dataclass(frozen=True)
class Way:
    """How one query is played: where, what travels there, whether its rule of users is played in buckets, and the plan
    of its slices or shards as public text."""

    place: Place
    travels: Travel
    ruled: bool
    parts: int
    columns: int = 0
    plan: str = ""


@dataclass(frozen=True)
class Part:
    """A piece of the state that one task plays: columns first .. stop - 1 of a query, shard `first` of `stop`, or all
    of it."""

    number: int
    query: int  # its place in the spec
    first: int = 0
    stop: int = 0


@dataclass(frozen=True)
class Recipe:
    """A mechanism without key and state: its class and its options, as snapshots keep them."""

    statistic: type[Any]
    options: str

    @classmethod
    def of(cls, mechanism: Any) -> Recipe:
        kept = {name: mechanism._encoded(name, value) for name, value in mechanism._options.items()}
        return cls(type(mechanism), json.dumps(kept))

    def made(self, key: NoiseKey) -> Any:
        """The mechanism before its first tick."""
        kind = self.statistic
        options = {name: kind._decoded(name, value) for name, value in json.loads(self.options).items()}
        return kind(**options, key=key, allow_copy=True)


def ways_of(spec: StreamSpec, mechanisms: Mechanisms) -> list[Way]:
    """How the queries of a spec are played. Refuses what would depend on the order in which rows come."""
    found = [_way(spec, mechanisms[query.name]) for query in spec.queries]
    by_order = any(way.travels == "records" or way.ruled for way in found)
    if (by_order or any(mechanism._users is not None for mechanism in mechanisms.values())) and spec.order != "content":
        raise ConfigurationError(
            f"{spec.path}: rows of a shuffle come in any order, and which events of a user count must not follow from "
            'it: write order = "content" into [stream] (it is part of the stream, for one process as well)'
        )
    return found


def parts_of(ways: list[Way], width: int) -> list[Part]:
    """All parts, numbered through."""
    parts: list[Part] = []
    for query, way in enumerate(ways):
        for piece in range(way.parts):
            if way.place == "slices":
                parts.append(Part(len(parts), query, piece * width, min(way.columns, (piece + 1) * width)))
            else:
                parts.append(Part(len(parts), query, piece, way.parts))
    return parts


def needs_users(mechanisms: Mechanisms, ways: list[Way]) -> bool:
    """Whether events have to meet by user before they are counted."""
    return any(way.ruled for way in ways) or any(one._users is not None for one in mechanisms.values())


def rule_of(mechanism: Any) -> Any:
    """The rule of users before the engine of a mechanism, None if it has none."""
    engine = mechanism._engine
    return engine.rule if mechanism._plan.owned and isinstance(engine, AdmissionEngine) else None


def _way(spec: StreamSpec, mechanism: Any) -> Way:
    ruled = _by_user(rule_of(mechanism))
    if not ruled and mechanism._plan.owned:
        return Way("whole", "records", False, 1)
    engine, door = spec.engine, mechanism._door
    if sums_rows(mechanism) and (ruled or _makes_cells(mechanism)):
        columns = mechanism._engine.width
        if columns > engine.slice_width:
            plan = mechanism.plan().to_json()
            return Way("slices", "cells", ruled, -(-columns // engine.slice_width), columns, plan)
        return Way("whole", "cells", ruled, 1, columns)
    labels = _item_plan(mechanism)
    if labels:
        return Way("shards", "items", ruled, engine.label_shards, plan=labels)
    if ruled or (type(door) is Items and bounds_each_event(mechanism)):
        return Way("whole", "items", ruled, 1)
    if isinstance(door, RowDoor) and bounds_each_event(mechanism):
        return Way("whole", "cells", False, 1, door.columns)
    return Way("whole", "records", False, 1)


def _item_plan(mechanism: Any) -> str:
    """The plan of its shards, "" where labels are not cut."""
    if not isinstance(mechanism, ItemFinder):
        return ""
    try:
        return mechanism.item_plan().to_json()
    except ConfigurationError:
        return ""


def _makes_cells(mechanism: Any) -> bool:
    return isinstance(mechanism._door, LabelDoor) or bounds_each_event(mechanism)


def is_plain(form: Any) -> bool:
    """Whether what is shown are the numbers of the row themselves."""
    return type(form) in (RowForm, LabelledForm)


def _by_user(rule: Any) -> bool:
    """Whether a rule looks at one user's events alone and remembers nothing that users share: a limit on all users, a
    map of bits and labels that are followed are shared."""
    if type(rule) is FirstSeen:
        return rule.most is None
    if type(rule) is FirstLabels:
        return not rule.limited
    return type(rule) in (FirstCategories, OncePerUser)
