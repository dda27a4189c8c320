"""The interval tree as a whole: exact without noise, the same after a restore, bounds that hold (dynamic-data 11.1)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from interval_runs import Exact, Schedule, Update, node_of, play, shares_of, tick, tree
from small_static import Sampled, SmallHistogram

from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.dynamic.interval_accuracy import without_restarts
from evertally.dynamic.interval_index import level, low_bit, query_chain
from evertally.dynamic.interval_tree import IntervalTree
from evertally.dynamic.node import Node, Workshop
from evertally.dynamic.partitioners import SparsePartition, SparseVector
from evertally.dynamic.parts import Setting
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise, round_up, simulation
from evertally.privacy import ZCDP, ApproxDP, Contribution, PureDP

AT = shares_of("AT")
CELLS = 3


def random_stream(rng: random.Random, segments: int, named: bool) -> list[list[Update]]:
    """Duplicates, deletions of what is not there, pairs in one tick, insertions of what was deleted."""
    stream: list[list[Update]] = []
    used = 0
    for _ in range(segments):
        updates: list[Update] = []
        for _ in range(rng.randrange(6)):
            inserted = rng.random() < 0.55
            item = used if inserted else rng.randrange(used + 2)
            used += inserted
            updates.append((1 if inserted else -1, rng.randrange(CELLS), item if named else -1))
        stream.append(updates)
    return stream


def truth(stream: list[list[Update]], named: bool) -> list[list[int]]:
    """A plain model after each tick."""
    present, alive, rows = Counter[int](), dict[int, int](), []
    for updates in stream:
        for sign, cell, item in updates:
            if sign > 0:
                present[cell] += 1
                alive[item] = cell
            elif not named and present[cell]:
                present[cell] -= 1
            elif named and item in alive:
                present[alive.pop(item)] -= 1
        rows.append([present[cell] for cell in range(CELLS)])
    return rows


def schedule(salt: int, rate: float) -> Schedule:
    return lambda number, segment: random.Random(f"{salt}/{number}/{segment}").random() < rate


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.4, 1.0])
def test_without_noise_answers_are_exact_whatever_restarts(named: bool, rate: float) -> None:
    rng = random.Random(f"{named}/{rate}")
    for salt in range(12):
        stream = random_stream(rng, rng.randrange(1, 70), named)
        run = play(stream, named=named, cells=CELLS, shares=AT, restarts=schedule(salt, rate))
        assert run.rows == truth(stream, named)


@contextmanager
def forced(restarts: Schedule, halts: Schedule) -> Iterator[None]:
    """Public schedules in place of the tests of the nodes."""
    with (
        mock.patch.object(Node, "restarts", lambda node: restarts(node.number, node.opened + node.steps)),
        mock.patch.object(Node, "halts", lambda node: halts(node.number, node.opened)),
    ):
        yield


@pytest.mark.parametrize("named", [True, False])
def test_a_halted_node_answers_nothing_and_its_items_come_back(named: bool) -> None:
    """The error is what halted nodes hold, and after their window nothing is missing."""
    rng = random.Random(f"halts/{named}")
    missed = 0
    for salt in range(12):
        stream = random_stream(rng, 40, named)
        static = Exact(CELLS)
        restarts, halts = schedule(salt, 0.4), schedule(salt + 100, 0.5)
        with forced(restarts, halts):
            worker = tree(static, AT, named=named)
            for updates, present in zip(stream, truth(stream, named), strict=True):
                rows, _ = worker.advance([tick(updates)])
                halted = [node.number for node in worker._nodes if node.halted]
                ignored = sum((Counter(worker._holders.content(number)) for number in halted), Counter[int]())
                assert [int(x) + ignored[cell] for cell, x in enumerate(rows[-1])] == present
                missed += sum(ignored.values())
    assert missed > 50


def big(named: bool, segments: int) -> list[list[Update]]:
    """200 items, then 7 deletions a segment."""
    stream: list[list[Update]] = [[] for _ in range(segments)]
    stream[0] = [(1, 0, item if named else -1) for item in range(200)]
    for j in range(64, segments):
        stream[j] = [(-1, 0, 7 * (j - 64) + k if named else -1) for k in range(7) if 7 * (j - 64) + k < 195]
    return stream


@pytest.mark.parametrize("named", [True, False])
def test_the_tests_themselves_restart_and_halt(named: bool) -> None:
    shop = Workshop(Exact(CELLS), shares_of("AT", levels=8), PureDP(230), ZeroNoise().source(), beta=0.05)
    worker = IntervalTree(shop, named=named, most=255)
    stream = big(named, 127)
    rows, lasts = worker.advance([tick(updates) for updates in stream])
    left = next(node for node in worker._nodes if node.number == 64)
    assert left.halted
    assert left.round >= 2
    off = np.abs(np.repeat(rows, lasts, axis=0) - truth(stream, named)).sum(axis=1)
    assert off[:80].max() == 0
    assert 0 < off.max() <= 2 * left.margins[0]
    # The holder went on, so the next node has what is left, and nothing else.
    rows, _ = worker.advance([tick([])])
    assert rows[-1].tolist() == [5, 0, 0]


def test_rounds_halve_what_is_left() -> None:
    """Lemma 10: a restart means that half of the base is gone, so there are about log of it; with real noise."""
    stream = big(True, 127)
    plan = made(PureDP(230), horizon=None, static=Loose(CELLS), max_segments=255)
    rounds = []
    for seed in range(20):
        worker = plan.worker(simulation(seed).source("tree"))
        worker.advance([tick(updates) for updates in stream])
        rounds += [node.round for node in worker._nodes]
    assert 2 <= max(rounds) <= math.log2(200) + 2


def test_one_release_for_each_role_and_step() -> None:
    """Section 8: m contents; sum of (lb(i) - 1) steps, each for the count and for the deletions."""
    for k, steps in ((4, 17), (6, 129), (8, 769)):
        never = schedule(0, 0.0)
        run = play([[] for _ in range(2**k - 1)], named=False, cells=1, shares=AT, restarts=never)
        roles = Counter(lane.split("/")[1] for lane, _ in run.releases)
        assert roles == {
            "content": 2**k - 1,
            "size": 2 ** (k - 1) - 1,  # not of leaves
            "counted": steps,
            "deleted": steps,
        }
        by_node = Counter(node_of(lane, j) for lane, j in run.releases if lane.split("/")[1] == "deleted")
        assert all(by_node[i] == low_bit(i) - 1 for i in range(1, 2**k) if level(i) > 1)


def test_as_many_nodes_as_the_chain_and_none_after_its_window() -> None:
    worker = tree(Exact(1), AT, named=False)
    for q in range(1, 130):
        worker.advance([tick([])])
        assert [node.number for node in worker._nodes] == query_chain(q)[::-1]
    old = Node(4, tree(Exact(1), AT, named=False)._shop)
    old.open(4, {})
    with pytest.raises(AssertionError, match="in its window only"):
        old.step(8, {}, dict)


def test_a_partition_makes_segments_of_ticks() -> None:
    rng = random.Random(5)
    stream = random_stream(rng, 300, named=False)
    source = ZeroNoise().source()
    partition = SparsePartition(SparseVector(Fraction(1)), source, beta=0.05)
    worker = IntervalTree(Workshop(Exact(CELLS), AT, PureDP(1), source, 0.05), named=False, partition=partition)
    model, boundaries, shown = truth(stream, named=False), 0, [0] * CELLS
    for t, updates in enumerate(stream):
        closed = worker.segment
        rows, lasts = worker.advance([tick(updates)])
        if worker.segment > closed:
            shown, boundaries = model[t], boundaries + 1
        assert np.repeat(rows, lasts, axis=0).tolist() == [shown]
        assert t or shown == [0] * CELLS
    assert 5 < boundaries < 60


def test_after_the_last_segment_the_last_answer_stands() -> None:
    stream = random_stream(random.Random(6), 20, named=False)
    static = Exact(CELLS)
    worker = tree(static, shares_of("AT", levels=3), named=False, most=7)
    rows, lasts = worker.advance([tick(updates) for updates in stream])
    rows = np.repeat(rows, lasts, axis=0)
    assert rows[:7].tolist() == truth(stream, named=False)[:7]
    assert (rows[6:] == rows[6]).all()
    assert {j for _, j in static.log} == set(range(1, 8))
    assert worker.accuracy(7).radius(0.05) < math.inf
    assert worker.accuracy(8).radius(0.05) == math.inf


# -- state -----------------------------------------------------------------------------------------------------------

PROMISES = {"pure": PureDP(1), "rho": ZCDP(0.5)}


def made(promise: Any, *, named: bool = True, **options: Any) -> Any:
    setting = Setting(
        static=options.pop("static", SmallHistogram(CELLS)),
        guarantee=promise,
        horizon=options.pop("horizon", 200),
        identity=options.pop("identity", "token" if named else "value"),
        protects=options.pop("protects", "event"),
        steps=options.pop("steps", 1),
        partition=options.pop("partition", "identity"),
        largest=options.pop("largest", None),
        max_lifetime=options.pop("max_lifetime", None),
        options=tuple(options.items()),
    )
    return CONSTRUCTIONS["interval-tree"].plan(setting, Contribution())


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES.keys())
@pytest.mark.parametrize("partition", ["identity", "infinite"])
@pytest.mark.parametrize("named", [True, False])
def test_a_restored_tree_goes_on_as_if_nothing_had_happened(promise: Any, partition: Any, named: bool) -> None:
    plan = made(promise, named=named, partition=partition)
    stream = random_stream(random.Random(7), 60, named)
    with forced(schedule(1, 0.3), schedule(2, 0.3)):
        whole = plan.worker(simulation(3).source("tree"))
        rows, lasts = whole.advance([tick(updates) for updates in stream])
        rows = np.repeat(rows, lasts, axis=0)
        for stop in (0, 1, 7, 31, 32, 45):
            first = plan.worker(simulation(3).source("tree"))
            first.advance([tick(updates) for updates in stream[:stop]])
            second = plan.worker(simulation(3).source("tree"))
            second.load(stop, first.state())
            assert second.state() == first.state()
            later, stands = second.advance([tick(updates) for updates in stream[stop:]])
            assert np.repeat(later, stands, axis=0).tolist() == rows[stop:].tolist()
            assert second.state() == whole.state()


def test_one_step_or_many_ticks_give_the_same() -> None:
    plan = made(PureDP(1), partition="infinite")
    stream = [tick(updates) for updates in random_stream(random.Random(8), 80, named=True)]
    one, many = (plan.worker(simulation(4).source("tree")) for _ in range(2))
    rows, lasts = many.advance(stream)
    single = [np.repeat(*one.advance([updates]), axis=0)[0].tolist() for updates in stream]
    assert np.repeat(rows, lasts, axis=0).tolist() == single
    assert one.state() == many.state()


def test_margins_are_kept_and_not_computed_anew() -> None:
    worker = made(PureDP(1)).worker(simulation(5).source("tree"))
    worker.advance([tick(updates) for updates in random_stream(random.Random(9), 40, named=True)])
    kept = [node.margins for node in worker._nodes]
    other = made(PureDP(1)).worker(simulation(5).source("tree"))
    with mock.patch("evertally.dynamic.node.margins", return_value=[-1]):
        other.load(40, worker.state())
    assert [node.margins for node in other._nodes] == kept


# -- what is charged, what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identity", "protects", "steps", "tree_part", "partition_part"),
    [
        ("token", "event", 1, 1, 2),
        ("token", "item", 1, 1, 2),
        ("id", "item", 1, 1, 2),
        ("id", "event", 2, 2, 4),  # two lifetimes: see `Relation.steps`
        ("value", "event", 1, 1, 2),
        ("value", "event", 3, 3, 6),  # a user with three events
        ("value", "item", 1, 2, 4),
    ],
)
def test_what_a_step_costs(identity: Any, protects: Any, steps: int, tree_part: int, partition_part: int) -> None:
    unique = {"unique_deletions": True} if (identity, protects) == ("value", "item") else {}
    options = {"identity": identity, "protects": protects, "steps": steps, **unique}
    dense = made(PureDP(1), **options).worker(simulation(6).source("tree"))
    assert dense._shop.budget == PureDP(Fraction(1, tree_part))
    dense = made(ZCDP(1), **options).worker(simulation(6).source("tree"))
    assert dense._shop.budget == ZCDP(Fraction(1, tree_part**2))
    sparse = made(PureDP(1), partition="infinite", **options).worker(simulation(6).source("tree"))
    assert sparse._shop.budget == PureDP(Fraction(1, 2 * tree_part))
    assert sparse._partition._test.epsilon == Fraction(1, 2 * partition_part)
    plan = made(ApproxDP(1, 1e-6), partition="infinite", **options)
    mixed = plan.worker(simulation(6).source("tree"))
    assert plan.charge == ApproxDP(1, 1e-6)
    assert mixed._partition._test.epsilon == Fraction(1, 2 * partition_part)
    assert mixed._shop.budget.exact_rho == ApproxDP(Fraction(1, 2), 1e-6).to_zcdp().exact_rho / tree_part**2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"identity": "raw"}, "must know what a deletion deletes"),
        ({"identity": "value", "allocation": "A2"}, "needs names"),
        ({"identity": "value", "protects": "item"}, "cannot protect items"),
        ({"identity": "value", "max_lifetime": 5}, "max_lifetime needs items with names"),
        ({"identity": "id", "protects": "event", "steps": 1}, "two lifetimes change"),
        ({"allocation": "A9"}, "'AT', 'A0', 'A1' or 'A2'"),
        ({"allocation": ["AT"]}, "'AT', 'A0', 'A1' or 'A2'"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"max_rounds": [3]}, "max_rounds"),
        ({"max_rounds": 1000}, "max_rounds"),
        ({"max_segments": 6}, "7 costs the same"),
        ({"max_segments": 0}, "max_segments"),
        ({"partition": "finite", "horizon": None}, "needs a horizon"),
        ({"partition": "weekly"}, "partition is"),
        ({"split": 1}, "split"),
        ({"oldest_first": True}, "no option 'oldest_first'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], reason: str) -> None:
    if options.get("partition") is None and "split" in options:
        options = {**options, "partition": "infinite"}
    with pytest.raises(ConfigurationError, match=reason):
        made(PureDP(1), **options)


def test_pure_promises_take_pure_mechanisms_only() -> None:
    static = SmallHistogram(1)
    static.pure = False  # type: ignore[misc]
    with pytest.raises(ConfigurationError, match="not pure"):
        made(PureDP(1), static=static)
    with pytest.raises(ConfigurationError, match=r"tree of 41 levels with max_rounds=64: .* outside"):
        made(PureDP(1e-9), horizon=2**40)
    with pytest.raises(ConfigurationError, match=r"tree of 8 levels .* scale 0\.08 is outside"):
        made(PureDP(100))


@pytest.mark.parametrize("promise", [PureDP(Fraction(3, 2)), ZCDP(Fraction(1, 3))], ids=["pure", "rho"])
def test_the_noise_of_every_release_is_what_at_says(promise: Any) -> None:
    """6.10 by hand: leaf 1/2; else w_l w_r / 2 for each role, and that over the levels of a tree over deletions."""
    key = Recording(simulation(2))
    worker = made(promise, max_segments="unlimited").worker(key.source("tree"))
    with forced(schedule(1, 0.4), schedule(2, 0.2)):
        worker.advance([tick(updates) for updates in random_stream(random.Random(3), 40, named=True)])
    roles, addresses = set(), []
    for draw in key.draws:
        _, role, at, round_, *height = draw.lane.split("/")
        share = Fraction(1, int(at) * (int(at) + 1))
        if at != "1":
            share /= 2 * int(round_) * (int(round_) + 1)
        share /= int(height[0]) if height else 1
        if isinstance(promise, PureDP):
            assert draw.law == DiscreteLaplace(round_up(1 / (promise.exact_epsilon * share)))
        else:
            assert draw.law == DiscreteGaussian(round_up(1 / (2 * promise.exact_rho * share)))
        roles.add((role, bool(height)))
        addresses.append((draw.lane, draw.nodes))
    assert roles == {("content", False), ("size", False), ("counted", True), ("deleted", True)}
    assert len(set(addresses)) == len(addresses)


def test_a2_has_an_eighth_in_the_event_unit() -> None:
    for protects, constant in (("event", Fraction(1, 8)), ("item", Fraction(1, 4))):
        worker = made(PureDP(1), protects=protects, allocation="A2").worker(simulation(6).source("tree"))
        assert worker._shop.allocation.shares(5, 3).counted == constant


# -- accuracy --------------------------------------------------------------------------------------------------------


def deviation(q: int, name: str, form: str = "value", levels: int | None = None) -> float:
    """Of a count, in the first round, epsilon 1, with the real law of Laplace."""
    shop = Workshop(SmallHistogram(1), shares_of(name, form=form, levels=levels), PureDP(1), ZeroNoise().source(), 0.05)
    variance = Fraction(0)
    for asked in without_restarts(q):
        content, deleted = asked.budgets(shop)
        variance += sum(2 / budget.exact_epsilon**2 for budget in [content, *deleted])
    return math.sqrt(variance)


def test_the_deviations_of_the_specification() -> None:
    """6.10 and 13.5: A0 7045, 54 778 (first round); AT and A2 in fractions at the worst tick of T = 8760, 2^20."""
    assert round(deviation(63, "A0")) == 7045
    assert round(deviation(1023, "A0")) == 54778
    assert round(deviation(8191, "AT")) == 62705
    assert round(deviation(8191, "A2", "token-event")) == 3799
    assert round(deviation(2**20 - 1, "AT")) == 341220
    assert round(deviation(2**20 - 1, "A2", "token-event")) == 10430


def test_a_known_horizon_limits_the_segments() -> None:
    """6.9: a tick ends one segment at most. Eleven times less noise at the worst tick of 8191."""
    source = simulation(6).source("tree")
    for horizon, given_, cap in ((8191, {}, 13), (8192, {}, 14), (None, {}, None), (9, {"max_segments": 63}, 6)):
        assert made(PureDP(1), horizon=horizon, **given_).worker(source)._shop.allocation.cap == cap
    assert made(PureDP(1), max_segments="unlimited").worker(source)._shop.allocation.cap is None
    assert deviation(8191, "AT") > 10 * deviation(8191, "AT", levels=13)


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES.keys())
def test_bounds_hold_and_are_not_wasteful(promise: Any) -> None:
    plan = made(promise, max_rounds=1, horizon=31)
    assert plan.open == ""
    stream = random_stream(random.Random(10), 31, named=True)
    present = np.array(truth(stream, named=True))
    batch = [tick(updates) for updates in stream]
    missed, ratios = 0, []
    for seed in range(60):
        worker = plan.worker(simulation(seed).source("tree"))
        rows, lasts = worker.advance(batch)
        off = np.abs(np.repeat(rows, lasts, axis=0) - present)
        accuracy = worker.accuracy(31)
        missed += off[-1].max() > accuracy.radius(0.1)
        ratios.append(off[-1, 0] ** 2 / accuracy.of(0).stddev ** 2)
        assert (off.max(axis=1) <= worker.error_bound(1e-9, None)).all()
    assert missed <= 0.1 * 60 + 4.8 * math.sqrt(0.1 * 0.9 * 60)
    assert 0.3 < np.mean(ratios) < 2.5
    assert plan.worker(simulation(0).source("tree")).error_bound(0.1, 31) == accuracy.radius(0.1)


class Loose(SmallHistogram):
    """For budgets that are larger than anybody should have."""

    def fit(self, data: Any, budget: Any, place: Any, size_hint: Any = None) -> Any:
        return super().fit(data, PureDP(min(budget.exact_epsilon, 10)), place)

    def _spread(self, budgets: Any) -> Any:
        return super()._spread([PureDP(min(budget.exact_epsilon, 10)) for budget in budgets])


def test_bounds_with_restarts_and_halts_hold() -> None:
    stream = big(True, 127)
    present = np.array(truth(stream, named=True))
    batch = [tick(updates) for updates in stream]
    plan = made(PureDP(200), horizon=127, static=Loose(CELLS), max_segments=127)
    assert "begin anew" in plan.open
    halted = missed = ticks = 0
    for seed in range(20):
        worker = plan.worker(simulation(seed).source("tree"))
        assert worker.accuracy(5).radius(0.1) == math.inf  # before anything happened
        rows, lasts = worker.advance(batch)
        off = np.abs(np.repeat(rows, lasts, axis=0) - present).max(axis=1)
        for t in range(64, 128):
            missed += off[t - 1] > worker.accuracy(t).radius(0.1)
            ticks += 1
        halted += any(node.halted for node in worker._nodes)
    assert halted > 10
    assert missed <= 0.1 * ticks


def test_errors_that_grow_with_the_data_need_their_size() -> None:
    for largest, bounded in ((None, False), (1000, True)):
        plan = made(PureDP(1), static=Sampled(CELLS), largest=largest, max_rounds=1)
        assert bool(plan.open) != bounded
        worker = plan.worker(simulation(1).source("tree"))
        worker.advance([tick([(1, 0, 0)])] * 1 + [tick([])] * 5)
        assert (worker.accuracy(6).radius(0.05) < math.inf) == bounded
        assert worker.accuracy(6).of(0).stddev is None


def test_unseen_updates_of_an_open_segment_count() -> None:
    worker = made(PureDP(1), partition="infinite", horizon=None).worker(simulation(1).source("tree"))
    worker.advance([tick([(1, 0, 0)])])
    assert 20 < worker.accuracy(1).radius(0.05) < 1000
    assert worker.accuracy(1).of(0).stddev is None
