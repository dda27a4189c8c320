"""The game: who may hand over what, who sees what, and that many games at once are the games one by one."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
import pytest

import evertally as et
from evertally.audit import (
    Adversary,
    DeleteAndReinsert,
    EdgeStream,
    Feedback,
    FirstTick,
    Game,
    LateTrigger,
    Move,
    RandomSearch,
    worst_pair,
)
from evertally.audit import game as game_module
from evertally.audit.game import ObjectArena, ReplicaArena, arena_for
from evertally.errors import ConfigurationError
from evertally.noise.reals import KnownReals
from long import LONG

KEY = et.simulation(0)


def counter(**options):
    options = {"guarantee": et.PureDP(1.0), "horizon": 6} | options
    return lambda key: et.Counter(key=key, **options)


def histogram(**options):
    options = {"guarantee": et.ZCDP(0.5), "horizon": 6, "categories": ["a", "b", "c"]} | options
    return lambda key: et.Histogram(key=key, **options)


class Scripted(Adversary):
    """Challenges in the given ticks with the given pair."""

    adaptive = False

    def __init__(self, ticks, left, right, rows=0):
        self.at, self.left, self.right, self.rows = ticks, left, right, rows

    def move(self, tick, releases):
        rows = self.zeros() + self.rows
        if tick not in self.at:
            return Move(rows)
        pair = [np.tile(np.array(row, dtype=np.int64), (self.trials, 1)) for row in (self.left, self.right)]
        return Move(rows, np.ones(self.trials, dtype=bool), *pair)


# -- legality --------------------------------------------------------------------------------------------------------


def test_one_challenge_in_a_game():
    with pytest.raises(ConfigurationError, match="once"):
        Game(counter(), Scripted({1, 3}, [1], [0]), "left").play(5)


@pytest.mark.parametrize(
    ("make", "left", "right", "legal"),
    [
        (counter(), [1], [0], True),
        (counter(), [2], [0], False),
        (counter(max_weight=3), [5], [2], True),
        (counter(max_weight=3), [5], [1], False),
        (counter(signed=True, neighbours="replace"), [-1], [1], True),
        (counter(unit="user", max_events_per_user=4), [4], [0], True),
        (counter(unit="user", max_events_per_user=4), [5], [0], False),
        (histogram(), [1, 0, 0], [0, 0, 0], True),
        (histogram(), [1, 0, 0], [0, 1, 0], False),
        (histogram(neighbours="replace"), [1, 0, 0], [0, 1, 0], True),
        (histogram(neighbours="replace"), [1, 1, 0], [0, 0, 1], False),
        (histogram(max_per_event=2), [1, 1, 0], [0, 0, 0], True),
        (histogram(max_per_event=2), [2, 0, 0], [0, 0, 0], False),
    ],
)
def test_the_pair_must_be_neighbours(make, left, right, legal):
    game = Game(make, Scripted({2}, left, right), "right")
    if legal:
        assert (game.play(3).challenged == 2).all()
    else:
        with pytest.raises(ConfigurationError, match="relation"):
            game.play(3)


def test_a_challenge_is_a_pair():
    class Half(Scripted):
        def move(self, tick, releases):
            return Move(self.zeros(), np.ones(self.trials, dtype=bool), self.zeros(), None)

    with pytest.raises(ConfigurationError, match="left and right"):
        Game(counter(), Half({1}, [1], [0]), "left").play(2)


def test_totals_that_no_events_make_are_refused():
    with pytest.raises(ConfigurationError, match="negative"):
        Game(counter(), DeleteAndReinsert(), "left").play(2)
    assert Game(counter(signed=True), DeleteAndReinsert(), "left").play(2).rows.min() == -1


def test_a_game_has_two_sides_and_a_length():
    with pytest.raises(ConfigurationError, match="side"):
        Game(counter(), FirstTick(), "middle")
    with pytest.raises(ConfigurationError, match="ticks"):
        Game(counter(horizon=None), FirstTick(), "left")
    assert Game(counter(horizon=None), FirstTick(), "left", ticks=5).play(2).releases.shape == (2, 5, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"max_per_event": 2},
        {"max_per_event": 2, "neighbours": "replace"},
        {"max_weight": 4, "max_per_event": 2, "protects": "item", "neighbours": "replace"},
        {"neighbours": "replace", "unit": "user", "max_events_per_user": 3},
        {"signed": True, "max_weight": 2, "neighbours": "replace"},
    ],
)
def test_the_worst_pair_uses_up_the_sensitivity(options):
    model = histogram(**options)(KEY)
    left, right = worst_pair(model)
    moved = np.abs(left - right)
    assert moved.sum() == model.sensitivity.l1
    assert (moved**2).sum() == model.sensitivity.l2_squared
    assert min(left.min(), right.min()) >= 0


# -- the claimed class of adversaries --------------------------------------------------------------------------------


def oblivious(key):
    return et.VectorCounter(
        3,
        guarantee=et.ZCDP(0.5, adversary="oblivious"),
        horizon=6,
        neighbours="independent",
        max_per_event=3,
        key=key,
    )


@pytest.mark.parametrize("adversary", [LateTrigger(), Feedback(), EdgeStream()])
def test_an_oblivious_promise_is_not_played_adaptively(adversary):
    with pytest.raises(ConfigurationError, match="oblivious"):
        Game(oblivious, adversary, "left")


def test_an_oblivious_adversary_sees_nothing_before_the_end():
    class Spy(Scripted):
        def move(self, tick, releases):
            assert releases.shape[1] == 0
            return super().move(tick, releases)

    views = Game(oblivious, Spy({1}, [1, 1, 1], [0, 0, 0]), "left").play(4)
    assert views.releases.shape == (4, 6, 3)


def test_an_adversary_sees_past_releases_only():
    """What is shown in a tick is what the mechanism released in the ticks before it: no more, and unchanged."""
    shown = []

    class Spy(Scripted):
        adaptive = True

        def move(self, tick, releases):
            assert releases.shape[:2] == (self.trials, tick - 1)
            shown.append(releases.copy())
            return super().move(tick, releases)

    views = Game(counter(), Spy({3}, [1], [0], rows=2), "left").play(7)
    assert len(shown) == 6
    for tick, releases in enumerate(shown, start=1):
        assert releases.shape[:2] == (7, tick - 1)
        assert np.array_equal(releases, views.releases[:, : tick - 1]) or tick == 1


class Exact:
    """No noise at all."""

    guarantee = et.PureDP(1.0)
    horizon = 6

    def __init__(self, key):
        self.total = 0

    def step(self, x):
        self.total += x
        return self.total


def test_the_views_say_what_was_handed_over():
    left, right = (Game(Exact, Scripted({3}, [1], [0], rows=2), side).play(2) for side in ("left", "right"))
    assert left.releases[0, :, 0].tolist() == [2, 4, 5, 7, 9, 11]
    assert right.releases[0, :, 0].tolist() == [2, 4, 4, 6, 8, 10]
    for views in (left, right):  # the adversary does not learn the side from its own book-keeping
        assert views.rows[0, :, 0].tolist() == [2, 2, 0, 2, 2, 2]
        assert views.shift.tolist() == [[1], [1]]
    assert left.residuals[0, :, 0].tolist() == [0, 0, 1, 1, 1, 1]


# -- arenas ----------------------------------------------------------------------------------------------------------


def test_games_are_reproducible_and_trials_differ():
    make = counter(guarantee=et.ZCDP(0.5), mechanism="sqrt")
    first, again, other = (Game(make, FirstTick(), "left").play(50, seed=seed).releases for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len({tuple(trial.ravel()) for trial in first}) > 45


def test_a_changed_step_is_played_as_it_is():
    class Shouting(et.Counter):
        def _release(self, values, spread):
            return super()._release(values * 1000, spread)

    def make(key):
        return Shouting(guarantee=et.PureDP(1.0), horizon=3, key=key)

    assert isinstance(arena_for(make, make(KEY), 2, 0), ObjectArena)
    views = Game(make, FirstTick(), "left").play(20)
    assert (views.releases % 1000 == 0).all()


class FixedKey:
    """A key whose draws are a fixed function of (lane, node, coordinate); `derive(i)` shifts the coordinate."""

    private = False

    def __init__(self, columns, first=0):
        self.columns, self.first = columns, first

    def derive(self, name):
        return FixedKey(self.columns, int(name) * self.columns)

    def source(self, *path):
        return self

    def draws(self, lane, law, nodes, coordinates=1, first=0):
        return np.array(
            [[_hashed(lane, int(node), self.first + first + c, law) for c in range(coordinates)] for node in nodes],
            dtype=np.int64,
        ).reshape(-1, coordinates)

    def reals(self, lane, law, nodes, coordinates=1, first=0):
        return KnownReals(self.draws(lane, law, nodes, coordinates, first).astype(np.float64))

    def order(self, message):
        return message


def _hashed(lane, node, coordinate, law):
    digest = hashlib.sha256(f"{lane}/{node}/{coordinate}".encode()).digest()
    return round((int.from_bytes(digest[:4]) / 2**32 - 0.5) * 6 * law.stddev())


@pytest.mark.parametrize(
    ("make", "columns", "ticks"),
    [
        (counter(mechanism="tree", radix=2), 1, 6),
        (counter(mechanism="tree", radix=2, memory_limit=8), 1, 6),
        (counter(mechanism="honaker"), 1, 6),
        (counter(guarantee=et.ZCDP(0.5), mechanism="sqrt"), 1, 6),
        (counter(horizon=None), 1, 9),
        (counter(mechanism="pure-blocks"), 1, 6),
        (counter(horizon=None, guarantee=et.ZCDP(0.5), mechanism="bank-open"), 1, 9),
        (histogram(max_per_event=2), 3, 6),
    ],
)
def test_replicas_are_the_objects_bit_by_bit(make, columns, ticks, monkeypatch):
    """With draws that depend on their address alone, one process with a block of columns for each trial releases what
    a mechanism for each trial releases."""
    monkeypatch.setattr(game_module, "simulation", lambda seed: FixedKey(columns))
    model = make(KEY)
    arenas = ReplicaArena(model, 4, 0), ObjectArena(make, 4, 0)
    rows = np.random.default_rng(0).integers(0, 9, size=(ticks, 4, columns))
    for row in rows:
        replica, objects = (arena.step(row) for arena in arenas)
        assert np.array_equal(replica, objects)


@pytest.mark.parametrize("mechanism", ["tree", "sqrt"])
def test_replicas_have_the_law_of_objects(mechanism):
    """Means and variances of the noise at the last tick, 6 standard errors: false alarms below 1e-8."""
    make = counter(guarantee=et.ZCDP(0.5), mechanism=mechanism, horizon=4)
    model = make(KEY)
    for n, kind in ((4000, partial(ReplicaArena, model)), (4000 if LONG else 1000, partial(ObjectArena, make))):
        arena = kind(n, 3)
        for _ in range(4):
            noise = arena.step(np.zeros((n, 1), dtype=np.int64))[:, 0]
        deviation = model.stddev(4)
        assert abs(noise.mean()) < 6 * deviation / np.sqrt(n)
        assert abs(noise.var() / deviation**2 - 1) < 6 * np.sqrt(2 / n)


def test_replica_trials_are_independent():
    releases = Game(counter(horizon=1), FirstTick(), "right").play(4000).releases[:, 0, 0]
    assert abs(np.corrcoef(releases[:-1], releases[1:])[0, 1]) < 6 / np.sqrt(4000)


# -- mechanisms of others --------------------------------------------------------------------------------------------


class Pairwise:
    """Two numbers go in, one comes out."""

    columns = 2
    guarantee = et.PureDP(1.0)
    horizon = 3

    def __init__(self, key):
        self.total = 0

    def step(self, x):
        self.total += int(x.sum())
        return float(self.total)


def test_a_mechanism_may_release_another_number_of_numbers():
    views = Game(Pairwise, Scripted({1}, [1, 0], [0, 0]), "left").play(2)
    assert views.releases.shape == (2, 3, 1)
    assert np.array_equal(views.residuals, views.releases)


def test_random_search_is_a_fixed_stream_for_each_number():
    one, same, other = (Game(counter(), RandomSearch(number), "right").play(3, seed=0).rows for number in (3, 3, 5))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert (one[0] == one[1]).all()
