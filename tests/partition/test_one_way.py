"""Additions 7, attacked by enumeration: tests and selections between neighbours that move one way, and both ways."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.histogram import expressions
from evertally.histogram.tasks import AllColumns, Expressions, Largest, monotone
from evertally.noise import DiscreteLaplace
from evertally.partition import Split
from evertally.partition.budget import noise_of
from evertally.privacy import Contribution, PureDP, moves_one_way
from evertally.selection import ExponentialMechanism, PermuteAndFlip

EPS_TAU, EPS_MU = 1.0, 1.0
SPLIT = Split.of("1/4", "1/4", "1/2")


# -- which neighbours move one way -----------------------------------------------------------------------------------


def test_only_whole_unsigned_events_that_come_or_go_move_one_way() -> None:
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 3}
    assert moves_one_way("add_remove", Contribution(max_per_event=3, max_weight=2))
    assert moves_one_way("add_remove", Contribution(**user))
    assert not moves_one_way("replace", Contribution())
    assert not moves_one_way("replace", Contribution(**user))
    assert not moves_one_way("independent", Contribution())
    assert not moves_one_way("add_remove", Contribution(signed=True))
    assert not moves_one_way("add_remove", Contribution(protects="item"))


def test_queries_that_can_fall_or_that_nobody_knows_are_not_monotone() -> None:
    h = expressions.Columns(2)

    class Unknown:
        count = 1

        def values(self, v: Any) -> Any:
            return v[:1]

    assert all(map(monotone, (AllColumns(2), Largest(1), Expressions([expressions.Minimum(), (h[0] + h[1]) / 2]))))
    assert not monotone(Expressions([expressions.Maximum(), (h[0] - h[1]) / 2]))
    assert not monotone(Unknown())


@pytest.mark.parametrize(
    ("options", "one_way"),
    [
        ({}, True),
        ({"unit": "user", "max_events_per_user": 2}, True),
        ({"neighbours": "replace"}, False),
        ({"neighbours": "replace", "unit": "user", "max_events_per_user": 2}, False),
    ],
)
def test_every_partition_takes_the_scale_of_its_relation(options: Any, one_way: bool) -> None:
    kinds: list[tuple[Any, Any, str]] = [
        (et.MaxSum, 3, "rebased"),
        (et.MaxSum, 3, "bounded"),
        (et.MinSum, 3, "doubling"),
        (et.SumSelect, 3, "noisy-ladders"),
        (et.MaxSum, 3, "two-level"),
    ]
    for kind, columns, mechanism in kinds:
        made = kind(
            columns, guarantee=PureDP(1), horizon=30, largest=20, mechanism=mechanism, key=et.simulation(0), **options
        )
        plan: Any = made._engine.worker._formula
        engines = [plan.outer, plan.inner(1)] if mechanism == "two-level" else [plan]
        for one in engines:
            terms, noise = one.terms, one.noise
            # what tau and mu cost one event, at the scales that are drawn
            sides = 1 if one_way else 2
            event = terms.change.linf / noise.tau.scale + sides * terms.change.linf / noise.mu.scale
            update = 0 if noise.update is None else terms.queries.count * terms.change.linf / noise.update.scale
            paid = event + update + noise.histogram.exact_epsilon
            assert paid <= terms.promise.exact_epsilon
            assert paid == pytest.approx(float(terms.promise.exact_epsilon), rel=1e-8)


def test_signed_amounts_are_refused_before_it_matters() -> None:
    with pytest.raises(TypeError, match="no option 'signed'"):
        et.MaxSum(3, guarantee=PureDP(1), horizon=30, signed=True)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="only grow"):
        et.Counter(mechanism="sparse", guarantee=PureDP(1), horizon=30, signed=True)


# -- the test of a partition -----------------------------------------------------------------------------------------

BOX = np.arange(-250, 251)


@cache
def at_most(law: DiscreteLaplace) -> Any:
    """P(Z <= k) for k = -600..600, by the formula of the tails."""
    q = math.exp(-1 / float(law.scale))
    k = np.arange(-600, 601).astype(np.float64)
    return np.where(k < 0, q ** (-np.minimum(k, -1.0)) / (1 + q), 1 - q ** (np.maximum(k, 0.0) + 1) / (1 + q))


def close_law(path: tuple[int, ...], linf: int, one_way: bool) -> Any:
    """P[closes at tick 1, 2, ...] and P[never], with the threshold at 0 and these query values."""
    noise = noise_of(PureDP(4), SPLIT, linf=linf, one_way=one_way)  # eps_tau = eps_mu = 1
    q = math.exp(-1 / float(noise.tau.scale))
    weight = (1 - q) / (1 + q) * q ** np.abs(BOX)
    found = []
    for value in path:
        quiet = at_most(noise.mu)[600 + BOX - value]
        found.append(float(np.sum(weight * (1 - quiet))))
        weight = weight * quiet
    return np.array([*found, float(np.sum(weight))])


def rising(ticks: int, steps: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [tuple(np.cumsum(s).tolist()) for s in itertools.product(steps, repeat=ticks)]


@pytest.mark.parametrize("linf", [1, 2])
def test_every_pair_of_paths_that_differ_one_way_is_within_its_share(linf: int) -> None:
    """All monotone paths of four ticks from three heights, with all differences in 0..linf. One direction costs eps_mu
    alone, the other eps_tau + eps_mu."""
    up = down = 0.0
    for start in (-6, 0, 6):
        for path in rising(4, (0, 1, 3)):
            less = tuple(start + g for g in path)
            here = np.log(close_law(less, linf, one_way=True))
            for moved in itertools.product(range(linf + 1), repeat=4):
                more = tuple(g + u for g, u in zip(less, moved, strict=True))
                if any(a > b for a, b in itertools.pairwise(more)):
                    continue  # the larger stream is monotone as well
                there = np.log(close_law(more, linf, one_way=True))
                up, down = max(up, float((there - here).max())), max(down, float((here - there).max()))
    assert up <= EPS_MU * (1 + 1e-9)
    assert down <= (EPS_TAU + EPS_MU) * (1 + 1e-9)
    assert up > 0.9 * EPS_MU


def test_the_share_is_used_up_and_two_ways_would_need_the_double() -> None:
    """One more while the interval waits, the same when it closes: tight. One more, and then one less: too much."""
    wait = (0,) * 120
    less, more, both = (*wait, 3), (*(1 for _ in wait), 3), (*(1 for _ in wait), 2)

    def loss(one: tuple[int, ...], other: tuple[int, ...], one_way: bool) -> float:
        return math.log(close_law(one, 1, one_way)[-2] / close_law(other, 1, one_way)[-2])

    assert 1.95 <= loss(less, more, True) <= 2
    assert loss(less, both, True) > 2.9
    assert 1.9 <= loss(less, both, False) <= 2


# -- selections ------------------------------------------------------------------------------------------------------


def permute_and_flip(scores: tuple[int, ...], scale: Fraction) -> Any:
    """The law by its definition: over all orders, each candidate flips its coin."""
    coin = [math.exp((s - max(scores)) / float(scale)) for s in scores]
    law = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for j in order:
            law[j] += left * coin[j]
            left *= 1 - coin[j]
    return law / math.factorial(len(scores))


def exponential(scores: tuple[int, ...], scale: Fraction) -> Any:
    weights = np.exp((np.array(scores) - max(scores)) / float(scale))
    return weights / weights.sum()


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_selections_between_scores_that_move_one_way(sensitivity: int) -> None:
    """All scores of three candidates up to 4, all moves: epsilon for both, and a range of epsilon for the exponential
    mechanism, which its epsilon^2/8 rests on. Both are reached. Moves in both directions lose more."""
    epsilon = Fraction(1)
    flip = PermuteAndFlip(epsilon, sensitivity, one_way=True)
    pick = ExponentialMechanism(epsilon, sensitivity, one_way=True)
    assert flip.scale == pick.scale == sensitivity
    most = {"flip": 0.0, "pick": 0.0, "range": 0.0, "both ways": 0.0}
    for scores in itertools.product(range(5), repeat=3):
        for moved in itertools.product(range(-sensitivity, sensitivity + 1), repeat=3):
            other = tuple(s + u for s, u in zip(scores, moved, strict=True))
            flips = np.log(permute_and_flip(other, flip.scale) / permute_and_flip(scores, flip.scale))
            if min(moved) < 0:
                most["both ways"] = max(most["both ways"], float(np.abs(flips).max()))
                continue
            picks = np.log(exponential(other, pick.scale) / exponential(scores, pick.scale))
            most["flip"] = max(most["flip"], float(np.abs(flips).max()))
            most["pick"] = max(most["pick"], float(np.abs(picks).max()))
            most["range"] = max(most["range"], float(np.ptp(picks)))
    assert 0.99 <= most["flip"] <= 1 + 1e-12
    assert most["pick"] <= 1 + 1e-12
    assert 0.99 <= most["range"] <= 1 + 1e-12
    assert most["both ways"] > 1.5
