"""Live streams to feed by hand; not a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evertally.runtime.input.batches import Batch
from evertally.runtime.releases import TickRelease, unpack
from evertally.runtime.spec import StreamSpec

ON_REQUEST = ('tick = "1h"', 'tick = "1h"\nclose = "request"')
ON_THE_WALL = ('column = "time"\nstart = 2013-01-01T00:00:00Z\ntick = "1h"', 'start = "first serve"\ntick = "1s"')


class Hands:
    """A wall clock that is moved by hand."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


def batch(spec: StreamSpec, records: Sequence[dict[str, Any]]) -> Batch:
    from evertally.runtime.input.envelope import needed

    return {name: np.fromiter((record.get(name) for record in records), object, len(records)) for name in needed(spec)}


def in_pieces(records: Sequence[dict[str, Any]], size: int) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


def values(spec: StreamSpec, release: TickRelease) -> dict[str, Any]:
    return {query.name: unpack(query, release.payloads[query.name])["value"] for query in spec.queries}
