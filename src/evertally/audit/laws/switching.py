"""The exact audit of sparseGumb: when it switches on two neighbouring streams, and the noise of what it counts.

Given what was named and counted, the ticks of the switches have a probability that is a product over sparse vectors,

    sum over z of f(z) * product over ticks of P(no question exceeds its level + z), or of the opposite at a switch,

as in `audit.partition`. The *level* of a question is the largest draw that does not switch. It is looked for by running
the engine with planted draws, so what the program does is seen, and only the laws of draws are taken for granted. That
levels move along with the threshold noise is tried. streaming-selection 1.4, 6.1 and 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.audit.exact import _extent
from evertally.audit.game import FloatArray, IntArray
from evertally.audit.label_noise import PlantedVariates
from evertally.audit.laws.enumerated import FAR, Place
from evertally.audit.partition import _first_true, _log_at_most, _log_minimum
from evertally.audit.scripts import ALWAYS, NEVER
from evertally.errors import ConfigurationError
from evertally.noise import Law, Variates
from evertally.noise.source import ZeroSource
from evertally.noise.variates import VariateKind

Engine = Callable[[Any], Any]  # makes sparseGumb, naming one column, from a source


@dataclass(frozen=True)
class _Asked:
    """One request for draws of a lane."""

    law: Law
    nodes: tuple[int, ...]


class _Switching(ZeroSource):
    """Names columns in a given order; says no to every question and adds no noise, but where a draw was planted."""

    def __init__(self, named: Sequence[int], planted: Mapping[Place, int]) -> None:
        self._named, self._planted = named, planted
        self.selections = 0
        self.asked: dict[str, list[_Asked]] = {"question": [], "threshold": []}
        self.counted: dict[Place, Law] = {}

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = [int(node) for node in nodes]
        if lane in self.asked:
            self.asked[lane].append(_Asked(law, tuple(index)))
        else:
            self.counted |= {(lane, node, j): law for node in index for j in range(coordinates)}
        nothing = NEVER if lane == "question" else 0
        values = [self._planted.get((lane, node, j), nothing) for node in index for j in range(coordinates)]
        return np.array(values, dtype=np.int64).reshape(len(index), coordinates)

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        column = self._named[min(self.selections, len(self._named) - 1)]
        self.selections += 1
        return PlantedVariates([FAR if j == column else -FAR - j for j in range(coordinates)])


class _Vector:
    """The sparse vector on one stream, led along a transcript: `named[t]` is the column that is named from tick t on,
    `counted` are draws of the counters. A switch that the program does not make, whatever it is told, is left out."""

    def __init__(
        self, make: Engine, rows: IntArray, named: Mapping[int, int], counted: Mapping[Place, int] | None = None
    ) -> None:
        self._make, self._rows, self._counted = make, rows, dict(counted or {})
        self._named = [named[1]]
        self._forced: dict[Place, int] = {}
        self._known: dict[int, int] = {}  # levels of the last tick, where those of the next are looked for first
        self.switches: list[int] = []
        for tick in sorted(named)[1:]:
            some = (self._named[-1] + 1) % rows.shape[1]
            forced: dict[Place, int] = {**self._forced, ("question", tick, some): ALWAYS}
            if self._selections(forced, tick) > len(self._named):
                self._named.append(named[tick])
                self._forced = forced
                self.switches.append(tick)

    def chance(self, tail: float) -> tuple[float, float]:
        """ln of the probability that the switches are at these ticks, and how much is missing in it, at most."""
        source, ends = self._play(self._forced, len(self._rows)), [*self.switches, len(self._rows)]
        taus = [(node, one.law) for one in source.asked["threshold"] for node in one.nodes]
        laws = {node: one.law for one in source.asked["question"] for node in one.nodes}
        logs: dict[int | None, FloatArray] = {}
        start, missing = 1, 0.0
        for number, end in enumerate(ends):
            # The threshold noise in force is the one that was asked for last: a run may share that of another one.
            node, law = taus[min(number, len(taus) - 1)] if taus else (None, None)
            z, weights = _log_minimum(law, _extent(law, tail), 1) if law else (np.zeros(1, np.int64), np.zeros(1))
            if node not in logs:
                logs[node] = weights
                missing += tail
            for tick in range(start + 1, end + 1):
                levels = self._levels(tick, None if node is None else ("threshold", node, 0))
                if levels:
                    stay = np.zeros(len(z))
                    for level in levels:
                        stay += _log_at_most(laws[tick], (level + z).astype(np.float64))
                    logs[node] = logs[node] + (np.log(-np.expm1(stay)) if tick in self.switches else stay)
            start = end
        return math.fsum(float(np.logaddexp.reduce(one)) for one in logs.values()), missing

    def _levels(self, tick: int, threshold: Place | None) -> list[int]:
        """For every column that is asked about: the largest draw that does not switch, at a threshold noise of 0. That
        it moves along with the threshold noise is tried."""
        before = {place: value for place, value in self._forced.items() if place[1] < tick}
        named = 1 + sum(switch < tick for switch in self.switches)

        def switches(draws: Mapping[int, int], z: int = 0) -> bool:
            planted = before | {("question", tick, column): draw for column, draw in draws.items()}
            if threshold is not None:
                planted[threshold] = z
            return self._selections(planted, tick) > named

        def right(levels: Mapping[int, int], z: int, columns: Iterable[int]) -> bool:
            at = {column: level + z for column, level in levels.items()}
            return not switches(at, z) and all(switches({column: at[column] + 1}, z) for column in columns)

        if not self._known or not right(self._known, 0, self._known):
            self._known = {}
            for column in range(self._rows.shape[1]):
                if switches({column: ALWAYS}):
                    guess = next(reversed(self._known.values()), 0)
                    if switches({column: guess}) or not switches({column: guess + 1}):
                        guess = _first_true(lambda draw, column=column: switches({column: draw})) - 1  # type: ignore[misc]
                    self._known[column] = guess
        z = 0 if threshold is None else (-1) ** tick * (4 + tick % 3)
        if not right(self._known, z, list(self._known)[:1]):
            raise ConfigurationError("a question that does not move along with the threshold noise")
        return list(self._known.values())

    def counts(self, planted: Mapping[Place, int]) -> tuple[_Switching, IntArray]:
        """The released counts of the transcript, with further draws planted."""
        source = _Switching(self._named, {**self._counted, **self._forced, **planted})
        counts: IntArray = self._make(source).advance(self._rows)[1][:, 0]
        return source, counts

    def _selections(self, planted: Mapping[Place, int], tick: int) -> int:
        return self._play(planted, tick).selections

    def _play(self, planted: Mapping[Place, int], tick: int) -> _Switching:
        source = _Switching(self._named, {**self._counted, **planted})
        self._make(source).advance(self._rows[:tick])
        return source


def sparse_vector_loss(
    make: Engine,
    left: Any,
    right: Any,
    named: Mapping[int, int],
    *,
    tail: float = 1e-30,
    counted: tuple[Mapping[Place, int], Mapping[Place, int]] = ({}, {}),
) -> float:
    """ln P_left/P_right of the ticks at which sparseGumb switches, given what it names and counts; never more than it
    is. `named` says which column is named, from tick 1 and from each switch on. Its noisy count, while it is named and
    when it is left, is the same on both streams: this is the loss of the sparse vector alone. Where the exact count is
    not, `counted` are draws of the counters on either stream that make up for it.
    """
    streams = [np.asarray(rows, dtype=np.int64) for rows in (left, right)]
    vectors = [_Vector(make, rows, named, draws) for rows, draws in zip(streams, counted, strict=True)]
    before = min([*vectors[0].switches, *vectors[1].switches, len(streams[0]) + 1]) - 1
    first, second = (vector.counts({})[1][:before] for vector in vectors)
    if not np.array_equal(first, second):
        raise ConfigurationError("the named column is counted differently on the two streams: plant draws that differ")
    (p, _), (q, missing) = (vector.chance(tail) for vector in vectors)
    return p - float(np.logaddexp(q, math.log(missing) if missing else -math.inf))


def counter_table(make: Engine, rows: Any, named: Mapping[int, int]) -> tuple[FloatArray, list[Law]]:
    """(ticks, draws): what each draw adds to the count of the named column; and the laws."""
    vector = _Vector(make, np.asarray(rows, dtype=np.int64), named)
    source, exact = vector.counts({})
    responses = [vector.counts({place: 1})[1] - exact for place in source.counted]
    return np.array(responses, dtype=np.float64).T, list(source.counted.values())
