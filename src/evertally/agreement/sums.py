"""Sums that must agree, written as rows: a row is {place of a number: weight}, and its weighted sum is 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from evertally.agreement.numbers import Series
from evertally.errors import ConfigurationError

Row = dict[int, float]


class Places:
    """Where the numbers of all names stand in one long vector."""

    def __init__(self, series: Mapping[str, Series]) -> None:
        self.series, self.size = series, 0
        self.first: dict[str, int] = {}
        for name, one in series.items():
            self.first[name] = self.size
            self.size += one.values.size

    def of(self, name: str, label: int, place: int) -> int:
        return self.first[name] + label * len(self.series[name].places) + place


def rows_of(places: Places, sums: Mapping[Any, Any]) -> list[Row]:
    """Every declared sum, at every tick and for every label that it is about."""
    rows = []
    for parent, children in sums.items():
        whole, parts = _named(places, parent), [_named(places, child) for child in _listed(children)]
        if not parts:
            raise ConfigurationError(f"the sum {parent!r} has no parts")
        rows += _equations(places, parent, whole, parts)
    return rows


def _listed(children: Any) -> list[Any]:
    # A pair of a name and a label is one part, as is a name.
    return [children] if isinstance(children, str | tuple) else list(children)


def _named(places: Places, reference: Any) -> tuple[Series, list[int]]:
    """A name, or (name, label): which series, and which of its labels."""
    name, *label = reference if isinstance(reference, tuple) else (reference,)
    if name not in places.series:
        raise ConfigurationError(f"sums speak of {name!r}, which is not among the releases; give it by that name")
    one = places.series[name]
    if not label:
        return one, list(range(len(one.labels)))
    if len(label) != 1 or label[0] not in one.labels:
        raise ConfigurationError(f"{name!r} has no label {label[0]!r}; a part is a name or (name, label)")
    return one, [one.labels.index(label[0])]


def _equations(
    places: Places, parent: Any, whole: tuple[Series, list[int]], parts: Sequence[tuple[Series, list[int]]]
) -> list[Row]:
    one, labels = whole
    rows = []
    for position, place in enumerate(one.places):
        within = [(part, _positions(part, one, position, place), chosen) for part, chosen in parts]
        if len(labels) == 1:
            rows.append(_row(places, one, labels[0], position, within))
            continue
        # A sum of tables, label by label.
        if any([part.labels[i] for i in chosen] != one.labels for part, _, chosen in within):
            raise ConfigurationError(
                f"{parent!r} has labels, and its parts do not have the same ones: say for each label which parts it has"
            )
        rows += [_row(places, one, i, position, [(part, at, [i]) for part, at, _ in within]) for i in labels]
    return rows


def _row(
    places: Places, one: Series, label: int, position: int, within: Sequence[tuple[Series, list[int], list[int]]]
) -> Row:
    row: Row = {places.of(one.name, label, position): 1.0}
    for part, positions, chosen in within:
        for i in chosen:
            for j in positions:
                where = places.of(part.name, i, j)
                if where in row:
                    raise ConfigurationError(f"a number of {part.name!r} is twice in one sum")
                row[where] = -1.0
    return row


def _positions(part: Series, one: Series, position: int, place: tuple[int, int]) -> list[int]:
    """Which numbers of a part belong to one of the whole: those of the same ticks, or windows that make it up."""
    if part.places == one.places:
        return [position]
    inside = [j for j, (since, tick) in enumerate(part.places) if place[0] <= since and tick <= place[1]]
    ends = [place[0], *(part.places[j][1] for j in inside)]
    if (
        ends[-1] == place[1]
        and all(part.places[j][0] == end for j, end in zip(inside, ends[:-1], strict=True))
        and all(later > earlier for earlier, later in pairwise(ends))
    ):
        return inside
    raise ConfigurationError(
        f"the ticks of {part.name!r} are not those of {one.name!r}, nor do its windows make up ({place[0]}, {place[1]}]"
    )
