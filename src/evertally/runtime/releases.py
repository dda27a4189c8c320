"""Releases as they are kept: the columns of each as JSON.

A payload is a function of the release and of nothing else, made once, when a tick is computed: what is hashed, kept,
compared and published are these bytes. It holds no label that the spec declares already: a histogram of ten thousand
categories is a list of counts and two numbers. The store compresses it, which may come out otherwise with another zlib.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract.release import Release
from evertally.errors import StateError
from evertally.runtime.spec import QuerySpec, StreamSpec

FIELDS = ("tick", "time", "query", "category", "value", "stddev", "lower", "upper")

_LEVEL = 1  # higher levels take longer and gain 7 % on counts with noise
LONGEST_ROW = 4096  # numbers; what has more keeps no row beside its value


@dataclass(frozen=True)
class TickRelease:
    """What one tick released: its number, the time at which it ended, and a payload for each query.

    >>> TickRelease(1, "2013-01-01T01:00:00Z", {}).tick
    1
    """

    tick: int
    time: str | int
    payloads: Mapping[str, bytes]  # by query, in the order of the spec
    # What `unpacked` has read: sinks, page and webhooks share it.
    columns: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)
    # Windows that the spec asks for and that end here, by name: they follow from the log (`windows.outputs`).
    windows: Mapping[str, tuple[QuerySpec, dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)


def pack(query: QuerySpec, release: Release, beta: float, *, rows: bool = False) -> bytes:
    """A release as bytes, with the interval that holds with probability 1 - beta.

    With `rows` the released integers stand beside a value that is made of them: windows of means and percentiles need
    them. Streams of versions that did not keep them go on without: their bytes must come out as they were released.

    >>> import evertally as et
    >>> from fractions import Fraction
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> query = QuerySpec("visits", "counter", Fraction(1), None, {}, line=1)
    >>> release = counter.step(20)
    >>> kept = unpack(query, pack(query, release, beta=0.05))
    >>> kept["value"] == release.value, kept["category"], kept["lower"] < kept["value"]
    (True, None, True)
    """
    value, (lower, upper) = release.value, release.interval(beta=beta)
    content: dict[str, Any] = {}
    if isinstance(value, Mapping):
        if query.result.brings_labels:
            content["category"] = list(value)
        lower, upper = [lower[label] for label in value], [upper[label] for label in value]
        value = list(value.values())
    value, lower, upper = map(_plain, (value, lower, upper))
    content["value"] = value
    radius = _radius(value, lower, upper)
    content |= {"lower": lower, "upper": upper} if radius is None else {"radius": radius}
    content["stddev"] = None if release.stddev is None else float(f"{release.stddev:.6g}")
    if rows and release.row is not None and len(release.row) <= LONGEST_ROW:
        row, shown = release.row.tolist(), value if isinstance(value, list) else [value]
        if row != shown or any(type(number) is not int for number in shown):
            content["row"] = row
    # ASCII, because a label may be a text that UTF-8 cannot hold.
    return json.dumps(content, separators=(",", ":"), default=_plain).encode("ascii")


def compressed(payload: bytes) -> bytes:
    """A payload as the store keeps it."""
    return zlib.compress(payload, _LEVEL)


def decompressed(kept: bytes) -> bytes:
    """The payload that `compressed` was given."""
    try:
        reader = zlib.decompressobj()
        payload = reader.decompress(kept)
        whole = reader.eof and not reader.unused_data
    except zlib.error:
        whole = False
    if not whole:
        raise _damaged()
    return payload


def unpack(query: QuerySpec, payload: bytes) -> dict[str, Any]:
    """The columns of a release: lists of one length, or single values where `category` is None. `stddev` is one number.

    A value is a number or a label; of a label, `lower` and `upper` bound how far its sum is from the right one.
    """
    try:
        content = json.loads(payload)
        category = content["category"] if query.result.brings_labels else listed(query.categories)
        value, stddev = content["value"], content["stddev"]
        if "radius" in content:
            lower, upper = _around(value, -content["radius"]), _around(value, content["radius"])
        else:
            lower, upper = content["lower"], content["upper"]
    except (ValueError, TypeError, KeyError):
        raise _damaged() from None
    lengths = {len(part) if isinstance(part, list) else None for part in (category, value, lower, upper)}
    if len(lengths) != 1:
        raise _damaged()
    return {"category": category, "value": value, "lower": lower, "upper": upper, "stddev": stddev}


def listed(labels: Iterable[str] | None) -> list[str] | None:
    """The categories of a release, all of them: there are as many numbers in memory."""
    return None if labels is None else list(labels)


def row_of(payload: bytes) -> NDArray[np.int64] | None:
    """The released integers of a payload: those beside its value, or the value itself if it consists of integers. Only
    a law can say whether these are the row (`windows.Law`)."""
    try:
        content = json.loads(payload)
        value = content["value"]
    except (ValueError, TypeError, KeyError):
        raise _damaged() from None
    row = np.array(content.get("row", value if isinstance(value, list) else [value]))
    return row.astype(np.int64) if np.issubdtype(row.dtype, np.integer) else None


def entries(columns: Mapping[str, Any]) -> Iterable[Any]:
    """(category, value, lower, upper) for each released number or label, in an order that is public.

    A histogram has one per category, in the declared order: the order of arrival is private. Where labels are found
    or chosen, there is one for each released label, best first, and none for any other. A list has one per rank.
    """
    parts = [columns[name] for name in ("category", "value", "lower", "upper")]
    return [parts] if columns["category"] is None else zip(*parts, strict=True)


def unpacked(spec: StreamSpec, release: TickRelease) -> Iterator[tuple[QuerySpec, dict[str, Any]]]:
    """The queries of a release, in the order of the spec, each with its columns."""
    for query in spec.queries:
        if query.name in release.payloads:
            if query.name not in release.columns:
                release.columns[query.name] = unpack(query, release.payloads[query.name])
            yield query, release.columns[query.name]


def shown(spec: StreamSpec, release: TickRelease) -> Iterator[tuple[str, QuerySpec, dict[str, Any]]]:
    """What outputs write of a release: its queries, each under its name, and then the windows."""
    for query, columns in unpacked(spec, release):
        yield query.name, query, columns
    for name, (query, columns) in release.windows.items():
        yield name, query, columns


def as_json(spec: StreamSpec, release: TickRelease) -> dict[str, Any]:
    """A release as it is told to other programs: tick, time, and the columns of each query by name."""
    columns = {name: columns for name, _, columns in shown(spec, release)}
    return {"tick": release.tick, "time": release.time, "queries": columns}


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as Python's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _radius(value: Any, lower: Any, upper: Any) -> int | None:
    """The r for which all bounds are value - r and value + r, in integers; None if there is none."""
    shown, low, high = (part if isinstance(part, list) else [part] for part in (value, lower, upper))
    if {type(number) for part in (shown, low, high) for number in part} != {int}:
        return None
    radius = int(shown[0] - low[0])
    same = low == [number - radius for number in shown] and high == [number + radius for number in shown]
    return radius if same else None


def _around(value: Any, move: int) -> Any:
    return [number + move for number in value] if isinstance(value, list) else value + move


def _damaged() -> StateError:
    return StateError("a release in the store is damaged, or is not one of this spec; bring the state back")
