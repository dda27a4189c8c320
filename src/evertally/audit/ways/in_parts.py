"""The row "in parts": a query that is played in pieces, on several machines or one after the other, against the whole.

Which queries a cluster cuts is not asked here: whatever can be cut is. Slices of columns (slices.py), shards of labels
(shards.py), buckets of users: a cap that looks at one user alone keeps of the users of a bucket what it keeps of them
among all, and of several ticks at once what it keeps of one after the other. The states of parts lie on a shelf in
between.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from evertally.audit.known_code import once
from evertally.audit.report import Report
from evertally.audit.spec_down.small import Small
from evertally.audit.ways import METHOD
from evertally.audit.ways.shards import wrong_cells, wrong_shards
from evertally.audit.ways.slices import wrong_memory, wrong_slices
from evertally.audit.ways.ticks_of_caps import wrong_kinds, wrong_ticks
from evertally.checks.shelf import check_shelf
from evertally.encode.content_order import order_key, user_buckets
from evertally.errors import ConfigurationError, EvertallyError
from evertally.noise import simulation
from evertally.runtime.mechanisms import twins
from evertally.runtime.state.shelf import DiskShelf
from evertally.statistics.linear_options import sums_rows
from evertally.statistics.unknown import ItemFinder

NAME = "in parts"
_BUCKETS, _USERS = 3, 700


def in_parts(small: Small, seed: int = 0) -> Report:
    """Plays a copy of a query in all parts that it can be cut into."""
    key, looked = simulation(seed), []
    for what, look in _looks(small, key):
        try:
            wrong = look()
        except EvertallyError as error:
            wrong = f"{type(error).__name__} where the whole goes on: {error}"
        except Exception as error:
            wrong = f"{type(error).__name__} where the whole goes on"
        if wrong:
            return Report.attack(small.made, NAME, True, f"{what}: {wrong}", METHOD)
        looked.append(what)
    if not looked:
        return Report.not_here(small.made, NAME, "it is played as a whole: nothing of it can be cut")
    return Report.attack(small.made, NAME, False, f"{', '.join(looked)}: the same as the whole", METHOD)


def _looks(small: Small, key: Any) -> Any:
    made, name = small.made, small.query.name

    def fresh() -> Any:
        return twins({name: made}, key)[name]

    if sums_rows(made) and _has_plan(made):
        yield "slices", lambda: wrong_slices(fresh(), key)
    engine = getattr(made._engine, "inner", made._engine)
    if hasattr(engine, "noise"):
        yield "memory", lambda: wrong_memory(getattr(fresh()._engine, "inner", fresh()._engine).noise)
    if isinstance(made, ItemFinder):
        yield "many ticks at once", lambda: wrong_cells(fresh())
        try:
            made.item_plan()
        except ConfigurationError:
            pass
        else:
            yield "shards", lambda: wrong_shards(fresh(), key)
    if made._users is not None:
        yield "buckets", lambda: _wrong_buckets(fresh, key)
        yield "ticks of users", lambda: wrong_ticks(lambda: fresh()._users) or _wrong_kinds()
    if sums_rows(made) or isinstance(made, ItemFinder):
        yield "shelf", _wrong_shelf


def _has_plan(made: Any) -> bool:
    """Sums behind a rule that users share have none: they are never cut."""
    try:
        made.plan()
    except (ConfigurationError, AssertionError):
        return False
    return True


def _wrong_buckets(fresh: Any, key: Any) -> str:
    """Caps of users, a bucket at a time, put away between ticks."""
    whole, parts = fresh()._users, [fresh()._users for _ in range(_BUCKETS)]
    for tick in range(1, 5):
        users: list[Any] = [(i * i + tick) % _USERS if i % 5 else str((i * i + tick) % _USERS) for i in range(900)]
        users[::50] = [None] * len(users[::50])
        kept, bucket = whole.keep(users, tick), user_buckets(users, order_key(key), _BUCKETS)
        if kept[bucket < 0].any():
            return "an event without a user is kept"
        for number in range(_BUCKETS):
            mine = np.flatnonzero(bucket == number)
            parts[number] = type(whole).from_bytes(parts[number].to_bytes())
            if (parts[number].keep([users[i] for i in mine.tolist()], tick) != kept[mine]).any():
                return f"at tick {tick} a bucket of users keeps other events than all of them together"
    return ""


def _wrong_kinds() -> str:
    return once("evertally.encode", "in parts: several ticks of a cap", wrong_kinds)


def _wrong_shelf() -> str:
    """Where states lie: two writers of a name, and what is taken away."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_shelf(DiskShelf(folder), writers=2, names=3)
        except AssertionError as error:
            return str(error)
    return ""
