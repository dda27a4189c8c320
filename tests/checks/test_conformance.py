"""Every mechanism passes every check, and the checks are able to fail."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from conformance import MECHANISMS
from conformance.column_mechanisms import COLUMN_MECHANISMS
from conformance.selection_mechanisms import LEADING, SELECTION_MECHANISMS, UNKNOWN
from evertally.checks import CHECKS, Subject, checks
from evertally.checks.interruptions import returns_of
from evertally.checks.secrets import check_secrets_stay
from evertally.encode.texts import tables_to_bytes
from evertally.histogram.in_place import Recomputation
from evertally.histogram.ways import NAMES
from evertally.noise import Key, ZeroNoise, simulation
from evertally.partition.engine import PartitionedRelease
from evertally.partition.intervals import PartitionEngine
from evertally.secret import Secret
from evertally.selection.found import Found
from evertally.selection.item_engine import ItemEngine
from evertally.selection.item_table import ItemTable
from evertally.selection.item_tree import ItemTree
from evertally.selection.meta import KnownBlocks, MetaAlgo, SeenBlocks
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.statistics import StreamingTopK, UnknownHistogram, UnknownTopK
from evertally.statistics.column_queries import ColumnQuery
from evertally.statistics.counts import SparseToo
from evertally.statistics.forms import Leader
from evertally.statistics.streaming import MECHANISMS as STREAMING
from evertally.statistics.unknown import MECHANISMS as FINDING
from long import LONG, telling

# They take two thirds of the time of all checks.
LENGTHY = (checks.check_error_formula, checks.check_interrupted_calls, checks.check_snapshot_at_every_tick)


def paths_of(subject: Subject) -> set[Any]:
    """What of the program an entry goes through: kind and mechanism, each with law, relation and unit, and the options
    of the kind that are not left alone."""
    model = subject.make(simulation(0))
    kind, mechanism = type(model).__name__, model.mechanism
    law = type(model.guarantee).__name__, type(model.charge).__name__
    relation = getattr(model, "neighbours", None), getattr(model, "protected_unit", None)
    given = {field.name for field in fields(model) if not _is_default(model, field)}
    pairs = {(kind, mechanism), (kind, law), (kind, relation), (mechanism, law), (mechanism, relation)}
    return pairs | {(kind, name) for name in given}


def _is_default(model: Any, field: Any) -> bool:
    return repr(getattr(model, field.name, None)) == repr(field.default)


@cache
def paths() -> dict[str, set[Any]]:
    return {subject.name: paths_of(subject) for subject in MECHANISMS}


@cache
def played() -> set[str]:
    """Of what takes long. `make audit` plays all entries."""
    return telling(paths())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("subject", MECHANISMS, ids=lambda subject: subject.name)
def test_conformance(subject, check):
    if not LONG and check in LENGTHY and subject.name not in played():
        pytest.skip("others go through the same paths; `make audit` plays it")
    check(subject)


def test_what_takes_long_is_played_with_every_path() -> None:
    assert set().union(*(paths()[name] for name in played())) == set().union(*paths().values())
    assert len(MECHANISMS) / 2 <= len(played()) < len(MECHANISMS)


def test_the_list_is_complete() -> None:
    names = [subject.name for subject in MECHANISMS]
    assert len(set(names)) == len(names)
    made = [subject.make(simulation(0)) for subject in COLUMN_MECHANISMS]
    assert {type(mechanism) for mechanism in made} == {*SparseToo.__subclasses__(), *ColumnQuery.__subclasses__()}
    assert {mechanism._plan.named for mechanism in made} == set(NAMES) - {"honaker"}
    found = [subject.make(simulation(0)) for subject in UNKNOWN]
    ways = {(kind, way) for kind in (UnknownHistogram, UnknownTopK) for way in FINDING}
    assert {(type(mechanism), mechanism.mechanism) for mechanism in found} == ways
    assert {mechanism._address.get("threshold") for mechanism in found} == {"sum", "per_tick", "paper", None}
    chosen = [subject.make(simulation(0)) for subject in LEADING]
    assert {type(mechanism) for mechanism in chosen} == {StreamingTopK}
    assert {mechanism.mechanism for mechanism in chosen} == set(STREAMING)
    assert {mechanism.accounting for mechanism in chosen} == {"adaptive", "paper", "standard", "monotone", None}
    assert all(subject.runs >= 40 for subject in MECHANISMS), "with fewer runs false alarms are above 1e-6"


# Left out: those whose error is of the size of the answer, or has no bound.
STEADY = [
    s
    for s in (*COLUMN_MECHANISMS, *SELECTION_MECHANISMS)
    if s.noise != "none" and not s.name.startswith("TopKSelect(3): doubling") and "undeclared" not in s.name
]


@pytest.mark.parametrize("subject", STEADY, ids=lambda subject: subject.name)
def test_the_streams_outgrow_what_is_allowed(subject: Subject) -> None:
    """A mechanism that repeats its first answer for ever fails the check without noise and the check of the bound."""
    mechanism = subject.make(ZeroNoise())
    inputs = subject.feed(subject.length(mechanism))
    first = subject.step(mechanism, inputs[0]).value
    subject.run(mechanism, inputs[1:])
    gap = np.abs(subject.error(first, subject.truth(inputs)[-1])).max()
    assert gap > subject.slack(mechanism)
    if subject.noise != "blocks":  # beforehand blocks may lose all that a tick may hold: no stream outgrows that
        assert gap > subject.bound(mechanism, 0.1, len(inputs))
    if subject.noise == "transcript":
        assert mechanism._engine.worker.partition.closes >= 4


@pytest.mark.parametrize("subject", LEADING, ids=lambda subject: subject.name)
def test_without_noise_the_named_columns_lead(subject: Subject) -> None:
    """What the checks of errors do not see: that the counted columns are the right ones, up to the margin eta."""
    mechanism = subject.make(ZeroNoise())
    inputs = subject.feed(subject.length(mechanism))
    for x, sums in zip(inputs, subject.truth(inputs), strict=True):
        named = [mechanism.columns.index(label) for label in subject.step(mechanism, x).value]
        behind = np.sort(sums)[::-1][: len(named)] - np.sort(sums[named])[::-1]
        assert np.all(behind >= 0)
        assert np.all(behind <= (mechanism.eta or 0))


# -- planted bugs ------------------------------------------------------------------------------------------------------


def subject_named(start: str) -> Subject:
    return next(s for s in (*COLUMN_MECHANISMS, *SELECTION_MECHANISMS) if s.name.startswith(start))


PARTITION = subject_named("MaxSum: rebased, PureDP")
LADDERS = subject_named("MaxSum: noisy-ladders, PureDP")
LEADER = subject_named("SumSelect: rebased")
RECOMPUTED = subject_named("SumSelect: recompute, ZCDP")
ITEMS = subject_named("UnknownHistogram: ApproxDP")
STICKY = next(subject for subject in UNKNOWN if "sticky" in subject.name)
BLOCKS_OF_ITEMS = subject_named("UnknownTopK: ApproxDP(epsilon=80.0, delta=1e-06), crowds, mechanism=meta")
SWITCHING = subject_named("StreamingTopK(2): sparse-gumbel, ZCDP")
BLOCKS = subject_named("StreamingTopK(2): meta, ZCDP")


def leaks_the_open_interval(self: PartitionEngine, rows: Any) -> Any:
    values, lasts = ADVANCE(self, rows)
    return values + np.eye(1, values.shape[1], dtype=np.int64) * self.partition._c[0], lasts  # type: ignore[attr-defined]


def noise_of_the_test_by_data(self: PartitionedRelease, first: int, count: int) -> Any:
    return self._source.draws("mu", self._mu_law, [int(self._c.sum()) + t for t in range(first, first + count)])[:, 0]


def noise_of_the_test_once(self: PartitionedRelease, first: int, count: int) -> Any:
    return self._source.draws("mu", self._mu_law, [1] * count)[:, 0]


def no_noise_in_the_test(self: PartitionedRelease, first: int, count: int) -> Any:
    return np.zeros(count, dtype=np.int64)


def one_threshold_for_all(self: PartitionedRelease) -> int:
    return int(self._source.draws("tau", self._tau_law, [1])[0, 0])


def extra_draws_on_busy_days(self: PartitionedRelease, rows: Any, first: int) -> Any:
    if rows.sum() > 250:
        self._source.draws("busy", self._tau_law, [first])
    return PLAY(self, rows, first)


def two_laws_in_one_lane(self: PartitionedRelease, interval: int) -> None:
    law = self._rule.update_law if interval % 2 else self._tau_law
    self._source.draws("update", law, [interval])


def forgets_the_open_interval(self: PartitionedRelease) -> list[bytes]:
    parts = STATE(self)
    return [*parts[:3], bytes(len(parts[3])), *parts[4:]]


def closes_late(self: PartitionedRelease, c: Any) -> int:
    return SLACK(self, c) + 150


def noise_by_arrival(self: ItemTree, block: int, addresses: Any) -> Any:
    return self._source.draws(self._lane, self.law, [block], max(1, len(addresses)))[0, : len(addresses)]


def late_items_without_earlier_noise(self: ItemTree, addresses: Any) -> None:
    first, tick = self._items, self.tick
    self.tick = 0
    JOIN(self, addresses)
    self.tick = tick
    self._latest[:, first : self._items] = 0


def everything_is_shown(self: ItemEngine, tick: int) -> Found:
    noisy = self.table.counts + self.tree.noise
    return Found(dict(zip(self.table.labels.list(), noisy.tolist(), strict=True)), {})


def in_order_of_arrival(self: ItemEngine, tick: int) -> Found:
    counts = RELEASED(self, tick).counts
    return Found({label: counts[label] for label in self.table.labels.list() if label in counts}, {})


def one_label_too_many(self: ItemEngine, tick: int) -> Found:
    return Found(RELEASED(self, tick).counts | {"nobody said this": 7}, {})


def forgets_what_was_shown(self: ItemEngine) -> list[bytes]:
    return [b"\x00" * len(part) if i == 0 else part for i, part in enumerate(SAVED(self))]


def forgets_open_blocks(self: SeenBlocks) -> bytes:
    return tables_to_bytes([{}] * 5)


def one_noise_for_all_blocks(self: MetaAlgo, totals: Any) -> None:
    shot = self._one_shot
    self._one_shot = SameNode(shot)  # type: ignore[assignment]
    try:
        META_STEP(self, totals)
    finally:
        self._one_shot = shot


class SameNode:
    def __init__(self, shot: Any) -> None:
        self._shot = shot

    def release(self, items: Any, source: Any, node: int) -> Any:
        return self._shot.release(items, source, 1)


def switches_by_exact_counts(self: SparseGumbel, sums: Any, columns: Any, counts: Any) -> None:
    before = self.switches_left, self.tick
    SPARSE_PLAY(self, sums, columns, counts)
    if sums[-1].max() > 5 * sums[-1].min() and before[0] == self.switches_left and before[1] % 2:
        self._source.draws("busy", self._budget.threshold, [self.tick])


def counts_of_the_last_tick(self: SparseGumbel, sums: Any, first: int) -> Any:
    return COUNTED(self, np.maximum(sums - 1, 0), first)


ADVANCE, PLAY, STATE, SLACK = (
    PartitionEngine.advance,
    PartitionedRelease.play,
    PartitionedRelease.state,
    PartitionedRelease._slack,
)
JOIN, RELEASED, SAVED, META_STEP = ItemTree._join, ItemEngine.released, ItemEngine.state, MetaAlgo.step
SPARSE_PLAY, COUNTED = SparseGumbel._play, SparseGumbel._counted
BUGS = [
    (PARTITION, PartitionEngine, "advance", leaks_the_open_interval, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", noise_of_the_test_by_data, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", noise_of_the_test_once, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", no_noise_in_the_test, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_tau", one_threshold_for_all, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "play", extra_draws_on_busy_days, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "state", forgets_the_open_interval, checks.check_snapshot_at_every_tick),
    (PARTITION, PartitionedRelease, "_slack", closes_late, checks.check_without_noise_it_is_exact),
    (LEADER, PartitionedRelease, "_slack", closes_late, checks.check_without_noise_it_is_exact),
    (LEADER, Leader, "show", lambda self, row: self._columns[0], checks.check_error_formula),
    (LEADER, Leader, "show", lambda self, row: "zebra", checks.check_release_form),
    (RECOMPUTED, Recomputation, "error_bound", lambda self, beta, tick: 1.0, checks.check_error_formula),
    (ITEMS, ItemTree, "_draws", noise_by_arrival, checks.check_noise_sees_no_data),
    (ITEMS, ItemTree, "_join", late_items_without_earlier_noise, checks.check_noise_sees_no_data),
    (ITEMS, ItemEngine, "released", everything_is_shown, checks.check_noise_sees_no_data),
    (ITEMS, ItemEngine, "released", in_order_of_arrival, checks.check_release_form),
    (ITEMS, ItemEngine, "released", one_label_too_many, checks.check_release_form),
    (ITEMS, ItemEngine, "released", lambda self, tick: Found({}, {}), checks.check_release_form),
    (STICKY, ItemEngine, "state", forgets_what_was_shown, checks.check_snapshot_at_every_tick),
    (BLOCKS_OF_ITEMS, SeenBlocks, "state", forgets_open_blocks, checks.check_snapshot_at_every_tick),
    (BLOCKS, MetaAlgo, "step", one_noise_for_all_blocks, checks.check_noise_sees_no_data),
    (SWITCHING, SparseGumbel, "_play", switches_by_exact_counts, checks.check_noise_sees_no_data),
    (SWITCHING, SparseGumbel, "_counted", counts_of_the_last_tick, checks.check_without_noise_it_is_exact),
]


def shows_its_labels(self: ItemTable) -> str:
    return f"ItemTable({self.labels.list()})"


def shows_its_sums(self: Any) -> str:
    return f"sums {self.tick} {vars(self).get('_latest')}"


def lets_itself_be_pickled(self: Any, protocol: Any) -> Any:
    return object, ()


BUGS += [
    (ITEMS, ItemTable, "__repr__", shows_its_labels, check_secrets_stay),
    (ITEMS, ItemTree, "__repr__", shows_its_sums, check_secrets_stay),
    (PARTITION, Secret, "__reduce_ex__", lets_itself_be_pickled, check_secrets_stay),
    (BLOCKS_OF_ITEMS, SeenBlocks, "__repr__", lambda self: str(self._counts), check_secrets_stay),
    (BLOCKS, KnownBlocks, "__format__", lambda self, form: str(self._sums), check_secrets_stay),
]


@pytest.mark.parametrize(("subject", "owner", "name", "bug", "check"), BUGS)
def test_planted_bugs_are_found(monkeypatch, subject, owner, name, bug, check) -> None:
    check(subject)
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises((AssertionError, KeyError, ValueError)):
        check(subject)


def test_one_lane_with_two_laws_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionedRelease, "_extra_release", two_laws_in_one_lane)
    with pytest.raises(AssertionError, match="two laws"):
        checks.check_noise_sees_no_data(LADDERS)


def test_noise_where_none_is_claimed_is_found() -> None:
    for check in (checks.check_keys, checks.check_noise_sees_no_data):
        with pytest.raises(AssertionError):
            check(replace(RECOMPUTED, noise="none"))
        with pytest.raises(AssertionError):
            check(replace(subject_named("MaxSum: trivial"), noise="fixed"))


def test_interruptions_reach_all_that_commits() -> None:
    """Files are found by their names: a renamed one would never be interrupted again, and nobody would notice."""
    mechanism = subject_named("Counter").make(Key.generate())  # only private keys are held
    _, places = returns_of(lambda: mechanism.step(1), checks._COMMITTING)
    assert {name for name in checks._COMMITTING for code, *_ in places if code.co_filename.endswith(name)} == {
        *checks._COMMITTING
    }
