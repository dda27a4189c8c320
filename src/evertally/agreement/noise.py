"""How the noise of all numbers hangs together: by time within a label of a mechanism, and not at all otherwise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from evertally.agreement.numbers import FloatArray, Series
from evertally.agreement.sums import Places, Row
from evertally.errors import ConfigurationError

Key = tuple[Hashable, Hashable]
LARGEST = 2048  # numbers that depend on each other over time; a system of so many takes seconds


def too_many(numbers: int) -> ConfigurationError:
    return ConfigurationError(
        f"{numbers} numbers depend on each other, and {LARGEST} can be fitted together; "
        "take fewer ticks or labels at a time"
    )


class Noise:
    """Covariances of the numbers of several names."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.keys: list[Key] = []  # of each number: what it shares its noise by
        # Of each number: which release it is, and which one is taken from it (the last one, which has no noise: none).
        self._sides: list[tuple[int, int]] = []
        self._known: dict[Hashable, FloatArray] = {}
        ticks: dict[Hashable, list[int]] = {}
        for one in places.series.values():
            ticks[_maker(one)] = sorted({*ticks.get(_maker(one), []), *(t for place in one.places for t in place if t)})
        for one in places.series.values():
            maker, its = _maker(one), ticks[_maker(one)]
            if len(its) > LARGEST:
                raise too_many(len(its))
            if maker not in self._known:
                self._known[maker] = np.pad(_covariance(one, its), (0, 1))
            at = {0: -1} | {tick: i for i, tick in enumerate(its)}
            # A window is the later release minus the earlier one.
            sides = [(0, -1)] if one.law is None else [(at[tick], at[since]) for since, tick in one.places]
            for label in one.labels:
                self.keys += [(maker, label)] * len(sides)
                self._sides += sides

    def apart(self, numbers: Sequence[int]) -> bool:
        """Whether no two of these numbers share any noise."""
        return len({self.keys[number] for number in numbers}) == len(numbers)

    def variances(self, numbers: Sequence[int]) -> FloatArray:
        """Of these numbers."""
        found = np.empty(len(numbers))
        for i, number in enumerate(numbers):
            (tick, since), known = self._sides[number], self._known[self.keys[number][0]]
            found[i] = known[tick, tick] - 2 * known[tick, since] + known[since, since]
        return found

    def covariance(self, numbers: Sequence[int]) -> FloatArray:
        """Of these numbers."""
        found = np.zeros((len(numbers), len(numbers)))
        together: dict[Key, list[int]] = {}
        for i, number in enumerate(numbers):
            together.setdefault(self.keys[number], []).append(i)
        for (maker, _), where in together.items():
            ticks, since = np.array([self._sides[numbers[i]] for i in where]).T
            known = self._known[maker]
            # Of differences by rows first, then by columns.
            rows = known[ticks] - known[since]
            found[np.ix_(where, where)] = rows[:, ticks] - rows[:, since]
        return found


def _maker(one: Series) -> Hashable:
    return one.name if one.law is None else id(one.law)


def _covariance(one: Series, ticks: Sequence[int]) -> FloatArray:
    if one.law is not None:
        return one.law.covariance(ticks)
    assert one.releases is not None
    deviation = one.releases[0].stddev
    if deviation is None:
        raise ConfigurationError(f"{one.name!r} has no standard deviation, so nobody can say how much it weighs")
    return np.array([[deviation**2]])


def groups(
    noise: Noise, equal: Sequence[Row], above: Sequence[Row]
) -> Iterator[tuple[list[int], list[Row], list[Row]]]:
    """Numbers that depend on each other, by noise or by a sum, with the rows that are about them."""
    root = list(range(len(noise.keys)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = i = root[root[i]]
        return i

    first: dict[Key, int] = {}
    for number, key in enumerate(noise.keys):
        root[number] = first.setdefault(key, number)
    for row in equal:
        head, *others = row
        for other in others:
            root[find(other)] = find(head)
    members: dict[int, list[int]] = {}
    for number in range(len(root)):
        members.setdefault(find(number), []).append(number)
    its: list[dict[int, list[Row]]] = [{}, {}]
    for found, rows in zip(its, (equal, above), strict=True):
        for row in rows:
            found.setdefault(find(next(iter(row))), []).append(row)
    for head, numbers in members.items():
        yield numbers, its[0].get(head, []), its[1].get(head, [])
