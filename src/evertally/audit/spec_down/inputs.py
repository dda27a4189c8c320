"""What neighbours move in the exact input of an engine, where releases are not exact numbers plus noise.

* Releases of a histogram, once each (one-shot looks of blocks, static mechanisms of constructions): everything that a
  pair of streams hands them, with the noise that is there, and what their theorems charge for that change. Given as
  rho, or epsilon, of the whole life of the stream, and held against the share in the spec.
* Any other engine: the totals that reach it, against the change that its noise is made for, and against what relation
  and caps of the spec allow by the arithmetic below. Whether the noise is made for that change, others ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np

from evertally.audit.dynamic_inputs import FixedKey, one_round
from evertally.audit.spec_down.neighbours import Pair
from evertally.audit.spec_down.playing import Way, played
from evertally.audit.spec_down.search import Search
from evertally.audit.watching import watched
from evertally.dynamic.node import SizeRelease
from evertally.selection import histograms

_LOOKS = (
    histograms.KnownGauss,
    histograms.KnownGumbel,
    histograms.UnknownGauss,
    histograms.UnknownGumbel,
    histograms.FixedThresholdGauss,
    histograms.LimitedDomainLaplace,
)
Histogram = Mapping[Any, int]
Handed = dict[Any, tuple[Any, Histogram]]  # by place: who released it, of what


class NothingSeen(Exception):
    """Nothing that an engine was given can be compared; the text says why."""


class ReleaseSearch(Search):
    """Pairs by what one-shot releases of their histograms cost together."""

    def handed(self, stream: Any, way: Way) -> Handed:
        """Everything that was released of a stream, by its place."""
        found: Handed = {}
        static = getattr(getattr(self.small.made, "_taken", None), "static", None)
        with ExitStack() as stack:
            stack.enter_context(one_round())
            for look in _LOOKS:
                stack.enter_context(
                    watched(look, "release", lambda one, items, source, node: _look(found, one, items, node))
                )
            if static is not None:
                for kind in (type(static), SizeRelease):
                    stack.enter_context(
                        watched(kind, "fit", lambda one, data, budget, place, *_: _fit(found, data, budget, place))
                    )
            played(self.small, self.ticks_of(stream), FixedKey(), way)
        return found

    def spent(self, pair: Pair, way: Way) -> tuple[float, float]:
        """Epsilon of pure releases and rho of others."""
        left, right = (self.handed(stream, way) for stream in self.sides(pair))
        if not left and not right:
            raise NothingSeen("it asks no one-shot mechanism for anything")
        epsilon = rho = 0.0
        for place in {**left, **right}:
            (one, a), (_, b) = left.get(place, (right.get(place, (None, {}))[0], {})), right.get(place, (None, {}))
            cost = _cost(one, [a.get(label, 0) - b.get(label, 0) for label in {**a, **b}])
            epsilon, rho = epsilon + cost[0], rho + cost[1]
        return epsilon, rho

    def lost(self, pair: Pair, way: Way) -> float:
        epsilon, rho = self.spent(pair, way)
        return rho + epsilon**2 / 2 if rho else math.copysign(epsilon**2 / 2, 1)


def _look(found: Handed, one: Any, items: Any, node: int) -> None:
    found["look", node] = one, dict(zip(items.labels, items.counts.tolist(), strict=True))


def _fit(found: Handed, data: Any, budget: Any, place: Any) -> None:
    found[place.lane, place.node] = budget, dict(enumerate(np.asarray(data).ravel().tolist()))


def _cost(one: Any, moved: list[int]) -> tuple[float, float]:
    """(epsilon, rho) of a release whose input moves so, by the noise that it has.

    Gaussian noise: the squared norm over twice the variance. The best k by Gumbel noise of scale b: each choice is of
    bounded range R/b, R what counts may drift apart, so that it is R^2/(8 b^2)-zCDP; and k counts with fresh noise.
    """
    if not any(moved):
        return 0.0, 0.0
    largest, squared = max(map(abs, moved)), sum(x * x for x in moved)
    if hasattr(one, "exact_epsilon") or hasattr(one, "exact_rho"):  # the budget of a static mechanism, for one item
        distance = sum(map(abs, moved))
        if hasattr(one, "exact_epsilon"):
            return float(one.exact_epsilon) * distance, 0.0
        return 0.0, float(one.exact_rho) * distance**2
    if hasattr(one, "k"):
        drift = max(0, *moved) - min(0, *moved)
        rho = Fraction(one.k * drift**2) / (8 * one.scale**2)
        if one.count_variance is not None:
            rho += Fraction(one.k * largest**2) / (2 * one.count_variance)
        return 0.0, float(rho)
    if hasattr(one, "variance"):
        return 0.0, float(Fraction(squared) / (2 * one.variance))
    return float(sum(map(abs, moved)) / one.scale), 0.0


class ChangeSearch(Search):
    """Pairs by how far they move the totals that an engine gets, in the norm of a number: 1, 2 or infinity."""

    norm: float = 1

    def totals(self, stream: Any, way: Way) -> list[dict[Any, float]]:
        """What reached the engine, tick by tick."""
        kind, found = type(_innermost(self.small.made._engine)), []

        def note(engine: Any, batch: Any, *_: Any) -> None:
            found.append(_as_numbers(batch))

        with watched(kind, "play", note):
            played(self.small, self.ticks_of(stream), None, way)
        if not found or any(one is None for one in found):
            raise NothingSeen("what reaches its engine are no totals")
        return [one for one in found if one is not None]

    def lost(self, pair: Pair, way: Way) -> float:
        left, right = (self.totals(stream, way) for stream in self.sides(pair))
        # Of a tick that is asked for once more nothing reaches the engine again. What rises and what falls is added up
        # by itself: at different ticks they do not meet, and never add up (factorization-counting 2.4).
        risen: dict[Any, float] = {}
        for a, b in zip(left, right, strict=False):
            for cell in {**a, **b}:
                difference = a.get(cell, 0.0) - b.get(cell, 0.0)
                risen[cell, difference > 0] = risen.get((cell, difference > 0), 0.0) + abs(difference)
        return float(np.linalg.norm(list(risen.values()), self.norm)) if risen else 0.0


def _innermost(engine: Any) -> Any:
    while hasattr(engine, "inner"):
        engine = engine.inner
    return engine


def _as_numbers(batch: Any) -> dict[Any, float] | None:
    """The totals of a tick by cell."""
    if isinstance(batch, np.ndarray) and batch.dtype.kind in "iuf":
        return {i: float(x) for i, x in enumerate(batch.sum(axis=0).ravel() if batch.ndim > 1 else batch) if x}
    if isinstance(batch, Mapping):
        return {key: float(value) for key, value in batch.items()}
    if hasattr(batch, "labels") and hasattr(batch, "counts"):
        return {str(label): float(count) for label, count in zip(batch.labels, batch.counts, strict=True)}
    if isinstance(batch, list | tuple) and len(batch) == 1:
        return _as_numbers(batch[0])
    return None


def allowed(stream: Mapping[str, Any], table: Mapping[str, Any], columns: int) -> dict[float, float] | None:
    """How far relation and caps let a unit move totals: the norms 1, 2 and infinity; None where the words of the spec
    do not say it.

    An event counts in at most b cells with at most w each; of a user m events. Replaced, the old cells go and the new
    ones come: twice as many, where there are so many (factorization-counting 6.3, users-and-domains 1.2).

    >>> allowed({"unit": "user", "max_events_per_user": 3, "neighbours": "replace"}, {"max_per_event": 2}, 9)
    {1: 12.0, 2: 6.0, inf: 3.0}
    """
    unit, relation = stream.get("unit", "event"), stream.get("neighbours", "add_remove")
    if unit == "user-period" or relation == "independent" or (unit == "user" and "max_events_per_user" not in stream):
        return None
    b, w = min(int(table.get("max_per_event", 1)), columns), float(table.get("max_weight", 1))
    m, users = (int(stream["max_events_per_user"]), True) if unit == "user" else (1, False)
    sides = (2 if users or 2 * b <= columns else columns / b) if relation == "replace" else 1
    signs = 2 if table.get("signed") else 1
    return {1: signs * sides * m * b * w, 2: signs * math.sqrt(sides * b) * m * w, math.inf: signs * float(m * w)}
