"""Items with their counts: the leaders of a long list, and what nobody listed."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

from evertally import StreamingTopK, UnknownHistogram, UnknownTopK
from evertally.kinds.column_sums import columns_named
from evertally.kinds.fields import Flag, Natural, Text, Whole
from evertally.kinds.kind import Card, Discovery, Kind, Result, Undivided
from evertally.kinds.proofs import CHANGE_OF_ITEMS, Proof
from evertally.kinds.query_table import GoesWith, Labelled, Query
from evertally.kinds.reads import ITEMS, LABELS

_NOT_META = GoesWith("meta", itself=False)


class StreamingTopQuery(Labelled):
    goes_with = dict.fromkeys(("switches", "eta", "accounting", "reuse"), _NOT_META)

    k: Whole
    switches: Natural | None = None
    eta: Natural | None = None
    accounting: Literal["adaptive", "paper", "standard", "monotone"] | None = None
    reuse: Flag | None = None


class UnknownHistogramQuery(Query):
    goes_with = dict.fromkeys(("threshold", "sticky", "max_labels"), _NOT_META) | {"kbar": GoesWith("meta")}

    column: Text
    max_per_event: Whole | None = None
    max_weight: Whole | None = None
    threshold: Literal["sum", "per_tick", "paper"] | None = None
    sticky: Flag | None = None
    max_labels: Whole | None = None
    kbar: Whole | None = None


class UnknownTopQuery(UnknownHistogramQuery):
    k: Whole


def discovery(mechanism: Any, beta: float, tick: int) -> Discovery | None:
    """None for blocks: there the threshold depends on the other items."""
    if mechanism.mechanism == "meta":
        return None
    threshold = mechanism.threshold_at(tick)
    return Discovery(threshold, threshold + math.floor(mechanism.error_bound(beta, tick=tick)) + 1)


def limited(mechanism: Any) -> str:
    """What is proved beside the counts where labels are limited."""
    if mechanism.max_labels is None:
        return ""
    return "streaming-selection 7.5 (max_labels: looks at the noisy number of labels, a sixteenth of rho)"


_unknown = partial(
    Kind,
    reads=ITEMS,
    built_on=limited,
    change_proof=CHANGE_OF_ITEMS,
    user_proof="additions 4 and 5",
    rate_with=("meta",),
    needs_delta=True,
    only_above=("meta",),
    discovery=discovery,
    no_discovery="items are looked for in every block of ticks on its own, above a threshold that depends on the other "
    "items there; counts of blocks that did not show an item are lost.",
)

_BY_TREE = "streaming-selection 7.2"
_FOUND = "Each {noun} counts for its {column}. A name is published once its count, with noise in it, is high enough."
_BY_LOT = (
    " At most about {max_labels} names are followed: when there are more, lots decide which of those that are not "
    "shown at that moment are left out, and these are never shown."
)

KINDS = (
    Kind(
        statistic=StreamingTopK,
        also=("streaming-top",),
        options=StreamingTopQuery,
        reads=LABELS,
        result=Result(labels="chosen", most="k", running=True),
        card=Card("ranking", "The {k} most frequent, by {column}"),
        proofs={
            "tree": Proof("streaming-selection 3.1 and 3.4"),
            "bank": Proof("optimal-counting 2.2 and 2.4, samplers 8"),
            "pure-blocks": Proof("optimal-counting 6, samplers 8"),
            "meta": Proof("streaming-selection 5.1 and 4.2"),
            "meta-gauss": Proof("streaming-selection 5.1 and 4.1"),
            "sparse-gumbel": Proof("streaming-selection 6.2 and 1.4, additions 3"),
        },
        change_proof=CHANGE_OF_ITEMS,
        user_proof="additions 4",
        arguments=columns_named,
        rate_with=("meta",),
        undivided=Undivided("sparse-gumbel", instead="meta", default=True),
    ),
    _unknown(
        statistic=UnknownHistogram,
        also=("unknown-histogram",),
        options=UnknownHistogramQuery,
        result=Result(labels="found", running=True),
        card=Card("ranking", "All that was found in {column} often enough to be shown", made=_FOUND, limited=_BY_LOT),
        proofs={"tree": Proof(_BY_TREE), "meta": Proof("streaming-selection 5.1 and 4.3")},
    ),
    _unknown(
        statistic=UnknownTopK,
        also=("unknown-top",),
        options=UnknownTopQuery,
        result=Result(labels="found", most="k", running=True),
        card=Card("ranking", "The {k} most frequent that were found in {column}", made=_FOUND, limited=_BY_LOT),
        proofs={"tree": Proof(_BY_TREE), "meta": Proof("streaming-selection 5.1 and 4.5")},
    ),
)
