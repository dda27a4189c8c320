"""`et.consistent`: released numbers moved to the nearest ones that keep what is known of the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from evertally.agreement.apart import project_apart
from evertally.agreement.noise import LARGEST, Noise, groups, too_many
from evertally.agreement.numbers import FloatArray, Series, series_of
from evertally.agreement.projection import project
from evertally.agreement.sums import Places, Row, rows_of
from evertally.contract.parts import check_beta
from evertally.errors import ConfigurationError

_CELLS = 2**26  # sums times numbers


@dataclass(frozen=True)
class Consistent:
    """Numbers that agree with each other, beside those that were released: post-processing, which costs no privacy.

    `value` and `raw` are what was handed in, adjusted and as it was, by name and in the same shape. `stddev` is that of
    the part that keeps the sums, exactly, and no larger than before; what else was asked for (nothing below 0, totals
    that never fall) brings numbers nearer to the truth still, but by how much depends on the truth.
    """

    value: dict[str, Any]
    raw: dict[str, Any]
    stddev: dict[str, Any]
    nonnegative: bool
    _series: Mapping[str, Series] = field(repr=False)

    def interval(self, name: str, beta: float = 0.05) -> tuple[Any, Any]:
        """(lower, upper) of what was released, cut off at 0 where nothing is below: each number's truth lies inside
        with probability at least 1 - beta, as before. Adjusted numbers have no narrower one, and may lie outside."""
        check_beta(beta)
        series = self._series[name]
        lower, upper = series.bounds(beta)
        if self.nonnegative:
            lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        return series.shaped(lower), series.shaped(upper)


def consistent(
    releases: Mapping[str, Any],
    *,
    of: Any = None,
    sums: Mapping[Any, Any] | None = None,
    nonnegative: bool = False,
    monotone: bool = False,
) -> Consistent:
    """Moves released numbers to the nearest ones that keep what is known of the truth. Never done by default.

    `releases`: by name a release, a list of releases of one mechanism, or what its `run` gave from the first tick on.
    `of`: the mechanism (by name, if there are several), needed where a name has several ticks.
    `sums`: which numbers are sums of which, e.g. `{"all": "airport"}` (of all its labels), `{("region", "NY"):
    [("airport", "JFK"), ("airport", "LGA")]}`; of lists tick by tick, and `{"week": "days"}` of one release and windows
    that make it up. They must be true of the data: each event in exactly one category, under the same caps.
    `nonnegative`: no number is below 0; `monotone`: totals never fall.

    The fit is next to what was released in the norm of the inverse covariance of the noise, over ticks too: generalised
    least squares. In this norm it is never farther from the truth than what was released (projection.py).
    Names of one mechanism depend on each other as its releases do, if `of` says so; others are independent. Time: cubic
    in the numbers that depend on each other over time, of which there may be 2,048; linear in those of one tick.

    >>> import evertally as et
    >>> promise = {"guarantee": et.ZCDP(0.1), "horizon": 30}
    >>> every = et.Counter(**promise, key=et.simulation(1)).step(90)
    >>> by_label = et.Histogram(categories=["a", "b", "c"], **promise, key=et.simulation(2)).step([60, 30, 0])
    >>> fit = et.consistent({"all": every, "label": by_label}, sums={"all": "label"}, nonnegative=True)
    >>> round(fit.value["all"], 6) == round(sum(fit.value["label"].values()), 6), fit.raw["all"] == every.value
    (True, True)
    >>> fit.stddev["all"] < every.stddev
    True
    """
    if not isinstance(releases, Mapping) or not releases:
        raise ConfigurationError('consistent takes releases by name, such as {"all": release}')
    laws = of if isinstance(of, Mapping) else dict.fromkeys(releases, of)
    places = Places({name: series_of(name, given, laws.get(name)) for name, given in releases.items()})
    series = places.series
    if monotone or nonnegative:
        _check_signs(series, monotone)
    equal = rows_of(places, sums or {})
    above = [row for name in series for row in _bounds(places, name, nonnegative, monotone)]
    values, variances = _fitted(places, equal, above)
    _cut_roundings(places, values, nonnegative, monotone)

    def shaped(numbers: FloatArray) -> dict[str, Any]:
        ends = {name: first + series[name].values.size for name, first in places.first.items()}
        return {
            name: one.shaped(numbers[places.first[name] : ends[name]].reshape(one.values.shape))
            for name, one in series.items()
        }

    return Consistent(
        shaped(values),
        {name: one.released() for name, one in series.items()},
        shaped(np.sqrt(variances)),
        nonnegative,
        series,
    )


def _check_signs(series: Mapping[str, Series], monotone: bool) -> None:
    for name, one in series.items():
        law = one.law
        if getattr(law, "signed", False) or getattr(law, "lower", 0) < 0:
            raise ConfigurationError(f"amounts of {name!r} may be negative, so its totals may fall and be below 0")
        if monotone and any(since for since, _ in one.places):
            raise ConfigurationError(f"{name!r} are sums over windows, which may fall; monotone is for totals")


def _bounds(places: Places, name: str, nonnegative: bool, monotone: bool) -> Iterator[Row]:
    """What is not below 0. Of totals that never fall the first one says so for all."""
    one = places.series[name]
    for label in range(len(one.labels)):
        numbers = [places.of(name, label, j) for j in range(len(one.places))]
        if nonnegative:
            yield from ({number: 1.0} for number in (numbers[:1] if monotone else numbers))
        if monotone:
            yield from ({later: 1.0, earlier: -1.0} for earlier, later in pairwise(numbers))


def _fitted(places: Places, equal: Sequence[Row], above: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    values, variances = np.empty(places.size), np.empty(places.size)
    noise = Noise(places)
    raw = np.concatenate([one.values.ravel() for one in places.series.values()])
    for members, its_equal, its_above in groups(noise, equal, above):
        if len(members) > LARGEST and (not noise.apart(members) or len(members) * len(its_equal) > _CELLS):
            raise too_many(len(members))
        local = {number: i for i, number in enumerate(members)}
        sums = _matrix(its_equal, local)
        if noise.apart(members):
            bounded = np.zeros(len(members), dtype=bool)
            bounded[[local[number] for row in its_above for number in row]] = True
            fit = project_apart(raw[members], noise.variances(members), sums, bounded)
        else:
            fit = project(raw[members], noise.covariance(members), sums, _matrix(its_above, local))
        values[members], variances[members] = fit
    return values, variances


def _cut_roundings(places: Places, values: FloatArray, nonnegative: bool, monotone: bool) -> None:
    """What was asked for holds of the numbers as they are, in place: solving leaves -1e-14 where 0 is meant."""
    for name, one in places.series.items():
        its = values[places.first[name] :][: one.values.size].reshape(one.values.shape)
        if nonnegative:
            np.maximum(its, 0.0, out=its)
        if monotone:
            np.maximum.accumulate(its, axis=1, out=its)


def _matrix(rows: Sequence[Row], local: Mapping[int, int]) -> FloatArray:
    made = np.zeros((len(rows), len(local)))
    for i, row in enumerate(rows):
        for number, weight in row.items():
            made[i, local[number]] = weight
    return made
