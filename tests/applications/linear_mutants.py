"""Mistakes in linear statistics of graphs, planted from outside. Each is (name, patch, probe); a probe says whether it
has noticed, and notices nothing in what is not patched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from linear_streams import APART, MEET, NODES, made

from evertally.applications import lazy
from evertally.applications.encoded import Certified
from evertally.applications.graph import (
    CutGraph,
    DegreeVector,
    EdgeCount,
    cuts,
    edges,
    kept,
    linear,
    linear_sensitivity,
)
from evertally.applications.refuter import removed, search, streams
from evertally.noise import ZeroNoise, simulation

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Callable[[Patch], None]
    probe: Callable[[], bool]


def refuted(kind: Any, records: list[Any], length: int = 3, **options: Any) -> bool:
    """Whether neighbours differ by more than is certified."""
    return bool(made(kind, **options).refute(records, streams(records, length)).refuted)


def raw_refuted(kind: Any, records: list[Any], length: int = 3, **options: Any) -> bool:
    """The same for raw records, which go through the door first."""
    statistic = made(kind, **options)
    read = [record for record in map(statistic._read_record(), records) if record is not None]
    pairs = (pair for stream in streams(read, length) for pair in removed(stream)) if read else iter(())
    return search(statistic.encoder, pairs, statistic.certified().change).refuted


def set_semantics_unscaled(patch: Patch) -> None:
    """Copies are ignored, and the charge is that of a stream without copies."""
    patch.setitem(linear_sensitivity.ADD_REMOVE, "door", linear_sensitivity.ADD_REMOVE["plain"])


def presence_unscaled(patch: Patch) -> None:
    """Deletions of what is absent are ignored, and the charge is that of unconditional events."""
    patch.setitem(linear_sensitivity.ADD_REMOVE, "presence", linear_sensitivity.ADD_REMOVE["unconditional"])


def replaced_as_removed(patch: Patch) -> None:
    """REPLACE without its sqrt(2)."""
    plain = linear_sensitivity.of_weights
    patch.setattr(
        cuts.linear_sensitivity,
        "of_weights",
        lambda most, signed, relation: Certified(plain(most, signed, relation).removal, "FC 6.4"),  # type: ignore[arg-type]
    )


def replaced_signs_as_replaced(patch: Patch) -> None:
    """Signed weights, charged like those that are not."""
    plain = linear_sensitivity.of_weights
    patch.setattr(cuts.linear_sensitivity, "of_weights", lambda most, signed, relation: plain(most, False, relation))


def clipped_against_the_weight(patch: Patch) -> None:
    """An increment is cut so that the weight of its edge stays at 0 or above."""
    begin = kept.EveryRecord.__init__

    def with_weights(self: Any, lands: Any) -> None:
        begin(self, lands)
        self._weights = self.table()

    def amount(self: Any, record: Any) -> int:
        before = self._weights.get(record[:2], 0)
        after = max(0, before + record[2])
        self._weights.put(record[:2], after or None)
        return after - before

    patch.setattr(kept.EveryRecord, "__init__", with_weights)
    patch.setattr(kept.EveryRecord, "amount", amount)


def toggles_accepted(patch: Patch) -> None:
    """An action that turns an edge on and off: two worlds stay apart for ever."""
    plain, amount = edges.read_update, kept.Presence.amount

    def read(record: Any) -> Any:
        found = plain(("insert", *record[1:])) if record[0] == "toggle" else plain(record)
        return (*found[:2], 0) if found is not None and record[0] == "toggle" else found

    def toggled(self: Any, record: Any) -> int:
        return amount(self, record) if record[2] else amount(self, (*record[:2], 1)) or amount(self, (*record[:2], -1))

    patch.setattr(linear, "read_update", read)
    patch.setattr(kept.Presence, "amount", toggled)


def ranks_of_kept_edges(patch: Patch) -> None:
    """A projection whose ranks count kept edges alone: one edge more flips a whole path of others."""

    def amount(self: Any, record: Any) -> int:
        if any(self._ranks.get(end, 0) >= self._max_degree for end in record[:2]):
            return 0
        for end in record[:2]:
            self._ranks.add(end, 1)
        return 1

    patch.setattr(kept.Projection, "amount", amount)


def copies_in_a_tick_unmerged(patch: Patch) -> None:
    """Of several records of one tick in one coordinate the last one counts."""

    def put(changes: Any, coordinate: Any, amount: int) -> None:
        changes[coordinate] = amount

    patch.setattr(kept, "add", put)


def weights_unclipped(patch: Patch) -> None:
    """The door lets every weight in."""
    patch.setattr(edges, "whole", lambda value, limit: int(value))


def shows_whom_it_saw(patch: Patch) -> None:
    """A list of vertices that follows the data."""
    plain = lazy.LazyEngine.play

    def play(self: Any, batch: Any, state: Any) -> Any:
        played = plain(self, batch, state)
        self._shown = sorted(self.rule._sums)
        return played

    patch.setattr(lazy.LazyEngine, "play", play)


def silent_where_nothing_occurred(patch: Patch) -> None:
    """A label that never occurred has no noise: whoever asks knows."""
    plain = lazy.LazyEngine.answers

    def answers(self: Any, labels: Any, tick: int) -> Any:
        return plain(self, labels, tick) * [label in self.rule._sums for label in labels]

    patch.setattr(lazy.LazyEngine, "answers", answers)


def noise_by_order(patch: Patch) -> None:
    """Noise by the place of a question, not by its label: two labels have one noise, and differences are exact."""
    patch.setattr(
        lazy, "item_addresses", lambda source, labels: PLAIN_ADDRESSES(source, [str(i) for i in range(len(labels))])
    )


PLAIN_ADDRESSES = lazy.item_addresses


def _exact() -> bool:
    graph = CutGraph(vertices=NODES, copies="counted", guarantee=made(EdgeCount).guarantee, horizon=3, key=ZeroNoise())
    return graph.step([("a", "b"), ("b", "a"), ("c", "d")]).value.tolist() != [2, 0, 0, 0, 0, 1]


def _too_heavy() -> bool:
    statistic = made(CutGraph, copies="counted", max_weight=3)
    return any(abs(statistic._read_record()(("a", "b", weight))[2]) > 3 for weight in (7, 10**9))


def _depends_on_who_came() -> bool:
    """Whether what is shown differs between two neighbours."""
    engines = []
    for records in ([("a", "b")], [("a", "b"), ("a", "c")]):
        degrees = made(DegreeVector, vertices=None, watch=["a"])
        degrees.step(records)
        engines.append(degrees._engine._shown)
    return engines[0] != engines[1]


def _tells_who_never_came() -> bool:
    found = []
    for seed in range(40):  # noise is 0 with probability below 1/2
        degrees = made(DegreeVector, vertices=None, key=simulation(seed))
        found.append(degrees.step([("a", "b")]).degree("nobody").value)
    return not any(found)


def _two_labels_one_noise() -> bool:
    same = []
    for seed in range(40):
        degrees = made(DegreeVector, vertices=None, key=simulation(seed))
        release = degrees.step([("a", "b")])
        same.append(release.degree("x").value == release.degree("y").value)
    return all(same)


PATH = [(u, v, 1) for u, v in ("ab", "bc", "cd", "de", "ef")]


def _cascades() -> bool:
    statistic = made(EdgeCount, max_degree=1)
    return search(statistic.encoder, removed(tuple(PATH)), statistic.certified().change).refuted


SIGNED = [(*record[:2], sign) for record in MEET for sign in (1, -1)]
TOGGLES = [("toggle", "a", "b"), ("insert", "c", "d")]

MUTANTS = [
    Mutant("set semantics unscaled", set_semantics_unscaled, lambda: refuted(EdgeCount, APART)),
    Mutant("presence unscaled", presence_unscaled, lambda: refuted(DegreeVector, SIGNED, updates="both")),
    Mutant(
        "replace as removal",
        replaced_as_removed,
        lambda: refuted(CutGraph, APART, 2, copies="counted", neighbours="replace"),
    ),
    Mutant(
        "signed replace as replace",
        replaced_signs_as_replaced,
        lambda: refuted(CutGraph, SIGNED, 2, copies="counted", signed=True, neighbours="replace"),
    ),
    Mutant(
        "clipped against the current weight",
        clipped_against_the_weight,
        lambda: refuted(CutGraph, SIGNED, copies="counted", signed=True),
    ),
    Mutant("toggles", toggles_accepted, lambda: raw_refuted(EdgeCount, TOGGLES, 4, updates="both")),
    Mutant("ranks of kept edges", ranks_of_kept_edges, _cascades),
    Mutant("copies in a tick unmerged", copies_in_a_tick_unmerged, _exact),
    Mutant("weights unclipped", weights_unclipped, _too_heavy),
    Mutant("vertices from the data", shows_whom_it_saw, _depends_on_who_came),
    Mutant("no noise where nothing occurred", silent_where_nothing_occurred, _tells_who_never_came),
    Mutant("noise by the order of questions", noise_by_order, _two_labels_one_noise),
]
