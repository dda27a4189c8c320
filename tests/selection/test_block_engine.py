"""Unknown items by blocks: MetaAlgo with UnkGumb and UnkGauss behind the contract (streaming-selection 5.1, 1.3)."""

from fractions import Fraction

import pytest

import evertally as et
from evertally import statistics
from evertally.bounds.selection import L
from evertally.counting.tree import choose_radix
from evertally.encode.texts import tables_from_bytes, tables_to_bytes
from evertally.noise import Recording, ZeroNoise, simulation
from evertally.selection.block_engine import BlockEngine

PROMISE = et.ApproxZCDP(rho=8.0, delta=0.01, force=True)
TICKS = [[["tea", "milk"]] * 400 + [["tea"]] * 300 + [["rare"]], [], [["milk"]] * 500, [["tea", "sugar"]] * 700] * 2


def top(**options):
    return et.UnknownTopK(
        2, **({"mechanism": "meta", "guarantee": PROMISE, "horizon": 8, "key": simulation(1)} | options)
    )


def histogram(**options):
    common = {"mechanism": "meta", "guarantee": PROMISE, "horizon": 8, "max_per_event": 2, "key": simulation(1)}
    return et.UnknownHistogram(**(common | options))


@pytest.mark.parametrize("make", [top, histogram])
def test_blocks_together_cost_the_promise(make):
    made = make()
    depth = L(8, choose_radix(8, "formula", pure=False))
    block = made._engine.worker.engine._one_shot.charge
    assert depth * block.exact_rho <= PROMISE.exact_rho
    assert depth * block.exact_delta <= PROMISE.exact_delta
    assert depth * block.exact_rho > PROMISE.exact_rho * Fraction(999, 1000), "nothing is given away"
    assert made.guarantee.covers(made.charge)


@pytest.mark.parametrize(("neighbours", "blocks"), [("add_remove", 3), ("replace", 6)])
def test_a_user_pays_delta_for_every_block_that_can_hold_an_event(neighbours, blocks):
    made = top(unit="user", max_events_per_user=3, neighbours=neighbours)
    depth = L(8, choose_radix(8, "formula", pure=False))
    assert blocks * depth * made._engine.worker.engine._one_shot.charge.exact_delta <= PROMISE.exact_delta
    assert depth * made._engine.worker.engine._one_shot.charge.exact_rho <= PROMISE.exact_rho
    assert made._engine.worker.engine._one_shot.reach.events == 3


@pytest.mark.parametrize("make", [top, histogram])
def test_one_look_at_a_block_in_every_tick(make):
    recording = Recording(simulation(3))
    made = make(key=recording)
    for events in TICKS:
        made.step(events)
    assert {entry.nodes for entry in recording.draws} == {(t,) for t in range(1, 9)}
    for lane in {entry.lane for entry in recording.draws}:
        assert len({str(entry.law) for entry in recording.draws if entry.lane == lane}) == 1


@pytest.mark.parametrize("make", [top, histogram])
def test_snapshot_at_every_tick_and_run(make):
    key = simulation(5)
    whole = make(key=key)
    values = whole.run(TICKS)
    stepping = make(key=key)
    for t, events in enumerate(TICKS, start=1):
        release = stepping.step(events)
        assert release.value == values[t - 1]
        stepping = et.restore(stepping.snapshot(), key=key)
        assert stepping.tick == t
        assert stepping.step(events, tick=t).value == release.value
        with pytest.raises(et.ReplayRefused):
            stepping.step([["other"]], tick=t)
    with pytest.raises(et.HorizonExceeded):
        stepping.step([])


def test_without_noise_frequent_items_are_counted_and_rare_ones_never_shown():
    made = histogram(key=ZeroNoise())
    for events in TICKS[:4]:
        release = made.step(events)
    assert "rare" not in release.value
    truth = {"tea": 1400, "milk": 900, "sugar": 700}
    lower, upper = release.interval(0.05)
    for label, count in release.value.items():
        assert count <= truth[label], "blocks lose counts and never invent them"
        assert lower[label] <= count
        assert truth[label] <= upper[label] or truth[label] - count > 4, "the bound knows max_events_per_tick=1 only"
    wide = histogram(key=ZeroNoise(), max_events_per_tick=1000)
    for events in TICKS[:4]:
        release = wide.step(events)
    _, upper = release.interval(0.05)
    assert all(truth[label] <= upper[label] for label in release.value)


def test_order_is_by_count_and_label_and_arrival_leaves_no_trace():
    backwards = [events[::-1] for events in TICKS]
    assert top().run(TICKS) == top().run(backwards)
    assert [list(v) for v in top().run(TICKS)] == [list(v) for v in top().run(backwards)]
    for value in top().run(TICKS):
        assert list(value.items()) == sorted(value.items(), key=lambda pair: (-pair[1], pair[0]))
        assert len(value) <= 2


def test_refused():
    with pytest.raises(et.ConfigurationError, match="no delta"):
        top(guarantee=et.ZCDP(0.5))
    with pytest.raises(et.ConfigurationError, match="kbar"):
        top(kbar=1)
    with pytest.raises(et.ConfigurationError, match="neighbours"):
        top(neighbours="independent")
    for made in (top(), histogram()):
        assert isinstance(made._engine.worker, BlockEngine)
        assert made.mechanism == "meta"


HALVES, CHARACTER = "\ud83d\ude00", "\U0001f600"  # in JSON both are written \ud83d\ude00


@pytest.mark.parametrize("make", [top, histogram])
def test_labels_that_json_takes_for_one_stay_two(make):
    ticks = [[HALVES] * 900 + [CHARACTER] * 400, [CHARACTER] * 100, ["\udcff", b"\xfe"] * 300, [HALVES] * 20]
    for stop in range(1, 4):
        whole, first = make(key=ZeroNoise()), make(key=ZeroNoise())
        before = [whole.step(events).value for events in ticks]
        assert len(before[0]) == 2
        for events in ticks[:stop]:
            first.step(events)
        again = et.restore(first.snapshot(), key=ZeroNoise())
        assert [again.step(events).value for events in ticks[stop:]] == before[stop:]
        assert again.snapshot() == whole.snapshot()


@pytest.mark.parametrize("make", [top, histogram])
def test_events_without_owners_are_refused_where_users_are_protected(make):
    made = make(unit="user", max_events_per_user=1)
    before = made.snapshot()
    for call in (lambda: made.step(["one person's"] * 4999), lambda: made.run([["one person's"] * 4999])):
        with pytest.raises(TypeError, match="users"):
            call()
    assert made.snapshot() == before
    assert made.step_events(["one person's"] * 4999, users=["ann"] * 4999).value == {}


def test_tables_as_bytes():
    tables = [{"b": -3, "a": 2**61, HALVES: 1, CHARACTER: 2, "": 5}, {}, {"\udcff": 1}]
    data = tables_to_bytes(tables)
    assert tables_from_bytes(data) == tables
    assert tables_to_bytes([dict(reversed(table.items())) for table in tables]) == data
    assert tables_from_bytes(tables_to_bytes([])) == []
    for damaged in (data[:-1], data + b"x", data[:9], b"", b"\xff" * 16, data[:16] + b"\xff" * (len(data) - 16)):
        with pytest.raises(et.EvertallyError):
            tables_from_bytes(damaged)


def test_nobody_declared_what_a_tick_holds():
    """A count that some block did not show has no upper end then, and says what to declare; the lower end holds."""
    rows = [["a"] * 900 + ["b"] * 5] * 4 + [["b"] * 900 + ["a"] * 5] * 4
    common = {"mechanism": "meta", "guarantee": et.ApproxDP(4.0, 1e-6), "horizon": 8, "key": simulation(1)}
    bare, said = et.UnknownTopK(1, **common), et.UnknownTopK(1, **common, max_events_per_tick=905)
    for events in rows:
        one, other = bare.step(events), said.step(events)
    assert "max_events_per_tick" in bare.unbounded_because
    assert said.unbounded_because is None
    truth = {"a": 4 * 905, "b": 4 * 905}
    for release in (one, other):
        lower, upper = release.interval(0.05)
        assert all(lower[label] <= truth[label] <= upper[label] for label in release.value)
    assert max(one.interval(0.05)[1].values()) > 2**60 > max(other.interval(0.05)[1].values())


def test_streams_are_refused_if_their_blocks_cost_more_than_the_promise(monkeypatch):
    """`paid_by` is asked by both classes that run a look in every block."""
    for module, make in (
        (statistics.unknown, lambda: et.UnknownTopK(1, mechanism="meta", guarantee=et.ApproxDP(4.0, 1e-6), horizon=8)),
        (
            statistics.streaming,
            lambda: et.StreamingTopK(
                1, columns=["a", "b"], mechanism="meta", guarantee=et.ApproxDP(4.0, 1e-6), horizon=8
            ),
        ),
    ):
        make()
        asked = []
        with monkeypatch.context() as patch:
            patch.setattr(module, "paid_by", lambda charge, look, *_, seen=asked, **__: seen.append(look) or look)
            make()
        assert asked
