"""Releases as numbers with places in time, and which of them belong together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.contract import Release
from evertally.contract.labelled import time_column
from evertally.contract.origin import origin
from evertally.contract.windows import Windowed
from evertally.encode.frames import Table, column, loaded, table
from evertally.encode.labels import canonical
from evertally.encode.places import check_place
from evertally.errors import ConfigurationError

FloatArray = NDArray[np.float64]
Label = Hashable
Place = tuple[int, int]  # since, tick


@dataclass(frozen=True)
class Series:
    """What was released under one name: for each label (None where there are none) a number at each place."""

    name: str
    labels: list[Label]
    places: list[Place]
    values: FloatArray  # (labels, places)
    alone: bool  # one release, not a list of them
    releases: list[Release] | None = field(default=None, repr=False)
    law: Windowed | None = field(default=None, repr=False)
    back: Callable[[FloatArray], Any] | None = field(default=None, repr=False)  # into the library of a frame

    def shaped(self, numbers: FloatArray) -> Any:
        """Numbers (labels, places) as what was handed in looked like: of a release or a list of them, an array or a
        frame."""
        if self.releases is None:
            rows = numbers.T if self.labels != [None] else numbers[0]
            return rows if self.back is None else self.back(rows)
        shown = [
            float(column[0]) if self.labels == [None] else dict(zip(self.labels, column.tolist(), strict=True))
            for column in numbers.T
        ]
        return shown[0] if self.alone else shown

    def bounds(self, beta: float) -> tuple[FloatArray, FloatArray]:
        """The intervals of what was released, (labels, places) each."""
        if self.releases is not None:
            both = [release.interval(beta) for release in self.releases]
            lower, upper = (np.array([_numbers(pair[side]) for pair in both], dtype=float).T for side in (0, 1))
            return lower, upper
        assert self.law is not None
        radii = np.empty(len(self.places))
        for j, (_, tick) in enumerate(self.places):
            law, shown = self.law.combined({tick: 1}), self.law.stddev(tick)
            # From units of a row to units of what is shown.
            radii[j] = law.radius(beta) * (shown / law.stddev if shown and law.stddev else 1.0)
        return self.values - radii, self.values + radii

    def released(self) -> Any:
        """What was handed in, as it was."""
        if self.releases is None:
            return self.shaped(self.values)
        values = [release.value for release in self.releases]
        return values[0] if self.alone else values


def series_of(name: str, given: Any, law: Any) -> Series:
    """One release, a list of them, or what `run` gave, from its first tick on."""
    if law is not None and not isinstance(law, Windowed):
        raise ConfigurationError(f"of={{{name!r}: ...}} is the mechanism that made the releases, one with windows")
    alone = isinstance(given, Release)
    if alone or (isinstance(given, Sequence) and given and all(isinstance(one, Release) for one in given)):
        return _of_releases(name, [given] if alone else list(given), alone, law)
    return _of_run(name, given, law)


def _of_run(name: str, given: Any, law: Windowed | None) -> Series:
    """What `run` gave: an array, its columns those of the mechanism; or a frame, whose columns say what they are."""
    declared: list[Label] = list(getattr(getattr(law, "_form", None), "labels", None) or [])
    try:
        given = loaded(given)
        found, came_from = table(given), origin(given, None)
        if found is None:
            check_place(values := column(given))
            values = np.asarray(values)
        else:
            values = _by_name(name, found, declared)
    except TypeError as error:
        raise ConfigurationError(f"{name!r}: {error}") from None
    if values.ndim not in (1, 2) or not values.size or values.dtype.kind not in "iuf":
        raise ConfigurationError(f"{name!r} is neither a release, nor a list of releases, nor what run gave")
    places = [(0, tick) for tick in range(1, len(values) + 1)]
    labels: list[Label] = [None]
    if values.ndim == 2:
        labels = declared if len(declared) == values.shape[1] else list(range(values.shape[1]))
    made = None if came_from is None else came_from.back
    back = None if made is None else lambda rows: made(rows, None, list(map(str, labels)))
    return _known(Series(name, labels, places, np.atleast_2d(values.T).astype(np.float64), False, None, law, back))


def _by_name(name: str, found: Table, declared: list[Label]) -> Any:
    """The columns of a frame in the order of the mechanism's labels; the only one, where there are none."""
    time = time_column(found, None)
    given = {canonical(found.names[i]): i for i in range(len(found.names)) if i != time}
    if not declared and len(given) == 1:
        return np.asarray(found.read(*given.values()))
    wanted = [canonical(label) for label in declared] if declared else [str(i) for i in range(len(given))]
    if set(given) != set(wanted) or len(found.names) - (time is not None) != len(wanted):
        raise ConfigurationError(f"the columns of {name!r} are those that run gave: the labels of its mechanism")
    return np.stack([np.asarray(found.read(given[label])) for label in wanted], axis=1)


def _of_releases(name: str, releases: list[Release], alone: bool, law: Windowed | None) -> Series:
    places = [(release.since, release.tick) for release in releases]
    if any(later <= earlier for earlier, later in pairwise(places)):
        raise ConfigurationError(f"the releases of {name!r} are not in the order of time, each of them once")
    if releases[0].stddev is None:
        raise ConfigurationError(f"{name!r} has no standard deviation, so nobody can say how much it weighs")
    makers = {release.maker for release in releases}
    if len(makers) > 1 or (law is not None and makers != {law._maker}):
        raise ConfigurationError(f"the releases of {name!r} are not all of one mechanism, or not of the one in of=")
    several = isinstance(releases[0].value, Mapping) and len(releases[0].value) > 1
    maker = releases[0].maker
    if several and (maker is None or not maker.apart):
        raise ConfigurationError(f"the numbers of a release of {name!r} share noise, and nobody can say how much")
    labels = list(releases[0].value) if isinstance(releases[0].value, Mapping) else [None]
    values = np.array([_numbers(release.value) for release in releases], dtype=float).T
    return _known(Series(name, labels, places, values, alone, releases, law))


def _known(series: Series) -> Series:
    if series.law is None and (len(series.places) > 1 or series.releases is None):
        name = series.name
        raise ConfigurationError(
            f"releases of several ticks depend on each other; say which mechanism {name!r} is of: of={{{name!r}: ...}}"
        )
    return series


def _numbers(value: Any) -> list[float]:
    numbers = list(value.values()) if isinstance(value, Mapping) else [value]
    if not all(isinstance(number, int | float | np.number) for number in numbers):
        raise ConfigurationError("only numbers can be made consistent: counts, sums, histograms")
    return numbers
