"""Labels of large domains in bounded memory: sketches, and heavy prefixes."""

from __future__ import annotations

from functools import partial
from typing import Literal

from evertally.encode.labels import canonical
from evertally.kinds.fields import Flag, Labels, Text, Whole
from evertally.kinds.kind import Card, Kind, Result
from evertally.kinds.known_before import of_noise
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.query_table import Query
from evertally.kinds.reads import ITEMS, Parameters
from evertally.sketches.count_sketch import CountSketch
from evertally.sketches.heavy_prefixes import HeavyPrefixes


class SketchedQuery(Query):
    column: Text
    rows: Whole | None = None
    width: Whole | None = None
    max_per_event: Whole | None = None
    max_weight: Whole | None = None
    max_labels_per_user: Whole | None = None


class CountSketchQuery(SketchedQuery):
    watch: Labels
    signs: Flag | None = None


class HeavyPrefixesQuery(SketchedQuery):
    symbols: Whole
    threshold: Whole
    fanout: Whole | None = None
    labels: Literal["text", "ipv4", "number"] | None = None
    most: Whole | None = None
    show: Literal["labels", "prefixes"] | None = None


def watched(parameters: Parameters) -> list[str]:
    """The labels whose estimates every release has."""
    return [str(canonical(label)) for label in parameters["watch"]]


_sketched = partial(
    Kind,
    reads=ITEMS,
    proofs=NOISE_PROCESSES,
    user_proof="users-and-domains 1.2",
    error_later="Estimates of a sketch are off by noise, which is known, and by other labels in their buckets, which "
    "are not: each release has its interval, with an estimate of the latter.",
    known_before=of_noise,
)

KINDS = (
    _sketched(
        statistic=CountSketch,
        also=("sketch",),
        options=CountSketchQuery,
        result=Result(categories=watched),
        card=Card("bars", "Watched labels of {column}: estimates of how often they occurred"),
        change_proof="users-and-domains 5.1",
    ),
    _sketched(
        statistic=HeavyPrefixes,
        also=("heavy-prefixes",),
        options=HeavyPrefixesQuery,
        result=Result(labels="found"),
        card=Card(
            "ranking",
            "What occurs often in {column}, from {threshold} on with noise",
            nested=lambda parameters: parameters.get("show") == "prefixes",
        ),
        change_proof="users-and-domains 5.2",
    ),
)
