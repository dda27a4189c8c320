"""Ticks that are larger than memory, and ticks without events: other ways to compute the same bytes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from live_stream import ON_REQUEST, ON_THE_WALL, batch, in_pieces
from release_stream import spec_of_all_kinds, spec_of_user_kinds
from test_live import EVERYTHING, lines, publish_all, twins
from visit_stream import WITH_UNKNOWN_QUERIES, WriteSpec, visits

import evertally as et
from evertally.checks.interruptions import interrupted, lines_of
from evertally.contract.folding import Folded, adds_up
from evertally.contract.idle import idle, plays_idle
from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input.tick_events import TickEvents
from evertally.runtime.live import Live
from evertally.runtime.machine import Machine, StreamState

_TINY = "\n[serve]\nmax_memory_bytes = 1\n"
_MEAN = (
    '\n[[query]]\nname = "mean"\nkind = "running_mean"\nshare = 0.01\ncolumn = "minutes"\nlower = 0\nupper = 50\n'
    '\n[[query]]\nname = "bins"\nkind = "histogram"\nshare = 0.01\ncolumn = "minutes"\nedges = [0, 10, 20]\n'
)
_SUM = (
    '\n[[query]]\nname = "sum"\nkind = "running_sum"\nshare = 0.01\ncolumn = "minutes"\nlower = 0\nupper = 50\n'
    "resolution = 7\n"
)
_SMALL, _SUM = (text.replace("0.01", "0.001") for text in (_MEAN, _SUM))
_SHARES = (("share = 0.25", "share = 0.2"), ("share = 0.75", "share = 0.7"))


@pytest.mark.parametrize("all_add_up", [True, False])
def test_a_tick_from_the_journal_releases_what_one_in_memory_does(write_spec: WriteSpec, all_add_up: bool) -> None:
    changes, more = (
        WITH_UNKNOWN_QUERIES,
        EVERYTHING["append"].replace("0.05", "0.04") + _SMALL + ("" if all_add_up else _SUM),
    )
    roomy, tight = twins(write_spec, *changes, ON_REQUEST, append=more)
    tight.write_text(tight.read_text() + _TINY)
    pieces = list(in_pieces(visits(0, 30), 5))
    for path in (roomy, tight):
        spec, killed = load_spec(path), path == tight
        live = Live(spec)
        assert live._machine.folds is all_add_up
        for i, some in enumerate(pieces):
            live.accept([(str(i), batch(spec, some))])
            if killed:
                assert live._waiting.batches(live.open_tick) in ([], None), "nothing is held in memory"
            if killed and i % 5 == 1:
                live.abandon()  # in the middle of a tick
                live = Live(spec)
            if i % 4 == 3:
                publish_all(live, live.released + 5)
        publish_all(live, 30)
        live.__exit__(None)
    assert lines(tight) == lines(roomy)
    heads = [Live(load_spec(path)) for path in (roomy, tight)]
    chains = [live._store.head.chain for live in heads]
    for live in heads:
        live.abandon()
    assert chains[0] == chains[1], "the same digests of what came in"


_DIES = """
import os, sys
import pyarrow as pa
from evertally.runtime import load_spec
from evertally.runtime.live import Live

live = Live(load_spec(sys.argv[1]))
for i in range(6):
    wards = pa.array(["north", "attic", None] * 3)
    live.accept([(str(i), {"time": pa.array(["2013-01-01T00:10:00Z"] * 9), "ward": wards})])
os.kill(os.getpid(), 9)
"""


def test_a_kill_in_the_middle_of_a_large_tick_loses_and_doubles_nothing(write_spec: WriteSpec) -> None:
    calm, broken = twins(write_spec, ON_REQUEST)
    broken.write_text(broken.read_text() + _TINY)
    died = subprocess.run([sys.executable, "-c", _DIES, str(broken)], check=False)
    assert died.returncode == -9
    one = {"time": pa.array(["2013-01-01T00:10:00Z"] * 9), "ward": pa.array(["north", "attic", None] * 3)}
    for path, sent in ((calm, range(9)), (broken, range(3, 9))):  # some of the same batches come again
        with Live(load_spec(path)) as live:
            for i in sent:
                live.accept([(str(i), one)])
            publish_all(live, 3)
    assert lines(broken) == lines(calm)


_LARGE = """
import resource, sys
import numpy as np
import pyarrow as pa
from evertally.runtime import load_spec
from evertally.runtime.live import Live

minutes = pa.array(np.random.default_rng(1).integers(0, 60, 2**18), pa.int64())
with Live(load_spec(sys.argv[1]), wall=lambda: 1e9) as live:
    for i in range(4):
        live.accept([(str(i), {"minutes": minutes})])
    live.release_through(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(4, 54):
        live.accept([(str(i), {"minutes": minutes})])
    assert live.waiting_bytes > 100_000_000
    live.release_through(2)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_tick(write_spec: WriteSpec) -> None:
    mean = "\n".join(_MEAN.splitlines()[:8]).replace("0.01", "0.3")
    path = write_spec(
        ON_THE_WALL, ("share = 0.75", "share = 0.4"), append=f"{mean}\n[serve]\nmax_memory_bytes = 1000\n"
    )
    path.write_text(path.read_text().replace('column = "ward"', 'column = "minutes"'))
    done = subprocess.run([sys.executable, "-c", _LARGE, str(path)], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 40_000, "kilobytes; the tick alone has 100 MB"


def test_the_memory_of_labels_is_told(write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evertally.runtime.live._LOOK_SECONDS", 0.0)
    spec = load_spec(write_spec(*WITH_UNKNOWN_QUERIES, ON_REQUEST, **EVERYTHING))
    with Live(spec) as live:
        before = live.memory
        assert list(before) == [query.name for query in spec.queries]
        records = [{"time": "2013-01-01T00:10:00Z", "ward": f"ward {i}"} for i in range(5000)]
        live.accept([("a", batch(spec, records))])
        publish_all(live, 1)
        assert live.memory["found"] > before["found"] + 5000 * 60
        assert live.memory["all"] < before["all"] + 5000


# -- ticks without events ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_users", [False, True])
def test_idle_ticks_of_every_kind_release_the_same_bytes_in_one_go(write_spec: WriteSpec, of_users: bool) -> None:
    spec = spec_of_user_kinds(write_spec().parent) if of_users else spec_of_all_kinds(write_spec)
    key = Key.generate()
    together, alone = (Machine.at(spec, StreamState(), key, rows=True) for _ in range(2))
    busy = TickEvents(spec, [batch(spec, visits(0, 9))])
    nothing = TickEvents(spec, [])
    assert together.step(busy, 1) == alone.step(busy, 1)
    assert together.idle(nothing, range(2, 8)) == [alone.step(nothing, tick) for tick in range(2, 8)]
    assert together.state() == alone.state()
    assert together.step(busy, 8) == alone.step(busy, 8)
    played = [name for name, mechanism in together._mechanisms.items() if plays_idle(mechanism)]
    assert of_users or len(played) >= 10


def test_a_stream_that_was_down_goes_on_as_if_it_had_not_been(write_spec: WriteSpec) -> None:
    """Once in one go, once tick by tick; with events in between, and a restart that goes through all of it again."""
    long = ("horizon = 48", "horizon = 290")
    late, steady = twins(write_spec, long, ON_REQUEST, *_SHARES, append=_MEAN)
    for path, stride in ((late, 290), (steady, 1)):
        spec = load_spec(path)
        live = Live(spec)
        live.accept([("a", batch(spec, visits(0, 250)[::97]))])
        for tick in range(stride, 291, stride):
            publish_all(live, min(tick, 270))
        live.abandon()
        with Live(spec) as live:
            publish_all(live, 290)
    assert lines(late) == lines(steady)


@pytest.mark.parametrize("way", ["idle", "folded"])
def test_a_call_that_is_interrupted_has_used_no_tick(way: str) -> None:
    def made() -> Any:
        options: Any = {"guarantee": et.PureDP(1.0), "horizon": 20, "key": et.simulation(4), "allow_copy": True}
        return et.Histogram(categories=["a", "b"], max_window=3, **options)

    def call(mechanism: Any) -> Any:
        if way == "idle":
            return idle(mechanism, 3)
        tick = Folded(mechanism, mechanism.tick + 1)
        tick.feed(["a", "b", "a"])
        tick.feed(["b"])
        return tick.release()

    whole = made()
    expected, places = lines_of(lambda: call(whole))
    assert len(places) > 50
    for place in places:
        mechanism = made()
        if interrupted(lambda of=mechanism: call(of), place):  # type: ignore[misc]
            assert mechanism.tick == 0
            assert call(mechanism) == expected


def test_what_draws_coins_or_knows_users_takes_a_tick_as_a_whole() -> None:
    shared: Any = {"guarantee": et.ZCDP(0.5), "horizon": 9, "key": et.simulation(1), "allow_copy": True}
    capped = et.Counter(unit="user", max_events_per_user=2, **shared)
    sums = et.RunningSum(lower=0, upper=9, resolution=0.5, **shared)
    coins = et.Histogram(categories=["a", "b"], resolution=0.5, max_weight=4, **shared)
    assert [adds_up(mechanism) for mechanism in (capped, sums, coins)] == [False] * 3
    assert not plays_idle(capped)


@pytest.mark.parametrize("signed", [False, True])
def test_sums_of_pieces_are_clipped_as_the_whole_is(signed: bool) -> None:
    """Totals beyond 2^61/horizon are clipped once, at the end, in whatever pieces they came."""
    options: Any = {"guarantee": et.PureDP(1.0), "horizon": 2**29, "max_weight": 2**32, "signed": signed}
    whole, folded = (et.Counter(key=et.noise.ZeroNoise(), **options) for _ in range(2))
    events = np.repeat([2.0**32, -(2.0**32)], [9, 8])
    tick = Folded(folded, 1)
    for piece in np.array_split(events, 5):
        tick.feed(piece)
    assert tick.release().value == whole.step_events(events).value == 2**32
