"""Strings: a column of letters, in one sequence or one for each user."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import Any

from evertally.applications.strings import EpisodeCounts, FrequentSubstrings, SubstringCounts
from evertally.kinds.kind import Card, Kind, Owner, Result
from evertally.kinds.proofs import NOISE_PROCESSES
from evertally.kinds.reads import NAMES, Cells, Parameters, Records
from evertally.kinds.string_tables import (
    EpisodeCountsQuery,
    FrequentSubstringsQuery,
    SubstringCountsQuery,
    with_stream,
)
from evertally.noise import simulation
from evertally.privacy import ZCDP


def records(count: int, cells: Cells, parameters: Parameters) -> list[Any]:
    """Letters, or (user, letter) where a column says whose they are.

    >>> records(2, {"column": ["a", "b"], "by": ["ann", "bob"]}, {})
    [('ann', 'a'), ('bob', 'b')]
    """
    letters = list(cells["column"])
    return list(zip(cells["by"], letters, strict=True)) if "by" in cells else letters


@lru_cache(maxsize=256)
def _names(written: str) -> tuple[str, ...]:
    options = json.loads(written)
    statistic = {one.__name__: one for one in (SubstringCounts, EpisodeCounts)}[options.pop("statistic")]
    model = statistic(**options, sequence="stream", guarantee=ZCDP(1), horizon=1, key=simulation(0))
    return tuple(model.step([]).value)


def _shown(statistic: type[Any], parameters: Parameters) -> list[str]:
    """The words that every release shows. Asked for at every release, so remembered."""
    decide = ("alphabet", "other", "longest", "words", "show", "only_longest")
    kept = {name: parameters[name] for name in decide if name in parameters}
    return list(_names(json.dumps(kept | {"statistic": statistic.__name__})))


_string = partial(
    Kind,
    reads=NAMES,
    records=Records({"by": NAMES}, records),
    ordered=lambda parameters: True,
    owner=Owner("by", lambda parameters: parameters["sequence"] == "user"),
    proofs=NOISE_PROCESSES,
    arguments=with_stream,
)

KINDS = (
    _string(
        statistic=SubstringCounts,
        options=SubstringCountsQuery,
        result=Result(categories=partial(_shown, SubstringCounts)),
        card=Card("bars", "Words of {column}, by how often they occurred"),
        change_proof="factorization-counting 6.0 and 6.6",
    ),
    _string(
        statistic=FrequentSubstrings,
        options=FrequentSubstringsQuery,
        result=Result(labels="found"),
        card=Card("ranking", "Words of {column} that occurred often, above {above} with noise"),
        change_proof="factorization-counting 6.0 and 6.6",
    ),
    _string(
        statistic=EpisodeCounts,
        options=EpisodeCountsQuery,
        result=Result(categories=partial(_shown, EpisodeCounts)),
        card=Card("bars", "Episodes of {column}, by how often they occurred"),
        change_proof="factorization-counting 6.0 and 6.7",
    ),
)
