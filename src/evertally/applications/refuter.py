"""Sensitivity is executable: a search for two neighbouring streams that differ by more than is claimed.

The refuter plays records through the encoder itself, one record a tick, and looks at every pair of neighbours among
them. What shares a tick is covered: merging ticks is one of the factors that `intervals` takes the worst of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from evertally.applications.encoder import Encoder
from evertally.applications.paths import Path, difference, intervals, l1, split, square_root
from evertally.applications.records import Record, Records
from evertally.privacy import Change

Stream = tuple[Record | None, ...]  # a record, or nothing, at each tick
Pair = tuple[Stream, Stream]


@dataclass(frozen=True)
class Worst:
    """The largest differences that were found, and pairs of (public, made-up) streams that have them."""

    claim: Change
    pairs: int
    l1: int = 0
    l2_squared: float = 0.0
    split: int = 0
    widest: Pair | None = None  # the pair with the largest l2
    longest: Pair | None = None  # the pair with the largest l1

    @property
    def refuted(self) -> bool:
        """Whether two neighbours differ by more than is claimed."""
        return self.l1 > self.claim.l1 or self.l2_squared > self.claim.l2_squared + 1e-9


def search(encoder: Callable[[], Encoder], pairs: Iterable[Pair], claim: Change) -> Worst:
    """The worst of these pairs.

    `l2_squared` is the largest squared norm that a factor of ours really reaches on a pair; `split` bounds all factors.
    """
    count, found_l1, found_l2, found_split = 0, 0, 0.0, 0
    widest = longest = None
    paths: dict[Stream, Path] = {}
    for one, other in pairs:
        count += 1
        path = difference(_played(encoder, one, paths), _played(encoder, other, paths))
        size = l1(path)
        if size > found_l1:
            found_l1, longest = size, (one, other)
        bound = split(path)
        found_split = max(found_split, bound)
        # S3 bounds both norms: most pairs need no closer look.
        if bound > found_l2:
            reached = max(float(intervals(path)), square_root(path))
            if reached > found_l2:
                found_l2, widest = reached, (one, other)
    return Worst(claim, count, found_l1, found_l2, found_split, widest, longest)


def _played(encoder: Callable[[], Encoder], stream: Stream, known: dict[Stream, Path]) -> Path:
    if stream not in known:
        if len(known) > 1 << 16:
            known.clear()
        one = encoder()
        known[stream] = [one.changes(Records(() if record is None else (record,))) for record in stream]
    return known[stream]


def streams(records: Sequence[Record], length: int) -> Iterator[Stream]:
    """All streams of a length over some records."""
    yield from product(records, repeat=length)


def removed(stream: Stream) -> Iterator[Pair]:
    """A stream, and it without one of its records; the others keep their ticks and their order."""
    for i, record in enumerate(stream):
        if record is not None:
            yield stream, (*stream[:i], None, *stream[i + 1 :])


def replaced(stream: Stream, records: Sequence[Record]) -> Iterator[Pair]:
    """A stream, and it with another record in place of one of its own."""
    for i, record in enumerate(stream):
        for other in records:
            if other != record:
                yield stream, (*stream[:i], other, *stream[i + 1 :])


def neighbours(some: Iterable[Stream], records: Sequence[Record], relation: Any) -> Iterator[Pair]:
    """All pairs of a relation ("add_remove" or "replace") that begin with one of these streams."""
    for stream in some:
        yield from removed(stream) if str(relation) == "add_remove" else replaced(stream, records)
