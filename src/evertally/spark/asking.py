"""Questions about wide rows that are not released by themselves: `release = "on demand"`.

An answer is the number that the dense release has there: exact sums of a marked state plus noise at its address, fixed
before the question. So any number of questions, chosen as one likes, is post-processing of a release that is private
already (docs/theory/distributed.md 5). Only ticks that end a batch whose state is still there can be asked; whoever
answers holds key and state, and is inside the trust boundary.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.counting.slices import LinearSlice
from evertally.encode.door import declared_labels
from evertally.encode.range_door import NumberedLabels
from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.spark.beginning import looked_at
from evertally.spark.job import Shop
from evertally.spark.root import Record
from evertally.spark.ways import is_plain

_FEW = 64  # of 1/so many columns of a slice that are asked: beyond, the noise of all is made at once


def ask(
    spec: str | os.PathLike[str], query: str, *, tick: int | None = None, categories: Sequence[Any]
) -> dict[str, Any]:
    """The release of some categories at a tick, the last one if none is given: columns category, value, lower, upper,
    and stddev, as `shown` has them."""
    settled = load_spec(spec)
    key = Key.load(settled.key_file)
    held = looked_at(settled, key)
    number = next((i for i, one in enumerate(settled.queries) if one.name == query), None)
    if number is None:
        raise ConfigurationError(f"there is no query {query!r} in {settled.path.name}")
    mechanism, way = held.mechanisms[query], held.stand.ways[number]
    if way.place != "slices" or not is_plain(mechanism._form):
        raise ConfigurationError(f"query {query!r} is released at every tick: read what was shown")
    record = _record(held.log, tick)
    columns = _columns(mechanism, categories)
    shop = Shop(held.stand)
    values = np.empty(len(columns), np.int64)
    for (of, first, stop), name in zip(record["parts"], record["states"], strict=True):
        mine = np.flatnonzero((columns >= first) & (columns < stop)) if of == number else np.empty(0, np.int64)
        if mine.size:
            _check_kept(held.log, shop, record, name, settled.engine.keep)
            state = shop.state(name, f"{of}-{first}-{stop}", record["batch"])
            values[mine] = _answers(shop, number, first, stop, state, columns[mine])
    accuracy = mechanism._engine.accuracy(record["through"])
    radius, deviation = math.floor(accuracy.radius(settled.beta)), mechanism._form.deviation(accuracy)
    return {
        "tick": record["through"],
        "category": [str(category) for category in categories],
        "value": values.tolist(),
        "lower": (values - radius).tolist(),
        "upper": (values + radius).tolist(),
        "stddev": None if deviation is None else float(f"{deviation:.6g}"),
    }


def _record(log: Any, tick: int | None) -> Record:
    """The marked batch that ends with a tick."""
    log.check()
    for batch in reversed(log.marks()):
        record: Record | None = log.manifest(batch)
        if record is None:
            raise StateError(f"the manifest of batch {batch} is missing under the root; bring the root back")
        if tick is None or record["through"] == tick:
            if not record["through"]:
                break
            log.check_mark(batch)
            return record
    raise ConfigurationError(
        "no released batch ends with this tick: ticks inside a batch leave no state to be asked; close a batch there"
    )


def _check_kept(log: Any, shop: Shop, record: Record, name: str, keep: int) -> None:
    later = max(log.marks()) - record["batch"]
    if later >= keep and shop.shelf.read(name) is None:
        raise ConfigurationError(
            f"tick {record['through']} can be asked no more: {later} batches came after it, and the states of the last "
            f"{keep} are kept. Ask for a later tick; [engine] keep = {later + 1} will keep more of those to come"
        )


def _columns(mechanism: Any, categories: Sequence[Any]) -> Any:
    if isinstance(categories, str | bytes) or not categories:
        raise ConfigurationError("categories is a list with one category at least")
    names = mechanism._form.labels
    labels = declared_labels(list(dict.fromkeys(categories)))
    known = names if isinstance(names, NumberedLabels) else {label: place for place, label in enumerate(names)}
    places = {label: known.get(label) for label in labels}
    if None in places.values() or len(labels) != len(categories):
        raise ConfigurationError("a category is asked that the spec does not declare, or one is asked twice")
    return np.array([places[label] for label in labels], np.int64)


def _answers(shop: Shop, query: int, first: int, stop: int, state: bytes, columns: Any) -> Any:
    plan = shop.plan(query)
    if len(columns) * _FEW > stop - first:
        part = LinearSlice.from_bytes(plan, shop.key, first, stop, [state], lazy=True)
        return (part.sums + part.noise())[columns - first]
    found = []
    for column in columns.tolist():
        part = LinearSlice.from_bytes(plan, shop.key, column, column + 1, [state], lazy=True)
        found.append(int((part.sums + part.noise())[0]))
    return np.array(found, np.int64)
