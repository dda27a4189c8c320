"""Audits of sketches: neighbouring events and users through the real door, rule and table.

On a copy with few buckets labels are found that meet as they must not: in the same buckets with the same signs, with
opposite signs, or nowhere. Events and users are put together from them and played by the mechanism itself without
noise, in one tick and over several with a restart before each; what its tables differ by is held against the noise
matrix that is read off the program. What a sketch is charged for is never asked. users-and-domains 5.1 and 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.application_games import Neighbours, OneOfTwo
from evertally.audit.attacks import Finding
from evertally.audit.dynamic import Losses
from evertally.audit.game import Factory, FloatArray, IntArray
from evertally.audit.gaussian import claim_of, impulse_response
from evertally.audit.promises import loud
from evertally.audit.report import Report
from evertally.audit.whitebox import again, smaller
from evertally.contract import restore
from evertally.noise import NoiseKey, ZeroNoise, simulation
from evertally.privacy import Neighbours as Relation
from evertally.sketches.count_sketch import CountSketch
from evertally.sketches.heavy_prefixes import HeavyPrefixes
from evertally.sketches.options import LabelSketch

_TICKS = 31
_LABELS = 1500  # that are looked at
_STARTS = 3
_KEYS = 5
_MORE = 2  # events of a user beyond what counts

Stream = tuple[tuple[Any, ...], ...]  # the events of each tick


def is_sketch(model: Any) -> TypeGuard[LabelSketch]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, LabelSketch)


def labels_of(model: Any) -> list[str]:
    """Labels that it can read."""
    if not isinstance(model, HeavyPrefixes):
        return [f"label {i}" for i in range(_LABELS)]
    if model.labels == "number":
        most = model.fanout**model.symbols
        return [str(i * most // min(most, _LABELS)) for i in range(min(most, _LABELS))]
    dice = np.random.default_rng(0).integers(1, 255, (_LABELS, model.symbols))
    if model.labels == "ipv4":
        return [".".join(map(str, one)) for one in dice.tolist()]
    return ["".join(chr(97 + symbol % 26) for symbol in one) for one in dice.tolist()]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams, and in which way they are bad."""

    name: str
    left: Stream
    right: Stream


class SketchSearch:
    """Looks for neighbours that lose most.

    >>> import evertally as et
    >>> model = et.CountSketch(rows=3, guarantee=et.ZCDP(0.5), horizon=100, neighbours="replace", key=et.simulation(0))
    >>> report = SketchSearch(model).report()
    >>> round(report.fraction, 3), report.adversary
    (1.0, 'opposite signs, one tick')
    """

    def __init__(self, model: LabelSketch) -> None:
        few = {"width": 2 * self._together(model) if self._together(model) > 1 else 2}
        changed: dict[str, Any] = few | {"watch": None} if isinstance(model, CountSketch) else {}
        horizon: Any = None if model.horizon is None else min(model.horizon, _TICKS)
        self.model: Any = smaller(model, horizon, **changed)
        self.alone: Any = smaller(model, horizon, **changed, unit="event", max_events_per_user=None, **_NO_LABELS)

    @staticmethod
    def _together(model: Any) -> int:
        """How many labels one event brings, or one user who counts once in each column."""
        return int(model.max_labels_per_user or model.max_per_event)

    @cached_property
    def _rows(self) -> tuple[list[str], IntArray]:
        """What each label alone moves."""
        door = again(self.alone)(ZeroNoise())._door
        labels = labels_of(self.model)
        return labels, np.array([door.events([label], 1) for label in labels])

    def _sets(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Labels of one side and of the other, and how they meet."""
        labels, rows = self._rows
        count = self._together(self.model)
        for start in range(min(_STARTS, len(labels))):
            apart, alike = [start], [start]
            met = rows @ rows[start]
            for i in range(len(labels)):
                if len(apart) < count and not (rows[apart] @ rows[i]).any():
                    apart.append(i)
                if len(alike) < count and i != start and met[i] == met[start]:
                    alike.append(i)
            opposite = [int(np.argmin(rows @ rows[i])) for i in apart]
            away = [int(np.argmin(np.abs(rows @ rows[i]))) for i in apart]
            for name, other in (("opposite signs", opposite), ("other buckets", away)):
                yield name, [labels[i] for i in apart], [labels[i] for i in other]
            if len(alike) > 1:
                yield "the same buckets", [labels[i] for i in alike], []

    def _content(self, labels: Sequence[str]) -> list[Any]:
        """The events that one unit brings of these labels, a few more than count."""
        model = self.model
        weight = model.max_weight + 1
        if not labels:
            return []
        if model.max_labels_per_user is not None:
            return [{label: weight} for label in labels] * _MORE
        event = dict.fromkeys(labels, weight)
        return [event] if model.unit == "event" else [event] * (model.max_events_per_user + _MORE)

    def pairs(self) -> Iterator[Pair]:
        replaced = Relation.parse(self.model.neighbours) is Relation.REPLACE
        for name, one, other in self._sets():
            left, right = self._content(one), self._content(other) if replaced else []
            yield Pair(f"{name}, one tick", (tuple(left),), (tuple(right),))
            if self.model.unit == "user":
                apart = len(left) + len(right)
                if self.model.horizon is None or apart <= self.model.horizon:
                    nothing: Stream = ((),) * len(right)
                    yield Pair(
                        f"{name}, tick by tick",
                        tuple((event,) for event in left) + nothing,
                        ((),) * len(left) + tuple((event,) for event in right),
                    )

    def played(self, stream: Stream, owner: str) -> IntArray:
        """The tables that the mechanism releases without noise, restored before every tick."""
        key, rows = ZeroNoise(), []
        made: Any = again(self.model)(key)
        for events in stream:
            made = restore(made.snapshot(), key=key)
            users = {"users": [owner] * len(events)} if self.model.unit == "user" else {}
            made.step_events(list(events), **users)
            rows.append(made._kept.played.recent[-1])
        return np.array(rows)

    @cached_property
    def worst(self) -> tuple[float, Pair, IntArray, IntArray]:
        """What is lost at most, to which pair, and the tables of its sides."""
        ticks = self.model.horizon or _TICKS
        losses = Losses(*impulse_response(self.model, ticks), float(self.model.noise.spread(ticks).roundings))
        found = []
        for pair in self.pairs():
            left, right = self.played(pair.left, "me"), self.played(pair.right, "another")
            moved = (left - right).astype(np.float64)
            columns = np.flatnonzero(moved.any(axis=0))
            path = np.concatenate([moved, np.repeat(moved[-1:], ticks - len(moved), axis=0)])[None][:, :, columns]
            found.append((float(losses.of(path)[0]) if losses.known else math.nan, pair, left, right))
        return max(found, key=lambda one: one[0])

    def report(self) -> Report:
        """What the worst pair loses."""
        claim = claim_of(self.model.charge)
        lost, pair, _, _ = self.worst
        if math.isnan(lost):
            return Report.not_here(self.model, "neighbours", "of refined Laplace estimates there is no formula")
        return Report.computed(self.model, pair.name, "closed form", *claim, lost)

    def game(self) -> Neighbours:
        """The game with the worst pair, at a promise so weak that few games show it."""
        _, pair, left, right = self.worst
        columns = np.flatnonzero((left - right).any(axis=0)).tolist()
        weak = smaller(self.model, self.model.horizon, guarantee=loud(self.model.guarantee))
        arrivals = [self._arrivals(pair.left, "me"), self._arrivals(pair.right, "another")]
        sums: list[FloatArray] = [side[:, columns].astype(np.float64) for side in (left, right)]
        return SketchGame(weak, arrivals[0], arrivals[1], columns, sums[0], sums[1])

    def _arrivals(self, stream: Stream, owner: str) -> list[Any]:
        """What is behind the door, tick by tick; of users whose events are capped, what the cap leaves."""
        model, made = self.model, again(self.model)(ZeroNoise())
        door: Any = made._door
        if made._plan.owned:
            ticks = enumerate(stream, start=1)
            return [door.owned(list(events), [owner] * len(events), tick) for tick, events in ticks]
        left = model.max_events_per_user if model.unit == "user" else math.inf
        rows = []
        for tick, events in enumerate(stream, start=1):
            kept = list(events)[: int(min(left, len(events)))]
            left -= len(kept)
            rows.append(door.events(kept, tick))
        return rows


_NO_LABELS: dict[str, Any] = {"max_labels_per_user": None}


class SketchGame(Neighbours):
    """Rows of tables, or events with their users, as the engine takes them."""

    def mechanism(self, key: NoiseKey) -> OneOfTwo:
        def engine(source: Any) -> Any:
            made = self._engine(source)
            return made if self.model._plan.owned else _InBatches(made)

        return OneOfTwo(self.model, engine, self.left, self.right, self.columns, key)


class _InBatches:
    """An engine that takes rows side by side, for a game that has one."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.start, self.begin = inner.start, inner.begin

    def play(self, batch: list[IntArray], state: Any) -> Any:
        return self._inner.play(np.stack(batch), state)


def descent_attack(make: Factory) -> Finding:
    """Compares the labels that a release shows with a plain walk over the released table: what is found must follow
    from released numbers alone.

    >>> import evertally as et
    >>> make = lambda key: et.HeavyPrefixes(symbols=2, fanout=4, labels="number", width=8, threshold=9, horizon=4,
    ...                                     guarantee=et.ZCDP(0.1), key=key)
    >>> descent_attack(make).leaked
    False
    """
    for number in range(_KEYS):
        made: Any = make(simulation(number))
        ticks: list[list[str]] = [inputs_of(made)[2], []]
        for events in ticks:
            shown = made.step(events).value
            if dict(shown) != _walked(made, made._kept.played.recent[-1]):
                return Finding("found", True, "labels are shown for another reason than their released estimates")
    return Finding("found", False, f"under {_KEYS} keys what is found follows from the released table")


def walkable(model: Any) -> bool:
    """Whether its prefixes are few enough to be looked at one by one."""
    return isinstance(model, HeavyPrefixes) and model.labels == "number" and model.fanout**model.symbols <= _LABELS


def _walked(made: Any, row: IntArray) -> dict[str, int]:
    """Labels all of whose prefixes are large enough, one prefix after the other."""
    columns: Any = made._form.columns
    found: dict[str, int] = {}

    def look(prefix: list[int], code: Any) -> None:
        level = columns.levels[len(prefix)]
        for symbol in range(made.fanout):
            below = columns.below(code, np.array([symbol]), level)
            cells, signs = columns.cells(below, level)
            estimate = sorted((row[cells[0]] * signs[0]).tolist())[cells.shape[1] // 2]
            if estimate < made.threshold:
                continue
            if len(prefix) + 1 == made.symbols:
                found[columns.spelling.name([*prefix, symbol])] = estimate
            else:
                look([*prefix, symbol], below)

    look([], np.zeros(1, dtype=np.uint64))
    return found


def inputs_of(model: Any) -> list[Any]:
    """Some inputs of `step`, the first two of them different."""
    labels = labels_of(model)
    return [labels[:1] * 3, [], labels[:2] * 9, labels[:1]]
