"""Families of linear queries: what may be asked about the items that are present.

`read_family` reads what `written()` wrote, and the same table in a stream spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evertally.dynamic.families.boxes import Boxes, Ranges
from evertally.dynamic.families.counts import Count, Points
from evertally.dynamic.families.declared import HalfSpaces, Queries
from evertally.dynamic.families.family import LARGEST_UNIVERSE, Family
from evertally.dynamic.families.marginals import Marginals
from evertally.errors import ConfigurationError

FAMILIES: dict[str, Any] = {kind.kind: kind for kind in (Count, Points, Ranges, Boxes, Marginals, Queries, HalfSpaces)}

__all__ = [
    "FAMILIES",
    "LARGEST_UNIVERSE",
    "Boxes",
    "Count",
    "Family",
    "HalfSpaces",
    "Marginals",
    "Points",
    "Queries",
    "Ranges",
    "read_family",
]


def read_family(written: Mapping[str, Any]) -> Family:
    """The family that a table describes.

    >>> read_family({"kind": "ranges", "size": 10}) == Ranges(size=10)
    True
    >>> read_family(Boxes([3, [0.0, 0.5, float("inf")]]).written()).cells
    6
    """
    if not isinstance(written, Mapping) or written.get("kind") not in FAMILIES:
        raise ConfigurationError(f"a family is a table with a kind: {', '.join(FAMILIES)}")
    options = {key: value for key, value in written.items() if key != "kind"}
    make = FAMILIES[written["kind"]]
    try:
        family: Family = make(**options)
    except TypeError:
        raise ConfigurationError(
            f"a family of kind {written['kind']!r} has other options than {', '.join(sorted(map(str, options)))}"
        ) from None
    return family
